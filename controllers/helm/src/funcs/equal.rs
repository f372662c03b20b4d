//! Compares two values as Go's `reflect.DeepEqual`, down to their types.
use super::{Ctx, FuncError};
use crate::value::Value;

/// How deep values are compared; deeper ones are refused.
const MAX_DEPTH: usize = 512;

/// Whether two values are deeply equal. Every compared pair counts against the limits of the render.
pub(super) fn deep_equal(ctx: &Ctx<'_>, a: &Value, b: &Value) -> Result<bool, FuncError> {
    equal(ctx, a, b, 0)
}

fn equal(ctx: &Ctx<'_>, a: &Value, b: &Value, depth: usize) -> Result<bool, FuncError> {
    ctx.shared.meter.step()?;
    if depth > MAX_DEPTH {
        return Err(FuncError::new(format!("values nest deeper than {MAX_DEPTH} or contain themselves")));
    }
    match (a, b) {
        (Value::Nil, Value::Nil) => Ok(true),
        (Value::Bool(a), Value::Bool(b)) => Ok(a == b),
        (Value::Int(a), Value::Int(b)) => Ok(a == b),
        #[allow(clippy::float_cmp)] // Go compares the same way.
        (Value::Float(a), Value::Float(b)) => Ok(a == b),
        #[allow(clippy::float_cmp)]
        (Value::Complex(a, x), Value::Complex(b, y)) => Ok(a == b && x == y),
        (Value::Text(a), Value::Text(b)) => Ok(a == b),
        (Value::List(a), Value::List(b)) => {
            if a.list_type() != b.list_type() || a.is_nil() != b.is_nil() || a.len() != b.len() {
                return Ok(false);
            }
            if std::ptr::eq(a.items(), b.items()) {
                return Ok(true);
            }
            for (a, b) in a.items().iter().zip(b.items()) {
                if !equal(ctx, a, b, depth + 1)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Value::Map(a), Value::Map(b)) => {
            if a.map_type() != b.map_type() || a.is_nil() != b.is_nil() || a.len() != b.len() {
                return Ok(false);
            }
            if a.is_same(b) {
                return Ok(true);
            }
            for ((x, a), (y, b)) in a.entries().iter().zip(&b.entries()) {
                if x != y || !equal(ctx, a, b, depth + 1)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Value::Object(a), Value::Object(b)) => {
            if std::rc::Rc::ptr_eq(a, b) {
                return Ok(true);
            }
            if a.type_name() != b.type_name() {
                return Ok(false);
            }
            equal(ctx, &a.plain(), &b.plain(), depth + 1)
        }
        _ => Ok(false),
    }
}
