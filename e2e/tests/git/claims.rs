//! Folders that are somebody else's, and a hub that is older than what it published.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use emco_crds::GitTarget;
use emco_crds::conditions::types;
use emco_e2e::bed::Bed;
use emco_e2e::git_server::GitServer;
use emco_e2e::operator::{is, provider, says, wait};

use super::{AT_WORK, stage};

#[tokio::test]
async fn a_folder_that_is_not_ours_is_left_alone_until_somebody_confirms() {
    let _working = AT_WORK.read().await;
    let bed = stage().await.unwrap();
    bed.explain(Box::pin(claims(bed))).await;
}

async fn claims(bed: &Bed) -> Result<()> {
    let server = Arc::new(GitServer::bare(None).await?);
    provider(bed, "claims").await?;
    let get = ["get", "secret", "emco-installation", "-n", "emco-system", "-o", "jsonpath={.data.id}"];
    let id = bed.hub().kubectl().run(&get).await?;
    let id = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, id.trim())?;
    let id = hex::encode(id);
    let claim = |who: &str, seen: u64| {
        format!("format: 1\ninstallation: {who}\nsince: 2026-01-01T00:00:00Z\nseen: {seen}\n")
    };
    let (theirs, later) = (claim("other", 0), claim(&id, 1 << 40));
    server
        .push(&[
            ("plain/clusters/acme/a/note.yaml", Some("by hand")),
            ("other/.emco/installation", Some(&theirs)),
            ("later/.emco/installation", Some(&later)),
        ])
        .await?;
    let files = server.files("main").await?;
    for (folder, reason) in
        [("plain", "FolderNotOurs"), ("other", "ClaimedByAnotherHub"), ("later", "HubRestored")]
    {
        let target = format!(
            "
apiVersion: emco.io/v1alpha1
kind: GitTarget
metadata: {{name: {folder}, namespace: claims}}
spec: {{url: {}, branch: main, folder: {folder}}}
",
            server.url()
        );
        bed.hub().kubectl().apply(&target).await?;
        let message = says::<GitTarget, _>(bed, "claims", folder, types::READY, reason).await?;
        let of = |files: &[String]| -> Vec<String> {
            files.iter().filter(|file| file.starts_with(folder)).cloned().collect()
        };
        let now = server.files("main").await?;
        ensure!(of(&now) == of(&files), "something was published: {now:?}");
        // The message names the command that confirms.
        let (_, command) = message.split_once("kubectl annotate ").with_context(|| message.clone())?;
        let args: Vec<&str> = ["annotate"].into_iter().chain(command.split_whitespace()).collect();
        bed.hub().kubectl().run(&args).await?;
        wait(bed, "claims", folder, |target: &GitTarget| is(target.status.as_ref(), types::READY, "True"))
            .await?;
    }
    Ok(())
}
