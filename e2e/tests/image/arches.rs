//! Checks what `make image` and `make dist` do for two architectures. Programs of the other one take a cross compiler and as long
//! as all others again, so placeholders stand for them here: a checkout in which everything is built already.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use emco_e2e::operator::{program, root};
use serde::Deserialize as _;
use serde_json::Value;
use tokio::process::Command;

use super::engine::Engine;
use super::{make, make_in, run};

const BOTH: [&str; 2] = ["amd64", "arm64"];
const ARCHES: &str = "ARCHES=amd64 arm64";
/// In place of the calls of `make` that build programs.
const BUILT: &str = "MAKE=true";

/// A checkout with a placeholder for each program, which says what it stands for.
async fn checkout(folder: &Path) -> Result<()> {
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

#[tokio::test]
async fn one_image_holds_the_operator_of_both_architectures() {
    let folder = tempfile::tempdir().unwrap();
    let sources = folder.path().join("checkout");
    std::fs::create_dir(&sources).unwrap();
    checkout(&sources).await.unwrap();
    let engine = Engine::new(&folder.path().join("engine")).await.unwrap();
    let name = "localhost/emco-operator:pair";
    let (tool, image) = (format!("ENGINE={}", engine.program().display()), format!("IMAGE={name}"));
    // A second time, as people do.
    for _ in 0..2 {
        run(&mut make_in(&sources, &["image", BUILT, &tool, &image, ARCHES])).await.unwrap();
    }
    let into = BOTH.map(|arch| (arch, folder.path().join(arch)));
    let wanted: Vec<_> = into.iter().map(|(arch, into)| (*arch, into.as_path())).collect();
    let images = engine.unpack(name, &wanted).await.unwrap();
    for (image, (arch, into)) in images.iter().zip(wanted) {
        assert_eq!(
            (&image.entry[..], &image.command[..]),
            (&["/emco-operator".to_owned()][..], &["run".to_owned()][..])
        );
        let held = std::fs::read_to_string(into.join("emco-operator")).unwrap();
        assert_eq!(held, format!("emco-operator for {arch}"));
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
    run(&mut make_in(sources, &["dist", BUILT, ARCHES])).await?;
    let dist = sources.join("target/dist");
    let listed = std::fs::read_to_string(dist.join("images.txt"))?;
    let chart = dist.join(format!("emco-{}.tgz", env!("CARGO_PKG_VERSION")));
    assert_eq!(listed.lines().collect::<Vec<_>>(), [image_of(&chart).await?], "images.txt");
    let manifest = std::fs::read_to_string(dist.join("emco.yaml"))?;
    for arch in BOTH {
        let archive = dist.join(format!("kubectl-emco_linux_{arch}.tar.gz"));
        let held = run(Command::new("tar").args(["-xzOf"]).arg(&archive).arg("kubectl-emco")).await?;
        assert_eq!(held, format!("kubectl-emco for {arch}"));
        ensure!(
            manifest.contains(&format!("arch: {arch}")),
            "krew's manifest does not name {arch}: {manifest}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn a_release_lists_the_image_of_its_chart_and_both_plug_ins() {
    let folder = tempfile::tempdir().unwrap();
    release_of_both(folder.path()).await.unwrap();
}
