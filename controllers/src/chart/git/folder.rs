//! Finds the files of the chart in a folder of a commit. Links inside the folder are followed, as Helm follows them;
//! what leads out of it is refused, as are submodules. Rules of `.helmignore` hold.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_engine::git::object::{self, Format, Id, Kind, Node, Object};
use emco_helm::chart::Ignore;

use super::{ChartError, damaged, invalid, not_found, too_large};
use crate::git::GitLimits;
use crate::git::pack::Pack;
use crate::remote::wire::cut;

/// Folders in folders, links followed.
const DEPTH: usize = 64;
/// Links followed for one path.
const LINKS: usize = 16;
/// Objects asked for by name in one request.
const ASKED: usize = 8192;
const RULES: &str = ".helmignore";
/// How a file begins that Git LFS keeps elsewhere.
const LFS: &[u8] = b"version https://git-lfs.github.com/spec/";

type Names = BTreeMap<String, Node>;

/// One folder of one commit.
pub struct Folder {
    packs: Vec<Pack>,
    format: Format,
    limits: GitLimits,
    /// The folder, as messages name it.
    place: String,
    /// Its folders by path, with the names in each.
    folders: BTreeMap<String, Names>,
}

/// Files by path, with their objects.
pub type Files = BTreeMap<String, Id>;

impl Folder {
    /// Finds a folder of a commit.
    pub fn find(
        pack: Pack,
        format: Format,
        commit: Id,
        path: &str,
        place: String,
        limits: GitLimits,
    ) -> Result<Self, ChartError> {
        let mut this = Self { packs: vec![pack], format, limits, place, folders: BTreeMap::new() };
        let lacks = |what: &str| not_found(&format!("{}: {what}", this.place));
        let content = match this.object(commit)? {
            Some((Kind::Commit, content)) => content,
            Some(_) => return Err(lacks("the reference names no commit")),
            None => return Err(lacks("the server did not send the commit")),
        };
        let tree = object::tree_of(&content, format).ok_or_else(|| this.damaged())?;
        let mut tree = tree;
        let mut walked = String::new();
        for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
            let names = this.names(tree)?;
            walked = join(&walked, part);
            tree = match names.get(part) {
                Some(Node::Folder(id)) => *id,
                None => return Err(lacks(&format!("the commit has no {}", cut(&walked, 100)))),
                Some(Node::File(_)) => {
                    return Err(lacks(&format!("{} is a file: name the chart's folder", cut(&walked, 100))));
                }
                Some(Node::Link(_)) => {
                    return Err(invalid(&format!(
                        "{}: {} is a symbolic link: name the folder that it leads to",
                        this.place,
                        cut(&walked, 100)
                    )));
                }
                Some(Node::Submodule) => return Err(this.submodule(&walked)),
            };
        }
        let mut count = 0;
        this.list(tree, String::new(), 0, &mut count)?;
        Ok(this)
    }

    /// Takes more objects in.
    pub fn add(mut self, bytes: Vec<u8>) -> Result<Self, ChartError> {
        let pack =
            Pack::read(bytes, self.format, &self.limits).map_err(|error| damaged(error, &self.place))?;
        self.packs.push(pack);
        Ok(self)
    }

    /// What decides on the files and is not here yet: the rules, and where links lead.
    pub fn missing_rules(&self) -> Vec<Id> {
        let links = self.folders.values().flat_map(BTreeMap::values).filter_map(|node| match node {
            Node::Link(id) => Some(*id),
            _ => None,
        });
        let rules = self.folders.get("").and_then(|names| names.get(RULES)).and_then(|node| match node {
            Node::File(id) => Some(*id),
            _ => None,
        });
        self.lacking(links.chain(rules))
    }

    /// What of these files is not here yet.
    pub fn missing(&self, files: &Files) -> Vec<Id> {
        self.lacking(files.values().copied())
    }

    fn lacking(&self, ids: impl Iterator<Item = Id>) -> Vec<Id> {
        let wanted: BTreeSet<Id> = ids.filter(|id| !self.packs.iter().any(|pack| pack.has(*id))).collect();
        wanted.into_iter().take(ASKED).collect()
    }

    /// The chart's files, by the rules and behind the links.
    pub fn files(&self) -> Result<Files, ChartError> {
        let rules = match self.folders.get("").and_then(|names| names.get(RULES)) {
            Some(Node::File(id)) => self.text(*id, RULES)?,
            _ => String::new(),
        };
        let rules = Ignore::parse(&rules).map_err(|why| invalid(&format!("{}: {why}", self.place)))?;
        let mut walk = Walk { folder: self, rules, files: Files::new(), seen: 0 };
        walk.expand("", "", 0)?;
        if !walk.files.contains_key("Chart.yaml") {
            return Err(invalid(&format!(
                "{}: there is no Chart.yaml: name the chart's folder in git.path",
                self.place
            )));
        }
        if walk.files.len() > ASKED {
            return Err(too_large(&format!("{}: it has more than {ASKED} files", self.place)));
        }
        Ok(walk.files)
    }

    /// The contents of these files, of at most `most` bytes together.
    pub fn contents(&self, files: &Files, most: usize) -> Result<BTreeMap<String, Arc<[u8]>>, ChartError> {
        let mut found = BTreeMap::new();
        let mut total = 0_usize;
        for (path, id) in files {
            let Some((Kind::Blob, data)) = self.object(*id)? else { return Err(self.damaged()) };
            total = total.saturating_add(data.len());
            if total > most {
                return Err(too_large(&format!("{}: it has more than {most} bytes", self.place)));
            }
            if data.starts_with(LFS) && data.len() < 1024 {
                return Err(invalid(&format!(
                    "{}: {} is kept in Git LFS, which is not fetched: commit the file itself",
                    self.place,
                    cut(path, 100)
                )));
            }
            found.insert(path.clone(), data);
        }
        Ok(found)
    }

    fn damaged(&self) -> ChartError {
        invalid(&format!("{}: the server's objects are not what they should be", self.place))
    }

    fn submodule(&self, path: &str) -> ChartError {
        invalid(&format!(
            "{}: {} is a submodule, which is not fetched: name the repository that it is of, or copy its files",
            self.place,
            cut(path, 100)
        ))
    }

    fn object(&self, id: Id) -> Result<Option<Object>, ChartError> {
        for pack in &self.packs {
            if let Some(found) = pack.get(id).map_err(|error| damaged(error, &self.place))? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn names(&self, tree: Id) -> Result<Names, ChartError> {
        let Some((Kind::Tree, content)) = self.object(tree)? else { return Err(self.damaged()) };
        Ok(object::entries(&content, self.format).ok_or_else(|| self.damaged())?.into_iter().collect())
    }

    fn text(&self, id: Id, path: &str) -> Result<String, ChartError> {
        let Some((Kind::Blob, data)) = self.object(id)? else { return Err(self.damaged()) };
        String::from_utf8(data.to_vec())
            .map_err(|_| invalid(&format!("{}: {} is not UTF-8 text", self.place, cut(path, 100))))
    }

    /// Trees may name each other so that few objects stand for endless files: what counts is what is walked.
    fn list(&mut self, tree: Id, path: String, depth: usize, count: &mut usize) -> Result<(), ChartError> {
        if depth > DEPTH {
            return Err(self.too_deep());
        }
        let names = self.names(tree)?;
        *count += names.len();
        self.counted(*count)?;
        for (name, node) in &names {
            if let Node::Folder(id) = node {
                self.list(*id, join(&path, name), depth + 1, count)?;
            }
        }
        self.folders.insert(path, names);
        Ok(())
    }

    fn counted(&self, count: usize) -> Result<(), ChartError> {
        let most = self.limits.entries;
        if count > most {
            return Err(too_large(&format!("{}: it has more than {most} files", self.place)));
        }
        Ok(())
    }

    fn too_deep(&self) -> ChartError {
        too_large(&format!(
            "{}: it nests more than {DEPTH} folders; does a symbolic link lead to a folder around it?",
            self.place
        ))
    }

    /// The path without links that a path stands for.
    fn real(&self, path: &str) -> Result<String, ChartError> {
        let mut path = path.to_owned();
        'again: for _ in 0..=LINKS {
            let mut walked = String::new();
            let parts: Vec<String> =
                path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
            for (index, part) in parts.iter().enumerate() {
                if let Some(Node::Link(id)) = self.folders.get(&walked).and_then(|names| names.get(part)) {
                    let link = join(&walked, part);
                    let rest = parts.get(index + 1..).unwrap_or_default().join("/");
                    path = join(&self.target(&walked, &link, *id)?, &rest);
                    continue 'again;
                }
                walked = join(&walked, part);
            }
            return Ok(walked);
        }
        Err(invalid(&format!(
            "{}: {} is a symbolic link that leads to links and no file",
            self.place,
            cut(&path, 100)
        )))
    }

    /// Where a link in a folder leads.
    fn target(&self, folder: &str, link: &str, id: Id) -> Result<String, ChartError> {
        let target = self.text(id, link)?;
        let outside = || {
            invalid(&format!(
                "{}: {} is a symbolic link to {:?}, which is outside of the folder: copy what it means",
                self.place,
                cut(link, 100),
                cut(&target, 100)
            ))
        };
        if target.starts_with('/') {
            return Err(outside());
        }
        let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
        for part in target.split('/') {
            match part {
                "" | "." => {}
                ".." => drop(parts.pop().ok_or_else(outside)?),
                part => parts.push(part),
            }
        }
        Ok(parts.join("/"))
    }
}

fn join(folder: &str, name: &str) -> String {
    match (folder, name) {
        ("", name) => name.to_owned(),
        (folder, "") => folder.to_owned(),
        (folder, name) => format!("{folder}/{name}"),
    }
}

struct Walk<'a> {
    folder: &'a Folder,
    rules: Ignore,
    files: Files,
    seen: usize,
}

impl Walk<'_> {
    /// Takes the names of the folder `real`, which the chart has as `shown`.
    fn expand(&mut self, real: &str, shown: &str, depth: usize) -> Result<(), ChartError> {
        let folder = self.folder;
        if depth > DEPTH {
            return Err(folder.too_deep());
        }
        for (name, node) in folder.folders.get(real).into_iter().flatten() {
            self.seen += 1;
            folder.counted(self.seen)?;
            self.take(&join(real, name), *node, &join(shown, name), depth)?;
        }
        Ok(())
    }

    fn take(&mut self, real: &str, node: Node, shown: &str, depth: usize) -> Result<(), ChartError> {
        let folder = self.folder;
        match node {
            Node::Folder(_) if self.rules.ignores(shown, true) => Ok(()),
            Node::Folder(_) => self.expand(real, shown, depth + 1),
            _ if self.rules.ignores(shown, false) => Ok(()),
            Node::Submodule if self.rules.ignores(shown, true) => Ok(()),
            Node::Submodule => Err(folder.submodule(shown)),
            Node::File(id) => {
                self.files.insert(shown.to_owned(), id);
                Ok(())
            }
            Node::Link(_) => {
                let real = folder.real(real)?;
                if folder.folders.contains_key(&real) {
                    return if self.rules.ignores(shown, true) {
                        Ok(())
                    } else {
                        self.expand(&real, shown, depth + 1)
                    };
                }
                let (parent, name) = real.rsplit_once('/').unwrap_or(("", &real));
                match folder.folders.get(parent).and_then(|names| names.get(name)) {
                    Some(node @ (Node::File(_) | Node::Submodule)) => self.take(&real, *node, shown, depth),
                    _ => Err(invalid(&format!(
                        "{}: {} is a symbolic link to {}, which is not there",
                        folder.place,
                        cut(shown, 100),
                        cut(&real, 100)
                    ))),
                }
            }
        }
    }
}
