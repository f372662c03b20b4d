//! Registered clusters come in, each with what carries EMCO's label there; inventory goes to the hub for what it does not know of.
//! For a hub that was made anew. Clusters are only read, and rows that are written let nothing happen on them: until a
//! deployment says what it wants there, what was found is kept and listed.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context as _;
use emco_crds::names::object;
use emco_crds::{Cluster, DeploymentIntentGroup, LogicalCloud, OwnerKind, SyncShard};
use emco_engine::identity::ClusterId;
use emco_engine::marks;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};
use serde::Serialize;

use super::args::{Format, OrphansArgs};
use super::diff::edge;
use super::hub::{self, Hub};
use super::output::{Table, machine};
use super::{Outcome, print};

mod labelled;
mod write;

use labelled::{Labelled, labelled, other_hub};
use write::write;

/// What was found of one owner on one cluster, or why nothing was looked for.
#[derive(Serialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "camelCase")]
struct Found {
    cluster: String,
    /// `DeploymentIntentGroup/team-a/shop`, else what its objects say.
    owner: String,
    objects: usize,
    verdict: Verdict,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
}

#[derive(Clone, Copy, Serialize, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    /// The hub's inventory has it.
    Known,
    /// The inventory has it from now on.
    Adopted,
    /// It would have, without `--dry-run`.
    WouldBeAdopted,
    /// It can be adopted later.
    Waits,
    /// Nobody knows whose it is.
    Unknown,
    /// Another hub works there, or another cluster answers.
    Refused,
    /// The cluster could not be asked.
    Failed,
}

impl Verdict {
    const fn said(self) -> &'static str {
        match self {
            Self::Known => "known",
            Self::Adopted => "adopted",
            Self::WouldBeAdopted => "would be adopted",
            Self::Waits => "waits",
            Self::Unknown => "unknown",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

/// An owner: kind, namespace, name.
type Owner = (OwnerKind, String, String);

/// What the hub knows.
struct Known {
    installation: String,
    shards: Vec<SyncShard>,
    /// Owners that are there, with their UIDs.
    owners: BTreeMap<Owner, String>,
    namespaces: BTreeSet<String>,
}

pub async fn run(args: OrphansArgs) -> anyhow::Result<Outcome> {
    let hub = hub::connect(&args.hub).await?;
    let known = known(&hub).await?;
    let clusters =
        hub.list(Api::<Cluster>::all(hub.client.clone()), &ListParams::default(), "clusters", None).await?;
    let mut all = Vec::new();
    let mut adopt: BTreeMap<Owner, BTreeMap<ClusterId, Option<String>>> = BTreeMap::new();
    for cluster in &clusters {
        let Some(id) = cluster.status.as_ref().and_then(|s| ClusterId::parse(s.id.as_deref()?)) else {
            continue;
        };
        match on_cluster(&hub, &known, cluster, &id).await {
            Err(error) => all.push(Found {
                cluster: id.to_string(),
                owner: String::new(),
                objects: 0,
                verdict: Verdict::Failed,
                message: format!("{error:#}"),
            }),
            Ok((uid, found)) => {
                for (mut found, owner) in found {
                    let here = |owner: &Owner| args.namespace.as_ref().is_none_or(|n| *n == owner.1);
                    if !owner.as_ref().is_none_or(here) {
                        continue;
                    }
                    if let Some(owner) = owner.filter(|_| found.verdict == Verdict::Adopted) {
                        if args.dry_run {
                            found.verdict = Verdict::WouldBeAdopted;
                        } else {
                            adopt.entry(owner).or_default().insert(id.clone(), uid.clone());
                        }
                    }
                    all.push(found);
                }
            }
        }
    }
    for (owner, clusters) in &adopt {
        write(&hub, &known, owner, clusters).await?;
    }
    all.sort();
    match machine(args.output, &all)? {
        Some(text) => print(&text)?,
        None => show(&all, args.output == Some(Format::Wide))?,
    }
    let done = |found: &Found| matches!(found.verdict, Verdict::Known | Verdict::Adopted);
    Ok(if all.iter().all(done) { Outcome::AsWanted } else { Outcome::NotAsWanted })
}

async fn known(hub: &Hub) -> anyhow::Result<Known> {
    let secrets = Api::<Secret>::namespaced(hub.client.clone(), &hub.operator_namespace);
    let place = format!("{}/{}", hub.operator_namespace, object::INSTALLATION);
    let secret = secrets
        .get_opt(object::INSTALLATION)
        .await
        .map_err(|error| hub.sentence(&error, "read secret", &place))?
        .with_context(|| {
            format!("there is no Secret {place}: restore it from its copy before the operator starts, or what runs on clusters stays somebody else's")
        })?;
    let installation =
        emco_controllers::driver::installation::read(&place, &serde_json::to_value(&secret)?)?.id;
    let client = || hub.client.clone();
    let params = ListParams::default();
    let groups: Vec<DeploymentIntentGroup> =
        hub.list(Api::all(client()), &params, "deployment intent groups", None).await?;
    let clouds: Vec<LogicalCloud> = hub.list(Api::all(client()), &params, "logical clouds", None).await?;
    let namespaces: Vec<Namespace> = hub.list(Api::all(client()), &params, "namespaces", None).await?;
    // Last: what the operator made meanwhile is seen.
    let shards = hub.list(Api::all(client()), &params, "shards", None).await?;
    let uid = |uid: Option<String>| uid.unwrap_or_default();
    let mut owners: BTreeMap<Owner, String> = BTreeMap::new();
    for group in groups {
        let key = (OwnerKind::DeploymentIntentGroup, group.namespace().unwrap_or_default(), group.name_any());
        owners.insert(key, uid(group.uid()));
    }
    for cloud in clouds {
        let key = (OwnerKind::LogicalCloud, cloud.namespace().unwrap_or_default(), cloud.name_any());
        owners.insert(key, uid(cloud.uid()));
    }
    let namespaces = namespaces.iter().map(Namespace::name_any).collect();
    Ok(Known { installation, shards, owners, namespaces })
}

impl Known {
    fn hash(&self, (kind, namespace, name): &Owner) -> String {
        marks::owner_hash(&self.installation, kind, namespace, name)
    }

    /// Whose objects with this label are: one of the hub's owners, or the one that they name; the label proves it.
    fn owner(&self, hash: &str, placed_by: &BTreeSet<String>) -> Option<Owner> {
        let there = self.owners.keys().find(|owner| self.hash(owner) == hash).cloned();
        there.or_else(|| {
            placed_by.iter().filter_map(|text| text.split_once('/')).find_map(|(namespace, name)| {
                let of = |kind| (kind, namespace.to_owned(), name.to_owned());
                OwnerKind::KNOWN.into_iter().map(of).find(|owner| self.hash(owner) == hash)
            })
        })
    }

    /// Whether a row of a shard speaks for what an owner has on a cluster.
    fn has_row(&self, owner: &Owner, cluster: &ClusterId) -> bool {
        self.shards_of(owner, true)
            .any(|stored| stored.spec.clusters.iter().any(|r| r.cluster == cluster.as_str()))
    }

    /// Shards of an owner, with ledgers or without.
    fn shards_of<'a>(&'a self, owner: &'a Owner, ledgers: bool) -> impl Iterator<Item = &'a SyncShard> {
        self.shards.iter().filter(move |stored| {
            (ledgers || stored.spec.abandoned.is_none())
                && (&stored.spec.owner.kind, stored.owner_namespace(), stored.spec.owner.name.as_str())
                    == (&owner.0, owner.1.as_str(), owner.2.as_str())
        })
    }

    /// What becomes of what was found.
    fn judge(&self, owner: Option<&Owner>, cluster: &ClusterId) -> (Verdict, String) {
        let Some(owner) = owner else {
            let message = "its label is of no owner that its objects name: it is not this installation's, or somebody changed them";
            return (Verdict::Unknown, message.to_owned());
        };
        if self.has_row(owner, cluster) {
            return (Verdict::Known, String::new());
        }
        if !self.namespaces.contains(&owner.1) {
            let message =
                format!("namespace {} is not on this hub: make its Project, then run this again", owner.1);
            return (Verdict::Waits, message);
        }
        if self.owners.contains_key(owner) && self.shards_of(owner, false).next().is_none() {
            let message =
                format!("{} {} is there and has no plan yet: run this again when it has", owner.0, owner.2);
            return (Verdict::Waits, message);
        }
        let message = if self.owners.contains_key(owner) {
            "it is not wanted there any more, and is removed by its label".to_owned()
        } else {
            format!("{} {} is not on this hub: what it has stays until it is made again", owner.0, owner.2)
        };
        (Verdict::Adopted, message)
    }
}

/// What carries the label on one cluster, with its owner where that is known.
async fn on_cluster(
    hub: &Hub,
    known: &Known,
    cluster: &Cluster,
    id: &ClusterId,
) -> anyhow::Result<(Option<String>, Vec<(Found, Option<Owner>)>)> {
    let uid = cluster.status.as_ref().and_then(|status| status.uid.clone());
    let (client, uid) = edge::open(hub, cluster, uid.as_deref()).await?;
    if let Some(other) = other_hub(&client, &known.installation).await? {
        let message = format!(
            "the cluster belongs to another EMCO hub (installation {other}): nothing is taken from it; to move the cluster here, confirm that on the Cluster"
        );
        let refused = Verdict::Refused;
        let found =
            Found { cluster: id.to_string(), owner: String::new(), objects: 0, verdict: refused, message };
        return Ok((uid, vec![(found, None)]));
    }
    let mut all = Vec::new();
    let Labelled { owners, unseen, unserved } = labelled(&client).await?;
    let mut messages: Vec<String> =
        unserved.iter().map(|what| format!("{what}: its objects were not looked for")).collect();
    if !unseen.is_empty() {
        messages.push(format!(
            "may not be listed there, so their objects were not looked for: {}",
            unseen.join(", ")
        ));
    }
    for message in messages {
        let verdict = Verdict::Refused;
        let found = Found { cluster: id.to_string(), owner: String::new(), objects: 0, verdict, message };
        all.push((found, None));
    }
    for (hash, (objects, placed_by)) in owners {
        let owner = known.owner(&hash, &placed_by);
        let (verdict, message) = known.judge(owner.as_ref(), id);
        let name = match &owner {
            Some((kind, namespace, name)) => format!("{kind}/{namespace}/{name}"),
            None => placed_by.first().cloned().unwrap_or(hash),
        };
        all.push((Found { cluster: id.to_string(), owner: name, objects, verdict, message }, owner));
    }
    Ok((uid, all))
}

fn show(all: &[Found], wide: bool) -> anyhow::Result<()> {
    if all.is_empty() {
        eprintln!("nothing of EMCO was found on any registered cluster");
        return Ok(());
    }
    let mut columns = vec!["CLUSTER", "OWNER", "OBJECTS", "INVENTORY"];
    if wide {
        columns.push("MESSAGE");
    }
    let mut table = Table::new(&columns);
    for found in all {
        let mut cells = vec![
            found.cluster.clone(),
            found.owner.clone(),
            found.objects.to_string(),
            found.verdict.said().to_owned(),
        ];
        if wide {
            cells.push(found.message.clone());
        }
        table.row(cells);
    }
    print(&table.text())?;
    if !wide {
        for found in all.iter().filter(|found| found.verdict > Verdict::WouldBeAdopted) {
            eprintln!("{} {}: {}", found.cluster, found.owner, super::output::printable(&found.message));
        }
    }
    Ok(())
}
