//! Fetches a chart from a Helm repository, verified against the index.

use std::sync::Arc;

use bytes::Bytes;
use emco_helm::Chart;
use sha2::Sha256;
use url::Url;

use super::http::Client;
use super::index::{self, Entry, Found, same_version};
use super::wish::{Wish, quoted};
use super::{ChartError, digest, mix};
use crate::remote::dialer::{check_source, shown};
use crate::remote::wire::cut;

/// A chart of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// Address; `index.yaml` is below it.
    pub url: String,
    /// Name of the chart.
    pub name: String,
    /// Exact version.
    pub version: String,
}

fn invalid(message: &str) -> ChartError {
    ChartError::new("ChartInvalid", message)
}

impl Repository {
    /// The address, with a slash at its end.
    pub fn home(&self, sources: Option<&[String]>) -> Result<Url, ChartError> {
        let mut url = Url::parse(&self.url).map_err(|_| {
            ChartError::new(
                "ChartSourceNotAllowed",
                &format!("repository url {} is not a URL", quoted(&self.url)),
            )
        })?;
        if !url.path().ends_with('/') {
            let path = format!("{}/", url.path());
            url.set_path(&path);
        }
        url.set_fragment(None);
        check_source(&url, sources).map_err(|message| ChartError::new("ChartSourceNotAllowed", &message))?;
        Ok(url)
    }

    pub fn mix_into(&self, hash: &mut Sha256) {
        let Self { url, name, version } = self;
        for part in [url, name, version] {
            mix(hash, part.as_bytes());
        }
    }

    /// Asks the repository. What this very wish gave before (`kept`) is not downloaded again if the index still names its
    /// digest; any other archive on disk may be somebody else's, and naming its digest must not be enough to get it.
    pub async fn download(
        &self,
        wish: &Wish<'_>,
        client: &Client<'_>,
        kept: Option<Arc<[u8]>>,
    ) -> Result<Arc<[u8]>, ChartError> {
        let (home, limits) = (client.home, client.limits);
        let place = beside(home, "index.yaml")?;
        let entry = self.entry(client, (&place, client.get(&place, limits.index_bytes).await?)).await?;
        let listed = entry.digest.as_deref().map(prefixed).transpose()?;
        if let (Some(pinned), Some(listed)) = (wish.pinned, &listed)
            && pinned != listed
        {
            return Err(super::changed(pinned, listed));
        }
        let first = entry.urls.as_deref().unwrap_or_default().first().ok_or_else(|| {
            invalid(&format!("the index names no address for chart {} {}", self.name, entry.version))
        })?;
        let url = beside(home, first)?;
        check_source(&url, wish.sources)
            .map_err(|message| ChartError::new("ChartSourceNotAllowed", &message))?;
        if let (Some(listed), Some(kept)) = (&listed, kept)
            && *listed == digest(&kept)
        {
            return Ok(kept);
        }
        let bytes = client.get(&url, limits.archive_bytes).await?;
        let found = digest(&bytes);
        match listed {
            Some(listed) if listed != found => Err(invalid(&format!(
                "{} has SHA-256 {found}, but the repository's index says {listed}: the download was changed or the index is old",
                shown(&url)
            ))),
            _ => Ok(Arc::from(&*bytes)),
        }
    }

    async fn entry(&self, client: &Client<'_>, (place, index): (&Url, Bytes)) -> Result<Entry, ChartError> {
        let (name, version) = (self.name.clone(), self.version.clone());
        let found = client.worker.run(move || index::find(&index, &name, &version)).await?.map_err(|at| {
            invalid(&format!("{} is not the index of a chart repository ({at})", shown(place)))
        })?;
        let (name, version) = (&self.name, &self.version);
        let missing = |message: String| Err(ChartError::new("ChartNotFound", &message));
        match found {
            Found::Entry(entry) => Ok(entry),
            Found::Versions(some) if some.is_empty() => {
                missing(format!("{} lists no version of chart {name}", shown(place)))
            }
            Found::Versions(some) => {
                let some: Vec<String> = some.iter().map(|version| cut(version, 40)).collect();
                let more = if some.len() < index::TOLD { "" } else { ", ..." };
                missing(format!(
                    "{} lists chart {name} without version {version}; it has {}{more}",
                    shown(place),
                    some.join(", ")
                ))
            }
            Found::Nothing => missing(format!("{} lists no chart {name}", shown(place))),
        }
    }

    /// The archive is what its index entry promised.
    pub fn same(&self, chart: &Chart) -> Result<(), ChartError> {
        let (name, version) = (&self.name, &self.version);
        if chart.name() == name && same_version(chart.version(), version) {
            return Ok(());
        }
        Err(invalid(&format!(
            "the repository gives chart {} {} where {name} {version} was asked for",
            cut(chart.name(), 80),
            cut(chart.version(), 40)
        )))
    }
}

/// An address relative to the repository, which keeps the repository's query unless it has its own.
fn beside(home: &Url, relative: &str) -> Result<Url, ChartError> {
    let mut url = home.join(relative).map_err(|_| {
        invalid(&format!("the index names {:?}, which is not an address", cut(relative, 200)))
    })?;
    if url.query().is_none() && url.origin() == home.origin() && Url::parse(relative).is_err() {
        url.set_query(home.query());
    }
    Ok(url)
}

fn prefixed(digest: &str) -> Result<String, ChartError> {
    let hex = digest.strip_prefix("sha256:").unwrap_or(digest);
    if hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit()) {
        Ok(format!("sha256:{}", hex.to_ascii_lowercase()))
    } else {
        Err(invalid(&format!("the index names the digest {:?}, which is no SHA-256", cut(digest, 80))))
    }
}
