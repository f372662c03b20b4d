//! Keeps Go's maps with string keys, shared by reference, with their Go type.
use std::cell::{OnceCell, Ref, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

use super::dismantle::{dismantle, is_container};
use super::watch::Watch;
use super::{Text, Value};
use crate::limits::{MAP_BYTES, NODE_BYTES, give, take};

/// Bytes that an entry takes in a tree whose leaves are half full.
const ENTRY_BYTES: usize = 100;

/// The bytes that a map of so many entries takes, their own parts left out.
fn bytes(entries: usize) -> usize {
    if entries == 0 { NODE_BYTES } else { NODE_BYTES + (entries * ENTRY_BYTES).max(MAP_BYTES) }
}

/// The Go type of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapType {
    /// `map[string]interface {}`
    Any,
    /// `chartutil.Values`, which has methods of its own and which type switches on plain maps do not match.
    Values,
    /// `map[string]string`; its values are texts, and a missing key is the empty text.
    String,
}

impl MapType {
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "map[string]interface {}",
            Self::Values => "chartutil.Values",
            Self::String => "map[string]string",
        }
    }
}

#[derive(Debug)]
struct Entries {
    items: RefCell<BTreeMap<Text, Value>>,
    /// Told of every read, if anybody wants to know.
    watch: OnceCell<Rc<Watch>>,
}

impl Entries {
    /// One value, or `None` when the key is absent.
    fn get(&self, key: &[u8]) -> Option<Value> {
        let value = self.items.borrow().get(key).cloned();
        if let Some(watch) = self.watch.get() {
            watch.read(key, value.as_ref());
        }
        value
    }

    fn is_empty(&self) -> bool {
        if let Some(watch) = self.watch.get() {
            watch.test();
        }
        self.items.borrow().is_empty()
    }

    /// All values.
    fn borrow(&self) -> Ref<'_, BTreeMap<Text, Value>> {
        if let Some(watch) = self.watch.get() {
            watch.read_whole();
        }
        self.items.borrow()
    }
}

impl Drop for Entries {
    fn drop(&mut self) {
        let entries = self.items.get_mut();
        give(bytes(entries.len()));
        if entries.values().any(is_container) {
            dismantle(std::mem::take(entries).into_values());
        }
    }
}

/// A map. Clones share their entries; `Map` values of two types may share entries too, as `Values` and its `AsMap` do.
#[derive(Clone)]
pub struct Map {
    map_type: MapType,
    /// `None` is a nil map: empty, read-only, printed as `null` in JSON.
    entries: Option<Rc<Entries>>,
}

/// A map that does not keep its entries alive.
#[derive(Debug)]
pub struct WeakMap(Weak<Entries>);

impl WeakMap {
    pub fn is_same(&self, other: &Self) -> bool {
        self.0.ptr_eq(&other.0)
    }

    /// Empties the map, if it is still there, to break a cycle it may be part of.
    pub fn clear(&self) {
        if let Some(entries) = self.0.upgrade() {
            let old = std::mem::take(&mut *entries.items.borrow_mut());
            give(bytes(old.len()) - bytes(0));
            dismantle(old.into_values());
        }
    }
}

impl Default for Map {
    fn default() -> Self {
        Self::new(MapType::Any)
    }
}

impl std::fmt::Debug for Map {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Entries are left out: a map may contain itself.
        let len = self.entries.as_ref().map_or(0, |entries| entries.items.borrow().len());
        write!(f, "{}[{len}]", self.map_type.name())
    }
}

impl Map {
    pub fn new(map_type: MapType) -> Self {
        Self::from_entries(map_type, [])
    }

    /// A nil map of a type.
    pub fn nil(map_type: MapType) -> Self {
        Self { map_type, entries: None }
    }

    pub fn from_entries(map_type: MapType, entries: impl IntoIterator<Item = (Text, Value)>) -> Self {
        let items: BTreeMap<Text, Value> = entries.into_iter().collect();
        take(bytes(items.len()));
        let items = RefCell::new(items);
        Self { map_type, entries: Some(Rc::new(Entries { items, watch: OnceCell::new() })) }
    }

    pub fn map_type(&self) -> MapType {
        self.map_type
    }

    /// The same entries seen as another type.
    #[must_use]
    pub fn with_type(&self, map_type: MapType) -> Self {
        Self { map_type, entries: self.entries.clone() }
    }

    pub fn is_nil(&self) -> bool {
        self.entries.is_none()
    }

    pub fn len(&self) -> usize {
        self.entries.as_ref().map_or(0, |entries| entries.borrow().len())
    }

    pub fn is_empty(&self) -> bool {
        self.entries.as_ref().is_none_or(|entries| entries.is_empty())
    }

    /// The value of a key, or `None` when the key is absent (a key whose value is nil gives `Some(Nil)`).
    pub fn get(&self, key: impl AsRef<[u8]>) -> Option<Value> {
        self.entries.as_ref()?.get(key.as_ref())
    }

    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> bool {
        self.get(key).is_some()
    }

    /// Sets a key, seen by all who share the map. False for a nil map, where Go panics.
    ///
    /// Functions reachable from templates call `Ctx::changed` too, so that a cycle is freed after the render.
    pub fn insert(&self, key: impl Into<Text>, value: Value) -> bool {
        let Some(entries) = &self.entries else { return false };
        // The old value is dropped after the borrow ends, since it may own this very map.
        let mut items = entries.items.borrow_mut();
        let before = items.len();
        let old = items.insert(key.into(), value);
        take(bytes(items.len()) - bytes(before));
        drop(items);
        drop(old);
        true
    }

    pub fn remove(&self, key: impl AsRef<[u8]>) -> Option<Value> {
        let mut items = self.entries.as_ref()?.items.borrow_mut();
        let before = items.len();
        let old = items.remove(key.as_ref());
        give(bytes(before) - bytes(items.len()));
        old
    }

    /// The keys in bytewise order.
    pub fn keys(&self) -> Vec<Text> {
        self.borrow().map_or_else(Vec::new, |entries| entries.keys().cloned().collect())
    }

    /// A copy of the entries in key order, free to iterate while the map changes.
    pub fn entries(&self) -> Vec<(Text, Value)> {
        self.borrow().map_or_else(Vec::new, |entries| {
            entries.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
        })
    }

    /// The entries in place, `None` for a nil map. Do not change the map while this is held.
    pub fn borrow(&self) -> Option<Ref<'_, BTreeMap<Text, Value>>> {
        self.entries.as_ref().map(|entries| entries.borrow())
    }

    /// A new map with the same values: nested maps stay shared.
    #[must_use]
    pub fn shallow_copy(&self, map_type: MapType) -> Self {
        Self::from_entries(map_type, self.entries())
    }

    /// Whether both are the very same map.
    pub fn is_same(&self, other: &Self) -> bool {
        match (&self.entries, &other.entries) {
            (Some(a), Some(b)) => Rc::ptr_eq(a, b),
            (None, None) => true,
            _ => false,
        }
    }

    /// The watch of this map, which from now on is `watch` when there was none; `None` for a nil map.
    pub(super) fn watched_as(&self, watch: impl FnOnce() -> Rc<Watch>) -> Option<&Watch> {
        Some(self.entries.as_ref()?.watch.get_or_init(watch))
    }

    /// A handle that does not keep the entries alive; `None` for a nil map.
    pub fn downgrade(&self) -> Option<WeakMap> {
        self.entries.as_ref().map(|entries| WeakMap(Rc::downgrade(entries)))
    }
}
