//! Asserts where each value of the chart `emco` lands, as our own engine renders it. (`render` proves that Helm renders the same.)

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

use emco_e2e::operator::{program, root};
use serde_json::{Value, json};

use super::render::{EVERYTHING, chart_of, documents, only};

/// The objects of the chart with these values.
fn rendered(values: &str) -> Vec<Value> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(values.as_bytes()).unwrap();
    let output = Command::new(program().unwrap().with_file_name("emco-helm"))
        .args(["template", "emco", &chart_of("emco"), "--namespace", "emco-system"])
        .args(["--kube-version", "1.36.3", "--values"])
        .arg(file.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    documents(&String::from_utf8(output.stdout).unwrap()).unwrap()
}

/// The entry of a list that has this name.
fn named<'a>(list: &'a Value, name: &str) -> &'a Value {
    let all = list.as_array().unwrap_or_else(|| panic!("{name}: {list} is no list"));
    all.iter().find(|entry| entry["name"] == name).unwrap_or_else(|| panic!("there is no {name} in {list}"))
}

#[test]
fn every_value_lands_at_its_place_in_the_deployment() {
    let objects = rendered(EVERYTHING);
    let deployment = only(&objects, "Deployment");
    let template = &deployment["spec"]["template"];
    let pod = &template["spec"];
    let container = &pod["containers"][0];
    assert_eq!(container["name"], "operator");

    assert_eq!(deployment["spec"]["replicas"], 3);
    let digest = "0".repeat(64);
    assert_eq!(container["image"], format!("registry.example.com/emco@sha256:{digest}"));
    assert_eq!(pod["imagePullSecrets"], json!([{"name": "pull"}]));
    assert_eq!(container["args"], json!(["run", "--max-connects=32"]));
    for (name, value) in [
        ("TZ", "UTC"),
        ("EMCO_LOG_FORMAT", "text"),
        ("EMCO_LOG", "debug"),
        ("EMCO_EDGE_IN_FLIGHT", "5"),
        ("EMCO_MAX_CONNECTS", "9"),
        ("EMCO_UNREFERENCED_SECONDS", "60"),
        ("EMCO_ALLOW_EDGE_ADDRESS", "10.0.0.0/8,127.0.0.1"),
        ("EMCO_HUB_HOST", "api.hub.example.com,203.0.113.7"),
        ("EMCO_NO_PROXY", ".example.com,203.0.113.0/24,*"),
        ("EMCO_CA_BUNDLE", "/etc/emco/ca/all.pem"),
    ] {
        assert_eq!(*named(&container["env"], name), json!({"name": name, "value": value}));
    }
    let secret = json!({"secretKeyRef": {"name": "proxy", "key": "url"}});
    assert_eq!(named(&container["env"], "EMCO_PROXY")["valueFrom"], secret);

    assert_eq!(named(&pod["volumes"], "more")["emptyDir"], json!({}));
    assert_eq!(named(&container["volumeMounts"], "more")["mountPath"], "/more");
    assert_eq!(named(&pod["volumes"], "ca")["configMap"]["name"], "authorities");
    let mount = json!({"name": "ca", "mountPath": "/etc/emco/ca", "readOnly": true});
    assert_eq!(*named(&container["volumeMounts"], "ca"), mount);

    assert_eq!(named(&pod["volumes"], "state")["emptyDir"], json!({"sizeLimit": "4Gi"}));
    assert_eq!(container["resources"]["limits"]["memory"], "3Gi");
    assert_eq!(template["metadata"]["annotations"]["example.com/a"], "b");
    assert_eq!(template["metadata"]["labels"]["example.com/c"], "d");
    assert_eq!(pod["nodeSelector"], json!({"kubernetes.io/os": "linux"}));
    assert_eq!(pod["tolerations"], json!([{"operator": "Exists"}]));
    assert_eq!(pod["affinity"], json!({"nodeAffinity": {}}));
    assert_eq!(pod["topologySpreadConstraints"][0]["topologyKey"], "zone");
    assert_eq!(pod["priorityClassName"], "system-cluster-critical");
    let account = only(&objects, "ServiceAccount");
    assert_eq!(account["metadata"]["annotations"]["example.com/role"], "emco");
}

#[test]
fn common_labels_are_on_every_object_of_the_chart() {
    let objects = rendered(EVERYTHING);
    let mut kinds = BTreeMap::new();
    for object in &objects {
        assert_eq!(object["metadata"]["labels"]["example.com/team"], "edge", "{}", object["metadata"]);
        *kinds.entry(object["kind"].as_str().unwrap_or_default()).or_insert(0) += 1;
    }
    for kind in ["Deployment", "ServiceMonitor", "NetworkPolicy", "PodDisruptionBudget", "ConfigMap", "Role"]
    {
        assert!(kinds.contains_key(kind), "not everything is rendered: {kinds:?}");
    }
}

#[test]
fn renewals_of_the_lease_have_a_priority_of_their_own() {
    let objects = rendered("{}");
    let schema = &only(&objects, "FlowSchema")["spec"];
    assert_eq!(schema["priorityLevelConfiguration"]["name"], "leader-election");
    let rule = &schema["rules"][0];
    let account = &only(&objects, "ServiceAccount")["metadata"];
    let subject = &rule["subjects"][0]["serviceAccount"];
    assert_eq!((&subject["name"], &subject["namespace"]), (&account["name"], &account["namespace"]));
    let lease = json!([{"verbs": ["get", "create", "update"], "apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
        "namespaces": [account["namespace"]]}]);
    assert_eq!(rule["resourceRules"], lease);
    let without = rendered("flowSchema: {enabled: false}");
    assert!(without.iter().all(|object| object["kind"] != "FlowSchema"));
}

#[test]
fn a_proxy_without_a_password_is_a_value_of_its_own() {
    let objects = rendered("operator: {proxy: 'http://proxy.example:3128'}");
    let env = &only(&objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]["env"];
    assert_eq!(named(env, "EMCO_PROXY")["value"], "http://proxy.example:3128");
    let names: Vec<_> = env.as_array().unwrap().iter().map(|variable| &variable["name"]).collect();
    assert!(!names.contains(&&json!("EMCO_NO_PROXY")), "nothing is excepted by default: {names:?}");
}

#[test]
fn the_values_of_the_book_for_a_proxy_are_what_the_operator_is_told() {
    let page = std::fs::read_to_string(root().join("docs/install.md")).unwrap();
    let blocks = page.split("```yml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let values = blocks.filter(|block| block.contains("noProxy")).collect::<Vec<_>>();
    let [values] = values[..] else { panic!("{values:?}") };
    let objects = rendered(values);
    let env = &only(&objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]["env"];
    assert_eq!(named(env, "EMCO_PROXY")["valueFrom"]["secretKeyRef"]["name"], "proxy");
    assert_eq!(named(env, "EMCO_NO_PROXY")["value"], "registry.example.com,203.0.113.0/24");
}
