//! What a deployment shall have on its clusters, and what is there, come in; the fields that differ go out. Nothing is changed: the
//! API server of each cluster is asked what an apply would do (a dry run).
//!
//! What a deployment shall have is stored in packs in the operator's namespace, and clusters are reached with the kubeconfigs of
//! their providers. Tenants can read neither, on purpose: this command is for those who administer the hub.

use std::collections::BTreeMap;

use anyhow::{anyhow, bail};
use emco_controllers::sync::content::{Content as _, HubContent, Source};
use emco_crds::SyncShard;
use emco_crds::deployment_intent_group::view::{Question, ViewOf};
use emco_engine::identity::ClusterId;
use emco_engine::shard::{Content, Row, Target, rows};
use emco_engine::text::counted;
use kube::ResourceExt as _;
use serde::{Deserialize, Serialize};

use super::args::DiffArgs;
use super::hub::{self, Hub};
use super::output::machine;
use super::{Outcome, print, stored};

mod compare;
pub(super) mod edge;
pub(super) mod past;
mod refused;
mod theirs;

pub(super) use compare::{Field, fields};

/// One cluster.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OnCluster {
    cluster: String,
    /// The revision whose manifests it was compared with; absent where everything is to be removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<i64>,
    /// Objects that were compared.
    compared: usize,
    differences: Vec<Difference>,
    /// Why it could not be compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// One object that is not as it shall be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Difference {
    /// The app; absent for what no app shall have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    /// `group/kind/namespace/name`
    pub object: String,
    /// What an apply would do.
    pub change: Change,
    /// A sentence where the change needs one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The fields that would change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<compare::Field>,
}

/// What an apply would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Change {
    /// It is not there.
    Create,
    /// Fields differ.
    Update,
    /// It is there and no manifest has it any more.
    Remove,
    /// An object of this name is somebody else's.
    Foreign,
    /// The API server would refuse it.
    Refused,
}

impl Change {
    const fn said(self) -> &'static str {
        match self {
            Self::Create => "is missing",
            Self::Update => "differs",
            Self::Remove => "is to be removed",
            Self::Foreign => "is somebody else's",
            Self::Refused => "cannot be applied",
        }
    }
}

pub async fn run(args: DiffArgs) -> anyhow::Result<Outcome> {
    let hub = hub::connect(&args.named.hub).await?;
    let (namespace, name) = hub.locate(&args.named.deployment, args.named.namespace.as_deref()).await?;
    let group = hub.deployment(&namespace, &name).await?;
    let question = Question {
        what: ViewOf::Differences,
        clusters: args.cluster.clone(),
        revision: args.revision,
        ..Question::default()
    };
    let on_hub = (namespace.clone(), name.clone());
    let clusters: Vec<OnCluster> = match stored::by_operator(&hub, "diff", &on_hub, question).await? {
        Some(handed) => handed,
        None => compared(&hub, &on_hub, &args.cluster, args.revision).await?,
    };
    let has = |wanted: &str| clusters.iter().any(|one| one.cluster == wanted);
    if let Some(missing) = args.cluster.iter().find(|wanted| !has(wanted)) {
        bail!("{namespace}/{name} has nothing on cluster {missing}, and shall have nothing there");
    }
    if clusters.is_empty() {
        let state = group.status.as_ref().and_then(|status| status.state).unwrap_or_default();
        eprintln!("{namespace}/{name} ({state}) has nothing on any cluster");
    }
    match machine(args.output, &clusters)? {
        Some(text) => print(&text)?,
        None => print(&text(&clusters))?,
    }
    let failed: Vec<&str> = clusters
        .iter()
        .filter(|cluster| cluster.error.is_some())
        .map(|cluster| cluster.cluster.as_str())
        .collect();
    if !failed.is_empty() {
        let all = counted(clusters.len(), "cluster");
        bail!("{} of {all} could not be compared: {}", failed.len(), failed.join(", "));
    }
    let same = clusters.iter().all(|cluster| cluster.differences.is_empty());
    Ok(if same { Outcome::AsWanted } else { Outcome::NotAsWanted })
}

/// Compares clusters, each with what it shall have, or with what a revision gave it; all of the deployment if none is named.
pub async fn compared(
    hub: &Hub,
    (namespace, name): &(String, String),
    named: &[String],
    revision: Option<i64>,
) -> anyhow::Result<Vec<OnCluster>> {
    let shards = hub.shards(namespace, name).await?;
    let content = stored::content(hub);
    let mut past = match revision {
        Some(number) => Some(past::read(hub, &content, namespace, name, number).await?),
        None => None,
    };
    let mut clusters = BTreeMap::new();
    let asked = |id: &ClusterId| named.is_empty() || named.iter().any(|one| one == id.as_str());
    for shard in &shards {
        for row in rows(&shard.spec, shard.status.as_ref()).iter().filter(|row| asked(&row.cluster)) {
            let mut side = Side::of(shard, row)?;
            if let Some(past) = &mut past {
                side.before.extend(side.wanted.take().map(Content::Sets));
                (side.wanted, side.now) = (past.remove(&row.cluster), false);
                if side.wanted.is_none() && side.before.is_empty() {
                    continue;
                }
            } else if row.target.is_none() && row.complete {
                continue;
            }
            clusters.insert(row.cluster.to_string(), on_cluster(hub, &content, side).await);
        }
    }
    // Clusters that the revision had and that have nothing now.
    for (cluster, wanted) in past.unwrap_or_default().into_iter().filter(|(cluster, _)| asked(cluster)) {
        let hash = match shards.first() {
            Some(shard) => stored::owner_hash(shard)?,
            None => past::owner_hash(hub, namespace, name).await?,
        };
        let (namespace, wanted) = (namespace.clone(), Some(wanted));
        let side = Side { cluster, uid: None, hash, namespace, wanted, before: Vec::new(), now: false };
        clusters.insert(side.cluster.to_string(), on_cluster(hub, &content, side).await);
    }
    Ok(clusters.into_values().collect())
}

/// One cluster: what it shall have and what it may have.
struct Side {
    cluster: ClusterId,
    uid: Option<String>,
    /// Of the owner.
    hash: String,
    namespace: String,
    wanted: Option<Target>,
    before: Vec<Content>,
    /// It is wanted at present.
    now: bool,
}

impl Side {
    fn of(shard: &SyncShard, row: &Row) -> anyhow::Result<Self> {
        Ok(Self {
            cluster: row.cluster.clone(),
            uid: row.uid.clone(),
            hash: stored::owner_hash(shard)?,
            namespace: shard.namespace().unwrap_or_default(),
            wanted: row.target.clone(),
            before: row.may_have.clone(),
            now: true,
        })
    }
}

async fn on_cluster(hub: &Hub, content: &HubContent, side: Side) -> OnCluster {
    let mut found = OnCluster {
        cluster: side.cluster.to_string(),
        revision: side.wanted.as_ref().map(|target| target.revision),
        compared: 0,
        differences: Vec::new(),
        error: None,
    };
    match compare_side(hub, content, side).await {
        Ok((compared, differences)) => (found.compared, found.differences) = (compared, differences),
        Err(error) => found.error = Some(format!("{error:#}")),
    }
    found
}

async fn compare_side(
    hub: &Hub,
    content: &HubContent,
    side: Side,
) -> anyhow::Result<(usize, Vec<Difference>)> {
    let Side { cluster, uid, hash, namespace, wanted, before, now } = side;
    let source = |revision: i64| Source { namespace: namespace.clone(), owner: hash.clone(), revision };
    let said = |trouble: emco_controllers::sync::errors::Trouble| anyhow!("{}", trouble.message);
    let mut manifests = Vec::new();
    if let Some(target) = &wanted {
        for (app, set) in &target.apps {
            let set = content.set(&source(target.revision), set).await.map_err(said)?;
            manifests.extend(set.set.manifests.iter().map(|manifest| (app.clone(), manifest.clone())));
        }
    }
    let mut identities = Vec::new();
    for old in &before {
        match old {
            Content::Sets(target) => {
                for set in target.apps.values() {
                    let set = content.set(&source(target.revision), set).await.map_err(said)?;
                    identities.extend(set.ids.iter().map(|id| emco_engine::identity::Identity::clone(id)));
                }
            }
            Content::Identities(reference) => {
                identities.extend(content.identities(reference).await.map_err(said)?.iter().cloned());
            }
        }
    }
    let edge = edge::connect(hub, &cluster, uid.as_deref(), hash.clone()).await?;
    edge.compare(&manifests, &identities, now).await
}

fn text(clusters: &[OnCluster]) -> String {
    let mut text = String::new();
    for cluster in clusters {
        let against =
            cluster.revision.map_or_else(|| "removal".to_owned(), |revision| format!("revision {revision}"));
        let OnCluster { cluster: name, compared, differences, error, .. } = cluster;
        let result = match (error, differences.len()) {
            (Some(error), _) => error.clone(),
            (None, 0) => format!("no difference in {}", counted(*compared, "object")),
            (None, number) => counted(number, "difference"),
        };
        text.push_str(&format!("{name}, {against}: {result}\n"));
        for Difference { app, object, change, message, fields } in differences {
            let app = app.as_ref().map_or_else(String::new, |app| format!(" (app {app})"));
            let said = if message.is_empty() { String::new() } else { format!(": {message}") };
            text.push_str(&format!("  {object}{app} {}{said}\n", change.said()));
            for field in fields {
                text.push_str(&format!("    {field}\n"));
            }
        }
    }
    text
}
