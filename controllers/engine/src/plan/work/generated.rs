//! Pairs generated apps with their clusters. They have no chart and no values: all that they are is what an intent adds.

use std::collections::BTreeMap;
use std::sync::Arc;

use emco_crds::reasons::DeploymentIntentGroupReason as Reason;
use serde_json::{Map, json};

use super::{Class, Item, RENDER_KEY, joint_key, unfilled};
use crate::act::{self, Edits, Entry, Generated, Objects, Unfilled};
use crate::canonical;
use crate::identity::ClusterId;
use crate::placement::AppPlacement;
use crate::refusal::Refusal;
use crate::resolve::Resolved;
use crate::snapshot::ClusterFacts;
use crate::terms::Candidate;
use crate::values::template::Scope;

/// In the order of apps, then clusters.
pub fn items<'a>(
    resolved: &'a Resolved<'a>,
    placement: &[(String, AppPlacement)],
) -> Result<Vec<Item<'a>>, Box<Refusal>> {
    let clusters = &resolved.snapshot.clusters;
    let mut items = Vec::new();
    let positions = resolved.apps.len()..;
    for (app, generated) in positions.zip(&resolved.generated) {
        let Some((_, placed)) = placement.get(app) else { continue };
        let mut classes = Classes::new(resolved, generated);
        for cluster in placed.chosen.iter().filter_map(|id| clusters.get(id)) {
            let class = classes.of(cluster)?;
            items.extend(class.map(|class| Item::new(resolved, app, cluster, class)));
        }
    }
    Ok(items)
}

/// Objects of one app by cluster, worked out once per distinct outcome.
pub(super) struct Classes<'a> {
    resolved: &'a Resolved<'a>,
    app: &'a Generated<'a>,
    /// What the objects depend on besides.
    place: String,
    /// By which actions count, where no templates are among them.
    by_mask: BTreeMap<Vec<bool>, Arc<Class>>,
    /// By render key.
    by_key: BTreeMap<String, Arc<Class>>,
}

impl<'a> Classes<'a> {
    pub(super) fn new(resolved: &'a Resolved<'a>, app: &'a Generated<'a>) -> Self {
        let cloud = resolved.cloud;
        let place = json!({"generated": {"namespace": cloud.namespace, "account": cloud.account()}});
        let place = canonical::digest_hex(&resolved.snapshot.installation.digest_key, RENDER_KEY, &place);
        Self { resolved, app, place, by_mask: BTreeMap::new(), by_key: BTreeMap::new() }
    }

    fn of(&mut self, cluster: &ClusterFacts) -> Result<Option<Arc<Class>>, Box<Refusal>> {
        let candidate = Candidate::new(cluster);
        let mask = match &self.app.objects {
            Objects::Actions(entries) => {
                let mask = act::mask(entries, &candidate);
                (!act::templated(entries, &mask)).then_some(mask)
            }
            Objects::ByCluster(_) | Objects::Drawn(_) => None,
        };
        if let Some(class) = mask.as_ref().and_then(|mask| self.by_mask.get(mask)) {
            return Ok(Some(Arc::clone(class)));
        }
        let (snapshot, release) = (self.resolved.snapshot, self.resolved.dig.release());
        let scope = Scope::new(&candidate, &snapshot.project, release);
        let key = &snapshot.installation.digest_key;
        let objects = self.app.objects.of(&candidate, &scope, release, key);
        let Some(edits) = objects.map_err(|unfilled| self.refused(&unfilled, &cluster.id))? else {
            return Ok(None);
        };
        let class = self.class(edits, key);
        if let Some(mask) = mask {
            self.by_mask.insert(mask, Arc::clone(&class));
        }
        Ok(Some(class))
    }

    pub(super) fn class(&mut self, edits: Edits, key: &[u8; 32]) -> Arc<Class> {
        let (chart_key, render_key) = (self.place.clone(), joint_key(key, &self.place, &edits.digest));
        let fresh =
            |render_key| Class { values: Map::new(), chart_key, edits: Some(Arc::new(edits)), render_key };
        Arc::clone(self.by_key.entry(render_key.clone()).or_insert_with(|| Arc::new(fresh(render_key))))
    }

    fn refused(&self, Unfilled { entry, fault }: &Unfilled, cluster: &ClusterId) -> Box<Refusal> {
        let entry = match &self.app.objects {
            Objects::Actions(entries) => entries.get(*entry),
            Objects::ByCluster(_) | Objects::Drawn(_) => None,
        };
        let origin = entry.map_or_else(|| self.app.origin(), Entry::origin);
        let secret = entry.is_some_and(|entry| entry.secret);
        unfilled(&self.app.app, &origin, secret, fault, (cluster, Reason::IntentInvalid))
    }
}
