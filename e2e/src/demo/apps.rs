//! Deploys each packaged chart of a folder as one app on every edge.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use emco_e2e::package::Package;
use emco_e2e::repository::Repository;
use serde_json::{Value, json};

use super::screen::Screen;
use super::stage::Stage;
use super::{READY, checks, look, sample};

/// Project, and its namespace.
pub const PROJECT: &str = sample::PROJECT;
/// CompositeApp, deployment and release.
const NAME: &str = "apps";
/// A composite app has at most so many.
const MOST: usize = 64;
/// Of one archive; what the hub's operator takes.
const MOST_BYTES: u64 = 20 * 1024 * 1024;
/// Longest name of an app.
const LONGEST: usize = 43;

/// Packaged charts by the name of their app.
pub struct Apps(BTreeMap<String, Package>);

impl Apps {
    /// Reads every `.tgz` of `folder`.
    pub fn of_folder(folder: &Path) -> Result<Self> {
        let entries = std::fs::read_dir(folder)
            .with_context(|| format!("cannot read the folder of charts {}", folder.display()))?;
        let mut files: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "tgz"));
        files.sort();
        ensure!(!files.is_empty(), "{} holds no .tgz: package charts into it first", folder.display());
        ensure!(files.len() <= MOST, "{} holds {} charts, at most {MOST}", folder.display(), files.len());
        let mut apps = Self(BTreeMap::new());
        for file in files {
            let size = file.metadata().with_context(|| file.display().to_string())?.len();
            ensure!(size <= MOST_BYTES, "{} is larger than {MOST_BYTES} bytes", file.display());
            let bytes = std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
            let package = Package::of_archive(bytes).with_context(|| file.display().to_string())?;
            apps.add(package);
        }
        Ok(apps)
    }

    fn add(&mut self, package: Package) {
        let name = app_name(&package.name);
        let free = (1..).map(|number| if number == 1 { name.clone() } else { format!("{name}-{number}") });
        let taken: BTreeSet<String> = self.0.keys().cloned().collect();
        let name = free.into_iter().find(|name| !taken.contains(name)).unwrap_or(name);
        self.0.insert(name, package);
    }

    /// Serves the charts, deploys them everywhere, then takes the small edge away from them. The server is to be kept.
    pub async fn play(&self, stage: &Stage, screen: &Screen) -> Result<Repository> {
        screen.step(&format!("Serving {} charts as a Helm repository on loopback", self.0.len()));
        let server = Repository::start(self.0.values().cloned()).await?;
        screen.say(&format!("{}/index.yaml", server.url()));

        screen.step("Deploying each of them to every edge");
        let everywhere = json!({"selector": {}});
        stage.apply_text(screen, &self.objects(&server.url(), &everywhere)?).await?;
        let took = stage.watch(screen, PROJECT, NAME).await?.until_ready(1, READY).await?;
        screen.say(&format!("Ready {:.1} s after it was applied.", took.as_secs_f64()));
        look::status(stage, screen, PROJECT).await?;

        screen.step("Taking the small edge away: the same deployment, placed on all others");
        let not_small = json!({"selector": {"matchExpressions": [{"key": "size", "operator": "NotIn", "values": ["small"]}]}});
        stage.apply_text(screen, &self.objects(&server.url(), &not_small)?).await?;
        let took = stage.watch(screen, PROJECT, NAME).await?.until_ready(2, READY).await?;
        checks::empty(stage, "porto").await?;
        screen.say(&format!(
            "Ready, and nothing of it runs on porto, {:.1} s after it was applied.",
            took.as_secs_f64()
        ));
        look::status(stage, screen, PROJECT).await?;
        Ok(server)
    }

    fn objects(&self, url: &str, term: &Value) -> Result<String> {
        let charts = self.0.iter().map(|(app, package)| {
            let Package { name, version, .. } = package;
            json!({"name": app, "chart": {"repository": {"url": url, "name": name, "version": version}}})
        });
        let charts: Vec<Value> = charts.collect();
        let api = "emco.io/v1alpha1";
        let metadata = json!({"name": NAME, "namespace": PROJECT});
        let objects = [
            // Loopback has to be listed, as every address that is not public.
            json!({"apiVersion": api, "kind": "Project", "metadata": {"name": PROJECT},
                   "spec": {"logicalCloud": {"level": "Admin"}, "chartSources": [format!("{url}/")]}}),
            json!({"apiVersion": api, "kind": "CompositeApp", "metadata": metadata, "spec": {"apps": charts}}),
            json!({"apiVersion": api, "kind": "DeploymentIntentGroup", "metadata": metadata,
                   "spec": {"compositeAppRef": {"name": NAME}, "placement": {"allOf": [term]}}}),
        ];
        let mut text = String::new();
        for object in objects {
            write!(text, "---\n{}", serde_yaml::to_string(&object)?)?;
        }
        Ok(text)
    }
}

/// A DNS label made of a chart's name.
fn app_name(chart: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    // Room for the number of a second one of that name.
    let name: String = chart.chars().map(plain).take(LONGEST - 3).collect();
    let name = name.trim_matches('-');
    if name.is_empty() { "app".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, version: &str) -> Package {
        Package { name: name.to_owned(), version: version.to_owned(), bytes: Vec::new() }
    }

    #[test]
    fn two_versions_of_a_chart_are_two_apps() {
        let mut apps = Apps(BTreeMap::new());
        apps.add(package("Web_Shop", "1.0.0"));
        apps.add(package("Web_Shop", "2.0.0"));
        let text = apps.objects("http://127.0.0.1:1", &json!({"selector": {}})).unwrap();
        assert!(text.contains("name: web-shop\n") && text.contains("name: web-shop-2\n"), "{text}");
        assert!(text.contains("version: 1.0.0") && text.contains("version: 2.0.0"), "{text}");
    }

    #[test]
    fn a_folder_without_charts_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("README"), "").unwrap();
        let error = Apps::of_folder(dir.path()).err().map(|error| error.to_string());
        assert!(error.is_some_and(|error| error.contains("holds no .tgz")));
    }
}
