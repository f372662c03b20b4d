//! A real browser's side of the pages over a real socket: headers, the gate, forms, streams, and strangers who hold connections.

use std::convert::Infallible;

use axum::body::Bytes;
use http_body_util::Full;
use kube::Client;
use kube::client::Body as KubeBody;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::cli::dashboard::connections;
use crate::cli::dashboard::view::{Clusters, deployments};
use crate::cli::pulse::Pulse;
use crate::cli::status::tree::tests::{alive, group, shard};

/// A hub on which the user may do everything, and that has the deployment shop/till.
fn hub() -> Hub {
    let service = tower::service_fn(|request: Request<KubeBody>| {
        let (path, posted) = (request.uri().path().to_owned(), request.method() == Method::POST);
        let list =
            |kind: &str| json!({"apiVersion": "emco.io/v1alpha1", "kind": kind, "metadata": {}, "items": []});
        let (code, answer): (u16, Value) = match path.rsplit('/').next().unwrap_or_default() {
            "selfsubjectaccessreviews" => (201, json!({"spec": {}, "status": {"allowed": true}})),
            "selfsubjectreviews" => (201, json!({"status": {"userInfo": {"username": "ann"}}})),
            "till" => (200, serde_json::to_value(waiting()).unwrap()),
            "deploymentapprovals" if posted => (
                201,
                json!({
                    "apiVersion": "emco.io/v1alpha1", "kind": "DeploymentApproval", "metadata": {"name": "till-0-x"},
                    "spec": {"deploymentIntentGroupRef": {"name": "till"}, "digest": DIGEST, "decision": "Approved", "approvedBy": "ann"},
                }),
            ),
            "deploymentapprovals" => (200, list("DeploymentApprovalList")),
            "appcontexts" => (200, list("AppContextList")),
            _ => (404, json!({"kind": "Status", "status": "Failure", "code": 404, "message": "not found"})),
        };
        let response = Response::builder().status(code).header("content-type", "application/json");
        let response = response.body(Full::new(Bytes::from(answer.to_string()))).unwrap();
        futures::future::ready(Ok::<_, Infallible>(response))
    });
    let (namespace, operator_namespace) = ("shop".to_owned(), "emco-system".to_owned());
    Hub {
        client: Client::new(service, "shop"),
        namespace,
        operator_namespace,
        url: "https://hub/".to_owned(),
        lender: None,
    }
}

const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// The deployment with a plan that waits.
fn waiting() -> emco_crds::DeploymentIntentGroup {
    let mut group = group();
    group.metadata.resource_version = Some("7".to_owned());
    let pending = json!({"digest": DIGEST, "shortDigest": "0123456789ab", "revision": 3, "requires": "Approval",
        "summary": "web on 1 cluster", "clusters": {"added": 0, "changed": 1, "removed": 0},
        "resources": {"added": 0, "changed": 1, "removed": 0}});
    group.status.as_mut().unwrap().pending = Some(serde_json::from_value(pending).unwrap());
    group
}

fn view(pulse: Pulse) -> View {
    let deployments = deployments(std::iter::once(&waiting()), std::iter::once(&shard()), &pulse, &[]);
    View {
        namespace: Some("shop".to_owned()),
        hub: "https://hub/".to_owned(),
        note: None,
        pulse,
        trouble: None,
        refused: None,
        deployments,
        clusters: Arc::new(Clusters::default()),
    }
}

/// A site that is served, and the way to change what it shows.
struct Served {
    port: u16,
    root: String,
    views: watch::Sender<Arc<View>>,
}

impl Served {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (views, receiver) = watch::channel(Arc::new(view(alive())));
        let link = Link::new(port).unwrap();
        let root = link.root();
        let site = Arc::new(Site::new(Arc::new(hub()), link, receiver));
        tokio::spawn(Box::pin(connections::serve(listener, move |request, known| {
            Box::pin(answer(Arc::clone(&site), request, known))
        })));
        Self { port, root, views }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port)).await.unwrap()
    }

    /// The whole answer to a request; `path` is below the secret.
    async fn ask(&self, method: &str, path: &str, more: &str, body: &str) -> String {
        let mut stream = self.connect().await;
        let (root, port, length) = (&self.root, self.port, body.len());
        let head =
            format!("{method} {root}{path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n");
        let request = format!("{head}Content-Length: {length}\r\n{more}\r\n{body}");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    async fn get(&self, path: &str) -> String {
        self.ask("GET", path, "", "").await
    }

    async fn post(&self, more: &str, body: &str) -> String {
        self.ask("POST", "deployments/shop/till", more, body).await
    }
}

fn code(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default()
}

/// Headers that a browser sends with a form of these pages.
const FORM: &str = "Sec-Fetch-Site: same-origin\r\nContent-Type: application/x-www-form-urlencoded\r\n";

#[tokio::test]
async fn every_answer_forbids_all_that_a_page_does_not_need() {
    let served = Served::start().await;
    let secret = served.root.clone();
    for (path, wanted) in [
        ("", 200),
        ("style.css", 200),
        ("script.js", 200),
        ("clusters", 200),
        ("deployments/shop/till", 200),
        ("reasons/Cluster", 200),
        ("?foo=1", 400),
        ("nowhere", 404),
        ("deployments/shop/gone", 404),
        ("?page=2", 404),
    ] {
        let answer = served.get(path).await;
        assert_eq!(code(&answer), wanted, "{path}: {answer}");
        let lower = answer.to_lowercase();
        for (name, value) in &SECURITY {
            assert!(lower.contains(&format!("{name}: {}\r\n", value.to_lowercase())), "{path}: {name}");
        }
        assert!(!lower.contains("set-cookie"), "{path}");
        // A copy or a picture of a page lets nobody in.
        assert!(!answer.contains(secret.trim_matches('/')), "{path}");
        assert!(!answer.contains(" style=") && !answer.contains("onclick"), "{path}");
    }
}

#[tokio::test]
async fn without_the_secret_nothing_is_said() {
    let mut served = Served::start().await;
    served.root = "/".to_owned();
    for path in ["", "style.css", "clusters", "deployments/shop/till", "favicon.ico"] {
        let answer = served.get(path).await;
        assert_eq!(code(&answer), 404, "{path}");
        assert!(answer.ends_with("\r\n\r\nnot found"), "{path}: {answer}");
    }
}

#[tokio::test]
async fn a_form_is_taken_from_these_pages_alone() {
    let served = Served::start().await;
    let body = format!("digest={DIGEST}&comment=&decision=Approved");
    let kind = "Content-Type: application/x-www-form-urlencoded\r\n";
    assert_eq!(code(&served.post(kind, &body).await), 403);
    let cross = format!("{kind}Sec-Fetch-Site: cross-site\r\n");
    assert_eq!(code(&served.post(&cross, &body).await), 403);
    let json = "Content-Type: application/json\r\nSec-Fetch-Site: same-origin\r\n";
    assert_eq!(code(&served.post(json, &body).await), 415);
    assert_eq!(code(&served.post(FORM, &"a".repeat(17 * 1024)).await), 413);
    assert_eq!(code(&served.ask("POST", "", FORM, &body).await), 405);
    // Its page says that it is gone.
    assert_eq!(code(&served.ask("POST", "deployments/shop/gone", FORM, &body).await), 303);
}

#[tokio::test]
async fn what_is_shown_is_approved_and_nothing_else() {
    let served = Served::start().await;
    let page = served.get("deployments/shop/till").await;
    assert!(page.contains("id=\"approve\"") && page.contains(&format!("value=\"{DIGEST}\"")), "{page}");
    let done = served.post(FORM, &format!("digest={DIGEST}&decision=Approved")).await;
    assert_eq!(code(&done), 303, "{done}");
    let page = served.get("deployments/shop/till?said=1").await;
    assert!(page.contains("digest 0123456789ab is approved by ann, as till-0-x"), "{page}");
    let other = format!("sha256:{}", "f".repeat(64));
    assert_eq!(code(&served.post(FORM, &format!("digest={other}&decision=Approved")).await), 303);
    let page = served.get("deployments/shop/till?said=2").await;
    let said = "shop/till: the plan that waits has digest 0123456789ab, not ffffffffffff: look at it again";
    assert!(page.contains(said) && page.contains("data-outcome=\"refused\""), "{page}");
}

#[tokio::test]
async fn strangers_with_slow_connections_keep_nobody_out() {
    let served = Served::start().await;
    let mut slow = Vec::new();
    for _ in 0..200 {
        let mut stream = served.connect().await;
        // Those that were turned away already cannot be written to.
        let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: x").await;
        slow.push(stream);
    }
    let answer = tokio::time::timeout(std::time::Duration::from_secs(2), served.get("")).await.unwrap();
    assert_eq!(code(&answer), 200);
}

#[tokio::test]
async fn a_stream_sends_what_differs_and_nothing_else() {
    let served = Served::start().await;
    let mut stream = served.connect().await;
    let (root, port) = (&served.root, served.port);
    let request = format!("GET {root}?live=x HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut seen = String::new();
    let mut buffer = vec![0; 65_536];
    while !(seen.contains("event: main") && seen.contains("event: beat")) {
        let read = stream.read(&mut buffer).await.unwrap();
        seen.push_str(&String::from_utf8_lossy(&buffer[..read]));
    }
    assert!(seen.contains("text/event-stream"), "{seen}");
    // The same again is no news.
    served.views.send_replace(Arc::new(view(alive())));
    let mut changed = view(alive());
    changed.trouble = Some("The hub does not answer: gone".to_owned());
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    served.views.send_replace(Arc::new(changed));
    let mut seen = String::new();
    while !seen.contains("event: main") {
        let read = stream.read(&mut buffer).await.unwrap();
        seen.push_str(&String::from_utf8_lossy(&buffer[..read]));
    }
    assert_eq!(seen.matches("event: main").count(), 1);
    assert!(seen.contains("The hub does not answer: gone"), "{seen}");
}

#[tokio::test]
async fn another_plan_that_comes_while_a_page_is_open_is_not_decided_there() {
    let site = Site::new(Arc::new(hub()), Link::new(1).unwrap(), watch::channel(Arc::new(view(alive()))).1);
    let place = Place::of("deployments/shop/till").unwrap();
    let ask = Ask::read(List::Places, "").unwrap();
    let view = site.view();
    let (_, same) = site.page(&place, &view, &ask, Some(DIGEST)).await;
    assert!(same.body.0.contains("id=\"decide\""));
    let (_, other) = site.page(&place, &view, &ask, Some("sha256:00")).await;
    assert!(other.body.0.contains("id=\"stale\"") && !other.body.0.contains("id=\"decide\""));
    assert_eq!((same.plan.as_deref(), other.plan.as_deref()), (Some(DIGEST), Some("sha256:00")));
    // Of a page that was opened while none waited as well.
    let (_, first) = site.page(&place, &view, &ask, Some("")).await;
    assert!(first.body.0.contains("id=\"stale\"") && first.plan.as_deref() == Some(""));
}

#[test]
fn a_path_names_a_page_or_nothing() {
    let deployment = Place::Deployment("shop".to_owned(), "till".to_owned());
    assert_eq!(Place::of("deployments/shop/till"), Some(deployment));
    for wrong in
        ["deployments", "deployments/shop", "deployments/shop/", "deployments/../till", "clusters/", "/", "x"]
    {
        assert_eq!(Place::of(wrong), None, "{wrong}");
    }
}

#[tokio::test]
async fn the_first_page_of_500_deployments_is_at_most_60_kib() {
    let mut view = view(alive());
    let one = view.deployments[0].clone();
    let numbered = |number: usize| {
        let mut one = Arc::clone(&one);
        Arc::make_mut(&mut one).group.name = format!("a-deployment-with-a-long-name-{}", number * 7919);
        one
    };
    view.deployments = (0..500).map(numbered).collect();
    let ask = Ask::read(List::Deployments, "").unwrap();
    let page = deployments::page(&view, &ask).unwrap().document(&view).into_string();
    let answer = packable(StatusCode::OK, HTML, page, true);
    let bytes = axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap();
    let all = bytes.len() + STYLE.len() + SCRIPT.len();
    assert!(all <= 60 * 1024, "{all}");
    assert!(SCRIPT.lines().count() <= 80);
}
