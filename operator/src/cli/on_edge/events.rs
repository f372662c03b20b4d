//! Lists the Events of a deployment's objects, and of what they made, on its clusters.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::bail;
use emco_crds::names::label;
use emco_engine::identity::{ClusterId, split_api_version};
use emco_engine::path::{fault, is_dns_subdomain};
use futures::stream::{self, StreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::api::ListParams;
use kube::core::GroupVersionKind;
use kube::discovery::{Scope, pinned_kind};
use kube::{Api, Client, ResourceExt as _};
use serde::Serialize;

use super::account;
use super::place::{self, Placed};
use crate::cli::args::deployments::EventsArgs;
use crate::cli::diff::edge;
use crate::cli::hub::{self, Hub};
use crate::cli::output::{Table, age, machine, printable};
use crate::cli::{Misused, Outcome, print};

/// Clusters that are asked at the same time.
const AT_ONCE: usize = 8;
/// For one cluster.
const PATIENCE: Duration = Duration::from_secs(60);
/// Events of one cluster: the page that is read.
const MOST_EVENTS: u32 = 2_000;
/// Objects of one cluster whose owner is looked for.
const MOST_OBJECTS: usize = 300;
/// Owners above an object: a Pod has a `ReplicaSet` has a Deployment has an operator's resource.
const DEPTH: usize = 5;

/// One Event.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Said {
    cluster: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<Timestamp>,
    r#type: String,
    reason: String,
    /// `Pod/web-0`
    object: String,
    count: i32,
    message: String,
}

/// `kubectl emco events`.
pub async fn run(args: EventsArgs) -> anyhow::Result<Outcome> {
    let hub = hub::connect(&args.named.hub).await?;
    let placed = place::find(&hub, &args.named).await?;
    let mut asked = Vec::new();
    for named in &args.cluster {
        asked.push(placed.one(Some(named))?.0.clone());
    }
    if asked.is_empty() {
        asked.extend(placed.clusters.keys().cloned());
    }
    if args.account.edge_context.is_some() && asked.len() > 1 {
        return Err(Misused("--edge-context is for one cluster: name it with --cluster".to_owned()).into());
    }
    let answers: Vec<(ClusterId, anyhow::Result<Vec<Said>>)> = stream::iter(asked)
        .map(|id| {
            let (hub, placed, args) = (&hub, &placed, &args);
            Box::pin(async move {
                let answer = tokio::time::timeout(PATIENCE, on_cluster(hub, placed, &id, args)).await;
                let late = || bail!("the cluster does not answer within {} s", PATIENCE.as_secs());
                (id, answer.unwrap_or_else(|_| late()))
            })
        })
        .buffered(AT_ONCE)
        .collect()
        .await;
    let (mut events, mut failed, all) = (Vec::new(), Vec::new(), answers.len());
    for (id, answer) in answers {
        match answer {
            Ok(found) => events.extend(found),
            Err(error) => failed.push(format!("{id}: {error:#}")),
        }
    }
    // One cluster that cannot be asked is the whole question.
    if all == 1
        && let Some(error) = failed.first()
    {
        bail!("{error}");
    }
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

async fn on_cluster(
    hub: &Hub,
    placed: &Placed,
    id: &ClusterId,
    args: &EventsArgs,
) -> anyhow::Result<Vec<Said>> {
    let uid = placed.clusters.get(id).and_then(Option::as_deref);
    let client = account::open(hub, id, uid, &args.account).await?.client;
    let mut params = ListParams::default().limit(MOST_EVENTS);
    if args.warnings {
        params = params.fields("type=Warning");
    }
    let api = Api::<Event>::namespaced(client.clone(), &placed.namespace);
    let list = api.list(&params).await.map_err(|error| edge::failed(&error))?;
    if list.metadata.continue_.as_ref().is_some_and(|token| !token.is_empty()) {
        eprintln!("warning: {id} has more than {MOST_EVENTS} Events in namespace {}", placed.namespace);
    }
    let mut family = Family { client, placed, known: BTreeMap::new() };
    let mut events = Vec::new();
    for event in list.items {
        let about = &event.involved_object;
        let part = |text: &Option<String>| text.clone().unwrap_or_default();
        let one =
            One { api_version: part(&about.api_version), kind: part(&about.kind), name: part(&about.name) };
        if family.has(one).await? {
            events.push(said(id, &event));
        }
    }
    if family.known.len() >= MOST_OBJECTS {
        eprintln!(
            "warning: on {id}, the Events of {MOST_OBJECTS} objects were looked at, and there are more"
        );
    }
    Ok(events)
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

/// An object of the deployment's namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct One {
    api_version: String,
    kind: String,
    name: String,
}

impl One {
    /// Whether it can be of a deployment. What an Event is about, whoever wrote it says, and it becomes an address: Events about Nodes have
    /// no version, and a name may be made up to lead elsewhere.
    fn can_be_asked_for(&self) -> bool {
        let (group, version) = split_api_version(&self.api_version);
        let is_word = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric());
        let is_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b':');
        (group.is_empty() || is_dns_subdomain(group))
            && is_word(version)
            && is_word(&self.kind)
            && fault(&self.name).is_none()
            && self.name.bytes().all(is_name)
    }
}

/// Whether objects are the deployment's, or were made by what is.
struct Family<'a> {
    client: Client,
    placed: &'a Placed,
    known: BTreeMap<One, bool>,
}

impl Family<'_> {
    async fn has(&mut self, one: One) -> anyhow::Result<bool> {
        if !one.can_be_asked_for() {
            return Ok(false);
        }
        if let Some(known) = self.known.get(&one) {
            return Ok(*known);
        }
        if self.known.len() >= MOST_OBJECTS {
            return Ok(false);
        }
        let mut path = vec![one];
        let mut ours = false;
        while let Some(last) = path.last().filter(|_| path.len() <= DEPTH) {
            if let Some(known) = self.known.get(last) {
                ours = *known;
                break;
            }
            match self.owner(last).await? {
                Above::Deployment => {
                    ours = true;
                    break;
                }
                Above::Object(owner) => path.push(owner),
                Above::Nothing => break,
            }
        }
        for one in path {
            self.known.insert(one, ours);
        }
        Ok(ours)
    }

    /// Who made an object.
    async fn owner(&self, one: &One) -> anyhow::Result<Above> {
        if !one.can_be_asked_for() {
            return Ok(Above::Nothing);
        }
        let (group, version) = split_api_version(&one.api_version);
        let kind = GroupVersionKind::gvk(group, version, &one.kind);
        let resource = match pinned_kind(&self.client, &kind).await {
            Ok((resource, capabilities)) if capabilities.scope == Scope::Namespaced => resource,
            Ok(_) | Err(kube::Error::Discovery(_)) => return Ok(Above::Nothing),
            Err(kube::Error::Api(status)) if status.code < 500 => return Ok(Above::Nothing),
            Err(error) => return Err(edge::failed(&error)),
        };
        let api: Api<kube::api::DynamicObject> =
            Api::namespaced_with(self.client.clone(), &self.placed.namespace, &resource);
        let object = match api.get_metadata_opt(&one.name).await {
            Ok(Some(object)) => object,
            // What is gone has no owner any more; what may not be read is not shown.
            Ok(None) => return Ok(Above::Nothing),
            Err(kube::Error::Api(status)) if status.code < 500 => return Ok(Above::Nothing),
            Err(error) => return Err(edge::failed(&error)),
        };
        if object.labels().get(label::OWNER) == Some(&self.placed.hash) {
            return Ok(Above::Deployment);
        }
        let owners = object.owner_references();
        let above = owners.iter().find(|owner| owner.controller == Some(true)).or_else(|| owners.first());
        Ok(above.map_or(Above::Nothing, |owner| {
            Above::Object(One {
                api_version: owner.api_version.clone(),
                kind: owner.kind.clone(),
                name: owner.name.clone(),
            })
        }))
    }
}

/// Who made an object.
enum Above {
    /// It carries the deployment's label.
    Deployment,
    /// Another object.
    Object(One),
    /// No owner that can be read.
    Nothing,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_event_is_about_leads_to_no_other_address() {
        let one = |version: &str, kind: &str, name: &str| {
            let [api_version, kind, name] = [version, kind, name].map(str::to_owned);
            One { api_version, kind, name }.can_be_asked_for()
        };
        assert!(one("v1", "Pod", "web-0") && one("apps/v1", "Deployment", "system:web.x_y"));
        assert!(!one("", "Node", "worker"), "the kubelet says no version");
        for name in ["", "..", "?watch=true", "x/proxy/metrics", "%2e%2e", "a b", "a#b", "a\nb"] {
            assert!(!one("v1", "Pod", name), "{name:?}");
        }
        assert!(!one("../v1", "Pod", "a") && !one("v1", "Po?d", "a") && !one("a/b/c", "Pod", "a"));
    }
}
