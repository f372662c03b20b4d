//! Applies JSON patches (RFC 6902), operation by operation.

use json_patch::jsonptr::PointerBuf;
use json_patch::{
    AddOperation, CopyOperation, MoveOperation, PatchErrorKind, PatchOperation, RemoveOperation,
    ReplaceOperation,
};
use serde_json::{Map, Value};

use super::error::PatchError;
use crate::canonical::{self, DEEPEST};

/// Most operations of one patch.
const MOST_OPERATIONS: usize = 1000;
/// Most bytes that the operations `copy` of one patch may copy: a few of them could double an object each.
const MOST_COPIED: usize = 4 * 1024 * 1024;

/// The object after all operations.
pub(super) fn applied(object: &Value, operations: &[Value]) -> Result<Value, PatchError> {
    bounded(operations)?;
    let mut result = object.clone();
    let mut copied = 0;
    for (index, written) in operations.iter().enumerate() {
        let operation = Operation::read(index, written)?;
        copied += operation.check_value(&result)?;
        if copied > MOST_COPIED {
            return Err(PatchError::TooMuch { what: "copies more than 4 MiB" });
        }
        operation.apply(&mut result)?;
    }
    Ok(result)
}

/// Checks the operations by themselves.
pub(super) fn check(operations: &[Value]) -> Result<(), PatchError> {
    bounded(operations)?;
    operations.iter().enumerate().try_for_each(|(index, written)| Operation::read(index, written).map(drop))
}

fn bounded(operations: &[Value]) -> Result<(), PatchError> {
    if operations.len() > MOST_OPERATIONS {
        return Err(PatchError::TooMuch { what: "has more than 1000 operations" });
    }
    Ok(())
}

/// What an operation does at its path.
enum Deed<'a> {
    Add(&'a Value),
    Remove,
    Replace(&'a Value),
    Move(PointerBuf),
    Copy(PointerBuf),
    Test(&'a Value),
}

/// An operation that is well formed.
struct Operation<'a> {
    index: usize,
    path: PointerBuf,
    deed: Deed<'a>,
}

impl<'a> Operation<'a> {
    fn read(index: usize, written: &'a Value) -> Result<Self, PatchError> {
        let path = written.get("path").and_then(Value::as_str);
        let fault = |fault| PatchError::Operation { index, path: path.unwrap_or_default().to_owned(), fault };
        let fields = written.as_object().ok_or_else(|| fault("it is no map with op and path"))?;
        let path = path.ok_or_else(|| fault("it has no path that is a text"))?;
        let path = PointerBuf::parse(path).map_err(|_| {
            fault("a path is empty or begins with /, and has ~0 for ~ and ~1 for / in names, such as /spec/replicas")
        })?;
        let deed = deed(fields).map_err(fault)?;
        Ok(Self { index, path, deed })
    }

    fn fault(&self, fault: &'static str) -> PatchError {
        PatchError::Operation { index: self.index, path: self.path.as_str().to_owned(), fault }
    }

    /// How many bytes it copies from the object, about. What it writes may not nest too deep where it writes it.
    fn check_value(&self, object: &Value) -> Result<usize, PatchError> {
        let (value, is_copied) = match &self.deed {
            Deed::Add(value) | Deed::Replace(value) => (Some(*value), false),
            Deed::Move(from) => (object.pointer(from.as_str()), false),
            Deed::Copy(from) => (object.pointer(from.as_str()), true),
            Deed::Remove | Deed::Test(_) => (None, false),
        };
        let Some(value) = value else {
            return Ok(0);
        };
        let left = DEEPEST.checked_sub(self.path.count()).ok_or(PatchError::TooDeep)?;
        if nests_more(value, left) {
            return Err(PatchError::TooDeep);
        }
        Ok(if is_copied { size(value) } else { 0 })
    }

    fn apply(&self, object: &mut Value) -> Result<(), PatchError> {
        let path = self.path.clone();
        let operation = match &self.deed {
            Deed::Test(value) => return self.test(object, value),
            Deed::Add(value) => PatchOperation::Add(AddOperation { path, value: (*value).clone() }),
            Deed::Remove => PatchOperation::Remove(RemoveOperation { path }),
            Deed::Replace(value) => {
                PatchOperation::Replace(ReplaceOperation { path, value: (*value).clone() })
            }
            Deed::Move(from) => PatchOperation::Move(MoveOperation { from: from.clone(), path }),
            Deed::Copy(from) => PatchOperation::Copy(CopyOperation { from: from.clone(), path }),
        };
        // What an operation that fails leaves behind is thrown away with the copy of the object.
        json_patch::patch_unsafe(object, std::slice::from_ref(&operation)).map_err(|error| {
            self.fault(match (error.kind, &self.deed) {
                (PatchErrorKind::InvalidFromPointer, _) => "the object has nothing at its path `from`",
                (PatchErrorKind::CannotMoveInsideItself, _) => "a value cannot be moved into itself",
                (_, Deed::Remove | Deed::Replace(_)) => "the object has nothing there",
                _ => {
                    "the object has no map or list above it, or a list that is shorter: add what is missing first"
                }
            })
        })
    }

    /// Numbers are equal if they are the same number, however they are written.
    fn test(&self, object: &Value, expected: &Value) -> Result<(), PatchError> {
        let found =
            object.pointer(self.path.as_str()).ok_or_else(|| self.fault("the object has nothing there"))?;
        if found != expected && canonical::json(found) != canonical::json(expected) {
            return Err(self.fault("the object has another value there than the one to test for"));
        }
        Ok(())
    }
}

fn deed(fields: &Map<String, Value>) -> Result<Deed<'_>, &'static str> {
    let value = || fields.get("value").ok_or("it has no value; write null where null is meant");
    let from = || -> Result<PointerBuf, &'static str> {
        let from = fields.get("from").and_then(Value::as_str).ok_or("it has no `from` that is a path")?;
        PointerBuf::parse(from).map_err(|_| "`from` is no path: it is empty or begins with /")
    };
    match fields.get("op").and_then(Value::as_str) {
        Some("add") => value().map(Deed::Add),
        Some("remove") => Ok(Deed::Remove),
        Some("replace") => value().map(Deed::Replace),
        Some("move") => from().map(Deed::Move),
        Some("copy") => from().map(Deed::Copy),
        Some("test") => value().map(Deed::Test),
        _ => Err("op has to be add, remove, replace, move, copy or test"),
    }
}

fn nests_more(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(|item| nests_more(item, levels - 1)),
        Value::Object(map) => levels == 0 || map.values().any(|item| nests_more(item, levels - 1)),
        _ => false,
    }
}

/// About the bytes of a value in memory.
fn size(value: &Value) -> usize {
    let below = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(map) => map.iter().map(|(key, item)| key.len() + size(item)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    size_of::<Value>() + below
}
