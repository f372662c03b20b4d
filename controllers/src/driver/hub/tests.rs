use std::sync::Arc;

use futures::StreamExt;
use parking_lot::Mutex;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde_json::json;

use super::*;
use crate::api::{ApiServerExt, Content, Method};
use crate::remote::testing::{Handler, Reply, Server, Setup};

async fn hub(handler: Handler) -> (HubApi, Server) {
    let server = Server::start(Setup { authority: None, alpn: &[], names: &[] }, handler).await;
    let config = kube::Config::new(format!("http://{}", server.address).parse().unwrap());
    (HubApi::connect(config, Arc::default()).unwrap(), server)
}

#[tokio::test]
async fn requests_reach_the_hub_as_they_are_meant() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let handler: Handler = Arc::new(move |request| {
        let kind = request.headers().get("content-type").map(|kind| kind.to_str().unwrap().to_owned());
        log.lock().push((
            request.method().to_string(),
            request.uri().to_string(),
            kind,
            request.body().clone(),
        ));
        Reply::json(200, &json!({"kind": "ConfigMap"}))
    });
    let (hub, _server) = hub(handler).await;
    let request = Request::new(Method::Patch, "/api/v1/namespaces/a/configmaps/b")
        .query("fieldManager", "emco operator")
        .body(Content::Apply, &json!({"a": 1}));
    assert_eq!(hub.send(request).await.unwrap()["kind"], "ConfigMap");
    let seen = seen.lock();
    let (method, uri, kind, body) = &seen[0];
    assert_eq!(
        (method.as_str(), uri.as_str()),
        ("PATCH", "/api/v1/namespaces/a/configmaps/b?fieldManager=emco+operator")
    );
    assert_eq!((kind.as_deref(), &body[..]), (Some("application/apply-patch+yaml"), &br#"{"a":1}"#[..]));
}

#[tokio::test]
async fn the_hub_s_refusals_are_not_retried_behind_the_caller() {
    let asked = Arc::new(Mutex::new(0));
    let count = Arc::clone(&asked);
    let (hub, _server) = hub(Arc::new(move |_| {
        *count.lock() += 1;
        Reply::error(503, "ServiceUnavailable", "later").header("retry-after", "1")
    }))
    .await;
    let Err(ApiError::Status { code: 503, retry_after: Some(1), .. }) =
        hub.get_opt("/api/v1/namespaces/a").await
    else {
        panic!()
    };
    assert_eq!(*asked.lock(), 1);
}

#[tokio::test]
async fn the_hub_is_watched_until_it_is_gone() {
    let line = json!({"type": "ADDED", "object": {"metadata": {"name": "a"}}}).to_string() + "\n";
    let (hub, server) =
        hub(Arc::new(move |_| Reply { open: true, ..Reply::text(200, "application/json", line.clone()) }))
            .await;
    let mut watch = hub.watch(Request::new(Method::Get, "/api/v1/pods")).await.unwrap();
    assert!(matches!(watch.next().await, Some(Ok(WatchEvent::Applied(_)))));
    server.cut();
    assert_eq!(watch.next().await.unwrap().unwrap_err().reason(), "ConnectionLost");
    drop(server);
    let error = hub.send(Request::new(Method::Get, "/api/v1/pods")).await.unwrap_err();
    assert_eq!(error.reason(), "ConnectionRefused");
}

#[test]
fn the_hub_is_known_by_the_address_or_the_name_it_is_reached_by() {
    let others = ["203.0.113.7".to_owned(), "public.example.com".to_owned()];
    let of = |url: &str| own_hosts(&kube::Config::new(url.parse().unwrap()), &others);
    assert!(of("https://[fd00::1]:6443").addresses.contains(&"fd00::1/128".parse().unwrap()));
    assert!(of("https://10.0.0.1:6443").addresses.contains(&"10.0.0.1/32".parse().unwrap()));
    let named = of("https://API.hub.example.com.:6443");
    assert!(named.named("api.hub.example.com") && named.named("api.hub.example.com."), "{named:?}");
    assert!(!named.named("hub.example.com"));
    assert!(
        named.named("public.example.com") && named.addresses.contains(&"203.0.113.7/32".parse().unwrap())
    );
}

#[tokio::test]
async fn requests_are_measured_with_the_code_of_their_answer() {
    let handler: Handler = Arc::new(|_| Reply::error(429, "TooManyRequests", "later"));
    let server = Server::start(Setup { authority: None, alpn: &[], names: &[] }, handler).await;
    let config = kube::Config::new(format!("http://{}", server.address).parse().unwrap());
    let requests = Arc::new(Requests::default());
    let hub = HubApi::connect(config, Arc::clone(&requests)).unwrap();
    hub.get_opt("/api/v1/namespaces/a").await.unwrap_err();
    // As kube-runtime asks.
    hub.client()
        .request_text(http::Request::get("/api/v1/nodes?watch=1").body(Vec::new()).unwrap())
        .await
        .unwrap_err();
    drop(server);
    let mut registry = Registry::default();
    requests.register(&mut registry);
    let mut page = String::new();
    encode(&mut page, &registry).unwrap();
    for labels in [r#"verb="get",code="429""#, r#"verb="watch",code="429""#] {
        let line = format!("api_request_duration_seconds_count{{target=\"hub\",{labels}}} 1");
        assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
    }
}
