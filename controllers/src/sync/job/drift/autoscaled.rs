//! Finds workloads whose replicas an autoscaler outside of the owner sets: they are left to it as those of the owner's own.
//!
//! The live object says that they were set as autoscalers do. A list of autoscalers tells whether there is one, and still is.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use emco_engine::drift::{self, ScaledBy};
use emco_engine::identity::Identity;
use serde_json::Value;
use tokio::time::Instant;

use super::super::super::edge::Session;
use super::super::super::observe::{Found, Seen};
use super::super::Job;
use super::super::desired::{App, Item};
use super::super::row::Facts;
use crate::api::{Method, Request};

/// Between two lists of the autoscalers of a namespace: when one is deleted, the replicas are set back well within a minute.
const AGAIN: Duration = Duration::from_secs(20);
/// Autoscalers of one namespace that are read.
const MOST: usize = 500;

/// Knowledge of autoscalers of others.
#[derive(Default)]
pub(in super::super) struct Autoscaled {
    /// Workloads of the owner that they scale, as of the last pass.
    workloads: BTreeSet<Identity>,
    /// By namespace: when they were listed, and what they scale.
    looked: BTreeMap<String, (Instant, Scaling)>,
}

/// The workloads that the autoscalers of a namespace scale.
enum Scaling {
    These(BTreeSet<Identity>),
    /// They cannot be listed: what the live object says counts.
    Hidden,
    /// There was no answer yet: nothing is set back meanwhile.
    Silent,
}

impl Scaling {
    fn has(&self, id: &Identity, by: ScaledBy) -> bool {
        match self {
            Self::These(workloads) => workloads.contains(id),
            Self::Hidden => by == ScaledBy::Autoscaler,
            Self::Silent => true,
        }
    }
}

impl Job {
    /// An object whose replicas an autoscaler of others may have, which the lists tell.
    pub(in super::super) fn may_be_autoscaled(&self, item: &Item, seen: &Seen) -> bool {
        seen.scaled.is_some() && says_replicas(item) && !self.memory.scaled.contains(&*item.id)
    }

    /// Adds to what autoscalers of the owner scale what those of others do.
    pub(in super::super) async fn find_autoscaled(
        &mut self,
        apps: &[App],
        session: &Session,
        facts: &mut Facts,
    ) {
        let items: Vec<&Item> = apps.iter().flat_map(App::items).filter(|item| says_replicas(item)).collect();
        let found = self.ctx.edge.observed.find(items.iter().map(|item| &*item.id));
        let owner = Some(&self.ctx.owner.hash);
        let by = |found: &Found| found.seen.as_ref().filter(|seen| seen.owner.as_ref() == owner)?.scaled;
        let named: Vec<(Identity, ScaledBy)> = items
            .iter()
            .zip(&found)
            .filter(|(item, _)| !self.memory.scaled.contains(&*item.id))
            .filter_map(|(item, found)| Some((Identity::clone(&item.id), by(found)?)))
            .collect();
        let mut known = std::mem::take(&mut self.memory.autoscaled);
        known.looked.retain(|namespace, _| named.iter().any(|(id, _)| id.namespace == *namespace));
        let mut now = BTreeSet::new();
        for (id, by) in named {
            if known.looked.get(&id.namespace).is_none_or(|(at, _)| at.elapsed() >= AGAIN) {
                let before = known.looked.remove(&id.namespace);
                let scaling = match self.scaling(&id.namespace, session).await {
                    // An earlier answer counts until there is another.
                    Scaling::Silent => before.map_or(Scaling::Silent, |(_, scaling)| scaling),
                    scaling => scaling,
                };
                known.looked.insert(id.namespace.clone(), (Instant::now(), scaling));
            }
            if let Some((at, scaling)) = known.looked.get(&id.namespace) {
                facts.wake_at(*at + AGAIN);
                if scaling.has(&id, by) {
                    now.insert(id);
                }
            }
        }
        for id in known.workloads.difference(&now) {
            // Its autoscaler is gone: what it left behind is looked at as for the first time.
            self.memory.drift.forget(id);
        }
        self.memory.scaled.extend(now.iter().cloned());
        known.workloads = now;
        self.memory.autoscaled = known;
    }

    /// Lists the autoscalers of a namespace.
    async fn scaling(&self, namespace: &str, session: &Session) -> Scaling {
        let id = Identity {
            group: "autoscaling".to_owned(),
            kind: "HorizontalPodAutoscaler".to_owned(),
            namespace: namespace.to_owned(),
            name: String::new(),
        };
        let Some(resource) = session.resource(&id) else { return Scaling::Hidden };
        let path = resource.path(namespace, None);
        let request = Request::new(Method::Get, path).query("limit", MOST.to_string());
        let list = match self.send(session, request).await {
            Ok(list) => list,
            Err(error) if error.code() == 403 => return Scaling::Hidden,
            Err(_) => return Scaling::Silent,
        };
        let rest = list.pointer("/metadata/continue").and_then(Value::as_str);
        match list.get("items").and_then(Value::as_array) {
            // Of more than are read, those that are not among these may be among the rest.
            Some(items) if rest.is_none_or(str::is_empty) => Scaling::These(drift::targets(items.iter())),
            _ => Scaling::Hidden,
        }
    }
}

fn says_replicas(item: &Item) -> bool {
    let spec = item.manifest().and_then(|manifest| manifest.json.get("spec"));
    spec.is_some_and(|spec| spec.get("replicas").is_some())
}
