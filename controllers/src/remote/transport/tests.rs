mod lent;
mod watches;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use super::*;
use crate::api::{ApiServerExt, Content};
use crate::remote::kubeconfig;
use crate::remote::testing::{Authority, Handler, Reply, Server, Setup, dialer, kubeconfig};

const H2: &[&str] = &["h2", "http/1.1"];
const H1: &[&str] = &["http/1.1"];

/// For servers that do not answer. All others have as long as in production, whatever else the machine does.
fn quick() -> EdgeSettings {
    EdgeSettings { answer_begins: Duration::from_millis(700), ..EdgeSettings::default() }
}

fn edge_at(address: SocketAddr, ca: &Authority) -> Arc<Edge> {
    edge_with(EdgeSettings::default(), address, ca)
}

fn edge_with(settings: EdgeSettings, address: SocketAddr, ca: &Authority) -> Arc<Edge> {
    let file = kubeconfig(&format!("https://localhost:{}", address.port()), &ca.pem(), "tok");
    Edge::new(kubeconfig::read(&file).unwrap(), dialer(), settings)
}

async fn rig(alpn: &'static [&'static str], handler: Handler) -> (Arc<Edge>, Server) {
    rig_with(EdgeSettings::default(), alpn, handler).await
}

async fn rig_with(
    settings: EdgeSettings,
    alpn: &'static [&'static str],
    handler: Handler,
) -> (Arc<Edge>, Server) {
    let ca = Authority::new();
    let server = Server::start(Setup { authority: Some(&ca), alpn, names: &["localhost"] }, handler).await;
    (edge_with(settings, server.address, &ca), server)
}

fn always(make: impl Fn() -> Reply + Send + Sync + 'static) -> Handler {
    Arc::new(move |_| make())
}

fn get() -> Request {
    Request::new(Method::Get, "/api/v1/namespaces/x/configmaps/y")
}

#[tokio::test]
async fn over_http2_all_requests_share_one_connection_and_carry_the_token() {
    for (alpn, most) in [(H2, 1), (H1, 4)] {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        let (edge, server) = rig(
            alpn,
            Arc::new(move |request| {
                let header = |name: &str| request.headers().get(name).map(|v| v.to_str().unwrap().to_owned());
                log.lock().push((
                    header("authorization"),
                    header("impersonate-user"),
                    request.uri().query().map(str::to_owned),
                ));
                Reply::json(200, &json!({"kind": "ConfigMap"}))
            }),
        )
        .await;
        let request = |n: usize| {
            let mut request = get().query("fieldManager", format!("a&b {n}"));
            request.impersonate = (n == 0).then(|| "system:serviceaccount:shop:emco-a".to_owned());
            request
        };
        let sends = (0..20).map(|n| edge.send(request(n)));
        for answer in futures::future::join_all(sends).await {
            assert_eq!(answer.unwrap()["kind"], "ConfigMap");
        }
        let seen = seen.lock();
        assert!(seen.iter().all(|(token, ..)| token.as_deref() == Some("Bearer tok")));
        assert_eq!(seen.iter().filter(|(_, who, _)| who.is_some()).count(), 1);
        assert!(seen.iter().any(|(.., query)| query.as_deref() == Some("fieldManager=a%26b+3")));
        let made = server.connections.load(Ordering::SeqCst);
        assert!(made <= most, "{alpn:?} made {made} connections");
    }
}

#[tokio::test]
async fn only_service_accounts_are_acted_as() {
    let (edge, server) = rig(H2, always(|| Reply::json(200, &json!({})))).await;
    for who in ["system:admin", "system:serviceaccount:a", "system:serviceaccount:a:b\r\nx: y", "jane"] {
        let mut request = get();
        request.impersonate = Some(who.to_owned());
        assert!(matches!(edge.send(request).await, Err(ApiError::Protocol(_))), "{who}");
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_status_is_an_error_with_everything_it_says() {
    let (edge, _server) = rig(
        H2,
        always(|| {
            Reply::json(
                409,
                &json!({"kind": "Status", "code": 409, "reason": "Conflict", "message": "m".repeat(5000), "details": {
                    "retryAfterSeconds": 7, "causes": [{"field": ".spec.replicas", "message": "conflict with \"kubectl\""}]}}),
            )
        }),
    )
    .await;
    let Err(ApiError::Status { code, reason, message, retry_after, causes }) = edge.send(get()).await else {
        panic!()
    };
    assert_eq!((code, reason.as_str(), message.len(), retry_after), (409, "Conflict", 1024, Some(7)));
    assert_eq!(causes, [(".spec.replicas".to_owned(), "conflict with \"kubectl\"".to_owned())]);
}

#[tokio::test]
async fn unauthorised_and_overloaded_are_told_apart() {
    let (edge, _server) = rig(H2, always(|| Reply::error(401, "Unauthorized", "Unauthorized"))).await;
    assert_eq!(edge.send(get()).await.unwrap_err().code(), 401);
    let (edge, _server) =
        rig(H1, always(|| Reply::text(503, "text/html", "<b>busy</b>").header("retry-after", "12"))).await;
    let Err(ApiError::Status { code: 503, retry_after: Some(12), message, .. }) = edge.send(get()).await
    else {
        panic!()
    };
    assert!(!message.contains("busy"), "a stranger's page is not quoted: {message}");
}

#[tokio::test]
async fn html_is_not_kubernetes_and_is_not_quoted() {
    for status in [200, 404, 403, 500] {
        let (edge, _server) =
            rig(H1, always(move || Reply::text(status, "text/html", "<h1>my secret page</h1>"))).await;
        let Err(ApiError::Protocol(message)) = edge.send(get()).await else { panic!("{status}") };
        assert!(
            message.contains("text/html") && !message.contains("secret") && message.len() <= 256,
            "{message}"
        );
    }
}

#[tokio::test]
async fn a_load_balancers_404_does_not_make_an_object_gone() {
    let page = "404 page not found\n";
    let (edge, _server) = rig(H2, always(move || Reply::text(404, "text/plain", page))).await;
    assert!(matches!(
        edge.delete("/api/v1/namespaces/x/pods/y", None, None).await,
        Err(ApiError::Protocol(_))
    ));
    // An API server says so of a kind that it does not serve, or not yet: nothing is known of its objects.
    let (edge, _server) =
        rig(H2, always(move || Reply::text(404, "text/plain", page).header("audit-id", "1"))).await;
    let error = edge.delete("/apis/a.b/v1/things/y", None, None).await.unwrap_err();
    assert!(error.is_not_found() && error.to_string().contains("does not serve this path"), "{error}");
    let (edge, _server) =
        rig(H2, always(|| Reply::error(404, "NotFound", "things.a.b \"y\" not found"))).await;
    assert!(edge.delete("/apis/a.b/v1/things/y", None, None).await.unwrap().is_none());
}

#[tokio::test]
async fn an_answer_beyond_the_limit_is_given_up() {
    let ca = Authority::new();
    let handler = always(|| Reply::text(200, "text/plain", vec![b'x'; 10 << 20]));
    let server =
        Server::start(Setup { authority: Some(&ca), alpn: H2, names: &["localhost"] }, handler).await;
    let mut settings = EdgeSettings::default();
    settings.answer.bytes = 1 << 20;
    let edge = edge_with(settings, server.address, &ca);
    let Err(ApiError::Protocol(message)) = edge.send(get()).await else { panic!() };
    assert!(message.contains("more than 1048576 bytes") && message.len() <= 256, "{message}");
}

#[tokio::test]
async fn ten_megabytes_of_text_are_read_within_the_limits_and_are_not_kubernetes() {
    for status in [200, 404, 500] {
        let ca = Authority::new();
        let handler = always(move || Reply::text(status, "text/plain", vec![b'x'; 10 << 20]));
        let server =
            Server::start(Setup { authority: Some(&ca), alpn: H2, names: &["localhost"] }, handler).await;
        let edge = edge_at(server.address, &ca);
        let Err(ApiError::Protocol(message)) = edge.send(get()).await else { panic!("{status}") };
        assert!(message.contains(&format!("answers {status} with text/plain")), "{message}");
        assert!(message.len() <= 256 && !message.contains("xx"), "{message}");
    }
}

#[tokio::test]
async fn a_black_hole_costs_its_time_out_and_no_more() {
    let (edge, _server) = rig_with(quick(), H2, always(Reply::silence)).await;
    let started = std::time::Instant::now();
    let error = edge.send(get()).await.unwrap_err();
    assert_eq!(error.reason(), "Timeout");
    assert!(started.elapsed() < EdgeSettings::default().answer_begins, "{:?}", started.elapsed());
}

#[tokio::test]
async fn requests_in_flight_are_limited() {
    let running = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let (now, peak) = (Arc::clone(&running), Arc::clone(&most));
    let (edge, _server) = rig(
        H2,
        Arc::new(move |_| {
            peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            Reply::silence()
        }),
    )
    .await;
    let mut all = Box::pin(futures::future::join_all((0..12).map(|_| edge.send(get()))));
    while most.load(Ordering::SeqCst) < 4 {
        tokio::time::timeout(Duration::from_millis(10), &mut all)
            .await
            .expect_err("the server never answers");
    }
    tokio::time::timeout(Duration::from_millis(300), &mut all).await.expect_err("the server never answers");
    assert_eq!(most.load(Ordering::SeqCst), 4);
}

#[tokio::test]
async fn another_ca_is_named_as_the_cause() {
    let (ca, other) = (Authority::new(), Authority::new());
    let server = Server::start(
        Setup { authority: Some(&ca), alpn: H2, names: &["localhost"] },
        always(Reply::silence),
    )
    .await;
    let error = edge_at(server.address, &other).send(get()).await.unwrap_err();
    assert_eq!(error.reason(), "TLSFailed");
    assert!(error.to_string().contains("did not sign"), "{error}");
}

#[tokio::test]
async fn a_certificate_for_another_name_is_named_as_the_cause() {
    let ca = Authority::new();
    let server = Server::start(
        Setup { authority: Some(&ca), alpn: H2, names: &["other.example"] },
        always(Reply::silence),
    )
    .await;
    let error = edge_at(server.address, &ca).send(get()).await.unwrap_err();
    assert_eq!(error.reason(), "TLSFailed");
    assert!(error.to_string().contains("tls-server-name"), "{error}");
}

#[tokio::test]
async fn what_does_not_speak_tls_and_what_does_not_listen_have_reasons() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
    });
    let ca = Authority::new();
    let error = edge_at(address, &ca).send(get()).await.unwrap_err();
    assert_eq!(error.reason(), "TLSFailed");
    assert!(error.to_string().contains("does not speak TLS"), "{error}");
    task.await.unwrap();
    let error = edge_at(address, &ca).send(get()).await.unwrap_err();
    assert_eq!(error.reason(), "ConnectionRefused");
}

#[tokio::test]
async fn a_cut_connection_is_made_again_by_the_next_request() {
    for alpn in [H2, H1] {
        let (edge, server) = rig(alpn, always(|| Reply::json(200, &json!({"kind": "ConfigMap"})))).await;
        edge.send(get()).await.unwrap();
        server.cut();
        edge.send(get()).await.unwrap();
        assert_eq!(server.connections.load(Ordering::SeqCst), 2, "{alpn:?}");
    }
}

#[test]
fn a_list_and_an_object_are_asked_for_by_their_own_names() {
    let accept = |path: &str| {
        let request = Request::new(Method::Get, path).metadata();
        let built = wire::http_request("", request, false).unwrap();
        built.headers()[ACCEPT].to_str().unwrap().contains("MetadataList")
    };
    for list in [
        "/api/v1/pods",
        "/api/v1/namespaces",
        "/api/v1/namespaces/a/pods",
        "/apis/apps/v1/namespaces/a/deployments",
    ] {
        assert!(accept(list), "{list}");
    }
    for one in [
        "/api/v1/namespaces/a",
        "/api/v1/namespaces/a/pods/b",
        "/apis/apps/v1/namespaces/a/deployments/b/scale",
        "/apis/a.b/v1/things/x",
    ] {
        assert!(!accept(one), "{one}");
    }
    let put = Request::new(Method::Patch, "/x").body(Content::Apply, &json!({}));
    assert_eq!(wire::http_request("/base", put, false).unwrap().uri(), "/base/x");
}

#[tokio::test]
async fn a_read_is_repeated_where_this_process_had_no_time_to_look() {
    let (edge, _server) =
        rig_with(quick(), H2, always(|| Reply::json(200, &json!({"kind": "ConfigMap"})))).await;
    edge.open().await.unwrap();
    let mut asked = Box::pin(edge.send(get()));
    // It is under way, and then the one thread of this runtime is busy for longer than an answer may take.
    assert!(futures::poll!(asked.as_mut()).is_pending());
    std::thread::sleep(quick().answer_begins + STARVED + Duration::from_millis(200));
    assert_eq!(asked.await.unwrap()["kind"], "ConfigMap");
}

#[tokio::test]
async fn requests_to_a_cluster_are_measured_answered_or_not() {
    let ca = Authority::new();
    let setup = Setup { authority: Some(&ca), alpn: H2, names: &["localhost"] };
    let server = Server::start(setup, always(|| Reply::error(403, "Forbidden", "no"))).await;
    let file = kubeconfig(&format!("https://localhost:{}", server.address.port()), &ca.pem(), "tok");
    let requests = Arc::new(Requests::default());
    let edge = Edge::measured(kubeconfig::read(&file).unwrap(), dialer(), quick(), Arc::clone(&requests));
    edge.get_opt("/api/v1/namespaces/a").await.unwrap_err();
    drop(server);
    edge.get_opt("/api/v1/namespaces/a").await.unwrap_err();
    let mut registry = prometheus_client::registry::Registry::default();
    requests.register(&mut registry);
    let mut page = String::new();
    prometheus_client::encoding::text::encode(&mut page, &registry).unwrap();
    for code in ["403", "none"] {
        let line =
            format!("api_request_duration_seconds_count{{target=\"edge\",verb=\"get\",code=\"{code}\"}} 1");
        assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
    }
}
