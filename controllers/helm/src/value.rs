//! The values templates work with: Go's kinds come in from YAML, JSON and functions, and go out as text or JSON.
//!
//! Strings are bytes and maps are shared by reference, because charts observe both: `set` inside an
//! included template is seen by everybody who holds the same map.
mod compare;
mod dismantle;
mod int;
mod json;
mod list;
mod map;
mod object;
mod text;
mod watch;

pub use compare::{CompareError, equal, less};
pub use int::{Int, IntKind};
pub use list::{List, ListType};
pub use map::{Map, MapType, WeakMap};
pub use object::{Method, Object};
pub use text::Text;
pub(crate) use watch::Watch;

use std::rc::Rc;

/// One Go value as a template sees it.
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// An untyped nil. Typed nils are a `List` or `Map` whose `is_nil` is true.
    #[default]
    Nil,
    Bool(bool),
    /// Any of Go's integer types.
    Int(Int),
    /// A `float64`: every number that came from YAML or JSON.
    Float(f64),
    /// A `complex128`, which only template constants such as `1i` make.
    Complex(f64, f64),
    /// A `string`: bytes, usually but not always UTF-8.
    Text(Text),
    List(List),
    Map(Map),
    /// A struct, pointer or named type with methods.
    Object(Rc<dyn Object>),
}

/// Go's `reflect.Kind`, as far as values here can have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Invalid,
    Bool,
    Int(IntKind),
    Float64,
    Complex128,
    String,
    Slice,
    Map,
    Struct,
    Pointer,
}

impl Kind {
    /// The name `kindOf` prints.
    pub fn name(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Bool => "bool",
            Self::Int(kind) => kind.name(),
            Self::Float64 => "float64",
            Self::Complex128 => "complex128",
            Self::String => "string",
            Self::Slice => "slice",
            Self::Map => "map",
            Self::Struct => "struct",
            Self::Pointer => "ptr",
        }
    }
}

impl Value {
    /// A Go `int`.
    pub fn int(value: i64) -> Self {
        Self::Int(Int::signed(IntKind::Int, value))
    }

    /// A Go `int64`.
    pub fn int64(value: i64) -> Self {
        Self::Int(Int::signed(IntKind::Int64, value))
    }

    /// A string from text or bytes.
    pub fn text(value: impl Into<Text>) -> Self {
        Self::Text(value.into())
    }

    /// A `[]interface{}`.
    pub fn list(items: Vec<Self>) -> Self {
        Self::List(List::new(ListType::Any, items))
    }

    /// A `[]string`.
    pub fn strings<T: Into<Text>>(items: impl IntoIterator<Item = T>) -> Self {
        Self::List(List::new(ListType::String, items.into_iter().map(Self::text).collect()))
    }

    /// A `map[string]interface{}`.
    pub fn map(entries: impl IntoIterator<Item = (Text, Self)>) -> Self {
        Self::Map(Map::from_entries(MapType::Any, entries))
    }

    pub fn object(object: impl Object + 'static) -> Self {
        Self::Object(Rc::new(object))
    }

    pub fn kind(&self) -> Kind {
        match self {
            Self::Nil => Kind::Invalid,
            Self::Bool(_) => Kind::Bool,
            Self::Int(int) => Kind::Int(int.kind()),
            Self::Float(_) => Kind::Float64,
            Self::Complex(..) => Kind::Complex128,
            Self::Text(_) => Kind::String,
            Self::List(_) => Kind::Slice,
            Self::Map(_) => Kind::Map,
            Self::Object(object) => object.kind(),
        }
    }

    /// What `typeOf` and `%T` print: `string`, `map[string]interface {}`, `<nil>`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Nil => "<nil>",
            Self::List(list) => list.list_type().name(),
            Self::Map(map) => map.map_type().name(),
            Self::Object(object) => object.type_name(),
            Self::Bool(_) | Self::Int(_) | Self::Float(_) | Self::Complex(..) | Self::Text(_) => {
                self.kind().name()
            }
        }
    }

    /// Whether `if` takes the value for true, by Go's rule: anything but its type's zero or empty value.
    pub fn truth(&self) -> bool {
        match self {
            Self::Nil => false,
            Self::Bool(value) => *value,
            Self::Int(int) => !int.is_zero(),
            Self::Float(value) => *value != 0.0,
            Self::Complex(re, im) => *re != 0.0 || *im != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::List(list) => !list.is_empty(),
            Self::Map(map) => !map.is_empty(),
            Self::Object(object) => object.truth(),
        }
    }

    /// True for nil itself and for typed nils.
    pub fn is_nil(&self) -> bool {
        match self {
            Self::Nil => true,
            Self::List(list) => list.is_nil(),
            Self::Map(map) => map.is_nil(),
            _ => false,
        }
    }

    pub fn as_text(&self) -> Option<&Text> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    pub fn as_map(&self) -> Option<&Map> {
        if let Self::Map(map) = self { Some(map) } else { None }
    }

    pub fn as_list(&self) -> Option<&List> {
        if let Self::List(list) = self { Some(list) } else { None }
    }

    pub fn as_object(&self) -> Option<&Rc<dyn Object>> {
        if let Self::Object(object) = self { Some(object) } else { None }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::text(value)
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::text(value)
    }
}

impl From<Text> for Value {
    fn from(value: Text) -> Self {
        Self::Text(value)
    }
}
