//! Lists the Events of a deployment's objects, and of what they made, on its clusters.

use std::time::Duration;

use anyhow::{anyhow, bail};
use emco_crds::deployment_intent_group::view::{Question, ViewOf};
use emco_engine::identity::ClusterId;
use futures::stream::{self, StreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::ListParams;
use serde::{Deserialize, Serialize};

use super::account::{self, NoCredential};
use super::family::{Family, MOST_OBJECTS, One};
use super::place::{self, Placed};
use crate::cli::args::deployments::{AccountArgs, EventsArgs};
use crate::cli::diff::edge;
use crate::cli::hub::{self, Hub};
use crate::cli::output::{Table, age, machine, printable};
use crate::cli::stored::ask;
use crate::cli::{Misused, Outcome, print};

/// Clusters that are asked at the same time.
const AT_ONCE: usize = 8;
/// For one cluster.
const PATIENCE: Duration = Duration::from_secs(60);
/// Events of one cluster: the page that is read.
const MOST_EVENTS: u32 = 2_000;

/// One Event.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Said {
    cluster: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last: Option<Timestamp>,
    r#type: String,
    reason: String,
    /// `Pod/web-0`
    object: String,
    count: i32,
    message: String,
}

/// Events of one cluster.
#[derive(Default, Serialize, Deserialize)]
pub struct Found {
    events: Vec<Said>,
    /// Sentences on what is left out.
    notes: Vec<String>,
}

/// Events of one cluster as the operator hands them on.
#[derive(Serialize, Deserialize)]
pub struct Handed {
    cluster: String,
    found: Found,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

type Answer = (ClusterId, anyhow::Result<Found>);

/// `kubectl emco events`.
pub async fn run(args: EventsArgs) -> anyhow::Result<Outcome> {
    let hub = hub::connect(&args.named.hub).await?;
    let placed = place::find(&hub, &args.named).await?;
    let asked = selected(&placed, &args.cluster)?;
    if args.account.edge_context.is_some() && asked.len() > 1 {
        return Err(Misused("--edge-context is for one cluster: name it with --cluster".to_owned()).into());
    }
    let mut answers = of_clusters(&hub, &placed, asked, (&args.account, args.warnings)).await;
    through_operator(&hub, &placed, &mut answers).await?;
    let (mut events, mut failed, all) = (Vec::new(), Vec::new(), answers.len());
    for (id, answer) in answers {
        match answer {
            Ok(found) => {
                for note in &found.notes {
                    eprintln!("warning: {}", printable(note));
                }
                events.extend(found.events);
            }
            Err(error) => failed.push(format!("{id}: {error:#}")),
        }
    }
    // One cluster that cannot be asked is the whole question.
    if all == 1
        && let Some(error) = failed.first()
    {
        bail!("{error}");
    }
    events.retain(|event| !args.warnings || event.r#type == "Warning");
    events.sort_by(|a, b| (a.last, &a.cluster).cmp(&(b.last, &b.cluster)));
    match machine(args.output, &events)? {
        Some(text) => print(&text)?,
        None if events.is_empty() => eprintln!("no Events of {}", placed.said),
        None => print(&text(&events))?,
    }
    for error in &failed {
        eprintln!("warning: {}", printable(error));
    }
    Ok(if failed.is_empty() { Outcome::AsWanted } else { Outcome::NotAsWanted })
}

/// The clusters of these names; without names, all of the deployment.
pub fn selected(placed: &Placed, named: &[String]) -> anyhow::Result<Vec<ClusterId>> {
    if named.is_empty() {
        return Ok(placed.clusters.keys().cloned().collect());
    }
    named.iter().map(|named| Ok(placed.one(Some(named))?.0.clone())).collect()
}

/// Asks clusters.
async fn of_clusters(
    hub: &Hub,
    placed: &Placed,
    asked: Vec<ClusterId>,
    how: (&AccountArgs, bool),
) -> Vec<Answer> {
    stream::iter(asked)
        .map(|id| {
            Box::pin(async move {
                let answer = tokio::time::timeout(PATIENCE, on_cluster(hub, placed, &id, how)).await;
                let late = || bail!("the cluster does not answer within {} s", PATIENCE.as_secs());
                (id, answer.unwrap_or_else(|_| late()))
            })
        })
        .buffered(AT_ONCE)
        .collect()
        .await
}

/// The operator's answer to a member.
pub async fn handed(hub: &Hub, placed: &Placed, asked: Vec<ClusterId>) -> Vec<Handed> {
    let answers = of_clusters(hub, placed, asked, (&AccountArgs::default(), false)).await;
    let handed = |(id, answer): Answer| {
        let error = answer.as_ref().err().map(|error| format!("{error:#}"));
        Handed { cluster: id.to_string(), found: answer.unwrap_or_default(), error }
    };
    answers.into_iter().map(handed).collect()
}

/// Has the operator ask the clusters whose credentials the user may not read, where the user may ask for that.
async fn through_operator(hub: &Hub, placed: &Placed, answers: &mut [Answer]) -> anyhow::Result<()> {
    let is_refused =
        |answer: &anyhow::Result<Found>| answer.as_ref().err().is_some_and(anyhow::Error::is::<NoCredential>);
    let refused = answers.iter().filter(|(_, answer)| is_refused(answer));
    let clusters: Vec<String> = refused.map(|(id, _)| id.to_string()).collect();
    if clusters.is_empty() {
        return Ok(());
    }
    let question = Question { what: ViewOf::Events, clusters, ..Question::default() };
    let Some(told) = ask::question::<Vec<Handed>>(hub, &placed.on_hub, question).await? else {
        return Ok(());
    };
    for Handed { cluster, found, error } in told {
        let Some((_, answer)) = answers.iter_mut().find(|(id, _)| id.as_str() == cluster) else { continue };
        *answer = error.map_or_else(|| Ok(found), |error| Err(anyhow!(error)));
    }
    Ok(())
}

async fn on_cluster(
    hub: &Hub,
    placed: &Placed,
    id: &ClusterId,
    (account, warnings): (&AccountArgs, bool),
) -> anyhow::Result<Found> {
    let uid = placed.clusters.get(id).and_then(Option::as_deref);
    let client = account::open(hub, id, uid, account).await?.client;
    let mut params = ListParams::default().limit(MOST_EVENTS);
    if warnings {
        params = params.fields("type=Warning");
    }
    let api = Api::<Event>::namespaced(client.clone(), &placed.namespace);
    let list = api.list(&params).await.map_err(|error| edge::failed(&error))?;
    let mut found = Found::default();
    if list.metadata.continue_.as_ref().is_some_and(|token| !token.is_empty()) {
        let there = &placed.namespace;
        found.notes.push(format!("{id} has more than {MOST_EVENTS} Events in namespace {there}"));
    }
    let mut family = Family::of(client, placed);
    for event in list.items {
        let about = &event.involved_object;
        let part = |text: &Option<String>| text.clone().unwrap_or_default();
        let one =
            One { api_version: part(&about.api_version), kind: part(&about.kind), name: part(&about.name) };
        if family.has(one).await? {
            found.events.push(said(id, &event));
        }
    }
    if family.is_full() {
        let looked = format!("the Events of {MOST_OBJECTS} objects were looked at, and there are more");
        found.notes.push(format!("on {id}, {looked}"));
    }
    Ok(found)
}

fn said(id: &ClusterId, event: &Event) -> Said {
    let series = event.series.as_ref();
    let last = series
        .and_then(|series| series.last_observed_time.as_ref().map(|time| time.0))
        .or_else(|| event.last_timestamp.as_ref().map(|time| time.0))
        .or_else(|| event.event_time.as_ref().map(|time| time.0));
    let about = &event.involved_object;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    Said {
        cluster: id.to_string(),
        last,
        r#type: text(&event.type_),
        reason: text(&event.reason),
        object: format!("{}/{}", text(&about.kind), text(&about.name)),
        count: series.and_then(|series| series.count).or(event.count).unwrap_or(1),
        message: text(&event.message),
    }
}

fn text(events: &[Said]) -> String {
    let mut table = Table::new(&["CLUSTER", "LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]);
    let now = Timestamp::now();
    for event in events {
        let times = if event.count > 1 { format!(" (x{})", event.count) } else { String::new() };
        table.row(vec![
            event.cluster.clone(),
            format!("{}{times}", age(event.last, now)),
            event.r#type.clone(),
            event.reason.clone(),
            event.object.clone(),
            event.message.trim().replace('\n', " "),
        ]);
    }
    table.text()
}
