//! Many who want charts of slow servers, and others beside them.

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;

use super::*;

impl Bench {
    async fn fetch_for(&self, project: &str, path: &str, n: usize) -> Result<Fetched, ChartError> {
        let turn = Turn::new(project, &format!("app-{n}"));
        let url = format!("http://{}/charts{path}", self.server.address);
        let version = if path.is_empty() { "1.4.0".to_owned() } else { format!("1.0.{n}") };
        let source = Source::Repository(Repository { url, name: "web".to_owned(), version });
        let sources = Some(self.sources.as_slice());
        let request = FetchRequest { source, credentials: None, sources, pinned: None, turn: &turn };
        self.store.fetch(request).await
    }

    async fn at_hand(&self, pinned: &str) -> bool {
        let turn = Turn::new("team-a", "shop");
        let (source, sources) = (self.source(), Some(self.sources.as_slice()));
        let request = FetchRequest { source, credentials: None, sources, pinned: Some(pinned), turn: &turn };
        self.store.at_hand(request).await.is_some()
    }
}

#[tokio::test]
async fn slow_servers_of_one_project_leave_places_to_others() {
    let bench = Bench::with(|limits| limits.answer_begins = Duration::from_mins(1)).await;
    bench.repo.good();
    bench.repo.put("/charts/slow/index.yaml", Reply::silence);
    let mut slow: FuturesUnordered<_> = (0..12).map(|n| bench.fetch_for("team-a", "/slow", n)).collect();
    for _ in 0..10 {
        let refused = slow.next().await.unwrap().unwrap_err();
        assert_eq!(refused.reason(), BUSY, "nobody waits for a place");
    }
    tokio::select! {
        biased;
        ended = slow.next() => panic!("the others wait for {ended:?}"),
        got = bench.fetch_for("team-b", "", 0) => assert_eq!(got.unwrap().name, "web"),
    }
    assert!(bench.store.wanted.take().is_none(), "team-a has its share");
    drop(slow);
    let woken: Vec<_> = std::iter::from_fn(|| bench.store.wanted.take()).collect();
    assert_eq!(woken.len(), 2, "{woken:?}");
}

#[tokio::test]
async fn a_chart_that_is_not_at_hand_is_not_downloaded_by_who_looks() {
    let mut bench = Bench::new().await;
    bench.repo.good();
    let pinned = digest(&chart_yaml("web", "1.4.0", ""));
    assert!(!bench.at_hand(&pinned).await);
    assert!(bench.repo.asked().is_empty());
    bench.fetch(None).await.unwrap();
    bench.repo.asked();
    assert!(bench.at_hand(&pinned).await);
    std::fs::remove_dir_all(bench.folder.path().join("archives")).unwrap();
    assert!(bench.at_hand(&pinned).await, "it is in memory");
    assert!(!bench.at_hand(&digest(b"another")).await);
    bench.again();
    assert!(!bench.at_hand(&pinned).await, "neither on disk nor in memory");
    assert!(bench.repo.asked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_chart_that_cannot_be_kept_is_wanted_once_a_minute() {
    let bench = Bench::new().await;
    let wanted = || {
        bench.store.want("team-a", "shop");
        bench.store.wanted.take().is_some()
    };
    assert_eq!([wanted(), wanted()], [true, false]);
    tokio::time::advance(WANTED_EACH).await;
    assert_eq!([wanted(), wanted()], [true, false]);
}

#[tokio::test]
async fn archives_of_one_project_leave_a_place_to_unpack_to_others() {
    let bench = Bench::new().await;
    let archive =
        |name: &str| packed(&[("Chart.yaml", &format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n"))]);
    let unpack = async |project: &str, n: usize| {
        let turn = Turn::new(project, "shop");
        let source = Source::ConfigMap {
            label: "ConfigMap shop".to_owned(),
            bytes: archive(&format!("{project}{n}")),
        };
        bench
            .store
            .fetch(FetchRequest { source, credentials: None, sources: None, pinned: None, turn: &turn })
            .await
    };
    let loud: Arc<str> = Arc::from("loud");
    let held = bench.store.works.take(&loud).await;
    let mut waiting: FuturesUnordered<_> = (0..9).map(|n| unpack("loud", n)).collect();
    tokio::select! {
        biased;
        ended = waiting.next() => panic!("it has its share: {ended:?}"),
        got = unpack("quiet", 0) => assert_eq!(got.unwrap().name, "quiet0"),
    }
    drop(held);
    while let Some(got) = waiting.next().await {
        got.unwrap();
    }
}
