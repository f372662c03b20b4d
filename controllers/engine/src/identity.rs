//! Names of things, parsed once: clusters, apps, sets, and objects on a cluster.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

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
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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
        let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        let metadata = |field: &str| text(manifest.get("metadata").and_then(|metadata| metadata.get(field)));
        let (group, kind) = kind_of(manifest);
        Self {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: metadata("namespace"),
            name: metadata("name"),
        }
    }

    /// Group and kind.
    pub fn kind(&self) -> (&str, &str) {
        (&self.group, &self.kind)
    }
}

/// An [`Identity`] that is shared, and compared by a number first: for what is asked of every object in every pass, where
/// comparing texts would be most of the work. Its order means nothing to people, and is never stored.
#[derive(Clone, Debug)]
pub struct Id {
    number: u64,
    identity: Arc<Identity>,
}

impl Id {
    /// Shares an identity.
    pub fn new(identity: Identity) -> Self {
        Self { number: number(&identity), identity: Arc::new(identity) }
    }

    /// Whether an identity that is not shared is among these, which are sorted.
    pub fn among(sorted: &[Self], identity: &Identity) -> bool {
        let number = number(identity);
        let order = |id: &Self| id.number.cmp(&number).then_with(|| id.identity.as_ref().cmp(identity));
        sorted.binary_search_by(order).is_ok()
    }
}

/// The same for equal identities, in every process of one build.
fn number(identity: &Identity) -> u64 {
    let mut hasher = DefaultHasher::new();
    identity.hash(&mut hasher);
    hasher.finish()
}

impl Deref for Id {
    type Target = Identity;

    fn deref(&self) -> &Identity {
        &self.identity
    }
}

impl PartialEq for Id {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Id {}

impl PartialOrd for Id {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Id {
    fn cmp(&self, other: &Self) -> Ordering {
        if Arc::ptr_eq(&self.identity, &other.identity) {
            return Ordering::Equal;
        }
        self.number.cmp(&other.number).then_with(|| self.identity.cmp(&other.identity))
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.identity.fmt(f)
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

/// Group and kind of an object; empty texts where it does not say.
pub fn kind_of(object: &Value) -> (&str, &str) {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    (split_api_version(text("apiVersion")).0, text("kind"))
}

/// `apps/v1` to `("apps", "v1")`, `v1` to `("", "v1")`.
pub fn split_api_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn identity() -> impl Strategy<Value = Identity> {
        let part = || "[ab]{0,2}";
        (part(), part(), part(), part()).prop_map(|(group, kind, namespace, name)| Identity {
            group,
            kind,
            namespace,
            name,
        })
    }

    proptest! {
        #[test]
        fn ids_are_equal_where_identities_are(one in identity(), other in identity()) {
            let (a, b) = (Id::new(one.clone()), Id::new(other.clone()));
            prop_assert_eq!(a == b, one == other);
            prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
            prop_assert_eq!(Id::among(std::slice::from_ref(&a), &other), a == b);
            prop_assert_eq!(&a, &a.clone());
        }
    }

    #[test]
    fn ids_with_one_number_are_told_apart_by_their_texts() {
        let of = |name: &str| Identity {
            group: String::new(),
            kind: "ConfigMap".to_owned(),
            namespace: "shop".to_owned(),
            name: name.to_owned(),
        };
        let id = |name: &str| Id { number: 7, identity: Arc::new(of(name)) };
        assert_eq!(id("a"), id("a"));
        assert_ne!(id("a"), id("b"));
        assert_eq!(id("a").cmp(&id("b")), Ordering::Less);
    }
}
