//! A hub that was restored from an older backup, and clusters that were worked on since.

use serde_json::json;

use super::rig::*;
use crate::api::{ApiServer, ApiServerExt};
use crate::memory::MemoryServer;
use crate::remote::{Admission, Claim, claim};

const CLUSTER: &str = "/apis/emco.io/v1alpha1/namespaces/acme/clusters/a";

/// Cluster a as a later state of the hub left it: with the mark of a version so far ahead of the hub's store.
async fn worked_on_later(ahead: u64) -> (Rig, MemoryServer, u64) {
    let mut rig = settled().await;
    let edge = MemoryServer::new();
    rig.attach("a", &edge);
    claim::take(&edge, &Claim::Absent, "inst", "2026-01-01T00:00:00Z").await.unwrap();
    let seen = version(&rig).await + ahead;
    edge.send(claim::note(seen)).await.unwrap();
    look(&mut rig, &edge).await;
    rig.settle().await;
    (rig, edge, seen)
}

/// How far the hub's store has come.
async fn version(rig: &Rig) -> u64 {
    let list = rig.hub.get_opt("/api/v1/namespaces").await.unwrap().unwrap();
    list["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

/// The edge's claim is read again.
async fn look(rig: &mut Rig, edge: &MemoryServer) {
    rig.claims("a", claim::read(edge).await.unwrap());
}

async fn say(rig: &Rig, text: &str) {
    let said = json!({"metadata": {"annotations": {"emco.io/confirm": text}}});
    rig.hub.merge(CLUSTER, &said).await.unwrap();
}

/// What the message says to type.
fn asked_for(rig: &Rig) -> String {
    let (_, _, message) = rig.ready(CLUSTER);
    message.split("emco.io/confirm=").nth(1).unwrap_or_else(|| panic!("{message}")).trim().to_owned()
}

async fn confirm(rig: &Rig) -> String {
    let text = asked_for(rig);
    say(rig, &text).await;
    text
}

/// Writes of others, until the hub's store is beyond this version.
async fn others_write_beyond(rig: &Rig, seen: u64) {
    for number in version(rig).await..=seen {
        rig.hub.put("test", &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default", "name": "busy"},
            "data": {"number": number.to_string()}}));
    }
    assert!(version(rig).await > seen);
}

fn waits(rig: &Rig, seen: u64) {
    let (status, reason, message) = rig.ready(CLUSTER);
    assert_eq!((status.as_str(), reason.as_str()), ("False", "HubRestored"), "{message}");
    assert!(message.contains(&format!("emco.io/confirm={seen}")), "{message}");
    assert!(matches!(rig.admission("a"), Admission::Refused { reason: "HubRestored", .. }));
}

fn works(rig: &Rig) {
    assert_eq!(rig.ready(CLUSTER).1, "Reachable");
    assert_eq!(rig.admission("a"), Admission::Admitted);
    assert!(rig.hub.object(CLUSTER).unwrap()["status"].get("hubRestored").is_none());
}

#[tokio::test]
async fn a_mark_that_the_hub_has_come_to_is_no_sign_of_a_backup() {
    let mut rig = settled().await;
    let edge = MemoryServer::new();
    rig.attach("a", &edge);
    claim::take(&edge, &Claim::Absent, "inst", "2026-01-01T00:00:00Z").await.unwrap();
    edge.send(claim::note(version(&rig).await)).await.unwrap();
    look(&mut rig, &edge).await;
    rig.settle().await;
    works(&rig);
}

#[tokio::test]
async fn a_hub_that_was_restored_does_nothing_on_a_cluster_that_knows_more_until_that_is_confirmed() {
    let (mut rig, edge, seen) = worked_on_later(1_000_000).await;
    waits(&rig, seen);
    for other in [(seen - 1).to_string(), asked_for(&rig).replace(&seen.to_string(), &(seen - 1).to_string())]
    {
        say(&rig, &other).await;
        rig.settle().await;
        waits(&rig, seen);
    }
    confirm(&rig).await;
    rig.round().await;
    let now = claim::read(&edge).await.unwrap();
    assert!(matches!(&now, Claim::Held { seen: 0, .. }), "{now:?}");
    look(&mut rig, &edge).await;
    rig.settle().await;
    works(&rig);
}

#[tokio::test]
async fn a_restored_hub_that_comes_as_far_again_waits_on_until_that_is_confirmed() {
    let (mut rig, edge, seen) = worked_on_later(50).await;
    waits(&rig, seen);
    others_write_beyond(&rig, seen).await;
    rig.settle().await;
    waits(&rig, seen);
    // Another process has only what is stored, and judges before it works on.
    rig.attach("a", &edge);
    look(&mut rig, &edge).await;
    rig.restart();
    rig.settle().await;
    waits(&rig, seen);
    assert_eq!(rig.wanted("a").unwrap().identity, None, "it is not gone on with unjudged");
    // Nor is it forgotten while the cluster is away, or when its claim is gone.
    rig.fails("a", "Unreachable");
    rig.settle().await;
    assert_eq!(rig.ready(CLUSTER).1, "Unreachable");
    rig.returns("a", "uid-a");
    rig.claims("a", Claim::Absent);
    rig.settle().await;
    waits(&rig, seen);
    look(&mut rig, &edge).await;
    confirm(&rig).await;
    rig.round().await;
    look(&mut rig, &edge).await;
    rig.settle().await;
    works(&rig);
    assert_eq!(rig.wanted("a").unwrap().identity.as_deref(), Some("uid-a"));
    // Marks of the work that goes on are no sign of a backup, whatever was confirmed once.
    edge.send(claim::note(version(&rig).await)).await.unwrap();
    look(&mut rig, &edge).await;
    rig.settle().await;
    works(&rig);
}

#[tokio::test]
async fn a_restored_hub_that_dies_between_the_mark_and_its_status_goes_on_once_it_is_confirmed() {
    let (mut rig, edge, _) = worked_on_later(50).await;
    confirm(&rig).await;
    rig.round().await;
    // The mark is off, the status is as it was.
    assert!(rig.hub.object(CLUSTER).unwrap()["status"].get("hubRestored").is_some());
    rig.attach("a", &edge);
    look(&mut rig, &edge).await;
    rig.restart();
    rig.settle().await;
    works(&rig);
}

#[tokio::test]
async fn of_a_hub_restored_twice_the_later_mark_is_confirmed() {
    // The backup was taken while it waited for the first; then that was confirmed, and work went on.
    let (mut rig, edge, first) = worked_on_later(50).await;
    others_write_beyond(&rig, first).await;
    edge.send(claim::note(first + 20)).await.unwrap();
    look(&mut rig, &edge).await;
    confirm(&rig).await;
    rig.settle().await;
    waits(&rig, first + 20);
}

#[tokio::test]
async fn a_confirmed_restore_confirms_no_later_one_of_the_same_mark() {
    let (mut rig, edge, seen) = worked_on_later(1_000_000).await;
    let first = confirm(&rig).await;
    rig.round().await;
    look(&mut rig, &edge).await;
    rig.settle().await;
    works(&rig);
    // The hub goes back to where it was confirmed, after work that came exactly as far as before.
    rig.clock.forward(std::time::Duration::from_hours(1));
    edge.send(claim::note(seen)).await.unwrap();
    look(&mut rig, &edge).await;
    rig.settle().await;
    waits(&rig, seen);
    assert_ne!(confirm(&rig).await, first);
    rig.round().await;
    look(&mut rig, &edge).await;
    rig.settle().await;
    works(&rig);
}
