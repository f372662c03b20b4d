//! Git's protocol, version 2, over HTTP: references and objects are wanted, commits' names and packs come out. Nothing that a
//! server says is quoted.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use url::Url;

use super::super::http::{Client, Question};
use super::super::{ChartError, ChartLimits};
use super::object::{Format, Id};
use super::packet::{Message, Packet, Packets};
use super::{Reference, invalid, not_found, too_large};
use crate::remote::dialer::shown;
use crate::remote::wire::cut;

const AGENT: &str = concat!("agent=emco-operator/", env!("CARGO_PKG_VERSION"));
/// Largest answer but for objects.
const ANSWER_BYTES: usize = 4 << 20;
const VERSION: (&str, &str) = ("git-protocol", "version=2");
const ADVERTISEMENT: &str = "application/x-git-upload-pack-advertisement";
const REQUEST: &str = "application/x-git-upload-pack-request";

/// What objects are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Commits without their history, and what they have: names alone, where the server can leave contents out.
    Snapshot,
    /// These and nothing else.
    Objects,
}

/// A repository that speaks the protocol.
pub struct Server<'a> {
    client: &'a Client<'a>,
    /// Where requests go: the address that the first one was redirected to.
    base: Url,
    format: Format,
    filters: bool,
}

impl<'a> Server<'a> {
    /// Asks what the server can do.
    pub async fn discover(client: &'a Client<'a>) -> Result<Self, ChartError> {
        let mut url = client
            .home
            .join("info/refs")
            .map_err(|_| invalid(&format!("{} has no info/refs", shown(client.home))))?;
        url.set_query(Some("service=git-upload-pack"));
        let question = Question { extra: Some(VERSION), ..client.question() };
        let (base, kind, bytes) = client
            .within(&url, async {
                let answer = client.ask(&url, &question).await?;
                let base = answer.url.clone();
                let kind =
                    answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).map(str::to_owned);
                Ok((base, kind, answer.body(ANSWER_BYTES, client.limits).await?))
            })
            .await?;
        let strange = || {
            not_found(&format!(
                "{} is no Git repository over HTTP: name the address that git clone takes",
                shown(client.home)
            ))
        };
        if kind.as_deref() != Some(ADVERTISEMENT) {
            return Err(strange());
        }
        let path = base.path().strip_suffix("info/refs").ok_or_else(strange)?.to_owned();
        let mut base = base.clone();
        base.set_query(None);
        base.set_path(&path);
        let lines: Vec<&str> = Packets::new(&bytes).map_while(Result::ok).filter_map(Packet::text).collect();
        if !lines.contains(&"version 2") {
            return Err(invalid(&format!(
                "{} does not speak version 2 of Git's protocol: serve it with Git 2.18 or later",
                shown(client.home)
            )));
        }
        let format = match lines.iter().find_map(|line| line.strip_prefix("object-format=")) {
            None | Some("sha1") => Format::Sha1,
            Some("sha256") => Format::Sha256,
            Some(_) => {
                return Err(invalid(&format!("{} names its objects in an unknown way", shown(client.home))));
            }
        };
        let fetch = lines.iter().find_map(|line| line.strip_prefix("fetch="));
        let filters = fetch.is_some_and(|all| all.split(' ').any(|one| one == "filter"));
        Ok(Self { client, base, format, filters })
    }

    pub const fn format(&self) -> Format {
        self.format
    }

    /// The commit that a reference stands for now.
    pub async fn resolve(&self, reference: &Reference) -> Result<String, ChartError> {
        let (kind, name, full) = match reference {
            Reference::Commit(commit) => return Ok(commit.clone()),
            Reference::Tag(name) => ("tag", name, format!("refs/tags/{name}")),
            Reference::Branch(name) => ("branch", name, format!("refs/heads/{name}")),
        };
        let place = shown(self.client.home);
        let place = place.trim_end_matches('/');
        if name.contains(|c: char| c.is_control() || c.is_whitespace()) || name.contains("..") {
            return Err(not_found(&format!("{kind} {:?} is no name that Git has", cut(name, 80))));
        }
        let message =
            self.command("ls-refs").delimiter().line("peel").line(&format!("ref-prefix {full}")).flush();
        let bytes = self.post(message, ANSWER_BYTES).await?;
        for packet in Packets::new(&bytes) {
            let packet = packet.map_err(|_| self.cut_off())?;
            let Some(line) = packet.text() else { continue };
            let mut words = line.split(' ');
            let (Some(commit), Some(found)) = (words.next(), words.next()) else { continue };
            if found != full {
                continue;
            }
            // An annotated tag is an object of its own; what it stands for is beside it.
            let commit = words.find_map(|word| word.strip_prefix("peeled:")).unwrap_or(commit);
            return match Id::parse(commit, self.format) {
                Some(id) => Ok(id.to_string()),
                None => Err(self.cut_off()),
            };
        }
        Err(not_found(&format!("{place} has no {kind} {}", cut(name, 80))))
    }

    /// A pack with what is wanted. `commit` is what it is wanted for.
    pub async fn fetch(&self, wanted: &[Id], what: What, commit: &str) -> Result<Vec<u8>, ChartError> {
        let mut message = self.command("fetch").delimiter().line("ofs-delta").line("no-progress");
        if what == What::Snapshot {
            message = message.line("deepen 1");
            if self.filters {
                message = message.line("filter blob:none");
            }
        }
        for id in wanted {
            message = message.line(&format!("want {id}"));
        }
        let most = self.client.limits.git.pack_bytes;
        // Each packet adds five bytes to what it carries.
        let answer = self.post(message.line("done").flush(), most + most / 1000 + (64 << 10)).await;
        let answer = answer.map_err(|error| match error.reason() {
            "ChartTooLarge" => too_large(&format!(
                "{}: commit {} has more than {most} bytes; a server that offers filters (uploadpack.allowFilter) sends only those that are needed",
                shown(self.client.home),
                commit.get(..12).unwrap_or(commit)
            )),
            _ => error,
        })?;
        let limits = self.client.limits;
        self.pack(&answer, commit, limits)
    }

    fn pack(&self, answer: &Bytes, commit: &str, limits: &ChartLimits) -> Result<Vec<u8>, ChartError> {
        let mut pack = Vec::new();
        let mut inside = false;
        for packet in Packets::new(answer) {
            match packet.map_err(|_| self.cut_off())? {
                Packet::Line(line) if inside => match line.split_first() {
                    Some((1, data)) => pack.extend_from_slice(data),
                    // What people at a terminal would read.
                    Some((2, _)) => {}
                    _ => return Err(self.cut_off()),
                },
                Packet::Line(line) if line.starts_with(b"ERR ") => {
                    return Err(not_found(&format!(
                        "{} does not give commit {}: it does not exist there, or no branch or tag leads to it any more",
                        shown(self.client.home).trim_end_matches('/'),
                        cut(commit, 64)
                    )));
                }
                Packet::Line(line) => inside = line == b"packfile\n" || line == b"packfile",
                Packet::Flush if inside => break,
                Packet::Flush | Packet::Delimiter | Packet::End => {}
            }
        }
        if pack.is_empty() || pack.len() > limits.git.pack_bytes {
            return Err(self.cut_off());
        }
        Ok(pack)
    }

    fn command(&self, name: &str) -> Message {
        let message = Message::default().line(&format!("command={name}")).line(AGENT);
        match self.format {
            Format::Sha1 => message,
            Format::Sha256 => message.line(&format!("object-format={}", self.format.name())),
        }
    }

    fn cut_off(&self) -> ChartError {
        ChartError::new(
            "SourceUnreachable",
            &format!("{} does not finish an answer of Git's protocol", shown(self.client.home)),
        )
    }

    async fn post(&self, message: Vec<u8>, most: usize) -> Result<Bytes, ChartError> {
        let url = self
            .base
            .join("git-upload-pack")
            .map_err(|_| invalid(&format!("{} has no git-upload-pack", shown(&self.base))))?;
        let question = Question {
            extra: Some(VERSION),
            body: Some((REQUEST, message.into())),
            ..self.client.question()
        };
        self.client
            .within(&url, async {
                self.client.ask(&url, &question).await?.body(most, self.client.limits).await
            })
            .await
    }
}
