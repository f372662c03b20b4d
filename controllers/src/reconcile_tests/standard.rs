//! Logical clouds of level Standard: what they make on clusters, and who writes what there.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::life::*;
use super::planned::planned;
use super::plans::{edit, pending};
use super::rig::emco;
use super::shop::{TENANT, deployment, labelled, objects};
use crate::api::{ApiError, ApiServerExt as _, Method};
use crate::memory::Fault;

const ACCOUNT: &str = "system:serviceaccount:team-a:emco-default";

fn cloud(more: &Value) -> Value {
    let mut spec = json!({"level": "Standard"});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    emco("LogicalCloud", Some("team-a"), "default", &spec)
}

/// Paths that were written to on any cluster, each with the account.
type Writes = Arc<Mutex<BTreeSet<(String, String)>>>;

async fn standard(more: &Value) -> (Life, Writes) {
    let mut all = objects();
    all.push(cloud(more));
    let mut life = Life::with(&all);
    let writes = Writes::default();
    for edge in life.edges.values() {
        let writes = Arc::clone(&writes);
        edge.faults(Some(Arc::new(move |request, _| {
            if request.method != Method::Get {
                let account = request.impersonate.clone().unwrap_or_default();
                writes.lock().insert((request.path.to_string(), account));
            }
            None
        })));
    }
    life.settle().await;
    (life, writes)
}

fn path(group: &str, plural: &str, name: &str) -> String {
    format!("/{group}/namespaces/team-a/{plural}/{name}")
}

fn binding(name: &str) -> String {
    path("apis/rbac.authorization.k8s.io/v1", "rolebindings", name)
}

/// Whom deployments are applied as.
fn identity_of(life: &Life) -> Value {
    life.rig.hub.object(&format!("{TENANT}/logicalclouds/default")).unwrap()["status"]["identity"].clone()
}

/// Who wrote to paths that end so.
fn writers(writes: &Writes, end: &str) -> BTreeSet<String> {
    let writes = writes.lock();
    writes.iter().filter(|(path, _)| path.ends_with(end)).map(|(_, account)| account.clone()).collect()
}

fn only(account: &str) -> BTreeSet<String> {
    BTreeSet::from([account.to_owned()])
}

#[tokio::test(start_paused = true)]
async fn deployments_are_written_as_the_account_of_their_cloud() {
    let (life, writes) = standard(&json!({"quotas": [{"name": "pods", "hard": {"pods": "20"}}]})).await;
    assert_eq!(life.says("Ready").0, "True", "{:?}", life.says("Ready"));
    for edge in ["a", "b"] {
        let edge = &life.edges[edge];
        let account = edge.object(&path("api/v1", "serviceaccounts", "emco-default")).unwrap();
        assert_eq!(account["automountServiceAccountToken"], false);
        let rights = edge.object(&binding("emco-default")).unwrap();
        assert_eq!(
            (&rights["roleRef"]["kind"], &rights["roleRef"]["name"]),
            (&json!("ClusterRole"), &json!("admin"))
        );
        assert_eq!(
            rights["subjects"],
            json!([{"kind": "ServiceAccount", "name": "emco-default", "namespace": "team-a"}])
        );
        let quota = edge.object(&path("api/v1", "resourcequotas", "emco-pods")).unwrap();
        assert_eq!(quota["spec"]["hard"], json!({"pods": "20"}));
    }
    for written in ["/configmaps/page", "/deployments/web"] {
        assert_eq!(writers(&writes, written), only(ACCOUNT), "{written}");
    }
    for own in ["/namespaces/team-a", "/serviceaccounts/emco-default", "/resourcequotas/emco-pods"] {
        assert_eq!(writers(&writes, own), only(""), "{own}");
    }
    let status = &life.rig.hub.object(&format!("{TENANT}/logicalclouds/default")).unwrap()["status"];
    assert_eq!(status["identity"], ACCOUNT);
}

#[tokio::test(start_paused = true)]
async fn permissions_take_the_place_of_the_role_admin_and_follow_edits() {
    let permissions = json!([
        {"name": "edit", "clusterRole": "edit"},
        {"name": "own", "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]},
    ]);
    let (mut life, _) = standard(&json!({"permissions": permissions})).await;
    let edge = life.edges["a"].clone();
    assert_eq!(edge.object(&binding("emco-default")), None);
    assert_eq!(edge.object(&binding("emco-default-edit")).unwrap()["roleRef"]["name"], "edit");
    let own = edge.object(&binding("emco-default-own")).unwrap();
    assert_eq!(
        (&own["roleRef"]["kind"], &own["roleRef"]["name"]),
        (&json!("Role"), &json!("emco-default-own"))
    );
    let role = edge.object(&path("apis/rbac.authorization.k8s.io/v1", "roles", "emco-default-own")).unwrap();
    assert_eq!(role["rules"], json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]));
    life.put(&cloud(&json!({})));
    life.settle().await;
    assert!(edge.object(&binding("emco-default")).is_some());
    assert_eq!(
        (edge.object(&binding("emco-default-own")), edge.object(&binding("emco-default-edit"))),
        (None, None)
    );
}

#[tokio::test(start_paused = true)]
async fn a_permission_with_another_role_keeps_its_name_and_takes_no_other_away() {
    let permission = |name: &str, role: &str| json!({"name": name, "clusterRole": role});
    let of = |permissions: &[Value]| json!({"permissions": permissions});
    let all = of(&[permission("first", "view"), permission("second", "edit"), permission("third", "view")]);
    let (mut life, _) = standard(&all).await;
    let edge = life.edges["a"].clone();
    let uid = |name: &str| edge.object(&binding(name)).map(|binding| binding["metadata"]["uid"].clone());
    let role = |name: &str| edge.object(&binding(name)).map(|binding| binding["roleRef"]["name"].clone());
    let (identity, third) = (identity_of(&life), uid("emco-default-third"));
    assert!(third.is_some());
    // One goes, one has another role, and one is as it was.
    life.put(&cloud(&of(&[permission("second", "view"), permission("third", "view")])));
    life.settle().await;
    assert_eq!(role("emco-default-first"), None);
    assert_eq!(role("emco-default-second"), Some(json!("view")));
    assert_eq!(uid("emco-default-third"), third, "it was not made anew");
    assert_eq!(identity_of(&life), identity);
}

#[tokio::test(start_paused = true)]
async fn a_plan_asks_as_the_account_once_it_is_there() {
    let (mut life, _) = standard(&json!({})).await;
    let asked = Writes::default();
    for edge in life.edges.values() {
        let asked = Arc::clone(&asked);
        edge.faults(Some(Arc::new(move |request, _| {
            let account = request.impersonate.clone().unwrap_or_default();
            let dry = request.query.iter().any(|(key, _)| *key == "dryRun");
            let page = dry && request.path.ends_with("/configmaps/page");
            if page {
                asked.lock().insert((request.path.to_string(), account));
            }
            page.then(|| {
                Fault::Refuse(ApiError::Status {
                    code: 403,
                    reason: "Forbidden".to_owned(),
                    message:
                        "configmaps \"page\" is forbidden: User \"x\" cannot patch resource \"configmaps\""
                            .to_owned(),
                    retry_after: None,
                    causes: Vec::new(),
                })
            })
        })));
    }
    life.put(&planned());
    edit(&life);
    life.settle().await;
    assert_eq!(writers(&asked, "/configmaps/page"), only(ACCOUNT));
    let refused = pending(&life)["apps"][0]["refused"].to_string();
    assert!(refused.contains("Forbidden") && refused.contains("cannot patch"), "{refused}");
}

/// Notes who asks about the page, as a dry run or by reading it.
fn note_questions(life: &Life) -> Writes {
    let asked = Writes::default();
    for edge in life.edges.values() {
        let asked = Arc::clone(&asked);
        edge.faults(Some(Arc::new(move |request, _| {
            let dry = request.query.iter().any(|(key, _)| *key == "dryRun");
            if request.path.ends_with("/configmaps/page") && (dry || request.method == Method::Get) {
                let account = request.impersonate.clone().unwrap_or_default();
                asked.lock().insert((request.path.to_string(), account));
            }
            None
        })));
    }
    asked
}

#[tokio::test(start_paused = true)]
async fn a_plan_of_derived_rights_asks_no_cluster() {
    let (mut life, _) = standard(&json!({"permissions": [{"name": "own", "derived": true}]})).await;
    let asked = note_questions(&life);
    life.put(&planned());
    edit(&life);
    life.settle().await;
    assert!(pending(&life)["apps"][0].is_object(), "{:#}", pending(&life));
    assert_eq!(pending(&life)["apps"][0]["refused"], Value::Null);
    let asked = asked.lock();
    let others = asked.iter().filter(|(_, account)| account.is_empty()).collect::<Vec<_>>();
    assert_eq!(others, Vec::<&(String, String)>::new());
}

#[tokio::test(start_paused = true)]
async fn a_plan_asks_nothing_where_the_namespace_is_not_the_clouds() {
    let mut all = objects()[..objects().len() - 1].to_vec();
    all.push(cloud(&json!({"namespace": "vault"})));
    let mut life = Life::with(&all);
    for edge in life.edges.values() {
        edge.put(
            "somebody",
            &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "vault"}}),
        );
        let page = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"text": "theirs"},
            "metadata": {"name": "page", "namespace": "vault"}});
        edge.put("somebody", &page);
    }
    let asked = note_questions(&life);
    let mut dig = planned();
    dig["spec"]["sync"] = json!({"conflicts": "AdoptIfSame"});
    life.put(&dig);
    life.settle().await;
    assert_eq!(pending(&life)["apps"][0]["gained"], json!(["acme/a", "acme/b"]), "{:#}", pending(&life));
    assert_eq!(pending(&life)["apps"][0]["refused"], Value::Null);
    assert_eq!(*asked.lock(), BTreeSet::new());
}

#[tokio::test(start_paused = true)]
async fn a_cloud_of_a_reserved_namespace_is_refused_and_nothing_is_made() {
    let (mut life, _) = standard(&json!({})).await;
    for namespace in ["emco-system", "monitoring"] {
        let reserved = json!({"spec": {"reservedNamespaces": ["moni*"]}});
        life.rig.hub.merge("/apis/emco.io/v1alpha1/clusterproviders/acme", &reserved).await.unwrap();
        let spec = json!({"level": "Standard", "namespace": namespace});
        life.put(&emco("LogicalCloud", Some("team-a"), "greedy", &spec));
        life.settle().await;
        let (ready, reason, message) = life.rig.ready(&format!("{TENANT}/logicalclouds/greedy"));
        assert_eq!((ready.as_str(), reason.as_str()), ("False", "NamespaceReserved"), "{message}");
        let there = format!("/api/v1/namespaces/{namespace}");
        assert!(life.edges.values().all(|edge| edge.object(&there).is_none()), "{there}");
        life.delete(&format!("{TENANT}/logicalclouds/greedy")).await;
        life.settle().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_cloud_on_demand_is_where_its_deployments_are() {
    let (mut life, _) = standard(&json!({"provision": "OnDemand"})).await;
    assert_eq!(life.says("Ready").0, "True", "{:?}", life.says("Ready"));
    let account = path("api/v1", "serviceaccounts", "emco-default");
    let has = |life: &Life| ["a", "b"].map(|edge| life.edges[edge].object(&account).is_some());
    let ready = |life: &Life| life.rig.ready(&format!("{TENANT}/logicalclouds/default"));
    assert_eq!((has(&life), ready(&life).2.as_str()), ([true, true], "2 of 2 clusters ready"));
    life.put(&labelled("a", &json!({"tier": "core"})));
    life.settle().await;
    assert_eq!((has(&life), ready(&life).2.as_str()), ([false, true], "1 of 1 cluster ready"));
    life.delete(&format!("{TENANT}/deploymentintentgroups/shop")).await;
    life.settle().await;
    let words = "no deployment is placed: each of 2 clusters is prepared when one is";
    assert_eq!(
        (has(&life), ready(&life).0.as_str(), ready(&life).2.as_str()),
        ([false, false], "True", words)
    );
    life.put(&deployment("edge"));
    life.settle().await;
    assert_eq!((has(&life), life.says("Ready").0.as_str()), ([false, true], "True"));
}

#[tokio::test(start_paused = true)]
async fn a_deployment_leaves_as_the_account_and_the_cloud_follows() {
    let (mut life, writes) = standard(&json!({})).await;
    writes.lock().clear();
    life.delete(&format!("{TENANT}/deploymentintentgroups/shop")).await;
    life.settle().await;
    assert_eq!(writers(&writes, "/configmaps/page"), only(ACCOUNT));
    life.delete(&format!("{TENANT}/logicalclouds/default")).await;
    life.settle().await;
    // The Project makes the cloud anew, at the level that it says.
    let edge = &life.edges["a"];
    assert!(edge.object("/api/v1/namespaces/team-a").is_some());
    assert_eq!(edge.object(&path("api/v1", "serviceaccounts", "emco-default")), None);
    assert_eq!(edge.object(&binding("emco-default")), None);
}
