//! Names the first objects of a row that are not ready, with the cause, and the first Pod's where one may be looked at.
//!
//! Nothing is named within the first seconds, when most objects are not ready. Afterwards, names and causes change in the row
//! at most every few seconds: a status is written for them, and counters of replicas tick.

use std::time::Duration;

use emco_crds::sync_shard::status::RowUnready;
use emco_engine::health::pods;
use emco_engine::identity::Identity;
use emco_engine::selector::{FieldSelector, LabelSelector};
use serde_json::Value;
use tokio::time::Instant;

use super::super::edge::Session;
use super::super::errors::cut;
use super::Job;
use super::desired::Item;
use super::row::{self, Facts};
use crate::api::{ApiError, Method, Request};

/// Objects named.
const MOST: usize = 3;
/// An object is named once it has not been ready for this time.
const GRACE: Duration = Duration::from_secs(3);
/// Between two changes of what is named while the same objects are not ready.
const SETTLE: Duration = Duration::from_secs(5);
/// Between the first two looks at Pods; doubles.
const LOOK_FIRST: Duration = Duration::from_secs(10);
/// Between two later looks.
const LOOK_LAST: Duration = Duration::from_mins(5);
/// Pods, and Events, of one look.
const PAGE: &str = "20";

/// An object that is not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unready {
    pub app: String,
    pub id: Identity,
    /// UID of the live object; none where it is not there.
    pub uid: Option<String>,
    /// What it says of itself.
    pub why: String,
    /// Label selector of its Pods, of a workload.
    pub selector: Option<LabelSelector>,
}

/// What is remembered from pass to pass. All of it may be lost: the row says what was named.
#[derive(Default)]
pub(super) struct Naming {
    /// Since when something is not ready.
    since: Option<Instant>,
    /// When what is named changed last.
    changed: Option<Instant>,
    /// The last look at Pods.
    look: Option<PodLook>,
}

/// A look at the Pods of one workload.
struct PodLook {
    of: Identity,
    at: Instant,
    pause: Duration,
    cause: Option<String>,
}

/// An object of an app that is not ready.
pub(super) fn unready(item: &Item, uid: Option<String>, why: &str) -> Unready {
    let selector = item.manifest().and_then(|manifest| selector(&item.id, &manifest.json));
    Unready { app: item.app.to_string(), id: (*item.id).clone(), uid, why: why.to_owned(), selector }
}

impl Facts {
    /// Records an object that is not ready; the first few are kept. The first workload is always one of them, since its Pods
    /// tell the cause: what comes before it in the order of installation, such as claims, often waits for those Pods.
    pub(super) fn not_ready(&mut self, id: &Identity, unready: impl FnOnce() -> Unready) {
        if self.unready.len() < MOST {
            self.unready.push(unready());
        } else if has_pods(id)
            && !self.unready.iter().any(|kept| has_pods(&kept.id))
            && let Some(last) = self.unready.last_mut()
        {
            *last = unready();
        }
    }
}

/// Whether Pods of a kind are looked at.
fn has_pods(id: &Identity) -> bool {
    matches!(
        (id.group.as_str(), id.kind.as_str()),
        ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet") | ("batch", "Job")
    )
}

/// The label selector of a workload's Pods; of a Job its controller's own label.
fn selector(id: &Identity, manifest: &Value) -> Option<LabelSelector> {
    if !has_pods(id) {
        return None;
    }
    if id.kind == "Job" {
        return Some(LabelSelector::is("batch.kubernetes.io/job-name", &id.name));
    }
    let selector = manifest.pointer("/spec/selector")?;
    let labels = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let labels = labels.filter_map(|(key, value)| Some(LabelSelector::is(key, value.as_str()?)));
    let expressions = selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten();
    // An expression that is left out would make Pods of others the workload's.
    let expressions: Vec<LabelSelector> = expressions.map(requirement).collect::<Option<_>>()?;
    labels.chain(expressions).reduce(|all, one| all.and(&one)).filter(|all| all.fault().is_none())
}

/// One of `matchExpressions`, as a query writes it.
fn requirement(expression: &Value) -> Option<LabelSelector> {
    let text = |key: &str| expression.get(key).and_then(Value::as_str);
    let key = text("key")?;
    let values = || {
        let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
        values.filter_map(Value::as_str)
    };
    match text("operator")? {
        "In" => Some(LabelSelector::among(key, values())),
        "NotIn" => Some(LabelSelector::not_among(key, values())),
        "Exists" => Some(LabelSelector::has(key)),
        "DoesNotExist" => Some(LabelSelector::lacks(key)),
        _ => None,
    }
}

impl Job {
    /// Names what is not ready in the facts of a pass, and asks for the pass in which more can be said.
    pub(super) async fn name_unready(&mut self, session: &Session, facts: &mut Facts) {
        if facts.keep {
            return;
        }
        if facts.unready.is_empty() {
            facts.named = Some(Vec::new());
            self.memory.naming = Naming::default();
            return;
        }
        let now = Instant::now();
        if let Some(left) = row::until_stuck(self) {
            facts.wake_at(now + left);
        }
        let since = *self.memory.naming.since.get_or_insert(now);
        // What the row names already was not ready before this process began.
        let known = !self.memory.status.unready.is_empty();
        if !known && now.duration_since(since) < GRACE {
            facts.wake_at(since + GRACE);
            return;
        }
        let looked_at =
            facts.unready.iter().position(|unready| unready.uid.is_some() && unready.selector.is_some());
        let cause = match looked_at {
            Some(at) => self.pod_cause(session, facts, at).await,
            None => None,
        };
        let fresh: Vec<RowUnready> = facts
            .unready
            .iter()
            .enumerate()
            .map(|(at, unready)| {
                let why = match cause.as_deref().filter(|_| looked_at == Some(at)) {
                    Some(cause) => format!("{}; {cause}", unready.why),
                    None => unready.why.clone(),
                };
                RowUnready { app: unready.app.clone(), resource: unready.id.to_string(), message: cut(&why) }
            })
            .collect();
        let before = &self.memory.status.unready;
        let same = before.len() == fresh.len()
            && before.iter().zip(&fresh).all(|(before, fresh)| before.resource == fresh.resource);
        if same && *before != fresh {
            let due = self.memory.naming.changed.map_or(now, |changed| changed + SETTLE);
            if now < due {
                facts.wake_at(due);
                return;
            }
        }
        if *before != fresh {
            self.memory.naming.changed = Some(now);
        }
        facts.named = Some(fresh);
    }

    /// The cause that Pods of the first workload, the one at place `at`, name; looked at now and then as long as it is not ready.
    async fn pod_cause(&mut self, session: &Session, facts: &mut Facts, at: usize) -> Option<String> {
        let first = facts.unready.get(at)?.clone();
        let selector = first.selector.clone()?;
        let now = Instant::now();
        let before = self.memory.naming.look.as_ref().filter(|look| look.of == first.id);
        if let Some(look) = before.filter(|look| now < look.at + look.pause) {
            facts.wake_at(look.at + look.pause);
            return look.cause.clone();
        }
        let pause = before.map_or(LOOK_FIRST, |look| (look.pause * 2).min(LOOK_LAST));
        // Of many rows that are not ready, each waits for its turn at the cluster.
        if let Err(free) = self.ctx.edge.turn_for_pods(now) {
            facts.wake_at(free);
            return before.and_then(|look| look.cause.clone());
        }
        let cause = self.look_at_pods(session, &first, &selector).await;
        facts.wake_at(now + pause);
        self.memory.naming.look = Some(PodLook { of: first.id, at: now, pause, cause: cause.clone() });
        cause
    }

    async fn look_at_pods(
        &self,
        session: &Session,
        unready: &Unready,
        selector: &LabelSelector,
    ) -> Option<String> {
        let namespace = &unready.id.namespace;
        let list = |plural: &'static str| {
            Request::new(Method::Get, emco_engine::path::ApiPath::core(namespace, plural))
                .query("limit", PAGE)
        };
        match self.send(session, list("pods").labels(selector)).await {
            Ok(answer) if items(&answer).is_empty() => {}
            Ok(answer) => return pods::cause(items(&answer)),
            Err(error) => return refused(&error, "Pods"),
        }
        let about = FieldSelector::new("involvedObject.uid", unready.uid.as_deref().unwrap_or_default());
        match self.send(session, list("events").fields(&about)).await {
            Ok(answer) => pods::warning(items(&answer)),
            Err(error) => refused(&error, "Events"),
        }
    }
}

fn items(answer: &Value) -> &[Value] {
    answer.get("items").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// What is said where the credentials do not allow a look. Other failures are the connection's, which says so itself.
fn refused(error: &ApiError, what: &str) -> Option<String> {
    (error.code() == 403).then(|| format!("its {what} may not be listed with the Cluster's credentials"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn id(group: &str, kind: &str) -> Identity {
        Identity {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: "shop".to_owned(),
            name: "web".to_owned(),
        }
    }

    #[test]
    fn pods_are_found_by_the_selector_of_their_workload() {
        let manifest = json!({"spec": {"selector": {"matchLabels": {"app": "web", "tier": "front"}}}});
        let of = |group: &str, kind: &str, manifest: &Value| {
            selector(&id(group, kind), manifest).map(|selector| selector.as_str().to_owned())
        };
        assert_eq!(of("apps", "Deployment", &manifest).as_deref(), Some("app=web,tier=front"));
        assert_eq!(of("batch", "Job", &json!({})).as_deref(), Some("batch.kubernetes.io/job-name=web"));
        assert_eq!(of("", "Service", &manifest), None);
        let by_expression = json!({"spec": {"selector": {"matchLabels": {"a": "b"}, "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["front", "back"]},
            {"key": "track", "operator": "NotIn", "values": ["canary"]},
            {"key": "app", "operator": "Exists"},
            {"key": "old", "operator": "DoesNotExist"},
        ]}}});
        assert_eq!(
            of("apps", "Deployment", &by_expression).as_deref(),
            Some("a=b,tier in (front,back),track notin (canary),app,!old")
        );
        let unknown = json!({"spec": {"selector": {"matchExpressions": [{"key": "a", "operator": "Gt"}]}}});
        assert_eq!(of("apps", "Deployment", &unknown), None);
        // What is no label would select Pods of others.
        let forged = json!({"spec": {"selector": {"matchLabels": {"app": "web,tier!=web"}}}});
        assert_eq!(of("apps", "Deployment", &forged), None);
        // Without labels every Pod of the namespace would be the workload's.
        assert_eq!(of("apps", "Deployment", &json!({"spec": {"selector": {}}})), None);
    }
}
