//! Decides for every app and cluster whether its stored set stays or what has to be rendered.

use std::collections::BTreeMap;
use std::sync::Arc;

use emco_crds::conditions::types::RENDERED;
use emco_crds::reasons::DeploymentIntentGroupReason as Reason;
use serde_json::{Map, Value, json};

use crate::act::{self, Edits, Unfilled};
use crate::canonical;
use crate::identity::ClusterId;
use crate::placement::AppPlacement;
use crate::refusal::Refusal;
use crate::resolve::{Resolved, ResolvedApp};
use crate::set::{Assigned, ManifestSet};
use crate::snapshot::{ClusterFacts, Running, Snapshot};
use crate::terms::Candidate;
use crate::values::template::{Fault, Scope};
use crate::values::{self, LayerFault};

mod drawn;
mod generated;

pub use drawn::{Drawn, drawn};

/// The Helm whose output charts are rendered to equal; part of every render key.
const COMPAT: &str = "Helm3_17";
/// Domain of render keys; the number is the format.
const RENDER_KEY: &str = "emco-render/1\0";

/// Merged values of one app and the edits of its intents, shared by every cluster where they are equal.
pub struct Class {
    /// What the chart is rendered with.
    pub values: Map<String, Value>,
    /// Digest of everything the rendering depends on but the cluster itself.
    pub chart_key: String,
    /// What actions of intents do to what is rendered; most often nothing.
    pub edits: Option<Arc<Edits>>,
    /// Digest of both: what a stored set was made from. Without edits it is that of the chart.
    pub render_key: String,
}

impl Class {
    /// True where the chart of a stored cell was rendered with the same, so that at most edits differ.
    fn renders_as(&self, stored: &Assigned, key: &[u8; 32]) -> bool {
        match &stored.edits {
            None => stored.render_key == self.chart_key,
            Some(edits) => stored.render_key == joint_key(key, &self.chart_key, &edits.digest),
        }
    }
}

/// The key of a set that was rendered and edited.
fn joint_key(key: &[u8; 32], chart_key: &str, edits: &str) -> String {
    canonical::digest_hex(key, RENDER_KEY, &json!({"chart": chart_key, "edits": edits}))
}

/// One app on one cluster.
#[derive(Clone, Debug)]
pub struct Item<'a> {
    /// Position of the app: [`Resolved::app_name`].
    pub app: usize,
    /// Where.
    pub cluster: &'a ClusterFacts,
    /// With which values.
    pub class: Arc<Class>,
    /// What it has now.
    pub previous: Option<&'a Assigned>,
    /// What a plan that waits has for it, with its content.
    pub waiting: Option<(&'a Assigned, &'a Arc<ManifestSet>)>,
}

impl std::fmt::Debug for Class {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Class").field("render_key", &self.render_key).finish_non_exhaustive()
    }
}

/// What is to be done for one app on one cluster.
#[derive(Debug)]
pub enum Step<'a> {
    /// Nothing it depends on changed: the set that is stored, or that waits to be, stays. Its content is absent where it could not be read and cannot be
    /// made again yet.
    Keep(&'a Assigned, Option<Arc<ManifestSet>>),
    /// The chart would print what it printed for this cell, which is this set: at most edits differ, and no chart is rendered.
    Edit(&'a Assigned, Arc<ManifestSet>),
    /// The stored set stays if rendering it as it was rendered then gives the same again.
    Restore(&'a Assigned),
    /// It is rendered anew.
    Render,
    /// Nothing is known of the cluster yet. What it has stays.
    Wait,
}

/// Pairs apps with the clusters they were placed on, in the order of apps, then clusters.
pub fn items<'a>(
    resolved: &'a Resolved<'a>,
    placement: &[(String, AppPlacement)],
) -> Result<Vec<Item<'a>>, Box<Refusal>> {
    let snapshot = resolved.snapshot;
    let mut items = Vec::new();
    for (app, (resolved_app, (_, placed))) in resolved.apps.iter().zip(placement).enumerate() {
        let mut classes = Classes::new(resolved, resolved_app);
        for id in &placed.chosen {
            let Some(cluster) = snapshot.clusters.get(id) else { continue };
            items.push(Item::new(resolved, app, cluster, classes.of(cluster)?));
        }
    }
    items.extend(generated::items(resolved, placement)?);
    Ok(items)
}

impl<'a> Item<'a> {
    fn new(resolved: &'a Resolved<'a>, app: usize, cluster: &'a ClusterFacts, class: Arc<Class>) -> Self {
        let (snapshot, name, id) = (resolved.snapshot, resolved.app_name(app), &cluster.id);
        let running = snapshot.running.as_ref();
        let previous = running.and_then(|running| running.assignment.get(id)?.get(name));
        let waiting = snapshot.waiting.as_deref().and_then(|waiting| {
            let assigned = waiting.assignment.get(id)?.get(name)?;
            Some((assigned, waiting.sets.get(&assigned.set)?))
        });
        Self { app, cluster, class, previous, waiting }
    }

    /// Decides what becomes of the stored set.
    pub fn step(&self, snapshot: &'a Snapshot) -> Step<'a> {
        let known = self.cluster.apis.is_some() && self.cluster.kubernetes_version.is_some();
        let same = |assigned: &Assigned| assigned.render_key == self.class.render_key;
        let running = snapshot.running.as_ref();
        if let Some(assigned) = self.previous.filter(|assigned| same(assigned)) {
            let content = running.and_then(|running| running.sets.get(&assigned.set));
            return match content {
                None if known => self.edit(snapshot).unwrap_or(Step::Restore(assigned)),
                content => Step::Keep(assigned, content.cloned()),
            };
        }
        match self.waiting {
            Some((assigned, content)) if same(assigned) => Step::Keep(assigned, Some(Arc::clone(content))),
            _ if !known => Step::Wait,
            _ => self.edit(snapshot).unwrap_or(Step::Render),
        }
    }

    /// The stored cell whose rendering serves, if there is one that can be read.
    fn edit(&self, snapshot: &'a Snapshot) -> Option<Step<'a>> {
        let key = &snapshot.installation.digest_key;
        let of = |assigned: &'a Assigned, stored: Option<&Running>| {
            let base = stored?.sets.get(assigned.base())?;
            self.class.renders_as(assigned, key).then(|| Step::Edit(assigned, Arc::clone(base)))
        };
        let previous = self.previous.and_then(|assigned| of(assigned, snapshot.running.as_ref()));
        previous.or_else(|| of(self.waiting?.0, snapshot.waiting.as_deref()))
    }

    /// Where it is.
    pub fn id(&self) -> &'a ClusterId {
        &self.cluster.id
    }
}

/// Values and edits of one app by cluster, worked out once per distinct outcome.
struct Classes<'a> {
    resolved: &'a Resolved<'a>,
    app: &'a ResolvedApp<'a>,
    /// By which layers and actions count, where no templates are among them.
    by_mask: BTreeMap<Vec<bool>, Arc<Class>>,
    /// By render key.
    by_key: BTreeMap<String, Arc<Class>>,
}

impl<'a> Classes<'a> {
    fn new(resolved: &'a Resolved<'a>, app: &'a ResolvedApp<'a>) -> Self {
        Self { resolved, app, by_mask: BTreeMap::new(), by_key: BTreeMap::new() }
    }

    fn of(&mut self, cluster: &ClusterFacts) -> Result<Arc<Class>, Box<Refusal>> {
        let candidate = Candidate::new(cluster);
        let (layers, entries) = (&self.app.layers, &self.app.entries);
        let mask = values::mask(layers, &candidate);
        let acting = act::mask(entries, &candidate);
        let templated = values::templated(layers, &mask) || act::templated(entries, &acting);
        let both = [mask.as_slice(), acting.as_slice()].concat();
        if !templated && let Some(class) = self.by_mask.get(&both) {
            return Ok(Arc::clone(class));
        }
        let (snapshot, release) = (self.resolved.snapshot, self.resolved.dig.release());
        let scope = Scope::new(&candidate, &snapshot.project, release);
        let merged =
            values::merged(layers, &mask, &scope).map_err(|fault| self.fault(&fault, &cluster.id))?;
        let key = &snapshot.installation.digest_key;
        let edits = Edits::of(entries, &acting, &scope, release, key)
            .map_err(|unfilled| self.unfilled_edit(&unfilled, &cluster.id))?;
        let chart_key = self.chart_key(&merged);
        let render_key = match &edits {
            None => chart_key.clone(),
            Some(edits) => joint_key(key, &chart_key, &edits.digest),
        };
        let class = self.by_key.entry(render_key.clone()).or_insert_with(|| {
            Arc::new(Class { values: merged, chart_key, edits: edits.map(Arc::new), render_key })
        });
        if !templated {
            self.by_mask.insert(both, Arc::clone(class));
        }
        Ok(Arc::clone(class))
    }

    /// What labels and properties templates read is in the values that they made.
    fn chart_key(&self, merged: &Map<String, Value>) -> String {
        let mut document = json!({
            "chart": self.app.chart.digest,
            "values": merged,
            "release": self.resolved.dig.release(),
            "namespace": self.resolved.cloud.namespace,
            "compat": COMPAT,
        });
        let serial = self.resolved.dig.spec.render_serial.unwrap_or_default();
        if let Some(map) = document.as_object_mut() {
            if let Some(account) = self.resolved.cloud.account() {
                map.insert("account".to_owned(), account.into());
            }
            if serial != 0 {
                map.insert("renderSerial".to_owned(), serial.into());
            }
            if !self.app.files.is_empty() {
                map.insert("files".to_owned(), json!(self.app.files));
            }
        }
        // Keyed, for values may come from Secrets.
        canonical::digest_hex(&self.resolved.snapshot.installation.digest_key, RENDER_KEY, &document)
    }

    fn fault(&self, LayerFault { layer, fault }: &LayerFault, cluster: &ClusterId) -> Box<Refusal> {
        let layer = self.app.layers.get(*layer);
        let origin = layer.map_or("values", |layer| layer.origin.as_str());
        let secret = layer.is_some_and(|layer| layer.secret);
        unfilled(&self.app.app.name, origin, secret, fault, (cluster, Reason::ValuesInvalid))
    }

    fn unfilled_edit(&self, Unfilled { entry, fault }: &Unfilled, cluster: &ClusterId) -> Box<Refusal> {
        let entry = self.app.entries.get(*entry);
        let origin = entry.map_or_else(|| "an intent".to_owned(), act::Entry::origin);
        let secret = entry.is_some_and(|entry| entry.secret);
        unfilled(&self.app.app.name, &origin, secret, fault, (cluster, Reason::IntentInvalid))
    }
}

/// A text that cannot be filled in. Where it was read from a Secret, nothing of it is quoted.
fn unfilled(
    app: &str,
    origin: &str,
    secret: bool,
    fault: &Fault,
    (cluster, reason): (&ClusterId, Reason),
) -> Box<Refusal> {
    let place = format!("app {app}: {origin}: {} line {}", fault.path, fault.line);
    let unknown = fault.unknown.as_ref().filter(|_| !secret);
    let Some(name) = unknown else {
        let message = if secret { "the template fails; its text is withheld" } else { &fault.message };
        let text = format!("{place}: {message} (on {cluster})");
        return Refusal::new(RENDERED, reason, text);
    };
    let cure = if name.starts_with("cluster.properties") {
        "set it in spec.properties of the Cluster"
    } else if name.starts_with("label ") {
        "label the Cluster"
    } else {
        "there are cluster.name, cluster.provider, cluster.properties.*, label \"...\", project and release"
    };
    let text = format!("{place}: {{{{{name}}}}} is not known on {cluster}: {cure}, or change the text");
    Refusal::new(RENDERED, Reason::VariableUnknown, text)
}
