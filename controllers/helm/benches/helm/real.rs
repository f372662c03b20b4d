//! Unpacks the folder of real charts, and finds Helm's own program.
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

/// The Helm that ours is measured against.
const VERSION: &str = "v3.17.3";
pub const LARGE: &str = "prom-kube-prometheus-stack";
pub const INGRESS: &str = "k8s-ingress-nginx";

/// Unpacks the charts that are measured out of `corpus.tar.xz`, which `EMCO_CHARTS` names the folder of.
pub fn charts(into: &Path) -> Result<PathBuf> {
    let Some(folder) = variable("EMCO_CHARTS") else {
        bail!("EMCO_CHARTS is not set: it names the folder with corpus.tar.xz, the corpus of real charts")
    };
    let packed = folder.join("corpus.tar.xz");
    ensure!(packed.is_file(), "there is no {}: EMCO_CHARTS names another folder", packed.display());
    std::fs::create_dir_all(into).with_context(|| format!("cannot make {}", into.display()))?;
    let mut tar = Command::new("tar");
    tar.arg("-xJf")
        .arg(&packed)
        .arg("-C")
        .arg(into)
        .args([LARGE, INGRESS].map(|name| format!("corpus/{name}")));
    let out = tar.output().context("cannot start tar")?;
    let said = String::from_utf8_lossy(&out.stderr);
    ensure!(out.status.success(), "tar cannot unpack {}: {}", packed.display(), said.trim());
    Ok(into.join("corpus"))
}

/// Helm's program: that of `HELM`, else the one in the cache. Its version must be the one ours follows.
pub fn helm() -> Result<PathBuf> {
    let cache = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    let cached = cache.map(|cache| cache.join(format!("emco/helm-{VERSION}/helm")));
    let Some(helm) = variable("HELM").or(cached).filter(|helm| helm.is_file()) else {
        bail!(
            "there is no Helm to compare with: `emco-e2e programs helm` builds it, or HELM names its program"
        )
    };
    let out = Command::new(&helm).args(["version", "--short"]).output();
    let out = out.with_context(|| format!("cannot start {}", helm.display()))?;
    let version = String::from_utf8_lossy(&out.stdout);
    ensure!(version.starts_with(VERSION), "{} is {}, not {VERSION}", helm.display(), version.trim());
    Ok(helm)
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}
