//! Runs the dashboard, and asks it for pages as a browser does.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use emco_e2e::bed::Bed;
use emco_e2e::https::loopback::{begin, send};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdout, Command};

use super::found;

const PATIENCE: Duration = Duration::from_secs(60);

/// A dashboard. It ends when it is dropped.
pub struct Served {
    child: Child,
    port: u16,
    /// With the secret, between slashes.
    path: String,
    _lines: Lines<BufReader<ChildStdout>>,
}

impl Served {
    /// Starts it as the administrator of the hub.
    pub async fn start(bed: &Bed, program: &Path) -> Result<Self> {
        let mut command = Command::new(program);
        command
            .args(["dashboard", "-A"])
            .env_clear()
            .env("KUBECONFIG", bed.hub().kubectl().kubeconfig())
            .env("HOME", bed.dir())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().context("kubectl-emco does not start")?;
        let mut lines = BufReader::new(child.stdout.take().context("it has no standard output")?).lines();
        let link = async {
            while let Some(line) = lines.next_line().await? {
                if let Some(link) = line.split_whitespace().find(|word| word.starts_with("http://")) {
                    return Ok(link.to_owned());
                }
            }
            bail!("it ended without a link")
        };
        let link = tokio::time::timeout(PATIENCE, link).await.context("it prints no link")??;
        let port = found(&link, "http://127.0.0.1:", "/", "port")?.parse().context("the port")?;
        let secret = link.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        Ok(Self { child, port, path: format!("/{secret}/"), _lines: lines })
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id().unwrap_or_default()
    }

    /// An address as a page gives it: from the root, or below the link.
    fn absolute(&self, address: &str) -> String {
        if address.starts_with('/') {
            return address.to_owned();
        }
        format!("{}{}", self.path, address.trim_start_matches("./"))
    }

    /// The text of a page.
    pub async fn page(&self, address: &str) -> Result<String> {
        let reply = send(self.port, "GET", &self.absolute(address), &[], "").await?;
        ensure!(reply.status == 200, "{address:?} answers {}: {}", reply.status, reply.text());
        Ok(reply.text())
    }

    /// How many requests the first page takes with all that it names, and how many bytes come for them.
    pub async fn transferred(&self, page: &str) -> Result<(usize, usize)> {
        let mut addresses = vec![""];
        for (tag, attribute) in [("<link", "href=\""), ("<script", "src=\""), ("<img", "src=\"")] {
            let tags = page.split(tag).skip(1);
            addresses.extend(tags.filter_map(|rest| found(rest, attribute, "\"", attribute).ok()));
        }
        let mut bytes = 0;
        for address in &addresses {
            let packed = [("Accept-Encoding", "gzip")];
            let reply = send(self.port, "GET", &self.absolute(address), &packed, "").await?;
            ensure!(reply.status == 200, "{address:?} answers {}", reply.status);
            bytes += reply.size();
        }
        Ok((addresses.len(), bytes))
    }

    /// The events of a page.
    pub async fn stream(&self, page: &str, address: &str) -> Result<Events> {
        let seen = found(page, "data-seen=\"", "\"", "data-seen")?;
        let at = format!("{address}?live={seen}");
        let headers = [("Accept", "text/event-stream")];
        let stream = begin(self.port, "GET", &self.absolute(&at), &headers, "").await?;
        Ok(Events { stream, text: String::new() })
    }
}

/// An event stream that is read as it comes.
pub struct Events {
    stream: TcpStream,
    text: String,
}

impl Events {
    /// Reads until these words have come.
    pub async fn until(&mut self, words: &str) -> Result<()> {
        let read = async {
            let mut bytes = vec![0; 64 * 1024];
            while !self.text.contains(words) {
                let count = self.stream.read(&mut bytes).await?;
                ensure!(count > 0, "the stream ended without {words:?}: {}", self.text);
                self.text.push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
            self.text.clear();
            Ok(())
        };
        tokio::time::timeout(PATIENCE, read).await.with_context(|| format!("{words:?} does not come"))?
    }
}
