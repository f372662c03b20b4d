//! What a lookup finds: objects of the app on its cluster, as they are stored.

use super::*;

/// What a chart with an app of its own, a Secret `db`, and a neighbour `other` finds.
fn finds(lookup: &str) -> String {
    finds_at(lookup, "Admin")
}

fn finds_at(lookup: &str, level: &str) -> String {
    let own = "---\n{apiVersion: v1, kind: Secret, metadata: {name: db}, data: {a: YQ==}}\n\
               ---\n{apiVersion: v1, kind: Secret, metadata: {name: db2}, data: {a: Yg==}}\n\
               ---\n{apiVersion: apps/v1, kind: Deployment, metadata: {name: db}, spec: {replicas: 3}}\n";
    let admin = "---\n{apiVersion: v1, kind: Secret, metadata: {name: far, namespace: elsewhere}, data: {a: Yw==}}\n\
                 ---\n{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: db}, rules: []}\n";
    let own = if level == "Admin" { format!("{own}{admin}") } else { own.to_owned() };
    let mut case = printing(&format!("{{{{ $text := {lookup} | toJson }}}}\n{own}"));
    case.level = Some(level.to_owned());
    let other = "{apiVersion: v1, kind: Secret, metadata: {name: theirs}, data: {b: eHl6}}";
    let other = BTreeMap::from([("templates/a.yaml".to_owned(), other.to_owned())]);
    case.charts.insert("other".to_owned(), other);
    let before = first(&case);
    let (_, plan) = upgraded(&case, before, &json!({"size": 2})).unwrap();
    object(&plan, "a", "cm")["data"]["text"].as_str().unwrap().to_owned()
}

#[test]
fn an_own_object_is_found_as_it_is_stored() {
    let found: Value = serde_json::from_str(&finds("lookup \"v1\" \"Secret\" \"shop\" \"db\"")).unwrap();
    let stored = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db", "namespace": "shop"}, "data": {"a": "YQ=="},
    });
    assert_eq!(found, stored);
    let found: Value =
        serde_json::from_str(&finds("lookup \"apps/v1\" \"Deployment\" \"shop\" \"db\"")).unwrap();
    assert_eq!(found["spec"]["replicas"], 3);
}

#[test]
fn lists_hold_own_objects_in_the_order_of_their_names() {
    let names = |lookup: &str| {
        let list: Value = serde_json::from_str(&finds(lookup)).unwrap();
        assert_eq!((&list["apiVersion"], &list["kind"]), (&json!("v1"), &json!("SecretList")), "{lookup}");
        let items = list["items"].as_array().unwrap().iter();
        items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names("lookup \"v1\" \"Secret\" \"shop\" \"\""), ["db", "db2"]);
    assert_eq!(names("lookup \"v1\" \"Secret\" \"\" \"\""), ["far", "db", "db2"], "of all namespaces");
    assert_eq!(names("lookup \"v1\" \"Secret\" \"kube-system\" \"\""), [""; 0]);
}

#[test]
fn objects_of_others_are_not_found() {
    for lookup in [
        // Another app, another namespace, what the cluster has, and what every cluster has.
        "lookup \"v1\" \"Secret\" \"shop\" \"theirs\"",
        "lookup \"v1\" \"Secret\" \"kube-system\" \"db\"",
        "lookup \"v1\" \"Secret\" \"elsewhere\" \"db\"",
        "lookup \"v1\" \"Secret\" \"\" \"db\"",
        "lookup \"v1\" \"Namespace\" \"\" \"shop\"",
        "lookup \"v1\" \"Namespace\" \"\" \"kube-system\"",
        "lookup \"rbac.authorization.k8s.io/v1\" \"ClusterRole\" \"\" \"cluster-admin\"",
        "lookup \"v1\" \"ConfigMap\" \"shop\" \"db\"",
    ] {
        assert_eq!(finds(lookup), "{}", "{lookup}");
    }
    assert!(!finds("lookup \"v1\" \"Secret\" \"\" \"\"").contains("theirs"));
    assert!(!finds("lookup \"v1\" \"Secret\" \"\" \"\"").contains("eHl6"));
}

#[test]
fn cluster_scoped_objects_are_found_where_the_app_has_them() {
    let role = "lookup \"rbac.authorization.k8s.io/v1\" \"ClusterRole\" \"\" \"db\"";
    assert!(finds(role).contains("\"name\":\"db\""));
    let ignored = role.replace("\"\" \"db\"", "\"shop\" \"db\"");
    assert!(finds(&ignored).contains("\"name\":\"db\""), "a namespace says nothing of them");
    assert_eq!(finds_at(role, "Standard"), "{}");
}

#[test]
fn odd_questions_find_nothing() {
    for lookup in [
        "lookup \"\" \"Secret\" \"shop\" \"db\"",
        "lookup \"/\" \"Secret\" \"shop\" \"db\"",
        "lookup \"v2\" \"Secret\" \"shop\" \"db\"",
        "lookup \"a/b/c\" \"Secret\" \"shop\" \"db\"",
        "lookup \"core/v1\" \"Secret\" \"shop\" \"db\"",
        "lookup \"v1\" \"\" \"shop\" \"db\"",
        "lookup \"v1\" \"secrets\" \"shop\" \"db\"",
        "lookup \"v1\" \"Secret\" \"../shop\" \"db\"",
        "lookup \"v1\" \"Secret\" \"shop\" \"../db\"",
        "lookup \"v1\" \"SecretList\" \"shop\" \"\"",
        "lookup \"\" \"\" \"\" \"\"",
        "lookup \"apps/v1beta1\" \"Deployment\" \"shop\" \"db\"",
        "lookup \"monitoring.coreos.com/v1\" \"ServiceMonitor\" \"\" \"\"",
    ] {
        assert_eq!(finds(lookup), "{}", "{lookup}");
    }
}

#[test]
fn another_version_that_the_cluster_serves_finds_what_is_stored() {
    let text = r#"{{ $text := (lookup "example.com/v2" "Db" "shop" "db").apiVersion | default "none" }}
---
{apiVersion: example.com/v1, kind: Db, metadata: {name: db}}"#;
    let mut case = printing(text);
    for cluster in case.clusters.values_mut() {
        cluster.serves = vec!["example.com/v1/Db".to_owned()];
    }
    case.clusters.get_mut("acme/b").unwrap().serves.push("example.com/v2/Db".to_owned());
    let before = first(&case);
    let (_, plan) = upgraded(&case, before, &json!({"size": 2})).unwrap();
    assert_eq!(object(&plan, "a", "cm")["data"]["text"], "none");
    assert_eq!(object(&plan, "b", "cm")["data"]["text"], "example.com/v1");
}

/// A Secret that is printed only where it is not there yet, with this annotation.
fn once(annotation: &str) -> Case {
    let text = format!(
        "{{{{ $text := \"\" }}}}{{{{ if not (lookup \"v1\" \"Secret\" .Release.Namespace \"db\") }}}}\n\
         apiVersion: v1\nkind: Secret\nmetadata: {{name: db, annotations: {{{annotation}}}}}\n\
         data: {{password: {{{{ randAlphaNum (int (add 12 .Values.size)) | b64enc }}}}}}\n{{{{ end }}}}"
    );
    printing(&text)
}

#[test]
fn what_helm_keeps_stays_though_the_chart_prints_it_once() {
    for annotation in ["helm.sh/resource-policy: keep", "helm.sh/hook: pre-install"] {
        let mut case = once(annotation);
        let before = first(&case);
        let mut running = before.clone();
        for size in 2..5 {
            let (next, plan) = upgraded(&case, running, &json!({"size": size})).unwrap();
            case = next;
            running = case.run(&plan);
            assert_eq!(password(&before, "a"), password(&running, "a"), "{annotation}, size {size}");
            let secrets = objects(&running.assignment, &running.sets, "a").iter();
            assert_eq!(secrets.filter(|manifest| manifest.identity().kind == "Secret").count(), 1);
        }
    }
}

#[test]
fn a_hook_that_is_printed_no_more_runs_no_more() {
    let case = once("helm.sh/hook: 'pre-install,pre-upgrade'");
    let before = first(&case);
    let (_, plan) = upgraded(&case, before, &json!({"size": 2})).unwrap();
    let manifests = objects(&plan.assignment, &plan.sets, "a").iter();
    let hooks: Vec<_> = manifests.filter_map(|manifest| manifest.hook.as_ref()).collect();
    assert_eq!(hooks.len(), 1);
    assert_eq!(hooks[0].events, ["pre-install"]);
}

#[test]
fn what_helm_removes_is_removed() {
    let case = once("note: none");
    let before = first(&case);
    let (case, plan) = upgraded(&case, before, &json!({"size": 2})).unwrap();
    let kinds = |plan: &Plan| -> BTreeSet<String> {
        let manifests = objects(&plan.assignment, &plan.sets, "a").iter();
        manifests.map(|manifest| manifest.identity().kind).collect()
    };
    assert_eq!(kinds(&plan), ["ConfigMap".to_owned()].into());
    let (_, plan) = upgraded(&case, case.run(&plan), &json!({"size": 3})).unwrap();
    assert_eq!(kinds(&plan).len(), 2, "then it is not there, and printed again, as by Helm");
}

#[test]
fn objects_of_hooks_are_found_where_the_hook_leaves_them() {
    let found = |annotations: &str| {
        let text = format!(
            "{{{{ $text := (lookup \"v1\" \"Secret\" \"shop\" \"job\").kind | default \"none\" }}}}\n---\n\
             {{apiVersion: v1, kind: Secret, metadata: {{name: job, annotations: {{{annotations}}}}}}}"
        );
        let case = printing(&text);
        let before = first(&case);
        let (case, second) = upgraded(&case, before, &json!({"size": 2})).unwrap();
        let (_, third) = upgraded(&case, case.run(&second), &json!({"size": 3})).unwrap();
        [second, third].map(|plan| object(&plan, "a", "cm")["data"]["text"].as_str().unwrap().to_owned())
    };
    assert_eq!(found("helm.sh/hook: post-install"), ["Secret", "Secret"]);
    assert_eq!(found("helm.sh/hook: pre-upgrade"), ["none", "Secret"], "an installation does not run it");
    assert_eq!(found("helm.sh/hook: pre-delete"), ["none", "none"]);
    assert_eq!(
        found("helm.sh/hook: pre-install, helm.sh/hook-delete-policy: hook-succeeded"),
        ["none", "none"]
    );
}
