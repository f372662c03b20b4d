//! A hook whose Job would be gone soon after it ended: its file leaves the branch by then, and has no time-out, so no agent runs it again.

use anyhow::{Context as _, Result, ensure};
use emco_e2e::audit::AuditEvent;
use emco_e2e::bed::Bed;
use emco_e2e::operator::{SOON, chart, chart_map, deployed, deployment, has_maps, project};
use emco_e2e::package::Package;
use emco_e2e::wait::{wait_for_some, wait_until_gone};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{Patch, PatchParams};
use kube::runtime::watcher::Config;
use serde_json::json;

use super::fleet::Fleet;
use super::said;

const SEED: &str = "
apiVersion: batch/v1
kind: Job
metadata: {name: seed, annotations: {helm.sh/hook: pre-install}}
spec:
  ttlSecondsAfterFinished: 2
  template:
    spec: {restartPolicy: Never, containers: [{name: seed, image: example.com/seed}]}
";

fn seeded(version: &str, say: &str) -> Result<Package> {
    let note = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: seeded}}\ndata: {{say: {say}}}\n");
    chart("seeded", version, &[("templates/note.yaml", &note), ("templates/seed.yaml", SEED)])
}

/// On the first cluster of a fleet, which has the controllers of Jobs and nothing that runs Pods.
pub async fn runs_once(fleet: &Fleet) -> Result<()> {
    let (bed, kubectl) = (fleet.bed, fleet.bed.hub().kubectl());
    let (space, edge) = (format!("{}-hooks", fleet.name), fleet.clusters[0]);
    let mark = bed.edge(edge).audit_mark()?;
    project(bed, &space).await?;
    let (first, second) = ([seeded("1.0.0", "one")?], [seeded("1.0.1", "two")?]);
    chart_map(bed, &space, "charts", &[&first[..], &second[..]].concat()).await?;
    kubectl.apply(&deployment(&space, "shop", &first, &fleet.only(edge))).await?;
    ends_well(bed, edge, &space).await?;
    deployed(bed, &space, "shop", 1).await?;
    has_maps(bed, edge, &space, &["seeded"]).await?;
    wait_until_gone(bed.edge(edge).api::<Job>(&space).await?, "seed", SOON).await?;

    // The agent applies the folder again.
    kubectl.apply(&deployment(&space, "shop", &second, &fleet.only(edge))).await?;
    deployed(bed, &space, "shop", 2).await?;
    ensure!(said(bed, edge, &space, "seeded").await? == "two");
    let is_made = |event: &&AuditEvent| {
        event.resource == "jobs" && event.name == "seed" && event.subresource.is_empty() && event.code == 201
    };
    let events = bed.edge(edge).audit_since(mark)?;
    let made = events.iter().filter(|event| event.namespace == space && !event.is_dry()).filter(is_made);
    let made = made.count();
    ensure!(made == 1, "the Job was made {made} times");
    let files = fleet.server.files(&fleet.published().await?).await?;
    ensure!(!files.iter().any(|file| file.contains("job-seed")), "{files:?}");

    kubectl.run(&["delete", "dig", "shop", "-n", &space, "--wait=false"]).await?;
    has_maps(bed, edge, &space, &[]).await?;
    fleet.is_left_by(&space).await
}

/// Plays the kubelet for the one Pod of the hook.
async fn ends_well(bed: &Bed, edge: &str, space: &str) -> Result<()> {
    let pods: Api<Pod> = bed.edge(edge).api(space).await?;
    let config = Config::default().labels("batch.kubernetes.io/job-name=seed");
    let name = wait_for_some(pods.clone(), config, SOON, "the Pod of the hook", |pods| {
        let name = pods.values().next().and_then(|pod| pod.metadata.name.clone());
        name.ok_or_else(|| "there is none".to_owned())
    })
    .await?;
    let ended = Patch::Merge(json!({"status": {"phase": "Succeeded"}}));
    pods.patch_status(&name, &PatchParams::default(), &ended).await.context(name).map(drop)
}
