//! Rights that are derived from what is deployed: they come before an update and go after it, on each cluster by itself.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use emco_engine::role::Rule;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::deaths::at_every_write;
use super::life::*;
use super::planned::planned;
use super::plans::{edit, pending};
use super::rig::emco;
use super::shop::{TENANT, deployment, labelled, objects, packed};
use crate::api::{ApiError, Method, Request};
use crate::memory::{Fault, Faults, MemoryServer};

const ROLE: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/team-a/roles/emco-default-own";
const POLICY: &str = "
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: closed}
spec: {podSelector: {}}
";
const NOTE: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: note}
data: {of: {{ .Chart.Version | quote }}}
";

fn cloud(permissions: &Value) -> Value {
    let spec = json!({"level": "Standard", "permissions": permissions});
    emco("LogicalCloud", Some("team-a"), "default", &spec)
}

/// What an account was refused, and what is not in its role.
type Refused = Arc<Mutex<BTreeSet<String>>>;

/// Judges requests of accounts by the derived role, as an authorizer does.
fn authorizer(edge: &MemoryServer, refused: &Refused) -> Faults {
    let (edge, refused) = (edge.clone(), Arc::clone(refused));
    Arc::new(move |request: &Request, _| {
        request.impersonate.as_ref()?;
        let parts: Vec<&str> = request.path.as_str().split('/').collect();
        let (group, rest) = match parts.as_slice() {
            ["", "api", "v1", rest @ ..] => ("", rest),
            ["", "apis", group, _, rest @ ..] => (*group, rest),
            _ => return None,
        };
        let ["namespaces", "team-a", plural, name] = rest else { return None };
        let verbs: &[&str] = match request.method {
            Method::Delete => &["delete"],
            Method::Patch if edge.object(request.path.as_str()).is_none() => &["create", "patch"],
            Method::Patch => &["patch"],
            Method::Get | Method::Post | Method::Put => &[],
        };
        let wanted =
            json!([{"apiGroups": [group], "resources": [plural], "resourceNames": [name], "verbs": verbs}]);
        let role = edge.object(ROLE);
        let had = Rule::list(role.as_ref().and_then(|role| role.get("rules")));
        let lacks = Rule::list(Some(&wanted)).iter().find_map(|rule| rule.lacks(&had))?;
        refused.lock().insert(lacks.clone());
        let message = format!("User \"emco-default\" cannot {} resource \"{plural}\" in API group", verbs[0]);
        let (code, reason) = (403, "Forbidden".to_owned());
        Some(Fault::Refuse(ApiError::Status { code, reason, message, retry_after: None, causes: Vec::new() }))
    })
}

fn watch_over(life: &Life) -> Refused {
    let refused = Refused::default();
    for edge in life.edges.values() {
        edge.faults(Some(authorizer(edge, &refused)));
    }
    refused
}

async fn deriving(more: Vec<Value>) -> (Life, Refused) {
    let mut all = objects();
    all.push(cloud(&json!([{"name": "own", "derived": true}])));
    all.extend(more);
    let mut life = Life::with(&all);
    let refused = watch_over(&life);
    life.settle().await;
    (life, refused)
}

/// Resources that the derived role of a cluster names.
fn resources(life: &Life, edge: &str) -> BTreeSet<String> {
    let role = life.edges[edge].object(ROLE).unwrap_or_else(|| panic!("no role on {edge}"));
    let rules = Rule::list(role.get("rules"));
    assert!(rules.iter().all(|rule| rule.verbs == ["create", "delete", "patch"]), "{role:#}");
    rules.into_iter().flat_map(|rule| rule.resources).collect()
}

/// Until clusters may be given less.
async fn rest(life: &mut Life) {
    life.settle().await;
    life.rig.clock.forward(Duration::from_mins(1));
    life.settle().await;
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// A second app, of whose chart the version 2.0.0 has one kind more, and a deployment of it.
fn notes(version: &str) -> Vec<Value> {
    let note = ("templates/note.yaml", NOTE);
    let charts = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "notes", "namespace": "team-a"}, "binaryData": {
        "note-1.0.0.tgz": packed("note", "1.0.0", &[note]),
        "note-2.0.0.tgz": packed("note", "2.0.0", &[note, ("templates/policy.yaml", POLICY)]),
    }});
    let chart = json!({"configMapRef": {"name": "notes", "key": format!("note-{version}.tgz")}});
    let app =
        emco("CompositeApp", Some("team-a"), "notes", &json!({"apps": [{"name": "note", "chart": chart}]}));
    let dig = emco(
        "DeploymentIntentGroup",
        Some("team-a"),
        "notes",
        &json!({
            "compositeAppRef": {"name": "notes"}, "logicalCloudRef": {"name": "default"},
            "placement": {"allOf": [{"selector": {"matchLabels": {"tier": "edge"}}}]},
        }),
    );
    vec![charts, app, dig]
}

#[tokio::test(start_paused = true)]
async fn each_cluster_gives_the_rights_for_what_is_deployed_there() {
    let (life, refused) = deriving(Vec::new()).await;
    assert_eq!(life.says("Ready").0, "True", "{:?}", life.says("Ready"));
    assert_eq!(*refused.lock(), BTreeSet::new(), "no request came before its right");
    assert_eq!(resources(&life, "a"), set(&["configmaps", "deployments", "jobs"]));
    assert_eq!(resources(&life, "b"), set(&["configmaps", "deployments", "jobs", "secrets", "statefulsets"]));
}

#[tokio::test(start_paused = true)]
async fn rights_grow_before_an_update_and_shrink_when_the_old_objects_are_gone() {
    let (mut life, refused) = deriving(notes("1.0.0")).await;
    let before = resources(&life, "a");
    assert!(!before.contains("networkpolicies"));
    for object in &notes("2.0.0") {
        life.put(object);
    }
    life.settle().await;
    let policy = "/apis/networking.k8s.io/v1/namespaces/team-a/networkpolicies/closed";
    assert!(life.edges["a"].object(policy).is_some());
    let mut grown = before.clone();
    grown.insert("networkpolicies".to_owned());
    assert_eq!(resources(&life, "a"), grown);
    for object in &notes("1.0.0") {
        life.put(object);
    }
    rest(&mut life).await;
    assert_eq!(life.edges["a"].object(policy), None, "removed as the account");
    assert_eq!(resources(&life, "a"), before);
    assert_eq!(*refused.lock(), BTreeSet::new());
}

#[tokio::test(start_paused = true)]
async fn the_next_process_derives_the_same_rights() {
    let (mut life, _) = deriving(notes("1.0.0")).await;
    let before = resources(&life, "a");
    for object in &notes("2.0.0") {
        life.put(object);
    }
    // Stored and targeted, and nothing of it is on any cluster yet.
    life.rig.round().await;
    life.restart().await;
    let refused = watch_over(&life);
    life.settle().await;
    assert_eq!(resources(&life, "a").difference(&before).collect::<Vec<_>>(), ["networkpolicies"]);
    assert_eq!(*refused.lock(), BTreeSet::new());
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_left_has_no_right_any_more() {
    let (mut life, refused) = deriving(Vec::new()).await;
    life.put(&labelled("a", &json!({"tier": "core"})));
    rest(&mut life).await;
    assert_eq!(resources(&life, "a"), BTreeSet::new());
    life.put(&labelled("a", &json!({"tier": "edge"})));
    life.put(&deployment("edge"));
    life.settle().await;
    assert_eq!(resources(&life, "a"), set(&["configmaps", "deployments", "jobs"]));
    assert_eq!(*refused.lock(), BTreeSet::new());
}

#[tokio::test(start_paused = true)]
async fn a_plan_gives_no_right_and_asks_no_cluster() {
    let (mut life, refused) = deriving(Vec::new()).await;
    let before = resources(&life, "a");
    life.put(&planned());
    edit(&life);
    life.settle().await;
    assert!(pending(&life)["apps"][0].is_object(), "{:#}", pending(&life));
    assert_eq!(resources(&life, "a"), before);
    assert_eq!(*refused.lock(), BTreeSet::new());
}

#[tokio::test(start_paused = true)]
async fn a_plan_names_the_rights_that_it_brings() {
    let (mut life, refused) = deriving(notes("1.0.0")).await;
    let path = format!("{TENANT}/deploymentintentgroups/notes");
    let mut planned = notes("2.0.0");
    planned[2]["spec"]["desiredState"] = json!("Planned");
    for object in &planned {
        life.put(object);
    }
    life.settle().await;
    let pending = life.rig.hub.object(&path).unwrap()["status"]["pending"].clone();
    assert_eq!(pending["gains"], json!(["create NetworkPolicies"]), "{pending:#}");
    assert!(!resources(&life, "a").contains("networkpolicies"));
    // What is carried out has this digest, and gains nothing any more.
    for object in &notes("2.0.0") {
        life.put(object);
    }
    life.settle().await;
    let status = life.rig.hub.object(&path).unwrap()["status"].clone();
    assert_eq!((&status["digest"], &status["pending"]), (&pending["digest"], &Value::Null));
    assert_eq!(*refused.lock(), BTreeSet::new());
}

#[tokio::test(start_paused = true)]
async fn rights_that_do_not_come_are_waited_for_and_nothing_is_applied() {
    let mut all = objects();
    all.push(cloud(&json!([{"name": "own", "derived": true}])));
    let mut life = Life::with(&all);
    for edge in life.edges.values() {
        edge.faults(Some(Arc::new(|request: &Request, _| {
            let bound = request.path.as_str().ends_with("/rolebindings/emco-default-own");
            (bound && request.method == Method::Patch).then(|| {
                let (code, reason) = (403, "Forbidden".to_owned());
                let message = "nobody binds anything here".to_owned();
                Fault::Refuse(ApiError::Status {
                    code,
                    reason,
                    message,
                    retry_after: None,
                    causes: Vec::new(),
                })
            })
        })));
    }
    for _ in 0..4 {
        life.next().await;
    }
    assert_eq!(life.edges["a"].object("/api/v1/namespaces/team-a/configmaps/page"), None);
    let dig = life.dig()["status"].to_string();
    let words = "waits for its logical cloud to let system:serviceaccount:team-a:emco-default create configmaps there";
    assert!(dig.contains(words), "{dig}");
    for edge in life.edges.values() {
        edge.faults(None);
    }
    life.settle().await;
    assert_eq!(life.says("Ready").0, "True", "{:?}", life.says("Ready"));
}

#[tokio::test(start_paused = true)]
async fn a_death_at_any_write_leaves_neither_too_few_rights_nor_too_many() {
    let put =
        |version: &'static str| move |life: &Life| notes(version).iter().for_each(|object| life.put(object));
    let first = async || deriving(notes("1.0.0")).await.0;
    // Another process begins, and what nobody names is collected.
    let over = async |life: &mut Life| {
        life.restart().await;
        rest(life).await;
        life.end().await;
        life.collect().await;
    };
    at_every_write(first, put("2.0.0"), over, 8).await;
    let second = async || deriving(notes("2.0.0")).await.0;
    at_every_write(second, put("1.0.0"), over, 8).await;
}
