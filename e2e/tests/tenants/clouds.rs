//! Logical clouds that ask for what is not there or not theirs any more: unknown API groups, wrong units, a grant that is withdrawn.

use anyhow::{Result, ensure};
use emco_crds::conditions::types;
use emco_crds::fields::Failing;
use emco_crds::{DeploymentIntentGroup, LogicalCloud};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{chart, chart_map, deployed, deployment, is, says, wait};
use emco_e2e::package::Package;
use k8s_openapi::api::core::v1::ConfigMap;

use super::world::{ON_A, PROVIDERS, Tenant, get, project, refused};

const WEB: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: note}
data: {say: {{ .Values.say }}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: example.com/web}]}
";

fn web() -> Result<Package> {
    chart("web", "1.0.0", &[("values.yaml", "say: one\n"), ("templates/web.yaml", WEB)])
}

fn cloud(name: &str, namespace: &str, more: &str) -> String {
    format!(
        "{{apiVersion: emco.io/v1alpha1, kind: LogicalCloud, metadata: {{name: {name}, namespace: misspelt}}, \
         spec: {{level: Standard, namespace: {namespace}, {more}}}}}"
    )
}

/// A row of acme/a that has this reason and these words.
fn row(rows: Option<&[Failing]>, reason: &str, words: &str) -> Result<(), String> {
    let told =
        |row: &&Failing| row.cluster == "acme/a" && row.reason == reason && row.message.contains(words);
    let rows = rows.unwrap_or_default();
    if rows.iter().any(|row| told(&row)) { Ok(()) } else { Err(format!("{rows:?}")) }
}

#[tokio::test]
async fn a_permission_on_an_unknown_api_group_gives_nothing_and_the_cluster_says_what_is_missing() {
    let tenant = Tenant::new("misspelt", &["admin", "emco-admin"], "").await.unwrap();
    let bed = tenant.bed;
    bed.explain(async {
        let web = web()?;
        chart_map(bed, "misspelt", "charts", std::slice::from_ref(&web)).await?;
        let permissions = |group: &str| {
            let maps = "{apiGroups: [''], resources: [configmaps], verbs: ['*']}";
            let rules = format!("{maps}, {{apiGroups: [{group}], resources: [deployments], verbs: ['*']}}");
            cloud("groups", "misspelt-groups", &format!("permissions: [{{name: deploy, rules: [{rules}]}}]"))
        };
        tenant.apply(&permissions("aps")).await?;
        tenant.ready("groups").await?;
        let spec = format!("{ON_A}\nlogicalCloudRef: {{name: groups}}");
        tenant.apply(&deployment("misspelt", "shop", &[web], &spec)).await?;
        wait(bed, "misspelt", "shop", |dig: &DeploymentIntentGroup| {
            let rows = dig.status.as_ref().map(|status| status.failing.as_slice());
            row(rows, "Forbidden", "in API group \"apps\"")
        })
        .await?;
        let note = bed.edge("a").api::<ConfigMap>("misspelt-groups").await?.get("note").await?;
        ensure!(note.data.is_some(), "the rest is deployed");
        tenant.apply(&permissions("apps")).await?;
        // Tried again by itself, but slowly; somebody who cured it says so.
        tenant.ready("groups").await?;
        let now = ["annotate", "dig", "shop", "-n", "misspelt", "emco.io/requestedAt=now"];
        tenant.kubectl.run(&now).await?;
        deployed(bed, "misspelt", "shop", 1).await?;
        a_quota_in_a_wrong_unit(&tenant).await
    })
    .await;
}

/// What is no quantity is refused when it is applied; what the cluster does not take is in the logical cloud's row, in its words.
async fn a_quota_in_a_wrong_unit(tenant: &Tenant) -> Result<()> {
    let quota = |hard: &str| {
        cloud("quotas", "misspelt-quotas", &format!("quotas: [{{name: all, hard: {{{hard}}}}}]"))
    };
    for hard in ["requests.memory: 64Gigs", "requests.memory: 64 Gi", "limits.cpu: '-1'"] {
        let args = ["apply", "--server-side", "-f", "-"];
        refused(&tenant.kubectl, &args, &quota(hard), "spec.quotas[0].hard").await?;
    }
    tenant.apply(&quota("pods: '1.5'")).await?;
    wait(tenant.bed, "misspelt", "quotas", |cloud: &LogicalCloud| {
        let rows = cloud.status.as_ref().map(|status| status.failing.as_slice());
        row(rows, "Invalid", "must be an integer")
    })
    .await?;
    tenant.apply(&quota("pods: '2'")).await?;
    tenant.ready("quotas").await
}

async fn said(bed: &Bed) -> Result<String> {
    let note = bed.edge("a").api::<ConfigMap>("debtor").await?.get("note").await?;
    Ok(note.data.and_then(|mut data| data.remove("say")).unwrap_or_default())
}

#[tokio::test]
async fn a_grant_that_is_withdrawn_keeps_what_runs_and_refuses_what_is_new() {
    let (bed, _) = get().await.unwrap();
    bed.explain(async {
        let hub = bed.hub().kubectl();
        project(bed, "debtor", "", "logicalCloud: {level: Standard}").await?;
        wait(bed, "debtor", "default", |cloud: &LogicalCloud| {
            is(cloud.status.as_ref(), types::READY, "True")
        })
        .await?;
        let web = web()?;
        chart_map(bed, "debtor", "charts", std::slice::from_ref(&web)).await?;
        let group = |name: &str, say: &str| {
            let spec = format!("{ON_A}\noverrideValues: [{{app: web, values: {{say: {say}}}}}]");
            deployment("debtor", name, std::slice::from_ref(&web), &spec)
        };
        hub.apply(&group("shop", "one")).await?;
        deployed(bed, "debtor", "shop", 1).await?;

        let withdrawn = PROVIDERS.replace("  - {name: debtor, projects: [debtor]}\n", "");
        ensure!(withdrawn != PROVIDERS, "no grant is withdrawn");
        hub.apply(&withdrawn).await?;
        let told = async |name: &str, words: &str| {
            let reason = "ClusterNotInLogicalCloud";
            let said = says::<DeploymentIntentGroup, _>(bed, "debtor", name, types::READY, reason).await?;
            ensure!(said.contains(words), "{name}: {said}");
            anyhow::Ok(())
        };
        // An edit of what runs, and what is new.
        hub.apply(&group("shop", "two")).await?;
        hub.apply(&group("more", "one")).await?;
        told("shop", "revision 1 runs on 1 of 1 cluster; the last change is refused").await?;
        told("more", "acme/a").await?;
        wait(bed, "debtor", "default", |cloud: &LogicalCloud| {
            let ready = cloud.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default();
            let told = format!("{ready:?}");
            if told.contains("when no deployment of this logical cloud is there any more") {
                Ok(())
            } else {
                Err(told)
            }
        })
        .await?;
        ensure!(said(bed).await? == "one", "what runs stays");
        // It is still kept as wanted.
        bed.edge("a").kubectl().run(&["delete", "configmap", "note", "-n", "debtor"]).await?;
        let back = ["get", "configmap", "note", "-n", "debtor"];
        bed.edge("a").kubectl().until(&back, "", true).await?;

        hub.apply(PROVIDERS).await?;
        deployed(bed, "debtor", "shop", 2).await?;
        ensure!(said(bed).await? == "two", "the edit arrives with the grant");
        Ok(())
    })
    .await;
}
