//! Sets `spec.sync.conflicts` of a deployment that is still what was looked at, unless the value is not enough.

use anyhow::bail;
use emco_crds::DeploymentIntentGroup;
use emco_crds::deployment_intent_group::sync::ConflictPolicy;
use emco_crds::names::manager;
use emco_engine::text::counted;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::found::{Answer, Change};
use crate::cli::git;
use crate::cli::hub::Hub;
use crate::cli::orphans::some;

/// The field.
const FIELD: &str = "spec.sync.conflicts";
/// Objects that a refusal names.
const NAMED: usize = 3;
/// Writes of the operator's status that are met.
const TRIES: usize = 5;

/// Why a value is not enough for what was found; nothing where it is.
pub fn refusal(answer: &Answer, wanted: ConflictPolicy) -> Option<String> {
    if wanted == ConflictPolicy::Fail {
        return None;
    }
    let silent = answer.silent();
    let left: Vec<String> = answer
        .objects()
        .filter(|(_, object)| !object.is_taken_by(wanted))
        .map(|(cluster, object)| match object.needs {
            Some(needs) => format!("{} on {cluster} needs {needs:?}", object.object),
            None => format!("{} on {cluster} is taken over by no value", object.object),
        })
        .collect();
    let mut why = Vec::new();
    if !left.is_empty() {
        why.push(format!("{wanted:?} leaves {}: {}", counted(left.len(), "object"), some(&left, NAMED)));
    }
    if !silent.is_empty() {
        let them = counted(silent.len(), "cluster");
        why.push(format!("{them} cannot be asked: {}", some(&silent, NAMED)));
    }
    let rest = "nothing was changed; --partly takes over the rest";
    (!why.is_empty()).then(|| format!("{}: {}; {rest}", answer.deployment, why.join("; ")))
}

/// Writes the value, unless it is there already.
pub async fn carry_out(
    hub: &Hub,
    group: &DeploymentIntentGroup,
    now: ConflictPolicy,
) -> anyhow::Result<Change> {
    let (namespace, name) = (
        group.metadata.namespace.as_deref().unwrap_or_default(),
        group.metadata.name.as_deref().unwrap_or_default(),
    );
    let before = group.spec.sync.conflicts;
    let changed = before != now;
    if changed {
        write(hub, group, namespace, name, now).await?;
    }
    let command = format!("kubectl emco adopt {namespace}/{name}");
    let back = format!("{command} --conflicts {before:?}");
    let git = git::sentence(&group.metadata, "sync.conflicts", &back).filter(|_| changed);
    Ok(Change { field: FIELD, before, now, changed, git })
}

/// Only what was looked at is changed: the same object with the same spec and the same revision. A status that was written meanwhile
/// is none of it.
async fn write(
    hub: &Hub,
    looked_at: &DeploymentIntentGroup,
    namespace: &str,
    name: &str,
    now: ConflictPolicy,
) -> anyhow::Result<()> {
    let api = Api::<DeploymentIntentGroup>::namespaced(hub.client.clone(), namespace);
    let params = PatchParams { field_manager: Some(manager::CLI.to_owned()), ..PatchParams::default() };
    let mut version = looked_at.metadata.resource_version.clone();
    for _ in 0..TRIES {
        let patch = Patch::Merge(json!({
            "metadata": {"uid": looked_at.metadata.uid, "resourceVersion": version},
            "spec": {"sync": {"conflicts": now}},
        }));
        match api.patch(name, &params, &patch).await {
            Ok(_) => return Ok(()),
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => {
                let object = format!("{namespace}/{name}");
                return Err(hub.sentence(&error, "change deployment intent group", &object));
            }
        }
        let fresh = hub.deployment(namespace, name).await?;
        if !is_same(looked_at, &fresh) {
            break;
        }
        version = fresh.metadata.resource_version;
    }
    bail!("{namespace}/{name} was changed since it was looked at: nothing was written; look at it again")
}

fn is_same(before: &DeploymentIntentGroup, now: &DeploymentIntentGroup) -> bool {
    let of = |group: &DeploymentIntentGroup| {
        let revision = group.status.as_ref().and_then(|status| status.revision);
        (group.metadata.uid.clone(), group.metadata.generation, revision)
    };
    of(before) == of(now)
}

#[cfg(test)]
mod tests {
    use super::super::found::{Listed, Obstacle, OnCluster};
    use super::*;

    fn object(name: &str, needs: Option<ConflictPolicy>) -> Listed {
        Listed {
            app: "web".to_owned(),
            object: name.to_owned(),
            holder: "kubectl".to_owned(),
            tool: None,
            needs,
            obstacle: needs.is_none().then_some(Obstacle::Hook),
            message: String::new(),
            fields: Vec::new(),
            held: Vec::new(),
            restarts_pods: false,
        }
    }

    fn answer(objects: Vec<Listed>, error: Option<&str>) -> Answer {
        let error = error.map(str::to_owned);
        let clusters =
            vec![OnCluster { cluster: "acme/a".to_owned(), revision: 1, compared: 3, objects, error }];
        Answer {
            deployment: "shop/till".to_owned(),
            conflicts: ConflictPolicy::Fail,
            needs: Answer::least(&clusters),
            waits: None,
            clusters,
            change: None,
        }
    }

    #[test]
    fn a_value_that_leaves_an_object_is_refused_and_names_it() {
        use ConflictPolicy::{Adopt, AdoptIfSame, Fail, Force};
        let found =
            answer(vec![object("ConfigMap/s/a", Some(AdoptIfSame)), object("Secret/s/b", Some(Force))], None);
        assert_eq!(found.needs, Some(Force));
        assert_eq!(refusal(&found, Force), None);
        assert_eq!(refusal(&found, Fail), None, "nothing more is taken over");
        let said = "shop/till: Adopt leaves 1 object: Secret/s/b on acme/a needs Force; nothing was changed; --partly takes over the rest";
        assert_eq!(refusal(&found, Adopt).unwrap(), said);
        let hook = answer(vec![object("Job/s/h", None)], None);
        assert_eq!(hook.needs, None);
        assert!(refusal(&hook, Force).unwrap().contains("Job/s/h on acme/a is taken over by no value"));
    }

    #[test]
    fn a_cluster_that_cannot_be_asked_is_no_cluster_with_nothing() {
        let said = refusal(&answer(Vec::new(), Some("it is away")), ConflictPolicy::Force).unwrap();
        assert!(
            said.starts_with("shop/till: 1 cluster cannot be asked: acme/a; nothing was changed"),
            "{said}"
        );
    }

    #[test]
    fn a_status_that_was_written_meanwhile_is_no_other_deployment() {
        let mut group = DeploymentIntentGroup::default();
        group.metadata.generation = Some(2);
        let mut now = group.clone();
        now.metadata.resource_version = Some("9".to_owned());
        assert!(is_same(&group, &now));
        now.metadata.generation = Some(3);
        assert!(!is_same(&group, &now));
        now = group.clone();
        now.status.get_or_insert_default().revision = Some(2);
        assert!(!is_same(&group, &now));
    }
}
