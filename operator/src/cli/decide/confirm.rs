//! Confirms the deletion of a deployment whose project wants that.

use emco_crds::DeploymentIntentGroup;
use emco_crds::deployment_intent_group::status::{Pending, PendingRequires};
use emco_crds::names::{annotation, manager};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde::Serialize;
use serde_json::json;

use super::{choose, short};
use crate::cli::args::deployments::ConfirmArgs;
use crate::cli::output::machine;
use crate::cli::{Outcome, hold, hub, print};

/// What was done.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Done {
    deployment: String,
    digest: String,
    /// Whether it was confirmed now.
    changed: bool,
    summary: String,
    /// What the removal waits for although it is confirmed.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits: Option<String>,
}

/// `kubectl emco confirm`.
pub async fn run(args: ConfirmArgs) -> anyhow::Result<Outcome> {
    let ConfirmArgs { named, digest, output } = args;
    let hub = hub::connect(&named.hub).await?;
    let (namespace, name) = hub.locate(&named.deployment, named.namespace.as_deref()).await?;
    let group = hub.deployment(&namespace, &name).await?;
    let deployment = format!("{namespace}/{name}");
    let (digest, summary) =
        waits(&group, digest.as_deref()).map_err(|why| anyhow::anyhow!("{deployment}: {why}"))?;
    let text = group.deletion_confirmation(&digest);
    let changed = confirmed(&group) != text.as_ref();
    if changed {
        // Of this object and no other of its name: another one was not looked at.
        let patch = Patch::Merge(json!({"metadata": {
            "uid": group.metadata.uid, "annotations": {(annotation::CONFIRM): text},
        }}));
        let params = PatchParams { field_manager: Some(manager::CLI.to_owned()), ..PatchParams::default() };
        let api = Api::<DeploymentIntentGroup>::namespaced(hub.client.clone(), &namespace);
        api.patch(&name, &params, &patch)
            .await
            .map_err(|error| hub.sentence(&error, "change deployment intent group", &deployment))?;
    }
    let done = Done { deployment, digest, changed, summary, waits: hold::waits(&group) };
    if let Some(text) = machine(output, &done)? {
        print(&text)?;
        return Ok(Outcome::AsWanted);
    }
    let Done { deployment, digest, summary, waits, .. } = &done;
    let before = if changed { "" } else { " (it was so before)" };
    let what = if summary.is_empty() { String::new() } else { format!("; {summary}") };
    let waits = waits.as_ref().map(|waits| format!("; {waits}")).unwrap_or_default();
    print(&format!(
        "{deployment}: its deletion is confirmed, digest {}{before}{what}{waits}\n",
        short(digest)
    ))?;
    Ok(Outcome::AsWanted)
}

/// What a deletion was confirmed with.
fn confirmed(group: &DeploymentIntentGroup) -> Option<&String> {
    group.metadata.annotations.as_ref()?.get(annotation::CONFIRM)
}

/// The digest of what runs, and what is removed with it, where the removal waits to be confirmed or was confirmed already.
fn waits(group: &DeploymentIntentGroup, digest: Option<&str>) -> Result<(String, String), String> {
    if group.metadata.deletion_timestamp.is_none() {
        return Err("it is not being deleted, so there is nothing to confirm".to_owned());
    }
    let status = group.status.as_ref();
    let pending = status.and_then(|status| status.pending.as_ref());
    let waits = pending.filter(|pending| pending.requires == PendingRequires::DeletionConfirmation);
    // The operator has seen it: what is pending requires nothing any more.
    let done = || {
        let runs = status?.digest.as_ref().or_else(|| pending.map(|pending| &pending.digest));
        let runs = runs.filter(|runs| confirmed(group) == group.deletion_confirmation(runs).as_ref())?;
        let summary = pending.map(|pending| pending.summary.clone()).unwrap_or_default();
        Some(Pending { digest: runs.clone(), summary, ..Pending::default() })
    };
    let removal = waits.cloned().or_else(done);
    let removal = removal.ok_or_else(|| "its deletion waits for no confirmation".to_owned())?;
    match choose(Some(&removal), digest)? {
        chosen if chosen == removal.digest => Ok((removal.digest, removal.summary)),
        other => Err(format!(
            "what runs has digest {}, not {}: look at it again",
            short(&removal.digest),
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
        assert_eq!(waits(&group, None).unwrap().0, DIGEST);
        assert_eq!(waits(&group, Some("0123456789ab")).unwrap().0, DIGEST);
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
    fn a_deletion_that_was_confirmed_is_so_still() {
        let mut group = ending(PendingRequires::Nothing);
        group.status.get_or_insert_default().digest = Some(DIGEST.to_owned());
        let said = |text: &str| Some([(annotation::CONFIRM.to_owned(), text.to_owned())].into());
        group.metadata.annotations = said(&format!("{DIGEST}@0"));
        assert_eq!(waits(&group, None).unwrap().0, DIGEST);
        group.metadata.annotations = said(&format!("{DIGEST}@1"));
        assert!(waits(&group, None).is_err(), "it was of another deletion");
        group.metadata.annotations = said("sha256:0@0");
        assert_eq!(waits(&group, None).unwrap_err(), "its deletion waits for no confirmation");
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
