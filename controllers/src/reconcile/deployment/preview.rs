//! Works out the next plan of a deployment and what it changes, as a reconcile would, and writes nothing: for who wants to see it
//! before an edit is applied.

use std::collections::BTreeSet;
use std::sync::Arc;

use emco_crds::conditions::types;
use emco_crds::deployment_intent_group::DesiredState;
use emco_crds::deployment_intent_group::status::{Pending, PendingRequires};
use emco_crds::{DeploymentIntentGroup, OwnerKind};
use emco_engine::changes::{self, Details, Differences};
use emco_engine::identity::ClusterId;
use emco_engine::plan::Plan;
use emco_engine::refusal::Refusal;

use super::gather::{self, Gathered};
use super::planned::{Held, PendingChange};
use super::{Worked, approved, details, held, pinned, report};
use crate::object::Owner;
use crate::object::context::Failure;
use crate::object::meta;
use crate::reconcile::context::Context;
use crate::reconcile::suspension;
use crate::rows;
use crate::store;

mod mask;
mod needs;

pub use mask::Secrets;
pub use needs::{Needs, needs};

/// What the operator would say of a deployment that is as the stores have it.
#[derive(Default)]
pub struct Preview {
    /// Why there is no plan, or why it is not carried out.
    pub refusal: Option<Box<Refusal>>,
    /// What would wait or be carried out; `None` where nothing differs from what clusters are to have.
    pub plan: Option<Foreseen>,
    /// Clusters of which nothing is known that they serve: what they get is not worked out.
    pub unheard: BTreeSet<ClusterId>,
    /// Clusters of which it is not known what their nodes have: nothing is worked out before.
    pub unread: BTreeSet<ClusterId>,
}

/// A plan, and what it changes.
pub struct Foreseen {
    /// As `status.pending` would have it.
    pub pending: Pending,
    /// All names.
    pub details: Details,
    /// The lines that differ, without values of Secrets.
    pub differences: Differences,
    /// Why it would wait; empty where it would be carried out.
    pub waits: String,
}

impl Preview {
    fn refused(refusal: Box<Refusal>) -> Self {
        Self { refusal: Some(refusal), ..Self::default() }
    }
}

/// Plans a deployment of the stores; all of `ctx` is only read. `known` are values that are not shown besides those that are found here.
pub async fn preview(
    ctx: &Context,
    namespace: &str,
    name: &str,
    known: &Secrets,
) -> Result<Preview, Failure> {
    let Some(dig) = ctx.stores.digs.named(namespace, name) else { return Ok(Preview::default()) };
    let dig = suspension::with_project(&ctx.stores, dig);
    let owner = Owner::of(ctx, OwnerKind::DeploymentIntentGroup, dig.as_ref());
    // Of another look.
    held::forget(ctx, &owner);
    if dig.spec.desired_state == DesiredState::Terminated || meta::deleting(dig.as_ref()) {
        return removal(ctx, &dig, &owner, known.clone()).await;
    }
    if let Some(sentence) = store::of_a_later_format(ctx, &owner) {
        return Ok(Preview::refused(Refusal::of(types::RESOLVED, "FormatUnknown", false, sentence)));
    }
    // What is carried out at once is shown as it is where it only would be: against what rows have.
    let only_planned = only_planned(&dig);
    let shown = if dig.spec.is_held() { dig.as_ref() } else { &only_planned };
    let pin = match dig.spec.revision {
        None => None,
        Some(revision) => match Box::pin(pinned::find(ctx, shown, &owner, revision)).await? {
            Ok(pin) => {
                let of_pin = approved::of_pin(ctx, &dig, &owner, (&pin.stored, &pin.assignment));
                let gate = Box::pin(of_pin).await?;
                Some((pin, gate.wait(ctx)))
            }
            Err(refusal) => return Ok(Preview::refused(refusal)),
        },
    };
    let newest = store::newest(ctx, &owner).await?;
    let worked = match gather::gather(ctx, &dig, &owner, newest.as_ref()).await? {
        Err(refusal) => Err(refusal),
        Ok(gathered) if !gathered.unread.clusters.is_empty() => {
            return Ok(Preview { unread: gathered.unread.clusters, ..Preview::default() });
        }
        Ok(gathered) => worked(ctx, &dig, gathered).await?,
    };
    let unheard = worked.as_ref().map(|(_, plan)| unheard(plan)).unwrap_or_default();
    let (held, mut secrets) = match (pin, worked) {
        (None, Err(refusal)) => return Ok(Preview::refused(refusal)),
        (Some((pin, wait)), worked) => {
            let (secrets, plan) = apart(worked);
            let shown = if wait.is_some() { dig.as_ref() } else { shown };
            let held = held::hold(ctx, shown, &owner, newest.as_ref(), Some(pin), wait, plan);
            (Box::pin(held).await?, secrets)
        }
        (None, Ok((gathered, plan))) => {
            let gate = Box::pin(approved::gate(ctx, &dig, &owner, newest.as_ref(), &plan)).await?;
            let wait = gate.wait(ctx);
            let shown = if wait.is_some() { dig.as_ref() } else { shown };
            let secrets = Secrets::of_sources(&gathered.snapshot.sources);
            let held = held::hold(ctx, shown, &owner, newest.as_ref(), None, wait, Ok(plan));
            (Box::pin(held).await?, secrets)
        }
    };
    secrets.extend(known);
    let rejected = held.hold.awaits.as_ref().filter(|wait| wait.reason.stalled());
    let rejected = rejected.map(|wait| Refusal::new(types::APPROVED, wait.reason, wait.message.as_str()));
    let refusal = held.plan.as_ref().err().cloned().or(rejected);
    let waits = match &held.hold.awaits {
        Some(wait) => wait.message.clone(),
        None if dig.spec.is_held() => held.hold.sentence(),
        None => String::new(),
    };
    let plan = foreseen(ctx, &owner, held, secrets, waits).await?;
    Ok(Preview { refusal, plan, unheard, unread: BTreeSet::new() })
}

/// The same deployment, with plans that are not carried out.
fn only_planned(dig: &DeploymentIntentGroup) -> DeploymentIntentGroup {
    let mut planned = dig.clone();
    planned.spec.desired_state = DesiredState::Planned;
    planned
}

type Planning = Result<(Gathered, Plan), Box<Refusal>>;

async fn worked(ctx: &Context, dig: &DeploymentIntentGroup, gathered: Gathered) -> Result<Planning, Failure> {
    let ended = || Failure::Planning("another look at the same deployment is under way".to_owned());
    let (namespace, name) = (meta::namespace(dig), meta::name(dig));
    let turn = ctx.turns.take(namespace, name, meta::generation(dig)).ok_or_else(ended)?;
    match super::plan(ctx, gathered, false, turn).await? {
        Worked::Out(planned) => Ok(*planned),
        Worked::Stopped => Err(ended()),
    }
}

fn apart(worked: Planning) -> (Secrets, Result<Plan, Box<Refusal>>) {
    match worked {
        Ok((gathered, plan)) => (Secrets::of_sources(&gathered.snapshot.sources), Ok(plan)),
        Err(refusal) => (Secrets::default(), Err(refusal)),
    }
}

/// Clusters that wait for their first contact, and those whose stored sets cannot be read: they are made again where it is known
/// what the cluster serves.
fn unheard(plan: &Plan) -> BTreeSet<ClusterId> {
    let unread = plan
        .assignment
        .iter()
        .filter(|(_, apps)| apps.values().any(|assigned| !plan.sets.contains_key(&assigned.set)));
    plan.waiting.keys().chain(unread.map(|(id, _)| id)).cloned().collect()
}

async fn foreseen(
    ctx: &Context,
    owner: &Owner,
    held: Held,
    secrets: Secrets,
    waits: String,
) -> Result<Option<Foreseen>, Failure> {
    let (Some(pending), Some(change)) = (report::pending(owner, &held), held.change) else {
        return Ok(None);
    };
    compared(ctx, pending, change, secrets, waits).await.map(Some)
}

async fn compared(
    ctx: &Context,
    pending: Pending,
    change: PendingChange,
    mut secrets: Secrets,
    waits: String,
) -> Result<Foreseen, Failure> {
    let PendingChange { changes, details, digest, running, sets } = change;
    let installation = Arc::clone(&ctx.installation);
    // Comparing many manifests takes its time.
    let compared = tokio::task::spawn_blocking(move || {
        let key = &installation.digest_key;
        let mut found = changes::differences(&changes, running.as_deref(), &sets, key, &digest);
        secrets.add_sets(sets.values());
        secrets.add_sets(running.iter().flat_map(|running| running.sets.values()));
        for object in &mut found.objects {
            object.text = secrets.masked(&object.text);
        }
        found
    });
    let differences = compared.await.map_err(super::ended)?;
    Ok(Foreseen { pending, details, differences, waits })
}

/// What the end of a deployment removes, once it is wanted.
async fn removal(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    owner: &Owner,
    known: Secrets,
) -> Result<Preview, Failure> {
    if !rows::has_rows(ctx, owner).await? {
        return Ok(Preview::default());
    }
    let Some(change) = Box::pin(details::removed(ctx, dig, owner)).await? else {
        return Ok(Preview::default());
    };
    let wait = approved::of_end(ctx, dig, owner).and_then(|gate| gate.wait(ctx));
    let digest = || dig.status.as_ref().and_then(|status| status.digest.clone()).unwrap_or_default();
    let (digest, requires, waits) = match wait {
        Some(wait) => (wait.digest, wait.requires, wait.message),
        None => (digest(), PendingRequires::Nothing, String::new()),
    };
    let pending = details::removal(owner, &change, &digest, requires);
    let plan = compared(ctx, pending, change, known, waits).await?;
    Ok(Preview { plan: Some(plan), ..Preview::default() })
}
