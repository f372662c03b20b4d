//! Writes for people what was found, what it needs, and what the tools that had it will do.

use std::collections::BTreeSet;

use emco_crds::deployment_intent_group::sync::ConflictPolicy;
use emco_engine::adopt::Tool;
use emco_engine::text::counted;

use super::found::{Answer, Listed, Obstacle, OnCluster, reach};

/// The objects, by cluster.
pub fn list(answer: &Answer) -> String {
    let mut text = String::new();
    for OnCluster { cluster, revision, compared, objects, error } in &answer.clusters {
        let result = match (error, objects.len()) {
            (Some(error), _) => error.clone(),
            (None, 0) => format!("no object of others under {}", counted(*compared, "name")),
            (None, many) => format!("{} of others", counted(many, "object")),
        };
        text.push_str(&format!("{cluster}, revision {revision}: {result}\n"));
        for object in objects {
            text.push_str(&one(object));
        }
    }
    text
}

fn one(object: &Listed) -> String {
    let Listed { app, object: id, holder, needs, obstacle, message, fields, held, restarts_pods, .. } =
        object;
    let verdict = match (needs, obstacle) {
        (Some(ConflictPolicy::AdoptIfSame), _) => "AdoptIfSame, an apply changes nothing".to_owned(),
        (Some(needs), _) if *restarts_pods => format!("{needs:?}, and its Pods restart"),
        (Some(needs), _) => format!("{needs:?}"),
        (None, Some(Obstacle::OtherDeployment)) => "another deployment has it".to_owned(),
        (None, Some(Obstacle::Hook)) => "in the way of a hook".to_owned(),
        (None, _) => "cannot be taken over".to_owned(),
    };
    let said = if message.is_empty() { String::new() } else { format!(": {message}") };
    let mut text = format!("  {id} (app {app}) of {holder}: {verdict}{said}\n");
    for field in fields {
        text.push_str(&format!("    {field}\n"));
    }
    for held in held {
        text.push_str(&format!("    held by others: {}: {}\n", held.field, held.by));
    }
    text
}

/// What it comes to, and the command that takes it over.
pub fn advice(answer: &Answer) -> String {
    let Answer { deployment, conflicts, needs, .. } = answer;
    let mut text = String::new();
    let command = format!("kubectl emco adopt {deployment}");
    let (taken, stuck): (Vec<_>, Vec<_>) = answer.objects().partition(|(_, object)| object.needs.is_some());
    if let Some(needs) = needs {
        let changed = taken.iter().filter(|(_, object)| !object.fields.is_empty()).count();
        let restarts = taken.iter().filter(|(_, object)| object.restarts_pods).count();
        let pods = match restarts {
            0 => "no Pod restarts".to_owned(),
            _ => format!("Pods of {} restart", counted(restarts, "workload")),
        };
        let objects = counted(taken.len(), "object");
        text.push_str(&format!(
            "{needs:?} takes over {objects}; {changed} of them would change, and {pods}."
        ));
        if reach(*conflicts) >= reach(*needs) {
            text.push_str(&format!(
                " spec.sync.conflicts is {conflicts:?} already, so the operator is at it:\n  kubectl emco wait {deployment} --for=applied\n"
            ));
        } else {
            text.push_str(&format!(
                " spec.sync.conflicts is {conflicts:?}. Take over what is listed with:\n  {command} --conflicts {needs:?}\n"
            ));
        }
    } else if answer.silent().is_empty() && stuck.is_empty() {
        text.push_str("There is nothing to take over.\n");
    }
    if !stuck.is_empty() {
        text.push_str(&format!(
            "No value takes over {}, which {} marked above.\n",
            counted(stuck.len(), "object"),
            if stuck.len() == 1 { "is" } else { "are" }
        ));
    }
    text.push_str(&after(answer));
    text
}

/// What was written.
pub fn done(answer: &Answer) -> String {
    let Some(change) = &answer.change else { return String::new() };
    let Answer { deployment, needs, .. } = answer;
    let (before, now) = (change.before, change.now);
    let was = if change.changed { format!("it was {before:?}") } else { "it was so before".to_owned() };
    let taken = answer.objects().filter(|(_, object)| object.is_taken_by(now)).count();
    let what = match (now, needs) {
        (ConflictPolicy::Fail, _) if answer.clusters.is_empty() => {
            "nothing more is taken over; what was taken over stays so".to_owned()
        }
        (_, None) => "there is nothing that it takes over, and nothing was changed".to_owned(),
        _ => format!(
            "the operator takes over {}; `kubectl emco wait {deployment} --for=applied` waits for it",
            counted(taken, "object")
        ),
    };
    let mut text = format!("{deployment}: spec.sync.conflicts is {now:?} ({was}): {what}\n");
    if let Some(git) = &change.git {
        text.push_str(&format!("{git}\n"));
    }
    text.push_str(&after(answer));
    text
}

/// What holds the operator up, and what the tools that have objects do unless they are stopped.
fn after(answer: &Answer) -> String {
    let mut text = String::new();
    if let Some(waits) = &answer.waits {
        text.push_str(&format!("{}: {waits}\n", answer.deployment));
    }
    let taken = answer.objects().filter(|(_, object)| object.needs.is_some());
    let tools: BTreeSet<Tool> = taken.filter_map(|(_, object)| object.tool).collect();
    for tool in tools {
        text.push_str(match tool {
            Tool::Helm => "Helm goes on to count the objects as its release's: once they are taken over, delete the release's Secrets on the cluster; helm uninstall would delete the objects.\n",
            Tool::HelmRelease => "Flux upgrades the HelmRelease, and uninstalls it when it is deleted: set its spec.suspend first, and delete it while it is suspended.\n",
            Tool::Kustomization => "Flux writes the Kustomization's values back, and deletes the objects with it: set its spec.suspend first, and delete it while it is suspended.\n",
            Tool::Application => "Argo CD syncs the Application, and deletes the objects with it: end its automated sync first, and delete it without cascade.\n",
        });
    }
    text
}
