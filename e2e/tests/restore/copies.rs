//! Restores a lost hub with deployments at several revisions from copies of its objects.

use std::time::Duration;

use anyhow::{Result, ensure};
use emco_crds::conditions::types;
use emco_crds::names::label;
use emco_crds::{Cluster, DeploymentIntentGroup, SyncShard};
use emco_e2e::audit::{AuditEvent, AuditMark};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{
    Copies, Operator, SOON, Statuses, chart, chart_map, deployed, deployment, do_as_told, failing, has_maps,
    install_kinds, project, register, says, wait,
};
use emco_e2e::package::Package;
use emco_e2e::wait::wait_for_object;
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use serde_json::json;

use super::{EDGES, IN_TURN};

const NOTE: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data: {say: {{ .Values.say | quote }}, scaled: one, site: {{ .Values.site | quote }}}
---
apiVersion: v1
kind: Secret
metadata: {name: {{ .Release.Name }}}
stringData: {drawn: {{ randAlphaNum 20 | quote }}, given: {{ .Values.given | quote }}}
---
apiVersion: v1
kind: Secret
metadata:
  name: {{ .Release.Name }}-hook
  annotations: {helm.sh/hook: pre-install}
stringData: {drawn: {{ randAlphaNum 20 | quote }}}
";
/// Values of all deployments that are not in their own objects.
const PROFILE: &str = "
apiVersion: emco.io/v1alpha1
kind: CompositeProfile
metadata: {name: shop, namespace: shop}
spec:
  apps:
  - app: web
    valuesFrom: [{kind: Secret, name: values}, {kind: ConfigMap, name: values}]
---
apiVersion: v1
kind: Secret
metadata: {name: values, namespace: shop}
stringData: {values.yaml: \"given: twelve\"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: values, namespace: shop}
data: {values.yaml: \"site: north\"}
";
const EVERYWHERE: &str = "placement: {allOf: [{provider: acme, selector: {}}]}";
/// The deployments, with the revisions that they have come to, and how each is synchronised.
pub const GROUPS: [(&str, i64, &str); 3] = [
    ("till", 3, "{}"),
    ("kiosk", 1, "{drift: Report}"),
    ("cart", 2, "{ignore: [{kind: ConfigMap, name: cart, jsonPointers: [/data/scaled]}]}"),
];
/// So long nothing may happen. Silence has no event to wait for.
pub const SILENCE: Duration = Duration::from_secs(5);

fn note() -> Result<Package> {
    let values = "say: one\nsite: nowhere\ngiven: nothing\n";
    chart("web", "1.0.0", &[("values.yaml", values), ("templates/note.yaml", NOTE)])
}

fn group(name: &str, say: &str) -> Result<String> {
    let sync = GROUPS.iter().find(|(known, ..)| *known == name).map_or("{}", |(_, _, sync)| sync);
    let spec = format!(
        "compositeProfileRef: {{name: shop}}\n{EVERYWHERE}\noverrideValues: [{{app: web, values: {{say: {say}}}}}]\nsync: {sync}"
    );
    Ok(deployment("shop", name, &[note()?], &spec))
}

/// Applies what is in Git. After a restore of copies its fields are the restoring tool's, so it is forced, as GitOps tools do.
pub async fn applied(bed: &Bed, name: &str, say: &str) -> Result<()> {
    let args = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
    bed.hub().kubectl().run_with(&args, &group(name, say)?).await.map(drop)
}

pub async fn edit(bed: &Bed, name: &str, say: &str, revision: i64) -> Result<DeploymentIntentGroup> {
    applied(bed, name, say).await?;
    deployed(bed, "shop", name, revision).await
}

/// Deployments at several revisions.
pub async fn deploy(bed: &Bed) -> Result<()> {
    register(bed, "acme", &EDGES).await?;
    project(bed, "shop").await?;
    chart_map(bed, "shop", "charts", &[note()?]).await?;
    bed.hub().kubectl().apply(PROFILE).await?;
    let all = GROUPS.iter().map(|(name, revisions, _)| async move {
        for revision in 1..=*revisions {
            edit(bed, name, &format!("{name}-{revision}"), revision).await?;
        }
        anyhow::Ok(())
    });
    try_join_all(all).await.map(drop)
}

pub async fn stop(operator: &Operator) -> Result<()> {
    operator.process().terminate().await?;
    operator.process().ended().await;
    Ok(())
}

pub fn marks(bed: &Bed) -> Result<Vec<AuditMark>> {
    EDGES.iter().map(|edge| bed.edge(edge).audit_mark()).collect()
}

/// What the operator wrote on the edges, the mark of the hub left out.
pub fn written(bed: &Bed, marks: &[AuditMark]) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for (edge, mark) in EDGES.iter().zip(marks) {
        let ours = |event: &AuditEvent| {
            event.user == "emco" && event.is_write() && event.namespace != "emco-system" && !event.is_lease()
        };
        let events = bed.edge(edge).audit_since(*mark)?;
        all.extend(
            events.iter().filter(|event| ours(event)).map(|e| format!("{edge}: {} {}", e.verb, e.uri)),
        );
    }
    Ok(all)
}

/// Nothing is done before somebody confirms, edge by edge, and deployments say so.
pub async fn waits_and_is_confirmed(bed: &Bed, marks: &[AuditMark]) -> Result<()> {
    let mut confirm = Vec::new();
    for edge in EDGES {
        confirm.push(says::<Cluster, _>(bed, "acme", edge, types::READY, "HubRestored").await?);
        for (name, ..) in GROUPS {
            failing(bed, "shop", name, &format!("acme/{edge}"), "HubRestored").await?;
        }
    }
    let writes = written(bed, marks)?;
    ensure!(writes.is_empty(), "before anybody confirmed: {writes:?}");
    for message in confirm {
        do_as_told(bed, &message).await?;
    }
    Ok(())
}

async fn has(bed: &Bed, edge: &str, name: &str, key: &str, value: &str) -> Result<()> {
    let maps = bed.edge(edge).api::<ConfigMap>("shop").await?;
    let is = |map: &ConfigMap| map.data.as_ref().and_then(|data| data.get(key)).is_some_and(|v| v == value);
    wait_for_object(maps, name, SOON, is).await.map(drop)
}

async fn theirs(bed: &Bed, name: &str, key: &str, word: &str) -> Result<()> {
    let patch = json!({"data": {key: word}}).to_string();
    let args = ["patch", "cm", name, "-n", "shop", "--type=merge", "-p", &patch];
    bed.edge("a").kubectl().run(&args).await.map(drop)
}

/// How far a restored hub is followed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Follow {
    /// One edit of each deployment, and removals.
    Edit,
    /// Others' changes, two edits, others' changes again, and removals.
    All,
}

/// Others' changes are dealt with as each deployment says, edits arrive, others' changes again, and what is deleted goes.
/// `last`: revision of the till, `said`: what it says.
pub async fn goes_on(bed: &Bed, last: i64, said: &str, follow: Follow) -> Result<()> {
    let edits = if follow == Follow::All { 2 } else { 1 };
    if follow == Follow::All {
        drift_holds(bed, said, 1).await?;
    }
    for edit_number in 1..=edits {
        let word = format!("next-{edit_number}");
        let word = &word;
        try_join_all(GROUPS.iter().map(|(name, before, _)| async move {
            let before = if *name == "till" { last } else { *before };
            edit(bed, name, word, before + edit_number).await?;
            for edge in EDGES {
                has(bed, edge, name, "say", word).await?;
            }
            anyhow::Ok(())
        }))
        .await?;
    }
    if follow == Follow::All {
        drift_holds(bed, "next-2", 2).await?;
    }
    bed.hub().kubectl().run(&["delete", "dig", "till", "kiosk", "-n", "shop", "--timeout=90s"]).await?;
    for edge in EDGES {
        has_maps(bed, edge, "shop", &["cart"]).await?;
    }
    Ok(())
}

/// What others change on an edge is put right, only told, or ignored, as each deployment says; `times` it was done so far.
async fn drift_holds(bed: &Bed, said: &str, times: usize) -> Result<()> {
    let marks = marks(bed)?;
    let word = format!("theirs-{times}");
    theirs(bed, "kiosk", "say", &word).await?;
    theirs(bed, "cart", "scaled", &word).await?;
    theirs(bed, "till", "say", &word).await?;
    has(bed, "a", "till", "say", said).await?;
    wait(bed, "shop", "kiosk", |group: &DeploymentIntentGroup| {
        let drift = group.status.as_ref().and_then(|status| status.drift.as_ref());
        match drift.and_then(|drift| drift.reported) {
            Some(1) => Ok(()),
            other => Err(format!("it reports {other:?}")),
        }
    })
    .await?;
    tokio::time::sleep(SILENCE).await;
    let writes = written(bed, &marks)?;
    ensure!(matches!(&writes[..], [one] if one.contains("/configmaps/till")), "{writes:?}");
    has(bed, "a", "kiosk", "say", &word).await?;
    has(bed, "a", "cart", "scaled", &word).await
}

/// The hub is lost, and an empty one gets the objects.
pub async fn a_hub_made_of_copies(
    bed: &Bed,
    operator: &mut Operator,
    statuses: Statuses,
    follow: Follow,
) -> Result<()> {
    // Further than the next hub is when it has all copies: so every mark on an edge is.
    bed.hub().others_write(800).await?;
    deploy(bed).await?;
    let last = GROUPS[0].1;
    stop(operator).await?;
    let copies = Copies::of(bed).await?.of_epoch(40);
    let marks = marks(bed)?;
    bed.hub().wipe().await?;
    install_kinds(bed).await?;
    // The new hub's operator ran before the objects come, with a Lease that begins anew and a Secret of its own.
    operator.restart(bed).await?;
    let secrets: Api<Secret> = bed.hub().api("emco-system").await?;
    wait_for_object(secrets, "emco-installation", SOON, |_: &Secret| true).await?;
    stop(operator).await?;
    let own = ["delete", "secret", "emco-installation", "-n", "emco-system"];
    bed.hub().kubectl().run(&own).await?;
    copies.create(bed, statuses).await?;
    let shards: Api<SyncShard> = bed.hub().api("shop").await?;
    for shard in shards.list(&ListParams::default()).await? {
        ensure!(shard.metadata.generation == Some(1), "the shard was not made anew");
        let owner = shard.labels().get(label::OWNER_NAME).map(String::as_str).unwrap_or_default();
        ensure!(shard.status.is_some() == statuses.has(owner), "{owner}: {:?}", shard.status);
    }
    operator.restart(bed).await?;
    waits_and_is_confirmed(bed, &marks).await?;
    for (name, revision, _) in GROUPS {
        let group = deployed(bed, "shop", name, revision).await?;
        let now = group.status.and_then(|status| status.revision);
        ensure!(now == Some(revision), "{name} has revision {now:?}, and had {revision}");
    }
    tokio::time::sleep(SILENCE).await;
    let writes = written(bed, &marks)?;
    ensure!(writes.is_empty(), "the edges had all of it: {writes:?}");
    goes_on(bed, last, &format!("till-{last}"), follow).await
}

/// The shards of one deployment without their statuses. `soak` follows it for longer, and copies all statuses or none.
#[tokio::test]
async fn a_hub_made_of_copied_objects_goes_on_where_it_was() {
    let (bed, mut turn) = IN_TURN.turn().await.unwrap();
    bed.explain(Box::pin(async {
        let operator = turn.start(&[]).await?;
        Box::pin(a_hub_made_of_copies(bed, operator, Statuses::AllBut("kiosk"), Follow::Edit)).await
    }))
    .await;
}
