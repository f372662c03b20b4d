//! Attacks of one project beside a second one that goes on: facts, no times.

use std::time::Duration;

use anyhow::{Result, ensure};
use emco_crds::LogicalCloud;
use emco_crds::conditions::types;
use emco_e2e::bed::{Bed, BedSpec, Parts, PlaneSpec, serial};
use emco_e2e::fake_edges::FakeEdges;
use emco_e2e::hostile::{
    Attack, EDGES, Kubelet, Running, Said, Size, VICTIM, Victim, answers, probe_address, public_address,
};
use emco_e2e::operator::{Operator, SharedOperator, is, wait};

/// Nothing runs on these edges: what is deployed there is ready when it is there.
static STAGE: SharedOperator = SharedOperator::new(
    || EDGES.iter().fold(BedSpec::bare_hub(), |spec, edge| spec.with(PlaneSpec::new(edge, Parts::ApiServer))),
    &EDGES,
);
/// Edits beside each attack.
const EDITS: usize = 6;
const EVERY: Duration = Duration::from_millis(500);
/// For the last of them.
const ARRIVE: Duration = Duration::from_secs(30);
/// For what the attacker is answered: its work has the lowest priority of the machine.
const ANSWER: Duration = Duration::from_mins(4);
/// The most that the operator may ever have.
const MEMORY_BYTES: u64 = 1 << 30;

/// Begins the attack with edits beside it, and asserts what is true of all of them. Answers what its objects say, and what the
/// API server did not take.
async fn survives(
    bed: &Bed,
    operator: &Operator,
    attack: Attack,
    size: Size,
) -> Result<(Running, Vec<Said>)> {
    let process = operator.process();
    let pid = process.pid();
    let mut victim = Victim::start(bed).await?;
    Kubelet::reset_peak(pid)?;
    let public = public_address(operator).await?;
    let running = Box::pin(attack.begin(bed, public, size)).await?;
    let edits = victim.edit(EDITS, EVERY, ARRIVE).await?;
    let asked = running.objects.iter().map(|object| attack.said(bed, object, ANSWER));
    let said = futures::future::try_join_all(asked).await?;
    let peak = process.usage()?.peak_rss_bytes;
    println!("{}: edits {:.2?} s, {} MiB, {said:#?}", attack.name(), edits.seconds, peak >> 20);
    ensure!(answers(probe_address(operator).await?).await, "the operator does not answer its probe");
    attack.clear(bed).await?;
    ensure!(process.is_running() && operator.process().pid() == pid, "the operator was restarted");
    ensure!(edits.lost == 0, "{} of {EDITS} edits of {VICTIM} did not come", edits.lost);
    ensure!(peak < MEMORY_BYTES, "the operator had {} MiB", peak >> 20);
    for (object, said) in running.objects.iter().zip(&said) {
        match said {
            Said::Nothing => anyhow::bail!("{} {} is not answered", object.kind, object.name),
            Said::Not { reason, message } => {
                ensure!(!reason.is_empty() && message.contains(' '), "{object:?} says no sentence: {said:?}");
            }
            Said::Ready => {}
        }
    }
    Ok((running, said))
}

/// What is to become of an attack's objects.
#[derive(Clone, Copy)]
enum End {
    Refused,
    /// All of it is within the limits.
    Taken,
    /// It has none.
    Nothing,
}

async fn attacked(attack: Attack, size: Size, end: End) {
    let (bed, operator) = STAGE.get().await.unwrap();
    let _turn = serial().await;
    bed.explain(async {
        attack.prepare(bed).await?;
        let (_, said) = Box::pin(survives(bed, operator, attack, size)).await?;
        let refused = said.iter().filter(|said| matches!(said, Said::Not { .. })).count();
        match end {
            End::Refused => {
                ensure!(refused > 0 && refused == said.len(), "the attack is taken as work: {said:?}");
            }
            End::Taken => ensure!(refused == 0 && !said.is_empty(), "what is allowed is refused: {said:?}"),
            End::Nothing => ensure!(said.is_empty(), "it has objects: {said:?}"),
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_chart_that_makes_900_mb_is_refused_and_others_go_on() {
    attacked(Attack::Allocate, Size::Least, End::Refused).await;
}

#[tokio::test]
async fn a_chart_that_prints_256_mib_is_refused_and_others_go_on() {
    attacked(Attack::Print, Size::Least, End::Refused).await;
}

#[tokio::test]
async fn nine_archives_that_unpack_to_their_limit_do_not_fill_the_memory() {
    attacked(Attack::Archives, Size::Least, End::Taken).await;
}

#[tokio::test]
async fn packs_of_chains_from_their_far_end_are_read_in_time() {
    attacked(Attack::Git, Size::Least, End::Refused).await;
}

#[tokio::test]
async fn a_chart_of_keys_for_many_clusters_holds_nobody_else_up() {
    Box::pin(keys(Size::Least)).await;
}

/// The attacks that compute for long: all of the 30 s that a render has, or more of what is above.
mod soak {
    use super::{Attack, End, Size, attacked, keys};

    #[tokio::test]
    async fn a_chart_that_spins_is_refused_and_others_go_on() {
        attacked(Attack::Spin, Size::Least, End::Refused).await;
    }

    #[tokio::test]
    async fn charts_that_spin_on_two_places_are_refused_and_others_go_on() {
        attacked(Attack::Spin, Size::Small, End::Refused).await;
    }

    #[tokio::test]
    async fn a_chart_of_keys_for_eight_clusters_holds_nobody_else_up() {
        Box::pin(keys(Size::Small)).await;
    }
}

async fn keys(size: Size) {
    let (bed, operator) = STAGE.get().await.unwrap();
    let _turn = serial().await;
    let attack = Attack::Keys;
    bed.explain(async {
        let edges = FakeEdges::start(size.clusters()).await?;
        attack.prepare(bed).await?;
        edges.register(bed, &attack.project()).await?;
        wait::<LogicalCloud, _>(bed, &attack.project(), "default", |cloud| {
            is(cloud.status.as_ref(), types::READY, "True")
        })
        .await?;
        Box::pin(survives(bed, operator, attack, size)).await.map(drop)
    })
    .await;
}

#[tokio::test]
async fn names_that_mean_something_in_a_url_name_objects_or_are_refused() {
    let (bed, operator) = STAGE.get().await.unwrap();
    let _turn = serial().await;
    bed.explain(async {
        Attack::Names.prepare(bed).await?;
        let (running, said) = Box::pin(survives(bed, operator, Attack::Names, Size::Least)).await?;
        // Deployments whose profile names no ConfigMap, and apps whose chart is in none, were stored: each name in both.
        let not_stored = running.refused.iter().find(|refused| !refused.name.starts_with("xxxx"));
        ensure!(
            not_stored.is_none() && !running.objects.is_empty(),
            "the API server did not store {not_stored:?}"
        );
        let wrong = said
            .iter()
            .find(|said| !matches!(said, Said::Not { message, .. } if message.contains("can have the name")));
        ensure!(wrong.is_none(), "such a name is taken: {wrong:?}");
        let refused = |start: &str| running.refused.iter().find(|refused| refused.name.starts_with(start));
        let long = refused("xxxx").map(|refused| refused.said.as_str()).unwrap_or_default();
        ensure!(long.contains("may not be more than 253"), "a name of 1 MiB is not refused: {long}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn repositories_that_send_slowly_close_or_circle_hold_nobody_else_up() {
    attacked(Attack::Repositories, Size::Least, End::Refused).await;
}

#[tokio::test]
async fn connections_that_stay_do_not_keep_the_probe_from_its_answer() {
    attacked(Attack::Connections, Size::Least, End::Nothing).await;
}
