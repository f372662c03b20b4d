//! Says which rights the account of a logical cloud gains by a plan, where they follow what is deployed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::cloud::CloudFacts;
use crate::conditions::truncate;
use crate::identity::{ClusterId, SetDigest};
use crate::role::{Asked, Derived, Gain};
use crate::set::{Assigned, Assignment, ManifestSet};
use crate::snapshot::Running;
use crate::text::counted;

/// Gains that are named.
const MOST: usize = 50;
/// Lines of the great ones: as many as a status has room for.
const FIRST: usize = 10;
/// Longest of them, in bytes.
const LONGEST: usize = 256;

type Sets = BTreeMap<SetDigest, Arc<ManifestSet>>;

/// An account whose rights follow what is deployed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DerivedAccount {
    /// Its user name on clusters.
    pub account: String,
    /// Namespace of its logical cloud.
    pub home: String,
    /// Where rights are derived.
    pub derived: Derived,
}

impl DerivedAccount {
    /// That of a logical cloud; `None` where rights are listed.
    pub fn of(cloud: &CloudFacts) -> Option<Self> {
        Some(Self {
            account: cloud.account()?,
            home: cloud.namespace.clone(),
            derived: cloud.derived.clone()?,
        })
    }

    fn of_set(&self, set: &ManifestSet) -> BTreeSet<Gain> {
        Asked::of(set, &self.account).gains(&self.home, &self.derived)
    }

    /// What it may do on some cluster once this is carried out, and what runs there does not need. A right that another deployment needs
    /// there already is one of them. What reaches furthest comes first, and none of that is left out.
    pub fn gains(&self, running: Option<&Running>, assignment: &Assignment, sets: &Sets) -> Vec<String> {
        let nothing = BTreeMap::new();
        let before =
            |id: &ClusterId| running.and_then(|running| running.assignment.get(id)).unwrap_or(&nothing);
        let digests = |apps: &BTreeMap<String, Assigned>| -> BTreeSet<SetDigest> {
            apps.values().map(|assigned| assigned.set.clone()).collect()
        };
        // Most clusters go from one same content to another.
        let pairs: BTreeSet<_> =
            assignment.iter().map(|(id, apps)| (digests(before(id)), digests(apps))).collect();
        let of = |digests: &BTreeSet<SetDigest>, sets: &Sets| -> BTreeSet<Gain> {
            digests.iter().filter_map(|set| sets.get(set)).flat_map(|set| self.of_set(set)).collect()
        };
        let none = Sets::new();
        let had_sets = running.map_or(&none, |running| &running.sets);
        let mut gained = BTreeSet::new();
        for (had, now) in pairs.iter().filter(|(had, now)| had != now) {
            let had = of(had, had_sets);
            gained.extend(of(now, sets).into_iter().filter(|gain| !had.contains(gain)));
        }
        let told = Gain::told(&gained, FIRST);
        let more = told.len().saturating_sub(MOST);
        let mut named: Vec<String> = told.iter().take(MOST).map(|words| truncate(words, LONGEST)).collect();
        if more > 0 {
            named.push(counted(more, "more right"));
        }
        named
    }
}
