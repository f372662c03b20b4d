//! One project attacks while a second one edits its small app once a second: how much later its edits come, what memory the
//! operator takes, and whether it ends.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use emco_crds::LogicalCloud;
use emco_crds::conditions::types;
use emco_e2e::bed::{Bed, BedSpec, Parts, PlaneSpec};
use emco_e2e::fake_edges::FakeEdges;
use emco_e2e::hostile::{Attack, EDGES, Kubelet, Object, PROVIDER, Said, Size, Victim, public_address};
use emco_e2e::operator::{self, Operator, is};
use emco_e2e::wait::wait_for;

use super::record::Entry;

mod measured;

use measured::Measured;

/// What makes this.
const HOW: &str = "make bench-hostile";
const EVERY: Duration = Duration::from_secs(1);
/// Before all attacks, before each of them, and beside it.
const QUIET: usize = 60;
const PAIRED: usize = 30;
/// Of fewer, one edit in a hundred is chance.
const BESIDE: usize = 240;
/// For the last edit.
const PATIENCE: Duration = Duration::from_secs(30);
/// For what the attacker is answered, where that has not come yet.
const ANSWER: Duration = Duration::from_secs(2);
/// For what an attack leaves behind, before anything else is measured.
const CLEAR: Duration = Duration::from_mins(3);
/// For five hundred clusters to be reached.
const REGISTERED: Duration = Duration::from_mins(3);
/// For all of it: what hangs is ended and reported.
const LIMIT: Duration = Duration::from_mins(70);

/// Measures on a bed of its own; only one attack if it is named.
pub async fn measure(program: &Path, only: Option<&str>) -> Result<Vec<Entry>> {
    let attacks: Vec<Attack> =
        Attack::ALL.into_iter().filter(|attack| only.is_none_or(|only| only == attack.name())).collect();
    ensure!(
        !attacks.is_empty(),
        "there is no such attack: they are {}",
        Attack::ALL.map(Attack::name).join(", ")
    );
    let hub = PlaneSpec::new("hub", Parts::Controllers).own_etcd();
    let edge = |name: &str| PlaneSpec::new(name, Parts::ApiServer);
    let spec = EDGES.iter().fold(BedSpec::default().with(hub), |spec, name| spec.with(edge(name)));
    let bed = Bed::start(spec).await?;
    let mut operator = Operator::start(&bed, program).await?;
    let fakes = FakeEdges::start(Size::Full.clusters()).await?;
    operator::unless_ended(operator.process(), Box::pin(prepare(&bed, &attacks, &fakes))).await?;
    let public = public_address(&operator).await?;
    let kubelet = Kubelet::default();
    let entries = tokio::select! {
        entries = tokio::time::timeout(LIMIT, Box::pin(play(&bed, &attacks, &kubelet, public))) => {
            entries.context("an attack hung the benchmark").and_then(|entries| entries)
        }
        ended = kubelet.run(&bed, &mut operator) => {
            Err(ended.err().unwrap_or_else(|| anyhow!("nobody looks after the operator any more")))
        }
    };
    drop(operator);
    bed.end().await?;
    entries
}

/// Edges and projects. The clusters that are none are registered for the one attack that needs them, before anything is
/// measured.
async fn prepare(bed: &Bed, attacks: &[Attack], fakes: &FakeEdges) -> Result<()> {
    operator::register(bed, PROVIDER, &EDGES).await?;
    for attack in attacks {
        attack.prepare(bed).await?;
    }
    if !attacks.contains(&Attack::Keys) {
        return Ok(());
    }
    let project = Attack::Keys.project();
    fakes.register(bed, &project).await?;
    fakes.reached(bed, REGISTERED).await?;
    let clouds = bed.hub().api::<LogicalCloud>(&project).await?;
    wait_for(clouds, REGISTERED, "the logical cloud on all of them", |clouds| {
        let cloud = clouds.values().next().ok_or("there is none")?;
        is(cloud.status.as_ref(), types::READY, "True")
    })
    .await
}

async fn play(bed: &Bed, attacks: &[Attack], kubelet: &Kubelet, public: SocketAddr) -> Result<Vec<Entry>> {
    let mut victim = Victim::start(bed).await?;
    let mut measured = Measured::default();
    victim.edit(PAIRED, EVERY, PATIENCE).await?;
    kubelet.take();
    measured.quiet(victim.edit(QUIET, EVERY, PATIENCE).await?, kubelet.take());
    for attack in attacks {
        measured.quiet(victim.edit(PAIRED, EVERY, PATIENCE).await?, kubelet.take());
        // An attack that cannot be begun would be measured as quiet.
        let (edits, running) = tokio::try_join!(
            victim.edit(BESIDE, EVERY, PATIENCE),
            Box::pin(attack.begin(bed, public, Size::Full)),
        )?;
        let seen = kubelet.take();
        let answered = said(bed, *attack, &running.objects).await;
        println!("{}: {}", attack.name(), measured.attack(*attack, edits, seen, &answered));
        attack.clear(bed).await?;
        drop(running);
        // Quiet is an edit beside nothing: what stays would make every later attack look small.
        until_none(attack.name(), CLEAR, async || attack.left(bed).await).await?;
        kubelet.take();
    }
    measured.entries()
}

/// The different sentences that the attacker is answered, at once.
async fn said(bed: &Bed, attack: Attack, objects: &[Object]) -> Vec<String> {
    let asked = objects.iter().map(|object| attack.said(bed, object, ANSWER));
    let mut all: Vec<String> = futures::future::join_all(asked)
        .await
        .into_iter()
        .map(|said| match said {
            Ok(Said::Ready) => "it works".to_owned(),
            Ok(Said::Nothing) => "nothing".to_owned(),
            Ok(Said::Not { reason, message }) => format!("{reason}: {message}"),
            Err(error) => format!("{error:#}"),
        })
        .collect();
    all.sort();
    all.dedup();
    all
}

/// Waits until the objects of an attack are gone.
async fn until_none(name: &str, limit: Duration, left: impl AsyncFn() -> Result<usize>) -> Result<()> {
    let start = Instant::now();
    loop {
        let left = left().await?;
        if left == 0 {
            return Ok(());
        }
        ensure!(start.elapsed() < limit, "{name}: {left} objects are not gone after {} s", limit.as_secs());
        tokio::time::sleep(EVERY).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn what_an_attack_leaves_behind_fails_the_benchmark() {
        let asked = AtomicUsize::new(2);
        let fewer = async || Ok(asked.fetch_sub(1, Ordering::Relaxed));
        until_none("spin", Duration::from_mins(1), fewer).await.unwrap();
        let stays = until_none("spin", Duration::ZERO, async || Ok(3)).await.unwrap_err();
        assert_eq!(stays.to_string(), "spin: 3 objects are not gone after 0 s");
    }
}
