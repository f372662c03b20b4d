//! In: public servers that lead to where nobody may go. Out: nothing there is asked, and the message says what it was.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, ensure};
use axum::Router;
use axum::extract::{Path, State};
use axum::http::header::{LOCATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::routing::get;
use emco_crds::CompositeApp;
use emco_crds::conditions::types;
use emco_e2e::bed::Bed;
use emco_e2e::https::Server;
use emco_e2e::operator::{deployed, says as says_now};
use emco_e2e::public::Internet;
use serde_json::{Value, json};

use super::{begin, deploy, has, login, note, said, says};

/// An address that everybody would take for one of the internet.
const PUBLIC: &str = "203.0.113.7";

struct Stranger {
    /// What the second part of a path leads to.
    targets: Vec<String>,
    archive: Vec<u8>,
}

fn target(stranger: &Stranger, number: &str) -> String {
    number.parse::<usize>().ok().and_then(|number| stranger.targets.get(number).cloned()).unwrap_or_default()
}

fn index(url: &str) -> String {
    json!({"apiVersion": "v1", "entries": {"note": [{"name": "note", "version": "1.0.0", "urls": [url]}]}})
        .to_string()
}

type Led = (StatusCode, [(HeaderName, String); 1]);

fn led(to: String) -> Led {
    (StatusCode::FOUND, [(LOCATION, to)])
}

/// A repository, a registry and a Git server, each of which leads elsewhere.
fn stranger(state: Stranger) -> Router {
    let by_redirect =
        |State(s): State<Arc<Stranger>>, Path(n): Path<String>| async move { led(target(&s, &n)) };
    let by_index =
        |State(s): State<Arc<Stranger>>, Path(n): Path<String>| async move { index(&target(&s, &n)) };
    let by_realm = |State(s): State<Arc<Stranger>>, Path((n, _)): Path<(String, String)>| async move {
        let realm = format!("Bearer realm=\"{}\",service=\"x\"", target(&s, &n));
        (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, realm)])
    };
    Router::new()
        .route("/redirect/{to}/index.yaml", get(by_redirect))
        .route("/git/{to}/info/refs", get(by_redirect))
        .route("/index/{to}/index.yaml", get(by_index))
        .route("/v2/realm{to}/note/manifests/{tag}", get(by_realm))
        .route("/good/index.yaml", get(|| async { index("note-1.0.0.tgz") }))
        .route(
            "/good/note-1.0.0.tgz",
            get(|State(s): State<Arc<Stranger>>, headers: HeaderMap| async move {
                let known = headers.contains_key("authorization");
                if known { Ok(s.archive.clone()) } else { Err(StatusCode::UNAUTHORIZED) }
            }),
        )
        .with_state(Arc::new(state))
}

fn sources(to: usize) -> [(&'static str, Value); 4] {
    let secret = json!({"name": "login"});
    let repository = |kind: &str| {
        let url = format!("https://{PUBLIC}/{kind}/{to}");
        json!({"repository": {"url": url, "name": "note", "version": "1.0.0"}, "secretRef": secret})
    };
    let oci = format!("oci://{PUBLIC}/realm{to}/note");
    let git = format!("https://{PUBLIC}/git/{to}");
    [
        ("redirect", repository("redirect")),
        ("index", repository("index")),
        ("realm", json!({"oci": {"url": oci, "version": "1.0.0"}, "secretRef": secret})),
        ("git", json!({"git": {"url": git, "ref": {"branch": "main"}}, "secretRef": secret})),
    ]
}

/// Makes an app of each source, such as `git-3`: all are asked for at the same time.
async fn ask_for_all<T>(bed: &Bed, led: &[([(&str, Value); 4], T)]) -> anyhow::Result<()> {
    let app = |name: String, source: &Value| {
        json!({
            "apiVersion": "emco.io/v1alpha1", "kind": "CompositeApp",
            "metadata": {"name": name, "namespace": "outside"},
            "spec": {"apps": [{"name": "note", "chart": source}]},
        })
    };
    let mut all = Vec::new();
    for (to, (sources, _)) in led.iter().enumerate() {
        all.extend(sources.iter().map(|(kind, source)| app(format!("{kind}-{to}"), source)));
    }
    let list = json!({"apiVersion": "v1", "kind": "List", "items": all});
    bed.hub().kubectl().apply(&list.to_string()).await.map(drop)
}

/// The address of the hub's API as the operator reaches it.
fn hub(bed: &Bed) -> anyhow::Result<String> {
    let config: Value = serde_yaml::from_str(&bed.hub().kubeconfig()?)?;
    Ok(config["clusters"][0]["cluster"]["server"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn no_redirect_index_realm_or_git_server_leads_to_loopback_the_link_private_ranges_or_the_hub() {
    let reached = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&reached);
    let inside = Router::new().fallback(move || {
        count.fetch_add(1, Ordering::SeqCst);
        async { "inside" }
    });
    let inside = Server::secure(inside, &[]).await.unwrap();
    let bed = begin("outside", None).await.unwrap();
    let targets = [
        // The hub of this bed is on loopback, too.
        (format!("{}/x", inside.url()), "an address of the hub itself"),
        (format!("https://[::ffff:127.0.0.1]:{}/x", inside.address().port()), "an address of the hub itself"),
        ("https://127.0.0.2/x".to_owned(), "a loopback address"),
        ("https://[::1]/x".to_owned(), "a loopback address"),
        ("https://169.254.169.254/latest/meta-data".to_owned(), "a link-local address"),
        ("https://10.1.2.3/x".to_owned(), "a private address"),
        (hub(bed).unwrap(), "an address of the hub itself"),
        (format!("http://{}/x", inside.address()), "plain http"),
        ("file:///etc/passwd".to_owned(), "not an http(s) address"),
    ];
    let state = Stranger {
        targets: targets.iter().map(|(url, _)| url.clone()).collect(),
        archive: note("1.0.0", "one").bytes,
    };
    let public = Server::secure(stranger(state), &[PUBLIC]).await.unwrap();
    Internet::get().play(&format!("{PUBLIC}:443"), public.address());
    bed.explain(Box::pin(async {
        let secret = json!({"username": "ann", "password": "hunter2", "ca.crt": format!("{}{}", public.ca(), inside.ca())});
        login(bed, "outside", secret).await?;
        // The way out is there.
        let url = format!("https://{PUBLIC}/good");
        let good = json!({"repository": {"url": url, "name": "note", "version": "1.0.0"}, "secretRef": {"name": "login"}});
        deploy(bed, "outside", &good).await?;
        deployed(bed, "outside", "shop", 1).await?;
        ensure!(said(bed, "outside").await? == "one");
        let led: Vec<_> = targets.iter().enumerate().map(|(to, target)| (sources(to), target)).collect();
        ask_for_all(bed, &led).await?;
        for (to, (sources, (url, words))) in led.iter().enumerate() {
            for (kind, _) in sources {
                let (app, reason) = (format!("{kind}-{to}"), "ChartSourceNotAllowed");
                let message =
                    says_now::<CompositeApp, _>(bed, "outside", &app, types::READY, reason).await?;
                eprintln!("{kind} to {url}: {message}");
                has(&message, &["app note", words]);
                ensure!(!message.contains("hunter2"), "{message}");
            }
        }
        // The one that runs is edited so, too.
        let (sources, (_, words)) = led.first().context("there are no targets")?;
        deploy(bed, "outside", &sources[0].1).await?;
        has(&says(bed, "outside", "ChartSourceNotAllowed").await?, &["app note", words]);
        ensure!(reached.load(Ordering::SeqCst) == 0, "something inside was asked");
        let asked = Internet::get().asked();
        ensure!(asked.iter().all(|one| one.starts_with("203.0.113.")), "the proxy was asked for {asked:?}");
        ensure!(said(bed, "outside").await? == "one", "what runs stays");
        Ok(())
    }))
    .await;
}
