//! Dropping deep values: the items of a container come in and are dropped with bounded recursion.
//!
//! A template can nest lists and maps a million levels deep; dropping them level by level inside each other would use
//! up any stack.
use std::cell::{Cell, RefCell};

use super::Value;

/// Levels that are dropped inside each other before the rest has to queue.
const MAX_DEPTH: u32 = 100;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    static QUEUE: RefCell<Vec<Value>> = const { RefCell::new(Vec::new()) };
}

/// Whether dropping the value may drop other containers.
pub(super) fn is_container(value: &Value) -> bool {
    matches!(value, Value::List(_) | Value::Map(_))
}

/// Drops the items of a container.
pub(super) fn dismantle(items: impl Iterator<Item = Value>) {
    let depth = DEPTH.get();
    if depth >= MAX_DEPTH {
        QUEUE.with_borrow_mut(|queue| queue.extend(items.filter(is_container)));
        return;
    }
    DEPTH.set(depth + 1);
    items.for_each(drop);
    if depth == 0 {
        while let Some(value) = QUEUE.with_borrow_mut(Vec::pop) {
            drop(value);
        }
    }
    DEPTH.set(depth);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Text;

    #[test]
    fn a_million_nested_maps_and_lists_are_dropped() {
        let mut value = Value::Nil;
        for _ in 0..500_000 {
            value = Value::map([(Text::from("a"), Value::list(vec![value]))]);
        }
        drop(value);
        assert!(QUEUE.with_borrow(Vec::is_empty));
    }
}
