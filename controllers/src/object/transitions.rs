//! Tells people of an object's transitions: one Event and one log line each.
//!
//! A transition is a change of what the condition Ready says, or another refused change. What happens on the way to Ready is
//! logged at `debug`: the lines at `info` are what a person reads the morning after.

use emco_crds::Conditioned;
use emco_crds::conditions::types;
use emco_crds::reasons::{DeploymentIntentGroupReason as Reason, RECONCILE_FAILED, is_progress};
use kube::Resource;
use kube::core::object::HasStatus;

use crate::object::context::HubContext;
use crate::object::{LogFields, events, meta, newborn, one_line};
use crate::tenancy::owned_namespace;

/// Reasons of Ready while a person is waited for, which is told where that is known: `reconcile::deployment::waits`.
const WAITS: [Reason; 3] =
    [Reason::AwaitingApproval, Reason::StaleApproval, Reason::RemovalNeedsConfirmation];

/// What makes one state of an object another one.
#[derive(PartialEq, Eq)]
struct ReadyState {
    ready: bool,
    reason: String,
    refused: Option<Refused>,
}

/// A refused change.
#[derive(PartialEq, Eq)]
struct Refused {
    /// What only an edit can cure. What may cure itself has none: its words say how many clusters match, which ticks.
    stalled: Option<String>,
    /// The generation that is refused: a cure that is refused again is news.
    generation: Option<i64>,
}

impl ReadyState {
    fn of<S: Conditioned>(status: &S) -> Option<Self> {
        let ready = status.condition(types::READY)?;
        let stalled = status.condition(types::STALLED).filter(|stalled| stalled.status == "True");
        let refused = stalled.or_else(|| {
            // A plan that is not approved is none that is refused.
            let stages = types::STAGES.iter().filter(|stage| **stage != types::APPROVED);
            let mut stages = stages.filter_map(|stage| status.condition(stage));
            stages.find(|stage| stage.status == "False")
        });
        Some(Self {
            ready: ready.status == "True",
            reason: ready.reason.clone(),
            refused: refused.map(|refused| Refused {
                stalled: stalled.map(|stalled| stalled.message.clone()),
                generation: refused.observed_generation,
            }),
        })
    }

    fn is_stalled(&self) -> bool {
        self.refused.as_ref().is_some_and(|refused| refused.stalled.is_some())
    }

    fn is_warning(&self) -> bool {
        !self.ready && !self.waits() && (self.is_stalled() || !is_progress(&self.reason))
    }

    fn waits(&self) -> bool {
        WAITS.iter().any(|reason| reason.as_str() == self.reason)
    }

    /// Whether time alone may cure it.
    fn may_pass(&self) -> bool {
        self.is_warning() && !self.is_stalled() && self.reason != RECONCILE_FAILED
    }
}

/// What names an object in a line, and a Cluster by `provider/name`.
fn fields_of<K: Resource<DynamicType = ()>>(ctx: &HubContext, object: &K) -> (LogFields, Option<String>) {
    let (kind, namespace, name) = (K::kind(&()), meta::namespace(object), meta::name(object));
    let project = owned_namespace::project_of(ctx, namespace);
    if kind == "Cluster" {
        let provider = owned_namespace::provider_of(ctx, namespace);
        let cluster = format!("{}/{name}", provider.as_deref().unwrap_or(namespace));
        return (LogFields { project, ..LogFields::default() }, Some(cluster));
    }
    (LogFields::of(project, &kind, namespace, name), None)
}

/// Writes an Event and a log line if the new status differs from the old one in more than words. What a new object warns of that never was
/// ready, and may pass, is told by [`tell_held`] if it does not.
pub async fn tell<K, S>(ctx: &HubContext, object: &K, old: Option<&S>, new: &S)
where
    K: Resource<DynamicType = ()>,
    S: Conditioned,
{
    let before = old.and_then(ReadyState::of);
    let Some(now) = ReadyState::of(new).filter(|now| before.as_ref() != Some(now)) else { return };
    let Some(ready) = new.condition(types::READY) else { return };
    ctx.newborn.forget(meta::uid(object));
    if now.waits() {
        return;
    }
    let never_ready = new.revision().is_none() && before.as_ref().is_none_or(|before| !before.ready);
    if now.may_pass()
        && never_ready
        && let Some(left) = newborn::left_of(object, ctx.now())
    {
        ctx.newborn.hold(meta::uid(object), left);
        return;
    }
    let known = old.is_some_and(was_reachable);
    log(ctx, object, before.as_ref(), &now, known, new.revision(), &ready.message);
    events::emit(ctx, object, now.is_warning(), &ready.reason, &ready.message).await;
}

/// Tells what an object warned of when it was new, and still does.
pub async fn tell_held<K>(ctx: &HubContext, object: &K)
where
    K: Resource<DynamicType = ()> + HasStatus,
    K::Status: Conditioned,
{
    ctx.newborn.forget(meta::uid(object));
    let Some(status) = object.status() else { return };
    let Some(now) = ReadyState::of(status).filter(ReadyState::is_warning) else { return };
    let Some(ready) = status.condition(types::READY) else { return };
    log(ctx, object, None, &now, was_reachable(status), status.revision(), &ready.message);
    events::emit(ctx, object, true, &ready.reason, &ready.message).await;
}

/// Whether the change from the old status to the new one is a Warning by itself.
pub fn warns<S: Conditioned>(old: Option<&S>, new: &S) -> bool {
    ReadyState::of(new)
        .is_some_and(|now| now.is_warning() && old.and_then(ReadyState::of).as_ref() != Some(&now))
}

fn was_reachable<S: Conditioned>(status: &S) -> bool {
    status.condition(types::REACHABLE).is_some()
}

fn log<K: Resource<DynamicType = ()>>(
    ctx: &HubContext,
    object: &K,
    before: Option<&ReadyState>,
    now: &ReadyState,
    known: bool,
    revision: Option<i64>,
    message: &str,
) {
    let (LogFields { project, deployment, object }, cluster) = fields_of(ctx, object);
    let was_ready = before.is_some_and(|before| before.ready);
    let ends = now.reason.starts_with("Terminat");
    let what = match (now.ready, cluster.is_some()) {
        _ if ends => "removing",
        _ if now.reason == RECONCILE_FAILED => "fails again and again",
        (true, true) if known => "cluster is back",
        (true, true) => "cluster found",
        (true, false) => "ready",
        (false, true) if was_ready => "cluster lost",
        (false, true) => "cluster cannot be used",
        (false, false) if now.refused.is_some() => "change refused",
        (false, false) => "not ready",
    };
    let (reason, message) = (now.reason.as_str(), one_line(message));
    let colon = if message.is_empty() { "" } else { ": " };
    if now.is_warning() {
        tracing::warn!(project, deployment, cluster, object, revision, reason, "{what}{colon}{message}");
    } else if now.ready || ends {
        tracing::info!(project, deployment, cluster, object, revision, reason, "{what}{colon}{message}");
    } else {
        tracing::debug!(project, deployment, cluster, object, revision, reason, "{what}{colon}{message}");
    }
}

/// Logs that an object, and all that was made for it, is gone: what ran last, and the time since it was deleted.
pub fn removed<K>(ctx: &HubContext, object: &K)
where
    K: Resource<DynamicType = ()> + HasStatus,
    K::Status: Conditioned,
{
    let (LogFields { project, deployment, object: named }, cluster) = fields_of(ctx, object);
    let revision = object.status().and_then(Conditioned::revision);
    let deleted = object.meta().deletion_timestamp.as_ref();
    let seconds = deleted.map(|deleted| ctx.now().duration_since(deleted.0).as_secs());
    tracing::info!(project, deployment, cluster, object = named, revision, seconds, "removed");
}

#[cfg(test)]
mod tests {
    use emco_crds::deployment_intent_group::status::DeploymentIntentGroupStatus;
    use emco_engine::conditions;
    use k8s_openapi::jiff::Timestamp;

    use super::*;

    fn status(says: &[(&str, &str, &str, &str)], generation: i64) -> ReadyState {
        let mut status = DeploymentIntentGroupStatus::default();
        for (type_, value, reason, message) in says {
            let list = status.conditions_mut();
            conditions::set(list, type_, value, reason, message, generation, Timestamp::UNIX_EPOCH);
        }
        ReadyState::of(&status).unwrap()
    }

    #[test]
    fn another_number_of_clusters_is_no_transition() {
        let ready = |message: &str| status(&[("Ready", "False", "NotReady", message)], 1);
        assert!(ready("1 of 3 clusters ready") == ready("2 of 3 clusters ready"));
        assert!(!ready("").is_warning(), "it is on its way");
    }

    #[test]
    fn each_refused_change_is_told_once_whatever_clusters_do() {
        let refused = |runs: &str, why: &str, generation| {
            let ready = format!("revision 5 runs on {runs}; the last change is refused: {why}");
            status(
                &[("Ready", "False", "TemplateError", &ready), ("Stalled", "True", "TemplateError", why)],
                generation,
            )
        };
        let first = refused("1 of 2 clusters", "a", 6);
        assert!(first.is_warning());
        assert!(first == refused("2 of 2 clusters", "a", 6));
        assert!(first != refused("2 of 2 clusters", "b", 6));
        assert!(first != refused("2 of 2 clusters", "a", 7), "another try that fails");
    }

    #[test]
    fn a_refusal_that_may_cure_itself_is_told_once_for_each_change() {
        let refused = |why: &str, generation| {
            status(&[("Ready", "False", "NoClusterMatches", why), ("Placed", "False", "X", why)], generation)
        };
        assert!(refused("none of 3 clusters", 1) == refused("none of 4 clusters", 1));
        assert!(refused("none of 3 clusters", 1) != refused("none of 3 clusters", 2));
    }

    #[test]
    fn a_plan_that_waits_for_an_approval_is_told_by_others() {
        let ready = ("Ready", "True", "Ready", "2 of 2 clusters ready");
        let waits = ("Approved", "False", "AwaitingApproval", "approve digest 0");
        assert!(status(&[ready], 1) == status(&[ready, waits], 2), "what runs is as it was");
        for reason in WAITS {
            let first = status(&[("Ready", "False", reason.as_str(), "approve digest 0"), waits], 1);
            assert!(first.waits() && !first.is_warning(), "{reason}");
        }
    }

    #[test]
    fn what_only_an_edit_cures_and_what_fails_again_and_again_is_told_at_once() {
        let says = |reason| status(&[("Ready", "False", reason, "")], 1).may_pass();
        assert!(says("CompositeAppNotFound"));
        assert!(!says(RECONCILE_FAILED) && !says("Progressing"));
        let stalled = [("Ready", "False", "TemplateError", ""), ("Stalled", "True", "TemplateError", "")];
        assert!(!status(&stalled, 1).may_pass());
    }

    #[test]
    fn a_change_that_its_logical_cloud_refuses_is_a_warning() {
        let ready = "revision 5 runs on 2 of 2 clusters; the last change is refused: LogicalCloud default is not ready: ...";
        let why = "LogicalCloud default is not ready: ...";
        let says = [("Ready", "False", "LogicalCloudNotReady", ready), ("Resolved", "False", "X", why)];
        assert!(status(&says, 6).is_warning());
    }
}
