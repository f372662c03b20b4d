//! Large intents: names, clients and addresses at their limits.

use serde_json::{Value, json};

use super::{case, on, plan, policy, with_server};

#[test]
fn thirty_two_servers_with_sixteen_clients_each_are_planned() {
    let clients: Vec<Value> = (0..16)
        .map(|n| json!({"name": format!("c{n}"), "podSelector": {"matchLabels": {"app": format!("c{n}")}}}))
        .collect();
    let servers: Vec<Value> =
        (0..32).map(|n| with_server(&json!({"name": format!("s{n}"), "clients": clients}))).collect();
    let mut case = case(&json!({}));
    case.traffic.get_mut("front").unwrap()["servers"] = json!(servers);
    let made = on(&plan(&case), "acme/a", "tgi.front");
    assert_eq!(made.len(), 32);
    for policy in made.values() {
        assert_eq!(policy["spec"]["ingress"][0]["from"].as_array().unwrap().len(), 16);
    }
}

#[test]
fn as_many_addresses_as_the_kind_allows_are_one_rule() {
    let cidrs: Vec<String> = (0..=255).map(|n| format!("10.{n}.0.0/16")).collect();
    let plan = plan(&case(&json!({"clients": [{"name": "nets", "cidrs": cidrs}]})));
    let rules = policy(&plan, "acme/a")["spec"]["ingress"].clone();
    assert_eq!((rules.as_array().unwrap().len(), rules[0]["from"].as_array().unwrap().len()), (1, 256));
}

#[test]
fn a_server_with_the_longest_name_has_a_policy_of_63_bytes() {
    let name = "n".repeat(63);
    let plan = plan(&case(&json!({"name": name})));
    let made: Vec<String> = on(&plan, "acme/a", "tgi.front").into_keys().collect();
    let made = made[0].strip_prefix("NetworkPolicy/r1-front-").unwrap();
    assert_eq!("r1-front-".len() + made.len(), 63);
}
