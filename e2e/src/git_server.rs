//! Serves a Git repository on loopback with Git's own `http-backend`.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, ensure};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::Response;
use base64::Engine as _;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::https::Server;

/// A repository. It ends when it is dropped.
pub struct GitServer {
    folder: tempfile::TempDir,
    server: Server,
    state: Arc<Backend>,
}

struct Backend {
    root: PathBuf,
    /// `Basic ...`, where a login is asked for.
    login: Option<String>,
    asked: Mutex<Vec<String>>,
}

impl GitServer {
    /// Starts it on a free port with an empty repository, for everybody and without TLS, or for who has the login and with a
    /// certificate of its own authority.
    pub async fn start(login: Option<(&str, &str)>) -> Result<Self> {
        let folder = tempfile::tempdir().context("no folder for a repository")?;
        let encode = |pair: String| base64::engine::general_purpose::STANDARD.encode(pair);
        let login_text =
            login.map(|(user, password)| format!("Basic {}", encode(format!("{user}:{password}"))));
        let root = folder.path().to_owned();
        let state = Arc::new(Backend { root, login: login_text, asked: Mutex::default() });
        let router = Router::new().fallback(serve).with_state(Arc::clone(&state));
        let server = match login {
            None => Server::plain(router).await?,
            Some(_) => Server::secure(router, &[]).await?,
        };
        let this = Self { folder, server, state };
        std::fs::create_dir(this.work())?;
        this.git(&["init", "-q", "-b", "main"]).await?;
        Ok(this)
    }

    fn work(&self) -> PathBuf {
        self.folder.path().join("charts.git")
    }

    /// The address of the repository.
    pub fn url(&self) -> String {
        format!("{}/charts.git", self.server.url())
    }

    /// The authority of its certificate, in PEM; empty where it has none.
    pub fn ca(&self) -> &str {
        self.server.ca()
    }

    /// What was asked since the last call: `path authorization`.
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.state.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Runs Git in the repository.
    pub async fn git(&self, args: &[&str]) -> Result<String> {
        let mut command = bare(self.folder.path());
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "ann").env(format!("GIT_{who}_EMAIL"), "ann@example.com");
        }
        let output =
            command.args(args).current_dir(self.work()).output().await.context("cannot start git")?;
        ensure!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout).context("git printed no text")?.trim().to_owned())
    }

    /// Writes files and commits them; answers the commit.
    pub async fn commit(&self, files: &[(&str, &str)]) -> Result<String> {
        for (path, text) in files {
            let path = self.work().join(path);
            std::fs::create_dir_all(path.parent().context("a file is in a folder")?)?;
            std::fs::write(&path, text).with_context(|| path.display().to_string())?;
        }
        self.git(&["add", "-A"]).await?;
        self.git(&["commit", "-q", "-m", "a change"]).await?;
        self.git(&["rev-parse", "HEAD"]).await
    }
}

/// Git as it is for nobody in particular.
fn bare(home: &Path) -> Command {
    let mut command = Command::new("git");
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .kill_on_drop(true);
    command
}

async fn serve(
    State(backend): State<Arc<Backend>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, (StatusCode, String)> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let given = Some(header("authorization")).filter(|given| !given.is_empty());
    let line = format!("{} {}", uri.path(), given.unwrap_or("-"));
    backend.asked.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    if backend.login.is_some() && backend.login.as_deref() != given {
        return Err((StatusCode::UNAUTHORIZED, "who are you?\n".to_owned()));
    }
    let mut command = bare(&backend.root);
    command
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", &backend.root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REQUEST_METHOD", method.as_str())
        .env("PATH_INFO", uri.path())
        .env("QUERY_STRING", uri.query().unwrap_or_default())
        .env("CONTENT_TYPE", header("content-type"))
        .env("CONTENT_LENGTH", body.len().to_string())
        .env("HTTP_GIT_PROTOCOL", header("git-protocol"));
    answer(command, &body).await.map_err(|error| (StatusCode::BAD_GATEWAY, format!("{error:#}")))
}

async fn answer(mut command: Command, body: &[u8]) -> Result<Response> {
    let mut program = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start git http-backend")?;
    let mut input = program.stdin.take().context("no way to write to it")?;
    input.write_all(body).await.context("it does not read")?;
    drop(input);
    let output = program.wait_with_output().await?.stdout;
    let end = output.windows(4).position(|four| four == b"\r\n\r\n").context("it answers without a head")?;
    let (head, rest) = output.split_at(end);
    let mut response = Response::builder();
    for line in std::str::from_utf8(head).context("its head is no text")?.lines() {
        let (name, value) = line.split_once(": ").context("its head is no head")?;
        response = match name {
            "Status" => response.status(value.get(..3).unwrap_or_default()),
            _ => response.header(name, value),
        };
    }
    let content = rest.get(4..).unwrap_or_default().to_vec();
    response.body(Body::from(content)).context("its answer is no answer")
}
