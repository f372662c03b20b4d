//! Measures on a real hub with 1,000 clusters that are only known how long a deployment on all of them takes from the snapshot
//! to the stored targets and back, and what it stores. Each cluster has its own values and a random password.

mod fleet;
mod known;

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use emco_controllers::object::Owner;
use emco_controllers::reconcile::deployment;
use emco_controllers::store;
use emco_e2e::bed::{Bed, BedSpec};
use emco_e2e::operator::root;
use serde_json::Value;

use emco_crds::OwnerKind;

use super::record::Entry;
use known::Process;

const HOW: &str = "make bench-store";
const CLUSTERS: usize = 1000;
/// Revisions: the first makes shards, the others change every row of them.
const ROUNDS: usize = 3;

/// Measures on a bed of its own.
pub async fn measure() -> Result<Vec<Entry>> {
    let bed = Bed::start(BedSpec::hub()).await?;
    let entries = Box::pin(on(&bed)).await;
    bed.end().await?;
    entries
}

async fn on(bed: &Bed) -> Result<Vec<Entry>> {
    let kubectl = bed.hub().kubectl();
    let crds = root().join("config/crd").display().to_string();
    kubectl.run(&["apply", "--server-side", "-k", &crds]).await?;
    kubectl.run(&["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"]).await?;
    kubectl.apply(&fleet::objects(CLUSTERS)?).await?;
    let (mut seconds, mut objects, mut mebibytes) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        kubectl.apply(&fleet::deployment(round)).await?;
        let mut process = Process::start(bed, CLUSTERS).await?;
        process.prepare().await?;
        let before = stored(bed).await?;
        let start = Instant::now();
        let outcome = deployment::reconcile(&process.ctx, fleet::PROJECT, fleet::DEPLOYMENT).await;
        outcome.map_err(|error| anyhow::anyhow!("the deployment is not planned: {error}"))?;
        // Another process reads what this one stored.
        let mut reader = Process::start(bed, CLUSTERS).await?;
        let reading = Instant::now();
        reader.see().await?;
        let dig = reader.deployment()?;
        let owner = Owner::of(&reader.ctx, OwnerKind::DeploymentIntentGroup, dig.as_ref());
        let read = store::newest(&reader.ctx, &owner).await.map_err(|error| anyhow::anyhow!("{error}"))?;
        let read = read.context("no revision can be read back")?;
        let took = start.elapsed();
        ensure!(read.spec.revision == i64::try_from(round)?, "revision {} was read back", read.spec.revision);
        ensure!(read.running.sets.len() == CLUSTERS, "{} sets were read back", read.running.sets.len());
        let after = stored(bed).await?;
        let new: Vec<usize> = after
            .iter()
            .filter(|(name, _)| !before.iter().any(|(old, _)| old == name))
            .map(|(_, bytes)| *bytes)
            .collect();
        println!(
            "revision {round}: {:.2} s, of which {:.2} s reading; {} new objects, {} bytes",
            took.as_secs_f64(),
            reading.elapsed().as_secs_f64(),
            new.len(),
            new.iter().sum::<usize>()
        );
        seconds.push(took.as_secs_f64());
        #[allow(clippy::cast_precision_loss)] // far below 2^52
        {
            objects.push(new.len() as f64);
            mebibytes.push(new.iter().sum::<usize>() as f64 / (1024.0 * 1024.0));
        }
    }
    let worst = |name: &str, unit: &str, samples: Vec<f64>, most: f64| {
        let value = samples.iter().copied().fold(0.0, f64::max);
        Entry { samples, ..Entry::one(name, unit, value, HOW) }.at_most(most)
    };
    Ok(vec![
        worst("plan_store_read_1000_clusters_s", "s", seconds, 10.0),
        worst("hub_objects_per_revision_1000_clusters", "objects", objects, 20.0),
        worst("stored_mib_per_revision_1000_clusters", "MiB", mebibytes, 5.0),
    ])
}

/// What is stored of deployments: names, and bytes as JSON.
async fn stored(bed: &Bed) -> Result<Vec<(String, usize)>> {
    let mut all = Vec::new();
    for (kinds, namespace) in
        [("appcontexts,syncshards,configmaps", fleet::PROJECT), ("configmaps,secrets", "emco-system")]
    {
        let args = ["get", kinds, "-n", namespace, "-l", "emco.io/owner", "-o", "json"];
        let list: Value = serde_json::from_str(&bed.hub().kubectl().run(&args).await?)?;
        for object in list["items"].as_array().into_iter().flatten() {
            let name = format!("{}/{}", object["kind"], object["metadata"]["name"]);
            all.push((name, object.to_string().len()));
        }
    }
    Ok(all)
}
