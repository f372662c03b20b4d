//! Shows who reaches the servers of a deployment, and the rule that decides each pair: from the manifests that are stored of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{anyhow, bail};
use emco_controllers::sync::content::Source;
use emco_crds::{Cluster, DeploymentIntentGroup, LogicalCloud, TrafficGroupIntent};
use emco_engine::identity::{ClusterId, SetDigest};
use emco_engine::resolve;
use emco_engine::set::{Assigned, Assignment, ManifestSet};
use emco_engine::shard::Target;
use emco_engine::snapshot::{ClusterFacts, Scheduling};
use emco_engine::traffic::proof::{Cell, Question};
use emco_engine::traffic::{self, Group};
use kube::Api;
use kube::api::ListParams;
use serde::Serialize;

use crate::cli::args::deployments::ReachArgs;
use crate::cli::hub::{self, Hub};
use crate::cli::manifests::present;
use crate::cli::output::{Table, machine};
use crate::cli::{Outcome, print, stored};

/// One pair, on all clusters where it is the same.
#[derive(Serialize, PartialEq, Eq, PartialOrd, Ord)]
struct Said {
    to: String,
    port: String,
    from: String,
    /// Whether connections get through.
    open: bool,
    /// Whether an intent says so.
    wanted: bool,
    /// What decides.
    by: String,
    clusters: Vec<String>,
}

impl Said {
    fn new(cell: Cell, clusters: Vec<String>) -> Self {
        let Cell { from, to, port, open, wanted, by } = cell;
        Self { to, port, from, open, wanted, by, clusters }
    }

    fn verdict(&self) -> &'static str {
        match (self.open, self.wanted) {
            (true, true) => "open",
            (false, false) => "closed",
            (true, false) => "open (unwanted)",
            (false, true) => "closed (wanted open)",
        }
    }
}

/// `kubectl emco reach`.
pub async fn run(args: ReachArgs) -> anyhow::Result<Outcome> {
    let hub = hub::connect(&args.named.hub).await?;
    let (namespace, name) = hub.locate(&args.named.deployment, args.named.namespace.as_deref()).await?;
    let dig = hub.deployment(&namespace, &name).await?;
    stored::may_read(&hub, "reach", &namespace, &name).await?;
    let intents = intents(&hub, &namespace, &dig).await?;
    if intents.is_empty() {
        bail!(
            "{namespace}/{name} lists no {} in spec.intents: nothing says who is to reach its servers",
            traffic::KIND
        );
    }
    let stored = Stored::read(&hub, &namespace, &name, &dig).await?;
    let groups: Vec<Group<'_>> =
        intents.iter().map(|(name, intent)| Group { name, spec: &intent.spec }).collect();
    let said = said(&stored.question(&groups, dig.release()), &args)?;
    if said.is_empty() {
        bail!(
            "{namespace}/{name} has no such pair of a client and a server: leave --from, --to or --cluster out to see all"
        );
    }
    match machine(args.output, &said)? {
        Some(text) => print(&text)?,
        None => print(&table(&said))?,
    }
    for id in &stored.open {
        eprintln!("note: {id} states that it enforces no NetworkPolicy: its servers are open to everybody");
    }
    let as_wanted = said.iter().all(|said| said.open == said.wanted);
    Ok(if as_wanted { Outcome::AsWanted } else { Outcome::NotAsWanted })
}

fn table(all: &[Said]) -> String {
    let mut table = Table::new(&["TO", "PORT", "FROM", "IS", "BY", "CLUSTERS"]);
    for said in all {
        let clusters = emco_engine::text::listed(&said.clusters);
        let Said { to, port, from, by, .. } = said;
        let cells = [to.as_str(), port, from, said.verdict(), by, &clusters];
        table.row(cells.map(str::to_owned).to_vec());
    }
    table.text()
}

/// What a row says of a pair besides its clusters, by which equal rows become one.
type Pair = (String, String, String, bool, bool, String);

/// The pairs that are asked for; those of equal clusters once.
fn said(question: &Question<'_>, args: &ReachArgs) -> anyhow::Result<Vec<Said>> {
    let mut found: BTreeMap<Pair, Vec<String>> = BTreeMap::new();
    let wanted =
        |id: &&ClusterId| args.cluster.is_empty() || args.cluster.iter().any(|one| one == id.as_str());
    for id in question.assignment.keys().filter(wanted) {
        for cell in question.cells(id).map_err(|refusal| anyhow!("{refusal}"))? {
            let from = args.from.as_ref().is_none_or(|from| cell.from.contains(from.as_str()));
            if from && args.to.as_ref().is_none_or(|to| *to == cell.to) {
                let Cell { from, to, port, open, wanted, by } = cell;
                found.entry((to, port, from, open, wanted, by)).or_default().push(id.to_string());
            }
        }
    }
    let one = |((to, port, from, open, wanted, by), clusters)| {
        Said::new(Cell { from, to, port, open, wanted, by }, clusters)
    };
    Ok(found.into_iter().map(one).collect())
}

/// The intents of traffic that a deployment lists, in its order.
async fn intents(
    hub: &Hub,
    namespace: &str,
    dig: &DeploymentIntentGroup,
) -> anyhow::Result<Vec<(String, TrafficGroupIntent)>> {
    let api = Api::<TrafficGroupIntent>::namespaced(hub.client.clone(), namespace);
    let mut found = Vec::new();
    for listed in dig.spec.intents.iter().filter(|listed| resolve::is_traffic(listed)) {
        let what = format!("{namespace}/{}", listed.name);
        let intent = api.get_opt(&listed.name).await;
        let intent = intent.map_err(|error| hub.sentence(&error, "read traffic group intent", &what))?;
        let Some(intent) = intent else {
            bail!("{} {what} does not exist: create it, or take it off spec.intents", traffic::KIND);
        };
        found.push((listed.name.clone(), intent));
    }
    Ok(found)
}

/// What is stored of a deployment.
struct Stored {
    clusters: BTreeMap<ClusterId, ClusterFacts>,
    assignment: Assignment,
    /// Nobody: what is stored is all that is there.
    waiting: BTreeMap<ClusterId, Vec<String>>,
    sets: BTreeMap<SetDigest, Arc<ManifestSet>>,
    cloud: LogicalCloud,
    /// Clusters that state to enforce nothing.
    open: Vec<ClusterId>,
}

impl Stored {
    async fn read(
        hub: &Hub,
        namespace: &str,
        name: &str,
        dig: &DeploymentIntentGroup,
    ) -> anyhow::Result<Self> {
        let content = stored::content(hub);
        let (owner, targets) = present(hub, namespace, name).await?;
        let mut sets = BTreeMap::new();
        for target in targets.values() {
            for digest in target.apps.values() {
                if !sets.contains_key(digest) {
                    let (namespace, owner) = (namespace.to_owned(), owner.clone());
                    let source = Source { namespace, owner, revision: target.revision };
                    sets.insert(digest.clone(), stored::set(&content, &source, digest).await?);
                }
            }
        }
        let all = Api::<Cluster>::all(hub.client.clone());
        let all = hub.list(all, &ListParams::default(), "clusters", None).await?;
        let clusters: BTreeMap<ClusterId, ClusterFacts> =
            all.iter().filter_map(facts).map(|facts| (facts.id.clone(), facts)).collect();
        let cloud = &dig.spec.logical_cloud_ref.name;
        let found = Api::<LogicalCloud>::namespaced(hub.client.clone(), namespace).get(cloud).await;
        let what = format!("{namespace}/{cloud}");
        let cloud = found.map_err(|error| hub.sentence(&error, "read logical cloud", &what))?;
        let is_open = |id: &&ClusterId| clusters.get(*id).is_some_and(traffic::is_without);
        let open = targets.keys().filter(is_open).cloned().collect();
        let assignment = targets.iter().map(|(id, target)| (id.clone(), assigned(target))).collect();
        Ok(Self { clusters, assignment, waiting: BTreeMap::new(), sets, cloud, open })
    }

    fn question<'q>(&'q self, groups: &'q [Group<'q>], release: &'q str) -> Question<'q> {
        Question {
            groups,
            clusters: &self.clusters,
            assignment: &self.assignment,
            waiting: &self.waiting,
            sets: &self.sets,
            namespace: self.cloud.cluster_namespace(),
            isolation: self.cloud.spec.isolation,
            release,
        }
    }
}

/// What counts of a stored cell: its sets.
fn assigned(target: &Target) -> BTreeMap<String, Assigned> {
    let one = |(app, set): (&String, &SetDigest)| {
        let assigned = Assigned {
            set: set.clone(),
            render_key: String::new(),
            now: 0,
            release_revision: 1,
            rendered_revision: None,
            findings: None,
            provenance: None,
            tests: None,
            edits: None,
        };
        (app.clone(), assigned)
    };
    target.apps.iter().map(one).collect()
}

/// What the graph reads of a cluster.
fn facts(cluster: &Cluster) -> Option<ClusterFacts> {
    let status = cluster.status.as_ref()?;
    Some(ClusterFacts {
        id: ClusterId::parse(status.id.as_deref()?)?,
        labels: cluster.metadata.labels.clone().unwrap_or_default(),
        properties: cluster.spec.properties.clone(),
        scheduling: Scheduling::Enabled,
        reachable: true,
        by_git: cluster.spec.access.git_ops.is_some(),
        uid: status.uid.clone(),
        kubernetes_version: status.kubernetes_version.clone(),
        apis: None,
        nodes: None,
        network_policy: cluster.spec.network.as_ref().and_then(|network| network.network_policy),
    })
}
