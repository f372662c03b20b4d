//! Puts a packed chart into its ConfigMap, and changes nothing else of that.

use std::collections::BTreeMap;

use anyhow::{anyhow, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_crds::names::manager;
use emco_helm::{Chart, Limits};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use super::{Packed, Place, fits};
use crate::cli::hub::Hub;

/// Stores the chart, unless it is there already, which is answered.
pub async fn store(hub: &Hub, place: &Place, packed: &Packed) -> anyhow::Result<bool> {
    let Place { namespace, name, key } = place;
    let said = format!("{namespace}/{name}");
    let api = Api::<ConfigMap>::namespaced(hub.client.clone(), namespace);
    let found = api.get_opt(name).await.map_err(|error| hub.sentence(&error, "read config map", &said))?;
    let Some(map) = found else {
        fits(packed, 0)?;
        let data = BTreeMap::from([(key.clone(), ByteString(packed.bytes.clone()))]);
        let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
        let map = ConfigMap { metadata, binary_data: Some(data), ..ConfigMap::default() };
        let params = PostParams { field_manager: Some(manager::CLI.to_owned()), ..PostParams::default() };
        let made = api.create(&params, &map).await;
        return made.map(|_| false).map_err(|error| hub.sentence(&error, "make config map", &said));
    };
    if is_there(&map, place, packed)? {
        return Ok(true);
    }
    fits(packed, others(&map, key))?;
    let params = PatchParams { field_manager: Some(manager::CLI.to_owned()), ..PatchParams::default() };
    let data = json!({key.as_str(): STANDARD.encode(&packed.bytes)});
    let patch = json!({"metadata": {"resourceVersion": map.resource_version()}, "binaryData": data});
    match api.patch(name, &params, &Patch::Merge(patch)).await {
        Ok(_) => Ok(false),
        Err(kube::Error::Api(status)) if status.code == 409 => {
            Err(anyhow!("ConfigMap {said} was changed meanwhile: push once more"))
        }
        Err(error) => Err(hub.sentence(&error, "change config map", &said)),
    }
}

/// Whether the very chart is there. What is no chart, or another one, is not replaced.
fn is_there(map: &ConfigMap, place: &Place, packed: &Packed) -> anyhow::Result<bool> {
    let Place { namespace, name, key } = place;
    let instead = "name another one with --name or --key, or delete it";
    if map.data.as_ref().is_some_and(|data| data.contains_key(key)) {
        bail!("key {key} of ConfigMap {namespace}/{name} is a text, and no chart: {instead}");
    }
    if let Some(ByteString(bytes)) = map.binary_data.as_ref().and_then(|data| data.get(key)) {
        if *bytes == packed.bytes {
            return Ok(true);
        }
        match Chart::load(bytes, &Limits::default()) {
            Err(_) => bail!("key {key} of ConfigMap {namespace}/{name} is no chart: {instead}"),
            Ok(chart) if chart.name() != packed.name => bail!(
                "key {key} of ConfigMap {namespace}/{name} is chart {}, and this is chart {}: {instead}",
                chart.name(),
                packed.name
            ),
            Ok(_) => {}
        }
    }
    if map.immutable == Some(true) {
        bail!("ConfigMap {namespace}/{name} is immutable: name another one with --name");
    }
    Ok(false)
}

/// Bytes of the other keys.
fn others(map: &ConfigMap, key: &str) -> usize {
    let texts = map.data.iter().flatten().map(|(_, text)| text.len());
    let binary = map.binary_data.iter().flatten().filter(|(name, _)| *name != key);
    texts.sum::<usize>() + binary.map(|(_, ByteString(bytes))| bytes.len()).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::super::packed::packed;
    use super::*;

    fn chart(name: &str) -> Packed {
        let folder = tempfile::tempdir().unwrap();
        let text = format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n");
        std::fs::write(folder.path().join("Chart.yaml"), text).unwrap();
        packed(folder.path()).unwrap()
    }

    fn place() -> Place {
        let [namespace, name, key] = ["shop", "web", "chart.tgz"].map(str::to_owned);
        Place { namespace, name, key }
    }

    fn with(key: &str, bytes: &[u8]) -> ConfigMap {
        let data = BTreeMap::from([(key.to_owned(), ByteString(bytes.to_vec()))]);
        ConfigMap { binary_data: Some(data), ..ConfigMap::default() }
    }

    #[test]
    fn a_chart_of_the_same_name_is_replaced_and_nothing_else() {
        let (web, other) = (chart("web"), chart("other"));
        assert!(is_there(&with("chart.tgz", &web.bytes), &place(), &web).unwrap());
        let changed = Packed { bytes: [&web.bytes[..], b"\n"].concat(), ..web.clone() };
        assert!(!is_there(&with("chart.tgz", &web.bytes), &place(), &changed).unwrap());
        assert!(!is_there(&with("other.tgz", b"?"), &place(), &web).unwrap());
        let refused = |map: &ConfigMap| is_there(map, &place(), &web).unwrap_err().to_string();
        let said = refused(&with("chart.tgz", &other.bytes));
        assert!(
            said.starts_with("key chart.tgz of ConfigMap shop/web is chart other, and this is chart web:"),
            "{said}"
        );
        let said = refused(&with("chart.tgz", b"?"));
        assert!(said.contains("is no chart: name another one with --name or --key"), "{said}");
        let text = BTreeMap::from([("chart.tgz".to_owned(), "?".to_owned())]);
        let texts = ConfigMap { data: Some(text), ..ConfigMap::default() };
        assert!(refused(&texts).contains("is a text, and no chart"));
        let kept = ConfigMap { immutable: Some(true), ..with("other.tgz", b"?") };
        assert!(refused(&kept).contains("ConfigMap shop/web is immutable"));
    }

    #[test]
    fn other_keys_count_for_the_room_there_is() {
        let mut map = with("chart.tgz", b"12345");
        map.data = Some(BTreeMap::from([("note".to_owned(), "123".to_owned())]));
        assert_eq!((others(&map, "chart.tgz"), others(&map, "other.tgz")), (3, 8));
    }
}
