//! Names of things, parsed once: clusters, apps, sets, and objects on a cluster.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A cluster as people see it everywhere: `provider/cluster`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClusterId(String);

impl ClusterId {
    /// Joins the two names; both are DNS labels, so the slash is unambiguous.
    pub fn new(provider: &str, cluster: &str) -> Self {
        Self(format!("{provider}/{cluster}"))
    }

    /// Reads `provider/cluster`; `None` when there is not exactly one slash with text on both sides.
    pub fn parse(text: &str) -> Option<Self> {
        let (provider, cluster) = text.split_once('/')?;
        if provider.is_empty() || cluster.is_empty() || cluster.contains('/') {
            return None;
        }
        Some(Self(text.to_owned()))
    }

    /// The text `provider/cluster`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The part before the slash.
    pub fn provider(&self) -> &str {
        self.0.split_once('/').map_or(self.0.as_str(), |(provider, _)| provider)
    }

    /// The part after the slash.
    pub fn cluster(&self) -> &str {
        self.0.split_once('/').map_or("", |(_, cluster)| cluster)
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Keyed digest of a manifest set: 32 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SetDigest(pub String);

impl fmt::Display for SetDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What one cluster gets of one owner: app name to manifest set.
pub type Combination = std::collections::BTreeMap<String, SetDigest>;

/// What names an object on a cluster. The API version is not part of it: `apps/v1` and `apps/v1beta1` name the same
/// Deployment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Identity {
    /// API group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Kind, as in the manifest.
    pub kind: String,
    /// Namespace; empty for cluster-scoped objects.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl Identity {
    /// Reads the identity of a manifest; missing parts are empty texts.
    pub fn of(manifest: &Value) -> Self {
        let text = |path: &str| manifest.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let api_version = manifest.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        let (group, _) = split_api_version(api_version);
        Self {
            group: group.to_owned(),
            kind: text("/kind"),
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
        }
    }
}

/// `apps/Deployment/shop/web`; the core group and cluster scope leave their part out: `ConfigMap/shop/web`,
/// `Namespace/shop`.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in [&self.group, &self.kind, &self.namespace] {
            if !part.is_empty() {
                write!(f, "{part}/")?;
            }
        }
        f.write_str(&self.name)
    }
}

/// `apps/v1` to `("apps", "v1")`, `v1` to `("", "v1")`.
pub fn split_api_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}
