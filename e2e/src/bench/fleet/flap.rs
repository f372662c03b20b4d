//! Makes one cluster vanish and come back: what that costs the operator besides what it does at rest.

use std::time::{Duration, Instant};

use anyhow::Result;
use emco_crds::Cluster;
use emco_crds::conditions::types;
use emco_e2e::bed::Bed;
use emco_e2e::fake_edges::fleet::Fleet;
use emco_e2e::fake_edges::{PROVIDER, name};
use emco_e2e::operator::{self, Operator, is};

use super::super::record::Entry;
use super::{HOW, REST};

const FLAPS: u32 = 6;

/// Measures on a fleet that has its deployments.
pub async fn measure(bed: &Bed, operator: &Operator, fleet: &Fleet) -> Result<Entry> {
    let idle = used(operator)?;
    tokio::time::sleep(REST).await;
    let each_second = (used(operator)? - idle) / REST.as_secs_f64();
    let (before, begun) = (used(operator)?, Instant::now());
    for _ in 0..FLAPS {
        for (is_down, says) in [(true, "False"), (false, "True")] {
            fleet.set_down(0, is_down);
            operator::wait::<Cluster, _>(bed, PROVIDER, &name(0), |cluster| {
                is(cluster.status.as_ref(), types::REACHABLE, says)
            })
            .await?;
        }
    }
    // What others do about it comes a moment later.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let at_rest = each_second * begun.elapsed().as_secs_f64();
    let flap = (used(operator)? - before - at_rest).max(0.0) / f64::from(FLAPS);
    println!("at rest the operator takes {:.1} ms of a processor each second", each_second * 1000.0);
    Ok(Entry::one("flap_cpu_ms", "ms", flap * 1000.0, HOW).at_most(20.0))
}

/// Seconds of processors that the operator took so far.
fn used(operator: &Operator) -> Result<f64> {
    Ok(operator.process().usage()?.cpu.as_secs_f64())
}
