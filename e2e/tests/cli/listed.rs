//! A chart that level Standard refuses is deployed with the permissions that `kubectl emco role my-deployment --permissions` prints, and no others.

use anyhow::{Context as _, Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_crds::conditions::types;
use emco_e2e::bed::Bed;
use emco_e2e::operator::{chart, chart_map, deployed, deployment, project, says};
use serde_json::{Value, json};

use super::looks::tenant;
use super::rig::{STAGE, run, run_as};

const SPACE: &str = "listing";
/// Objects of the namespace, of another one and of the whole cluster, and rights that are given away.
const OBJECTS: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: note}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: board, namespace: listing-boards}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: listing-rank}
value: 7
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: looks}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: looks}
rules: [{apiGroups: [''], resources: [limitranges], verbs: [list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: listing-looks}
rules: [{apiGroups: [''], resources: [nodes], verbs: [list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: listing-looks}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: listing-looks}
subjects: [{kind: ServiceAccount, name: looks, namespace: {{ .Release.Namespace }}}]
";

/// A logical cloud on `a`, in a namespace of its own.
async fn cloud(bed: &Bed, name: &str, more: &Value) -> Result<()> {
    let mut spec = json!({
        "namespace": format!("{SPACE}-{name}"), "clusters": [{"provider": "acme", "cluster": "a"}],
    });
    let fields = spec.as_object_mut().context("a spec has fields")?;
    fields.extend(more.as_object().context("so has this")?.clone());
    let metadata = json!({"name": name, "namespace": SPACE});
    let object =
        json!({"apiVersion": "emco.io/v1alpha1", "kind": "LogicalCloud", "metadata": metadata, "spec": spec});
    bed.hub().kubectl().apply(&object.to_string()).await.map(drop)
}

#[tokio::test]
async fn what_a_refused_chart_needs_is_printed_and_is_enough_for_it() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(Box::pin(async {
        project(bed, SPACE).await?;
        bed.edge("a").kubectl().run(&["create", "namespace", "listing-boards"]).await?;
        let charts = [chart("looks", "1.0.0", &[("templates/all.yaml", OBJECTS)])?];
        chart_map(bed, SPACE, "charts", &charts).await?;
        let within = |cloud: &str| {
            let spec = format!(
                "placement: {{allOf: [{{provider: acme, cluster: a}}]}}\nlogicalCloudRef: {{name: {cloud}}}"
            );
            deployment(SPACE, "till", &charts, &spec)
        };
        cloud(bed, "narrow", &json!({"level": "Standard"})).await?;
        bed.hub().kubectl().apply(&within("narrow")).await?;
        let said =
            says::<DeploymentIntentGroup, _>(bed, SPACE, "till", types::READY, "NotAllowedByLevel").await?;
        ensure!(
            said.contains("`kubectl emco role my-deployment --permissions` prints all that are needed"),
            "{said}"
        );

        let printed = run(bed, &["role", "listing/till", "--permissions"]).await?;
        printed.is(
            0,
            &[
                "# What listing/till needs of its logical cloud on acme/a.\n",
                "# Logical cloud narrow has level Standard, and no level can be changed",
                "level: Privileged\npermissions:\n- name: own\n",
                "  scope: Cluster\n",
                "- name: in-listing-boards\n  namespaces:\n  - listing-boards\n",
            ],
        );
        let spec = run(bed, &["role", "listing/till", "--permissions", "-o", "json"]).await?.json();
        cloud(bed, "wide", &spec).await?;
        bed.hub().kubectl().apply(&within("wide")).await?;
        deployed(bed, SPACE, "till", 1).await?;

        // Nothing else: what the list has of the whole cluster is what the chart has there.
        let account = "--as=system:serviceaccount:listing-wide:emco-wide";
        for (verb, resource, namespace, may) in [
            ("patch", "priorityclasses.scheduling.k8s.io", "default", true),
            ("list", "nodes", "default", true),
            ("patch", "nodes", "default", false),
            ("patch", "configmaps", "listing-boards", true),
            ("patch", "secrets", "listing-boards", false),
            ("patch", "configmaps", "default", false),
        ] {
            let asked = ["auth", "can-i", verb, resource, "-n", namespace, account];
            let allowed = bed.edge("a").kubectl().run(&asked).await.is_ok();
            ensure!(allowed == may, "{verb} {resource} in {namespace}: {may} was wanted");
        }
        let again = run(bed, &["role", "listing/till", "--permissions"]).await?;
        again.is(0, &["# For spec of logical cloud wide, whose other deployments need theirs, too.\n"]);
        Ok(())
    }))
    .await;
}

#[tokio::test]
async fn permissions_that_cannot_be_told_are_refused_with_a_sentence() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        project(bed, "unlisted").await?;
        let charts = [chart("none", "1.0.0", &[("templates/all.yaml", "{{ fail \"no luck\" }}")])?];
        chart_map(bed, "unlisted", "charts", &charts).await?;
        let spec = "placement: {allOf: [{provider: acme, cluster: a}]}";
        bed.hub().kubectl().apply(&deployment("unlisted", "till", &charts, spec)).await?;
        says::<DeploymentIntentGroup, _>(bed, "unlisted", "till", types::READY, "TemplateError").await?;
        let asked = ["role", "unlisted/till", "--permissions"];
        run(bed, &asked)
            .await?
            .is(1, &["unlisted/till cannot be planned, whatever its logical cloud allows: TemplateError"]);
        run(bed, &["role", "unlisted/none", "--permissions"])
            .await?
            .is(1, &["there is no deployment intent group none in namespace unlisted"]);
        run(bed, &["role", "--project", "unlisted", "--permissions"]).await?.is(2, &["cannot be used with"]);
        run(bed, &["role", "unlisted/till", "--permissions", "--by-name"])
            .await?
            .is(2, &["cannot be used with"]);
        let tenant = tenant(bed, "unlisted").await?;
        run_as(bed, &tenant, &asked).await?.is(1, &["you may not list"]);
        Ok(())
    })
    .await;
}
