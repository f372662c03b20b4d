//! Says which clusters an app may go to, by its rule and its logical cloud.

use std::collections::BTreeMap;

use emco_crds::deployment_intent_group::placement::Placement;

use super::rule::Rule;
use crate::cloud::CloudFacts;
use crate::identity::ClusterId;
use crate::snapshot::ClusterFacts;
use crate::terms::{self, Candidate};

/// Clusters of the logical cloud that the rule of an app picks.
pub fn reach<'c>(
    clusters: &'c BTreeMap<ClusterId, ClusterFacts>,
    cloud: &CloudFacts,
    placement: &Placement,
    app: &str,
) -> Vec<&'c ClusterId> {
    let rule = Rule::of(placement, app);
    let picked = |facts: &&ClusterFacts| {
        let cluster = Candidate::new(facts);
        cloud.clusters.contains(&facts.id)
            && (terms::any_matches(rule.all_of, &cluster)
                || rule.any_of.iter().any(|group| terms::any_matches(group.from, &cluster)))
    };
    clusters.values().filter(picked).map(|facts| &facts.id).collect()
}
