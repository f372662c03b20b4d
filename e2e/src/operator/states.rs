//! Waits for objects in a state, and says what was missing last.

use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Result, anyhow};
use emco_crds::conditions::types;
use emco_crds::{Conditioned, DeploymentIntentGroup};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::NamespaceResourceScope;
use kube::core::object::HasStatus;
use kube::runtime::watcher::Config;
use kube::{Api, Resource};
use serde::de::DeserializeOwned;

use super::SOON;
use crate::audit::AuditMark;
use crate::bed::Bed;
use crate::supervisor::Process;
use crate::wait::wait_for_some;

/// Waits until `check` accepts the object of the hub, and answers it; else the error says what was missing last.
pub async fn wait<K, T>(
    bed: &Bed,
    namespace: &str,
    name: &str,
    check: impl FnMut(&K) -> Result<T, String>,
) -> Result<T>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + 'static,
{
    wait_in(bed.hub().api(namespace).await?, name, check).await
}

/// As [`wait`], for objects of any API.
pub async fn wait_in<K, T>(api: Api<K>, name: &str, check: impl FnMut(&K) -> Result<T, String>) -> Result<T>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    wait_within(api, name, SOON, check).await
}

async fn wait_within<K, T>(
    api: Api<K>,
    name: &str,
    patience: Duration,
    mut check: impl FnMut(&K) -> Result<T, String>,
) -> Result<T>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let what = format!("{} {name}", K::kind(&()));
    let config = kube::runtime::watcher::Config::default().fields(&format!("metadata.name={name}"));
    wait_for_some(api, config, patience, &what, |objects| {
        objects.values().next().map_or_else(|| Err("it does not exist".to_owned()), &mut check)
    })
    .await
}

/// Whether a condition has a status.
pub fn is<S: Conditioned>(status: Option<&S>, type_: &str, wanted: &str) -> Result<(), String> {
    let condition =
        status.and_then(|status| status.condition(type_)).ok_or_else(|| format!("it has no {type_}"))?;
    if condition.status == wanted {
        return Ok(());
    }
    Err(format!("{type_}={} {}: {}", condition.status, condition.reason, condition.message))
}

/// The message of a condition that has a reason and a status other than True.
pub fn refused<S: Conditioned>(status: Option<&S>, type_: &str, reason: &str) -> Result<String, String> {
    let condition =
        status.and_then(|status| status.condition(type_)).ok_or_else(|| format!("it has no {type_}"))?;
    if condition.reason == reason && condition.status != "True" {
        return Ok(condition.message.clone());
    }
    Err(format!("{type_}={} {}: {}", condition.status, condition.reason, condition.message))
}

/// Waits until a condition of the object as it is defined now is not True for `reason`, and answers its message.
pub async fn says<K, S>(bed: &Bed, namespace: &str, name: &str, type_: &str, reason: &str) -> Result<String>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + HasStatus<Status = S>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + 'static,
    S: Conditioned,
{
    wait(bed, namespace, name, |object: &K| {
        if object.status().and_then(Conditioned::observed_generation) != object.meta().generation {
            return Err("the last change was not looked at yet".to_owned());
        }
        refused(object.status(), type_, reason)
    })
    .await
}

/// Waits until a deployment says that a cluster, as PROVIDER/CLUSTER, keeps it from being as wanted for `reason`.
pub async fn failing(bed: &Bed, namespace: &str, name: &str, cluster: &str, reason: &str) -> Result<()> {
    wait(bed, namespace, name, |dig: &DeploymentIntentGroup| {
        let failing = dig.status.as_ref().map(|status| status.failing.clone()).unwrap_or_default();
        let told = failing.iter().any(|f| f.cluster == cluster && f.reason == reason);
        if told { Ok(()) } else { Err(format!("{failing:?}")) }
    })
    .await
}

/// What `user` wrote on a plane since a mark, but for the pulse of leaders, as `VERB URI`. Needs an audit log.
pub fn written(bed: &Bed, plane: &str, mark: AuditMark, user: &str) -> Result<Vec<String>> {
    let events = bed.edge(plane).audit_since(mark)?;
    let mine = events.iter().filter(|event| event.user == user && event.is_write() && !event.is_lease());
    Ok(mine.map(|event| format!("{} {}", event.verb, event.uri)).collect())
}

/// Whether a deployment runs as its present definition wants, and nothing is under way.
pub fn settled(dig: &DeploymentIntentGroup) -> Result<(), String> {
    let status = dig.status.as_ref().ok_or("it has no status yet")?;
    if status.observed_generation != dig.metadata.generation {
        return Err("the last change was not looked at yet".to_owned());
    }
    for type_ in [types::DEPLOYED, types::READY] {
        is(Some(status), type_, "True")?;
    }
    match status.condition(types::RECONCILING) {
        None => Ok(()),
        Some(condition) => Err(format!("Reconciling {}: {}", condition.reason, condition.message)),
    }
}

/// Waits until the deployment runs as its present definition wants, with `revision` or a later one.
pub async fn deployed(
    bed: &Bed,
    namespace: &str,
    name: &str,
    revision: i64,
) -> Result<DeploymentIntentGroup> {
    deployed_within(bed, namespace, name, revision, SOON).await
}

/// As [`deployed`], for what takes long on a slow machine.
pub async fn deployed_within(
    bed: &Bed,
    namespace: &str,
    name: &str,
    revision: i64,
    patience: Duration,
) -> Result<DeploymentIntentGroup> {
    wait_within(bed.hub().api(namespace).await?, name, patience, |dig: &DeploymentIntentGroup| {
        let now = dig.status.as_ref().and_then(|status| status.revision).unwrap_or_default();
        if now < revision {
            let why = is(dig.status.as_ref(), types::READY, "True").err().unwrap_or_default();
            return Err(format!("it runs revision {now}, not {revision}: {why}"));
        }
        settled(dig).map(|()| dig.clone())
    })
    .await
}

/// `future`, unless the operator ends before: then nothing that is waited for will come.
pub async fn unless_ended<T>(operator: &Process, future: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::select! {
        result = future => result,
        how = operator.ended() => Err(anyhow!("the operator ended: {how}\n{}", operator.log_tail(20))),
    }
}

/// Waits until exactly these ConfigMaps are in a namespace of a plane, of those that the operator applied there. Names are sorted.
pub async fn has_maps(bed: &Bed, plane: &str, namespace: &str, wanted: &[&str]) -> Result<()> {
    let maps: Api<ConfigMap> = bed.edge(plane).api(namespace).await?;
    let what = format!("{wanted:?} in {namespace} on {plane}");
    wait_for_some(maps, Config::default().labels("emco.io/owner"), SOON, &what, |objects| {
        let mut names: Vec<_> = objects.values().filter_map(|map| map.metadata.name.as_deref()).collect();
        names.sort_unstable();
        if names == wanted { Ok(()) } else { Err(format!("{names:?}")) }
    })
    .await
}
