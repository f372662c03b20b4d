//! Confirms the deletion of a deployment whose project wants that.

use emco_crds::DeploymentIntentGroup;
use emco_crds::deployment_intent_group::status::{Pending, PendingRequires};
use emco_crds::names::{annotation, manager};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde::Serialize;
use serde_json::json;

use super::args::deployments::ConfirmArgs;
use super::decide::{choose, short};
use super::output::machine;
use super::{Outcome, hub, print};

/// What was done.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Done {
    deployment: String,
    digest: String,
    /// Whether it was confirmed now.
    changed: bool,
    summary: String,
}

/// `kubectl emco confirm`.
pub async fn run(args: ConfirmArgs) -> anyhow::Result<Outcome> {
    let ConfirmArgs { named, digest, output } = args;
    let hub = hub::connect(&named.hub).await?;
    let (namespace, name) = hub.locate(&named.deployment, named.namespace.as_deref()).await?;
    let group = hub.deployment(&namespace, &name).await?;
    let deployment = format!("{namespace}/{name}");
    let pending = waits(&group, digest.as_deref()).map_err(|why| anyhow::anyhow!("{deployment}: {why}"))?;
    let Pending { digest, summary, .. } = pending.clone();
    let said = group.metadata.annotations.as_ref().and_then(|all| all.get(annotation::CONFIRM));
    let changed = said != Some(&digest);
    if changed {
        // Of this object and no other of its name: another one was not looked at.
        let patch = Patch::Merge(json!({"metadata": {
            "uid": group.metadata.uid, "annotations": {(annotation::CONFIRM): digest},
        }}));
        let params = PatchParams { field_manager: Some(manager::CLI.to_owned()), ..PatchParams::default() };
        let api = Api::<DeploymentIntentGroup>::namespaced(hub.client.clone(), &namespace);
        api.patch(&name, &params, &patch)
            .await
            .map_err(|error| hub.sentence(&error, "change deployment intent group", &deployment))?;
    }
    let done = Done { deployment, digest, changed, summary };
    if let Some(text) = machine(output, &done)? {
        print(&text)?;
        return Ok(Outcome::AsWanted);
    }
    let Done { deployment, digest, summary, .. } = &done;
    let before = if changed { "" } else { " (it was so before)" };
    let what = if summary.is_empty() { String::new() } else { format!("; {summary}") };
    print(&format!("{deployment}: its deletion is confirmed, digest {}{before}{what}\n", short(digest)))?;
    Ok(Outcome::AsWanted)
}

/// The removal that waits to be confirmed.
fn waits<'a>(group: &'a DeploymentIntentGroup, digest: Option<&str>) -> Result<&'a Pending, String> {
    if group.metadata.deletion_timestamp.is_none() {
        return Err("it is not being deleted, so there is nothing to confirm".to_owned());
    }
    let pending = group.status.as_ref().and_then(|status| status.pending.as_ref());
    let pending = pending.filter(|pending| pending.requires == PendingRequires::DeletionConfirmation);
    let pending = pending.ok_or_else(|| "its deletion waits for no confirmation".to_owned())?;
    match choose(Some(pending), digest)? {
        chosen if chosen == pending.digest => Ok(pending),
        other => Err(format!(
            "what runs has digest {}, not {}: look at it again",
            short(&pending.digest),
            short(&other)
        )),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use k8s_openapi::jiff::Timestamp;

    use super::*;

    const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn ending(requires: PendingRequires) -> DeploymentIntentGroup {
        let mut group = DeploymentIntentGroup::default();
        group.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        let pending = Pending { digest: DIGEST.to_owned(), requires, ..Pending::default() };
        group.status.get_or_insert_default().pending = Some(pending);
        group
    }

    #[test]
    fn only_a_deletion_that_waits_for_it_is_confirmed() {
        let group = ending(PendingRequires::DeletionConfirmation);
        assert_eq!(waits(&group, None).unwrap().digest, DIGEST);
        assert_eq!(waits(&group, Some("0123456789ab")).unwrap().digest, DIGEST);
        let mut stays = group.clone();
        stays.metadata.deletion_timestamp = None;
        assert_eq!(
            waits(&stays, None).unwrap_err(),
            "it is not being deleted, so there is nothing to confirm"
        );
        let confirmed = ending(PendingRequires::Nothing);
        assert_eq!(waits(&confirmed, None).unwrap_err(), "its deletion waits for no confirmation");
    }

    #[test]
    fn another_digest_than_that_of_what_runs_confirms_nothing() {
        let group = ending(PendingRequires::DeletionConfirmation);
        let other = format!("sha256:{}", "f".repeat(64));
        assert_eq!(
            waits(&group, Some(&other)).unwrap_err(),
            "what runs has digest 0123456789ab, not ffffffffffff: look at it again"
        );
        assert!(waits(&group, Some("ffffffff")).is_err());
    }
}
