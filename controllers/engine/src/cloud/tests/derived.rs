//! Rights that are derived for each cluster.

use super::*;
use crate::role::Rule;

/// Rights in a namespace, or with `""` on the whole cluster.
fn rights(place: &str, resource: &str) -> Rights {
    let rules = json!([{"apiGroups": [""], "resources": [resource], "verbs": ["create"]}]);
    let rules = Rule::list(Some(&rules));
    if place.is_empty() {
        return Rights { cluster: rules, ..Rights::default() };
    }
    Rights { namespaces: [(place.to_owned(), rules)].into(), ..Rights::default() }
}

const OWN: &str = "{permissions: [{name: own, derived: true}]}";

fn deriving(a: Option<Rights>, running: Option<&CloudPlan>) -> CloudPlan {
    let derived = [(ClusterId::new("acme", "a"), a)].into();
    Case { spec: OWN, derived, running: running.map(run), ..Case::default() }.plan().unwrap()
}

/// Resources in the role of each cluster.
fn given_to(plan: &CloudPlan) -> Vec<String> {
    let of = |(id, apps): (&ClusterId, &BTreeMap<String, Assigned>)| {
        let set = &plan.sets[&apps[APP].set];
        let role = set.manifests.iter().find(|manifest| manifest.json["kind"] == "Role").unwrap();
        assert_eq!(role.json["metadata"], json!({"name": "emco-edge-own", "namespace": "shop"}));
        let rules = role.json["rules"].as_array().unwrap().iter();
        let resources: Vec<&str> = rules.map(|rule| rule["resources"][0].as_str().unwrap()).collect();
        format!("{id} {}", resources.join(","))
    };
    plan.assignment.iter().map(of).collect()
}

#[test]
fn each_cluster_has_the_rights_that_are_derived_for_it() {
    let none = deriving(Some(Rights::default()), None);
    assert_eq!(given_to(&none), ["acme/a ", "acme/b "]);
    let some = deriving(Some(rights("shop", "secrets")), Some(&none));
    assert_eq!(given_to(&some), ["acme/a secrets", "acme/b "]);
    let change = some.change.as_ref().unwrap();
    assert_eq!(change.cause, Cause::Update);
    assert_eq!(change.summary, "namespace shop on 2 clusters: 1 given other rights");
    assert_eq!(some.inputs_digest, none.inputs_digest, "nobody wrote anything else");
    assert_eq!(deriving(Some(rights("shop", "secrets")), Some(&some)).change, None);
}

#[test]
fn a_cluster_is_given_less_a_moment_after_the_last_change() {
    let none = deriving(Some(Rights::default()), None);
    let some = deriving(Some(rights("shop", "secrets")), Some(&none));
    let soon = deriving(Some(Rights::default()), Some(&some));
    assert_eq!((given_to(&soon), &soon.change, soon.less_at), (given_to(&some), &None, Some(11)));
    // More, or something else, waits for nothing.
    let other = deriving(Some(rights("shop", "pods")), Some(&some));
    assert_eq!(given_to(&other), ["acme/a pods", "acme/b "]);
    assert_eq!(other.less_at, None);
    let derived = [(ClusterId::new("acme", "a"), Some(Rights::default()))].into();
    let late = Case { spec: OWN, derived, running: Some(run(&some)), now: 11, ..Case::default() };
    let late = late.plan().unwrap();
    assert_eq!((given_to(&late), &late.plan_digest), (given_to(&none), &none.plan_digest));
    assert_eq!(late.change.unwrap().cause, Cause::Update);
    // All that was there has gone.
    let left = Case { spec: OWN, running: Some(run(&some)), now: 11, ..Case::default() }.plan().unwrap();
    assert_eq!(given_to(&left), given_to(&none));
    let edited = "{permissions: [{name: own, derived: true}], quotas: [{name: pods, hard: {pods: '9'}}]}";
    let edited = Case { spec: edited, running: Some(run(&some)), ..Case::default() }.plan().unwrap();
    assert_eq!(given_to(&edited), given_to(&none), "an edit does not wait");
}

#[test]
fn rights_that_cannot_be_told_now_stay() {
    let some = deriving(Some(rights("shop", "secrets")), None);
    let silent = deriving(None, Some(&some));
    assert_eq!((given_to(&silent), &silent.change), (given_to(&some), &None));
    assert_eq!(given_to(&deriving(None, None)), ["acme/a ", "acme/b "]);
}

#[test]
fn derived_rights_of_the_cluster_are_apart_from_those_of_the_namespace() {
    let mut all = rights("shop", "secrets");
    all.namespaces.extend(rights("logs", "pods").namespaces);
    all.cluster = rights("", "nodes").cluster;
    let rules = |spec: &'static str| {
        let derived = [(ClusterId::new("acme", "a"), Some(all.clone()))].into();
        let case = Case { spec, derived, ..Case::default() };
        let case = Case { grants: "[{name: all, projectSelector: {}, maxLevel: Privileged}]", ..case };
        let plan = case.plan().unwrap();
        let set = &plan.sets[&plan.assignment[&ClusterId::new("acme", "a")][APP].set];
        let roles =
            set.manifests.iter().map(|manifest| &manifest.json).filter(|json| json.get("rules").is_some());
        let line = |role: &Value| {
            let rules = role["rules"].as_array().unwrap().iter();
            let resources: Vec<&str> = rules.map(|rule| rule["resources"][0].as_str().unwrap()).collect();
            let (kind, name) = (role["kind"].as_str().unwrap(), role["metadata"]["name"].as_str().unwrap());
            format!("{kind} {name} {}", resources.join(","))
        };
        roles.map(line).collect::<Vec<_>>()
    };
    assert_eq!(
        rules("{level: Privileged, permissions: [{name: own, derived: true, scope: Cluster}]}"),
        ["ClusterRole emco:shop:edge:own nodes,pods", "Role emco-edge-own secrets"]
    );
    assert_eq!(
        rules("{level: Privileged, permissions: [{name: own, derived: true, namespaces: [logs]}]}"),
        ["Role emco-edge-own secrets", "Role emco:shop:edge:own pods"]
    );
}

#[test]
fn more_rules_than_a_role_may_have_are_refused() {
    let mut all = rights("shop", "secrets");
    let rules = all.namespaces.get_mut("shop").unwrap();
    *rules = rules.iter().cycle().take(501).cloned().collect();
    let derived = [(ClusterId::new("acme", "a"), Some(all))].into();
    let (reason, message) = Case { spec: OWN, derived, ..Case::default() }.refusal();
    assert_eq!(reason, "QuotaRejected");
    assert!(message.contains("on acme/a needs 501 rules, and at most 500 are derived"), "{message}");
}
