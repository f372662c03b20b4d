//! Refuses a plan that needs, on a cluster that is written to through Git, what no agent there does for EMCO.

use std::collections::BTreeMap;
use std::sync::Arc;

use emco_crds::conditions::types::RENDERED;
use emco_crds::deployment_intent_group::sync::{ConflictPolicy, DriftPolicy, ImmutablePolicy, Sync};
use emco_crds::fields::Level;
use emco_crds::reasons::DeploymentIntentGroupReason as Reason;

use crate::identity::{ClusterId, SetDigest, kind_of};
use crate::refusal::Refusal;
use crate::resolve::Resolved;
use crate::set::{Assignment, ManifestSet};

/// Groups of the agent's own kinds end so.
const AGENTS: &str = ".toolkit.fluxcd.io";

/// The refusal says what is needed, names a cluster, and says what helps.
pub(super) fn check(
    resolved: &Resolved<'_>,
    assignment: &Assignment,
    sets: &BTreeMap<SetDigest, Arc<ManifestSet>>,
) -> Result<(), Box<Refusal>> {
    let clusters = &resolved.snapshot.clusters;
    let by_git = |id: &ClusterId| clusters.get(id).is_some_and(|facts| facts.by_git);
    let mut rows = assignment.iter().filter(|(id, apps)| !apps.is_empty() && by_git(id)).peekable();
    let Some((first, _)) = rows.peek() else { return Ok(()) };
    if let Some((what, cure)) = of_sync(&resolved.dig.spec.sync) {
        return Err(refusal(first, what, cure));
    }
    if resolved.cloud.derived.is_some() {
        let what = format!(
            "logical cloud {} derives its permissions from deployments, which the cluster would have to be asked about",
            resolved.cloud.name
        );
        return Err(refusal(first, &what, "write the permissions down as rules"));
    }
    let confined = resolved.cloud.level != Level::Admin.as_str();
    for (id, apps) in rows {
        for (app, assigned) in apps {
            let mut manifests = sets.get(&assigned.set).into_iter().flat_map(|set| &set.manifests);
            let refused =
                manifests.find_map(|manifest| Some((manifest, of_kind(kind_of(&manifest.json), confined)?)));
            if let Some((manifest, (why, cure))) = refused {
                let what = format!("app {app} makes {}, which {why}", manifest.identity());
                return Err(refusal(id, &what, cure));
            }
        }
    }
    Ok(())
}

/// Why objects of a group and kind may not come from a branch, and what helps. `confined`: its owner has not all rights there.
fn of_kind((group, kind): (&str, &str), confined: bool) -> Option<(&'static str, &'static str)> {
    if (group, kind) == ("", "Secret") {
        return Some((
            "would lie in the repository in clear",
            "change the values so that the chart makes none, and have it made on the cluster",
        ));
    }
    (confined && group.ends_with(AGENTS)).then_some((
        "Flux would carry out with its own rights, and not with those of the logical cloud",
        "take it out of the chart",
    ))
}

/// A field of `spec.sync` that no agent follows, and what helps.
fn of_sync(sync: &Sync) -> Option<(&'static str, &'static str)> {
    let Sync { drift, conflicts, immutable_fields, prune: _, ignore } = sync;
    if *drift == DriftPolicy::Report {
        return Some((
            "spec.sync.drift is Report, and the agent undoes what others change",
            "set it to Correct",
        ));
    }
    if !ignore.is_empty() {
        return Some(("spec.sync.ignore leaves fields alone, and the agent does not", "empty it"));
    }
    if *conflicts != ConflictPolicy::Fail {
        return Some((
            "spec.sync.conflicts takes over objects of others, which cannot be asked through Git",
            "set it to Fail",
        ));
    }
    (*immutable_fields == ImmutablePolicy::Recreate).then_some((
        "spec.sync.immutableFields is Recreate, and objects are not made again through Git",
        "set it to Fail",
    ))
}

fn refusal(cluster: &ClusterId, what: &str, cure: &str) -> Box<Refusal> {
    let message = format!(
        "{what}; cluster {cluster} is written to through Git: {cure}, or leave such clusters out of the placement"
    );
    Refusal::new(RENDERED, Reason::NotSupportedByGit, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_gives_the_agent_no_work_of_its_own() {
        let kustomization = ("kustomize.toolkit.fluxcd.io", "Kustomization");
        assert!(of_kind(kustomization, true).is_some());
        assert_eq!(of_kind(kustomization, false), None);
        assert_eq!(of_kind(("apps", "Deployment"), true), None);
        assert!(of_kind(("", "Secret"), false).is_some());
    }
}
