//! Matches cluster terms against one cluster: whether it matches, how far it is from matching, and what would have to
//! change.

use emco_crds::fields::{ClusterTerm, LabelSelector, LabelSelectorRequirement};
use emco_crds::names::label::virtual_;

use crate::snapshot::ClusterFacts;

/// A term that names other clusters cannot be met by labelling this one: farther than any number of labels.
const OTHER_NAME: usize = 10_000;
/// Neither can one that names another provider.
const OTHER_PROVIDER: usize = 1_000;

/// One cluster as selectors see it: its labels and the virtual ones.
#[derive(Clone, Debug)]
pub struct Candidate<'a> {
    /// What is known of it.
    pub facts: &'a ClusterFacts,
    minor: Option<String>,
}

impl<'a> Candidate<'a> {
    /// Works out the virtual labels once.
    pub fn new(facts: &'a ClusterFacts) -> Self {
        Self { facts, minor: facts.kubernetes_version.as_deref().and_then(minor) }
    }

    /// A label's value; the virtual labels win, for nobody may write them.
    pub fn label(&self, key: &str) -> Option<&str> {
        match key {
            virtual_::PROVIDER => Some(self.facts.id.provider()),
            virtual_::CLUSTER => Some(self.facts.id.cluster()),
            virtual_::KUBERNETES_MINOR => self.minor.as_deref(),
            _ => self.facts.labels.get(key).map(String::as_str),
        }
    }
}

/// `v1.36.3+k3s1` to `1.36`.
pub fn minor(version: &str) -> Option<String> {
    let mut parts = version.trim_start_matches('v').split('.');
    let (major, minor) = (parts.next()?, parts.next()?);
    let minor = minor.split(|c: char| !c.is_ascii_digit()).next()?;
    (!minor.is_empty() && major.bytes().all(|b| b.is_ascii_digit())).then(|| format!("{major}.{minor}"))
}

/// Whether any term picks the cluster. No terms pick nothing.
pub fn any_matches(terms: &[ClusterTerm], cluster: &Candidate<'_>) -> bool {
    terms.iter().any(|term| distance(term, cluster) == 0)
}

/// How many facts about the cluster would have to change for the term to pick it; 0 = it does.
pub fn distance(term: &ClusterTerm, cluster: &Candidate<'_>) -> usize {
    let ClusterTerm { provider, cluster: name, selector } = term;
    let mut distance = 0;
    if provider.as_ref().is_some_and(|p| p != cluster.facts.id.provider()) {
        distance += OTHER_PROVIDER;
    }
    if name.as_ref().is_some_and(|n| n != cluster.facts.id.cluster()) {
        distance += OTHER_NAME;
    }
    distance + selector.as_ref().map_or(0, |s| unmet(s, |key| cluster.label(key)))
}

/// The term that the cluster is nearest to, with the distance; the first of equals.
pub fn nearest<'t>(terms: &'t [ClusterTerm], cluster: &Candidate<'_>) -> Option<(usize, &'t ClusterTerm)> {
    terms.iter().map(|term| (distance(term, cluster), term)).min_by_key(|(distance, _)| *distance)
}

/// Whether only labels stand between the cluster and the term (and not names).
pub fn only_labels(distance: usize) -> bool {
    distance < OTHER_PROVIDER
}

/// What would have to change about the cluster for the term to pick it, as text: `label tier=edge and label disk`.
pub fn needs(term: &ClusterTerm, cluster: &Candidate<'_>) -> String {
    let ClusterTerm { provider, cluster: name, selector } = term;
    let mut needs = Vec::new();
    match (provider, name) {
        (Some(p), Some(n)) if p != cluster.facts.id.provider() || n != cluster.facts.id.cluster() => {
            needs.push(format!("a term that names it (the nearest names {p}/{n})"));
        }
        (Some(p), None) if p != cluster.facts.id.provider() => needs.push(format!("provider {p}")),
        _ => {}
    }
    if let Some(selector) = selector {
        needs.extend(gaps(selector, |key| cluster.label(key)));
    }
    needs.join(" and ")
}

/// Whether labels satisfy a selector. An empty selector matches everything.
pub fn selects<'l>(selector: &LabelSelector, label: impl Fn(&str) -> Option<&'l str>) -> bool {
    unmet(selector, label) == 0
}

fn unmet<'l>(selector: &LabelSelector, label: impl Fn(&str) -> Option<&'l str>) -> usize {
    let labels = selector.match_labels.iter().flatten();
    let expressions = selector.match_expressions.iter().flatten();
    labels.filter(|(key, value)| label(key) != Some(value.as_str())).count()
        + expressions.filter(|e| !holds(e, label(&e.key))).count()
}

fn holds(expression: &LabelSelectorRequirement, value: Option<&str>) -> bool {
    let listed = |v: &str| expression.values.iter().flatten().any(|listed| listed == v);
    match expression.operator.as_str() {
        "In" => value.is_some_and(listed),
        // As in Kubernetes, a label that is absent is in no list.
        "NotIn" => !value.is_some_and(listed),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        // The schema knows no other; one that came by another way picks nothing rather than everything.
        _ => false,
    }
}

fn gaps<'l>(selector: &LabelSelector, label: impl Fn(&str) -> Option<&'l str>) -> Vec<String> {
    let mut gaps = Vec::new();
    for (key, value) in selector.match_labels.iter().flatten() {
        if label(key) != Some(value.as_str()) {
            gaps.push(format!("label {key}={value}"));
        }
    }
    for expression in selector.match_expressions.iter().flatten() {
        if holds(expression, label(&expression.key)) {
            continue;
        }
        let LabelSelectorRequirement { key, operator, values } = expression;
        let values = values.iter().flatten().take(5).map(String::as_str).collect::<Vec<_>>().join(", ");
        gaps.push(match operator.as_str() {
            "In" => format!("label {key} in ({values})"),
            "NotIn" => format!("label {key} not in ({values})"),
            "Exists" => format!("label {key}"),
            "DoesNotExist" => format!("no label {key}"),
            other => format!("an operator that exists (In, NotIn, Exists, DoesNotExist) instead of {other}"),
        });
    }
    gaps
}

/// A term as short text for messages: `acme/oslo-2`, `acme tier=edge`, `all`.
pub fn describe(term: &ClusterTerm) -> String {
    let ClusterTerm { provider, cluster, selector } = term;
    let mut words = Vec::new();
    match (provider, cluster) {
        (Some(p), Some(c)) => words.push(format!("{p}/{c}")),
        (Some(p), None) => words.push(p.clone()),
        (None, Some(c)) => words.push(c.clone()),
        (None, None) => {}
    }
    if let Some(selector) = selector {
        words.extend(selector.match_labels.iter().flatten().map(|(k, v)| format!("{k}={v}")));
        words
            .extend(selector.match_expressions.iter().flatten().map(|e| format!("{} {}", e.key, e.operator)));
    }
    if words.is_empty() { "all".to_owned() } else { words.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::ClusterId;
    use crate::snapshot::Scheduling;

    fn facts(labels: &[(&str, &str)]) -> ClusterFacts {
        ClusterFacts {
            id: ClusterId::new("acme", "oslo-2"),
            labels: labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
            properties: std::collections::BTreeMap::new(),
            scheduling: Scheduling::Enabled,
            reachable: true,
            by_git: false,
            uid: None,
            kubernetes_version: Some("v1.36.3+k3s1".to_owned()),
            apis: None,
            nodes: None,
            network_policy: None,
        }
    }

    fn term(yaml: &str) -> ClusterTerm {
        serde_yaml::from_str(yaml).unwrap()
    }

    #[test]
    fn every_operator_of_a_selector_holds_as_in_kubernetes() {
        let facts = facts(&[("tier", "edge")]);
        let cluster = Candidate::new(&facts);
        let case = |expression: &str| {
            distance(&term(&format!("selector: {{matchExpressions: [{expression}]}}")), &cluster) == 0
        };
        assert!(case("{key: tier, operator: In, values: [edge, core]}"));
        assert!(!case("{key: tier, operator: In, values: [core]}"));
        assert!(!case("{key: gone, operator: In, values: [core]}"));
        assert!(case("{key: tier, operator: NotIn, values: [core]}"));
        assert!(!case("{key: tier, operator: NotIn, values: [edge]}"));
        assert!(case("{key: gone, operator: NotIn, values: [edge]}"));
        assert!(case("{key: tier, operator: Exists}"));
        assert!(!case("{key: gone, operator: Exists}"));
        assert!(case("{key: gone, operator: DoesNotExist}"));
        assert!(!case("{key: tier, operator: DoesNotExist}"));
        assert!(!case("{key: tier, operator: Like, values: [edge]}"));
    }

    #[test]
    fn virtual_labels_need_not_be_written() {
        let facts = facts(&[]);
        let cluster = Candidate::new(&facts);
        for (key, value) in [
            ("emco.io/provider", "acme"),
            ("emco.io/cluster", "oslo-2"),
            ("emco.io/kubernetes-minor", "1.36"),
        ] {
            let term = term(&format!("selector: {{matchLabels: {{{key}: '{value}'}}}}"));
            assert_eq!(distance(&term, &cluster), 0, "{key}");
        }
    }

    #[test]
    fn provider_and_name_are_compared_together() {
        let facts = facts(&[]);
        let cluster = Candidate::new(&facts);
        assert_eq!(distance(&term("{provider: acme, cluster: oslo-2}"), &cluster), 0);
        assert_ne!(distance(&term("{provider: other, cluster: oslo-2}"), &cluster), 0);
        assert_ne!(distance(&term("{provider: acme, cluster: oslo-3}"), &cluster), 0);
    }

    #[test]
    fn the_smallest_change_is_named() {
        let facts = facts(&[("tier", "core")]);
        let cluster = Candidate::new(&facts);
        let terms = [
            term("selector: {matchLabels: {tier: edge, disk: nvme, gpu: 'yes'}}"),
            term(
                "{provider: acme, selector: {matchLabels: {disk: nvme}, matchExpressions: [{key: tier, operator: Exists}]}}",
            ),
            term("{provider: acme, cluster: bonn-1}"),
        ];
        let (distance, nearest) = nearest(&terms, &cluster).unwrap();
        assert_eq!((distance, needs(nearest, &cluster).as_str()), (1, "label disk=nvme"));
        assert_eq!(needs(&terms[2], &cluster), "a term that names it (the nearest names acme/bonn-1)");
    }

    #[test]
    fn a_version_without_a_minor_gives_no_label() {
        assert_eq!(minor("v1.36.3"), Some("1.36".to_owned()));
        assert_eq!(minor("1.31+"), Some("1.31".to_owned()));
        assert_eq!(minor("v2"), None);
        assert_eq!(minor(""), None);
    }
}
