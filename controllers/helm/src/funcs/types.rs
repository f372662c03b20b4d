//! Questions about types and emptiness.
use super::args::{any, bytes, def, rest, text, variadic};
use super::equal::deep_equal;
use super::{FuncDef, Param};
use crate::value::Value;

use Param::{Any, String as Str};

pub(super) const FUNCS: &[FuncDef] = &[
    def("typeOf", &[Any], |_, a| text(any(a, 0).type_name())),
    def("typeIs", &[Str, Any], |_, a| Ok((bytes(a, 0) == any(a, 1).type_name().as_bytes()).into())),
    def("typeIsLike", &[Str, Any], |_, a| {
        let name = any(a, 1).type_name().as_bytes();
        Ok((bytes(a, 0) == name || name.strip_prefix(b"*") == Some(bytes(a, 0))).into())
    }),
    def("kindOf", &[Any], |_, a| text(any(a, 0).kind().name())),
    def("kindIs", &[Str, Any], |_, a| Ok((bytes(a, 0) == any(a, 1).kind().name().as_bytes()).into())),
    def("deepEqual", &[Any, Any], |c, a| Ok(deep_equal(c, any(a, 0), any(a, 1))?.into())),
    variadic("default", &[Any], Any, |_, a| Ok(any(a, usize::from(any(a, 1).truth())).clone())),
    def("empty", &[Any], |_, a| Ok((!any(a, 0).truth()).into())),
    variadic("coalesce", &[], Any, |_, a| {
        Ok(a.iter().find(|value| value.truth()).cloned().unwrap_or_default())
    }),
    variadic("all", &[], Any, |_, a| Ok(a.iter().all(Value::truth).into())),
    variadic("any", &[], Any, |_, a| Ok(rest(a, 0).iter().any(Value::truth).into())),
];
