//! Takes EMCO away: what runs is kept, released or removed, by choice.

use std::fmt::Write as _;
use std::io::{BufRead as _, IsTerminal as _, Write as _};

use emco_crds::conditions::{Conditioned as _, types};
use emco_crds::names::object;
use emco_crds::{Cluster, OwnerKind};
use emco_engine::shard::decode_status;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ListParams;
use kube::{Api, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;

use super::absence::{find, is_undefined};
use super::args::UninstallArgs;
use super::hub::{self, Hub};
use super::{Misused, Outcome, print};

mod free;
mod release;
mod remove;
mod working;

macro_rules! inventory {
    ($($store:ident: $kind:ident, $($column:tt),*;)*) => {
        /// All that EMCO has on the hub.
        #[derive(Default)]
        pub struct Inventory { $($store: Vec<emco_crds::$kind>,)* }
    };
}
emco_crds::each_kind!(all => inventory);

/// Several of a kind, as people who uninstall know them.
fn called(kind: &str, called: &'static str) -> &'static str {
    if kind == "AppContext" { "revisions" } else { called }
}

/// `kubectl emco uninstall`.
pub async fn run(args: UninstallArgs) -> anyhow::Result<Outcome> {
    let is_chosen = args.choice.keep || args.choice.release || args.choice.remove;
    if args.yes && !is_chosen {
        let why = "--yes confirms a choice, and there is none: add --keep, --release or --remove";
        return Err(Misused(why.to_owned()).into());
    }
    let hub = hub::connect(&args.hub).await?;
    let there = Inventory::read(&hub).await?;
    print(&there.said(&hub))?;
    let namespace = hub.operator_namespace.clone();
    if args.choice.keep {
        for waits in there.being_deleted() {
            eprintln!(
                "warning: {waits} is being deleted: that goes on when EMCO is back, and its namespace waits as long"
            );
        }
        return print(&format!(
            "all of it stays, and what runs goes on; nobody corrects, reports or changes it until EMCO is back. The operator goes with \
             (--no-hooks, since with work left a helm uninstall is held):\n  helm uninstall emco --namespace {namespace} --no-hooks\n"
        ))
        .map(|()| Outcome::AsWanted);
    }
    if !is_chosen {
        return print(CHOICES).map(|()| Outcome::AsWanted);
    }
    let word = if args.choice.release { "release" } else { "remove" };
    if args.choice.release
        && let Some(why) = working::refusal(&hub, &there).await?
    {
        return Err(Misused(why).into());
    }
    if args.dry_run {
        print(if args.choice.release { release::PLAN } else { remove::PLAN })?;
        return Ok(Outcome::AsWanted);
    }
    if !args.yes && !confirmed(word)? {
        return Err(Misused("it was not confirmed: nothing was changed".to_owned()).into());
    }
    let ended = if args.choice.release {
        Box::pin(release::run(&hub, there, &args)).await?
    } else {
        Box::pin(remove::run(&hub, there, &args)).await?
    };
    if ended != Ended::Waits {
        print(&format!(
            "nothing of EMCO's work is left on the hub. The charts, the kinds and the keys go with:\n  helm uninstall emco --namespace \
             {namespace}\n  helm uninstall emco-crds --namespace {namespace}\n  kubectl delete -k config/crd\n  kubectl delete namespace \
             {namespace}\n"
        ))?;
    }
    Ok(if ended == Ended::Wholly { Outcome::AsWanted } else { Outcome::NotAsWanted })
}

/// How far it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Nothing is left.
    Wholly,
    /// Nothing is left on the hub; what is left on clusters was said.
    OnTheHub,
    /// Something holds it up, which was said: running it again goes on.
    Waits,
}

const CHOICES: &str = "\
EMCO goes by one of these; choose what becomes of what runs:
  --keep     what runs stays, and so do EMCO's objects and the accounts on clusters: EMCO may come back
  --release  what runs stays on the clusters and is nobody's; all that is EMCO's goes
  --remove   what runs is removed from the clusters, and then all that is EMCO's
nothing was changed; --dry-run says what a choice does
";

/// Asks on a terminal; elsewhere `--yes` is the answer.
fn confirmed(word: &str) -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        return Err(Misused(format!(
            "--{word} cannot be undone: confirm it with --yes, since nobody can be asked here"
        ))
        .into());
    }
    eprint!("this cannot be undone; type {word} to go on: ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(answer.trim() == word)
}

/// A count with its noun.
pub fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

impl Inventory {
    async fn read(hub: &Hub) -> anyhow::Result<Self> {
        macro_rules! read {
            ($($store:ident: $kind:ident, $called:literal, $($column:ident),*;)*) => {
                Self { $($store: all(hub, called(stringify!($kind), $called)).await?,)* }
            };
        }
        Ok(emco_crds::each_kind!(all => read))
    }

    /// True where there is nothing of EMCO.
    fn is_empty(&self) -> bool {
        macro_rules! none {
            ($($store:ident: $kind:ident, $($column:tt),*;)*) => { true $(&& self.$store.is_empty())* };
        }
        emco_crds::each_kind!(all => none)
    }

    fn said(&self, hub: &Hub) -> String {
        let placed: i64 = self
            .shards
            .iter()
            .filter(|shard| shard.spec.owner.kind == OwnerKind::DeploymentIntentGroup)
            .filter_map(|shard| Some(decode_status(&shard.spec, shard.status.as_ref()?)))
            .flat_map(std::collections::BTreeMap::into_values)
            .map(|row| row.total)
            .sum();
        let mut text = format!(
            "on the hub {}: {}, {}, {} of {}; {} on clusters\n",
            hub.url,
            count(self.projects.len(), "project"),
            count(self.digs.len(), "deployment"),
            count(self.clusters.len(), "cluster"),
            count(self.providers.len(), "provider"),
            count(usize::try_from(placed).unwrap_or_default(), "object"),
        );
        for cluster in &self.clusters {
            let ready = cluster.status.as_ref().and_then(|status| status.condition(types::READY));
            if let Some(ready) = ready.filter(|ready| ready.status != "True") {
                let _ = writeln!(text, "  {} is not ready: {}: {}", id(cluster), ready.reason, ready.message);
            }
        }
        text
    }

    fn being_deleted(&self) -> Vec<String> {
        let mut found = ended(&self.digs, "DeploymentIntentGroup");
        found.extend(ended(&self.clouds, "LogicalCloud"));
        found.extend(ended(&self.projects, "Project"));
        found.extend(ended(&self.clusters, "Cluster"));
        found.extend(ended(&self.git_targets, "GitTarget"));
        found.extend(ended(&self.providers, "ClusterProvider"));
        found
    }
}

fn ended<K: kube::ResourceExt>(objects: &[K], kind: &str) -> Vec<String> {
    let deleted = objects.iter().filter(|object| object.meta().deletion_timestamp.is_some());
    deleted.map(|object| named(kind, object)).collect()
}

/// Kind, namespace and name.
pub fn named<K: kube::ResourceExt>(kind: &str, object: &K) -> String {
    match object.namespace() {
        Some(namespace) => format!("{kind}/{namespace}/{}", object.name_any()),
        None => format!("{kind}/{}", object.name_any()),
    }
}

/// PROVIDER/CLUSTER.
pub fn id(cluster: &Cluster) -> String {
    let provider = cluster.status.as_ref().and_then(|status| status.provider.clone());
    format!("{}/{}", provider.or_else(|| cluster.namespace()).unwrap_or_default(), cluster.name_any())
}

/// The identity under which clusters are claimed; `None` where its Secret is gone.
pub async fn installation(hub: &Hub) -> anyhow::Result<Option<String>> {
    let place = format!("{}/{}", hub.operator_namespace, object::INSTALLATION);
    let secrets = Api::<Secret>::namespaced(hub.client.clone(), &hub.operator_namespace);
    let secret = find(&secrets, object::INSTALLATION)
        .await
        .map_err(|error| hub.sentence(&error, "read secret", &place))?;
    let Some(secret) = secret else { return Ok(None) };
    Ok(Some(emco_controllers::driver::installation::read(&place, &serde_json::to_value(&secret)?)?.id))
}

/// All objects of a kind; none where the hub proves that it does not define the kind any more.
pub async fn all<K>(hub: &Hub, what: &str) -> anyhow::Result<Vec<K>>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    match hub.try_list(Api::<K>::all(hub.client.clone()), &ListParams::default()).await {
        // A hub that starts, or a proxy, answers the same for kinds that it has.
        Err(kube::Error::Api(status))
            if status.code == 404 && is_undefined::<K>(&hub.client).await.unwrap_or(false) =>
        {
            Ok(Vec::new())
        }
        Err(error) => Err(hub.sentence(&error, &format!("list {what}"), "in all namespaces")),
        found => Ok(found?),
    }
}
