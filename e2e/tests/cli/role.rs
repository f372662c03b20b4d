//! The least role of a deployment: with it, and what every cluster needs, the operator deploys, changes and removes; less is refused.

use anyhow::{Context as _, Result, ensure};
use emco_crds::Cluster;
use emco_crds::conditions::types;
use emco_e2e::bed::Bed;
use emco_e2e::operator::{chart, chart_map, cluster, deployed, deployment, is, project, secret, wait};
use emco_e2e::wait::wait_until_gone;
use k8s_openapi::api::core::v1::ConfigMap;

use super::looks::{EVERYWHERE, tenant};
use super::rig::{STAGE, run, run_as};

/// Objects of all sorts. Names do not hang on the deployment's.
const OBJECTS: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: note}
data: {say: {{ .Values.say }}}
---
apiVersion: v1
kind: Secret
metadata: {name: key}
stringData: {word: hidden}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: before, annotations: {helm.sh/hook: 'pre-install,pre-upgrade', helm.sh/hook-delete-policy: before-hook-creation}}
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
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: web}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: web}
rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: web}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: web}
subjects: [{kind: ServiceAccount, name: web, namespace: roles}]
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: roles-of-web}
value: 1
---
apiVersion: roles.example.com/v1
kind: Shop
metadata: {name: one}
";

const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shops.roles.example.com}
spec:
  group: roles.example.com
  scope: Namespaced
  names: {kind: Shop, plural: shops, singular: shop, listKind: ShopList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
";

/// What the operator needs on every cluster (docs/clusters.md), for a namespace that is there.
const EVERY_CLUSTER: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: emco-system}
---
apiVersion: v1
kind: Namespace
metadata: {name: roles}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: every-cluster}
rules:
- {apiGroups: [''], resources: [namespaces], verbs: [get, list, watch]}
- {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [get, list]}
- {apiGroups: [apiregistration.k8s.io], resources: [apiservices], verbs: [get, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: every-cluster}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: every-cluster}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: least}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: claim, namespace: emco-system}
rules: [{apiGroups: [''], resources: [configmaps], verbs: [get, create, patch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: claim, namespace: emco-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: claim}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: least}]
";

/// For one project: the clusters of others stay as many as they are.
const PROVIDER: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: small, labels: {emco.io/provider: small}}
---
apiVersion: emco.io/v1alpha1
kind: ClusterProvider
metadata: {name: small}
spec: {grants: [{name: roles, projects: [roles], maxLevel: Admin}]}
";

/// `g`, registered with no right but those that are given to user `least` there.
async fn register(bed: &Bed) -> Result<()> {
    bed.edge("g").kubectl().apply(EVERY_CLUSTER).await?;
    bed.hub().kubectl().apply(PROVIDER).await?;
    secret(bed, "small", "g", &bed.edge("g").kubeconfig_as("least", None)?).await?;
    bed.hub().kubectl().apply(&cluster("small", "g")).await?;
    wait(bed, "small", "g", |cluster: &Cluster| is(cluster.status.as_ref(), types::READY, "True")).await
}

/// Whether user `least` may, as kubectl says.
async fn may(bed: &Bed, words: &str) -> bool {
    let args = [&["auth", "can-i", "--as=least"][..], &words.split(' ').collect::<Vec<_>>()].concat();
    bed.edge("g").kubectl().run(&args).await.is_ok()
}

#[tokio::test]
async fn the_role_of_a_deployment_is_enough_for_it_and_no_more() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(Box::pin(async {
        project(bed, "roles").await?;
        let files = [("values.yaml", "say: one\n"), ("crds/shops.yaml", DEFINITION), ("templates/all.yaml", OBJECTS)];
        let charts = [chart("web", "1.0.0", &files)?];
        chart_map(bed, "roles", "charts", &charts).await?;
        bed.hub().kubectl().apply(&deployment("roles", "till", &charts, EVERYWHERE)).await?;
        deployed(bed, "roles", "till", 1).await?;
        register(bed).await?;

        let said = run(bed, &["role", "roles/till", "--by-name", "--user", "least"]).await?;
        said.is(
            0,
            &[
                "# What roles/till needs on clusters, of 1 stored revision; kinds as acme/a serves them.\n",
                "# Secret/roles/key (app web)\n- apiGroups:\n  - \"\"\n  resourceNames:\n  - key\n  resources:\n  - secrets\n",
            ],
        );
        let kubectl = bed.edge("g").kubectl();
        kubectl.apply(&said.out).await?;
        for (right, wanted) in [
            ("get secrets/key -n roles", true),
            ("get secrets/other -n roles", false),
            ("delete configmaps/note -n roles", true),
            ("create configmaps -n default", false),
            ("delete namespaces/roles", false),
            ("get pods -n roles", true),
            ("update roles/web -n roles", false),
        ] {
            ensure!(may(bed, right).await == wanted, "{right}: {wanted} was wanted of {}", said.out);
        }

        let small = "placement: {allOf: [{provider: small, selector: {}}]}";
        bed.hub().kubectl().apply(&deployment("roles", "second", &charts, small)).await?;
        deployed(bed, "roles", "second", 1).await?;
        let change = "spec: {overrideValues: [{app: web, values: {say: two}}]}";
        bed.hub().kubectl().run(&["patch", "dig", "second", "-n", "roles", "--type=merge", "-p", change]).await?;
        deployed(bed, "roles", "second", 2).await?;
        let note = kubectl.run(&["get", "cm", "note", "-n", "roles", "-o", "jsonpath={.data.say}"]).await?;
        ensure!(note == "two", "{note}");
        let json = run(bed, &["role", "--project", "roles", "-o", "json", "--serviceaccount", "emco-system:emco"]).await?;
        let items = json.json()["items"].as_array().context("no items")?.clone();
        let kinds: Vec<_> = items.iter().filter_map(|item| item["kind"].as_str()).collect();
        ensure!(kinds == ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"], "{kinds:?}");

        bed.hub().kubectl().run(&["delete", "dig", "second", "-n", "roles", "--timeout=60s"]).await?;
        wait_until_gone(bed.edge("g").api::<ConfigMap>("roles").await?, "note", std::time::Duration::from_secs(5)).await?;
        ensure!(kubectl.run(&["get", "crd", "shops.roles.example.com"]).await.is_ok(), "its definition stays");
        Ok(())
    }))
    .await;
}

#[tokio::test]
async fn a_role_that_cannot_be_worked_out_is_refused_with_a_sentence() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        project(bed, "roleless").await?;
        let charts = [chart(
            "web",
            "1.0.0",
            &[("templates/note.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\n")],
        )?];
        chart_map(bed, "roleless", "charts", &charts).await?;
        bed.hub().kubectl().apply(&deployment("roleless", "till", &charts, EVERYWHERE)).await?;
        deployed(bed, "roleless", "till", 1).await?;
        run(bed, &["role"]).await?.is(2, &["required"]);
        run(bed, &["role", "roleless/till", "--project", "roleless"]).await?.is(2, &["cannot be used with"]);
        run(bed, &["role", "roleless/till", "--serviceaccount", "emco"]).await?.is(2, &["NAMESPACE:NAME"]);
        run(bed, &["role", "roleless/none"])
            .await?
            .is(1, &["there is no deployment intent group none in namespace roleless"]);
        run(bed, &["role", "--project", "nobodys"]).await?.is(1, &["there is no Project nobodys on the hub"]);
        run(bed, &["role", "roleless/till", "--cluster", "acme/z"])
            .await?
            .is(1, &["nothing is stored of roleless/till for this part: no role is needed"]);
        let tenant = tenant(bed, "roleless").await?;
        run_as(bed, &tenant, &["role", "roleless/till"])
            .await?
            .is(1, &["role is for administrators of the hub"]);
        Ok(())
    })
    .await;
}
