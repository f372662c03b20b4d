//! Says what requests to all kinds of chart sources have in common.

use std::sync::Arc;

use emco_helm::Chart;
use sha2::{Digest as _, Sha256};
use url::Url;

use super::http::Client;
use super::low_priority::Worker;
use super::{ChartCredentials, ChartError, ChartLimits, Git, Oci, Repository, mix};
use crate::remote::dialer::Dialer;
use crate::remote::wire::cut;

/// A place that is reached through the dialer.
pub enum Place {
    Repository(Repository),
    Oci(Oci),
    Git(Git),
}

/// One chart, for somebody.
pub struct Wish<'a> {
    pub place: Place,
    pub credentials: Option<ChartCredentials>,
    /// The project's chartSources.
    pub sources: Option<&'a [String]>,
    /// Digest that the archive must have.
    pub pinned: Option<&'a str>,
}

/// What a place gave.
pub struct Download {
    /// The archive.
    pub bytes: Arc<[u8]>,
    /// Of a Git repository.
    pub commit: Option<String>,
}

/// A URL that cannot be used, as messages quote it: whatever it is, without what may be a password or a token.
pub fn quoted(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").map_or(("", url), |(scheme, rest)| (scheme, rest));
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or_default();
    let mark = if scheme.is_empty() { "" } else { "://" };
    format!("{:?}", cut(&format!("{scheme}{mark}{host}{path}"), 200))
}

impl Place {
    /// What the place gave before, as it would give it now; `None` where it must be asked for the commit.
    pub fn again(&self, bytes: Arc<[u8]>) -> Option<Download> {
        let commit = match self {
            Self::Git(git) => Some(git.known_commit()?.to_owned()),
            Self::Repository(_) | Self::Oci(_) => None,
        };
        Some(Download { bytes, commit })
    }

    /// Whether a chart is the one that was asked for.
    pub fn same(&self, chart: &Chart) -> Result<(), ChartError> {
        match self {
            Self::Repository(repository) => repository.same(chart),
            Self::Oci(oci) => oci.same(chart),
            Self::Git(_) => Ok(()),
        }
    }
}

impl Wish<'_> {
    /// The one origin that credentials are for; an error where the project's chartSources do not allow it.
    pub fn home(&self) -> Result<Url, ChartError> {
        match &self.place {
            Place::Repository(repository) => repository.home(self.sources),
            Place::Oci(oci) => oci.home(self.sources),
            Place::Git(git) => git.home(self.sources),
        }
    }

    /// What this wish is kept under.
    pub fn key(&self, salt: &[u8]) -> String {
        let mut hash = Sha256::new();
        mix(&mut hash, salt);
        match &self.place {
            Place::Repository(repository) => repository.mix_into(&mut hash),
            Place::Oci(oci) => oci.mix_into(&mut hash),
            Place::Git(git) => git.mix_into(&mut hash),
        }
        if let Some(credentials) = &self.credentials {
            credentials.mix_into(&mut hash);
        }
        hex::encode(hash.finalize())
    }

    /// Asks the place. `kept` is what this very wish gave before.
    pub async fn download(
        &self,
        dialer: &Dialer,
        limits: &ChartLimits,
        (home, worker): (&Url, &Worker),
        kept: Option<Arc<[u8]>>,
    ) -> Result<Download, ChartError> {
        let (sources, credentials) = (self.sources, self.credentials.as_ref());
        let client = Client { dialer, limits, sources, credentials, home, worker };
        let plain = |bytes| Download { bytes, commit: None };
        match &self.place {
            Place::Repository(repository) => repository.download(self, &client, kept).await.map(plain),
            Place::Oci(oci) => oci.download(self, &client, kept).await.map(plain),
            Place::Git(git) => git.download(&client).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_a_password_is_not_quoted() {
        for (url, shown) in [
            ("oci://me:hunter2@reg.example.com/A?token=hunter2", "oci://reg.example.com/A"),
            ("https://me:hun@ter2@host:1/x#hunter2", "https://host:1/x"),
            ("git@host:team/web.git", "host:team/web.git"),
            ("hunter2@", ""),
        ] {
            assert_eq!(quoted(url), format!("{shown:?}"));
        }
    }
}
