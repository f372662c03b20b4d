//! Prints deployments as a tree: once, or whenever the hub reports a change.

use emco_crds::{DeploymentIntentGroup, SyncShard};
use kube::Api;
use kube::api::ListParams;

use super::args::{Format, StatusArgs};
use super::hub::{self, Hub};
use super::output::machine;
use super::pulse::{self, Pulse};
use super::{Outcome, print};

pub mod show;
pub mod tree;
mod watch;

use tree::{Filter, Tree};

/// What is looked at.
struct Scope {
    /// All namespaces if absent.
    namespace: Option<String>,
    /// All of the namespace if absent.
    name: Option<String>,
}

pub async fn run(args: StatusArgs) -> anyhow::Result<Outcome> {
    let hub = hub::connect(&args.hub).await?;
    let scope = scope(&hub, &args).await?;
    let filter =
        Filter { clusters: args.cluster.clone(), apps: args.app.clone(), states: args.state.clone() };
    if args.watch {
        return watch::run(&hub, &scope, &filter, args.output).await;
    }
    let reading = pulse::read(&hub).await;
    let (groups, shards) = read(&hub, &scope).await?;
    let tree = Tree::of(&groups, &shards, reading.pulse, &filter);
    if tree.pulse.message.is_empty() || machine(args.output, &())?.is_some() {
        // Nothing to warn of, or it is in the answer.
    } else {
        eprintln!("warning: {}", tree.pulse.message);
    }
    if tree.groups.is_empty() && machine(args.output, &())?.is_none() {
        eprintln!(
            "no deployment intent groups{}",
            if filter.is_all() { "" } else { " that these filters select" }
        );
    }
    print(&text(&tree, args.output)?)?;
    Ok(if tree.is_as_wanted() { Outcome::AsWanted } else { Outcome::NotAsWanted })
}

fn text(tree: &Tree, format: Option<Format>) -> anyhow::Result<String> {
    let machine = machine(format, tree)?;
    Ok(machine.unwrap_or_else(|| show::text(tree, format == Some(Format::Wide))))
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
    /// Whether everything that is shown is as wanted, and known to be.
    fn is_as_wanted(&self) -> bool {
        self.pulse.is_trusted() && self.groups.iter().all(tree::Group::is_as_wanted)
    }
}

/// Whether the warning of a pulse is worth a line of its own.
fn warning(pulse: &Pulse) -> Option<&str> {
    (!pulse.message.is_empty()).then_some(pulse.message.as_str())
}
