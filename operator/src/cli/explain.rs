//! Says why the last change of a deployment is refused, and why each app of what runs is on a cluster, or is not, from what was stored with
//! its revision.

use anyhow::{Context as _, anyhow, bail};
use emco_crds::AppContext;
use emco_crds::conditions::{Condition, Conditioned as _, types};
use emco_crds::deployment_intent_group::status::DeploymentIntentGroupStatus;
use emco_crds::deployment_intent_group::view::{Question, ViewOf};
use emco_engine::explain::{self, Considered, Explanation, Verdict};
use emco_engine::text::counted;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, ResourceExt as _};
use serde::Serialize;

use super::args::deployments::{ExplainArgs, PartArgs};
use super::diff::past;
use super::hub::{self, Hub, is_forbidden};
use super::output::{Table, machine};
use super::status::refusal::{failure, is_paused, refusal};
use super::status::tree::note;
use super::stored::ask;
use super::{Outcome, print};

pub mod reach;

/// What is said.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    /// The last change, where it is refused: what follows is what runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<Refused>,
    /// Absent where nothing runs, or that cannot be explained.
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<i64>,
    clusters: Vec<Said>,
    /// Rows that did not fit and were not stored.
    #[serde(skip_serializing_if = "is_zero")]
    left_out: usize,
    /// Parts that are stored no more.
    #[serde(skip_serializing_if = "is_zero")]
    missing: usize,
}

/// A change that is refused.
#[derive(Serialize)]
struct Refused {
    condition: String,
    reason: String,
    message: String,
}

impl Refused {
    fn of(stage: &Condition) -> Self {
        let Condition { type_, reason, message, .. } = stage.clone();
        Self { condition: type_, reason, message }
    }
}

/// One app and one cluster.
#[derive(Serialize)]
struct Said {
    app: String,
    #[serde(flatten)]
    considered: Considered,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// `kubectl emco explain`.
pub async fn run(args: ExplainArgs) -> anyhow::Result<Outcome> {
    let hub = hub::connect(&args.named.hub).await?;
    let (namespace, name) = hub.locate(&args.named.deployment, args.named.namespace.as_deref()).await?;
    let group = hub.deployment(&namespace, &name).await?;
    let status = group.status.unwrap_or_default();
    let (deployment, looked_at) =
        (format!("{namespace}/{name}"), status.observed_generation == group.metadata.generation);
    let refused = refusal(&status).filter(|_| looked_at).map(Refused::of);
    let mut answer = match Box::pin(explained(&hub, &namespace, &name, &status, &args.part)).await {
        Ok(answer) => answer,
        Err(error) if refused.is_some() => {
            eprintln!("warning: what runs is not explained: {error:#}");
            Answer::default()
        }
        Err(error) => return Err(error),
    };
    answer.refused = refused;
    if let Some(revision) = answer.revision.filter(|_| !looked_at) {
        eprintln!(
            "warning: the last change of {deployment} was not looked at yet; this is revision {revision}"
        );
    }
    for remark in remarks(&deployment, &status) {
        eprintln!("note: {remark}");
    }
    match machine(args.output, &answer)? {
        Some(text) => print(&text)?,
        None => print(&text(&answer, &deployment))?,
    }
    let Answer { left_out, missing, .. } = answer;
    if missing > 0 {
        eprintln!(
            "warning: {missing} of the ConfigMaps with the explanation are gone: some clusters are not shown"
        );
    }
    if left_out > 0 {
        let rows = counted(left_out, "row");
        eprintln!("warning: {rows} did not fit into the stored explanation");
    }
    Ok(if answer.refused.is_some() { Outcome::WouldBeRefused } else { Outcome::AsWanted })
}

/// Explains each app of what runs.
async fn explained(
    hub: &Hub,
    namespace: &str,
    name: &str,
    status: &DeploymentIntentGroupStatus,
    part: &PartArgs,
) -> anyhow::Result<Answer> {
    let contexts = past::contexts(hub, namespace, name).await?;
    let running = contexts.iter().find(|context| Some(context.spec.revision) == status.revision);
    let Some(context) = running.or_else(|| contexts.iter().max_by_key(|context| context.spec.revision))
    else {
        bail!(
            "{namespace}/{name} has no revision yet, so nothing is stored of its placement: `kubectl emco status {namespace}/{name}` \
             says what it waits for"
        );
    };
    let revision = context.spec.revision;
    let explanation = read(hub, namespace, context).await?;
    let (left_out, missing) = (explanation.left_out, explanation.missing);
    let clusters = select(explanation, part);
    if clusters.is_empty() {
        bail!("{}", nothing(part, revision, left_out + missing > 0));
    }
    Ok(Answer { refused: None, revision: Some(revision), clusters, left_out, missing })
}

/// Sentences on what was asked for last, where that is not what is explained, or does not do well.
fn remarks(deployment: &str, status: &DeploymentIntentGroupStatus) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(pending) = &status.pending {
        let what = match pending.revision {
            0 => "a removal".to_owned(),
            revision => format!("revision {revision}"),
        };
        remarks.push(format!("{what} waits: `kubectl emco plan {deployment}` shows what it would change"));
    }
    let taken_back = status.rollout.as_ref().is_some_and(|rollout| rollout.taken_back);
    let see = format!("`kubectl emco status {deployment}` says where and why");
    if taken_back && status.is_true(types::STALLED) {
        remarks.push(format!("the last change failed on too many clusters, and was taken back: {see}"));
    } else if is_paused(status) {
        remarks.push(format!("the rollout of the last change is paused: {see}"));
    } else if let Some(failed) = failure(status, types::READY) {
        remarks.push(format!("what runs has failed ({}): {see}", failed.reason));
    }
    remarks.extend(note(status));
    remarks
}

/// The explanation that was stored with a revision, of the operator where the user may not read ConfigMaps.
async fn read(hub: &Hub, namespace: &str, context: &AppContext) -> anyhow::Result<Explanation> {
    let (name, revision) = (context.name_any(), context.spec.revision);
    let Some(names) = &context.spec.explain else {
        bail!("revision {revision} (AppContext {namespace}/{name}) was stored without an explanation");
    };
    let maps = Api::<ConfigMap>::namespaced(hub.client.clone(), namespace);
    let (mut parts, mut lost) = (Vec::new(), 0);
    for map in &names.config_maps {
        let what = format!("{namespace}/{map}");
        let found = match maps.get_opt(map).await {
            Err(error) if is_forbidden(&error) && hub.lender.is_none() => {
                let question =
                    Question { what: ViewOf::Explanation, revision: Some(revision), ..Question::default() };
                let on_hub = (namespace.to_owned(), context.spec.owner.name.clone());
                let answer = ask::question(hub, &on_hub, question).await?;
                return answer.ok_or_else(|| hub.sentence(&error, "read config map", &what));
            }
            found => found.map_err(|error| hub.sentence(&error, "read config map", &what))?,
        };
        match found.and_then(|map| map.binary_data?.remove(explain::KEY)) {
            Some(bytes) => parts.push(bytes.0),
            None => lost += 1,
        }
    }
    if parts.is_empty() {
        bail!(
            "the explanation of revision {revision} is not there: ConfigMap {namespace}/{} is missing; it is written after the \
             clusters had their turn, and with the next revision if it was deleted",
            names.config_maps.first().map_or("", String::as_str)
        );
    }
    let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
    let mut read =
        explain::read(&parts).map_err(|error| anyhow!("ConfigMap of {namespace}/{name}: {error}"))?;
    read.missing = read.missing.max(lost);
    Ok(read)
}

/// The explanation of one revision, in the operator.
pub async fn of_revision(
    hub: &Hub,
    (namespace, name): &(String, String),
    revision: Option<i64>,
) -> anyhow::Result<Explanation> {
    let contexts = past::contexts(hub, namespace, name).await?;
    let context = contexts.iter().find(|context| Some(context.spec.revision) == revision);
    let number = revision.unwrap_or_default();
    let context =
        context.with_context(|| format!("revision {number} of {namespace}/{name} is not stored"))?;
    read(hub, namespace, context).await
}

fn select(explanation: Explanation, part: &PartArgs) -> Vec<Said> {
    let said = |app: String, clusters: Vec<Considered>| {
        clusters.into_iter().map(move |considered| Said { app: app.clone(), considered })
    };
    explanation
        .apps
        .into_iter()
        .flat_map(|app| said(app.app, app.clusters))
        .filter(|said| part.takes(&said.app, &said.considered.cluster))
        .collect()
}

fn nothing(part: &PartArgs, revision: i64, partly: bool) -> String {
    let of = match (part.app.as_slice(), part.cluster.as_slice()) {
        ([], []) => "no cluster".to_owned(),
        ([], clusters) => format!("cluster {}", clusters.join(" or ")),
        (apps, []) => format!("app {}", apps.join(" or ")),
        (apps, clusters) => format!("app {} on cluster {}", apps.join(" or "), clusters.join(" or ")),
    };
    let why = if partly {
        "a part of the explanation is not stored"
    } else {
        "an app or cluster of that name was no candidate when the revision was planned: it does not exist, is newer, or is no \
         cluster of the deployment's logical cloud"
    };
    format!("the explanation of revision {revision} says nothing of {of}: {why}")
}

fn text(answer: &Answer, deployment: &str) -> String {
    let mut text = String::new();
    if let Some(Refused { condition, reason, message }) = &answer.refused {
        text.push_str(&format!(
            "{deployment}: the last change is refused: {condition} is False ({reason}): {message}\n"
        ));
    }
    let Some(revision) = answer.revision else { return text };
    if answer.refused.is_some() {
        text.push_str("\nThis runs:\n");
    }
    let mut table = Table::new(&["APP", "CLUSTER", "VERDICT", "REASON", "NEEDS"]);
    for Said { app, considered } in &answer.clusters {
        let verdict = match considered.verdict {
            Verdict::Chosen => "Chosen",
            Verdict::Rejected => "Rejected",
        };
        let needs = if considered.needs.is_empty() { "-".to_owned() } else { considered.needs.clone() };
        table.row(vec![
            app.clone(),
            considered.cluster.clone(),
            verdict.to_owned(),
            considered.reason.clone(),
            needs,
        ]);
    }
    text + &format!("{deployment}, revision {revision}\n{}", table.text())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn status(more: &Value) -> DeploymentIntentGroupStatus {
        let mut status = json!({"revision": 2, "state": "Updated"});
        status.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(status).unwrap()
    }

    fn condition(type_: &str, status: &str, reason: &str) -> Value {
        json!({"type": type_, "status": status, "reason": reason, "message": "app web: no cluster matches",
            "lastTransitionTime": "2026-11-21T07:00:00Z"})
    }

    fn answer(refused: Option<&DeploymentIntentGroupStatus>, revision: Option<i64>) -> Answer {
        let considered = Considered {
            cluster: "acme/berlin".to_owned(),
            verdict: Verdict::Chosen,
            reason: "allOf".to_owned(),
            needs: String::new(),
        };
        let clusters = vec![Said { app: "web".to_owned(), considered }];
        let refused = refused.and_then(refusal).map(Refused::of);
        Answer { refused, revision, clusters, ..Answer::default() }
    }

    #[test]
    fn a_refused_placement_is_said_before_what_runs() {
        let runs = "shop/till, revision 2\nAPP   CLUSTER       VERDICT   REASON   NEEDS\nweb   acme/berlin   Chosen    allOf    -\n";
        assert_eq!(text(&answer(None, Some(2)), "shop/till"), runs);
        let placed = condition("Placed", "False", "NoClusterMatches");
        let refused = status(&json!({"conditions": [placed]}));
        let first = "shop/till: the last change is refused: Placed is False (NoClusterMatches): app web: no cluster matches\n";
        let both = answer(Some(&refused), Some(2));
        assert_eq!(text(&both, "shop/till"), format!("{first}\nThis runs:\n{runs}"));
        assert_eq!(text(&answer(Some(&refused), None), "shop/till"), first, "nothing ran yet");
        let json = serde_json::to_value(&both).unwrap();
        assert_eq!(json["refused"]["reason"], "NoClusterMatches");
        assert_eq!((&json["revision"], &json["clusters"][0]["verdict"]), (&json!(2), &json!("Chosen")));
    }

    #[test]
    fn what_waits_fails_or_was_taken_back_is_pointed_to() {
        let said = |more: &Value| remarks("shop/till", &status(more)).join("\n");
        assert_eq!(said(&json!({})), "");
        let pending =
            json!({"digest": "sha256:0", "shortDigest": "0", "revision": 3, "requires": "Approval"});
        let waits = said(&json!({"pending": pending}));
        assert!(waits.starts_with("revision 3 waits: `kubectl emco plan shop/till`"), "{waits}");
        let late = condition("Ready", "False", "ProgressDeadlineExceeded");
        let failed = said(&json!({"state": "UpdateFailed", "conditions": [late]}));
        assert!(failed.starts_with("what runs has failed (ProgressDeadlineExceeded): "), "{failed}");
        let rollout = json!({"inputsDigest": "sha256:0", "wave": "canary", "place": 1, "waves": 2, "clusters": 1, "done": 1, "failed": 1,
            "takenBack": true});
        let stalled = condition("Stalled", "True", "RolloutPaused");
        let back = said(&json!({"rollout": rollout, "conditions": [stalled]}));
        assert!(back.starts_with("the last change failed on too many clusters, and was taken"), "{back}");
        let deployed = condition("Deployed", "False", "RolloutPaused");
        let paused = said(&json!({"conditions": [deployed]}));
        assert!(paused.starts_with("the rollout of the last change is paused: "), "{paused}");
    }
}
