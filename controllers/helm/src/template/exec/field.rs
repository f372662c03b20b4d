//! Follows fields, keys and methods of a value.
use super::slot::{Form, Slot};
use super::{At, ExecError, State};
use crate::template::ast::Operand;
use crate::value::{Kind, List, ListType, Map, MapType, Object, Text, Value};

impl<'a> State<'a> {
    /// Follows names from a value; arguments belong to the last one.
    pub(super) fn field_chain(
        &mut self,
        dot: &Slot,
        mut receiver: Slot,
        node: At<'a>,
        names: &'a [Box<str>],
        args: &'a [Operand],
        last: Option<Slot>,
    ) -> Result<Slot, ExecError> {
        let Some((tail, heads)) = names.split_last() else { return Ok(receiver) };
        for name in heads {
            receiver = self.field(dot, &receiver, node, name, &[], None)?;
        }
        self.field(dot, &receiver, node, tail, args, last)
    }

    fn field(
        &mut self,
        dot: &Slot,
        receiver: &Slot,
        node: At<'a>,
        name: &'a str,
        args: &'a [Operand],
        last: Option<Slot>,
    ) -> Result<Slot, ExecError> {
        match &receiver.value {
            _ if receiver.form == Form::Absent => Ok(Slot::ABSENT),
            Value::Nil => Err(self.error(format!("nil pointer evaluating {}.{name}", receiver.type_name()))),
            Value::Map(map) => {
                if map.map_type() == MapType::Values
                    && let Some(method) = super::call::values_method(name)
                {
                    return self.call_values_method(dot, map, name, method, node, args, last);
                }
                if !args.is_empty() || last.is_some() {
                    return Err(self.error(format!("{name} is not a method but has arguments")));
                }
                Ok(key(map, name))
            }
            Value::Object(object) => {
                if let Some(method) = object.method(name) {
                    return self.call_method(dot, object, name, method, node, args, last);
                }
                let has_args = !args.is_empty() || last.is_some();
                self.object_field(receiver, object.as_ref(), name, has_args)
            }
            _ => Err(self.no_field(receiver, name)),
        }
    }

    fn object_field(
        &self,
        receiver: &Slot,
        object: &dyn Object,
        name: &str,
        has_args: bool,
    ) -> Result<Slot, ExecError> {
        let field = object.field(name);
        match (object.kind(), field) {
            (Kind::Map, _) if has_args => {
                Err(self.error(format!("{name} is not a method but has arguments")))
            }
            // The only map types with methods of their own hold bytes.
            (Kind::Map, None) => Ok(Slot::of(Value::List(List::nil(ListType::Bytes)))),
            (_, Some(_)) if has_args => {
                Err(self.error(format!("{name} has arguments but cannot be invoked as function")))
            }
            (_, Some(value)) => Ok(Slot::typed(value)),
            (_, None) if object.is_unexported(name) => {
                Err(self
                    .error(format!("{name} is an unexported field of struct type {}", object.type_name())))
            }
            (_, None) => Err(self.no_field(receiver, name)),
        }
    }

    fn no_field(&self, receiver: &Slot, name: &str) -> ExecError {
        self.error(format!("can't evaluate field {name} in type {}", receiver.type_name()))
    }
}

/// The value of a key; an absent key gives the zero value of the map's item type.
fn key(map: &Map, name: &str) -> Slot {
    match (map.get(name), map.map_type()) {
        (Some(value), MapType::String) => Slot::of(value),
        (None, MapType::String) => Slot::of(Value::Text(Text::default())),
        (value, _) => Slot::interface(value.unwrap_or_default()),
    }
}
