//! Renews the token of a cluster before it ends, where `kubectl emco cluster add` made it.
//!
//! What is to be done follows from the Secret and the clock. A process that dies after the cluster issued a token and before the hub has it
//! leaves one token more there, which lives and dies with the Secret that the stored one is bound to.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_engine::identity::ClusterId;
use k8s_openapi::api::core::v1::Secret;
use serde_json::json;

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

/// Whether the operator renews this token, when it reaches the cluster.
pub fn is_renewable(id: &ClusterId, secret: &Secret, key: Option<&str>) -> bool {
    due::renewable(id, secret, key).is_some()
}

/// Renews the token in a Secret if it is due. `uid` says who the cluster is; it is connected, and work may be done there.
pub async fn renew(
    ctx: &Context,
    id: &ClusterId,
    uid: Option<&str>,
    secret: &Secret,
    key: Option<&str>,
) -> Renewal {
    let found = uid.zip(due::renewable(id, secret, key));
    let Some((uid, known)) = found else { return Renewal::default() };
    let left = Duration::try_from(known.at.duration_since(ctx.now())).unwrap_or_default();
    if !left.is_zero() {
        return Renewal { after: Some(left), ..Renewal::default() };
    }
    let (renewals, now_ms) = (&ctx.renewals, ctx.world.clock.now_ms());
    if let Some((left, refusal)) = renewals.pause(id, &known.bound, now_ms) {
        return Renewal { refusal, after: Some(left), renewed: None };
    }
    match replaced(ctx, id, uid, secret, &known).await {
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
