//! Keeps Go's slices: shared immutable lists with their Go type.
use std::rc::Rc;

use super::Value;
use super::dismantle::{dismantle, is_container};
use crate::limits::{NODE_BYTES, give, take};

/// The Go type of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListType {
    /// `[]interface {}`
    Any,
    /// `[]string`
    String,
    /// `[]int`
    Int,
    /// `[]uint8`; its items are `Int` values of kind `uint8`.
    Bytes,
    /// `[]map[string]interface {}`
    Maps,
    /// Any other slice type, by its Go name.
    Named(&'static str),
}

impl ListType {
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "[]interface {}",
            Self::String => "[]string",
            Self::Int => "[]int",
            Self::Bytes => "[]uint8",
            Self::Maps => "[]map[string]interface {}",
            Self::Named(name) => name,
        }
    }
}

/// A slice. No function changes items in place, so lists are immutable and shared.
#[derive(Clone, Debug)]
pub struct List(Rc<Slice>);

#[derive(Debug)]
struct Slice {
    list_type: ListType,
    /// `None` is a nil slice: empty, but printed as `null` in JSON.
    items: Option<Vec<Value>>,
}

impl Slice {
    fn new(list_type: ListType, items: Option<Vec<Value>>) -> Self {
        let slice = Self { list_type, items };
        take(slice.bytes());
        slice
    }

    /// The bytes that it takes, its items' own parts left out.
    fn bytes(&self) -> usize {
        let room = self.items.as_ref().map_or(0, Vec::capacity);
        NODE_BYTES + room * size_of::<Value>()
    }
}

impl Drop for Slice {
    fn drop(&mut self) {
        give(self.bytes());
        if let Some(items) = &mut self.items
            && items.iter().any(is_container)
        {
            dismantle(std::mem::take(items).into_iter());
        }
    }
}

impl List {
    pub fn new(list_type: ListType, items: Vec<Value>) -> Self {
        Self(Rc::new(Slice::new(list_type, Some(items))))
    }

    /// A nil slice of a type.
    pub fn nil(list_type: ListType) -> Self {
        Self(Rc::new(Slice::new(list_type, None)))
    }

    pub fn list_type(&self) -> ListType {
        self.0.list_type
    }

    pub fn is_nil(&self) -> bool {
        self.0.items.is_none()
    }

    pub fn items(&self) -> &[Value] {
        self.0.items.as_deref().unwrap_or_default()
    }

    pub fn len(&self) -> usize {
        self.items().len()
    }

    pub fn is_empty(&self) -> bool {
        self.items().is_empty()
    }

    pub fn get(&self, index: usize) -> Option<&Value> {
        self.items().get(index)
    }
}
