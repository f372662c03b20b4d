//! In: packaged charts. Out: a Helm repository on loopback that lists and serves them, for as long as it is kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use emco_e2e::package::Package;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::apps::Apps;

/// A running server. It ends when it is dropped.
pub struct Server {
    url: String,
    task: JoinHandle<()>,
}

struct Files {
    index: String,
    archives: BTreeMap<String, Vec<u8>>,
}

impl Server {
    /// Starts it on a free port.
    pub async fn start(apps: &Apps) -> Result<Self> {
        let files = Arc::new(Files {
            index: index(apps.packages())?,
            archives: apps.packages().map(|package| (package.file_name(), package.bytes.clone())).collect(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.context("cannot listen on loopback")?;
        let url = format!("http://{}", listener.local_addr()?);
        let router = Router::new()
            .route("/index.yaml", get(|State(files): State<Arc<Files>>| async move { files.index.clone() }))
            .route("/{file}", get(archive))
            .with_state(files);
        let task = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                eprintln!("the server of charts ended: {error}");
            }
        });
        Ok(Self { url, task })
    }

    /// Its address, without a slash at the end.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn archive(
    State(files): State<Arc<Files>>,
    Path(file): Path<String>,
) -> Result<Vec<u8>, (StatusCode, String)> {
    let found = files.archives.get(&file).cloned();
    found.ok_or_else(|| (StatusCode::NOT_FOUND, format!("there is no chart {file}\n")))
}

/// `index.yaml`, as `helm repo index` would list them.
fn index<'a>(packages: impl Iterator<Item = &'a Package>) -> Result<String> {
    let mut entries: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for package in packages {
        let digest = hex::encode(Sha256::digest(&package.bytes));
        entries.entry(&package.name).or_default().push(json!({
            "apiVersion": "v2", "name": package.name, "version": package.version,
            "digest": digest, "urls": [package.file_name()],
        }));
    }
    serde_yaml::to_string(&json!({"apiVersion": "v1", "entries": entries})).context("cannot write index.yaml")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_of_a_chart_is_listed_with_its_digest() {
        let package = |version: &str| Package {
            name: "web".to_owned(),
            version: version.to_owned(),
            bytes: version.as_bytes().to_vec(),
        };
        let (one, two) = (package("1.0.0"), package("2.0.0"));
        let index: Value = serde_yaml::from_str(&index([&one, &two].into_iter()).unwrap()).unwrap();
        assert_eq!(index.pointer("/entries/web/0/urls/0").unwrap(), "web-1.0.0.tgz");
        assert_eq!(index.pointer("/entries/web/1/version").unwrap(), "2.0.0");
        let digest = "92521fc3cbd964bdc9f584a991b89fddaa5754ed1cc96d6d42445338669c1305";
        assert_eq!(index.pointer("/entries/web/0/digest").unwrap(), digest);
    }
}
