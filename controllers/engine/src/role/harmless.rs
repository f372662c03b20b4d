//! Judges, verb by verb, which rights may be derived within a namespace: none that lifts what confines it, or reaches what is EMCO's there.

use super::Rule;

/// Verbs that change nothing.
const READS: [&str; 3] = ["get", "list", "watch"];
/// Resources that confine a namespace: nothing in it changes or uses one.
const CONFINING: [&str; 8] = [
    // Not of EMCO: traffic of the whole cluster is led by them, which ClusterRole `edit` withholds, too.
    "endpoints",
    "endpointslices",
    "namespaces",
    "resourcequotas",
    "limitranges",
    "securitycontextconstraints",
    "podsecuritypolicies",
    "policyexceptions",
];
/// The same as kinds of objects that can be in it.
const CONFINING_KINDS: [(&str, &str); 5] = [
    ("", "ResourceQuota"),
    ("", "LimitRange"),
    ("kyverno.io", "PolicyException"),
    ("", "Endpoints"),
    ("discovery.k8s.io", "EndpointSlice"),
];
/// A written address of a load balancer or a Pod takes traffic of others.
const ADDRESSES: [&str; 2] = ["services/status", "pods/status"];
/// EMCO has objects of these in each namespace: rights to change them name others.
const OURS: [&str; 4] = ["networkpolicies", "serviceaccounts", "roles", "rolebindings"];
const OUR_KINDS: [(&str, &str); 4] = [
    ("networking.k8s.io", "NetworkPolicy"),
    ("", "ServiceAccount"),
    (super::RBAC, "Role"),
    (super::RBAC, "RoleBinding"),
];
/// The one role of every cluster that only reads, and no Secrets.
const VIEW: &str = "view";

/// Judges a rule that a chart gives away, and so has to be held: it leaves its namespace as it is confined.
pub(super) fn is_harmless(rule: &Rule) -> bool {
    let Rule { groups, resources, names, urls, verbs } = rule;
    let wild = [groups, resources, verbs].into_iter().flatten().any(|one| one.contains('*'));
    let beyond = verbs.iter().any(|verb| matches!(verb.as_str(), "escalate" | "impersonate"));
    let within = |resource: &String| verbs.iter().all(|verb| stays_within(resource, verb, names));
    urls.is_empty() && !wild && !beyond && resources.iter().all(within)
}

/// Knows kinds whose objects confine a namespace.
pub(super) fn is_confining(group: &str, kind: &str) -> bool {
    CONFINING_KINDS.contains(&(group, kind))
}

/// Knows kinds of which EMCO has objects beside those of a chart.
pub(super) fn is_shared(group: &str, kind: &str) -> bool {
    OUR_KINDS.contains(&(group, kind))
}

/// Knows names of EMCO's objects.
pub(super) fn is_ours(name: &str) -> bool {
    name.starts_with("emco-") || name.starts_with("emco:")
}

/// Knows verbs that change nothing.
pub(super) fn reads(verb: &str) -> bool {
    READS.contains(&verb)
}

fn stays_within(resource: &str, verb: &str, names: &[String]) -> bool {
    if reads(verb) {
        return true;
    }
    let kind = resource.split('/').next().unwrap_or_default();
    // A request for a whole collection has an empty name.
    let ours = names.iter().any(|name| name.is_empty() || is_ours(name));
    match verb {
        // To bind a Role that the same chart makes, its rules are enough, and they are held. Any other may be a neighbour's.
        "bind" => resource == "clusterroles" && !names.is_empty() && names.iter().all(|name| name == VIEW),
        _ if ours || ADDRESSES.contains(&resource) || CONFINING.contains(&kind) => false,
        // What is new takes nothing away from what is there.
        "create" if resource == kind => true,
        _ => !names.is_empty() || !OURS.contains(&kind),
    }
}

#[cfg(test)]
mod tests;
