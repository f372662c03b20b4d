//! Has the operator remove all it placed, and takes the clusters off the hub.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::bail;
use emco_crds::conditions::types;
use emco_crds::names::object;
use emco_crds::{Cluster, ClusterProvider, DeploymentIntentGroup, GitTarget, LogicalCloud, Project};
use futures::future::BoxFuture;
use futures::{FutureExt as _, TryStreamExt as _};
use kube::api::{DeleteParams, Preconditions};
use kube::core::NamespaceResourceScope;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Ended, Inventory, count, id, named};
use crate::cli::absence::is_absence;
use crate::cli::args::UninstallArgs;
use crate::cli::hub::Hub;
use crate::cli::remove::{Left, remove, spaces, stays};
use crate::cli::{Outcome, print, pulse, watched};

/// What `--dry-run` says.
pub const PLAN: &str = "\
would be removed (dry run):
  1. all deployments are deleted; the operator removes their objects from the clusters
  2. apps, profiles, approvals and logical clouds are deleted, then projects, with the namespaces that the operator made
  3. each cluster is removed from the hub, with its account on the cluster
  4. Git targets and providers are deleted
";

/// Removes everything.
pub async fn run(hub: &Hub, there: Inventory, args: &UninstallArgs) -> anyhow::Result<Ended> {
    let pulse = pulse::read(hub).await.pulse;
    if !pulse.is_trusted() {
        bail!(
            "only the operator can remove what it placed: {}. Start it again, or choose --release",
            pulse.message
        );
    }
    let ends = tokio::time::Instant::now() + args.timeout;
    let left = || ends.saturating_duration_since(tokio::time::Instant::now());
    if !Box::pin(deployments(hub, &there, &left)).await? {
        return Ok(Ended::Waits);
    }
    // The operator keeps the default one of each project until that goes.
    let by_people = |cloud: &LogicalCloud| cloud.name_any() != object::DEFAULT_LOGICAL_CLOUD;
    let clouds: Vec<LogicalCloud> = there.clouds.iter().filter(|cloud| by_people(cloud)).cloned().collect();
    if !delete_all(hub, "LogicalCloud", &clouds, &left).await?
        || !until_gone::<LogicalCloud>(hub, "logical cloud", left(), by_people).await?
    {
        return Ok(Ended::Waits);
    }
    for project in &there.projects {
        if !delete(hub, &Api::all(hub.client.clone()), "Project", project, left()).await? {
            return Ok(Ended::Waits);
        }
    }
    if !until_gone::<Project>(hub, "project", left(), |_| true).await? {
        return Ok(Ended::Waits);
    }
    let (mut ended, spaces) = (Ended::Wholly, spaces(&there.clouds));
    for cluster in &there.clusters {
        let namespace = cluster.namespace().unwrap_or_default();
        let api = Api::<Cluster>::namespaced(hub.client.clone(), &namespace);
        if !is_unused(&api, &cluster.name_any(), &format!("Cluster {}", id(cluster)), left()).await? {
            return Ok(Ended::Waits);
        }
        match Box::pin(remove(hub, &id(cluster), false, (left().max(SHORTEST), &spaces))).await? {
            Some(Outcome::AsWanted) => {}
            Some(_) => ended = Ended::OnTheHub,
            None => {
                let why = "its Cluster was being deleted before, and its Secret is not there any more";
                eprint!("{}", stays(&id(cluster), &[Left::Account], why));
                ended = Ended::OnTheHub;
            }
        }
    }
    if !Box::pin(providers(hub, &there, &left)).await? {
        return Ok(Ended::Waits);
    }
    if ended == Ended::OnTheHub {
        eprintln!("warning: all is removed, but for what is named above on clusters");
    }
    Ok(ended)
}

/// The Git targets go, whose clusters did, and then the providers; whether all of them did.
async fn providers(
    hub: &Hub,
    there: &Inventory,
    left: &(impl Fn() -> Duration + Sync),
) -> anyhow::Result<bool> {
    if !(there.git_targets.is_empty()
        || delete_all(hub, "GitTarget", &there.git_targets, left).await?
            && until_gone::<GitTarget>(hub, "Git target", left(), |_| true).await?)
    {
        return Ok(false);
    }
    for provider in &there.providers {
        if !delete(hub, &Api::all(hub.client.clone()), "ClusterProvider", provider, left()).await? {
            return Ok(false);
        }
    }
    until_gone::<ClusterProvider>(hub, "provider", left(), |_| true).await
}

/// The deployments go, their approvals, and what they were made of, the last row of the table first; whether all of it did.
async fn deployments(
    hub: &Hub,
    there: &Inventory,
    left: &(impl Fn() -> Duration + Sync),
) -> anyhow::Result<bool> {
    if !delete_all(hub, "DeploymentIntentGroup", &there.digs, left).await?
        || !until_gone::<DeploymentIntentGroup>(hub, "deployment", left(), |_| true).await?
    {
        return Ok(false);
    }
    let (mut made, mut named): (Vec<BoxFuture<'_, _>>, Vec<BoxFuture<'_, _>>) = (Vec::new(), Vec::new());
    macro_rules! delete_each {
        ($($store:ident: $kind:ident, $called:literal, $writer:ident, $($column:ident),*;)*) => {
            $(delete_each!(@$writer $store $kind);)*
        };
        (@Editor digs $kind:ident) => {};
        (@Editor $store:ident $kind:ident) => {
            named.push(delete_all(hub, stringify!($kind), &there.$store, left).boxed())
        };
        (@Approver $store:ident $kind:ident) => {
            made.push(delete_all(hub, stringify!($kind), &there.$store, left).boxed())
        };
        (@Member $store:ident $kind:ident) => {
            made.push(delete_all(hub, stringify!($kind), &there.$store, left).boxed())
        };
        (@$writer:ident $store:ident $kind:ident) => {};
    }
    emco_crds::each_kind!(all => delete_each);
    for step in made.into_iter().chain(named.into_iter().rev()) {
        if !step.await? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Objects of the hub whose end is watched.
trait Watched:
    Resource<DynamicType = ()> + Clone + DeserializeOwned + serde::Serialize + std::fmt::Debug + Send + 'static
{
}

impl<K> Watched for K where
    K: Resource<DynamicType = ()>
        + Clone
        + DeserializeOwned
        + serde::Serialize
        + std::fmt::Debug
        + Send
        + 'static
{
}

/// Deletes an object; `false` when something uses it for too long, which is said.
async fn delete<K>(hub: &Hub, api: &Api<K>, kind: &str, object: &K, limit: Duration) -> anyhow::Result<bool>
where
    K: Watched,
{
    if object.meta().deletion_timestamp.is_some() {
        return Ok(true);
    }
    let preconditions = Preconditions { uid: object.uid(), ..Preconditions::default() };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
    let said = named(kind, object);
    let mut refused = false;
    loop {
        match api.delete(&object.name_any(), &params).await {
            // What used it is gone, and the operator has not said so yet: a policy of the chart goes by what it said.
            Err(kube::Error::Api(status))
                if status.message.contains("ValidatingAdmissionPolicy") && !refused =>
            {
                refused = true;
                if !is_unused(api, &object.name_any(), &said, limit).await? {
                    return Ok(false);
                }
            }
            Err(kube::Error::Api(status)) if status.code == 409 => return Ok(true),
            Err(error) if is_absence(&error, &object.name_any()) => return Ok(true),
            Err(error) => return Err(hub.sentence(&error, "delete", &said)),
            Ok(_) => return Ok(true),
        }
    }
}

/// Waits until the operator says that nothing uses an object; `false` when that takes too long, which is said.
async fn is_unused<K>(api: &Api<K>, name: &str, said: &str, limit: Duration) -> anyhow::Result<bool>
where
    K: Watched,
{
    let unseen = "nothing is known of its use";
    let waited =
        watched::until(api.clone(), name, limit.max(SHORTEST), unseen, |object: Option<&K>| used(object));
    match waited.await? {
        Ok(()) => Ok(true),
        Err(why) => {
            eprintln!("warning: {said} holds it up: {why}. Run this again to go on");
            Ok(false)
        }
    }
}

/// For one look, however late it is.
const SHORTEST: Duration = Duration::from_secs(5);

/// Who uses an object, as the operator says; nobody, of one that is gone or going.
fn used<K: kube::Resource + serde::Serialize>(object: Option<&K>) -> Result<(), String> {
    let Some(object) = object.filter(|object| object.meta().deletion_timestamp.is_none()) else {
        return Ok(());
    };
    let value = serde_json::to_value(object).unwrap_or_default();
    // A Cluster names one user, other kinds the first ten of them, as the policy reads it.
    let is_used = |used: &&Value| !used.is_null() && used["total"] != 0;
    match value.pointer("/status/inUse").filter(is_used) {
        None => Ok(()),
        Some(used) => {
            let first = used["example"].as_str().or_else(|| used["holders"][0].as_str());
            Err(format!("it is used by {}", first.unwrap_or("something")))
        }
    }
}

async fn delete_all<K>(
    hub: &Hub,
    kind: &str,
    objects: &[K],
    left: &(impl Fn() -> Duration + Sync),
) -> anyhow::Result<bool>
where
    K: Watched + Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    for object in objects {
        let api = Api::<K>::namespaced(hub.client.clone(), &object.namespace().unwrap_or_default());
        if !Box::pin(delete(hub, &api, kind, object, left())).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Waits until none is left, says how many are whenever that changes, and in the end what those wait for.
async fn until_gone<K>(
    hub: &Hub,
    noun: &str,
    limit: Duration,
    counts: impl Fn(&K) -> bool,
) -> anyhow::Result<bool>
where
    K: Watched,
{
    let events = watcher(Api::<K>::all(hub.client.clone()), watcher::Config::default()).default_backoff();
    let mut events = std::pin::pin!(events);
    let mut left: BTreeMap<String, String> = BTreeMap::new();
    let mut listed = false;
    let mut said = None;
    let watch = async {
        while let Some(event) = events.try_next().await? {
            match event {
                watcher::Event::Init => left.clear(),
                watcher::Event::InitApply(object) | watcher::Event::Apply(object) if counts(&object) => {
                    left.insert(named(&K::kind(&()), &object), waits_for(&object));
                }
                watcher::Event::InitDone => listed = true,
                watcher::Event::Delete(object) => {
                    left.remove(&named(&K::kind(&()), &object));
                }
                _ => {}
            }
            if listed && said != Some(left.len()) {
                said = Some(left.len());
                print(&format!("{} left\n", count(left.len(), noun)))?;
            }
            if listed && left.is_empty() {
                break;
            }
        }
        anyhow::Ok(())
    };
    if let Ok(ended) = tokio::time::timeout(limit, watch).await {
        return ended.map(|()| true);
    }
    for (object, why) in &left {
        eprintln!("warning: {object} holds it up: {why}");
    }
    eprintln!("warning: not done after {limit:?}: run this again to go on");
    Ok(false)
}

/// What an object says of its own deletion.
fn waits_for<K: serde::Serialize + ResourceExt>(object: &K) -> String {
    if object.meta().deletion_timestamp.is_none() {
        return "it is not being deleted: perhaps it was made again, as by a GitOps tool".to_owned();
    }
    let value = serde_json::to_value(object).unwrap_or_default();
    let conditions = value.pointer("/status/conditions").and_then(Value::as_array);
    let ready = conditions.into_iter().flatten().find(|one| one["type"] == types::READY);
    ready
        .and_then(|one| one["message"].as_str())
        .filter(|text| !text.is_empty())
        .unwrap_or("the operator has said nothing of it")
        .to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_used_as_its_status_says_unless_it_goes() {
        let project = |status: Value, deleted: Option<&str>| -> Project {
            let metadata = json!({"name": "shop", "deletionTimestamp": deleted});
            serde_json::from_value(
                json!({"apiVersion": "emco.io/v1alpha1", "kind": "Project", "metadata": metadata,
                "spec": {}, "status": status}),
            )
            .unwrap()
        };
        let in_use = json!({"inUse": {"total": 1, "holders": ["DeploymentIntentGroup/shop/till"]}});
        let said = used(Some(&project(in_use.clone(), None)));
        assert_eq!(said, Err("it is used by DeploymentIntentGroup/shop/till".to_owned()));
        assert_eq!(used(Some(&project(in_use, Some("2026-11-21T07:00:00Z")))), Ok(()));
        assert_eq!(used(Some(&project(json!({}), None))), Ok(()));
        assert_eq!(used(Some(&project(json!({"inUse": {"total": 0}}), None))), Ok(()));
        assert_eq!(used::<Project>(None), Ok(()));
    }
}
