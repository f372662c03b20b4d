//! ConfigMaps and Secrets of owned namespaces, as metadata alone: a change wakes who refers to it. One pair of watches per
//! owned namespace: the operator has no right to others.

use std::collections::BTreeMap;
use std::sync::Arc;

use emco_crds::OwnerKind;
use emco_crds::names::label;
use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::Api;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch_events};
use kube::{Client, Resource};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::object::meta::name;
use crate::reconcile::context::Context;
use crate::triggers::Triggers;

/// The failure in a row that is logged: the first ones are those of a namespace whose `RoleBinding` is not effective yet.
const TOLD: u32 = 5;

/// Keeps the watches of all owned namespaces until `stop`.
pub async fn follow(client: Client, ctx: Arc<Context>, triggers: Arc<Triggers>, stop: CancellationToken) {
    let mut watched: BTreeMap<String, DropGuard> = BTreeMap::new();
    loop {
        let owned: Vec<String> = ctx
            .stores
            .namespaces
            .state()
            .iter()
            .filter(|ns| {
                let labels = ns.meta().labels.as_ref();
                labels.is_some_and(|l| l.contains_key(label::PROJECT) || l.contains_key(label::PROVIDER))
            })
            .map(|ns| name(ns.as_ref()).to_owned())
            .collect();
        watched.retain(|namespace, _| owned.contains(namespace));
        for namespace in owned {
            watched.entry(namespace).or_insert_with_key(|namespace| {
                let token = CancellationToken::new();
                spawn(&client, &ctx, &triggers, namespace, &token);
                token.drop_guard()
            });
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = triggers.namespaces.notified() => {}
        }
    }
}

fn spawn(
    client: &Client,
    ctx: &Arc<Context>,
    triggers: &Arc<Triggers>,
    namespace: &str,
    token: &CancellationToken,
) {
    let secrets: Api<PartialObjectMeta<Secret>> = Api::namespaced(client.clone(), namespace);
    let maps: Api<PartialObjectMeta<ConfigMap>> = Api::namespaced(client.clone(), namespace);
    tokio::spawn(one(
        secrets,
        "Secret",
        namespace.to_owned(),
        Arc::clone(ctx),
        Arc::clone(triggers),
        token.clone(),
    ));
    tokio::spawn(one(
        maps,
        "ConfigMap",
        namespace.to_owned(),
        Arc::clone(ctx),
        Arc::clone(triggers),
        token.clone(),
    ));
}

/// A Secret with kubeconfigs of people that somebody changed or removed is put right by its logical cloud.
fn of_people(ctx: &Context, triggers: &Triggers, namespace: &str, meta: &ObjectMeta) {
    let label = |key: &str| meta.labels.as_ref().and_then(|labels| labels.get(key)).map(String::as_str);
    if label(label::OWNER_KIND).map(OwnerKind::from) != Some(OwnerKind::LogicalCloud) {
        return;
    }
    let Some(cloud) = label(label::OWNER_NAME) else { return };
    let key = (namespace.to_owned(), cloud.to_owned());
    let name = meta.name.as_deref().unwrap_or_default();
    if ctx.people.secret_changed(&key, name, meta.resource_version.as_deref()) {
        triggers.clouds.enqueue(namespace, cloud);
    }
}

async fn one<K>(
    api: Api<PartialObjectMeta<K>>,
    kind: &'static str,
    namespace: String,
    ctx: Arc<Context>,
    triggers: Arc<Triggers>,
    token: CancellationToken,
) where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + Send + Sync + 'static,
{
    let mut events = watch_events(api, watcher::Config::default()).default_backoff().boxed();
    let mut failures = 0_u32;
    loop {
        let event = tokio::select! {
            () = token.cancelled() => return,
            event = events.next() => event,
        };
        let gone = matches!(event, Some(Ok(Event::Delete(_))));
        if kind == "ConfigMap" && matches!(event, Some(Ok(Event::Init))) {
            ctx.stores.cluster_maps.unseen(&namespace);
        }
        match event {
            Some(Ok(Event::Apply(meta) | Event::InitApply(meta) | Event::Delete(meta))) => {
                failures = 0;
                if kind == "Secret" {
                    of_people(&ctx, &triggers, &namespace, meta.meta());
                } else {
                    let version = meta.meta().resource_version.as_deref().filter(|_| !gone);
                    let map = meta.meta().name.as_deref().unwrap_or_default();
                    ctx.stores.cluster_maps.seen(&namespace, map, version);
                }
                triggers.source(
                    &ctx.stores,
                    kind,
                    &namespace,
                    meta.meta().name.as_deref().unwrap_or_default(),
                );
            }
            Some(Ok(_)) => failures = 0,
            Some(Err(error)) => {
                failures = failures.saturating_add(1);
                let error = super::stream::brief(&error);
                if failures == TOLD {
                    tracing::warn!(kind, namespace, error, "a watch is interrupted again and again");
                } else {
                    tracing::debug!(kind, namespace, error, "a watch was interrupted");
                }
            }
            None => return,
        }
    }
}
