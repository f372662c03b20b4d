//! Using what belongs to another project: its clusters, logical clouds, charts, Secrets and namespaces, and a higher level.

use anyhow::{Result, ensure};
use emco_crds::conditions::types;
use emco_crds::{CompositeApp, CompositeProfile, DeploymentIntentGroup, LogicalCloud};
use emco_e2e::operator::{SOON, chart, chart_map, deployment, says, wait};
use emco_e2e::wait::wait_until_gone;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};

use super::world::{ON_A, Tenant};

const NOTE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\n";

fn cloud(name: &str, spec: &str) -> String {
    format!(
        "{{apiVersion: emco.io/v1alpha1, kind: LogicalCloud, metadata: {{name: {name}}}, spec: {{{spec}}}}}"
    )
}

#[tokio::test]
async fn clusters_levels_and_namespaces_of_others_are_refused_to_a_logical_cloud() {
    let tenant = Tenant::new("climber", &["admin", "emco-admin"], "").await.unwrap();
    let bed = tenant.bed;
    bed.explain(async {
        tenant.ready("default").await?;
        for (name, spec, reason, words) in [
            (
                "strong",
                "level: Standard, clusters: [{provider: vault, cluster: strong}]",
                "NotGranted",
                "may not use vault/strong",
            ),
            (
                "admin",
                "level: Admin, namespace: climber-admin",
                "LevelNotGranted",
                "level Admin is not granted to project climber",
            ),
            (
                "privileged",
                "level: Privileged, namespace: climber-privileged",
                "LevelNotGranted",
                "level Privileged is not granted",
            ),
            (
                "nowhere",
                "level: Standard, namespace: climber-nowhere, clusters: [{provider: acme, cluster: nowhere}]",
                "NoClusters",
                "no cluster matches spec.clusters (acme/nowhere)",
            ),
            (
                "reserved",
                "level: Standard, namespace: monitoring",
                "NamespaceReserved",
                "namespace monitoring is reserved on acme/a",
            ),
            ("begins", "level: Standard, namespace: platform-logs", "NamespaceReserved", "platform-logs"),
            ("operators", "level: Standard, namespace: emco-system", "NamespaceReserved", "emco-system"),
            (
                "taken",
                "level: Standard, namespace: victims-cloud",
                "NamespaceConflict",
                "a logical cloud of another project",
            ),
        ] {
            tenant.apply(&cloud(name, spec)).await?;
            let said = says::<LogicalCloud, _>(bed, tenant.name, name, types::READY, reason).await?;
            ensure!(said.contains(words) && !said.contains("victim/"), "{name}: {said}");
        }
        for (name, spec, words) in [
            ("default", "level: Admin", "level cannot be changed"),
            ("default", "level: Standard, namespace: victim", "namespace cannot be changed"),
            (
                "wide",
                "level: Standard, permissions: [{name: all, scope: Cluster, clusterRole: cluster-admin}]",
                "use level Privileged",
            ),
            (
                "wide",
                "level: Standard, permissions: [{name: all, clusterRole: edit, namespaces: [victim]}]",
                "use level Privileged",
            ),
            (
                "system",
                "level: Standard, namespace: kube-system",
                "cannot claim the namespace default or kube-*",
            ),
            ("system", "level: Standard, namespace: default", "cannot claim the namespace default or kube-*"),
            ("path", "level: Standard, namespace: a/../kube-system", "must be a DNS label"),
        ] {
            let args = ["apply", "--server-side", "-n", tenant.name, "--force-conflicts", "-f", "-"];
            tenant.refused(&args, &cloud(name, spec), words).await?;
        }
        a_namespace_that_was_there_gives_no_rights(&tenant).await
    })
    .await;
}

/// A namespace that somebody else made on the cluster stays theirs: the account gets no right in it.
async fn a_namespace_that_was_there_gives_no_rights(tenant: &Tenant) -> Result<()> {
    let edge = tenant.bed.edge("a");
    let namespaces = Api::<Namespace>::all(edge.client().await?);
    let theirs = Namespace {
        metadata: ObjectMeta { name: Some("elsewhere".to_owned()), ..ObjectMeta::default() },
        ..Namespace::default()
    };
    namespaces.create(&PostParams::default(), &theirs).await?;
    tenant.apply(&cloud("squat", "level: Standard, namespace: elsewhere")).await?;
    wait(tenant.bed, tenant.name, "squat", |cloud: &LogicalCloud| {
        let rows = cloud.status.as_ref().map(|status| status.failing.as_slice()).unwrap_or_default();
        let words = "nothing on it says that EMCO made it";
        let told = rows.iter().any(|row| row.cluster == "acme/a" && row.message.contains(words));
        if told { Ok(()) } else { Err(format!("{rows:?}")) }
    })
    .await?;
    let bindings =
        edge.api::<RoleBinding>("elsewhere").await?.list(&kube::api::ListParams::default()).await?;
    ensure!(bindings.items.is_empty(), "{bindings:?}");
    let account = "--as=system:serviceaccount:elsewhere:emco-squat";
    edge.kubectl().until(&["auth", "can-i", "get", "secrets", "-n", "elsewhere", account], "", false).await?;
    tenant.kubectl.run(&["delete", "lc", "squat", "-n", tenant.name, "--wait=false"]).await?;
    wait_until_gone(tenant.bed.hub().api::<LogicalCloud>(tenant.name).await?, "squat", SOON).await?;
    ensure!(namespaces.get_opt("elsewhere").await?.is_some(), "the namespace of others is gone");
    Ok(())
}

#[tokio::test]
async fn charts_secrets_clouds_and_clusters_of_others_are_not_found_by_a_deployment() {
    let tenant = Tenant::new("borrower", &["admin", "emco-admin"], "").await.unwrap();
    let (bed, name) = (tenant.bed, tenant.name);
    bed.explain(async {
        tenant.ready("default").await?;
        let note = chart("note", "1.0.0", &[("templates/note.yaml", NOTE)])?;
        chart_map(bed, name, "own", std::slice::from_ref(&note)).await?;
        // The chart map of the victim is called `charts`, and in this project nothing is.
        tenant.apply(&deployment(name, "shop", std::slice::from_ref(&note), ON_A)).await?;
        let said = says::<CompositeApp, _>(bed, name, "shop", types::READY, "ConfigMapNotFound").await?;
        ensure!(said.contains("ConfigMap charts does not exist in namespace borrower"), "{said}");

        let own = |spec: &str| {
            deployment(name, "shop", std::slice::from_ref(&note), spec)
                .replace("{name: charts,", "{name: own,")
        };
        let profile = "
apiVersion: emco.io/v1alpha1
kind: CompositeProfile
metadata: {name: login}
spec: {apps: [{app: note, valuesFrom: [{kind: Secret, name: victims-login, key: password}]}]}
";
        tenant.apply(profile).await?;
        says::<CompositeProfile, _>(bed, name, "login", types::READY, "SecretNotFound").await?;
        for (spec, type_, reason, words) in [
            (
                format!("{ON_A}\ncompositeProfileRef: {{name: login}}"),
                types::RESOLVED,
                "SecretNotFound",
                "victims-login",
            ),
            (
                format!("{ON_A}\nlogicalCloudRef: {{name: victims-cloud}}"),
                types::RESOLVED,
                "LogicalCloudNotFound",
                "victims-cloud",
            ),
            (
                "placement: {allOf: [{provider: vault, cluster: strong}]}".to_owned(),
                types::PLACED,
                "ClusterNotInLogicalCloud",
                "vault/strong",
            ),
        ] {
            tenant.apply(&own(&spec)).await?;
            let said = says::<DeploymentIntentGroup, _>(bed, name, "shop", type_, reason).await?;
            ensure!(said.contains(words), "{spec}: {said}");
        }
        // No reference leads out of the namespace.
        for path in ["../victim/till", "victim/till"] {
            let spec = own(ON_A)
                .replace("compositeAppRef: {name: shop}", &format!("compositeAppRef: {{name: {path:?}}}"));
            let args = ["apply", "--server-side", "-n", name, "-f", "-"];
            tenant.refused(&args, &spec, "must be the name of an object").await?;
        }
        Ok(())
    })
    .await;
}
