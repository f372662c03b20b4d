//! Where charts may come from, and what each of those places is told.

use std::sync::atomic::Ordering;

use serde_json::json;

use super::*;
use crate::remote::testing::Authority;

#[tokio::test]
async fn redirects_are_judged_anew_and_credentials_stay_at_home() {
    let bench = Bench::new().await;
    let archive = bench.repo.good();
    let elsewhere = Repo::default();
    elsewhere.file("/files/web.tgz", archive);
    let other = elsewhere.serve().await;
    let location = format!("http://{}/files/web.tgz", other.address);
    let target = location.clone();
    bench
        .repo
        .put("/charts/web-1.4.0.tgz", move || Reply::text(302, "", "").header("location", target.clone()));
    let error = bench.fetch_as(login("ann"), None).await.unwrap_err();
    assert_eq!(error.reason(), "ChartSourceNotAllowed");
    assert!(elsewhere.asked().is_empty(), "an address that is not listed is not asked");

    let mut bench = bench;
    bench.sources.push(format!("http://{}/files", other.address));
    bench.repo.asked();
    bench.fetch_as(login("ann"), None).await.unwrap();
    assert!(bench.repo.asked().iter().all(|line| line.ends_with("Basic YW5uOmh1bnRlcjI=")));
    assert_eq!(elsewhere.asked(), ["/files/web.tgz -"]);

    let itself = format!("http://{}/charts/loop", bench.server.address);
    bench.repo.put("/charts/loop", move || Reply::text(301, "", "").header("location", itself.clone()));
    bench.repo.put("/charts/index.yaml", || Reply::text(301, "", "").header("location", "loop"));
    let error = bench.fetch_as(login("bob"), None).await.unwrap_err();
    assert!(error.to_string().contains("redirects more than 5 times"), "{error}");
}

#[tokio::test]
async fn an_index_may_name_another_host_only_if_that_is_listed() {
    let bench = Bench::new().await;
    let archive = chart_yaml("web", "1.4.0", "");
    let elsewhere = Repo::default();
    elsewhere.file("/web.tgz", archive);
    let other = elsewhere.serve().await;
    bench.repo.index("web", "1.4.0", &format!("http://{}/web.tgz", other.address), None);
    assert_eq!(bench.refused().await.reason(), "ChartSourceNotAllowed");
    assert!(elsewhere.asked().is_empty());
    bench.repo.index("web", "1.4.0", "../secret/web.tgz", None);
    assert_eq!(bench.refused().await.reason(), "ChartSourceNotAllowed", "nor another path of the same host");
}

#[tokio::test]
async fn another_host_that_an_index_names_and_an_admin_lists_gets_no_login_but_its_own() {
    let mut bench = Bench::new().await;
    let elsewhere = Repo::default();
    elsewhere.file("/web.tgz", chart_yaml("web", "1.4.0", ""));
    let other = elsewhere.serve().await;
    bench.sources.push(format!("http://{}/", other.address));
    bench.repo.index("web", "1.4.0", &format!("http://{}/web.tgz", other.address), None);
    bench.fetch_as(login("ann"), None).await.unwrap();
    assert_eq!(bench.repo.asked(), ["/charts/index.yaml Basic YW5uOmh1bnRlcjI="]);
    assert_eq!(elsewhere.asked(), ["/web.tgz -"], "what was given for the repository stays there");

    // A Secret with logins by host: each gets what is under its own name.
    let hosts = |all: &[(&str, &str)]| {
        let of = |(host, user): &(&str, &str)| {
            ((*host).to_owned(), json!({"username": user, "password": "hunter2"}))
        };
        let auths: serde_json::Map<String, serde_json::Value> = all.iter().map(of).collect();
        let file = json!({"auths": auths}).to_string();
        let data: BTreeMap<String, &str> = [(".dockerconfigjson".to_owned(), file.as_str())].into();
        Some(ChartCredentials::read(&data, Some(&format!("http://{}/charts", bench.server.address))).unwrap())
    };
    let (home, there) = (bench.server.address.to_string(), other.address.to_string());
    bench.fetch_as(hosts(&[(&home, "ann"), (&there, "bob")]), None).await.unwrap();
    assert_eq!(bench.repo.asked(), ["/charts/index.yaml Basic YW5uOmh1bnRlcjI="]);
    assert_eq!(elsewhere.asked(), ["/web.tgz Basic Ym9iOmh1bnRlcjI="]);
    bench.fetch_as(hosts(&[(&home, "ann")]), None).await.unwrap();
    assert_eq!(elsewhere.asked(), ["/web.tgz -"]);
}

#[tokio::test]
async fn without_a_list_loopback_is_refused_before_it_is_dialled() {
    let ca = Authority::new();
    let repo = Repo::default();
    repo.good();
    let setup = Setup { authority: Some(&ca), alpn: &["http/1.1"], names: &["localhost"] };
    let server = Server::start(setup, repo.handler()).await;
    let folder = tempfile::tempdir().unwrap();
    let store = ChartStore::new(folder.path().to_owned(), dialer(), ChartLimits::default()).unwrap();
    let source = Source::Repository(Repository {
        url: format!("https://localhost:{}/charts", server.address.port()),
        name: "web".to_owned(),
        version: "1.4.0".to_owned(),
    });
    let turn = Turn::new("team-a", "shop");
    let request = |sources| FetchRequest {
        source: source.clone(),
        credentials: None,
        sources,
        pinned: None,
        turn: &turn,
    };
    let error = store.fetch(request(None)).await.unwrap_err();
    assert_eq!(error.reason(), "ChartSourceNotAllowed");
    assert!(error.to_string().contains("loopback"), "{error}");
    assert_eq!(server.connections.load(Ordering::SeqCst), 0);

    // Listed, its certificate is judged: by public CAs, then by the Secret's own.
    let sources = [format!("https://localhost:{}", server.address.port())];
    let error = store.fetch(request(Some(&sources))).await.unwrap_err();
    assert!(error.reason() == "SourceUnreachable" && error.to_string().contains("ca.crt"), "{error}");
    let credentials = ChartCredentials { ca_crt: Some(ca.pem().into_bytes()), ..ChartCredentials::default() };
    let request = FetchRequest { credentials: Some(credentials), ..request(Some(&sources)) };
    assert_eq!(store.fetch(request).await.unwrap().name, "web");
}
