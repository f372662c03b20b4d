//! Shows a rig's stores what the hub has, as its watches would: all of it, or all but what some of them have not shown yet.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::project::MemberRole;
use kube::runtime::reflector::Lookup;
use kube::runtime::watcher::Event;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Rig;
use crate::kinds::each_kind;
use crate::memory::MemoryServer;
use crate::stores::Feed;

/// Shows a store what a hub has of a kind: what changed since it was shown that, or all where something is gone.
fn list<K>(writer: &mut Feed<K>, hub: &MemoryServer, shown: &mut Shown, kind: &'static str)
where
    K: Lookup<DynamicType = ()> + Clone + DeserializeOwned + 'static,
{
    let versions = hub.versions_of(kind);
    match shown.get(kind) {
        Some(before) if *before == versions => return,
        Some(before) if is_all_there(before, &versions) => {
            let before: BTreeSet<&String> = before.iter().collect();
            for (object, version) in hub.of_kind(kind).into_iter().zip(&versions) {
                if !before.contains(version) {
                    writer.apply_watcher_event(&Event::Apply(serde_json::from_value(object).unwrap()));
                }
            }
        }
        _ => show(writer, hub.of_kind(kind)),
    }
    shown.insert(kind, versions);
}

/// Whether each object of which there was a version has one now.
fn is_all_there(before: &[String], now: &[String]) -> bool {
    fn place(version: &str) -> &str {
        version.rsplit_once('@').map_or(version, |(place, _)| place)
    }
    let now: BTreeSet<&str> = now.iter().map(|version| place(version)).collect();
    before.iter().all(|version| now.contains(place(version)))
}

fn show<K>(writer: &mut Feed<K>, objects: Vec<Value>)
where
    K: Lookup<DynamicType = ()> + Clone + DeserializeOwned + 'static,
{
    writer.apply_watcher_event(&Event::Init);
    for object in objects {
        writer.apply_watcher_event(&Event::InitApply(serde_json::from_value(object).unwrap()));
    }
    writer.apply_watcher_event(&Event::InitDone);
}

/// Kinds that something is kept of beside their store, or whose watch may be behind.
const BY_THEMSELVES: [&str; 3] = ["Project", "DeploymentIntentGroup", "SyncShard"];

/// What stores were shown of each kind.
pub type Shown = BTreeMap<&'static str, Vec<String>>;

impl Rig {
    pub fn see(&mut self) {
        self.see_all_but_shards();
        list(&mut self.writers.shards, &self.hub, &mut self.shown, "SyncShard");
    }

    /// The same while the watch of shards is behind.
    pub fn see_all_but_shards(&mut self) {
        self.see_all_but_shards_and_groups();
        list(&mut self.writers.digs, &self.hub, &mut self.shown, "DeploymentIntentGroup");
        self.ctx.stores.deployment_places.rebuild(&self.ctx.stores.digs.sorted());
        self.ctx.stores.releases.rebuild(&self.ctx.stores.digs.sorted());
    }

    /// The same while that of deployments is, too.
    pub fn see_all_but_shards_and_groups(&mut self) {
        let Self { hub, writers, shown, .. } = self;
        macro_rules! list_each {
            ($($store:ident: $kind:ident, $($column:tt),*;)*) => {$(
                if !BY_THEMSELVES.contains(&stringify!($kind)) {
                    list(&mut writers.$store, hub, shown, stringify!($kind));
                }
            )*};
        }
        each_kind!(all => list_each);
        self.see_projects();
        self.ctx.stores.stored_bytes.rebuild(&self.ctx.stores.contexts.sorted());
        self.ctx.stores.cloud_namespaces.rebuild(&self.ctx.stores.clouds.sorted());
        let Self { hub, writers, shown, .. } = self;
        if let Some(hidden) = &self.hidden_namespace {
            let mut namespaces = hub.of_kind("Namespace");
            namespaces.retain(|namespace| namespace["metadata"]["name"] != hidden["metadata"]["name"]);
            namespaces.push(hidden.clone());
            shown.remove("Namespace");
            show(&mut writers.namespaces, namespaces);
        } else {
            list(&mut writers.namespaces, hub, shown, "Namespace");
        }
        self.see_members();
    }

    /// Each watch shows those of its name.
    fn see_members(&mut self) {
        let versions = self.hub.versions_of("RoleBinding");
        if self.shown.get("RoleBinding") == Some(&versions) {
            return;
        }
        self.shown.insert("RoleBinding", versions);
        let bindings = self.hub.of_kind("RoleBinding");
        for (role, writer) in MemberRole::ALL.into_iter().zip(&mut self.writers.members) {
            let named = |binding: &&Value| binding["metadata"]["name"] == role.binding();
            show(writer, bindings.iter().filter(named).cloned().collect());
        }
    }

    /// The watches of members have shown nothing yet.
    pub fn unsee_members(&mut self) {
        self.shown.remove("RoleBinding");
        self.writers.members.iter_mut().for_each(|writer| show(writer, Vec::new()));
    }

    pub fn see_projects(&mut self) {
        let before = self.ctx.stores.projects.sorted();
        list(&mut self.writers.projects, &self.hub, &mut self.shown, "Project");
        let stores = &self.ctx.stores;
        for project in stores.projects.sorted() {
            self.resuspended.extend(stores.suspended.note(&project, false));
        }
        for project in before {
            if stores.projects.named("", project.metadata.name.as_deref().unwrap()).is_none() {
                self.resuspended.extend(stores.suspended.note(&project, true));
            }
        }
    }

    /// The watch of shards has shown nothing yet.
    pub fn unsee_shards(&mut self) {
        self.shown.remove("SyncShard");
        show(&mut self.writers.shards, Vec::new());
    }

    /// The watches of deployments and logical clouds have shown nothing yet.
    pub fn unsee_groups_and_clouds(&mut self) {
        self.unsee_groups();
        self.shown.remove("LogicalCloud");
        show(&mut self.writers.clouds, Vec::new());
    }

    /// The watch of deployments has shown nothing yet.
    pub fn unsee_groups(&mut self) {
        self.shown.remove("DeploymentIntentGroup");
        show(&mut self.writers.digs, Vec::new());
        self.ctx.stores.deployment_places.rebuild(&self.ctx.stores.digs.sorted());
        self.ctx.stores.releases.rebuild(&self.ctx.stores.digs.sorted());
    }

    /// The watch of providers has shown nothing yet.
    pub fn unsee_providers(&mut self) {
        self.shown.remove("ClusterProvider");
        show(&mut self.writers.providers, Vec::new());
    }

    /// The watch of clusters has shown nothing yet.
    pub fn unsee_clusters(&mut self) {
        self.shown.remove("Cluster");
        show(&mut self.writers.clusters, Vec::new());
    }

    /// The watch of namespaces begins again and has shown nothing yet.
    pub fn unsee_namespaces(&mut self) {
        self.shown.remove("Namespace");
        show(&mut self.writers.namespaces, Vec::new());
    }
}
