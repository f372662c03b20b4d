//! Makes the lines of a table of a deployment, its shards and the edges' Pods, and says whether all is as wanted. No client,
//! no terminal.

use std::collections::BTreeMap;

use emco_crds::conditions::types;
use emco_crds::{Conditioned as _, DeploymentIntentGroup, SyncShard};
use emco_engine::shard::{self, Content};

/// More rows than this scroll off a screen.
const MOST_ROWS: usize = 40;
/// Of a message.
const MOST_CHARS: usize = 160;

/// Pods of an edge.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pods {
    pub running: usize,
    pub total: usize,
}

/// Everything that is watched.
#[derive(Default)]
pub struct View {
    pub dig: Option<DeploymentIntentGroup>,
    pub shards: Vec<SyncShard>,
    pub pods: BTreeMap<String, Pods>,
}

impl View {
    /// What is missing until the revision `at_least` or a later one runs everywhere as wanted.
    pub fn missing(&self, at_least: i64) -> Result<(), String> {
        let Some(dig) = &self.dig else { return Err("the deployment does not exist".to_owned()) };
        let Some(status) = &dig.status else { return Err("it has no status yet".to_owned()) };
        if status.observed_generation != dig.metadata.generation {
            return Err("the last change was not looked at yet".to_owned());
        }
        for type_ in [types::READY, types::DEPLOYED] {
            if !status.is_true(type_) {
                return Err(self.why(type_));
            }
        }
        if status.is_true(types::RECONCILING) {
            return Err(self.why(types::RECONCILING));
        }
        if status.revision.unwrap_or_default() < at_least {
            return Err(format!("revision {at_least} does not run yet"));
        }
        let open = self
            .shards
            .iter()
            .flat_map(|s| shard::rows(&s.spec, s.status.as_ref()))
            .find(|row| !row.complete);
        open.map_or(Ok(()), |row| Err(format!("work on {} is not complete", row.cluster)))
    }

    fn why(&self, type_: &str) -> String {
        let status = self.dig.as_ref().and_then(|dig| dig.status.as_ref());
        match status.and_then(|status| status.condition(type_)) {
            Some(condition) => {
                let message: String = condition.message.chars().take(MOST_CHARS).collect();
                format!("{type_}={} {}: {message}", condition.status, condition.reason)
            }
            None => format!("there is no condition {type_} yet"),
        }
    }

    /// A headline, then a line per cluster and app.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.headline(), row("CLUSTER", "APP", "STATE", "READY", "PODS ON THE EDGE")];
        let mut rows: Vec<_> = self
            .shards
            .iter()
            .flat_map(|shard| {
                let known = shard.status.as_ref().map(|status| shard::decode_status(&shard.spec, status));
                let known = known.unwrap_or_default();
                let rows = shard::rows(&shard.spec, shard.status.as_ref());
                rows.into_iter().map(move |row| (row.cluster.to_string(), known.get(&row.id).cloned(), row))
            })
            .collect();
        rows.sort_by(|a, b| a.0.cmp(&b.0));
        for (cluster, status, wanted) in rows {
            let mut apps: BTreeMap<&str, (String, String)> = BTreeMap::new();
            let leaving = wanted.may_have.iter().flat_map(|content| match content {
                Content::Sets(target) => target.apps.keys().collect::<Vec<_>>(),
                Content::Identities(_) => Vec::new(),
            });
            for app in leaving {
                apps.insert(app, ("leaving".to_owned(), String::new()));
            }
            let status = status.unwrap_or_default();
            for app in wanted.target.iter().flat_map(|target| target.apps.keys()) {
                let told = status.apps.iter().find(|told| told.app == *app);
                let said = match told {
                    Some(told) => (told.state.to_string(), format!("{}/{}", told.ready, told.total)),
                    // Apps that are as wanted are not told; while none is told, the row may still speak of what was before.
                    None if wanted.complete || !status.apps.is_empty() => {
                        ("as wanted".to_owned(), String::new())
                    }
                    None => ("waiting".to_owned(), String::new()),
                };
                apps.insert(app, said);
            }
            let edge = cluster.rsplit('/').next().unwrap_or_default();
            let Pods { running, total } = self.pods.get(edge).copied().unwrap_or_default();
            let mut pods = format!("{running}/{total} running");
            let mut name = cluster.as_str();
            for (app, (state, ready)) in &apps {
                lines.push(row(name, app, state, ready, &pods));
                pods.clear();
                // A line stands for itself where only changed ones are printed.
                name = &cluster;
            }
            if let Some(error) = status.error {
                let message: String = error.message.chars().take(MOST_CHARS).collect();
                lines.push(row(&cluster, error.app.as_deref().unwrap_or("-"), &error.reason, "", &message));
            }
        }
        if lines.len() > MOST_ROWS {
            let more = lines.len() - MOST_ROWS;
            lines.truncate(MOST_ROWS);
            lines.push(format!("... {more} more"));
        }
        lines
    }

    fn headline(&self) -> String {
        let Some(dig) = &self.dig else { return "the deployment does not exist yet".to_owned() };
        let name = dig.metadata.name.as_deref().unwrap_or_default();
        let Some(status) = &dig.status else { return format!("{name}: not looked at yet") };
        let state = status.state.unwrap_or_default();
        let revision = status.revision.map(|number| format!(", revision {number}")).unwrap_or_default();
        let clusters = status.clusters.unwrap_or_default();
        format!(
            "{name}: {state}{revision}, {} of {} clusters ready; {}",
            clusters.ready,
            clusters.total,
            self.why(types::READY)
        )
    }
}

fn row(cluster: &str, app: &str, state: &str, ready: &str, pods: &str) -> String {
    format!("{cluster:<14} {app:<18} {state:<18} {ready:<7} {pods}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, from_value, json};

    fn shard(target: &str, held: &Value, status: &Value) -> SyncShard {
        from_value(json!({
            "apiVersion": "emco.io/v1alpha1", "kind": "SyncShard", "metadata": {"name": "s"},
            "spec": {
                "format": 1, "owner": {"kind": "DeploymentIntentGroup", "namespace": "shop", "name": "shop", "uid": "u", "hash": "h"},
                "slot": 0, "bits": 0, "epoch": 1, "nextId": 2,
                "combinations": [
                    {"name": "one", "revision": 1, "apps": [{"app": "stock", "set": "a"}, {"app": "web", "set": "b"}]},
                    {"name": "two", "revision": 2, "apps": [{"app": "web", "set": "b"}]},
                ],
                "clusters": [{"id": 1, "cluster": "acme/berlin", "target": target, "held": held}],
            },
            "status": status,
        }))
        .unwrap()
    }

    fn dig(generation: i64, ready: &str) -> DeploymentIntentGroup {
        let condition = |type_: &str, status: &str| {
            json!({"type": type_, "status": status, "reason": "Because", "message": "of it",
                   "lastTransitionTime": "2026-11-21T07:00:00Z"})
        };
        from_value(json!({
            "apiVersion": "emco.io/v1alpha1", "kind": "DeploymentIntentGroup",
            "metadata": {"name": "shop", "namespace": "shop", "generation": generation},
            "spec": {"compositeAppRef": {"name": "shop"}, "placement": {"allOf": [{"selector": {}}]}},
            "status": {"observedGeneration": 2, "revision": 2, "state": "Updated",
                       "conditions": [condition("Ready", ready), condition("Deployed", "True")]},
        }))
        .unwrap()
    }

    #[test]
    fn an_app_that_lost_its_place_is_leaving_until_the_row_is_complete() {
        let held = json!([{"combination": "one", "since": 2}]);
        let before = json!({"clusters": [{"id": 1, "connectivity": "Reachable", "state": "Updating", "total": 2, "appliedCount": 2,
            "ready": 2, "unknown": 0, "applied": {"combination": "one", "generation": 1},
            "apps": [{"app": "web", "state": "Updating", "ready": 1, "total": 2}]}]});
        let view = View { shards: vec![shard("two", &held, &before)], ..View::default() };
        let lines = view.lines();
        assert!(lines[2].contains("stock") && lines[2].contains("leaving"), "{lines:?}");
        assert!(
            lines[3].contains("web") && lines[3].contains("Updating") && lines[3].contains("1/2"),
            "{lines:?}"
        );

        let after =
            json!({"asWanted": [{"ids": "1", "applied": "two", "generation": 3, "ready": 2, "total": 2}]});
        let view = View { shards: vec![shard("two", &held, &after)], ..View::default() };
        let lines = view.lines();
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert!(lines[2].contains("web") && lines[2].contains("as wanted"), "{lines:?}");
    }

    #[test]
    fn nothing_is_ready_before_the_last_change_was_looked_at() {
        let complete =
            json!({"asWanted": [{"ids": "1", "applied": "two", "generation": 3, "ready": 2, "total": 2}]});
        let view = |generation, ready: &str, shard: SyncShard| View {
            dig: Some(dig(generation, ready)),
            shards: vec![shard],
            ..View::default()
        };
        let none = json!([]);
        assert_eq!(view(2, "True", shard("two", &none, &complete)).missing(2), Ok(()));
        assert!(view(3, "True", shard("two", &none, &complete)).missing(2).is_err());
        assert!(view(2, "False", shard("two", &none, &complete)).missing(2).is_err());
        assert!(view(2, "True", shard("two", &none, &complete)).missing(3).is_err());
        assert!(view(2, "True", shard("one", &none, &complete)).missing(2).is_err());
    }
}
