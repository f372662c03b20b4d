//! Namespaces that were made, then released because they held something of others, and are wanted again.

use std::collections::BTreeMap;
use std::sync::Arc;

use emco_crds::deployment_intent_group::sync::ConflictPolicy;
use emco_engine::identity::ClusterId;
use emco_engine::marks::{self, made};
use emco_engine::set::ManifestSet;
use serde_json::{Value, json};

use super::deaths;
use super::rig::*;
use crate::api::{ApiError, ApiServerExt as _};
use crate::memory::Fault;

const OWN: &str = "/api/v1/namespaces/own";
const DATA: &str = "/api/v1/namespaces/own/persistentvolumeclaims/data";

fn space(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// A namespace, and something in it.
fn wanted() -> BTreeMap<ClusterId, Vec<Arc<ManifestSet>>> {
    let mut within = config("c", "1");
    within["metadata"]["namespace"] = json!("own");
    on("a", &[app("web", vec![space("own"), within])])
}

/// What a StatefulSet leaves.
fn leave_data(rig: &Rig) {
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "own"}});
    rig.edge("a").put("statefulset", &claim);
}

/// An engine that made the namespace, in which there is data by now.
async fn with_data() -> Rig {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    rig.target(&wanted()).await;
    rig.until_complete("a").await;
    leave_data(&rig);
    rig
}

/// One that released it.
async fn released() -> Rig {
    let rig = with_data().await;
    rig.target(&nowhere()).await;
    rig.until_complete("a").await;
    assert_eq!(rig.ours("a"), Vec::<String>::new());
    rig
}

fn live(rig: &Rig) -> Value {
    rig.edge("a").object(OWN).unwrap()
}

fn uid(rig: &Rig) -> String {
    live(rig)["metadata"]["uid"].as_str().unwrap().to_owned()
}

/// What it carries in place of its proof.
async fn forge(rig: &Rig, proof: &str) {
    let forged = json!({"metadata": {"annotations": {"emco.io/made-for": proof}}});
    rig.edge("a").merge(OWN, &forged).await.unwrap();
}

/// The namespace is wanted, is not taken, and the row says so in these words.
async fn is_refused(rig: &Rig, words: &str) {
    rig.target(&wanted()).await;
    let error = rig.until_reason("a", "NotOurs").await.error.unwrap();
    assert_eq!(error.resource.as_deref(), Some("Namespace/own"));
    assert!(error.message.contains(words), "{}", error.message);
    assert!(!error.message.contains("delete"), "what it holds would be lost: {}", error.message);
    assert_eq!(marks::owner_of(&live(rig)), None);
}

/// It is the very namespace, ours again, with its data.
fn is_taken(rig: &Rig, uid_before: &str, how: &str) {
    assert_eq!(marks::owner_of(&live(rig)), Some(rig.hash.as_str()), "{how}");
    assert_eq!(uid(rig), uid_before, "{how}");
    assert!(rig.edge("a").object(DATA).is_some(), "{how}");
    assert_eq!(rig.ours("a"), ["configmaps./own/c", "namespaces.//own"], "{how}");
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_was_released_is_taken_again_and_goes_when_it_is_empty() {
    let rig = released().await;
    let before = uid(&rig);
    assert_eq!(made::proof_on(&live(&rig)), Some(&*made::proof(&KEY, &before, &rig.hash, "")));
    rig.target(&wanted()).await;
    rig.until_complete("a").await;
    is_taken(&rig, &before, "by its proof");
    let row = rig.row("a").unwrap();
    assert_eq!((row.error, row.drift), (None, None), "nobody changed anything of ours");
    rig.edge("a").remove(DATA);
    rig.target(&nowhere()).await;
    rig.until_complete("a").await;
    assert_eq!(rig.edge("a").object(OWN), None, "it was never somebody else's");
}

#[tokio::test(start_paused = true)]
async fn a_namespace_is_released_and_taken_again_as_often_as_it_is_wanted() {
    let rig = released().await;
    let before = uid(&rig);
    for round in ["second", "third"] {
        rig.target(&wanted()).await;
        rig.until_complete("a").await;
        is_taken(&rig, &before, round);
        rig.target(&nowhere()).await;
        rig.until_complete("a").await;
        assert_eq!(marks::owner_of(&live(&rig)), None, "{round}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_proof_that_this_installation_did_not_make_for_the_owner_is_refused() {
    let forgeries: [fn(&str, &str) -> String; 4] = [
        |_, _| "0123456789abcdef0123456789abcdef".to_owned(),
        // Of another installation, another owner, and another tenant that had the names.
        |uid, hash| made::proof(&[9; 32], uid, hash, ""),
        |uid, _| made::proof(&KEY, uid, "another owner", ""),
        |uid, hash| made::proof(&KEY, uid, hash, "another tenant"),
    ];
    for forged in forgeries {
        let rig = released().await;
        forge(&rig, &forged(&uid(&rig), &rig.hash)).await;
        is_refused(&rig, "its emco.io/made-for is not for this owner").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_namespace_made_anew_with_a_copied_proof_is_refused() {
    let rig = released().await;
    let copied = made::proof_on(&live(&rig)).unwrap().to_owned();
    rig.edge("a").remove(DATA);
    rig.edge("a").remove(OWN);
    rig.edge("a").put("somebody", &space("own"));
    forge(&rig, &copied).await;
    is_refused(&rig, "its emco.io/made-for is not for this owner").await;
}

#[tokio::test(start_paused = true)]
async fn whoever_is_given_the_names_of_a_tenant_later_gets_nothing_of_it() {
    let rig = released().await;
    "another".clone_into(&mut rig.policy.tenant.lock());
    is_refused(&rig, "its emco.io/made-for is not for this owner").await;
}

#[tokio::test(start_paused = true)]
async fn a_released_namespace_that_others_took_since_is_theirs() {
    let rig = released().await;
    let helm = json!({"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "own"});
    rig.edge("a").merge(OWN, &json!({"metadata": {"annotations": helm}})).await.unwrap();
    is_refused(&rig, "Helm release own/web has it").await;
    let rig = released().await;
    rig.edge("a").merge(OWN, &json!({"metadata": {"labels": {"emco.io/owner": "other"}}})).await.unwrap();
    rig.target(&wanted()).await;
    rig.until_reason("a", "Conflict").await;
    assert_eq!(marks::owner_of(&live(&rig)), Some("other"));
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_was_there_before_gets_no_proof() {
    let rig = Rig::new(&["a"]);
    rig.edge("a").put("somebody", &space("own"));
    rig.conflicts(ConflictPolicy::Adopt);
    rig.start().await;
    rig.target(&wanted()).await;
    rig.until_complete("a").await;
    rig.target(&nowhere()).await;
    rig.until_complete("a").await;
    assert_eq!(made::proof_on(&live(&rig)), None);
    rig.conflicts(ConflictPolicy::Fail);
    is_refused(&rig, "nothing on it says that EMCO made it for this owner").await;
}

#[tokio::test(start_paused = true)]
async fn a_death_at_any_write_of_a_release_leaves_the_proof() {
    for death in deaths::all(2, 3) {
        let rig = with_data().await;
        let story = async {
            rig.target(&nowhere()).await;
            rig.until_complete("a").await;
        };
        death.strikes(&rig, story).await;
        rig.until_complete("a").await;
        let proof = made::proof(&KEY, &uid(&rig), &rig.hash, "");
        assert_eq!(made::proof_on(&live(&rig)), Some(&*proof), "{death:?}");
        assert_eq!(rig.ours("a"), Vec::<String>::new(), "{death:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_death_at_any_write_of_a_return_ends_with_the_namespace_taken() {
    for death in deaths::all(2, 3) {
        let rig = released().await;
        let before = uid(&rig);
        let story = async {
            rig.target(&wanted()).await;
            rig.until_complete("a").await;
        };
        death.strikes(&rig, story).await;
        rig.until_complete("a").await;
        is_taken(&rig, &before, &format!("{death:?}"));
    }
}

/// Puts what tools put into namespaces into all of them but these.
fn put_everywhere(rig: &Rig, except: &[&str]) {
    let edge = rig.edge("a");
    for space in edge.of_kind("Namespace") {
        let name = space["metadata"]["name"].as_str().unwrap();
        if name.starts_with("kube-") || except.contains(&name) {
            continue;
        }
        for (kind, of) in [("ConfigMap", "istio-ca-root-cert"), ("ServiceAccount", "builder")] {
            let object = json!({"apiVersion": "v1", "kind": kind,
                "metadata": {"name": of, "namespace": name}});
            edge.put("mesh", &object);
        }
    }
}

/// The namespace was made on a cluster with others, and tools put things into all but these.
async fn beside_others(except: &[&str]) -> Rig {
    let rig = Rig::new(&["a"]);
    for other in ["till", "kitchen"] {
        rig.edge("a").put("somebody", &space(other));
    }
    rig.start().await;
    rig.target(&wanted()).await;
    rig.until_complete("a").await;
    put_everywhere(&rig, except);
    rig.target(&nowhere()).await;
    rig.until_complete("a").await;
    rig
}

#[tokio::test(start_paused = true)]
async fn what_every_namespace_of_a_cluster_has_keeps_none() {
    let rig = beside_others(&[]).await;
    rig.until("it goes", |rig| rig.edge("a").object(OWN).is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn what_some_namespaces_of_a_cluster_have_keeps_one() {
    let rig = beside_others(&["till"]).await;
    assert_eq!(marks::owner_of(&live(&rig)), None, "it is released");
    assert!(rig.edge("a").object(&format!("{OWN}/configmaps/istio-ca-root-cert")).is_some());
}

#[tokio::test(start_paused = true)]
async fn what_every_namespace_has_counts_where_others_cannot_be_seen() {
    let rig = with_data().await;
    rig.edge("a").remove(DATA);
    for other in ["till", "kitchen"] {
        rig.edge("a").put("somebody", &space(other));
    }
    put_everywhere(&rig, &[]);
    rig.edge("a").faults(Some(Arc::new(|request, _| {
        let everywhere = request.path.ends_with("/api/v1/configmaps");
        let selected = request.query.iter().any(|(name, _)| *name == "fieldSelector");
        (everywhere && selected).then(|| {
            Fault::Refuse(ApiError::Status {
                code: 403,
                reason: "Forbidden".to_owned(),
                message: "configmaps is forbidden".to_owned(),
                retry_after: None,
                causes: Vec::new(),
            })
        })
    })));
    rig.target(&nowhere()).await;
    rig.until_complete("a").await;
    assert_eq!(marks::owner_of(&live(&rig)), None, "it is released");
}
