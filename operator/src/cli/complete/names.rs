//! Names that stand on the hub, for completion: asked for briefly, and none where the hub does not answer.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use emco_crds::{
    AppContext, Cluster, ClusterProvider, CompositeApp, DeploymentIntentGroup, Project, SyncShard,
};
use kube::api::ListParams;
use kube::core::NamespaceResourceScope;
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use crate::cli::args::HubArgs;
use crate::cli::hub::{self, Hub};

/// Longest wait after the key is pressed.
const PATIENCE: Duration = Duration::from_secs(3);
/// Objects that are read.
const MOST: u32 = 500;

/// What a word may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// `provider/cluster`
    Clusters,
    /// `project/deployment`, or `deployment` where a namespace is given.
    Deployments,
    /// The same of composite apps.
    CompositeApps,
    /// Providers.
    Providers,
    /// Namespaces of projects and providers.
    Namespaces,
    /// Apps of the deployment that the line names, else all.
    Apps,
    /// Stored revisions of it.
    Revisions,
    /// Contexts of the user's kubeconfig.
    Contexts,
}

/// What stands in the line before the word: flags by their long name, and words without a flag.
#[derive(Debug, Default)]
pub struct Line {
    /// By long name.
    pub flags: BTreeMap<String, String>,
    /// Words without a flag, without the commands.
    pub words: Vec<String>,
}

/// All names that may stand there.
pub async fn find(names: Names, line: &Line) -> BTreeSet<String> {
    let found = tokio::time::timeout(PATIENCE, Box::pin(ask(names, line))).await;
    found.ok().flatten().unwrap_or_default()
}

async fn ask(names: Names, line: &Line) -> Option<BTreeSet<String>> {
    let flag = |name: &str| line.flags.get(name).cloned();
    if names == Names::Contexts {
        let file = flag("edge-kubeconfig").or_else(|| flag("kubeconfig")).map(PathBuf::from);
        let kubeconfig = hub::kubeconfig(file.as_deref()).ok()?;
        return Some(kubeconfig.contexts.into_iter().map(|context| context.name).collect());
    }
    // `cluster add` names the cluster's kubeconfig and the hub's apart.
    let own = |name: &str| flag(&format!("hub-{name}")).or_else(|| flag(name));
    let adds = line.flags.contains_key("hub-kubeconfig") || line.flags.contains_key("hub-context");
    let args = HubArgs {
        kubeconfig: if adds { flag("hub-kubeconfig") } else { own("kubeconfig") }.map(PathBuf::from),
        context: if adds { flag("hub-context") } else { own("context") },
        as_user: flag("as"),
        as_group: flag("as-group").into_iter().collect(),
        operator_namespace: String::new(),
    };
    let hub = hub::connect(&args).await.ok()?;
    let namespace = flag("namespace");
    Some(match names {
        Names::Clusters => clusters(&hub).await,
        Names::Deployments => owned::<DeploymentIntentGroup>(&hub, namespace).await,
        Names::CompositeApps => owned::<CompositeApp>(&hub, namespace).await,
        Names::Providers => list(Api::<ClusterProvider>::all(hub.client.clone()))
            .await?
            .iter()
            .map(ResourceExt::name_any)
            .collect(),
        Names::Namespaces => {
            let projects = projects(&hub).await.into_keys();
            let providers = list(Api::<ClusterProvider>::all(hub.client.clone())).await.unwrap_or_default();
            let of = |provider: ClusterProvider| {
                provider.spec.namespace.clone().unwrap_or_else(|| provider.name_any())
            };
            projects.chain(providers.into_iter().map(of)).collect()
        }
        Names::Apps => revisions(&hub, line)
            .await
            .iter()
            .flat_map(|one| &one.spec.apps)
            .map(|app| app.name.clone())
            .collect(),
        Names::Revisions => {
            revisions(&hub, line).await.iter().map(|one| one.spec.revision.to_string()).collect()
        }
        Names::Contexts => BTreeSet::new(),
    })
}

/// Clusters; for a tenant those of its shards.
async fn clusters(hub: &Hub) -> BTreeSet<String> {
    if let Some(clusters) = list(Api::<Cluster>::all(hub.client.clone())).await {
        let id = |cluster: &Cluster| {
            let provider = cluster.status.as_ref().and_then(|status| status.provider.clone());
            let provider = provider.or_else(|| cluster.namespace()).unwrap_or_default();
            format!("{provider}/{}", cluster.name_any())
        };
        return clusters.iter().map(id).collect();
    }
    let shards = list(Api::<SyncShard>::namespaced(hub.client.clone(), &hub.namespace)).await;
    shards.into_iter().flatten().flat_map(|shard| shard.spec.clusters).map(|row| row.cluster).collect()
}

/// Objects of projects as people name them.
async fn owned<K>(hub: &Hub, namespace: Option<String>) -> BTreeSet<String>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned,
{
    let within = async |namespace: &str| {
        let found = list(Api::<K>::namespaced(hub.client.clone(), namespace)).await.unwrap_or_default();
        found.iter().map(ResourceExt::name_any).collect::<BTreeSet<_>>()
    };
    if let Some(namespace) = namespace {
        return within(&namespace).await;
    }
    let Some(all) = list(Api::<K>::all(hub.client.clone())).await else {
        // A tenant names what is in its own namespace.
        return within(&hub.namespace).await;
    };
    let projects = projects(hub).await;
    let named = |object: &K| {
        let namespace = object.namespace().unwrap_or_default();
        format!("{}/{}", projects.get(&namespace).unwrap_or(&namespace), object.name_any())
    };
    all.iter().map(named).collect()
}

/// Projects by their namespace.
async fn projects(hub: &Hub) -> BTreeMap<String, String> {
    let projects = list(Api::<Project>::all(hub.client.clone())).await.unwrap_or_default();
    projects
        .into_iter()
        .map(|project| {
            let name = project.name_any();
            (project.spec.namespace.unwrap_or_else(|| name.clone()), name)
        })
        .collect()
}

/// Stored revisions of the deployment that the line names.
async fn revisions(hub: &Hub, line: &Line) -> Vec<AppContext> {
    let namespace = line.flags.get("namespace").map(String::as_str);
    let Some(deployment) = line.words.first().and_then(|word| word.parse().ok()) else { return Vec::new() };
    let Ok((namespace, name)) = hub.locate(&deployment, namespace).await else { return Vec::new() };
    let params = ListParams::default().labels(&hub::shards_of(&name)).limit(MOST);
    let api = Api::<AppContext>::namespaced(hub.client.clone(), &namespace);
    api.list(&params).await.map(|list| list.items).unwrap_or_default()
}

async fn list<K>(api: Api<K>) -> Option<Vec<K>>
where
    K: Resource + Clone + std::fmt::Debug + DeserializeOwned,
{
    Some(api.list(&ListParams::default().limit(MOST)).await.ok()?.items)
}
