use serde_json::json;

use super::*;
use crate::apis::ApiResource;
use crate::identity::SetDigest;
use crate::set::Phase;

fn apis() -> ApiList {
    let served = [
        ("", "ConfigMap", "configmaps", true),
        ("", "Namespace", "namespaces", false),
        ("apps", "Deployment", "deployments", true),
        ("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions", false),
        (RBAC, "Role", "roles", true),
        (RBAC, "RoleBinding", "rolebindings", true),
        (RBAC, "ClusterRole", "clusterroles", false),
    ];
    let resources = served.map(|(group, kind, plural, namespaced)| ApiResource {
        group: group.to_owned(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        namespaced,
        listable: true,
        watchable: true,
    });
    ApiList { resources: resources.into() }
}

fn set(manifests: impl IntoIterator<Item = Value>) -> ManifestSet {
    let manifests = manifests.into_iter().map(|json| SetManifest {
        digest: String::new(),
        phase: Phase::Main,
        hook: None,
        crd_folder: false,
        keep: false,
        take_existing: false,
        edited_by: Vec::new(),
        account: None,
        json,
    });
    ManifestSet { digest: SetDigest("x".to_owned()), app: "web".to_owned(), manifests: manifests.collect() }
}

fn object(api: &str, kind: &str, name: &str) -> Value {
    json!({"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": "shop"}})
}

fn whole(kind: &str, name: &str) -> Value {
    json!({"apiVersion": format!("{RBAC}/v1"), "kind": kind, "metadata": {"name": name}})
}

/// Each rule in a line: the place, the groups with the resources, the names, the verbs.
fn lines(roles: &Roles) -> Vec<String> {
    let cluster = roles.cluster.iter().map(|needed| ("*", needed));
    let within =
        roles.namespaces.iter().flat_map(|(at, rules)| rules.iter().map(move |rule| (at.as_str(), rule)));
    let line = |(place, Needed { rule, because }): (&str, &Needed)| {
        let Rule { groups, resources, names, urls, verbs } = rule;
        let of = |list: &[String]| list.join(",");
        let (names, urls) = (of(names), of(urls));
        format!("{place} {}/{}[{names}]{urls} {} {}", of(groups), of(resources), of(verbs), because.len())
    };
    cluster.chain(within).map(line).collect()
}

#[test]
fn an_object_is_seen_everywhere_and_kept_in_its_namespace() {
    let set = set([object("v1", "ConfigMap", "a"), object("v1", "ConfigMap", "b")]);
    let roles = least([&set], &apis(), Names::Any);
    assert_eq!(
        lines(&roles),
        ["* /configmaps[] list,watch 2", "shop /configmaps[] get,create,patch,delete 2"]
    );
    let roles = least([&set], &apis(), Names::Listed);
    assert_eq!(
        lines(&roles),
        ["* /configmaps[] list,watch 2", "shop /configmaps[a,b] get,create,patch,delete 2"]
    );
    let because = &roles.cluster[0].because;
    assert_eq!(because.first().unwrap(), "ConfigMap/shop/a (app web)");
}

#[test]
fn what_an_account_applies_needs_its_impersonation_and_no_write() {
    let mut set = set([object("v1", "ConfigMap", "a"), object(&format!("{RBAC}/v1"), "Role", "r")]);
    for manifest in &mut set.manifests {
        manifest.account = Some("system:serviceaccount:shop:emco-edge".to_owned());
    }
    assert_eq!(
        lines(&least([&set], &apis(), Names::Any)),
        [
            "* /configmaps[] list,watch 1",
            "* rbac.authorization.k8s.io/roles[] list,watch 1",
            "shop /configmaps[] get 1",
            "shop /serviceaccounts[emco-edge] impersonate 2",
            "shop rbac.authorization.k8s.io/roles[] get 1",
        ]
    );
}

#[test]
fn a_workload_needs_a_look_at_its_pods() {
    let roles = least([&set([object("apps/v1", "Deployment", "web")])], &apis(), Names::Listed);
    assert_eq!(
        lines(&roles),
        [
            "* apps/deployments[] list,watch 1",
            "shop /events[] list 1",
            "shop /pods[] list 1",
            "shop apps/deployments[web] get,create,patch,delete 1",
        ]
    );
}

#[test]
fn who_makes_a_role_holds_its_rules_and_who_binds_one_may_bind_it() {
    let rules =
        json!([{"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["key"], "verbs": ["get"]}]);
    let mut role = object(&format!("{RBAC}/v1"), "Role", "reads");
    role["rules"] = rules;
    let mut binding = object(&format!("{RBAC}/v1"), "RoleBinding", "reads");
    binding["roleRef"] = json!({"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"});
    let roles = least([&set([role, binding])], &apis(), Names::Any);
    let within: Vec<String> = lines(&roles).into_iter().filter(|line| line.starts_with("shop ")).collect();
    assert_eq!(
        within,
        [
            "shop /secrets[key] get 1".to_owned(),
            format!("shop {RBAC}/clusterroles[view] bind 1"),
            format!("shop {RBAC}/rolebindings[] get,create,patch,delete 1"),
            format!("shop {RBAC}/roles[] get,create,patch,delete 1"),
        ]
    );
}

#[test]
fn rules_of_a_cluster_role_hold_everywhere_and_added_ones_are_named() {
    let mut plain = whole("ClusterRole", "plain");
    plain["rules"] = json!([{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]);
    let mut adds = whole("ClusterRole", "adds");
    adds["aggregationRule"] = json!({"clusterRoleSelectors": [{}]});
    adds["rules"] = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    let roles = least([&set([plain, adds])], &apis(), Names::Any);
    assert!(roles.namespaces.is_empty());
    assert_eq!(
        lines(&roles),
        [
            "* /[]/metrics get 1".to_owned(),
            format!("* {RBAC}/clusterroles[adds] escalate 1"),
            format!("* {RBAC}/clusterroles[] get,create,patch,delete 2"),
            format!("* {RBAC}/clusterroles[] list,watch 2"),
        ]
    );
}

#[test]
fn kinds_that_the_manifests_define_are_known_and_others_are_named() {
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "shops.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Shop", "plural": "shops"}}});
    let mut set =
        set([definition, object("example.com/v1", "Shop", "one"), object("example.com/v1", "Till", "two")]);
    set.manifests[0].crd_folder = true;
    let roles = least([&set], &apis(), Names::Any);
    assert_eq!(
        lines(&roles),
        [
            "* apiextensions.k8s.io/customresourcedefinitions[] get,create,patch 1",
            "* apiextensions.k8s.io/customresourcedefinitions[] list,watch 1",
            "* example.com/shops[] list,watch 1",
            "shop example.com/shops[] get,create,patch,delete 1",
        ]
    );
    let unknown = roles.unknown.get(&("example.com".to_owned(), "Till".to_owned())).unwrap();
    assert_eq!(unknown.first().unwrap(), "example.com/Till/shop/two (app web)");
}

#[test]
fn a_rule_is_written_as_rbac_has_it() {
    let rule = Rule::of("", "pods", &["list"]);
    assert_eq!(rule.to_json(), json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}));
    let url = Rule { urls: vec!["/metrics".to_owned()], verbs: vec!["get".to_owned()], ..Rule::default() };
    assert_eq!(url.to_json(), json!({"nonResourceURLs": ["/metrics"], "verbs": ["get"]}));
}
