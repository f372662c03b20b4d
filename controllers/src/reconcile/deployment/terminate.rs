//! Terminates a deployment: cleans its clusters, removes what was stored, then its finalizer.

use std::collections::BTreeMap;

use emco_crds::conditions::types;
use emco_crds::deployment_intent_group::status::{DeploymentIntentGroupStatus, PendingRequires};
use emco_crds::deployment_intent_group::sync::UnreachableAction;
use emco_crds::names::annotation;
use emco_crds::project::ConfirmDeletion;
use emco_crds::reasons::DeploymentIntentGroupReason as Reason;
use emco_crds::{Conditioned, DeploymentIntentGroup};
use emco_engine::approval::Wait;
use emco_engine::conditions;
use emco_engine::rollup::{self, DigInputs, DigRollup};
use emco_engine::text::counted;

use super::approved::{self, Gate};
use super::report::{before, fill};
use super::{MOVED, details, held, not_removed, waits};
use crate::abandon;
use crate::object::Owner;
use crate::object::context::{Failure, Outcome, Reconciled};
use crate::object::meta;
use crate::object::status;
use crate::reconcile::composite_app;
use crate::reconcile::context::Context;
use crate::reconcile::revision;
use crate::reconcile::suspension;
use crate::rows::{self, Removal};
use crate::store;

/// Brings a deployment to its end. `desiredState: Terminated` keeps the definition and its history.
pub async fn reconcile(ctx: &Context, dig: &DeploymentIntentGroup, owner: &Owner) -> Reconciled {
    let deleting = meta::deleting(dig);
    let suspended = dig.spec.is_suspended();
    let (mut first, gate) = First::asked(ctx, dig, owner).await?;
    if let Some(gate) = gate.as_ref().filter(|_| first.unapproved.is_none() && !suspended)
        && !gate.is_open(ctx).await?
    {
        return Ok(Outcome::After(MOVED));
    }
    let waits = suspended || first.is_open();
    held::forget(ctx, owner);
    let unreachable = Some(&dig.spec.unreachable).filter(|_| !waits);
    let give_up = abandon::AbandonPolicy::of(dig, unreachable);
    if !waits && abandon::abandon(ctx, dig, owner, give_up).await? {
        return Ok(Outcome::Settled);
    }
    if rows::search_confirmed(ctx, owner, dig).await? {
        return Ok(Outcome::Settled);
    }
    rows::invalidate_lost(ctx, owner);
    let removal = revision::remove(ctx, owner, waits, !deleting).await?;
    if removal.is_some() {
        first = First::default();
    }
    let ending = removal.unwrap_or(Removal::Waiting);
    if ending == Removal::Done && deleting {
        details::remove(ctx, dig, owner).await?;
        revision::release(ctx, dig).await?;
        return Ok(Outcome::Settled);
    }
    let mut status = dig.status.clone().unwrap_or_default();
    let shards = store::shards(ctx, owner);
    let parts: Vec<rollup::Shard<'_>> = shards.iter().map(|s| (&s.spec, s.status.as_ref())).collect();
    let abandoned = abandon::abandoned(ctx, owner);
    let rolled = rollup::dig(&DigInputs {
        shards: &parts,
        wanted: &BTreeMap::new(),
        revision: status.revision,
        placement: &[],
        ready_clusters: Some(&dig.spec.ready_clusters),
        before: &before(&status),
        approved: true,
        removing: true,
        suspended: waits,
        abandoned: &abandoned,
    });
    fill(&mut status, &rolled, false);
    status.not_removed = not_removed::of(dig);
    status.awaited.clear();
    status.last_handled_request = super::request(dig);
    let generation = meta::generation(dig);
    let now = ctx.now();
    status.set_observed_generation(generation);
    let done = ending == Removal::Done;
    let (reason, message) = if !done {
        let lost = rows::lost_content(ctx, owner).await?;
        let lost = lost.map(|lost| format!("; {}", lost.sentence(dig, "dig"))).unwrap_or_default();
        let reason = if suspended { "Suspended" } else { first.reason() };
        (reason, still(ctx, dig, &rolled, first.said().as_deref()) + &lost)
    } else if let Some(given_up) = rollup::given_up(&abandoned) {
        ("Abandoned", format!("nothing of this deployment is left on other clusters; {given_up}"))
    } else {
        ("Terminated", format!("nothing of this deployment is left on any cluster{}", not_removed::said(dig)))
    };
    let removed = if waits && !done { Box::pin(details::removed(ctx, dig, owner)).await? } else { None };
    let confirmed = || {
        let said = meta::annotation(dig, annotation::CONFIRM)?;
        said.split_once('@').map(|(digest, _)| digest.to_owned())
    };
    let (digest, requires) = first.wants().unwrap_or_else(|| {
        (status.digest.clone().or_else(confirmed).unwrap_or_default(), PendingRequires::Nothing)
    });
    status.pending = removed.as_ref().map(|removed| details::removal(owner, removed, &digest, requires));
    if removed.is_none() {
        details::remove(ctx, dig, owner).await?;
    }
    say_approved(ctx, &mut status, &first, gate.as_ref(), generation);
    let list = status.conditions_mut();
    conditions::remove(list, types::PINNED);
    conditions::set(list, types::READY, "False", reason, &message, generation, now);
    conditions::set(list, types::DEPLOYED, "False", reason, &message, generation, now);
    conditions::remove(list, types::STALLED);
    if done {
        conditions::remove(list, types::RECONCILING);
    } else {
        conditions::set(list, types::RECONCILING, "True", reason, &message, generation, now);
    }
    if status::write(ctx, dig, dig.status.as_ref(), &status).await? {
        waits::tell(ctx, dig, &status).await;
    }
    if let Some(removed) = &removed {
        Box::pin(details::write_change(ctx, owner, removed)).await?;
    }
    let abandons = unreachable.and_then(|policy| abandon::next_abandon(ctx, owner, policy));
    let outcome = Outcome::Settled.at_latest(abandons);
    Ok(outcome.at_latest((ending == Removal::Unseen).then_some(store::SHOWN)))
}

/// Says whether its end is approved. What a plan waited for does not come any more.
fn say_approved(
    ctx: &Context,
    status: &mut DeploymentIntentGroupStatus,
    first: &First,
    gate: Option<&Gate>,
    generation: i64,
) {
    let (list, now) = (status.conditions_mut(), ctx.now());
    let mut say = |value: &str, reason: Reason, message: &str| {
        conditions::set(list, types::APPROVED, value, reason.as_str(), message, generation, now);
    };
    if let Some(wait) = &first.unapproved {
        say("False", wait.reason, &wait.message);
    } else if let Some(by) = gate.and_then(|gate| gate.passed(ctx)) {
        say("True", Reason::ApprovedBy, &by);
    } else if list.iter().any(|said| said.type_ == types::APPROVED && said.status == "False") {
        conditions::remove(list, types::APPROVED);
    }
}

/// What people have to say before anything is removed.
#[derive(Default)]
struct First {
    /// The digest that confirms the deletion, and the command.
    unconfirmed: Option<(String, String)>,
    /// The approval that is missing.
    unapproved: Option<Wait>,
}

impl First {
    /// What is missing, and the gate that its end has to pass.
    async fn asked(
        ctx: &Context,
        dig: &DeploymentIntentGroup,
        owner: &Owner,
    ) -> Result<(Self, Option<Gate>), Failure> {
        let (unconfirmed, gate) = (unconfirmed(ctx, dig, owner), approved::of_end(ctx, dig, owner));
        // What began goes on: it is not stopped by another confirmation in the place of its own, as that of a loss.
        if (unconfirmed.is_some() || gate.is_some())
            && store::all_shown(ctx, owner).await?
            && leaves(ctx, owner)
        {
            return Ok((Self::default(), None));
        }
        let unapproved = gate.as_ref().and_then(|gate| gate.wait(ctx));
        Ok((Self { unconfirmed, unapproved }, gate))
    }

    const fn is_open(&self) -> bool {
        self.unconfirmed.is_some() || self.unapproved.is_some()
    }

    fn reason(&self) -> &'static str {
        match (&self.unconfirmed, &self.unapproved) {
            (Some(_), _) => Reason::RemovalNeedsConfirmation.as_str(),
            (None, Some(wait)) => wait.reason.as_str(),
            (None, None) => "Terminating",
        }
    }

    fn said(&self) -> Option<String> {
        let confirms = |(_, command): &(String, String)| {
            format!(
                "the project wants deletions confirmed (spec.confirmDeletion), and nothing is removed before: {command}"
            )
        };
        let approves = |wait: &Wait| format!("it stays until its end is approved: {}", wait.message);
        self.unconfirmed.as_ref().map(confirms).or_else(|| self.unapproved.as_ref().map(approves))
    }

    /// The digest that is to be named, and how.
    fn wants(&self) -> Option<(String, PendingRequires)> {
        let confirms =
            |(digest, _): &(String, String)| (digest.clone(), PendingRequires::DeletionConfirmation);
        let approves = |wait: &Wait| (wait.digest.clone(), wait.requires);
        self.unconfirmed.as_ref().map(confirms).or_else(|| self.unapproved.as_ref().map(approves))
    }
}

/// Whether nothing of it is wanted anywhere any more, nor what a search found.
fn leaves(ctx: &Context, owner: &Owner) -> bool {
    store::shards(ctx, owner).iter().all(|shard| shard.spec.clusters.iter().all(|row| row.target.is_none()))
}

/// The digest that confirms the deletion, and the command, where the project wants it confirmed and it is not.
fn unconfirmed(ctx: &Context, dig: &DeploymentIntentGroup, owner: &Owner) -> Option<(String, String)> {
    let project = composite_app::project(ctx, &owner.namespace)?;
    if !meta::deleting(dig) || project.spec.confirm_deletion != ConfirmDeletion::Always {
        return None;
    }
    let stored = || store::contexts(ctx, owner).first().map(|context| context.spec.digest.clone());
    // Before the first revision there is nothing to lose.
    let digest = dig.status.as_ref().and_then(|status| status.digest.clone()).or_else(stored)?;
    let text = dig.deletion_confirmation(&digest)?;
    if meta::annotation(dig, annotation::CONFIRM) == Some(text.as_str()) {
        return None;
    }
    let (name, namespace, key) = (&owner.name, &owner.namespace, annotation::CONFIRM);
    let command = format!("kubectl annotate dig {name} -n {namespace} --overwrite {key}={text}");
    Some((digest, command))
}

/// What is waited for, and what a person can do about a cluster that may never come back.
fn still(ctx: &Context, dig: &DeploymentIntentGroup, rolled: &DigRollup, first: Option<&str>) -> String {
    let mut text = format!("{} still to be cleaned", counted(rolled.left, "cluster"));
    if dig.spec.is_suspended() {
        let field = suspension::field(&ctx.stores, dig);
        text.push_str(&format!("; suspended: nothing is removed until {field} is unset"));
        return text;
    }
    if let Some(first) = first {
        text.push_str(&format!("; {first}"));
        return text;
    }
    if let Some(first) = rolled.failing.first() {
        text.push_str(&format!("; {}: {} {}", first.cluster, first.reason, first.message));
    }
    if let Some(mistyped) = abandon::annotation_error(dig) {
        text.push_str(&format!("; {mistyped}"));
    } else if rolled.failing.iter().any(|f| f.reason == "Unreachable") {
        text.push_str(&match (dig.spec.unreachable.action, &dig.spec.unreachable.after) {
            (UnreachableAction::Abandon, Some(after)) => {
                format!("; what cannot be reached for {} is given up", after.0)
            }
            _ => format!("; to give up what cannot be reached: {}", abandon::command(dig, "dig")),
        });
    }
    text
}
