//! The roles of `kubectl emco cluster add`.

use super::*;

fn apis() -> ApiList {
    let served = [
        ("", "ConfigMap", "configmaps", true, true),
        ("", "Namespace", "namespaces", false, true),
        ("", "Secret", "secrets", true, true),
        ("apps", "Deployment", "deployments", true, true),
        ("example.com", "Snapshot", "snapshots", true, false),
        ("scheduling.k8s.io", "PriorityClass", "priorityclasses", false, true),
    ];
    let resources = served.map(|(group, kind, plural, namespaced, watchable)| ApiResource {
        group: group.to_owned(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        namespaced,
        listable: true,
        watchable,
    });
    let answers = ApiResource {
        group: "authorization.k8s.io".to_owned(),
        version: "v1".to_owned(),
        kind: "LocalSubjectAccessReview".to_owned(),
        plural: "localsubjectaccessreviews".to_owned(),
        namespaced: true,
        listable: false,
        watchable: false,
    };
    ApiList { resources: resources.into_iter().chain([answers]).collect() }
}

fn standard(apis: &ApiList) -> Registration<'_> {
    Registration {
        level: Level::Standard,
        apis,
        ceiling: false,
        may_bind: &[],
        certificates: false,
        tokens: false,
    }
}

/// Each rule in a line: groups, resources, names, verbs.
fn lines(rules: &[Needed]) -> Vec<String> {
    let line = |needed: &Needed| {
        let Rule { groups, resources, names, urls, verbs } = &needed.rule;
        assert!(urls.is_empty() && needed.because.len() == 1, "{needed:?}");
        let of = |list: &[String]| list.join(",");
        format!("{}/{} [{}] {}", of(groups), of(resources), of(names), of(verbs))
    };
    rules.iter().map(line).collect()
}

#[test]
fn level_standard_writes_namespaces_and_bindings_alone_everywhere() {
    let apis = apis();
    let roles = standard(&apis).roles();
    assert_eq!(
        lines(&roles.cluster),
        [
            "/namespaces [] get,list,watch",
            "/namespaces [] create,patch,delete",
            "/nodes [] list,watch",
            "apiextensions.k8s.io/customresourcedefinitions [] get,list",
            "apiregistration.k8s.io/apiservices [] get,list",
            "rbac.authorization.k8s.io/rolebindings [] get,list,watch",
            "rbac.authorization.k8s.io/rolebindings [] create,patch,delete",
            "rbac.authorization.k8s.io/roles [] list,watch",
            "/resourcequotas [] list,watch",
            "/limitranges [] list,watch",
            "/serviceaccounts [] list,watch",
            "networking.k8s.io/networkpolicies [] list,watch",
            "rbac.authorization.k8s.io/clusterroles [admin,emco-ceiling,emco-hub-tenant] bind",
        ]
    );
}

#[test]
fn in_tenants_namespaces_it_acts_as_accounts_and_reads_kinds_by_name() {
    let apis = apis();
    let roles = standard(&apis).roles();
    assert_eq!(
        lines(&roles.tenant),
        [
            "/serviceaccounts [] impersonate",
            "/resourcequotas [] create,patch,delete",
            "/limitranges [] create,patch,delete",
            "/serviceaccounts [] create,patch,delete",
            "networking.k8s.io/networkpolicies [] create,patch,delete",
            "rbac.authorization.k8s.io/roles [] create,patch,delete",
            "/configmaps,secrets [] get,list,watch,delete",
            "apps/deployments [] get,list,watch,delete",
            "example.com/snapshots [] get,list,delete",
        ]
    );
    assert_eq!(
        lines(&roles.own),
        [
            "/configmaps [] create",
            "/configmaps [hub] get,patch,update,delete",
            "/serviceaccounts [emco-hub] get",
            "/serviceaccounts/token [emco-hub] create",
            "/secrets [] get,list,watch,create,delete",
        ]
    );
}

#[test]
fn people_and_level_privileged_take_what_they_need_besides() {
    let apis = apis();
    let before = standard(&apis).roles();
    let more = Registration { level: Level::Privileged, certificates: true, tokens: true, ..standard(&apis) }
        .roles();
    let added = |more: &[Needed], before: &[Needed]| {
        lines(&more.iter().filter(|rule| !before.contains(rule)).cloned().collect::<Vec<_>>())
    };
    assert_eq!(
        added(&more.cluster, &before.cluster),
        [
            "certificates.k8s.io/certificatesigningrequests [] get,create,delete",
            "certificates.k8s.io/certificatesigningrequests/approval [] update",
            "certificates.k8s.io/signers [kubernetes.io/kube-apiserver-client] approve",
            "rbac.authorization.k8s.io/clusterrolebindings [] get,list,watch",
            "rbac.authorization.k8s.io/clusterrolebindings [] create,patch,delete",
            "/configmaps,namespaces,secrets [] get,list,watch",
            "apps/deployments [] get,list,watch",
            "example.com/snapshots [] get,list",
            "scheduling.k8s.io/priorityclasses [] get,list,watch",
        ]
    );
    assert_eq!(added(&more.tenant, &before.tenant), ["/serviceaccounts/token [] create"]);
    assert_eq!(more.own, before.own);
}

#[test]
fn a_ceiling_takes_the_place_of_the_role_admin_unless_that_is_named() {
    let apis = apis();
    let under = Registration { ceiling: true, ..standard(&apis) };
    assert_eq!(under.bindable().into_iter().collect::<Vec<_>>(), ["emco-ceiling", "emco-hub-tenant"]);
    let named = ["view".to_owned(), "admin".to_owned()];
    let both = Registration { may_bind: &named, ..under };
    let names = both.bindable().into_iter().collect::<Vec<_>>();
    assert_eq!(names, ["admin", "emco-ceiling", "emco-hub-tenant", "view"]);
}

#[test]
fn no_rule_has_a_wildcard_escalates_or_impersonates_everywhere() {
    let apis = apis();
    for level in [Level::Standard, Level::Privileged] {
        let roles = Registration { level, certificates: true, tokens: true, ..standard(&apis) }.roles();
        for Needed { rule, because } in roles.cluster.iter().chain(&roles.tenant).chain(&roles.own) {
            let words =
                [&rule.groups, &rule.resources, &rule.verbs, &rule.names, &rule.urls].into_iter().flatten();
            for word in words {
                assert!(!word.contains('*') && word != "escalate", "{rule:?}");
            }
            assert!(because.iter().all(|why| !why.is_empty()), "{rule:?}");
        }
        let mut everywhere = roles.cluster.iter().flat_map(|needed| &needed.rule.verbs);
        assert!(everywhere.all(|verb| verb != "impersonate"));
    }
}
