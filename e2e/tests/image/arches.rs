//! Checks what `make image` and `make dist` do for two architectures. Programs of the other one take a cross compiler and as long
//! as all others again, so placeholders stand for them here: a checkout in which everything is built already.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use emco_e2e::operator::{program, root};
use serde::Deserialize as _;
use serde_json::Value;
use tokio::process::Command;

use super::{make, make_in, run};

pub const BOTH: [&str; 2] = ["amd64", "arm64"];
pub const ARCHES: &str = "ARCHES=amd64 arm64";
/// In place of the calls of `make` that build programs.
pub const BUILT: &str = "MAKE=true";

/// A checkout with a placeholder for each program, which says what it stands for.
pub async fn checkout(folder: &Path) -> Result<()> {
    for name in
        ["Makefile", "Containerfile", "Cargo.toml", "rust-toolchain.toml", "LICENSE", "charts", "config"]
    {
        run(Command::new("cp").arg("-r").arg(root().join(name)).arg(folder)).await?;
    }
    for arch in BOTH {
        let programs = folder.join("target/image").join(arch);
        std::fs::create_dir_all(&programs)?;
        for name in ["emco-operator", "kubectl-emco"] {
            std::fs::write(programs.join(name), format!("{name} for {arch}"))?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn every_engine_is_told_both_architectures() {
    const IMAGE: &str = "registry.example.com/emco:1";
    let image = format!("IMAGE={IMAGE}");
    let platforms = "-f Containerfile --platform linux/amd64,linux/arm64 --label ";
    for (engine, push, wanted) in [
        (
            "docker",
            "PUSH=",
            &["docker buildx build ", platforms, "--tag \"registry.example.com/emco:1\" --load ."][..],
        ),
        (
            "docker",
            "PUSH=yes",
            &["docker buildx build ", platforms, "--tag \"registry.example.com/emco:1\" --push ."],
        ),
        ("podman", "PUSH=yes", &["podman build ", platforms, "--manifest \"registry.example.com/emco:1\" ."]),
    ] {
        let engine = format!("ENGINE={engine}");
        let printed = run(&mut make(&["-n", "image", &engine, &image, push, ARCHES])).await.unwrap();
        let build = printed.lines().find(|line| line.contains(" -f Containerfile ")).unwrap();
        assert!(build.starts_with(wanted[0]) && wanted.iter().all(|part| build.contains(part)), "{build}");
        for arch in ["x86_64", "aarch64"] {
            let target = format!("build --release --target {arch}-unknown-linux-gnu -p emco-operator");
            assert!(printed.contains(&target), "nothing is built for {arch}: {printed}");
        }
        let pushed = format!("manifest push --all \"{IMAGE}\" \"docker://{IMAGE}\"");
        assert_eq!(printed.contains(&pushed), engine == "ENGINE=podman", "{printed}");
    }
}

/// The image that a packaged chart runs, with its defaults.
async fn image_of(chart: &Path) -> Result<String> {
    let mut helm = Command::new(program()?.with_file_name("emco-helm"));
    let rendered = run(helm.args(["template", "emco", "--kube-version", "1.33.0"]).arg(chart)).await?;
    let objects = serde_yaml::Deserializer::from_str(&rendered).map(Value::deserialize);
    let objects = objects.collect::<Result<Vec<_>, _>>()?;
    let deployment = objects.iter().find(|object| object["kind"] == "Deployment").context("no Deployment")?;
    let image = &deployment["spec"]["template"]["spec"]["containers"][0]["image"];
    image.as_str().map(str::to_owned).context("the Deployment names no image")
}

async fn release_of_both(sources: &Path) -> Result<()> {
    checkout(sources).await?;
    let sums = run(&mut make_in(sources, &["dist", BUILT, ARCHES])).await?;
    ensure!(
        run(&mut make_in(sources, &["dist", BUILT, ARCHES])).await? == sums,
        "it is another one each time"
    );
    let dist = sources.join("target/dist");
    run(Command::new("sha256sum").args(["--check", "SHA256SUMS"]).current_dir(&dist)).await?;
    let listed = std::fs::read_to_string(dist.join("images.txt"))?;
    let chart = dist.join(format!("emco-{}.tgz", env!("CARGO_PKG_VERSION")));
    assert_eq!(listed.lines().collect::<Vec<_>>(), [image_of(&chart).await?], "images.txt");
    let manifest = std::fs::read_to_string(dist.join("emco.yaml"))?;
    for arch in BOTH {
        let archive = dist.join(format!("kubectl-emco_linux_{arch}.tar.gz"));
        let held = run(Command::new("tar").args(["-xzOf"]).arg(&archive).arg("kubectl-emco")).await?;
        assert_eq!(held, format!("kubectl-emco for {arch}"));
        let sum = run(Command::new("sha256sum").arg(&archive)).await?;
        let sum = sum.split_whitespace().next().unwrap_or_default();
        ensure!(
            manifest.contains(&format!("arch: {arch}")) && manifest.contains(&format!("sha256: {sum}")),
            "krew's manifest does not name {arch} with {sum}: {manifest}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn a_release_lists_its_image_and_both_plug_ins_alike_twice() {
    let folder = tempfile::tempdir().unwrap();
    release_of_both(folder.path()).await.unwrap();
}
