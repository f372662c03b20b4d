//! Says why each app of a deployment is on a cluster, or is not, from what was stored with its revision.

use anyhow::{anyhow, bail};
use emco_crds::AppContext;
use emco_engine::explain::{self, Considered, Explanation, Verdict};
use emco_engine::text::counted;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, ResourceExt as _};
use serde::Serialize;

use super::args::deployments::{ExplainArgs, PartArgs};
use super::diff::past;
use super::hub::{self, Hub};
use super::output::{Table, machine};
use super::status::tree::note;
use super::{Outcome, print};

pub mod reach;

/// What is said.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    revision: i64,
    clusters: Vec<Said>,
    /// Rows that did not fit and were not stored.
    #[serde(skip_serializing_if = "is_zero")]
    left_out: usize,
    /// Parts that are stored no more.
    #[serde(skip_serializing_if = "is_zero")]
    missing: usize,
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
    let contexts = past::contexts(&hub, &namespace, &name).await?;
    let running = contexts.iter().find(|context| Some(context.spec.revision) == status.revision);
    let Some(context) = running.or_else(|| contexts.iter().max_by_key(|context| context.spec.revision))
    else {
        bail!(
            "{namespace}/{name} has no revision yet, so nothing is stored of its placement: `kubectl emco status {namespace}/{name}` \
             says what it waits for"
        );
    };
    let revision = context.spec.revision;
    if status.observed_generation != group.metadata.generation {
        eprintln!(
            "warning: the last change of {namespace}/{name} was not looked at yet; this is revision {revision}"
        );
    }
    if let Some(note) = note(&status) {
        eprintln!("note: {note}");
    }
    let explanation = read(&hub, &namespace, context).await?;
    let (left_out, missing) = (explanation.left_out, explanation.missing);
    let clusters = select(explanation, &args.part);
    if clusters.is_empty() {
        bail!("{}", nothing(&args.part, revision, left_out + missing > 0));
    }
    let answer = Answer { revision, clusters, left_out, missing };
    match machine(args.output, &answer)? {
        Some(text) => print(&text)?,
        None => print(&text(&answer, &namespace, &name))?,
    }
    if missing > 0 {
        eprintln!(
            "warning: {missing} of the ConfigMaps with the explanation are gone: some clusters are not shown"
        );
    }
    if left_out > 0 {
        let rows = counted(left_out, "row");
        eprintln!("warning: {rows} did not fit into the stored explanation");
    }
    Ok(Outcome::AsWanted)
}

async fn read(hub: &Hub, namespace: &str, context: &AppContext) -> anyhow::Result<Explanation> {
    let (name, revision) = (context.name_any(), context.spec.revision);
    let Some(names) = &context.spec.explain else {
        bail!("revision {revision} (AppContext {namespace}/{name}) was stored without an explanation");
    };
    let maps = Api::<ConfigMap>::namespaced(hub.client.clone(), namespace);
    let (mut parts, mut lost) = (Vec::new(), 0);
    for map in &names.config_maps {
        let what = format!("{namespace}/{map}");
        let found =
            maps.get_opt(map).await.map_err(|error| hub.sentence(&error, "read config map", &what))?;
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

fn text(answer: &Answer, namespace: &str, name: &str) -> String {
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
    format!("{namespace}/{name}, revision {}\n{}", answer.revision, table.text())
}
