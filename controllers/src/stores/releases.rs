//! Finds deployments by logical cloud and release, without a walk over all of them.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::DeploymentIntentGroup;
use parking_lot::Mutex;

use crate::api::key_queue::Key;
use crate::object::meta;

/// A release through a logical cloud: both names, and the namespace on the hub that the cloud is in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release {
    /// Namespace on the hub.
    pub within: String,
    /// Name of the logical cloud.
    pub cloud: String,
    /// Name of the release.
    pub name: String,
}

impl Release {
    /// The release that a deployment has or wants.
    pub fn of(dig: &DeploymentIntentGroup) -> Self {
        Self {
            within: meta::namespace(dig).to_owned(),
            cloud: dig.spec.logical_cloud_ref.name.clone(),
            name: dig.release().to_owned(),
        }
    }
}

#[derive(Default)]
struct Inner {
    seen: BTreeMap<Key, Release>,
    deployments: BTreeMap<Release, BTreeSet<String>>,
}

/// The index. The watch of deployments keeps it.
#[derive(Default)]
pub struct Releases(Mutex<Inner>);

impl Releases {
    /// Takes in what the watch shows; the releases whose other deployments have to look again: the one that it has or wants, and the one
    /// that it had or wanted before, where it left that.
    pub fn note(&self, dig: &DeploymentIntentGroup, gone: bool) -> BTreeSet<Release> {
        let key = (meta::namespace(dig).to_owned(), meta::name(dig).to_owned());
        let release = Release::of(dig);
        let mut inner = self.0.lock();
        let before = if gone {
            inner.seen.remove(&key)
        } else {
            inner.deployments.entry(release.clone()).or_default().insert(key.1.clone());
            inner.seen.insert(key.clone(), release.clone())
        };
        let left = before.filter(|before| gone || *before != release);
        if let Some(left) = &left {
            inner.forget(left, &key.1);
        }
        left.into_iter().chain([release]).collect()
    }

    /// Begins anew with these.
    #[cfg(test)]
    pub fn rebuild(&self, digs: &[std::sync::Arc<DeploymentIntentGroup>]) {
        *self.0.lock() = Inner::default();
        for dig in digs {
            self.note(dig, false);
        }
    }

    /// Names of the deployments that have or want a release, sorted. They are in the namespace of the logical cloud.
    pub fn deployments(&self, release: &Release) -> Vec<String> {
        self.0.lock().deployments.get(release).into_iter().flatten().cloned().collect()
    }

    /// The releases through a logical cloud, sorted.
    pub fn through(&self, within: &str, cloud: &str) -> Vec<Release> {
        let first = Release { within: within.to_owned(), cloud: cloud.to_owned(), name: String::new() };
        let inner = self.0.lock();
        let from = inner.deployments.range(first..).map(|(release, _)| release);
        from.take_while(|release| release.within == within && release.cloud == cloud).cloned().collect()
    }
}

impl Inner {
    fn forget(&mut self, release: &Release, name: &str) {
        if let Some(names) = self.deployments.get_mut(release) {
            names.remove(name);
            if names.is_empty() {
                self.deployments.remove(release);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn dig(name: &str, cloud: &str, release: &str) -> DeploymentIntentGroup {
        serde_json::from_value(json!({
            "apiVersion": "emco.io/v1alpha1", "kind": "DeploymentIntentGroup",
            "metadata": {"name": name, "namespace": "team-a"},
            "spec": {"compositeAppRef": {"name": "shop"}, "logicalCloudRef": {"name": cloud}, "release": release,
                "placement": {"allOf": [{"selector": {}}]}},
        }))
        .unwrap()
    }

    fn release(cloud: &str, name: &str) -> Release {
        Release { within: "team-a".to_owned(), cloud: cloud.to_owned(), name: name.to_owned() }
    }

    #[test]
    fn deployments_are_found_by_release_and_cloud_while_they_are_there() {
        let releases = Releases::default();
        for (name, cloud, of) in
            [("b", "one", "pos"), ("a", "one", "pos"), ("c", "two", "pos"), ("d", "one", "web")]
        {
            assert_eq!(releases.note(&dig(name, cloud, of), false), BTreeSet::from([release(cloud, of)]));
        }
        assert_eq!(releases.deployments(&release("one", "pos")), ["a", "b"]);
        assert_eq!(releases.deployments(&release("two", "pos")), ["c"]);
        assert_eq!(releases.through("team-a", "one"), [release("one", "pos"), release("one", "web")]);
        releases.note(&dig("d", "one", "web"), true);
        assert_eq!(releases.through("team-a", "one"), [release("one", "pos")]);
        assert!(releases.through("team", "one").is_empty());
    }

    #[test]
    fn a_deployment_that_changes_its_cloud_leaves_the_release_of_the_first() {
        let releases = Releases::default();
        releases.note(&dig("a", "one", "pos"), false);
        let both = BTreeSet::from([release("one", "pos"), release("two", "pos")]);
        assert_eq!(releases.note(&dig("a", "two", "pos"), false), both);
        assert_eq!(releases.deployments(&release("one", "pos")), Vec::<String>::new());
        assert_eq!(releases.deployments(&release("two", "pos")), ["a"]);
    }
}
