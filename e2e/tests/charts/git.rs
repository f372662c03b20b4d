//! In: charts in real Git repositories. Out: they run at the commit that was pinned, and what is not there is named.

use anyhow::ensure;
use emco_crds::CompositeApp;
use emco_crds::conditions::types;
use emco_e2e::git_server::GitServer;
use emco_e2e::operator::{deployed, look_again, reconciled_again, still_says, wait};
use serde_json::{Value, json};

use super::{NOTE, begin, deploy, has, login, said, says};

const CHART: &str = "apiVersion: v2\nname: note\nversion: 1.0.0\n";

fn git(server: &GitServer, reference: &Value, path: &str) -> Value {
    json!({"git": {"url": server.url(), "ref": reference, "path": path}})
}

#[tokio::test]
async fn a_branch_is_pinned_to_its_commit_and_what_it_moved_to_is_told() {
    let server = GitServer::start(None).await.unwrap();
    let bed = begin("branch", Some(&[server.url()])).await.unwrap();
    bed.explain(async {
        let files = [("deploy/note/Chart.yaml", CHART), ("deploy/note/templates/note.yaml", NOTE)];
        let first = server.commit(&files).await?;
        server.git(&["tag", "v1"]).await?;
        let branch = git(&server, &json!({"branch": "main"}), "deploy/note");
        deploy(bed, "branch", &branch).await?;
        deployed(bed, "branch", "shop", 1).await?;
        ensure!(said(bed, "branch").await? == "one");

        let second =
            server.commit(&[("deploy/note/templates/note.yaml", &NOTE.replace("one", "two"))]).await?;
        look_again(bed, "branch", "shop", "one").await?;
        let told = |app: &CompositeApp| {
            let status = app.status.as_ref().ok_or("no status")?;
            let ready = status.conditions.iter().find(|one| one.type_ == types::READY).ok_or("no Ready")?;
            let pin = status.apps.first().ok_or("no pin")?;
            let told = ready.status == "True"
                && ready.message.contains(&format!("branch main has moved to {second}"));
            if told && pin.commit.as_deref() == Some(&first) {
                Ok(())
            } else {
                Err(format!("{ready:?}, {pin:?}"))
            }
        };
        wait(bed, "branch", "shop", told).await?;
        let again = reconciled_again(bed, "branch", "shop", "another").await?;
        told(&again).map_err(anyhow::Error::msg)?;
        ensure!(said(bed, "branch").await? == "one", "what was approved does not change by itself");

        deploy(bed, "branch", &git(&server, &json!({"commit": second}), "deploy/note")).await?;
        deployed(bed, "branch", "shop", 2).await?;
        ensure!(said(bed, "branch").await? == "two");
        deploy(bed, "branch", &git(&server, &json!({"tag": "v1"}), "deploy/note")).await?;
        deployed(bed, "branch", "shop", 3).await?;
        ensure!(said(bed, "branch").await? == "one");

        // A tag that moves is not what it was.
        server.git(&["tag", "-f", "v1", &second]).await?;
        look_again(bed, "branch", "shop", "two").await?;
        let message = says(bed, "branch", "ChartDigestChanged").await?;
        has(&message, &["app note", "other bytes", "ref.commit"]);
        still_says(bed, "branch", "shop", "ChartDigestChanged").await?;

        deploy(bed, "branch", &git(&server, &json!({"tag": "v2"}), "deploy/note")).await?;
        has(&says(bed, "branch", "ChartNotFound").await?, &["app note", "has no tag v2"]);
        deploy(bed, "branch", &git(&server, &json!({"branch": "main"}), "deploy/other")).await?;
        has(&says(bed, "branch", "ChartNotFound").await?, &["app note", "the commit has no deploy/other"]);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_guarded_repository_wants_a_login_and_its_authority() {
    let server = GitServer::start(Some(("ann", "hunter2"))).await.unwrap();
    let bed = begin("guardedgit", Some(&[server.url()])).await.unwrap();
    bed.explain(async {
        server.git(&["config", "uploadpack.allowFilter", "true"]).await?;
        server.commit(&[("Chart.yaml", CHART), ("templates/note.yaml", NOTE)]).await?;
        let mut source = json!({"git": {"url": server.url(), "ref": {"branch": "main"}}});
        source["secretRef"] = json!({"name": "login"});
        let with = |password: &str| json!({"username": "ann", "password": password, "ca.crt": server.ca()});
        login(bed, "guardedgit", with("wrong")).await?;
        deploy(bed, "guardedgit", &source).await?;
        has(&says(bed, "guardedgit", "ChartUnauthorized").await?, &["app note", "401", "secretRef"]);
        login(bed, "guardedgit", with("hunter2")).await?;
        deployed(bed, "guardedgit", "shop", 1).await?;
        ensure!(said(bed, "guardedgit").await? == "one");
        Ok(())
    })
    .await;
}
