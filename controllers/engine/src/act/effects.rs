//! What an intent does to a deployment: changes of what charts make, and objects that belong to no chart.
//!
//! Every kind of intents gives [`Effects`] and nothing else. Its objects are an app of their own: planned, stored, applied and removed as
//! apps of charts are, but without a chart, and before them.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::names::generated_app;

use super::edit::{Edit, Edits, Unfilled};
use super::entry::{Entry, mask};
use crate::identity::ClusterId;
use crate::terms::Candidate;
use crate::values::template::Scope;

/// What one intent does.
#[derive(Debug)]
pub struct Effects<'a> {
    /// What it does to what charts make: the app, and an action, in order.
    pub edits: Vec<(&'a str, Entry<'a>)>,
    /// What it adds to no chart.
    pub objects: Objects<'a>,
}

/// Objects that belong to no chart.
#[derive(Debug)]
pub enum Objects<'a> {
    /// Actions that add one each: on all clusters, or on those that they allow. Equal ones are equal on every cluster.
    Actions(Vec<Entry<'a>>),
    /// As worked out of each cluster; none on clusters that are not named.
    ByCluster(BTreeMap<ClusterId, Vec<Edit>>),
    /// Read from what charts make, once that is known, on clusters that have one of these apps.
    Drawn(BTreeSet<&'a str>),
}

impl Objects<'_> {
    /// Whether there are none anywhere.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Actions(entries) => entries.is_empty(),
            Self::ByCluster(clusters) => clusters.values().all(Vec::is_empty),
            Self::Drawn(apps) => apps.is_empty(),
        }
    }

    /// True for a cluster that gets some; what is drawn depends on more.
    pub fn are_on(&self, cluster: &Candidate<'_>) -> bool {
        match self {
            Self::Actions(entries) => entries.iter().any(|entry| entry.applies(cluster)),
            Self::ByCluster(clusters) => {
                clusters.get(&cluster.facts.id).is_some_and(|objects| !objects.is_empty())
            }
            Self::Drawn(_) => false,
        }
    }

    /// Those of a cluster, as edits of nothing; `None` where there are none.
    pub fn of(
        &self,
        cluster: &Candidate<'_>,
        scope: &Scope<'_>,
        release: &str,
        key: &[u8; 32],
    ) -> Result<Option<Edits>, Unfilled> {
        match self {
            Self::Actions(entries) => Edits::of(entries, &mask(entries, cluster), scope, release, key),
            Self::ByCluster(clusters) => {
                let objects = clusters.get(&cluster.facts.id).map_or(&[][..], Vec::as_slice);
                Ok(Edits::made(objects.to_vec(), key))
            }
            Self::Drawn(_) => Ok(None),
        }
    }
}

/// The app that an intent's objects are.
#[derive(Debug)]
pub struct Generated<'a> {
    /// Its name: `gai.banner`.
    pub app: String,
    /// Kind of the intent.
    pub kind: &'static str,
    /// Short name of the kind.
    pub short: &'static str,
    /// Name of the intent.
    pub intent: &'a str,
    /// What it is made of.
    pub objects: Objects<'a>,
}

impl<'a> Generated<'a> {
    /// The app of an intent; `None` where it adds nothing of its own.
    pub fn of(
        (kind, short): (&'static str, &'static str),
        intent: &'a str,
        objects: Objects<'a>,
    ) -> Option<Self> {
        let app = generated_app::name(short, intent);
        (!objects.is_empty()).then_some(Self { app, kind, short, intent, objects })
    }

    /// For messages: `GenericActionIntent banner`.
    pub fn origin(&self) -> String {
        format!("{} {}", self.kind, self.intent)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::act::What;

    fn added(name: &str) -> Edit {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        let (intent, origin) = ("shop".to_owned(), "TrafficGroupIntent shop".to_owned());
        Edit { intent, origin, secret: false, what: What::Add(object) }
    }

    #[test]
    fn equal_objects_have_one_digest_and_no_object_none() {
        let digest = |names: &[&str]| {
            Edits::made(names.iter().map(|name| added(name)).collect(), &[1; 32]).map(|edits| edits.digest)
        };
        assert_eq!(digest(&["a"]), digest(&["a"]));
        assert!(digest(&["a"]) != digest(&["b"]) && digest(&["a"]) != digest(&["a", "b"]));
        assert_eq!(digest(&[]), None);
    }

    #[test]
    fn an_intent_that_adds_nothing_of_its_own_has_no_app() {
        let none = Objects::ByCluster([(ClusterId::new("acme", "a"), Vec::new())].into());
        assert!(Generated::of(("TrafficGroupIntent", "tgi"), "shop", none).is_none());
        let some = Objects::ByCluster([(ClusterId::new("acme", "a"), vec![added("a")])].into());
        let made = Generated::of(("TrafficGroupIntent", "tgi"), "shop", some).unwrap();
        assert_eq!((made.app.as_str(), made.origin().as_str()), ("tgi.shop", "TrafficGroupIntent shop"));
    }
}
