//! Shows the plan of a deployment that waits, or says that nothing would change, or why a change is refused.

use std::time::Duration;

use anyhow::{anyhow, bail};
use emco_crds::DeploymentIntentGroup;
use emco_crds::conditions::{Conditioned as _, types};
use emco_crds::deployment_intent_group::DesiredState;
use emco_crds::deployment_intent_group::status::{
    ChangeCounts, DeploymentIntentGroupStatus, Pending, PendingRequires,
};
use emco_crds::reasons::{DeploymentIntentGroupReason as Reason, is_progress};
use emco_engine::rollout::Outline;
use kube::Api;
use serde::Serialize;

use super::args::deployments::PlanArgs;
use super::hub::{self, Hub};
use super::output::machine;
use super::status::refusal::{self, stopped};
use super::{Outcome, print, pulse, watched};

pub mod files;
pub mod read;
mod show;

use read::App;

/// What carrying out the plan would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
enum Verdict {
    /// What runs is as planned.
    Nothing,
    /// Something would change.
    Changes,
    /// The newest change is refused, or clusters would refuse it.
    Refused,
    /// What is in files cannot be planned here.
    Unknown,
}

/// What is said.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    deployment: String,
    verdict: Verdict,
    /// The revision that runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    runs: Option<i64>,
    /// Why the newest change is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<Refusal>,
    /// Why files are not planned.
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown: Option<String>,
    /// What waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<Plan>,
}

#[derive(Debug, Serialize)]
struct Refusal {
    condition: String,
    reason: String,
    message: String,
}

/// A plan that waits.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Plan {
    /// 0: everything would be removed.
    revision: i64,
    digest: String,
    requires: PendingRequires,
    /// Why it waits, and what helps.
    waits: String,
    summary: String,
    clusters: ChangeCounts,
    resources: ChangeCounts,
    /// Rights that the account of the logical cloud gains by it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gains: Vec<String>,
    /// What `status.pending` says of each app, where there is nothing more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    brief: Vec<emco_crds::deployment_intent_group::status::PendingApp>,
    /// By variant, with every object.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    apps: Vec<App>,
    /// The waves that it would reach its clusters in; none: all at once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waves: Vec<Outline>,
    /// What is not shown, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

/// `kubectl emco plan`.
pub async fn run(args: PlanArgs) -> anyhow::Result<Outcome> {
    let Some(deployment) = &args.deployment else { return Box::pin(files::run(args)).await };
    let hub = hub::connect(&args.hub).await?;
    let (namespace, name) = hub.locate(deployment, args.namespace.as_deref()).await?;
    hub.deployment(&namespace, &name).await?;
    let group = looked_at(&hub, &namespace, &name, args.timeout).await?;
    let status = group.status.clone().unwrap_or_default();
    let refusal = refusal(&status);
    let plan = match &status.pending {
        Some(pending) => Some(plan(&hub, &namespace, &status, pending, &args).await?),
        None => None,
    };
    let verdict = match (&refusal, &plan) {
        (Some(_), _) => Verdict::Refused,
        (None, Some(_)) if pending_is_refused(&status) => Verdict::Refused,
        (None, Some(_)) => Verdict::Changes,
        (None, None) => Verdict::Nothing,
    };
    let (deployment, runs) = (format!("{namespace}/{name}"), runs(&status));
    let answer = Answer { deployment, verdict, runs, refusal, unknown: None, plan };
    match machine(args.output, &answer)? {
        Some(text) => print(&text)?,
        None => print(&show::text(&answer))?,
    }
    outcome(verdict)
}

/// How the command ends.
fn outcome(verdict: Verdict) -> anyhow::Result<Outcome> {
    match verdict {
        Verdict::Nothing => Ok(Outcome::AsWanted),
        Verdict::Changes => Ok(Outcome::WouldChange),
        Verdict::Refused => Ok(Outcome::WouldBeRefused),
        Verdict::Unknown => Err(anyhow!("not everything could be planned")),
    }
}

/// The deployment once the operator has looked at its last change.
async fn looked_at(
    hub: &Hub,
    namespace: &str,
    name: &str,
    limit: Duration,
) -> anyhow::Result<DeploymentIntentGroup> {
    let api = Api::<DeploymentIntentGroup>::namespaced(hub.client.clone(), namespace);
    let judge = |group: Option<&DeploymentIntentGroup>| match group {
        None => Ok(None),
        Some(group) => judged(group).map(|()| Some(group.clone())),
    };
    match watched::until(api, name, limit, "", judge).await? {
        Ok(Some(group)) => Ok(group),
        Ok(None) => bail!("deployment intent group {namespace}/{name} was deleted meanwhile"),
        Err(why) => {
            let pulse = pulse::read(hub).await.pulse;
            let why = [why, pulse.message].into_iter().find(|why| !why.is_empty());
            let why = why.unwrap_or_else(|| "it may be busy with others".to_owned());
            let seconds = limit.as_secs();
            Err(anyhow!(
                "the operator has not planned the last change of {namespace}/{name} within {seconds} s: {why}"
            ))
        }
    }
}

/// Whether the operator has come to an end with the last change of the deployment; the error is what it says until then.
fn judged(group: &DeploymentIntentGroup) -> Result<(), String> {
    let status = group.status.clone().unwrap_or_default();
    if let Some(failing) = status.failing(group.metadata.generation) {
        return Err(format!("Ready=False {}: {}", failing.reason, failing.message));
    }
    if status.observed_generation != group.metadata.generation {
        return Err(String::new());
    }
    if let Some(stage) = stopped(&status).find(|stage| is_progress(&stage.reason)) {
        return Err(format!("{}=False {}: {}", stage.type_, stage.reason, stage.message));
    }
    let ends =
        group.metadata.deletion_timestamp.is_some() || group.spec.desired_state == DesiredState::Terminated;
    if ends || status.pending.is_some() || refusal(&status).is_some() || runs(&status).is_some() {
        return Ok(());
    }
    let ready = status.condition(types::READY);
    Err(ready.map(|ready| format!("Ready=False {}: {}", ready.reason, ready.message)).unwrap_or_default())
}

/// The revision that runs: the status keeps its number when it does no more.
fn runs(status: &DeploymentIntentGroupStatus) -> Option<i64> {
    let gone = [Reason::Planned.as_str(), "Terminated"];
    let ready = status.condition(types::READY);
    let gone = ready.is_some_and(|ready| ready.status == "False" && gone.contains(&ready.reason.as_str()));
    status.revision.filter(|_| !gone)
}

/// Whether clusters would refuse something of the plan.
fn pending_is_refused(status: &DeploymentIntentGroupStatus) -> bool {
    status.pending.iter().flat_map(|pending| &pending.apps).any(|app| !app.refused.is_empty())
}

/// Why the newest change is refused.
fn refusal(status: &DeploymentIntentGroupStatus) -> Option<Refusal> {
    let refused = refusal::refusal(status)?;
    Some(Refusal {
        condition: refused.type_.clone(),
        reason: refused.reason.clone(),
        message: refused.message.clone(),
    })
}

async fn plan(
    hub: &Hub,
    namespace: &str,
    status: &DeploymentIntentGroupStatus,
    pending: &Pending,
    args: &PlanArgs,
) -> anyhow::Result<Plan> {
    let (mut apps, mut notes, mut waves) = (Vec::new(), Vec::new(), Vec::new());
    match &pending.details {
        Some(details) => match read::details(hub, namespace, details, args.timeout).await? {
            Ok(found) => {
                let differences = if args.short { None } else { Some(read::differences(hub, &found).await?) };
                waves = found.waves().to_vec();
                (apps, notes) = read::joined(found, differences);
            }
            Err(note) => notes.push(note),
        },
        None => notes.push("the operator did not write down more".to_owned()),
    }
    Ok(Plan::of(pending, waits(status), (apps, waves, notes), &args.app))
}

impl Plan {
    /// What is said of a plan: all of it, or what its status has.
    fn of(
        pending: &Pending,
        waits: String,
        (mut apps, waves, notes): (Vec<App>, Vec<Outline>, Vec<String>),
        only: &[String],
    ) -> Self {
        let asked = |app: &str| only.is_empty() || only.iter().any(|one| one == app);
        apps.retain(|app| asked(&app.name));
        let brief = if apps.is_empty() { pending.apps.clone() } else { Vec::new() };
        let brief = brief.into_iter().filter(|app| asked(&app.name)).collect();
        Self {
            revision: pending.revision,
            digest: pending.digest.clone(),
            requires: pending.requires,
            waits,
            summary: pending.summary.clone(),
            clusters: pending.clusters,
            resources: pending.resources,
            gains: pending.gains.clone(),
            brief,
            apps,
            waves,
            notes,
        }
    }
}

/// Why a plan waits: the condition that says so.
pub fn waits(status: &DeploymentIntentGroupStatus) -> String {
    let approved = status.condition(types::APPROVED).filter(|approved| approved.status == "False");
    let said = approved.or_else(|| status.condition(types::READY));
    said.map(|said| said.message.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
