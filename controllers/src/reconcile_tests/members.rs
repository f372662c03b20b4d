//! Changes the members of a Project and their role bindings, and compares them with what the Project says.

use std::sync::Arc;

use emco_crds::project::MemberRole;
use serde_json::{Value, json};

use super::rig::{Rig, emco, namespace, settled_with};
use crate::api::{ApiError, Method};
use crate::memory::Fault;

const PROJECT: &str = "/apis/emco.io/v1alpha1/projects/team-a";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/team-a/rolebindings";

fn project(members: &Value) -> Value {
    emco("Project", None, "team-a", &json!({"members": members}))
}

fn path(role: MemberRole) -> String {
    format!("{BINDINGS}/{}", role.binding())
}

fn binding(rig: &Rig, role: MemberRole) -> Option<Value> {
    rig.hub.object(&path(role))
}

/// Who has a role by the project's binding.
fn named(rig: &Rig, role: MemberRole) -> Vec<String> {
    let binding = binding(rig, role).unwrap_or_default();
    let subjects = binding["subjects"].as_array().cloned().unwrap_or_default();
    subjects.iter().map(|subject| subject["name"].as_str().unwrap().to_owned()).collect()
}

fn users(role: &str, names: &[&str]) -> Value {
    let subjects: Vec<Value> = names.iter().map(|name| json!({"kind": "User", "name": name})).collect();
    json!({"role": role, "subjects": subjects})
}

#[tokio::test]
async fn each_role_with_members_has_one_binding_and_no_other_has() {
    let members = json!([
        {"role": "Editor", "subjects": [
            {"kind": "Group", "name": "team-a"}, {"kind": "ServiceAccount", "name": "flux"},
            {"kind": "ServiceAccount", "name": "argocd", "namespace": "argocd"}, {"kind": "Group", "name": "team-a"},
        ]},
        users("Approver", &["vera"]),
    ]);
    let rig = settled_with(vec![project(&members)]).await;
    let editors = binding(&rig, MemberRole::Editor).unwrap();
    let rbac = "rbac.authorization.k8s.io";
    assert_eq!(editors["roleRef"], json!({"apiGroup": rbac, "kind": "ClusterRole", "name": "emco-editor"}));
    assert_eq!(
        editors["subjects"],
        json!([
            {"apiGroup": rbac, "kind": "Group", "name": "team-a"},
            {"kind": "ServiceAccount", "name": "flux", "namespace": "team-a"},
            {"kind": "ServiceAccount", "name": "argocd", "namespace": "argocd"},
        ])
    );
    assert_eq!(editors["metadata"]["labels"], json!({"emco.io/project": "team-a"}));
    assert_eq!(named(&rig, MemberRole::Approver), ["vera"]);
    assert!(binding(&rig, MemberRole::Viewer).is_none() && binding(&rig, MemberRole::Admin).is_none());
    assert_eq!(rig.ready(PROJECT).0, "True");
}

#[tokio::test]
async fn bindings_follow_the_project_and_take_back_what_others_wrote() {
    let mut rig =
        settled_with(vec![project(&json!([users("Editor", &["eva"]), users("Admin", &["ada"])]))]).await;
    rig.hub.put("test", &project(&json!([users("Editor", &["emil", "eva"]), users("Viewer", &["vic"])])));
    rig.settle().await;
    let all = MemberRole::ALL.map(|role| named(&rig, role));
    assert_eq!(all, [vec!["vic"], vec!["emil", "eva"], vec![], vec![]]);
    // Somebody adds himself, another takes one away, a third makes it bind more.
    let mut editors = binding(&rig, MemberRole::Editor).unwrap();
    editors["subjects"].as_array_mut().unwrap().push(json!({"kind": "User", "name": "mallory"}));
    rig.hub.put("test", &editors);
    rig.hub.remove(&path(MemberRole::Viewer));
    rig.settle().await;
    assert_eq!(MemberRole::ALL.map(|role| named(&rig, role)), all);
    let mut viewers = binding(&rig, MemberRole::Viewer).unwrap();
    rig.hub.remove(&path(MemberRole::Viewer));
    viewers["metadata"] =
        json!({"name": "emco-viewers", "namespace": "team-a", "labels": {"emco.io/project": "team-a"}});
    viewers["roleRef"]["name"] = json!("emco-admin");
    rig.hub.put("test", &viewers);
    rig.settle().await;
    assert_eq!(binding(&rig, MemberRole::Viewer).unwrap()["roleRef"]["name"], "emco-viewer");
    assert_eq!(MemberRole::ALL.map(|role| named(&rig, role)), all);
}

#[tokio::test]
async fn bindings_that_the_watch_has_not_shown_are_found() {
    let mut rig = settled_with(vec![project(&json!([users("Editor", &["eva"])]))]).await;
    let before = binding(&rig, MemberRole::Editor);
    rig.hub.take_seen();
    rig.unsee_members();
    rig.look_at_projects().await.unwrap();
    assert_eq!(binding(&rig, MemberRole::Editor), before);
    rig.hub.put("test", &project(&json!([users("Editor", &["emil"])])));
    rig.see_projects();
    rig.look_at_projects().await.unwrap();
    assert_eq!(named(&rig, MemberRole::Editor), ["emil"]);
}

#[tokio::test]
async fn a_binding_without_the_label_is_left_alone_and_named() {
    let foreign = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "emco-editors", "namespace": "team-a"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "old"}],
    });
    let mine = namespace("team-a", &json!({"emco.io/project": "team-a"}));
    let members = json!([users("Editor", &["eva"]), users("Admin", &["ada"])]);
    let mut rig = settled_with(vec![mine, foreign, project(&members)]).await;
    let (status, reason, message) = rig.ready(PROJECT);
    assert_eq!((status.as_str(), reason.as_str()), ("False", "MembersNotBound"));
    assert_eq!(
        message,
        "members with role Editor have no rights: RoleBinding team-a/emco-editors exists and does not say that it is for \
         Project team-a: kubectl delete rolebinding -n team-a emco-editors, or kubectl label rolebinding -n team-a \
         emco-editors emco.io/project=team-a, and it gets the subjects of spec.members"
    );
    assert_eq!(
        (named(&rig, MemberRole::Editor), named(&rig, MemberRole::Admin)),
        (vec!["old".into()], vec!["ada".into()])
    );
    // Members go, and the other binding does not.
    rig.hub.put("test", &project(&json!([])));
    rig.settle().await;
    assert_eq!(rig.ready(PROJECT).1, "NoClustersGranted");
    assert_eq!(named(&rig, MemberRole::Editor), ["old"]);
    // What the message says helps.
    rig.hub.put("test", &project(&members));
    let mut taken = binding(&rig, MemberRole::Editor).unwrap();
    taken["metadata"]["labels"] = json!({"emco.io/project": "team-a"});
    rig.hub.put("test", &taken);
    rig.settle().await;
    assert_eq!(
        (named(&rig, MemberRole::Editor), rig.ready(PROJECT).0),
        (vec!["eva".to_owned()], "True".to_owned())
    );
    assert_eq!(binding(&rig, MemberRole::Editor).unwrap()["roleRef"]["name"], "emco-editor");
}

#[tokio::test]
async fn roles_that_may_not_be_bound_are_named_and_the_project_works() {
    let mut rig = Rig::new();
    rig.hub.faults(Some(Arc::new(|request, _| {
        let refused = request.method == Method::Post && request.path.as_str().ends_with("/rolebindings");
        refused.then(|| {
            Fault::Refuse(ApiError::Status {
                code: 404,
                reason: "NotFound".to_owned(),
                message: "clusterroles.rbac.authorization.k8s.io \"emco-editor\" not found".to_owned(),
                retry_after: None,
                causes: Vec::new(),
            })
        })
    })));
    rig.hub.put("test", &project(&json!([users("Editor", &["eva"])])));
    rig.settle().await;
    let (status, reason, message) = rig.ready(PROJECT);
    assert_eq!((status.as_str(), reason.as_str()), ("False", "MembersNotBound"));
    assert!(
        message.contains("\"emco-editor\" not found: install EMCO's chart with userRoles.enabled=true"),
        "{message}"
    );
    assert_eq!(rig.hub.object(PROJECT).unwrap()["status"]["namespace"], "team-a");
    rig.hub.faults(None);
    rig.settle().await;
    assert_eq!(
        (rig.ready(PROJECT).0, named(&rig, MemberRole::Editor)),
        ("True".to_owned(), vec!["eva".to_owned()])
    );
}

#[tokio::test]
async fn a_namespace_that_stays_keeps_no_rights_of_members() {
    let adopted = namespace("team-a", &json!({"emco.io/project": "team-a"}));
    let mut rig = settled_with(vec![adopted, project(&json!([users("Admin", &["ada"])]))]).await;
    assert_eq!(named(&rig, MemberRole::Admin), ["ada"]);
    rig.hub.remove(PROJECT);
    rig.settle().await;
    assert!(rig.hub.object(PROJECT).is_none());
    assert!(rig.hub.object("/api/v1/namespaces/team-a").is_some());
    assert!(binding(&rig, MemberRole::Admin).is_none());
}
