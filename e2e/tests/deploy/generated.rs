//! A policy of an intent on real clusters: it is there before the first Pod, while apps change, and until the last Pod is gone.

use anyhow::{Context as _, Result, ensure};
use emco_e2e::audit::{AuditEvent, AuditMark};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{deployed, deployment};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use serde_json::json;

use super::{AT_WORK, EVERYWHERE, start, web};

/// Closes the namespace in these directions.
fn intent(namespace: &str, directions: &[&str]) -> String {
    let policy = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "closed"},
        "spec": {"podSelector": {}, "policyTypes": directions},
    });
    json!({
        "apiVersion": "emco.io/v1alpha1", "kind": "GenericActionIntent",
        "metadata": {"name": "closed", "namespace": namespace},
        "spec": {"actions": [{"name": "closed", "type": "Add", "add": {"inline": policy}}]},
    })
    .to_string()
}

/// The shop with this page, closed by the intent or not.
fn shop(namespace: &str, page: &str, closed: bool) -> Result<String> {
    let intents = if closed { "[{kind: GenericActionIntent, name: closed}]" } else { "[]" };
    let spec =
        format!("{EVERYWHERE}\nintents: {intents}\noverrideValues: [{{app: web, values: {{page: {page}}}}}]");
    Ok(deployment(namespace, "shop", &[web("1.0.0")?], &spec))
}

/// What was written to a namespace of an edge since a mark, and not refused.
pub fn written(bed: &Bed, edge: &str, namespace: &str, mark: AuditMark) -> Result<Vec<AuditEvent>> {
    let events = bed.edge(edge).audit_since(mark)?.into_iter();
    Ok(events.filter(|event| event.namespace == namespace && event.code < 300 && !event.is_dry()).collect())
}

pub fn of<'e>(events: &'e [AuditEvent], verb: &str, resource: &str) -> Vec<&'e AuditEvent> {
    let is = |event: &&AuditEvent| {
        event.verb == verb && event.resource == resource && event.subresource.is_empty()
    };
    events.iter().filter(is).collect()
}

/// The first Pod came after the policy was answered.
fn closed_first(events: &[AuditEvent], edge: &str) -> Result<()> {
    let policy = *of(events, "patch", "networkpolicies").first().context("no policy was made")?;
    let pod = *of(events, "create", "pods").first().context("no Pod was made")?;
    ensure!(policy.answered <= pod.received, "{edge}: a Pod came before the policy: {pod:?} {policy:?}");
    Ok(())
}

async fn directions(bed: &Bed, edge: &str, namespace: &str) -> Result<usize> {
    let found = bed.edge(edge).api::<NetworkPolicy>(namespace).await?.get("closed").await?;
    Ok(found.spec.and_then(|spec| spec.policy_types).unwrap_or_default().len())
}

#[tokio::test]
async fn no_pod_runs_before_the_policy_of_an_intent_or_after_it() {
    let _working = AT_WORK.read().await;
    let bed = start("closed", &[web("1.0.0").unwrap()]).await.unwrap();
    bed.explain(Box::pin(async {
        let kubectl = bed.hub().kubectl();
        let edges = ["a", "b"];
        kubectl.apply(&intent("closed", &["Ingress"])).await?;
        kubectl.apply(&shop("closed", "one", true)?).await?;
        let dig = deployed(bed, "closed", "shop", 1).await?;
        let apps = dig.status.context("no status")?.apps;
        let names: Vec<(&str, i64)> = apps.iter().map(|app| (app.name.as_str(), app.ready)).collect();
        ensure!(names == [("web", 2), ("gai.closed", 2)], "{names:?}");

        // The intent and an app change.
        kubectl.apply(&intent("closed", &["Ingress", "Egress"])).await?;
        deployed(bed, "closed", "shop", 2).await?;
        kubectl.apply(&shop("closed", "two", true)?).await?;
        deployed(bed, "closed", "shop", 3).await?;
        for edge in edges {
            ensure!(directions(bed, edge, "closed").await? == 2, "{edge}");
        }
        super::delete_dig(bed, "closed", "shop").await?;
        for edge in edges {
            let events = written(bed, edge, "closed", AuditMark::default())?;
            closed_first(&events, edge)?;
            let opened = of(&events, "delete", "networkpolicies");
            let [opened] = opened[..] else {
                anyhow::bail!("{edge}: the policy went {} times", opened.len())
            };
            // The last deletion of a Pod is its kubelet's: it is gone then.
            let gone = *of(&events, "delete", "pods").last().context("no Pod was deleted")?;
            ensure!(gone.answered <= opened.received, "{edge}: {gone:?} {opened:?}");
            let workload =
                *of(&events, "delete", "deployments").last().context("no Deployment was deleted")?;
            ensure!(workload.answered <= gone.received, "{edge}: {workload:?} {gone:?}");
        }
        Ok(())
    }))
    .await;
}

#[tokio::test]
async fn an_upgrade_that_adds_the_policy_makes_its_new_pods_after_it() {
    let _working = AT_WORK.read().await;
    let bed = start("closing", &[web("1.0.0").unwrap()]).await.unwrap();
    bed.explain(Box::pin(async {
        let kubectl = bed.hub().kubectl();
        kubectl.apply(&intent("closing", &["Ingress"])).await?;
        kubectl.apply(&shop("closing", "one", false)?).await?;
        deployed(bed, "closing", "shop", 1).await?;
        let edges = ["a", "b"];
        let mut marks = Vec::new();
        for edge in edges {
            marks.push(bed.edge(edge).audit_mark()?);
        }
        kubectl.apply(&shop("closing", "two", true)?).await?;
        deployed(bed, "closing", "shop", 2).await?;
        for (edge, mark) in edges.into_iter().zip(marks) {
            closed_first(&written(bed, edge, "closing", mark)?, edge)?;
        }
        // And it goes without a Pod of the chart.
        let mut marks = Vec::new();
        for edge in edges {
            marks.push(bed.edge(edge).audit_mark()?);
        }
        kubectl.apply(&shop("closing", "two", false)?).await?;
        deployed(bed, "closing", "shop", 3).await?;
        for (edge, mark) in edges.into_iter().zip(marks) {
            let events = written(bed, edge, "closing", mark)?;
            ensure!(of(&events, "delete", "networkpolicies").len() == 1, "{edge}: {events:?}");
            ensure!(
                of(&events, "create", "pods").is_empty() && of(&events, "delete", "pods").is_empty(),
                "{edge}"
            );
        }
        super::delete_dig(bed, "closing", "shop").await
    }))
    .await;
}
