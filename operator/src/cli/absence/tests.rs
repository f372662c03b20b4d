//! Tests proofs of absence on canned answers.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use emco_crds::Project;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Bytes;
use k8s_openapi::api::core::v1::Secret;
use kube::client::Body;
use serde_json::{Value, json};

use super::*;

/// Answers by path; others are 404 as of a server that serves nothing there.
struct Cluster(BTreeMap<String, (u16, Value)>);

impl Cluster {
    /// A cluster that serves ConfigMaps and Namespaces, with these further kinds in group `example.com`.
    fn new(kinds: &[&str]) -> Self {
        let mut all = Self(BTreeMap::new());
        all.put("/readyz", 200, json!("ok"));
        let kind = |group: &str, version: &str, plural: &str, kind: &str, scope: &str| {
            json!({"resource": plural, "scope": scope, "singularResource": "", "verbs": ["list"],
                "responseKind": {"group": group, "version": version, "kind": kind}})
        };
        let core = [
            kind("", "v1", "configmaps", "ConfigMap", "Namespaced"),
            kind("", "v1", "namespaces", "Namespace", "Cluster"),
        ];
        let group = |name: &str, versions: Value| json!({"metadata": {"name": name}, "versions": versions});
        all.put("/api", 200, json!({"items": [group("", json!([{"version": "v1", "resources": core}]))]}));
        // The group prefers a version that only one of its kinds has.
        let widgets: Vec<Value> =
            kinds.iter().map(|plural| kind("example.com", "v1beta1", plural, plural, "Namespaced")).collect();
        let versions = json!([
            {"version": "v1", "resources": [kind("example.com", "v1", "others", "Other", "Cluster")]},
            {"version": "v1beta1", "resources": widgets},
        ]);
        all.put("/apis", 200, json!({"items": [group("example.com", versions)]}));
        all.list("/apis/apiregistration.k8s.io/v1/apiservices", &["v1."]);
        all.list("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &[]);
        all.list("/api/v1/namespaces/emco-system/configmaps", &["kube-root-ca.crt"]);
        for plural in kinds {
            all.list(&format!("/apis/example.com/v1beta1/namespaces/emco-system/{plural}"), &[]);
        }
        all
    }

    fn put(&mut self, path: &str, code: u16, answer: Value) {
        self.0.insert(path.to_owned(), (code, answer));
    }

    fn list(&mut self, path: &str, names: &[&str]) {
        let item = |name: &&str| json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"name": name}});
        let items: Vec<Value> = names.iter().map(item).collect();
        let list = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "metadata": {}, "items": items});
        self.put(path, 200, list);
    }

    /// A definition of a kind of `example.com`.
    fn define(&mut self, plural: &str, established: &str) {
        let (path, name) =
            ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", format!("{plural}.example.com"));
        self.list(path, &[&name]);
        let conditions = json!([{"type": "Established", "status": established, "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        let spec = json!({"group": "example.com", "names": {"kind": "Widget", "plural": plural}, "scope": "Namespaced", "versions": []});
        self.put(
            &format!("{path}/{name}"),
            200,
            json!({"metadata": {"name": name}, "spec": spec, "status": {"conditions": conditions, "acceptedNames": {"kind": "", "plural": ""}, "storedVersions": []}}),
        );
    }

    fn client(self) -> Client {
        let answers = Arc::new(self.0);
        let service = tower::service_fn(move |request: Request<Body>| {
            let (code, answer) = answers
                .get(request.uri().path())
                .cloned()
                .unwrap_or_else(|| (404, status(404, "the server could not find the requested resource")));
            let response = Response::builder().status(code).header("content-type", "application/json");
            let response = response.body(Full::new(Bytes::from(answer.to_string()))).unwrap();
            futures::future::ready(Ok::<_, Infallible>(response))
        });
        Client::new(service, "default")
    }
}

fn status(code: u16, message: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": code, "message": message})
}

#[tokio::test]
async fn a_namespace_of_a_cluster_that_shows_all_kinds_is_only_ours() {
    assert!(is_only_ours(&Cluster::new(&["widgets"]).client(), "emco-system").await.unwrap());
}

#[tokio::test]
async fn an_object_of_a_version_that_is_not_preferred_is_anothers() {
    let mut cluster = Cluster::new(&["widgets"]);
    cluster.list("/apis/example.com/v1beta1/namespaces/emco-system/widgets", &["w"]);
    assert!(!is_only_ours(&cluster.client(), "emco-system").await.unwrap());
}

#[tokio::test]
async fn a_namespace_is_not_judged_while_a_defined_kind_is_not_served() {
    let mut cluster = Cluster::new(&[]);
    cluster.define("widgets", "True");
    let error = is_only_ours(&cluster.client(), "emco-system").await.unwrap_err().to_string();
    assert!(error.contains("CustomResourceDefinition widgets.example.com is on the cluster"), "{error}");
    let mut cluster = Cluster::new(&[]);
    cluster.define("widgets", "False");
    assert!(is_only_ours(&cluster.client(), "emco-system").await.unwrap(), "it never had an object");
}

#[tokio::test]
async fn a_namespace_is_not_judged_while_the_cluster_starts() {
    let mut cluster = Cluster::new(&[]);
    cluster.put("/readyz", 500, json!("[-]etcd failed"));
    let error = is_only_ours(&cluster.client(), "emco-system").await.unwrap_err().to_string();
    assert!(error.contains("is not ready (/readyz answers 500)"), "{error}");
}

#[tokio::test]
async fn an_api_whose_server_is_down_is_named_as_unserved() {
    let mut cluster = Cluster::new(&[]);
    let path = "/apis/apiregistration.k8s.io/v1/apiservices";
    cluster.list(path, &["v1.", "v1.metrics.example.com"]);
    let service = json!({"metadata": {"name": "v1.metrics.example.com"},
        "spec": {"groupPriorityMinimum": 1, "versionPriority": 1, "service": {"name": "m", "namespace": "n"}},
        "status": {"conditions": [{"type": "Available", "status": "False"}]}});
    cluster.put(&format!("{path}/v1.metrics.example.com"), 200, service);
    let unserved = served(&cluster.client()).await.unwrap().unserved;
    assert!(
        unserved.len() == 1 && unserved[0].starts_with("APIService v1.metrics.example.com"),
        "{unserved:?}"
    );
}

#[tokio::test]
async fn a_404_that_names_no_object_is_no_absence() {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/projects.emco.io";
    let undefined = async |answer: Option<Value>| {
        let mut cluster = Cluster::new(&[]);
        if let Some(answer) = answer {
            cluster.put(path, 404, answer);
        }
        is_undefined::<Project>(&cluster.client()).await
    };
    assert!(undefined(None).await.is_err());
    let named = status(404, "customresourcedefinitions.apiextensions.k8s.io \"projects.emco.io\" not found");
    assert!(undefined(Some(named)).await.unwrap());
}

#[tokio::test]
async fn a_token_counts_as_ended_when_the_cluster_names_its_secret_as_absent() {
    let path = "/api/v1/namespaces/emco-system/secrets/emco-operator-token-1";
    let ended = async |message: &str| {
        let mut cluster = Cluster::new(&[]);
        cluster.put(path, 404, status(404, message));
        let secrets = Api::<Secret>::namespaced(cluster.client(), "emco-system");
        delete(&secrets, "emco-operator-token-1").await
    };
    assert!(ended("404 page not found").await.is_err(), "a proxy says nothing of tokens");
    assert!(ended("secrets \"emco-operator-token-2\" not found").await.is_err());
    ended("secrets \"emco-operator-token-1\" not found").await.unwrap();
}
