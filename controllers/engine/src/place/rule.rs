//! Finds the placement rule of `spec.placement` that holds for an app.

use emco_crds::deployment_intent_group::placement::{AnyOf, AppRule, Membership, Placement};
use emco_crds::fields::ClusterTerm;

/// Where an app goes. An entry for the app replaces the rule for all apps as a whole.
#[derive(Clone, Debug)]
pub struct Rule<'a> {
    /// For messages: `spec.placement` or `spec.placement.apps[db]`.
    pub path: String,
    /// Every match.
    pub all_of: &'a [ClusterTerm],
    /// Some of the matches.
    pub any_of: Vec<Group<'a>>,
    /// `membership: Frozen`.
    pub frozen: bool,
}

/// One group of `anyOf`.
#[derive(Clone, Debug)]
pub struct Group<'a> {
    /// How many.
    pub count: usize,
    /// With fewer the plan is refused.
    pub min: usize,
    /// Of which.
    pub from: &'a [ClusterTerm],
}

impl<'a> Rule<'a> {
    /// Finds the rule of an app. One without terms is valid here and chooses nothing. `weights` are refused before.
    pub fn of(placement: &'a Placement, app: &str) -> Self {
        let Placement { all_of, any_of, membership, weights: _, apps } = placement;
        match apps.iter().find(|rule| rule.app == app) {
            Some(AppRule { app, all_of, any_of, membership, weights: _ }) => {
                Self::new(format!("spec.placement.apps[{app}]"), all_of, any_of, *membership)
            }
            None => Self::new("spec.placement".to_owned(), all_of, any_of, *membership),
        }
    }

    fn new(
        path: String,
        all_of: &'a [ClusterTerm],
        any_of: &'a [AnyOf],
        membership: Option<Membership>,
    ) -> Self {
        let number = |n: i32| usize::try_from(n).unwrap_or_default();
        let any_of = any_of
            .iter()
            .map(|group| Group { count: number(group.count()), min: number(group.min()), from: &group.from })
            .collect();
        Self { path, all_of, any_of, frozen: membership.unwrap_or_default() == Membership::Frozen }
    }

    /// The field to point at when nothing matches.
    pub fn field(&self) -> String {
        match (self.all_of.is_empty(), self.any_of.is_empty()) {
            (false, true) => format!("{}.allOf", self.path),
            (true, false) => format!("{}.anyOf", self.path),
            _ => self.path.clone(),
        }
    }
}
