//! The object of one test on a cluster: made, waited for, read, deleted.

use std::time::Duration;

use emco_crds::names::manager;
use emco_engine::health::{hook_outcome, pods};
use emco_engine::identity::{Identity, kind_of};
use emco_engine::set::SetManifest;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, DynamicObject, ListParams, LogParams, PostParams, Preconditions};
use kube::{Api, Client, ResourceExt as _};
use serde_json::Value;

use super::policy::{self, Room};
use super::report::Logs;
use crate::cli::diff::edge;
use crate::cli::hub::chain;
use crate::cli::watched;

/// Pods of a Job that are looked at.
const MOST_PODS: u32 = 20;
/// Lines of one container's logs, the last ones.
const LINES: i64 = 2_000;
/// Bytes of one container's logs.
const BYTES: i64 = 1 << 20;
/// For the logs of one test.
const LOGS_WITHIN: Duration = Duration::from_secs(60);
/// The label that a Job's Pods have.
const JOB_NAME: &str = "batch.kubernetes.io/job-name";

/// The object of a test.
pub(super) struct TestObject {
    api: Api<DynamicObject>,
    client: Client,
    pub id: Identity,
    /// Of the object that was made; empty before.
    uid: String,
}

impl TestObject {
    pub const fn new(api: Api<DynamicObject>, client: Client, id: Identity) -> Self {
        Self { api, client, id, uid: String::new() }
    }

    /// Deletes what an earlier run left, and waits until it is gone.
    pub async fn make_room(&mut self, test: &SetManifest, hash: &str, limit: Duration) -> Result<(), String> {
        let live = self.api.get_opt(&self.id.name).await.map_err(|error| failed(&error))?;
        let live = live.map(|live| json(&live));
        match policy::room(live.as_ref(), test, hash) {
            Room::Free => Ok(()),
            Room::Taken(why) => Err(why),
            Room::Clear { uid } => {
                self.delete(&uid, limit).await.map_err(|why| format!("what an earlier run left stays: {why}"))
            }
        }
    }

    /// Makes it. What another one made at this moment is not taken for it.
    pub async fn create(&mut self, test: &SetManifest, hash: &str, placed_by: &str) -> Result<(), String> {
        let object: DynamicObject = serde_json::from_value(policy::mark(test, hash, placed_by))
            .map_err(|_| "its manifest is no object".to_owned())?;
        let params = PostParams { field_manager: Some(manager::CLI.to_owned()), ..PostParams::default() };
        let made = self.api.create(&params, &object).await.map_err(|error| match &error {
            // The words may quote its values.
            kube::Error::Api(status) if kind_of(&test.json) == ("", "Secret") => {
                format!("the cluster refuses the Secret: {}", status.reason)
            }
            _ => failed(&error),
        })?;
        self.uid = made.uid().unwrap_or_default();
        Ok(())
    }

    /// Waits until it succeeded; the error says why not. Of what is no Pod and no Job, being there is all.
    pub async fn ended(&self, limit: Duration) -> Result<(), String> {
        if !self.runs() {
            return Ok(());
        }
        let mut last = Value::Null;
        let waited = watched::until_of(&self.id.kind, self.api.clone(), &self.id.name, limit, "", |seen| {
            let Some(seen) = seen.filter(|seen| seen.uid().as_deref() == Some(&*self.uid)) else {
                return Ok(Err("it was deleted before it ended".to_owned()));
            };
            last = json(seen);
            // Items of a list do not repeat what they are; and what is not known to run counts as done.
            last["apiVersion"] = Value::from(self.api_version());
            last["kind"] = Value::from(&*self.id.kind);
            hook_outcome(&last).ok_or_else(String::new)
        });
        let ended = Box::pin(waited).await.map_err(|error| format!("{error:#}"))?;
        let why = match ended {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(why)) => why,
            // What the watch says of itself, such as a cluster that answers no more.
            Err(why) if !why.is_empty() => format!("it did not end within {} s: {why}", limit.as_secs()),
            Err(_) => format!("it did not end within {} s", limit.as_secs()),
        };
        Err(match Box::pin(self.cause(&last)).await {
            Some(cause) if !why.contains(&cause) => format!("{why}; {cause}"),
            _ => why,
        })
    }

    /// Whether it is one that is waited for.
    fn runs(&self) -> bool {
        matches!((self.id.group.as_str(), self.id.kind.as_str()), ("", "Pod") | ("batch", "Job"))
    }

    /// Of a Pod or Job.
    const fn api_version(&self) -> &'static str {
        if self.id.group.is_empty() { "v1" } else { "batch/v1" }
    }

    /// What its Pods say of themselves.
    async fn cause(&self, last: &Value) -> Option<String> {
        if self.id.kind == "Pod" {
            let one = std::slice::from_ref(last);
            return if last.is_null() { None } else { pods::ended_badly(last).or_else(|| pods::cause(one)) };
        }
        let pods: Vec<Value> = self.pods().await.ok()?.iter().map(json).collect();
        pods.iter().find_map(pods::ended_badly).or_else(|| pods::cause(&pods))
    }

    async fn pods(&self) -> Result<Vec<Pod>, String> {
        let api = Api::<Pod>::namespaced(self.client.clone(), &self.id.namespace);
        match (self.id.group.as_str(), self.id.kind.as_str()) {
            ("", "Pod") => {
                Ok(api.get_opt(&self.id.name).await.map_err(|e| failed(&e))?.into_iter().collect())
            }
            ("batch", "Job") => {
                let params = ListParams::default().labels(&format!("{JOB_NAME}={}", self.id.name));
                Ok(api.list(&params.limit(MOST_PODS)).await.map_err(|e| failed(&e))?.items)
            }
            _ => Ok(Vec::new()),
        }
    }

    /// What its containers wrote, as far as it can be read.
    pub async fn logs(&self) -> Vec<Logs> {
        let unread = |error: String| {
            vec![Logs { pod: self.id.name.clone(), container: "*".to_owned(), text: String::new(), error }]
        };
        match tokio::time::timeout(LOGS_WITHIN, Box::pin(self.all_logs())).await {
            Ok(Ok(logs)) => logs,
            Ok(Err(error)) => unread(error),
            Err(_) => unread(format!("the cluster does not answer within {} s", LOGS_WITHIN.as_secs())),
        }
    }

    async fn all_logs(&self) -> Result<Vec<Logs>, String> {
        let api = Api::<Pod>::namespaced(self.client.clone(), &self.id.namespace);
        let mut all = Vec::new();
        for pod in self.pods().await? {
            let name = pod.name_any();
            let spec = pod.spec.unwrap_or_default();
            let first = spec.init_containers.unwrap_or_default();
            for container in first.into_iter().chain(spec.containers) {
                let params = LogParams {
                    container: Some(container.name.clone()),
                    tail_lines: Some(LINES),
                    limit_bytes: Some(BYTES),
                    ..LogParams::default()
                };
                let (text, error) = match api.logs(&name, &params).await {
                    Ok(text) => (text, String::new()),
                    Err(error) => (String::new(), failed(&error)),
                };
                all.push(Logs { pod: name.clone(), container: container.name, text, error });
            }
        }
        Ok(all)
    }

    /// Deletes what was made, and waits until it is gone.
    pub async fn clear(&self, limit: Duration) -> Result<(), String> {
        self.delete(&self.uid, limit).await
    }

    /// Deletes the object with this UID, with what it made. One of the same name that came later stays.
    async fn delete(&self, uid: &str, limit: Duration) -> Result<(), String> {
        let preconditions = Preconditions { uid: Some(uid.to_owned()), ..Preconditions::default() };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
        match self.api.delete(&self.id.name, &params).await {
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
            Err(error) => return Err(failed(&error)),
            Ok(_) => {}
        }
        let unseen = "nothing was seen of it";
        let gone =
            watched::until_of(
                &self.id.kind,
                self.api.clone(),
                &self.id.name,
                limit,
                unseen,
                |seen| match seen.filter(|seen| seen.uid().as_deref() == Some(uid)) {
                    None => Ok(()),
                    Some(seen) if seen.finalizers().is_empty() => Err("it is still ending".to_owned()),
                    Some(seen) => Err(format!("its finalizers keep it: {}", seen.finalizers().join(", "))),
                },
            );
        let gone = Box::pin(gone).await.map_err(|error| format!("{error:#}"))?;
        gone.map_err(|why| format!("it is not gone after {} s: {why}", limit.as_secs()))
    }
}

fn failed(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(_) => edge::failed(error).to_string(),
        other => chain(other),
    }
}

fn json(object: &impl serde::Serialize) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}
