//! A hub, edges, and an engine between them, as the operator would have them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_crds::app_context::{OwnerRef, PackKind};
use emco_crds::composite_app::Dependency;
use emco_crds::deployment_intent_group::sync::{ConflictPolicy, DriftPolicy, ImmutablePolicy, PrunePolicy};
use emco_crds::{OwnerKind, RowStatus, SyncShard, SyncShardSpec};
use emco_engine::health::rules::Rules;
use emco_engine::identity::{ClusterId, Combination};
use emco_engine::pack;
use emco_engine::set::ManifestSet;
use emco_engine::snapshot::Installation;
use emco_engine::{depends, marks, shard};
use futures::StreamExt;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

pub use self::sets::*;
use super::world::{FakeEdges, FixedClock, Open, Paced};
use crate::api::world::testing::Counter;
use crate::api::world::{Clock, World};
use crate::api::{ApiServer, ApiServerExt, Method, Request, WatchEvent};
use crate::memory::MemoryServer;
use crate::publish::Publishers;
use crate::sync::{Sync, SyncContext, SyncSettings};

mod sets;
mod until;

pub const KEY: [u8; 32] = [7; 32];
pub const SHARDS: &str = "/apis/emco.io/v1alpha1/namespaces/team-a/syncshards";

pub struct Rig {
    pub hub: MemoryServer,
    pub edges: Arc<FakeEdges>,
    pub publishers: Arc<Publishers>,
    pub fence: Arc<Open>,
    pub policy: Arc<Paced>,
    pub hash: String,
    /// Requests to one cluster at once.
    pub in_flight: usize,
    /// Clusters whose turn has come; all, if absent.
    pub given: Mutex<Option<BTreeSet<ClusterId>>>,
    revision: AtomicI64,
    /// What the wall clock shows: the same for ever, unless a test wants it to go on.
    pub clock: Arc<dyn Clock>,
    /// What apps of later targets wait for.
    pub depends: Mutex<BTreeMap<String, Vec<Dependency>>>,
    /// Whether an engine that starts is told the health rules.
    pub knows_rules: AtomicBool,
    /// Health rules, by key, as an engine finds them.
    pub rules: Mutex<BTreeMap<&'static str, &'static str>>,
    running: Mutex<Option<(CancellationToken, Vec<tokio::task::JoinHandle<()>>)>>,
    pub sync: Mutex<Option<Arc<Sync>>>,
    /// Shards by owner, as they were read last, with their versions.
    read: Mutex<BTreeMap<String, (Value, Arc<SyncShard>)>>,
}

pub fn cluster(name: &str) -> ClusterId {
    ClusterId::new("acme", name)
}

impl Rig {
    /// A hub and edges of these names, each with the namespace `shop`.
    pub fn new(names: &[&str]) -> Self {
        let hub = MemoryServer::new();
        for namespace in ["team-a", "emco-system"] {
            hub.put(
                "test",
                &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
            );
        }
        let servers: BTreeMap<ClusterId, MemoryServer> = names
            .iter()
            .map(|name| {
                let server = MemoryServer::new();
                server.put(
                    "test",
                    &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}),
                );
                (cluster(name), server)
            })
            .collect();
        Self {
            hub,
            edges: FakeEdges::new(servers),
            publishers: Arc::default(),
            fence: Arc::new(Open(AtomicBool::new(true))),
            policy: Arc::new(Paced::default()),
            hash: marks::owner_hash("inst", &OwnerKind::DeploymentIntentGroup, "team-a", "shop"),
            in_flight: SyncSettings::default().in_flight,
            given: Mutex::default(),
            revision: AtomicI64::new(0),
            clock: Arc::new(FixedClock),
            depends: Mutex::default(),
            knows_rules: AtomicBool::new(true),
            rules: Mutex::default(),
            running: Mutex::new(None),
            sync: Mutex::new(None),
            read: Mutex::default(),
        }
    }

    pub fn edge(&self, name: &str) -> MemoryServer {
        self.edges.servers[&cluster(name)].clone()
    }

    /// Starts an engine that sees the hub's shards through a watch.
    pub async fn start(&self) {
        let world = World {
            hub: Arc::new(self.hub.clone()),
            edges: self.edges.clone(),
            clock: Arc::clone(&self.clock),
            random: Arc::new(Counter::default()),
        };
        let sync = Sync::new(SyncContext {
            world,
            connections: self.edges.clone(),
            publishers: self.publishers.clone(),
            installation: Arc::new(Installation {
                id: "inst".to_owned(),
                digest_key: KEY,
                random_key: [8; 32],
            }),
            refusals: Arc::default(),
            namespace: "emco-system".to_owned(),
            policies: self.policy.clone(),
            fence: self.fence.clone(),
            epoch: 1,
            settings: SyncSettings { in_flight: self.in_flight, ..SyncSettings::default() },
        });
        if self.knows_rules.load(Ordering::Relaxed) {
            let rules = self.rules.lock();
            sync.health_rules().set(Rules::read(rules.iter().map(|(key, text)| (*key, Some(*text)))));
        }
        let stop = CancellationToken::new();
        let run = tokio::spawn(sync.clone().run(stop.clone()));
        let (hub, target) = (self.hub.clone(), sync.clone());
        let list = hub.send(Request::new(Method::Get, "/apis/emco.io/v1alpha1/syncshards")).await.unwrap();
        for item in list["items"].as_array().unwrap() {
            target.shard(serde_json::from_value(item.clone()).unwrap());
        }
        let version = list["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
        let request =
            Request::new(Method::Get, "/apis/emco.io/v1alpha1/syncshards").query("resourceVersion", version);
        let mut events = hub.watch(request).await.unwrap();
        let pump = tokio::spawn(async move {
            while let Some(Ok(event)) = events.next().await {
                match event {
                    WatchEvent::Applied(object) => target.shard(serde_json::from_value(object).unwrap()),
                    WatchEvent::Deleted(object) => {
                        target.shard_gone("team-a", object["metadata"]["name"].as_str().unwrap());
                    }
                    WatchEvent::Bookmark(_) => {}
                }
            }
        });
        *self.sync.lock() = Some(sync);
        *self.running.lock() = Some((stop, vec![run, pump]));
    }

    /// Sets what is done about changes by others, as an edit of the owner would.
    pub fn drift(&self, drift: DriftPolicy) {
        *self.policy.drift.lock() = drift;
        self.edited();
    }

    /// Suspends the owner or resumes it, as an edit would.
    pub fn suspend(&self, suspended: bool) {
        self.policy.suspended.store(suspended, Ordering::Relaxed);
        self.edited();
    }

    /// Sets when old objects are removed, as an edit of the owner would.
    pub fn prune(&self, prune: PrunePolicy) {
        *self.policy.prune.lock() = prune;
        self.edited();
    }

    /// Sets what is done where a field cannot be changed.
    pub fn immutable(&self, immutable: ImmutablePolicy) {
        *self.policy.immutable.lock() = immutable;
        self.edited();
    }

    /// Sets what is done about objects of others.
    pub fn conflicts(&self, conflicts: ConflictPolicy) {
        *self.policy.conflicts.lock() = conflicts;
        self.edited();
    }

    fn edited(&self) {
        if let Some(sync) = &*self.sync.lock() {
            sync.policy_changed(&OwnerKind::DeploymentIntentGroup, "team-a", "shop");
        }
    }

    /// Asks for a look now, as the annotation of the owner would.
    pub fn request(&self, text: &str) {
        *self.policy.requested.lock() = Some(text.to_owned());
        self.edited();
    }

    /// Ends the engine wherever it is: nothing is finished, nothing is told.
    pub async fn crash(&self) {
        let running = self.running.lock().take();
        if let Some((stop, tasks)) = running {
            stop.cancel();
            tasks[1].abort();
            for task in tasks {
                let _ = task.await;
            }
        }
    }

    /// Stores a revision and sets it as the target of clusters, as the store does; the engine hears what the hub answered.
    pub async fn target(&self, wanted: &BTreeMap<ClusterId, Vec<Arc<ManifestSet>>>) {
        self.target_of("shop", wanted).await;
    }

    /// The same of another deployment beside `shop`.
    pub async fn target_of(&self, owner: &str, wanted: &BTreeMap<ClusterId, Vec<Arc<ManifestSet>>>) {
        let hash = marks::owner_hash("inst", &OwnerKind::DeploymentIntentGroup, "team-a", owner);
        let revision = self.revision.fetch_add(1, Ordering::Relaxed) + 1;
        let sets: Vec<Arc<ManifestSet>> = wanted.values().flatten().cloned().collect();
        let mut packs = Vec::new();
        for object in pack::write_sets("uid-1", &sets).unwrap() {
            let bytes = STANDARD.encode(&object.bytes);
            let (plural, value) = match object.kind {
                PackKind::ConfigMap => (
                    "configmaps",
                    json!({"apiVersion": "v1", "kind": "ConfigMap", "binaryData": {"pack": bytes}}),
                ),
                PackKind::Secret => {
                    ("secrets", json!({"apiVersion": "v1", "kind": "Secret", "data": {"pack": bytes}}))
                }
            };
            let mut value = value;
            value["metadata"] = json!({"name": object.name, "namespace": "emco-system"});
            match self.hub.create(&format!("/api/v1/namespaces/emco-system/{plural}"), &value).await {
                Err(error) if !error.already_exists() => panic!("{error}"),
                _ => {}
            }
            packs.push(json!({"name": object.name, "kind": object.kind.as_str(), "bytes": object.bytes.len(), "digest": object.digest}));
        }
        let context = json!({
            "apiVersion": "emco.io/v1alpha1", "kind": "AppContext",
            "metadata": {"name": format!("dig-{owner}-{revision}"), "namespace": "team-a",
                "labels": {"emco.io/owner": hash, "emco.io/revision": revision.to_string()}},
            "spec": {"format": 1, "owner": {"kind": "DeploymentIntentGroup", "name": owner, "uid": "uid-1"}, "revision": revision,
                "digest": format!("sha256:{}", "0".repeat(64)), "cause": "Create", "packs": packs},
        });
        self.hub.create("/apis/emco.io/v1alpha1/namespaces/team-a/appcontexts", &context).await.unwrap();
        let combinations: BTreeMap<ClusterId, Combination> = wanted
            .iter()
            .map(|(id, sets)| (id.clone(), sets.iter().map(|s| (s.app.clone(), s.digest.clone())).collect()))
            .collect();
        loop {
            if self.retarget(owner, revision, &combinations).await {
                return;
            }
        }
    }

    /// Targets a revision that is stored already, as a pin does.
    pub async fn target_again(&self, revision: i64, wanted: &BTreeMap<ClusterId, Vec<Arc<ManifestSet>>>) {
        let sets =
            |sets: &Vec<Arc<ManifestSet>>| sets.iter().map(|s| (s.app.clone(), s.digest.clone())).collect();
        let combinations = wanted.iter().map(|(id, all)| (id.clone(), sets(all))).collect();
        while !self.retarget("shop", revision, &combinations).await {}
    }

    /// The rows with the identities of their clusters, as the controller records them at the first contact.
    fn contacted(&self, spec: SyncShardSpec) -> SyncShardSpec {
        let uids = self.edges.servers.iter().map(|(id, server)| (id.clone(), server.uid())).collect();
        shard::record_uids(&spec, &uids).unwrap_or(spec)
    }

    /// One try of the write-ahead; false when somebody wrote between.
    async fn retarget(&self, owner: &str, revision: i64, wanted: &BTreeMap<ClusterId, Combination>) -> bool {
        let path = format!("{SHARDS}/dig-{owner}-s00");
        let Some(live) = self.hub.get_as::<SyncShard>(&path).await.unwrap() else {
            let name = format!("dig-{owner}-s00");
            let owner = OwnerRef {
                kind: OwnerKind::DeploymentIntentGroup,
                name: owner.to_owned(),
                uid: "uid-1".to_owned(),
            };
            let empty = SyncShardSpec { format: 1, owner, next_id: 1, epoch: 1, ..SyncShardSpec::default() };
            let spec = shard::retarget(&empty, None, 1, revision, wanted).unwrap();
            let spec = self.contacted(self.in_order(&spec, revision, wanted).unwrap_or(spec));
            let object = json!({"apiVersion": "emco.io/v1alpha1", "kind": "SyncShard",
                "metadata": {"name": name, "namespace": "team-a"}, "spec": spec});
            return self.hub.create(SHARDS, &object).await.is_ok();
        };
        let next = crate::object::meta::writes(&live) + 1;
        let fresh = shard::retarget(&live.spec, live.status.as_ref(), next, revision, wanted);
        let ordered = self.in_order(fresh.as_ref().unwrap_or(&live.spec), revision, wanted);
        let Some(spec) = ordered.or(fresh) else { return true };
        let spec = self.contacted(spec);
        let mut value = serde_json::to_value(&live).unwrap();
        value["spec"] = serde_json::to_value(SyncShardSpec { writes: next, ..spec }).unwrap();
        let Ok(answer) = self.hub.replace(&path, &value).await else { return false };
        if let Some(sync) = &*self.sync.lock() {
            sync.targeted(serde_json::from_value(answer).unwrap());
        }
        true
    }

    /// The shard with the order of its apps, where that is another one.
    fn in_order(
        &self,
        spec: &SyncShardSpec,
        revision: i64,
        wanted: &BTreeMap<ClusterId, Combination>,
    ) -> Option<SyncShardSpec> {
        let all = self.depends.lock();
        let apps = all.iter().map(|(app, depends_on)| (app.as_str(), depends_on.as_slice()));
        let given = self.given.lock();
        let has_turn = |id: &ClusterId| given.as_ref().is_none_or(|given| given.contains(id));
        let of_turn: BTreeMap<ClusterId, Combination> = wanted
            .iter()
            .filter(|(id, _)| has_turn(id))
            .map(|(id, apps)| (id.clone(), apps.clone()))
            .collect();
        let order = depends::order(apps, &of_turn, revision).filter(|_| !wanted.is_empty());
        let having: BTreeSet<Combination> = of_turn.into_values().collect();
        depends::ordered(spec, order.as_ref(), given.as_ref().map(|_| &having))
    }

    /// From now on the hub's watch shows the engine nothing.
    pub fn deafen(&self) {
        if let Some((_, tasks)) = &*self.running.lock() {
            tasks[1].abort();
        }
    }

    pub fn shard(&self) -> SyncShard {
        SyncShard::clone(&self.shard_of("shop"))
    }

    /// Tests look often: it is read again when it changed.
    fn shard_of(&self, owner: &str) -> Arc<SyncShard> {
        let object = self.hub.object(&format!("{SHARDS}/dig-{owner}-s00")).unwrap();
        let version = object["metadata"]["resourceVersion"].clone();
        let mut read = self.read.lock();
        if let Some((known, shard)) = read.get(owner)
            && *known == version
        {
            return Arc::clone(shard);
        }
        let shard: Arc<SyncShard> = Arc::new(serde_json::from_value(object).unwrap());
        read.insert(owner.to_owned(), (version, Arc::clone(&shard)));
        shard
    }

    /// The stored result of a cluster's row.
    pub fn row(&self, name: &str) -> Option<RowStatus> {
        self.row_of("shop", name)
    }

    /// The same of another deployment.
    pub fn row_of(&self, owner: &str, name: &str) -> Option<RowStatus> {
        let live = self.shard_of(owner);
        let status = live.status.as_ref()?;
        if status.observed_generation != live.metadata.generation {
            return None;
        }
        let id = live.spec.clusters.iter().find(|row| row.cluster == cluster(name).as_str())?.id;
        shard::decode_status(&live.spec, status).remove(&id)
    }

    /// Whether the hub says that nothing is left to be done for a cluster.
    pub fn complete(&self, name: &str) -> bool {
        let live = self.shard_of("shop");
        let rows = shard::rows(&live.spec, live.status.as_ref());
        rows.iter().filter(|row| row.cluster == cluster(name)).all(|row| row.complete)
    }

    /// Names of our objects on an edge, sorted.
    pub fn ours(&self, name: &str) -> Vec<String> {
        let mine = |object: &Value| marks::owner_of(object) == Some(self.hash.as_str());
        self.edge(name).objects().into_iter().filter(|(_, object)| mine(object)).map(|(key, _)| key).collect()
    }
}
