//! Lets templates read structs, pointers and named types, and call their methods.
use std::any::Any;
use std::fmt;

use super::{Kind, Value};
use crate::funcs::{Ctx, FuncError, Param};

/// A method of an object, with the parameter types Go's method has.
#[derive(Clone, Copy, Debug)]
pub struct Method {
    pub params: &'static [Param],
    /// The type of further arguments, for variadic methods.
    pub variadic: Option<Param>,
}

impl Method {
    /// A method without parameters.
    pub const GETTER: Self = Self { params: &[], variadic: None };
}

/// A value of a named Go type: `.Capabilities`, `.Files`, a `time.Time`, a semver version and such.
pub trait Object: fmt::Debug {
    /// For functions that know the concrete type (`date` wants a time).
    fn as_any(&self) -> &dyn Any;

    /// What `typeOf` prints, for example `*semver.Version`.
    fn type_name(&self) -> &'static str;

    fn kind(&self) -> Kind {
        Kind::Struct
    }

    fn truth(&self) -> bool {
        true
    }

    /// The value of an exported struct field, or of a key when the kind is a map.
    fn field(&self, _name: &str) -> Option<Value> {
        None
    }

    /// Whether a name is a field of the struct that templates may not read.
    fn is_unexported(&self, _name: &str) -> bool {
        false
    }

    /// The signature of an exported method.
    fn method(&self, _name: &str) -> Option<Method> {
        None
    }

    /// Go's `==` for structs that are no pointers; `None` where only the very same object is equal.
    fn equals(&self, _other: &dyn Object) -> Option<bool> {
        None
    }

    /// Calls a method; arguments were already checked against its signature.
    fn call(&self, _ctx: &mut Ctx<'_>, name: &str, _args: &[Value]) -> Result<Value, FuncError> {
        Err(FuncError::new(format!("{} has no method {name}", self.type_name())))
    }

    /// The text of `String()` or `Error()`, which printing prefers over the fields.
    fn display(&self) -> Option<Vec<u8>> {
        None
    }

    /// The text of a `String()` that Go finds only when an action prints the value itself, not when a function does.
    fn print(&self) -> Option<Vec<u8>> {
        self.display()
    }

    /// The values of a struct's fields in declaration order, which `%v` prints as `{a b c}`.
    fn fields(&self) -> Vec<Value> {
        Vec::new()
    }

    /// The names of `fields`, which `%+v` prints too; empty where Go shows none.
    fn field_names(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// The fields of a struct by their JSON names, in the order JSON has them. `None` where `plain` tells all.
    fn json_fields(&self) -> Option<Vec<(&'static str, Value)>> {
        None
    }

    /// What `range`, `len`, `index` and JSON see: for slices a `List`, for maps a `Map`, for integers an `Int`,
    /// for structs a `Map` of the fields by their JSON names.
    fn plain(&self) -> Value {
        Value::Nil
    }
}
