//! Packs that nobody names are collected, and none that anybody names: whatever a process does meanwhile, and wherever one dies.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context as TaskContext, Poll, Waker};

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_crds::composite_app::ChartPin;
use futures::stream::BoxStream;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::life::*;
use super::rig::Rig;
use super::shop::{TENANT, deployment, objects, values};
use crate::api::{ApiResult, ApiServer, Method, Request, WatchEvent};
use crate::chart::on_hub::Hub;
use crate::crash_points;
use crate::memory::MemoryServer;
use crate::reconcile::deployment as reconciler;
use crate::store::Collector;

/// A server that answers only as many requests as it was granted.
struct Granted {
    hub: MemoryServer,
    left: Arc<AtomicUsize>,
}

#[async_trait]
impl ApiServer for Granted {
    async fn send(&self, request: Request) -> ApiResult<Value> {
        std::future::poll_fn(|_| {
            let taken =
                self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
            if taken.is_ok() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        self.hub.send(request).await
    }

    async fn watch(&self, request: Request) -> ApiResult<BoxStream<'static, ApiResult<WatchEvent>>> {
        self.hub.watch(request).await
    }
}

/// Lets two things go on in turns: each number is how many requests the next of them may make. What is left at the end runs
/// one after the other.
async fn in_turns(
    turns: &[usize],
    first: impl Future<Output = ()>,
    second: impl Future<Output = ()>,
    left: [&Arc<AtomicUsize>; 2],
) {
    let (mut first, mut second) = (pin!(first), pin!(second));
    let mut done = [false; 2];
    let waker = Waker::noop();
    let mut cx = TaskContext::from_waker(waker);
    let all = turns.iter().copied().chain([usize::MAX / 2; 2]);
    for (at, number) in all.enumerate() {
        let who = at % 2;
        for _ in 0..number.min(10_000) {
            if done[who] {
                break;
            }
            left[who].store(1, Ordering::SeqCst);
            let polled = if who == 0 { first.as_mut().poll(&mut cx) } else { second.as_mut().poll(&mut cx) };
            done[who] = polled.is_ready();
            if left[who].swap(0, Ordering::SeqCst) == 1 && !done[who] {
                // It waits for something else than a request: planning runs on a thread.
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
        }
    }
    assert_eq!(done, [true; 2], "both came to their end");
}

fn packs(hub: &MemoryServer) -> BTreeSet<String> {
    let all = hub.objects().into_values();
    all.filter_map(|object| object["metadata"]["name"].as_str().map(str::to_owned))
        .filter(|name| name.starts_with("emco-pack-"))
        .collect()
}

fn marked(hub: &MemoryServer) -> BTreeSet<String> {
    let all = hub.objects().into_values();
    all.filter(|object| !object["metadata"]["annotations"]["emco.io/unreferenced-since"].is_null())
        .filter_map(|object| object["metadata"]["name"].as_str().map(str::to_owned))
        .collect()
}

fn named(hub: &MemoryServer) -> BTreeSet<String> {
    let contexts = hub.objects().into_values().filter(|object| object["kind"] == "AppContext");
    contexts
        .flat_map(|context| context["spec"]["packs"].as_array().cloned().unwrap_or_default())
        .map(|pack| pack["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Whatever a revision names is there, with the content it was stored with.
fn nothing_is_lost(hub: &MemoryServer, how: &str) {
    let objects = hub.objects();
    for context in objects.values().filter(|object| object["kind"] == "AppContext") {
        for pack in context["spec"]["packs"].as_array().into_iter().flatten() {
            let there = objects.values().find(|object| object["metadata"]["name"] == pack["name"]);
            let there =
                there.unwrap_or_else(|| panic!("{how}: {} names {pack}", context["metadata"]["name"]));
            let data = if pack["kind"] == "Secret" { &there["data"] } else { &there["binaryData"] };
            let bytes = STANDARD.decode(data["pack"].as_str().unwrap()).unwrap();
            assert_eq!(pack["digest"], hex::encode(Sha256::digest(bytes)), "{how}");
        }
    }
}

fn shop() -> Value {
    let mut dig = deployment("edge");
    dig["spec"]["revisionHistoryLimit"] = json!(1);
    dig
}

/// Three revisions, of which the first is trimmed (the second is what the rows had before): its packs are nobody's.
async fn with_litter() -> Life {
    let mut all = objects();
    all.pop();
    all.push(shop());
    let mut life = Life::with(&all);
    life.settle().await;
    for page in ["blue", "green"] {
        life.put(&values(page));
        life.settle().await;
    }
    let kept = ["dig-shop-2", "dig-shop-3", "lc-default-1"];
    assert_eq!(names(&life.rig.hub, &format!("{TENANT}/appcontexts")).await, kept);
    life
}

#[tokio::test(start_paused = true)]
async fn a_pack_that_nobody_names_is_marked_first_and_goes_when_it_still_is_after_its_time() {
    let mut life = with_litter().await;
    let hub = life.rig.hub.clone();
    let litter: BTreeSet<String> = packs(&hub).difference(&named(&hub)).cloned().collect();
    assert!(!litter.is_empty());
    life.rig.see();
    let mut collector = Collector::default();
    assert!(collector.look(&life.rig.ctx).await.unwrap());
    assert_eq!(marked(&hub), litter);
    // The clock of the hub jumps: a mark that was only just seen is not acted on.
    life.rig.clock.forward(COLLECTED * 4);
    assert!(collector.look(&life.rig.ctx).await.unwrap());
    assert!(packs(&hub).is_superset(&litter));
    tokio::time::sleep(COLLECTED).await;
    assert!(!collector.look(&life.rig.ctx).await.unwrap());
    assert_eq!(packs(&hub), named(&hub));
    nothing_is_lost(&hub, "at the end");
    // At rest two lists of metadata are all that a look costs, and there is no second one.
    hub.take_seen();
    assert!(!collector.look(&life.rig.ctx).await.unwrap());
    let asked: Vec<String> = hub.take_seen().iter().map(|seen| seen.path.clone()).collect();
    assert_eq!(
        asked,
        ["/api/v1/namespaces/emco-system/configmaps", "/api/v1/namespaces/emco-system/secrets"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_mark_of_the_future_begins_anew_and_a_named_pack_loses_its_mark() {
    let mut life = with_litter().await;
    let hub = life.rig.hub.clone();
    let mut collector = Collector::default();
    life.rig.see();
    life.rig.clock.forward(COLLECTED * 4);
    assert!(collector.look(&life.rig.ctx).await.unwrap());
    life.rig.clock.back(COLLECTED * 4);
    tokio::time::sleep(COLLECTED).await;
    let before = packs(&hub);
    assert!(collector.look(&life.rig.ctx).await.unwrap(), "the mark is written anew");
    assert_eq!(packs(&hub), before);
    // Somebody marks what is named.
    let name = named(&hub).first().cloned().unwrap();
    let path =
        hub.objects().into_iter().find(|(_, object)| object["metadata"]["name"] == name.as_str()).unwrap();
    let plural = if path.1["kind"] == "Secret" { "secrets" } else { "configmaps" };
    let path = format!("/api/v1/namespaces/emco-system/{plural}/{name}");
    let patch = json!({"metadata": {"annotations": {"emco.io/unreferenced-since": "2026-01-01T00:00:00Z"}}});
    hub.send(Request::new(Method::Patch, &path).body(crate::api::Content::Merge, &patch)).await.unwrap();
    collector.look(&life.rig.ctx).await.unwrap();
    assert!(!marked(&hub).contains(&name));
    assert!(packs(&hub).contains(&name));
}

#[tokio::test(start_paused = true)]
async fn a_process_that_dies_while_it_collects_is_followed_by_one_that_ends_it() {
    let deaths = {
        let mut life = with_litter().await;
        life.rig.see();
        let record = life.record();
        let mut collector = Collector::default();
        assert!(collector.look(&life.rig.ctx).await.unwrap());
        life.rig.clock.forward(COLLECTED);
        tokio::time::sleep(COLLECTED).await;
        collector.look(&life.rig.ctx).await.unwrap();
        record.end()
    };
    assert!(deaths.writes >= 4, "only {} writes were there to die at", deaths.writes);
    for (writes, left) in crash_points::chosen(deaths.each) {
        let mut life = Life::after(left);
        life.collect().await;
        assert_eq!(packs(&life.rig.hub), named(&life.rig.hub), "after {writes} writes");
        nothing_is_lost(&life.rig.hub, &format!("after {writes} writes"));
    }
}

/// A collector of one process meets a reconcile of another that makes a content again whose packs are nobody's.
async fn meets(life: &mut Life, page: &str, turns: &[usize], collector_first: bool, due: bool) {
    let hub = life.rig.hub.clone();
    let how = format!("turns {turns:?}, collector first {collector_first}, due {due}");
    let litter: BTreeSet<String> = packs(&hub).difference(&named(&hub)).cloned().collect();
    let left: [Arc<AtomicUsize>; 2] = Default::default();
    let gate = |at: usize| Arc::new(Granted { hub: hub.clone(), left: left[at].clone() });
    let (one, other) = if collector_first { (0, 1) } else { (1, 0) };
    let mut collecting: Rig = life.rig.beside(gate(one));
    let mut planning: Rig = life.rig.beside(gate(other));
    let mut collector = Collector::default();
    if due {
        life.rig.see();
        assert!(collector.look(&life.rig.ctx).await.unwrap());
        life.rig.clock.forward(COLLECTED);
        tokio::time::sleep(COLLECTED).await;
    }
    life.put(&values(page));
    collecting.see();
    planning.see();
    let collect = Box::pin(async {
        collector.look(&collecting.ctx).await.unwrap();
    });
    let plan = Box::pin(async {
        // Whatever it comes to, what is stored is whole.
        drop(reconciler::reconcile(&planning.ctx, "team-a", "shop").await);
    });
    if collector_first {
        in_turns(turns, collect, plan, [&left[0], &left[1]]).await;
    } else {
        in_turns(turns, plan, collect, [&left[0], &left[1]]).await;
    }
    assert!(!named(&hub).is_disjoint(&litter), "{how}: the first content was stored again");
    nothing_is_lost(&hub, &how);
    life.settle().await;
    nothing_is_lost(&hub, &how);
}

#[tokio::test(start_paused = true)]
async fn a_marked_pack_that_a_plan_names_again_meanwhile_stays_whoever_is_faster() {
    let mut life = with_litter().await;
    let mut pages = ["red", "blue", "green"].into_iter().cycle();
    for due in [false, true] {
        let collector_first = (0..9).flat_map(|first| [2, 7, 15, 24].map(|second| [first, second]));
        for turns in crash_points::chosen(collector_first) {
            meets(&mut life, pages.next().unwrap(), &turns, true, due).await;
        }
        for first in crash_points::chosen((0..30).step_by(2)) {
            meets(&mut life, pages.next().unwrap(), &[first, 4, 1, 1, 1, 1], false, due).await;
        }
    }
    life.collect().await;
    nothing_is_lost(&life.rig.hub, "at the end");
    assert_eq!(packs(&life.rig.hub), named(&life.rig.hub));
}

#[tokio::test(start_paused = true)]
async fn a_kept_chart_goes_when_no_composite_app_pins_it_any_more() {
    let mut life = Life::with(&objects());
    life.settle().await;
    let hub = life.rig.hub.clone();
    let kept = |hub: &MemoryServer| {
        let all = hub.objects().into_values();
        all.filter(|object| object["type"] == "emco.io/chart").count()
    };
    // As of a registry: charts of ConfigMaps are on the hub anyway.
    let pins = hub.object(&format!("{TENANT}/compositeapps/shop")).unwrap()["status"]["apps"].clone();
    let pin: ChartPin = serde_json::from_value(pins[0].clone()).unwrap();
    let place = Hub { server: &hub, namespace: "emco-system" };
    let bytes = vec![7; (768 << 10) + 1];
    life.rig.ctx.charts.on_hub.keep(place, ("team-a", "shop"), &pin, &bytes).await.unwrap();
    let stray = ChartPin { digest: "sha256:other".to_owned(), ..pin.clone() };
    life.rig.ctx.charts.on_hub.keep(place, ("team-a", "shop"), &stray, b"x").await.unwrap();
    assert_eq!(kept(&hub), 3);
    life.collect().await;
    assert_eq!(kept(&hub), 2, "what is pinned stays, with all of its parts");
    life.delete(&format!("{TENANT}/deploymentintentgroups/shop")).await;
    life.delete(&format!("{TENANT}/compositeapps/shop")).await;
    life.settle().await;
    life.collect().await;
    assert_eq!(kept(&hub), 0);
    let again = life.rig.ctx.charts.on_hub.read(place, "team-a", &pin).await.unwrap();
    assert!(again.is_none(), "what was collected is not remembered");
}
