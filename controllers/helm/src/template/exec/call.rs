//! Calls a function or method with checked arguments.
use std::rc::Rc;

use smallvec::SmallVec;

use super::slot::{Form, Slot};
use super::{At, ExecError, State};
use crate::funcs::{self, FuncError, Param};
use crate::template::ast::{Identifier, Operand};
use crate::template::engine::{Function, Signature};
use crate::value::{Int, IntKind, List, ListType, Map, MapType, Method, Object, Value};

pub(super) type Args = SmallVec<[Value; 4]>;

impl<'a> State<'a> {
    /// Calls a function by its identifier. `node` is what an error of the function itself names.
    pub(super) fn call_function(
        &mut self,
        dot: &Slot,
        identifier: &'a Identifier,
        node: At<'a>,
        operands: &'a [Operand],
        last: Option<Slot>,
    ) -> Result<Slot, ExecError> {
        self.at = Some(At::Identifier(identifier));
        let name = &identifier.name;
        let function = identifier.function;
        if matches!(function, Function::And | Function::Or) {
            return self.and_or(dot, matches!(function, Function::Or), name, operands, last);
        }
        let args = self.arguments(dot, name, function.signature(), operands, last)?;
        let result = match function {
            Function::Library(def) if def.name == "len" && self.nil_interface => {
                Err(Failed::Text("len of nil pointer".to_owned()))
            }
            Function::Library(def) => (def.call)(&mut self.context(def.name), &args).map_err(Failed::from),
            Function::Include => self.include(&args),
            Function::Tpl => self.tpl(&args),
            Function::Required => super::builtin::required(&args),
            Function::Fail => Err(super::builtin::fail(&args)),
            Function::Lookup => self.lookup(&args),
            Function::Call => Err(super::builtin::call(&args, operands.first(), last_name(&args))),
            Function::And | Function::Or => Ok(Value::Nil),
        };
        self.finish(node, name, result)
    }

    /// Turns a function's result into a slot, or its error into one about `node`.
    fn finish(&mut self, node: At<'a>, name: &str, result: Result<Value, Failed>) -> Result<Slot, ExecError> {
        match result {
            Ok(value) => {
                self.render.shared.meter.step().map_err(|limit| self.limit(limit))?;
                Ok(Slot::of(value))
            }
            Err(failed) => {
                self.at = Some(node);
                let prefix = format!("error calling {name}: ");
                Err(match failed {
                    Failed::Text(text) => self.error(format!("{prefix}{text}")),
                    Failed::Limit(limit) => self.limit(limit),
                    Failed::Template(inner) => self.wrap(&prefix, &inner),
                    Failed::InText(context, inner) => self.wrap(&format!("{prefix}{context}: "), &inner),
                })
            }
        }
    }

    #[allow(clippy::too_many_arguments)] // Go's call has the same parts.
    pub(super) fn call_method(
        &mut self,
        dot: &Slot,
        object: &Rc<dyn Object>,
        name: &'a str,
        method: Method,
        node: At<'a>,
        operands: &'a [Operand],
        last: Option<Slot>,
    ) -> Result<Slot, ExecError> {
        let args = self.arguments(dot, name, (method.params, method.variadic), operands, last)?;
        let result = object.call(&mut self.context("method"), name, &args).map_err(Failed::from);
        self.finish(node, name, result)
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn call_values_method(
        &mut self,
        dot: &Slot,
        map: &Map,
        name: &'a str,
        method: Method,
        node: At<'a>,
        operands: &'a [Operand],
        last: Option<Slot>,
    ) -> Result<Slot, ExecError> {
        let args = self.arguments(dot, name, (method.params, method.variadic), operands, last)?;
        let result = super::builtin::values_call(&mut self.context("toYaml"), map, name, &args);
        self.finish(node, name, result.map_err(Failed::from))
    }

    /// A library function called by the executor itself.
    pub(super) fn library(&self, name: &'static str, args: &[Value]) -> Result<Value, ExecError> {
        let Some(def) = funcs::find(name) else {
            return Err(self.error(format!("function \"{name}\" not defined")));
        };
        (def.call)(&mut self.context(name), args).map_err(|error| match error {
            FuncError::Limit(limit) => self.limit(limit),
            FuncError::Failed(text) => self.error(text),
        })
    }

    fn arguments(
        &mut self,
        dot: &Slot,
        name: &str,
        (params, variadic): Signature,
        operands: &'a [Operand],
        last: Option<Slot>,
    ) -> Result<Args, ExecError> {
        let given = operands.len() + usize::from(last.is_some());
        if variadic.is_some() {
            if given < params.len() {
                let (want, got) = (params.len(), operands.len());
                return Err(
                    self.error(format!("wrong number of args for {name}: want at least {want} got {got}"))
                );
            }
        } else if given != params.len() {
            let want = params.len();
            return Err(self.error(format!("wrong number of args for {name}: want {want} got {given}")));
        }
        let param = |index: usize| params.get(index).copied().or(variadic).unwrap_or(Param::Any);
        let mut args = Args::with_capacity(given);
        for (index, operand) in operands.iter().enumerate() {
            args.push(self.argument(dot, param(index), operand)?);
        }
        if let Some(last) = last {
            args.push(self.validate(last, param(operands.len()))?);
        }
        self.render.shared.meter.step().map_err(|limit| self.limit(limit))?;
        Ok(args)
    }

    fn argument(&mut self, dot: &Slot, param: Param, operand: &'a Operand) -> Result<Value, ExecError> {
        self.at = Some(At::Operand(operand));
        let slot = match operand {
            Operand::Dot(_) => dot.clone(),
            Operand::Nil(_) => return self.nil_argument(param),
            Operand::Field(field) => self.field_node(dot, field, &[], None)?,
            Operand::Variable(variable) => self.variable_node(dot, variable, None, &[], None)?,
            Operand::Pipe(pipe) => self.pipeline(dot, pipe)?,
            Operand::Identifier(identifier) => {
                self.call_function(dot, identifier, At::Identifier(identifier), &[], None)?
            }
            Operand::Chain(chain) => self.chain_node(dot, chain, &[], None)?,
            Operand::Bool(..) | Operand::Number(_) | Operand::Text(_) => {
                return self.constant(param, operand);
            }
        };
        self.validate(slot, param)
    }

    fn nil_argument(&mut self, param: Param) -> Result<Value, ExecError> {
        self.nil_interface = false;
        zero(param).ok_or_else(|| self.error(format!("cannot assign nil to {}", param.type_name())))
    }

    /// A literal for a parameter, which decides the type of a number.
    fn constant(&mut self, param: Param, operand: &'a Operand) -> Result<Value, ExecError> {
        self.nil_interface = false;
        let value = match (param.constant(), operand) {
            (Constant::Any, Operand::Number(number)) => return Ok(self.ideal_constant(number)?.value),
            (Constant::Any | Constant::Bool, Operand::Bool(_, value)) => Some(Value::Bool(*value)),
            (Constant::Any | Constant::String, Operand::Text(literal)) => {
                Some(Value::text(literal.text.as_slice()))
            }
            (Constant::Int, Operand::Number(number)) => number.int.map(|int| param.integer(int)),
            (Constant::Uint, Operand::Number(number)) => {
                number.uint.map(|uint| param.integer(uint.cast_signed()))
            }
            (Constant::Float, Operand::Number(number)) => number.float.map(Value::Float),
            (Constant::None, operand) => {
                return Err(
                    self.error(format!("can't handle {operand} for arg of type {}", param.type_name()))
                );
            }
            _ => None,
        };
        value.ok_or_else(|| self.error(format!("expected {}; found {operand}", param.constant().name())))
    }

    /// Checks a value against a parameter's type as Go's assignability does.
    pub(super) fn validate(&mut self, slot: Slot, param: Param) -> Result<Value, ExecError> {
        self.nil_interface = slot.form == Form::Interface && matches!(slot.value, Value::Nil);
        if matches!(param, Param::Any | Param::Reflect) {
            return Ok(slot.value);
        }
        if slot.form == Form::Absent {
            return zero(param)
                .ok_or_else(|| self.error(format!("invalid value; expected {}", param.type_name())));
        }
        if param.accepts(&slot.value) {
            return Ok(match slot.value {
                Value::Map(map) if map.map_type() == MapType::Values => {
                    Value::Map(map.with_type(MapType::Any))
                }
                value => value,
            });
        }
        let got = if matches!(slot.value, Value::Nil) { "interface {}" } else { slot.value.type_name() };
        Err(self.error(format!("wrong type for value; expected {}; got {got}", param.type_name())))
    }

    fn and_or(
        &mut self,
        dot: &Slot,
        is_or: bool,
        name: &str,
        operands: &'a [Operand],
        last: Option<Slot>,
    ) -> Result<Slot, ExecError> {
        if operands.is_empty() && last.is_none() {
            return Err(self.error(format!("wrong number of args for {name}: want at least 1 got 0")));
        }
        let mut value = Value::Nil;
        for operand in operands {
            value = self.argument(dot, Param::Reflect, operand)?;
            if value.truth() == is_or {
                return Ok(Slot::of(value));
            }
        }
        Ok(last.unwrap_or_else(|| Slot::of(value)))
    }
}

/// The first argument's text, which `call` reports when it was piped in.
fn last_name(args: &[Value]) -> String {
    args.first().map_or_else(String::new, |value| format!("<{} Value>", value.type_name()))
}

/// The methods of `.Values` and of `.` itself.
pub(super) fn values_method(name: &str) -> Option<Method> {
    match name {
        "AsMap" | "YAML" => Some(Method::GETTER),
        "Table" | "PathValue" => Some(Method { params: &[Param::String], variadic: None }),
        "Encode" => Some(Method { params: &[Param::Object("io.Writer")], variadic: None }),
        _ => None,
    }
}

/// Why a function gave no value.
pub(super) enum Failed {
    Text(String),
    Limit(crate::limits::LimitError),
    /// A template that `include` ran failed.
    Template(ExecError),
    /// The text that `tpl` ran failed; the context quotes the text.
    InText(String, ExecError),
}

impl From<FuncError> for Failed {
    fn from(error: FuncError) -> Self {
        match error {
            FuncError::Failed(text) => Self::Text(text),
            FuncError::Limit(limit) => Self::Limit(limit),
        }
    }
}

/// The zero value of a type that can be nil.
fn zero(param: Param) -> Option<Value> {
    match param {
        Param::Any | Param::Reflect => Some(Value::Nil),
        Param::Map => Some(Value::Map(Map::nil(MapType::Any))),
        Param::List => Some(Value::List(List::nil(ListType::Any))),
        Param::Strings => Some(Value::List(List::nil(ListType::String))),
        _ => None,
    }
}

/// Which constants a parameter takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Constant {
    Any,
    Bool,
    String,
    Int,
    Uint,
    Float,
    None,
}

impl Constant {
    fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::String => "string",
            Self::Int => "integer",
            Self::Uint => "unsigned integer",
            Self::Float => "float",
            Self::Any | Self::None => "value",
        }
    }
}

impl Param {
    fn constant(self) -> Constant {
        match self {
            Self::Any | Self::Reflect => Constant::Any,
            Self::Bool => Constant::Bool,
            Self::String => Constant::String,
            Self::Int | Self::Int64 => Constant::Int,
            Self::Uint32 => Constant::Uint,
            Self::Float64 => Constant::Float,
            Self::Map | Self::List | Self::Strings | Self::Object(_) => Constant::None,
        }
    }

    /// A constant in this integer type.
    fn integer(self, int: i64) -> Value {
        match self {
            Self::Int64 => Value::int64(int),
            Self::Uint32 => Value::Int(Int::unsigned(IntKind::Uint32, int.cast_unsigned() & 0xffff_ffff)),
            _ => Value::int(int),
        }
    }

    /// The type's name in error messages.
    fn type_name(self) -> &'static str {
        match self {
            Self::Any => "interface {}",
            Self::Reflect => "reflect.Value",
            Self::String => "string",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Int64 => "int64",
            Self::Uint32 => "uint32",
            Self::Float64 => "float64",
            Self::Map => MapType::Any.name(),
            Self::List => ListType::Any.name(),
            Self::Strings => ListType::String.name(),
            Self::Object(name) => name,
        }
    }

    fn accepts(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Any | Self::Reflect, _)
            | (Self::String, Value::Text(_))
            | (Self::Bool, Value::Bool(_))
            | (Self::Float64, Value::Float(_)) => true,
            (Self::Int | Self::Int64 | Self::Uint32, Value::Int(int)) => {
                int.kind().name() == self.type_name()
            }
            (Self::Map, Value::Map(map)) => map.map_type() != MapType::String,
            (Self::List, Value::List(list)) => list.list_type() == ListType::Any,
            (Self::Strings, Value::List(list)) => list.list_type() == ListType::String,
            (Self::Object(name), Value::Object(object)) => object.type_name() == name,
            _ => false,
        }
    }
}
