//! Deploys as the account of a logical cloud on real clusters, which authorize each of its writes.

use anyhow::{Context as _, Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_crds::conditions::types;
use emco_crds::fields::Failing;
use emco_e2e::bed::Bed;
use emco_e2e::operator::{SOON, deployed, program, says, wait};
use emco_e2e::wait::{Objects, wait_for_object, wait_for_some};
use k8s_openapi::api::core::v1::{Event, ResourceQuota};
use kube::runtime::watcher;
use tokio::process::Command;

use super::AT_WORK;
use super::tenant::Tenant;

const SPACE: &str = "standard";
/// Namespace on the clusters.
const THERE: &str = "standard-there";
const QUOTA: &str = ", quotas: [{name: some, hard: {pods: '10'}}], limitRanges: [{name: small, limits: \
                     [{type: Container, default: {memory: 256Mi}, max: {memory: 1Gi}}]}]";
/// More than `ClusterRole` admin has: no cluster lets the account give it.
const GREEDY: &str = "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: greedy}, \
                      rules: [{apiGroups: [apps], verbs: [escalate], resources: \
                      [controllerrevisions, daemonsets, deployments, replicasets, statefulsets]}]}";
/// Its rights, as a cluster that refuses it names them, in this order.
const GREED: [&str; 5] = ["controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets"];
const EVERYTHING: &str = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: everything}, \
                          roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, \
                          subjects: [{kind: ServiceAccount, name: default, namespace: standard-there}]}";
const ELSEWHERE: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: elsewhere, namespace: default}}";

#[tokio::test]
async fn a_tenant_of_level_standard_may_do_what_its_account_may_only() {
    let _working = AT_WORK.read().await;
    let tenant = Tenant::new(SPACE, "Standard").await.unwrap();
    let bed = tenant.bed;
    bed.explain(async {
        // Both at once: the deployment waits for the account.
        tenant.cloud(QUOTA).await?;
        tenant.deploy("one", "").await?;
        deployed(bed, SPACE, "shop", 1).await?;
        for edge in ["a", "b"] {
            let names = tenant.written(edge, THERE)?;
            ensure!(names.contains("shop-note") && names.contains("shop-key"), "{edge}: {names:?}");
        }
        tenant.may("create", "configmaps", THERE, true).await?;
        for (verb, resource, namespace) in [
            ("update", "resourcequotas", THERE),
            ("patch", "limitranges", THERE),
            ("patch", "namespaces", THERE),
            ("get", "configmaps", "default"),
            ("create", "clusterroles.rbac.authorization.k8s.io", THERE),
        ] {
            tenant.may(verb, resource, namespace, false).await?;
        }

        // A pod without limits has those of the logical cloud, and one that wants more is refused.
        let pod = |memory: &str| {
            format!(
                "{{apiVersion: v1, kind: Pod, metadata: {{name: pod, namespace: {THERE}}}, spec: {{\
                 serviceAccountName: emco-tenant, automountServiceAccountToken: false, \
                 containers: [{{name: c, image: c, resources: {{{memory}}}}}]}}}}"
            )
        };
        let edge = bed.edge("a").kubectl();
        let dry =
            ["apply", "--dry-run=server", "-o", "jsonpath={.spec.containers[0].resources.limits}", "-f", "-"];
        let limits = edge.run_with(&dry, &pod("")).await?;
        ensure!(limits.contains("256Mi"), "{limits}");
        let refused = edge.run_with(&dry, &pod("limits: {memory: 2Gi}")).await;
        let refused = refused.err().map(|error| format!("{error:#}")).unwrap_or_default();
        ensure!(refused.contains("maximum memory usage per Container is 1Gi"), "{refused}");

        // What its level does not allow is refused before a cluster is asked, and what runs stays.
        for more in [EVERYTHING, ELSEWHERE] {
            tenant.deploy("two", more).await?;
            let words =
                says::<DeploymentIntentGroup, _>(bed, SPACE, "shop", types::READY, "NotAllowedByLevel")
                    .await?;
            let fits = "use a logical cloud of level Privileged, and give it a permission with";
            ensure!(
                words.contains("logical cloud tenant has level Standard") && words.contains(fits),
                "{words}"
            );
        }
        // What the cluster would refuse is in the plan, and what it refuses in the status, in its words.
        tenant.plan("two", GREEDY).await?;
        wait(bed, SPACE, "shop", |dig: &DeploymentIntentGroup| {
            let pending =
                serde_json::json!(dig.status.as_ref().and_then(|status| status.pending.as_ref())).to_string();
            let told = pending.contains("Forbidden") && pending.contains("greedy");
            if told { Ok(()) } else { Err(pending) }
        })
        .await?;
        tenant.deploy("two", GREEDY).await?;
        wait(bed, SPACE, "shop", |dig: &DeploymentIntentGroup| {
            let rows = dig.status.as_ref().map(|status| status.failing.as_slice()).unwrap_or_default();
            let told = |row: &Failing| row.reason == "Forbidden" && row.message.contains("escalate");
            if rows.iter().any(told) { Ok(()) } else { Err(format!("{rows:?}")) }
        })
        .await?;
        a_refusal_is_whole(bed).await?;
        tenant.deploy("three", "").await?;
        deployed(bed, SPACE, "shop", 3).await?;

        a_quota_changes_in_place(&tenant).await?;

        // Rights that become fewer keep nobody from leaving.
        let look = |role: &str| format!("{QUOTA}, permissions: [{{name: look, clusterRole: {role}}}]");
        tenant.cloud(&look("edit")).await?;
        tenant.ready().await?;
        tenant.may("delete", "configmaps", THERE, true).await?;
        // No cluster changes the role of a binding: it is made anew.
        tenant.cloud(&look("view")).await?;
        tenant.ready().await?;
        tenant.may("delete", "configmaps", THERE, false).await?;
        tenant.leave().await
    })
    .await;
}

/// A row has the beginning and the end of a refusal, which names each right that is missing; the Event and the commands have all of it.
async fn a_refusal_is_whole(bed: &Bed) -> Result<()> {
    let dig = bed.hub().api::<DeploymentIntentGroup>(SPACE).await?.get("shop").await?;
    let rows = dig.status.map(|status| status.failing).unwrap_or_default();
    let said = rows.iter().find(|row| row.reason == "Forbidden").context("no row is refused")?;
    let last = "Resources:[\"statefulsets\"], Verbs:[\"escalate\"]}";
    ensure!(said.message.len() <= 256 && said.message.contains(" ... "), "{}", said.message);
    ensure!(said.message.contains("/Role/") && said.message.ends_with(last), "{}", said.message);
    let whole = |text: &str| GREED.iter().all(|right| text.contains(&format!("Resources:[\"{right}\"]")));
    let selector = "involvedObject.name=shop,type=Warning,reason=Forbidden";
    let (events, config) =
        (bed.hub().api::<Event>(SPACE).await?, watcher::Config::default().fields(selector));
    // It follows the status.
    wait_for_some(events, config, SOON, "an Event with all of it", |events: &Objects<Event>| {
        let told: Vec<&str> = events.values().filter_map(|event| event.message.as_deref()).collect();
        if told.iter().any(|told| whole(told)) { Ok(()) } else { Err(format!("{told:?}")) }
    })
    .await?;
    for command in [&["diff", "standard/shop"][..], &["get", "standard/shop", "--live"]] {
        let mut emco = Command::new(program()?.with_file_name("kubectl-emco"));
        emco.args(command).env("KUBECONFIG", bed.hub().kubectl().kubeconfig());
        let output = bed.hear(&mut emco).await?;
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(output.status.code() == Some(3) && whole(&told), "{command:?}: {told}");
        ensure!(told.contains(&format!("/Role/{THERE}/greedy")), "{command:?}: {told}");
    }
    Ok(())
}

/// Its object stays the same one, on each cluster.
async fn a_quota_changes_in_place(tenant: &Tenant) -> Result<()> {
    let hard = |quota: &ResourceQuota| {
        let hard = quota.spec.as_ref().and_then(|spec| spec.hard.clone()).unwrap_or_default();
        hard.get("pods").map(|pods| pods.0.clone()).unwrap_or_default()
    };
    let mut before = Vec::new();
    for edge in ["a", "b"] {
        let quotas = tenant.bed.edge(edge).api::<ResourceQuota>(THERE).await?;
        let quota = quotas.get("emco-some").await?;
        ensure!(hard(&quota) == "10", "{edge}: {quota:?}");
        before.push((quotas, quota.metadata.uid));
    }
    tenant.cloud(&QUOTA.replace("'10'", "'20'")).await?;
    for (quotas, uid) in before {
        let after = wait_for_object(quotas, "emco-some", SOON, |quota| hard(quota) == "20").await?;
        ensure!(after.metadata.uid == uid, "it was made anew: {after:?}");
    }
    tenant.ready().await
}
