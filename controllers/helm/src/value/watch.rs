//! Records which paths templates read of maps that came from outside.
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::{Map, Text, Value};

/// Names that are kept for one map. A loop that asks for more of them counts as having read all of it.
const MAX_NAMES: usize = 256;

/// Names that are kept for all maps together.
const MAX_TOTAL: usize = 10_000;

/// Longer names count as having read all of the map.
const MAX_NAME_BYTES: usize = 256;

/// Maps are watched down to this depth. Templates can nest maps without end, and these trees are walked by recursion.
const MAX_DEPTH: usize = 100;

/// What was read of one map, and of the maps below it.
///
/// Maps below are watched from when they are first fetched, so what nobody touches costs nothing.
#[derive(Debug)]
pub struct Watch {
    depth: usize,
    /// How many more names may be kept.
    left: Rc<Cell<usize>>,
    /// Something depended on more than single names: it was printed, copied, counted or ranged over.
    whole: Cell<bool>,
    /// It was asked whether the map is empty.
    tested: Cell<bool>,
    /// The map was fetched. When nothing below it was read, its mere presence mattered.
    fetched: Cell<bool>,
    /// Names that led to something that is no map, or to nothing.
    names: RefCell<BTreeSet<Text>>,
    below: RefCell<BTreeMap<Text, Rc<Self>>>,
}

impl Watch {
    /// For the map at the top.
    pub fn top() -> Rc<Self> {
        Rc::new(Self::new(0, Rc::new(Cell::new(MAX_TOTAL))))
    }

    fn new(depth: usize, left: Rc<Cell<usize>>) -> Self {
        Self {
            depth,
            left,
            whole: Cell::default(),
            tested: Cell::default(),
            fetched: Cell::default(),
            names: RefCell::default(),
            below: RefCell::default(),
        }
    }

    /// The watch of a map below this one.
    pub fn child(&self, name: &[u8]) -> Rc<Self> {
        let mut below = self.below.borrow_mut();
        if let Some(child) = below.get(name) {
            return Rc::clone(child);
        }
        self.left.set(self.left.get().saturating_sub(1));
        let child = Rc::new(Self::new(self.depth + 1, Rc::clone(&self.left)));
        below.insert(Text::from(name), Rc::clone(&child));
        child
    }

    /// All of the map was read.
    pub fn read_whole(&self) {
        self.whole.set(true);
    }

    /// It was asked whether the map is empty.
    pub fn test(&self) {
        self.tested.set(true);
    }

    /// A name of the map was read, with this result.
    pub fn read(&self, name: &[u8], found: Option<&Value>) {
        if self.whole.get() {
            return;
        }
        let is_kept = name.len() <= MAX_NAME_BYTES && self.left.get() > 0;
        if let Some(Value::Map(map)) = found
            && is_kept
            && self.depth < MAX_DEPTH
            && let Some(watch) = map.watched_as(|| self.child(name))
        {
            watch.fetched.set(true);
            return;
        }
        let mut names = self.names.borrow_mut();
        if names.contains(name) {
            return;
        }
        if !is_kept || names.len() >= MAX_NAMES {
            self.read_whole();
            return;
        }
        self.left.set(self.left.get() - 1);
        names.insert(Text::from(name));
    }

    /// The paths that were read; none leads to another. The empty path stands for the whole map.
    pub fn paths(&self) -> BTreeSet<Vec<String>> {
        let mut paths = BTreeSet::new();
        self.collect(&mut Vec::new(), &mut paths, |watch| watch.whole.get() || watch.tested.get());
        paths
    }

    /// The same, but of a map that was only asked whether it is empty no more than what was read below it, if anything was.
    pub fn used_paths(&self) -> BTreeSet<Vec<String>> {
        let mut paths = BTreeSet::new();
        self.collect(&mut Vec::new(), &mut paths, |watch| watch.whole.get());
        paths
    }

    fn collect(
        &self,
        path: &mut Vec<String>,
        paths: &mut BTreeSet<Vec<String>>,
        is_whole: impl Fn(&Self) -> bool + Copy,
    ) {
        if is_whole(self) {
            paths.insert(path.clone());
            return;
        }
        let (names, below, before) = (self.names.borrow(), self.below.borrow(), paths.len());
        for name in names.iter() {
            path.push(name.lossy().into_owned());
            paths.insert(path.clone());
            path.pop();
        }
        for (name, child) in below.iter().filter(|(name, _)| !names.contains(*name)) {
            path.push(name.lossy().into_owned());
            child.collect(path, paths, is_whole);
            path.pop();
        }
        if (self.fetched.get() || self.tested.get()) && paths.len() == before {
            paths.insert(path.clone());
        }
    }
}

impl Map {
    /// Reports whatever is read of this map from now on, whoever holds it.
    pub fn watch(&self, watch: Rc<Watch>) {
        self.watched_as(|| watch);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::MapType;
    use super::*;

    /// The values of a chart, the paths that `read` read of them, joined by dots.
    fn paths(read: impl FnOnce(&Map)) -> Vec<String> {
        let values =
            json!({"image": {"tag": "1", "pull": {"secret": null}}, "list": [{"a": 1}], "n": 1, "none": {}});
        let Value::Map(map) = Value::from_json(&values) else { unreachable!() };
        let watch = Watch::top();
        map.watch(Rc::clone(&watch));
        read(&map);
        watch.paths().into_iter().map(|path| path.join(".")).collect()
    }

    fn below(map: &Map, name: &str) -> Map {
        map.get(name).unwrap().as_map().unwrap().clone()
    }

    #[test]
    fn nothing_is_read_until_somebody_asks() {
        assert!(paths(|_| {}).is_empty());
    }

    #[test]
    fn a_walk_reads_what_it_leads_to_and_not_what_lies_beside() {
        assert_eq!(paths(|map| drop(below(map, "image").get("tag"))), ["image.tag"]);
        assert_eq!(paths(|map| drop(map.get("list"))), ["list"]);
    }

    #[test]
    fn what_is_absent_was_read_too() {
        assert_eq!(
            paths(|map| {
                map.get("zone");
                below(map, "image").contains_key("digest");
            }),
            ["image.digest", "zone"]
        );
    }

    #[test]
    fn a_map_that_is_counted_listed_or_only_fetched_is_read_whole() {
        assert_eq!(paths(|map| drop(below(map, "image").keys())), ["image"]);
        assert_eq!(paths(|map| drop(below(map, "image").entries())), ["image"]);
        assert_eq!(paths(|map| assert!(below(map, "none").is_empty())), ["none"]);
        assert_eq!(paths(|map| drop(below(&below(map, "image"), "pull"))), ["image.pull"]);
        assert_eq!(paths(|map| drop(map.entries())), [""]);
    }

    #[test]
    fn a_map_that_is_asked_whether_it_is_empty_is_used_below_only() {
        let used = |read: fn(&Map)| {
            let Value::Map(map) = Value::from_json(&json!({"image": {"tag": "1"}, "none": {}})) else {
                unreachable!()
            };
            let watch = Watch::top();
            map.watch(Rc::clone(&watch));
            read(&map);
            let joined = |paths: BTreeSet<Vec<String>>| -> Vec<String> {
                paths.into_iter().map(|path| path.join(".")).collect()
            };
            (joined(watch.paths()), joined(watch.used_paths()))
        };
        let tag = |map: &Map| {
            assert!(!map.is_empty() && !below(map, "image").is_empty());
            below(map, "image").get("tag");
        };
        assert_eq!(used(tag), (vec![String::new()], vec!["image.tag".to_owned()]));
        let alone = |map: &Map| assert!(!below(map, "image").is_empty());
        assert_eq!(used(alone), (vec!["image".to_owned()], vec!["image".to_owned()]));
    }

    #[test]
    fn a_whole_map_covers_the_paths_below() {
        assert_eq!(
            paths(|map| {
                below(map, "image").get("tag");
                below(map, "image").entries();
            }),
            ["image"]
        );
    }

    #[test]
    fn a_map_that_was_put_elsewhere_keeps_its_path() {
        assert_eq!(
            paths(|map| {
                let image = below(map, "image");
                map.insert("copy", Value::Map(image));
                below(map, "copy").get("tag");
            }),
            ["image.tag"]
        );
    }

    #[test]
    fn a_map_that_a_template_put_around_another_is_read_whole() {
        assert_eq!(
            paths(|map| {
                map.insert("made", Value::map([(Text::from("a"), Value::Map(below(map, "image")))]));
                below(&below(map, "made"), "a").get("tag");
            }),
            ["image.tag", "made"]
        );
    }

    #[test]
    fn more_names_than_are_kept_count_as_the_whole_map() {
        let ask = |count: usize| {
            move |map: &Map| {
                for i in 0..count {
                    below(map, "image").get(format!("k{i}"));
                }
            }
        };
        assert_eq!(paths(ask(MAX_NAMES)).len(), MAX_NAMES);
        assert_eq!(paths(ask(MAX_NAMES + 1)), ["image"]);
    }

    #[test]
    fn names_of_any_length_and_maps_of_any_depth_stay_within_bounds() {
        assert_eq!(paths(|map| drop(below(map, "image").get("k".repeat(MAX_NAME_BYTES + 1)))), ["image"]);
        let deep = (0..200_000).fold(Value::Nil, |value, _| Value::map([(Text::from("a"), value)]));
        let read = paths(|map| {
            map.insert("deep", deep);
            let mut at = below(map, "deep");
            while let Some(Value::Map(next)) = at.get("a") {
                at = next;
            }
        });
        assert_eq!(read.len(), 1);
        assert_eq!(read[0].split('.').count(), MAX_DEPTH + 1);
        let many = |map: &Map| {
            for i in 0..MAX_TOTAL {
                let made = Map::default();
                map.insert(
                    "made",
                    Value::Map(Map::from_entries(
                        MapType::Any,
                        [(Text::from(format!("m{i}")), Value::Map(made))],
                    )),
                );
                below(map, "made").get(format!("m{i}")).unwrap().as_map().unwrap().get("x");
            }
        };
        assert!(paths(many).len() <= MAX_TOTAL);
    }
}
