//! Pins the charts of a CompositeApp: what is pinned and kept is taken, everything else is fetched.

use std::sync::Arc;
use std::time::Duration;

use emco_crds::composite_app::{App, ChartPin};
use emco_crds::{CompositeApp, Project};
use emco_engine::text::counted;
use tokio::time::Instant;

use super::kept::{keep, remember, restore};
use super::source::{origin, refusal, request};
use super::{Refused, look, pin_of, source_digest};
use crate::api::ApiResult;
use crate::chart::{BUSY, Fetched, Turn, changed};
use crate::object::meta;
use crate::object::status::ReadyState;
use crate::reconcile::context::Context;

/// Sentences beside success in one message.
const MOST_SENTENCES: usize = 3;

/// The most that one look at all sources takes, once somebody asked for it.
const ASKED: Duration = Duration::from_mins(10);

/// Why charts are resolved.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// They have to be there.
    Needed,
    /// Somebody wants their sources to be looked at.
    Asked,
    /// Somebody wants to know what would become of them: none is kept on the hub.
    Foreseen,
}

/// What the charts of a composite application came to.
pub struct Resolution {
    pub state: ReadyState,
    pub reason: &'static str,
    pub message: String,
    /// Whether time may change it.
    pub again: bool,
}

/// Fetches every chart that is not pinned yet (all, when asked to), and pins it.
pub async fn resolve(
    ctx: &Context,
    (object, project): (&CompositeApp, &Project),
    pins: &mut Vec<ChartPin>,
    cause: Cause,
) -> ApiResult<Resolution> {
    let (namespace, name) = (meta::namespace(object), meta::name(object));
    let turn = Turn::new(namespace, name).staying(cause == Cause::Asked);
    let resolved = resolve_in(ctx, (object, project), pins, cause, &turn).await;
    if turn.downloads() > 0 {
        ctx.charts.arrived.enqueue(namespace, name);
    }
    resolved
}

async fn resolve_in(
    ctx: &Context,
    (object, project): (&CompositeApp, &Project),
    pins: &mut Vec<ChartPin>,
    cause: Cause,
    turn: &Turn,
) -> ApiResult<Resolution> {
    let asked = cause == Cause::Asked;
    let (namespace, name) = (meta::namespace(object), meta::name(object));
    let begun = Instant::now();
    remember(ctx, (object, project), pins, turn).await?;
    // A source that did not answer when somebody asked is asked again; one that gave something else is not.
    let due = !asked && pins.iter().any(look::is_open) && ctx.charts.may_look(namespace, name);
    let mut so_far = SoFar::default();
    for app in &object.spec.apps {
        let pinned = pin_of(pins, app).cloned();
        // Somebody who asks wants the source itself to be looked at; otherwise what is pinned and kept will do.
        let looks = asked || (due && pinned.as_ref().is_some_and(look::is_open));
        let known = if looks { None } else { pinned.as_ref() };
        let downloads = turn.downloads();
        let fetched = if looks && begun.elapsed() > ASKED {
            let message = format!("looking at the sources of all apps takes longer than {ASKED:?}");
            Err(("SourceUnreachable", message))
        } else {
            fetch(ctx, object, project, (app, known), turn).await?
        };
        let archive =
            fetched.as_ref().ok().map(|fetched| (fetched.digest.clone(), Arc::clone(&fetched.bytes)));
        let judged = fetched.and_then(|fetched| judge((object, app), pinned.as_ref(), fetched));
        match judged {
            Ok(mut pin) => {
                // What the last look found stays said until the source gives the pinned chart. Git was asked for the pinned
                // commit, which says nothing of a tag or a branch.
                let given = turn.downloads() > downloads && app.chart.git.is_none();
                if !looks && !given {
                    pin.last_look = pinned.and_then(|pinned| pinned.last_look);
                }
                // Where a branch moved on, these are not the bytes of the pin.
                let same = archive.filter(|(digest, _)| *digest == pin.digest);
                let keeps = app.chart.config_map_ref.is_none() && cause != Cause::Foreseen;
                if let Some((_, archive)) = same.filter(|_| keeps) {
                    match keep(ctx, object, &pin, &archive).await {
                        Ok(sentence) => so_far.sentences.extend(sentence),
                        Err(error) => {
                            tracing::warn!(namespace, name, %error, "a chart's archive cannot be kept on the hub; it is tried again");
                            so_far.again = true;
                        }
                    }
                }
                so_far.pin(app, pin);
            }
            Err(refused) if looks && refused.0 != BUSY => so_far.looked(app, pinned, &refused),
            Err((reason, message)) => {
                // What was pinned stays pinned: a repository that is gone for a while takes nothing back.
                for app in &object.spec.apps {
                    if let Some(pin) = pin_of(pins, app)
                        && !so_far.fresh.iter().any(|known| known.name == app.name)
                    {
                        so_far.fresh.push(pin.clone());
                    }
                }
                so_far.unusable = Some((reason, format!("app {}: {message}", app.name)));
                break;
            }
        }
    }
    if (asked || due) && so_far.unusable.as_ref().is_none_or(|(reason, _)| *reason != BUSY) {
        ctx.charts.looked(namespace, name);
    }
    Ok(so_far.into_resolution(pins))
}

/// What became of the apps so far.
#[derive(Default)]
struct SoFar {
    fresh: Vec<ChartPin>,
    /// The first app whose chart cannot be had.
    unusable: Option<Refused>,
    /// The first app whose source refused a look; its pinned chart goes on being used.
    refused: Option<Refused>,
    /// Branches that point elsewhere: they are what was asked for, so they are said first.
    moved: Vec<String>,
    sentences: Vec<String>,
    again: bool,
}

impl SoFar {
    fn pin(&mut self, app: &App, pin: ChartPin) {
        match pin.last_look.as_ref().map(|last| look::says(&app.name, last)) {
            None => {}
            Some(Ok(sentence)) => self.moved.push(sentence),
            Some(Err(refused)) => {
                self.refused.get_or_insert(refused);
            }
        }
        self.fresh.push(pin);
    }

    /// A source refused the look that was asked for. The sources of other apps are looked at all the same.
    fn looked(&mut self, app: &App, pinned: Option<ChartPin>, refused: &Refused) {
        let (reason, message) = (refused.0, format!("app {}: {}", app.name, refused.1));
        match pinned {
            None => {
                self.unusable.get_or_insert((reason, message));
            }
            // A ConfigMap is looked at each time.
            Some(pin) if app.chart.config_map_ref.is_some() => {
                self.refused.get_or_insert((reason, message));
                self.fresh.push(pin);
            }
            Some(pin) => self.pin(app, ChartPin { last_look: Some(look::refused(refused)), ..pin }),
        }
    }

    fn into_resolution(self, pins: &mut Vec<ChartPin>) -> Resolution {
        let Self { fresh, unusable, refused, moved, sentences, again } = self;
        let again = again || fresh.iter().any(look::is_open);
        *pins = fresh;
        if let Some((reason, message)) = unusable.or(refused) {
            let again = again || look::is_tried_again(reason);
            return Resolution { state: look::state(reason), reason, message, again };
        }
        let mut message = counted(pins.len(), "chart");
        for sentence in moved.iter().chain(&sentences).take(MOST_SENTENCES) {
            message.push_str(&format!("; {sentence}"));
        }
        Resolution { state: ReadyState::Ready, reason: "ChartsResolved", message, again }
    }
}

/// What a source gave, against what it gave first. A branch may move on, for that is what branches do; the pin stays.
fn judge(
    (object, app): (&CompositeApp, &App),
    pinned: Option<&ChartPin>,
    fetched: Fetched,
) -> Result<ChartPin, Refused> {
    let git = app.chart.git.as_ref();
    match pinned {
        Some(pin) if pin.digest != fetched.digest => {
            if let (Some(branch), Some(now), Some(before)) =
                (git.and_then(|git| git.ref_.branch.as_ref()), &fetched.commit, &pin.commit)
                && now != before
            {
                let sentence = format!(
                    "branch {branch} has moved to {now} and the chart stays at {before}: to take it, name it in git.ref.commit"
                );
                return Ok(ChartPin { last_look: Some(look::moved(sentence)), ..pin.clone() });
            }
            Err(refusal(object, app, &changed(&pin.digest, &fetched.digest)))
        }
        _ => Ok(ChartPin {
            name: app.name.clone(),
            chart: fetched.name,
            version: fetched.version,
            app_version: Some(fetched.app_version).filter(|version| !version.is_empty()),
            digest: fetched.digest,
            commit: fetched.commit.or_else(|| pinned.and_then(|pin| pin.commit.clone())),
            source: source_digest(app),
            last_look: None,
        }),
    }
}

/// Fetches one app's chart. The outer error is the hub's.
async fn fetch(
    ctx: &Context,
    object: &CompositeApp,
    project: &Project,
    (app, pinned): (&App, Option<&ChartPin>),
    turn: &Turn,
) -> ApiResult<Result<Fetched, Refused>> {
    let (source, credentials) = match origin(ctx, object, app, pinned).await? {
        Ok(found) => found,
        Err(refused) => return Ok(Err(refused)),
    };
    let request = request(project, (app, pinned), (source, credentials), turn);
    if let Some(pin) = pinned
        && ctx.charts.at_hand(request.clone()).await.is_none()
    {
        restore(ctx, object, pin, &request).await?;
    }
    Ok(ctx.charts.fetch(request).await.map_err(|error| refusal(object, app, &error)))
}
