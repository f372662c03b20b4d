//! An API server comes in, the list of what it serves goes out. Aggregated discovery is two requests, and two answers of
//! `304 Not Modified` when nothing changed; older servers are asked group by group.

use std::collections::BTreeMap;

use emco_engine::apis::{ApiList, ApiResource};
use http::HeaderValue;
use http::header::ETAG;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::transport::{Edge, RawAnswer};
use super::wire::{self, at, protocol};
use crate::api::ApiResult;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
const PLAIN: &str = "application/json";
/// Group versions asked one by one.
const GROUP_VERSIONS: usize = 500;
/// Resources kept.
const RESOURCES: usize = 20_000;

/// What an API server serves, and what is needed to ask cheaply whether that is still so.
#[derive(Clone, Debug, Default)]
pub struct Discovered {
    core: Half,
    groups: Half,
}

#[derive(Clone, Debug, Default)]
struct Half {
    resources: Vec<ApiResource>,
    etag: Option<HeaderValue>,
}

impl Discovered {
    /// Asks. Group versions whose own server is down at the moment keep what `earlier` knew of them.
    pub async fn read(edge: &Edge, earlier: Option<&Self>) -> ApiResult<Self> {
        Ok(Self {
            core: half(edge, "/api", earlier.map(|known| &known.core)).await?,
            groups: half(edge, "/apis", earlier.map(|known| &known.groups)).await?,
        })
    }

    /// Everything, ordered so that two servers of one cluster give the same list: by group, then as the server prefers its
    /// versions, then by kind.
    pub fn list(&self) -> ApiList {
        let mut all: Vec<ApiResource> =
            self.core.resources.iter().chain(&self.groups.resources).cloned().collect();
        let mut ranks: BTreeMap<(String, String), usize> = BTreeMap::new();
        for resource in &all {
            let next = ranks.len();
            ranks.entry((resource.group.clone(), resource.version.clone())).or_insert(next);
        }
        all.sort_by_cached_key(|resource| {
            let rank = ranks.get(&(resource.group.clone(), resource.version.clone())).copied();
            (resource.group.clone(), rank, resource.kind.clone(), resource.plural.clone())
        });
        ApiList { resources: all }
    }
}

/// `sha256:` and 64 hexadecimal digits over the list.
pub fn digest(list: &ApiList) -> String {
    let mut hash = Sha256::new();
    for r in &list.resources {
        let line = format!(
            "{}\0{}\0{}\0{}\0{}\0{}\n",
            r.group, r.version, r.kind, r.plural, r.namespaced, r.listable
        );
        hash.update(line.as_bytes());
    }
    format!("sha256:{}", hex::encode(hash.finalize()))
}

async fn half(edge: &Edge, path: &str, earlier: Option<&Half>) -> ApiResult<Half> {
    let etag = earlier.and_then(|half| half.etag.as_ref());
    let RawAnswer { status, headers, body } = edge.get(path, AGGREGATED, etag).await?;
    if let (304, Some(earlier)) = (status, earlier) {
        return Ok(earlier.clone());
    }
    let value = wire::answer(edge.server(), status, &headers, body).await?;
    let known = earlier.map(|half| half.resources.as_slice()).unwrap_or_default();
    let mut resources = match at(&value, "/kind").as_str() {
        Some("APIGroupDiscoveryList") => aggregated(&value, known),
        Some("APIVersions") => {
            let versions = texts(at(&value, "/versions")).into_iter().map(|v| (String::new(), v)).collect();
            one_by_one(edge, versions, known).await?
        }
        Some("APIGroupList") => one_by_one(edge, group_versions(&value), known).await?,
        _ => {
            return Err(protocol(&format!(
                "{} answers {path} with something that is not discovery",
                edge.server()
            )));
        }
    };
    resources.truncate(RESOURCES);
    Ok(Half { resources, etag: headers.get(ETAG).cloned() })
}

fn texts(value: &Value) -> Vec<String> {
    items(value).iter().filter_map(|text| text.as_str().map(str::to_owned)).collect()
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn listable(verbs: &Value) -> bool {
    let has = |verb: &str| items(verbs).iter().any(|known| known == verb);
    has("list") && has("watch")
}

fn of_version<'a>(
    known: &'a [ApiResource],
    group: &'a str,
    version: &'a str,
) -> impl Iterator<Item = ApiResource> + 'a {
    known.iter().filter(move |r| r.group == group && r.version == version).cloned()
}

fn aggregated(value: &Value, known: &[ApiResource]) -> Vec<ApiResource> {
    let mut all = Vec::new();
    for group in items(at(value, "/items")) {
        let name = text(at(group, "/metadata/name"));
        for version in items(at(group, "/versions")) {
            let number = text(at(version, "/version"));
            let resources = items(at(version, "/resources"));
            if resources.is_empty() && at(version, "/freshness") == "Stale" {
                all.extend(of_version(known, &name, &number));
                continue;
            }
            all.extend(resources.iter().map(|resource| ApiResource {
                group: name.clone(),
                version: number.clone(),
                kind: text(at(resource, "/responseKind/kind")),
                plural: text(at(resource, "/resource")),
                namespaced: at(resource, "/scope") == "Namespaced",
                listable: listable(at(resource, "/verbs")),
            }));
        }
    }
    all.retain(complete);
    all
}

/// Names end up in URLs, so what is no name is not kept.
fn complete(resource: &ApiResource) -> bool {
    let plain = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.');
    let there = !resource.kind.is_empty() && !resource.plural.is_empty() && !resource.version.is_empty();
    there
        && [&resource.group, &resource.version, &resource.kind, &resource.plural]
            .iter()
            .all(|text| plain(text))
}

/// Group versions of the old list, the preferred version of each group first.
fn group_versions(value: &Value) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for group in items(at(value, "/groups")) {
        let name = text(at(group, "/name"));
        let preferred = text(at(group, "/preferredVersion/version"));
        let mut versions: Vec<String> =
            items(at(group, "/versions")).iter().map(|v| text(at(v, "/version"))).collect();
        versions.sort_by_key(|version| *version != preferred);
        all.extend(versions.into_iter().map(|version| (name.clone(), version)));
    }
    all
}

async fn one_by_one(
    edge: &Edge,
    versions: Vec<(String, String)>,
    known: &[ApiResource],
) -> ApiResult<Vec<ApiResource>> {
    let mut all = Vec::new();
    for (group, version) in versions.into_iter().take(GROUP_VERSIONS) {
        let path =
            if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        let RawAnswer { status, headers, body } = edge.get(&path, PLAIN, None).await?;
        // One broken extension server must not hide all the others.
        let Ok(value) = wire::answer(edge.server(), status, &headers, body).await else {
            all.extend(of_version(known, &group, &version));
            continue;
        };
        all.extend(items(at(&value, "/resources")).iter().map(|resource| ApiResource {
            group: group.clone(),
            version: version.clone(),
            kind: text(at(resource, "/kind")),
            plural: text(at(resource, "/name")),
            namespaced: at(resource, "/namespaced") == true,
            listable: listable(at(resource, "/verbs")),
        }));
    }
    // Subresources have a slash in their name, which no name has.
    all.retain(complete);
    Ok(all)
}

#[cfg(test)]
mod tests;
