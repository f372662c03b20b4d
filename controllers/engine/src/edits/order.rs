//! Orders merged lists as Kubernetes does.
//!
//! Items that the patch names are in the patch's order, all others in the order that they had. Both are joined by the order before:
//! an item that was there goes before a named one that was there after it. So items that a patch adds
//! go before those that it does not name.

use std::collections::BTreeMap;

use serde_json::Value;

/// Up to here, Go's stable sort is an insertion sort, whose result also says where items without a rank go.
const BLOCK: usize = 20;

/// What an item of a list is known by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Identity {
    Bool(bool),
    /// As it is written: Kubernetes takes 1 and 1.0 for different values.
    Number(String),
    Text(String),
}

impl Identity {
    /// The value of its merge key, or itself; `None` where that is nothing, a list or a map.
    pub(super) fn of(item: &Value, key: Option<&str>) -> Option<Self> {
        let value = match key {
            Some(key) => item.get(key)?,
            None => item,
        };
        match value {
            Value::Bool(value) => Some(Self::Bool(*value)),
            Value::Number(number) => Some(Self::Number(number.to_string())),
            Value::String(text) => Some(Self::Text(text.clone())),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// For messages.
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Bool(true) => "true",
            Self::Bool(false) => "false",
            Self::Number(text) | Self::Text(text) => text,
        }
    }
}

/// First place of each identity in a list.
pub(super) type Ranks = BTreeMap<Identity, usize>;

/// The places of identities.
pub(super) fn ranks<'a>(identities: impl IntoIterator<Item = &'a Identity>) -> Ranks {
    let mut ranks = Ranks::new();
    for (place, identity) in identities.into_iter().enumerate() {
        ranks.entry(identity.clone()).or_insert(place);
    }
    ranks
}

/// An item on its way to its place.
struct Item {
    value: Value,
    wanted: Option<usize>,
    before: Option<usize>,
}

/// Orders the items of a merged list by the wanted order and the one before.
pub(super) fn arrange(merged: Vec<Value>, key: Option<&str>, wanted: &Ranks, before: &Ranks) -> Vec<Value> {
    let items = merged.into_iter().map(|value| {
        let identity = Identity::of(&value, key);
        let place = |ranks: &Ranks| ranks.get(identity.as_ref()?).copied();
        let (wanted, before) = (place(wanted), place(before));
        Item { value, wanted, before }
    });
    let (mut named, mut others): (Vec<Item>, Vec<Item>) = items.partition(|item| item.wanted.is_some());
    named.sort_by_key(|item| item.wanted);
    sort_others(&mut others);
    join(others, named)
}

fn sort_others(items: &mut [Item]) {
    if items.len() > BLOCK || items.iter().all(|item| item.before.is_some()) {
        items.sort_by_key(|item| item.before);
        return;
    }
    for end in 1..items.len() {
        let mut place = end;
        while place > 0 && goes_before(items.get(place), items.get(place - 1)) {
            items.swap(place, place - 1);
            place -= 1;
        }
    }
}

/// As in Go: an item without a rank goes before every other.
fn goes_before(item: Option<&Item>, other: Option<&Item>) -> bool {
    match (item.and_then(|item| item.before), other.and_then(|other| other.before)) {
        (Some(item), Some(other)) => item < other,
        _ => true,
    }
}

fn join(others: Vec<Item>, named: Vec<Item>) -> Vec<Value> {
    let mut joined = Vec::with_capacity(others.len() + named.len());
    let mut others = others.into_iter().peekable();
    for item in named {
        while let Some(other) = others.next_if(|other| is_less(other.before, item.before)) {
            joined.push(other.value);
        }
        joined.push(item.value);
    }
    joined.extend(others.map(|other| other.value));
    joined
}

fn is_less(left: Option<usize>, right: Option<usize>) -> bool {
    matches!((left, right), (Some(left), Some(right)) if left < right)
}
