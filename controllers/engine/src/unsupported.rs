//! Objects in, the first field out that a later version will honour and this one would ignore.
//!
//! Nothing that people write is ignored in silence: the object waits with reason `NotSupportedYet` and this sentence. A
//! field at its default never counts. Every struct is named field by field, so that a new one is a decision here.

use emco_crds::composite_app::{App, CompositeAppSpec};
use emco_crds::composite_profile::CompositeProfileSpec;
use emco_crds::deployment_approval::DeploymentApprovalSpec;
use emco_crds::deployment_intent_group::placement::{AppRule, Placement, Weight};
use emco_crds::deployment_intent_group::rollout::Rollout;
use emco_crds::deployment_intent_group::sync::{
    ConflictPolicy, ImmutablePolicy, PrunePolicy, Sync, Unreachable,
};
use emco_crds::deployment_intent_group::{DeploymentIntentGroupSpec, DesiredState};
use emco_crds::fields::Level;
use emco_crds::logical_cloud::{CloudCredentials, Isolation, LogicalCloudSpec, Provision};
use emco_crds::project::{
    Approval, ApprovalMode, ApprovalScope, ConfirmDeletion, ProjectLimits, ProjectLogicalCloud, ProjectSpec,
};

/// What a person reads: the field, and the only thing that helps now.
fn remove(field: &str) -> String {
    format!("{field} is not supported yet: remove the field")
}

/// The same for a value that has a supported alternative.
fn instead(field: &str, value: &str, use_: &str) -> String {
    format!("{field} {value} is not supported yet: use {use_}")
}

/// The first of several findings.
fn first(findings: impl IntoIterator<Item = (bool, String)>) -> Option<String> {
    findings.into_iter().find(|(found, _)| *found).map(|(_, sentence)| sentence)
}

/// What of a Project is not supported yet. `removalBudget` is reported, so it is not in here.
pub fn check_project(spec: &ProjectSpec) -> Option<String> {
    let ProjectSpec {
        namespace: _,
        approval: Approval { mode, scope },
        logical_cloud,
        chart_sources: _,
        removal_budget: _,
        confirm_deletion,
        limits,
        members,
    } = spec;
    if let Some(ProjectLimits { deployment_intent_groups: _, objects_per_app: _, stored_bytes: _ }) = limits {
    }
    let level = logical_cloud.map(|ProjectLogicalCloud { level }| level);
    first([
        (*mode != ApprovalMode::Automatic, instead("spec.approval.mode", "Manual", "Automatic")),
        (*scope != ApprovalScope::Inputs, instead("spec.approval.scope", "Plan", "Inputs")),
        (*confirm_deletion != ConfirmDeletion::Never, instead("spec.confirmDeletion", "Always", "Never")),
        (
            limits.as_ref().is_some_and(|l| l.deployment_intent_groups.is_some()),
            remove("spec.limits.deploymentIntentGroups"),
        ),
        (limits.as_ref().is_some_and(|l| l.objects_per_app.is_some()), remove("spec.limits.objectsPerApp")),
        (!members.is_empty(), remove("spec.members")),
    ])
    .or_else(|| level.and_then(|level| check_level("spec.logicalCloud.level", level)))
}

/// Standard and Privileged need accounts and roles on the clusters, which come later.
fn check_level(field: &str, level: Level) -> Option<String> {
    (level != Level::Admin).then(|| instead(field, level.as_str(), "Admin"))
}

/// What of a `LogicalCloud` is not supported yet.
pub fn check_logical_cloud(spec: &LogicalCloudSpec) -> Option<String> {
    let LogicalCloudSpec {
        level,
        namespace: _,
        clusters: _,
        provision,
        quotas,
        pod_security,
        isolation,
        user,
        permissions,
        credentials,
    } = spec;
    check_level("spec.level", *level).or_else(|| {
        first([
            (*provision != Provision::Eager, instead("spec.provision", "OnDemand", "Eager")),
            (!quotas.is_empty(), remove("spec.quotas")),
            (pod_security.is_some(), remove("spec.podSecurity")),
            (*isolation != Isolation::None, instead("spec.isolation", "DefaultDeny", "None")),
            (user.is_some(), remove("spec.user")),
            (!permissions.is_empty(), remove("spec.permissions")),
            (
                credentials.as_ref().is_some_and(|c| *c != CloudCredentials::default()),
                remove("spec.credentials"),
            ),
        ])
    })
}

/// What of a `CompositeApp` is not supported yet.
pub fn check_composite_app(spec: &CompositeAppSpec) -> Option<String> {
    let CompositeAppSpec { version: _, apps } = spec;
    apps.iter().find_map(|App { name, chart: _, depends_on }| {
        first([(!depends_on.is_empty(), remove(&format!("spec.apps[{name}].dependsOn")))])
    })
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
        intents,
        desired_state,
        rollout,
        sync,
        progress_deadline: _,
        hook_timeout: _,
        unreachable: Unreachable { action: _, after: _ },
        ready_clusters: _,
        revision_history_limit: _,
        suspend,
        render_serial,
        revision,
    } = spec;
    first([
        (!intents.is_empty(), remove("spec.intents")),
        (rollout.as_ref().is_some_and(|r| *r != Rollout::default()), remove("spec.rollout")),
        (
            *desired_state == DesiredState::Planned,
            instead("spec.desiredState", "Planned", "Instantiated or Terminated"),
        ),
        (suspend.unwrap_or_default(), remove("spec.suspend")),
        (revision.is_some(), remove("spec.revision")),
        (render_serial.unwrap_or_default() != 0, remove("spec.renderSerial")),
    ])
    .or_else(|| check_placement(placement))
    .or_else(|| check_sync(sync))
}

fn check_placement(placement: &Placement) -> Option<String> {
    let Placement { all_of: _, any_of: _, membership: _, weights, apps } = placement;
    let weighted =
        |weights: &[Weight], path: &str| (!weights.is_empty()).then(|| remove(&format!("{path}.weights")));
    weighted(weights, "spec.placement").or_else(|| {
        apps.iter().find_map(|AppRule { app, all_of: _, any_of: _, membership: _, weights }| {
            weighted(weights, &format!("spec.placement.apps[{app}]"))
        })
    })
}

fn check_sync(sync: &Sync) -> Option<String> {
    let Sync { drift: _, conflicts, immutable_fields, prune, ignore: _ } = sync;
    first([
        (
            *conflicts != ConflictPolicy::Fail,
            instead("spec.sync.conflicts", &format!("{conflicts:?}"), "Fail"),
        ),
        (
            *immutable_fields != ImmutablePolicy::Fail,
            instead("spec.sync.immutableFields", "Recreate", "Fail"),
        ),
        (*prune != PrunePolicy::AfterReady, instead("spec.sync.prune", &format!("{prune:?}"), "AfterReady")),
    ])
}

/// What of a `DeploymentApproval` is not supported yet.
pub fn check_approval(spec: &DeploymentApprovalSpec) -> Option<String> {
    let DeploymentApprovalSpec {
        deployment_intent_group_ref: _,
        digest: _,
        wave,
        decision: _,
        approved_by: _,
        comment: _,
    } = spec;
    wave.is_some().then(|| remove("spec.wave")).or_else(|| {
        Some("approvals are not supported yet: plans of this project are carried out at once".to_owned())
    })
}

#[cfg(test)]
mod tests {
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
            "{rollout: {}, intents: [], overrideValues: []}",
            "{sync: {drift: Correct, conflicts: Fail, immutableFields: Fail, prune: AfterReady}}",
            "{sync: {drift: Report, ignore: [{kind: Deployment, jsonPointers: [/spec/replicas]}]}}",
            "{desiredState: Terminated, readyClusters: 95%, revisionHistoryLimit: 3}",
            "{unreachable: {action: Abandon, after: 24h}}",
        ] {
            assert_eq!(dig(yaml), None, "{yaml}");
        }
        assert_eq!(check_project(&serde_json::from_str("{}").unwrap()), None);
        let project =
            "{logicalCloud: {level: Admin}, approval: {mode: Automatic, scope: Inputs}, removalBudget: 30%}";
        assert_eq!(check_project(&serde_yaml::from_str(project).unwrap()), None);
        let cloud = "{level: Admin, provision: Eager, isolation: None}";
        assert_eq!(check_logical_cloud(&serde_yaml::from_str(cloud).unwrap()), None);
    }

    #[test]
    fn what_comes_later_is_named_with_the_cure() {
        for (yaml, sentence) in [
            ("{suspend: true}", "spec.suspend is not supported yet: remove the field"),
            ("{revision: 2}", "spec.revision is not supported yet: remove the field"),
            ("{intents: [{kind: A, name: b}]}", "spec.intents is not supported yet: remove the field"),
            ("{rollout: {maxConcurrent: 25%}}", "spec.rollout is not supported yet: remove the field"),
            (
                "{desiredState: Planned}",
                "spec.desiredState Planned is not supported yet: use Instantiated or Terminated",
            ),
            (
                "{sync: {conflicts: AdoptIfSame}}",
                "spec.sync.conflicts AdoptIfSame is not supported yet: use Fail",
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
    fn only_level_admin_is_supported() {
        let sentence = check_logical_cloud(&serde_yaml::from_str("{}").unwrap());
        assert_eq!(sentence.as_deref(), Some("spec.level Standard is not supported yet: use Admin"));
        let sentence = check_project(&serde_yaml::from_str("{logicalCloud: {level: Privileged}}").unwrap());
        assert_eq!(
            sentence.as_deref(),
            Some("spec.logicalCloud.level Privileged is not supported yet: use Admin")
        );
    }

    #[test]
    fn charts_come_from_anywhere_and_wait_for_nothing() {
        let git = "{apps: [{name: web, chart: {git: {url: 'https://x/web', ref: {tag: v1}}}}]}";
        assert_eq!(check_composite_app(&serde_yaml::from_str(git).unwrap()), None);
        let waits = "{apps: [{name: web, chart: {}, dependsOn: [{app: db}]}]}";
        assert_eq!(
            check_composite_app(&serde_yaml::from_str(waits).unwrap()).as_deref(),
            Some("spec.apps[web].dependsOn is not supported yet: remove the field")
        );
    }
}
