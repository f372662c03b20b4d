//! Reads what the hub stores of a deployment: packs with manifests, as one who administers the hub.

use std::sync::Arc;

use anyhow::anyhow;
use emco_controllers::driver::hub::HubApi;
use emco_controllers::sync::content::{Content as _, HubContent, Source};
use emco_controllers::sync::errors::Trouble;
use emco_crds::SyncShard;
use emco_crds::deployment_intent_group::view::Question;
use emco_crds::names::label;
use emco_engine::identity::SetDigest;
use emco_engine::set::{ManifestSet, Phase, SetManifest};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, ResourceExt as _};
use serde::de::DeserializeOwned;

use super::hub::Hub;

pub mod answer;
pub mod ask;
pub mod lend;

/// Bytes of packs that are kept while a command runs, and while the operator answers a question.
const KEPT: usize = 64 << 20;
const KEPT_BY_OPERATOR: usize = 8 << 20;

/// Stored manifests.
pub fn content(hub: &Hub) -> HubContent {
    let kept = if hub.lender.is_some() { KEPT_BY_OPERATOR } else { KEPT };
    HubContent::new(Arc::new(HubApi::new(hub.client.clone())), hub.operator_namespace.clone(), kept)
}

/// The manifests of an app.
pub async fn set(content: &HubContent, source: &Source, set: &SetDigest) -> anyhow::Result<Arc<ManifestSet>> {
    let found = content.set(source, set).await.map_err(|trouble: Trouble| anyhow!("{}", trouble.message))?;
    Ok(found.set.clone())
}

/// Whether an object stays: what hooks make and leave behind is theirs.
pub const fn lasts(manifest: &SetManifest) -> bool {
    matches!(manifest.phase, Phase::Foundation | Phase::Main)
}

/// The owner hash of the deployment that a shard is of.
pub fn owner_hash(shard: &SyncShard) -> anyhow::Result<String> {
    let hash = shard.labels().get(label::OWNER).cloned();
    hash.ok_or_else(|| anyhow!("shard {} has lost its label {}", shard.name_any(), label::OWNER))
}

/// Whether the user may get objects of the core group on the hub: one of a name, or all of the namespace.
pub async fn may_get(hub: &Hub, namespace: &str, resource: &str, name: Option<&str>) -> anyhow::Result<bool> {
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                namespace: Some(namespace.to_owned()),
                verb: Some("get".to_owned()),
                resource: Some(resource.to_owned()),
                name: name.map(str::to_owned),
                ..Default::default()
            }),
            ..Default::default()
        },
        ..Default::default()
    };
    let answer = Api::<SelfSubjectAccessReview>::all(hub.client.clone())
        .create(&PostParams::default(), &review)
        .await
        .map_err(|error| hub.sentence(&error, "ask", "what you may do"))?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

/// The kind of stored object that the user may not read; none where packs can be read.
pub async fn unreadable(hub: &Hub) -> anyhow::Result<Option<&'static str>> {
    if hub.lender.is_some() {
        return Ok(None);
    }
    for resource in ["configmaps", "secrets"] {
        if !may_get(hub, &hub.operator_namespace, resource, None).await? {
            return Ok(Some(resource));
        }
    }
    Ok(None)
}

/// Says at once what a tenant may not do, and what to do instead.
pub async fn may_read(hub: &Hub, command: &str, namespace: &str, name: &str) -> anyhow::Result<()> {
    match unreadable(hub).await? {
        Some(resource) => Err(for_administrators(hub, command, resource, (namespace, name))),
        None => Ok(()),
    }
}

/// Refuses a command to who may not read what is stored.
pub fn for_administrators(
    hub: &Hub,
    command: &str,
    resource: &str,
    (namespace, name): (&str, &str),
) -> anyhow::Error {
    anyhow!(
        "{command} is for administrators of the hub: it reads stored manifests, and you may not get {resource} in namespace {}; \
         `kubectl emco status {namespace}/{name}` shows what is not as wanted as far as the operator has seen it",
        hub.operator_namespace
    )
}

/// The operator's answer in the place of what is stored, where the user may not read that: `None` where they may.
pub async fn by_operator<T: DeserializeOwned>(
    hub: &Hub,
    command: &str,
    on_hub: &(String, String),
    question: Question,
) -> anyhow::Result<Option<T>> {
    let Some(resource) = unreadable(hub).await? else { return Ok(None) };
    match ask::question(hub, on_hub, question).await? {
        Some(answer) => Ok(Some(answer)),
        None => Err(for_administrators(hub, command, resource, (&on_hub.0, &on_hub.1))),
    }
}
