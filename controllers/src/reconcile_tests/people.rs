//! Credentials of a logical cloud's person, on clusters in memory that sign as they are told.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_engine::people::{self, Kind};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::life::*;
use super::rig::emco;
use super::shop::objects;
use crate::api::Method;
use crate::api::world::Clock as _;
use crate::memory::{Fault, MemoryServer};

mod divided;
mod ended;
mod refused;
mod signer;

use signer::{Mode, Signs, signer};

const CLOUD: &str = "/apis/emco.io/v1alpha1/namespaces/team-a/logicalclouds/default";
const SECRETS: &str = "/api/v1/namespaces/team-a/secrets";
const HOUR: Duration = Duration::from_hours(1);

struct Stage {
    life: Life,
    modes: BTreeMap<&'static str, Mode>,
    /// Requests that were made on any cluster.
    made: Arc<Mutex<usize>>,
}

fn cloud(more: &Value) -> Value {
    let mut spec = json!({"level": "Standard"});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    emco("LogicalCloud", Some("team-a"), "default", &spec)
}

fn of_type(type_: &str) -> Value {
    cloud(&json!({"user": {"name": "ann"}, "credentials": {"type": type_, "duration": "24h"}}))
}

impl Stage {
    fn signers(&self) {
        for (edge, mode) in &self.modes {
            signer(&self.life.edges[edge], &self.life.rig.clock, mode, &self.made);
        }
    }

    fn at_first(cloud: &Value) -> Self {
        let mut all = objects();
        all.push(cloud.clone());
        let modes = EDGES.map(|edge| (edge, Arc::new(Mutex::new(Signs::Well)))).into();
        let stage = Self { life: Life::with(&all), modes, made: Arc::default() };
        stage.signers();
        stage
    }

    async fn with(cloud: &Value) -> Self {
        let mut stage = Self::at_first(cloud);
        stage.life.settle().await;
        stage
    }

    fn set(&self, edge: &str, mode: Signs) {
        *self.modes[edge].lock() = mode;
    }

    /// Time passes, for the hub and the clusters.
    async fn after(&mut self, time: Duration) {
        self.life.rig.clock.forward(time);
        for edge in self.life.edges.values() {
            edge.set_now(self.life.rig.clock.now_ms() / 1000);
        }
        self.life.settle().await;
    }

    async fn restart(&mut self) {
        self.life.restart().await;
        self.signers();
        self.life.settle().await;
    }

    /// The keys of a Secret, decoded.
    fn secret(&self, name: &str) -> BTreeMap<String, String> {
        let secret = self.life.rig.hub.object(&format!("{SECRETS}/{name}")).unwrap_or_default();
        let data = secret["data"].as_object().cloned().unwrap_or_default();
        let decoded =
            |value: &Value| String::from_utf8(STANDARD.decode(value.as_str().unwrap()).unwrap()).unwrap();
        data.iter().map(|(key, value)| (key.clone(), decoded(value))).collect()
    }

    /// What the Secret says of each cluster.
    fn stored(&self) -> BTreeMap<String, people::Stored> {
        let all = self.secret("default-kubeconfig-0");
        all.into_iter().map(|(key, text)| (key, people::read(&text).unwrap())).collect()
    }

    /// Status, reason and message of the logical cloud.
    fn ready(&self) -> (String, String, String) {
        self.life.rig.ready(CLOUD)
    }

    fn status(&self) -> Value {
        self.life.rig.hub.object(CLOUD).unwrap()["status"].clone()
    }

    /// Requests that are on clusters.
    fn left(&self) -> usize {
        self.life.edges.values().map(|edge| edge.of_kind("CertificateSigningRequest").len()).sum()
    }

    fn subjects(&self, edge: &str) -> String {
        let path = "/apis/rbac.authorization.k8s.io/v1/namespaces/team-a/rolebindings/emco-default";
        self.life.edges[edge].object(path).unwrap()["subjects"].to_string()
    }

    fn keys(&self) -> Vec<String> {
        self.stored().into_keys().collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_person_gets_a_kubeconfig_of_each_cluster_and_one_of_all() {
    let stage = Stage::with(&of_type("ClientCertificate")).await;
    assert_eq!(
        (stage.ready().0.as_str(), stage.ready().1.as_str()),
        ("True", "Ready"),
        "{:?}",
        stage.ready()
    );
    let stored = stage.stored();
    assert_eq!(stage.keys(), ["acme.a", "acme.b"]);
    for one in stored.values() {
        assert_eq!((one.user.as_str(), one.kind), ("emco:team-a:default:ann", Kind::Certificate));
        assert_eq!(one.expires.duration_since(one.issued).as_hours(), 24);
    }
    let merged = &stage.secret("default-kubeconfig")["kubeconfig"];
    assert!(merged.contains("name: acme.a\n") && merged.contains("name: acme.b\n"), "{merged}");
    let status = stage.status();
    assert_eq!(status["kubeconfigs"]["secretPrefix"], "default-kubeconfig");
    let first = stored.values().map(|one| one.issued).min().unwrap();
    let renewed: k8s_openapi::jiff::Timestamp =
        status["kubeconfigs"]["renewAt"].as_str().unwrap().parse().unwrap();
    assert!((14..=16).contains(&renewed.duration_since(first).as_hours()), "{renewed}");
    assert!(stage.subjects("a").contains("emco:team-a:default:ann"), "{}", stage.subjects("a"));
    assert_eq!((stage.left(), *stage.made.lock()), (0, 2));
    let secret = stage.life.rig.hub.object(&format!("{SECRETS}/default-kubeconfig-0")).unwrap();
    assert_eq!(secret["metadata"]["ownerReferences"][0]["name"], "default");
}

/// Secrets hold the keys, and nothing else does: no other object of the hub, and nothing on clusters.
#[tokio::test(start_paused = true)]
async fn a_key_is_in_secrets_alone() {
    let stage = Stage::with(&of_type("ClientCertificate")).await;
    let config: Value = serde_yaml::from_str(&stage.secret("default-kubeconfig-0")["acme.a"]).unwrap();
    let key = config["users"][0]["user"]["client-key-data"].as_str().unwrap().to_owned();
    let pem = String::from_utf8(STANDARD.decode(&key).unwrap()).unwrap();
    let body = pem.lines().nth(1).unwrap().to_owned();
    let everything =
        stage.life.rig.hub.objects().into_iter().filter(|(_, object)| object["kind"] != "Secret");
    let clusters = stage.life.edges.values().flat_map(MemoryServer::objects);
    for (name, object) in everything.chain(clusters) {
        let text = object.to_string();
        assert!(!text.contains(&key) && !text.contains(&body), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_signs_nothing_gives_a_token_and_is_not_asked_again() {
    let mut stage = Stage::at_first(&of_type("Auto"));
    stage.set("a", Signs::Nothing);
    stage.life.settle().await;
    assert_eq!(stage.ready().0, "True", "{:?}", stage.ready());
    let kinds = |stage: &Stage| -> Vec<Kind> { stage.stored().values().map(|one| one.kind).collect() };
    assert_eq!(kinds(&stage), [Kind::Token, Kind::Certificate]);
    let (before, made) = (stage.stored(), *stage.made.lock());
    stage.restart().await;
    assert_eq!(stage.stored(), before);
    stage.after(17 * HOUR).await;
    assert_eq!(kinds(&stage), [Kind::Token, Kind::Certificate]);
    assert!(stage.stored()["acme.a"].issued > before["acme.a"].issued);
    assert_eq!(*stage.made.lock(), made + 1, "cluster b alone");
    // Whoever wants certificates now has the cluster asked for one again.
    stage.set("a", Signs::Well);
    stage.life.put(&of_type("ClientCertificate"));
    stage.life.settle().await;
    assert_eq!(kinds(&stage), [Kind::Certificate, Kind::Certificate]);
}

#[tokio::test(start_paused = true)]
async fn a_request_of_a_process_that_died_is_made_again_with_another_key() {
    let mut stage = Stage::with(&of_type("ClientCertificate")).await;
    // As a process leaves it that dies while it waits.
    let name = {
        let hash = stage.life.rig.hub.object(&format!("{SECRETS}/default-kubeconfig-0")).unwrap();
        hash["metadata"]["labels"]["emco.io/owner"].as_str().unwrap().to_owned()
    };
    let left = json!({"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {"name": format!("emco-user-{name}"), "labels": {"emco.io/credential": name}}, "spec": {}});
    stage.life.edges["a"].put("emco", &left);
    stage.after(17 * HOUR).await;
    assert_eq!((stage.left(), stage.ready().0.as_str()), (0, "True"));
    // One that is somebody else's is left alone.
    let theirs = json!({"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {"name": format!("emco-user-{name}")}, "spec": {}});
    stage.life.edges["a"].put("somebody", &theirs);
    stage.after(17 * HOUR).await;
    assert_eq!((stage.left(), stage.ready().1.as_str()), (1, "Conflict"), "{:?}", stage.ready());
}

#[tokio::test(start_paused = true)]
async fn a_process_that_dies_before_it_stores_has_another_credential_issued() {
    let mut stage = Stage::at_first(&of_type("ClientCertificate"));
    stage.life.hub_faults(Arc::new(|request, _| {
        let secret = request.path.contains("/team-a/secrets") && request.method != Method::Get;
        secret.then(|| Fault::Refuse(lost()))
    }));
    for _ in 0..8 {
        stage.life.rig.round().await;
        stage.life.tell().await;
    }
    assert!(*stage.made.lock() >= 2 && stage.keys().is_empty());
    stage.restart().await;
    assert_eq!((stage.keys().len(), stage.left(), stage.ready().0.as_str()), (2, 0, "True"));
}

#[tokio::test(start_paused = true)]
async fn credentials_are_renewed_in_time_and_at_rest_nothing_is_written() {
    let mut stage = Stage::with(&of_type("ClientCertificate")).await;
    let (before, renew_at) = (stage.stored(), stage.status()["kubeconfigs"]["renewAt"].clone());
    stage.life.rig.clock.forward(10 * HOUR);
    let versions = versions(&stage.life.rig.hub);
    stage.life.settle().await;
    assert_eq!(versions, super::life::versions(&stage.life.rig.hub));
    stage.after(7 * HOUR).await;
    let after = stage.stored();
    for (cluster, one) in &after {
        assert!(one.expires > before[cluster].expires, "{cluster}");
    }
    assert_ne!(stage.status()["kubeconfigs"]["renewAt"], renew_at);
    assert_eq!((*stage.made.lock(), stage.left()), (4, 0));
    let merged = &stage.secret("default-kubeconfig")["kubeconfig"];
    let renewed = after["acme.a"].expires.to_string();
    assert!(merged.contains(&renewed), "{renewed} is not in\n{merged}");
}

#[tokio::test(start_paused = true)]
async fn a_suspended_project_asks_no_cluster() {
    let mut stage = Stage::with(&of_type("ClientCertificate")).await;
    stage.life.put(&emco(
        "Project",
        None,
        "team-a",
        &json!({"suspend": true, "logicalCloud": {"level": "Admin"}}),
    ));
    stage.life.settle().await;
    stage.after(17 * HOUR).await;
    assert_eq!(*stage.made.lock(), 2);
    stage.life.put(&emco("Project", None, "team-a", &json!({"logicalCloud": {"level": "Admin"}})));
    stage.life.settle().await;
    assert_eq!(*stage.made.lock(), 4);
}
