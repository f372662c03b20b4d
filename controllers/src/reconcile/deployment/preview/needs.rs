//! Works out what the account of a logical cloud needs for a deployment, whatever its level lets it have now, and writes nothing.

use std::collections::BTreeSet;

use emco_crds::OwnerKind;
use emco_crds::fields::Level;
use emco_engine::cloud::CloudFacts;
use emco_engine::identity::ClusterId;
use emco_engine::manifests;
use emco_engine::plan::Plan;
use emco_engine::refusal::Refusal;
use emco_engine::role::{Asked, Reach, Rights};
use emco_engine::snapshot::Snapshot;

use super::super::gather;
use super::{unheard, worked};
use crate::object::Owner;
use crate::object::context::Failure;
use crate::reconcile::context::Context;
use crate::store;

/// What a deployment needs of its logical cloud.
#[derive(Default)]
pub struct Needs {
    /// Why that cannot be told.
    pub refusal: Option<Box<Refusal>>,
    /// The logical cloud as it is.
    pub cloud: Option<CloudFacts>,
    /// Rights of its account on all clusters of the deployment together.
    pub rights: Rights,
    /// A binding gives rights to somebody outside of the namespaces.
    pub gives_away: bool,
    /// The clusters.
    pub clusters: BTreeSet<ClusterId>,
    /// Clusters of which nothing is known that they serve.
    pub unheard: BTreeSet<ClusterId>,
    /// Clusters of which it is not known what their nodes have: nothing is worked out before.
    pub unread: BTreeSet<ClusterId>,
}

/// Plans a deployment of the stores as if its logical cloud allowed everything; all of `ctx` is only read.
pub async fn needs(ctx: &Context, namespace: &str, name: &str) -> Result<Needs, Failure> {
    let Some(dig) = ctx.stores.digs.named(namespace, name) else { return Ok(Needs::default()) };
    let owner = Owner::of(ctx, OwnerKind::DeploymentIntentGroup, dig.as_ref());
    let newest = store::newest(ctx, &owner).await?;
    let refused = |refusal| Needs { refusal: Some(refusal), ..Needs::default() };
    let mut gathered = match gather::gather(ctx, &dig, &owner, newest.as_ref()).await? {
        Err(refusal) => return Ok(refused(refusal)),
        Ok(gathered) if !gathered.unread.clusters.is_empty() => {
            return Ok(Needs { unread: gathered.unread.clusters, ..Needs::default() });
        }
        Ok(gathered) => gathered,
    };
    let cloud = gathered.snapshot.cloud.clone();
    if let Some(cloud) = &mut gathered.snapshot.cloud {
        Level::Privileged.as_str().clone_into(&mut cloud.level);
        cloud.reach.cluster = true;
    }
    // What was made for another account is not used again.
    (gathered.snapshot.running, gathered.snapshot.waiting) = (None, None);
    match worked(ctx, &dig, gathered).await? {
        Err(refusal) => Ok(refused(refusal)),
        Ok((gathered, plan)) => Ok(Needs { cloud, ..Needs::of(&gathered.snapshot, &plan) }),
    }
}

impl Needs {
    fn of(snapshot: &Snapshot, plan: &Plan) -> Self {
        let mut needs = Self { unheard: unheard(plan), ..Self::default() };
        let Some(cloud) = &snapshot.cloud else { return needs };
        let account = cloud.account().unwrap_or_default();
        for (id, apps) in &plan.assignment {
            let apis = snapshot.clusters.get(id).and_then(|facts| facts.apis.as_deref());
            let Some(apis) = apis else { continue };
            let mut asked = Asked::default();
            for set in apps.values().filter_map(|assigned| plan.sets.get(&assigned.set)) {
                asked.add(&Asked::of(set, &account));
            }
            needs.rights.add(asked.to_list(apis));
            needs.clusters.insert(id.clone());
        }
        let namespaces = needs.rights.namespaces.keys().cloned().collect();
        let within = CloudFacts { reach: Reach { namespaces, cluster: false }, ..cloud.clone() };
        let sets = plan.assignment.values().flat_map(|apps| apps.values());
        let mut manifests =
            sets.filter_map(|assigned| plan.sets.get(&assigned.set)).flat_map(|set| &set.manifests);
        needs.gives_away = manifests.any(|manifest| manifests::outsider(&manifest.json, &within).is_some());
        needs
    }
}
