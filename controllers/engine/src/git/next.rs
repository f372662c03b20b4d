//! Compares a branch with what is wanted of it, and says which files change. What nobody spoke of stays as it is: a process that has just
//! begun removes nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::files;
use super::layout::{CLUSTERS, LIST, SYNC, is_namespace};
use super::object::Id;
use super::tree::{Edits, Entry, Missing, Trees, join};

/// What is wanted of the branch. Paths are below the folder of the `GitTarget`.
#[derive(Clone, Copy, Debug)]
pub struct Wish<'a> {
    /// The folder of the `GitTarget`; empty for the root.
    pub folder: &'a str,
    /// Files that are wanted, and `None` for those that are to leave.
    pub files: &'a Edits,
    /// Folders whose files are compared.
    pub folders: &'a BTreeSet<String>,
    /// Folders of which all is known that is wanted: other files leave.
    pub exact: &'a BTreeSet<String>,
    /// What others changed, as it was before. A wish of the same file counts more.
    pub undone: &'a Edits,
}

/// What changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Next {
    /// Files by path from the root of the repository.
    pub edits: Edits,
    /// Lists of files that were written for it, by name.
    pub lists: BTreeMap<Id, String>,
}

/// Says which files change. `blob` names a text.
pub fn next(
    trees: &Trees,
    root: Option<Id>,
    wish: &Wish<'_>,
    blob: impl Fn(&str) -> Id,
) -> Result<Next, Missing> {
    let Wish { folder, files: wanted, folders, exact, undone } = *wish;
    let mut next = Next::default();
    let mut differ = |path: &str, id: Option<Id>| {
        let path = join(folder, path);
        let now = trees.at(root, &path)?.filter(|entry| !entry.is_folder());
        if id.map_or_else(|| now.is_none(), |id| now.is_some_and(|now| now.is_file_of(id))) {
            next.edits.remove(&path);
        } else {
            next.edits.insert(path, id);
        }
        Ok::<_, Missing>(())
    };
    for (path, id) in undone {
        differ(path, *id)?;
    }
    let mut lists = BTreeMap::new();
    for at in folders {
        let mut names = names(trees, root, &join(folder, at))?;
        let had_list = names.contains_key(LIST);
        names.extend(own(undone, at).filter_map(|(name, id)| Some((name.to_owned(), id?))));
        for (name, _) in own(undone, at).filter(|(_, id)| id.is_none()) {
            names.remove(name);
        }
        names.remove(LIST);
        if exact.contains(at) {
            for name in unwanted(wanted, at, &names) {
                differ(&join(at, &name), None)?;
                names.remove(&name);
            }
        }
        for (name, id) in own(wanted, at) {
            differ(&join(at, name), id)?;
            match id {
                Some(id) => drop(names.insert(name.to_owned(), id)),
                None => drop(names.remove(name)),
            }
        }
        let listed: Vec<&str> = names.keys().map(String::as_str).filter(|name| is_ours(name)).collect();
        // Where nothing is left for the agent it reads an empty list, and removes all: a folder that is not there is an error to it.
        let stays = had_list && is_sync(at);
        let list = (!listed.is_empty() || stays).then(|| {
            let text = files::list(listed);
            let id = blob(&text);
            lists.insert(id, text);
            id
        });
        differ(&join(at, LIST), list)?;
    }
    next.lists = lists;
    Ok(next)
}

/// Names of a folder that nobody wants, where all is known that is wanted. A namespace goes with all that is in it: its file leaves by a
/// word of its own alone.
fn unwanted(wanted: &Edits, folder: &str, names: &BTreeMap<String, Id>) -> Vec<String> {
    let known: BTreeSet<&str> =
        own(wanted, folder).filter(|(_, id)| id.is_some()).map(|(name, _)| name).collect();
    let goes = |name: &&String| !known.contains(name.as_str()) && !is_namespace(name);
    names.keys().filter(goes).cloned().collect()
}

/// Whether a name may be one of our files: no other one stands in a list.
fn is_ours(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-._".contains(c);
    name.rsplit_once('.').is_some_and(|(_, ending)| ending == "yaml") && name.chars().all(plain)
}

/// Whether a folder is the one of a cluster's objects for the agent.
fn is_sync(folder: &str) -> bool {
    let mut parts = folder.split('/');
    parts.next() == Some(CLUSTERS) && parts.nth(2) == Some(SYNC) && parts.next().is_none()
}

/// The files of one folder, without those in folders below it.
fn own<'a>(edits: &'a Edits, folder: &str) -> impl Iterator<Item = (&'a str, Option<Id>)> {
    let start = format!("{folder}/");
    let length = start.len();
    let of_folder = edits.range(start.clone()..).take_while(move |(path, _)| path.starts_with(&start));
    of_folder.filter_map(move |(path, id)| {
        let name = path.get(length..)?;
        (!name.contains('/')).then_some((name, *id))
    })
}

fn names(trees: &Trees, root: Option<Id>, folder: &str) -> Result<BTreeMap<String, Id>, Missing> {
    let entries = trees.folder(root, folder)?;
    let files = entries.into_iter().flatten().filter(|(_, entry)| !entry.is_folder());
    let named = |(name, entry): (&Vec<u8>, &Entry)| Some((String::from_utf8(name.clone()).ok()?, entry.id));
    Ok(files.filter_map(named).collect())
}

#[cfg(test)]
mod tests;
