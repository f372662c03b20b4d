use serde_json::{Value, json};

use super::*;

fn object(kind: (&str, &str), spec: &Value) -> Value {
    json!({"apiVersion": kind.0, "kind": kind.1, "metadata": {"name": "web"}, "spec": spec})
}

/// The ways to what is stale, where these fields are refused.
#[allow(clippy::needless_pass_by_value)] // written where it is called
fn found(kind: (&str, &str), said: Value, live: Value, refused: &[&str]) -> Vec<String> {
    let step = |step: &Step| match step {
        Step::Field(name) => format!(".{name}"),
        Step::Item(keys) => Value::Object(keys.clone()).to_string(),
    };
    let stale = stale(&object(kind, &said), &object(kind, &live), refused);
    stale.iter().map(|stale| stale.steps.iter().map(step).collect()).collect()
}

const DEPLOYMENT: (&str, &str) = ("apps/v1", "Deployment");

fn rolling() -> Value {
    json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}})
}

#[test]
fn what_a_server_filled_into_a_strategy_is_in_the_way_of_another() {
    let refused = ["spec.strategy.rollingUpdate"];
    for strategy in [json!({"type": "Recreate"}), json!({"type": "Recreate", "rollingUpdate": null})] {
        let said = json!({"strategy": strategy});
        assert_eq!(found(DEPLOYMENT, said, rolling(), &refused), [".spec.strategy.rollingUpdate"]);
    }
    let daemon = ("apps/v1", "StatefulSet");
    let live = json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}});
    let said = json!({"updateStrategy": {"type": "OnDelete"}});
    let refused = ["spec.updateStrategy.rollingUpdate"];
    assert_eq!(found(daemon, said, live, &refused), [".spec.updateStrategy.rollingUpdate"]);
}

#[test]
fn a_union_that_is_not_refused_or_not_decided_is_left_alone() {
    let recreate = json!({"strategy": {"type": "Recreate"}});
    let none = Vec::<String>::new();
    assert_eq!(found(DEPLOYMENT, recreate.clone(), rolling(), &["spec.selector"]), none);
    assert_eq!(found(DEPLOYMENT, recreate.clone(), rolling(), &[]), none);
    let refused = ["spec.strategy.type", "spec.strategy.rollingUpdate"];
    assert_eq!(found(DEPLOYMENT, json!({"replicas": 1}), rolling(), &refused), none);
    let unknown = json!({"strategy": {"type": "BlueGreen"}});
    assert_eq!(found(DEPLOYMENT, unknown, rolling(), &refused), none, "nobody knows what it excludes");
    assert_eq!(found(("example.com/v1", "Deployment"), recreate, rolling(), &refused), none);
}

#[test]
fn sources_and_handlers_are_found_in_lists_by_the_keys_of_their_items() {
    let pod = |volumes: Value, probe: Value, env: Value| {
        json!({"template": {"spec": {"volumes": volumes,
            "containers": [{"name": "c", "livenessProbe": probe, "env": env}]}}})
    };
    let said = pod(
        json!([{"name": "work", "configMap": {"name": "x"}}]),
        json!({"exec": {"command": ["x"]}}),
        json!([{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}]),
    );
    let live = pod(
        json!([{"name": "other", "secret": {}}, {"name": "work", "emptyDir": {}}]),
        json!({"httpGet": {"path": "/", "scheme": "HTTP"}, "periodSeconds": 10}),
        json!([{"name": "A", "value": "x"}]),
    );
    let at = "spec.template.spec";
    let refused = [
        format!("{at}.volumes[1].configMap"),
        format!("{at}.containers[0].livenessProbe.httpGet"),
        format!("{at}.containers[0].env[0].valueFrom"),
    ];
    let refused: Vec<&str> = refused.iter().map(String::as_str).collect();
    let volume = r#".spec.template.spec.volumes{"name":"work"}.emptyDir"#;
    let env = r#".spec.template.spec.containers{"name":"c"}.env{"name":"A"}.value"#;
    let probe = r#".spec.template.spec.containers{"name":"c"}.livenessProbe.httpGet"#;
    assert_eq!(found(DEPLOYMENT, said.clone(), live.clone(), &refused), [volume, env, probe]);
    assert_eq!(found(DEPLOYMENT, said, live, &refused[1..2]), [probe], "the others are not refused");
}

#[test]
fn what_a_service_has_for_its_type_alone_goes_with_the_type() {
    let live = json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local",
        "loadBalancerSourceRanges": ["10.0.0.0/8"], "sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}}});
    let refused = ["spec.loadBalancerSourceRanges", "spec.sessionAffinityConfig"];
    for said in [json!({"type": "ClusterIP"}), json!({})] {
        let found = found(("v1", "Service"), said, live.clone(), &refused);
        assert_eq!(found, [".spec.loadBalancerSourceRanges", ".spec.sessionAffinityConfig"]);
    }
    let kept = json!({"type": "LoadBalancer", "sessionAffinity": "ClientIP"});
    assert_eq!(found(("v1", "Service"), kept, live, &refused), Vec::<String>::new());
}

#[test]
fn backends_of_ingresses_and_sources_of_claims_are_unions_too() {
    let ingress = ("networking.k8s.io/v1", "Ingress");
    let backend = |backend: Value| json!({"defaultBackend": backend});
    let service = |port: Value| backend(json!({"service": {"name": "w", "port": port}}));
    let bucket = backend(json!({"resource": {"kind": "Bucket", "name": "b"}}));
    let found_there = found(ingress, bucket, service(json!({"number": 80})), &["spec.defaultBackend"]);
    assert_eq!(found_there, [".spec.defaultBackend.service"]);
    let (named, numbered) = (service(json!({"name": "http"})), service(json!({"number": 80})));
    let port = found(ingress, named, numbered, &["spec.defaultBackend.service.port"]);
    assert_eq!(port, [".spec.defaultBackend.service.port.number"]);
    let of = |field: &str| json!({field: {"kind": "PersistentVolumeClaim", "name": "old"}});
    let claim = ("v1", "PersistentVolumeClaim");
    let source = found(claim, of("dataSource"), of("dataSourceRef"), &["spec.dataSource"]);
    assert_eq!(source, [".spec.dataSourceRef"]);
}

#[test]
fn a_refusal_is_explained_only_where_each_field_is() {
    let said = object(DEPLOYMENT, &json!({"strategy": {"type": "Recreate"}}));
    let live = object(DEPLOYMENT, &rolling());
    let explained = |fields: &[&str]| explains(&said, &live, fields);
    assert!(explained(&["spec.strategy.rollingUpdate"]));
    assert!(!explained(&["spec.strategy.rollingUpdate", "spec.selector"]) && !explained(&[]));
}

#[test]
fn members_that_are_said_to_be_nothing_leave_the_manifest() {
    let mut said = object(
        DEPLOYMENT,
        &json!({"strategy": {"type": "Recreate", "rollingUpdate": null}, "template": {"spec": {
            "volumes": [{"name": "a", "emptyDir": null, "configMap": {}}], "hostname": null}}}),
    );
    drop_nulls(&mut said);
    let kept = json!({"strategy": {"type": "Recreate"}, "template": {"spec": {
        "volumes": [{"name": "a", "configMap": {}}], "hostname": null}}});
    assert_eq!(said["spec"], kept);
}

#[test]
fn a_claimed_field_is_ours_and_nobody_elses() {
    let entry = |manager: &str, operation: &str, fields: Value| json!({"manager": manager, "operation": operation, "fieldsType": "FieldsV1", "fieldsV1": fields});
    let ours = json!({"f:spec": {"f:strategy": {"f:type": {}}}});
    let helm = json!({"f:spec": {"f:strategy": {"f:rollingUpdate": {".": {}, "f:maxSurge": {}}}}});
    let surge = json!({"f:rollingUpdate": {"f:maxSurge": {}}});
    let kubectl = json!({"f:spec": {"f:paused": {}, "f:strategy": surge}});
    let entries =
        [entry("emco-1", "Apply", ours), entry("helm", "Update", helm), entry("kubectl", "Update", kubectl)];
    let recreate = object(DEPLOYMENT, &json!({"strategy": {"type": "Recreate"}}));
    let refused = ["spec.strategy.rollingUpdate"];
    let stale = stale(&recreate, &object(DEPLOYMENT, &rolling()), &refused);
    let all = json!({".": {}, "f:maxSurge": {}, "f:maxUnavailable": {}});
    let now = claimed(&entries, "emco-1", &stale).unwrap();
    assert_eq!(now.len(), 2, "an entry without a field goes");
    assert_eq!(now[0]["fieldsV1"], json!({"f:spec": {"f:strategy": {"f:type": {}, "f:rollingUpdate": all}}}));
    assert_eq!(now[1]["fieldsV1"], json!({"f:spec": {"f:paused": {}}}));
    assert_eq!(claimed(&now, "emco-1", &stale), None, "once");
    assert_eq!(claimed(&entries[1..], "emco-1", &stale), None, "nothing of the object is ours");
}

#[test]
fn below_a_map_that_was_said_to_be_empty_a_field_is_claimed_too() {
    let ours = json!({"manager": "emco-1", "operation": "Apply", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:replicas": {}, "f:strategy": {}}}});
    let recreate = object(DEPLOYMENT, &json!({"strategy": {"type": "Recreate"}}));
    let stale = stale(&recreate, &object(DEPLOYMENT, &rolling()), &["spec.strategy.rollingUpdate"]);
    let now = claimed(&[ours], "emco-1", &stale).unwrap();
    let all = json!({".": {}, "f:maxSurge": {}, "f:maxUnavailable": {}});
    let strategy = json!({".": {}, "f:rollingUpdate": all});
    assert_eq!(now[0]["fieldsV1"], json!({"f:spec": {"f:replicas": {}, "f:strategy": strategy}}));
    assert_eq!(claimed(&now, "emco-1", &stale), None, "once");
}

#[test]
fn mounts_of_a_volume_with_two_sources_are_refused_with_it() {
    let pod = |volume: Value| json!({"template": {"spec": {"volumes": [volume]}}});
    let said = object(DEPLOYMENT, &pod(json!({"name": "work", "configMap": {"name": "x"}})));
    let live = object(DEPLOYMENT, &pod(json!({"name": "work", "emptyDir": {}})));
    let volume = "spec.template.spec.volumes[0].configMap";
    for mounts in ["containers[0].volumeMounts[1].name", "initContainers[0].volumeDevices[0].name"] {
        let mount = format!("spec.template.spec.{mounts}");
        assert!(explains(&said, &live, &[volume, &mount]));
        assert!(!explains(&said, &live, &[&mount]), "the volume is not refused");
    }
    assert!(!explains(&said, &live, &[volume, "spec.template.spec.containers[0].image"]));
}
