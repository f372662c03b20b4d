//! Edits trees: files at paths are put or taken off, and whatever else a tree has stays as it is, byte for byte.

use std::collections::BTreeMap;

use super::object::{Format, Id, Kind, name_of};

/// Mode of a folder.
const FOLDER: u32 = 0o040_000;
/// Mode of a file.
const FILE: u32 = 0o100_644;
/// Folders inside each other that are looked into; ours are fewer.
const DEEPEST: usize = 64;

/// One name in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// As Git has it, such as `0o100644`.
    pub mode: u32,
    /// The object.
    pub id: Id,
}

impl Entry {
    /// Whether it is a folder.
    pub const fn is_folder(self) -> bool {
        self.mode == FOLDER
    }

    /// Whether it is the plain file of this content: a link to somewhere is none, whatever it is called.
    pub fn is_file_of(self, id: Id) -> bool {
        self.mode == FILE && self.id == id
    }
}

/// The names of a tree.
pub type Entries = BTreeMap<Vec<u8>, Entry>;

/// Files by path: what is to be there, and `None` for what is not.
pub type Edits = BTreeMap<String, Option<Id>>;

/// Trees by name.
#[derive(Clone, Debug, Default)]
pub struct Trees(BTreeMap<Id, Entries>);

/// A tree that is not there, or is damaged: what was to be done needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing(pub Id);

/// Trees that an edit makes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edited {
    /// The root; none where nothing is left.
    pub root: Option<Id>,
    /// New trees with their contents.
    pub made: BTreeMap<Id, Vec<u8>>,
}

impl Trees {
    /// Takes a tree in; false where it is no tree.
    pub fn insert(&mut self, id: Id, content: &[u8], format: Format) -> bool {
        let Some(entries) = read(content, format) else { return false };
        self.0.insert(id, entries);
        true
    }

    /// Takes in what an edit made.
    pub fn extend(&mut self, edited: &Edited, format: Format) {
        for (id, content) in &edited.made {
            self.insert(*id, content, format);
        }
    }

    /// Forgets all that these roots do not lead to.
    pub fn retain(&mut self, roots: impl IntoIterator<Item = Id>) {
        let mut kept = BTreeMap::new();
        let mut open: Vec<Id> = roots.into_iter().collect();
        while let Some(id) = open.pop() {
            let Some(entries) = self.0.remove(&id) else { continue };
            open.extend(entries.values().filter(|entry| entry.is_folder()).map(|entry| entry.id));
            kept.insert(id, entries);
        }
        self.0 = kept;
    }

    /// What is at a path; the root at the empty one.
    pub fn at(&self, root: Option<Id>, path: &str) -> Result<Option<Entry>, Missing> {
        let Some(root) = root else { return Ok(None) };
        let mut entry = Entry { mode: FOLDER, id: root };
        for part in path.split('/').filter(|part| !part.is_empty()) {
            if !entry.is_folder() {
                return Ok(None);
            }
            match self.entries(entry.id)?.get(part.as_bytes()) {
                Some(next) => entry = *next,
                None => return Ok(None),
            }
        }
        Ok(Some(entry))
    }

    /// The folder at a path, if there is one.
    pub fn folder(&self, root: Option<Id>, path: &str) -> Result<Option<&Entries>, Missing> {
        match self.at(root, path)? {
            Some(entry) if entry.is_folder() => self.entries(entry.id).map(Some),
            _ => Ok(None),
        }
    }

    /// The names of a tree.
    pub fn entries(&self, id: Id) -> Result<&Entries, Missing> {
        self.0.get(&id).ok_or(Missing(id))
    }

    /// Files and folders below a folder, each as often as it is there: a few objects may stand for very many. Equal folders are looked into
    /// once. No number is told where folders are too deep inside each other.
    pub fn weight(&self, folder: Id) -> Result<Option<u64>, Missing> {
        let weighed = self.weigh(folder, 0, &mut BTreeMap::new())?;
        Ok(weighed.filter(|(_, height)| *height <= DEEPEST).map(|(weight, _)| weight))
    }

    /// Weight and height of a folder; none where it is too high.
    fn weigh(
        &self,
        folder: Id,
        depth: usize,
        known: &mut BTreeMap<Id, (u64, usize)>,
    ) -> Result<Option<(u64, usize)>, Missing> {
        if let Some(weighed) = known.get(&folder) {
            return Ok(Some(*weighed));
        }
        if depth > DEEPEST {
            return Ok(None);
        }
        let (mut weight, mut height) = (0_u64, 0_usize);
        for entry in self.entries(folder)?.values() {
            weight = weight.saturating_add(1);
            if entry.is_folder() {
                let Some((below, high)) = self.weigh(entry.id, depth + 1, known)? else { return Ok(None) };
                weight = weight.saturating_add(below);
                height = height.max(high + 1);
            }
        }
        known.insert(folder, (weight, height));
        Ok(Some((weight, height)))
    }

    /// Files in which two trees differ, by path, with what the first one has. Equal folders are not looked into.
    pub fn differences(&self, ours: Option<Id>, theirs: Option<Id>) -> Result<Edits, Missing> {
        let mut found = Edits::new();
        self.compare(ours, theirs, "", &mut found)?;
        Ok(found)
    }

    fn compare(
        &self,
        ours: Option<Id>,
        theirs: Option<Id>,
        path: &str,
        found: &mut Edits,
    ) -> Result<(), Missing> {
        if ours == theirs {
            return Ok(());
        }
        let none = Entries::new();
        let left = ours.map_or(Ok(&none), |id| self.entries(id))?;
        let right = theirs.map_or(Ok(&none), |id| self.entries(id))?;
        let mut names: Vec<&Vec<u8>> = left.keys().chain(right.keys()).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let (ours, theirs) = (left.get(name), right.get(name));
            if ours == theirs {
                continue;
            }
            let below = join(path, &String::from_utf8_lossy(name));
            let folder =
                |entry: Option<&Entry>| entry.filter(|entry| entry.is_folder()).map(|entry| entry.id);
            let file = |entry: Option<&Entry>| entry.filter(|entry| !entry.is_folder()).map(|entry| entry.id);
            if file(ours).is_some() || file(theirs).is_some() {
                found.insert(below.clone(), file(ours));
            }
            self.compare(folder(ours), folder(theirs), &below, found)?;
        }
        Ok(())
    }

    /// All files below a folder, by path from there.
    pub fn files(&self, folder: Option<Id>) -> Result<BTreeMap<String, Id>, Missing> {
        let all = self.differences(folder, None)?;
        Ok(all.into_iter().filter_map(|(path, id)| Some((path, id?))).collect())
    }

    /// The tree with edits. Folders that become empty leave with their last file.
    pub fn edit(&self, root: Option<Id>, edits: &Edits, format: Format) -> Result<Edited, Missing> {
        let mut made = BTreeMap::new();
        let all: Vec<(&str, Option<Id>)> = edits.iter().map(|(path, id)| (path.as_str(), *id)).collect();
        let root = self.rewrite(root, &all, format, &mut made)?;
        Ok(Edited { root, made })
    }

    fn rewrite(
        &self,
        tree: Option<Id>,
        edits: &[(&str, Option<Id>)],
        format: Format,
        made: &mut BTreeMap<Id, Vec<u8>>,
    ) -> Result<Option<Id>, Missing> {
        let mut entries = match tree {
            Some(id) => self.entries(id)?.clone(),
            None => Entries::new(),
        };
        let mut below: BTreeMap<&str, Vec<(&str, Option<Id>)>> = BTreeMap::new();
        for (path, id) in edits {
            match path.split_once('/') {
                Some((first, rest)) => below.entry(first).or_default().push((rest, *id)),
                None => match id {
                    Some(id) => drop(entries.insert(path.as_bytes().to_vec(), Entry { mode: FILE, id: *id })),
                    // A folder of that name is no file to take off.
                    None if entries.get(path.as_bytes()).is_some_and(|entry| entry.is_folder()) => {}
                    None => drop(entries.remove(path.as_bytes())),
                },
            }
        }
        for (name, edits) in below {
            let before = entries.get(name.as_bytes()).filter(|entry| entry.is_folder()).map(|entry| entry.id);
            if before.is_none() && edits.iter().all(|(_, id)| id.is_none()) {
                continue;
            }
            match self.rewrite(before, &edits, format, made)? {
                Some(id) => drop(entries.insert(name.as_bytes().to_vec(), Entry { mode: FOLDER, id })),
                None => drop(entries.remove(name.as_bytes())),
            }
        }
        if entries.is_empty() {
            return Ok(None);
        }
        let content = write(&entries);
        let id = name_of(format, Kind::Tree, &content);
        if Some(id) != tree && !self.0.contains_key(&id) {
            made.insert(id, content);
        }
        Ok(Some(id))
    }
}

/// Joins a folder and a name.
pub fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// The names of a tree; `None` where it is damaged.
fn read(mut tree: &[u8], format: Format) -> Option<Entries> {
    let mut found = Entries::new();
    while !tree.is_empty() {
        let space = tree.iter().position(|byte| *byte == b' ')?;
        let (mode, rest) = tree.split_at_checked(space)?;
        let mode = u32::from_str_radix(std::str::from_utf8(mode).ok()?, 8).ok()?;
        let rest = rest.get(1..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        let name = rest.get(..end)?.to_vec();
        let (id, rest) = rest.get(end + 1..)?.split_at_checked(format.bytes())?;
        found.insert(name, Entry { mode, id: Id::read(id, format)? });
        tree = rest;
    }
    Some(found)
}

/// The content of a tree. Git sorts a folder as if its name ended with a slash.
fn write(entries: &Entries) -> Vec<u8> {
    let mut sorted: Vec<(Vec<u8>, &Vec<u8>, &Entry)> = entries
        .iter()
        .map(|(name, entry)| {
            let mut key = name.clone();
            if entry.is_folder() {
                key.push(b'/');
            }
            (key, name, entry)
        })
        .collect();
    sorted.sort_by(|a, b| a.0.cmp(&b.0));
    let mut content = Vec::new();
    for (_, name, entry) in sorted {
        content.extend_from_slice(format!("{:o} ", entry.mode).as_bytes());
        content.extend_from_slice(name);
        content.push(0);
        content.extend_from_slice(entry.id.bytes());
    }
    content
}

#[cfg(test)]
mod tests;
