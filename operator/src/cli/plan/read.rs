//! Reads what the operator wrote down of a plan that waits: names from a ConfigMap, what changes inside of objects from a Secret that
//! only administrators of the hub may get.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, anyhow};
use emco_controllers::store::plan_details::secret_name;
use emco_crds::deployment_intent_group::status::PendingDetails;
use emco_crds::names::label;
use emco_engine::changes::{
    DETAILS, DIFFERENCES, Details, DetailsVariant, Differences, DryRun, ObjectRow, RecreatedRow, What, digest,
};
use emco_engine::rollout::Outline;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, ResourceExt as _};
use serde::Serialize;

use crate::cli::hub::{Hub, is_forbidden};
use crate::cli::watched;

/// One app.
#[derive(Debug, Serialize)]
pub struct App {
    pub name: String,
    /// On how many clusters it is to be.
    pub clusters: usize,
    pub variants: Vec<Variant>,
    /// How many more of these were not written down.
    #[serde(rename = "leftOut", skip_serializing_if = "is_zero")]
    pub left_out: usize,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde hands it over
const fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Clusters on which the same changes.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Variant {
    pub change: OfApp,
    /// How many clusters.
    pub total: usize,
    /// The first of them.
    pub clusters: Vec<String>,
    pub added: usize,
    pub changed: usize,
    pub removed: usize,
    /// The first of them.
    pub objects: Vec<Object>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<String>,
    /// The first objects that would be deleted and made again, as far as their manifests tell.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recreated: Vec<RecreatedRow>,
    /// The number of others.
    #[serde(skip_serializing_if = "is_zero")]
    pub more_recreated: usize,
    /// What a cluster answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<DryRun>,
}

/// What becomes of the app there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum OfApp {
    Changes,
    Joins,
    Leaves,
}

/// One object.
#[derive(Debug, Serialize)]
pub struct Object {
    #[serde(flatten)]
    pub row: ObjectRow,
    /// As `diff -u` has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<String>,
}

/// What is written down, and whose it is.
pub struct Found {
    details: Details,
    digest: String,
    owner: String,
}

impl Found {
    /// What was worked out here, of which nothing is written down.
    pub fn of(details: Details) -> Self {
        Self { digest: digest(&details), details, owner: String::new() }
    }

    /// The waves that the plan would reach its clusters in.
    pub fn waves(&self) -> &[Outline] {
        &self.details.waves
    }
}

/// The names of all that changes; the inner error says why they are not shown. The status names them before they are written.
pub async fn details(
    hub: &Hub,
    namespace: &str,
    named: &PendingDetails,
    limit: Duration,
) -> Result<Result<Found, String>> {
    let name = &named.config_map;
    let api = Api::<ConfigMap>::namespaced(hub.client.clone(), namespace);
    match api.get_opt(name).await {
        Ok(Some(map)) => {
            if let Ok(found) = read(&map, named) {
                return Ok(found);
            }
        }
        Ok(None) => {}
        Err(error) if is_forbidden(&error) => {
            return Ok(Err(format!(
                "every object is named in ConfigMap {namespace}/{name}, which you may not get"
            )));
        }
        Err(error) => return Err(hub.sentence(&error, "read config map", &format!("{namespace}/{name}"))),
    }
    let gone = "it is not there";
    let judge = |map: Option<&ConfigMap>| map.map_or_else(|| Err(gone.to_owned()), |map| read(map, named));
    let found = watched::until(api, name, limit, gone, judge).await?;
    Ok(found.unwrap_or_else(|why| {
        Err(format!("every object is named in ConfigMap {namespace}/{name}, and {why}: it is written with the next plan"))
    }))
}

/// The outer error: it is of another plan.
fn read(map: &ConfigMap, named: &PendingDetails) -> Result<Result<Found, String>, String> {
    let text = map.data.as_ref().and_then(|data| data.get(DETAILS)).ok_or("it has lost its content")?;
    let details = match Details::read(text) {
        Ok(details) => details,
        Err(why) => return Ok(Err(format!("ConfigMap {}: {why}", map.name_any()))),
    };
    if digest(&details) != named.digest {
        return Err("it is of another plan, or was edited".to_owned());
    }
    let owner = map.labels().get(label::OWNER).cloned().unwrap_or_default();
    Ok(Ok(Found { details, digest: named.digest.clone(), owner }))
}

/// What changes inside of objects; the inner error says why it is not shown.
pub async fn differences(hub: &Hub, found: &Found) -> Result<Result<Differences, String>> {
    let (namespace, name) = (&hub.operator_namespace, secret_name(&found.owner));
    let secret = match Api::<Secret>::namespaced(hub.client.clone(), namespace).get_opt(&name).await {
        Ok(secret) => secret,
        Err(error) if is_forbidden(&error) => {
            return Ok(Err(format!(
                "what changes inside of objects is shown to administrators of the hub: you may not get Secret {namespace}/{name}"
            )));
        }
        Err(error) => return Err(hub.sentence(&error, "read secret", &format!("{namespace}/{name}"))),
    };
    let not_there = || {
        format!(
            "what changes inside of objects is in Secret {namespace}/{name}, which is not there or of another plan"
        )
    };
    let bytes = secret.and_then(|secret| secret.data?.remove(DIFFERENCES));
    let Some(bytes) = bytes else { return Ok(Err(not_there())) };
    let read = Differences::read(&bytes.0).map_err(|why| anyhow!("Secret {namespace}/{name}: {why}"))?;
    Ok(if read.digest == found.digest { Ok(read) } else { Err(not_there()) })
}

/// Names with what changes inside of objects, and notes on what is not shown.
pub fn joined(found: Found, differences: Option<Result<Differences, String>>) -> (Vec<App>, Vec<String>) {
    let mut notes = Vec::new();
    let mut texts: BTreeMap<(Option<String>, Option<String>, String), String> = BTreeMap::new();
    match differences {
        Some(Ok(found)) => {
            if found.left_out > 0 {
                notes.push(format!("what changes inside of {} more objects did not fit", found.left_out));
            }
            let texts_of = found.objects.into_iter();
            texts.extend(texts_of.map(|one| ((one.before, one.now, one.object), one.text)));
        }
        Some(Err(why)) => notes.push(why),
        None => {}
    }
    let variant = |variant: DetailsVariant| {
        let (before, now) = (variant.before, variant.now);
        let object = |row: ObjectRow| {
            let key = (before.clone(), now.clone(), row.object.clone());
            let difference = texts.get(&key).filter(|_| row.what != What::Removed).cloned();
            Object { row, difference }
        };
        Variant {
            change: match (&before, &now) {
                (None, _) => OfApp::Joins,
                (_, None) => OfApp::Leaves,
                _ => OfApp::Changes,
            },
            total: variant.total,
            clusters: variant.clusters,
            added: variant.added,
            changed: variant.changed,
            removed: variant.removed,
            objects: variant.objects.into_iter().map(object).collect(),
            hooks: variant.hooks,
            recreated: variant.recreated,
            more_recreated: variant.more_recreated,
            dry_run: variant.dry_run,
        }
    };
    let apps = found.details.apps.into_iter().map(|app| App {
        name: app.app,
        clusters: app.clusters,
        variants: app.variants.into_iter().map(&variant).collect(),
        left_out: app.left_out,
    });
    (apps.collect(), notes)
}
