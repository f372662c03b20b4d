//! Reconciles the kind `DeploymentApproval`: says what became of each. Plans are held and let pass by `deployment/approved.rs`.

use std::collections::BTreeSet;

use emco_crds::deployment_approval::ApprovalState;
use emco_crds::reasons::DeploymentApprovalReason as Reason;
use emco_crds::{DeploymentApproval, DeploymentIntentGroup, OwnerKind};
use emco_engine::approval::{Fate, Standing, fate, fate_of_wave};
use futures::future::BoxFuture;

use super::deployment::approved;
use crate::object::Owner;
use crate::object::context::{Outcome, Reconciled};
use crate::object::meta;
use crate::object::status::{self, ReadyState};
use crate::reconcile::context::Context;
use crate::reconcile::kind::{Controlled, Listener, Reach};
use crate::store;
use crate::triggers::ApprovalChanged;

impl Controlled for DeploymentApproval {
    fn reconcile<'a>(ctx: &'a Context, namespace: &'a str, name: &'a str) -> BoxFuture<'a, Reconciled> {
        Box::pin(reconcile(ctx, namespace, name))
    }

    /// The deployment that it names looks again, and other approvals of the digest.
    fn listener(_: &Reach) -> Listener<Self> {
        let seen = ApprovalChanged::default();
        Box::new(move |reach, change| {
            if seen.changed(change) {
                reach.triggers.approval(&reach.ctx.stores, change.object);
            }
        })
    }
}

/// Brings the status of one approval to what is true of it.
pub async fn reconcile(ctx: &Context, namespace: &str, name: &str) -> Reconciled {
    let Some(approval) = ctx.stores.approvals.named(namespace, name) else { return Ok(Outcome::Settled) };
    if meta::deleting(approval.as_ref()) {
        return Ok(Outcome::Settled);
    }
    let mut status = approval.status.clone().unwrap_or_default();
    let generation = meta::generation(approval.as_ref());
    let group = &approval.spec.deployment_intent_group_ref.name;
    let votes = approved::votes_of(ctx, namespace, group, approval.spec.wave.as_deref());
    if let Some(vote) = votes.iter().find(|vote| vote.name == name) {
        let standing = standing(ctx, namespace, &approval);
        let Fate { state, revision, message } = match &approval.spec.wave {
            Some(wave) => {
                let waves = waves(ctx, namespace, group);
                fate_of_wave(vote, &votes, group, &standing, status.state, (wave, &waves))
            }
            None => fate(vote, &votes, group, &standing, status.state),
        };
        let (ready, reason) = match state {
            ApprovalState::Waiting => (ReadyState::Waiting, Reason::Waiting),
            ApprovalState::InEffect => (ReadyState::Ready, Reason::InEffect),
            // Nothing more comes of it: what applies it from Git need not wait.
            ApprovalState::Stale => (ReadyState::Ready, Reason::Stale),
            ApprovalState::Superseded => (ReadyState::Ready, Reason::Superseded),
        };
        (status.state, status.revision) = (Some(state), revision);
        status::set_ready(ctx, &mut status, generation, &ready, reason.as_str(), &message);
    }
    status::write(ctx, approval.as_ref(), approval.status.as_ref(), &status).await?;
    Ok(Outcome::Settled)
}

/// Waves of a deployment: those that it asks for, and those of what is stored.
fn waves(ctx: &Context, namespace: &str, group: &str) -> BTreeSet<String> {
    let Some(dig) = ctx.stores.digs.named(namespace, group) else { return BTreeSet::new() };
    let asked = dig.spec.rollout.iter().flat_map(|rollout| &rollout.waves).map(|wave| wave.name.clone());
    let contexts = store::contexts(ctx, &Owner::of(ctx, OwnerKind::DeploymentIntentGroup, dig.as_ref()));
    let stored = contexts.iter().flat_map(|context| &context.spec.waves).map(|wave| wave.name.clone());
    asked.chain(stored).collect()
}

/// Where the digest of an approval stands.
fn standing(ctx: &Context, namespace: &str, approval: &DeploymentApproval) -> Standing {
    let (digest, group) = (&approval.spec.digest, &approval.spec.deployment_intent_group_ref.name);
    let dig = ctx.stores.digs.named(namespace, group);
    let here = dig.as_ref().and_then(|dig| of(ctx, dig, digest));
    if let Some(here) = here {
        return here;
    }
    let others = ctx.stores.digs.within(namespace);
    let other = others.iter().filter(|other| meta::name(other.as_ref()) != group.as_str()).find(|other| {
        let status = other.status.as_ref();
        let pending = status.and_then(|status| status.pending.as_ref()).map(|pending| &pending.digest);
        pending == Some(digest) || status.and_then(|status| status.digest.as_ref()) == Some(digest)
    });
    if let Some(other) = other {
        return Standing::Elsewhere(meta::name(other.as_ref()).to_owned());
    }
    let Some(dig) = dig else { return Standing::NoGroup };
    // The revision itself may be out of the history.
    if let Some(revision) = approval.status.as_ref().and_then(|status| status.revision) {
        return Standing::Ran(revision);
    }
    let pending = dig.status.as_ref().and_then(|status| status.pending.as_ref());
    Standing::Unknown(pending.map(|pending| pending.digest.clone()))
}

/// Where it stands with the deployment, if the deployment has it.
fn of(ctx: &Context, dig: &DeploymentIntentGroup, digest: &str) -> Option<Standing> {
    let status = dig.status.as_ref();
    let runs = status.and_then(|status| status.revision);
    let owner = Owner::of(ctx, OwnerKind::DeploymentIntentGroup, dig);
    let pin = approved::pin_in_effect(ctx, dig, &owner);
    if let Some(revision) =
        runs.filter(|_| pin.is_some_and(|(inputs, plan)| inputs == digest || plan == digest))
    {
        return Some(Standing::Runs(revision));
    }
    let contexts = store::contexts(ctx, &owner);
    let has = || {
        contexts.iter().filter(move |context| {
            let spec = &context.spec;
            spec.digest == digest || spec.inputs_digest.as_deref() == Some(digest)
        })
    };
    let revisions: Vec<i64> = has().map(|context| context.spec.revision).collect();
    if let Some(revision) = runs.filter(|runs| revisions.contains(runs)) {
        return Some(Standing::Runs(revision));
    }
    let pending = status.and_then(|status| status.pending.as_ref());
    // One that is stored and not said to run yet is about to.
    let next =
        has().any(|context| runs.is_none_or(|runs| context.spec.revision > runs) && !context.is_taken_back());
    if next || pending.is_some_and(|pending| pending.digest == digest) {
        return Some(Standing::Pending);
    }
    revisions.first().map(|revision| Standing::Ran(*revision))
}
