//! Measures on 1,000 clusters that only store what they are sent, so that the time is that of the operator and the hub.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use emco_e2e::audit::AuditEvent;
use emco_e2e::bed::{Audit, Bed, BedSpec, Parts, PlaneSpec};
use emco_e2e::fake_edges::{FakeEdges, Written};
use emco_e2e::operator::{self, Operator};

use super::super::record::Entry;
use super::super::spine::count;
use super::super::spine::quiet::{Marks, by_resource};
use super::cloud::{Clouds, Made, PROJECT};
use super::{HOW, REST};

const CLUSTERS: usize = 1000;
/// Logical clouds, one after the other.
const ROUNDS: usize = 3;
/// How long all clusters may take to be registered.
const REGISTERED: Duration = Duration::from_mins(10);

/// Measures on a bed of its own.
pub async fn measure(program: &Path) -> Result<Vec<Entry>> {
    let hub = PlaneSpec::new("hub", Parts::Controllers).audit(Audit::Writes);
    let bed = Bed::start(BedSpec::default().with(hub)).await?;
    // What earlier logical clouds leave on the hub is collected at once, and not in the minute of rest.
    let operator = Operator::start_in(&bed, program, &[("EMCO_UNREFERENCED_SECONDS", "1")]).await?;
    let entries = operator::unless_ended(operator.process(), Box::pin(on(&bed, &operator))).await;
    drop(operator);
    bed.end().await?;
    entries
}

async fn on(bed: &Bed, operator: &Operator) -> Result<Vec<Entry>> {
    let (begun, fakes) = (Instant::now(), FakeEdges::start(CLUSTERS).await?);
    fakes.register(bed, PROJECT).await?;
    fakes.reached(bed, REGISTERED).await?;
    println!("{CLUSTERS} clusters are reached after {:.1} s", begun.elapsed().as_secs_f64());
    let stage = Stage { bed, operator, fakes, clouds: Clouds::of(bed, CLUSTERS).await? };
    let mut measured = Measured::default();
    for round in 1..=ROUNDS {
        let made = stage.prepared(round, &mut measured).await?;
        if round == ROUNDS {
            measured.at_rest = Some(stage.rest().await?);
        }
        let gone = stage.removed(&made).await?;
        println!("{round} of {ROUNDS}: gone after {gone:.3} s");
        measured.gone.push(gone);
    }
    measured.entries()
}

struct Stage<'a> {
    bed: &'a Bed,
    operator: &'a Operator,
    fakes: FakeEdges,
    clouds: Clouds,
}

impl Stage<'_> {
    /// Makes a logical cloud, and counts what was written until nothing was any more.
    async fn prepared(&self, round: usize, measured: &mut Measured) -> Result<Made> {
        Marks::now(self.bed, &["hub"])?.until_quiet().await?;
        let marks = Marks::now(self.bed, &["hub"])?;
        self.fakes.take_written();
        let before = self.operator.process().usage()?.cpu;
        let made = self.clouds.make(round).await?;
        let cpu = self.operator.process().usage()?.cpu.saturating_sub(before);
        marks.until_quiet().await?;
        let (written, hub) = (self.fakes.take_written(), marks.writes()?);
        println!("{round} of {ROUNDS}: {}", times(&made, &written, cpu));
        println!("clusters were sent {written}; the hub {}", by_resource(&hub));
        let wanted = made.objects().len();
        self.have(&made, wanted)?;
        measured.ready.push(made.took.as_secs_f64());
        measured.written(&written, &hub, wanted * CLUSTERS);
        Ok(made)
    }

    /// What is written to clusters and hub while nothing happens.
    async fn rest(&self) -> Result<usize> {
        let marks = Marks::now(self.bed, &["hub"])?;
        self.fakes.take_written();
        tokio::time::sleep(REST).await;
        let (written, hub) = (self.fakes.take_written(), marks.writes()?);
        println!(
            "in {} s at rest clusters were sent {written}; the hub {}",
            REST.as_secs(),
            by_resource(&hub)
        );
        Ok(written.all() + hub.len())
    }

    /// Removes it; seconds until it was gone.
    async fn removed(&self, made: &Made) -> Result<f64> {
        let gone = self.clouds.remove(made).await?;
        self.have(made, 0)?;
        Ok(gone.as_secs_f64())
    }

    /// What the operator says is there, or gone, is so on every cluster.
    fn have(&self, made: &Made, wanted: usize) -> Result<()> {
        let found = self.fakes.objects(&made.namespace());
        ensure!(found.len() == CLUSTERS, "there are {} clusters instead of {CLUSTERS}", found.len());
        let others = found.iter().filter(|found| **found != wanted).count();
        ensure!(others == 0, "{others} of {CLUSTERS} clusters do not have {wanted} objects of {}", made.name);
        Ok(())
    }
}

/// Where the time went, for people.
fn times(made: &Made, written: &Written, cpu: Duration) -> String {
    let seconds = |at: Instant| at.saturating_duration_since(made.begun).as_secs_f64();
    let writes = written.times.map_or_else(
        || "no cluster was written to".to_owned(),
        |(first, last)| {
            format!(
                "the first write on a cluster at {:.3} s, the last at {:.3} s",
                seconds(first),
                seconds(last)
            )
        },
    );
    format!(
        "ready on {CLUSTERS} clusters after {:.3} s: {writes}, with {:.2} s of CPU for the operator",
        made.took.as_secs_f64(),
        cpu.as_secs_f64()
    )
}

#[derive(Default)]
struct Measured {
    ready: Vec<f64>,
    gone: Vec<f64>,
    /// Writes on clusters for each object there, marks of the hub apart.
    per_object: Vec<f64>,
    /// Marks for each cluster.
    marks: Vec<f64>,
    /// Writes to the hub.
    hub: Vec<f64>,
    at_rest: Option<usize>,
}

impl Measured {
    /// Until a logical cloud was settled, which has so many objects on all clusters together.
    fn written(&mut self, written: &Written, hub: &[AuditEvent], objects: usize) {
        self.per_object.push(count(written.of_objects()) / count(objects));
        self.marks.push(count(written.marks) / count(CLUSTERS));
        self.hub.push(count(hub.len()));
    }

    fn entries(self) -> Result<Vec<Entry>> {
        let none = "nothing was measured";
        let median =
            |name: &str, unit: &str, samples: Vec<f64>| Entry::median(name, unit, samples, HOW).context(none);
        // Of writes the most of all.
        let most =
            |name: &str, samples: Vec<f64>| Entry::quantile(name, "writes", samples, 1.0, HOW).context(none);
        let rest = Entry::one("writes_at_rest", "writes", count(self.at_rest.context(none)?), HOW);
        Ok(vec![
            median("logical_cloud_ready_s_1000_simulated", "s", self.ready)?.at_most(10.0),
            most("edge_writes_per_object", self.per_object)?.at_most(1.0),
            most("edge_marks_per_cluster", self.marks)?,
            most("hub_writes", self.hub)?,
            rest.at_most(0.0),
            median("removal_s_1000_simulated", "s", self.gone)?,
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_writes_and_the_median_of_times_are_the_values() {
        let measured = Measured {
            ready: vec![3.0, 1.0, 2.0],
            gone: vec![4.0],
            per_object: vec![1.0, 1.5, 1.0],
            marks: vec![1.0],
            hub: vec![7.0, 9.0, 8.0],
            at_rest: Some(0),
        };
        let entries = measured.entries().unwrap();
        let told: Vec<_> =
            entries.iter().map(|entry| (entry.name.as_str(), entry.value.to_bits(), entry.met)).collect();
        let wanted = [
            ("logical_cloud_ready_s_1000_simulated", 2.0, Some(true)),
            ("edge_writes_per_object", 1.5, Some(false)),
            ("edge_marks_per_cluster", 1.0, None),
            ("hub_writes", 9.0, None),
            ("writes_at_rest", 0.0, Some(true)),
            ("removal_s_1000_simulated", 4.0, None),
        ];
        assert_eq!(told, wanted.map(|(name, value, met): (_, f64, _)| (name, value.to_bits(), met)));
        assert!(Measured { at_rest: Some(0), ..Measured::default() }.entries().is_err());
    }
}
