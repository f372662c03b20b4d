//! A small API server whose answers are changed while it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::remote::testing::{Handler, Reply};

/// What a small API server says; changed while it runs.
pub struct Api {
    pub uid: Mutex<String>,
    pub revision: AtomicU64,
    pub token: Mutex<String>,
    pub nodes: Mutex<Vec<Value>>,
    pub node_events: Mutex<String>,
    pub nodes_forbidden: AtomicBool,
    pub node_watch_forbidden: AtomicBool,
    pub kinds: Mutex<Vec<&'static str>>,
    /// What its ConfigMap `hub` says, and its resourceVersion.
    pub claim: Mutex<Option<Value>>,
    pub claimed_at: AtomicU64,
    pub aggregated: bool,
    pub ready: AtomicBool,
    pub silent: AtomicBool,
    pub asked: Mutex<Vec<String>>,
}

impl Api {
    pub fn new(aggregated: bool) -> Arc<Self> {
        Arc::new(Self {
            uid: Mutex::new("uid-1".to_owned()),
            revision: AtomicU64::new(100),
            token: Mutex::new("good".to_owned()),
            nodes: Mutex::new(vec![node("a", true, "3920m"), node("b", false, "4")]),
            node_events: Mutex::default(),
            nodes_forbidden: AtomicBool::new(false),
            node_watch_forbidden: AtomicBool::new(false),
            kinds: Mutex::new(vec!["ConfigMap"]),
            claim: Mutex::default(),
            claimed_at: AtomicU64::new(1),
            aggregated,
            ready: AtomicBool::new(true),
            silent: AtomicBool::new(false),
            asked: Mutex::default(),
        })
    }

    pub fn handler(self: &Arc<Self>) -> Handler {
        let api = Arc::clone(self);
        Arc::new(move |request| api.answer(request))
    }

    fn answer(&self, request: &http::Request<bytes::Bytes>) -> Reply {
        let path = request.uri().path().to_owned();
        let query = request.uri().query().unwrap_or_default().to_owned();
        self.asked.lock().push(path.clone());
        if self.silent.load(Ordering::SeqCst) {
            return Reply::silence();
        }
        let token = format!("Bearer {}", self.token.lock());
        if request.headers()["authorization"] != token.as_str() {
            return Reply::error(401, "Unauthorized", "Unauthorized");
        }
        let list = |items: Value| {
            Reply::json(
                200,
                &json!({"kind": "List", "metadata": {"resourceVersion": self.revision.load(Ordering::SeqCst).to_string()}, "items": items}),
            )
        };
        match path.as_str() {
            "/api/v1/namespaces" => {
                assert_eq!(query, "fieldSelector=metadata.name%3Dkube-system&limit=1");
                list(json!([{"metadata": {"name": "kube-system", "uid": *self.uid.lock()}}]))
            }
            "/readyz" if self.ready.load(Ordering::SeqCst) => Reply::text(200, "text/plain", "ok"),
            "/readyz" => Reply::text(500, "text/plain", "[-]poststarthook/crd-informer-synced failed"),
            "/version" => Reply::json(200, &json!({"gitVersion": "v1.36.3"})),
            "/api/v1/nodes" if self.nodes_forbidden.load(Ordering::SeqCst) => {
                Reply::error(403, "Forbidden", "no nodes")
            }
            "/api/v1/nodes"
                if query.contains("watch=true") && self.node_watch_forbidden.load(Ordering::SeqCst) =>
            {
                Reply::error(403, "Forbidden", "no watch of nodes")
            }
            "/api/v1/nodes" if query.contains("watch=true") => {
                Reply { open: true, ..Reply::text(200, "application/json", self.node_events.lock().clone()) }
            }
            "/api/v1/nodes" => list(json!(*self.nodes.lock())),
            "/api" | "/apis" | "/api/v1" | "/apis/apps/v1" | "/apis/broken.io/v1" => {
                self.discovery(&path, request)
            }
            "/api/v1/namespaces/emco-system/configmaps/hub" if !self.ready.load(Ordering::SeqCst) => {
                Reply::error(403, "Forbidden", "RBAC: clusterrole \"emco\" not found")
            }
            "/api/v1/namespaces/emco-system/configmaps/hub" => match &*self.claim.lock() {
                Some(data) => {
                    let version = self.claimed_at.load(Ordering::SeqCst).to_string();
                    Reply::json(200, &json!({"metadata": {"resourceVersion": version}, "data": data}))
                }
                None => Reply::error(404, "NotFound", "configmaps \"hub\" not found"),
            },
            _ => Reply::error(404, "NotFound", "nothing"),
        }
    }

    fn discovery(&self, path: &str, request: &http::Request<bytes::Bytes>) -> Reply {
        let verbs = json!(["get", "list", "watch"]);
        let kinds = self.kinds.lock().clone();
        let legacy = |items: Value| Reply::json(200, &json!({"kind": "APIResourceList", "resources": items}));
        let core = || {
            kinds.iter().map(|kind| json!({"name": format!("{}s", kind.to_lowercase()), "kind": kind, "namespaced": true, "verbs": verbs}))
        };
        match (path, self.aggregated) {
            ("/api", true) => {
                let etag = format!("\"{}\"", kinds.join("-"));
                if request.headers().get("if-none-match").is_some_and(|known| known == etag.as_str()) {
                    return Reply::text(304, "", "");
                }
                let resources: Vec<Value> = kinds
                    .iter()
                    .map(|kind| {
                        json!({"resource": format!("{}s", kind.to_lowercase()),
                    "responseKind": {"kind": kind}, "scope": "Namespaced", "verbs": verbs})
                    })
                    .collect();
                Reply::json(200, &json!({"kind": "APIGroupDiscoveryList", "items": [{"metadata": {}, "versions": [{"version": "v1", "resources": resources}]}]}))
                    .header("etag", etag)
            }
            ("/apis", true) => Reply::json(
                200,
                &json!({"kind": "APIGroupDiscoveryList", "items": [
                {"metadata": {"name": "apps"}, "versions": [{"version": "v1", "resources": [
                    {"resource": "deployments", "responseKind": {"kind": "Deployment"}, "scope": "Namespaced", "verbs": verbs},
                    {"resource": "metrics", "responseKind": {"kind": "Metrics"}, "scope": "Namespaced", "verbs": ["get", "list"]},
                    {"resource": "reports", "responseKind": {"kind": "Report"}, "scope": "Namespaced", "verbs": ["list", "delete"]},
                    {"resource": "reviews", "responseKind": {"kind": "Review"}, "scope": "Cluster", "verbs": ["create"]}]}]}]}),
            ),
            ("/api", false) => Reply::json(200, &json!({"kind": "APIVersions", "versions": ["v1"]})),
            ("/apis", false) => Reply::json(
                200,
                &json!({"kind": "APIGroupList", "groups": [
                {"name": "apps", "versions": [{"version": "v1"}], "preferredVersion": {"version": "v1"}},
                {"name": "broken.io", "versions": [{"version": "v1"}], "preferredVersion": {"version": "v1"}}]}),
            ),
            ("/api/v1", _) => legacy(
                core()
                    .chain([json!({"name": "configmaps/status", "kind": "ConfigMap", "verbs": verbs})])
                    .collect(),
            ),
            ("/apis/apps/v1", _) => legacy(json!([
                {"name": "deployments", "kind": "Deployment", "namespaced": true, "verbs": verbs},
                {"name": "deployments/scale", "kind": "Scale", "namespaced": true, "verbs": verbs},
                {"name": "metrics", "kind": "Metrics", "namespaced": true, "verbs": ["get", "list"]},
                {"name": "reports", "kind": "Report", "namespaced": true, "verbs": ["list", "delete"]},
                {"name": "reviews", "kind": "Review", "namespaced": false, "verbs": ["create"]}])),
            _ => Reply::text(503, "text/plain", "service unavailable"),
        }
    }

    pub fn count(&self, path: &str) -> usize {
        self.asked.lock().iter().filter(|asked| *asked == path).count()
    }
}

pub fn node(name: &str, ready: bool, cpu: &str) -> Value {
    let status = if ready { "True" } else { "False" };
    json!({"metadata": {"name": name}, "status": {
        "conditions": [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": status}],
        "allocatable": {"cpu": cpu, "memory": "32Gi"}}})
}
