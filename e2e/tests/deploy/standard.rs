//! Deploys as the account of a logical cloud on real clusters, which authorize each of its writes.

use anyhow::{Result, ensure};
use emco_crds::conditions::types;
use emco_crds::fields::Failing;
use emco_crds::{DeploymentIntentGroup, LogicalCloud};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{SOON, chart, deployed, deployment, is, says, wait};
use emco_e2e::package::Package;
use emco_e2e::wait::wait_until_gone;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;

use super::{AT_WORK, EVERYWHERE, start};

const SPACE: &str = "standard";
/// Namespace on the clusters.
const THERE: &str = "standard-there";
const ACCOUNT: &str = "system:serviceaccount:standard-there:emco-tenant";
const NOTE: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-note}
data: {say: {{ .Values.say | quote }}}
---
apiVersion: v1
kind: Secret
metadata: {name: {{ .Release.Name }}-key}
stringData: {key: {{ .Values.say | quote }}}
{{- with .Values.more }}
---
{{ . }}
{{- end }}
";
/// More than `ClusterRole` admin has: no cluster lets the account give it.
const GREEDY: &str = "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: greedy}, \
                      rules: [{apiGroups: [apps], resources: [deployments], verbs: [escalate]}]}";
const EVERYTHING: &str = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: everything}, \
                          roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, \
                          subjects: [{kind: ServiceAccount, name: default, namespace: standard-there}]}";
const ELSEWHERE: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: elsewhere, namespace: default}}";

fn cloud(more: &str) -> String {
    format!(
        "{{apiVersion: emco.io/v1alpha1, kind: LogicalCloud, metadata: {{name: tenant, namespace: {SPACE}}}, \
         spec: {{level: Standard, namespace: {THERE}, quotas: [{{name: some, hard: {{pods: '10'}}}}]{more}}}}}"
    )
}

struct Shop<'a> {
    bed: &'a Bed,
    note: Package,
}

impl Shop<'_> {
    async fn deploy(&self, say: &str, more: &str) -> Result<()> {
        let values = serde_json::json!({"say": say, "more": more});
        let spec = format!(
            "{EVERYWHERE}\nlogicalCloudRef: {{name: tenant}}\noverrideValues: [{{app: note, values: {values}}}]"
        );
        let objects = deployment(SPACE, "shop", std::slice::from_ref(&self.note), &spec);
        self.bed.hub().kubectl().apply(&objects).await.map(drop)
    }

    /// What the cluster lets the account do.
    async fn may(&self, verb: &str, resource: &str, namespace: &str, may: bool) -> Result<()> {
        let args = ["auth", "can-i", verb, resource, "-n", namespace, "--as", ACCOUNT];
        self.bed.edge("a").kubectl().until(&args, "", may).await
    }
}

#[tokio::test]
async fn a_tenant_of_level_standard_may_do_what_its_account_may_only() {
    let _working = AT_WORK.read().await;
    let files = [("values.yaml", "say: nothing\nmore: ''\n"), ("templates/note.yaml", NOTE)];
    let note = chart("note", "1.0.0", &files).unwrap();
    let bed = start(SPACE, std::slice::from_ref(&note)).await.unwrap();
    bed.explain(async {
        let shop = Shop { bed, note };
        let hub = bed.hub().kubectl();
        // Both at once: the deployment waits for the account.
        hub.apply(&cloud("")).await?;
        shop.deploy("one", "").await?;
        deployed(bed, SPACE, "shop", 1).await?;
        for edge in ["a", "b"] {
            let written: Vec<_> = bed
                .edge(edge)
                .audit()?
                .into_iter()
                .filter(|event| event.is_write() && event.namespace == THERE && event.code < 300)
                .filter(|event| ["shop-note", "shop-key"].contains(&event.name.as_str()))
                .collect();
            ensure!(written.len() >= 2, "{edge}: {written:?}");
            ensure!(written.iter().all(|event| event.acting_as == ACCOUNT), "{edge}: {written:?}");
        }
        shop.may("create", "configmaps", THERE, true).await?;
        for (verb, resource, namespace) in [
            ("update", "resourcequotas", THERE),
            ("patch", "namespaces", THERE),
            ("get", "configmaps", "default"),
            ("create", "clusterroles", THERE),
        ] {
            shop.may(verb, resource, namespace, false).await?;
        }

        // What its level does not allow is refused before a cluster is asked, and what runs stays.
        for more in [EVERYTHING, ELSEWHERE] {
            shop.deploy("two", more).await?;
            let words =
                says::<DeploymentIntentGroup, _>(bed, SPACE, "shop", types::READY, "NotAllowedByLevel")
                    .await?;
            ensure!(words.contains("logical cloud tenant has level Standard"), "{words}");
        }
        // What the cluster refuses is in the status, in its words.
        shop.deploy("two", GREEDY).await?;
        wait(bed, SPACE, "shop", |dig: &DeploymentIntentGroup| {
            let rows = dig.status.as_ref().map(|status| status.failing.as_slice()).unwrap_or_default();
            let told = |row: &Failing| row.reason == "Forbidden" && row.message.contains("emco-tenant");
            if rows.iter().any(told) { Ok(()) } else { Err(format!("{rows:?}")) }
        })
        .await?;
        shop.deploy("three", "").await?;
        deployed(bed, SPACE, "shop", 3).await?;

        // Rights that become fewer keep nobody from leaving.
        hub.apply(&cloud(", permissions: [{name: look, clusterRole: view}]")).await?;
        wait(bed, SPACE, "tenant", |cloud: &LogicalCloud| {
            let current = cloud.status.as_ref().and_then(|status| status.observed_generation);
            if current != cloud.metadata.generation {
                return Err("the last change was not looked at yet".to_owned());
            }
            is(cloud.status.as_ref(), types::READY, "True")
        })
        .await?;
        shop.may("delete", "configmaps", THERE, false).await?;
        hub.run(&["delete", "dig", "shop", "-n", SPACE, "--wait=false"]).await?;
        wait_until_gone(bed.hub().api::<DeploymentIntentGroup>(SPACE).await?, "shop", SOON).await?;
        hub.run(&["delete", "lc", "tenant", "-n", SPACE, "--wait=false"]).await?;
        wait_until_gone(bed.hub().api::<LogicalCloud>(SPACE).await?, "tenant", SOON).await?;
        wait_until_gone(Api::<Namespace>::all(bed.edge("a").client().await?), THERE, SOON).await
    })
    .await;
}
