//! A hub in memory and the real connections: what a Secret leads to, and what is said of it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_engine::identity::ClusterId;
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::time::error::Elapsed;
use tokio::time::timeout;

use super::rig::*;
use crate::remote::dialer::{Dialer, DialerSettings};
use crate::remote::testing::{Authority, Names, Reply, Server, Setup, Steady, dialer, kubeconfig};
use crate::remote::{Admission, Connections, Pool, PoolSettings};

const A: &str = "/apis/emco.io/v1alpha1/namespaces/acme/clusters/a";
/// Far less than an attempt may take, far more than an answer does.
const AT_ONCE: Duration = Duration::from_secs(8);

struct Connected {
    rig: Rig,
    pool: Arc<Pool>,
    ca: Authority,
}

impl Connected {
    /// With the bounds of production.
    fn new(dialer: Arc<Dialer>) -> Self {
        let steady = Arc::new(Steady::default());
        let pool = Pool::new(PoolSettings::default(), dialer, Arc::<Steady>::clone(&steady), steady);
        let mut rig = Rig::new();
        rig.ctx.connector = Arc::<Pool>::clone(&pool);
        rig.ctx.world.edges = Arc::<Pool>::clone(&pool);
        for object in world() {
            rig.hub.put("test", &object);
        }
        Self { rig, pool, ca: Authority::new() }
    }

    /// The cluster's Secret leads there from now on.
    fn leads_to(&self, server: &str) {
        let file = STANDARD.encode(kubeconfig(server, &self.ca.pem(), "good"));
        let mut secret = secret("a");
        secret["data"]["kubeconfig"] = json!(file);
        self.rig.hub.put("test", &secret);
    }

    /// A server that answers everything so.
    async fn answering(&self, answer: impl Fn(&str) -> Reply + Send + Sync + 'static) -> (Server, String) {
        let setup = Setup { authority: Some(&self.ca), alpn: &["h2"], names: &["localhost"] };
        let server = Server::start(setup, Arc::new(move |request| answer(request.uri().path()))).await;
        let url = format!("https://localhost:{}", server.address.port());
        (server, url)
    }

    /// Reconciles whenever something is seen, until the condition Ready has this reason; its message.
    async fn until(&mut self, reason: &str) -> String {
        let mut changes = self.pool.changes();
        let waiting = async {
            loop {
                self.rig.settle().await;
                let (_, now, message) = self.rig.ready(A);
                if now == reason {
                    return message;
                }
                // What was seen meanwhile is told, too.
                changes.next().await.unwrap();
            }
        };
        match timeout(AT_ONCE, waiting).await {
            Ok(message) => message,
            Err(Elapsed { .. }) => panic!("{reason} did not come: {:?}", self.rig.ready(A)),
        }
    }
}

/// As much of an API server as is asked before there is work.
fn api(path: &str) -> Reply {
    let list = |items: Value| {
        Reply::json(200, &json!({"kind": "List", "metadata": {"resourceVersion": "7"}, "items": items}))
    };
    match path {
        "/api/v1/namespaces" => list(json!([{"metadata": {"name": "kube-system", "uid": "uid-a"}}])),
        "/readyz" => Reply::text(200, "text/plain", "ok"),
        "/version" => Reply::json(200, &json!({"gitVersion": "v1.36.3"})),
        "/api" | "/apis" => Reply::json(200, &json!({"kind": "APIGroupDiscoveryList", "items": []})),
        "/api/v1/namespaces/emco-system/configmaps/hub" => Reply::json(
            200,
            &json!({"kind": "ConfigMap", "data": {"installation": "inst", "since": "2026-01-01T00:00:00Z"}}),
        ),
        "/api/v1/nodes" => Reply::error(403, "Forbidden", "no nodes"),
        _ => Reply::error(404, "NotFound", "nothing"),
    }
}

#[tokio::test]
async fn a_kubeconfig_that_leads_to_loopback_is_refused_until_an_operator_s_flag_allows_it() {
    for (server, address, flag) in [
        ("https://127.0.0.1:6443", "127.0.0.1", "127.0.0.1/32"),
        ("https://[::1]:6443", "::1", "::1/128"),
        ("https://mine.example:6443", "127.9.9.9", "127.9.9.9/32"),
    ] {
        let names = Names::default();
        names.known.lock().insert("mine.example".to_owned(), vec!["127.9.9.9".parse().unwrap()]);
        let mut bed = Connected::new(Dialer::new(DialerSettings::default(), Arc::new(names)));
        bed.leads_to(server);
        let message = bed.until("AddressNotAllowed").await;
        assert!(
            message.contains(address) && message.contains(" a loopback address, which is not dialled"),
            "{message}"
        );
        assert_eq!(message.matches(address).count(), 2, "once, and in the flag: {message}");
        assert!(message.contains(&format!("--allow-edge-address {flag}")), "{message}");
        assert_eq!(bed.rig.ready(A).0, "False");
    }
}

#[tokio::test]
async fn what_answers_with_a_page_or_with_endless_text_is_told_in_one_sentence() {
    const TEN_MEGABYTES: usize = 10 << 20;
    for (kind, body) in [
        ("text/html", b"<html><h1>my secret page</h1></html>".to_vec()),
        ("text/plain", vec![b'x'; TEN_MEGABYTES]),
        ("application/json", vec![b'['; TEN_MEGABYTES]),
    ] {
        let mut bed = Connected::new(dialer());
        let body = bytes::Bytes::from(body);
        let (_server, url) = bed.answering(move |_| Reply::text(200, kind, body.clone())).await;
        bed.leads_to(&url);
        let message = bed.until("ServerError").await;
        let host = url.trim_start_matches("https://");
        assert_eq!(
            message,
            format!(
                "the API server {host} answers 200 with {kind} instead of Kubernetes' JSON: is this the address of an API server?"
            )
        );
        assert!(message.len() <= 256 && !message.contains("secret"), "{message}");
        assert_eq!(bed.rig.hub.object(A).unwrap()["status"].get("uid"), None, "it is no cluster yet");
    }
}

#[tokio::test]
async fn an_answer_beyond_every_bound_is_told_by_its_bound() {
    let mut bed = Connected::new(dialer());
    let body = bytes::Bytes::from(vec![b' '; (32 << 20) + 1]);
    let (_server, url) = bed.answering(move |_| Reply::text(200, "application/json", body.clone())).await;
    bed.leads_to(&url);
    let message = bed.until("ServerError").await;
    let host = url.trim_start_matches("https://");
    assert_eq!(message, format!("the API server {host} answers more than 33554432 bytes to one request"));
}

#[tokio::test]
async fn a_secret_that_changes_while_its_cluster_is_being_connected_to_is_used_at_once() {
    let mut bed = Connected::new(dialer());
    // Takes connections and says nothing: the handshake waits for its time-out.
    let hole = TcpListener::bind("127.0.0.1:0").await.unwrap();
    bed.leads_to(&format!("https://localhost:{}", hole.local_addr().unwrap().port()));
    bed.rig.settle().await;
    let (mut first, _) = timeout(AT_ONCE, hole.accept()).await.expect("it is tried").unwrap();
    assert_eq!(bed.rig.ready(A).1, "Connecting");
    let (server, url) = bed.answering(api).await;
    bed.leads_to(&url);
    bed.until("Reachable").await;
    assert_eq!(bed.rig.hub.object(A).unwrap()["status"]["uid"], "uid-a");
    let seen = bed.pool.observation(&ClusterId::new("acme", "a")).unwrap();
    assert_eq!(seen.admission, Admission::Admitted);
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
    // The attempt with the old Secret ended with it, and was not tried again.
    let mut hello = Vec::new();
    timeout(AT_ONCE, first.read_to_end(&mut hello)).await.expect("it is closed").unwrap();
    assert!(timeout(Duration::from_millis(50), hole.accept()).await.is_err(), "nobody asks there any more");
}
