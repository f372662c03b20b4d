//! Unpacks a corpus of real charts, and says which of them are rendered and deployed, and to which next version they are changed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// A chart that is deployed.
pub struct Deployed {
    /// Its folder in the corpus.
    pub folder: &'static str,
    /// The values it is installed with, as JSON.
    pub values: &'static str,
    /// The values it is changed to, beside those of the installation.
    pub change: &'static str,
    /// The folder of its next version, where the corpus has one. It gets the same values.
    pub next: Option<&'static str>,
}

/// A chart that is installed with its own values, and the corpus has no other version of.
const fn changed(folder: &'static str, change: &'static str) -> Deployed {
    Deployed { folder, values: "{}", change, next: None }
}

/// The charts that are deployed, plain ones first.
pub const CHARTS: [Deployed; 11] = [
    changed("emco-http-server_helm_http-server", r#"{"replicaCount": 2}"#),
    changed("emco-http-client_helm_http-client", r#"{"replicaCount": 2}"#),
    changed("emco-collectd_helm_collectd", r#"{"image": {"tag": "changed"}}"#),
    // With hooks before and after the installation.
    Deployed { next: Some("bitnami-nginx"), ..changed("emco-nginx_helm_nginx", r#"{"replicaCount": 2}"#) },
    // With a definition and objects outside of namespaces.
    changed("emco-operators-latest_helm_operator", r#"{"image": {"tag": "changed"}}"#),
    // With hooks of weights that go when they are done, and a webhook.
    changed("k8s-ingress-nginx", r#"{"commonLabels": {"changed": "yes"}}"#),
    changed("prom-kube-state-metrics", r#"{"replicas": 2}"#),
    // With a random password that is looked up, and claims.
    changed("bitnami-redis", r#"{"master": {"podAnnotations": {"changed": "yes"}}}"#),
    // Its next version demands the password that was drawn.
    Deployed {
        next: Some("bitnami-etcd"),
        ..changed("emco-emcoBase_etcd", r#"{"statefulset": {"replicaCount": 3}, "replicaCount": 3}"#)
    },
    // The same with a password that was given: then the StatefulSet has another selector.
    Deployed {
        folder: "emco-emcoBase_etcd",
        values: r#"{"auth": {"rbac": {"rootPassword": "given"}}}"#,
        change: r#"{"statefulset": {"replicaCount": 3}, "replicaCount": 3}"#,
        next: Some("bitnami-etcd"),
    },
    // With a folder of definitions, and objects of the kinds that they define. Nothing is behind its webhook, kinds that
    // Kubernetes has no more are switched off, and so are the Services in kube-system.
    Deployed {
        folder: "emco-kube-prometheus-stack_helm_kube-prometheus-stack",
        values: r#"{
            "global": {"rbac": {"pspEnabled": false}},
            "grafana": {"rbac": {"pspEnabled": false}},
            "kube-state-metrics": {"podSecurityPolicy": {"enabled": false}},
            "prometheus-node-exporter": {"rbac": {"pspEnabled": false}},
            "prometheusOperator": {
                "admissionWebhooks": {"enabled": false}, "tls": {"enabled": false}, "kubeletService": {"enabled": false}
            },
            "coreDns": {"enabled": false}, "kubeControllerManager": {"enabled": false}, "kubeEtcd": {"enabled": false},
            "kubeScheduler": {"enabled": false}, "kubeProxy": {"enabled": false}
        }"#,
        change: r#"{"prometheus": {"prometheusSpec": {"replicas": 2}}}"#,
        next: Some("prom-kube-prometheus-stack"),
    },
];

/// Names under which the corpus has charts of several publishers: none of them is the next version of the other.
const OTHER_PUBLISHERS: [&str; 6] =
    ["argo-cd", "cert-manager", "elasticsearch", "external-dns", "harbor", "redis"];

/// An unpacked corpus: the folder with its charts.
pub struct Corpus(PathBuf);

/// A chart with values.
pub struct Case {
    /// Name of the chart's folder; with that of its values where one chart has several cases.
    pub name: String,
    /// The chart's folder.
    pub chart: PathBuf,
    /// File of values.
    pub values: Option<PathBuf>,
}

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

    /// Every chart whose name contains `only`, by name.
    pub fn rendered(&self, only: &str) -> Result<Vec<Case>> {
        let entries = std::fs::read_dir(&self.0).with_context(|| self.0.display().to_string())?;
        let mut cases = Vec::new();
        for entry in entries.collect::<std::io::Result<Vec<_>>>()? {
            let name = entry.file_name().to_string_lossy().into_owned();
            let values = self.0.with_file_name("values").join(format!("{name}.need.yaml"));
            let values = values.is_file().then_some(values);
            if name.contains(only) && entry.path().is_dir() {
                cases.push(Case { name, chart: entry.path(), values });
            }
        }
        cases.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(cases)
    }

    /// What is upgraded of these charts: each with its own values, with those that it demands, and with those of its folder `ci`.
    pub fn upgrades(charts: &[Case]) -> Vec<Case> {
        let case = |chart: &Case, name: String, values| Case { name, chart: chart.chart.clone(), values };
        let mut cases = Vec::new();
        for chart in charts {
            cases.push(case(chart, chart.name.clone(), None));
            for file in chart.files() {
                let stem = file.file_stem().unwrap_or_default().to_string_lossy();
                cases.push(case(chart, format!("{}/{stem}", chart.name), Some(file.clone())));
            }
        }
        cases
    }

    /// An error where the corpus has two versions of a chart, and the older one is not deployed and changed to the newer one.
    pub fn every_next_version_is_deployed(&self) -> Result<()> {
        let mut folders: BTreeMap<String, BTreeSet<(String, String)>> = BTreeMap::new();
        for case in self.rendered("")? {
            let [name, version] = name_and_version(&case.chart)?;
            folders.entry(name).or_default().insert((version, case.name));
        }
        for (name, charts) in folders {
            let versions: BTreeSet<&String> = charts.iter().map(|(version, _)| version).collect();
            let deployed = CHARTS.iter().any(|deployed| {
                let has = |folder: &str| charts.iter().any(|(_, known)| known == folder);
                has(deployed.folder) && deployed.next.is_some_and(has)
            });
            ensure!(
                versions.len() < 2 || deployed || OTHER_PUBLISHERS.contains(&name.as_str()),
                "the corpus has several versions of {name}: {charts:?}. Deploy the older one and change it to the newer one"
            );
        }
        Ok(())
    }
}

impl Case {
    /// The values that the chart is tried with: what it demands, and what its authors try it with.
    pub fn files(&self) -> Vec<PathBuf> {
        let own = std::fs::read_dir(self.chart.join("ci")).into_iter().flatten().flatten();
        let own = own.map(|entry| entry.path());
        let own = own.filter(|path| path.extension().is_some_and(|ext| ext == "yaml" || ext == "yml"));
        let mut files: Vec<PathBuf> = own.chain(self.values.clone()).collect();
        files.sort();
        files
    }
}

fn name_and_version(chart: &Path) -> Result<[String; 2]> {
    let file = chart.join("Chart.yaml");
    let text = std::fs::read(&file).with_context(|| file.display().to_string())?;
    let parsed = emco_helm::yaml::to_json(text.as_slice());
    let parsed = parsed.map_err(|error| anyhow::anyhow!("{}: {error}", file.display()))?;
    let text = |key: &str| {
        parsed.get(key).map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    };
    Ok(["name", "version"].map(|key| text(key).unwrap_or_default()))
}
