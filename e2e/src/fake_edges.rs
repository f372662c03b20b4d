//! API servers on loopback that store what they are sent: many clusters for the price of one.
//!
//! Each has an address of its own below 127.77.0.0/16 and a kube-system of its own. They know three kinds, apply by
//! replacing, and their watches never tell anything: enough to be registered and placed on, and nothing to be tested against.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_crds::Cluster;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::bed::Bed;
use crate::https::{Tls, certificate};

/// The provider that they are registered with.
pub const PROVIDER: &str = "fakes";
/// The namespaced and the other kinds that they know, with their plurals.
const KINDS: [(&str, &str, bool); 4] = [
    ("ConfigMap", "configmaps", true),
    ("Secret", "secrets", true),
    ("Namespace", "namespaces", false),
    ("Node", "nodes", false),
];
/// Requests to the hub at once while they are registered.
const AT_ONCE: usize = 8;

/// Running servers. They end when this is dropped.
pub struct FakeEdges {
    addresses: Vec<SocketAddr>,
    ca: String,
    _servers: JoinSet<()>,
}

#[derive(Default)]
struct Store {
    /// Of kube-system.
    uid: String,
    revision: u64,
    /// By the path of their URL.
    objects: BTreeMap<String, Value>,
}

impl FakeEdges {
    /// Starts so many, each on a free port of its own address.
    pub async fn start(count: usize) -> Result<Self> {
        let (ca, acceptor) = certificate(&[])?;
        let mut servers = JoinSet::new();
        let mut addresses = Vec::new();
        for number in 0..count {
            let at = u16::try_from(number).context("too many clusters for one network")? + 1;
            let [high, low] = at.to_be_bytes();
            let listener = TcpListener::bind((Ipv4Addr::new(127, 77, high, low), 0)).await?;
            addresses.push(listener.local_addr()?);
            let uid = format!("77777777-0000-0000-0000-{number:012}");
            let store = Arc::new(Mutex::new(Store { uid, revision: 1, objects: BTreeMap::new() }));
            let router = Router::new().fallback(answer).with_state(store);
            let tls = Tls { listener, acceptor: acceptor.clone() };
            servers.spawn(async move {
                // It ends with its listener, which is never.
                let _ = axum::serve(tls, router).await;
            });
        }
        Ok(Self { addresses, ca, _servers: servers })
    }

    /// Makes the provider, which grants them to `project` alone, and registers all of them.
    pub async fn register(&self, bed: &Bed, project: &str) -> Result<()> {
        bed.hub()
            .kubectl()
            .apply(&format!(
                "
apiVersion: v1
kind: Namespace
metadata: {{name: {PROVIDER}, labels: {{emco.io/provider: {PROVIDER}}}}}
---
apiVersion: emco.io/v1alpha1
kind: ClusterProvider
metadata: {{name: {PROVIDER}}}
spec: {{grants: [{{name: one, projects: [{project}], maxLevel: Admin}}]}}
"
            ))
            .await?;
        let secrets: Api<Secret> = bed.hub().api(PROVIDER).await?;
        let clusters: Api<Cluster> = bed.hub().api(PROVIDER).await?;
        let (secrets, clusters) = (&secrets, &clusters);
        let make = |(number, address): (usize, &SocketAddr)| {
            let (name, kubeconfig) = (format!("fake-{number:04}"), self.kubeconfig(*address));
            async move {
                let secret = json!({"metadata": {"name": name}, "stringData": {"kubeconfig": kubeconfig}});
                secrets.create(&PostParams::default(), &serde_json::from_value(secret)?).await?;
                let cluster = json!({"apiVersion": "emco.io/v1alpha1", "kind": "Cluster",
                    "metadata": {"name": name}, "spec": {"access": {"kubeconfigSecretRef": {"name": name}}}});
                clusters.create(&PostParams::default(), &serde_json::from_value(cluster)?).await?;
                Ok::<_, anyhow::Error>(())
            }
        };
        stream::iter(self.addresses.iter().enumerate().map(make))
            .buffer_unordered(AT_ONCE)
            .try_collect::<()>()
            .await
            .context("the hub does not take a cluster")
    }

    fn kubeconfig(&self, address: SocketAddr) -> String {
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "fake",
            "clusters": [{"name": "fake", "cluster": {"server": format!("https://{address}"),
                "certificate-authority-data": STANDARD.encode(&self.ca), "tls-server-name": "localhost"}}],
            "users": [{"name": "fake", "user": {"token": "anybody"}}],
            "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "fake"}}],
        })
        .to_string()
    }
}

type Shared = Arc<Mutex<Store>>;

fn locked(store: &Shared) -> MutexGuard<'_, Store> {
    store.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn answer(
    State(store): State<Shared>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let query = uri.query().unwrap_or_default();
    if query.split('&').any(|part| matches!(part, "watch=true" | "watch=1")) {
        return Body::from_stream(stream::pending::<Result<Bytes, Infallible>>()).into_response();
    }
    let merge = headers.get("content-type").is_some_and(|kind| kind == "application/merge-patch+json");
    let sent = serde_json::from_slice::<Value>(&body).unwrap_or_default();
    let (code, answer) = locked(&store).answer(&method, uri.path(), query, sent, merge);
    let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (code, [(CONTENT_TYPE, "application/json")], answer.to_string()).into_response()
}

fn status(code: u16, reason: &str) -> (u16, Value) {
    let message = format!("a cluster that is none answers {code}");
    (
        code,
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message}),
    )
}

/// Whether what is sent says a version that is not the one of the object that is there.
fn is_of_another_version(sent: &Value, known: &Value) -> bool {
    let version = |object: &Value| object.pointer("/metadata/resourceVersion").cloned();
    version(sent).is_some_and(|said| Some(said) != version(known))
}

/// Names the object, as an API server does: only so it is proved that there is none.
fn not_found(path: &str) -> (u16, Value) {
    let (code, mut answer) = status(404, "NotFound");
    let mut parts = path.rsplit('/');
    let (name, plural) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    answer["message"] = Value::String(format!("{plural} \"{name}\" not found"));
    (code, answer)
}

impl Store {
    fn answer(&mut self, method: &Method, path: &str, query: &str, sent: Value, merge: bool) -> (u16, Value) {
        match path {
            "/version" => return (200, json!({"major": "1", "minor": "36", "gitVersion": "v1.36.3"})),
            "/readyz" | "/livez" => return (200, json!("ok")),
            "/api" => return (200, json!({"kind": "APIVersions", "versions": ["v1"]})),
            "/apis" => return (200, json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": []})),
            "/api/v1" => return (200, resources()),
            _ => {}
        }
        let plural = path.rsplit('/').next().unwrap_or_default();
        let Some((kind, ..)) = KINDS.iter().find(|(_, known, _)| *known == plural) else {
            return self.object(method, path, sent, merge);
        };
        if method == Method::POST {
            let name = sent["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let path = format!("{path}/{name}");
            if self.objects.contains_key(&path) {
                return status(409, "AlreadyExists");
            }
            return (201, self.put(path, sent));
        }
        (200, self.list(kind, path, plural, query))
    }

    fn object(&mut self, method: &Method, path: &str, sent: Value, merge: bool) -> (u16, Value) {
        let known = self.objects.get(path).cloned();
        match (method.as_str(), known) {
            ("PATCH", Some(mut known)) if merge => {
                known["data"]["seen"] = sent["data"]["seen"].clone();
                (200, self.put(path.to_owned(), known))
            }
            ("PATCH", None) if merge => not_found(path),
            ("PATCH" | "PUT", Some(known)) if is_of_another_version(&sent, &known) => status(409, "Conflict"),
            ("PATCH" | "PUT", _) => (200, self.put(path.to_owned(), sent)),
            ("DELETE", Some(known)) => {
                self.objects.remove(path);
                (200, known)
            }
            ("GET", Some(known)) => (200, known),
            _ => not_found(path),
        }
    }

    fn put(&mut self, path: String, mut object: Value) -> Value {
        self.revision += 1;
        let before = self.objects.get(&path).map(|known| known["metadata"]["uid"].clone());
        let uid = format!("77777777-{}-{:012}", self.uid.get(24..).unwrap_or_default(), self.revision);
        object["metadata"]["uid"] = before.unwrap_or(Value::String(uid));
        object["metadata"]["resourceVersion"] = Value::String(self.revision.to_string());
        if object["kind"] == "Namespace" {
            object["status"] = json!({"phase": "Active"});
        }
        self.objects.insert(path, object.clone());
        object
    }

    fn list(&self, kind: &str, path: &str, plural: &str, query: &str) -> Value {
        let mut items: Vec<Value> = self
            .objects
            .iter()
            .filter(|(at, _)| {
                let Some((folder, _)) = at.rsplit_once('/') else { return false };
                // Of one namespace, or of all.
                folder == path
                    || (path == format!("/api/v1/{plural}") && folder.ends_with(&format!("/{plural}")))
            })
            .map(|(_, object)| object.clone())
            .collect();
        if kind == "Namespace" && query.contains("kube-system") {
            items =
                vec![json!({"metadata": {"name": "kube-system", "uid": self.uid, "resourceVersion": "1"}})];
        }
        let version = self.revision.to_string();
        json!({"kind": format!("{kind}List"), "apiVersion": "v1", "metadata": {"resourceVersion": version}, "items": items})
    }
}

fn resources() -> Value {
    let verbs = json!(["create", "delete", "get", "list", "patch", "update", "watch"]);
    let resources: Vec<Value> = KINDS
        .iter()
        .map(|(kind, plural, namespaced)| json!({"name": plural, "kind": kind, "namespaced": namespaced, "verbs": verbs}))
        .collect();
    json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": resources})
}
