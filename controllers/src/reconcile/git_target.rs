//! Reconciles GitTargets: has their branches published to, judges whose a folder is, and says which clusters are written to through them.

use std::time::Duration;

use emco_crds::cluster::git_target::{BranchDrift, GitTargetStatus, PublishedCommit};
use emco_crds::conditions::types::READY;
use emco_crds::fields::{Summary, Time};
use emco_crds::names::{annotation, finalizer};
use emco_crds::reasons::GitTargetReason as Reason;
use emco_crds::{Cluster, Conditioned as _, DurationText, GitTarget};
use emco_engine::text::counted;
use emco_engine::{conditions, holders};
use futures::future::BoxFuture;

use crate::object::context::{Failure, Outcome, Reconciled};
use crate::object::events;
use crate::object::finalizers;
use crate::object::meta;
use crate::object::status::{self, ReadyState};
use crate::object::transitions;
use crate::publish::{Corrected, PublishState, TargetKey, TargetStatus};
use crate::reconcile::context::Context;
use crate::reconcile::in_use::Holders;
use crate::reconcile::kind::{Controlled, Listener, Reach};
use crate::triggers::TargetChanged;

mod folder;
mod options;
mod ownership;
mod pace;

pub use pace::Paces;

impl Controlled for GitTarget {
    fn reconcile<'a>(ctx: &'a Context, namespace: &'a str, name: &'a str) -> BoxFuture<'a, Reconciled> {
        Box::pin(reconcile(ctx, namespace, name))
    }

    /// Clusters that are written to through it look again, and other targets: one may have the folder now.
    fn listener(_: &Reach) -> Listener<Self> {
        let seen = TargetChanged::default();
        Box::new(move |reach, change| {
            if seen.changed(change) {
                reach.triggers.git_target(&reach.ctx.stores, change.object);
            }
        })
    }
}

/// The state of a target, as its condition Ready says it.
struct Judged {
    verdict: ReadyState,
    reason: &'static str,
    message: String,
}

impl Judged {
    fn new(verdict: ReadyState, reason: Reason, message: String) -> Self {
        Self { verdict, reason: reason.as_str(), message }
    }
}

/// The outcome of a look at a target.
enum Seen {
    /// It stands so.
    Judged(Judged),
    /// Nothing new yet: what was said stays, and it is looked at again after this, if not woken before.
    Unchanged(Option<Duration>),
}

/// Brings one target to where it should be.
pub async fn reconcile(ctx: &Context, namespace: &str, name: &str) -> Reconciled {
    let key = TargetKey { namespace: namespace.to_owned(), name: name.to_owned() };
    let Some(target) = ctx.stores.git_targets.named(namespace, name) else {
        ctx.publishers.forget_target(&key);
        ctx.paces.forget(&key);
        return Ok(Outcome::Settled);
    };
    let target = target.as_ref();
    let mut status = target.status.clone().unwrap_or_default();
    let generation = meta::generation(target);
    let clusters = ctx.stores.clusters.within(namespace);
    let mut holders =
        Holders::shown(holders::git_target(namespace, name, clusters.iter().map(AsRef::as_ref)));
    if meta::deleting(target) {
        let of = |clusters: &[Cluster]| holders::git_target(namespace, name, clusters);
        holders = holders.proven(ctx, namespace, of).await?;
    }
    status.in_use = holders::in_use(&holders.names);
    let waits = meta::deleting(target).then(|| holders::waits_for(&holders.names)).flatten();
    if meta::deleting(target) && waits.is_none() {
        ctx.publishers.forget_target(&key);
        ctx.paces.forget(&key);
        if finalizers::remove(ctx, target, finalizer::IN_USE).await? {
            transitions::removed(ctx, target);
        }
        return Ok(Outcome::Settled);
    }
    if finalizers::add(ctx, target, finalizer::IN_USE).await? {
        return Ok(Outcome::Settled);
    }
    status::set_in_use(ctx, &mut status, generation, waits.as_deref());
    let mut again = holders.again();
    match look(ctx, target, &key, holders.names.len(), &mut status).await? {
        Seen::Unchanged(after) => again = again.into_iter().chain(after).min(),
        Seen::Judged(Judged { verdict, reason, message }) => {
            let (reason, message) = status::terminating(waits.as_deref(), &verdict, reason, message);
            status::set_ready(ctx, &mut status, generation, &verdict, reason, &message);
        }
    }
    requested(ctx, target, &key, &mut status);
    let corrected = ctx.publishers.take_corrected(&key);
    if let Some(corrected) = &corrected {
        count(&mut status, corrected);
    }
    status::write(ctx, target, target.status.as_ref(), &status).await?;
    if let Some(corrected) = corrected {
        events::emit(ctx, target, true, "DriftCorrected", &note(&corrected)).await;
    }
    Ok(Outcome::Settled.at_latest(again))
}

/// Has the branch published to, and sees how far that is.
async fn look(
    ctx: &Context,
    target: &GitTarget,
    key: &TargetKey,
    clusters: usize,
    status: &mut GitTargetStatus,
) -> Result<Seen, Failure> {
    if let Some(refused) = folder::refusal(ctx, target) {
        ctx.publishers.forget_target(key);
        return Ok(Seen::Judged(refused));
    }
    match options::read(ctx, target).await? {
        Ok(options) => ctx.publishers.set_target(key, options),
        Err(refused) => {
            ctx.publishers.forget_target(key);
            return Ok(Seen::Judged(refused));
        }
    }
    let Some(seen) = ctx.publishers.status(key) else {
        return Ok(if is_published(target, status) { Seen::Unchanged(None) } else { unread(target) });
    };
    if let Some(refused) = ownership::judge(ctx, target, key, &seen, status).await? {
        return Ok(Seen::Judged(refused));
    }
    Ok(standing(ctx, target, key, clusters, &seen, status))
}

/// Says how far publishing is, at a pace at which a status may be written.
fn standing(
    ctx: &Context,
    target: &GitTarget,
    key: &TargetKey,
    clusters: usize,
    seen: &TargetStatus,
    status: &mut GitTargetStatus,
) -> Seen {
    let was_published = is_published(target, status);
    let now_ms = ctx.world.clock.now_ms();
    let branch = &target.spec.branch;
    let moves = || {
        let message = publishing(branch, clusters, seen.waiting);
        Seen::Judged(Judged::new(ReadyState::Waiting, Reason::Publishing, message))
    };
    match &seen.state {
        PublishState::Failed { reason, message } => {
            ctx.paces.rest(key);
            Seen::Judged(Judged { verdict: ReadyState::Waiting, reason, message: message.clone() })
        }
        // A process that begins, and commits of every day, are no news.
        PublishState::Connecting | PublishState::Waiting | PublishState::Publishing if was_published => {
            match ctx.paces.moves(key, now_ms) {
                Some(wait) => Seen::Unchanged(Some(wait)),
                None => moves(),
            }
        }
        PublishState::Connecting | PublishState::Waiting => unread(target),
        PublishState::Publishing => moves(),
        PublishState::Published => {
            ctx.paces.rest(key);
            let Some((commit, at)) = &seen.published else {
                let message = format!("nothing is to be on branch {branch} yet");
                return Seen::Judged(Judged::new(ReadyState::Ready, Reason::Published, message));
            };
            let known = status.branch.as_ref().is_some_and(|branch| branch.commit == *commit);
            if !known
                && was_published
                && let Err(wait) = ctx.paces.write(key, now_ms)
            {
                return Seen::Unchanged(Some(wait));
            }
            if !known {
                status.branch = Some(PublishedCommit { commit: commit.clone(), at: Some(Time(*at)) });
            }
            status.summary = Some(summary(clusters, seen.waiting));
            let message = format!(
                "{} on {branch} at {}{}",
                counted(clusters, "cluster"),
                commit.get(..8).unwrap_or(commit),
                but_for(&seen.refused)
            );
            Seen::Judged(Judged::new(ReadyState::Ready, Reason::Published, message))
        }
    }
}

/// Names an owner whose files the server refuses, while it takes those of others.
fn but_for(refused: &[String]) -> String {
    let more = match refused.len() {
        0 => return String::new(),
        1 => String::new(),
        all => format!(" and {} more", all - 1),
    };
    let first = refused.first().map(String::as_str).unwrap_or_default();
    format!("; the server refuses the files of {first}{more}")
}

/// True where the status says of this generation that the branch is as wanted.
fn is_published(target: &GitTarget, status: &GitTargetStatus) -> bool {
    let current = status.observed_generation == Some(meta::generation(target));
    current && status.condition(READY).is_some_and(|ready| ready.reason == Reason::Published.as_str())
}

fn unread(target: &GitTarget) -> Seen {
    let message = format!("branch {} is being read", target.spec.branch);
    Seen::Judged(Judged::new(ReadyState::Waiting, Reason::Publishing, message))
}

fn summary(clusters: usize, waiting: usize) -> Summary {
    let published = clusters.saturating_sub(waiting);
    Summary { clusters: Some(format!("{published}/{clusters}")), ..Summary::default() }
}

fn publishing(branch: &str, clusters: usize, waiting: usize) -> String {
    format!("files of {waiting} of {} are not on branch {branch} as wanted", counted(clusters, "cluster"))
}

/// Carries out "look now": a new text in the annotation.
fn requested(ctx: &Context, target: &GitTarget, key: &TargetKey, status: &mut GitTargetStatus) {
    let request =
        meta::annotation(target, annotation::REQUESTED_AT).map(|text| conditions::truncate(text, 256));
    if request.is_some() && request != status.last_handled_request {
        ctx.publishers.look_now(key);
    }
    status.last_handled_request = request;
}

fn count(status: &mut GitTargetStatus, corrected: &Corrected) {
    let before = status.drift.as_ref().map_or(0, |drift| drift.corrected);
    let more = i64::try_from(corrected.count).unwrap_or(i64::MAX);
    status.drift =
        Some(BranchDrift { corrected: before.saturating_add(more), last: Some(Time(corrected.at)) });
}

fn note(corrected: &Corrected) -> String {
    let more = match corrected.count {
        0 | 1 => String::new(),
        more => format!(" and {} more", more - 1),
    };
    format!(
        "somebody else changed {}{more} on the branch: it is again as it was published. Change the objects of the hub instead",
        conditions::truncate(&corrected.first, 256)
    )
}

/// The time of a field, which the definition bounds.
fn interval(text: &DurationText) -> Duration {
    text.parse().unwrap_or(Duration::from_mins(1))
}
