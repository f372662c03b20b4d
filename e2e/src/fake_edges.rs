//! API servers on loopback that store what they are sent: many clusters for the price of one.
//!
//! Each has an address of its own below 127.77.0.0/16 and a kube-system of its own. They speak HTTP/2 as API servers do, know a few
//! kinds, merge what is applied, and tell watches what changed. Nothing acts on what they store; a namespace takes along what is in
//! it, and workloads are ready at once. That is enough to be registered, prepared and placed on, and nothing to be tested against.

mod apply;
mod counts;
pub mod fleet;
mod kinds;
mod objects;
mod store;
mod watched;
mod written;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_crds::Cluster;
use emco_crds::conditions::types;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::PostParams;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::bed::Bed;
use crate::https::configuration;
use crate::operator::is;
use crate::wait::wait_for;

pub use counts::Counts;
use counts::Requests;
use kinds::place;
use objects::Contents;
use store::{Query, Store};
pub use written::Written;

/// The provider that they are registered with.
pub const PROVIDER: &str = "fakes";
/// Requests to the hub at once while they are registered.
const AT_ONCE: usize = 8;
/// Before a connection is accepted after one that could not be: there are too many open files, most likely.
const FULL: Duration = Duration::from_millis(100);

type Shared = Arc<Mutex<Store>>;

/// Name of the cluster of this number.
pub fn name(number: usize) -> String {
    format!("fake-{number:04}")
}

/// Makes the provider, which grants its clusters to `project` alone.
pub async fn make_provider(bed: &Bed, project: &str) -> Result<()> {
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
        .await
        .map(drop)
}

/// Running servers. They end when this is dropped.
pub struct FakeEdges {
    addresses: Vec<SocketAddr>,
    ca: String,
    stores: Vec<Shared>,
    written: Arc<Mutex<Written>>,
    _servers: JoinSet<()>,
}

#[derive(Clone)]
struct Server {
    store: Shared,
    written: Arc<Mutex<Written>>,
    requests: Arc<Requests>,
}

impl FakeEdges {
    /// Starts so many, each on a free port of its own address.
    pub async fn start(count: usize) -> Result<Self> {
        let (ca, mut tls) = configuration(&[])?;
        tls.alpn_protocols = vec![b"h2".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let mut servers = JoinSet::new();
        let (mut addresses, mut stores) = (Vec::new(), Vec::new());
        let written = Arc::new(Mutex::new(Written::default()));
        let (requests, contents) = (Arc::<Requests>::default(), Arc::new(Contents::new(usize::MAX)));
        for number in 0..count {
            let listener = TcpListener::bind((address(number)?, 0)).await?;
            addresses.push(listener.local_addr()?);
            let store = Arc::new(Mutex::new(Store::new(number, &contents)));
            stores.push(Arc::clone(&store));
            let (written, requests) = (Arc::clone(&written), Arc::clone(&requests));
            let server = Server { store, written, requests };
            servers.spawn(serve(
                listener,
                acceptor.clone(),
                Router::new().fallback(answer).with_state(server),
            ));
        }
        Ok(Self { addresses, ca, stores, written, _servers: servers })
    }

    /// Makes the provider, which grants them to `project` alone, and registers all of them.
    pub async fn register(&self, bed: &Bed, project: &str) -> Result<()> {
        make_provider(bed, project).await?;
        self.register_with(bed, |name| json!({"kubeconfigSecretRef": {"name": name}})).await
    }

    /// Registers all of them with the provider that is there, to be written to through a `GitTarget` of its namespace.
    pub async fn register_through_git(&self, bed: &Bed, target: &str) -> Result<()> {
        let access = |name: &str| {
            let observe = json!({"kubeconfigSecretRef": {"name": name}});
            json!({"gitOps": {"targetRef": {"name": target}, "observe": observe}})
        };
        self.register_with(bed, access).await
    }

    /// Registers all of them. `access`: of the cluster of this name, which is that of the Secret with its kubeconfig, too.
    async fn register_with(&self, bed: &Bed, access: impl Fn(&str) -> Value) -> Result<()> {
        let kubeconfigs = self.addresses.iter().map(|address| kubeconfig(&self.ca, *address));
        register_all(bed, kubeconfigs, access).await
    }

    /// Waits until the operator has reached all of them.
    pub async fn reached(&self, bed: &Bed, limit: Duration) -> Result<()> {
        self.all_are(bed, types::READY, limit).await
    }

    /// Waits until the operator sees all of them, whatever it says of their agents.
    pub async fn seen(&self, bed: &Bed, limit: Duration) -> Result<()> {
        self.all_are(bed, types::REACHABLE, limit).await
    }

    async fn all_are(&self, bed: &Bed, wanted: &str, limit: Duration) -> Result<()> {
        so_many_are(bed, self.addresses.len(), wanted, limit).await
    }

    /// Puts an object onto one of them, as an agent there does; nothing where they do not know its kind.
    pub fn put(&self, number: usize, object: &Value) {
        if let (Some(store), Some(path)) = (self.stores.get(number), place(object)) {
            store.lock().answer(&Method::PATCH, &path, &Query::default(), object.clone(), false);
        }
    }

    /// What was written to all of them since the last call, or since they started.
    pub fn take_written(&self) -> Written {
        std::mem::take(&mut *self.written.lock())
    }

    /// How many objects each of them has of a namespace: the namespace, and what is in it.
    pub fn objects(&self, namespace: &str) -> Vec<usize> {
        self.stores.iter().map(|store| store.lock().of_namespace(namespace).count()).collect()
    }
}

/// The address of the cluster of this number.
fn address(number: usize) -> Result<Ipv4Addr> {
    let at = u16::try_from(number + 1).context("too many clusters for one network")?;
    let [high, low] = at.to_be_bytes();
    Ok(Ipv4Addr::new(127, 77, high, low))
}

fn kubeconfig(ca: &str, address: SocketAddr) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "fake",
        "clusters": [{"name": "fake", "cluster": {"server": format!("https://{address}"),
            "certificate-authority-data": STANDARD.encode(ca), "tls-server-name": "localhost"}}],
        "users": [{"name": "fake", "user": {"token": "anybody"}}],
        "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "fake"}}],
    })
    .to_string()
}

/// A label of all fake clusters: each site has a hundredth of them.
pub const SITE: &str = "site";
const SITES: usize = 100;

/// The site of a cluster.
pub fn site(number: usize) -> String {
    format!("s{:02}", number % SITES)
}

/// Registers a cluster for each kubeconfig, in their order. `access`: of the cluster of this name.
async fn register_all(
    bed: &Bed,
    kubeconfigs: impl Iterator<Item = String>,
    access: impl Fn(&str) -> Value,
) -> Result<()> {
    let secrets: Api<Secret> = bed.hub().api(PROVIDER).await?;
    let clusters: Api<Cluster> = bed.hub().api(PROVIDER).await?;
    let (secrets, clusters) = (&secrets, &clusters);
    let make = |(number, kubeconfig): (usize, String)| {
        let name = name(number);
        let access = access(&name);
        async move {
            let secret = json!({"metadata": {"name": name}, "stringData": {"kubeconfig": kubeconfig}});
            secrets.create(&PostParams::default(), &serde_json::from_value(secret)?).await?;
            let cluster = json!({"apiVersion": "emco.io/v1alpha1", "kind": "Cluster",
                "metadata": {"name": name, "labels": {SITE: site(number)}}, "spec": {"access": access}});
            clusters.create(&PostParams::default(), &serde_json::from_value(cluster)?).await?;
            Ok::<_, anyhow::Error>(())
        }
    };
    stream::iter(kubeconfigs.enumerate().map(make))
        .buffer_unordered(AT_ONCE)
        .try_collect::<()>()
        .await
        .context("the hub does not take a cluster")
}

/// Waits until so many clusters have a condition.
async fn so_many_are(bed: &Bed, count: usize, wanted: &str, limit: Duration) -> Result<()> {
    let clusters: Api<Cluster> = bed.hub().api(PROVIDER).await?;
    wait_for(clusters, limit, "the clusters that are none", |clusters| {
        let ready = clusters.values().filter(|one| is(one.status.as_ref(), wanted, "True").is_ok());
        let ready = ready.count();
        if ready == count { Ok(()) } else { Err(format!("{ready} are {wanted}")) }
    })
    .await
}

/// Ends when it is dropped, with its connections.
async fn serve(listener: TcpListener, acceptor: TlsAcceptor, router: Router) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => drop(connections.spawn(connection(stream, acceptor.clone(), router.clone()))),
                Err(_) => tokio::time::sleep(FULL).await,
            },
            // What ended is not kept.
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(stream: TcpStream, acceptor: TlsAcceptor, router: Router) {
    // As API servers do: small answers do not wait for each other.
    let _ = stream.set_nodelay(true);
    // Whoever does not trust the certificate hangs up.
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let service = TowerToHyperService::new(router);
    // A client that goes away is no event.
    let _ = http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(
    State(server): State<Server>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let query = Query::of(uri.query().unwrap_or_default());
    server.requests.note(&method, query.watch);
    if uri.path() == fleet::COUNTS {
        return respond((200, server.requests.read().json()));
    }
    if query.watch {
        return watched::answer(server.store, uri.path().to_owned(), query);
    }
    if method != Method::GET {
        server.written.lock().note(&method, uri.path(), Instant::now());
    }
    let merge = headers.get("content-type").is_some_and(|kind| kind == "application/merge-patch+json");
    let sent = serde_json::from_slice::<Value>(&body).unwrap_or_default();
    let answer = server.store.lock().answer(&method, uri.path(), &query, sent, merge);
    respond(answer)
}

fn respond((code, answer): (u16, Value)) -> Response {
    let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (code, [(CONTENT_TYPE, "application/json")], answer.to_string()).into_response()
}
