//! Reads of Git's protocol, version 2: what a server can do, its references, and packs of objects.

use emco_engine::git::object::{Format, Id};

use super::packet::{Message, Packet, Packets};

/// How the operator names itself.
pub const AGENT: &str = concat!("agent=emco-operator/", env!("CARGO_PKG_VERSION"));
/// The header that asks for this version.
pub const VERSION: (&str, &str) = ("git-protocol", "version=2");
/// Type of the answer to the first question.
pub const ADVERTISEMENT: &str = "application/x-git-upload-pack-advertisement";
/// Type of all other questions.
pub const REQUEST: &str = "application/x-git-upload-pack-request";

/// Why an answer cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// The server speaks an older version.
    OldProtocol,
    /// It names objects in an unknown way.
    UnknownFormat,
    /// The answer is cut off, or something else.
    CutOff,
    /// The server says that it does not give what was asked for.
    Refused,
}

/// What a server can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ability {
    pub format: Format,
    /// It can leave contents of files out.
    pub filters: bool,
}

impl Ability {
    /// Reads the answer to the first question.
    pub fn read(bytes: &[u8]) -> Result<Self, Unusable> {
        let lines: Vec<&str> = Packets::new(bytes).map_while(Result::ok).filter_map(Packet::text).collect();
        if !lines.contains(&"version 2") {
            return Err(Unusable::OldProtocol);
        }
        let format = match lines.iter().find_map(|line| line.strip_prefix("object-format=")) {
            None | Some("sha1") => Format::Sha1,
            Some("sha256") => Format::Sha256,
            Some(_) => return Err(Unusable::UnknownFormat),
        };
        let fetch = lines.iter().find_map(|line| line.strip_prefix("fetch="));
        let filters = fetch.is_some_and(|all| all.split(' ').any(|one| one == "filter"));
        Ok(Self { format, filters })
    }

    fn command(self, name: &str) -> Message {
        let message = Message::default().line(&format!("command={name}")).line(AGENT);
        match self.format {
            Format::Sha1 => message,
            Format::Sha256 => message.line(&format!("object-format={}", self.format.name())),
        }
    }

    /// Asks for references whose names begin so.
    pub fn list_references(self, prefix: &str) -> Vec<u8> {
        self.command("ls-refs").delimiter().line("peel").line(&format!("ref-prefix {prefix}")).flush()
    }

    /// Asks for objects.
    pub fn fetch(self, wanted: &[Id], what: What) -> Vec<u8> {
        let mut message = self.command("fetch").delimiter().line("ofs-delta").line("no-progress");
        if what == What::Snapshot {
            message = message.line("deepen 1");
            if self.filters {
                message = message.line("filter blob:none");
            }
        }
        for id in wanted {
            message = message.line(&format!("want {id}"));
        }
        message.line("done").flush()
    }
}

/// What objects are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Commits without their history, and what they have: names alone, where the server can leave contents out.
    Snapshot,
    /// These and nothing else.
    Objects,
}

/// A reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Such as `refs/heads/main`.
    pub name: String,
    /// The object that it names; of an annotated tag, what that stands for.
    pub id: Id,
}

/// Reads the answer with references.
pub fn references(bytes: &[u8], format: Format) -> Result<Vec<Reference>, Unusable> {
    let mut found = Vec::new();
    for packet in Packets::new(bytes) {
        let Some(line) = packet.map_err(|_| Unusable::CutOff)?.text() else { continue };
        let mut words = line.split(' ');
        let (Some(id), Some(name)) = (words.next(), words.next()) else { continue };
        // An annotated tag is an object of its own; what it stands for is beside it.
        let id = words.find_map(|word| word.strip_prefix("peeled:")).unwrap_or(id);
        // A branch of an empty repository has no commit yet.
        if id == "unborn" {
            continue;
        }
        let id = Id::parse(id, format).ok_or(Unusable::CutOff)?;
        found.push(Reference { name: name.to_owned(), id });
    }
    Ok(found)
}

/// Takes the pack out of the answer with objects.
pub fn pack(answer: &[u8]) -> Result<Vec<u8>, Unusable> {
    let mut pack = Vec::new();
    let mut inside = false;
    for packet in Packets::new(answer) {
        match packet.map_err(|_| Unusable::CutOff)? {
            Packet::Line(line) if inside => match line.split_first() {
                Some((1, data)) => pack.extend_from_slice(data),
                // What people at a terminal would read.
                Some((2, _)) => {}
                _ => return Err(Unusable::CutOff),
            },
            Packet::Line(line) if line.starts_with(b"ERR ") => return Err(Unusable::Refused),
            Packet::Line(line) => inside = line == b"packfile\n" || line == b"packfile",
            Packet::Flush if inside => break,
            Packet::Flush | Packet::Delimiter | Packet::End => {}
        }
    }
    if pack.is_empty() { Err(Unusable::CutOff) } else { Ok(pack) }
}
