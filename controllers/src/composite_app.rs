//! CompositeApp in; its charts fetched, verified and pinned, and who holds it, out.

use std::sync::Arc;

use emco_crds::composite_app::{App, ChartPin, ChartSource, GitChart, GitRef, OciChart};
use emco_crds::fields::{KeyRef, Summary};
use emco_crds::names::{annotation, finalizer};
use emco_crds::{CompositeApp, Project};
use emco_engine::snapshot::ChartFacts;
use emco_engine::{canonical, conditions, holders, unsupported};
use serde_json::Value;

use crate::api::{ApiResult, ApiServerExt};
use crate::chart::{
    ChartCredentials, ChartError, FetchRequest, Fetched, Git, MapKey, Oci, Reference, Repository, Source,
    changed, digest,
};
use crate::context::{Context, Outcome, Reconciled};
use crate::objects::{self, Verdict};
use crate::owned_namespace;
use crate::sources;
use crate::stores::StoreExt;

/// Branches that moved on, told of in one message.
const MOVED_TOLD: usize = 3;

/// What is tried again by itself: a repository that does not answer, a chart that may be published yet.
const AGAIN: std::time::Duration = std::time::Duration::from_secs(60);

/// Brings one composite application to where it should be.
pub async fn reconcile(ctx: &Context, namespace: &str, name: &str) -> Reconciled {
    let Some(app) = ctx.stores.apps.named(namespace, name) else { return Ok(Outcome::Settled) };
    let mut status = app.status.clone().unwrap_or_default();
    let generation = objects::generation(app.as_ref());
    let digs = ctx.stores.digs.within(namespace);
    let holders = holders::composite_app(Some(namespace), name, digs.iter().map(AsRef::as_ref));
    status.in_use = holders::in_use(&holders);
    let waits = if objects::deleting(app.as_ref()) { holders::waits_for(&holders) } else { None };
    if objects::deleting(app.as_ref()) && waits.is_none() {
        objects::remove_finalizer(ctx, app.as_ref(), finalizer::IN_USE).await?;
        return Ok(Outcome::Settled);
    }
    if objects::add_finalizer(ctx, app.as_ref(), finalizer::IN_USE).await? {
        return Ok(Outcome::Settled);
    }
    objects::held(ctx, &mut status, generation, waits.as_deref());
    let request =
        objects::annotation(app.as_ref(), annotation::REQUESTED_AT).map(|t| conditions::truncate(t, 256));
    let asked = request != status.last_handled_request;
    status.last_handled_request = request;
    let (verdict, reason, message) = match project(ctx, namespace) {
        None => {
            let message =
                format!("no Project owns namespace {namespace}: create one with spec.namespace {namespace}");
            (Verdict::Waiting, "NoProject", message)
        }
        Some(project) => match unsupported::check_composite_app(&app.spec) {
            Some(sentence) => (Verdict::Stalled, "NotSupportedYet", sentence),
            None => resolve(ctx, &app, &project, &mut status.apps, asked).await?,
        },
    };
    status.summary = Some(Summary { apps: Some(app.spec.apps.len().to_string()), ..Summary::default() });
    objects::verdict(ctx, &mut status, generation, &verdict, reason, &message);
    objects::write_status(ctx, app.as_ref(), app.status.as_ref(), &status).await?;
    let again = verdict == Verdict::Waiting
        && matches!(reason, "SourceUnreachable" | "ChartNotFound" | "ChartUnauthorized");
    Ok(if again { Outcome::After(AGAIN) } else { Outcome::Settled })
}

/// The project that owns a namespace.
pub fn project(ctx: &Context, namespace: &str) -> Option<Arc<Project>> {
    ctx.stores.projects.named("", &owned_namespace::project_of(ctx, namespace)?)
}

/// Digest of an app's `chart` field: while it stays, the pin holds.
fn source_digest(app: &App) -> String {
    canonical::sha256("emco-chart-source/1\0", &serde_json::to_value(&app.chart).unwrap_or_default())
}

/// Fetches every chart that is not pinned yet (all, when asked to), and pins it.
async fn resolve(
    ctx: &Context,
    object: &CompositeApp,
    project: &Project,
    pins: &mut Vec<ChartPin>,
    asked: bool,
) -> ApiResult<(Verdict, &'static str, String)> {
    let mut fresh = Vec::new();
    let mut moved = Vec::new();
    for app in &object.spec.apps {
        let source = source_digest(app);
        let pinned = pins.iter().find(|pin| pin.name == app.name && pin.source == source).cloned();
        // Somebody who asks wants the source itself to be looked at; otherwise what is pinned and kept will do.
        let known = if asked { None } else { pinned.as_ref() };
        let fetched = fetch(ctx, object, project, app, known).await?;
        match fetched.and_then(|fetched| judge(app, pinned.as_ref(), &source, fetched)) {
            Ok(Judged::Pin(pin)) => fresh.push(pin),
            Ok(Judged::Moved(pin, to)) => {
                fresh.push(pin);
                moved.push(to);
            }
            Err((reason, message)) => {
                // What was pinned stays pinned: a repository that is gone for a while takes nothing back.
                for (app, pin) in object.spec.apps.iter().filter_map(|app| {
                    pins.iter()
                        .find(|pin| pin.name == app.name && pin.source == source_digest(app))
                        .map(|pin| (app, pin))
                }) {
                    if !fresh.iter().any(|known| known.name == app.name) {
                        fresh.push(pin.clone());
                    }
                }
                *pins = fresh;
                let stalled = matches!(
                    reason,
                    "ChartDigestChanged"
                        | "ChartInvalid"
                        | "ChartTooLarge"
                        | "ChartIsLibrary"
                        | "ChartSourceNotAllowed"
                );
                let verdict = if stalled { Verdict::Stalled } else { Verdict::Waiting };
                return Ok((verdict, reason, format!("app {}: {message}", app.name)));
            }
        }
    }
    let mut message = if fresh.len() == 1 { "1 chart".to_owned() } else { format!("{} charts", fresh.len()) };
    for one in moved.iter().take(MOVED_TOLD) {
        message.push_str(&format!("; {one}"));
    }
    *pins = fresh;
    Ok((Verdict::Ready, "ChartsResolved", message))
}

type Refused = (&'static str, String);

enum Judged {
    Pin(ChartPin),
    /// The pin as it was, and a sentence on where its branch is now.
    Moved(ChartPin, String),
}

/// What a source gave, against what it gave first. A branch may move on, for that is what branches do; the pin stays.
fn judge(app: &App, pinned: Option<&ChartPin>, source: &str, fetched: Fetched) -> Result<Judged, Refused> {
    let git = app.chart.git.as_ref();
    match pinned {
        Some(pin) if pin.digest != fetched.digest => {
            if let (Some(branch), Some(now), Some(before)) =
                (git.and_then(|git| git.ref_.branch.as_ref()), &fetched.commit, &pin.commit)
                && now != before
            {
                let sentence = format!(
                    "app {}: branch {branch} has moved to {now} and the chart stays at {before}: to take it, name it in git.ref.commit",
                    app.name
                );
                return Ok(Judged::Moved(pin.clone(), sentence));
            }
            let edit = if git.is_some() { "ref.commit or digest" } else { "version or digest" };
            let error = changed(&pin.digest, &fetched.digest, edit);
            Err((error.reason(), error.to_string()))
        }
        _ => Ok(Judged::Pin(ChartPin {
            name: app.name.clone(),
            chart: fetched.name,
            version: fetched.version,
            app_version: Some(fetched.app_version).filter(|version| !version.is_empty()),
            digest: fetched.digest,
            commit: fetched.commit.or_else(|| pinned.and_then(|pin| pin.commit.clone())),
            source: source.to_owned(),
        })),
    }
}

/// Fetches one app's chart. The outer error is the hub's.
async fn fetch(
    ctx: &Context,
    object: &CompositeApp,
    project: &Project,
    app: &App,
    pinned: Option<&ChartPin>,
) -> ApiResult<Result<Fetched, Refused>> {
    let namespace = objects::namespace(object);
    let credentials = match &app.chart.secret_ref {
        None => None,
        Some(reference) => {
            match ctx.hub().get_opt(&sources::path(namespace, "Secret", &reference.name)).await? {
                None => {
                    let message = format!(
                        "Secret {} does not exist in namespace {namespace}: create it, or change chart.secretRef",
                        reference.name
                    );
                    return Ok(Err(("SecretNotFound", message)));
                }
                Some(secret) => match read_credentials(&secret, app) {
                    Ok(credentials) => Some(credentials),
                    Err(error) => {
                        return Ok(Err((error.reason(), format!("Secret {}: {error}", reference.name))));
                    }
                },
            }
        }
    };
    let source = if let Some(chart) = &app.chart.repository {
        Source::Repository(Repository {
            url: chart.url.clone(),
            name: chart.name.clone(),
            version: chart.version.clone(),
        })
    } else if let Some(OciChart { url, version, digest }) = app.chart.oci.clone() {
        Source::Oci(Oci { url, version, digest })
    } else if let Some(chart) = &app.chart.git {
        let Some(git) = git(chart, pinned) else {
            let message = "git.ref names no commit: set one of tag, branch, commit".to_owned();
            return Ok(Err(("ChartNotFound", message)));
        };
        Source::Git(git)
    } else if let Some(reference) = &app.chart.config_map_ref {
        let place = map_key(namespace, reference);
        let key = place.2.clone();
        let Some(map) = ctx.hub().get_opt(&sources::path(namespace, "ConfigMap", &reference.name)).await?
        else {
            ctx.charts.maps.gave(place, None);
            let message = format!(
                "ConfigMap {} does not exist in namespace {namespace}: create it with the chart's archive under {key}",
                reference.name
            );
            return Ok(Err(("ConfigMapNotFound", message)));
        };
        let bytes = sources::bytes(&map, &key);
        ctx.charts.maps.gave(place, bytes.as_deref().map(digest).as_deref());
        let Some(bytes) = bytes else {
            let message = format!(
                "ConfigMap {} has no key {key}: put the chart's archive under binaryData.{key}",
                reference.name
            );
            return Ok(Err(("ChartNotFound", message)));
        };
        Source::ConfigMap { label: format!("ConfigMap {}, key {key}", reference.name), bytes }
    } else {
        let message = "chart needs exactly one of repository, oci, git, configMapRef".to_owned();
        return Ok(Err(("ChartNotFound", message)));
    };
    // What the spec states must match the archive; else what was seen first must.
    let wanted = app.chart.digest.as_deref().or_else(|| pinned.map(|pin| pin.digest.as_str()));
    let request =
        FetchRequest { source, credentials, sources: project.spec.chart_sources.as_deref(), pinned: wanted };
    Ok(ctx.charts.fetch(request).await.map_err(|error: ChartError| (error.reason(), error.to_string())))
}

/// Where the archive is in a ConfigMap.
fn map_key(namespace: &str, reference: &KeyRef) -> MapKey {
    let key = reference.key.as_deref().unwrap_or("chart.tgz");
    (namespace.to_owned(), reference.name.clone(), key.to_owned())
}

/// A chart of a Git repository, at the commit that is pinned if one is.
fn git(chart: &GitChart, pinned: Option<&ChartPin>) -> Option<Git> {
    let GitRef { tag, branch, commit } = chart.ref_.clone();
    let reference = match (tag, branch, commit) {
        (Some(tag), ..) => Reference::Tag(tag),
        (_, Some(branch), _) => Reference::Branch(branch),
        (.., commit) => Reference::Commit(commit?),
    };
    let pinned = pinned.and_then(|pin| pin.commit.clone());
    Some(Git { url: chart.url.clone(), reference, path: chart.path.clone(), pinned })
}

fn read_credentials(secret: &Value, app: &App) -> Result<ChartCredentials, ChartError> {
    let keys =
        secret.get("data").and_then(Value::as_object).map(|data| data.keys().cloned().collect::<Vec<_>>());
    let data = keys
        .unwrap_or_default()
        .into_iter()
        .filter_map(|key| Some((key.clone(), sources::bytes(secret, &key)?)));
    let ChartSource { repository, oci, git, .. } = &app.chart;
    let url = repository.as_ref().map(|chart| chart.url.clone());
    let url = url.or_else(|| git.as_ref().map(|chart| chart.url.clone()));
    // Logins are looked up by host, and those of registries are written without a scheme.
    let url = url.or_else(|| oci.as_ref().map(|chart| chart.url.replacen("oci://", "https://", 1)));
    ChartCredentials::read(&data.collect(), url.as_deref())
}

/// A pinned chart, parsed; fetched again where this process does not have it.
pub async fn chart(ctx: &Context, object: &CompositeApp, app: &App) -> ApiResult<Option<ChartFacts>> {
    let Some(pin) = object.status.as_ref().and_then(|status| {
        status.apps.iter().find(|pin| pin.name == app.name && pin.source == source_digest(app))
    }) else {
        return Ok(None);
    };
    let Some(project) = project(ctx, objects::namespace(object)) else { return Ok(None) };
    if let (Some(reference), None) = (&app.chart.config_map_ref, &app.chart.secret_ref)
        && let place = map_key(objects::namespace(object), reference)
        && let Some(compiled) = ctx.charts.kept_of_map(&place, &pin.digest)
    {
        return Ok(Some(ChartFacts { digest: pin.digest.clone(), compiled }));
    }
    let fetched = fetch(ctx, object, &project, app, Some(pin)).await?;
    Ok(fetched.ok().map(|fetched| ChartFacts { digest: fetched.digest, compiled: fetched.compiled }))
}
