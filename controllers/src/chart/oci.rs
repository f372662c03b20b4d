//! Fetches a chart from an OCI registry, verified down from the digest or tag that was asked for. What is used of the
//! distribution protocol: one manifest, one blob, and the registry's challenge between them.

use std::sync::Arc;

use emco_helm::Chart;
use sha2::Sha256;
use url::Url;

use super::http::{Answer, Client, Question};
use super::index::same_version;
use super::wish::{Wish, quoted};
use super::{ChartError, digest, mix};
use crate::remote::dialer::{check_source, shown};
use crate::remote::wire::cut;

mod challenge;
mod manifest;
mod token;

/// Largest manifest, as the protocol recommends it.
const MANIFEST_BYTES: usize = 4 << 20;
/// What is understood, and what is asked for to be refused with a sentence.
const ACCEPT: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, \
     application/vnd.docker.distribution.manifest.v2+json, application/vnd.docker.distribution.manifest.list.v2+json";

/// A chart of a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Oci {
    /// `oci://registry/path/chart`
    pub url: String,
    /// The tag, which is the chart's version.
    pub version: Option<String>,
    /// Digest of the manifest; wins over the version.
    pub digest: Option<String>,
}

impl Oci {
    /// The repository's address in the protocol, with a slash at its end. It is `https`, but for a registry that the project
    /// lists with `http://` and no other way.
    pub fn home(&self, sources: Option<&[String]>) -> Result<Url, ChartError> {
        let wrong = |what: &str| {
            ChartError::new("ChartSourceNotAllowed", &format!("oci url {} {what}", quoted(&self.url)))
        };
        let rest = self.url.strip_prefix("oci://").ok_or_else(|| wrong("does not start with oci://"))?;
        let parsed = Url::parse(&format!("https://{rest}")).map_err(|_| wrong("is not a URL"))?;
        if parsed.query().is_some() || parsed.fragment().is_some() {
            return Err(wrong("has a ? or #: put version and digest into their own fields"));
        }
        let repository = parsed.path().trim_matches('/').to_owned();
        // As it was written: what a parser of URLs makes of dots and escapes is not what was meant.
        let written = rest.split_once('/').map_or("", |(_, path)| path.trim_end_matches('/'));
        if written != repository || !is_repository(&repository) {
            return Err(wrong(
                "names no repository: write oci://registry/path/chart in lower case, with the version in its own field",
            ));
        }
        let mut secure = parsed;
        secure.set_path(&format!("/v2/{repository}/"));
        let Err(refused) = check_source(&secure, sources) else { return Ok(secure) };
        let rest = secure.as_str().trim_start_matches("https://");
        match Url::parse(&format!("http://{rest}")) {
            Ok(plain) if sources.is_some() && check_source(&plain, sources).is_ok() => Ok(plain),
            _ => {
                // As it was written, not as it is asked.
                let (asked, path) = (shown(&secure), format!("/{repository}"));
                let written = asked.replacen("https://", "oci://", 1).replacen(secure.path(), &path, 1);
                Err(ChartError::new("ChartSourceNotAllowed", &refused.replacen(&asked, &written, 1)))
            }
        }
    }

    pub fn mix_into(&self, hash: &mut Sha256) {
        let Self { url, version, digest } = self;
        for part in
            ["oci", url, version.as_deref().unwrap_or_default(), digest.as_deref().unwrap_or_default()]
        {
            mix(hash, part.as_bytes());
        }
    }

    /// The tag or digest, as it stands in addresses.
    fn reference(&self) -> Result<String, ChartError> {
        let invalid = |message: String| Err(ChartError::new("ChartNotFound", &message));
        if let Some(digest) = &self.digest {
            return Ok(digest.clone());
        }
        let Some(version) = &self.version else {
            return invalid(format!(
                "oci url {} has neither version nor digest beside it",
                quoted(&self.url)
            ));
        };
        // A plus sign cannot be in a tag; Helm writes an underscore for it.
        let tag = version.replace('+', "_");
        let good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        // A tag begins with a letter, a digit or an underscore: dots alone would lead to another path.
        let begins = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if tag.len() > 128 || !tag.bytes().next().is_some_and(begins) || !tag.bytes().all(good) {
            return invalid(format!("version {:?} cannot be a tag of a registry", cut(version, 80)));
        }
        Ok(tag)
    }

    /// Asks the registry. What this very wish gave before (`kept`) is not downloaded again if the manifest still names it.
    pub async fn download(
        &self,
        wish: &Wish<'_>,
        client: &Client<'_>,
        kept: Option<Arc<[u8]>>,
    ) -> Result<Arc<[u8]>, ChartError> {
        let session = Session { client };
        let reference = self.reference()?;
        let place = below(client.home, &format!("manifests/{reference}"))?;
        let mut question = Question { accept: ACCEPT, ..Question::default() };
        let bytes = client
            .within(&place, async {
                let answer = session.admitted(&place, &mut question).await?;
                answer.body(MANIFEST_BYTES, client.limits).await
            })
            .await?;
        if self.digest.is_some() && digest(&bytes) != reference {
            return Err(invalid(&format!(
                "{} gives a manifest with the digest {}: the registry or something on the way to it changes manifests",
                shown(&place),
                digest(&bytes)
            )));
        }
        let layer =
            manifest::chart_layer(&bytes).map_err(|why| invalid(&format!("{} {why}", shown(&place))))?;
        if let Some(pinned) = wish.pinned.filter(|pinned| *pinned != layer.digest) {
            return Err(super::changed(pinned, &layer.digest));
        }
        if let Some(kept) = kept.filter(|kept| layer.digest == digest(kept)) {
            return Ok(kept);
        }
        let most = client.limits.archive_bytes;
        let size = usize::try_from(layer.size).unwrap_or(usize::MAX);
        if size > most {
            return Err(ChartError::new(
                "ChartTooLarge",
                &format!(
                    "{} names a chart of {} bytes, and at most {most} are read",
                    shown(&place),
                    layer.size
                ),
            ));
        }
        let blob = below(client.home, &format!("blobs/{}", layer.digest))?;
        let mut question = Question { accept: "", ..question };
        let bytes = client
            .within(&blob, async {
                session.admitted(&blob, &mut question).await?.body(size, client.limits).await
            })
            .await?;
        let found = digest(&bytes);
        if found != layer.digest {
            return Err(invalid(&format!(
                "{} has SHA-256 {found}, but the manifest says {}: the download was changed",
                shown(&blob),
                layer.digest
            )));
        }
        Ok(Arc::from(&*bytes))
    }

    /// The chart is the one that was asked for.
    pub fn same(&self, chart: &Chart) -> Result<(), ChartError> {
        match &self.version {
            Some(version) if !same_version(chart.version(), version) => Err(invalid(&format!(
                "the registry gives chart {} {} where version {version} was asked for",
                cut(chart.name(), 80),
                cut(chart.version(), 40)
            ))),
            _ => Ok(()),
        }
    }
}

/// Names of repositories, by the grammar of the distribution protocol.
fn is_repository(path: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let good = |part: &str| {
        let ends = part.bytes().next().is_some_and(plain) && part.bytes().last().is_some_and(plain);
        ends && part.bytes().all(|byte| plain(byte) || matches!(byte, b'.' | b'_' | b'-'))
            && !part.contains("..")
    };
    path.len() <= 255 && path.split('/').all(good)
}

fn invalid(message: &str) -> ChartError {
    ChartError::new("ChartInvalid", message)
}

fn below(home: &Url, path: &str) -> Result<Url, ChartError> {
    // Joined as text: a digest would be taken for a scheme.
    Url::parse(&format!("{home}{path}")).map_err(|_| invalid(&format!("{} names no address", shown(home))))
}

/// Requests to one repository.
struct Session<'a> {
    client: &'a Client<'a>,
}

impl Session<'_> {
    /// The answer to a question, after the registry's challenge was met if it made one. What met it stays in the question.
    async fn admitted(&self, url: &Url, question: &mut Question) -> Result<Answer, ChartError> {
        let answer = self.client.ask(url, question).await?;
        let home = self.client.home.origin();
        if answer.status() != 401 || answer.url.origin() != home || question.authorization.is_some() {
            return Ok(answer);
        }
        let value = match challenge::read(answer.headers()) {
            challenge::Challenge::Bearer { realm, service } => {
                token::fetch(self.client, self.repository(), &realm, service.as_deref()).await?
            }
            challenge::Challenge::Basic => self.client.home_login().ok_or_else(|| {
                ChartError::new(
                    "ChartUnauthorized",
                    &format!(
                        "{} wants a login: put username and password into the Secret that secretRef names",
                        shown(url)
                    ),
                )
            })?,
            // Refused without a word on what would be accepted: the answer itself says the rest.
            challenge::Challenge::Unknown => return Ok(answer),
        };
        question.authorization = Some((home, value));
        self.client.ask(url, question).await
    }

    fn repository(&self) -> &str {
        self.client.home.path().trim_start_matches("/v2/").trim_end_matches('/')
    }
}

#[cfg(test)]
mod tests;
