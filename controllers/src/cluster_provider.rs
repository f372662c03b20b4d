//! ClusterProvider in; its namespace, its finalizer and the counts of its clusters out.

use emco_crds::cluster_provider::ProviderClusters;
use emco_crds::conditions::types::READY;
use emco_crds::fields::Summary;
use emco_crds::names::{finalizer, label};
use emco_crds::{Cluster, Conditioned};
use emco_engine::holders;
use std::sync::Arc;

use crate::context::{Context, Outcome, Reconciled};
use crate::objects::{self, Verdict};
use crate::owned_namespace::{self, Owner};
use crate::stores::StoreExt;

/// Brings one provider to where it should be.
pub async fn reconcile(ctx: &Context, name: &str) -> Reconciled {
    let Some(provider) = ctx.stores.providers.named("", name) else { return Ok(Outcome::Settled) };
    let namespace = owned_namespace::of_provider(&provider).to_owned();
    let owner = Owner { kind: "ClusterProvider", name, label: label::PROVIDER };
    let mut status = provider.status.clone().unwrap_or_default();
    let generation = objects::generation(provider.as_ref());
    let clusters: Vec<Arc<Cluster>> = ctx.stores.clusters.within(&namespace);
    let owned = owned_namespace::provider_of(ctx, &namespace).as_deref() == Some(name);
    let holders =
        if owned { holders::provider(&namespace, clusters.iter().map(AsRef::as_ref)) } else { Vec::new() };
    if objects::deleting(provider.as_ref()) {
        let waits = holders::waits_for(&holders);
        if waits.is_none() && owned_namespace::remove(ctx, &namespace, owner).await? {
            objects::remove_finalizer(ctx, provider.as_ref(), finalizer::IN_USE).await?;
            return Ok(Outcome::Settled);
        }
        let message =
            waits.unwrap_or_else(|| format!("deletion waits for the content of namespace {namespace} to go"));
        status.in_use = holders::in_use(&holders);
        objects::held(ctx, &mut status, generation, Some(&message));
        objects::verdict(ctx, &mut status, generation, &Verdict::Waiting, "ClustersExist", &message);
        objects::write_status(ctx, provider.as_ref(), provider.status.as_ref(), &status).await?;
        return Ok(Outcome::Settled);
    }
    if objects::add_finalizer(ctx, provider.as_ref(), finalizer::IN_USE).await? {
        return Ok(Outcome::Settled);
    }
    let ensured = owned_namespace::ensure(ctx, &namespace, owner).await?;
    let ready = clusters.iter().filter(|c| c.status.as_ref().is_some_and(|s| s.is_true(READY))).count();
    let cordoned =
        clusters.iter().filter(|c| c.spec.scheduling != emco_crds::cluster::Scheduling::Enabled).count();
    let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    match ensured {
        Ok(()) => {
            status.namespace = Some(namespace);
            status.clusters = Some(ProviderClusters {
                total: count(clusters.len()),
                ready: count(ready),
                cordoned: count(cordoned),
            });
            status.summary =
                Some(Summary { clusters: Some(format!("{ready}/{}", clusters.len())), ..Summary::default() });
            status.in_use = holders::in_use(&holders);
            let message = format!("{} clusters, {ready} ready", clusters.len());
            objects::verdict(ctx, &mut status, generation, &Verdict::Ready, "NamespaceOwned", &message);
        }
        Err(refused) => {
            objects::verdict(
                ctx,
                &mut status,
                generation,
                &Verdict::Stalled,
                refused.reason,
                &refused.message,
            );
        }
    }
    objects::write_status(ctx, provider.as_ref(), provider.status.as_ref(), &status).await?;
    Ok(Outcome::Settled)
}
