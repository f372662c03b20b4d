//! Deploys the project's own shop by label and moves it: what `make demo` shows unless told otherwise.

use anyhow::Result;
use emco_e2e::operator::root;
use emco_e2e::package::Package;

use super::screen::Screen;
use super::stage::Stage;
use super::{READY, checks, look};

/// What an administrator writes.
pub const PLATFORM: &str = "config/samples/demo/1-platform.yaml";
/// What a tenant writes.
const TENANT: &str = "config/samples/demo/2-shop.yaml";
/// The same with another placement.
const MOVED: &str = "config/samples/demo/3-move.yaml";
/// Project, its namespace, and the deployment in it.
pub const PROJECT: &str = "shop";
const CHARTS: [&str; 3] = ["storefront", "stock", "telemetry"];

/// Deploys, looks, moves, looks.
pub async fn play(stage: &Stage, screen: &Screen) -> Result<()> {
    screen.step("Packaging three charts and publishing them as a ConfigMap");
    publish(stage, screen).await?;

    screen.step(
        "Deploying: telemetry on every edge, the storefront where people are, the stock on a fast disk",
    );
    stage.apply(screen, TENANT).await?;
    let mut live = stage.watch(screen, PROJECT, PROJECT).await?;
    let took = live.until_ready(1, READY).await?;
    screen.say(&format!("Ready {:.1} s after it was applied.", took.as_secs_f64()));
    checks::runs(stage, &checks::BEFORE).await?;
    look::status(stage, screen, PROJECT).await?;

    screen.step("Moving the stock: the same deployment, placed on clusters with an SSD");
    stage.apply(screen, MOVED).await?;
    let mut live = stage.watch(screen, PROJECT, PROJECT).await?;
    let took = live.until_ready(2, READY).await?;
    checks::runs(stage, &checks::AFTER).await?;
    screen.say(&format!(
        "Ready on oslo and gone from berlin {:.1} s after it was applied.",
        took.as_secs_f64()
    ));
    look::status(stage, screen, PROJECT).await
}

async fn publish(stage: &Stage, screen: &Screen) -> Result<()> {
    let folder = stage.bed.dir().join("charts");
    std::fs::create_dir_all(&folder)?;
    let mut args = vec!["create".to_owned(), "configmap".to_owned(), "shop-charts".to_owned()];
    args.extend(["-n".to_owned(), PROJECT.to_owned()]);
    for chart in CHARTS {
        let package = Package::of_folder(&root().join("config/samples/charts").join(chart))?;
        let file = folder.join(package.file_name());
        std::fs::write(&file, &package.bytes)?;
        args.push(format!("--from-file={}", file.display()));
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    stage.kubectl(screen, &args).await
}
