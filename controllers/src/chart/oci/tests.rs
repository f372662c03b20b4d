use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::chart::tests::{Repo, chart_yaml};
use crate::chart::{ChartCredentials, ChartLimits, ChartStore, FetchRequest, Fetched, Source, Turn};
use crate::remote::testing::{Reply, Server, dialer};

const ANN: &str = "Basic YW5uOmh1bnRlcjI=";

struct Bench {
    store: Arc<ChartStore>,
    repo: Repo,
    server: Server,
    sources: Vec<String>,
    credentials: Option<ChartCredentials>,
    _folder: tempfile::TempDir,
}

impl Bench {
    async fn new() -> Self {
        let repo = Repo::default();
        let server = repo.serve().await;
        let folder = tempfile::tempdir().unwrap();
        let store = ChartStore::new(folder.path().to_owned(), dialer(), ChartLimits::default()).unwrap();
        let sources = vec![format!("http://{}/", server.address)];
        Self { store, repo, server, sources, credentials: None, _folder: folder }
    }

    fn login(&mut self, keys: &[(&str, &str)]) {
        let keys = keys.iter().map(|(key, value)| ((*key).to_owned(), *value)).collect();
        let url = format!("https://{}/", self.server.address);
        self.credentials = Some(ChartCredentials::read(&keys, Some(&url)).unwrap());
    }

    fn oci(&self, version: Option<&str>, digest: Option<&str>) -> Oci {
        let url = format!("oci://{}/charts/web", self.server.address);
        Oci { url, version: version.map(str::to_owned), digest: digest.map(str::to_owned) }
    }

    async fn fetch(&self, oci: Oci, pinned: Option<&str>) -> Result<Fetched, ChartError> {
        let (source, credentials) = (Source::Oci(oci), self.credentials.clone());
        self.store
            .fetch(FetchRequest {
                source,
                credentials,
                sources: Some(&self.sources),
                pinned,
                turn: &Turn::new("team-a", "shop"),
            })
            .await
    }

    async fn refused(&self, version: &str) -> ChartError {
        self.fetch(self.oci(Some(version), None), None).await.unwrap_err()
    }

    /// Serves a chart under a tag and its digest; answers the digest of the manifest.
    fn push(&self, tag: &str, archive: &[u8]) -> String {
        let layer = digest(archive);
        self.repo.file(&format!("/v2/charts/web/blobs/{layer}"), archive.to_vec());
        self.manifest(tag, &manifest(&layer, archive.len()))
    }

    fn manifest(&self, tag: &str, manifest: &Value) -> String {
        let bytes = manifest.to_string().into_bytes();
        let name = digest(&bytes);
        for reference in [tag, &name] {
            self.repo.file(&format!("/v2/charts/web/manifests/{reference}"), bytes.clone());
        }
        name
    }

    /// Asks for a token of `realm` before it gives anything.
    fn guard(&self, tag: &str, archive: &[u8], realm: &str) {
        let challenge =
            format!("Bearer realm=\"{realm}\",service=\"reg\",scope=\"repository:charts/web:pull,push\"");
        let layer = digest(archive);
        let bodies = [
            (
                format!("/v2/charts/web/manifests/{tag}"),
                manifest(&layer, archive.len()).to_string().into_bytes(),
            ),
            (format!("/v2/charts/web/blobs/{layer}"), archive.to_vec()),
        ];
        for (path, body) in bodies {
            let challenge = challenge.clone();
            self.repo.put_for(&path, move |authorization| {
                if authorization == "Bearer t0ken" {
                    Reply::text(200, "application/octet-stream", body.clone())
                } else {
                    Reply::text(401, "text/plain", "secret page")
                        .header("www-authenticate", challenge.clone())
                }
            });
        }
    }
}

fn manifest(layer: &str, size: usize) -> Value {
    json!({
        "schemaVersion": 2,
        "config": {"mediaType": "application/vnd.cncf.helm.config.v1+json", "digest": "sha256:00", "size": 2},
        "layers": [{"mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip", "digest": layer, "size": size}],
    })
}

#[tokio::test]
async fn a_chart_is_found_by_tag_or_digest_and_a_plus_becomes_an_underscore() {
    let bench = Bench::new().await;
    let archive = chart_yaml("web", "1.4.0+build.7", "");
    let name = bench.push("1.4.0_build.7", &archive);
    for oci in [bench.oci(Some("1.4.0+build.7"), None), bench.oci(None, Some(&name))] {
        let fetched = bench.fetch(oci, None).await.unwrap();
        assert_eq!((fetched.digest, fetched.version.as_str()), (digest(&archive), "1.4.0+build.7"));
    }
    let both = bench.oci(Some("9.9.9"), Some(&name));
    let error = bench.fetch(both, None).await.unwrap_err();
    assert!(error.reason() == "ChartInvalid" && error.to_string().contains("9.9.9"), "{error}");
    assert_eq!(bench.refused("2.0.0").await.reason(), "ChartNotFound");
}

#[tokio::test]
async fn what_is_pinned_needs_no_registry_and_other_bytes_are_refused_before_they_are_fetched() {
    let bench = Bench::new().await;
    bench.push("1.4.0", &chart_yaml("web", "1.4.0", ""));
    let first = bench.fetch(bench.oci(Some("1.4.0"), None), None).await.unwrap().digest;
    bench.repo.asked();
    bench.fetch(bench.oci(Some("1.4.0"), None), Some(&first)).await.unwrap();
    assert!(bench.repo.asked().is_empty());
    // Asked again, the manifest is enough.
    bench.fetch(bench.oci(Some("1.4.0"), None), None).await.unwrap();
    assert_eq!(bench.repo.asked(), ["/v2/charts/web/manifests/1.4.0 -"]);
    let other = chart_yaml("web", "1.4.0", "description: changed\n");
    bench.push("1.4.0", &other);
    let pinned = bench.oci(Some("1.4.0"), None);
    let pinned = Oci { url: format!("{}/", pinned.url), ..pinned };
    let error = bench.fetch(pinned, Some(&first)).await.unwrap_err();
    assert_eq!(error.reason(), "ChartDigestChanged");
    assert!(error.to_string().contains(&first) && error.to_string().contains(&digest(&other)), "{error}");
    assert_eq!(bench.repo.asked(), ["/v2/charts/web/manifests/1.4.0 -"]);
}

#[tokio::test]
async fn every_digest_is_checked_and_sizes_are_judged_before_anything_is_read() {
    let bench = Bench::new().await;
    let archive = chart_yaml("web", "1.4.0", "");
    let name = bench.push("1.4.0", &archive);
    bench.repo.file(&format!("/v2/charts/web/manifests/{name}"), manifest("sha256:00", 1).to_string());
    let error = bench.fetch(bench.oci(None, Some(&name)), None).await.unwrap_err();
    assert!(error.reason() == "ChartInvalid" && error.to_string().contains("changes manifests"), "{error}");

    let other = chart_yaml("web", "1.4.0", "description: changed\n");
    bench.manifest("1.4.0", &manifest(&digest(&archive), other.len()));
    bench.repo.file(&format!("/v2/charts/web/blobs/{}", digest(&archive)), other);
    let error = bench.refused("1.4.0").await;
    assert!(error.reason() == "ChartInvalid" && error.to_string().contains("was changed"), "{error}");

    // More than the manifest says.
    bench.manifest("1.4.0", &manifest(&digest(&archive), 10));
    assert_eq!(bench.refused("1.4.0").await.reason(), "ChartTooLarge");

    bench.repo.asked();
    bench.manifest("1.4.0", &manifest(&digest(&archive), 2 << 30));
    let error = bench.refused("1.4.0").await;
    assert!(error.reason() == "ChartTooLarge" && error.to_string().contains("2147483648 bytes"), "{error}");
    assert_eq!(bench.repo.asked(), ["/v2/charts/web/manifests/1.4.0 -"], "the blob is not asked for");

    bench.manifest("1.4.0", &json!({"schemaVersion": 2, "manifests": []}));
    let error = bench.refused("1.4.0").await;
    assert!(error.reason() == "ChartInvalid" && error.to_string().contains("several manifests"), "{error}");
}

#[tokio::test]
async fn a_token_is_asked_for_pulling_alone_and_goes_to_the_registry_alone() {
    let mut bench = Bench::new().await;
    let archive = chart_yaml("web", "1.4.0", "");
    let realm = format!("http://{}/token?account=x", bench.server.address);
    bench.guard("1.4.0", &archive, &realm);
    bench.repo.file("/token", r#"{"token": "t0ken"}"#);
    bench.fetch(bench.oci(Some("1.4.0"), None), None).await.unwrap();
    let scope = "/token?account=x&service=reg&scope=repository%3Acharts%2Fweb%3Apull";
    let blob = format!("/v2/charts/web/blobs/{}", digest(&archive));
    let wanted = [
        "/v2/charts/web/manifests/1.4.0 -".to_owned(),
        format!("{scope} -"),
        "/v2/charts/web/manifests/1.4.0 Bearer t0ken".to_owned(),
        format!("{blob} Bearer t0ken"),
    ];
    assert_eq!(bench.repo.asked(), wanted);

    // The registry's login goes to its own realm, which needs no entry of its own.
    bench.sources = vec![format!("http://{}/v2/charts/", bench.server.address)];
    bench.login(&[("username", "ann"), ("password", "hunter2")]);
    bench.fetch(bench.oci(Some("1.4.0"), None), None).await.unwrap();
    assert!(bench.repo.asked().contains(&format!("{scope} {ANN}")));
}

#[tokio::test]
async fn a_realm_on_another_host_gets_no_login_but_one_that_is_written_for_it() {
    let mut bench = Bench::new().await;
    let archive = chart_yaml("web", "1.4.0", "");
    let elsewhere = Repo::default();
    let other = elsewhere.serve().await;
    let host = other.address.to_string();
    bench.guard("1.4.0", &archive, &format!("http://{host}/token"));
    bench.login(&[("username", "ann"), ("password", "hunter2")]);
    let error = bench.refused("1.4.0").await;
    assert_eq!(error.reason(), "ChartSourceNotAllowed");
    assert!(error.to_string().contains(&format!("the realm http://{host}/token")), "{error}");
    assert!(elsewhere.asked().is_empty(), "a realm that is not listed is not asked");

    bench.sources.push(format!("http://{host}/"));
    elsewhere.put_for("/token", |authorization| {
        let known = authorization == "Basic Ym9iOnR3bw==";
        if known { Reply::text(200, "", r#"{"access_token": "t0ken"}"#) } else { Reply::text(401, "", "") }
    });
    let error = bench.refused("1.4.0").await;
    assert_eq!(error.reason(), "ChartUnauthorized");
    assert!(error.to_string().contains("add a login for 127.0.0.1"), "{error}");
    assert!(elsewhere.asked().iter().all(|line| line.ends_with(" -")), "ann's password stays at home");

    let auths = json!({"auths": {
        bench.server.address.to_string(): {"username": "ann", "password": "hunter2"},
        &host: {"username": "bob", "password": "two"},
    }});
    bench.login(&[(".dockerconfigjson", &auths.to_string())]);
    bench.repo.asked();
    bench.fetch(bench.oci(Some("1.4.0"), None), None).await.unwrap();
    assert!(elsewhere.asked().iter().all(|line| line.ends_with("Basic Ym9iOnR3bw==")));
    assert!(bench.repo.asked().iter().all(|line| line.ends_with(" -") || line.ends_with(" Bearer t0ken")));
}

#[tokio::test]
async fn a_registry_that_wants_a_password_gets_it_once_it_asks() {
    let mut bench = Bench::new().await;
    let archive = chart_yaml("web", "1.4.0", "");
    let layer = digest(&archive);
    let bodies = [
        (
            "/v2/charts/web/manifests/1.4.0".to_owned(),
            manifest(&layer, archive.len()).to_string().into_bytes(),
        ),
        (format!("/v2/charts/web/blobs/{layer}"), archive),
    ];
    for (path, body) in bodies {
        bench.repo.put_for(&path, move |authorization| {
            if authorization == ANN {
                Reply::text(200, "", body.clone())
            } else {
                Reply::text(401, "", "").header("www-authenticate", "Basic realm=\"Registry Realm\"")
            }
        });
    }
    let error = bench.refused("1.4.0").await;
    assert!(error.reason() == "ChartUnauthorized" && error.to_string().contains("wants a login"), "{error}");
    bench.login(&[("username", "ann"), ("password", "wrong")]);
    assert_eq!(bench.refused("1.4.0").await.reason(), "ChartUnauthorized");
    bench.login(&[("username", "ann"), ("password", "hunter2")]);
    bench.fetch(bench.oci(Some("1.4.0"), None), None).await.unwrap();
}

#[tokio::test]
async fn a_blob_that_is_kept_elsewhere_is_fetched_there_without_the_token() {
    let mut bench = Bench::new().await;
    let archive = chart_yaml("web", "1.4.0", "");
    let realm = format!("http://{}/token", bench.server.address);
    bench.guard("1.4.0", &archive, &realm);
    bench.repo.file("/token", r#"{"token": "t0ken"}"#);
    let elsewhere = Repo::default();
    elsewhere.file("/bucket/blob", archive.clone());
    let other = elsewhere.serve().await;
    let target = format!("http://{}/bucket/blob", other.address);
    bench.repo.put(&format!("/v2/charts/web/blobs/{}", digest(&archive)), move || {
        Reply::text(307, "", "").header("location", target.clone())
    });
    assert_eq!(bench.refused("1.4.0").await.reason(), "ChartSourceNotAllowed");
    assert!(elsewhere.asked().is_empty());
    bench.sources.push(format!("http://{}/bucket/", other.address));
    bench.fetch(bench.oci(Some("1.4.0"), None), None).await.unwrap();
    assert_eq!(elsewhere.asked(), ["/bucket/blob -"]);
}

#[test]
fn urls_of_registries_are_checked_and_plain_http_must_be_listed() {
    let home = |url: &str, sources: Option<&[&str]>| {
        let sources: Option<Vec<String>> =
            sources.map(|all| all.iter().map(|one| (*one).to_owned()).collect());
        let oci = Oci { url: url.to_owned(), version: None, digest: None };
        oci.home(sources.as_deref()).map(|url| url.to_string()).map_err(|error| error.to_string())
    };
    let url = "oci://reg.example.com/charts/web";
    assert_eq!(home(url, None).unwrap(), "https://reg.example.com/v2/charts/web/");
    assert_eq!(home("oci://reg.example.com:5000/a/", None).unwrap(), "https://reg.example.com:5000/v2/a/");
    let both: &[&str] = &["oci://reg.example.com/charts/", "http://reg.example.com/"];
    assert_eq!(home(url, Some(both)).unwrap(), "https://reg.example.com/v2/charts/web/");
    assert_eq!(home(url, Some(&both[1..])).unwrap(), "http://reg.example.com/v2/charts/web/");
    let error = home(url, Some(&["oci://reg.example.com/other/"])).unwrap_err();
    assert!(error.contains(url) && error.contains("chartSources"), "{error}");
    for wrong in [
        "oci://",
        "oci://reg.example.com",
        "oci://reg.example.com/Charts/web",
        "oci://reg.example.com/charts/web:1.4.0",
        "oci://reg.example.com/charts/web?x=1",
        "oci://reg.example.com/charts/%2e%2e/web",
        "oci://reg.example.com/charts//web",
        "oci://me:hunter2@reg.example.com/charts/web",
        "https://reg.example.com/charts/web",
    ] {
        let error = home(wrong, None).unwrap_err();
        assert!(!error.contains("hunter2"), "{wrong}: {error}");
    }
}

#[tokio::test]
async fn a_version_of_dots_leads_to_no_other_path_of_the_registry() {
    let bench = Bench::new().await;
    for version in [".", "..", ".1", "-1"] {
        let error = bench.refused(version).await.to_string();
        assert!(error.contains("cannot be a tag"), "{error}");
    }
    assert_eq!(bench.repo.asked(), [""; 0]);
}
