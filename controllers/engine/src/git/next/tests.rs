use super::*;
use crate::git::object::{Format, Kind, name_of};

const WEB: &str = "clusters/a/b/team/dig-shop/web";
const SYNC_OF: &str = "clusters/a/b/sync";

fn blob(text: &str) -> Id {
    name_of(Format::Sha1, Kind::Blob, text.as_bytes())
}

/// A branch, with what was wanted of it so far.
#[derive(Default)]
struct Branch {
    trees: Trees,
    root: Option<Id>,
    files: Edits,
    folders: BTreeSet<String>,
    exact: BTreeSet<String>,
    undone: Edits,
}

impl Branch {
    fn want(&mut self, folder: &str, name: &str, text: Option<&str>) {
        self.files.insert(join(folder, name), text.map(blob));
        self.folders.insert(folder.to_owned());
    }

    fn next(&self) -> Next {
        let Self { trees, root, files, folders, exact, undone } = self;
        let wish = Wish { folder: "fleet", files, folders, exact, undone };
        next(trees, *root, &wish, blob).unwrap()
    }

    fn commit(&mut self) -> Edits {
        let next = self.next();
        self.others(&next.edits);
        next.edits
    }

    /// Somebody else writes.
    fn others(&mut self, edits: &Edits) {
        let edited = self.trees.edit(self.root, edits, Format::Sha1).unwrap();
        self.trees.extend(&edited, Format::Sha1);
        self.root = edited.root;
    }

    fn files(&self) -> Vec<String> {
        self.trees.files(self.root).unwrap().into_keys().collect()
    }

    fn listed(&self, folder: &str) -> Id {
        self.trees.at(self.root, &format!("fleet/{folder}/{LIST}")).unwrap().unwrap().id
    }
}

fn shop() -> Branch {
    let mut branch = Branch::default();
    branch.others(&Edits::from([("README".to_owned(), Some(blob("mine")))]));
    branch.want(WEB, "a.yaml", Some("a1"));
    branch.want(WEB, "b.yaml", Some("b1"));
    branch.want(SYNC_OF, "emco-1-web.yaml", Some("flux"));
    branch.commit();
    branch
}

#[test]
fn files_come_with_the_lists_of_their_folders() {
    let mut branch = shop();
    assert_eq!(
        branch.files(),
        [
            "README",
            "fleet/clusters/a/b/sync/emco-1-web.yaml",
            "fleet/clusters/a/b/sync/kustomization.yaml",
            "fleet/clusters/a/b/team/dig-shop/web/a.yaml",
            "fleet/clusters/a/b/team/dig-shop/web/b.yaml",
            "fleet/clusters/a/b/team/dig-shop/web/kustomization.yaml",
        ]
    );
    assert_eq!(branch.listed(WEB), blob(&files::list(["a.yaml", "b.yaml"])));
    assert_eq!(branch.commit(), Edits::new(), "at rest nothing is written");
}

#[test]
fn a_process_that_just_began_removes_nothing() {
    let mut branch = shop();
    (branch.files, branch.folders) = (Edits::new(), BTreeSet::new());
    assert_eq!(branch.commit(), Edits::new());
    branch.want(WEB, "a.yaml", Some("a2"));
    assert_eq!(branch.commit().len(), 1);
    assert_eq!(branch.listed(WEB), blob(&files::list(["a.yaml", "b.yaml"])));
    branch.exact.insert(WEB.to_owned());
    branch.commit();
    assert_eq!(branch.listed(WEB), blob(&files::list(["a.yaml"])), "now all of the folder is known");
}

#[test]
fn the_file_of_a_namespace_leaves_by_a_word_of_its_own_alone() {
    let mut branch = shop();
    let space = "core-namespace-extra.yaml";
    branch.want(WEB, space, Some("namespace"));
    branch.commit();
    // Another process does not speak of it, and knows all else.
    branch.files.remove(&join(WEB, space));
    branch.exact.insert(WEB.to_owned());
    assert_eq!(branch.commit(), Edits::new());
    branch.want(WEB, space, None);
    branch.commit();
    assert_eq!(branch.listed(WEB), blob(&files::list(["a.yaml", "b.yaml"])));
}

#[test]
fn a_link_with_the_content_of_a_file_is_not_that_file() {
    let mut branch = shop();
    let mut content = Vec::new();
    for (mode, name, text) in [("120000", "a.yaml", "a1"), ("100644", "b.yaml", "b1")] {
        content.extend(format!("{mode} {name}\0").into_bytes());
        content.extend(blob(text).bytes());
    }
    let mut id = name_of(Format::Sha1, Kind::Tree, &content);
    assert!(branch.trees.insert(id, &content, Format::Sha1));
    for name in format!("fleet/{WEB}").rsplit('/') {
        let mut content = format!("40000 {name}\0").into_bytes();
        content.extend(id.bytes());
        id = name_of(Format::Sha1, Kind::Tree, &content);
        assert!(branch.trees.insert(id, &content, Format::Sha1));
    }
    branch.root = Some(id);
    assert!(branch.commit().contains_key(&format!("fleet/{WEB}/a.yaml")));
    let a = branch.trees.at(branch.root, &format!("fleet/{WEB}/a.yaml")).unwrap().unwrap();
    assert!(a.is_file_of(blob("a1")));
}

#[test]
fn the_last_files_leave_an_empty_list_for_the_agent_alone() {
    let mut branch = shop();
    for (folder, name) in [(WEB, "a.yaml"), (WEB, "b.yaml"), (SYNC_OF, "emco-1-web.yaml")] {
        branch.want(folder, name, None);
    }
    branch.commit();
    assert_eq!(branch.files(), ["README", "fleet/clusters/a/b/sync/kustomization.yaml"]);
    assert_eq!(branch.listed(SYNC_OF), blob(&files::list([])));
    assert_eq!(branch.commit(), Edits::new());
}

#[test]
fn edits_of_others_are_undone_and_what_is_wanted_counts_more() {
    let mut branch = shop();
    let ours = branch.trees.at(branch.root, "fleet/clusters").unwrap().unwrap().id;
    let path = |name: &str| format!("fleet/{WEB}/{name}");
    branch.others(&Edits::from([
        (path("a.yaml"), Some(blob("hacked"))),
        (path("evil.yaml"), Some(blob("evil"))),
        (path("kustomization.yaml"), Some(blob("resources: [evil.yaml]"))),
        ("fleet/notes".to_owned(), Some(blob("theirs"))),
    ]));
    let theirs = branch.trees.at(branch.root, "fleet/clusters").unwrap().unwrap().id;
    let differences = branch.trees.differences(Some(ours), Some(theirs)).unwrap();
    branch.undone = differences.into_iter().map(|(path, id)| (join(CLUSTERS, &path), id)).collect();
    assert_eq!(branch.undone.len(), 3);
    branch.want(WEB, "a.yaml", Some("a2"));
    branch.commit();
    assert_eq!(branch.listed(WEB), blob(&files::list(["a.yaml", "b.yaml"])));
    let a = branch.trees.at(branch.root, &path("a.yaml")).unwrap().unwrap();
    assert_eq!(a.id, blob("a2"));
    assert!(!branch.files().contains(&path("evil.yaml")));
    assert!(branch.files().contains(&"fleet/notes".to_owned()));
}
