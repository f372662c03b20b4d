//! Finds what a deployment refers to: in the files, else on the hub, if one was named.

use std::collections::BTreeMap;
use std::fmt::Debug;

use emco_controllers::reconcile::composite_app::source_digest;
use emco_controllers::reconcile::sources;
use emco_crds::composite_app::{App, ChartPin};
use emco_crds::fields::SourceKind;
use emco_crds::project::ApprovalScope;
use emco_crds::{CompositeApp, CompositeProfile, LogicalCloud, Project};
use emco_engine::resolve;
use emco_engine::snapshot::{Source, SourceKey};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::keyed;
use super::objects::Objects;
use crate::cli::hub::Hub;

/// Digest of an app's chart: as it is stated, as it is in a ConfigMap, or as the hub pinned the same source, where these agree.
fn chart(app: &App, pins: &[ChartPin], archive: Option<String>) -> Result<String, String> {
    let source = source_digest(app);
    let pin = pins.iter().find(|pin| pin.name == app.name && pin.source == source);
    let stated = app.chart.digest.as_ref();
    match (stated, archive, pin) {
        (Some(stated), Some(archive), _) if *stated != archive => {
            Err(format!("its archive has the digest {archive}, and {stated} is stated: correct one of them"))
        }
        (None, Some(archive), Some(pin)) if pin.digest != archive => Err(format!(
            "its archive has the digest {archive}, and the hub keeps {}, which it took from the same key: put the archive under another key, or state its digest",
            pin.digest
        )),
        (Some(digest), ..) => Ok(digest.clone()),
        (None, Some(archive), _) => Ok(archive),
        (None, None, Some(pin)) => Ok(pin.digest.clone()),
        (None, None, None) => Err(format!(
            "no digest of the chart of app {} is stated: state it, or name a hub with --context that has fetched it from there",
            app.name
        )),
    }
}

/// Where things are looked for.
pub struct Found<'a> {
    /// The files.
    pub objects: &'a Objects,
    /// The hub.
    pub hub: Option<&'a Hub>,
}

impl Found<'_> {
    /// Where nothing was found, and what helps.
    fn nowhere(&self, what: &str) -> String {
        match self.hub {
            None => format!("{what} is in none of the files: add it, or name a hub with --context"),
            Some(hub) => format!("{what} is in none of the files, and not on the hub {}", hub.url),
        }
    }

    async fn on_hub<K>(&self, namespace: &str, name: &str) -> anyhow::Result<Option<K>>
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + Debug,
    {
        let Some(hub) = self.hub else { return Ok(None) };
        let found = Api::<K>::namespaced(hub.client.clone(), namespace).get_opt(name).await;
        let kind = K::kind(&());
        found.map_err(|error| hub.sentence(&error, &format!("read {kind}"), &format!("{namespace}/{name}")))
    }

    /// An object of a name, which is missing otherwise.
    pub async fn named<K>(
        &self,
        namespace: &str,
        name: &str,
        missing: &mut Vec<String>,
    ) -> anyhow::Result<Option<K>>
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + Debug,
    {
        if let Some(found) = self.written(namespace, name)? {
            return Ok(Some(found));
        }
        let found = self.on_hub(namespace, name).await?;
        if found.is_none() {
            missing.push(self.nowhere(&format!("{} {namespace}/{name}", K::kind(&()))));
        }
        Ok(found)
    }

    fn written<K>(&self, namespace: &str, name: &str) -> anyhow::Result<Option<K>>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
    {
        let all: Vec<K> = self.objects.all()?;
        Ok(all.into_iter().find(|object| {
            let meta = object.meta();
            (meta.namespace.as_deref(), meta.name.as_deref()) == (Some(namespace), Some(name))
        }))
    }

    /// Level of a logical cloud, and its namespace on clusters. The one called default is made by its project.
    pub async fn cloud(
        &self,
        namespace: &str,
        name: &str,
        missing: &mut Vec<String>,
    ) -> anyhow::Result<Option<(String, String)>> {
        let of = |cloud: LogicalCloud| {
            let level = cloud.spec.level.as_str().to_owned();
            (level, cloud.spec.namespace.unwrap_or_else(|| namespace.to_owned()))
        };
        if let Some(cloud) = self.written(namespace, name)? {
            return Ok(Some(of(cloud)));
        }
        // One that exists is left as it is, whatever its project says by now.
        if let Some(cloud) = self.on_hub(namespace, name).await? {
            return Ok(Some(of(cloud)));
        }
        let project = self.project(namespace)?.and_then(|project| project.spec.logical_cloud);
        if let Some(made) = project.filter(|_| name == "default") {
            return Ok(Some((made.level.as_str().to_owned(), namespace.to_owned())));
        }
        missing.push(self.nowhere(&format!("LogicalCloud {namespace}/{name}")));
        Ok(None)
    }

    /// The project of the files that owns a namespace.
    fn project(&self, namespace: &str) -> anyhow::Result<Option<Project>> {
        let all: Vec<Project> = self.objects.all()?;
        Ok(all.into_iter().find(|project| {
            let own = project.spec.namespace.as_deref().or(project.metadata.name.as_deref());
            own == Some(namespace)
        }))
    }

    /// Whether approvals name what is digested here.
    pub async fn scope(&self, namespace: &str, missing: &mut Vec<String>) -> anyhow::Result<()> {
        let mut project = self.project(namespace)?;
        if let (None, Some(hub)) = (&project, self.hub) {
            // Tenants cannot read projects; by default the namespace has the project's name.
            project = Api::<Project>::all(hub.client.clone()).get_opt(namespace).await.ok().flatten();
        }
        if let Some(project) = project.filter(|project| project.spec.approval.scope == ApprovalScope::Plan) {
            missing.push(format!(
                "Project {} wants whole plans approved (spec.approval.scope is Plan), and what clusters would get is known on the hub alone: apply the change, and take status.pending.digest",
                project.metadata.name.unwrap_or_default()
            ));
        }
        Ok(())
    }

    /// Digests of the charts: as they are stated, of archives in ConfigMaps, or as the hub pinned the same source.
    pub async fn charts(
        &self,
        namespace: &str,
        app: &CompositeApp,
        missing: &mut Vec<String>,
    ) -> anyhow::Result<BTreeMap<String, String>> {
        let name = app.metadata.name.as_deref().unwrap_or_default();
        let known: Option<CompositeApp> = self.on_hub(namespace, name).await?;
        let pins = known.and_then(|known| known.status).map(|status| status.apps).unwrap_or_default();
        let mut digests = BTreeMap::new();
        for (at, of) in app.spec.apps.iter().enumerate() {
            let mut archive = None;
            if let Some(reference) = &of.chart.config_map_ref {
                let key = reference.key.as_deref().unwrap_or("chart.tgz");
                let Some(map) = self.map(namespace, &reference.name, missing).await? else { continue };
                let Some(bytes) = sources::bytes(&map, key) else {
                    missing.push(format!("ConfigMap {namespace}/{} has no key {key}", reference.name));
                    continue;
                };
                archive = Some(emco_controllers::chart::digest(&bytes));
            }
            match chart(of, &pins, archive) {
                Ok(digest) => {
                    digests.insert(of.name.clone(), digest);
                }
                Err(why) => {
                    missing.push(format!("CompositeApp {namespace}/{name}, spec.apps[{at}].chart: {why}"));
                }
            }
        }
        Ok(digests)
    }

    /// What a profile reads.
    pub async fn sources(
        &self,
        namespace: &str,
        profile: &CompositeProfile,
        missing: &mut Vec<String>,
    ) -> anyhow::Result<BTreeMap<SourceKey, Source>> {
        let name = profile.metadata.name.as_deref().unwrap_or_default();
        let mut found = BTreeMap::new();
        for key in resolve::sources(profile) {
            if key.kind == SourceKind::Secret.as_str() {
                missing.push(keyed(name, &key.name));
                continue;
            }
            let Some(map) = self.map(namespace, &key.name, missing).await? else { continue };
            let text = sources::bytes(&map, &key.key).and_then(|bytes| String::from_utf8(bytes).ok());
            found.insert(key, text.map_or(Source::KeyMissing, Source::Found));
        }
        missing.dedup();
        Ok(found)
    }

    async fn map(
        &self,
        namespace: &str,
        name: &str,
        missing: &mut Vec<String>,
    ) -> anyhow::Result<Option<Value>> {
        if let Some(map) = self.objects.plain("ConfigMap", namespace, name) {
            return Ok(Some(map.clone()));
        }
        let map: Option<ConfigMap> = self.on_hub(namespace, name).await?;
        if map.is_none() {
            missing.push(self.nowhere(&format!("ConfigMap {namespace}/{name}")));
        }
        map.map(|map| serde_json::to_value(map).map_err(Into::into)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pin_of_another_source_and_a_changed_archive_give_no_digest() {
        let [one, two] = ["1", "2"].map(|digit| format!("sha256:{}", digit.repeat(64)));
        let app = |version: &str, digest: Option<&str>| -> App {
            let repository = json!({"url": "https://charts.example.com", "name": "web", "version": version});
            serde_json::from_value(
                json!({"name": "web", "chart": {"repository": repository, "digest": digest}}),
            )
            .unwrap()
        };
        let (now, stated) = (app("1.0.0", None), app("1.0.0", Some(&one)));
        let pin = ChartPin {
            name: "web".to_owned(),
            digest: one.clone(),
            source: source_digest(&now),
            ..ChartPin::default()
        };
        let pins = [pin];
        assert_eq!(chart(&now, &pins, None), Ok(one.clone()));
        assert!(chart(&app("1.1.0", None), &pins, None).is_err(), "it is of the version before");
        assert_eq!(chart(&stated, &[], None), Ok(one.clone()));
        assert_eq!(chart(&stated, &[], Some(one.clone())), Ok(one.clone()));
        assert!(chart(&stated, &[], Some(two.clone())).unwrap_err().contains("correct one of them"));
        assert_eq!(chart(&now, &[], Some(two.clone())), Ok(two.clone()));
        assert!(chart(&now, &pins, Some(two)).unwrap_err().contains("under another key"));
    }
}
