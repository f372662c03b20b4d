//! All policies of a cluster together, and which of them count for some pods.

use serde_json::Value;

use super::judge::Target;
use super::rules::{Policy, Rule};
use crate::traffic::{KIND, Made};

/// Ends, labels and ports that all policies of a cluster may have together. Those beyond prove nothing.
const MOST_READ: usize = 100_000;

/// Policies that close all pods of a target.
pub fn closing<'p>(target: &Target<'_>, policies: &'p [Policy]) -> Vec<&'p Policy> {
    policies.iter().filter(|policy| policy.ingress.is_some() && target.pods.are_of(policy)).collect()
}

/// Policies that may open some pods of a target.
pub fn opening<'p>(target: &Target<'_>, policies: &'p [Policy]) -> Vec<&'p Policy> {
    policies.iter().filter(|policy| policy.ingress.is_some() && target.pods.may_be_of(policy)).collect()
}

/// Rules of incoming connections, each with its policy and its place in that.
pub fn rules_of<'p>(policies: &[&'p Policy]) -> impl Iterator<Item = (&'p Policy, usize, &'p Rule)> {
    policies.iter().copied().flat_map(|policy| {
        let rules = policy.ingress.iter().flatten().enumerate();
        rules.map(move |(at, rule)| (policy, at, rule))
    })
}

/// Policies of all sets of a cluster and of its logical cloud, each with who makes it. Hooks may make one twice.
pub fn policies<'s>(
    made: impl Iterator<Item = (&'s str, &'s Made<'s>)>,
    isolation: Option<&Value>,
) -> Vec<Policy> {
    let of = |app: &str| match app.split_once('.') {
        Some(("tgi", intent)) => format!("{KIND} {intent}"),
        _ => format!("app {app}"),
    };
    let all = made.flat_map(|(app, made)| made.policies.iter().map(move |policy| (app, *policy)));
    let of_apps = all
        .map(|(app, policy)| Policy { lasts: policy.hook.is_none(), ..Policy::read(of(app), &policy.json) });
    let mut all: Vec<Policy> =
        isolation.map(|json| Policy::read("its logical cloud".to_owned(), json)).into_iter().collect();
    all.extend(of_apps);
    all.sort_by(|one, other| one.name.cmp(&other.name));
    let mut left = MOST_READ;
    for policy in &mut all {
        match left.checked_sub(policy.size()) {
            Some(rest) => left = rest,
            None => policy.unread(),
        }
    }
    all
}
