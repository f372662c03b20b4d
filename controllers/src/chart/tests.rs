use std::io::Write as _;

use bytes::Bytes;

use super::*;
use crate::remote::testing::{Handler, Reply, Server, Setup, dialer};

mod crowded;
mod memory;
mod origins;

/// A packed chart.
fn packed(files: &[(&str, &str)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        tar.append_data(&mut header, format!("web/{name}"), text.as_bytes()).unwrap();
    }
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&tar.into_inner().unwrap()).unwrap();
    gzip.finish().unwrap()
}

pub(crate) fn chart_yaml(name: &str, version: &str, more: &str) -> Vec<u8> {
    let yaml = format!("apiVersion: v2\nname: {name}\nversion: {version}\nappVersion: \"7.1\"\n{more}");
    packed(&[
        ("Chart.yaml", &yaml),
        ("templates/cm.yaml", "kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n"),
    ])
}

/// Replies by path; everything asked is noted as `path authorization`.
#[derive(Clone, Default)]
#[allow(clippy::type_complexity)]
pub(crate) struct Repo {
    replies: Arc<Mutex<BTreeMap<String, Arc<dyn Fn(&str) -> Reply + Send + Sync>>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Repo {
    pub(crate) fn put(&self, path: &str, reply: impl Fn() -> Reply + Send + Sync + 'static) {
        self.put_for(path, move |_| reply());
    }

    /// A reply that depends on who asks.
    pub(super) fn put_for(&self, path: &str, reply: impl Fn(&str) -> Reply + Send + Sync + 'static) {
        self.replies.lock().insert(path.to_owned(), Arc::new(reply));
    }

    pub(crate) fn file(&self, path: &str, bytes: impl Into<Bytes>) {
        let bytes = bytes.into();
        self.put(path, move || Reply::text(200, "application/octet-stream", bytes.clone()));
    }

    pub(crate) fn index(&self, name: &str, version: &str, url: &str, digest: Option<&str>) {
        let digest = digest.map(|digest| format!("    digest: {}\n", digest.trim_start_matches("sha256:")));
        let text = format!(
            "apiVersion: v1\nentries:\n  other:\n  - version: 9.9.9\n    urls: [x.tgz]\n  {name}:\n  - version: {version}\n    urls: [\"{url}\"]\n{}generated: \"2026-01-01\"\n",
            digest.unwrap_or_default()
        );
        self.file("/charts/index.yaml", text);
    }

    /// A repository with one good chart.
    pub(crate) fn good(&self) -> Vec<u8> {
        let archive = chart_yaml("web", "1.4.0", "");
        self.index("web", "1.4.0", "web-1.4.0.tgz", Some(&digest(&archive)));
        self.file("/charts/web-1.4.0.tgz", archive.clone());
        archive
    }

    pub(super) fn handler(&self) -> Handler {
        let Self { replies, asked } = self.clone();
        Arc::new(move |request| {
            let path = request.uri().path().to_owned();
            let shown = request.uri().path_and_query().map_or(path.as_str(), |both| both.as_str());
            let auth = request.headers().get("authorization").map_or("-", |value| value.to_str().unwrap());
            asked.lock().push(format!("{shown} {auth}"));
            let reply = replies.lock().get(&path).cloned();
            reply.map_or_else(|| Reply::text(404, "text/plain", "secret page"), |make| make(auth))
        })
    }

    pub(crate) async fn serve(&self) -> Server {
        Server::start(Setup { authority: None, alpn: &[], names: &[] }, self.handler()).await
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock())
    }
}

struct Bench {
    store: Arc<ChartStore>,
    repo: Repo,
    server: Server,
    sources: Vec<String>,
    folder: tempfile::TempDir,
}

impl Bench {
    async fn new() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(adjust: impl FnOnce(&mut ChartLimits)) -> Self {
        let repo = Repo::default();
        let server = repo.serve().await;
        let folder = tempfile::tempdir().unwrap();
        let mut limits = ChartLimits::default();
        adjust(&mut limits);
        let store = ChartStore::new(folder.path().to_owned(), dialer(), limits).unwrap();
        let sources = vec![format!("http://{}/charts/", server.address)];
        Self { store, repo, server, sources, folder }
    }

    fn again(&mut self) {
        self.again_with(ChartLimits::default());
    }

    fn again_with(&mut self, limits: ChartLimits) {
        self.store = ChartStore::new(self.folder.path().to_owned(), dialer(), limits).unwrap();
    }

    /// From here on an answer has to begin within a moment.
    fn impatient(&mut self) {
        self.again_with(ChartLimits { answer_begins: Duration::from_millis(500), ..ChartLimits::default() });
    }

    fn source(&self) -> Source {
        let url = format!("http://{}/charts", self.server.address);
        Source::Repository(Repository { url, name: "web".to_owned(), version: "1.4.0".to_owned() })
    }

    async fn fetch(&self, pinned: Option<&str>) -> Result<Fetched, ChartError> {
        self.fetch_as(None, pinned).await
    }

    async fn fetch_as(
        &self,
        credentials: Option<ChartCredentials>,
        pinned: Option<&str>,
    ) -> Result<Fetched, ChartError> {
        let turn = Turn::new("team-a", "shop");
        let request = FetchRequest {
            source: self.source(),
            credentials,
            sources: Some(&self.sources),
            pinned,
            turn: &turn,
        };
        self.store.fetch(request).await
    }

    async fn refused(&self) -> ChartError {
        self.fetch(None).await.unwrap_err()
    }
}

#[allow(clippy::unnecessary_wraps)] // as requests want it
fn login(user: &str) -> Option<ChartCredentials> {
    let data: BTreeMap<String, &str> =
        [("username".to_owned(), user), ("password".to_owned(), "hunter2")].into();
    Some(ChartCredentials::read(&data, None).unwrap())
}

#[tokio::test]
async fn a_chart_is_fetched_verified_and_compiled() {
    let bench = Bench::new().await;
    let archive = bench.repo.good();
    let fetched = bench.fetch(None).await.unwrap();
    assert_eq!(
        (fetched.name.as_str(), fetched.version.as_str(), fetched.app_version.as_str()),
        ("web", "1.4.0", "7.1")
    );
    assert_eq!((fetched.digest, &*fetched.bytes), (digest(&archive), archive.as_slice()));
    assert_eq!(fetched.compiled.chart().name(), "web");
}

#[tokio::test]
async fn a_pinned_chart_on_disk_needs_no_source_even_after_a_restart() {
    let mut bench = Bench::new().await;
    bench.repo.good();
    let first = bench.fetch(None).await.unwrap();
    bench.repo.asked();
    bench.again();
    let second = bench.fetch(Some(&first.digest)).await.unwrap();
    assert_eq!(second.bytes, first.bytes);
    assert!(bench.repo.asked().is_empty());
}

#[tokio::test]
async fn an_archive_that_changed_on_disk_is_fetched_again() {
    let bench = Bench::new().await;
    bench.repo.good();
    let first = bench.fetch(None).await.unwrap();
    let path = bench.folder.path().join("archives").join(first.digest.trim_start_matches("sha256:"));
    std::fs::write(&path, b"junk").unwrap();
    assert_eq!(bench.fetch(Some(&first.digest)).await.unwrap().bytes, first.bytes);
    assert_eq!(std::fs::read(path).unwrap(), &*first.bytes);
}

#[tokio::test]
async fn a_digest_alone_gives_nobody_somebody_elses_chart() {
    let bench = Bench::new().await;
    bench.repo.good();
    let first = bench.fetch_as(login("ann"), None).await.unwrap();
    bench.repo.put("/charts/index.yaml", || Reply::text(401, "text/plain", ""));
    assert!(bench.fetch_as(login("ann"), Some(&first.digest)).await.is_ok(), "hers is on disk");
    for other in [None, login("bob")] {
        let error = bench.fetch_as(other, Some(&first.digest)).await.unwrap_err();
        assert_eq!(error.reason(), "ChartUnauthorized");
    }
    // An index of his own that names her digest does not give it to him either.
    let hex = first.digest.clone();
    bench.repo.index("web", "1.4.0", "nothing.tgz", Some(&hex));
    assert_eq!(bench.fetch_as(login("bob"), None).await.unwrap_err().reason(), "ChartNotFound");
}

#[tokio::test]
async fn the_same_version_with_other_bytes_is_refused_with_both_digests() {
    let bench = Bench::new().await;
    bench.repo.good();
    let first = bench.fetch(None).await.unwrap().digest;
    let other = chart_yaml("web", "1.4.0", "description: changed\n");
    bench.repo.index("web", "1.4.0", "web-1.4.0.tgz", Some(&digest(&other)));
    bench.repo.file("/charts/web-1.4.0.tgz", other.clone());
    std::fs::remove_dir_all(bench.folder.path().join("archives")).unwrap();
    let error = bench.fetch(Some(&first)).await.unwrap_err();
    assert_eq!(error.reason(), "ChartDigestChanged");
    assert!(error.to_string().contains(&first) && error.to_string().contains(&digest(&other)), "{error}");
    // Without a digest in the index the archive itself shows it.
    bench.repo.index("web", "1.4.0", "web-1.4.0.tgz", None);
    assert_eq!(bench.fetch(Some(&first)).await.unwrap_err().reason(), "ChartDigestChanged");
}

#[tokio::test]
async fn an_archive_must_be_what_the_index_promised() {
    let bench = Bench::new().await;
    let archive = chart_yaml("web", "1.4.0", "");
    bench.repo.index("web", "1.4.0", "web-1.4.0.tgz", Some(&"0".repeat(64)));
    bench.repo.file("/charts/web-1.4.0.tgz", archive);
    let error = bench.refused().await;
    assert_eq!(error.reason(), "ChartInvalid");
    assert!(error.to_string().contains("index says"), "{error}");
    bench.repo.index("web", "1.4.0", "web-1.4.0.tgz", None);
    bench.repo.file("/charts/web-1.4.0.tgz", chart_yaml("evil", "1.4.0", ""));
    let error = bench.refused().await;
    assert!(error.reason() == "ChartInvalid" && error.to_string().contains("evil"), "{error}");
    bench.repo.file("/charts/web-1.4.0.tgz", chart_yaml("web", "2.0.0", ""));
    assert!(bench.refused().await.to_string().contains("2.0.0"));
}

#[tokio::test]
async fn libraries_junk_and_pages_are_told_apart() {
    let bench = Bench::new().await;
    bench.repo.index("web", "1.4.0", "web-1.4.0.tgz", None);
    bench.repo.file("/charts/web-1.4.0.tgz", chart_yaml("web", "1.4.0", "type: library\n"));
    assert_eq!(bench.refused().await.reason(), "ChartIsLibrary");
    bench.repo.file("/charts/web-1.4.0.tgz", "<html>secret</html>");
    let error = bench.refused().await;
    assert!(error.reason() == "ChartInvalid" && !error.to_string().contains("secret"), "{error}");
    bench.repo.file("/charts/index.yaml", "<html>secret: {</html>");
    let error = bench.refused().await;
    assert!(error.reason() == "ChartInvalid" && !error.to_string().contains("secret"), "{error}");
    bench.repo.index("web", "1.5.0", "web-1.5.0.tgz", None);
    let error = bench.refused().await;
    assert!(error.reason() == "ChartNotFound" && error.to_string().ends_with("it has 1.5.0"), "{error}");
    bench.repo.index("api", "1.4.0", "api.tgz", None);
    assert!(bench.refused().await.to_string().contains("lists no chart web"));
}

#[tokio::test]
async fn an_archive_of_two_gigabytes_is_given_up_before_it_is_read() {
    let bench = Bench::new().await;
    bench.repo.index("web", "1.4.0", "web-1.4.0.tgz", None);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let sent = tokio::spawn(async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 4096];
        let _ = stream.read(&mut request).await.unwrap();
        let head = "HTTP/1.1 200 OK\r\ncontent-length: 2147483648\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut sent = 0_usize;
        while stream.write_all(&[0; 4096]).await.is_ok() {
            sent += 4096;
        }
        sent
    });
    bench.repo.index("web", "1.4.0", &format!("http://{address}/web.tgz"), None);
    let mut bench = bench;
    bench.sources.push(format!("http://{address}/"));
    let error = bench.refused().await;
    assert_eq!(error.reason(), "ChartTooLarge");
    assert!(error.to_string().contains("announces 2147483648 bytes"), "{error}");
    let sent = sent.await.unwrap();
    assert!(sent < 32 << 20, "the connection was closed after {sent} bytes");
}

#[tokio::test]
async fn large_answers_are_given_up() {
    let bench = Bench::with(|limits| limits.archive_bytes = 1000).await;
    bench.repo.index("web", "1.4.0", "web-1.4.0.tgz", None);
    bench.repo.file("/charts/web-1.4.0.tgz", vec![0_u8; 5000]);
    assert_eq!(bench.refused().await.reason(), "ChartTooLarge");
    let bench = Bench::with(|limits| limits.index_bytes = 1000).await;
    bench.repo.file("/charts/index.yaml", vec![b' '; 5000]);
    assert_eq!(bench.refused().await.reason(), "ChartTooLarge");
    let bench = Bench::with(|limits| limits.load.archive_bytes = 100).await;
    bench.repo.good();
    assert_eq!(bench.refused().await.reason(), "ChartTooLarge");
}

#[tokio::test]
async fn refusals_outages_and_silence_have_their_reasons() {
    let mut bench = Bench::new().await;
    for (status, reason) in [
        (401, "ChartUnauthorized"),
        (403, "ChartUnauthorized"),
        (404, "ChartNotFound"),
        (503, "SourceUnreachable"),
    ] {
        bench.repo.put("/charts/index.yaml", move || Reply::text(status, "text/html", "stranger's page"));
        let error = bench.refused().await;
        assert_eq!((error.reason(), error.is_transient()), (reason, reason == "SourceUnreachable"));
        assert!(!error.to_string().contains("page"), "{error}");
    }
    bench.impatient();
    bench.repo.put("/charts/index.yaml", Reply::silence);
    let error = bench.refused().await;
    assert!(error.reason() == "SourceUnreachable" && error.to_string().contains("within"), "{error}");
}

#[tokio::test]
async fn many_who_want_the_same_pinned_chart_cause_one_download() {
    let bench = Bench::new().await;
    let pinned = digest(&bench.repo.good());
    let all = futures::future::join_all((0..10).map(|_| bench.fetch(Some(&pinned)))).await;
    assert_eq!(all.iter().filter(|one| one.is_ok()).count(), 1);
    assert!(all.iter().filter_map(|one| one.as_ref().err()).all(|error| error.reason() == BUSY));
    assert!(bench.store.wanted.take().is_some(), "who waits is woken");
    assert!(bench.fetch(Some(&pinned)).await.is_ok());
    assert_eq!(bench.repo.asked().len(), 2, "one index, one archive");
}

#[tokio::test]
async fn the_disk_is_bounded_and_the_newest_stays() {
    let bench = Bench::with(|limits| limits.disk_bytes = 1).await;
    bench.repo.good();
    let fetched = bench.fetch(None).await.unwrap();
    let other = chart_yaml("web", "1.4.0", "description: more\n");
    bench.repo.index("web", "1.4.0", "web-1.4.0.tgz", None);
    bench.repo.file("/charts/web-1.4.0.tgz", other.clone());
    bench.fetch(None).await.unwrap();
    let names: Vec<String> = std::fs::read_dir(bench.folder.path().join("archives"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names, [digest(&other).trim_start_matches("sha256:")]);
    assert_ne!(digest(&other), fetched.digest);
}

#[tokio::test]
async fn a_config_map_holds_an_archive_or_is_told_what_it_should_hold() {
    let bench = Bench::new().await;
    let turn = Turn::new("team-a", "shop");
    let of = |bytes: Vec<u8>| FetchRequest {
        source: Source::ConfigMap { label: "ConfigMap shop-chart, key chart.tgz".to_owned(), bytes },
        credentials: None,
        sources: None,
        pinned: None,
        turn: &turn,
    };
    let archive = chart_yaml("web", "0.1.0", "");
    assert_eq!(bench.store.fetch(of(archive.clone())).await.unwrap().digest, digest(&archive));
    let error = bench.store.fetch(of(b"kind: nothing".to_vec())).await.unwrap_err();
    assert!(error.reason() == "ChartInvalid" && error.to_string().contains("key chart.tgz"), "{error}");
    let pinned = FetchRequest { pinned: Some("sha256:00"), ..of(archive) };
    assert_eq!(bench.store.fetch(pinned).await.unwrap_err().reason(), "ChartDigestChanged");
}

#[test]
fn half_credentials_are_refused_and_none_are_shown() {
    let read = |keys: &[(&str, &str)]| {
        let keys = keys.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect::<BTreeMap<_, _>>();
        ChartCredentials::read(&keys, Some("https://charts.example.com/"))
    };
    assert!(read(&[("username", "a")]).unwrap_err().to_string().contains("needs both"));
    assert!(read(&[("tls.crt", "a")]).unwrap_err().to_string().contains("tls.key"));
    assert!(read(&[(".dockerconfigjson", "{}")]).unwrap_err().to_string().contains("no login for"));
    let auths = r#"{"auths": {"charts.example.com": {"username": "ann", "password": "hunter2"}}}"#;
    assert_eq!(read(&[(".dockerconfigjson", auths)]).unwrap().username.as_deref(), Some("ann"));
    let shown = format!("{:?}", read(&[("username", "ann"), ("password", "hunter2")]).unwrap());
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn an_index_is_searched_in_yaml_and_json() {
    let yaml = b"entries:\n  web:\n  - version: v1.4.0\n    urls: [a]\n    digest: d\n  - {version: 1.4.0, urls: [b]}\n  - {version: 1.3}\n";
    let index::Found::Entry(entry) = index::find(yaml, "web", "1.4.0").unwrap() else { panic!() };
    assert_eq!(entry.urls.unwrap(), ["b"], "the exact text wins over a v");
    let json = br#" {"entries": {"web": [{"version": "1.4.0", "urls": ["a"], "extra": {"x": [1]}}]}}"#;
    assert!(matches!(index::find(json, "web", "1.4.0"), Ok(index::Found::Entry(_))));
    assert_eq!(index::find(yaml, "api", "1.0.0"), Ok(index::Found::Nothing));
    assert!(index::find(b"entries: [", "api", "1.0.0").unwrap_err().contains("line"));
}
