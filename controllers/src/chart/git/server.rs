//! Git's protocol, version 2, over HTTP: references and objects are wanted, commits' names and packs come out. Nothing that a
//! server says is quoted.

use bytes::Bytes;
use emco_engine::git::object::{Format, Id};
use http::header::CONTENT_TYPE;
use url::Url;

use super::super::ChartError;
use super::super::http::{Client, Question};
use super::{Reference, invalid, not_found, too_large};
use crate::git::upload::{self, ADVERTISEMENT, Ability, REQUEST, Unusable, VERSION, What};
use crate::remote::dialer::shown;
use crate::remote::wire::cut;

/// Largest answer but for objects.
const ANSWER_BYTES: usize = 4 << 20;

/// A repository that speaks the protocol.
pub struct Server<'a> {
    client: &'a Client<'a>,
    /// Where requests go: the address that the first one was redirected to.
    base: Url,
    ability: Ability,
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
        let ability = Ability::read(&bytes).map_err(|why| match why {
            Unusable::UnknownFormat => {
                invalid(&format!("{} names its objects in an unknown way", shown(client.home)))
            }
            _ => invalid(&format!(
                "{} does not speak version 2 of Git's protocol: serve it with Git 2.18 or later",
                shown(client.home)
            )),
        })?;
        Ok(Self { client, base, ability })
    }

    pub const fn format(&self) -> Format {
        self.ability.format
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
        let bytes = self.post(self.ability.list_references(&full), ANSWER_BYTES).await?;
        let all = upload::references(&bytes, self.format()).map_err(|_| self.cut_off())?;
        if let Some(found) = all.iter().find(|found| found.name == full) {
            return Ok(found.id.to_string());
        }
        Err(not_found(&format!("{place} has no {kind} {}", cut(name, 80))))
    }

    /// A pack with what is wanted. `commit` is what it is wanted for.
    pub async fn fetch(&self, wanted: &[Id], what: What, commit: &str) -> Result<Vec<u8>, ChartError> {
        let most = self.client.limits.git.pack_bytes;
        // Each packet adds five bytes to what it carries.
        let answer = self.post(self.ability.fetch(wanted, what), most + most / 1000 + (64 << 10)).await;
        let answer = answer.map_err(|error| match error.reason() {
            "ChartTooLarge" => too_large(&format!(
                "{}: commit {} has more than {most} bytes; a server that offers filters (uploadpack.allowFilter) sends only those that are needed",
                shown(self.client.home),
                commit.get(..12).unwrap_or(commit)
            )),
            _ => error,
        })?;
        match upload::pack(&answer) {
            Ok(pack) if pack.len() <= most => Ok(pack),
            Err(Unusable::Refused) => Err(not_found(&format!(
                "{} does not give commit {}: it does not exist there, or no branch or tag leads to it any more",
                shown(self.client.home).trim_end_matches('/'),
                cut(commit, 64)
            ))),
            Ok(_) | Err(_) => Err(self.cut_off()),
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
