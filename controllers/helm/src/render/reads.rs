//! Records which values a render depended on: the paths that a caller could have set.
use std::collections::BTreeSet;
use std::rc::Rc;

use super::variant::Member;
use crate::value::{Map, Watch};

type Paths = BTreeSet<Vec<String>>;

const GLOBAL: &str = "global";

/// Watches the values of a chart and its dependencies, each at the place where the root's values hold them.
pub(super) fn watch(member: &Member, values: &Map, watch: &Rc<Watch>) {
    for child in &member.children {
        let (mut below, mut at) = (Some(values.clone()), Rc::clone(watch));
        for part in child.name.split('.') {
            below = below.and_then(|map| map.get(part)).and_then(|value| value.as_map().cloned());
            at = at.child(part.as_bytes());
        }
        if let Some(below) = below {
            self::watch(child, &below, &at);
        }
    }
    // Last, for the walk to the children reads too.
    values.watch(Rc::clone(watch));
}

/// The paths templates read, with the ones that were read already, such as conditions; none leads to another.
pub(super) fn paths(root: &Member, read: Paths, mut paths: Paths) -> Paths {
    paths.extend(read);
    add_globals(root, &[], &mut paths);
    let mut shortest = Paths::new();
    let mut last: Option<Vec<String>> = None;
    // A path sorts before those it leads to.
    for path in paths {
        if last.as_ref().is_none_or(|last| !path.starts_with(last)) {
            last = Some(path.clone());
            shortest.insert(path);
        }
    }
    shortest
}

/// What a dependency reads of its `global` comes from its parent's `global` too.
fn add_globals(member: &Member, prefix: &[String], paths: &mut Paths) {
    for child in &member.children {
        let mut below = prefix.to_vec();
        below.extend(child.name.split('.').map(str::to_owned));
        add_globals(child, &below, paths);
        let from_parent: Vec<Vec<String>> = paths
            .iter()
            .filter_map(|path| {
                let (global, rest) = match path.strip_prefix(below.as_slice())? {
                    [] => (GLOBAL, [].as_slice()),
                    [global, rest @ ..] => (global.as_str(), rest),
                };
                (global == GLOBAL).then(|| [prefix, &[global.to_owned()], rest].concat())
            })
            .collect();
        paths.extend(from_parent);
    }
}
