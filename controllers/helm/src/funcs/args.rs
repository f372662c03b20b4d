//! Turns arguments that the executor has checked into plain types.
use super::{Func, FuncDef, FuncError, Param};
use crate::value::{Map, MapType, Text, Value};

/// A function of fixed arity.
pub(super) const fn def(name: &'static str, params: &'static [Param], call: Func) -> FuncDef {
    FuncDef { name, params, variadic: None, call }
}

/// A function with further arguments of one type.
pub(super) const fn variadic(
    name: &'static str,
    params: &'static [Param],
    more: Param,
    call: Func,
) -> FuncDef {
    FuncDef { name, params, variadic: Some(more), call }
}

pub(super) fn any(args: &[Value], i: usize) -> &Value {
    args.get(i).unwrap_or(const { &Value::Nil })
}

pub(super) fn bytes(args: &[Value], i: usize) -> &[u8] {
    args.get(i).and_then(Value::as_text).map(Text::as_bytes).unwrap_or_default()
}

pub(super) fn lossy(args: &[Value], i: usize) -> String {
    String::from_utf8_lossy(bytes(args, i)).into_owned()
}

pub(super) fn int(args: &[Value], i: usize) -> i64 {
    if let Value::Int(int) = any(args, i) { int.wrapping_i64() } else { 0 }
}

pub(super) fn float(args: &[Value], i: usize) -> f64 {
    if let Value::Float(float) = any(args, i) { *float } else { 0.0 }
}

pub(super) fn boolean(args: &[Value], i: usize) -> bool {
    matches!(any(args, i), Value::Bool(true))
}

/// A map argument; nil is a nil map.
pub(super) fn map(args: &[Value], i: usize) -> Map {
    any(args, i).as_map().cloned().unwrap_or_else(|| Map::nil(MapType::Any))
}

pub(super) fn rest(args: &[Value], i: usize) -> &[Value] {
    args.get(i..).unwrap_or_default()
}

pub(super) type Out = Result<Value, FuncError>;

pub(super) fn fail<T>(message: impl Into<String>) -> Result<T, FuncError> {
    Err(FuncError::new(message))
}

/// Text as a result.
#[allow(clippy::unnecessary_wraps)] // The form of every function body.
pub(super) fn text(value: impl Into<Text>) -> Out {
    Ok(Value::text(value))
}
