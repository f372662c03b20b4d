//! Says whether a change of one object concerns the objects that read only a part of it.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::conditions::types;
use emco_crds::deployment_intent_group::DesiredState;
use emco_crds::names::annotation;
use emco_crds::reasons::is_progress;
use emco_crds::{
    ClusterProvider, Conditioned, DeploymentApproval, DeploymentIntentGroup, GitTarget, LogicalCloud,
    Project, SyncShard,
};
use emco_engine::shard::{self, Content};
use kube::Resource;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::change::Change;
use super::deriving;
use crate::object::meta;
use crate::stores::Stores;

/// Follows what others read of providers: not how many clusters they have.
#[derive(Default)]
pub struct ProviderChanged(Mutex<BTreeMap<String, ClusterProvider>>);

impl ProviderChanged {
    /// The provider as it was and as it is, where that is another one.
    pub fn changed(&self, change: &Change<'_, ClusterProvider>) -> Option<Vec<ClusterProvider>> {
        let now = change.object;
        let mut all = self.0.lock();
        let key = key(now);
        let before = if change.gone { all.remove(&key) } else { all.insert(key, now.clone()) };
        drop(all);
        let same = |before: &ClusterProvider| {
            meta::uid(before) == meta::uid(now)
                && before.spec == now.spec
                && meta::deleting(before) == meta::deleting(now)
        };
        let changed = change.gone || !before.as_ref().is_some_and(same);
        changed.then(|| before.into_iter().chain([now.clone()]).collect())
    }
}

/// Follows what others read of projects: of what became of them, only that they are stalled, for then they make no default logical cloud.
#[derive(Default)]
pub struct ProjectChanged(Mutex<BTreeMap<String, Value>>);

impl ProjectChanged {
    pub fn changed(&self, change: &Change<'_, Project>) -> bool {
        let project = change.object;
        let stalled = project.status.as_ref().is_some_and(|status| status.is_true(types::STALLED));
        let read = || json!([project.metadata.labels, project.spec, meta::deleting(project), stalled]);
        changed(&self.0, change, read)
    }
}

/// Follows what deployments read of logical clouds: not how far they are on clusters.
#[derive(Default)]
pub struct CloudChanged(Mutex<BTreeMap<String, Value>>);

impl CloudChanged {
    pub fn changed(&self, change: &Change<'_, LogicalCloud>) -> bool {
        let cloud = change.object;
        let stalled = cloud.status.as_ref().and_then(|status| status.condition(types::STALLED));
        let stalled = stalled.map(|stalled| &stalled.reason);
        changed(&self.0, change, || json!([cloud.spec, meta::deleting(cloud), stalled]))
    }
}

/// Everything that clusters and other targets read of Git targets: not each commit.
#[derive(Default)]
pub struct TargetChanged(Mutex<BTreeMap<String, Value>>);

impl TargetChanged {
    pub fn changed(&self, change: &Change<'_, GitTarget>) -> bool {
        let target = change.object;
        let ready = target.status.as_ref().and_then(|status| status.condition("Ready"));
        // (How many clusters are published to by now is no trouble.)
        let troubled = ready.filter(|ready| ready.status != "True" && !is_progress(&ready.reason));
        let trouble = troubled.map(|ready| (&ready.reason, &ready.message));
        let read = || json!([meta::generation(target), meta::deleting(target), ready.is_some(), trouble]);
        changed(&self.0, change, read)
    }
}

/// What others read of deployments. Values, placement and statuses concern nobody else.
#[derive(Default)]
pub struct RefsChanged(Mutex<BTreeMap<String, Value>>);

impl RefsChanged {
    pub fn changed(&self, change: &Change<'_, DeploymentIntentGroup>) -> bool {
        let dig = change.object;
        let spec = &dig.spec;
        let read = || {
            json!([
                spec.composite_app_ref,
                spec.composite_profile_ref,
                spec.intents,
                spec.logical_cloud_ref,
                dig.release(),
                spec.desired_state == DesiredState::Terminated,
                dig.metadata.deletion_timestamp.is_some(),
            ])
        };
        changed(&self.0, change, read)
    }
}

/// What the sync engine reads of deployments.
#[derive(Default)]
pub struct SyncPolicyChanged(Mutex<BTreeMap<String, Value>>);

impl SyncPolicyChanged {
    pub fn changed(&self, change: &Change<'_, DeploymentIntentGroup>) -> bool {
        let spec = &change.object.spec;
        let requested = meta::annotation(change.object, annotation::REQUESTED_AT);
        changed(&self.0, change, || {
            let held = (spec.is_suspended(), spec.revision);
            json!([spec.sync, spec.progress_deadline, spec.hook_timeout, requested, held])
        })
    }
}

/// What approvals read of deployments: which plans they have and had.
#[derive(Default)]
pub struct PlanChanged(Mutex<BTreeMap<String, Value>>);

impl PlanChanged {
    pub fn changed(&self, change: &Change<'_, DeploymentIntentGroup>) -> bool {
        let status = change.object.status.as_ref();
        let pending = status.and_then(|status| status.pending.as_ref()).map(|pending| &pending.digest);
        changed(&self.0, change, || json!([pending, status.map(|s| (s.revision, &s.digest))]))
    }
}

/// What deployments read of approvals: not what became of them.
#[derive(Default)]
pub struct ApprovalChanged(Mutex<BTreeMap<String, Value>>);

impl ApprovalChanged {
    pub fn changed(&self, change: &Change<'_, DeploymentApproval>) -> bool {
        let approval = change.object;
        changed(&self.0, change, || json!([approval.spec, meta::deleting(approval)]))
    }
}

/// What deployments read of intents of any kind: not what became of them.
#[derive(Default)]
pub struct IntentChanged(Mutex<BTreeMap<String, Value>>);

impl IntentChanged {
    pub fn changed<K: Resource>(&self, change: &Change<'_, K>) -> bool {
        let intent = change.object;
        changed(&self.0, change, || json!([meta::generation(intent), meta::deleting(intent)]))
    }
}

/// Judges whether the part of an object that is read is another one than before, or the object is gone. It is kept by name: nobody is told of an
/// object that went and came again in a gap of the watch.
pub fn changed<K: Resource>(
    known: &Mutex<BTreeMap<String, Value>>,
    change: &Change<'_, K>,
    read: impl FnOnce() -> Value,
) -> bool {
    let key = key(change.object);
    if change.gone {
        known.lock().remove(&key);
        return true;
    }
    let now = json!([meta::uid(change.object), read()]);
    known.lock().insert(key, now.clone()) != Some(now)
}

fn key<K: Resource>(object: &K) -> String {
    format!("{}/{}", meta::namespace(object), meta::name(object))
}

/// Clusters that shards name: who holds them changes with these.
#[derive(Default)]
pub struct RowsChanged(Mutex<BTreeMap<String, BTreeSet<String>>>);

impl RowsChanged {
    pub fn changed(&self, change: &Change<'_, SyncShard>) -> Option<BTreeSet<String>> {
        let shard = change.object;
        let key = key(shard);
        let now: BTreeSet<String> = if change.gone {
            BTreeSet::new()
        } else {
            shard.spec.clusters.iter().map(|row| row.cluster.clone()).collect()
        };
        let mut all = self.0.lock();
        let before =
            if change.gone { all.remove(&key) } else { all.insert(key, now.clone()) }.unwrap_or_default();
        drop(all);
        let moved: BTreeSet<String> = before.symmetric_difference(&now).cloned().collect();
        (!moved.is_empty()).then_some(moved)
    }
}

/// What clusters may have of shards from which rights are derived: their targets, and what is not known to be gone.
#[derive(Default)]
pub struct ContentChanged(Mutex<BTreeMap<String, Value>>);

impl ContentChanged {
    pub fn changed(&self, stores: &Stores, change: &Change<'_, SyncShard>) -> bool {
        let shard = change.object;
        if !change.gone && deriving(stores, shard).is_empty() {
            // Whoever derives later looks at all of it then.
            self.0.lock().remove(&key(shard));
            return false;
        }
        changed(&self.0, change, || {
            let names = |content: &Content| match content {
                Content::Sets(target) => Some(target.name.clone()),
                Content::Identities(_) => None,
            };
            let rows = shard::rows(&shard.spec, shard.status.as_ref()).into_iter().map(|row| {
                let target = row.target.as_ref().map(|target| target.name.as_str());
                json!([
                    row.cluster.as_str(),
                    target,
                    row.may_have.iter().filter_map(names).collect::<Vec<_>>()
                ])
            });
            rows.collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dig(spec: Value) -> DeploymentIntentGroup {
        let mut object = json!({
            "apiVersion": "emco.io/v1alpha1", "kind": "DeploymentIntentGroup",
            "metadata": {"name": "shop", "namespace": "team-a", "uid": "u"},
            "spec": {"compositeAppRef": {"name": "shop"}, "placement": {"allOf": [{"selector": {}}]}},
        });
        if let (Some(all), Value::Object(more)) = (object["spec"].as_object_mut(), spec) {
            all.extend(more);
        }
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn new_values_of_a_deployment_concern_only_itself() {
        let (refs_changed, policy_changed) = (RefsChanged::default(), SyncPolicyChanged::default());
        let case = |spec: Value, gone: bool| {
            let dig = dig(spec);
            let change = Change { object: &dig, gone };
            (refs_changed.changed(&change), policy_changed.changed(&change))
        };
        assert_eq!(case(json!({}), false), (true, true));
        assert_eq!(
            case(json!({"overrideValues": [{"app": "web", "values": {"a": 1}}]}), false),
            (false, false)
        );
        assert_eq!(case(json!({"hookTimeout": "9s"}), false), (false, true));
        assert_eq!(case(json!({"hookTimeout": "9s", "release": "pos"}), false), (true, false));
        assert_eq!(case(json!({"hookTimeout": "9s", "release": "pos"}), true), (true, true));
        assert_eq!(case(json!({"hookTimeout": "9s", "release": "pos"}), false), (true, true), "made again");
    }

    #[test]
    fn counts_of_a_provider_concern_nobody_and_its_grants_concern_both() {
        let provider = |grants: &[&str], clusters: &str| -> ClusterProvider {
            let grants: Vec<Value> = grants.iter().map(|p| json!({"name": p, "projects": [p]})).collect();
            serde_json::from_value(json!({
                "apiVersion": "emco.io/v1alpha1", "kind": "ClusterProvider", "metadata": {"name": "acme", "uid": "p"},
                "spec": {"grants": grants}, "status": {"summary": {"clusters": clusters}},
            }))
            .unwrap()
        };
        let changed = ProviderChanged::default();
        let told = |provider: &ClusterProvider, gone: bool| {
            let told = changed.changed(&Change { object: provider, gone });
            told.map(|told| told.iter().map(|p| p.spec.grants.len()).collect::<Vec<_>>())
        };
        assert_eq!(told(&provider(&["a"], "0/1"), false), Some(vec![1]));
        assert_eq!(told(&provider(&["a"], "1/1"), false), None);
        assert_eq!(told(&provider(&["a", "b"], "1/1"), false), Some(vec![1, 2]));
        assert_eq!(told(&provider(&["a", "b"], "1/1"), true), Some(vec![2, 2]));
    }

    #[test]
    fn how_far_a_cloud_is_concerns_no_deployment_and_a_conflict_does() {
        let changed = CloudChanged::default();
        let told = |spec: Value, status: Value| {
            let cloud: LogicalCloud = serde_json::from_value(json!({
                "apiVersion": "emco.io/v1alpha1", "kind": "LogicalCloud",
                "metadata": {"name": "default", "namespace": "team-a", "uid": "c"}, "spec": spec, "status": status,
            }))
            .unwrap();
            changed.changed(&Change { object: &cloud, gone: false })
        };
        assert!(told(json!({}), json!({})));
        assert!(!told(json!({}), json!({"summary": {"clusters": "1/2"}})));
        let stalled = json!([{"type": "Stalled", "status": "True", "reason": "NamespaceConflict", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        assert!(told(json!({}), json!({"conditions": stalled})));
        assert!(told(json!({"level": "Admin"}), json!({"conditions": stalled})));
    }

    #[test]
    fn a_project_that_becomes_stalled_concerns_its_tenants_and_counts_do_not() {
        let changed = ProjectChanged::default();
        let told = |status: Value| {
            let project: Project = serde_json::from_value(json!({
                "apiVersion": "emco.io/v1alpha1", "kind": "Project", "metadata": {"name": "team-a", "uid": "p"},
                "spec": {}, "status": status,
            }))
            .unwrap();
            changed.changed(&Change { object: &project, gone: false })
        };
        assert!(told(json!({})));
        assert!(!told(json!({"namespace": "team-a"})));
        let stalled = json!([{"type": "Stalled", "status": "True", "reason": "NamespaceNotOurs", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        assert!(told(json!({"conditions": stalled})));
        assert!(!told(json!({"conditions": stalled, "namespace": "team-a"})));
        assert!(told(json!({})));
    }

    #[test]
    fn what_was_made_again_in_a_gap_of_the_watch_is_new_and_leaves_nothing() {
        let policy_changed = SyncPolicyChanged::default();
        let made = |uid: &str| {
            let mut dig = dig(json!({}));
            dig.metadata.uid = Some(uid.to_owned());
            policy_changed.changed(&Change { object: &dig, gone: false })
        };
        assert_eq!(["u", "u", "v", "v"].map(made), [true, false, true, false]);
        assert_eq!(policy_changed.0.lock().len(), 1);
    }

    #[test]
    fn approvals_hear_of_another_plan_and_of_nothing_else() {
        let plan_changed = PlanChanged::default();
        let says = |status: Value| {
            let mut dig = dig(json!({}));
            dig.status = serde_json::from_value(status).unwrap();
            plan_changed.changed(&Change { object: &dig, gone: false })
        };
        let pending = |digest: &str| json!({"digest": digest, "shortDigest": digest, "revision": 2, "requires": "Approval"});
        assert!(says(json!({"revision": 1})));
        assert!(!says(json!({"revision": 1, "release": "shop"})));
        assert!(says(json!({"revision": 1, "pending": pending("a")})));
        assert!(says(json!({"revision": 1, "pending": pending("b")})));
        assert!(says(json!({"revision": 2})));
    }

    #[test]
    fn a_request_to_look_now_reaches_the_sync_engine_once() {
        let policy_changed = SyncPolicyChanged::default();
        let asked = |when: &str| {
            let mut dig = dig(json!({}));
            let annotations = dig.metadata.annotations.get_or_insert_default();
            annotations.insert(annotation::REQUESTED_AT.to_owned(), when.to_owned());
            policy_changed.changed(&Change { object: &dig, gone: false })
        };
        assert_eq!(["a", "a", "b"].map(asked), [true, false, true]);
    }
}
