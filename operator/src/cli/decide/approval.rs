//! Creates the approval or rejection of a digest in the user's own name.

use emco_crds::deployment_approval::Decision;
use emco_crds::fields::NameRef;
use emco_crds::names::manager;
use emco_crds::{DeploymentApproval, DeploymentApprovalSpec, DeploymentIntentGroup};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{ListParams, PostParams};
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;

use super::short;
use crate::cli::hub::Hub;

/// Longest part of a deployment's name in an approval's: with the digest and what the server adds it stays below 63.
const LONGEST: usize = 43;

/// Result of a decision.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Done {
    pub deployment: String,
    pub decision: Decision,
    pub digest: String,
    /// The wave that it is of alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wave: Option<String>,
    /// Name of the `DeploymentApproval`.
    pub approval: String,
    /// True where it was created now.
    pub created: bool,
    pub by: String,
    /// The `DeploymentApproval` that rejects the digest all the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected: Option<String>,
}

/// Creates it, unless the user has said the same before.
pub async fn give(
    hub: &Hub,
    group: &DeploymentIntentGroup,
    (digest, wave): (String, Option<String>),
    decision: Decision,
    comment: Option<String>,
) -> anyhow::Result<Done> {
    let (namespace, name) = (group.namespace().unwrap_or_default(), group.name_any());
    let by = user(hub).await?;
    let api = Api::<DeploymentApproval>::namespaced(hub.client.clone(), &namespace);
    let all = hub.list(api.clone(), &ListParams::default(), "deployment approvals", Some(&namespace)).await?;
    let is_of = |approval: &&DeploymentApproval, decision: Decision| {
        let spec = &approval.spec;
        (&spec.deployment_intent_group_ref.name, &spec.digest, spec.decision) == (&name, &digest, decision)
            && spec.wave == wave
            && approval.metadata.deletion_timestamp.is_none()
    };
    let same = all.iter().find(|approval| is_of(approval, decision) && approval.spec.approved_by == by);
    let created = same.is_none();
    let approval = if let Some(same) = same {
        same.name_any()
    } else {
        let object = object(group, (&digest, wave.as_deref()), decision, &by, comment);
        let params = PostParams { field_manager: Some(manager::CLI.to_owned()), ..PostParams::default() };
        let made = api.create(&params, &object).await.map_err(|error| {
            hub.sentence(&error, "create a deployment approval of", &format!("{namespace}/{name}"))
        })?;
        made.name_any()
    };
    let no = all.iter().find(|approval| is_of(approval, Decision::Rejected));
    let rejected = no.filter(|_| decision == Decision::Approved).map(ResourceExt::name_any);
    let deployment = format!("{namespace}/{name}");
    Ok(Done { deployment, decision, digest, wave, approval, created, by, rejected })
}

/// The user name that the hub knows the caller by: nothing else is taken for `approvedBy`.
async fn user(hub: &Hub) -> anyhow::Result<String> {
    let review = SelfSubjectReview::default();
    let answer = Api::<SelfSubjectReview>::all(hub.client.clone())
        .create(&PostParams::default(), &review)
        .await
        .map_err(|error| hub.sentence(&error, "ask for", "your user name"))?;
    let name = answer.status.and_then(|status| status.user_info).and_then(|user| user.username);
    name.filter(|name| !name.is_empty())
        .ok_or_else(|| anyhow::anyhow!("the hub {} does not say your user name", hub.url))
}

fn object(
    group: &DeploymentIntentGroup,
    (digest, wave): (&str, Option<&str>),
    decision: Decision,
    by: &str,
    comment: Option<String>,
) -> DeploymentApproval {
    let name = group.metadata.name.clone().unwrap_or_default();
    let start: String = name.chars().take(LONGEST).collect();
    let mut object = DeploymentApproval::default();
    object.metadata.generate_name = Some(format!("{start}-{}-", short(digest)));
    object.metadata.namespace.clone_from(&group.metadata.namespace);
    // It goes with its deployment; those that are applied from Git stay.
    object.metadata.owner_references = Some(vec![OwnerReference {
        api_version: DeploymentIntentGroup::api_version(&()).into_owned(),
        kind: DeploymentIntentGroup::kind(&()).into_owned(),
        name: name.clone(),
        uid: group.metadata.uid.clone().unwrap_or_default(),
        ..OwnerReference::default()
    }]);
    object.spec = DeploymentApprovalSpec {
        deployment_intent_group_ref: NameRef { name },
        digest: digest.to_owned(),
        wave: wave.map(str::to_owned),
        decision,
        approved_by: by.to_owned(),
        comment,
    };
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn an_approval_goes_with_its_deployment_and_has_a_name_that_fits() {
        let mut group = DeploymentIntentGroup::default();
        group.metadata.name = Some("a".repeat(53));
        group.metadata.uid = Some("u".to_owned());
        let made = object(&group, (DIGEST, None), Decision::Rejected, "ann", None);
        let prefix = made.metadata.generate_name.unwrap();
        assert!(prefix.ends_with("-0123456789ab-") && prefix.len() + 5 <= 63, "{prefix}");
        assert_eq!(made.metadata.owner_references.unwrap().first().unwrap().uid, "u");
        assert_eq!((made.spec.decision, made.spec.approved_by.as_str()), (Decision::Rejected, "ann"));
    }
}
