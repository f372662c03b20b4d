//! Remembers which digest each ConfigMap with an archive gave last. What is pinned and was found in its ConfigMap is
//! not read again each time it is rendered: whoever watches the ConfigMap reads it when it changes.

use std::collections::BTreeMap;

use parking_lot::Mutex;

/// Places remembered. What is forgotten is read again.
const MOST: usize = 4096;

/// Namespace, name and key.
pub type MapKey = (String, String, String);

/// What ConfigMaps gave last.
#[derive(Default)]
pub struct Maps(Mutex<BTreeMap<MapKey, String>>);

impl Maps {
    /// It was read; `None`: there is no archive.
    pub fn gave(&self, place: MapKey, digest: Option<&str>) {
        let mut known = self.0.lock();
        if known.len() >= MOST {
            known.clear();
        }
        match digest {
            Some(digest) => drop(known.insert(place, digest.to_owned())),
            None => drop(known.remove(&place)),
        }
    }

    /// Whether that is what it gave last.
    pub fn has(&self, place: &MapKey, digest: &str) -> bool {
        self.0.lock().get(place).is_some_and(|known| known == digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_config_map_has_what_it_gave_last() {
        let maps = Maps::default();
        let place = |name: &str| ("team-a".to_owned(), name.to_owned(), "chart.tgz".to_owned());
        assert!(!maps.has(&place("shop"), "sha256:1"));
        maps.gave(place("shop"), Some("sha256:1"));
        assert!(maps.has(&place("shop"), "sha256:1") && !maps.has(&place("shop"), "sha256:2"));
        assert!(!maps.has(&place("pos"), "sha256:1"), "a digest alone is no right to a chart");
        maps.gave(place("shop"), Some("sha256:2"));
        assert!(!maps.has(&place("shop"), "sha256:1"));
        maps.gave(place("shop"), None);
        assert!(!maps.has(&place("shop"), "sha256:2"));
    }
}
