//! Serves packaged charts as a Helm repository on loopback, with TLS and a login where asked for. It can go down and come back,
//! and what it gives can change.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use base64::Engine as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::https::{Tls, certificate};
use crate::package::Package;

/// A repository. It ends when it is dropped.
pub struct Repository {
    address: SocketAddr,
    tls: Option<(TlsAcceptor, String)>,
    files: Arc<Files>,
    task: Option<JoinHandle<()>>,
}

struct Files {
    /// `Basic ...`, where a login is asked for.
    login: Option<String>,
    served: Mutex<Served>,
    /// Whether it takes questions and does not answer them.
    holds: watch::Sender<bool>,
    /// Questions that wait for an answer.
    held: watch::Sender<usize>,
}

/// A question that waits for its answer.
struct Held<'a>(&'a watch::Sender<usize>);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|held| *held -= 1);
    }
}

#[derive(Default)]
struct Served {
    index: String,
    archives: BTreeMap<String, Vec<u8>>,
}

impl Repository {
    /// Starts it on a free port, for everybody.
    pub async fn start(packages: impl IntoIterator<Item = Package>) -> Result<Self> {
        Self::serve(packages, None, None).await
    }

    /// Starts it on a free port, with a certificate of an authority of its own, for whoever knows the login.
    pub async fn start_guarded(
        packages: impl IntoIterator<Item = Package>,
        username: &str,
        password: &str,
    ) -> Result<Self> {
        let (ca, acceptor) = certificate(&[])?;
        let login = base64::engine::general_purpose::STANDARD.encode(format!("{username}:{password}"));
        Self::serve(packages, Some((acceptor, ca)), Some(format!("Basic {login}"))).await
    }

    async fn serve(
        packages: impl IntoIterator<Item = Package>,
        tls: Option<(TlsAcceptor, String)>,
        login: Option<String>,
    ) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("cannot listen on loopback")?;
        let files = Arc::new(Files {
            login,
            served: Mutex::default(),
            holds: watch::Sender::new(false),
            held: watch::Sender::new(0),
        });
        let mut this = Self { address: listener.local_addr()?, tls, files, task: None };
        this.publish(packages)?;
        this.listen(listener);
        Ok(this)
    }

    /// Its address, without a slash at the end.
    pub fn url(&self) -> String {
        format!("{}://{}", if self.tls.is_some() { "https" } else { "http" }, self.address)
    }

    /// The authority of its certificate, in PEM; empty where it has none.
    pub fn ca(&self) -> &str {
        self.tls.as_ref().map_or("", |(_, ca)| ca)
    }

    /// Lists and serves these and nothing else.
    pub fn publish(&self, packages: impl IntoIterator<Item = Package>) -> Result<()> {
        let packages: Vec<Package> = packages.into_iter().collect();
        let served = Served {
            index: index(&packages)?,
            archives: packages.into_iter().map(|package| (package.file_name(), package.bytes)).collect(),
        };
        *self.files.served.lock().unwrap_or_else(PoisonError::into_inner) = served;
        Ok(())
    }

    /// Closes its port.
    pub async fn stop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
            let _ = task.await;
        }
    }

    /// Opens its port again.
    pub async fn resume(&mut self) -> Result<()> {
        self.stop().await;
        let listener = TcpListener::bind(self.address).await;
        let listener = listener.with_context(|| format!("cannot listen on {} again", self.address))?;
        self.listen(listener);
        Ok(())
    }

    /// Takes questions from now on without answering them, or answers those that it took.
    pub fn hold(&self, holds: bool) {
        self.files.holds.send_replace(holds);
    }

    /// Waits until somebody waits for an answer.
    pub async fn is_waited_for(&self) {
        // Its sender is in `self`.
        let _ = self.files.held.subscribe().wait_for(|held| *held > 0).await;
    }

    /// Questions that are not answered yet by those who still wait.
    pub fn held(&self) -> usize {
        *self.files.held.borrow()
    }

    fn listen(&mut self, listener: TcpListener) {
        let router = Router::new()
            .route("/index.yaml", get(list))
            .route("/{file}", get(archive))
            .with_state(Arc::clone(&self.files));
        let acceptor = self.tls.as_ref().map(|(acceptor, _)| acceptor.clone());
        self.task = Some(tokio::spawn(async move {
            let ended = match acceptor {
                None => axum::serve(listener, router).await,
                Some(acceptor) => axum::serve(Tls { listener, acceptor }, router).await,
            };
            if let Err(error) = ended {
                eprintln!("the repository of charts ended: {error}");
            }
        }));
    }
}

impl Drop for Repository {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

type Refused = (StatusCode, String);

impl Files {
    async fn read<T>(
        &self,
        headers: &HeaderMap,
        what: impl FnOnce(&Served) -> Option<T>,
    ) -> Result<T, Refused> {
        self.held.send_modify(|held| *held += 1);
        let held = Held(&self.held);
        let _ = self.holds.subscribe().wait_for(|holds| !holds).await;
        drop(held);
        self.answer(headers, what)
    }

    fn answer<T>(&self, headers: &HeaderMap, what: impl FnOnce(&Served) -> Option<T>) -> Result<T, Refused> {
        let given = headers.get("authorization").and_then(|value| value.to_str().ok());
        if self.login.is_some() && self.login.as_deref() != given {
            return Err((StatusCode::UNAUTHORIZED, "who are you?\n".to_owned()));
        }
        let served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
        what(&served).ok_or_else(|| (StatusCode::NOT_FOUND, "there is no such chart\n".to_owned()))
    }
}

async fn list(State(files): State<Arc<Files>>, headers: HeaderMap) -> Result<String, Refused> {
    files.read(&headers, |served| Some(served.index.clone())).await
}

async fn archive(
    State(files): State<Arc<Files>>,
    Path(file): Path<String>,
    headers: HeaderMap,
) -> Result<Vec<u8>, Refused> {
    files.read(&headers, |served| served.archives.get(&file).cloned()).await
}

/// `index.yaml`, as `helm repo index` would list them.
fn index(packages: &[Package]) -> Result<String> {
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
        let index: Value =
            serde_yaml::from_str(&index(&[package("1.0.0"), package("2.0.0")]).unwrap()).unwrap();
        assert_eq!(index.pointer("/entries/web/0/urls/0").unwrap(), "web-1.0.0.tgz");
        assert_eq!(index.pointer("/entries/web/1/version").unwrap(), "2.0.0");
        let digest = "92521fc3cbd964bdc9f584a991b89fddaa5754ed1cc96d6d42445338669c1305";
        assert_eq!(index.pointer("/entries/web/0/digest").unwrap(), digest);
    }
}
