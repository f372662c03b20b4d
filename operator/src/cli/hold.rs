//! Suspends a deployment, resumes it, and pins it to a stored revision.

use emco_crds::conditions::types;
use emco_crds::names::manager;
use emco_crds::reasons::DeploymentIntentGroupReason as Reason;
use emco_crds::{AppContext, Conditioned as _, DeploymentIntentGroup};
use emco_engine::hold;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde::Serialize;
use serde_json::{Value, json};

use super::args::Format;
use super::args::deployments::{HoldArgs, RollbackArgs};
use super::diff::past;
use super::hub::{self, Hub};
use super::output::machine;
use super::{Outcome, git, print};

/// What was done.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Done {
    deployment: String,
    field: String,
    before: Value,
    now: Value,
    changed: bool,
    /// What becomes of it in Git.
    #[serde(skip_serializing_if = "Option::is_none")]
    git: Option<String>,
}

/// One change of a field.
struct Change<'a> {
    field: &'a str,
    now: Value,
    /// The command that takes it back.
    back: String,
    /// What is said of it.
    said: String,
}

/// `kubectl emco suspend`.
pub async fn suspend(args: HoldArgs) -> anyhow::Result<Outcome> {
    let HoldArgs { named, output } = args;
    let hub = hub::connect(&named.hub).await?;
    let (namespace, name) = hub.locate(&named.deployment, named.namespace.as_deref()).await?;
    let group = hub.deployment(&namespace, &name).await?;
    let said =
        format!("{namespace}/{name} is suspended: nothing is written to its clusters until it is resumed");
    let back = format!("kubectl emco resume {namespace}/{name}");
    let change = Change { field: "suspend", now: json!(true), back, said };
    carry_out(&hub, &group, change, group.spec.is_suspended(), output).await
}

/// `kubectl emco resume`.
pub async fn resume(args: HoldArgs) -> anyhow::Result<Outcome> {
    let HoldArgs { named, output } = args;
    let hub = hub::connect(&named.hub).await?;
    let (namespace, name) = hub.locate(&named.deployment, named.namespace.as_deref()).await?;
    let group = hub.deployment(&namespace, &name).await?;
    let said = suspending(&group).map_or_else(
        || format!("{namespace}/{name} is not suspended: what waited is carried out"),
        |project| format!("{namespace}/{name} has no spec.suspend; Project {project} is suspended, and all waits until that is resumed"),
    );
    let back = format!("kubectl emco suspend {namespace}/{name}");
    let change = Change { field: "suspend", now: Value::Null, back, said };
    carry_out(&hub, &group, change, !group.spec.is_suspended(), output).await
}

/// The suspended project that a deployment is of, as its status says: who may change a deployment need not see Projects.
fn suspending(group: &DeploymentIntentGroup) -> Option<&str> {
    let ready = group.status.as_ref()?.condition(types::READY)?;
    hold::suspending_project(&ready.message)
}

/// Why nothing is done for a deployment at the moment.
pub(super) fn waits(group: &DeploymentIntentGroup) -> Option<String> {
    match suspending(group) {
        Some(project) if group.spec.is_suspended() => {
            Some(format!("it is suspended, and so is Project {project}: it waits until both are resumed"))
        }
        Some(project) => Some(format!("Project {project} is suspended, and it waits until that is resumed")),
        None if group.spec.is_suspended() => {
            Some("it is suspended, and waits until it is resumed".to_owned())
        }
        None => None,
    }
}

/// `kubectl emco rollback`.
pub async fn rollback(args: RollbackArgs) -> anyhow::Result<Outcome> {
    let RollbackArgs { named, revision, unpin, output } = args;
    let hub = hub::connect(&named.hub).await?;
    let (namespace, name) = hub.locate(&named.deployment, named.namespace.as_deref()).await?;
    let group = hub.deployment(&namespace, &name).await?;
    let waits = waits(&group).map(|waits| format!("; {waits}")).unwrap_or_default();
    if unpin {
        let said = format!("{namespace}/{name} follows its newest revision{waits}");
        let pinned = group.spec.revision.map(|revision| format!(" {revision}")).unwrap_or_default();
        let back = format!("kubectl emco rollback {namespace}/{name}{pinned}");
        let change = Change { field: "revision", now: Value::Null, back, said };
        return carry_out(&hub, &group, change, group.spec.revision.is_none(), output).await;
    }
    let contexts = past::contexts(&hub, &namespace, &name).await?;
    let running = group.status.as_ref().and_then(|status| status.revision);
    let revision = choose(&contexts, running, revision)
        .map_err(|why| anyhow::anyhow!("{namespace}/{name} cannot be rolled back: {why}"))?;
    let approved = group.status.as_ref().and_then(|status| status.condition(types::APPROVED));
    let asks = approved.is_some_and(|condition| condition.reason != Reason::Automatic.as_str());
    let first = if asks {
        format!("; it waits for an approval of its own: kubectl emco approve {namespace}/{name}")
    } else {
        String::new()
    };
    let said = format!(
        "{namespace}/{name} is pinned to revision {revision}, and stays there until it is unpinned{first}{waits}"
    );
    let back = format!("kubectl emco rollback {namespace}/{name} --unpin");
    let change = Change { field: "revision", now: json!(revision), back, said };
    carry_out(&hub, &group, change, group.spec.revision == Some(revision), output).await
}

/// The revision that is asked for, or the one before the running one.
fn choose(contexts: &[AppContext], running: Option<i64>, asked: Option<i64>) -> Result<i64, String> {
    let mut stored: Vec<i64> = contexts.iter().map(|context| context.spec.revision).collect();
    stored.sort_unstable_by_key(|revision| std::cmp::Reverse(*revision));
    let named = || stored.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
    if let Some(asked) = asked {
        return if stored.contains(&asked) {
            Ok(asked)
        } else if stored.is_empty() {
            Err("no revision of it is stored".to_owned())
        } else {
            Err(format!("revision {asked} is not stored; there are {}", named()))
        };
    }
    let Some(running) = running else { return Err("it has no revision yet".to_owned()) };
    let before = stored.iter().copied().find(|revision| *revision < running);
    before.ok_or_else(|| format!("no revision before {running} is stored; there are {}", named()))
}

/// Writes one field of the spec, unless it is as it is to be, and says what was done.
async fn carry_out(
    hub: &Hub,
    group: &DeploymentIntentGroup,
    change: Change<'_>,
    is_so: bool,
    output: Option<Format>,
) -> anyhow::Result<Outcome> {
    let Change { field, now, back, said } = change;
    let (namespace, name) = (
        group.metadata.namespace.as_deref().unwrap_or_default(),
        group.metadata.name.as_deref().unwrap_or_default(),
    );
    if !is_so {
        let patch = Patch::Merge(json!({"spec": {field: now}}));
        let params = PatchParams { field_manager: Some(manager::CLI.to_owned()), ..PatchParams::default() };
        let api = Api::<DeploymentIntentGroup>::namespaced(hub.client.clone(), namespace);
        api.patch(name, &params, &patch).await.map_err(|error| {
            hub.sentence(&error, "change deployment intent group", &format!("{namespace}/{name}"))
        })?;
    }
    let before = match field {
        "suspend" => json!(group.spec.suspend),
        _ => json!(group.spec.revision),
    };
    let git = git::sentence(&group.metadata, field, &back).filter(|_| !is_so);
    let done = Done {
        deployment: format!("{namespace}/{name}"),
        field: format!("spec.{field}"),
        before,
        now,
        changed: !is_so,
        git,
    };
    if let Some(text) = machine(output, &done)? {
        print(&text)?;
        return Ok(Outcome::AsWanted);
    }
    let already = if is_so { " (it was so before)" } else { "" };
    print(&format!("{said}{already}\n"))?;
    if let Some(git) = &done.git {
        print(&format!("{git}\n"))?;
    }
    Ok(Outcome::AsWanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(revisions: &[i64]) -> Vec<AppContext> {
        let context = |revision: &i64| {
            let mut context = AppContext::default();
            context.spec.revision = *revision;
            context
        };
        revisions.iter().map(context).collect()
    }

    #[test]
    fn a_deployment_that_waits_says_for_whom() {
        use emco_crds::conditions::types;
        let mut group = DeploymentIntentGroup::default();
        assert_eq!(waits(&group), None);
        group.spec.suspend = Some(true);
        assert_eq!(waits(&group).as_deref(), Some("it is suspended, and waits until it is resumed"));
        let message = format!("2 of 2 clusters ready; {}", {
            let suspending = hold::field_of_project("team-a");
            hold::Hold { suspended: true, suspending, ..hold::Hold::default() }.sentence()
        });
        let list = group.status.get_or_insert_default().conditions_mut();
        let now = k8s_openapi::jiff::Timestamp::UNIX_EPOCH;
        emco_engine::conditions::set(list, types::READY, "True", "Suspended", &message, 1, now);
        assert_eq!(suspending(&group), Some("team-a"));
        let both = "it is suspended, and so is Project team-a: it waits until both are resumed";
        assert_eq!(waits(&group).as_deref(), Some(both));
        group.spec.suspend = None;
        let project = "Project team-a is suspended, and it waits until that is resumed";
        assert_eq!(waits(&group).as_deref(), Some(project));
    }

    #[test]
    fn a_rollback_goes_to_the_stored_revision_before_the_running_one() {
        let all = stored(&[2, 7, 5]);
        assert_eq!(choose(&all, Some(7), None), Ok(5));
        assert_eq!(choose(&all, Some(5), None), Ok(2), "also where it is rolled back already");
        assert_eq!(choose(&all, Some(7), Some(2)), Ok(2));
    }

    #[test]
    fn a_revision_that_is_not_stored_is_refused_with_those_that_are() {
        let all = stored(&[2, 7, 5]);
        assert_eq!(
            choose(&all, Some(7), Some(3)).unwrap_err(),
            "revision 3 is not stored; there are 7, 5, 2"
        );
        assert_eq!(
            choose(&all, Some(2), None).unwrap_err(),
            "no revision before 2 is stored; there are 7, 5, 2"
        );
        assert_eq!(choose(&[], Some(2), Some(1)).unwrap_err(), "no revision of it is stored");
        assert_eq!(choose(&all, None, None).unwrap_err(), "it has no revision yet");
    }
}
