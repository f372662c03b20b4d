//! Charts of a project at level Standard that reach for what is not the project's on a cluster.

use anyhow::{Context as _, Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_crds::conditions::types;
use emco_e2e::operator::{chart, chart_map, deployed, ours, refused, wait};
use emco_e2e::package::Package;
use k8s_openapi::api::core::v1::{ConfigMap, ResourceQuota};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::rbac::v1::RoleBinding;
use serde_json::{Value, json};

use super::world::{PASSWORD, Tenant};

const NAME: &str = "cell";
const THERE: &str = "cell-there";
const CLOUD: &str = "
apiVersion: emco.io/v1alpha1
kind: LogicalCloud
metadata: {name: cell}
spec:
  level: Standard
  namespace: cell-there
  isolation: DefaultDeny
  podSecurity: Restricted
  quotas: [{name: all, hard: {pods: '3'}}]
";
/// One manifest that its values say.
const ANY: &str = "{{ .Values.manifest }}\n";
/// What it finds of others, and whatever a template may not do.
const SPY: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: spied}
data:
  victims: {{ (lookup "v1" "Secret" "victim" "till").data | default "none" | toJson | quote }}
  everybodys: {{ len ((lookup "v1" "Secret" "" "").items | default list) | quote }}
  nodes: {{ len ((lookup "v1" "Node" "" "").items | default list) | quote }}
  own: {{ (lookup "v1" "ServiceAccount" "cell-there" "emco-cell").metadata | default "none" | toJson | quote }}
  file: {{ .Files.Get "/etc/passwd" | quote }}
  above: {{ .Files.Get "../../../etc/passwd" | quote }}
"#;

/// Name, whether it is refused while planning (else by the cluster, or as another owner's), manifest.
fn attacks() -> Vec<(&'static str, &'static str, Value)> {
    let rbac = "rbac.authorization.k8s.io/v1";
    let role =
        |name: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name});
    let account = json!([{"kind": "ServiceAccount", "name": "emco-cell", "namespace": THERE}]);
    let admission = "admissionregistration.k8s.io/v1";
    vec![
        (
            "binds-the-cluster",
            "NotAllowedByLevel",
            json!({
                "apiVersion": rbac, "kind": "ClusterRoleBinding", "metadata": {"name": "mine"},
                "roleRef": role("cluster-admin"), "subjects": account,
            }),
        ),
        (
            "hooks-in",
            "NotAllowedByLevel",
            json!({
                "apiVersion": admission, "kind": "MutatingWebhookConfiguration", "metadata": {"name": "mine"},
                "webhooks": [{
                    "name": "mine.example.com", "clientConfig": {"url": "https://example.com"}, "sideEffects": "None",
                    "admissionReviewVersions": ["v1"],
                    "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["secrets"]}],
                }],
            }),
        ),
        (
            "writes-elsewhere",
            "NotAllowedByLevel",
            json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine", "namespace": "victim"},
            }),
        ),
        (
            "unlabels-its-namespace",
            "NotAllowedByLevel",
            json!({
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": THERE, "labels": {"pod-security.kubernetes.io/enforce": "privileged"}},
            }),
        ),
        (
            "binds-the-namespace",
            "Forbidden",
            json!({
                "apiVersion": rbac, "kind": "RoleBinding", "metadata": {"name": "mine"},
                "roleRef": role("cluster-admin"), "subjects": account,
            }),
        ),
        (
            "lifts-the-quota",
            "Conflict",
            json!({
                "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "emco-all"},
                "spec": {"hard": {"pods": "300"}},
            }),
        ),
        (
            "opens-the-network",
            "Conflict",
            json!({
                "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "emco-isolation"},
                "spec": {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{}]},
            }),
        ),
        (
            "shares-its-rights",
            "Conflict",
            json!({
                "apiVersion": rbac, "kind": "RoleBinding", "metadata": {"name": "emco-cell"}, "roleRef": role("admin"),
                "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": THERE}],
            }),
        ),
        (
            "lets-everybody-in",
            "NotAllowedByLevel",
            json!({
                "apiVersion": rbac, "kind": "RoleBinding", "metadata": {"name": "everybody"}, "roleRef": role("view"),
                "subjects": [{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "system:authenticated"}],
            }),
        ),
        (
            "lets-a-neighbour-in",
            "NotAllowedByLevel",
            json!({
                "apiVersion": rbac, "kind": "RoleBinding", "metadata": {"name": "neighbour"}, "roleRef": role("view"),
                "subjects": [{"kind": "ServiceAccount", "name": "emco-default", "namespace": "debtor"}],
            }),
        ),
    ]
}

/// A deployment of the app `any`, which takes over whatever it may.
fn group(name: &str, app: &str, manifest: Option<&Value>) -> Value {
    let mut spec = json!({
        "compositeAppRef": {"name": app},
        "logicalCloudRef": {"name": NAME},
        "placement": {"allOf": [{"provider": "acme", "cluster": "a"}]},
        "sync": {"conflicts": "Force"},
    });
    if let Some(manifest) = manifest {
        spec["overrideValues"] = json!([{"app": app, "values": {"manifest": manifest.to_string()}}]);
    }
    json!({
        "apiVersion": "emco.io/v1alpha1", "kind": "DeploymentIntentGroup",
        "metadata": {"name": name, "namespace": NAME}, "spec": spec,
    })
}

fn app(chart: &Package) -> Value {
    json!({
        "apiVersion": "emco.io/v1alpha1", "kind": "CompositeApp",
        "metadata": {"name": chart.name, "namespace": NAME},
        "spec": {"apps": [{
            "name": chart.name, "chart": {"configMapRef": {"name": "charts", "key": chart.file_name()}},
        }]},
    })
}

#[tokio::test]
async fn a_chart_at_level_standard_lifts_nothing_that_confines_it_and_looks_up_nothing_of_others() {
    let tenant = Tenant::new(NAME, &["admin", "emco-admin"], "").await.unwrap();
    let bed = tenant.bed;
    bed.explain(async {
        tenant.apply(CLOUD).await?;
        tenant.ready(NAME).await?;
        let any = chart("any", "1.0.0", &[("values.yaml", "manifest: ''\n"), ("templates/any.yaml", ANY)])?;
        let spy = chart("spy", "1.0.0", &[("templates/spy.yaml", SPY)])?;
        chart_map(bed, NAME, "charts", &[any.clone(), spy.clone()]).await?;
        let attacks = attacks();
        let mut items = vec![app(&any), app(&spy), group("spy", "spy", None)];
        items.extend(attacks.iter().map(|(name, _, manifest)| group(name, "any", Some(manifest))));
        tenant.apply(&json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()).await?;
        for (name, reason, _) in &attacks {
            wait(bed, NAME, name, |dig: &DeploymentIntentGroup| {
                if *reason == "NotAllowedByLevel" {
                    return refused(dig.status.as_ref(), types::READY, reason).map(drop);
                }
                let rows = dig.status.as_ref().map(|status| status.failing.as_slice()).unwrap_or_default();
                if rows.iter().any(|row| row.reason == *reason) { Ok(()) } else { Err(format!("{rows:?}")) }
            })
            .await
            .with_context(|| (*name).to_owned())?;
        }
        deployed(bed, NAME, "spy", 1).await?;
        spied(&tenant).await?;
        confined(&tenant).await
    })
    .await;
}

async fn spied(tenant: &Tenant) -> Result<()> {
    let spied = tenant.bed.edge("a").api::<ConfigMap>(THERE).await?.get("spied").await?;
    let data = spied.data.context("it has no data")?;
    for (key, found) in [
        ("victims", "\"none\""),
        ("everybodys", "0"),
        ("nodes", "0"),
        ("own", "\"none\""),
        ("file", ""),
        ("above", ""),
    ] {
        ensure!(data.get(key).is_some_and(|value| value == found), "{key}: {data:?}");
    }
    ensure!(!format!("{data:?}").contains(PASSWORD), "{data:?}");
    Ok(())
}

/// All that confines it is as it was.
async fn confined(tenant: &Tenant) -> Result<()> {
    let edge = tenant.bed.edge("a");
    let quota = edge.api::<ResourceQuota>(THERE).await?.get("emco-all").await?;
    let pods = quota.spec.and_then(|spec| spec.hard?.get("pods").map(|pods| pods.0.clone()));
    ensure!(pods.as_deref() == Some("3"), "the quota is {pods:?}");
    let policy = edge.api::<NetworkPolicy>(THERE).await?.get("emco-isolation").await?;
    let rules = policy.spec.and_then(|spec| spec.ingress).unwrap_or_default();
    ensure!(rules.len() == 1 && rules.iter().all(|rule| rule.from.is_some()), "the policy has {rules:?}");
    let binding = edge.api::<RoleBinding>(THERE).await?.get("emco-cell").await?;
    let subjects = binding.subjects.unwrap_or_default();
    ensure!(subjects.iter().all(|subject| subject.name == "emco-cell"), "{subjects:?}");
    let label = "jsonpath={.metadata.labels.pod-security\\.kubernetes\\.io/enforce}";
    let enforced = edge.kubectl().run(&["get", "namespace", THERE, "-o", label]).await?;
    ensure!(enforced == "restricted", "{enforced}");
    ensure!(
        ours(tenant.bed, "a", "configmaps", Some("victim")).await?.is_empty(),
        "something is in namespace victim"
    );
    let account = format!("--as=system:serviceaccount:{THERE}:emco-cell");
    for (verb, resource, namespace) in [
        ("update", "resourcequotas", THERE),
        ("patch", "namespaces", THERE),
        ("get", "secrets", "victim"),
        ("create", "clusterrolebindings", THERE),
    ] {
        let asked = ["auth", "can-i", verb, resource, "-n", namespace, &account];
        edge.kubectl().until(&asked, "", false).await?;
    }
    Ok(())
}
