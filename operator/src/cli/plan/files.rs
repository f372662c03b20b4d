//! Plans files that are not applied yet: the operator's own code plans the hub as it would be with them.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::bail;
use emco_controllers::object::context::Failure;
use emco_controllers::reconcile::deployment::preview::{self, Foreseen, Preview};
use emco_crds::reasons::is_progress;
use emco_engine::text::counted;
use jiff::Timestamp;
use serde::Serialize;

use super::read::{Found, joined};
use super::{Answer, Plan, Refusal, Verdict, outcome, runs, show};
use crate::cli::args::deployments::PlanArgs;
use crate::cli::digest::objects::{OF_PLANS, Objects};
use crate::cli::hub::{self, Hub};
use crate::cli::orphans::some;
use crate::cli::output::machine;
use crate::cli::{Outcome, print};

mod accepted;
mod charts;
mod clusters;
mod earlier;
pub mod needs;
mod nodes;
mod overlay;
mod related;
mod world;

use accepted::Unaccepted;
use earlier::Earlier;
use overlay::{Files, Touched};
use world::{Lists, World};

/// Deployments that are planned besides those of the files.
const MOST_RELATED: usize = 50;
/// Names of those that are not, which a note says.
const NAMED: usize = 10;

/// What is said of files.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answers {
    verdict: Verdict,
    /// What the hub would not store; then nothing is planned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unaccepted: Vec<Unaccepted>,
    /// By deployment.
    plans: Vec<Answer>,
    /// What was taken for granted, and what was not looked at.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

/// `kubectl emco plan -f`.
pub async fn run(args: PlanArgs) -> anyhow::Result<Outcome> {
    let hub = hub::connect(&args.hub).await?;
    let namespace = hub.namespace_or(args.namespace.as_deref());
    let files = Files::of(&Objects::read(&args.filename, Some(&namespace), &OF_PLANS)?)?;
    if files.is_empty() {
        let paths: Vec<String> = args.filename.iter().map(|path| path.display().to_string()).collect();
        bail!(
            "there is nothing in {} that a plan depends on, such as a DeploymentIntentGroup or a CompositeApp",
            paths.join(", ")
        );
    }
    let mut lists = Box::pin(Lists::read(&hub, &files)).await?;
    let sources = charts::known(&lists.apps);
    let earlier = Earlier::of(&lists);
    let (mut touched, edits) = overlay::lay(&files, &mut lists, now())?;
    if let Some(place) = touched.places.first() {
        bail!(
            "the files change {place}, and where deployments of all projects move by that is not worked out from files: apply it on its own, or leave it out"
        );
    }
    let (unaccepted, unasked) = Box::pin(accepted::ask(&hub, &edits)).await?;
    touched.notes.extend(unasked);
    let mut answers = Answers { verdict: Verdict::Refused, unaccepted, plans: Vec::new(), notes: Vec::new() };
    if answers.unaccepted.is_empty() {
        let mut world = Box::pin(World::open(&hub, lists, files.paths())).await?;
        answers.plans = Box::pin(plans(&hub, &mut world, (&mut touched, &sources, &earlier), &args)).await;
        let worst = answers.plans.iter().map(|answer| answer.verdict).max_by_key(|verdict| rank(*verdict));
        answers.verdict = worst.unwrap_or(Verdict::Nothing);
    }
    answers.notes = touched.notes;
    match machine(args.output, &answers)? {
        Some(text) => print(&text)?,
        None => print(&text(&answers))?,
    }
    outcome(answers.verdict)
}

/// Now, as objects have it: whole seconds.
fn now() -> Timestamp {
    Timestamp::from_second(Timestamp::now().as_second()).unwrap_or_default()
}

/// Which verdict is said of several.
const fn rank(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Nothing => 0,
        Verdict::Changes => 1,
        Verdict::Refused => 2,
        Verdict::Unknown => 3,
    }
}

fn text(answers: &Answers) -> String {
    let mut parts: Vec<String> = answers.plans.iter().map(show::text).collect();
    let refused = |one: &Unaccepted| {
        format!("refused: the hub does not store {}: {}: {}\n", one.object, one.reason, one.message)
    };
    parts.extend(answers.unaccepted.iter().map(refused));
    if parts.is_empty() {
        parts.push("nothing would change\n".to_owned());
    }
    let mut text = parts.join("\n");
    for note in &answers.notes {
        text.push_str(&format!("note: {note}\n"));
    }
    text
}

/// Plans all deployments that the files are about.
async fn plans(
    hub: &Hub,
    world: &mut World,
    (touched, sources, earlier): (&mut Touched, &charts::Sources, &Earlier),
    args: &PlanArgs,
) -> Vec<Answer> {
    let mut related = related::related(&world.ctx.stores, &touched.objects);
    related.retain(|name| !touched.deployments.contains(name));
    let left: Vec<String> =
        related.iter().skip(MOST_RELATED).map(|(namespace, name)| format!("{namespace}/{name}")).collect();
    if !left.is_empty() {
        touched.notes.push(format!(
            "{} that the files may change as well {} not looked at: {}",
            counted(left.len(), "deployment"),
            if left.len() == 1 { "is" } else { "are" },
            some(&left, NAMED)
        ));
    }
    let planned: Names =
        touched.deployments.iter().chain(related.iter().take(MOST_RELATED)).cloned().collect();
    let unfetched = charts::fetch(world, touched, sources, &planned).await;
    let mut answers = Vec::new();
    for name in &touched.deployments {
        answers.push(answer(hub, world, name, (&*touched, &unfetched, earlier), args).await);
    }
    let mut same = 0;
    for name in related.iter().take(MOST_RELATED) {
        let answer = answer(hub, world, name, (&*touched, &unfetched, earlier), args).await;
        // Nobody asked for it by name.
        if answer.verdict == Verdict::Nothing {
            same += 1;
        } else {
            answers.push(answer);
        }
    }
    if related.is_empty() && touched.deployments.is_empty() {
        touched.notes.push("no deployment depends on what is in the files".to_owned());
    }
    if same > 0 {
        let stay = if same == 1 { "stays as it is" } else { "stay as they are" };
        touched
            .notes
            .push(format!("{} that the files may change as well {stay}", counted(same, "deployment")));
    }
    answers
}

/// One deployment.
async fn answer(
    hub: &Hub,
    world: &World,
    (namespace, name): &(String, String),
    (touched, unfetched, earlier): (&Touched, &BTreeMap<(String, String), String>, &Earlier),
    args: &PlanArgs,
) -> Answer {
    let dig = world.ctx.stores.digs.named(namespace, name);
    let status = dig.as_ref().and_then(|dig| dig.status.clone()).unwrap_or_default();
    let mut answer = Answer {
        deployment: format!("{namespace}/{name}"),
        verdict: Verdict::Unknown,
        runs: runs(&status),
        refusal: None,
        unknown: None,
        plan: None,
    };
    let app = dig.as_ref().map(|dig| (namespace.clone(), dig.spec.composite_app_ref.name.clone()));
    let why = if let Some(project) = touched.new_projects.get(namespace) {
        Some(format!(
            "Project {project} is not on the hub yet, and its namespace, its logical cloud and its rights are made by the operator: apply the Project first"
        ))
    } else if dig.is_some_and(|dig| dig.metadata.deletion_timestamp.is_some()) {
        Some("it is being deleted on the hub: wait until it is gone".to_owned())
    } else {
        app.and_then(|app| unfetched.get(&app).cloned())
    };
    let found = match why {
        Some(why) => Err(why),
        None => previewed(hub, world, (namespace, name), earlier).await,
    };
    match found {
        Ok(Preview { refusal, plan, unheard: _, unread: _ }) => {
            answer.verdict = match (&refusal, &plan) {
                (Some(_), _) => Verdict::Refused,
                (None, Some(_)) => Verdict::Changes,
                (None, None) => Verdict::Nothing,
            };
            answer.refusal = refusal.map(|refusal| Refusal {
                condition: refusal.condition.to_owned(),
                reason: refusal.reason.to_owned(),
                message: refusal.message,
            });
            answer.plan = plan.map(|plan| of(plan, args));
        }
        Err(why) => answer.unknown = Some(why),
    }
    answer
}

/// The plan of one deployment. What clusters serve is asked where something is rendered for them; the error is a sentence.
async fn previewed(
    hub: &Hub,
    world: &World,
    (namespace, name): (&str, &str),
    earlier: &Earlier,
) -> Result<Preview, String> {
    let known = earlier.secrets(hub, namespace, name).await.map_err(|error| format!("{error:#}"))?;
    loop {
        let preview = Box::pin(preview::preview(&world.ctx, namespace, name, &known)).await;
        let preview = preview.map_err(|failure| failed(hub, &failure))?;
        if !preview.unread.is_empty() {
            let asked = nodes::ask(hub, &world.clusters, &world.ctx, &preview.unread).await;
            asked.map_err(|error| format!("{error:#}"))?;
            continue;
        }
        let learned = world.clusters.learn(hub, &preview.unheard).await;
        if !learned.map_err(|error| format!("{error:#}"))? {
            return match preview.refusal {
                Some(refusal) if is_progress(refusal.reason) => {
                    Err(format!("the operator is not done with what the hub has: {}", refusal.message))
                }
                refusal => Ok(Preview { refusal, ..preview }),
            };
        }
    }
}

fn failed(hub: &Hub, failure: &Failure) -> String {
    match failure {
        Failure::Hub(error) if error.code() == 403 => {
            format!("you may not read on the hub {} what the plan depends on: {error}", hub.url)
        }
        other => other.to_string(),
    }
}

fn of(plan: Foreseen, args: &PlanArgs) -> Plan {
    let Foreseen { pending, details, differences, waits } = plan;
    let waves = details.waves.clone();
    let differences = (!args.short).then_some(Ok(differences));
    let (apps, notes) = joined(Found::of(details), differences);
    Plan::of(&pending, waits, (apps, waves, notes), &args.app)
}

/// Deployments by namespace and name.
type Names = BTreeSet<(String, String)>;
