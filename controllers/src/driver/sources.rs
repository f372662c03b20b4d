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
use crate::stores::SecretVersions;
use crate::triggers::Triggers;

/// The failure in a row that is logged: the first ones are those of a namespace whose `RoleBinding` is not effective yet.
const TOLD: u32 = 5;

/// Most names that are remembered of one watch, to tell what went while it was cut.
const MOST_NAMES: usize = 10_000;

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
        watched.retain(|namespace, _| {
            let owns = owned.contains(namespace);
            if !owns {
                ctx.stores.secret_versions.ends(namespace);
                ctx.accesses.ends(namespace);
            }
            owns
        });
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
    let watch = |kind| Watch::new(kind, namespace, ctx, triggers);
    tokio::spawn(one(secrets, watch("Secret"), token.clone()));
    tokio::spawn(one(maps, watch("ConfigMap"), token.clone()));
}

/// Takes in which version of a Secret there is, before those look who name it.
fn note<K>(versions: &SecretVersions, namespace: &str, event: &Event<PartialObjectMeta<K>>) {
    let of = |meta: &ObjectMeta| (meta.name.clone().unwrap_or_default(), SecretVersions::version(meta));
    match event {
        Event::Init => versions.begins(namespace),
        Event::InitApply(secret) => {
            let (name, version) = of(&secret.metadata);
            versions.lists(namespace, &name, version.as_deref());
        }
        Event::InitDone => versions.listed(namespace),
        Event::Apply(secret) => {
            let (name, version) = of(&secret.metadata);
            versions.shows(namespace, &name, version.as_deref());
        }
        Event::Delete(secret) => versions.shows(namespace, &of(&secret.metadata).0, None),
    }
}

/// The logical cloud of whose people a Secret has kubeconfigs.
fn cloud_of(meta: &ObjectMeta) -> Option<&str> {
    let label = |key: &str| meta.labels.as_ref().and_then(|labels| labels.get(key)).map(String::as_str);
    let is_of_cloud = label(label::OWNER_KIND).map(OwnerKind::from) == Some(OwnerKind::LogicalCloud);
    label(label::OWNER_NAME).filter(|_| is_of_cloud)
}

/// What a watch tells of one kind in one namespace.
struct Watch {
    kind: &'static str,
    namespace: String,
    ctx: Arc<Context>,
    triggers: Arc<Triggers>,
    there: There,
    failures: u32,
}

impl Watch {
    fn new(kind: &'static str, namespace: &str, ctx: &Arc<Context>, triggers: &Arc<Triggers>) -> Self {
        let (ctx, triggers) = (Arc::clone(ctx), Arc::clone(triggers));
        Self { kind, namespace: namespace.to_owned(), ctx, triggers, there: There::default(), failures: 0 }
    }

    fn hear<K>(&mut self, event: &Event<PartialObjectMeta<K>>) {
        self.failures = 0;
        let stores = &self.ctx.stores;
        if self.kind == "Secret" {
            note(&stores.secret_versions, &self.namespace, event);
        } else if matches!(event, Event::Init) {
            stores.cluster_maps.unseen(&self.namespace);
        }
        let gone = self.there.hear(event);
        match event {
            Event::Apply(object) | Event::InitApply(object) => self.tell(&object.metadata, false),
            Event::Delete(object) => self.tell(&object.metadata, true),
            Event::Init | Event::InitDone => {}
        }
        match gone {
            Gone::These(names) => {
                for (name, cloud) in names {
                    self.tell_name(&name, cloud.as_deref(), None);
                }
            }
            Gone::Unknown => self.tell_all(),
        }
    }

    fn tell(&self, meta: &ObjectMeta, is_gone: bool) {
        let (name, version) = (meta.name.as_deref().unwrap_or_default(), meta.resource_version.as_deref());
        // The version of a Secret that was deleted is that of its deletion.
        let version = version.filter(|_| !is_gone || self.kind == "Secret");
        self.tell_name(name, cloud_of(meta), version);
    }

    /// An object of this name is another one. `version`: none where it went unseen.
    fn tell_name(&self, name: &str, cloud: Option<&str>, version: Option<&str>) {
        let Self { kind, namespace, ctx, triggers, .. } = self;
        if *kind == "ConfigMap" {
            ctx.stores.cluster_maps.seen(namespace, name, version);
        } else if let Some(cloud) = cloud {
            // Kubeconfigs of people that somebody changed or removed are put right by their logical cloud.
            let key = (namespace.clone(), cloud.to_owned());
            if ctx.people.secret_changed(&key, name, version) {
                triggers.clouds.enqueue(namespace, cloud);
            }
        }
        triggers.source(&ctx.stores, kind, namespace, name);
    }

    /// Something went, and nobody knows what.
    fn tell_all(&self) {
        let (stores, within) = (&self.ctx.stores, self.namespace.as_str());
        self.triggers.namespace(stores, within);
        self.triggers.profiles.all(&stores.profiles.within(within));
        self.triggers.intents.all(&stores.intents.within(within));
    }

    fn fail(&mut self, error: &watcher::Error) {
        let (kind, namespace) = (self.kind, self.namespace.as_str());
        if kind == "Secret" {
            self.ctx.stores.secret_versions.cut(namespace);
        }
        self.failures = self.failures.saturating_add(1);
        let error = super::stream::brief(error);
        if self.failures == TOLD {
            tracing::warn!(kind, namespace, error, "a watch is interrupted again and again");
        } else {
            tracing::debug!(kind, namespace, error, "a watch was interrupted");
        }
    }
}

async fn one<K>(api: Api<PartialObjectMeta<K>>, mut watch: Watch, token: CancellationToken)
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + Send + Sync + 'static,
{
    let mut events = watch_events(api, watcher::Config::default()).default_backoff().boxed();
    loop {
        let event = tokio::select! {
            biased;
            () = token.cancelled() => return,
            event = events.next() => event,
        };
        match event {
            Some(Ok(event)) => watch.hear(&event),
            Some(Err(error)) => watch.fail(&error),
            None => return,
        }
    }
}

/// Names of objects, as many as are remembered, with the logical cloud of a Secret for people.
#[derive(Default)]
struct Names {
    known: BTreeMap<String, Option<String>>,
    has_more: bool,
}

impl Names {
    fn add(&mut self, meta: &ObjectMeta) {
        let name = meta.name.as_deref().unwrap_or_default();
        if self.known.len() < MOST_NAMES {
            self.known.insert(name.to_owned(), cloud_of(meta).map(str::to_owned));
        } else {
            self.has_more |= !self.known.contains_key(name);
        }
    }
}

/// What went while a watch was cut.
enum Gone {
    These(BTreeMap<String, Option<String>>),
    /// There are more objects than names are remembered.
    Unknown,
}

/// The objects that a watch showed.
#[derive(Default)]
struct There {
    all: Names,
    /// Those that the list that is being read has so far.
    listed: Names,
}

impl There {
    fn hear<K>(&mut self, event: &Event<PartialObjectMeta<K>>) -> Gone {
        match event {
            Event::Init => self.listed = Names::default(),
            Event::InitApply(object) => self.listed.add(&object.metadata),
            Event::Apply(object) => self.all.add(&object.metadata),
            Event::Delete(object) => {
                self.all.known.remove(object.metadata.name.as_deref().unwrap_or_default());
            }
            Event::InitDone => {
                let mut before = std::mem::replace(&mut self.all, std::mem::take(&mut self.listed));
                if before.has_more || self.all.has_more && !before.known.is_empty() {
                    return Gone::Unknown;
                }
                before.known.retain(|name, _| !self.all.known.contains_key(name));
                return Gone::These(before.known);
            }
        }
        Gone::These(BTreeMap::new())
    }
}

#[cfg(test)]
mod tests;
