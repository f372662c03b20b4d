//! Compares what the hub lets members of a Project do with their roles, while the Project and the bindings change.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use emco_crds::Project;
use emco_e2e::bed::Bed;
use emco_e2e::operator::SOON;
use emco_e2e::wait::{wait_for, wait_until_gone};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};
use tokio::time::sleep;

const ROLES: [&str; 4] = ["Viewer", "Editor", "Approver", "Admin"];
const BINDINGS: [&str; 4] = ["emco-viewers", "emco-editors", "emco-approvers", "emco-admins"];
/// What tells the roles apart, and who may.
const RIGHTS: [(&str, &str, [bool; 4]); 10] = [
    ("get", "deploymentintentgroups.emco.io", [true, true, true, true]),
    ("create", "compositeapps.emco.io", [false, true, false, true]),
    ("create", "deploymentapprovals.emco.io", [false, false, true, false]),
    ("patch", "logicalclouds.emco.io", [false, false, false, true]),
    ("create", "deploymentviews.emco.io", [true, true, true, true]),
    ("patch", "deploymentviews.emco.io", [false, true, false, true]),
    ("list", "deploymentviews.emco.io", [false, false, false, false]),
    ("get", "secrets", [false, false, false, false]),
    ("get", "configmaps/emco-clusters-15", [true, true, true, true]),
    ("get", "configmaps", [false, false, false, false]),
];

fn project(members: &[Value]) -> String {
    json!({"apiVersion": "emco.io/v1alpha1", "kind": "Project", "metadata": {"name": "crew"}, "spec": {"members": members}})
        .to_string()
}

/// Each role with a user of its own, such as `viewer-1`.
fn each_has(number: u8) -> Vec<Value> {
    let member =
        |role: &str| json!({"role": role, "subjects": [{"kind": "User", "name": user(role, number)}]});
    ROLES.into_iter().map(member).collect()
}

fn user(role: &str, number: u8) -> String {
    format!("{}-{number}", role.to_lowercase())
}

/// The hub's own answers are those of the table, for all users of this number; or no to all.
async fn may(bed: &Bed, number: u8, anything: bool) -> Result<()> {
    let reviews = Api::<SubjectAccessReview>::all(bed.hub().client().await?);
    let deadline = Instant::now() + SOON;
    for (at, role) in ROLES.into_iter().enumerate() {
        for (verb, resource, who) in RIGHTS {
            let asked = review(&user(role, number), verb, resource);
            let wanted = anything && who[at];
            // No watch tells when a server heeds a binding.
            while is_allowed(&reviews, &asked).await? != wanted {
                ensure!(Instant::now() < deadline, "{wanted} is not the answer to {:?}", asked.spec);
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
    Ok(())
}

/// What `kubectl auth can-i` asks, without a process for each question.
fn review(user: &str, verb: &str, resource: &str) -> SubjectAccessReview {
    let (resource, name) = resource.split_once('/').unwrap_or((resource, ""));
    let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
    let attributes = ResourceAttributes {
        group: Some(group.to_owned()),
        resource: Some(resource.to_owned()),
        name: Some(name.to_owned()),
        namespace: Some("crew".to_owned()),
        verb: Some(verb.to_owned()),
        ..ResourceAttributes::default()
    };
    let spec = SubjectAccessReviewSpec {
        user: Some(user.to_owned()),
        groups: Some(vec!["system:authenticated".to_owned()]),
        resource_attributes: Some(attributes),
        ..SubjectAccessReviewSpec::default()
    };
    SubjectAccessReview { spec, ..SubjectAccessReview::default() }
}

async fn is_allowed(reviews: &Api<SubjectAccessReview>, asked: &SubjectAccessReview) -> Result<bool> {
    let answer = reviews.create(&PostParams::default(), asked).await?;
    Ok(answer.status.context("no answer")?.allowed)
}

/// The bindings name these users, in the order of [`ROLES`].
async fn bound(bed: &Bed, what: &str, wanted: [&[&str]; 4]) -> Result<()> {
    let api = Api::<RoleBinding>::namespaced(bed.hub().client().await?, "crew");
    wait_for(api, SOON, what, |bindings| {
        let names = |binding: &str| -> Vec<&str> {
            let binding = bindings.get(&format!("crew/{binding}"));
            binding.and_then(|b| b.subjects.as_ref()).into_iter().flatten().map(|s| s.name.as_str()).collect()
        };
        let now = BINDINGS.map(names);
        if now.iter().zip(wanted).all(|(now, wanted)| now == wanted) {
            Ok(())
        } else {
            Err(format!("{now:?}"))
        }
    })
    .await
}

/// Rights come, change and go with the Project, and those who take or give themselves some are corrected.
pub async fn follow_the_project(bed: &Bed) -> Result<()> {
    let kubectl = bed.hub().kubectl();
    // The namespace is there already, and stays.
    let adopted =
        "{apiVersion: v1, kind: Namespace, metadata: {name: crew, labels: {emco.io/project: crew}}}";
    kubectl.apply(adopted).await?;
    kubectl.apply(&project(&each_has(1))).await?;
    may(bed, 1, true).await?;
    kubectl.apply(&project(&each_has(2))).await?;
    let second: [&[&str]; 4] = [&["viewer-2"], &["editor-2"], &["approver-2"], &["admin-2"]];
    bound(bed, "other members", second).await?;
    may(bed, 1, false).await?;
    may(bed, 2, true).await?;
    let one_more = r#"[{"op": "add", "path": "/subjects/-", "value":
        {"kind": "User", "name": "editor-1", "apiGroup": "rbac.authorization.k8s.io"}}]"#;
    kubectl
        .run(&["patch", "rolebinding", "emco-editors", "-n", "crew", "--type=json", "-p", one_more])
        .await?;
    kubectl.run(&["delete", "rolebinding", "emco-admins", "-n", "crew"]).await?;
    bound(bed, "what others did is taken back", second).await?;
    may(bed, 1, false).await?;
    may(bed, 2, true).await?;
    kubectl.apply(&project(&each_has(2)[1..])).await?;
    bound(bed, "a role that nobody has any more", [&[], second[1], second[2], second[3]]).await?;
    kubectl.run(&["delete", "projects.emco.io", "crew", "--wait=false"]).await?;
    wait_until_gone(Api::<Project>::all(bed.hub().client().await?), "crew", SOON).await?;
    may(bed, 2, false).await
}

/// With the operator's token nobody gets a role of people elsewhere, or reads who has it.
pub async fn stay_in_projects(bed: &Bed, account: &Path) -> Result<()> {
    let thief = bed.hub().kubectl().with_kubeconfig(account);
    let binding = |namespace: &str, role: &str| {
        format!(
            "{{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {{name: emco-admins, namespace: {namespace}}}, \
             roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {role}}}, \
             subjects: [{{kind: User, apiGroup: rbac.authorization.k8s.io, name: mallory}}]}}"
        )
    };
    for (args, input, said) in [
        (vec!["create", "-f", "-"], binding("kube-system", "emco-admin"), "only in namespaces of a Project"),
        (vec!["create", "-f", "-"], binding("shop", "admin"), "attempting to grant RBAC permissions"),
        (vec!["get", "rolebindings", "-A"], String::new(), "orbidden"),
    ] {
        let answer = thief.output(&args, &input).await?;
        ensure!(
            !answer.is_ok() && answer.stderr.contains(said),
            "{args:?}: {}{}",
            answer.stdout,
            answer.stderr
        );
    }
    Ok(())
}
