//! Prints a table of clusters. Members of a project, who may not read Clusters, see those that the project may use.

use std::collections::BTreeMap;

use anyhow::bail;
use emco_crds::conditions::{Conditioned as _, types};
use emco_crds::names::label;
use emco_crds::sync_shard::status::Connectivity;
use emco_crds::{Cluster, OwnerKind, SyncShard};
use emco_engine::shard::decode_status;
use jiff::Timestamp;
use kube::Api;
use kube::api::ListParams;
use serde::Serialize;

use super::args::{ClustersArgs, Format};
use super::hub::{self, Hub, is_forbidden};
use super::output::{Table, age, machine, made};
use super::pulse::{self, Pulse};
use super::{Outcome, print};

pub mod granted;
mod selector;

use granted::{Granted, Written};

const UNKNOWN: &str = "Unknown";

/// What was found.
enum Found {
    /// Clusters, as the user may read them, or as shards of logical clouds name them.
    Clusters(Vec<Shown>),
    /// What the operator writes down for members of a project.
    Granted(Granted),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listing {
    #[serde(flatten)]
    pulse: Pulse,
    clusters: Vec<Shown>,
}

/// One cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Shown {
    pub provider: String,
    pub name: String,
    /// True, False or Unknown.
    pub ready: String,
    pub reason: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub said: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub nodes: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials_end: Option<Timestamp>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_use: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub made: Option<Timestamp>,
}

pub async fn run(args: ClustersArgs) -> anyhow::Result<Outcome> {
    let hub = hub::connect(&args.hub).await?;
    let reading = pulse::read(&hub).await;
    let mut clusters = match find(&hub, &args).await? {
        Found::Clusters(clusters) => clusters,
        Found::Granted(found) => return granted::answer(found, reading.pulse, &args),
    };
    clusters.retain(|cluster| args.provider.as_ref().is_none_or(|provider| *provider == cluster.provider));
    clusters.sort_by(|a, b| (&a.provider, &a.name).cmp(&(&b.provider, &b.name)));
    if !reading.pulse.is_trusted() {
        for cluster in &mut clusters {
            let was = std::mem::replace(&mut cluster.reason, "OperatorSilent".to_owned());
            cluster.said = format!("last reported {} {was}", cluster.ready);
            UNKNOWN.clone_into(&mut cluster.ready);
        }
    }
    let all_ready = clusters.iter().all(|cluster| cluster.ready == "True");
    let listing = Listing { pulse: reading.pulse, clusters };
    match machine(args.output, &listing)? {
        Some(text) => print(&text)?,
        None => show(&listing, args.output == Some(Format::Wide))?,
    }
    Ok(if all_ready { Outcome::AsWanted } else { Outcome::NotAsWanted })
}

fn show(listing: &Listing, wide: bool) -> anyhow::Result<()> {
    if !listing.pulse.message.is_empty() {
        eprintln!("warning: {}", listing.pulse.message);
    }
    if listing.clusters.is_empty() {
        eprintln!("no clusters");
        return Ok(());
    }
    let mut columns = vec!["PROVIDER", "NAME", "READY", "REASON", "VERSION", "LABELS", "AGE", "IN USE"];
    if wide {
        columns.extend(["NODES", "CREDENTIALS END", "MESSAGE"]);
    }
    let mut table = Table::new(&columns);
    let now = Timestamp::now();
    for cluster in &listing.clusters {
        let labels: Vec<String> =
            cluster.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let mut cells = vec![
            cluster.provider.clone(),
            cluster.name.clone(),
            cluster.ready.clone(),
            cluster.reason.clone(),
            cluster.version.clone(),
            labels.join(","),
            age(cluster.made, now),
            cluster.in_use.clone().unwrap_or_default(),
        ];
        if wide {
            let ends = cluster.credentials_end.map(|end| end.to_string()).unwrap_or_default();
            cells.extend([cluster.nodes.clone(), ends, cluster.said.clone()]);
        }
        table.row(cells);
    }
    print(&table.text())
}

async fn find(hub: &Hub, args: &ClustersArgs) -> anyhow::Result<Found> {
    let params =
        args.selector.as_ref().map_or_else(ListParams::default, |text| ListParams::default().labels(text));
    let api = args.namespace.as_ref().map_or_else(
        || Api::<Cluster>::all(hub.client.clone()),
        |namespace| Api::namespaced(hub.client.clone(), namespace),
    );
    let what = args
        .namespace
        .as_ref()
        .map_or_else(|| "in all namespaces".to_owned(), |n| format!("in namespace {n}"));
    let refused = match hub.try_list(api, &params).await {
        Ok(clusters) if !clusters.is_empty() => {
            return Ok(Found::Clusters(clusters.iter().map(of_cluster).collect()));
        }
        // It may be the namespace of a project.
        Ok(_) if args.namespace.is_some() => None,
        Ok(_) => return Ok(Found::Clusters(Vec::new())),
        Err(error) if is_forbidden(&error) => Some(error),
        Err(error) => return Err(hub.sentence(&error, "list clusters", &what)),
    };
    let namespace = hub.namespace_or(args.namespace.as_deref());
    match granted::read(hub, &namespace).await? {
        Written::Down(granted) => return Ok(Found::Granted(granted)),
        Written::Nothing if refused.is_some() => eprintln!(
            "warning: no cluster is written down in namespace {namespace}: it is no project's, no ClusterProvider grants its project \
             any, or the operator has not written them yet"
        ),
        // An older chart gives members no right to them.
        Written::Nothing | Written::Forbidden => {}
    }
    let params = ListParams::default().labels(&format!("{}={}", label::OWNER_KIND, OwnerKind::LogicalCloud));
    let shards = hub.try_list(Api::<SyncShard>::namespaced(hub.client.clone(), &namespace), &params).await;
    match (shards, refused) {
        (Ok(shards), _) if args.selector.is_some() && !shards.is_empty() => bail!(
            "labels of the clusters of namespace {namespace} cannot be read: leave out --selector to see those of its logical clouds, \
             or ask an administrator for the role emco-viewer there"
        ),
        (Ok(shards), _) => Ok(Found::Clusters(of_clouds(&shards))),
        (Err(_), Some(refused)) => Err(hub.sentence(&refused, "list clusters", &what)),
        (Err(_), None) => Ok(Found::Clusters(Vec::new())),
    }
}

/// What its status says.
pub fn of_cluster(cluster: &Cluster) -> Shown {
    let meta = &cluster.metadata;
    let status = cluster.status.as_ref();
    let ready = status.and_then(|status| status.condition(types::READY));
    let text = |option: Option<&String>| option.cloned().unwrap_or_default();
    let provider = status.and_then(|status| status.provider.as_ref()).or(meta.namespace.as_ref());
    Shown {
        provider: text(provider),
        name: text(meta.name.as_ref()),
        ready: ready.map_or_else(|| UNKNOWN.to_owned(), |ready| ready.status.clone()),
        reason: ready.map_or_else(|| "NotLookedAt".to_owned(), |ready| ready.reason.clone()),
        said: ready.map(|ready| ready.message.clone()).unwrap_or_default(),
        version: text(status.and_then(|status| status.kubernetes_version.as_ref())),
        nodes: status
            .and_then(|s| s.nodes.as_ref())
            .map(|n| format!("{}/{}", n.ready, n.total))
            .unwrap_or_default(),
        credentials_end: status.and_then(|s| s.credentials.as_ref()?.expires.as_ref()).map(|end| end.0),
        labels: meta.labels.clone().unwrap_or_default(),
        in_use: status
            .and_then(|s| s.in_use.as_ref())
            .map(|u| u.example.clone().unwrap_or_else(|| u.state.clone())),
        made: made(meta),
    }
}

/// What shards of logical clouds say of their clusters, each once.
fn of_clouds(shards: &[SyncShard]) -> Vec<Shown> {
    let mut found: BTreeMap<String, Shown> = BTreeMap::new();
    for shard in shards {
        let known =
            shard.status.as_ref().map(|status| decode_status(&shard.spec, status)).unwrap_or_default();
        for row in shard.spec.clusters.iter().filter(|row| row.target.is_some()) {
            let Some((provider, name)) = row.cluster.split_once('/') else { continue };
            let connectivity = known.get(&row.id).map(|status| status.connectivity).unwrap_or_default();
            let (ready, reason) = match connectivity {
                Connectivity::Reachable => ("True", "Reachable"),
                Connectivity::Unreachable => ("False", "Unreachable"),
                Connectivity::Unknown => (UNKNOWN, "NotLookedAt"),
            };
            found.entry(row.cluster.clone()).or_insert_with(|| Shown {
                provider: provider.to_owned(),
                name: name.to_owned(),
                ready: ready.to_owned(),
                reason: reason.to_owned(),
                said: String::new(),
                version: String::new(),
                nodes: String::new(),
                credentials_end: None,
                labels: BTreeMap::new(),
                in_use: Some(format!("LogicalCloud/{}", shard.spec.owner.name)),
                made: made(&shard.metadata),
            });
        }
    }
    found.into_values().collect()
}
