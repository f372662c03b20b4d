//! Whom logical clouds bind: people, and the operator itself.

use super::*;

#[test]
fn the_operator_is_bound_and_to_the_ceiling_where_roles_are_made() {
    let bound = |spec: &'static str| -> Vec<(Value, Value)> {
        let of_hub = |json: &Value| json["metadata"]["name"].as_str().unwrap().starts_with("emco:hub");
        let all = objects(spec);
        let own = all.iter().filter(|(json, ..)| of_hub(json));
        own.map(|(json, ..)| (json["roleRef"]["name"].clone(), json["subjects"].clone())).collect()
    };
    let subjects = json!([{"kind": "ServiceAccount", "name": "emco-hub", "namespace": "emco-system"}]);
    let role = |name: &str| (json!(name), subjects.clone());
    assert_eq!(bound("{}"), [role("emco-hub-tenant")]);
    assert_eq!(bound("{permissions: [{name: look, clusterRole: view}]}"), [role("emco-hub-tenant")]);
    assert_eq!(
        bound("{permissions: [{name: own, derived: true}]}"),
        [role("emco-hub-tenant"), role("emco-ceiling")]
    );
    assert_eq!(bound("{level: Admin, isolation: DefaultDeny}"), []);
}

#[test]
fn a_person_is_bound_to_what_the_account_is_bound_to() {
    let subjects = |type_: &str| {
        let spec: &'static str = format!(
            "{{level: Privileged, user: {{name: ann}}, credentials: {{type: {type_}}}, permissions: [{{name: own, clusterRole: \
             admin}}, {{name: look, scope: Cluster, clusterRole: view}}]}}"
        )
        .leak();
        let all = objects(spec);
        let is_of_hub = |json: &Value| json["metadata"]["name"].as_str().unwrap().starts_with("emco:hub");
        let bindings = all.iter().filter(|(json, ..)| json.get("subjects").is_some() && !is_of_hub(json));
        let mut subjects: Vec<Value> = bindings.map(|(json, ..)| json["subjects"].clone()).collect();
        subjects.dedup();
        let accounts = all.iter().filter(|(json, ..)| json["kind"] == "ServiceAccount").count();
        (subjects, accounts)
    };
    let account = |name: &str| json!({"kind": "ServiceAccount", "name": name, "namespace": "shop"});
    let spec = serde_yaml::from_str("{user: {name: ann}}").unwrap();
    let person = crate::people::Wanted::of(&spec, "team-a", "edge", "shop").unwrap().person;
    let user =
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "emco:team-a:edge:ann"});
    let (own, token) = (account("emco-edge"), account(&person.account));
    assert_eq!(subjects("ClientCertificate"), (vec![json!([own, user])], 1));
    assert_eq!(subjects("ServiceAccountToken"), (vec![json!([own, token])], 2));
    assert_eq!(subjects("Auto"), (vec![json!([own, user, token])], 2));
}
