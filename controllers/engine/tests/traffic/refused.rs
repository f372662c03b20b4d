//! What an intent of traffic is refused for, each with what to do.

use serde_json::{Value, json};

use super::{case, chart, refusal};

/// The reason of a case in which the server has this over it, and its chart, if one is given, is another one.
fn refused(server: &Value, template: Option<&str>) -> (&'static str, String) {
    let mut case = case(server);
    if let Some(template) = template {
        chart(&mut case, "catalog", template);
    }
    let refused = refusal(&case);
    assert_eq!((refused.condition, refused.stalled), ("Rendered", true), "{}", refused.message);
    (refused.reason, refused.message)
}

fn missing(server: &Value, template: Option<&str>) -> String {
    let (reason, message) = refused(server, template);
    assert_eq!(reason, "TargetMissing", "{message}");
    let place = "TrafficGroupIntent front, spec.servers[catalog]";
    message.strip_prefix(place).unwrap_or_else(|| panic!("{message}")).to_owned()
}

const PODS: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: pods}
spec:
  selector: {matchLabels: {app: catalog}}
  template:
    metadata: {labels: {app: catalog}}
    spec: {containers: [{name: c, image: example.com/c, ports: [{name: web, containerPort: 8080}]}]}
---
";

/// A Service of the chart, with the pods of the deployment above.
fn service(name: &str, spec: &str) -> String {
    format!("apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\nspec: {spec}\n---\n")
}

#[test]
fn an_app_without_a_service_is_refused() {
    assert_eq!(
        missing(&json!({}), Some(PODS)),
        ".service: on acme/a, app catalog makes no Service: a server is one; add it to the chart, or by a GenericActionIntent"
    );
}

#[test]
fn of_two_services_one_has_to_be_named() {
    let two = [
        service("one", "{selector: {app: catalog}, ports: [{port: 80}]}"),
        service("two", "{selector: {app: catalog}, ports: [{port: 81}]}"),
    ];
    let template = format!("{PODS}{}{}", two[0], two[1]);
    assert_eq!(
        missing(&json!({"ports": null}), Some(&template)),
        ".service: on acme/a, app catalog makes 2 Services (one, two): name one of them"
    );
    assert_eq!(
        missing(&json!({"ports": null, "service": "three"}), Some(&template)),
        ".service: on acme/a, app catalog makes no Service three (it makes one, two): name another one"
    );
}

#[test]
fn a_port_that_the_service_does_not_have_is_refused() {
    assert_eq!(
        missing(&json!({"ports": ["https"]}), None),
        ".ports: on acme/a, Service r1-catalog has no port https (it has http (9000), metrics (9100)): name another one"
    );
    assert!(missing(&json!({"ports": [9001]}), None).contains("has no port 9001"));
}

#[test]
fn a_port_name_that_no_container_has_is_refused() {
    let template = format!(
        "{PODS}{}",
        service("one", "{selector: {app: catalog}, ports: [{name: http, port: 80, targetPort: www}]}")
    );
    assert_eq!(
        missing(&json!({}), Some(&template)),
        ".ports: on acme/a, port http (80) of Service one leads to port www of its pods, and no container behind it names a TCP port so: give \
         a container that port, or give targetPort a number, in the chart or by a GenericActionIntent"
    );
}

#[test]
fn a_service_that_has_no_pods_of_its_own_is_refused() {
    let without = format!("{PODS}{}", service("one", "{ports: [{name: http, port: 80}]}"));
    assert!(
        missing(&json!({}), Some(&without)).starts_with(".service: on acme/a, Service one has no selector")
    );
    let external = format!("{PODS}{}", service("one", "{type: ExternalName, externalName: db.example.com}"));
    assert!(missing(&json!({}), Some(&external)).contains("Service one is of type ExternalName"));
    let portless = format!("{PODS}{}", service("one", "{clusterIP: None, selector: {app: catalog}}"));
    assert!(
        missing(&json!({"ports": null}), Some(&portless))
            .starts_with(".ports: on acme/a, Service one has no ports")
    );
}

#[test]
fn a_headless_service_is_a_server() {
    let headless = format!(
        "{PODS}{}",
        service(
            "one",
            "{clusterIP: None, selector: {app: catalog}, ports: [{name: http, port: 80, targetPort: web}]}"
        )
    );
    let mut case = case(&json!({}));
    chart(&mut case, "catalog", &headless);
    let policy = super::policy(&super::plan(&case), "acme/a");
    assert_eq!(policy["spec"]["ingress"][0]["ports"], json!([{"protocol": "TCP", "port": "web"}]));
}

#[test]
fn a_client_app_without_workloads_is_refused_and_told_the_other_ways() {
    let mut case = case(&json!({}));
    chart(&mut case, "ui", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: none}\n");
    let refused = refusal(&case);
    assert_eq!(refused.reason, "TargetMissing");
    assert_eq!(
        refused.message,
        "TrafficGroupIntent front, spec.servers[catalog].clients[ui]: on acme/a, app ui makes no workload, so that no pods are known to be \
         its own: name them by podSelector, or their addresses by cidrs"
    );
}

#[test]
fn a_workload_that_the_app_does_not_make_is_refused() {
    let clients =
        json!([{"name": "ui", "app": "ui", "workload": {"kind": "StatefulSet", "name": "{{release}}-ui"}}]);
    assert_eq!(
        missing(&json!({"clients": clients}), None),
        ".clients[ui]: on acme/a, app ui makes no StatefulSet r1-ui (it makes Deployment r1-ui, CronJob r1-warm): change workload"
    );
}

#[test]
fn pods_without_labels_cannot_be_told_from_others() {
    let mut case = case(&json!({}));
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: bare}\nspec: {containers: [{name: c, image: example.com/c}]}\n";
    chart(&mut case, "ui", pod);
    assert!(refusal(&case).message.contains("pods of Pod bare of app ui have no labels"));
}

#[test]
fn a_client_app_on_other_clusters_alone_is_refused_and_offered_cidrs() {
    let mut case = case(&json!({}));
    case.dig["placement"] = json!({"apps": [
        {"app": "catalog", "allOf": [{"provider": "acme", "cluster": "a"}]},
        {"app": "ui", "allOf": [{"provider": "acme", "cluster": "b"}]},
    ]});
    let refused = refusal(&case);
    assert_eq!(refused.reason, "TargetMissing");
    assert_eq!(
        refused.message,
        "TrafficGroupIntent front, spec.servers[catalog].clients[ui]: app ui is on no cluster of app catalog where it counts (ui is on \
         acme/b; catalog is on acme/a): pods of other clusters come with addresses, which are named by cidrs"
    );
}

#[test]
fn an_app_that_there_is_not_is_refused_by_name() {
    for (server, place) in [
        (json!({"app": "katalog"}), "spec.servers[catalog]"),
        (json!({"clients": [{"name": "ui", "app": "katalog"}]}), "spec.servers[catalog].clients[ui]"),
    ] {
        let refused = refusal(&case(&server));
        assert_eq!((refused.condition, refused.reason), ("Resolved", "AppNotFound"));
        assert_eq!(
            refused.message,
            format!(
                "TrafficGroupIntent front, {place} names app katalog, which CompositeApp shop does not have: it has catalog, ui"
            )
        );
    }
}

#[test]
fn a_fault_of_the_intent_itself_is_refused_before_anything_is_rendered() {
    let refused = refusal(&case(&json!({"clients": [{"name": "net", "cidrs": ["10.1.0.7/16"]}]})));
    assert_eq!((refused.condition, refused.reason), ("Resolved", "IntentInvalid"));
    assert!(
        refused.message.starts_with("TrafficGroupIntent front: spec.servers[catalog].clients[net].cidrs: ")
    );
}

#[test]
fn an_intent_that_is_not_there_is_waited_for() {
    let mut case = case(&json!({}));
    case.traffic.clear();
    let refused = refusal(&case);
    assert_eq!((refused.reason, refused.stalled), ("IntentNotFound", false));
    assert!(refused.message.starts_with("TrafficGroupIntent front does not exist in namespace team-a"));
}
