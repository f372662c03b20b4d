//! A hub in memory and the reconcilers of administrators' objects, run until nothing is written any more.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_engine::snapshot::Installation;
use serde_json::{Value, json};

use super::beacon::{self, Beacons};
use super::rights::Guarded;
use super::world::{Seeing, TestClock};
use crate::abandon;
use crate::api::unreachable::UnreachableSince;
use crate::api::world::World;
use crate::api::world::testing::Counter;
use crate::api::{ApiServer, Method};
use crate::chart::{ChartLimits, ChartStore};
use crate::kinds::{self, each_kind};
use crate::memory::{MemoryServer, Seen};
use crate::object::context::{Failure, HubContext};
use crate::object::meta::{name, namespace as namespace_of};
use crate::reconcile::context::Context;
use crate::reconcile::kind::Controlled as _;
use crate::reconcile::{hardware, orphans, project};
use crate::remote::dialer::{Dialer, DialerSettings, SystemResolver};
use crate::remote::testing::kubeconfig;
use crate::store::{RevisionSettings, Revisions};
use crate::stores::{Writers, stores};

mod outside;
mod shown;

pub use outside::Outside;
use shown::Shown;

/// More rounds than any of these worlds needs.
const ROUNDS: usize = 40;

pub struct Rig {
    pub hub: MemoryServer,
    pub seeing: Arc<Seeing>,
    pub ctx: Context,
    pub clock: TestClock,
    /// Of the processes from the next one on.
    pub settings: RevisionSettings,
    /// A namespace as the watch shows it, whatever the hub has.
    pub hidden_namespace: Option<Value>,
    /// Namespaces that were suspended or resumed since somebody was last told.
    pub resuspended: BTreeSet<String>,
    writers: Box<Writers>,
    shown: Shown,
    charts: Arc<tempfile::TempDir>,
}

fn context(
    (hub, beacons): (Arc<dyn ApiServer>, &MemoryServer),
    clock: &TestClock,
    seeing: &Arc<Seeing>,
    charts: &tempfile::TempDir,
    settings: &RevisionSettings,
) -> (Context, Box<Writers>) {
    let (stores, writers) = stores();
    let dialer = Dialer::new(DialerSettings::default(), Arc::new(SystemResolver::new().unwrap()));
    let world = World {
        hub: Arc::new(Guarded(hub)),
        edges: seeing.clone(),
        clock: Arc::new(clock.clone()),
        random: Arc::new(Counter::default()),
    };
    let keys = Installation { id: "inst".to_owned(), digest_key: [7; 32], random_key: [8; 32] };
    let reached = HubContext {
        epoch: 1,
        // What was before a restart counts, as tests of all else expect.
        unreachable: UnreachableSince::new(Arc::new(clock.clone()), Duration::ZERO),
        ..HubContext::new(world, stores, seeing.clone(), Arc::new(keys), "emco-system")
    };
    let charts = ChartStore::new(charts.path().join("charts"), dialer, ChartLimits::default()).unwrap();
    let mut ctx = Context::new(reached, Revisions::new(settings.clone()), charts, Arc::default());
    ctx.producers = ctx.producers.and(Arc::new(Beacons(beacons.clone())));
    (ctx, Box::new(writers))
}

impl Rig {
    pub fn new() -> Self {
        let hub = MemoryServer::new();
        hub.put("test", &namespace("emco-system", &json!({})));
        let (seeing, charts) = (Arc::new(Seeing::default()), Arc::new(tempfile::tempdir().unwrap()));
        let clock = TestClock::new();
        // Everything is told in the round that targets it.
        let settings = RevisionSettings { report_delay: Duration::ZERO, ..RevisionSettings::default() };
        let (ctx, writers) = context((Arc::new(hub.clone()), &hub), &clock, &seeing, &charts, &settings);
        Self {
            hub,
            seeing,
            ctx,
            clock,
            settings,
            hidden_namespace: None,
            resuspended: BTreeSet::new(),
            writers,
            shown: Shown::new(),
            charts,
        }
    }

    /// Another process on the same hub, reached through something else.
    pub fn beside(&self, hub: Arc<dyn ApiServer>) -> Self {
        let charts = Arc::new(tempfile::tempdir().unwrap());
        let settings = self.settings.clone();
        let (ctx, writers) = context((hub, &self.hub), &self.clock, &self.seeing, &charts, &settings);
        let (hub, seeing, clock) = (self.hub.clone(), self.seeing.clone(), self.clock.clone());
        Self {
            hub,
            seeing,
            ctx,
            clock,
            settings,
            hidden_namespace: None,
            resuspended: BTreeSet::new(),
            writers,
            shown: Shown::new(),
            charts,
        }
    }

    /// A process like this one to which nothing was shown yet, and what its watches write to.
    pub fn blank(&self) -> (Context, Box<Writers>) {
        let hub = Arc::new(self.hub.clone());
        context((hub, &self.hub), &self.clock, &self.seeing, &self.charts, &self.settings)
    }

    /// The next process has no charts on its disk.
    pub fn forget_charts(&mut self) {
        self.charts = Arc::new(tempfile::tempdir().unwrap());
    }

    /// The process dies: what it only remembered is gone.
    pub fn restart(&mut self) {
        let hub = Arc::new(self.hub.clone());
        self.shown.clear();
        (self.ctx, self.writers) =
            context((hub, &self.hub), &self.clock, &self.seeing, &self.charts, &self.settings);
    }

    /// Every Project once, as the watches have shown things.
    pub async fn look_at_projects(&mut self) -> Result<(), Failure> {
        for o in self.ctx.stores.projects.sorted() {
            project::reconcile(&self.ctx, name(o.as_ref())).await?;
        }
        Ok(())
    }

    /// Every reconciler once over every object, as the watches would show them before. A failure keeps nobody else from
    /// being looked at.
    pub async fn round(&mut self) -> Vec<Failure> {
        self.see();
        let ctx = &self.ctx;
        hardware::look(ctx).await;
        let mut failures = Vec::new();
        macro_rules! reconcile_each {
            ($($store:ident: $kind:ident, $($column:tt),*;)*) => {$(
                for object in ctx.stores.$store.sorted() {
                    let (namespace, name) = (namespace_of(object.as_ref()), name(object.as_ref()));
                    failures.extend(kinds::$kind::reconcile(ctx, namespace, name).await.err());
                }
            )*};
        }
        each_kind!(reconciled => reconcile_each);
        for o in beacon::all(&self.hub) {
            failures.extend(beacon::reconcile(ctx, &o).await.err());
        }
        let owner = |namespace: &str, owner: &emco_crds::app_context::OwnerRef| {
            (namespace.to_owned(), owner.kind.clone(), owner.name.clone())
        };
        let mut owners = BTreeSet::new();
        for shard in ctx.stores.shards.sorted() {
            if shard.spec.abandoned.is_some() {
                let (namespace, name) = (namespace_of(shard.as_ref()), name(shard.as_ref()));
                failures.extend(abandon::reconcile_ledger(ctx, namespace, name).await.err());
                continue;
            }
            owners.insert(owner(namespace_of(shard.as_ref()), &shard.spec.owner));
        }
        for context in ctx.stores.contexts.sorted() {
            owners.insert(owner(namespace_of(context.as_ref()), &context.spec.owner));
        }
        for (namespace, kind, name) in owners {
            failures.extend(orphans::reconcile(ctx, &namespace, &kind, &name).await.err());
        }
        failures
    }

    /// Rounds until one writes nothing. A failure is a crash: the process starts again.
    pub async fn settle(&mut self) {
        for _ in 0..ROUNDS {
            self.hub.take_seen();
            if !self.round().await.is_empty() {
                self.restart();
            } else if self.writes().is_empty() {
                return;
            }
        }
        panic!("still writing after {ROUNDS} rounds: {:?}", self.writes());
    }

    /// Writes since the last look.
    pub fn writes(&self) -> Vec<Seen> {
        self.hub.take_seen().into_iter().filter(|seen| seen.method != Method::Get).collect()
    }

    /// Status, reason and message of an object's condition Ready.
    pub fn ready(&self, path: &str) -> (String, String, String) {
        let object = self.hub.object(path).unwrap_or_else(|| panic!("{path} is there"));
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let ready = conditions.into_iter().find(|c| c["type"] == "Ready").unwrap_or_default();
        let text = |key: &str| ready[key].as_str().unwrap_or_default().to_owned();
        (text("status"), text("reason"), text("message"))
    }

    /// Revisions on the hub: number and digest, in order.
    pub fn revisions(&self) -> Vec<(i64, String)> {
        let objects = self.hub.objects();
        let contexts = objects.values().filter(|object| object["kind"] == "AppContext");
        let mut all: Vec<_> = contexts
            .map(|c| {
                (c["spec"]["revision"].as_i64().unwrap(), c["spec"]["digest"].as_str().unwrap().to_owned())
            })
            .collect();
        all.sort();
        all
    }
}

pub fn namespace(name: &str, labels: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
}

pub fn emco(kind: &str, namespace: Option<&str>, name: &str, spec: &Value) -> Value {
    let mut object =
        json!({"apiVersion": "emco.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec});
    if let Some(namespace) = namespace {
        object["metadata"]["namespace"] = json!(namespace);
    }
    object
}

pub fn cluster_object(name: &str) -> Value {
    emco("Cluster", Some("acme"), name, &json!({"access": {"kubeconfigSecretRef": {"name": name}}}))
}

pub fn secret(name: &str) -> Value {
    secret_with(name, "t")
}

/// A kubeconfig with a token.
pub fn secret_with(name: &str, token: &str) -> Value {
    static AUTHORITY: OnceLock<String> = OnceLock::new();
    let authority = AUTHORITY
        .get_or_init(|| rcgen::generate_simple_self_signed(vec!["edge".to_owned()]).unwrap().cert.pem());
    let config = STANDARD.encode(kubeconfig("https://192.0.2.1:6443", authority, token));
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "acme"},
        "data": {"kubeconfig": config}})
}

/// These objects, and what became of them while cluster a answers.
pub async fn settled_with(objects: Vec<Value>) -> Rig {
    let mut rig = Rig::new();
    rig.answers("a", "uid-a");
    for object in objects {
        rig.hub.put("test", &object);
    }
    rig.settle().await;
    rig
}

/// The same of the [`world`].
pub async fn settled() -> Rig {
    settled_with(world()).await
}

/// A provider that grants its clusters to project team-a, one cluster, and the project with its default cloud.
pub fn world() -> Vec<Value> {
    vec![
        namespace("acme", &json!({"emco.io/provider": "acme"})),
        emco(
            "ClusterProvider",
            None,
            "acme",
            &json!({"grants": [{"name": "all", "projects": ["team-a"], "maxLevel": "Admin"}]}),
        ),
        secret("a"),
        cluster_object("a"),
        emco("Project", None, "team-a", &json!({"logicalCloud": {"level": "Admin"}})),
    ]
}
