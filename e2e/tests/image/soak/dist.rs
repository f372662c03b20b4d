//! Makes what a release consists of, and installs from it.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use emco_e2e::operator::root;
use emco_e2e::programs::{Program, Programs};
use tokio::process::Command;

use super::version;
use crate::{make, run};

/// krew, with its home in a folder.
fn krew(program: &Path, home: &Path, args: &[&str]) -> Command {
    let mut krew = Command::new(program);
    krew.args(args).env("KREW_ROOT", home.join("krew")).env("HOME", home);
    // It would ask whether there is a newer one.
    krew.env("KREW_NO_UPGRADE_CHECK", "1");
    krew
}

async fn installs(programs: &Programs, home: &Path, dist: &Path, archive: &Path) -> Result<()> {
    let (manifest, archive) = (dist.join("emco.yaml"), archive.display().to_string());
    let manifest = format!("--manifest={}", manifest.display());
    let args = ["install", &manifest, &format!("--archive={archive}")];
    run(&mut krew(programs.path(Program::Krew)?, home, &args)).await?;
    let path = format!("{}:{}", home.join("krew/bin").display(), std::env::var("PATH")?);
    let mut kubectl = Command::new(programs.path(Program::Kubectl)?);
    let said = run(kubectl.args(["emco", "version"]).env("PATH", path)).await?;
    ensure!(said == format!("kubectl-emco {}\n", version().await), "{said}");
    Ok(())
}

#[tokio::test]
async fn a_release_installs_by_krew_and_helm_and_is_made_alike_twice() {
    let programs = Programs::get(&[Program::Krew, Program::Kubectl, Program::Helm]).await.unwrap();
    let home = tempfile::tempdir().unwrap();
    let sums = run(&mut make(&["dist"])).await.unwrap();
    assert_eq!(run(&mut make(&["dist"])).await.unwrap(), sums);
    let dist = root().join("target/dist").canonicalize().unwrap();
    run(Command::new("sha256sum").args(["--check", "SHA256SUMS"]).current_dir(&dist)).await.unwrap();

    let arch = if std::env::consts::ARCH == "aarch64" { "arm64" } else { "amd64" };
    let archive = dist.join(format!("kubectl-emco_linux_{arch}.tar.gz"));
    let other = home.path().join("other.tar.gz");
    std::fs::copy(dist.join(format!("emco-{}.tgz", env!("CARGO_PKG_VERSION"))), &other).unwrap();
    let refused = installs(&programs, home.path(), &dist, &other).await.unwrap_err();
    assert!(format!("{refused:#}").contains("checksum does not match"), "{refused:#}");
    installs(&programs, home.path(), &dist, &archive).await.unwrap();

    for chart in ["emco", "emco-crds"] {
        let archive = dist.join(format!("{chart}-{}.tgz", env!("CARGO_PKG_VERSION")));
        let folder = root().join("charts").join(chart);
        let helm = programs.path(Program::Helm).unwrap();
        let render = async |chart: &Path| {
            run(Command::new(helm).args(["template", "emco", "--kube-version", "1.33.0"]).arg(chart))
                .await
                .context("helm template")
        };
        assert_eq!(render(&archive).await.unwrap(), render(&folder).await.unwrap());
    }
}
