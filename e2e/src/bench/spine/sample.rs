//! Measures how soon the sample application of the demo is ready on three full edges, and what is written in a minute after
//! that.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use emco_crds::conditions::types;
use emco_crds::{Cluster, DeploymentIntentGroup};
use emco_e2e::bed::{Audit, Bed, BedSpec, NodeSpec, Parts, PlaneSpec};
use emco_e2e::operator::{self, Operator, SOON, root};
use emco_e2e::package::Package;
use emco_e2e::wait::wait_until_gone;

use super::HOW;
use super::quiet::{Marks, by_resource};
use crate::bench::record::Entry;

const EDGES: [&str; 3] = ["berlin", "oslo", "porto"];
const PLANES: [&str; 4] = ["hub", "berlin", "oslo", "porto"];
const PROVIDER: &str = "acme";
const PROJECT: &str = "shop";
const PLATFORM: &str = "config/samples/demo/1-platform.yaml";
const TENANT: &str = "config/samples/demo/2-shop.yaml";
const CHARTS: [&str; 3] = ["storefront", "stock", "telemetry"];
/// Deployments, each of new objects.
const ROUNDS: usize = 3;
/// At rest.
const REST: Duration = Duration::from_mins(1);

/// Measures on a bed of its own.
pub async fn measure(program: &Path) -> Result<Vec<Entry>> {
    let hub = PlaneSpec::new("hub", Parts::Controllers).audit(Audit::Writes);
    let edge = |name: &str| {
        let nodes = (1..=2).map(|number| NodeSpec::new(&format!("{name}-{number}")));
        PlaneSpec::edge(name).nodes(nodes.collect()).audit(Audit::Writes)
    };
    let spec = EDGES.iter().fold(BedSpec::default().with(hub), |spec, name| spec.with(edge(name)));
    let bed = Bed::start(spec).await?;
    // What a round lets go of is collected at once, and not in the minute of rest.
    let at_once = [("EMCO_UNREFERENCED_SECONDS", "1")];
    let operator = Operator::start_in(&bed, program, &at_once).await?;
    let entries = operator::unless_ended(operator.process(), Box::pin(on(&bed))).await;
    drop(operator);
    bed.end().await?;
    entries
}

async fn on(bed: &Bed) -> Result<Vec<Entry>> {
    prepare(bed).await?;
    let mut samples = Vec::new();
    for round in 1..=ROUNDS {
        let start = Instant::now();
        bed.hub().kubectl().apply_path(&root().join(TENANT)).await?;
        operator::deployed(bed, PROJECT, PROJECT, 1)
            .await
            .context("the sample application does not get ready")?;
        samples.push(start.elapsed().as_secs_f64());
        println!("round {round}: ready {:.2} s after kubectl was called", start.elapsed().as_secs_f64());
        if round < ROUNDS {
            let object = format!("deploymentintentgroups.emco.io/{PROJECT}");
            bed.hub().kubectl().run(&["delete", &object, "-n", PROJECT, "--wait=false"]).await?;
            wait_until_gone::<DeploymentIntentGroup>(bed.hub().api(PROJECT).await?, PROJECT, SOON).await?;
        }
    }
    Marks::now(bed, &PLANES)?.until_quiet().await?;
    let marks = Marks::now(bed, &PLANES)?;
    tokio::time::sleep(REST).await;
    let writes = marks.writes()?;
    println!("in {} s at rest the operator wrote {}", REST.as_secs(), by_resource(&writes));
    let ready = Entry::median("apply_to_ready_s", "s", samples, HOW).context("no round was played")?;
    Ok(vec![ready, Entry::one("writes_at_rest", "writes", count(writes.len()), HOW).at_most(0.0)])
}

/// Clusters are reached and charts published: what an administrator did long before.
async fn prepare(bed: &Bed) -> Result<()> {
    bed.hub().kubectl().apply_path(&root().join(PLATFORM)).await?;
    for edge in EDGES {
        operator::secret(bed, PROVIDER, edge, &bed.edge(edge).kubeconfig()?).await?;
    }
    for edge in EDGES {
        operator::wait::<Cluster, _>(bed, PROVIDER, edge, |cluster| {
            operator::is(cluster.status.as_ref(), types::READY, "True")
        })
        .await?;
    }
    let folder = root().join("config/samples/charts");
    let charts =
        CHARTS.iter().map(|name| Package::of_folder(&folder.join(name))).collect::<Result<Vec<_>>>()?;
    operator::chart_map(bed, PROJECT, "shop-charts", &charts).await
}

/// Counts here are far below what a float holds exactly.
pub fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}
