//! Serves a Git repository on loopback with Git's own `http-backend`.

mod held;
mod pushed;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, ensure};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::Response;
use base64::Engine as _;
use k8s_openapi::jiff::Timestamp;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::https::Server;
pub use held::{At, Held};
use held::{Holds, Stage};

/// A repository. It ends when it is dropped.
pub struct GitServer {
    folder: tempfile::TempDir,
    server: Server,
    state: Arc<Backend>,
}

struct Backend {
    root: PathBuf,
    /// `Basic ...`, where a login is asked for.
    login: Mutex<Option<String>>,
    asked: Mutex<Vec<String>>,
    pushed: Mutex<Vec<Push>>,
    faults: pushed::Faults,
    holds: Holds,
}

/// A push that the repository answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Push {
    /// What was sent.
    pub bytes: usize,
    /// When Git had ended its work.
    pub at: Timestamp,
}

/// What the header of a login says.
fn basic((user, password): (&str, &str)) -> String {
    let text = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
    format!("Basic {text}")
}

impl GitServer {
    /// Starts it on a free port with an empty repository, for everybody and without TLS, or for who has the login and with a
    /// certificate of its own authority.
    pub async fn start(login: Option<(&str, &str)>) -> Result<Self> {
        let this = Self::serve(login).await?;
        this.git(&["init", "-q", "-b", "main"]).await?;
        Ok(this)
    }

    /// Starts it without a repository.
    async fn serve(login: Option<(&str, &str)>) -> Result<Self> {
        let folder = tempfile::tempdir().context("no folder for a repository")?;
        let state = Arc::new(Backend {
            root: folder.path().to_owned(),
            login: Mutex::new(login.map(basic)),
            asked: Mutex::default(),
            pushed: Mutex::default(),
            faults: pushed::Faults::default(),
            holds: Holds::default(),
        });
        let router = Router::new().fallback(serve).layer(DefaultBodyLimit::disable());
        let router = router.with_state(Arc::clone(&state));
        let server = match login {
            None => Server::plain(router).await?,
            Some(_) => Server::secure(router, &[]).await?,
        };
        let this = Self { folder, server, state };
        std::fs::create_dir(this.work())?;
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

    /// Asks for another login from now on.
    pub fn change_login(&self, login: (&str, &str)) {
        *self.state.login.lock().unwrap_or_else(PoisonError::into_inner) = Some(basic(login));
    }

    /// Holds a request, until what is answered is dropped.
    pub fn hold(&self, at: At) -> Held {
        self.state.holds.hold(at)
    }

    /// Pushes since the last call.
    pub fn pushes(&self) -> Vec<Push> {
        std::mem::take(&mut *self.state.pushed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Runs Git in the repository.
    pub async fn git(&self, args: &[&str]) -> Result<String> {
        git_in(self.folder.path(), &self.work(), args).await
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

/// Runs Git in a folder as a person.
async fn git_in(home: &Path, folder: &Path, args: &[&str]) -> Result<String> {
    let mut command = bare(home);
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "ann").env(format!("GIT_{who}_EMAIL"), "ann@example.com");
    }
    let output = command.args(args).current_dir(folder).output().await.context("cannot start git")?;
    ensure!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout).context("git printed no text")?.trim().to_owned())
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
    let login = backend.login.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if login.is_some() && login.as_deref() != given {
        return Err((StatusCode::UNAUTHORIZED, "who are you?\n".to_owned()));
    }
    backend.holds.pass(Stage::Request).await;
    let pushes = method == Method::POST && uri.path().ends_with("/git-receive-pack");
    if pushes {
        backend.holds.pass(Stage::Push).await;
        pushed::before(&backend).await.map_err(|error| (StatusCode::BAD_GATEWAY, format!("{error:#}")))?;
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
        .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
        .env("REMOTE_USER", "emco")
        .env("HTTP_GIT_PROTOCOL", header("git-protocol"));
    let answered = answer(command, &body).await;
    if pushes {
        let push = Push { bytes: body.len(), at: Timestamp::now() };
        backend.pushed.lock().unwrap_or_else(PoisonError::into_inner).push(push);
        backend.holds.pass(Stage::Pushed).await;
    }
    if pushes && backend.faults.loses_the_answer() {
        return Err((StatusCode::GATEWAY_TIMEOUT, "nobody answered in time\n".to_owned()));
    }
    answered.map_err(|error| (StatusCode::BAD_GATEWAY, format!("{error:#}")))
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
