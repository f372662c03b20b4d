//! Plans of deployments in a logical cloud whose account has the rights that follow what is deployed.

mod common;

use common::Case;
use emco_crds::deployment_intent_group::status::Pending;
use emco_engine::changes::Details;
use emco_engine::plan::DerivedAccount;
use emco_engine::snapshot::Running;

const CASE: &str = "
about: A deployment whose rights are derived.
level: Standard
derived: true
dig: {placement: {allOf: [{selector: {}}]}}
charts:
  web:
    templates/a.yaml: '{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}'
    templates/b.yaml: '{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: web}}'
    templates/c.yaml: '{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: web}, rules: [{apiGroups: [apps], resources: [deployments], verbs: [get, list]}]}'
    templates/d.yaml: '{apiVersion: v1, kind: ResourceQuota, metadata: {name: web}}'
clusters: {acme/a: {}, acme/b: {}}
before: {charts: {web: {templates/a.yaml: '{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}'}}}
";

fn case(text: &str) -> Case {
    Case::parse(text).unwrap()
}

fn gains(case: &Case, running: Option<&Running>) -> Vec<String> {
    let account = DerivedAccount::of(case.snapshot(None).cloud.as_ref().unwrap()).unwrap();
    let plan = case.plan().unwrap();
    account.gains(running, &plan.assignment, &plan.sets)
}

#[test]
fn a_plan_gains_what_the_running_revision_does_not_need() {
    let case = case(CASE);
    let running = case.running().unwrap();
    assert_eq!(
        gains(&case, running.as_ref()),
        ["create Roles", "create NetworkPolicies", "get,list deployments.apps"],
        "a quota is not among them"
    );
    assert!(gains(&case, None).contains(&"create ConfigMaps".to_owned()));
    let now = case.run(&case.plan().unwrap());
    assert_eq!(gains(&case, Some(&now)), Vec::<String>::new());
}

#[test]
fn great_gains_come_first_and_a_status_has_room_for_all_of_them() {
    let of =
        |number: i32| format!("{{apiGroups: [a.example.com], resources: [k{number:02}], verbs: [get]}}, ");
    let usual: String = (0..60).map(of).collect();
    let great = "{apiGroups: [\"\"], resources: [zebras, secrets], verbs: [get, list]}";
    let rules = "{apiGroups: [apps], resources: [deployments], verbs: [get, list]}";
    let case = case(&CASE.replace(rules, &format!("{usual}{great}")));
    let details = Details { gains: gains(&case, None), ..Details::default() };
    let mut pending = Pending::default();
    details.fill(&mut pending);
    assert_eq!(pending.gains.len(), 11, "{:?}", pending.gains);
    assert_eq!(pending.gains[..2], ["create Roles", "get,list secrets"], "{:?}", pending.gains);
    assert!(pending.gains[10].ends_with("more rights"), "{:?}", pending.gains);
}

#[test]
fn a_cluster_that_joins_gains_all_that_comes_there() {
    let joined = case(&CASE.replace("before: {", "before: {clusters: {acme/a: {}}, "));
    let running = joined.running().unwrap();
    assert!(gains(&joined, running.as_ref()).contains(&"create ConfigMaps".to_owned()));
}

#[test]
fn the_digest_of_a_plan_covers_the_rights_that_come_with_it() {
    let (derived, listed) = (case(CASE), case(&CASE.replace("derived: true", "derived: false")));
    let (derived, listed) = (derived.plan().unwrap(), listed.plan().unwrap());
    assert_eq!(derived.inputs_digest, listed.inputs_digest);
    assert_eq!(derived.assignment, listed.assignment);
    assert_ne!(derived.plan_digest, listed.plan_digest);
}

#[test]
fn a_plan_of_derived_rights_that_is_carried_out_changes_nothing() {
    let mut case = case(CASE);
    case.before = None;
    let first = case.plan().unwrap();
    let again = emco_engine::plan::plan(&case.snapshot(Some(case.run(&first)))).unwrap();
    assert_eq!((again.plan_digest, again.change), (first.plan_digest, None));
}
