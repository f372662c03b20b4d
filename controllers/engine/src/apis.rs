//! What an API server serves: the list that discovery gave, as data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::path::ApiPath;

/// One served resource of one group version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ApiResource {
    /// API group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Version, such as `v1`.
    pub version: String,
    /// Kind, such as `Deployment`.
    pub kind: String,
    /// Plural name, as in URLs.
    pub plural: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Whether what is stored of it can be listed. (Reviews are answers; metrics are a view: nobody can make or delete any.)
    pub listable: bool,
    /// Whether it can be listed and watched.
    pub watchable: bool,
}

impl ApiResource {
    /// `apps/v1` or `v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The URL path of one object, or of the collection when `name` is `None`.
    pub fn path(&self, namespace: &str, name: Option<&str>) -> ApiPath {
        let mut path = if self.group.is_empty() {
            ApiPath::new("/api").then(&self.version)
        } else {
            ApiPath::new("/apis").then(&self.group).then(&self.version)
        };
        if self.namespaced && !namespace.is_empty() {
            path = path.then("namespaces").then(namespace);
        }
        path = path.then(&self.plural);
        match name {
            Some(name) => path.then(name),
            None => path,
        }
    }
}

/// All resources of one API server, in the server's order of preference within a group (its preferred version first).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiList {
    /// Resources without their subresources.
    pub resources: Vec<ApiResource>,
}

impl ApiList {
    /// Finds a kind in exactly this group and version.
    pub fn find(&self, group: &str, version: &str, kind: &str) -> Option<&ApiResource> {
        self.resources.iter().find(|r| r.group == group && r.version == version && r.kind == kind)
    }

    /// Finds a kind in a group at the version that the server prefers.
    pub fn preferred(&self, group: &str, kind: &str) -> Option<&ApiResource> {
        self.resources.iter().find(|r| r.group == group && r.kind == kind)
    }

    /// What Helm's `.Capabilities.APIVersions` holds: `apps/v1` and `apps/v1/Deployment` for each.
    pub fn helm_api_versions(&self) -> std::collections::BTreeSet<String> {
        let mut all = std::collections::BTreeSet::new();
        for resource in &self.resources {
            let version = resource.api_version();
            all.insert(format!("{version}/{}", resource.kind));
            all.insert(version);
        }
        all
    }

    /// Namespaced or not by group and kind, for lookups of many manifests.
    pub fn scopes(&self) -> BTreeMap<(&str, &str), bool> {
        self.resources.iter().map(|r| ((r.group.as_str(), r.kind.as_str()), r.namespaced)).collect()
    }
}
