//! Clusters that do not issue what is wanted: what is told of them, and what is not done.

use std::sync::Arc;
use std::time::Duration;

use emco_engine::people::Kind;

use super::{HOUR, Signs, Stage, of_type};
use crate::api::{ApiError, Method};
use crate::memory::Fault;

#[tokio::test(start_paused = true)]
async fn a_request_that_is_denied_is_told_and_holds_up_no_other_cluster() {
    let mut stage = Stage::at_first(&of_type("Auto"));
    stage.set("a", Signs::Denied);
    stage.life.settle().await;
    let (ready, reason, message) = stage.ready();
    assert_eq!((ready.as_str(), reason.as_str()), ("False", "CSRDenied"));
    assert!(
        message.contains("acme/a: CSRDenied: somebody denied") && message.contains("not on our cluster"),
        "{message}"
    );
    // Not by a token either: somebody said no.
    assert_eq!(stage.keys(), ["acme.b"]);
    assert_eq!(stage.status()["failing"][0]["cluster"], "acme/a");
    let made = *stage.made.lock();
    stage.after(Duration::from_mins(1)).await;
    assert_eq!(*stage.made.lock(), made, "it is not asked again at once");
    stage.set("a", Signs::Well);
    stage.after(Duration::from_mins(10)).await;
    assert_eq!(
        (stage.keys(), stage.ready().0.as_str()),
        (vec!["acme.a".to_owned(), "acme.b".to_owned()], "True")
    );
    assert_eq!(stage.left(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_denial_stays_told_over_a_restart() {
    let mut stage = Stage::at_first(&of_type("ClientCertificate"));
    stage.set("a", Signs::Denied);
    stage.life.settle().await;
    let before = stage.status();
    stage.restart().await;
    assert_eq!(stage.status(), before);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_signs_nothing_is_told_of_where_certificates_are_wanted() {
    let mut stage = Stage::at_first(&of_type("ClientCertificate"));
    stage.set("a", Signs::Nothing);
    stage.life.settle().await;
    let (ready, reason, message) = stage.ready();
    assert_eq!((ready.as_str(), reason.as_str()), ("False", "CSRNotSigned"));
    assert!(message.contains("did not sign within 15 s") && message.contains("Auto"), "{message}");
    assert_eq!((stage.keys(), stage.left()), (vec!["acme.b".to_owned()], 0));
    stage.set("a", Signs::Failing);
    stage.after(Duration::from_mins(2)).await;
    assert!(stage.ready().2.contains("the cluster's signer failed: no such usage"), "{:?}", stage.ready());
}

#[tokio::test(start_paused = true)]
async fn what_is_signed_for_somebody_else_is_refused() {
    for (mode, words) in [
        (Signs::ForSomebodyElse, "the cluster signed a certificate for somebody else"),
        (Signs::AnotherKey, "the cluster signed a certificate of another key"),
    ] {
        let mut stage = Stage::at_first(&of_type("Auto"));
        stage.set("a", mode);
        stage.life.settle().await;
        let (ready, reason, message) = stage.ready();
        assert_eq!((ready.as_str(), reason.as_str()), ("False", "CredentialRefused"), "{message}");
        assert!(message.contains(words) && !message.contains("eve"), "{message}");
        assert_eq!(stage.keys(), ["acme.b"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_right_that_is_missing_is_told_with_what_to_do() {
    let mut stage = Stage::at_first(&of_type("ClientCertificate"));
    stage.set("a", Signs::Forbidden);
    stage.life.settle().await;
    let (_, reason, message) = stage.ready();
    assert_eq!(reason, "Forbidden");
    assert!(message.contains("may not create certificatesigningrequests there: grant what"), "{message}");
    // A token needs another right.
    stage.life.put(&of_type("Auto"));
    stage.life.settle().await;
    assert_eq!((stage.ready().0.as_str(), stage.stored()["acme.a"].kind), ("True", Kind::Token));
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_does_not_answer_an_approval_is_asked_again() {
    let mut stage = Stage::at_first(&of_type("ClientCertificate"));
    stage.set("a", Signs::Silent);
    stage.life.settle().await;
    assert_eq!((stage.keys(), stage.left()), (vec!["acme.b".to_owned()], 0));
    assert_eq!(stage.ready().2, "1 of 2 clusters ready; credentials of 1 cluster are awaited");
    stage.set("a", Signs::Well);
    stage.after(Duration::from_mins(1)).await;
    assert_eq!((stage.keys().len(), stage.left(), stage.ready().0.as_str()), (2, 0, "True"));
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_refuses_to_renew_keeps_the_credential_that_holds() {
    let mut stage = Stage::with(&of_type("ClientCertificate")).await;
    let before = stage.stored();
    stage.set("a", Signs::Denied);
    stage.after(17 * HOUR).await;
    assert_eq!(stage.stored()["acme.a"], before["acme.a"]);
    assert_eq!(stage.ready().1, "CSRDenied");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_away_gets_its_credential_when_it_answers() {
    let mut stage = Stage::with(&of_type("ClientCertificate")).await;
    let before = stage.stored();
    stage.life.rig.fails("a", "Timeout");
    stage.after(25 * HOUR).await;
    assert_eq!(stage.stored()["acme.a"], before["acme.a"]);
    assert!(stage.stored()["acme.b"].issued > before["acme.b"].issued, "it waits for no other cluster");
    assert_eq!(*stage.made.lock(), 3);
    stage.life.rig.returns("a", "uid-a");
    stage.life.settle().await;
    assert!(stage.stored()["acme.a"].issued > before["acme.a"].issued);
    assert_eq!(stage.ready().0, "True", "{:?}", stage.ready());
}

#[tokio::test(start_paused = true)]
async fn a_hub_that_takes_no_more_secrets_is_told_and_clusters_are_left_alone() {
    let mut stage = Stage::at_first(&of_type("ClientCertificate"));
    stage.life.hub_faults(Arc::new(|request, _| {
        let makes = request.method == Method::Post && request.path.ends_with("/team-a/secrets");
        makes.then(|| {
            Fault::Refuse(ApiError::Status {
                code: 403,
                reason: "Forbidden".to_owned(),
                message: "secrets \"default-kubeconfig-0\" is forbidden: exceeded quota: few".to_owned(),
                retry_after: None,
                causes: Vec::new(),
            })
        })
    }));
    stage.life.settle().await;
    let (_, reason, message) = stage.ready();
    assert_eq!(reason, "Forbidden");
    assert!(
        message.contains(
            "the hub does not keep what the cluster issued: Secrets in namespace team-a is refused: 403"
        ),
        "{message}"
    );
    assert_eq!(stage.status()["clusters"]["failed"], 2);
    stage.after(Duration::from_mins(1)).await;
    assert_eq!(*stage.made.lock(), 2, "clusters are not asked for what cannot be kept");
    stage.life.rig.hub.faults(None);
    stage.after(Duration::from_mins(5)).await;
    assert_eq!((stage.keys().len(), stage.ready().0.as_str(), stage.left()), (2, "True", 0));
}

#[tokio::test(start_paused = true)]
async fn a_request_of_somebody_else_is_never_approved() {
    let mut stage = Stage::at_first(&of_type("Auto"));
    stage.set("a", Signs::Replaced);
    stage.life.settle().await;
    let (_, reason, message) = stage.ready();
    assert_eq!(reason, "CredentialRefused");
    assert!(message.contains("was replaced by another one"), "{message}");
    let planted = stage.life.edges["a"].of_kind("CertificateSigningRequest");
    assert_eq!(planted.len(), 1);
    assert!(!planted[0].to_string().contains("Approved"), "{}", planted[0]);
}
