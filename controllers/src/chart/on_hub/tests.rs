use super::*;
use crate::memory::MemoryServer;

const OPERATOR: &str = "emco-system";

fn pin(bytes: &[u8]) -> ChartPin {
    ChartPin {
        name: "web".to_owned(),
        chart: "web".to_owned(),
        version: "1.0.0".to_owned(),
        app_version: None,
        digest: digest(bytes),
        commit: None,
        source: "sha256:source".to_owned(),
        last_look: None,
    }
}

fn with_namespace() -> MemoryServer {
    let server = MemoryServer::new();
    server.put("test", &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OPERATOR}}));
    server
}

fn hub(server: &MemoryServer) -> Hub<'_> {
    Hub { server, namespace: OPERATOR }
}

fn secrets(server: &MemoryServer) -> usize {
    server.objects().values().filter(|object| object["kind"] == "Secret").count()
}

#[tokio::test]
async fn an_archive_of_several_parts_is_read_as_it_was_kept() {
    let (server, bytes) = (with_namespace(), vec![7; PART * 2 + 5]);
    let kept = OnHub::default().keep(hub(&server), ("team-a", "shop"), &pin(&bytes), &bytes).await.unwrap();
    assert_eq!(kept, Kept::Yes);
    assert_eq!(secrets(&server), 3);
    // Another process.
    let next = OnHub::default();
    let read = next.read(hub(&server), "team-a", &pin(&bytes)).await.unwrap();
    assert_eq!(read.as_deref(), Some(&bytes[..]));
    server.take_seen();
    next.keep(hub(&server), ("team-a", "shop"), &pin(&bytes), &bytes).await.unwrap();
    assert!(server.take_seen().is_empty(), "what the hub has costs no request");
}

#[tokio::test]
async fn an_archive_of_another_namespace_is_not_found() {
    let (server, bytes) = (with_namespace(), b"archive");
    let on_hub = OnHub::default();
    on_hub.keep(hub(&server), ("team-a", "shop"), &pin(bytes), bytes).await.unwrap();
    assert_eq!(on_hub.read(hub(&server), "team-b", &pin(bytes)).await.unwrap(), None);
    let other = ChartPin { source: "sha256:other".to_owned(), ..pin(bytes) };
    assert_eq!(on_hub.read(hub(&server), "team-a", &other).await.unwrap(), None);
}

#[tokio::test]
async fn a_damaged_archive_is_removed_and_kept_again() {
    let (server, bytes) = (with_namespace(), vec![7; PART + 1]);
    let on_hub = OnHub::default();
    on_hub.keep(hub(&server), ("team-a", "shop"), &pin(&bytes), &bytes).await.unwrap();
    let damaged = part(&name("team-a", &pin(&bytes)), 1);
    let path = ApiPath::core(OPERATOR, "secrets").then(&damaged);
    let mut object = server.get_opt(&path).await.unwrap().unwrap();
    object["data"][KEY] = json!(STANDARD.encode(b"other"));
    // Immutable: a change means another object.
    object["metadata"]
        .as_object_mut()
        .unwrap()
        .retain(|key, _| ["name", "namespace", "labels", "annotations"].contains(&key.as_str()));
    server.remove(path.as_str());
    server.put("test", &object);
    let next = OnHub::default();
    assert_eq!(next.read(hub(&server), "team-a", &pin(&bytes)).await.unwrap(), None);
    assert_eq!(secrets(&server), 0);
    next.keep(hub(&server), ("team-a", "shop"), &pin(&bytes), &bytes).await.unwrap();
    assert!(next.read(hub(&server), "team-a", &pin(&bytes)).await.unwrap().is_some());
}

#[tokio::test]
async fn a_part_that_an_answer_lacks_removes_no_other_part() {
    let (server, bytes) = (with_namespace(), vec![7; PART * 2 + 1]);
    let on_hub = OnHub::default();
    on_hub.keep(hub(&server), ("team-a", "shop"), &pin(&bytes), &bytes).await.unwrap();
    let lost = part(&name("team-a", &pin(&bytes)), 1);
    server.remove(ApiPath::core(OPERATOR, "secrets").then(&lost).as_str());
    assert_eq!(on_hub.read(hub(&server), "team-a", &pin(&bytes)).await.unwrap(), None);
    assert_eq!(secrets(&server), 2);
    on_hub.keep(hub(&server), ("team-a", "shop"), &pin(&bytes), &bytes).await.unwrap();
    assert_eq!(secrets(&server), 3);
    assert!(on_hub.read(hub(&server), "team-a", &pin(&bytes)).await.unwrap().is_some());
}

#[tokio::test]
async fn a_namespace_keeps_as_much_as_it_may_and_delays_no_other() {
    let server = with_namespace();
    let on_hub = OnHub::default();
    let archive = |n: u8| vec![n; LARGEST];
    for n in 0..4 {
        let bytes = archive(n);
        assert_eq!(
            on_hub.keep(hub(&server), ("team-a", "shop"), &pin(&bytes), &bytes).await.unwrap(),
            Kept::Yes
        );
    }
    let more = archive(9);
    let full = on_hub.keep(hub(&server), ("team-a", "shop"), &pin(&more), &more).await.unwrap();
    assert_eq!(full, Kept::Full);
    assert!(full.sentence().unwrap().contains("32 MiB"));
    assert_eq!(on_hub.keep(hub(&server), ("team-b", "shop"), &pin(&more), &more).await.unwrap(), Kept::Yes);
    let large = vec![1; LARGEST + 1];
    let large = on_hub.keep(hub(&server), ("team-b", "shop"), &pin(&large), &large).await.unwrap();
    assert_eq!(large, Kept::TooLarge);
}

/// Lets others run before each request.
struct Slow(MemoryServer);

#[async_trait::async_trait]
impl ApiServer for Slow {
    async fn send(&self, request: Request) -> ApiResult<Value> {
        tokio::task::yield_now().await;
        self.0.send(request).await
    }

    async fn watch(
        &self,
        request: Request,
    ) -> ApiResult<futures::stream::BoxStream<'static, ApiResult<crate::api::WatchEvent>>> {
        self.0.watch(request).await
    }
}

#[tokio::test]
async fn reconciles_that_run_at_once_keep_no_more_than_the_namespace_may() {
    let server = with_namespace();
    let (on_hub, slow) = (OnHub::default(), Slow(server.clone()));
    let hub = Hub { server: &slow, namespace: OPERATOR };
    let archives: Vec<(ChartPin, Vec<u8>)> =
        (0..8).map(|n| vec![n; LARGEST]).map(|bytes| (pin(&bytes), bytes)).collect();
    let all = archives.iter().map(|(pin, bytes)| on_hub.keep(hub, ("team-a", "shop"), pin, bytes));
    let kept = futures::future::try_join_all(all).await.unwrap();
    assert_eq!(kept.iter().filter(|kept| **kept == Kept::Yes).count(), 4, "{kept:?}");
    assert_eq!(secrets(&server), 4 * LARGEST.div_ceil(PART));
}

#[tokio::test]
async fn who_found_no_room_is_woken_when_there_is_some() {
    let server = with_namespace();
    let wanted = Arc::<KeyQueue>::default();
    let on_hub = OnHub::new(Arc::clone(&wanted));
    let archives: Vec<Vec<u8>> = (0..5).map(|n| vec![n; LARGEST]).collect();
    for bytes in &archives {
        on_hub.keep(hub(&server), ("team-a", "shop"), &pin(bytes), bytes).await.unwrap();
    }
    assert!(on_hub.is_full(&owner("team-a")) && !on_hub.is_full(&owner("team-b")));
    assert_eq!(wanted.take(), None);
    let gone = name("team-a", &pin(&archives[0]));
    on_hub.tear(&owner("team-a"), &gone);
    on_hub.forget(&owner("team-a"), &gone);
    assert_eq!(wanted.take(), Some(("team-a".to_owned(), "shop".to_owned())));
    assert!(!on_hub.is_full(&owner("team-a")));
    let last = &archives[4];
    let kept = on_hub.keep(hub(&server), ("team-a", "shop"), &pin(last), last).await.unwrap();
    assert_eq!(kept, Kept::Yes);
}

#[tokio::test]
async fn parts_of_an_archive_that_was_not_written_whole_take_its_room() {
    let (server, on_hub) = (with_namespace(), OnHub::default());
    let bytes = vec![7; LARGEST];
    server.faults(Some(Arc::new(|request: &Request, _| {
        let lost = || crate::api::ApiError::Unreachable {
            reason: "ConnectionLost",
            message: "the connection was lost".to_owned(),
        };
        let first =
            request.body.as_ref().is_some_and(|body| String::from_utf8_lossy(&body.1).contains("-0\""));
        first.then(|| crate::memory::Fault::Refuse(lost()))
    })));
    on_hub.keep(hub(&server), ("team-a", "shop"), &pin(&bytes), &bytes).await.unwrap_err();
    server.faults(None);
    for process in [on_hub, OnHub::default()] {
        assert_eq!(process.read(hub(&server), "team-a", &pin(&bytes)).await.unwrap(), None);
        let others: Vec<Vec<u8>> = (0..4).map(|n| vec![n; LARGEST]).collect();
        let mut kept = Vec::new();
        for other in &others {
            let one = process.keep(hub(&server), ("team-a", "shop"), &pin(other), other).await.unwrap();
            kept.push(one);
        }
        assert_eq!(kept, [Kept::Yes, Kept::Yes, Kept::Yes, Kept::Full]);
    }
    let next = OnHub::default();
    let again = next.keep(hub(&server), ("team-a", "shop"), &pin(&bytes), &bytes).await.unwrap();
    assert_eq!(again, Kept::Yes);
    assert!(next.read(hub(&server), "team-a", &pin(&bytes)).await.unwrap().is_some());
}
