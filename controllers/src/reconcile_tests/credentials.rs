//! Credentials that end, and the rights by which they are read.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;

use super::log::Log;
use super::rig::*;
use crate::api::account::Account;
use crate::api::world::Clock as _;
use crate::api::{ApiError, ApiServerExt as _, Method};
use crate::memory::Fault;
use crate::object::context::Outcome;
use crate::tenancy::namespace_access;

const A: &str = "/apis/emco.io/v1alpha1/namespaces/acme/clusters/a";
const DAY: Duration = Duration::from_hours(24);

/// A token of this life, as service accounts have them.
fn token(begins: i64, ends: i64) -> String {
    let claims = json!({"iat": begins, "exp": ends}).to_string();
    format!("head.{}.signature", URL_SAFE_NO_PAD.encode(claims))
}

fn valid(rig: &Rig) -> (String, String, String) {
    let object = rig.hub.object(A).unwrap();
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.into_iter().find(|c| c["type"] == "CredentialsValid").unwrap_or_default();
    let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"), text("message"))
}

fn warnings(rig: &Rig) -> usize {
    let objects = rig.hub.objects();
    objects.values().filter(|o| o["kind"] == "Event" && o["reason"] == "EndSoon").count()
}

async fn again(rig: &Rig) -> Outcome {
    crate::reconcile::cluster::reconcile(&rig.ctx, "acme", "a").await.unwrap()
}

#[tokio::test]
async fn the_end_of_a_token_is_told_two_weeks_before_once_and_after_it() {
    let mut rig = Rig::new();
    rig.answers("a", "uid-a");
    let now = rig.clock.now_ms() / 1000;
    let month = 30 * 86_400;
    for object in world() {
        rig.hub.put("test", &object);
    }
    rig.hub.put("test", &secret_with("a", &token(now - month, now + month)));
    rig.settle().await;
    assert_eq!(valid(&rig).1, "Accepted");
    let ends = rig.hub.object(A).unwrap()["status"]["credentials"]["expires"].clone();
    assert_eq!(
        ends.as_str().and_then(|text| text.parse::<jiff::Timestamp>().ok()).unwrap().as_second(),
        now + month
    );
    assert_eq!(again(&rig).await, Outcome::After(Duration::from_hours(12)), "the clock is what brings it");
    rig.clock.forward(DAY * 15);
    let Outcome::After(left) = again(&rig).await else { panic!("nobody would look again") };
    assert!(left > Duration::from_hours(11), "{left:?}");
    rig.clock.forward(DAY);
    rig.settle().await;
    let (status, reason, message) = valid(&rig);
    assert_eq!((status.as_str(), reason.as_str()), ("True", "EndSoon"));
    assert!(
        message.contains("cluster rotate acme/a --context CONTEXT") && message.contains("Secret a"),
        "{message}"
    );
    assert_eq!(rig.ready(A).0, "True", "it still works");
    assert_eq!(warnings(&rig), 1);
    rig.clock.forward(DAY);
    rig.settle().await;
    assert_eq!(warnings(&rig), 1, "once");
    // It is over: the server says no more than that it does not know the token.
    rig.clock.forward(DAY * 20);
    rig.fails("a", "Unauthorized");
    rig.settle().await;
    let (status, reason, message) = rig.ready(A);
    assert_eq!((status.as_str(), reason.as_str()), ("False", "Unauthorized"));
    assert!(
        message.starts_with("the credentials ended at") && message.contains("rotate acme/a"),
        "{message}"
    );
    // A fresh one ends the warning.
    let now = rig.clock.now_ms() / 1000;
    rig.hub.put("test", &secret_with("a", &token(now, now + month)));
    rig.answers("a", "uid-a");
    rig.settle().await;
    assert_eq!(valid(&rig).1, "Accepted");
}

fn forbidden() -> ApiError {
    ApiError::Status {
        code: 403,
        reason: "Forbidden".to_owned(),
        message: "secrets is forbidden".to_owned(),
        retry_after: None,
        causes: Vec::new(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_no_failure_while_the_hub_does_not_heed_a_new_binding_yet() {
    let mut rig = Rig::new();
    rig.answers("a", "uid-a");
    rig.ctx.account = Account::parse("system:serviceaccount:emco-system:emco-operator");
    for object in world() {
        rig.hub.put("test", &object);
    }
    // Nothing is known of the binding, and its owner was made long ago.
    rig.see();
    let comes = |rig: &Rig| namespace_access::comes(&rig.ctx, "acme", &forbidden());
    assert!(!comes(&rig));
    let old = Duration::from_secs(1_795_000_000 - 1_767_225_600);
    rig.clock.back(old);
    assert!(comes(&rig), "it is made any moment");
    rig.clock.set_forward(old);
    rig.settle().await;
    assert!(comes(&rig), "it was just made");
    let log = Log::begin();
    namespace_access::refused(&rig.ctx, "acme", &forbidden()).await;
    assert_eq!(log.take(), "");
    let missing = ApiError::Status {
        code: 404,
        reason: "NotFound".to_owned(),
        message: "secrets \"a\" not found".to_owned(),
        retry_after: None,
        causes: Vec::new(),
    };
    assert!(!namespace_access::comes(&rig.ctx, "acme", &missing));
    assert!(!namespace_access::comes(&rig.ctx, "elsewhere", &forbidden()));
    // A new object may be there before the owner of its namespace is.
    let mut object = emco_crds::Project::new("early", emco_crds::project::ProjectSpec::default());
    assert!(!namespace_access::comes_for(&rig.ctx, &object, &forbidden()));
    object.metadata.creation_timestamp = Some(emco_crds::fields::Time(rig.ctx.now()));
    assert!(namespace_access::comes_for(&rig.ctx, &object, &forbidden()));
    assert!(!namespace_access::comes_for(&rig.ctx, &object, &missing));
    let hour = k8s_openapi::jiff::SignedDuration::from_hours(1);
    object.metadata.creation_timestamp = Some(emco_crds::fields::Time(rig.ctx.now() + hour));
    assert!(!namespace_access::comes_for(&rig.ctx, &object, &forbidden()), "the hub's clock is ahead");
    tokio::time::advance(Duration::from_secs(10)).await;
    assert!(!comes(&rig), "it was heeded long ago");
    // The next process finds the binding: it gave itself nothing.
    rig.restart();
    rig.ctx.account = Account::parse("system:serviceaccount:emco-system:emco-operator");
    rig.round().await;
    assert!(!comes(&rig));
}

#[tokio::test(start_paused = true)]
async fn the_right_to_read_secrets_is_asked_for_once_and_made_again_when_it_was_taken_away() {
    let mut rig = Rig::new();
    rig.answers("a", "uid-a");
    rig.ctx.account = Account::parse("system:serviceaccount:emco-system:emco-operator");
    for object in world() {
        rig.hub.put("test", &object);
    }
    rig.settle().await;
    let binding = "/apis/rbac.authorization.k8s.io/v1/namespaces/acme/rolebindings/emco-operator";
    let asked =
        |rig: &Rig| rig.hub.take_seen().iter().filter(|seen| seen.path.contains("rolebindings")).count();
    assert!(rig.hub.object(binding).is_some());
    asked(&rig);
    rig.round().await;
    rig.round().await;
    assert_eq!(asked(&rig), 0, "what is known is not asked for");

    // Somebody takes it away, finalizer and all; a read is refused.
    rig.hub.remove(binding);
    tokio::time::advance(Duration::from_secs(10)).await;
    let refused = forbidden();
    namespace_access::refused(&rig.ctx, "acme", &refused).await;
    assert!(rig.hub.object(binding).is_some(), "it is made again");
    asked(&rig);
    namespace_access::refused(&rig.ctx, "elsewhere", &refused).await;
    assert_eq!(asked(&rig), 0, "nothing is given in namespaces that are not ours");

    // Another namespace of the name is another namespace.
    rig.round().await;
    rig.hub.remove(binding);
    rig.hub.remove("/api/v1/namespaces/acme");
    rig.hub.put("test", &namespace("acme", &json!({"emco.io/provider": "acme"})));
    asked(&rig);
    rig.round().await;
    assert!(rig.hub.object(binding).is_some(), "its binding is made");
}

#[tokio::test]
async fn a_binding_is_given_back_when_the_hub_says_so_and_by_no_other_404() {
    let mut rig = Rig::new();
    rig.ctx.account = Account::parse("system:serviceaccount:emco-system:emco-operator");
    for object in world() {
        rig.hub.put("test", &object);
    }
    rig.settle().await;
    rig.hub.faults(Some(Arc::new(|request, _| {
        let no_page = || ApiError::Status {
            code: 404,
            reason: String::new(),
            message: "404 page not found".to_owned(),
            retry_after: None,
            causes: Vec::new(),
        };
        (request.method == Method::Patch).then(|| Fault::Refuse(no_page()))
    })));
    assert!(namespace_access::release(&rig.ctx, "acme").await.is_err());
    rig.hub.faults(None);
    namespace_access::release(&rig.ctx, "acme").await.unwrap();
    let binding = "/apis/rbac.authorization.k8s.io/v1/namespaces/acme/rolebindings/emco-operator";
    assert!(rig.hub.object(binding).is_none());
}

#[tokio::test]
async fn the_end_of_credentials_that_are_gone_is_not_shown() {
    let mut rig = Rig::new();
    rig.answers("a", "uid-a");
    let now = rig.clock.now_ms() / 1000;
    for object in world() {
        rig.hub.put("test", &object);
    }
    rig.hub.put("test", &secret_with("a", &token(now, now + 30 * 86_400)));
    rig.settle().await;
    let credentials = |rig: &Rig| rig.hub.object(A).unwrap()["status"]["credentials"].clone();
    assert!(credentials(&rig)["expires"].is_string());
    // Finalizer and all: while it has that, it is read.
    let secret = "/api/v1/namespaces/acme/secrets/a";
    rig.hub.merge(secret, &json!({"metadata": {"finalizers": null}})).await.unwrap();
    rig.hub.remove(secret);
    rig.settle().await;
    let (status, reason, _) = valid(&rig);
    assert_eq!((status.as_str(), reason.as_str()), ("False", "SecretNotFound"));
    assert!(credentials(&rig).is_null(), "{}", credentials(&rig));
}

#[tokio::test]
async fn credentials_of_a_cluster_are_forgotten_with_it_and_with_its_reference() {
    let mut rig = Rig::new();
    rig.answers("a", "uid-a");
    for object in world().into_iter().filter(|object| object["kind"] != "Project").chain([secret("other")]) {
        rig.hub.put("test", &object);
    }
    rig.settle().await;
    // The watch begins: what is read is kept.
    rig.ctx.stores.secret_versions.begins("acme");
    rig.settle().await;
    assert_eq!(rig.ctx.accesses.count(), 1);
    let mut cluster = cluster_object("a");
    cluster["spec"]["access"]["kubeconfigSecretRef"]["name"] = json!("other");
    rig.hub.put("test", &cluster);
    rig.settle().await;
    assert_eq!(rig.ctx.accesses.count(), 1, "the one before is forgotten");
    rig.hub.delete(A, None, None).await.unwrap();
    rig.settle().await;
    assert!(rig.hub.object(A).is_none());
    assert_eq!(rig.ctx.accesses.count(), 0);
}
