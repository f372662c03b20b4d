//! Lists what an API server serves. Aggregated discovery is two requests, and two answers of `304 Not Modified` when
//! nothing changed; older servers are asked group by group.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use emco_engine::apis::{ApiList, ApiResource};
use emco_engine::path::ApiPath;
use http::HeaderValue;
use http::header::ETAG;
use parking_lot::Mutex;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::transport::RawAnswer;
use super::wire::{self, at, protocol};
use crate::api::ApiResult;

mod asked;

use asked::Asked;
pub use asked::served;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
const PLAIN: &str = "application/json";
/// Group versions asked one by one.
const GROUP_VERSIONS: usize = 500;
/// Resources kept.
const RESOURCES: usize = 20_000;

/// What an API server serves, and what is needed to ask cheaply whether that is still so.
#[derive(Clone, Debug)]
pub struct Discovered {
    /// Everything it serves.
    pub list: Arc<ApiList>,
    /// `sha256:` and 64 hexadecimal digits over the list.
    pub digest: String,
    core: Option<HeaderValue>,
    groups: Option<HeaderValue>,
}

/// Lists that are in use, each once: of ten thousand clusters most serve the same as others.
#[derive(Default)]
pub struct ApiLists(Mutex<BTreeMap<String, Weak<ApiList>>>);

impl ApiLists {
    /// The list of this digest, where somebody has it.
    pub fn of(&self, digest: &str) -> Option<Arc<ApiList>> {
        self.0.lock().get(digest).and_then(Weak::upgrade)
    }

    /// The list of this digest, where somebody has it, or this one.
    fn share(&self, digest: &str, list: ApiList) -> Arc<ApiList> {
        let mut all = self.0.lock();
        if let Some(known) = all.get(digest).and_then(Weak::upgrade) {
            return known;
        }
        all.retain(|_, list| list.strong_count() > 0);
        let list = Arc::new(list);
        all.insert(digest.to_owned(), Arc::downgrade(&list));
        list
    }
}

impl Discovered {
    /// Asks. Group versions whose own server is down at the moment keep what `earlier` knew of them.
    pub async fn read(edge: &impl Asked, earlier: Option<&Self>, lists: &ApiLists) -> ApiResult<Self> {
        let core = half(edge, "/api", earlier, |known| known.core.as_ref()).await?;
        let groups = half(edge, "/apis", earlier, |known| known.groups.as_ref()).await?;
        let (core, groups) = match (core, groups, earlier) {
            (Half::Same, Half::Same, Some(earlier)) => return Ok(earlier.clone()),
            (core, groups, earlier) => (core.or(earlier, true), groups.or(earlier, false)),
        };
        let list = ordered(core.0.into_iter().chain(groups.0).collect());
        let digest = digest(&list);
        Ok(Self { list: lists.share(&digest, list), digest, core: core.1, groups: groups.1 })
    }

    /// Whether something is not served that was.
    pub fn lacks(&self, earlier: &Self) -> bool {
        let served = |resource: &&ApiResource| !self.list.resources.contains(resource);
        !Arc::ptr_eq(&self.list, &earlier.list) && earlier.list.resources.iter().any(|r| served(&r))
    }

    /// With what another reading shows besides. The next reading gets whole answers.
    pub fn with(&self, other: &Self, lists: &ApiLists) -> Self {
        let more = other.list.resources.iter().filter(|resource| !self.list.resources.contains(resource));
        let list = ordered(self.list.resources.iter().chain(more).cloned().collect());
        let digest = digest(&list);
        Self { list: lists.share(&digest, list), digest, core: None, groups: None }
    }

    /// What it served of the core group, or of the others, in the order in which it prefers versions.
    fn known(&self, core: bool) -> impl Iterator<Item = &ApiResource> {
        self.list.resources.iter().filter(move |resource| resource.group.is_empty() == core)
    }
}

/// The answer about the core group, or about all others.
enum Half {
    /// It is as before.
    Same,
    /// What is served, and the tag to ask with.
    New(Vec<ApiResource>, Option<HeaderValue>),
}

impl Half {
    fn or(self, earlier: Option<&Discovered>, core: bool) -> (Vec<ApiResource>, Option<HeaderValue>) {
        match (self, earlier) {
            (Self::New(resources, tag), _) => (resources, tag),
            (Self::Same, Some(earlier)) => {
                let tag = if core { &earlier.core } else { &earlier.groups };
                (earlier.known(core).cloned().collect(), tag.clone())
            }
            (Self::Same, None) => (Vec::new(), None),
        }
    }
}

/// Ordered so that two servers of one cluster give the same list: by group, then as the server prefers its versions, then by
/// kind.
fn ordered(mut all: Vec<ApiResource>) -> ApiList {
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

/// `sha256:` and 64 hexadecimal digits over the list.
fn digest(list: &ApiList) -> String {
    let mut hash = Sha256::new();
    for r in &list.resources {
        let able = if r.listable && !r.watchable {
            "list"
        } else if r.watchable {
            "true"
        } else {
            "false"
        };
        let line =
            format!("{}\0{}\0{}\0{}\0{}\0{able}\n", r.group, r.version, r.kind, r.plural, r.namespaced);
        hash.update(line.as_bytes());
    }
    format!("sha256:{}", hex::encode(hash.finalize()))
}

async fn half(
    edge: &impl Asked,
    path: &'static str,
    earlier: Option<&Discovered>,
    tag: impl Fn(&Discovered) -> Option<&HeaderValue>,
) -> ApiResult<Half> {
    let RawAnswer { status, headers, body } =
        edge.get(ApiPath::new(path), AGGREGATED, earlier.and_then(tag)).await?;
    if status == 304 && earlier.is_some() {
        return Ok(Half::Same);
    }
    let value = wire::answer(edge.server(), status, &headers, body).await?;
    let known = earlier.map(|known| known.list.resources.as_slice()).unwrap_or_default();
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
    Ok(Half::New(resources, headers.get(ETAG).cloned()))
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

/// Verbs by which objects are followed, or come and go. Without any of them a kind is a view, and stores nothing.
const OF_WHAT_IS_STORED: [&str; 6] = ["watch", "create", "update", "patch", "delete", "deletecollection"];

fn has(verbs: &Value, verb: &str) -> bool {
    items(verbs).iter().any(|known| known == verb)
}

fn listable(verbs: &Value) -> bool {
    has(verbs, "list") && OF_WHAT_IS_STORED.iter().any(|verb| has(verbs, verb))
}

fn watchable(verbs: &Value) -> bool {
    has(verbs, "list") && has(verbs, "watch")
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
                watchable: watchable(at(resource, "/verbs")),
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
    edge: &impl Asked,
    versions: Vec<(String, String)>,
    known: &[ApiResource],
) -> ApiResult<Vec<ApiResource>> {
    let mut all = Vec::new();
    for (group, version) in versions.into_iter().take(GROUP_VERSIONS) {
        let path = if group.is_empty() { ApiPath::new("/api") } else { ApiPath::new("/apis").then(&group) };
        let path = path.then(&version);
        // What cannot be a name is not asked for, and hides nothing else.
        if path.fault().is_some() {
            continue;
        }
        let RawAnswer { status, headers, body } = edge.get(path, PLAIN, None).await?;
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
            watchable: watchable(at(resource, "/verbs")),
        }));
    }
    // Subresources have a slash in their name, which no name has.
    all.retain(complete);
    Ok(all)
}

#[cfg(test)]
mod tests;
