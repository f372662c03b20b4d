//! Writes commits, and says in their messages what they are about.

use std::collections::{BTreeMap, BTreeSet};

use super::object::Id;
use crate::text::counted;

/// Owners that a message names.
const NAMED: usize = 20;
/// First word of the line that names the installation.
pub const INSTALLATION: &str = "EMCO-Installation";

/// What a commit brings for one owner.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Brought {
    /// `DeploymentIntentGroup/team-a/shop`.
    pub owner: String,
    /// The revision; 0 where it leaves.
    pub revision: i64,
}

/// The message of a commit: owners with the clusters that get something of each.
pub fn message(brought: &BTreeMap<Brought, BTreeSet<String>>, installation: &str) -> String {
    let clusters: BTreeSet<&String> = brought.values().flatten().collect();
    let on = counted(clusters.len(), "cluster");
    let mut text = match (brought.len(), brought.keys().next()) {
        (1, Some(one)) => format!("{} on {on}\n\n", titled(one)),
        (0, _) => "files as EMCO wants them\n\n".to_owned(),
        (many, _) => format!("{} on {on}\n\n", counted(many, "deployment")),
    };
    for one in brought.keys().take(NAMED) {
        text.push_str(&format!("EMCO-Owner: {}\nEMCO-Revision: {}\n", one.owner, one.revision));
    }
    text.push_str(&format!("{INSTALLATION}: {installation}\nEMCO-Format: 1\n"));
    text
}

fn titled(one: &Brought) -> String {
    let name = one.owner.split_once('/').map_or(one.owner.as_str(), |(_, name)| name);
    if one.revision > 0 { format!("{name} r{}", one.revision) } else { name.to_owned() }
}

/// The content of a commit. `seconds` since 1970.
pub fn content(tree: Id, parent: Option<Id>, seconds: i64, message: &str) -> Vec<u8> {
    let parent = parent.map(|id| format!("parent {id}\n")).unwrap_or_default();
    let who = format!("EMCO <emco@localhost> {seconds} +0000");
    format!("tree {tree}\n{parent}author {who}\ncommitter {who}\n\n{message}").into_bytes()
}

/// Whether a commit was made on top of another.
pub fn follows(content: &[u8], parent: Id) -> bool {
    let head = String::from_utf8_lossy(content);
    let parent = parent.to_string();
    head.lines()
        .take_while(|line| !line.is_empty())
        .any(|line| line.strip_prefix("parent ") == Some(parent.as_str()))
}

/// Whether this installation made a commit.
pub fn is_ours(content: &[u8], installation: &str) -> bool {
    let line = format!("\n{INSTALLATION}: {installation}\n");
    String::from_utf8_lossy(content).contains(&line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::object::{Format, Kind, name_of};

    fn brought(all: &[(&str, i64, &[&str])]) -> BTreeMap<Brought, BTreeSet<String>> {
        let one = |(owner, revision, clusters): &(&str, i64, &[&str])| {
            let clusters = clusters.iter().map(|name| (*name).to_owned()).collect();
            (Brought { owner: (*owner).to_owned(), revision: *revision }, clusters)
        };
        all.iter().map(one).collect()
    }

    #[test]
    fn a_subject_names_one_owner_and_counts_many() {
        let shop = "DeploymentIntentGroup/team-a/shop";
        let one = message(&brought(&[(shop, 4, &["a/b", "a/c"])]), "inst");
        assert!(one.starts_with("team-a/shop r4 on 2 clusters\n\nEMCO-Owner: Depl"), "{one}");
        assert!(one.ends_with("EMCO-Revision: 4\nEMCO-Installation: inst\nEMCO-Format: 1\n"), "{one}");
        let two = message(&brought(&[(shop, 4, &["a/b"]), ("LogicalCloud/team-a/edge", 1, &["a/b"])]), "i");
        assert!(two.starts_with("2 deployments on 1 cluster\n\n"), "{two}");
    }

    #[test]
    fn a_commit_is_known_by_its_installation() {
        let tree = name_of(Format::Sha1, Kind::Tree, b"");
        let text = content(tree, None, 0, &message(&BTreeMap::new(), "inst"));
        assert!(text.starts_with(b"tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor EMCO <"));
        assert!(is_ours(&text, "inst") && !is_ours(&text, "ins"));
        let next = content(tree, Some(tree), 0, "x");
        assert!(follows(&next, tree) && !follows(&text, tree));
    }
}
