//! Finds the first field of an object that a later version will honour and this one would ignore.
//!
//! Nothing that people write is ignored in silence: the object waits with reason `NotSupportedYet` and this sentence. A
//! field at its default never counts. Every struct is named field by field, so that a new one is a decision here.

use emco_crds::composite_profile::CompositeProfileSpec;
use emco_crds::deployment_intent_group::DeploymentIntentGroupSpec;
use emco_crds::deployment_intent_group::placement::{AppRule, Placement, Weight};
use emco_crds::deployment_intent_group::sync::{Sync, Unreachable};
use emco_crds::later::{self, Later};
use emco_crds::logical_cloud::LogicalCloudSpec;
use emco_crds::project::{Approval, ProjectSpec};

/// What of a Project is not supported yet: nothing.
pub fn check_project(spec: &ProjectSpec) -> Option<String> {
    let ProjectSpec {
        namespace: _,
        suspend: _,
        approval: Approval { mode: _, scope: _ },
        logical_cloud: _,
        chart_sources: _,
        removal_budget: _,
        confirm_deletion: _,
        exec: _,
        limits: _,
        members: _,
    } = spec;
    None
}

/// What of a `LogicalCloud` is not supported yet: nothing.
pub fn check_logical_cloud(spec: &LogicalCloudSpec) -> Option<String> {
    let LogicalCloudSpec {
        level: _,
        namespace: _,
        clusters: _,
        provision: _,
        quotas: _,
        limit_ranges: _,
        pod_security: _,
        isolation: _,
        user: _,
        permissions: _,
        credentials: _,
    } = spec;
    None
}

/// What of a `CompositeProfile` is not supported yet: nothing.
pub fn check_profile(spec: &CompositeProfileSpec) -> Option<String> {
    let CompositeProfileSpec { apps: _ } = spec;
    None
}

/// What of a `DeploymentIntentGroup` is not supported yet.
pub fn check_dig(spec: &DeploymentIntentGroupSpec) -> Option<String> {
    let DeploymentIntentGroupSpec {
        composite_app_ref: _,
        composite_profile_ref: _,
        logical_cloud_ref: _,
        release: _,
        placement,
        override_values: _,
        intents: _,
        desired_state: _,
        rollout: _,
        sync: Sync { drift: _, conflicts: _, immutable_fields: _, prune: _, ignore: _ },
        progress_deadline: _,
        hook_timeout: _,
        unreachable: Unreachable { action: _, after: _ },
        ready_clusters: _,
        revision_history_limit: _,
        suspend: _,
        render_serial: _,
        revision: _,
    } = spec;
    check_placement(placement)
}

fn check_placement(placement: &Placement) -> Option<String> {
    let Placement { all_of: _, any_of: _, membership: _, weights, apps } = placement;
    let weighted =
        |weights: &[Weight], field: &Later, path: &str| (!weights.is_empty()).then(|| field.refusal(path));
    weighted(weights, &later::DIG_WEIGHTS, later::DIG_WEIGHTS.path).or_else(|| {
        apps.iter().find_map(|AppRule { app, all_of: _, any_of: _, membership: _, weights }| {
            weighted(weights, &later::DIG_APP_WEIGHTS, &format!("spec.placement.apps[{app}].weights"))
        })
    })
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::json;

    use super::*;

    fn dig(yaml: &str) -> Option<String> {
        let base = "{compositeAppRef: {name: shop}, placement: {allOf: [{selector: {}}]}}";
        let mut spec: serde_json::Value = serde_yaml::from_str(base).unwrap();
        let over: serde_json::Value = serde_yaml::from_str(yaml).unwrap();
        for (key, value) in over.as_object().unwrap() {
            spec[key] = value.clone();
        }
        check_dig(&serde_json::from_value(spec).unwrap())
    }

    #[test]
    fn a_field_at_its_default_is_supported() {
        for yaml in [
            "{}",
            "{desiredState: Instantiated, unreachable: {action: Wait}, suspend: false, renderSerial: 0}",
            "{rollout: {maxConcurrent: 25%}, intents: [], overrideValues: []}",
            "{sync: {drift: Correct, conflicts: Fail, immutableFields: Fail, prune: AfterReady}}",
            "{sync: {prune: Before}}",
            "{sync: {prune: AfterApply}}",
            "{sync: {immutableFields: Recreate, conflicts: AdoptIfSame}}",
            "{sync: {conflicts: Adopt}}",
            "{sync: {conflicts: Force}}",
            "{sync: {drift: Report, ignore: [{kind: Deployment, jsonPointers: [/spec/replicas]}]}}",
            "{desiredState: Terminated, readyClusters: 95%, revisionHistoryLimit: 3}",
            "{unreachable: {action: Abandon, after: 24h}}",
            "{suspend: true, revision: 2, renderSerial: 3}",
            "{intents: [{kind: GenericActionIntent, name: banner}, {kind: HardwareIntent, name: gpu}]}",
            "{intents: [{kind: HardwareIntent, group: acme.example, name: theirs}]}",
        ] {
            assert_eq!(dig(yaml), None, "{yaml}");
        }
        assert_eq!(check_project(&serde_json::from_str("{}").unwrap()), None);
        let project = "{logicalCloud: {level: Admin}, approval: {mode: Manual, scope: Plan}, removalBudget: 30%, confirmDeletion: Always, limits: {deploymentIntentGroups: 5, objectsPerApp: 100, storedBytes: 1Mi}}";
        assert_eq!(check_project(&serde_yaml::from_str(project).unwrap()), None);
        for cloud in [
            "{level: Admin, provision: OnDemand, isolation: None}",
            "{user: {name: ann, groups: [dev]}, credentials: {type: ClientCertificate, duration: 1h}}",
        ] {
            assert_eq!(check_logical_cloud(&serde_yaml::from_str(cloud).unwrap()), None);
        }
    }

    #[test]
    fn what_comes_later_is_named_with_the_cure() {
        for (yaml, sentence) in [
            (
                "{placement: {weights: [{name: cost, weight: 1}]}}",
                "spec.placement.weights is not supported yet: remove the field",
            ),
            (
                "{placement: {apps: [{app: db, allOf: [{selector: {}}], weights: [{name: cost, weight: 1}]}]}}",
                "spec.placement.apps[db].weights is not supported yet: remove the field",
            ),
        ] {
            assert_eq!(dig(yaml).as_deref(), Some(sentence), "{yaml}");
        }
    }

    #[test]
    fn every_level_is_supported() {
        for level in ["Standard", "Privileged", "Admin"] {
            let project = format!("{{logicalCloud: {{level: {level}}}}}");
            assert_eq!(check_project(&serde_yaml::from_str(&project).unwrap()), None);
            assert_eq!(
                check_logical_cloud(&serde_yaml::from_str(&format!("{{level: {level}}}")).unwrap()),
                None
            );
        }
    }

    /// The object with one field set to a sample.
    fn with(later: &Later) -> serde_json::Value {
        let sample = match later.path.rsplit('.').next().unwrap_or_default() {
            "weights" => json!([{"name": "cost", "weight": 1}]),
            other => panic!("no sample for {other}"),
        };
        let mut spec = match later.kind {
            "DeploymentIntentGroup" => json!({
                "compositeAppRef": {"name": "shop"},
                "placement": {"allOf": [{"selector": {}}]},
            }),
            _ => json!({}),
        };
        let path = later.path.trim_start_matches("spec.");
        if let Some((list, field)) = path.split_once("[].") {
            let item = json!({"app": "web", "allOf": [{"selector": {}}], field: sample});
            *pointer(&mut spec, list) = json!([item]);
        } else {
            *pointer(&mut spec, path) = sample;
        }
        spec
    }

    fn read<T: DeserializeOwned>(later: &Later, spec: &serde_json::Value) -> T {
        serde_json::from_value(spec.clone()).unwrap_or_else(|error| panic!("{later:?}: {error}: {spec}"))
    }

    fn pointer<'a>(spec: &'a mut serde_json::Value, path: &str) -> &'a mut serde_json::Value {
        path.split('.').fold(spec, |at, name| &mut at[name])
    }

    #[test]
    fn every_field_that_comes_later_is_refused_and_named() {
        for later in later::ALL {
            let spec = with(later);
            let sentence = match later.kind {
                "LogicalCloud" => check_logical_cloud(&read(later, &spec)),
                _ => check_dig(&read(later, &spec)),
            };
            let path = later.path.replace("[]", "[web]");
            assert_eq!(sentence, Some(later.refusal(&path)), "{spec}");
        }
    }
}
