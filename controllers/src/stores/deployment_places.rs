//! Counts the deployments of each namespace and ranks them by age, without a walk over all of them.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::DeploymentIntentGroup;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use parking_lot::Mutex;

use crate::object::meta;

/// Those of one namespace.
#[derive(Default)]
struct Places {
    made: BTreeMap<String, Option<Time>>,
    by_age: BTreeSet<(Option<Time>, String)>,
}

/// The index. The watch of deployments keeps it.
#[derive(Default)]
pub struct DeploymentPlaces(Mutex<BTreeMap<String, Places>>);

impl DeploymentPlaces {
    /// Takes in what the watch shows.
    pub fn note(&self, dig: &DeploymentIntentGroup, gone: bool) {
        let (namespace, name) = (meta::namespace(dig), meta::name(dig));
        let made = dig.metadata.creation_timestamp.clone();
        let mut all = self.0.lock();
        if !gone {
            let places = all.entry(namespace.to_owned()).or_default();
            match places.made.insert(name.to_owned(), made.clone()) {
                Some(before) if before == made => return,
                Some(before) => places.by_age.remove(&(before, name.to_owned())),
                None => false,
            };
            places.by_age.insert((made, name.to_owned()));
        } else if let Some(places) = all.get_mut(namespace) {
            if let Some(before) = places.made.remove(name) {
                places.by_age.remove(&(before, name.to_owned()));
            }
            if places.made.is_empty() {
                all.remove(namespace);
            }
        }
    }

    /// Begins anew with these.
    #[cfg(test)]
    pub fn rebuild(&self, digs: &[std::sync::Arc<DeploymentIntentGroup>]) {
        self.0.lock().clear();
        for dig in digs {
            self.note(dig, false);
        }
    }

    /// How many a namespace has.
    #[cfg(test)]
    pub fn count(&self, namespace: &str) -> usize {
        self.0.lock().get(namespace).map_or(0, |places| places.made.len())
    }

    /// Whether a deployment is one of so many that are the oldest of its namespace; by name where they are of one age.
    pub fn has_one(&self, dig: &DeploymentIntentGroup, most: usize) -> bool {
        let all = self.0.lock();
        let Some(places) = all.get(meta::namespace(dig)) else { return most > 0 };
        // One that is not noted yet is one more.
        let noted = places.made.contains_key(meta::name(dig));
        if places.by_age.len() + usize::from(!noted) <= most {
            return true;
        }
        let own = (dig.metadata.creation_timestamp.clone(), meta::name(dig).to_owned());
        places.by_age.iter().nth(most).is_none_or(|first_without| own < *first_without)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn dig(name: &str, second: u32) -> DeploymentIntentGroup {
        serde_json::from_value(json!({
            "apiVersion": "emco.io/v1alpha1", "kind": "DeploymentIntentGroup",
            "metadata": {"name": name, "namespace": "team-a", "uid": format!("{name}-{second}"),
                "creationTimestamp": format!("2026-01-01T00:00:{second:02}Z")},
            "spec": {"compositeAppRef": {"name": "shop"}, "placement": {"allOf": [{"selector": {}}]}},
        }))
        .unwrap()
    }

    fn oldest(places: &DeploymentPlaces, all: &[DeploymentIntentGroup], most: usize) -> Vec<String> {
        let named = all.iter().filter(|dig| places.has_one(dig, most));
        named.map(|dig| dig.metadata.name.clone().unwrap()).collect()
    }

    #[test]
    fn the_oldest_have_places_in_whatever_order_they_are_seen() {
        let mut all = vec![dig("d", 1), dig("a", 2), dig("b", 2), dig("c", 3)];
        for _ in 0..all.len() {
            let places = DeploymentPlaces::default();
            for dig in &all {
                places.note(dig, false);
                places.note(dig, false);
            }
            assert_eq!(places.count("team-a"), 4);
            all.sort_by_key(|dig| dig.metadata.name.clone());
            assert_eq!(oldest(&places, &all, 2), ["a", "d"]);
            assert_eq!(oldest(&places, &all, 4), ["a", "b", "c", "d"]);
            assert_eq!(oldest(&places, &all, 0), Vec::<String>::new());
            all.rotate_left(1);
        }
    }

    #[test]
    fn a_deployment_that_is_made_again_is_the_youngest() {
        let places = DeploymentPlaces::default();
        let mut all = vec![dig("a", 1), dig("b", 2)];
        for dig in &all {
            places.note(dig, false);
        }
        all[0] = dig("a", 3);
        places.note(&all[0], false);
        assert_eq!((oldest(&places, &all, 1), places.count("team-a")), (vec!["b".to_owned()], 2));
        places.note(&all[1], true);
        assert_eq!((oldest(&places, &all[..1], 1), places.count("team-a")), (vec!["a".to_owned()], 1));
        places.note(&all[0], true);
        places.note(&all[0], true);
        assert_eq!(places.count("team-a"), 0);
    }
}
