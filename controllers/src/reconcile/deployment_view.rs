//! Reconciles the kind `DeploymentView`: answers each question of a member once, and deletes it after a while.
//!
//! Who may ask is RBAC's to say: to create one takes a right in the namespace, and so does a change of one. A command in a container
//! runs after such a change alone (the API server counts them in `metadata.generation`), and only where the Project lets it.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_crds::deployment_intent_group::view::{ViewOf, ViewState};
use emco_crds::fields::Level;
use emco_crds::project::ExecBy;
use emco_crds::reasons::DeploymentViewReason as Reason;
use emco_crds::{DeploymentView, DeploymentViewStatus, OwnerKind, Project, Time};
use emco_engine::identity::ClusterId;
use emco_engine::text::counted;
use emco_engine::{cloud, conditions};
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::future::BoxFuture;
use serde_json::Value;
use tokio::time::timeout;

use crate::api::ApiServerExt as _;
use crate::api::views::Asked;
use crate::object::Owner;
use crate::object::context::{Failure, Outcome, Reconciled};
use crate::object::meta;
use crate::object::status::{self, ReadyState};
use crate::reconcile::context::Context;
use crate::reconcile::kind::Controlled;
use crate::store;
use crate::tenancy::{facts, owned_namespace};

/// Time that an answer is kept, and that a command waits to be released.
const KEPT: Duration = Duration::from_secs(30);
/// Longest time for one answer.
const PATIENCE: Duration = Duration::from_secs(75);
/// Questions of one project at a time.
const MOST: usize = 20;
/// Longest answer, compressed and in base64: what the kind's schema takes.
const LONGEST: usize = 700_000;
/// Longest sentence.
const LONGEST_MESSAGE: usize = 4096;

impl Controlled for DeploymentView {
    const AT_ONCE: u16 = 8;

    fn reconcile<'a>(ctx: &'a Context, namespace: &'a str, name: &'a str) -> BoxFuture<'a, Reconciled> {
        Box::pin(reconcile(ctx, namespace, name))
    }

    /// Answers are for who asked.
    fn trim(&mut self) {
        if let Some(status) = &mut self.status {
            status.answer = None;
        }
    }
}

/// Brings one question to its answer, and an answered one to its end.
pub async fn reconcile(ctx: &Context, namespace: &str, name: &str) -> Reconciled {
    let Some(view) = ctx.stores.views.named(namespace, name) else { return Ok(Outcome::Settled) };
    let done = if meta::deleting(view.as_ref()) { emptied(ctx, &view).await } else { step(ctx, &view).await };
    match done {
        // Who asked took it away meanwhile.
        Err(Failure::Hub(error)) if error.is_not_found() => Ok(Outcome::Settled),
        other => other,
    }
}

/// Takes the answer out of a question that is deleted, and stays because somebody else holds it.
async fn emptied(ctx: &Context, view: &DeploymentView) -> Reconciled {
    if view.status.as_ref().and_then(|status| status.state) == Some(ViewState::Answered) {
        told(ctx, view, Err("the question is deleted, and its answer is taken away".to_owned())).await?;
    }
    Ok(Outcome::Settled)
}

async fn step(ctx: &Context, view: &DeploymentView) -> Reconciled {
    let state = view.status.as_ref().and_then(|status| status.state);
    if state.is_some_and(|state| state != ViewState::Running) && left(ctx, view).is_zero() {
        ctx.hub().delete(meta::path(view), Some(meta::uid(view)), None).await?;
        return Ok(Outcome::Settled);
    }
    let refused = |why: String| Box::pin(told(ctx, view, Err(why)));
    match state {
        Some(state) if state.is_final() => return Ok(Outcome::After(left(ctx, view))),
        // The process that ran it is gone: once more could do harm.
        Some(ViewState::Running) => {
            let why =
                "the operator was restarted while the command ran: whether it ran to its end is not known";
            return refused(why.to_owned()).await;
        }
        _ => {}
    }
    let project = match fault(ctx, view) {
        Ok(project) => project,
        Err(why) => return refused(why).await,
    };
    if view.spec.question.what == ViewOf::Exec {
        return Box::pin(command(ctx, view, &project)).await;
    }
    let answer = answer(ctx, view).await;
    told(ctx, view, answer).await
}

/// Runs a command, where the Project lets it and somebody released it who may.
async fn command(ctx: &Context, view: &DeploymentView, project: &Project) -> Reconciled {
    let is_new = view.status.as_ref().is_none_or(|status| status.state.is_none());
    if project.spec.exec != Some(ExecBy::Editors) {
        let why = format!(
            "Project {} lets no member run commands through the hub: an administrator of the hub sets its spec.exec to Editors",
            meta::name(project)
        );
        return told(ctx, view, Err(why)).await;
    }
    if view.spec.released != Some(true) || meta::generation(view) < 2 {
        if is_new {
            write(ctx, view, ViewState::Waiting, None).await?;
        }
        return Ok(Outcome::After(if is_new { KEPT } else { left(ctx, view) }));
    }
    if let Some(why) = barred(ctx, view, project) {
        return told(ctx, view, Err(why)).await;
    }
    let stored = write(ctx, view, ViewState::Running, None).await?;
    let running = serde_json::from_value(stored)
        .map_err(|error| Failure::Stored(format!("DeploymentView {}: {error}", meta::name(view))))?;
    tracing::info!(
        namespace = meta::namespace(view),
        deployment = view.spec.deployment_intent_group_ref.name,
        question = meta::name(view),
        "a member runs a command in a container"
    );
    let answer = answer(ctx, &running).await;
    told(ctx, &running, answer).await
}

/// The Project whose question it is, unless it is nobody's to answer.
fn fault(ctx: &Context, view: &DeploymentView) -> Result<Arc<Project>, String> {
    let (namespace, group) = (meta::namespace(view), &view.spec.deployment_intent_group_ref.name);
    let project = owned_namespace::project_of(ctx, namespace)
        .and_then(|name| ctx.stores.projects.named("", &name))
        .filter(|project| project.owned_namespace() == namespace)
        .ok_or_else(|| format!("namespace {namespace} is no project's"))?;
    if ctx.stores.digs.named(namespace, group).is_none() {
        return Err(format!("there is no deployment intent group {group} in namespace {namespace}"));
    }
    if ctx.stores.views.within(namespace).len() > MOST {
        let open = counted(MOST, "question");
        return Err(format!("namespace {namespace} has more than {open} already: ask again in a minute"));
    }
    if !ctx.answered.has_room(namespace) {
        return Err(format!("namespace {namespace} was given many answers just now: ask again in a minute"));
    }
    Ok(project)
}

/// Why a command does not run, though the Project lets it: what runs on a cluster is kept where its grant is withdrawn, and nothing new begins.
fn barred(ctx: &Context, view: &DeploymentView, project: &Project) -> Option<String> {
    let [named] = view.spec.question.clusters.as_slice() else {
        return Some("a command runs on one cluster: name it with --cluster".to_owned());
    };
    let providers = ctx.stores.providers.sorted();
    let providers: Vec<_> = providers.iter().map(AsRef::as_ref).collect();
    let cluster = ClusterId::parse(named).and_then(|id| facts::registered(ctx, &id));
    let clusters = facts::of(ctx, cluster.as_slice());
    let granted = cloud::granted(meta::name(project), &facts::labels(project), &providers, &clusters);
    let needed = applied_at(ctx, view);
    if granted.values().any(|level| *level >= needed) {
        return None;
    }
    Some(format!(
        "project {} is not granted level {} on cluster {named} any more: what runs there is kept, and no command begins",
        meta::name(project),
        needed.as_str()
    ))
}

/// The level that the newest revision of the deployment is applied at.
fn applied_at(ctx: &Context, view: &DeploymentView) -> Level {
    let group = &view.spec.deployment_intent_group_ref.name;
    let level = ctx.stores.digs.named(meta::namespace(view), group).and_then(|dig| {
        let owner = Owner::of(ctx, OwnerKind::DeploymentIntentGroup, dig.as_ref());
        store::contexts(ctx, &owner).first()?.spec.level
    });
    level.unwrap_or(Level::Admin)
}

/// The answer as it is stored.
async fn answer(ctx: &Context, view: &DeploymentView) -> Result<String, String> {
    let asked = Asked {
        namespace: meta::namespace(view).to_owned(),
        deployment: view.spec.deployment_intent_group_ref.name.clone(),
        question: view.spec.question.clone(),
    };
    match timeout(PATIENCE, ctx.answers.answer(asked)).await {
        Ok(answer) => {
            let text = packed(&answer?)?;
            ctx.answered.add(meta::namespace(view), text.len());
            Ok(text)
        }
        Err(_) => Err(format!("there is no answer within {} s", PATIENCE.as_secs())),
    }
}

fn packed(answer: &Value) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("the answer cannot be compressed: {error}");
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(answer.to_string().as_bytes()).map_err(failed)?;
    let text = STANDARD.encode(encoder.finish().map_err(failed)?);
    if text.len() > LONGEST {
        return Err(format!(
            "the answer has {} KiB compressed, and {} KiB are handed on: ask about less, with --cluster and --app",
            text.len() / 1024,
            LONGEST / 1024
        ));
    }
    Ok(text)
}

/// Writes the end of a question.
async fn told(ctx: &Context, view: &DeploymentView, answer: Result<String, String>) -> Reconciled {
    let state = if answer.is_ok() { ViewState::Answered } else { ViewState::Refused };
    write(ctx, view, state, Some(answer)).await?;
    Ok(Outcome::After(KEPT))
}

/// Writes a state; the object as it is stored then.
async fn write(
    ctx: &Context,
    view: &DeploymentView,
    state: ViewState,
    answer: Option<Result<String, String>>,
) -> Result<Value, Failure> {
    let mut status = DeploymentViewStatus {
        state: Some(state),
        at: Some(Time(ctx.now())),
        conditions: view.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default(),
        ..DeploymentViewStatus::default()
    };
    match answer {
        Some(Ok(text)) => status.answer = Some(text),
        Some(Err(why)) => status.message = Some(conditions::shorten(&why, LONGEST_MESSAGE)),
        None => {}
    }
    let (ready, reason) = match state {
        ViewState::Waiting => (ReadyState::Waiting, Reason::Waiting),
        ViewState::Running => (ReadyState::Waiting, Reason::Running),
        ViewState::Answered => (ReadyState::Ready, Reason::Answered),
        ViewState::Refused => (ReadyState::Stalled, Reason::Refused),
    };
    let message = status.message.clone().unwrap_or_default();
    status::set_ready(ctx, &mut status, meta::generation(view), &ready, reason.as_str(), &message);
    Ok(status::stored(ctx, view, &status).await?)
}

/// Time until a question that has a state is deleted.
fn left(ctx: &Context, view: &DeploymentView) -> Duration {
    let at = view.status.as_ref().and_then(|status| status.at.as_ref());
    let Some(at) = at else { return KEPT };
    let age = ctx.now().duration_since(at.0).as_secs();
    KEPT.saturating_sub(Duration::from_secs(u64::try_from(age).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use emco_crds::DeploymentViewSpec;

    use super::*;

    #[test]
    fn the_store_keeps_no_answers() {
        let mut view = DeploymentView::new("v", DeploymentViewSpec::default());
        view.trim();
        let (state, answer) = (Some(ViewState::Answered), Some("H4sI".to_owned()));
        view.status = Some(DeploymentViewStatus { state, answer, ..DeploymentViewStatus::default() });
        view.trim();
        let left = DeploymentViewStatus { state, ..DeploymentViewStatus::default() };
        assert_eq!(view.status, Some(left));
    }

    #[test]
    fn an_answer_that_no_status_holds_says_how_to_ask_for_less() {
        assert!(packed(&Value::from("a".repeat(4 << 20))).is_ok(), "it is compressed");
        let digits: String = (0..400_000_u32).map(|n| n.wrapping_mul(2_654_435_761).to_string()).collect();
        let said = packed(&Value::from(digits)).unwrap_err();
        assert!(said.contains("683 KiB are handed on") && said.contains("--cluster"), "{said}");
    }
}
