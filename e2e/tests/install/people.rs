//! In: the roles and policies of the chart. Out: what people may do with each role, and what is kept from them whatever their role.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use emco_e2e::bed::Bed;
use emco_e2e::kubectl::Kubectl;
use k8s_openapi::api::authorization::v1::{SelfSubjectRulesReview, SelfSubjectRulesReviewSpec};
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};

const NAMESPACE: &str = "shop";
const READ: [&str; 3] = ["get", "list", "watch"];
const WRITE: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];
/// All kinds of a project.
const ALL: [&str; 10] = [
    "logicalclouds",
    "compositeapps",
    "compositeprofiles",
    "genericactionintents",
    "hardwareintents",
    "trafficgroupintents",
    "deploymentintentgroups",
    "deploymentapprovals",
    "appcontexts",
    "syncshards",
];
/// Those that say what is deployed.
const DEPLOYED: [&str; 6] = [
    "compositeapps",
    "compositeprofiles",
    "genericactionintents",
    "hardwareintents",
    "trafficgroupintents",
    "deploymentintentgroups",
];
const APPROVALS: [&str; 1] = ["deploymentapprovals"];
const CLOUDS: [&str; 1] = ["logicalclouds"];
/// Questions: asked and read by name, and listed by nobody.
const VIEWS: [&str; 1] = ["deploymentviews"];
const ASK: [&str; 3] = ["create", "get", "delete"];
const RELEASE: [&str; 1] = ["patch"];

type Verbs = &'static [&'static str];
type Kinds = &'static [&'static str];

/// What each role is for: those of the chart, and those of Kubernetes that they become a part of.
const ROLES: [(&str, &[(Verbs, Kinds)]); 7] = [
    ("emco-viewer", &[(&READ, &ALL), (&ASK, &VIEWS)]),
    ("view", &[(&READ, &ALL), (&ASK, &VIEWS)]),
    ("emco-editor", &[(&READ, &ALL), (&WRITE, &DEPLOYED), (&ASK, &VIEWS), (&RELEASE, &VIEWS)]),
    ("edit", &[(&READ, &ALL), (&WRITE, &DEPLOYED), (&ASK, &VIEWS), (&RELEASE, &VIEWS)]),
    // It has what `edit` has, and not what emco-admin has.
    ("admin", &[(&READ, &ALL), (&WRITE, &DEPLOYED), (&ASK, &VIEWS), (&RELEASE, &VIEWS)]),
    ("emco-approver", &[(&READ, &ALL), (&["create", "delete"], &APPROVALS), (&ASK, &VIEWS)]),
    (
        "emco-admin",
        // Who approves is said by itself.
        &[(&READ, &ALL), (&WRITE, &DEPLOYED), (&WRITE, &CLOUDS), (&ASK, &VIEWS), (&RELEASE, &VIEWS)],
    ),
];

/// Binds a role to a user of its own in the namespace.
fn binding(role: &str) -> String {
    format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {{name: has-{role}, namespace: {NAMESPACE}}}\n\
         roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {role}}}\n\
         subjects: [{{kind: User, apiGroup: rbac.authorization.k8s.io, name: has-{role}}}]\n---\n"
    )
}

/// What the hub's authorizer allows somebody with a role to do with our kinds in the namespace.
async fn allowed(bed: &Bed, role: &str) -> Result<BTreeSet<(String, String)>> {
    let reviews =
        Api::<SelfSubjectRulesReview>::all(bed.hub().client_as(&format!("has-{role}"), None).await?);
    let spec = SelfSubjectRulesReviewSpec { namespace: Some(NAMESPACE.to_owned()) };
    let review = SelfSubjectRulesReview { spec, ..Default::default() };
    let status = reviews.create(&PostParams::default(), &review).await?.status.context("no answer")?;
    ensure!(!status.incomplete, "{role}: not all rules are known");
    let ours = status
        .resource_rules
        .into_iter()
        .filter(|rule| rule.api_groups.iter().flatten().any(|group| group == "emco.io" || group == "*"));
    Ok(ours
        .flat_map(|rule| {
            let verbs = rule.verbs;
            let resources = rule.resources.unwrap_or_default();
            resources
                .into_iter()
                .flat_map(move |resource| verbs.clone().into_iter().map(move |verb| (verb, resource.clone())))
        })
        .collect())
}

async fn as_user(bed: &Bed, user: &str) -> Result<Kubectl> {
    let file = bed.dir().join(format!("{user}.kubeconfig"));
    tokio::fs::write(&file, bed.hub().kubeconfig_as(user, None)?).await?;
    Ok(bed.hub().kubectl().with_kubeconfig(&file))
}

fn approval(by: &str) -> String {
    format!(
        "
apiVersion: emco.io/v1alpha1
kind: DeploymentApproval
metadata: {{name: of-{by}, namespace: {NAMESPACE}}}
spec:
  deploymentIntentGroupRef: {{name: till}}
  digest: sha256:0000000000000000000000000000000000000000000000000000000000000000
  approvedBy: {by}
"
    )
}

/// With each role somebody may do what it is for, and nothing else.
pub async fn roles(bed: &Bed) -> Result<()> {
    bed.hub().kubectl().apply(&ROLES.iter().map(|(role, _)| binding(role)).collect::<String>()).await?;
    for (role, rules) in ROLES {
        let wanted: BTreeSet<(String, String)> = rules
            .iter()
            .flat_map(|(verbs, kinds)| {
                verbs
                    .iter()
                    .flat_map(|verb| kinds.iter().map(|kind| ((*verb).to_owned(), (*kind).to_owned())))
            })
            .collect();
        ensure!(allowed(bed, role).await? == wanted, "{role}: {:?}", allowed(bed, role).await?);
    }
    // The same as people meet it.
    let cloud = "{apiVersion: emco.io/v1alpha1, kind: LogicalCloud, metadata: {name: more, namespace: shop}, spec: {level: Standard}}";
    let app = "{apiVersion: emco.io/v1alpha1, kind: CompositeApp, metadata: {name: more, namespace: shop}, spec: \
               {apps: [{name: note, chart: {configMapRef: {name: charts, key: note-1.0.0.tgz}}}]}}";
    for (role, object, may) in [
        ("emco-viewer", app.to_owned(), false),
        ("emco-editor", app.to_owned(), true),
        ("edit", app.to_owned(), true),
        ("edit", approval("has-edit"), false),
        ("emco-editor", approval("has-emco-editor"), false),
        ("emco-approver", approval("has-emco-approver"), true),
        ("emco-approver", approval("has-emco-admin"), false),
        ("emco-approver", app.to_owned(), false),
        ("admin", cloud.to_owned(), false),
        ("emco-editor", cloud.to_owned(), false),
        ("emco-admin", cloud.to_owned(), true),
        ("emco-admin", approval("has-emco-admin"), false),
    ] {
        let user = as_user(bed, &format!("has-{role}")).await?;
        user.run(&["get", "dig", "-n", NAMESPACE]).await?;
        let answer = user.output(&["create", "--dry-run=server", "-f", "-"], &object).await?;
        ensure!(answer.is_ok() == may, "{role}: {}{}\n{object}", answer.stdout, answer.stderr);
        ensure!(
            may || answer.stderr.contains("orbidden") || answer.stderr.contains("your own user name"),
            "{}",
            answer.stderr
        );
    }
    Ok(())
}

const PROVIDER: &str = r#"{"metadata":{"labels":{"emco.io/provider":"acme"}}}"#;

/// The namespace with the label of another project.
async fn relabelled(bed: &Bed) -> Result<String> {
    let text = bed.hub().kubectl().run(&["get", "namespace", NAMESPACE, "-o", "json"]).await?;
    let mut namespace: Value = serde_json::from_str(&text)?;
    namespace["metadata"]["labels"]["emco.io/project"] = json!("other");
    Ok(namespace.to_string())
}

/// Whoever is no operator may not do what the policies keep for it, whatever RBAC says.
pub async fn policies(bed: &Bed) -> Result<()> {
    let broad = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: broad}
rules:
- {apiGroups: [\"\"], resources: [namespaces, namespaces/status, namespaces/finalize], verbs: [get, create, update, patch]}
- apiGroups: [emco.io]
  resources: [syncshards, syncshards/status, appcontexts, appcontexts/status, clusters]
  verbs: [get, list, create, update, patch, delete]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: broad}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: broad}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: editor}]
";
    bed.hub().kubectl().apply(broad).await?;
    let editor = as_user(bed, "editor").await?;
    for kind in ["syncshards.emco.io", "appcontexts.emco.io"] {
        generated(bed, &editor, kind).await?;
    }
    let namespace = |label: &str| {
        format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: mine, labels: {{{label}: acme}}}}}}")
    };
    for (args, input, said) in [
        (vec!["create", "-f", "-"], namespace("emco.io/project"), "the verb own"),
        (vec!["create", "-f", "-"], namespace("emco.io/provider"), "the verb own"),
        (
            vec!["label", "namespace", "shop", "emco.io/project=other", "--overwrite"],
            String::new(),
            "the verb own",
        ),
        (vec!["label", "namespace", "shop", "emco.io/project-"], String::new(), "the verb own"),
        (vec!["label", "namespace", "shop", "emco.io/provider=acme"], String::new(), "the verb own"),
        (
            vec!["patch", "namespace", "shop", "--subresource=status", "--type=merge", "-p", PROVIDER],
            String::new(),
            "the verb own",
        ),
        (
            vec!["replace", "--raw", "/api/v1/namespaces/shop/finalize", "-f", "-"],
            relabelled(bed).await?,
            "the verb own",
        ),
        (
            vec!["label", "clusters.emco.io", "a", "-n", "acme", "emco.io/x=y"],
            String::new(),
            "kept for the operator",
        ),
    ] {
        refused(&editor, &args, &input, said).await?;
    }
    // What the policies do not speak of stays possible.
    editor.run(&["label", "namespace", "shop", "example.com/team=shop"]).await?;
    editor.run(&["label", "clusters.emco.io", "a", "-n", "acme", "zone=one"]).await.map(drop)
}

/// Only the operator makes, changes and deletes what it generates, their status included.
async fn generated(bed: &Bed, editor: &Kubectl, kind: &str) -> Result<()> {
    let list: Value =
        serde_json::from_str(&bed.hub().kubectl().run(&["get", kind, "-n", NAMESPACE, "-o", "json"]).await?)?;
    let mut object = list["items"][0].clone();
    let name =
        object["metadata"]["name"].as_str().with_context(|| format!("there are no {kind}"))?.to_owned();
    let patch = ["patch", kind, &name, "-n", NAMESPACE, "--type=merge"];
    let said = "only the operator writes";
    let labels = r#"{"metadata":{"labels":{"a":"b"}}}"#;
    refused(editor, &[&patch[..], &["-p", labels]].concat(), "", said).await?;
    let status = r#"{"status":{"observedGeneration":7}}"#;
    refused(editor, &[&patch[..], &["--subresource=status", "-p", status]].concat(), "", said).await?;
    refused(editor, &["delete", kind, &name, "-n", NAMESPACE], "", said).await?;
    refused(editor, &["replace", "-f", "-"], &object.to_string(), said).await?;
    object["metadata"] =
        json!({"name": "mine", "namespace": NAMESPACE, "labels": object["metadata"]["labels"]});
    refused(editor, &["create", "-f", "-"], &object.to_string(), said).await
}

async fn refused(as_somebody: &Kubectl, args: &[&str], input: &str, said: &str) -> Result<()> {
    let answer = as_somebody.output(args, input).await?;
    ensure!(!answer.is_ok() && answer.stderr.contains(said), "{args:?}: {}{}", answer.stdout, answer.stderr);
    Ok(())
}
