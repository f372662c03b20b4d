//! Authorities of the operator's administrator, for the sources of all charts.

use anyhow::{Context as _, Result, ensure};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{Turn, deployed, program, project, register};
use emco_e2e::registry::{Guard, LOGIN, Registry};
use serde_json::json;
use tokio::process::Command;

use super::{IN_TURN, deploy, list, login, note};

#[tokio::test]
async fn a_bundle_of_authorities_serves_charts_that_bring_none() {
    let (bed, mut turn) = IN_TURN.turn().await.unwrap();
    bed.explain(Box::pin(serves(bed, &mut turn))).await;
}

async fn serves(bed: &Bed, turn: &mut Turn) -> Result<()> {
    let registry = Registry::start(bed, "bundle", Guard::Password).await?;
    registry.push(&note("1.0.0", "one"), "charts").await?;
    let file = bed.dir().join("authorities.pem");
    tokio::fs::write(&file, registry.ca()).await?;
    let bundle = file.display().to_string();
    turn.start(&[("EMCO_CA_BUNDLE", bundle.as_str())]).await?;
    register(bed, "acme", &["a"]).await?;
    project(bed, "bundle").await?;
    list(bed, "bundle", Some(&[format!("oci://{}/charts/", registry.host())])).await?;
    login(bed, "bundle", json!({"username": LOGIN.0, "password": LOGIN.1})).await?;
    let url = format!("oci://{}/charts/note", registry.host());
    let source = json!({"oci": {"url": url, "version": "1.0.0"}, "secretRef": {"name": "login"}});
    deploy(bed, "bundle", &source).await?;
    deployed(bed, "bundle", "shop", 1).await.map(drop)
}

#[tokio::test]
async fn a_bundle_that_is_none_ends_the_operator_with_a_sentence() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("authorities.pem");
    std::fs::write(&file, "no certificate")?;
    let output = Command::new(program()?)
        .args(["run", "--ca-bundle"])
        .arg(&file)
        .args([
            "--listen",
            "127.0.0.1:0",
            "--probe-listen",
            "127.0.0.1:0",
            "--debug-listen",
            "127.0.0.1:0",
            "--state-dir",
        ])
        .arg(folder.path())
        .output()
        .await
        .context("cannot start the operator")?;
    let said =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    ensure!(!output.status.success() && said.contains("--ca-bundle"), "{said}");
    ensure!(said.contains("it holds no certificate in PEM"), "{said}");
    Ok(())
}
