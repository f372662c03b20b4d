//! Parses the bytes of Git's objects: names, trees of commits, entries of trees.

use std::fmt;
use std::sync::Arc;

use sha1::Sha1;
use sha2::{Digest as _, Sha256};

/// How a repository names its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Sha1,
    Sha256,
}

impl Format {
    /// As the protocol calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
        }
    }

    /// Bytes of a name.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }

    pub fn hash(self) -> Hash {
        match self {
            Self::Sha1 => Hash::Sha1(Sha1::new()),
            Self::Sha256 => Hash::Sha256(Sha256::new()),
        }
    }
}

/// The name of a whole object.
pub fn name_of(format: Format, kind: Kind, content: &[u8]) -> Id {
    let mut hash = Hash::of(format, kind, content.len() as u64);
    hash.update(content);
    hash.finish()
}

/// A digest in the making.
pub enum Hash {
    Sha1(Sha1),
    Sha256(Sha256),
}

impl Hash {
    /// Of an object of this kind and size, whose content is still to come.
    pub fn of(format: Format, kind: Kind, size: u64) -> Self {
        let mut hash = format.hash();
        hash.update(format!("{} {size}\0", kind.name()).as_bytes());
        hash
    }

    pub fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha1(hash) => hash.update(bytes),
            Self::Sha256(hash) => hash.update(bytes),
        }
    }

    pub fn finish(self) -> Id {
        match self {
            Self::Sha1(hash) => Id::of(&hash.finalize()),
            Self::Sha256(hash) => Id::of(&hash.finalize()),
        }
    }
}

/// Name of an object: the digest of its content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id {
    bytes: [u8; 32],
    length: u8,
}

impl Id {
    fn of(digest: &[u8]) -> Self {
        let mut bytes = [0; 32];
        let mut length = 0;
        for (to, from) in bytes.iter_mut().zip(digest) {
            *to = *from;
            length += 1;
        }
        Self { bytes, length }
    }

    /// From as many bytes as the format's names have.
    pub fn read(bytes: &[u8], format: Format) -> Option<Self> {
        (bytes.len() == format.bytes()).then(|| Self::of(bytes))
    }

    /// As trees have it.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }

    /// From hexadecimal digits.
    pub fn parse(text: &str, format: Format) -> Option<Self> {
        Self::read(&hex::decode(text).ok()?, format)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.bytes()))
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Commit,
    Tree,
    Blob,
    Tag,
}

impl Kind {
    /// As objects begin.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Tree => "tree",
            Self::Blob => "blob",
            Self::Tag => "tag",
        }
    }
}

/// An object's kind and content.
pub type Object = (Kind, Arc<[u8]>);

/// What stands behind a name in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    Folder(Id),
    File(Id),
    /// A symbolic link; the object is what it leads to.
    Link(Id),
    /// A commit of another repository.
    Submodule,
}

/// The tree of a commit.
pub fn tree_of(commit: &[u8], format: Format) -> Option<Id> {
    let line = commit.strip_prefix(b"tree ")?.split(|byte| *byte == b'\n').next()?;
    Id::parse(std::str::from_utf8(line).ok()?, format)
}

/// The entries of a tree, with names that are names; `None` where it is no such tree.
pub fn entries(mut tree: &[u8], format: Format) -> Option<Vec<(String, Node)>> {
    let mut found = Vec::new();
    while !tree.is_empty() {
        let space = tree.iter().position(|byte| *byte == b' ')?;
        let (mode, rest) = tree.split_at_checked(space)?;
        let rest = rest.get(1..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        let name = std::str::from_utf8(rest.get(..end)?).ok()?;
        if name.is_empty() || matches!(name, "." | "..") || name.contains(['/', '\\']) {
            return None;
        }
        let rest = rest.get(end + 1..)?;
        let (id, rest) = rest.split_at_checked(format.bytes())?;
        let id = Id::read(id, format)?;
        let node = match mode {
            b"40000" | b"040000" => Node::Folder(id),
            b"120000" => Node::Link(id),
            b"160000" => Node::Submodule,
            mode if mode.starts_with(b"100") => Node::File(id),
            _ => return None,
        };
        found.push((name.to_owned(), node));
        tree = rest;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_git() {
        let mut hash = Hash::of(Format::Sha1, Kind::Blob, 6);
        hash.update(b"hello\n");
        assert_eq!(hash.finish().to_string(), "ce013625030ba8dba906f756967f9e9ca394464a");
        assert_eq!(
            Hash::of(Format::Sha1, Kind::Tree, 0).finish().to_string(),
            "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
        );
        assert_eq!(Id::parse("ce01", Format::Sha1), None);
        assert_eq!(Id::parse(&"z".repeat(40), Format::Sha1), None);
    }

    #[test]
    fn a_tree_whose_names_lead_elsewhere_is_no_tree() {
        let tree = |mode: &str, name: &str| {
            let mut bytes = format!("{mode} {name}\0").into_bytes();
            bytes.extend([7; 20]);
            bytes
        };
        let good = entries(&tree("100644", "a"), Format::Sha1).unwrap();
        assert_eq!(good, [("a".to_owned(), Node::File(Id::of(&[7; 20])))]);
        for name in ["", ".", "..", "a/b", "a\\b"] {
            assert_eq!(entries(&tree("100644", name), Format::Sha1), None, "{name}");
        }
        assert_eq!(entries(&tree("777", "a"), Format::Sha1), None);
        assert_eq!(entries(&tree("100644", "a")[..20], Format::Sha1), None);
    }
}
