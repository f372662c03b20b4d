//! Values of Secrets that deployments read before the files are applied: lines that would go have them, and they are not shown.

use std::collections::{BTreeMap, BTreeSet};

use emco_controllers::reconcile::deployment::preview::Secrets;
use emco_controllers::reconcile::sources;
use emco_engine::resolve;
use emco_engine::snapshot::{Source, SourceKey};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, ResourceExt as _};

use super::world::Lists;
use crate::cli::hub::Hub;

/// Keys of Secrets by deployment of the hub (namespace and name).
pub struct Earlier(BTreeMap<(String, String), BTreeSet<SourceKey>>);

impl Earlier {
    /// What the profiles and intents read that deployments of the hub have.
    pub fn of(lists: &Lists) -> Self {
        let profiles: BTreeMap<(String, String), _> = lists
            .profiles
            .iter()
            .map(|profile| ((profile.namespace().unwrap_or_default(), profile.name_any()), profile))
            .collect();
        let intents: BTreeMap<(String, String), _> = lists
            .intents
            .iter()
            .map(|intent| ((intent.namespace().unwrap_or_default(), intent.name_any()), intent))
            .collect();
        let keys = lists.digs.iter().map(|dig| {
            let namespace = dig.namespace().unwrap_or_default();
            let profile = dig.spec.composite_profile_ref.as_ref();
            let profile = profile.and_then(|named| profiles.get(&(namespace.clone(), named.name.clone())));
            let mut keys = profile.map(|profile| resolve::sources(profile)).unwrap_or_default();
            for listed in dig.spec.intents.iter().filter(|listed| resolve::is_generic_action(listed)) {
                let intent = intents.get(&(namespace.clone(), listed.name.clone()));
                keys.extend(intent.into_iter().flat_map(|intent| resolve::intent_sources(intent)));
            }
            keys.retain(|key| {
                key.kind == "Secret" && sources::impossible(&key.kind, &key.name, &key.key).is_none()
            });
            ((namespace, dig.name_any()), keys)
        });
        Self(keys.collect())
    }

    /// The values of one deployment, as the hub has them.
    pub async fn secrets(&self, hub: &Hub, namespace: &str, name: &str) -> anyhow::Result<Secrets> {
        let Some(keys) = self.0.get(&(namespace.to_owned(), name.to_owned())) else {
            return Ok(Secrets::default());
        };
        let api = Api::<Secret>::namespaced(hub.client.clone(), namespace);
        let mut found = BTreeMap::new();
        for name in keys.iter().map(|key| &key.name).collect::<BTreeSet<_>>() {
            let secret = api.get_opt(name).await;
            let secret = secret
                .map_err(|error| hub.sentence(&error, "read secret", &format!("{namespace}/{name}")))?;
            let data = secret.and_then(|secret| secret.data).unwrap_or_default();
            for key in keys.iter().filter(|key| key.name == *name) {
                let text = data.get(&key.key).and_then(|value| String::from_utf8(value.0.clone()).ok());
                found.extend(text.map(|text| (key.clone(), Source::Found(text))));
            }
        }
        Ok(Secrets::of_sources(&found))
    }
}
