//! What is stored ends the same whatever came first and wherever the process died.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::rig::*;
use crate::api::{ApiError, Method};
use crate::crash_points;
use crate::memory::{Fault, Faults};

const CLOUD: &str = "/apis/emco.io/v1alpha1/namespaces/team-a/logicalclouds/default";

fn check(rig: &Rig) {
    assert_eq!(rig.ready("/apis/emco.io/v1alpha1/clusterproviders/acme").0, "True");
    assert_eq!(rig.ready("/apis/emco.io/v1alpha1/projects/team-a").1, "NamespaceReady");
    assert_eq!(rig.ready("/apis/emco.io/v1alpha1/namespaces/acme/clusters/a").1, "Reachable");
    let shards: Vec<_> =
        rig.hub.objects().into_values().filter(|object| object["kind"] == "SyncShard").collect();
    assert_eq!(shards.len(), 1);
    let spec = &shards[0]["spec"];
    assert_eq!(spec["clusters"].as_array().unwrap().len(), 1, "{spec:#}");
    let row = &spec["clusters"][0];
    assert_eq!(row["cluster"], "acme/a");
    // One combination, the newest revision's, and it is what the row wants; nothing else may be there.
    let newest = rig.revisions().last().unwrap().0;
    assert_eq!(spec["combinations"].as_array().unwrap().len(), 1, "{spec:#}");
    assert_eq!(spec["combinations"][0]["name"], row["target"], "{spec:#}");
    assert_eq!(spec["combinations"][0]["revision"], newest, "{spec:#}");
    assert!(row["held"].as_array().is_none_or(Vec::is_empty), "{row:#}");
    assert_eq!(rig.hub.object(CLOUD).unwrap()["status"]["revision"], newest);
}

#[tokio::test]
async fn objects_in_any_order_end_in_one_targeted_revision() {
    for rotated in 0..4 {
        for reversed in [false, true] {
            let mut rig = Rig::new();
            rig.answers("a", "uid-a");
            // The namespace is made by hand here, and everything else needs it.
            let mut objects = world();
            rig.hub.put("test", &objects.remove(0));
            objects.rotate_left(rotated);
            if reversed {
                objects.reverse();
            }
            for object in &objects {
                rig.hub.put("test", object);
                rig.settle().await;
            }
            check(&rig);
            let revisions: Vec<i64> = rig.revisions().iter().map(|(number, _)| *number).collect();
            assert_eq!(revisions, [1], "rotated {rotated}, reversed {reversed}");
        }
    }
}

/// A hub on which this write goes wrong, if any, and how many writes there were.
async fn settled(fault: Option<(u64, Fault)>) -> (Rig, u64) {
    let mut rig = Rig::new();
    rig.answers("a", "uid-a");
    for object in world() {
        rig.hub.put("test", &object);
    }
    let count = Arc::new(AtomicU64::new(0));
    let counted = count.clone();
    let faults: Faults = Arc::new(move |request, _| {
        let number = (request.method != Method::Get).then(|| counted.fetch_add(1, Ordering::Relaxed))?;
        fault.as_ref().filter(|(n, _)| *n == number).map(|(_, fault)| fault.clone())
    });
    rig.hub.faults(Some(faults));
    rig.settle().await;
    (rig, count.load(Ordering::Relaxed))
}

#[tokio::test]
async fn a_crash_at_any_write_leaves_no_second_revision_of_the_same_content() {
    let (_, writes) = settled(None).await;
    assert!(writes > 10, "only {writes} writes were there to fail");
    for n in crash_points::chosen(0..writes) {
        for lost in [false, true] {
            let error = ApiError::Unreachable { reason: "ConnectionLost", message: "died".to_owned() };
            let fault = if lost { Fault::LoseAnswer } else { Fault::Refuse(error) };
            let (rig, reached) = settled(Some((n, fault))).await;
            assert!(reached > n, "write {n} came");
            check(&rig);
            let revisions = rig.revisions();
            let digests: std::collections::BTreeSet<_> = revisions.iter().map(|(_, digest)| digest).collect();
            assert_eq!(digests.len(), revisions.len(), "write {n}, answer lost: {lost}: {revisions:?}");
        }
    }
}

#[tokio::test]
async fn a_settled_hub_gets_no_write_from_a_process_that_starts() {
    let mut rig = Rig::new();
    rig.answers("a", "uid-a");
    for object in world() {
        rig.hub.put("test", &object);
    }
    rig.settle().await;
    let before = rig.hub.objects();
    rig.restart();
    rig.settle().await;
    assert_eq!(rig.hub.objects(), before);
    assert_eq!(rig.revisions().len(), 1);
}

#[tokio::test]
async fn one_more_cluster_makes_exactly_one_revision() {
    let mut rig = Rig::new();
    rig.answers("a", "uid-a");
    rig.answers("b", "uid-b");
    for object in world() {
        rig.hub.put("test", &object);
    }
    rig.settle().await;
    rig.hub.put("test", &secret("b"));
    rig.hub.put("test", &cluster_object("b"));
    rig.settle().await;
    assert_eq!(rig.revisions().iter().map(|(n, _)| *n).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(rig.hub.object(CLOUD).unwrap()["status"]["revision"], 2);
}
