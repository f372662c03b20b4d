//! Fetches a folder of one commit of a Git repository and packs it as a chart, the same bytes for the same files
//! wherever and whenever it is packed. Nothing is checked out, and no program is run: of Git's protocol two commands
//! are spoken, and of a repository one commit's folder is taken.

use emco_engine::git::object;
use sha2::Sha256;
use url::Url;

use super::http::Client;
use super::wish::{Download, quoted};
use super::{ChartError, mix};
use crate::git::pack::{Pack, PackError};
use crate::git::upload::What;
use crate::remote::dialer::{check_source, shown};
use crate::remote::wire::cut;

mod archive;
mod folder;
mod server;

pub use archive::tar_of;

/// A chart in a Git repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Git {
    /// `https://...`
    pub url: String,
    /// Which commit.
    pub reference: Reference,
    /// Folder of the chart.
    pub path: Option<String>,
    /// The commit that the reference stood for when it was pinned.
    pub pinned: Option<String>,
}

/// What names a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// A tag.
    Tag(String),
    /// A branch.
    Branch(String),
    /// A commit.
    Commit(String),
}

fn not_found(message: &str) -> ChartError {
    ChartError::new("ChartNotFound", message)
}

fn invalid(message: &str) -> ChartError {
    ChartError::new("ChartInvalid", message)
}

fn too_large(message: &str) -> ChartError {
    ChartError::new("ChartTooLarge", message)
}

/// Says of a place why what its server sent cannot be used.
fn damaged(error: PackError, place: &str) -> ChartError {
    match error {
        PackError::Broken | PackError::Base => {
            invalid(&format!("{place}: the server's objects are cut off or damaged"))
        }
        PackError::Objects(most) => too_large(&format!(
            "{place}: the server sends more than {most} objects; a server that offers filters (uploadpack.allowFilter) sends only those that are needed"
        )),
        PackError::Work(most) => {
            too_large(&format!("{place}: what the server sends unpacks to more than {most} bytes"))
        }
        PackError::Object(most) => too_large(&format!("{place}: an object has more than {most} bytes")),
    }
}

impl Git {
    /// The address, with a slash at its end.
    pub fn home(&self, sources: Option<&[String]>) -> Result<Url, ChartError> {
        let wrong = |what: &str| {
            ChartError::new("ChartSourceNotAllowed", &format!("git url {} {what}", quoted(&self.url)))
        };
        let mut url = Url::parse(&self.url).map_err(|_| {
            wrong("is not a URL: write https://host/path; addresses such as git@host:path are ssh, which is not spoken")
        })?;
        if !matches!(url.scheme(), "https" | "http") {
            return Err(wrong("is not http(s): write https://host/path"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("has a ? or #: put the reference and the path into their own fields"));
        }
        let path = format!("{}/", url.path().trim_end_matches('/'));
        url.set_path(&path);
        check_source(&url, sources).map_err(|message| ChartError::new("ChartSourceNotAllowed", &message))?;
        Ok(url)
    }

    pub fn mix_into(&self, hash: &mut Sha256) {
        // What it is pinned to changes nothing of what was asked for.
        let Self { url, reference, path, pinned: _ } = self;
        let (kind, name) = match reference {
            Reference::Tag(name) => ("tag", name),
            Reference::Branch(name) => ("branch", name),
            Reference::Commit(name) => ("commit", name),
        };
        for part in ["git", url, kind, name, path.as_deref().unwrap_or_default()] {
            mix(hash, part.as_bytes());
        }
    }

    /// The commit, where no server need be asked for it.
    pub fn known_commit(&self) -> Option<&str> {
        match &self.reference {
            Reference::Commit(commit) => Some(commit),
            Reference::Tag(_) | Reference::Branch(_) => self.pinned.as_deref(),
        }
    }

    /// Asks the repository.
    pub async fn download(&self, client: &Client<'_>) -> Result<Download, ChartError> {
        let limits = client.limits;
        let server = server::Server::discover(client).await?;
        let commit = match self.known_commit() {
            Some(commit) => commit.to_owned(),
            None => server.resolve(&self.reference).await?,
        };
        let format = server.format();
        let wanted = object::Id::parse(&commit, format).ok_or_else(|| {
            not_found(&format!("{} has no commit {}", shown(client.home), cut(&commit, 64)))
        })?;
        let first = server.fetch(&[wanted], What::Snapshot, &commit).await?;
        let (git, path) = (limits.git.clone(), self.path.clone().unwrap_or_default());
        let told = at(client.home, &commit, &path);
        let mut folder = client
            .worker
            .run(move || {
                let pack = Pack::read(first, format, &git).map_err(|error| damaged(error, &told))?;
                folder::Folder::find(pack, format, wanted, &path, told, git)
            })
            .await??;
        // What decides on the files comes before the files.
        let missing = folder.missing_rules();
        if !missing.is_empty() {
            let more = server.fetch(&missing, What::Objects, &commit).await?;
            folder = client.worker.run(move || folder.add(more)).await??;
        }
        let files = folder.files()?;
        let missing = folder.missing(&files);
        if !missing.is_empty() {
            let more = server.fetch(&missing, What::Objects, &commit).await?;
            folder = client.worker.run(move || folder.add(more)).await??;
        }
        let most = limits.archive_bytes;
        let bytes = client.worker.run(move || archive::pack(&folder.contents(&files, most)?, most)).await??;
        Ok(Download { bytes: bytes.into(), commit: Some(commit) })
    }
}

/// A place of a commit, as messages name it.
fn at(home: &Url, commit: &str, path: &str) -> String {
    let commit = commit.get(..12).unwrap_or(commit);
    let folder = if path.is_empty() { "its root".to_owned() } else { format!("folder {}", cut(path, 100)) };
    format!("{}, commit {commit}, {folder}", shown(home).trim_end_matches('/'))
}

#[cfg(test)]
mod tests;
