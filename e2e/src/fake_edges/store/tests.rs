use super::*;

const NAMESPACES: &str = "/api/v1/namespaces";
const BINDING: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/shop/rolebindings/one";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/rolebindings";

fn object(kind: &str, name: &str) -> Value {
    json!({"kind": kind, "metadata": {"name": name, "labels": {"emco.io/owner": "o"}}})
}

fn get(store: &mut Store, path: &str, query: &str) -> (u16, Value) {
    store.answer(&Method::GET, path, &Query::of(query), Value::Null, false)
}

fn put(store: &mut Store, path: &str, object: Value) {
    assert_eq!(store.answer(&Method::PATCH, path, &Query::default(), object, false).0, 200);
}

#[test]
fn a_namespace_takes_along_what_is_in_it_and_watches_hear_of_both() {
    let mut store = Store::new(7, &Arc::new(Contents::new(1 << 20)));
    put(&mut store, "/api/v1/namespaces/shop", object("Namespace", "shop"));
    put(&mut store, BINDING, object("RoleBinding", "one"));
    put(&mut store, "/api/v1/namespaces/shops", object("Namespace", "shops"));
    assert_eq!(store.of_namespace("shop").count(), 2);
    let listed = get(&mut store, BINDINGS, "labelSelector=emco.io%2Fowner%3Do").1;
    assert_eq!(listed["items"][0]["metadata"]["name"], "one");
    let none = get(&mut store, BINDINGS, "labelSelector=emco.io%2Fowner%3Dother").1;
    assert_eq!(none["items"], json!([]));
    let seen = store.revision();
    let path = "/api/v1/namespaces/shop";
    let stale = json!({"preconditions": {"resourceVersion": "1"}});
    assert_eq!(store.answer(&Method::DELETE, path, &Query::default(), stale, false).0, 409);
    assert_eq!(store.answer(&Method::DELETE, path, &Query::default(), Value::Null, false).0, 200);
    assert_eq!(store.of_namespace("shop").count(), 0);
    for collection in [NAMESPACES, BINDINGS] {
        let lines = store.since(seen, collection, &Query::of("labelSelector=emco.io%2Fowner")).unwrap();
        assert_eq!(lines.lines().count(), 1, "{lines}");
        assert!(lines.contains("DELETED"), "{lines}");
    }
    assert_eq!(store.since(store.revision(), NAMESPACES, &Query::default()).unwrap(), "");
    assert_eq!(get(&mut store, BINDING, "").0, 404);
}

#[test]
fn a_watch_from_before_what_is_remembered_is_told_so() {
    let mut store = Store::new(7, &Arc::new(Contents::new(1 << 20)));
    let begun = store.revision();
    for _ in 0..=GONE {
        let path = "/api/v1/namespaces/shop";
        put(&mut store, path, object("Namespace", "shop"));
        store.answer(&Method::DELETE, path, &Query::default(), Value::Null, false);
    }
    assert_eq!(store.since(begun, NAMESPACES, &Query::default()), None);
    assert_eq!(store.changes.len(), GONE);
    assert!(store.since(store.revision(), NAMESPACES, &Query::default()).is_some());
}

#[test]
fn an_apply_that_changes_nothing_is_no_news_and_a_dry_one_stores_nothing() {
    let mut store = Store::new(7, &Arc::new(Contents::new(1 << 20)));
    let path = "/api/v1/namespaces/shop/configmaps/one";
    let map = |text: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "namespace": "shop"}, "data": {"text": text}});
    let send = |store: &mut Store, query: &str, object: Value| {
        store.answer(&Method::PATCH, path, &Query::of(query), object, false).1
    };
    let first = send(&mut store, "fieldManager=emco", map("a"));
    assert_eq!(first["metadata"]["managedFields"][0]["manager"], "emco");
    assert_eq!(send(&mut store, "fieldManager=emco", map("a")), first);
    let dry = send(&mut store, "fieldManager=emco&dryRun=All", map("b"));
    assert_eq!((&dry["data"]["text"], &get(&mut store, path, "").1), (&json!("b"), &first));
    let other =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "uid": "another"}});
    assert_eq!(send(&mut store, "fieldManager=emco", other)["code"], 409);
}

#[test]
fn a_workload_is_ready_as_it_is_wanted() {
    let mut store = Store::new(7, &Arc::new(Contents::new(1 << 20)));
    let path = "/apis/apps/v1/namespaces/shop/deployments/web";
    for (replicas, generation) in [(0, 1), (0, 1), (3, 2)] {
        let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": replicas}});
        put(&mut store, path, object);
        let found = get(&mut store, path, "").1;
        let status = &found["status"];
        assert_eq!(status["readyReplicas"], replicas);
        assert_eq!(status["observedGeneration"], generation);
    }
}

#[test]
fn clusters_refuse_more_than_there_is_room_for() {
    let contents = Arc::new(Contents::new(4096));
    let mut stores = [1, 2].map(|number| Store::new(number, &contents));
    let path = "/api/v1/namespaces/shop/configmaps/one";
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"text": "x".repeat(4000)}});
    put(&mut stores[0], path, map.clone());
    let refused = stores[1].answer(&Method::PATCH, path, &Query::default(), map, false);
    assert!(refused.0 == 507 && refused.1["message"].as_str().unwrap().contains("--memory"), "{refused:?}");
}

#[test]
fn its_kube_system_says_which_cluster_it_is() {
    let mut store = Store::new(7, &Arc::new(Contents::new(1 << 20)));
    let found = get(&mut store, NAMESPACES, "fieldSelector=metadata.name%3Dkube-system&limit=1").1;
    assert_eq!(found["items"][0]["metadata"]["uid"], "77777777-0000-0000-0000-000000000007");
    assert_eq!(found["metadata"]["resourceVersion"], "1");
}
