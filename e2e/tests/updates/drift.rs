//! In: others who change what was placed: people, an autoscaler, another operator, the edge's own admission. Out: it is put right or
//! reported, fields that are theirs stay theirs, and nobody fights; every write is counted by the edge's audit log.

mod admission;
mod fight;
mod held;
mod outside;

use anyhow::{Result, ensure};
use emco_crds::conditions::types;
use emco_crds::{Conditioned, DeploymentIntentGroup};
use emco_e2e::audit::AuditMark;
use emco_e2e::bed::Bed;
use emco_e2e::operator::{SOON, chart, chart_map, deployed, deployment, project, wait};
use emco_e2e::package::Package;
use emco_e2e::wait::wait_for_object;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::{SILENCE, STAGE};

const HERE: &str = "placement: {allOf: [{provider: acme, cluster: a}]}";
const NOTE: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: note}
data: {say: {{ .Values.say | quote }}, more: {{ .Values.more | quote }}}
";
fn note() -> Result<Package> {
    chart("web", "1.0.0", &[("values.yaml", "say: one\nmore: one\n"), ("templates/note.yaml", NOTE)])
}

fn spec(say: &str, more: &str, sync: &str) -> String {
    format!("{HERE}\noverrideValues: [{{app: web, values: {{say: {say}, more: {more}}}}}]\nsync: {sync}")
}

async fn start(name: &str, chart: Package, spec: &str) -> Result<&'static Bed> {
    let (bed, _) = STAGE.get().await?;
    project(bed, name).await?;
    chart_map(bed, name, "charts", std::slice::from_ref(&chart)).await?;
    bed.hub().kubectl().apply(&deployment(name, "shop", &[chart], spec)).await?;
    deployed(bed, name, "shop", 1).await?;
    Ok(bed)
}

/// Changes a ConfigMap on the edge as people do.
async fn patch(bed: &Bed, namespace: &str, name: &str, patch: &Value) -> Result<()> {
    let maps = bed.edge("a").api::<ConfigMap>(namespace).await?;
    let params = PatchParams { field_manager: Some("kubectl-patch".to_owned()), ..PatchParams::default() };
    maps.patch(name, &params, &Patch::Merge(patch)).await?;
    Ok(())
}

/// Writes of the operator in a namespace of the edge, as `VERB NAME`.
fn writes(bed: &Bed, namespace: &str, since: AuditMark) -> Result<Vec<String>> {
    let ours = |event: &emco_e2e::audit::AuditEvent| {
        event.user == "emco" && event.is_write() && event.namespace == namespace
    };
    let events = bed.edge("a").audit_since(since)?;
    Ok(events.into_iter().filter(ours).map(|event| format!("{} {}", event.verb, event.name)).collect())
}

async fn says(bed: &Bed, namespace: &str, wanted: (&str, &str)) -> Result<()> {
    let maps = bed.edge("a").api::<ConfigMap>(namespace).await?;
    let (say, more) = wanted;
    let as_wanted = |map: &ConfigMap| {
        let data = map.data.clone().unwrap_or_default();
        data.get("say").map(String::as_str) == Some(say) && data.get("more").map(String::as_str) == Some(more)
    };
    wait_for_object(maps, "note", SOON, as_wanted).await.map(drop)
}

/// How many objects were put right, and how many differ.
fn drift(dig: &DeploymentIntentGroup) -> (i64, i64) {
    let drift = dig.status.as_ref().and_then(|status| status.drift.as_ref());
    drift.map_or((0, 0), |drift| (drift.corrected, drift.reported.unwrap_or(0)))
}

async fn counted(bed: &Bed, namespace: &str, wanted: (i64, i64)) -> Result<String> {
    wait(bed, namespace, "shop", |dig: &DeploymentIntentGroup| {
        let said = dig.status.as_ref().and_then(|status| status.condition(types::DEPLOYED));
        let message = said.map(|condition| condition.message.clone()).unwrap_or_default();
        if drift(dig) == wanted { Ok(message) } else { Err(format!("{:?}: {message}", drift(dig))) }
    })
    .await
}

/// The reasons of Events about the deployment.
async fn events(bed: &Bed, namespace: &str) -> Result<String> {
    let path = "jsonpath={range .items[*]}{.reason}: {.note}{.message}{\"\\n\"}{end}";
    bed.hub().kubectl().run(&["get", "events", "-n", namespace, "-o", path]).await
}

#[tokio::test]
async fn what_people_change_and_delete_is_put_right_with_one_write_each_and_counted() {
    let bed = start("kept", note().unwrap(), &spec("one", "one", "{}")).await.unwrap();
    bed.explain(async {
        let mark = bed.edge("a").audit_mark()?;
        patch(bed, "kept", "note", &json!({"data": {"say": "theirs", "added": "theirs"}})).await?;
        counted(bed, "kept", (1, 0)).await?;
        says(bed, "kept", ("one", "one")).await?;
        bed.edge("a").kubectl().run(&["delete", "cm", "note", "-n", "kept"]).await?;
        counted(bed, "kept", (2, 0)).await?;
        says(bed, "kept", ("one", "one")).await?;
        tokio::time::sleep(SILENCE).await;
        let writes = writes(bed, "kept", mark)?;
        ensure!(writes == ["patch note", "patch note"], "{writes:?}");
        let events = events(bed, "kept").await?;
        ensure!(events.matches("DriftCorrected").count() == 1, "{events}");
        ensure!(events.contains("as they were applied: ConfigMap/kept/note on acme/a"), "{events}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn where_changes_are_only_reported_the_object_and_its_writer_are_named_and_nothing_is_written() {
    let bed = start("told", note().unwrap(), &spec("one", "one", "{drift: Report}")).await.unwrap();
    bed.explain(async {
        let mark = bed.edge("a").audit_mark()?;
        patch(bed, "told", "note", &json!({"data": {"say": "theirs"}})).await?;
        let message = counted(bed, "told", (0, 1)).await?;
        for part in ["others changed 1 object", "ConfigMap/told/note", "acme/a", "kubectl-patch"] {
            ensure!(message.contains(part), "{part:?} is not in: {message}");
        }
        tokio::time::sleep(SILENCE).await;
        let none = writes(bed, "told", mark)?;
        ensure!(none.is_empty(), "{none:?}");
        says(bed, "told", ("theirs", "one")).await?;
        bed.hub()
            .kubectl()
            .apply(&deployment("told", "shop", &[note()?], &spec("one", "one", "{drift: Correct}")))
            .await?;
        says(bed, "told", ("one", "one")).await?;
        counted(bed, "told", (1, 0)).await.map(drop)
    })
    .await;
}

#[tokio::test]
async fn fields_under_ignore_are_left_to_others_through_drift_and_updates() {
    let ignore = "{ignore: [{kind: ConfigMap, jsonPointers: [/data/say]}]}";
    // Of one of them nothing else is said.
    let only = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: only}\ndata: {say: one}\n";
    let both = || {
        let values = ("values.yaml", "say: one\nmore: one\n");
        chart("web", "1.0.0", &[values, ("templates/note.yaml", NOTE), ("templates/only.yaml", only)])
    };
    let bed = start("ignored", both().unwrap(), &spec("one", "one", ignore)).await.unwrap();
    bed.explain(async {
        says(bed, "ignored", ("one", "one")).await?;
        let mark = bed.edge("a").audit_mark()?;
        for name in ["note", "only"] {
            patch(bed, "ignored", name, &json!({"data": {"say": "theirs"}})).await?;
        }
        tokio::time::sleep(SILENCE).await;
        let none = writes(bed, "ignored", mark)?;
        ensure!(none.is_empty(), "{none:?}");
        bed.hub()
            .kubectl()
            .apply(&deployment("ignored", "shop", &[both()?], &spec("two", "two", ignore)))
            .await?;
        deployed(bed, "ignored", "shop", 2).await?;
        says(bed, "ignored", ("theirs", "two")).await?;
        patch(bed, "ignored", "note", &json!({"data": {"more": "theirs"}})).await?;
        says(bed, "ignored", ("theirs", "two")).await?;
        tokio::time::sleep(SILENCE).await;
        let two = writes(bed, "ignored", mark)?;
        ensure!(two.len() == 2, "one for the update, one for the correction: {two:?}");
        counted(bed, "ignored", (1, 0)).await.map(drop)
    })
    .await;
}

#[tokio::test]
async fn replicas_that_an_autoscaler_of_the_deployment_sets_are_never_set_back() {
    let web = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: "example.com/web:{{ .Values.say }}"}]
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 3
  maxReplicas: 9
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]
"#;
    let chart = chart("web", "1.0.0", &[("values.yaml", "say: one\n"), ("templates/web.yaml", web)]).unwrap();
    let values = |say: &str| format!("{HERE}\noverrideValues: [{{app: web, values: {{say: {say}}}}}]");
    let bed = start("scaled", chart.clone(), &values("one")).await.unwrap();
    bed.explain(async {
        let replicas = |wanted: i32| {
            move |web: &Deployment| web.spec.as_ref().and_then(|spec| spec.replicas) == Some(wanted)
        };
        let webs = bed.edge("a").api::<Deployment>("scaled").await?;
        // Below its least the autoscaler acts without any measurement.
        wait_for_object(webs.clone(), "web", SOON, replicas(3)).await?;
        deployed(bed, "scaled", "shop", 1).await?;
        let mark = bed.edge("a").audit_mark()?;
        bed.edge("a").kubectl().run(&["scale", "deployment", "web", "-n", "scaled", "--replicas=5"]).await?;
        tokio::time::sleep(SILENCE).await;
        let none = writes(bed, "scaled", mark)?;
        ensure!(none.is_empty(), "{none:?}");
        bed.hub().kubectl().apply(&deployment("scaled", "shop", &[chart], &values("two"))).await?;
        deployed(bed, "scaled", "shop", 2).await?;
        let live = webs.get("web").await?;
        let image = live
            .spec
            .as_ref()
            .and_then(|spec| spec.template.spec.as_ref()?.containers.first()?.image.clone());
        ensure!(image.as_deref() == Some("example.com/web:two"), "{image:?}");
        ensure!(replicas(5)(&live), "{:?}", live.spec.and_then(|spec| spec.replicas));
        let one = writes(bed, "scaled", mark)?;
        ensure!(one == ["patch web"], "{one:?}");
        Ok(())
    })
    .await;
}
