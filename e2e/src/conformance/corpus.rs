//! In: the folder of a corpus of real charts. Out: the folders of the charts that are deployed, unpacked once.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// The charts, by folder of the corpus: plain ones first.
pub const CHARTS: [&str; 8] = [
    "emco-http-server_helm_http-server",
    "emco-http-client_helm_http-client",
    "emco-collectd_helm_collectd",
    // With hooks before and after the installation.
    "emco-nginx_helm_nginx",
    // With a definition and objects outside of namespaces.
    "emco-operators-latest_helm_operator",
    // With hooks of weights that go when they are done, and a webhook.
    "k8s-ingress-nginx",
    "prom-kube-state-metrics",
    // With a random password, and claims.
    "bitnami-redis",
];

/// An unpacked corpus.
pub struct Corpus(PathBuf);

impl Corpus {
    /// Unpacks `corpus.tar.xz` of `folder` into `CHART_CORPUS_CACHE` (else a folder for temporary files), unless it was before.
    pub fn open(folder: &Path) -> Result<Self> {
        let cache = std::env::var_os("CHART_CORPUS_CACHE")
            .map_or_else(|| std::env::temp_dir().join("chart-corpus"), PathBuf::from);
        let charts = cache.join("corpus");
        if !charts.is_dir() {
            let archive = folder.join("corpus.tar.xz");
            ensure!(
                archive.is_file(),
                "there is no {}: --charts names the folder of the corpus",
                archive.display()
            );
            std::fs::create_dir_all(&cache).with_context(|| format!("cannot make {}", cache.display()))?;
            // Beside its place, which it takes as a whole: an unpacking that was cut short would look like a corpus.
            let fresh = tempfile::tempdir_in(&cache)
                .with_context(|| format!("cannot write to {}", cache.display()))?;
            let status = Command::new("tar").arg("-xJf").arg(&archive).arg("-C").arg(fresh.path()).status();
            let status = status.context("cannot start tar")?;
            ensure!(status.success(), "tar cannot unpack {}: {status}", archive.display());
            // With what belongs to the charts, for others who use the same cache; the charts last, since they are looked for.
            for entry in std::fs::read_dir(fresh.path())?.collect::<std::io::Result<Vec<_>>>()? {
                let place = cache.join(entry.file_name());
                if place != charts && !place.exists() {
                    std::fs::rename(entry.path(), &place).with_context(|| place.display().to_string())?;
                }
            }
            std::fs::rename(fresh.path().join("corpus"), &charts)
                .with_context(|| format!("{} holds no folder corpus", archive.display()))?;
        }
        Ok(Self(charts))
    }

    /// The folder of one chart.
    pub fn chart(&self, name: &str) -> Result<PathBuf> {
        let folder = self.0.join(name);
        ensure!(folder.is_dir(), "the corpus {} has no chart {name}", self.0.display());
        Ok(folder)
    }
}
