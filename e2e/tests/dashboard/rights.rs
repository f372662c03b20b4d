//! What each user sees and may do.

use anyhow::{Context as _, Result, ensure};
use emco_e2e::bed::Bed;
use emco_e2e::https::loopback::send;

use super::program::{Dashboard, ended};
use super::screen::{Screen, browser};
use super::stage::{
    ON_A, approvals, beside_others, can_i, deploy, get, kubeconfig, project, short, waits, withdraw,
};

const LIST: (&str, &str) = ("list", "deploymentintentgroups.emco.io");
const APPROVE: (&str, &str) = ("create", "deploymentapprovals.emco.io");

/// The kubeconfig of a user whose context names a namespace.
async fn within(bed: &Bed, user: &str, namespace: &str) -> Result<std::path::PathBuf> {
    let text = bed.hub().kubeconfig_as(user, None)?;
    let file = bed.dir().join(format!("{user}-{namespace}.kubeconfig"));
    let named = text.replace("\ncurrent-context", &format!("\n    namespace: {namespace}\ncurrent-context"));
    ensure!(named != text, "a kubeconfig has another form: {text}");
    tokio::fs::write(&file, named).await?;
    Ok(file)
}

/// The path that a `Location` means in an answer to a path.
fn from_root(location: &str, path: &str) -> String {
    if location.starts_with('/') {
        return location.to_owned();
    }
    if location.starts_with('?') {
        return format!("{path}{location}");
    }
    let folder = path.rfind('/').map_or("", |at| &path[..at]);
    format!("{folder}/{location}")
}

#[tokio::test]
async fn each_user_is_offered_what_kubectl_auth_can_i_allows() {
    let Some(browser) = browser("rights::each_user_is_offered_what_kubectl_auth_can_i_allows").await else {
        return;
    };
    let (bed, _) = get().await.unwrap();
    let _beside = beside_others().await;
    bed.explain(Box::pin(async {
        project(bed, "roles", "Manual").await?;
        deploy(bed, "roles", ON_A).await?;
        let digest = waits(bed, "roles", "").await?;
        let screen = Screen::open(bed, browser).await?;
        let mut form = None;
        // The approver comes first: what that page sends is then sent by the others.
        for user in ["approver", "viewer", "editor"] {
            ensure!(can_i(bed, user, LIST.0, LIST.1, "roles").await?, "{user} may not look");
            let may = can_i(bed, user, APPROVE.0, APPROVE.1, "roles").await?;
            ensure!(may == (user == "approver"), "{user}: {may}");
            // Listing all is forbidden to them, so they see the namespace of their context.
            let asked: &[&str] = if may { &["-A"] } else { &[] };
            let dashboard = Dashboard::start_with(bed, &within(bed, user, "roles").await?, asked).await?;
            screen.go(&dashboard.link).await?;
            screen.shows(&["roles/till"]).await?;
            if may {
                screen.has("#note").await?;
            }
            screen.follow("roles/till").await?;
            screen.shows(&[short(&digest)]).await?;
            let buttons = screen.buttons().await?;
            for button in ["Approve", "Reject"] {
                ensure!(buttons.contains(&button.to_owned()) == may, "{user} is offered {buttons:?}");
            }
            if may {
                let (path, body) = screen.form("Approve").await?;
                form = Some((path.replacen(dashboard.path(), "", 1), body));
            } else if let Some((path, body)) = &form {
                let headers = [
                    ("Sec-Fetch-Site", "same-origin"),
                    ("Content-Type", "application/x-www-form-urlencoded"),
                ];
                let path = format!("{}{path}", dashboard.path());
                let reply = send(dashboard.port, "POST", &path, &headers, body).await?;
                let to = reply.header("location").with_context(|| format!("{user}: {}", reply.status))?;
                let said = send(dashboard.port, "GET", &from_root(to, &path), &[], "").await?.text();
                let words = "you may not create a deployment approval of";
                ensure!(said.contains(words), "{user}: {said}");
            }
        }
        ensure!(form.is_some() && approvals(bed, "roles").await?.is_empty(), "something was approved");

        ensure!(!can_i(bed, "nobody", LIST.0, LIST.1, "roles").await?, "nobody may look");
        let output = ended(bed, &kubeconfig(bed, "nobody")?, &["-n", "roles"]).await?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.code() == Some(1), "{output:?}");
        ensure!(said.contains("you may not list deployment intent groups in namespace roles"), "{said}");
        screen.close().await
    }))
    .await;
}

#[tokio::test]
async fn a_right_that_is_withdrawn_while_the_page_is_open_is_gone() {
    let Some(browser) = browser("rights::a_right_that_is_withdrawn_while_the_page_is_open_is_gone").await
    else {
        return;
    };
    let (bed, _) = get().await.unwrap();
    let _beside = beside_others().await;
    bed.explain(Box::pin(async {
        project(bed, "former", "Manual").await?;
        deploy(bed, "former", ON_A).await?;
        let digest = waits(bed, "former", "").await?;
        let dashboard = Dashboard::start(bed, "approver", &["-n", "former"]).await?;
        // Without scripts the button is still there.
        let screen = Screen::open(bed, browser).await?;
        screen.without_scripts().await?;
        screen.go(&dashboard.link).await?;
        screen.follow("former/till").await?;
        screen.shows(&[short(&digest)]).await?;
        let live = Screen::at(bed, browser, &screen.address().await?).await?;
        live.shows(&[short(&digest)]).await?;
        withdraw(bed, "former", "approver").await?;
        screen.press("Approve").await?;
        screen.shows(&["ou may not"]).await?;
        ensure!(approvals(bed, "former").await?.is_empty(), "something was approved");
        // The open page notices it by itself, and shows no more than the hub allows.
        live.has("#trouble").await?;
        let shown = live.shows(&["You may not"]).await?;
        ensure!(!shown.contains(short(&digest)), "{shown}");
        live.close().await?;
        screen.close().await
    }))
    .await;
}
