//! Compares values as Go's `eq` and `lt`, with Go's complaints about their types.
use std::cmp::Ordering;

use super::{Kind, Value};

/// Why two values cannot be compared, in the words templates report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    #[error("incompatible types for comparison")]
    Incompatible,
    #[error("invalid type for comparison")]
    Invalid,
    #[error("non-comparable type")]
    NonComparable,
    #[error("non-comparable types")]
    NonComparableKinds,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Basic {
    Bool,
    Int,
    Uint,
    Float,
    Complex,
    String,
    Other,
}

fn basic(value: &Value) -> Basic {
    match value.kind() {
        Kind::Bool => Basic::Bool,
        Kind::Int(kind) if kind.is_signed() => Basic::Int,
        Kind::Int(_) => Basic::Uint,
        Kind::Float64 => Basic::Float,
        Kind::Complex128 => Basic::Complex,
        Kind::String => Basic::String,
        _ => Basic::Other,
    }
}

/// An integer-like object (a duration, a month) as its plain number, everything else unchanged.
fn plain(value: &Value) -> Value {
    match value {
        Value::Object(object) if !matches!(object.kind(), Kind::Struct | Kind::Pointer) => object.plain(),
        other => other.clone(),
    }
}

/// `eq left right` for one pair of arguments.
pub fn equal(left: &Value, right: &Value) -> Result<bool, CompareError> {
    let (kind_left, kind_right) = (basic(left), basic(right));
    if kind_left == kind_right {
        return match (plain(left), plain(right)) {
            (Value::Bool(a), Value::Bool(b)) => Ok(a == b),
            (Value::Int(a), Value::Int(b)) => Ok(a.compare(b) == Ordering::Equal),
            #[allow(clippy::float_cmp)] // Go compares the same way.
            (Value::Float(a), Value::Float(b)) => Ok(a == b),
            #[allow(clippy::float_cmp)]
            (Value::Complex(a, x), Value::Complex(b, y)) => Ok(a == b && x == y),
            (Value::Text(a), Value::Text(b)) => Ok(a == b),
            _ => equal_other(left, right),
        };
    }
    match (plain(left), plain(right)) {
        (Value::Int(a), Value::Int(b)) => Ok(a.compare(b) == Ordering::Equal),
        (Value::Nil, _) | (_, Value::Nil) => Ok(false),
        _ => Err(CompareError::Incompatible),
    }
}

/// Values that are neither numbers, texts nor booleans: nil equals nil, pointers equal themselves.
fn equal_other(left: &Value, right: &Value) -> Result<bool, CompareError> {
    let comparable = |value: &Value| !matches!(value.kind(), Kind::Slice | Kind::Map);
    let untyped = |value: &Value| matches!(value, Value::Nil);
    if left.kind() != right.kind() && !untyped(left) && !untyped(right) {
        return Err(CompareError::NonComparableKinds);
    }
    if left.is_nil() || right.is_nil() {
        return Ok(left.is_nil() == right.is_nil());
    }
    if !comparable(right) || !comparable(left) {
        return Err(CompareError::NonComparable);
    }
    match (left, right) {
        (Value::Object(a), Value::Object(b)) => {
            Ok(a.equals(b.as_ref()).unwrap_or_else(|| std::rc::Rc::ptr_eq(a, b)))
        }
        _ => Ok(false),
    }
}

/// `lt left right`.
pub fn less(left: &Value, right: &Value) -> Result<bool, CompareError> {
    let (kind_left, kind_right) = (basic(left), basic(right));
    if kind_left == Basic::Other || kind_right == Basic::Other {
        return Err(CompareError::Invalid);
    }
    match (plain(left), plain(right)) {
        (Value::Int(a), Value::Int(b)) => Ok(a.compare(b) == Ordering::Less),
        (Value::Float(a), Value::Float(b)) => Ok(a < b),
        (Value::Text(a), Value::Text(b)) => Ok(a < b),
        (Value::Bool(_), Value::Bool(_)) | (Value::Complex(..), Value::Complex(..)) => {
            Err(CompareError::Invalid)
        }
        _ => Err(CompareError::Incompatible),
    }
}
