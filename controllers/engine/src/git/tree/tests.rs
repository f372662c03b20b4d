use proptest::prelude::*;

use super::*;

const SHA1: Format = Format::Sha1;

fn blob(text: &str) -> Id {
    name_of(SHA1, Kind::Blob, text.as_bytes())
}

fn edits(all: &[(&str, Option<&str>)]) -> Edits {
    all.iter().map(|(path, text)| ((*path).to_owned(), text.map(blob))).collect()
}

fn edit(trees: &mut Trees, root: Option<Id>, all: &[(&str, Option<&str>)]) -> Option<Id> {
    let edited = trees.edit(root, &edits(all), SHA1).unwrap();
    trees.extend(&edited, SHA1);
    edited.root
}

#[test]
fn a_tree_has_the_name_that_git_gives_it() {
    let mut trees = Trees::default();
    // Made with git 2.43: a file `a.b`, a folder `a` with a file `x`, both with the text "hello\n".
    let root = edit(&mut trees, None, &[("a.b", Some("hello\n")), ("a/x", Some("hello\n"))]);
    let inner = trees.at(root, "a").unwrap().unwrap();
    assert!(inner.is_folder());
    let content = write(trees.entries(root.unwrap()).unwrap());
    // `a.b` comes before `a/`, although `a` comes before `a.b`.
    assert!(content.starts_with(b"100644 a.b\0"));
    assert_eq!(trees.at(root, "a/x").unwrap().unwrap().id, blob("hello\n"));
    assert_eq!(trees.at(root, "a/x/y").unwrap(), None);
}

#[test]
fn names_beside_an_edit_keep_their_modes() {
    let mut trees = Trees::default();
    let mut content = b"100755 run\0".to_vec();
    content.extend(blob("x").bytes());
    content.extend(b"160000 sub\0");
    content.extend(blob("y").bytes());
    let root = name_of(SHA1, Kind::Tree, &content);
    assert!(trees.insert(root, &content, SHA1));
    let with = edit(&mut trees, Some(root), &[("z/a", Some("a"))]);
    let entries = trees.entries(with.unwrap()).unwrap();
    assert_eq!(entries[b"run".as_slice()].mode, 0o100_755);
    assert_eq!(entries[b"sub".as_slice()].mode, 0o160_000);
    assert_eq!(edit(&mut trees, with, &[("z/a", None)]), Some(root));
}

#[test]
fn the_last_file_takes_its_folders_along() {
    let mut trees = Trees::default();
    let root = edit(&mut trees, None, &[("a/b/c", Some("1"))]);
    assert_eq!(edit(&mut trees, root, &[("a/b/c", None), ("x/y", None)]), None);
}

#[test]
fn a_folder_makes_room_for_a_file_and_a_file_for_a_folder() {
    let mut trees = Trees::default();
    let root = edit(&mut trees, None, &[("a", Some("1"))]);
    let root = edit(&mut trees, root, &[("a/b", Some("2"))]);
    assert_eq!(trees.files(root).unwrap(), BTreeMap::from([("a/b".to_owned(), blob("2"))]));
    let root = edit(&mut trees, root, &[("a", Some("3"))]);
    assert_eq!(trees.files(root).unwrap(), BTreeMap::from([("a".to_owned(), blob("3"))]));
}

#[test]
fn a_tree_that_is_not_there_is_named() {
    let trees = Trees::default();
    let lost = blob("lost");
    assert_eq!(trees.edit(Some(lost), &edits(&[("a", Some("1"))]), SHA1), Err(Missing(lost)));
    assert_eq!(trees.at(Some(lost), "a"), Err(Missing(lost)));
}

#[test]
fn folders_that_stand_for_very_many_files_are_weighed_at_once() {
    let (mut trees, mut id) = (Trees::default(), blob("x"));
    let folder = |trees: &mut Trees, id: Id, mode: &str| {
        let mut content = Vec::new();
        for name in ["a", "b", "c", "d"] {
            content.extend(format!("{mode} {name}\0").into_bytes());
            content.extend(id.bytes());
        }
        let id = name_of(SHA1, Kind::Tree, &content);
        assert!(trees.insert(id, &content, SHA1));
        id
    };
    id = folder(&mut trees, id, "100644");
    assert_eq!(trees.weight(id), Ok(Some(4)));
    for _ in 0..40 {
        id = folder(&mut trees, id, "40000");
    }
    assert_eq!(trees.weight(id), Ok(Some(u64::MAX)));
    for _ in 0..40 {
        id = folder(&mut trees, id, "40000");
    }
    assert_eq!(trees.weight(id), Ok(None), "too deep");
    assert_eq!(trees.weight(blob("lost")), Err(Missing(blob("lost"))));
}

fn paths() -> impl Strategy<Value = BTreeMap<String, Option<String>>> {
    let path = prop::collection::vec("[ab.]{1,2}", 1..4).prop_map(|parts| parts.join("/"));
    prop::collection::btree_map(path, prop::option::of("[xy]"), 0..6)
}

/// What files are there after edits, said in another way: a file has no files below it.
fn plain(files: &mut BTreeMap<String, Id>, edits: &Edits) {
    for (path, id) in edits {
        match id {
            Some(id) => {
                let parents: Vec<&str> =
                    path.match_indices('/').filter_map(|(at, _)| path.get(..at)).collect();
                files.retain(|other, _| {
                    !parents.contains(&other.as_str()) && !other.starts_with(&format!("{path}/"))
                });
                files.insert(path.clone(), *id);
            }
            None => drop(files.remove(path)),
        }
    }
}

/// Whether one path is a folder of another: edits that contradict themselves have no order.
fn nested(edits: &BTreeMap<String, Option<String>>) -> bool {
    edits.keys().any(|a| edits.keys().any(|b| b.starts_with(&format!("{a}/"))))
}

proptest! {
    #[test]
    fn edits_of_trees_are_edits_of_files(first in paths(), second in paths()) {
        prop_assume!(!nested(&first) && !nested(&second));
        let (mut trees, mut root, mut files) = (Trees::default(), None, BTreeMap::new());
        for all in [first, second] {
            let edits: Edits = all.iter().map(|(path, text)| (path.clone(), text.as_deref().map(blob))).collect();
            let edited = trees.edit(root, &edits, SHA1).unwrap();
            trees.extend(&edited, SHA1);
            let before = root;
            root = edited.root;
            plain(&mut files, &edits);
            prop_assert_eq!(trees.files(root).unwrap(), files.clone());
            // What is undone leads back to the very same tree.
            let back = trees.differences(before, root).unwrap();
            prop_assert_eq!(trees.edit(root, &back, SHA1).unwrap().root, before);
        }
    }
}
