//! A whole process on a hub in memory: every reconciler, and the sync engine with its edges. What it would leave if it died is kept
//! at each of its writes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use emco_crds::{OwnerKind, RowStatus, SyncShard};
use emco_engine::health::rules::Rules;
use emco_engine::{marks, shard};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::beacon;
use super::rig::Rig;
use super::shop::TENANT;
use super::usual::{Open, Usual};
use crate::api::{ApiError, ApiServer, ApiServerExt as _, Method};
use crate::memory::{Faults, MemoryServer};
use crate::reconcile::context::Context;
use crate::store::{Collector, RevisionSettings};
use crate::sync::{Sync, SyncContext, SyncSettings};

mod left;

/// Longer than anything the engine waits for between two tries. The clock is paused, but watches that hear nothing list anew.
const REST: Duration = Duration::from_mins(2);
/// Longer than what follows of a write when nothing goes wrong.
const BREATH: Duration = Duration::from_secs(2);
/// More rounds than anything here needs.
const ROUNDS: usize = 60;
/// So long nobody may name a pack before it goes.
pub const COLLECTED: Duration = Duration::from_mins(15);
pub const EDGES: [&str; 2] = ["a", "b"];

pub fn lost() -> ApiError {
    ApiError::Unreachable { reason: "ConnectionLost", message: "the connection was lost".to_owned() }
}

struct Engine {
    sync: Arc<Sync>,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
    /// Shards it was told of, with their versions.
    told: BTreeMap<(String, String), String>,
    /// Owners it was told of, and whether they were suspended.
    suspended: BTreeMap<(OwnerKind, String, String), bool>,
}

impl Engine {
    fn start(ctx: &Context, suspended: &Arc<AtomicBool>) -> Self {
        let sync = Sync::new(SyncContext {
            world: ctx.world.clone(),
            connections: ctx.connector.clone(),
            publishers: ctx.publishers.clone(),
            installation: ctx.installation.clone(),
            refusals: ctx.refusals.clone(),
            namespace: ctx.namespace.clone(),
            policies: Arc::new(Usual {
                stores: ctx.stores.clone(),
                producers: ctx.producers.clone(),
                suspended: Arc::clone(suspended),
            }),
            fence: Arc::new(Open),
            epoch: ctx.epoch,
            settings: SyncSettings::default(),
        });
        // A hub without health rules.
        sync.health_rules().set(Rules::default());
        let stop = CancellationToken::new();
        let task = tokio::spawn(sync.clone().run(stop.clone()));
        Self { sync, stop, task, told: BTreeMap::new(), suspended: BTreeMap::new() }
    }

    /// Tells what the watches of shards and their owners would tell, and which namespaces that of projects has suspended or resumed.
    fn tell(&mut self, hub: &MemoryServer, resuspended: &mut BTreeSet<String>) {
        for kind in [OwnerKind::DeploymentIntentGroup, beacon::kind()] {
            for owner in hub.of_kind(kind.as_str()) {
                let text = |key: &str| owner["metadata"][key].as_str().unwrap().to_owned();
                let key = (kind.clone(), text("namespace"), text("name"));
                let suspend = owner["spec"]["suspend"] == true;
                if self.suspended.insert(key.clone(), suspend) != Some(suspend) {
                    self.sync.policy_changed(&key.0, &key.1, &key.2);
                }
            }
        }
        for namespace in std::mem::take(resuspended) {
            self.sync.suspension_changed(&namespace);
        }
        let mut now = BTreeMap::new();
        for shard in hub.of_kind("SyncShard") {
            let text = |key: &str| shard["metadata"][key].as_str().unwrap().to_owned();
            let (key, version) = ((text("namespace"), text("name")), text("resourceVersion"));
            if self.told.get(&key) != Some(&version) {
                self.sync.shard(serde_json::from_value(shard.clone()).unwrap());
            }
            now.insert(key, version);
        }
        for (namespace, name) in self.told.keys().filter(|key| !now.contains_key(*key)) {
            self.sync.shard_gone(namespace, name);
        }
        self.told = now;
    }

    async fn end(mut self) {
        self.stop.cancel();
        (&mut self.task).await.unwrap();
    }
}

/// The engine of a life that is over would go on with every hour that passes in the next ones.
impl Drop for Engine {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

pub struct Life {
    pub rig: Rig,
    pub edges: BTreeMap<&'static str, MemoryServer>,
    engine: Option<Engine>,
    /// As if the watch had shown at this moment that all deployments are suspended.
    suspended: Arc<AtomicBool>,
}

impl Life {
    pub fn new() -> Self {
        Self::joined(EDGES.into_iter().map(|name| (name, MemoryServer::new())).collect())
    }

    /// A new hub, and these edges.
    pub fn joined(edges: BTreeMap<&'static str, MemoryServer>) -> Self {
        let mut rig = Rig::new();
        rig.settings.report_delay = RevisionSettings::default().report_delay;
        rig.restart();
        for (name, server) in &edges {
            rig.attach(name, server);
        }
        let suspended = Arc::<AtomicBool>::default();
        let engine = Some(Engine::start(&rig.ctx, &suspended));
        Self { rig, edges, engine, suspended }
    }

    /// Suspends all deployments for the workers, from the moment on in which it is set.
    pub fn suspension(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.suspended)
    }

    /// Takes that back.
    pub fn resume(&self) {
        self.suspended.store(false, Ordering::SeqCst);
    }

    /// One that found all of these on its hub.
    pub fn with(objects: &[Value]) -> Self {
        let life = Self::new();
        for object in objects {
            life.put(object);
        }
        life
    }

    pub fn put(&self, object: &Value) {
        self.rig.hub.put("tenant", object);
    }

    /// Removes what `put` made, as kubectl would.
    pub async fn delete(&self, path: &str) {
        self.rig.hub.delete(path, None, None).await.unwrap();
    }

    /// What goes wrong with requests to the hub.
    pub fn hub_faults(&self, faults: Faults) {
        self.rig.hub.faults(Some(faults));
    }

    /// What was only remembered is gone; the next process has no faults.
    pub async fn restart(&mut self) {
        if let Some(engine) = self.engine.take() {
            engine.end().await;
        }
        self.rig.hub.faults(None);
        for edge in self.edges.values() {
            edge.faults(None);
        }
        self.rig.restart();
        self.engine = Some(Engine::start(&self.rig.ctx, &self.suspended));
    }

    /// The process ends, and no other begins.
    pub async fn end(&mut self) {
        if let Some(engine) = self.engine.take() {
            engine.end().await;
        }
    }

    /// The workers hear of the shards as they are, and have time for what follows.
    pub async fn tell(&mut self) {
        if let Some(engine) = &mut self.engine {
            engine.tell(&self.rig.hub, &mut self.rig.resuspended);
        }
        tokio::time::sleep(REST).await;
    }

    /// Only the sync engine forgets; the reconcilers remember what they read.
    pub async fn restart_engine(&mut self) {
        if let Some(engine) = self.engine.take() {
            engine.end().await;
        }
        self.engine = Some(Engine::start(&self.rig.ctx, &self.suspended));
    }

    /// The next process begins as it really does, with its workers beside it, and has read what the hub has.
    pub async fn begin(&mut self) {
        self.restart().await;
        if let Some(engine) = &self.engine {
            let revisions = std::mem::take(&mut self.rig.ctx.revisions);
            self.rig.ctx.revisions = revisions.beside(Arc::clone(&engine.sync));
        }
        self.rig.see();
        self.rig.hub.take_seen();
    }

    /// One round, and time for what follows of it.
    pub async fn next(&mut self) {
        self.rig.hub.take_seen();
        let failures = self.rig.round().await;
        assert!(failures.is_empty(), "{failures:?}");
        if let Some(engine) = &mut self.engine {
            engine.tell(&self.rig.hub, &mut self.rig.resuspended);
        }
        tokio::time::sleep(REST).await;
    }

    /// Rounds until nobody writes and nobody fails.
    pub async fn settle(&mut self) {
        let mut failures = Vec::new();
        for _ in 0..ROUNDS {
            self.rig.hub.take_seen();
            for edge in self.edges.values() {
                edge.take_seen();
            }
            failures = Box::pin(self.rig.round()).await;
            if let Some(engine) = &mut self.engine {
                engine.tell(&self.rig.hub, &mut self.rig.resuspended);
            }
            let mut quiet = true;
            for rest in [BREATH, REST] {
                // Where something was written, another round follows in any case.
                if quiet {
                    tokio::time::sleep(rest).await;
                    quiet = self.quiet();
                }
            }
            if failures.is_empty() && quiet {
                return;
            }
        }
        panic!("no rest after {ROUNDS} rounds; failures {failures:?}, writes {:?}", self.rig.writes());
    }

    /// Time passes until all that nobody names is collected.
    pub async fn collect(&mut self) {
        let mut collector = Collector::default();
        for _ in 0..5 {
            self.rig.see();
            if !collector.look(&self.rig.ctx).await.unwrap() {
                return;
            }
            self.rig.clock.forward(COLLECTED);
            tokio::time::sleep(COLLECTED).await;
        }
        panic!("packs that nobody names stay");
    }

    fn quiet(&self) -> bool {
        self.rig.hub.writes().is_empty() && self.edges.values().all(|edge| edge.writes().is_empty())
    }

    /// How many rows are not as wanted, as `emco_rows_waiting` says it.
    pub fn waiting(&self) -> usize {
        self.engine.as_ref().map_or(0, |engine| engine.sync.metrics().rows.waiting().0)
    }

    /// The deployment, as it is on the hub.
    pub fn dig(&self) -> Value {
        self.rig.hub.object(&format!("{TENANT}/deploymentintentgroups/shop")).unwrap_or_default()
    }

    /// The deployment's condition of a type: status, reason, message.
    pub fn says(&self, type_: &str) -> (String, String, String) {
        let dig = self.dig();
        let conditions = dig["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = conditions.into_iter().find(|c| c["type"] == type_).unwrap_or_default();
        let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
        (text("status"), text("reason"), text("message"))
    }

    /// Our objects on an edge by path, with what they say. The namespace of the logical cloud is one.
    pub fn on(&self, edge: &str) -> BTreeMap<String, Value> {
        let ours = |(_, object): &(String, Value)| marks::owner_of(object).is_some();
        self.edges[edge]
            .objects()
            .into_iter()
            .filter(ours)
            .map(|(key, object)| (key, essence(object)))
            .collect()
    }

    pub fn names_on(&self, edge: &str) -> Vec<String> {
        self.on(edge).into_keys().collect()
    }

    /// Everything on the hub and the edges, without what depends on how many requests it took.
    pub fn everything(&self) -> BTreeMap<String, Value> {
        // Events and explanations are for people, and may be lost.
        let for_people = |key: &str| key.starts_with("events.") || key.ends_with("-explain");
        let hub = self.rig.hub.objects().into_iter().filter(|(key, _)| !for_people(key));
        let mut all: BTreeMap<String, Value> =
            hub.map(|(key, object)| (format!("hub/{key}"), essence(object))).collect();
        for edge in EDGES {
            all.extend(self.on(edge).into_iter().map(|(key, object)| (format!("{edge}/{key}"), object)));
        }
        all
    }
}

/// An object without what the server numbers, and without how many objects this very process saw go: a process that died
/// after a deletion cannot tell the next one. A row without such a count is stored in the short form, which says neither its
/// state nor since when; the deployment's status says the state.
fn essence(mut object: Value) -> Value {
    if object["kind"] == "SyncShard" {
        let shard: SyncShard = serde_json::from_value(object.clone()).unwrap();
        let rows = shard.status.as_ref().map(|status| shard::decode_status(&shard.spec, status));
        let rows: Vec<Value> = rows
            .into_iter()
            .flatten()
            .map(|(_, row)| {
                json!(RowStatus { counts: None, since: None, state: emco_crds::State::default(), ..row })
            })
            .collect();
        object["status"] = json!({"rows": rows, "conditions": object["status"]["conditions"]});
    }
    if let Some(deployed) = object.pointer_mut("/status/deployed").and_then(Value::as_object_mut) {
        deployed.remove("deleted");
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|key, _| !matches!(key.as_str(), "uid" | "resourceVersion" | "managedFields"));
    }
    object
}

/// Where two ends differ: object by object, field by field.
pub fn difference(left: &BTreeMap<String, Value>, right: &BTreeMap<String, Value>) -> String {
    let mut all = String::new();
    differ("", &json!(left), &json!(right), &mut all);
    all
}

fn differ(path: &str, left: &Value, right: &Value, all: &mut String) {
    match (left, right) {
        (Value::Object(l), Value::Object(r)) => {
            let keys: BTreeSet<&String> = l.keys().chain(r.keys()).collect();
            for key in keys {
                let of = |map: &serde_json::Map<String, Value>| map.get(key).cloned().unwrap_or_default();
                differ(&format!("{path} {key}"), &of(l), &of(r), all);
            }
        }
        (Value::Array(l), Value::Array(r)) if l.len() == r.len() => {
            for (at, (l, r)) in l.iter().zip(r).enumerate() {
                differ(&format!("{path} {at}"), l, r, all);
            }
        }
        _ if left == right => {}
        _ => all.push_str(&format!("{path}:\n  {left}\n  {right}\n")),
    }
}

/// Every resource version of the hub: to see that nothing at all was written.
pub fn versions(server: &MemoryServer) -> BTreeMap<String, Value> {
    server
        .objects()
        .into_iter()
        .map(|(key, object)| (key, json!(object["metadata"]["resourceVersion"])))
        .collect()
}

/// The server is asked through the trait, as everywhere.
pub async fn names(server: &MemoryServer, path: &str) -> Vec<String> {
    let list = server.send(crate::api::Request::new(Method::Get, path)).await.unwrap();
    let name = |item: &Value| item["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    list["items"].as_array().unwrap().iter().map(name).collect()
}
