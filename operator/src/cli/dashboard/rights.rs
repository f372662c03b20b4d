//! Asks the hub what the user may do.

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::Api;
use kube::api::PostParams;

use crate::cli::hub::Hub;

/// A right on a kind of EMCO that the user lacks, in a sentence; `None` where they have it.
pub async fn lacking(
    hub: &Hub,
    verb: &str,
    resource: &str,
    namespace: Option<&str>,
) -> anyhow::Result<Option<String>> {
    let attributes = ResourceAttributes {
        verb: Some(verb.to_owned()),
        group: Some(emco_crds::names::GROUP.to_owned()),
        resource: Some(resource.to_owned()),
        namespace: namespace.map(str::to_owned),
        ..ResourceAttributes::default()
    };
    let spec = SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() };
    let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
    let answer = Api::<SelfSubjectAccessReview>::all(hub.client.clone())
        .create(&PostParams::default(), &review)
        .await
        .map_err(|error| hub.sentence(&error, "ask", "what you may do"))?;
    let status = answer.status.unwrap_or_default();
    if status.allowed {
        return Ok(None);
    }
    let place =
        namespace.map_or_else(|| "in all namespaces".to_owned(), |name| format!("in namespace {name}"));
    let why = status.reason.filter(|why| !why.is_empty()).map(|why| format!(" ({why})")).unwrap_or_default();
    Ok(Some(format!("the hub does not let you {verb} {resource} {place}{why}")))
}
