//! Where charts come from.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::fields::{KeyRef, NameRef};

/// Where a chart comes from: exactly one of repository, oci, git, configMapRef.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = (
        "[has(self.repository), has(self.oci), has(self.git), has(self.configMapRef)].filter(x, x).size() == 1",
        "chart needs exactly one of repository, oci, git, configMapRef"
    )
)]
pub struct ChartSource {
    /// A Helm repository over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<RepositoryChart>,
    /// An OCI registry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oci: Option<OciChart>,
    /// A folder of a Git repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git: Option<GitChart>,
    /// A chart archive in a `ConfigMap` of the same namespace (binaryData); key chart.tgz if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_map_ref: Option<KeyRef>,
    /// Credentials: username, password, ca.crt, tls.crt, tls.key, or a Secret of type kubernetes.io/dockerconfigjson.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<NameRef>,
    /// SHA-256 of the archive: anything else is refused.
    #[schemars(length(max = 71), regex(pattern = r"^sha256:[0-9a-f]{64}$"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Values are not checked against the `values.schema.json` of the chart and its dependencies, as with helm's
    /// --skip-schema-validation; false if absent. It is no part of what pins the chart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_schema_validation: Option<bool>,
}

/// A chart of a Helm repository.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(
    validation = (
        "self.version.matches('^v?[0-9]+[.][0-9]+[.][0-9]+(-[0-9A-Za-z.-]+)?([+][0-9A-Za-z.-]+)?$')",
        "chart version must be exact, for example 1.4.0: a range could change what was approved"
    ),
    validation = (
        "self.url.startsWith('https://') || self.url.startsWith('http://')",
        "the url of a repository starts with https:// or http://"
    )
)]
pub struct RepositoryChart {
    /// Address of the repository; index.yaml is below it.
    #[schemars(length(min = 1, max = 512))]
    pub url: String,
    /// Name of the chart.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Exact version.
    #[schemars(length(min = 1, max = 128))]
    pub version: String,
}

/// A chart of an OCI registry.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(
    validation = (
        "!has(self.version) || self.version.matches('^v?[0-9]+[.][0-9]+[.][0-9]+(-[0-9A-Za-z.-]+)?([+][0-9A-Za-z.-]+)?$')",
        "chart version must be exact, for example 1.4.0: a range could change what was approved"
    ),
    validation = ("has(self.version) || has(self.digest)", "oci needs version or digest"),
    validation = ("self.url.startsWith('oci://')", "the url of an OCI chart starts with oci://")
)]
pub struct OciChart {
    /// `oci://registry/path/chart`.
    #[schemars(length(min = 1, max = 512))]
    pub url: String,
    /// Exact version, the tag.
    #[schemars(length(min = 1, max = 128))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Digest of the manifest, instead of a version or besides.
    #[schemars(length(max = 71), regex(pattern = r"^sha256:[0-9a-f]{64}$"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// A chart in a Git repository.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(
    validation = (
        "!has(self.path) || !self.path.matches('^/|(^|/)[.][.](/|$)')",
        "path must stay inside the repository"
    ),
    validation = (
        "self.url.startsWith('https://') || self.url.startsWith('http://')",
        "the url of a Git repository starts with https:// or http://; ssh is not spoken"
    )
)]
pub struct GitChart {
    /// Address of the repository.
    #[schemars(length(min = 1, max = 512))]
    pub url: String,
    /// Which commit.
    #[serde(rename = "ref")]
    pub ref_: GitRef,
    /// Folder of the chart; the root if absent.
    #[schemars(length(min = 1, max = 512))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// A commit, by exactly one of these.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(
    validation = (
        "[has(self.tag), has(self.branch), has(self.commit)].filter(x, x).size() == 1",
        "ref needs exactly one of tag, branch, commit"
    )
)]
pub struct GitRef {
    /// A tag.
    #[schemars(length(min = 1, max = 255))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// A branch; the commit it points to is pinned once, and stays when the branch moves on.
    #[schemars(length(min = 1, max = 255))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// A commit, by its whole name in lower case.
    #[schemars(length(min = 40, max = 64), regex(pattern = r"^([0-9a-f]{40}|[0-9a-f]{64})$"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}
