//! Deploys with listed rights beyond the namespace of a logical cloud, on real clusters.

use anyhow::{Result, ensure};
use emco_crds::conditions::types;
use emco_crds::logical_cloud::LogicalCloudStatus;
use emco_crds::{DeploymentIntentGroup, LogicalCloud};
use emco_e2e::operator::{deployed, says, wait};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, RoleBinding};
use kube::Api;

use super::AT_WORK;
use super::tenant::Tenant;

const SPACE: &str = "privileged";
/// Names of what is bound beyond the namespace `privileged-there`.
const BOARDS: &str = "emco:privileged-there:tenant:boards";
const RANKS: &str = "emco:privileged-there:tenant:ranks";
const BOARD: &str =
    "{apiVersion: v1, kind: ConfigMap, metadata: {name: shop-board, namespace: privileged-boards}}";
const RANK: &str =
    "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: shop-rank}, value: 7}";
const NEVER: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: never, namespace: kube-system}}";
const MISSING: &str =
    "namespace privileged-boards does not exist there: make it, or take it out of spec.permissions";
const OWN: &str = "{name: own, clusterRole: admin}";
const IN_BOARDS: &str = "{name: boards, clusterRole: edit, namespaces: [privileged-boards]}";
const OF_RANKS: &str = "{name: ranks, scope: Cluster, rules: [{apiGroups: [scheduling.k8s.io], resources: [priorityclasses], \
                        verbs: ['*']}]}";

fn permissions(list: &[&str]) -> String {
    format!(", permissions: [{}]", list.join(", "))
}

#[tokio::test]
async fn a_tenant_of_level_privileged_has_what_is_listed_and_no_more() {
    let _working = AT_WORK.read().await;
    let tenant = Tenant::new(SPACE, "Privileged").await.unwrap();
    let bed = tenant.bed;
    bed.explain(async {
        let refused = async |words: &str| -> Result<()> {
            let said =
                says::<DeploymentIntentGroup, _>(bed, SPACE, "shop", types::READY, "NotAllowedByLevel")
                    .await?;
            ensure!(said.contains(words), "{said}");
            Ok(())
        };
        // A namespace that is listed has to be there: the logical cloud waits for it.
        tenant.cloud(&permissions(&[OWN, IN_BOARDS])).await?;
        wait(bed, SPACE, "tenant", |cloud: &LogicalCloud| {
            let said =
                |status: &LogicalCloudStatus| status.failing.iter().any(|row| row.message.contains(MISSING));
            if cloud.status.as_ref().is_some_and(said) { Ok(()) } else { Err(format!("{:?}", cloud.status)) }
        })
        .await?;
        for edge in ["a", "b"] {
            bed.edge(edge).kubectl().run(&["create", "namespace", "privileged-boards"]).await?;
        }
        tenant.ready().await?;
        tenant.deploy("one", BOARD).await?;
        deployed(bed, SPACE, "shop", 1).await?;
        for (verb, resource, namespace, may) in [
            ("create", "configmaps", "privileged-there", true),
            ("create", "configmaps", "privileged-boards", true),
            // What `edit` does not have.
            ("create", "rolebindings.rbac.authorization.k8s.io", "privileged-boards", false),
            ("create", "configmaps", "default", false),
            ("create", "priorityclasses.scheduling.k8s.io", "default", false),
        ] {
            tenant.may(verb, resource, namespace, may).await?;
        }

        // What is not listed is refused before a cluster is asked, with what to list.
        tenant.deploy("two", NEVER).await?;
        refused("give it a permission with namespaces: [kube-system] (spec.permissions)").await?;
        tenant.deploy("two", RANK).await?;
        refused("give it a permission with scope: Cluster (spec.permissions)").await?;
        // Its listing is all it takes.
        tenant.cloud(&permissions(&[OWN, IN_BOARDS, OF_RANKS])).await?;
        deployed(bed, SPACE, "shop", 2).await?;
        for edge in ["a", "b"] {
            for (namespace, name) in
                [("privileged-there", "shop-note"), ("privileged-boards", "shop-board"), ("", "shop-rank")]
            {
                let names = tenant.written(edge, namespace)?;
                ensure!(names.contains(name), "{edge}: {names:?}");
            }
        }

        // Once it is not listed any more, nothing of it is left, and the deployment can still go.
        tenant.cloud(&permissions(&[OWN])).await?;
        tenant.ready().await?;
        tenant.may("create", "priorityclasses.scheduling.k8s.io", "default", false).await?;
        let client = bed.edge("a").client().await?;
        ensure!(Api::<ClusterRole>::all(client.clone()).get_opt(RANKS).await?.is_none());
        ensure!(Api::<ClusterRoleBinding>::all(client).get_opt(RANKS).await?.is_none());
        let bindings = bed.edge("a").api::<RoleBinding>("privileged-boards").await?;
        ensure!(bindings.get_opt(BOARDS).await?.is_none());
        tenant.leave().await
    })
    .await;
}
