//! Requests to the hub go wrong, whichever they are: the process goes on, and ends where it would have.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::life::*;
use super::shop::{composite_app, deployment, objects, values};
use crate::api::{ApiError, Method};
use crate::memory::{Fault, Faults};

fn writes(method: Method) -> bool {
    method != Method::Get
}

fn reads(method: Method) -> bool {
    method == Method::Get
}

fn answered(code: u16, reason: &str) -> Fault {
    Fault::Refuse(ApiError::Status {
        code,
        reason: reason.to_owned(),
        message: format!("injected: {reason}"),
        retry_after: None,
        causes: Vec::new(),
    })
}

/// Every seventh request to the hub that `picks` accepts goes wrong, from `first` on, until the hub had enough of it. With
/// 0 to 6 as first, every request goes wrong once.
fn every_seventh(first: u64, picks: fn(Method) -> bool, fault: &Fault) -> (Faults, Arc<AtomicU64>) {
    const ENOUGH: u64 = 400;
    let met = Arc::new(AtomicU64::new(0));
    let (count, counted, fault) = (AtomicU64::new(0), met.clone(), fault.clone());
    let faults: Faults = Arc::new(move |request, _| {
        if !picks(request.method) {
            return None;
        }
        let number = count.fetch_add(1, Ordering::SeqCst);
        if number >= ENOUGH || number % 7 != first {
            return None;
        }
        counted.fetch_add(1, Ordering::SeqCst);
        Some(fault.clone())
    });
    (faults, met)
}

/// Everything there is after each of: installed, updated, terminated.
type Ends = Vec<BTreeMap<String, Value>>;

async fn live(mut life: Life) -> Ends {
    let mut ended = deployment("edge");
    ended["spec"]["desiredState"] = json!("Terminated");
    let mut ends = Vec::new();
    for step in [vec![deployment("edge")], vec![composite_app("1.1.0"), values("blue")], vec![ended]] {
        for object in &step {
            life.put(object);
        }
        life.settle().await;
        ends.push(life.everything());
    }
    ends
}

/// At rest on everything but the deployment.
async fn ready() -> Life {
    let mut all = objects();
    all.pop();
    let mut life = Life::with(&all);
    life.settle().await;
    life
}

async fn whichever(picks: fn(Method) -> bool, fault: Fault, least: u64) {
    let wanted = live(ready().await).await;
    let mut all = 0;
    for first in 0..7 {
        let life = ready().await;
        let (faults, met) = every_seventh(first, picks, &fault);
        life.hub_faults(faults);
        for (step, (found, wanted)) in live(life).await.iter().zip(&wanted).enumerate() {
            assert!(found == wanted, "from request {first}, step {step}:\n{}", difference(found, wanted));
        }
        all += met.load(Ordering::SeqCst);
    }
    assert!(all >= least, "only {all} requests went wrong");
}

#[tokio::test(start_paused = true)]
async fn writes_may_be_lost_on_their_way() {
    whichever(writes, Fault::Refuse(lost()), 40).await;
}

#[tokio::test(start_paused = true)]
async fn answers_to_writes_may_be_lost() {
    whichever(writes, Fault::LoseAnswer, 40).await;
}

#[tokio::test(start_paused = true)]
async fn writes_may_meet_conflicts() {
    whichever(writes, answered(409, "Conflict"), 40).await;
}

#[tokio::test(start_paused = true)]
async fn reads_may_fail() {
    whichever(reads, answered(500, "InternalError"), 200).await;
}

#[tokio::test(start_paused = true)]
async fn one_pack_that_is_lost_or_deleted_is_stored_again() {
    let mut life = Life::with(&objects());
    life.settle().await;
    let wanted = life.everything();
    let packs: Vec<String> = wanted
        .keys()
        .filter_map(|key| key.strip_prefix("hub/"))
        .filter(|key| key.contains("/emco-system/emco-pack-"))
        .map(|key| {
            let (kind, name) = key.split_once("./emco-system/").unwrap();
            format!("/api/v1/namespaces/emco-system/{kind}/{name}")
        })
        .collect();
    assert!(packs.len() > 2, "{packs:?}");
    for pack in packs.iter().filter(|path| path.contains("emco-pack-")) {
        life.delete(pack).await;
        // What was read before is remembered; the next process has to read.
        life.restart().await;
        life.settle().await;
        assert!(life.everything() == wanted, "{pack}:\n{}", difference(&life.everything(), &wanted));
    }
}
