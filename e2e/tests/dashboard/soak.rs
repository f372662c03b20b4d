//! Makes the pictures of the book: `EMCO_PICTURES=DIR` says where they are written.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{deployed, failing};
use serde_json::json;

use super::program::Dashboard;
use super::screen::{Screen, browser};
use super::stage::{EVERYWHERE, TILL, alone, deploy, edit, get, project, short};

/// The folder; one that goes with the bed where none is named.
fn folder(bed: &Bed) -> Result<PathBuf> {
    let named = std::env::var_os("EMCO_PICTURES").filter(|named| !named.is_empty());
    let folder = named.map_or_else(|| bed.dir().join("pictures"), PathBuf::from);
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    Ok(folder)
}

async fn picture(screen: &Screen, bed: &Bed, name: &str) -> Result<()> {
    let file = folder(bed)?.join(name);
    let bytes = screen.picture().await?;
    ensure!(bytes.starts_with(b"\x89PNG") && bytes.len() < 300 * 1024, "{name} has {} bytes", bytes.len());
    std::fs::write(&file, bytes).with_context(|| file.display().to_string())
}

#[tokio::test]
async fn the_pictures_of_the_book_are_taken() {
    let Some(browser) = browser("soak::the_pictures_of_the_book_are_taken").await else { return };
    let (bed, _) = get().await.unwrap();
    let _alone = alone().await;
    bed.explain(Box::pin(async {
        for name in ["bank", "shop"] {
            project(bed, name, "Automatic").await?;
            deploy(bed, name, EVERYWHERE).await?;
            deployed(bed, name, TILL, 1).await?;
        }
        let kubectl = bed.hub().kubectl();
        let wrong = json!({"spec": {"overrideValues": [
            {"app": "gate", "clusters": [{"provider": "acme", "cluster": "a"}], "values": {"port": 99_999}}]}});
        kubectl.run(&["patch", "dig", TILL, "-n", "bank", "--type=merge", "-p", &wrong.to_string()]).await?;
        failing(bed, "bank", TILL, "acme/a", "Invalid").await?;
        let manual = r#"{"spec":{"approval":{"mode":"Manual","scope":"Plan"}}}"#;
        kubectl.run(&["patch", "projects.emco.io", "shop", "--type=merge", "-p", manual]).await?;
        let seen = "--for=jsonpath={.status.observedGeneration}=2";
        kubectl.run(&["wait", "projects.emco.io/shop", seen, "--timeout=30s"]).await?;
        let digest = edit(bed, "shop", "two", "").await?;
        let dashboard = Dashboard::of_administrator(bed, &["-A"]).await?;
        let screen = Screen::open(bed, browser).await?;
        screen.prefer("light").await?;
        screen.resize(1200, 700).await?;
        screen.go(&dashboard.link).await?;
        screen.shows(&["bank/till", "shop/till", "Invalid"]).await?;
        picture(&screen, bed, "dashboard.png").await?;
        screen.follow("shop/till").await?;
        screen.shows(&[short(&digest), "Approve"]).await?;
        picture(&screen, bed, "dashboard-approve.png").await?;
        screen.close().await
    }))
    .await;
}
