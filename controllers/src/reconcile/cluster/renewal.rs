//! Renews the token of a cluster before it ends, where `kubectl emco cluster add` made it.
//!
//! What is to be done follows from the Secret and the clock. A process that dies after the cluster issued a token and before the hub has it
//! leaves one token more there, which lives and dies with the Secret that the stored one is bound to.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_crds::Cluster;
use emco_engine::identity::ClusterId;
use k8s_openapi::api::core::v1::Secret;
use serde_json::json;

use super::access;
use crate::api::ApiServerExt as _;
use crate::object::meta;
use crate::reconcile::context::Context;
use crate::remote::kubeconfig::Life;
use crate::remote::kubeconfig::claims::Bound;

mod ask;
mod due;
mod tried;

use due::Renewable;
use tried::Refusal;

pub use due::is_renewable;
pub use tried::Renewals;

/// After a Secret was written, by this process or by somebody else at the same moment: its watch is sooner most often.
const AGAIN: Duration = Duration::from_secs(5);

/// What came of looking at a token.
#[derive(Default)]
pub struct Renewal {
    /// Life of the new token, which is on the hub.
    pub renewed: Option<Life>,
    /// Why there is none, though it is due.
    pub refusal: Option<Refusal>,
    /// When to look again.
    pub after: Option<Duration>,
}

/// Renews the token of a cluster if it is due, as it says of itself. `uid` says who the cluster is; it is connected, and work may be done
/// there.
pub async fn renew(
    ctx: &Context,
    cluster: &Cluster,
    id: &ClusterId,
    uid: Option<&str>,
    bound: Option<&Bound>,
) -> Renewal {
    let Some((uid, bound)) = uid.zip(bound) else { return Renewal::default() };
    let left = Duration::try_from(due::at(id, bound).duration_since(ctx.now())).unwrap_or_default();
    if !left.is_zero() {
        return Renewal { after: Some(left), ..Renewal::default() };
    }
    let (renewals, now_ms) = (&ctx.renewals, ctx.world.clock.now_ms());
    if let Some((left, refusal)) = renewals.pause(id, bound, now_ms) {
        return Renewal { refusal, after: Some(left), renewed: None };
    }
    // Only now is the token itself needed. One that is another by now is looked at again.
    let again = Renewal { after: Some(AGAIN), ..Renewal::default() };
    let Ok(Some(secret)) = access::secret(ctx, cluster).await else { return again };
    let key = cluster.spec.access.kubeconfig().and_then(|reference| reference.key.as_deref());
    let known = due::renewable(&secret, key).filter(|known| known.bound == *bound);
    let Some(known) = known else { return again };
    match replaced(ctx, id, uid, &secret, &known).await {
        Ok(Some(bound)) => {
            tracing::info!(cluster = %id, ends = %bound.ends, "the token of a cluster was renewed");
            renewals.renewed(id, &bound, now_ms);
            let life = Life::new(Some(bound.issued), bound.ends);
            Renewal { renewed: Some(life), after: Some(AGAIN), refusal: None }
        }
        Ok(None) => Renewal { after: Some(AGAIN), ..Renewal::default() },
        Err(refusal) => {
            tracing::warn!(cluster = %id, why = refusal.message, "the token of a cluster could not be renewed");
            let after = renewals.refused(id, &known.bound, refusal.clone(), now_ms);
            Renewal { refusal: Some(refusal), after: Some(after), renewed: None }
        }
    }
}

/// Has the cluster issue another token, tries it, and puts it in the place of the one that was read and of no other: `None` where somebody
/// else changed the Secret meanwhile.
async fn replaced(
    ctx: &Context,
    id: &ClusterId,
    uid: &str,
    secret: &Secret,
    known: &Renewable,
) -> Result<Option<Bound>, Refusal> {
    let issued = ask::ask(ctx, id, uid, known).await?;
    let patch = json!({
        "metadata": {"resourceVersion": secret.metadata.resource_version},
        "data": {known.key.as_str(): STANDARD.encode(issued.kubeconfig.as_bytes())},
    });
    match ctx.hub().merge(meta::path(secret), &patch).await {
        Ok(_) => Ok(Some(issued.bound)),
        Err(error) if error.is_conflict() || error.lacks(meta::name(secret)) => Ok(None),
        Err(error) => Err(Refusal::by("the hub", &error)),
    }
}
