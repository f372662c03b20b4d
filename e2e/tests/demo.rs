//! In: the demo, as `make demo` starts it without a terminal. Out: whether it reaches its end, or says at once why not.

use std::path::Path;
use std::process::Output;

use anyhow::Result;
use emco_e2e::package::Package;
use emco_e2e::{launch, operator};
use tokio::process::Command;

async fn demo(apps: Option<&Path>) -> Result<Output> {
    let mut command = Command::new(launch::own_binary()?);
    command
        .arg("demo")
        .arg("--operator")
        .arg(operator::program()?)
        .env_remove("EMCO_DEMO_APPS")
        .kill_on_drop(true);
    if let Some(apps) = apps {
        command.arg("--apps").arg(apps);
    }
    Ok(command.output().await?)
}

/// What it said, where it did not end well.
fn finished(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.ends_with("Every step was observed; nothing is left running.\n"), "{said}");
    said
}

#[tokio::test]
async fn the_shop_is_deployed_and_the_stock_moves() {
    let said = finished(&demo(None).await.unwrap());
    assert!(said.contains("Ready on oslo and gone from berlin"), "{said}");
}

#[tokio::test]
async fn a_folder_without_charts_is_refused_before_anything_starts() {
    let dir = tempfile::tempdir().unwrap();
    let output = demo(Some(dir.path())).await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && output.stdout.is_empty(), "{said}");
    assert!(said.contains("holds no .tgz: package charts into it first"), "{said}");
}

#[tokio::test]
async fn an_archive_that_is_none_is_refused_with_its_name_before_anything_starts() {
    let dir = tempfile::tempdir().unwrap();
    let folder = operator::root().join("config/samples/charts/stock");
    let package = Package::of_folder(&folder).unwrap();
    std::fs::write(dir.path().join(package.file_name()), &package.bytes).unwrap();
    std::fs::write(dir.path().join("cut-1.0.0.tgz"), &package.bytes[..package.bytes.len() / 2]).unwrap();
    let output = demo(Some(dir.path())).await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && output.stdout.is_empty(), "{said}");
    assert!(said.contains("cut-1.0.0.tgz"), "{said}");
}

/// The same stage with charts of a folder, which is what the two tests above refuse.
mod soak {
    use emco_e2e::operator;
    use emco_e2e::package::Package;

    use super::{demo, finished};

    #[tokio::test]
    async fn packaged_charts_go_everywhere_and_leave_the_small_edge() {
        let dir = tempfile::tempdir().unwrap();
        for chart in ["stock", "storefront", "telemetry"] {
            let folder = operator::root().join("config/samples/charts").join(chart);
            let package = Package::of_folder(&folder).unwrap();
            std::fs::write(dir.path().join(package.file_name()), &package.bytes).unwrap();
        }
        let said = finished(&demo(Some(dir.path())).await.unwrap());
        assert!(said.contains("Ready, and nothing of it runs on porto"), "{said}");
    }
}
