//! Reconciles every `ClusterProvider`: its namespace, finalizer and counts of clusters.

use emco_crds::cluster_provider::ProviderClusters;
use emco_crds::fields::Summary;
use emco_crds::names::{finalizer, label};
use emco_crds::{Cluster, ClusterProvider, InUse};
use emco_engine::holders;
use emco_engine::text::counted;
use futures::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;

use crate::object::context::{Outcome, Reconciled};
use crate::object::finalizers;
use crate::object::meta;
use crate::object::status::{self, ReadyState};
use crate::object::transitions;
use crate::reconcile::context::Context;
use crate::reconcile::in_use::Holders;
use crate::reconcile::kind::{Controlled, Listener, Reach};
use crate::stores::indexes;
use crate::tenancy::owned_namespace::{self, Owner};
use crate::triggers::ProviderChanged;

impl Controlled for ClusterProvider {
    /// It counts clusters.
    const APART: Duration = Duration::from_secs(1);

    fn reconcile<'a>(ctx: &'a Context, _: &'a str, name: &'a str) -> BoxFuture<'a, Reconciled> {
        Box::pin(reconcile(ctx, name))
    }

    /// All look again that it grants some clusters, or did.
    fn listener(_: &Reach) -> Listener<Self> {
        let changed = ProviderChanged::default();
        Box::new(move |reach, change| {
            if let Some(providers) = changed.changed(change) {
                let providers: Vec<&Self> = providers.iter().collect();
                reach.triggers.provider(&reach.ctx.stores, &providers);
            }
            reach.maps.provider(&reach.ctx.stores, change);
        })
    }
}

/// Clusters that a status names.
const NAMED: usize = 10;

/// Brings one provider to where it should be.
pub async fn reconcile(ctx: &Context, name: &str) -> Reconciled {
    let Some(provider) = ctx.stores.providers.named("", name) else { return Ok(Outcome::Settled) };
    let namespace = owned_namespace::of_provider(&provider).to_owned();
    let owner = Owner { kind: "ClusterProvider", name, label: label::PROVIDER };
    let mut status = provider.status.clone().unwrap_or_default();
    let generation = meta::generation(provider.as_ref());
    let owned = owned_namespace::provider_of(ctx, &namespace).as_deref() == Some(name);
    if meta::deleting(provider.as_ref()) {
        let clusters =
            if owned { ctx.stores.clusters.within(&namespace) } else { Vec::<Arc<Cluster>>::new() };
        let mut holders = Holders::shown(holders::provider(&namespace, clusters.iter().map(AsRef::as_ref)));
        if holders.names.is_empty() && owned_namespace::is_of(ctx, &namespace, owner).await? {
            let of = |clusters: &[Cluster]| holders::provider(&namespace, clusters);
            holders = holders.proven(ctx, &namespace, of).await?;
        }
        let waits = holders::waits_for(&holders.names);
        if waits.is_none() && owned_namespace::remove(ctx, &namespace, owner).await? {
            if finalizers::remove(ctx, provider.as_ref(), finalizer::IN_USE).await? {
                transitions::removed(ctx, provider.as_ref());
            }
            return Ok(Outcome::Settled);
        }
        let message =
            waits.unwrap_or_else(|| format!("deletion waits for the content of namespace {namespace} to go"));
        status.in_use = holders::in_use(&holders.names);
        status::set_in_use(ctx, &mut status, generation, Some(&message));
        status::set_ready(ctx, &mut status, generation, &ReadyState::Waiting, status::TERMINATING, &message);
        status::write(ctx, provider.as_ref(), provider.status.as_ref(), &status).await?;
        return Ok(Outcome::Settled.at_latest(holders.again()));
    }
    if finalizers::add(ctx, provider.as_ref(), finalizer::IN_USE).await? {
        return Ok(Outcome::Settled);
    }
    let ensured = owned_namespace::ensure(ctx, &namespace, owner).await?;
    let clusters = &ctx.stores.clusters;
    let (total, first) = clusters.names_within(&namespace, NAMED);
    let ready = clusters.count(indexes::READY, &namespace);
    let cordoned = clusters.count(indexes::CORDONED, &namespace);
    let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    let named = || first.iter().map(|name| format!("Cluster/{namespace}/{name}")).collect();
    let in_use = (owned && total > 0).then(|| InUse { total: count(total), holders: named() });
    match ensured {
        Ok(()) => {
            status.in_use = in_use;
            status.namespace = Some(namespace);
            status.clusters = Some(ProviderClusters {
                total: count(total),
                ready: count(ready),
                cordoned: count(cordoned),
            });
            status.summary =
                Some(Summary { clusters: Some(format!("{ready}/{total}")), ..Summary::default() });
            let message = format!("{}, {ready} ready", counted(total, "cluster"));
            status::set_ready(ctx, &mut status, generation, &ReadyState::Ready, "NamespaceOwned", &message);
        }
        Err(refused) => {
            status::set_ready(
                ctx,
                &mut status,
                generation,
                &ReadyState::Stalled,
                refused.reason,
                &refused.message,
            );
        }
    }
    status::write(ctx, provider.as_ref(), provider.status.as_ref(), &status).await?;
    Ok(Outcome::Settled)
}
