//! Reads what the operator has of the hub, and puts it where the operator's own code finds it. Nothing of it is ever written.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use emco_controllers::api::world;
use emco_controllers::api::world::Random as _;
use emco_controllers::api::world::system::{SystemClock, SystemRandom};
use emco_controllers::chart::{ChartLimits, ChartStore};
use emco_controllers::driver::hub::{HubApi, Overlaid};
use emco_controllers::driver::installation;
use emco_controllers::object::context::HubContext;
use emco_controllers::reconcile::context::Context;
use emco_controllers::remote::dialer::{Dialer, DialerSettings, HubHosts, SystemResolver};
use emco_controllers::store::Revisions;
use emco_controllers::stores::{Feed, NamespaceMeta, Writers, stores};
use emco_crds::names::object::INSTALLATION;
use emco_crds::{CompositeApp, LogicalCloud, SyncShard};
use emco_engine::path::ApiPath;
use emco_engine::snapshot::Installation;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::Api;
use kube::api::ListParams;
use kube::runtime::reflector::Lookup;
use kube::runtime::watcher::Event;
use serde_json::Value;

use super::clusters::Recorded;
use super::overlay::Files;
use crate::cli::hub::{Hub, is_forbidden};

/// Objects of one page of a list.
const PAGE: u32 = 500;

macro_rules! lists {
    ($($store:ident: $kind:ident, $($column:tt),*;)*) => {
        /// What the operator watches, as far as plans of some namespaces depend on it.
        pub struct Lists {
            $(pub $store: Vec<emco_crds::$kind>,)*
            namespaces: Vec<NamespaceMeta>,
        }
    };
}
emco_crds::each_kind!(all => lists);

/// Where objects are listed.
struct Places<'a> {
    hub: &'a Hub,
    /// Namespaces of projects.
    wanted: &'a BTreeSet<String>,
    /// Namespaces whose shards count.
    sharing: &'a BTreeSet<String>,
    /// Listed before: they say which namespaces share.
    clouds: Vec<LogicalCloud>,
}

/// The objects of one row: all of them where they are of the hub, else those of the namespaces that are looked at.
macro_rules! list {
    ($places:ident, LogicalCloud $called:literal $writer:ident) => {
        std::mem::take(&mut $places.clouds)
    };
    ($places:ident, SyncShard $called:literal $writer:ident) => {
        within!($places.hub, $places.sharing, SyncShard, $called)
    };
    // No plan depends on questions, and nobody may list them.
    ($places:ident, $kind:ident $called:literal Member) => {
        Vec::new()
    };
    ($places:ident, $kind:ident $called:literal Hub) => {{
        let api = Api::<emco_crds::$kind>::all($places.hub.client.clone());
        $places.hub.list(api, &ListParams::default(), $called, None).await?
    }};
    ($places:ident, $kind:ident $called:literal $writer:ident) => {
        within!($places.hub, $places.wanted, emco_crds::$kind, $called)
    };
}

/// Those of some namespaces.
macro_rules! within {
    ($hub:expr, $namespaces:expr, $kind:ty, $what:literal) => {{
        let mut all = Vec::new();
        for namespace in $namespaces {
            let api = Api::<$kind>::namespaced($hub.client.clone(), namespace);
            all.extend($hub.list(api, &ListParams::default(), $what, Some(namespace.as_str())).await?);
        }
        all
    }};
}

impl Lists {
    /// Lists what the files are laid over: what lies in the namespaces of their projects, and all clusters.
    pub async fn read(hub: &Hub, files: &Files) -> anyhow::Result<Self> {
        let wanted = &files.namespaces();
        let api = Api::<LogicalCloud>::all(hub.client.clone());
        let clouds = hub.list(api, &ListParams::default(), "logical clouds", None).await?;
        let sharing = &sharing(&clouds, &files.clouds, wanted);
        let mut places = Places { hub, wanted, sharing, clouds };
        macro_rules! read {
            ($($store:ident: $kind:ident, $called:literal, $writer:ident, $($column:ident),*;)*) => {
                Self { $($store: list!(places, $kind $called $writer),)* namespaces: namespaces(hub).await? }
            };
        }
        Ok(emco_crds::each_kind!(all => read))
    }
}

/// Namespaces whose shards count: also those of other logical clouds that have the same namespace on clusters.
fn sharing(
    clouds: &[LogicalCloud],
    of_files: &[LogicalCloud],
    wanted: &BTreeSet<String>,
) -> BTreeSet<String> {
    let own = |cloud: &LogicalCloud| cloud.metadata.namespace.clone().unwrap_or_default();
    let on_clusters = |cloud: &LogicalCloud| cloud.spec.namespace.clone().unwrap_or_else(|| own(cloud));
    let looked_at = clouds.iter().filter(|cloud| wanted.contains(&own(cloud))).chain(of_files);
    let known: BTreeSet<String> = looked_at.map(on_clusters).collect();
    let others = clouds.iter().filter(|cloud| known.contains(&on_clusters(cloud))).map(own);
    wanted.iter().cloned().chain(others).collect()
}

async fn namespaces(hub: &Hub) -> anyhow::Result<Vec<NamespaceMeta>> {
    let api = Api::<Namespace>::all(hub.client.clone());
    let mut params = ListParams::default().limit(PAGE);
    let mut all = Vec::new();
    loop {
        let page = api.list_metadata(&params).await;
        let page = page.map_err(|error| hub.sentence(&error, "list namespaces", "of the hub"))?;
        all.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params.continue_token = Some(token),
            None => return Ok(all),
        }
    }
}

/// The keys of the installation: without them, what charts draw and what stands for Secrets would be other than the operator's.
async fn keys(hub: &Hub) -> anyhow::Result<Installation> {
    let namespace = &hub.operator_namespace;
    let name = format!("{namespace}/{INSTALLATION}");
    let api = Api::<Secret>::namespaced(hub.client.clone(), namespace);
    let why =
        "random values and digests are made with its keys, so that no plan can be worked out without them";
    match api.get_opt(INSTALLATION).await {
        Ok(Some(secret)) => {
            Ok(installation::read(&name, &serde_json::to_value(secret).context("a Secret cannot be read")?)?)
        }
        Ok(None) => Err(anyhow!(
            "there is no Secret {name} on the hub {}: {why}; name the operator's namespace with --operator-namespace",
            hub.url
        )),
        Err(error) if is_forbidden(&error) => Err(hub
            .sentence(&error, "read secret", &name)
            .context(format!("{why}: the right to get Secret {name} is missing"))),
        Err(error) => Err(hub.sentence(&error, "read secret", &name)),
    }
}

/// A folder of this process, removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(format!("kubectl-emco-{:016x}", SystemRandom::new().next()));
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        made.with_context(|| format!("the folder {} for charts cannot be made", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left there is a cache.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The operator's view of the hub.
pub struct World {
    pub ctx: Context,
    pub clusters: Arc<Recorded>,
    writers: Writers,
    _folder: Folder,
}

impl World {
    /// Puts lists where a reconcile looks for them; `over` are ConfigMaps and Secrets of the files.
    pub async fn open(hub: &Hub, lists: Lists, over: BTreeMap<ApiPath, Value>) -> anyhow::Result<Self> {
        let folder = Folder::new()?;
        let host = hub.url.parse::<http::Uri>().ok().and_then(|url| url.host().map(str::to_owned));
        let hosts = HubHosts::new(host.as_deref());
        let resolver = Arc::new(SystemResolver::new().map_err(anyhow::Error::msg)?);
        let dialer = Dialer::new(DialerSettings { hub: hosts, ..DialerSettings::default() }, resolver);
        let charts = ChartStore::new(folder.0.join("charts"), dialer, ChartLimits::default());
        let server = Overlaid::new(Arc::new(HubApi::new(hub.client.clone())), over);
        let clusters = Arc::<Recorded>::default();
        let (stores, writers) = stores();
        let world = world::World {
            hub: Arc::new(server),
            edges: clusters.clone(),
            clock: Arc::new(SystemClock),
            random: Arc::new(SystemRandom::new()),
        };
        let charts =
            charts.map_err(|error| anyhow!("charts cannot be kept in a temporary folder: {error}"))?;
        let keys = Arc::new(keys(hub).await?);
        let reached = HubContext::new(world, stores, clusters.clone(), keys, &hub.operator_namespace);
        let ctx = Context::new(reached, Revisions::default(), charts, Arc::default());
        let mut world = Self { ctx, clusters, writers, _folder: folder };
        world.show(lists);
        world.clusters.record(&world.ctx);
        Ok(world)
    }

    fn show(&mut self, lists: Lists) {
        let stores = &self.ctx.stores;
        for cloud in &lists.clouds {
            stores.cloud_namespaces.note(cloud, false);
        }
        for dig in &lists.digs {
            stores.deployment_places.note(dig, false);
            stores.releases.note(dig, false);
        }
        for project in &lists.projects {
            stores.suspended.note(project, false);
        }
        let writers = &mut self.writers;
        macro_rules! show_each {
            ($($store:ident: $kind:ident, $($column:tt),*;)*) => {
                $(show(&mut writers.$store, lists.$store);)*
            };
        }
        emco_crds::each_kind!(all => show_each);
        show(&mut writers.namespaces, lists.namespaces);
    }

    /// Puts a composite application in the place of the one that is there.
    pub fn put(&mut self, app: CompositeApp) {
        self.writers.apps.apply_watcher_event(&Event::Apply(app));
    }
}

fn show<K>(writer: &mut Feed<K>, objects: Vec<K>)
where
    K: Lookup<DynamicType = ()> + Clone + 'static,
{
    writer.apply_watcher_event(&Event::Init);
    for object in objects {
        writer.apply_watcher_event(&Event::InitApply(object));
    }
    writer.apply_watcher_event(&Event::InitDone);
}
