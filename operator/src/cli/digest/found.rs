//! Finds what a deployment refers to: in the files, else on the hub, if one was named.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use emco_controllers::reconcile::composite_app::source_digest;
use emco_controllers::reconcile::sources;
use emco_crds::composite_app::{App, ChartPin};
use emco_crds::fields::SourceKind;
use emco_crds::names::label;
use emco_crds::project::{ApprovalMode, ApprovalScope};
use emco_crds::{CompositeApp, LogicalCloud, Project};
use emco_engine::snapshot::{Source, SourceKey};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::objects::Objects;
use super::{Answer, keyed};
use crate::cli::hub::{Hub, is_forbidden};

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

/// What the hub answers.
enum OnHub<K> {
    /// It has it.
    Found(K),
    /// It has none, or there is no hub to ask.
    Absent,
    /// It may not be read, as the sentence says.
    Unreadable(String),
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

    async fn on_hub<K>(&self, namespace: &str, name: &str) -> anyhow::Result<OnHub<K>>
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + Debug,
    {
        let Some(hub) = self.hub else { return Ok(OnHub::Absent) };
        let found = Api::<K>::namespaced(hub.client.clone(), namespace).get_opt(name).await;
        let kind = K::kind(&());
        let said = |error| hub.sentence(error, &format!("read {kind}"), &format!("{namespace}/{name}"));
        match found {
            Ok(Some(found)) => Ok(OnHub::Found(found)),
            Ok(None) => Ok(OnHub::Absent),
            Err(error) if is_forbidden(&error) => Ok(OnHub::Unreadable(said(&error).to_string())),
            Err(error) => Err(said(&error)),
        }
    }

    /// An object of a name, which is missing otherwise.
    pub async fn named<K>(
        &self,
        namespace: &str,
        name: &str,
        answer: &mut Answer,
    ) -> anyhow::Result<Option<K>>
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + Debug,
    {
        if let Some(found) = self.objects.one(namespace, name)? {
            for field in self.objects.nulls::<K>(namespace, name) {
                answer.assume(format!(
                    "{} {name}, {field} is null: apply it with kubectl apply --server-side, or kubectl may drop it",
                    K::kind(&())
                ));
            }
            return Ok(Some(found));
        }
        let found = self.on_hub(namespace, name).await?;
        Ok(self.taken(found, &format!("{} {namespace}/{name}", K::kind(&())), answer))
    }

    /// What the hub has; what it has not, or does not show, is missing.
    fn taken<K>(&self, found: OnHub<K>, what: &str, answer: &mut Answer) -> Option<K> {
        match found {
            OnHub::Found(found) => return Some(found),
            OnHub::Absent => answer.missing(self.nowhere(what)),
            OnHub::Unreadable(why) => answer.missing(format!("{what} is in none of the files, and {why}")),
        }
        None
    }

    /// Level of a logical cloud, and its namespace on clusters. The one called default is made by its project.
    pub async fn cloud(
        &self,
        namespace: &str,
        name: &str,
        answer: &mut Answer,
    ) -> anyhow::Result<Option<(String, String)>> {
        let of = |cloud: LogicalCloud| {
            let level = cloud.spec.level.as_str().to_owned();
            (level, cloud.spec.namespace.unwrap_or_else(|| namespace.to_owned()))
        };
        if let Some(cloud) = self.objects.one(namespace, name)? {
            return Ok(Some(of(cloud)));
        }
        // One that exists is left as it is, whatever its project says by now.
        let kept = match self.on_hub(namespace, name).await? {
            OnHub::Found(cloud) => return Ok(Some(of(cloud))),
            other => other,
        };
        let project = self.project(namespace)?.and_then(|project| project.spec.logical_cloud);
        let is_made = name == "default" && matches!(kept, OnHub::Absent);
        if let Some(made) = project.filter(|_| is_made) {
            if self.hub.is_none() {
                answer.assume(format!(
                    "LogicalCloud {namespace}/default is made by its Project: one that exists with another level keeps it"
                ));
            }
            return Ok(Some((made.level.as_str().to_owned(), namespace.to_owned())));
        }
        Ok(self.taken(kept, &format!("LogicalCloud {namespace}/{name}"), answer).map(of))
    }

    /// The project of the files that owns a namespace.
    fn project(&self, namespace: &str) -> anyhow::Result<Option<Project>> {
        let all: Vec<Project> = self.objects.all()?;
        Ok(all.into_iter().find(|project| {
            let own = project.spec.namespace.as_deref().or(project.metadata.name.as_deref());
            own == Some(namespace)
        }))
    }

    /// The project that owns a namespace on the hub; `None` where there is none, or it may not be read, as by tenants.
    async fn project_on_hub(&self, hub: &Hub, namespace: &str) -> anyhow::Result<Option<Project>> {
        let read = async {
            let namespaces = Api::<Namespace>::all(hub.client.clone());
            let labels = namespaces.get_opt(namespace).await?.and_then(|found| found.metadata.labels);
            // The operator goes by it, too.
            let Some(name) = labels.and_then(|mut labels| labels.remove(label::PROJECT)) else {
                return Ok(None);
            };
            Api::<Project>::all(hub.client.clone()).get_opt(&name).await
        };
        match read.await {
            Ok(found) => Ok(found),
            Err(error) if is_forbidden(&error) => Ok(None),
            Err(error) => Err(hub.sentence(&error, "read the Project of namespace", namespace)),
        }
    }

    /// Whether approvals name what is digested here.
    pub async fn scope(&self, namespace: &str, answer: &mut Answer) -> anyhow::Result<()> {
        let mut project = self.project(namespace)?;
        if let (None, Some(hub)) = (&project, self.hub) {
            project = self.project_on_hub(hub, namespace).await?;
        }
        let Some(project) = project else {
            answer.assume(format!(
                "approvals in namespace {namespace} have the scope Inputs: its Project is not in the files, and no hub said it"
            ));
            return Ok(());
        };
        let approval = project.spec.approval;
        if (approval.mode, approval.scope) == (ApprovalMode::Manual, ApprovalScope::Plan) {
            answer.missing(format!(
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
        answer: &mut Answer,
    ) -> anyhow::Result<BTreeMap<String, String>> {
        let name = app.metadata.name.as_deref().unwrap_or_default();
        let mut pins = Vec::new();
        if app.spec.apps.iter().any(|app| app.chart.digest.is_none()) {
            match self.on_hub::<CompositeApp>(namespace, name).await? {
                OnHub::Found(known) => pins = known.status.map(|status| status.apps).unwrap_or_default(),
                OnHub::Absent => {}
                OnHub::Unreadable(why) => answer.missing(why),
            }
        }
        let mut digests = BTreeMap::new();
        for (at, of) in app.spec.apps.iter().enumerate() {
            let mut archive = None;
            if let Some(reference) = &of.chart.config_map_ref {
                let key = reference.key.as_deref().unwrap_or("chart.tgz");
                let field = format!("CompositeApp {namespace}/{name}, spec.apps[{at}].chart.configMapRef");
                let Some(map) = self.map(namespace, &reference.name, answer).await? else { continue };
                let Some(bytes) = sources::bytes(&map, key) else {
                    answer.missing(format!(
                        "{field}: ConfigMap {} has no archive as binaryData at the key {key}: put it there, or name another key",
                        reference.name
                    ));
                    continue;
                };
                if self.hub.is_none() && of.chart.digest.is_none() {
                    answer.assume(format!(
                        "{field}: no other archive was taken from key {key} of ConfigMap {} before, which would be kept: state spec.apps[{at}].chart.digest to be sure",
                        reference.name
                    ));
                }
                archive = Some(emco_controllers::chart::digest(&bytes));
            }
            match chart(of, &pins, archive) {
                Ok(digest) => {
                    digests.insert(of.name.clone(), digest);
                }
                Err(why) => {
                    answer.missing(format!("CompositeApp {namespace}/{name}, spec.apps[{at}].chart: {why}"));
                }
            }
        }
        Ok(digests)
    }

    /// What a profile or an intent reads; `reader` names it for messages.
    pub async fn sources(
        &self,
        namespace: &str,
        reader: &str,
        keys: BTreeSet<SourceKey>,
        answer: &mut Answer,
    ) -> anyhow::Result<BTreeMap<SourceKey, Source>> {
        let mut found = BTreeMap::new();
        for key in keys {
            if key.kind == SourceKind::Secret.as_str() {
                answer.missing(keyed(reader, namespace, &key));
                continue;
            }
            let Some(map) = self.map(namespace, &key.name, answer).await? else { continue };
            let text = sources::bytes(&map, &key.key).and_then(|bytes| String::from_utf8(bytes).ok());
            found.insert(key, text.map_or(Source::KeyMissing, Source::Found));
        }
        Ok(found)
    }

    async fn map(&self, namespace: &str, name: &str, answer: &mut Answer) -> anyhow::Result<Option<Value>> {
        match self.objects.map(namespace, name) {
            Ok(None) => {}
            Ok(Some(map)) => return Ok(Some(map.clone())),
            Err(unplaced) => {
                answer.missing(unplaced.to_string());
                return Ok(None);
            }
        }
        let map = self.on_hub::<ConfigMap>(namespace, name).await?;
        let map = self.taken(map, &format!("ConfigMap {namespace}/{name}"), answer);
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
