//! Finds the layer of a manifest that is the chart, or says what the manifest is instead.

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::remote::wire::cut;

const CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
/// The second is what early releases of Helm 3 pushed.
const CHART: [&str; 2] = ["application/vnd.cncf.helm.chart.content.v1.tar+gzip", "application/tar+gzip"];

/// Where the chart's archive is.
#[derive(Debug, PartialEq, Eq)]
pub struct Layer {
    /// `sha256:...`
    pub digest: String,
    /// In bytes.
    pub size: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    #[serde(default)]
    media_type: Option<String>,
    manifests: Option<IgnoredAny>,
    config: Option<Descriptor>,
    #[serde(default)]
    layers: Vec<Descriptor>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    media_type: String,
    digest: String,
    size: u64,
}

/// Finds the chart. The error continues a sentence that begins with the address.
pub fn chart_layer(bytes: &[u8]) -> Result<Layer, String> {
    // What serde says would quote the answer.
    let manifest: Manifest = serde_json::from_slice(bytes)
        .map_err(|_| "gives something that is no manifest of a registry".to_owned())?;
    let kind = manifest.media_type.as_deref().unwrap_or_default();
    if manifest.manifests.is_some() || kind.contains("image.index") || kind.contains("manifest.list") {
        return Err(
            "is an index of several manifests, as images for several platforms have: name the digest of the chart's own"
                .to_owned(),
        );
    }
    let config = manifest.config.map(|config| config.media_type).unwrap_or_default();
    if config != CONFIG {
        let found = if config.is_empty() { "nothing".to_owned() } else { format!("{:?}", cut(&config, 80)) };
        return Err(format!("is no Helm chart, for its config is {found}: push the chart with helm push"));
    }
    let mut charts = manifest.layers.into_iter().filter(|layer| CHART.contains(&layer.media_type.as_str()));
    let (Some(layer), None) = (charts.next(), charts.next()) else {
        return Err("has not exactly one layer with a chart: push the chart with helm push".to_owned());
    };
    let hex = layer.digest.strip_prefix("sha256:").unwrap_or_default();
    if hex.len() != 64 || !hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return Err(format!("names the chart by {:?}, which is no SHA-256", cut(&layer.digest, 80)));
    }
    Ok(Layer { digest: layer.digest, size: layer.size })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(manifest: &Value) -> Result<Layer, String> {
        chart_layer(manifest.to_string().as_bytes())
    }

    fn layer(kind: &str, digest: &str) -> Value {
        json!({"mediaType": kind, "digest": digest, "size": 5})
    }

    #[test]
    fn the_chart_is_the_one_layer_of_its_type() {
        let digest = format!("sha256:{}", "a".repeat(64));
        let config = layer(CONFIG, "sha256:00");
        let prov = layer("application/vnd.cncf.helm.chart.provenance.v1.prov", "sha256:11");
        for kind in CHART {
            let manifest =
                json!({"schemaVersion": 2, "config": config, "layers": [prov, layer(kind, &digest)]});
            assert_eq!(of(&manifest), Ok(Layer { digest: digest.clone(), size: 5 }));
        }
        let twice = json!({"config": config, "layers": [layer(CHART[0], &digest), layer(CHART[0], &digest)]});
        assert!(of(&twice).unwrap_err().contains("exactly one layer"));
        let odd = json!({"config": config, "layers": [layer(CHART[0], "sha512:aa")]});
        assert!(of(&odd).unwrap_err().contains("no SHA-256"));
        let up = json!({"config": config, "layers": [layer(CHART[0], "sha256:../../x")]});
        assert!(of(&up).unwrap_err().contains("no SHA-256"));
    }

    #[test]
    fn what_is_no_chart_is_named() {
        let image = json!({"config": layer("application/vnd.oci.image.config.v1+json", "x"), "layers": []});
        let error = of(&image).unwrap_err();
        assert!(error.contains("no Helm chart") && error.contains("image.config"), "{error}");
        assert!(of(&json!({"manifests": []})).unwrap_err().contains("several manifests"));
        let index = json!({"mediaType": "application/vnd.oci.image.index.v1+json"});
        assert!(of(&index).unwrap_err().contains("several manifests"));
        let error = chart_layer(b"<html>secret</html>").unwrap_err();
        assert!(error.contains("no manifest") && !error.contains("secret"), "{error}");
    }
}
