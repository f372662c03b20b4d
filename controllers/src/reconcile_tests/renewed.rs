//! Tokens that `kubectl emco cluster add` made are renewed by the operator, and no other credentials are.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::rig::*;
use crate::api::world::Clock as _;
use crate::api::{ApiError, ApiServerExt as _, Method};
use crate::memory::{Fault, MemoryServer};
use crate::remote::kubeconfig::claims::{self, Bound};
use crate::remote::kubeconfig::token_of;

const A: &str = "/apis/emco.io/v1alpha1/namespaces/acme/clusters/a";
const SECRET: &str = "/api/v1/namespaces/acme/secrets/a";
const ACCOUNT: &str = "/api/v1/namespaces/emco-system/serviceaccounts/emco-hub";
const MINUTE: u64 = 60;
const DAY: u64 = 86_400;
const YEAR: u64 = 365 * DAY;

/// A cluster with the account, registered by a manager with a token of a life in seconds.
struct Stage {
    rig: Rig,
    edge: MemoryServer,
}

impl Stage {
    async fn new(manager: &str, life: u64) -> Self {
        let (rig, edge) = (Rig::new(), MemoryServer::new());
        edge.put("test", &namespace("emco-system", &json!({})));
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": "emco-hub", "namespace": "emco-system"}});
        edge.put("test", &account);
        rig.attach("a", &edge);
        rig.answers("a", &edge.uid());
        let mut stage = Self { rig, edge };
        let secret = stage.secret(life);
        for object in world().iter().filter(|object| object["kind"] != "Secret") {
            stage.rig.hub.put("test", object);
        }
        stage.rig.hub.put(manager, &secret);
        stage.pass(0).await;
        assert_eq!(stage.valid().1, "Accepted");
        stage
    }

    /// With a token that is issued now.
    fn secret(&self, life: u64) -> Value {
        let now = self.rig.clock.now_ms() / 1000;
        let claims = json!({
            "iat": now, "exp": now + i64::try_from(life).unwrap(), "aud": ["https://edge"],
            "sub": "system:serviceaccount:emco-system:emco-hub",
            "kubernetes.io": {
                "serviceaccount": {"name": "emco-hub", "uid": self.edge.object(ACCOUNT).unwrap()["metadata"]["uid"]},
                "secret": {"name": "emco-hub-token-x", "uid": "of-it"},
            },
        });
        let token = format!("head.{}.signature", URL_SAFE_NO_PAD.encode(claims.to_string()));
        let mut secret = secret_with("a", &token);
        secret["type"] = json!("Opaque");
        secret["metadata"]["annotations"] = json!({"emco.io/token-duration": format!("{life}s")});
        secret
    }

    /// Time passes, and all is done that is to be done then.
    async fn pass(&mut self, seconds: u64) {
        self.rig.clock.forward(Duration::from_secs(seconds));
        self.edge.set_now(self.rig.clock.now_ms() / 1000);
        self.rig.settle().await;
    }

    /// What is stored on the hub.
    fn stored(&self) -> Bound {
        claims::bound(&token_of(&self.kubeconfig()).unwrap()).unwrap()
    }

    fn kubeconfig(&self) -> Vec<u8> {
        let secret = self.rig.hub.object(SECRET).unwrap();
        STANDARD.decode(secret["data"]["kubeconfig"].as_str().unwrap()).unwrap()
    }

    /// How often the cluster was asked for a token since the last look.
    fn asked(&self) -> usize {
        self.edge.take_seen().iter().filter(|seen| seen.path.ends_with("/token")).count()
    }

    fn valid(&self) -> (String, String, String) {
        let object = self.rig.hub.object(A).unwrap();
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = conditions.into_iter().find(|c| c["type"] == "CredentialsValid").unwrap_or_default();
        let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
        (text("status"), text("reason"), text("message"))
    }

    fn events(&self, reason: &str) -> usize {
        let objects = self.rig.hub.objects();
        objects.values().filter(|o| o["kind"] == "Event" && o["reason"] == reason).count()
    }

    /// "Do it now".
    async fn now(&mut self, text: &str) {
        let patch = json!({"metadata": {"annotations": {"emco.io/requestedAt": text}}});
        self.rig.hub.merge(A, &patch).await.unwrap();
        self.rig.settle().await;
    }

    /// From now on the cluster refuses what ends so. Answers how often it did, from one look to the next.
    fn refuses(&self, path: &'static str, code: u16) -> impl Fn() -> usize + use<> {
        let refused = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&refused);
        self.edge.faults(Some(Arc::new(move |request, _| {
            request.path.as_str().ends_with(path).then(|| {
                counted.fetch_add(1, Ordering::Relaxed);
                Fault::Refuse(status(code, "emco-hub may not"))
            })
        })));
        move || refused.swap(0, Ordering::Relaxed)
    }

    /// The next write of the Secret's data goes wrong.
    fn next_write(&self, wrong: impl Fn() -> Option<Fault> + Send + Sync + 'static) {
        let done = AtomicBool::new(false);
        self.rig.hub.faults(Some(Arc::new(move |request, _| {
            let writes = request.method == Method::Patch && request.path.as_str() == SECRET;
            if writes && !done.swap(true, Ordering::Relaxed) { wrong() } else { None }
        })));
    }
}

fn status(code: u16, message: &str) -> ApiError {
    ApiError::Status {
        code,
        reason: String::new(),
        message: message.to_owned(),
        retry_after: None,
        causes: Vec::new(),
    }
}

#[tokio::test]
async fn a_token_is_renewed_in_time_and_at_rest_nothing_is_written() {
    let mut stage = Stage::new("emco-cli", 600).await;
    let (first, file) = (stage.stored(), String::from_utf8(stage.kubeconfig()).unwrap());
    stage.pass(350).await;
    assert_eq!((stage.stored(), stage.asked()), (first.clone(), 0), "it is too early");
    stage.pass(49).await;
    let second = stage.stored();
    assert_eq!(stage.asked(), 1);
    assert_eq!(second.ends.as_second(), stage.rig.clock.now_ms() / 1000 + 600);
    assert_eq!((&second.audiences, &second.secret), (&first.audiences, &first.secret));
    // Nothing but the token is another one.
    let now = String::from_utf8(stage.kubeconfig()).unwrap();
    let without = |text: &str| text.replace(token_of(text.as_bytes()).unwrap().as_str(), "");
    assert_eq!(without(&now), without(&file));
    let expires = stage.rig.hub.object(A).unwrap()["status"]["credentials"]["expires"].clone();
    assert_eq!(expires.as_str().unwrap().parse::<jiff::Timestamp>().unwrap(), second.ends);
    assert_eq!((stage.valid().1.as_str(), stage.events("EndSoon")), ("Accepted", 0));
    stage.rig.restart();
    stage.rig.hub.take_seen();
    stage.rig.round().await;
    assert!(stage.rig.writes().is_empty() && stage.asked() == 0, "a restart renews nothing");
    stage.pass(399).await;
    assert!(stage.asked() == 1 && stage.stored().ends > second.ends, "and so on");
}

#[tokio::test]
async fn a_cluster_that_refuses_is_asked_seldom_and_the_cure_is_said() {
    let mut stage = Stage::new("emco-cli", YEAR).await;
    let first = stage.stored();
    let refused = stage.refuses("/token", 403);
    stage.pass(244 * DAY).await;
    let (value, reason, message) = stage.valid();
    assert_eq!((value.as_str(), reason.as_str()), ("True", "RenewalRefused"));
    assert!(message.contains("the cluster refuses: emco-hub may not"), "{message}");
    assert!(message.contains("kubectl emco cluster rotate acme/a --context CONTEXT"), "{message}");
    assert_eq!((refused(), stage.events("RenewalRefused")), (1, 1));
    assert_eq!(stage.rig.ready(A).0, "True", "it still works");
    stage.rig.hub.take_seen();
    for (seconds, asked) in [(4 * MINUTE, 0), (MINUTE, 1), (9 * MINUTE, 0), (MINUTE, 1)] {
        stage.rig.clock.forward(Duration::from_secs(seconds));
        stage.rig.round().await;
        assert_eq!(refused(), asked);
    }
    assert!(stage.rig.writes().is_empty(), "what is said already is not written again");
    stage.now("1").await;
    assert_eq!(refused(), 1, "somebody asks for another try");
    stage.pass(108 * DAY).await;
    let (_, reason, message) = stage.valid();
    assert_eq!(reason, "EndSoon");
    assert!(message.contains("could not be renewed (the cluster refuses: emco-hub may not)"), "{message}");
    // The right is there now.
    stage.edge.faults(None);
    stage.now("2").await;
    assert_eq!(stage.valid().1, "Accepted");
    assert!(stage.stored().ends > first.ends);
}

#[tokio::test]
async fn whoever_replaces_the_credentials_at_the_same_moment_wins() {
    let mut stage = Stage::new("emco-cli", 600).await;
    stage.rig.clock.forward(Duration::from_secs(399));
    let (hub, theirs) = (stage.rig.hub.clone(), stage.secret(YEAR));
    stage.next_write(move || {
        hub.put("emco-cli", &theirs);
        None
    });
    stage.pass(0).await;
    let stored = stage.stored();
    assert_eq!(stored.ends.duration_since(stored.issued).as_secs(), i64::try_from(YEAR).unwrap());
    assert_eq!(stage.asked(), 1);
    assert_eq!(stage.valid().1, "Accepted");
}

#[tokio::test]
async fn a_write_whose_answer_is_lost_is_not_made_twice() {
    let mut stage = Stage::new("emco-cli", 600).await;
    let first = stage.stored();
    stage.next_write(|| Some(Fault::LoseAnswer));
    stage.pass(399).await;
    stage.pass(10).await;
    assert!(stage.asked() == 1 && stage.stored().ends > first.ends);
    assert_eq!(stage.valid().1, "Accepted");
}

#[tokio::test]
async fn a_process_that_dies_before_it_stores_the_token_has_another_one_issued() {
    let mut stage = Stage::new("emco-cli", 600).await;
    let first = stage.stored();
    stage.next_write(|| Some(Fault::Refuse(status(503, "the hub is busy"))));
    stage.pass(399).await;
    assert_eq!((stage.stored(), stage.asked()), (first.clone(), 1));
    stage.rig.restart();
    stage.pass(0).await;
    assert!(stage.asked() == 1 && stage.stored().ends > first.ends);
}

#[tokio::test]
async fn a_cluster_that_is_away_is_told_of_and_renews_when_it_is_back() {
    let mut stage = Stage::new("emco-cli", 600).await;
    let first = stage.stored();
    stage.rig.fails("a", "Timeout");
    stage.pass(590).await;
    assert_eq!((stage.stored(), stage.asked()), (first.clone(), 0));
    let (value, reason, message) = stage.valid();
    assert_eq!((value.as_str(), reason.as_str()), ("True", "EndSoon"));
    assert!(
        message.contains("could not be renewed (the cluster cannot be worked with: Timeout)"),
        "{message}"
    );
    assert_eq!(stage.events("EndSoon"), 1);
    stage.rig.returns("a", &stage.edge.uid());
    stage.pass(0).await;
    assert!(stage.asked() == 1 && stage.stored().ends > first.ends);
    assert_eq!(stage.valid().1, "Accepted");
}

#[tokio::test]
async fn credentials_that_somebody_else_keeps_are_never_touched() {
    let mut stage = Stage::new("argocd-controller", 600).await;
    let first = stage.stored();
    stage.pass(590).await;
    assert_eq!((stage.stored(), stage.asked()), (first, 0));
    let (_, reason, message) = stage.valid();
    assert_eq!(reason, "EndSoon");
    assert!(!message.contains("could not be renewed"), "{message}");
}

#[tokio::test]
async fn a_token_that_the_cluster_does_not_accept_is_not_stored() {
    let mut stage = Stage::new("emco-cli", YEAR).await;
    let first = stage.stored();
    let refused = stage.refuses("/api/v1/namespaces", 401);
    stage.pass(244 * DAY).await;
    assert_eq!((stage.stored(), refused()), (first, 1));
    let (_, reason, message) = stage.valid();
    assert_eq!(reason, "RenewalRefused");
    assert!(message.contains("with the new token, the cluster refuses"), "{message}");
}

#[tokio::test]
async fn another_cluster_behind_the_name_is_not_asked_for_a_token() {
    let mut stage = Stage::new("emco-cli", 600).await;
    stage.rig.answers("a", "uid-other");
    stage.pass(590).await;
    assert_eq!(stage.rig.ready(A).1, "ClusterReplaced");
    assert_eq!(stage.asked(), 0);
    assert!(stage.valid().2.contains("ClusterReplaced"), "{:?}", stage.valid());
}
