//! In: clusters that are written to through a real Git repository, with an agent of ours on them. Out: what the branch has, what the
//! clusters have, and that the hub wrote nothing there. `soak` has Flux's controllers as agents.

mod agent;
mod claims;
mod faults;
mod fleet;
mod flux;
mod hooks;
mod killed;
mod life;
mod lost;
mod moves;
mod people;
mod same;
mod soak;

use agent::KINDS;
use anyhow::{Context as _, Result};
use emco_e2e::bed::{Audit, Bed, BedSpec, PlaneSpec};
use emco_e2e::operator::{SharedOperator, chart, deployment};
use emco_e2e::package::Package;
use fleet::Fleet;
use tokio::sync::{OnceCell, RwLock};

/// `c` is written to directly, all others through Git, those of each test through a repository of its own. Jobs have their controllers
/// on `d`.
static STAGE: SharedOperator = SharedOperator::new(
    || {
        let edge = |name, more| PlaneSpec::light(name, more).audit(Audit::Writes);
        let plain = ["a", "b", "c", "e"].into_iter().map(|name| edge(name, &[]));
        plain.fold(BedSpec::bare_hub(), BedSpec::with).with(edge("d", OF_JOBS))
    },
    &["c"],
);
static READERS: OnceCell<Result<(), String>> = OnceCell::const_new();
/// Whoever kills the operator waits until nobody else needs it.
static AT_WORK: RwLock<()> = RwLock::const_new(());

/// Make Pods of Jobs, and remove Jobs that ended some time ago, their Pods first.
const OF_JOBS: &[&str] = &["job-controller", "ttl-after-finished-controller", "garbage-collector-controller"];
/// The user whom the hub is on clusters through Git, who may read.
const READER: &str = "emco-reader";
const ROLE: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: emco-reader}
rules: [{apiGroups: ['*'], resources: ['*'], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: emco-reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: emco-reader}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: emco-reader}]
";

/// The bed, with what clusters need once.
async fn stage() -> Result<&'static Bed> {
    let (bed, _) = STAGE.get().await?;
    let once = || async {
        for edge in ["a", "b", "d", "e"] {
            bed.edge(edge)
                .kubectl()
                .apply(&format!("{ROLE}---{KINDS}"))
                .await
                .map_err(|e| format!("{e:#}"))?;
        }
        Ok(())
    };
    match READERS.get_or_init(once).await {
        Ok(()) => Ok(bed),
        Err(error) => Err(anyhow::anyhow!("{error}")),
    }
}

/// A chart with one ConfigMap of its own name that says something.
fn note(name: &str, version: &str, say: &str) -> Result<Package> {
    let template =
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{say: {say}}}\n");
    chart(name, version, &[("templates/note.yaml", &template)])
}

/// Deploys one chart as `shop` on all clusters of a fleet.
async fn deploy(fleet: &Fleet, space: &str, chart: Package) -> Result<()> {
    let text = deployment(space, "shop", &[chart], &fleet.everywhere());
    fleet.bed.hub().kubectl().apply(&text).await.map(drop)
}

/// The text of a ConfigMap of a plane.
async fn said(bed: &Bed, plane: &str, namespace: &str, name: &str) -> Result<String> {
    use k8s_openapi::api::core::v1::ConfigMap;
    let map = bed.edge(plane).api::<ConfigMap>(namespace).await?.get(name).await?;
    map.data.and_then(|mut data| data.remove("say")).context("the note says nothing")
}

#[tokio::test]
async fn clusters_through_git_get_what_direct_ones_get_in_one_commit() {
    let _working = AT_WORK.read().await;
    let fleet = Fleet::start("same", &["a", "b"], None).await.unwrap();
    fleet
        .bed
        .explain(Box::pin(async {
            Box::pin(same::same(&fleet)).await?;
            Box::pin(moves::moves(&fleet)).await
        }))
        .await;
}

#[tokio::test]
async fn a_life_with_an_update_a_rollback_and_a_hook_goes_through_the_branch() {
    let _working = AT_WORK.read().await;
    let fleet = Fleet::start("life", &["d"], None).await.unwrap();
    let bed = fleet.bed;
    bed.explain(Box::pin(async {
        Box::pin(life::life(&fleet)).await?;
        Box::pin(hooks::runs_once(&fleet)).await?;
        Box::pin(life::holds(&fleet)).await?;
        fleet.end().await
    }))
    .await;
}
