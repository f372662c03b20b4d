//! Prints deployments as a tree: once, or whenever the hub reports a change.

use std::collections::BTreeSet;

use anyhow::bail;
use emco_crds::{DeploymentIntentGroup, SyncShard};
use kube::Api;
use kube::api::ListParams;

use super::args::objects::{ObjectArgs, kind_text, reported};
use super::args::{Format, StatusArgs};
use super::hub::{self, Hub};
use super::orphans::some;
use super::output::machine;
use super::pulse::{self, Pulse};
use super::{Outcome, print};

pub mod feed;
pub mod filter;
pub mod refusal;
pub mod show;
pub mod tree;
mod verdict;
mod watch;

use filter::{Filter, LISTED, absent};
use tree::Tree;

/// What is looked at.
pub struct Scope {
    /// All namespaces if absent.
    pub namespace: Option<String>,
    /// All of the namespace if absent.
    pub name: Option<String>,
}

pub async fn run(args: StatusArgs) -> anyhow::Result<Outcome> {
    let hub = hub::connect(&args.hub).await?;
    let scope = scope(&hub, &args).await?;
    let filter = Filter {
        clusters: args.cluster.clone(),
        apps: args.app.clone(),
        states: args.state.clone(),
        objects: args.objects.clone(),
    };
    if args.watch {
        return watch::run(&hub, &scope, &filter, args.output).await;
    }
    let reading = pulse::read(&hub).await;
    let (groups, shards) = read(&hub, &scope).await?;
    if let Some(absent) = absent(&groups, &shards, &filter) {
        bail!("{absent}");
    }
    let tree = Tree::of(&groups, &shards, reading.pulse, &filter);
    if tree.pulse.message.is_empty() || machine(args.output, &())?.is_some() {
        // Nothing to warn of, or it is in the answer.
    } else {
        eprintln!("warning: {}", tree.pulse.message);
    }
    if tree.groups.is_empty() && machine(args.output, &())?.is_none() {
        eprintln!("{}", nothing(&groups, &shards, &tree, &filter));
    }
    print(&text(&tree, args.output)?)?;
    Ok(if tree.is_as_wanted(&filter) { Outcome::AsWanted } else { Outcome::NotAsWanted })
}

fn text(tree: &Tree, format: Option<Format>) -> anyhow::Result<String> {
    let machine = machine(format, tree)?;
    Ok(machine.unwrap_or_else(|| show::text(tree, format == Some(Format::Wide))))
}

/// Why the tree is empty.
fn nothing(groups: &[DeploymentIntentGroup], shards: &[SyncShard], tree: &Tree, filter: &Filter) -> String {
    if filter.is_all() {
        return "no deployment intent groups".to_owned();
    }
    let mut said = "no deployment intent groups that these filters select".to_owned();
    if filter.objects.names_objects() {
        let objects = ObjectArgs { kind: Vec::new(), object: Vec::new(), ..filter.objects };
        let filter = Filter { objects, ..filter.clone() };
        let kinds: Vec<String> =
            Tree::of(groups, shards, tree.pulse.clone(), &filter).kinds().into_iter().collect();
        said.push_str(&match kinds.as_slice() {
            [] => ": reports name no object that is not as wanted".to_owned(),
            kinds => format!(": objects that are reported not to be as wanted are {}", some(kinds, LISTED)),
        });
        said.push_str(" (the command get shows every object)");
    }
    if let Some(counts) = tree.counts.text() {
        said.push_str(&format!("\n{counts}"));
    }
    said
}

async fn scope(hub: &Hub, args: &StatusArgs) -> anyhow::Result<Scope> {
    if let Some(deployment) = &args.deployment {
        anyhow::ensure!(
            !args.scope.all_namespaces,
            "a name and --all-namespaces exclude each other: write PROJECT/NAME, or leave the name out"
        );
        let (namespace, name) = hub.locate(deployment, args.scope.namespace.as_deref()).await?;
        return Ok(Scope { namespace: Some(namespace), name: Some(name) });
    }
    let namespace = (!args.scope.all_namespaces).then(|| hub.namespace_or(args.scope.namespace.as_deref()));
    Ok(Scope { namespace, name: None })
}

async fn read(hub: &Hub, scope: &Scope) -> anyhow::Result<(Vec<DeploymentIntentGroup>, Vec<SyncShard>)> {
    if let (Some(namespace), Some(name)) = (&scope.namespace, &scope.name) {
        let group = hub.deployment(namespace, name).await?;
        return Ok((vec![group], hub.shards(namespace, name).await?));
    }
    let namespace = scope.namespace.as_deref();
    let (groups, shards) = (scope.groups(hub), scope.shards(hub));
    let groups = hub.list(groups, &ListParams::default(), "deployment intent groups", namespace).await?;
    let shards = hub.list(shards, &ListParams::default(), "shards", namespace).await?;
    Ok((groups, shards))
}

impl Scope {
    fn groups(&self, hub: &Hub) -> Api<DeploymentIntentGroup> {
        let client = hub.client.clone();
        match &self.namespace {
            Some(namespace) => Api::namespaced(client, namespace),
            None => Api::all(client),
        }
    }

    fn shards(&self, hub: &Hub) -> Api<SyncShard> {
        let client = hub.client.clone();
        match &self.namespace {
            Some(namespace) => Api::namespaced(client, namespace),
            None => Api::all(client),
        }
    }
}

impl Tree {
    /// Kinds of the objects that are named.
    fn kinds(&self) -> BTreeSet<String> {
        let clusters = self.groups.iter().flat_map(|group| &group.apps).flat_map(|app| &app.clusters);
        let named = clusters.flat_map(|there| &there.objects).filter_map(|thing| reported(&thing.object));
        named.map(|(group, kind, _)| kind_text(group, kind)).collect()
    }

    /// True where everything that is asked about is as wanted, and known to be.
    fn is_as_wanted(&self, filter: &Filter) -> bool {
        self.pulse.is_trusted()
            && self.counts.undecided == 0
            && self.groups.iter().all(|group| group.is_as_wanted(filter))
    }
}

/// Whether the warning of a pulse is worth a line of its own.
fn warning(pulse: &Pulse) -> Option<&str> {
    (!pulse.message.is_empty()).then_some(pulse.message.as_str())
}
