//! Fetches, verifies and pins the charts of a CompositeApp, and says who holds it.

use std::collections::BTreeMap;
use std::sync::Arc;

use emco_crds::composite_app::{App, ChartPin, ChartSource, Dependency};
use emco_crds::fields::Summary;
use emco_crds::names::{annotation, finalizer};
use emco_crds::{CompositeApp, Conditioned as _, DeploymentIntentGroup, Project};
use emco_engine::snapshot::ChartFacts;
use emco_engine::{canonical, conditions, depends, holders};
use emco_helm::Compiled;
use futures::future::BoxFuture;

use crate::api::ApiResult;
use crate::chart::{BUSY, Turn};
use crate::object::context::{Outcome, Reconciled};
use crate::object::finalizers;
use crate::object::meta;
use crate::object::status::{self, ReadyState};
use crate::reconcile::context::Context;
use crate::reconcile::in_use::Holders;
use crate::reconcile::kind::{Controlled, Listener, Reach};
use crate::store;
use crate::tenancy::owned_namespace;
use crate::triggers::Change;

mod kept;
mod look;
mod resolve;
mod source;

use kept::restore;
use resolve::{Cause, Resolution, resolve};
use source::{map_key, origin, request};

/// What is tried again by itself: a repository that does not answer, a chart that may be published yet.
const AGAIN: std::time::Duration = std::time::Duration::from_secs(60);

/// A reason of the condition Ready, and its message.
type Refused = (&'static str, String);

impl Controlled for CompositeApp {
    fn reconcile<'a>(ctx: &'a Context, namespace: &'a str, name: &'a str) -> BoxFuture<'a, Reconciled> {
        Box::pin(reconcile(ctx, namespace, name))
    }

    /// Deployments of it look again, and the project that counts it.
    fn listener(_: &Reach) -> Listener<Self> {
        Box::new(|reach, Change { object: app, .. }| {
            let names = |dig: &DeploymentIntentGroup| dig.spec.composite_app_ref.name == meta::name(*app);
            reach.triggers.referenced(&reach.ctx.stores, meta::namespace(*app), names);
        })
    }
}

/// Brings one composite application to where it should be.
pub async fn reconcile(ctx: &Context, namespace: &str, name: &str) -> Reconciled {
    let Some(app) = ctx.stores.apps.named(namespace, name) else { return Ok(Outcome::Settled) };
    let mut status = app.status.clone().unwrap_or_default();
    let generation = meta::generation(app.as_ref());
    let digs = ctx.stores.digs.within(namespace);
    let of_watch = holders::composite_app(Some(namespace), name, digs.iter().map(AsRef::as_ref));
    let mut holders = Holders::shown(of_watch);
    if meta::deleting(app.as_ref()) {
        let of = |digs: &[DeploymentIntentGroup]| holders::composite_app(Some(namespace), name, digs);
        holders = holders.proven(ctx, namespace, of).await?;
    }
    status.in_use = holders::in_use(&holders.names);
    let waits = if meta::deleting(app.as_ref()) { holders::waits_for(&holders.names) } else { None };
    if meta::deleting(app.as_ref()) && waits.is_none() {
        finalizers::remove(ctx, app.as_ref(), finalizer::IN_USE).await?;
        store::request_collection(ctx);
        return Ok(Outcome::Settled);
    }
    if finalizers::add(ctx, app.as_ref(), finalizer::IN_USE).await? {
        return Ok(Outcome::Settled);
    }
    status::set_in_use(ctx, &mut status, generation, waits.as_deref());
    let request =
        meta::annotation(app.as_ref(), annotation::REQUESTED_AT).map(|t| conditions::truncate(t, 256));
    let cause = if request == status.last_handled_request { Cause::Needed } else { Cause::Asked };
    let handled = status.last_handled_request.clone();
    status.last_handled_request = request;
    let Resolution { state, reason, message, again } = judged(ctx, &app, &mut status.apps, cause).await?;
    if reason == BUSY {
        // With the charts that are here already: those who wait are woken in turn. What was said of the same generation stays true.
        status.last_handled_request = handled;
        if status.observed_generation != Some(generation) {
            status::set_ready(ctx, &mut status, generation, &state, reason, &message);
        }
        status::write(ctx, app.as_ref(), app.status.as_ref(), &status).await?;
        return Ok(Outcome::After(AGAIN).at_latest(holders.again()));
    }
    let (says, message) = status::terminating(waits.as_deref(), &state, reason, message);
    status.summary = Some(Summary { apps: Some(app.spec.apps.len().to_string()), ..Summary::default() });
    status::set_ready(ctx, &mut status, generation, &state, says, &message);
    status::write(ctx, app.as_ref(), app.status.as_ref(), &status).await?;
    if app.status.as_ref().is_some_and(|before| before.apps != status.apps) {
        store::request_collection(ctx);
    }
    Ok(Outcome::Settled.at_latest(again.then_some(AGAIN)).at_latest(holders.again()))
}

/// What the charts of a composite application come to.
async fn judged(
    ctx: &Context,
    app: &CompositeApp,
    pins: &mut Vec<ChartPin>,
    cause: Cause,
) -> ApiResult<Resolution> {
    let namespace = meta::namespace(app);
    let Some(project) = project(ctx, namespace) else {
        let message =
            format!("no Project owns namespace {namespace}: create one with spec.namespace {namespace}");
        return Ok(Resolution { state: ReadyState::Waiting, reason: "NoProject", message, again: false });
    };
    match depends::fault(&app.spec.apps) {
        Some(message) => {
            Ok(Resolution { state: ReadyState::Stalled, reason: "DependencyCycle", message, again: false })
        }
        None => resolve(ctx, (app, &project), pins, cause).await,
    }
}

/// A composite application with the status that its next reconcile gives it: its charts are fetched, and nothing of it is written.
pub async fn foreseen(ctx: &Context, app: &CompositeApp) -> ApiResult<CompositeApp> {
    let mut status = app.status.clone().unwrap_or_default();
    let judged = judged(ctx, app, &mut status.apps, Cause::Foreseen).await?;
    let Resolution { state, reason, message, again: _ } = judged;
    status::set_ready(ctx, &mut status, meta::generation(app), &state, reason, &message);
    Ok(CompositeApp { status: Some(status), ..app.clone() })
}

/// The project that owns a namespace.
pub fn project(ctx: &Context, namespace: &str) -> Option<Arc<Project>> {
    ctx.stores.projects.named("", &owned_namespace::project_of(ctx, namespace)?)
}

/// Digest of an app's `chart` field: while it stays, the pin holds.
pub fn source_digest(app: &App) -> String {
    // The way in which the chart is rendered is no part of where it comes from.
    let source = ChartSource { skip_schema_validation: None, ..app.chart.clone() };
    canonical::sha256("emco-chart-source/1\0", &serde_json::to_value(&source).unwrap_or_default())
}

/// A pinned chart, parsed, if it is kept here or on the hub. What is not is downloaded by the reconcile of the `CompositeApp`.
pub async fn chart(ctx: &Context, object: &CompositeApp, app: &App) -> ApiResult<Option<ChartFacts>> {
    let Some(pin) = object.status.as_ref().and_then(|status| pin_of(&status.apps, app)) else {
        return Ok(None);
    };
    let Some(project) = project(ctx, meta::namespace(object)) else { return Ok(None) };
    if let (Some(reference), None) = (&app.chart.config_map_ref, &app.chart.secret_ref)
        && let place = map_key(meta::namespace(object), reference)
        && let Some(compiled) = ctx.charts.kept_of_map(&place, &pin.digest)
    {
        return Ok(Some(ChartFacts { digest: pin.digest.clone(), compiled }));
    }
    let turn = Turn::new(meta::namespace(object), meta::name(object));
    let compiled = pinned_chart(ctx, (object, &project), (app, pin), &turn).await?;
    Ok(compiled.map(|compiled| ChartFacts { digest: pin.digest.clone(), compiled }))
}

/// The chart of a pin, if it is kept here or on the hub, and the app may still have it.
async fn pinned_chart(
    ctx: &Context,
    (object, project): (&CompositeApp, &Project),
    (app, pin): (&App, &ChartPin),
    turn: &Turn,
) -> ApiResult<Option<Arc<Compiled>>> {
    let Ok(found) = origin(ctx, object, app, Some(pin)).await? else { return Ok(None) };
    let request = request(project, (app, Some(pin)), found, turn);
    // A digest that the spec states by now is another chart than the pinned one.
    if request.pinned != Some(pin.digest.as_str()) {
        return Ok(None);
    }
    let mut compiled = ctx.charts.at_hand(request.clone()).await;
    if compiled.is_none() && restore(ctx, object, pin, &request).await? {
        compiled = ctx.charts.at_hand(request).await;
    }
    Ok(compiled)
}

/// The pins of an object's apps, as a revision that is made of them stores them.
pub fn pins(object: &CompositeApp) -> Vec<ChartPin> {
    let known = object.status.as_ref().map(|status| status.apps.as_slice()).unwrap_or_default();
    let of = |app: &App| Some(ChartPin { last_look: None, ..pin_of(known, app)?.clone() });
    object.spec.apps.iter().filter_map(of).collect()
}

/// What its apps wait for, as a revision that is made of it stores that.
pub fn dependencies(object: &CompositeApp) -> BTreeMap<String, Vec<Dependency>> {
    object.spec.apps.iter().map(|app| (app.name.clone(), app.depends_on.clone())).collect()
}

/// The pin of an app's `chart` field as it is now.
fn pin_of<'a>(pins: &'a [ChartPin], app: &App) -> Option<&'a ChartPin> {
    let source = source_digest(app);
    pins.iter().find(|pin| pin.name == app.name && pin.source == source)
}

/// Whether each app's chart was here once.
pub fn is_pinned(object: &CompositeApp) -> bool {
    let pins = object.status.as_ref().map(|status| status.apps.as_slice()).unwrap_or_default();
    object.spec.apps.iter().all(|app| pin_of(pins, app).is_some())
}

/// Whether all charts are pinned, and nothing said since that one cannot be fetched.
pub fn is_resolved(object: &CompositeApp) -> bool {
    object.status.as_ref().is_some_and(|status| {
        status.is_true("Ready") && status.observed_generation == object.metadata.generation
    })
}
