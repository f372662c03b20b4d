//! Against the server that Git itself has, `git http-backend`, run as CGI.

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;

use super::*;
use crate::chart::{ChartCredentials, ChartLimits, ChartStore, FetchRequest, Fetched, Source, Turn, digest};
use crate::git::testing::{backend, git};
use crate::remote::testing::{Handler, Reply, Server, Setup, dialer};

const CHART: &str = "apiVersion: v2\nname: web\nversion: 1.4.0\n";
const TEMPLATE: &str = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n";
const ANN: &str = "Basic YW5uOmh1bnRlcjI=";

/// A repository with a chart in `charts/web`, and what serves it.
struct Bench {
    folder: tempfile::TempDir,
    store: Arc<ChartStore>,
    server: Server,
    asked: Arc<Mutex<Vec<String>>>,
    sources: Vec<String>,
    credentials: Option<ChartCredentials>,
}

impl Bench {
    async fn new() -> Self {
        Self::with(&[], |_| {}).await
    }

    async fn with(init: &[&str], adjust: impl FnOnce(&mut ChartLimits)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("web.git")).unwrap();
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let (root, log) = (folder.path().to_owned(), Arc::clone(&asked));
        let handler: Handler = Arc::new(move |request| {
            let auth = request.headers().get("authorization").map_or("-", |value| value.to_str().unwrap());
            log.lock().push(format!("{} {auth}", request.uri().path()));
            backend(&root, request)
        });
        let server = Server::start(Setup { authority: None, alpn: &[], names: &[] }, handler).await;
        let mut limits = ChartLimits::default();
        adjust(&mut limits);
        let store = ChartStore::new(folder.path().join("cache"), dialer(), limits).unwrap();
        let sources = vec![format!("http://{}/", server.address)];
        let this = Self { folder, store, server, asked, sources, credentials: None };
        let mut args = vec!["init", "-q", "-b", "main"];
        args.extend(init);
        this.git(&args);
        this.git(&["config", "uploadpack.allowFilter", "true"]);
        this.write("charts/web/Chart.yaml", CHART);
        this.write("charts/web/templates/a.yaml", TEMPLATE);
        this.write("README.md", "all of it");
        this
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("web.git")
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn link(&self, target: &str, path: &str) {
        std::os::unix::fs::symlink(target, self.root().join(path)).unwrap();
    }

    fn git(&self, args: &[&str]) -> String {
        git(self.folder.path(), &self.root(), args)
    }

    fn commit(&self) -> String {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "a change"]);
        self.git(&["rev-parse", "HEAD"])
    }

    fn wish(&self, reference: Reference) -> Git {
        let url = format!("http://{}/web.git", self.server.address);
        Git { url, reference, path: Some("charts/web".to_owned()), pinned: None }
    }

    async fn fetch(&self, git: Git) -> Result<Fetched, ChartError> {
        let (source, credentials) = (Source::Git(git), self.credentials.clone());
        self.store
            .fetch(FetchRequest {
                source,
                credentials,
                sources: Some(&self.sources),
                pinned: None,
                turn: &Turn::new("team-a", "shop"),
            })
            .await
    }

    async fn main(&self) -> Result<Fetched, ChartError> {
        self.fetch(self.wish(Reference::Branch("main".to_owned()))).await
    }

    async fn refused(&self, reason: &str, words: &[&str]) {
        let error = self.main().await.unwrap_err();
        assert_eq!(error.reason(), reason, "{error}");
        for word in words {
            assert!(error.to_string().contains(word), "{word}: {error}");
        }
    }
}

#[tokio::test]
async fn a_tag_a_branch_and_a_commit_give_the_same_chart_and_its_commit() {
    let bench = Bench::new().await;
    let first = bench.commit();
    bench.git(&["tag", "plain"]);
    bench.git(&["tag", "-a", "v1", "-m", "one"]);
    bench.git(&["branch", "main2"]);
    let of_branch = bench.main().await.unwrap();
    assert_eq!(of_branch.commit.as_deref(), Some(first.as_str()));
    assert_eq!((of_branch.name.as_str(), of_branch.version.as_str()), ("web", "1.4.0"));
    for reference in [
        Reference::Tag("plain".to_owned()),
        Reference::Tag("v1".to_owned()),
        Reference::Commit(first.clone()),
    ] {
        let fetched = bench.fetch(bench.wish(reference)).await.unwrap();
        assert_eq!((&fetched.digest, &fetched.commit), (&of_branch.digest, &of_branch.commit));
    }
    // Another commit that leaves the folder alone gives the same archive; what is pinned stays what it was.
    bench.write("README.md", "more of it");
    let second = bench.commit();
    let moved = bench.main().await.unwrap();
    assert_eq!((&moved.digest, moved.commit.as_deref()), (&of_branch.digest, Some(second.as_str())));
    bench.write("charts/web/values.yaml", "a: 1\n");
    bench.commit();
    assert_ne!(bench.main().await.unwrap().digest, of_branch.digest);
    let pinned = Git { pinned: Some(first.clone()), ..bench.wish(Reference::Branch("main".to_owned())) };
    let fetched = bench.fetch(pinned).await.unwrap();
    assert_eq!((fetched.digest, fetched.commit), (of_branch.digest, Some(first)));
}

#[tokio::test]
async fn only_the_folder_is_fetched_where_the_server_can_leave_the_rest_out() {
    let bench = Bench::with(&[], |limits| limits.git.pack_bytes = 100_000).await;
    let noise: Vec<u8> = (0..300_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    bench.write("large.bin", noise);
    let commit = bench.commit();
    let fetched = bench.main().await.unwrap();
    bench.git(&["config", "uploadpack.allowFilter", "false"]);
    let error = bench.fetch(bench.wish(Reference::Commit(commit))).await.unwrap_err();
    assert_eq!(error.reason(), "ChartTooLarge");
    assert!(error.to_string().contains("uploadpack.allowFilter"), "{error}");
    // Without the large file, such a server gives the same chart.
    bench.git(&["rm", "-q", "large.bin"]);
    bench.commit();
    assert_eq!(bench.main().await.unwrap().digest, fetched.digest);
}

#[tokio::test]
async fn a_repository_with_longer_names_and_one_with_deltas_are_read_alike() {
    let long = Bench::with(&["--object-format=sha256"], |_| {}).await;
    let commit = long.commit();
    assert_eq!(commit.len(), 64);
    let fetched = long.main().await.unwrap();
    assert_eq!(fetched.commit, Some(commit));
    let bench = Bench::new().await;
    let lines: String = (0..5000).map(|n| format!("# line {n}\n")).collect();
    for number in 0..5 {
        let path = format!("charts/web/templates/large{number}.yaml");
        bench.write(&path, format!("{lines}# {number}\n{TEMPLATE}"));
        bench.commit();
    }
    bench.git(&["repack", "-a", "-d", "-f", "-q", "--depth=50", "--window=50"]);
    let packed = bench.main().await.unwrap();
    let files = packed.compiled.chart();
    assert_eq!(files.name(), "web");
    bench.git(&["config", "uploadpack.allowFilter", "false"]);
    assert_eq!(bench.main().await.unwrap().digest, packed.digest);
    // As the same files are packed without Git.
    let direct: std::collections::BTreeMap<String, Arc<[u8]>> = bench
        .git(&["ls-files", "charts/web"])
        .lines()
        .map(|path| {
            let data = std::fs::read(bench.root().join(path)).unwrap();
            (path.trim_start_matches("charts/web/").to_owned(), Arc::from(data))
        })
        .collect();
    assert_eq!(digest(&archive::pack(&direct, 32 << 20).unwrap()), packed.digest);
}

#[tokio::test]
async fn links_inside_the_folder_are_followed_and_what_helmignore_names_is_left_out() {
    let bench = Bench::new().await;
    bench.write("charts/web/files/one.txt", "one");
    bench.write("charts/web/big.psd", "a picture");
    bench.write("charts/web/.helmignore", "*.psd\nsecret/\n");
    bench.write("charts/web/secret/key", "key");
    bench.link("../../..", "charts/web/secret/out");
    bench.link("files/one.txt", "charts/web/two.txt");
    bench.link("files", "charts/web/more");
    bench.commit();
    let linked = bench.main().await.unwrap();
    let copied = Bench::new().await;
    for path in ["files/one.txt", "two.txt", "more/one.txt"] {
        copied.write(&format!("charts/web/{path}"), "one");
    }
    copied.write("charts/web/.helmignore", "*.psd\nsecret/\n");
    copied.commit();
    assert_eq!(linked.digest, copied.main().await.unwrap().digest);
}

#[tokio::test]
async fn what_leads_out_of_the_folder_is_refused() {
    for target in ["../../README.md", "/etc/passwd", "templates/../../../README.md"] {
        let bench = Bench::new().await;
        bench.link(target, "charts/web/values.yaml");
        bench.commit();
        bench.refused("ChartInvalid", &["values.yaml is a symbolic link to", target, "outside"]).await;
    }
    let bench = Bench::new().await;
    bench.link("nothing.yaml", "charts/web/values.yaml");
    bench.commit();
    bench.refused("ChartInvalid", &["values.yaml", "nothing.yaml", "not there"]).await;
    let bench = Bench::new().await;
    bench.link("b", "charts/web/a");
    bench.link("a", "charts/web/b");
    bench.commit();
    bench.refused("ChartInvalid", &["leads to links"]).await;
    let bench = Bench::new().await;
    bench.link(".", "charts/web/itself");
    bench.commit();
    bench.refused("ChartTooLarge", &["does a symbolic link lead"]).await;
    let bench = Bench::new().await;
    bench.link("charts", "other");
    bench.commit();
    let git = Git { path: Some("other/web".to_owned()), ..bench.wish(Reference::Branch("main".to_owned())) };
    let error = bench.fetch(git).await.unwrap_err();
    assert!(error.to_string().contains("other is a symbolic link"), "{error}");
}

#[tokio::test]
async fn submodules_and_large_files_kept_elsewhere_are_named() {
    let bench = Bench::new().await;
    let commit = bench.commit();
    bench.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{commit},charts/web/charts/db")]);
    bench.git(&["commit", "-q", "-m", "a submodule"]);
    bench.refused("ChartInvalid", &["charts/db is a submodule"]).await;
    let git = Git {
        path: Some("charts/web/charts/db".to_owned()),
        ..bench.wish(Reference::Branch("main".to_owned()))
    };
    let error = bench.fetch(git).await.unwrap_err();
    assert!(error.to_string().contains("charts/web/charts/db is a submodule"), "{error}");
    let bench = Bench::new().await;
    bench.write(
        "charts/web/charts/db-1.0.0.tgz",
        "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
    );
    bench.commit();
    bench.refused("ChartInvalid", &["charts/db-1.0.0.tgz", "Git LFS"]).await;
}

#[tokio::test]
async fn what_is_not_there_is_said_by_its_name() {
    let bench = Bench::new().await;
    let commit = bench.commit();
    let wish =
        |reference: Reference, path: &str| Git { path: Some(path.to_owned()), ..bench.wish(reference) };
    let branch = |name: &str| Reference::Branch(name.to_owned());
    for (git, words) in [
        (wish(branch("mai"), "charts/web"), "has no branch mai"),
        (wish(branch("main\n0000"), "charts/web"), "no name that Git has"),
        (wish(Reference::Tag("v9".to_owned()), "charts/web"), "has no tag v9"),
        (wish(Reference::Commit("0".repeat(40)), "charts/web"), "does not give commit 0000000"),
        (wish(Reference::Commit("0".repeat(64)), "charts/web"), "has no commit 0000000"),
        (wish(branch("main"), "charts/api"), "the commit has no charts/api"),
        (wish(branch("main"), "README.md"), "README.md is a file"),
    ] {
        let error = bench.fetch(git).await.unwrap_err();
        assert_eq!(error.reason(), "ChartNotFound", "{error}");
        assert!(error.to_string().contains(words), "{words}: {error}");
    }
    let error = bench.fetch(Git { path: None, ..bench.wish(branch("main")) }).await.unwrap_err();
    assert_eq!(error.reason(), "ChartInvalid");
    assert!(
        error.to_string().contains("no Chart.yaml") && error.to_string().contains(&commit[..12]),
        "{error}"
    );
    // A tree is no commit, though it has a name like one.
    let tree = bench.git(&["rev-parse", "HEAD^{tree}"]);
    let error = bench.fetch(bench.wish(Reference::Commit(tree))).await.unwrap_err();
    assert!(error.to_string().contains("commit"), "{error}");
    let git = Git { url: format!("http://{}/api.git", bench.server.address), ..bench.wish(branch("main")) };
    assert_eq!(bench.fetch(git).await.unwrap_err().reason(), "ChartNotFound");
}

#[tokio::test]
async fn a_redirected_repository_is_asked_where_it_is_without_the_login() {
    let bench = Bench::new().await;
    bench.commit();
    let target = format!("http://{}", bench.server.address);
    let log = Arc::<Mutex<Vec<String>>>::default();
    let (to, seen) = (target.clone(), Arc::clone(&log));
    let handler: Handler = Arc::new(move |request| {
        let auth = request.headers().get("authorization").map_or("-", |value| value.to_str().unwrap());
        seen.lock().push(format!("{} {auth}", request.uri().path()));
        let location = format!("{to}{}", request.uri().path_and_query().unwrap());
        Reply::text(301, "", "").header("location", location)
    });
    let front = Server::start(Setup { authority: None, alpn: &[], names: &[] }, handler).await;
    let git = || Git {
        url: format!("http://{}/web.git", front.address),
        ..bench.wish(Reference::Branch("main".to_owned()))
    };
    let credentials = ChartCredentials::read(
        &[("username".to_owned(), "ann"), ("password".to_owned(), "hunter2")].into(),
        None,
    );
    let fetch = |sources: Vec<String>| {
        let (store, source) = (Arc::clone(&bench.store), Source::Git(git()));
        let credentials = Some(credentials.clone().unwrap());
        async move {
            store
                .fetch(FetchRequest {
                    source,
                    credentials,
                    sources: Some(&sources),
                    pinned: None,
                    turn: &Turn::new("team-a", "shop"),
                })
                .await
        }
    };
    let front_alone = vec![format!("http://{}/", front.address)];
    let error = fetch(front_alone.clone()).await.unwrap_err();
    assert_eq!(error.reason(), "ChartSourceNotAllowed");
    assert!(bench.asked.lock().is_empty(), "what is not listed is not asked");
    fetch([front_alone, vec![target]].concat()).await.unwrap();
    assert_eq!(log.lock().len(), 2, "one first request each time, and the others where it led");
    assert!(log.lock().iter().all(|line| line.ends_with(ANN)));
    assert!(bench.asked.lock().len() >= 3 && bench.asked.lock().iter().all(|line| line.ends_with(" -")));
}

#[tokio::test]
async fn what_speaks_no_git_is_told_from_what_speaks_an_old_one() {
    let say = |kind: &'static str, body: &'static str| -> Handler {
        Arc::new(move |_| Reply::text(200, kind, body))
    };
    let bench = Bench::new().await;
    for (handler, words) in [
        (say("text/html", "<html>secret</html>"), "no Git repository over HTTP"),
        (
            say("application/x-git-upload-pack-advertisement", "001e# service=git-upload-pack\n0000"),
            "version 2 of Git's protocol",
        ),
    ] {
        let server = Server::start(Setup { authority: None, alpn: &[], names: &[] }, handler).await;
        let sources = [format!("http://{}/", server.address)];
        let git = Git {
            url: format!("http://{}/web.git", server.address),
            ..bench.wish(Reference::Branch("main".to_owned()))
        };
        let turn = Turn::new("team-a", "shop");
        let request = FetchRequest {
            source: Source::Git(git),
            credentials: None,
            sources: Some(&sources),
            pinned: None,
            turn: &turn,
        };
        let error = bench.store.fetch(request).await.unwrap_err().to_string();
        assert!(error.contains(words) && !error.contains("secret"), "{error}");
    }
}

#[test]
fn addresses_that_are_not_http_are_refused_with_what_to_write() {
    for (url, words) in [
        ("git@github.com:ann/web.git", "https://host/path"),
        ("ssh://git@github.com/ann/web.git", "is not http(s)"),
        ("https://me:hunter2@github.com/ann/web", "secretRef"),
        ("https://github.com/ann/web?token=hunter2", "own fields"),
        ("http://github.com/ann/web", "plain http"),
    ] {
        let git =
            Git { url: url.to_owned(), reference: Reference::Tag("v1".to_owned()), path: None, pinned: None };
        let error = git.home(None).unwrap_err().to_string();
        assert!(error.contains(words) && !error.contains("hunter2"), "{error}");
    }
}
