//! Writes rights of an account as a logical cloud lists them: its permissions, and the lowest level that takes these.

use emco_crds::fields::Level;
use emco_crds::logical_cloud::{Permission, PermissionScope, PolicyRule};

use super::{Rights, Rule};

/// Bounds of the kind.
const MOST_RULES: usize = 32;
const MOST_RESOURCES: usize = 64;
const MOST_NAMES: usize = 64;
const LONGEST_NAME: usize = 63;
/// Digits that the name of a further permission for one place ends with, and the hyphen.
const NUMBERED: usize = 4;

/// Permissions, and where they can be written.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// The lowest level that takes them.
    pub level: Level,
    /// In the order: the logical cloud's namespace, the whole cluster, other namespaces.
    pub permissions: Vec<Permission>,
}

impl Listed {
    /// Lists rights of an account whose logical cloud has this namespace. `gives_away`: a binding names somebody outside of these
    /// namespaces, which takes a permission for the whole cluster, if one without a rule.
    pub fn of(rights: &Rights, home: &str, gives_away: bool) -> Self {
        let mut permissions = in_namespace("own", rights.within(home), None);
        permissions.extend(on_cluster(&rights.cluster, gives_away));
        let others = rights.namespaces.iter().filter(|(there, _)| *there != home);
        for (at, (there, rules)) in others.enumerate() {
            let longest = LONGEST_NAME - NUMBERED;
            let named = Some(format!("in-{there}")).filter(|name| name.len() <= longest);
            let name = named.unwrap_or_else(|| format!("in-other-{}", at + 1));
            permissions.extend(in_namespace(&name, rules, Some(there)));
        }
        let beyond = |one: &Permission| one.scope.is_some() || one.namespaces.is_some();
        let level = if permissions.iter().any(beyond) { Level::Privileged } else { Level::Standard };
        Self { level, permissions }
    }
}

fn in_namespace(name: &str, rules: &[Rule], there: Option<&String>) -> Vec<Permission> {
    let namespaces = there.map(|there| vec![there.clone()]);
    numbered(name, rules, |name, rules| Permission {
        name,
        rules: Some(rules),
        namespaces: namespaces.clone(),
        ..Permission::default()
    })
}

fn on_cluster(rules: &[Rule], gives_away: bool) -> Vec<Permission> {
    let scope = Some(PermissionScope::Cluster);
    let one = |rules| Permission { name: "cluster".to_owned(), scope, rules, ..Permission::default() };
    // No permission lists paths that are no resources; one that is derived has them.
    if rules.iter().any(|rule| !rule.urls.is_empty()) {
        return vec![Permission { derived: true, ..one(None) }];
    }
    if rules.is_empty() {
        return if gives_away { vec![one(Some(Vec::new()))] } else { Vec::new() };
    }
    numbered("cluster", rules, |name, rules| Permission { name, ..one(Some(rules)) })
}

/// As many permissions as the rules need.
fn numbered(
    name: &str,
    rules: &[Rule],
    permission: impl Fn(String, Vec<PolicyRule>) -> Permission,
) -> Vec<Permission> {
    let rules: Vec<PolicyRule> = rules.iter().flat_map(split).collect();
    let chunks = rules.chunks(MOST_RULES).enumerate().map(|(at, rules)| {
        let name = if at == 0 { name.to_owned() } else { format!("{name}-{}", at + 1) };
        permission(name, rules.to_vec())
    });
    chunks.collect()
}

/// A rule as several that are not too long each.
fn split(rule: &Rule) -> Vec<PolicyRule> {
    let names: Vec<&[String]> = match rule.names.as_slice() {
        [] => vec![&[][..]],
        names => names.chunks(MOST_NAMES).collect(),
    };
    let of_names = |resources: &[String]| {
        let resources = resources.to_vec();
        let rules = names.iter().map(move |names| PolicyRule {
            api_groups: rule.groups.clone(),
            resources: resources.clone(),
            verbs: rule.verbs.clone(),
            resource_names: names.to_vec(),
        });
        rules.collect::<Vec<_>>()
    };
    rule.resources.chunks(MOST_RESOURCES).flat_map(of_names).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn rule(group: &str, resource: &str) -> Rule {
        Rule::of(group, resource, &["create", "patch"])
    }

    fn rights(cluster: Vec<Rule>, namespaces: &[(&str, Vec<Rule>)]) -> Rights {
        let namespaces = namespaces.iter().map(|(there, rules)| ((*there).to_owned(), rules.clone()));
        Rights { cluster, namespaces: namespaces.collect() }
    }

    fn names(listed: &Listed) -> Vec<&str> {
        listed.permissions.iter().map(|one| one.name.as_str()).collect()
    }

    #[test]
    fn what_stays_in_its_namespace_is_of_level_standard() {
        let of = rights(Vec::new(), &[("shop", vec![rule("apps", "deployments")])]);
        let listed = Listed::of(&of, "shop", false);
        let rules = vec![PolicyRule {
            api_groups: vec!["apps".to_owned()],
            resources: vec!["deployments".to_owned()],
            verbs: vec!["create".to_owned(), "patch".to_owned()],
            resource_names: Vec::new(),
        }];
        let own = Permission { name: "own".to_owned(), rules: Some(rules), ..Permission::default() };
        assert_eq!(listed, Listed { level: Level::Standard, permissions: vec![own] });
    }

    #[test]
    fn what_goes_beyond_its_namespace_is_of_level_privileged() {
        let long = "n".repeat(63);
        let elsewhere =
            [("kube-system", vec![rule("", "configmaps")]), (long.as_str(), vec![rule("", "pods")])];
        let of = rights(vec![rule("scheduling.k8s.io", "priorityclasses")], &elsewhere);
        let listed = Listed::of(&of, "shop", false);
        assert_eq!(listed.level, Level::Privileged);
        assert_eq!(names(&listed), ["cluster", "in-kube-system", "in-other-2"]);
        let [cluster, system, _] = listed.permissions.as_slice() else { panic!("{listed:?}") };
        assert_eq!((cluster.scope, &cluster.namespaces), (Some(PermissionScope::Cluster), &None));
        assert_eq!((system.scope, &system.namespaces), (None, &Some(vec!["kube-system".to_owned()])));
        let given = Listed::of(&rights(Vec::new(), &[]), "shop", true);
        assert_eq!((given.level, names(&given)), (Level::Privileged, vec!["cluster"]));
    }

    #[test]
    fn paths_that_are_no_resources_are_derived() {
        let urls = vec!["/metrics".to_owned()];
        let metrics = Rule { urls, verbs: vec!["get".to_owned()], ..Rule::default() };
        let listed = Listed::of(&rights(vec![metrics], &[]), "shop", false);
        let [cluster] = listed.permissions.as_slice() else { panic!("{listed:?}") };
        assert!(cluster.derived && cluster.rules.is_none() && cluster.scope.is_some(), "{cluster:?}");
    }

    #[test]
    fn rules_are_divided_into_what_the_kind_takes() {
        let many = (0..100).map(|n| format!("role-{n}")).collect();
        let mut all = vec![Rule { names: many, ..rule("g", "roles") }];
        all.extend((0..40).map(|n| rule("g", &format!("things{n}"))));
        let listed = Listed::of(&rights(Vec::new(), &[("shop", all)]), "shop", false);
        let sizes = listed.permissions.iter().map(|one| one.rules.as_ref().unwrap().len());
        assert_eq!((names(&listed), sizes.collect()), (vec!["own", "own-2"], vec![32, 10]));
        let rules = listed.permissions.iter().flat_map(|one| one.rules.iter().flatten());
        let named: BTreeSet<&String> = rules.flat_map(|rule| &rule.resource_names).collect();
        assert_eq!(named.len(), 100);
    }
}
