//! Packs a chart's folder into a ConfigMap of the hub, and has each CompositeApp that names it take it.

use anyhow::{anyhow, bail};
use emco_crds::CompositeApp;
use emco_crds::names::manager;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use crate::cli::args::chart::PushArgs;
use crate::cli::hub::{self, Hub, is_forbidden};
use crate::cli::output::printable;
use crate::cli::{Outcome, git, print};

mod named;
mod packed;
mod stored;

use packed::Packed;

/// The key of a chart in a ConfigMap where none is named.
const KEY: &str = "chart.tgz";

/// So often a CompositeApp is read again that was changed meanwhile.
const TRIES: usize = 5;

/// Where a chart is put.
pub struct Place {
    /// Of the ConfigMap, and of each CompositeApp that may name it.
    namespace: String,
    name: String,
    key: String,
}

impl Place {
    /// As a CompositeApp names it.
    fn reference(&self) -> String {
        match self.key.as_str() {
            KEY => format!("chart: {{configMapRef: {{name: {}}}}}", self.name),
            key => format!("chart: {{configMapRef: {{name: {}, key: {key}}}}}", self.name),
        }
    }
}

/// `kubectl emco chart push`.
pub async fn run(args: PushArgs) -> anyhow::Result<Outcome> {
    let packed = packed::packed(&args.chart)?;
    let hub = hub::connect(&args.hub).await?;
    let place = Place {
        namespace: hub.namespace_or(args.namespace.as_deref()),
        name: args.name.unwrap_or_else(|| packed.name.clone()),
        key: args.key,
    };
    let before = stored::store(&hub, &place, &packed).await?;
    let Packed { name, version, digest, bytes } = &packed;
    let Place { namespace, name: map, key } = &place;
    let how = if before { "is already" } else { "is now" };
    let size = bytes.len();
    print(&format!(
        "{name} {version} {how} in ConfigMap {namespace}/{map}, key {key}: {size} bytes, {digest}\n"
    ))?;
    accepted(&hub, &place, digest).await
}

/// Sets the digest in each CompositeApp that names the chart, and says so.
async fn accepted(hub: &Hub, place: &Place, digest: &str) -> anyhow::Result<Outcome> {
    let namespace = &place.namespace;
    let resource = ApiResource::erase::<CompositeApp>(&());
    let api = Api::<DynamicObject>::namespaced_with(hub.client.clone(), namespace, &resource);
    let objects = match hub.try_list(api.clone(), &ListParams::default()).await {
        Ok(objects) => objects,
        Err(error) if is_forbidden(&error) => {
            warn(&format!(
                "you may not list CompositeApps in namespace {namespace}: set spec.apps[NAME].chart.digest to {digest} in those that have {}",
                place.reference()
            ));
            return Ok(Outcome::NotAsWanted);
        }
        Err(error) => {
            return Err(hub.sentence(&error, "list composite apps", &format!("in namespace {namespace}")));
        }
    };
    let (mut lines, mut failed) = (String::new(), false);
    for object in &objects {
        let said = format!("CompositeApp {namespace}/{}", object.name_any());
        let apps = named::find(object, place, digest).apps;
        if apps.is_empty() {
            continue;
        }
        let apps = apps.join(", ");
        match set(hub, &api, object, place, digest).await {
            Ok(false) => lines.push_str(&format!("{said} has this digest: app {apps}\n")),
            Ok(true) => {
                lines.push_str(&format!("{said} takes it: spec.apps[].chart.digest is set of app {apps}\n"));
                if let Some(source) = git::source(&object.metadata) {
                    warn(&format!(
                        "{source} applies {said}: write the digest into Git as well, or it may be set back"
                    ));
                }
            }
            Err(error) => {
                failed = true;
                warn(&format!("{error:#}; set spec.apps[].chart.digest of {said}, app {apps}, to {digest}"));
            }
        }
    }
    if lines.is_empty() && !failed {
        lines = format!("no CompositeApp of namespace {namespace} names it yet: {}\n", place.reference());
    }
    print(&lines)?;
    Ok(if failed { Outcome::NotAsWanted } else { Outcome::AsWanted })
}

/// Sets the digest where it is another one. Answers whether it was. The operator writes the object, too: what was changed meanwhile is read
/// again.
async fn set(
    hub: &Hub,
    api: &Api<DynamicObject>,
    object: &DynamicObject,
    place: &Place,
    digest: &str,
) -> anyhow::Result<bool> {
    let name = object.name_any();
    let said = format!("CompositeApp {}/{name}", place.namespace);
    let params = PatchParams { field_manager: Some(manager::CLI.to_owned()), ..PatchParams::default() };
    let mut object = object.clone();
    for _ in 0..TRIES {
        let named::Named { set, spec, .. } = named::find(&object, place, digest);
        if set == 0 {
            return Ok(false);
        }
        let patch = json!({"metadata": {"resourceVersion": object.resource_version()}, "spec": spec});
        match api.patch(&name, &params, &Patch::Merge(patch)).await {
            Ok(_) => return Ok(true),
            Err(kube::Error::Api(status)) if status.code == 409 => {
                let read = api.get(&name).await;
                object = read.map_err(|error| hub.sentence(&error, "read", &said))?;
            }
            Err(error) => return Err(hub.sentence(&error, "change", &said)),
        }
    }
    Err(anyhow!("{said} was changed meanwhile, {TRIES} times: push once more"))
}

fn warn(text: &str) {
    eprintln!("warning: {}", printable(text));
}

/// Refuses what no ConfigMap holds, and names what does.
fn fits(packed: &Packed, beside: usize) -> anyhow::Result<()> {
    const MOST: usize = 1 << 20;
    let (size, Packed { name, version, .. }) = (packed.bytes.len(), packed);
    if size + beside <= MOST {
        return Ok(());
    }
    let others = if beside > 0 { format!(" and its other keys {beside}") } else { String::new() };
    bail!(
        "chart {name} {version} has {size} bytes packed{others}, and a ConfigMap holds {MOST}: leave out by .helmignore what no template \
         needs, or put the chart into a Helm repository (chart.repository), an OCI registry (`helm push`, chart.oci) or Git (chart.git)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_that_no_config_map_holds_names_the_sources_that_do() {
        let of = |size: usize| Packed {
            name: "web".to_owned(),
            version: "1.0.0".to_owned(),
            digest: String::new(),
            bytes: vec![0; size],
        };
        assert!(fits(&of(1 << 20), 0).is_ok());
        let said = fits(&of((1 << 20) + 1), 0).unwrap_err().to_string();
        assert!(
            said.starts_with("chart web 1.0.0 has 1048577 bytes packed, and a ConfigMap holds 1048576:"),
            "{said}"
        );
        for source in ["chart.repository", "chart.oci", "chart.git"] {
            assert!(said.contains(source), "{said}");
        }
        let said = fits(&of(1 << 19), 1 << 20).unwrap_err().to_string();
        assert!(said.contains("packed and its other keys 1048576, and"), "{said}");
    }

    #[test]
    fn a_place_is_written_as_a_composite_app_names_it() {
        let of = |key: &str| {
            let (namespace, name) = ("shop".to_owned(), "web".to_owned());
            Place { namespace, name, key: key.to_owned() }
        };
        assert_eq!(of("chart.tgz").reference(), "chart: {configMapRef: {name: web}}");
        assert_eq!(of("web.tgz").reference(), "chart: {configMapRef: {name: web, key: web.tgz}}");
    }
}
