use serde_json::{Value, json};

use super::*;
use crate::apis::ApiResource;
use crate::identity::SetDigest;
use crate::role::RBAC;
use crate::set::{Phase, SetManifest};

const ACCOUNT: &str = "system:serviceaccount:shop:emco-edge";

fn apis() -> ApiList {
    let served = [
        ("", "ConfigMap", "configmaps", true),
        ("", "Secret", "secrets", true),
        ("", "ResourceQuota", "resourcequotas", true),
        ("", "Namespace", "namespaces", false),
        ("apps", "Deployment", "deployments", true),
        ("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions", false),
        (RBAC, "Role", "roles", true),
        (RBAC, "RoleBinding", "rolebindings", true),
        ("networking.k8s.io", "NetworkPolicy", "networkpolicies", true),
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

fn own() -> Derived {
    Derived { namespaces: ["shop".to_owned()].into(), cluster: false }
}

fn whole() -> Derived {
    Derived { cluster: true, ..own() }
}

fn manifest(json: Value, crd_folder: bool) -> SetManifest {
    SetManifest {
        digest: String::new(),
        phase: Phase::Main,
        hook: None,
        crd_folder,
        keep: false,
        take_existing: false,
        edited_by: Vec::new(),
        account: Some(ACCOUNT.to_owned()),
        json,
    }
}

fn object(api: &str, kind: &str, name: &str) -> Value {
    json!({"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": "shop"}})
}

fn set(manifests: Vec<SetManifest>) -> ManifestSet {
    ManifestSet { digest: SetDigest("x".to_owned()), app: "web".to_owned(), manifests }
}

fn asked(objects: impl IntoIterator<Item = Value>) -> Asked {
    let manifests = objects.into_iter().map(|json| manifest(json, false)).collect();
    Asked::of(&set(manifests), ACCOUNT)
}

/// Each rule in a line: the place, the groups with the resources, the names, the verbs.
fn lines(rights: &Rights) -> Vec<String> {
    let cluster = rights.cluster.iter().map(|rule| ("*", rule));
    let within =
        rights.namespaces.iter().flat_map(|(at, rules)| rules.iter().map(move |rule| (at.as_str(), rule)));
    let line = |(place, Rule { groups, resources, names, urls: _, verbs }): (&str, &Rule)| {
        let of = |list: &[String]| list.join(",");
        format!("{place} {}/{}[{}] {}", of(groups), of(resources), of(names), of(verbs))
    };
    cluster.chain(within).map(line).collect()
}

fn derived(objects: impl IntoIterator<Item = Value>) -> Vec<String> {
    lines(&asked(objects).rights(&apis(), &own()))
}

#[test]
fn an_account_makes_changes_and_removes_what_is_applied_as_it() {
    let objects = [
        object("v1", "ConfigMap", "a"),
        object("v1", "ConfigMap", "b"),
        object("v1", "Secret", "key"),
        object("apps/v1", "Deployment", "web"),
    ];
    let wanted =
        ["shop /configmaps,secrets[] create,delete,patch", "shop apps/deployments[] create,delete,patch"];
    assert_eq!(derived(objects), wanted);
    let other = SetManifest { account: None, ..manifest(object("v1", "Secret", "key"), false) };
    assert!(Asked::of(&set(vec![other]), ACCOUNT).is_empty());
}

#[test]
fn what_several_sets_ask_is_asked_together() {
    let (one, two) = (asked([object("v1", "ConfigMap", "a")]), asked([object("v1", "Secret", "key")]));
    let mut both = Asked::default();
    for set in [&one, &two, &one] {
        both.add(set);
    }
    let both = both.rights(&apis(), &own());
    assert_eq!(lines(&both), ["shop /configmaps,secrets[] create,delete,patch"]);
    // Each alone is within it.
    for alone in [one, two] {
        let alone = alone.rights(&apis(), &own());
        assert!(alone.within("shop").iter().all(|rule| rule.lacks(both.within("shop")).is_none()));
        assert!(both.within("shop").iter().any(|rule| rule.lacks(alone.within("shop")).is_some()));
    }
}

#[test]
fn the_rules_of_a_role_are_held_and_what_confines_the_namespace_is_not() {
    let role = |rules: Value| {
        let mut role = object(&format!("{RBAC}/v1"), "Role", "reads");
        role["rules"] = rules;
        role
    };
    let binding = |name: &str| {
        let mut binding = object(&format!("{RBAC}/v1"), "RoleBinding", "binds");
        binding["roleRef"] = json!({"apiGroup": RBAC, "kind": "ClusterRole", "name": name});
        binding
    };
    let rule =
        |resource: &str, verb: &str| json!([{"apiGroups": [""], "resources": [resource], "verbs": [verb]}]);
    let roles = format!("shop {RBAC}/roles[reads] create,delete,patch");
    assert_eq!(derived([role(rule("pods", "get"))]), [roles.clone(), "shop /pods[] get".to_owned()]);
    for more in [
        rule("limitranges", "delete"),
        rule("namespaces", "patch"),
        rule("*/status", "patch"),
        rule("*", "get"),
        rule("pods", "*"),
        rule("serviceaccounts", "impersonate"),
        json!([{"apiGroups": [RBAC], "resources": ["roles"], "verbs": ["escalate"]}]),
        json!([{"apiGroups": [RBAC], "resources": ["clusterroles"], "verbs": ["bind"]}]),
    ] {
        assert_eq!(derived([role(more.clone())]), [roles.as_str()], "{more}");
    }
    // Who watches quotas changes none.
    let seen = derived([role(rule("resourcequotas", "list"))]);
    assert_eq!(seen, [roles, "shop /resourcequotas[] list".to_owned()]);
    let bindings = format!("shop {RBAC}/rolebindings[binds] create,delete,patch");
    assert_eq!(derived([binding("cluster-admin")]), [bindings.as_str()]);
    assert_eq!(derived([binding("view")]), [bindings, format!("shop {RBAC}/clusterroles[view] bind")]);
    assert!(derived([object("v1", "ResourceQuota", "emco-all")]).is_empty());
}

#[test]
fn a_role_of_the_set_is_bound_by_its_rules_and_no_other_role_is() {
    let mut binding = object(&format!("{RBAC}/v1"), "RoleBinding", "binds");
    binding["roleRef"] = json!({"apiGroup": RBAC, "kind": "Role", "name": "neighbours"});
    assert_eq!(derived([binding]), [format!("shop {RBAC}/rolebindings[binds] create,delete,patch")]);
}

#[test]
fn kinds_of_which_emco_has_objects_are_derived_by_name() {
    let policy = |name: &str| object("networking.k8s.io/v1", "NetworkPolicy", name);
    let objects =
        [policy("open"), policy("emco-isolation"), policy("closed"), object("v1", "ConfigMap", "emco-a")];
    assert_eq!(
        derived(objects),
        [
            "shop /configmaps[] create,delete,patch",
            "shop networking.k8s.io/networkpolicies[closed,open] create,delete,patch",
        ]
    );
    assert!(derived([policy("emco-isolation")]).is_empty());
}

#[test]
fn rights_on_the_whole_cluster_are_derived_where_the_scope_says_so() {
    let namespace = || json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    assert!(derived([namespace()]).is_empty());
    let objects = [namespace(), object("v1", "ResourceQuota", "all")];
    let whole = asked(objects).rights(&apis(), &whole());
    assert_eq!(
        lines(&whole),
        ["* /namespaces[] create,delete,patch", "shop /resourcequotas[] create,delete,patch"]
    );
}

#[test]
fn kinds_that_a_set_defines_are_known_and_definitions_of_a_folder_stay() {
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "shops.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Shop", "plural": "shops"}}});
    let set = set(vec![
        manifest(definition, true),
        manifest(object("example.com/v1", "Shop", "one"), false),
        manifest(object("example.com/v1", "Stall", "nobody-defines-it"), false),
    ]);
    assert_eq!(
        lines(&Asked::of(&set, ACCOUNT).rights(&apis(), &whole())),
        [
            "* apiextensions.k8s.io/customresourcedefinitions[] create,patch",
            "shop example.com/shops[] create,delete,patch",
        ]
    );
}

#[test]
fn a_rule_lacks_what_no_other_rule_gives() {
    let rules = |list: Value| Rule::list(Some(&list));
    let wanted = &rules(
        json!([{"apiGroups": ["apps"], "resources": ["deployments"], "resourceNames": ["web"], "verbs": ["create", "patch"]}]),
    )[0];
    let had = |resources: &str, names: Value, verbs: Value| {
        rules(
            json!([{"apiGroups": ["apps"], "resources": [resources], "resourceNames": names, "verbs": verbs}]),
        )
    };
    assert_eq!(wanted.lacks(&[]).as_deref(), Some("create deployments.apps"));
    assert_eq!(
        wanted.lacks(&had("deployments", json!([]), json!(["create"]))).as_deref(),
        Some("patch deployments.apps")
    );
    assert_eq!(wanted.lacks(&had("*", json!([]), json!(["*"]))), None);
    assert_eq!(wanted.lacks(&had("deployments", json!(["web", "db"]), json!(["create", "patch"]))), None);
    assert!(wanted.lacks(&had("deployments", json!(["db"]), json!(["create", "patch"]))).is_some());
    let all = &rules(json!([{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["create"]}]))[0];
    assert!(all.lacks(&had("deployments", json!(["web"]), json!(["create"]))).is_some());
}

#[test]
fn where_rights_are_listed_none_are_derived() {
    let mut there = object("v1", "ConfigMap", "board");
    there["metadata"]["namespace"] = json!("boards");
    let asked = asked([object("v1", "Secret", "key"), there]);
    assert_eq!(lines(&asked.rights(&apis(), &own())), ["shop /secrets[] create,delete,patch"]);
    let words = |derived: &Derived| Gain::told(&asked.gains("shop", derived), 10);
    assert_eq!(words(&own()), ["create Secrets"]);
    let further = Derived { namespaces: ["shop", "boards"].map(str::to_owned).into(), cluster: false };
    assert_eq!(words(&further), ["create Secrets", "create ConfigMaps in boards"]);
    assert_eq!(asked.rights(&apis(), &further).within("boards").len(), 1);
}

#[test]
fn kinds_are_named_as_people_name_many() {
    let named = ["NetworkPolicy", "Ingress", "Gateway", "ConfigMap", "Endpoints", "Prefix"].map(plural);
    assert_eq!(named, ["NetworkPolicies", "Ingresses", "Gateways", "ConfigMaps", "Endpoints", "Prefixes"]);
}

#[test]
fn what_is_to_be_listed_has_all_of_it_and_lets_plans_look() {
    let quota = object("v1", "ResourceQuota", "all");
    let rules = json!([{"apiGroups": [""], "resources": ["limitranges"], "verbs": ["*"]}]);
    let mut role = object(&format!("{RBAC}/v1"), "Role", "all");
    role["rules"] = rules;
    let listed = asked([object("v1", "ConfigMap", "a"), quota, role]).to_list(&apis());
    assert_eq!(
        lines(&listed),
        [
            "shop /configmaps,resourcequotas[] create,delete,get,patch",
            "shop rbac.authorization.k8s.io/roles[all] create,delete,get,patch",
            "shop /limitranges[] *",
        ]
    );
}

#[test]
fn rights_of_several_clusters_are_one_list_without_repeats() {
    let mut all = asked([object("v1", "ConfigMap", "a")]).to_list(&apis());
    all.add(asked([object("v1", "ConfigMap", "b")]).to_list(&apis()));
    all.add(asked([object("v1", "Secret", "key")]).to_list(&apis()));
    let wanted = ["shop /configmaps[] create,delete,get,patch", "shop /secrets[] create,delete,get,patch"];
    assert_eq!(lines(&all), wanted);
}
