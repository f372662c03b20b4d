use serde_json::json;

use super::*;
use crate::remote::kubeconfig;
use crate::remote::testing::{Authority, Reply, Server, Setup, dialer, kubeconfig as file};
use crate::remote::transport::{Edge, EdgeSettings};

/// Kinds of the core group and of `apps`, where one version may be without its own server for a while.
#[derive(Clone, Default)]
struct Served {
    core: Vec<&'static str>,
    apps: Vec<(&'static str, Vec<&'static str>)>,
    stale: Option<&'static str>,
}

impl Served {
    fn version(&self, name: &str, kinds: &[&str]) -> Value {
        let stale = self.stale == Some(name);
        let resources = kinds.iter().filter(|_| !stale).map(|kind| {
            json!({"resource": format!("{}s", kind.to_lowercase()), "responseKind": {"kind": kind},
                "scope": "Namespaced", "verbs": ["list", "watch"]})
        });
        let freshness = if stale { "Stale" } else { "Current" };
        json!({"version": name, "resources": resources.collect::<Vec<_>>(), "freshness": freshness})
    }

    fn answer(&self, path: &str, known: Option<&str>) -> Reply {
        let versions: Vec<Value> = match path {
            "/api" => vec![self.version("v1", &self.core)],
            _ => self.apps.iter().map(|(name, kinds)| self.version(name, kinds)).collect(),
        };
        let group = if path == "/api" { json!({}) } else { json!({"name": "apps"}) };
        let body =
            json!({"kind": "APIGroupDiscoveryList", "items": [{"metadata": group, "versions": versions}]});
        let tag = format!("\"{}\"", hex::encode(Sha256::digest(body.to_string())));
        if known == Some(tag.as_str()) {
            return Reply::text(304, "", "");
        }
        Reply::json(200, &body).header("etag", tag)
    }
}

/// A server whose answers can be changed, and how many bodies it sent.
struct Bed {
    served: Arc<Mutex<Served>>,
    told: Arc<Mutex<usize>>,
    edge: Arc<Edge>,
    _server: Server,
}

impl Bed {
    async fn new(served: Served) -> Self {
        let (served, told) = (Arc::new(Mutex::new(served)), Arc::new(Mutex::new(0)));
        let (what, count) = (Arc::clone(&served), Arc::clone(&told));
        let answer = move |request: &http::Request<bytes::Bytes>| {
            let known = request.headers().get("if-none-match").and_then(|tag| tag.to_str().ok());
            let reply = what.lock().answer(request.uri().path(), known);
            *count.lock() += usize::from(reply.status == 200);
            reply
        };
        let ca = Authority::new();
        let setup = Setup { authority: Some(&ca), alpn: &["h2"], names: &["localhost"] };
        let server = Server::start_at("127.0.0.1:0".parse().unwrap(), setup, Arc::new(answer)).await;
        let text = file(&format!("https://localhost:{}", server.address.port()), &ca.pem(), "good");
        let edge = Edge::new(kubeconfig::read(&text).unwrap(), dialer(), EdgeSettings::default());
        edge.open().await.unwrap();
        Self { served, told, edge, _server: server }
    }

    async fn read(&self, earlier: Option<&Discovered>, lists: &ApiLists) -> Discovered {
        Discovered::read(self.edge.as_ref(), earlier, lists).await.unwrap()
    }
}

fn usual() -> Served {
    Served {
        core: vec!["Secret", "ConfigMap"],
        apps: vec![("v1", vec!["Deployment"]), ("v1beta1", vec!["Deployment", "Canary"])],
        stale: None,
    }
}

fn names(found: &Discovered) -> Vec<String> {
    found.list.resources.iter().map(|r| format!("{} {}", r.api_version(), r.kind)).collect()
}

const USUAL: [&str; 5] =
    ["v1 ConfigMap", "v1 Secret", "apps/v1 Deployment", "apps/v1beta1 Canary", "apps/v1beta1 Deployment"];

#[tokio::test]
async fn clusters_that_serve_the_same_share_one_list() {
    let lists = ApiLists::default();
    let (one, other) = (Bed::new(usual()).await, Bed::new(usual()).await);
    let (a, b) = (one.read(None, &lists).await, other.read(None, &lists).await);
    assert_eq!(names(&a), USUAL);
    assert!(Arc::ptr_eq(&a.list, &b.list));
    other.served.lock().core.push("Widget");
    let c = other.read(Some(&b), &lists).await;
    assert!(!Arc::ptr_eq(&a.list, &c.list));
    assert_ne!(a.digest, c.digest);
    assert_eq!(lists.0.lock().len(), 2);
    drop((a, b));
    // What nobody has any more is forgotten with the next new list.
    other.served.lock().core.push("Gadget");
    let d = other.read(Some(&c), &lists).await;
    assert_eq!(lists.0.lock().len(), 2, "{:?}", names(&d));
}

#[tokio::test]
async fn what_did_not_change_is_not_sent_again() {
    let lists = ApiLists::default();
    let bed = Bed::new(usual()).await;
    let first = bed.read(None, &lists).await;
    assert_eq!(*bed.told.lock(), 2);
    let again = bed.read(Some(&first), &lists).await;
    assert_eq!(*bed.told.lock(), 2);
    assert!(Arc::ptr_eq(&first.list, &again.list));
    // One half changed; the other is taken from what is known, in the same order.
    bed.served.lock().core.push("Widget");
    let changed = bed.read(Some(&again), &lists).await;
    assert_eq!(*bed.told.lock(), 3);
    let served = bed.served.lock().clone();
    let fresh = Bed::new(served).await.read(None, &lists).await;
    assert_eq!((names(&changed), &changed.digest), (names(&fresh), &fresh.digest));
    bed.served.lock().apps.remove(1);
    let changed = bed.read(Some(&changed), &lists).await;
    assert_eq!(names(&changed), ["v1 ConfigMap", "v1 Secret", "v1 Widget", "apps/v1 Deployment"]);
}

#[tokio::test]
async fn a_version_whose_own_server_is_down_keeps_what_was_known_of_it() {
    let lists = ApiLists::default();
    let bed = Bed::new(usual()).await;
    let first = bed.read(None, &lists).await;
    bed.served.lock().stale = Some("v1beta1");
    let down = bed.read(Some(&first), &lists).await;
    assert_eq!(names(&down), USUAL);
    let unknown = bed.read(None, &lists).await;
    assert_eq!(names(&unknown), USUAL[..3], "nobody knows what it serves");
}
