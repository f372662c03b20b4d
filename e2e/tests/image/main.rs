//! Checks what an image and a release are made of, and how.
//!
//! That an engine makes the image, that it deploys, and that krew and Helm install from a release takes an optimized build of everything,
//! buildah and krew: `make soak STEP=image` does so.

mod arches;
mod soak;

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use emco_e2e::operator::root;
use tokio::process::Command;

async fn run(command: &mut Command) -> Result<String> {
    let output =
        command.stdin(Stdio::null()).kill_on_drop(true).output().await.context("it cannot be started")?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{:?} failed:\n{}", command.as_std(), error.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// `make` in this checkout.
fn make(args: &[&str]) -> Command {
    make_in(&root(), args)
}

fn make_in(folder: &Path, args: &[&str]) -> Command {
    let mut make = Command::new("make");
    make.arg("-C").arg(folder).args(args);
    // The runner of the tests sets it for their harness. Cargo would build all libraries anew with it.
    make.env_remove("RUSTC_BOOTSTRAP");
    make
}

#[tokio::test]
async fn an_image_that_cannot_be_made_says_what_is_missing() {
    for (args, wanted) in [
        (&["image", "ENGINE="][..], "there is no podman, buildah or docker: install one"),
        (&["build", "ARCH=riscv64"], "ARCH is amd64 or arm64, not riscv64"),
        (
            &["build", "ARCH=arm64", "NATIVE=amd64", "CROSS_arm64=missing-"],
            "there is no missing-gcc: install a cross compiler and C library for arm64",
        ),
    ] {
        let said = format!("{:#}", run(&mut make(args)).await.unwrap_err());
        assert!(said.contains(wanted), "{said}");
    }
}

#[tokio::test]
async fn an_image_is_made_of_the_static_operator_alone() {
    let printed = run(&mut make(&["-n", "build", "ARCH=amd64"])).await.unwrap();
    let build = printed.lines().find(|line| line.contains(" build --release --target x86_64-")).unwrap();
    // Without a C library beside it, and without one that is asked for random numbers.
    for flag in ["-C target-feature=+crt-static", "getrandom_backend=\"linux_getrandom\""] {
        assert!(build.contains(flag), "{build}");
    }
    assert!(printed.contains("at=\"target/image/amd64/$program\""), "{printed}");
    let file = std::fs::read_to_string(root().join("Containerfile")).unwrap();
    let lines: Vec<&str> = file.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
    assert_eq!(
        lines,
        [
            "FROM scratch",
            "ARG TARGETARCH",
            "COPY target/image/${TARGETARCH}/emco-operator /emco-operator",
            "USER 65532:65532",
            "ENTRYPOINT [\"/emco-operator\"]",
            "CMD [\"run\"]",
        ]
    );
}
