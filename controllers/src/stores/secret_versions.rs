//! Knows which version of each Secret the watches of metadata showed last, so that no reader asks again for one that it has.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use parking_lot::Mutex;

/// Secrets of one namespace.
#[derive(Default)]
struct Shown {
    /// All of them were listed.
    is_listed: bool,
    /// Nothing was heard of the watch since it was cut.
    is_cut: bool,
    versions: BTreeMap<String, String>,
    /// Those that the list that is being read has so far.
    listed: BTreeMap<String, String>,
}

/// The index. The watches of Secrets in owned namespaces keep it; of other namespaces nothing is known.
#[derive(Default)]
pub struct SecretVersions(Mutex<BTreeMap<String, Shown>>);

impl SecretVersions {
    /// Which version of which Secret this is: one that was made again is another one, whatever its number.
    pub fn version(meta: &ObjectMeta) -> Option<String> {
        let version = meta.resource_version.as_ref()?;
        Some(format!("{}@{version}", meta.uid.as_deref().unwrap_or_default()))
    }

    /// The watch of a namespace begins anew. What it showed before holds no more: the end of a Secret may have been missed.
    pub fn begins(&self, namespace: &str) {
        self.0.lock().insert(namespace.to_owned(), Shown::default());
    }

    /// A new list has this Secret. It counts with the whole list.
    pub fn lists(&self, namespace: &str, name: &str, version: Option<&str>) {
        if let Some(shown) = self.0.lock().get_mut(namespace) {
            shown.listed.extend(version.map(|version| (name.to_owned(), version.to_owned())));
        }
    }

    /// The list is whole.
    pub fn listed(&self, namespace: &str) {
        if let Some(shown) = self.0.lock().get_mut(namespace) {
            shown.versions = std::mem::take(&mut shown.listed);
            (shown.is_listed, shown.is_cut) = (true, false);
        }
    }

    /// The watch was cut, or is refused. It goes on from where it was: what it showed holds again once it shows anything.
    pub fn cut(&self, namespace: &str) {
        if let Some(shown) = self.0.lock().get_mut(namespace) {
            shown.is_cut = true;
        }
    }

    /// A Secret came, changed or went. `version`: none where it is gone.
    pub fn shows(&self, namespace: &str, name: &str, version: Option<&str>) {
        let mut all = self.0.lock();
        let Some(shown) = all.get_mut(namespace) else { return };
        shown.is_cut = false;
        match version {
            Some(version) => drop(shown.versions.insert(name.to_owned(), version.to_owned())),
            None => drop(shown.versions.remove(name)),
        }
    }

    /// A namespace is watched no more.
    pub fn ends(&self, namespace: &str) {
        self.0.lock().remove(namespace);
    }

    /// True where the Secrets of a namespace are watched.
    pub fn watches(&self, namespace: &str) -> bool {
        self.0.lock().contains_key(namespace)
    }

    /// The version of a Secret that is there; `None` where it is not, or where that is not known.
    pub fn of(&self, namespace: &str, name: &str) -> Option<String> {
        let all = self.0.lock();
        let shown = all.get(namespace).filter(|shown| shown.is_listed && !shown.is_cut)?;
        shown.versions.get(name).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_known_while_the_watch_of_its_namespace_goes_on() {
        let versions = SecretVersions::default();
        let of = |name: &str| versions.of("acme", name);
        versions.shows("acme", "a", Some("1"));
        assert_eq!(of("a"), None, "nobody watches");
        assert!(!versions.watches("acme"));
        versions.begins("acme");
        assert!(versions.watches("acme"));
        versions.lists("acme", "a", Some("1"));
        assert_eq!(of("a"), None, "the list is not whole");
        versions.listed("acme");
        assert_eq!((of("a").as_deref(), of("b")), (Some("1"), None));
        versions.shows("acme", "a", Some("2"));
        versions.shows("acme", "b", Some("3"));
        versions.shows("acme", "b", None);
        assert_eq!((of("a").as_deref(), of("b"), versions.of("other", "a")), (Some("2"), None, None));
        versions.begins("acme");
        assert_eq!(of("a"), None, "it may have gone meanwhile");
        versions.listed("acme");
        assert_eq!(of("a"), None, "it went");
        versions.shows("acme", "a", Some("4"));
        versions.ends("acme");
        assert_eq!(of("a"), None);
    }

    #[test]
    fn nothing_is_known_while_a_watch_is_cut() {
        let versions = SecretVersions::default();
        let of = || versions.of("acme", "a");
        versions.begins("acme");
        versions.cut("acme");
        versions.shows("acme", "a", Some("1"));
        assert_eq!(of(), None, "it was never listed");
        versions.lists("acme", "a", Some("1"));
        versions.listed("acme");
        assert_eq!(of().as_deref(), Some("1"));
        versions.cut("acme");
        versions.cut("acme");
        assert_eq!(of(), None, "it may have changed");
        versions.shows("acme", "b", Some("2"));
        assert_eq!(of().as_deref(), Some("1"), "the watch goes on");
        versions.cut("acme");
        versions.begins("acme");
        versions.listed("acme");
        assert_eq!(of(), None, "it went");
    }

    #[test]
    fn a_secret_that_was_made_again_has_another_version() {
        let of = |uid: Option<&str>, version: Option<&str>| {
            let (uid, resource_version) = (uid.map(str::to_owned), version.map(str::to_owned));
            SecretVersions::version(&ObjectMeta { uid, resource_version, ..ObjectMeta::default() })
        };
        assert_ne!(of(Some("u"), Some("1")), of(Some("v"), Some("1")));
        assert_ne!(of(Some("u"), Some("1")), of(Some("u"), Some("2")));
        assert_eq!(of(Some("u"), None), None);
    }
}
