//! A process as the driver runs it, but for its tasks: what watches show goes to the listeners of all kinds, and who is woken looks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use emco_crds::{AppContext, OwnerKind, SyncShard};
use emco_engine::identity::ClusterId;
use futures::StreamExt as _;
use kube::Resource;
use kube::runtime::watcher::Event;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::rig::Rig;
use super::usual::{Open, Usual};
use crate::abandon;
use crate::api::key_queue::{Key, KeyQueue};
use crate::kinds::{self, each_kind};
use crate::memory::MemoryServer;
use crate::object::context::Outcome;
use crate::object::meta::{name, namespace};
use crate::reconcile::context::Context;
use crate::reconcile::kind::{Controlled, Listener, Reach};
use crate::reconcile::orphans;
use crate::stores::{Feed, NamespaceMeta, Objects};
use crate::sync::{Sync, SyncContext, SyncSettings};
use crate::triggers::{Change, ContentChanged, RowsChanged};

/// More rounds than what any change of these tests brings.
const ROUNDS: usize = 40;

/// The objects of a kind, as its watch showed them.
pub struct Shown(BTreeMap<Key, String>);

impl Shown {
    /// Objects that are others now, and those that went.
    fn moved<K>(&mut self, hub: &MemoryServer, kind: &str, store: &Objects<K>) -> Vec<(K, bool)>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + 'static,
    {
        let text =
            |object: &Value, key: &str| object["metadata"][key].as_str().unwrap_or_default().to_owned();
        let mut moved = Vec::new();
        let mut there = BTreeSet::new();
        for object in hub.of_kind(kind) {
            let key = (text(&object, "namespace"), text(&object, "name"));
            let version = text(&object, "resourceVersion");
            if self.0.insert(key.clone(), version.clone()).as_ref() != Some(&version) {
                moved.push((serde_json::from_value(object).unwrap(), false));
            }
            there.insert(key);
        }
        let gone: Vec<Key> = self.0.keys().filter(|key| !there.contains(*key)).cloned().collect();
        for key in gone {
            self.0.remove(&key);
            moved.push((store.named(&key.0, &key.1).unwrap().as_ref().clone(), true));
        }
        moved
    }
}

/// The watch of a kind that is reconciled.
pub struct Watch<K: Controlled> {
    pub feed: Feed<K>,
    listener: Listener<K>,
    shown: Shown,
}

impl<K: Controlled> Watch<K> {
    fn new(feed: Feed<K>, reach: &Reach) -> Self {
        Self { feed, listener: K::listener(reach), shown: Shown(BTreeMap::new()) }
    }

    /// Shows an object that came, changed or went.
    pub fn show(&mut self, reach: &Reach, object: K, gone: bool) {
        let event = if gone { Event::Delete(object) } else { Event::Apply(object) };
        self.feed.apply_watcher_event(&event);
        let (Event::Delete(object) | Event::Apply(object)) = &event else { return };
        (self.listener)(reach, &Change { object, gone });
    }

    /// Shows all that there is, as a list that is read anew.
    pub fn list(&mut self, reach: &Reach, objects: Vec<K>) {
        self.feed.apply_watcher_event(&Event::Init);
        for object in &objects {
            self.feed.apply_watcher_event(&Event::InitApply(object.clone()));
        }
        self.feed.apply_watcher_event(&Event::InitDone);
        for object in objects {
            (self.listener)(reach, &Change { object: &object, gone: false });
        }
    }
}

macro_rules! watches {
    ($($store:ident: $kind:ident, $($column:tt),*;)*) => {
        /// Watches of all kinds.
        pub struct Watches {
            $(pub $store: Watch<kinds::$kind>,)*
            shards: (Feed<SyncShard>, Shown, RowsChanged, ContentChanged),
            contexts: (Feed<AppContext>, Shown),
            pub namespaces: (Feed<NamespaceMeta>, Shown),
        }

        impl Watches {
            fn new(writers: crate::stores::Writers, reach: &Reach) -> Self {
                let none = || Shown(BTreeMap::new());
                Self {
                    $($store: Watch::new(writers.$store, reach),)*
                    shards: (writers.shards, none(), RowsChanged::default(), ContentChanged::default()),
                    contexts: (writers.contexts, none()),
                    namespaces: (writers.namespaces, none()),
                }
            }

            /// Shows what the hub has. Objects that changed look themselves, as their controllers have it.
            fn see(&mut self, hub: &MemoryServer, reach: &Reach) -> bool {
                let mut news = self.see_others(hub, reach);
                $({
                    let kind = stringify!($kind);
                    for (object, gone) in self.$store.shown.moved(hub, kind, &reach.ctx.stores.$store) {
                        news = true;
                        reach.triggers.$store.enqueue(namespace(&object), name(&object));
                        self.$store.show(reach, object, gone);
                    }
                })*
                news
            }
        }

        impl Fleet {
            /// Those who are woken, by kind.
            pub fn woken(&self) -> BTreeMap<&'static str, Vec<String>> {
                let mut woken = BTreeMap::new();
                $(note(&mut woken, stringify!($kind), &self.reach.triggers.$store);)*
                note(&mut woken, "owner", &self.reach.triggers.owners);
                note(&mut woken, "ledger", &self.reach.triggers.ledgers);
                woken
            }

            /// Whoever is woken looks once.
            async fn look_once(&self) -> bool {
                let Reach { ctx, triggers, .. } = &self.reach;
                let mut looked = false;
                $(for (namespace, name) in taken(&triggers.$store) {
                    looked = true;
                    let outcome = kinds::$kind::reconcile(ctx, &namespace, &name).await;
                    // Soon, or after a lost race.
                    let again = outcome.map_or(true, is_soon);
                    if again {
                        triggers.$store.enqueue(&namespace, &name);
                    }
                })*
                looked
            }
        }
    };
}
each_kind!(reconciled => watches);

fn is_soon(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::After(after) if after <= crate::store::SHOWN)
}

fn taken(queue: &KeyQueue) -> Vec<Key> {
    std::iter::from_fn(|| queue.take()).collect()
}

fn note(woken: &mut BTreeMap<&'static str, Vec<String>>, kind: &'static str, queue: &KeyQueue) {
    let mut keys: Vec<String> =
        taken(queue).iter().map(|(namespace, name)| format!("{namespace}/{name}")).collect();
    keys.sort();
    if !keys.is_empty() {
        woken.insert(kind, keys);
    }
}

impl Watches {
    /// Those that nothing is reconciled for, as `driver.rs` hears of them.
    fn see_others(&mut self, hub: &MemoryServer, reach: &Reach) -> bool {
        let Reach { ctx, triggers, .. } = reach;
        let mut news = false;
        let (feed, shown) = &mut self.namespaces;
        for (object, gone) in shown.moved(hub, "Namespace", &ctx.stores.namespaces) {
            news = true;
            let named = name(&object).to_owned();
            feed.apply_watcher_event(&if gone { Event::Delete(object) } else { Event::Apply(object) });
            triggers.namespace_shown(ctx, &named);
        }
        let (feed, shown) = &mut self.contexts;
        for (object, gone) in shown.moved(hub, "AppContext", &ctx.stores.contexts) {
            news = true;
            ctx.stores.stored_bytes.note(&object, gone);
            let owner = object.spec.owner.clone();
            let within = namespace(&object).to_owned();
            feed.apply_watcher_event(&if gone { Event::Delete(object) } else { Event::Apply(object) });
            triggers.owner(&within, &owner.kind, &owner.name);
            triggers.producer(&owner.kind, &within, &owner.name);
        }
        let (feed, shown, rows, content) = &mut self.shards;
        for (object, gone) in shown.moved(hub, "SyncShard", &ctx.stores.shards) {
            news = true;
            show_shard(feed, (rows, content), reach, object, gone);
        }
        news
    }
}

fn show_shard(
    feed: &mut Feed<SyncShard>,
    (rows, content): (&RowsChanged, &ContentChanged),
    Reach { ctx, triggers, .. }: &Reach,
    object: SyncShard,
    gone: bool,
) {
    let event = if gone { Event::Delete(object) } else { Event::Apply(object) };
    feed.apply_watcher_event(&event);
    let (Event::Delete(object) | Event::Apply(object)) = &event else { return };
    let change = Change { object, gone };
    triggers.shard(object);
    if let Some(clusters) = rows.changed(&change) {
        triggers.rows(&ctx.stores, &clusters, object);
    }
    if content.changed(&ctx.stores, &change) {
        triggers.content(&ctx.stores, object);
    }
}

/// One process, and another one beside it that looks at everything.
pub struct Fleet {
    pub rig: Rig,
    pub reach: Reach,
    pub watches: Watches,
    changes: futures::stream::BoxStream<'static, ClusterId>,
}

impl Fleet {
    /// A process that begins on the hub of a rig. Nothing is shown yet.
    pub fn new(rig: Rig) -> Self {
        let (ctx, writers) = rig.blank();
        let ctx: Arc<Context> = Arc::new(ctx);
        let usual = Usual {
            stores: ctx.stores.clone(),
            producers: ctx.producers.clone(),
            suspended: Arc::<AtomicBool>::default(),
        };
        let sync = Sync::new(SyncContext {
            world: ctx.world.clone(),
            connections: ctx.connector.clone(),
            publishers: ctx.publishers.clone(),
            installation: ctx.installation.clone(),
            refusals: ctx.refusals.clone(),
            namespace: ctx.namespace.clone(),
            policies: Arc::new(usual),
            fence: Arc::new(Open),
            epoch: ctx.epoch,
            settings: SyncSettings::default(),
        });
        let changes = ctx.connector.changes();
        let reach = Reach { ctx, triggers: Arc::default(), sync, maps: Arc::default() };
        let watches = Watches::new(*writers, &reach);
        Self { rig, reach, watches, changes }
    }

    /// All kinds were listed.
    pub fn listed(&self) {
        for kind in crate::stores::KINDS {
            self.reach.ctx.stores.listed.done(kind);
        }
    }

    /// The same of a hub with these objects, where all is at rest. Clusters a, b and c answer.
    pub async fn at_rest(objects: &[Value]) -> Self {
        let mut rig = Rig::new();
        for cluster in ["a", "b", "c"] {
            rig.answers(cluster, &format!("uid-{cluster}"));
        }
        for object in objects {
            rig.hub.put("test", object);
        }
        rig.settle().await;
        Self::begun(rig).await
    }

    /// A process that begins on the hub of a rig, and has looked at all.
    pub async fn begun(rig: Rig) -> Self {
        let mut fleet = Self::new(rig);
        fleet.see();
        fleet.listed();
        fleet.look().await;
        fleet
    }

    /// Shows what changed, and has those look who are woken, until there is nothing new. What clusters may tell only later is told.
    pub async fn look(&mut self) {
        for _ in 0..ROUNDS {
            let mut news = self.see();
            news |= self.hear().await;
            news |= self.look_once().await;
            news |= self.look_beside().await;
            if !news {
                return;
            }
        }
        panic!("still something new after {ROUNDS} rounds: {:?}", self.woken());
    }

    /// Shows what changed on the hub.
    pub fn see(&mut self) -> bool {
        self.watches.see(&self.rig.hub, &self.reach)
    }

    /// Connections that changed, and what clusters held back.
    pub async fn hear(&mut self) -> bool {
        let Reach { ctx, triggers, .. } = &self.reach;
        let mut news = false;
        while let Ok(Some(id)) = tokio::time::timeout(std::time::Duration::ZERO, self.changes.next()).await {
            news = true;
            triggers.cluster_observed(ctx, &id);
        }
        tokio::time::advance(crate::triggers::APART).await;
        while let Some(change) = triggers.pace.take_due() {
            news = true;
            triggers.cluster(ctx, &change);
        }
        news
    }

    /// Owners, ledgers, and what is forwarded to queues.
    async fn look_beside(&self) -> bool {
        let Reach { ctx, triggers, .. } = &self.reach;
        let mut looked = false;
        for (within, owner) in taken(&triggers.owners) {
            looked = true;
            let (kind, name) = owner.split_once('/').unwrap();
            orphans::reconcile(ctx, &within, &OwnerKind::from(kind), name).await.unwrap();
        }
        for (within, ledger) in taken(&triggers.ledgers) {
            looked = true;
            abandon::reconcile_ledger(ctx, &within, &ledger).await.unwrap();
        }
        for (within, cloud) in taken(&ctx.people.wake) {
            triggers.clouds.enqueue(&within, &cloud);
        }
        for (within, app) in taken(&ctx.charts.wanted) {
            triggers.apps.enqueue(&within, &app);
        }
        for (within, app) in taken(&ctx.charts.arrived) {
            triggers.deployments(&ctx.stores, &within, |dig| dig.spec.composite_app_ref.name == app);
        }
        looked
    }

    /// A namespace, as its watch shows it.
    pub fn show_namespace(&mut self, object: NamespaceMeta) {
        let named = name(&object).to_owned();
        self.watches.namespaces.0.apply_watcher_event(&Event::Apply(object));
        self.reach.triggers.namespace_shown(&self.reach.ctx, &named);
    }

    /// A shard, as its watch shows it.
    pub fn show_shard(&mut self, shard: SyncShard) {
        let (feed, _, rows, content) = &mut self.watches.shards;
        show_shard(feed, (rows, content), &self.reach, shard, false);
    }
}
