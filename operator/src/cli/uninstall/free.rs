//! Deletes objects of the hub without anything being done on clusters for it.

use anyhow::bail;
use emco_crds::names::PREFIX;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::cli::absence::is_absence;
use crate::cli::hub::Hub;

/// Takes EMCO's finalizers off an object, and deletes it in exactly that state. An operator that came back would have put its finalizer
/// on again, and would remove from clusters what is deleted then: such an object is not deleted.
pub async fn free<K>(hub: &Hub, api: &Api<K>, object: &K, said: &str, delete: bool) -> anyhow::Result<()>
where
    K: ResourceExt + Clone + DeserializeOwned + std::fmt::Debug,
{
    let name = object.name_any();
    let kept: Vec<&String> = object.finalizers().iter().filter(|name| !name.starts_with(PREFIX)).collect();
    let mut version = object.resource_version();
    if kept.len() != object.finalizers().len() {
        let patch =
            json!({"metadata": {"finalizers": kept, "resourceVersion": version, "uid": object.uid()}});
        match api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await {
            Ok(now) => version = now.resource_version(),
            Err(error) if is_absence(&error, &name) => return Ok(()),
            Err(error) => return Err(refused(hub, &error, said)),
        }
    }
    if !delete || object.meta().deletion_timestamp.is_some() {
        return Ok(());
    }
    let preconditions = Preconditions { uid: object.uid(), resource_version: version };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
    match api.delete(&name, &params).await {
        Ok(_) => Ok(()),
        Err(error) if is_absence(&error, &name) => Ok(()),
        Err(error) => Err(refused(hub, &error, said)),
    }
}

fn refused(hub: &Hub, error: &kube::Error, said: &str) -> anyhow::Error {
    if matches!(error, kube::Error::Api(status) if status.code == 409) {
        return anyhow::anyhow!("{said} was changed by somebody else meanwhile: run this again");
    }
    hub.sentence(error, "delete", said)
}

/// Frees all of them, each in its namespace.
pub async fn free_all<K>(hub: &Hub, kind: &str, objects: &[K]) -> anyhow::Result<()>
where
    K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    for object in objects {
        let Some(namespace) = object.namespace() else { bail!("{} has no namespace", object.name_any()) };
        let api = Api::<K>::namespaced(hub.client.clone(), &namespace);
        free(hub, &api, object, &super::named(kind, object), true).await?;
    }
    Ok(())
}
