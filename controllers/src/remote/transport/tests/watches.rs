//! Watches: connections of their own, shared by many, and bounded.

use super::*;

#[tokio::test]
async fn a_watch_gives_events_until_the_connection_ends() {
    let lines = [
        json!({"type": "ADDED", "object": {"metadata": {"name": "a"}}}).to_string(),
        json!({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "77"}}}).to_string(),
        json!({"type": "DELETED", "object": {"metadata": {"name": "a"}}}).to_string(),
    ];
    let text = lines.join("\n") + "\n{\"type\":";
    for alpn in [H2, H1] {
        let text = text.clone();
        let (edge, server) = rig(
            alpn,
            Arc::new(move |request| {
                let query = request.uri().query().unwrap().to_owned();
                assert!(query.contains("watch=true") && query.contains("allowWatchBookmarks=true"));
                let accept = request.headers()["accept"].to_str().unwrap();
                assert!(accept.contains("as=PartialObjectMetadata;"), "{accept}");
                Reply { open: true, ..Reply::text(200, "application/json", text.clone()) }
            }),
        )
        .await;
        let request = Request::new(Method::Get, "/api/v1/pods").query("resourceVersion", "5").metadata();
        let mut watch = edge.watch(request).await.unwrap();
        assert!(
            matches!(watch.next().await, Some(Ok(WatchEvent::Applied(o))) if o["metadata"]["name"] == "a")
        );
        assert!(matches!(watch.next().await, Some(Ok(WatchEvent::Bookmark(v))) if v == "77"));
        assert!(matches!(watch.next().await, Some(Ok(WatchEvent::Deleted(_)))));
        server.cut();
        let last = watch.next().await.expect("an error tells that the connection ended");
        assert_eq!(last.unwrap_err().reason(), "ConnectionLost");
        assert!(watch.next().await.is_none());
    }
}

/// A watch of each of so many kinds; the streams stay open.
async fn watches(edge: &Edge, kinds: usize) -> Vec<ApiResult<BoxStream<'static, ApiResult<WatchEvent>>>> {
    let watch = |kind| {
        let request = Request::new(Method::Get, format!("/apis/x.example.com/v1/kind{kind}s"));
        edge.watch(request.query("resourceVersion", "5"))
    };
    futures::future::join_all((0..kinds).map(watch)).await
}

fn open() -> Handler {
    let line = json!({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "77"}}}).to_string();
    Arc::new(move |request| match request.uri().query() {
        Some(query) if query.contains("watch=true") => {
            Reply { open: true, ..Reply::text(200, "application/json", line.clone() + "\n") }
        }
        _ => Reply::json(200, &json!({"kind": "ConfigMap", "metadata": {"name": "y"}})),
    })
}

#[tokio::test]
async fn two_hundred_kinds_are_watched_over_a_few_connections() {
    for (alpn, most) in [(H2, 4), (H1, 210)] {
        let ca = Authority::new();
        let server = Server::start(Setup { authority: Some(&ca), alpn, names: &["localhost"] }, open()).await;
        let edge = edge_at(server.address, &ca);
        let mut streams = watches(&edge, 200).await;
        for stream in &mut streams {
            let event = stream.as_mut().unwrap_or_else(|error| panic!("{error}")).next().await;
            assert!(matches!(event, Some(Ok(WatchEvent::Bookmark(_)))));
        }
        edge.send(get()).await.unwrap();
        assert!(server.connections.load(Ordering::SeqCst) <= most);
    }
}

#[tokio::test]
async fn connections_that_no_watch_needs_any_more_are_used_again() {
    let (edge, server) = rig(H2, open()).await;
    drop(watches(&edge, 100).await);
    drop(watches(&edge, 100).await);
    assert!(server.connections.load(Ordering::SeqCst) <= 3);
}

#[tokio::test]
async fn a_server_that_allows_few_streams_gets_more_connections() {
    let ca = Authority::new();
    let setup = Setup { authority: Some(&ca), alpn: H2, names: &["localhost"] };
    let server = Server::start_narrow(setup, 20, open()).await;
    // A watch that finds no stream free waits for so long.
    let settings = EdgeSettings { answer_begins: Duration::from_secs(3), ..EdgeSettings::default() };
    let edge = edge_with(settings, server.address, &ca);
    let mut held: Vec<_> = Vec::new();
    let mut left = 70;
    for _ in 0..10 {
        held.extend(watches(&edge, left).await.into_iter().filter_map(Result::ok));
        left = 70 - held.len();
        if left == 0 {
            break;
        }
    }
    assert_eq!(held.len(), 70);
    edge.send(get()).await.expect("watches leave room for requests");
}

#[tokio::test]
async fn watches_beyond_the_limit_of_an_edge_are_refused_at_once() {
    let ca = Authority::new();
    let setup = Setup { authority: Some(&ca), alpn: H2, names: &["localhost"] };
    let server = Server::start(setup, open()).await;
    let edge = edge_with(EdgeSettings { watches: 3, ..EdgeSettings::default() }, server.address, &ca);
    let streams = watches(&edge, 5).await;
    let refused: Vec<_> = streams.iter().filter_map(|stream| stream.as_ref().err()).collect();
    assert_eq!(refused.len(), 2);
    assert!(refused[0].to_string().contains("has 3 open watches already"), "{}", refused[0]);
}

#[tokio::test]
async fn many_defined_kinds_leave_watches_to_workloads() {
    let ca = Authority::new();
    let setup = Setup { authority: Some(&ca), alpn: H2, names: &["localhost"] };
    let server = Server::start(setup, open()).await;
    let settings = EdgeSettings { watches: 3, watches_built_in: 1, ..EdgeSettings::default() };
    let edge = edge_with(settings, server.address, &ca);
    let held = watches(&edge, 5).await;
    assert_eq!(held.iter().filter(|stream| stream.is_ok()).count(), 3);
    let workload = || edge.watch(Request::new(Method::Get, "/apis/apps/v1/deployments"));
    let first = workload().await.unwrap_or_else(|error| panic!("{error}"));
    assert!(workload().await.is_err(), "these are bounded, too");
    drop(first);
}

#[tokio::test]
async fn an_expired_watch_is_gone_whether_said_at_once_or_later() {
    let gone = json!({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"});
    let event = json!({"type": "ERROR", "object": gone}).to_string() + "\n";
    let (edge, _server) = rig(H2, always(move || Reply::text(200, "application/json", event.clone()))).await;
    let mut watch = edge.watch(Request::new(Method::Get, "/api/v1/pods")).await.unwrap();
    assert_eq!(watch.next().await.unwrap().unwrap_err().code(), 410);
    let (edge, _server) = rig(H2, always(|| Reply::error(410, "Expired", "too old"))).await;
    let Err(error) = edge.watch(Request::new(Method::Get, "/api/v1/pods")).await else { panic!() };
    assert_eq!(error.code(), 410);
}
