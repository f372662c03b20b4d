//! Looks at the branch: where it is, whose the folder is, and what others changed of ours.

use emco_engine::git::commit;
use emco_engine::git::files;
use emco_engine::git::layout::{CLAIM, CLUSTERS};
use emco_engine::git::object::tree_of;
use emco_engine::git::tree::{Entry, join};

use super::super::Found;
use super::super::branch::folder_of;
use super::super::remote::Fault;
use super::super::state::{Inner, Seen};
use super::{Publisher, lost};
use crate::remote::Claim;

/// Files and folders below the folder of clusters: a thousand clusters have fewer.
const MOST: u64 = 1_000_000;
/// Bytes of a claim that are read; ours are fewer.
const CLAIM_BYTES: usize = 4096;

/// Who made the commit that the branch is at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Others,
    /// This hub, a while ago: the branch went back.
    Us,
    /// This hub, on top of what was seen: a push of the process before, which came late. It is not undone.
    UsBefore,
}

impl Publisher<'_> {
    /// Takes the tip in, if it is another than before.
    pub(super) async fn look(&self) -> Result<(), Fault> {
        let tip = self.remote.tip().await?;
        let Some(commit) = tip.commit else {
            if !tip.empty {
                let text = "the repository has other branches and not this one: make it, or name another";
                return Err(Fault::new("BranchNotFound", text));
            }
            let seen = Seen { format: tip.format, commit: None, root: None };
            return self.saw(seen, Found { claim: Claim::Absent, files: false }, By::Us);
        };
        {
            let mut inner = self.shared.lock();
            if inner.seen.is_some_and(|seen| seen.commit == Some(commit)) {
                return Ok(());
            }
            // Our own commit, whose answer was lost.
            if let (Some(sent), Some(seen)) = (inner.pushed.clone(), inner.seen)
                && sent.commit == commit
            {
                inner.trees.extend(&sent.edited, seen.format);
                inner.seen = Some(Seen { commit: Some(commit), root: sent.edited.root, ..seen });
                return Ok(());
            }
        }
        let snapshot = self.remote.snapshot(commit).await?;
        let damaged = || Fault::new("ServerError", "the server's objects are not what they should be");
        let root = tree_of(&snapshot.commit, tip.format).ok_or_else(damaged)?;
        let (claimed, files) = {
            let mut inner = self.shared.lock();
            // What looks brought that failed is of no use.
            let kept = inner.seen.and_then(|seen| seen.root);
            inner.trees.retain(kept);
            for (id, content) in &snapshot.trees {
                if !inner.trees.insert(*id, content, tip.format) {
                    return Err(damaged());
                }
            }
            // Our own commit, on top of which others wrote before its answer came.
            if let (Some(sent), Some(seen)) = (inner.pushed.clone(), inner.seen)
                && commit::follows(&snapshot.commit, sent.commit)
            {
                inner.trees.extend(&sent.edited, seen.format);
                inner.seen = Some(Seen { commit: Some(sent.commit), root: sent.edited.root, ..seen });
            }
            let at = |path: &str| inner.trees.at(Some(root), &join(&inner.folder, path)).map_err(lost);
            let (claimed, clusters) = (at(CLAIM)?.filter(|entry| !entry.is_folder()), at(CLUSTERS)?);
            bounded(&mut inner, clusters)?;
            (claimed, clusters.is_some())
        };
        let claim = match claimed {
            None => Claim::Absent,
            Some(entry) => read_claim(&self.remote.blob(entry.id).await?),
        };
        let by = self.maker(&snapshot.commit);
        self.saw(
            Seen { format: tip.format, commit: Some(commit), root: Some(root) },
            Found { claim, files },
            by,
        )
    }

    /// Who made a commit.
    fn maker(&self, content: &[u8]) -> By {
        let before = self.shared.lock().seen.and_then(|seen| seen.commit);
        if !commit::is_ours(content, &self.shared.parts.installation) {
            By::Others
        } else if before.is_some_and(|before| commit::follows(content, before)) {
            By::UsBefore
        } else {
            By::Us
        }
    }

    /// Takes in what is there.
    fn saw(&self, seen: Seen, found: Found, by: By) -> Result<(), Fault> {
        let ours = self.shared.parts.installation.as_str();
        let mut guard = self.shared.lock();
        let inner = &mut *guard;
        let of_others =
            matches!(&found.claim, Claim::Held { installation, .. } if installation.as_str() != ours);
        let before = inner.seen.filter(|before| before.format == seen.format);
        if let (Some(before), true, false) = (before, inner.admitted(), of_others) {
            let folder = join(&inner.folder, CLUSTERS);
            let at = |root| {
                let entry = inner.trees.at(root, &folder).map_err(lost)?;
                Ok::<_, Fault>(entry.filter(|entry| entry.is_folder()).map(|entry| entry.id))
            };
            let (was, is) = (at(before.root)?, at(seen.root)?);
            let differences = inner.trees.differences(was, is).map_err(lost)?;
            for (path, id) in differences {
                let path = join(CLUSTERS, &path);
                inner.touched.insert(folder_of(&path).to_owned());
                if by != By::UsBefore {
                    // An edit that was not undone yet is undone to what was before it.
                    inner.undone.entry(path).or_insert(id);
                }
            }
            inner.counts = by == By::Others;
        }
        if of_others {
            inner.undone.clear();
        }
        // Another format names all objects anew: what is wanted is to be handed over again.
        if inner.seen.is_some_and(|before| before.format != seen.format) {
            inner.forget_names();
        }
        inner.seen = Some(seen);
        inner.pushed = None;
        inner.trees.retain(seen.root);
        let held = |claim: &Claim| match claim {
            Claim::Held { installation, since, .. } => Some((installation.clone(), since.clone())),
            _ => None,
        };
        let stays = inner.admitted()
            && (found.claim == Claim::Absent || held(&found.claim) == held(&inner.found.claim));
        if !stays && inner.found != found {
            inner.permit = None;
        }
        inner.found = found;
        Ok(())
    }
}

/// Makes sure that all folders of clusters are there, and that they hold no more than can be looked through.
fn bounded(inner: &mut Inner, clusters: Option<Entry>) -> Result<(), Fault> {
    let Some(folder) = clusters.filter(|entry| entry.is_folder()) else { return Ok(()) };
    if inner.trees.weight(folder.id).map_err(lost)?.is_some_and(|weight| weight <= MOST) {
        return Ok(());
    }
    let kept = inner.seen.and_then(|seen| seen.root);
    inner.trees.retain(kept);
    Err(Fault::new("RepositoryTooLarge", TOO_MUCH))
}

const TOO_MUCH: &str = "there are more files, or folders inside each other, below clusters than EMCO makes: take off what others put there";

/// Reads the file of a claim.
pub(super) fn read_claim(content: &[u8]) -> Claim {
    if content.len() > CLAIM_BYTES {
        return Claim::Absent;
    }
    match files::Claim::read(&String::from_utf8_lossy(content)) {
        Some(files::Claim { installation, since, seen }) => Claim::Held { installation, since, seen },
        None => Claim::Absent,
    }
}
