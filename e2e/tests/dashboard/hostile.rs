//! Who may not look or act: other sites, other users of the machine, and whoever writes texts that are shown.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use axum::Router;
use axum::response::Html;
use axum::routing::get as route;
use emco_crds::DeploymentIntentGroup;
use emco_e2e::bed::Bed;
use emco_e2e::https::Server;
use emco_e2e::https::loopback::{Reply, send};
use emco_e2e::operator::wait;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::program::Dashboard;
use super::screen::{Screen, browser};
use super::stage::{ON_A, TILL, approvals, beside_others, deploy, edit, get, kubectl, project, short, waits};

/// As an edge says it in whatever it refuses.
const OF_EDGE: &str = "<img src=x onerror=window.emcoTestTaken=1><script>window.emcoTestTaken=2</script>";
/// As an approver writes it.
const OF_TENANT: &str = "<marquee onstart=window.emcoTestTaken=3>mine</marquee>\"'&lt;";
const POLICY: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: loud}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [services]}]
    namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [loud, loud-tried]}]}
  validations: [{expression: 'false', message: MESSAGE}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: loud}
spec: {policyName: loud, validationActions: [Deny]}
---
apiVersion: v1
kind: Namespace
metadata: {name: loud-tried}
";

/// What the document has that came from a text, and whether any of it ran.
const TAKEN: &str = "return [document.querySelectorAll('marquee, img[src=x], script:not([src]), [onerror], [onstart], [onload]').length,
    window.emcoTestTaken === undefined]";

/// An edge refuses all Services of the project in these words.
async fn refuse(bed: &Bed) -> Result<()> {
    let edge = bed.edge("a").kubectl();
    edge.apply(&POLICY.replace("MESSAGE", &json!(OF_EDGE).to_string())).await?;
    let tried =
        ["create", "service", "clusterip", "tried", "--tcp=80", "-n", "loud-tried", "--dry-run=server"];
    edge.until(&tried, "", false).await
}

#[tokio::test]
async fn markup_in_texts_of_tenants_and_edges_stays_text() {
    let Some(browser) = browser("hostile::markup_in_texts_of_tenants_and_edges_stays_text").await else {
        return;
    };
    let (bed, _) = get().await.unwrap();
    let _beside = beside_others().await;
    bed.explain(Box::pin(async {
        refuse(bed).await?;
        project(bed, "loud", "Manual").await?;
        deploy(bed, "loud", ON_A).await?;
        let digest = waits(bed, "loud", "").await?;
        let dashboard = Dashboard::start(bed, "approver", &["-n", "loud"]).await?;
        let screen = Screen::at(bed, browser, &dashboard.link).await?;
        screen.follow("loud/till").await?;
        screen.shows(&[short(&digest)]).await?;
        screen.write("comment", OF_TENANT).await?;
        screen.press("Approve").await?;
        wait(bed, "loud", TILL, |dig: &DeploymentIntentGroup| {
            let failing = dig.status.as_ref().map(|status| status.failing.clone()).unwrap_or_default();
            if failing.iter().any(|row| row.message.contains("<img")) {
                Ok(())
            } else {
                Err(format!("{failing:?}"))
            }
        })
        .await?;
        let given = approvals(bed, "loud").await?;
        ensure!(given == [format!("{} Approved {OF_TENANT}", short(&digest))], "{given:?}");
        screen.shows(&[OF_EDGE]).await?;
        let deployment = screen.address().await?;
        let strange =
            format!("{}?state=<script>window.emcoTestTaken=4</script>&page=%3Cmarquee%3E", dashboard.link);
        for page in [dashboard.link.as_str(), &strange, &deployment] {
            screen.go(page).await?;
            let found = screen.run(TAKEN, Vec::new()).await?;
            ensure!(found == json!([0, true]), "{found} in {}", screen.text().await?);
        }
        // A text that comes while the page is open takes another way.
        let next = edit(bed, "loud", "two", &digest).await?;
        ensure!(next != digest, "it is the same plan");
        screen.has("#plan").await?;
        let found = screen.run(TAKEN, Vec::new()).await?;
        ensure!(found == json!([0, true]), "{found}");
        screen.close().await
    }))
    .await;
}

/// Nothing of the page is in it.
fn is_refused(reply: &Reply, what: &str) -> Result<()> {
    let said = reply.text();
    ensure!(reply.status >= 400 && !said.contains(TILL), "{what}: {} {said}", reply.status);
    Ok(())
}

#[tokio::test]
async fn another_host_origin_or_secret_gets_nothing() {
    let (bed, _) = get().await.unwrap();
    let _beside = beside_others().await;
    bed.explain(Box::pin(async {
        project(bed, "closed", "Manual").await?;
        deploy(bed, "closed", ON_A).await?;
        waits(bed, "closed", "").await?;
        let dashboard = Dashboard::start(bed, "approver", &["-n", "closed"]).await?;
        let (port, path) = (dashboard.port, format!("{}/", dashboard.path()));
        let reply = send(port, "GET", &path, &[], "").await?;
        ensure!(reply.status == 200 && reply.text().contains(TILL), "{} {}", reply.status, reply.text());
        let headers: BTreeMap<_, _> = reply.headers.iter().cloned().collect();
        let policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'self'; \
                      frame-ancestors 'none'; base-uri 'none'";
        for (name, value) in [
            ("content-security-policy", policy),
            ("referrer-policy", "no-referrer"),
            ("cache-control", "no-store"),
        ] {
            ensure!(headers.get(name).map(String::as_str) == Some(value), "{name}: {headers:?}");
        }
        for name in ["set-cookie", "access-control-allow-origin"] {
            ensure!(!headers.contains_key(name), "{headers:?}");
        }

        for host in ["evil.example", "localhost", &format!("localhost:{port}"), "127.0.0.1:1", ""] {
            is_refused(&send(port, "GET", &path, &[("Host", host)], "").await?, host)?;
        }
        let secret = path.trim_matches('/').split('/').next().unwrap_or_default().to_owned();
        // 256 bits are 43 letters at least.
        ensure!(secret.len() >= 43, "the secret has {} letters", secret.len());
        let last = if secret.ends_with('0') { '1' } else { '0' };
        let wrong = format!("/{}{last}/", &secret[..secret.len() - 1]);
        let cut = format!("/{}/", &secret[..secret.len() - 1]);
        for path in ["/", "/index.html", wrong.as_str(), cut.as_str(), "/../", "*"] {
            let reply = send(port, "GET", path, &[], "").await?;
            ensure!((400..=404).contains(&reply.status), "{path}: {}", reply.status);
            is_refused(&reply, "another secret")?;
            ensure!(!reply.text().contains(&secret), "the secret is said");
        }
        // It listens on one address alone.
        ensure!(TcpStream::connect(("127.0.0.2", port)).await.is_err(), "it listens on other addresses");
        Ok(())
    }))
    .await;
}

/// Pages of another site, which knows the link.
async fn site(link: &str, form: (&str, &str)) -> Result<Server> {
    let fields: String = form
        .1
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| format!("<input name='{name}' value='{}'>", value.replace("%3A", ":")))
        .collect();
    let framing = format!("<p>outside</p><iframe src='{link}'></iframe>");
    let posting = format!("<form method=post action='{}'>{fields}<button>Win</button></form>", form.0);
    let router = Router::new()
        .route("/frame", route(move || async move { Html(framing) }))
        .route("/form", route(move || async move { Html(posting) }));
    Server::plain(router).await
}

#[tokio::test]
async fn a_page_in_a_frame_and_a_form_of_another_site_do_nothing() {
    let Some(browser) = browser("hostile::a_page_in_a_frame_and_a_form_of_another_site_do_nothing").await
    else {
        return;
    };
    let (bed, _) = get().await.unwrap();
    let _beside = beside_others().await;
    bed.explain(Box::pin(async {
        project(bed, "framed", "Manual").await?;
        deploy(bed, "framed", ON_A).await?;
        let digest = waits(bed, "framed", "").await?;
        let dashboard = Dashboard::start(bed, "approver", &["-n", "framed"]).await?;
        let screen = Screen::at(bed, browser, &dashboard.link).await?;
        screen.follow("framed/till").await?;
        screen.shows(&[short(&digest)]).await?;
        let (path, body) = screen.form("Approve").await?;
        ensure!(body.contains(digest.trim_start_matches("sha256:")), "the form names no digest: {body}");
        let action = format!("http://127.0.0.1:{}{path}", dashboard.port);
        let site = site(&dashboard.link, (&action, &body)).await?;

        screen.go(&format!("{}/frame", site.url())).await?;
        screen.shows(&["outside"]).await?;
        let read = "const done = arguments[1]; fetch(arguments[0]).then(r => r.text()).then(done, () => done('refused'))";
        let answer = screen.run_async(read, vec![dashboard.link.clone().into()]).await?;
        ensure!(answer == "refused", "another site reads: {answer}");
        screen.enter_frame().await?;
        let within = screen.text().await?;
        ensure!(!within.contains(TILL), "a frame shows: {within}");

        screen.go(&format!("{}/form", site.url())).await?;
        screen.press("Win").await?;
        screen.hides("Win").await?;
        ensure!(approvals(bed, "framed").await?.is_empty(), "another site approved");

        // The same request is taken from the page itself alone.
        let form = ("Content-Type", "application/x-www-form-urlencoded");
        for from in ["cross-site", "same-site", "none", ""] {
            let headers = if from.is_empty() { vec![form] } else { vec![form, ("Sec-Fetch-Site", from)] };
            is_refused(&send(dashboard.port, "POST", &path, &headers, &body).await?, from)?;
        }
        ensure!(approvals(bed, "framed").await?.is_empty(), "another site approved");
        let own = [form, ("Sec-Fetch-Site", "same-origin")];
        let reply = send(dashboard.port, "POST", &path, &own, &body).await?;
        ensure!(reply.status == 303, "{} {}", reply.status, reply.text());
        ensure!(approvals(bed, "framed").await?.len() == 1, "the page itself could not approve");
        screen.close().await
    }))
    .await;
}

#[tokio::test]
async fn two_hundred_slow_connections_keep_nobody_out() {
    let Some(browser) = browser("hostile::two_hundred_slow_connections_keep_nobody_out").await else {
        return;
    };
    let (bed, _) = get().await.unwrap();
    let _beside = beside_others().await;
    bed.explain(Box::pin(async {
        project(bed, "slow", "Manual").await?;
        deploy(bed, "slow", ON_A).await?;
        let first = waits(bed, "slow", "").await?;
        let dashboard = Dashboard::start(bed, "viewer", &["-n", "slow"]).await?;
        let screen = Screen::at(bed, browser, &dashboard.link).await?;
        screen.follow("slow/till").await?;
        screen.shows(&[short(&first)]).await?;
        screen.mark().await?;
        let mut slow = Vec::new();
        for _ in 0..200 {
            let mut stream =
                TcpStream::connect(("127.0.0.1", dashboard.port)).await.context("no connection")?;
            // Where it is closed at once, nothing can be written.
            let _ = stream.write_all(b"GET / HTTP/1.1\r\nX-Slow: ").await;
            slow.push(stream);
        }
        // Who was there before goes on, and who comes gets in.
        let second = edit(bed, "slow", "two", &first).await?;
        ensure!(second != first, "it is the same plan");
        screen.shows(&["Another plan came meanwhile"]).await?;
        ensure!(screen.is_marked().await?, "the page was loaded anew");
        let path = format!("{}/", dashboard.path());
        let reply = send(dashboard.port, "GET", &path, &[], "").await?;
        ensure!(reply.status == 200 && reply.text().contains(TILL), "{} {}", reply.status, reply.text());
        let held = tokio::fs::read_dir(format!("/proc/{}/fd", dashboard.pid())).await;
        let mut held = held.context("its open files")?;
        let mut open = 0;
        while held.next_entry().await?.is_some() {
            open += 1;
        }
        ensure!(open < 200, "it holds {open} files open");
        drop(slow);
        // The hub heard nothing of it.
        kubectl(bed, "viewer")?.run(&["get", "dig", TILL, "-n", "slow"]).await?;
        screen.close().await
    }))
    .await;
}
