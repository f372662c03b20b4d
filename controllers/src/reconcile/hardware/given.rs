//! Says what deployments were just given on clusters, from what is stored: revisions of the last minutes, and who has them as target.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_crds::{DeploymentIntentGroup, OwnerKind};
use emco_engine::hardware::{self, Demand, Demands};
use emco_engine::identity::ClusterId;
use emco_engine::resolve;
use emco_engine::shard::{self, Target};

use super::state::{App, RESERVED};
use crate::api::key_queue::Key;
use crate::object::Owner;
use crate::object::meta;
use crate::reconcile::context::Context;
use crate::reconcile::results;
use crate::store;

/// Demands that were just given, by cluster.
#[derive(Default)]
pub(super) struct Given(BTreeMap<ClusterId, Vec<(App, Arc<Demand>)>>);

impl Given {
    /// As it is stored now, and what this process gave that the watches do not show yet.
    pub fn now(ctx: &Context) -> Self {
        let mut all = Self::default();
        for (owner, revisions) in recent(ctx) {
            let Some(dig) = ctx.stores.digs.named(&owner.0, &owner.1) else { continue };
            let demands = demands(ctx, &dig);
            if demands.is_empty() {
                continue;
            }
            for (cluster, target) in targets(ctx, &dig) {
                if revisions.contains(&target.revision) {
                    all.add(&cluster, &owner, target.apps.keys(), &demands);
                }
            }
        }
        for (owner, cluster, app, demand) in ctx.hardware.claims.all(ctx.world.clock.now_ms()) {
            if ctx.stores.digs.named(&owner.0, &owner.1).is_none() {
                continue;
            }
            let known = all.0.entry(cluster).or_default();
            let app = (owner, app);
            if !known.iter().any(|(other, of)| *other == app && of.origin == demand.origin) {
                known.push((app, demand));
            }
        }
        all
    }

    fn add<'a>(
        &mut self,
        cluster: &ClusterId,
        owner: &Key,
        apps: impl Iterator<Item = &'a String>,
        demands: &Demands,
    ) {
        for app in apps.filter(|app| demands.counts(app)) {
            let all = demands.of(app).iter().map(|demand| ((owner.clone(), app.clone()), Arc::clone(demand)));
            self.0.entry(cluster.clone()).or_default().extend(all);
        }
    }

    /// Demands that are deducted on a cluster beside the Pods that are counted there.
    pub fn on(&self, cluster: &ClusterId, counted: Option<&BTreeSet<App>>) -> Vec<Arc<Demand>> {
        let all = self.0.get(cluster).into_iter().flatten();
        let new = all.filter(|(app, _)| !counted.is_some_and(|counted| counted.contains(app)));
        new.map(|(_, demand)| Arc::clone(demand)).collect()
    }

    /// Clusters where something was given.
    pub fn clusters(&self) -> BTreeSet<ClusterId> {
        self.0.keys().cloned().collect()
    }
}

/// Revisions of deployments that are not older than what was given is deducted.
fn recent(ctx: &Context) -> BTreeMap<Key, BTreeSet<i64>> {
    let (now, reserved) = (ctx.now().as_second(), i64::try_from(RESERVED.as_secs()).unwrap_or(i64::MAX));
    let mut all: BTreeMap<Key, BTreeSet<i64>> = BTreeMap::new();
    for context in ctx.stores.contexts.state() {
        let made = context.metadata.creation_timestamp.as_ref().map_or(now, |time| time.0.as_second());
        let owner = &context.spec.owner;
        if owner.kind == OwnerKind::DeploymentIntentGroup && now.saturating_sub(made) < reserved {
            let key = (meta::namespace(context.as_ref()).to_owned(), owner.name.clone());
            all.entry(key).or_default().insert(context.spec.revision);
        }
    }
    all
}

/// Needs of a deployment, by the intents that it lists and that there are.
fn demands(ctx: &Context, dig: &DeploymentIntentGroup) -> Demands {
    let mut all = Demands::default();
    let listed = dig.spec.intents.iter().filter(|listed| resolve::is_hardware(listed));
    for intent in listed.filter_map(|listed| ctx.stores.hardware.named(meta::namespace(dig), &listed.name)) {
        let read = hardware::demands(meta::name(intent.as_ref()), &intent.spec).unwrap_or_default();
        for (consumer, demand) in read {
            all.0.entry(consumer.app.clone()).or_default().push(demand);
        }
    }
    // Such a deployment is refused.
    if all.too_many().is_some() { Demands::default() } else { all }
}

/// Targets of the clusters of a deployment.
fn targets(ctx: &Context, dig: &DeploymentIntentGroup) -> Vec<(ClusterId, Target)> {
    let owner = Owner::of(ctx, OwnerKind::DeploymentIntentGroup, dig);
    let shards = store::shards(ctx, &owner);
    // A target does not depend on what was reported: that is not read.
    let rows = shards.iter().flat_map(|stored| shard::rows(&stored.spec, None));
    rows.filter_map(|row| Some((row.cluster, row.target.filter(|target| !target.is_found())?))).collect()
}

/// Apps of deployments that need something: those that run on these clusters, and those that shall be there.
pub(super) fn apps_on(
    ctx: &Context,
    clusters: &BTreeSet<ClusterId>,
) -> BTreeMap<ClusterId, (BTreeSet<App>, BTreeSet<App>)> {
    let mut all: BTreeMap<ClusterId, (BTreeSet<App>, BTreeSet<App>)> = BTreeMap::new();
    let digs = ctx.stores.digs.sorted();
    for dig in digs.iter().filter(|dig| dig.spec.intents.iter().any(resolve::is_hardware)) {
        let demands = demands(ctx, dig);
        let key: Key = (meta::namespace(dig.as_ref()).to_owned(), meta::name(dig.as_ref()).to_owned());
        let owner = Owner::of(ctx, OwnerKind::DeploymentIntentGroup, dig.as_ref());
        for (cluster, result) in results::of(&store::shards(ctx, &owner)) {
            let Some(target) = result.row.target.filter(|_| clusters.contains(&cluster)) else { continue };
            let applied = result.row.applied_apps.unwrap_or_default();
            let (run, shall) = all.entry(cluster).or_default();
            for (app, set) in target.apps.iter().filter(|(app, _)| demands.counts(app)) {
                let waits = result.status.iter().flat_map(|status| &status.apps).any(|row| row.app == *app);
                if applied.get(app) == Some(set) && !waits {
                    run.insert((key.clone(), app.clone()));
                }
                shall.insert((key.clone(), app.clone()));
            }
        }
    }
    all
}
