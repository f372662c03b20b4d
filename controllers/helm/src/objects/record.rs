//! Makes plain Go structs that templates can read, print and encode.
use std::any::Any;

use crate::value::{Kind, Map, MapType, Object, Text, Value};

/// One exported field.
#[derive(Clone, Debug)]
pub struct Field {
    pub name: &'static str,
    /// The key in JSON and YAML; empty for fields that are left out there.
    pub json: &'static str,
    /// Empty values are left out of JSON.
    pub omit_empty: bool,
    pub value: Value,
}

impl Field {
    pub fn new(name: &'static str, json: &'static str, value: impl Into<Value>) -> Self {
        Self { name, json, omit_empty: true, value: value.into() }
    }

    /// A field that JSON shows even when it is empty.
    pub fn always(name: &'static str, json: &'static str, value: impl Into<Value>) -> Self {
        Self { name, json, omit_empty: false, value: value.into() }
    }
}

/// A struct without methods.
#[derive(Clone, Debug)]
pub struct Record {
    pub type_name: &'static str,
    /// `Kind::Struct`, or `Kind::Pointer` for a pointer to one.
    pub kind: Kind,
    pub fields: Vec<Field>,
    /// An embedded struct, whose fields are fields of this one too.
    pub embedded: Option<(&'static str, std::rc::Rc<Self>)>,
}

impl Record {
    fn collect_json(&self, into: &mut Vec<(&'static str, Value)>) {
        if let Some((_, embedded)) = &self.embedded {
            embedded.collect_json(into);
        }
        let shown = |field: &&Field| !field.json.is_empty() && (!field.omit_empty || field.value.truth());
        into.extend(self.fields.iter().filter(shown).map(|field| (field.json, field.value.clone())));
    }
}

impl Object for Record {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn type_name(&self) -> &'static str {
        self.type_name
    }

    fn kind(&self) -> Kind {
        self.kind
    }

    fn field(&self, name: &str) -> Option<Value> {
        if let Some(field) = self.fields.iter().find(|field| field.name == name) {
            return Some(field.value.clone());
        }
        let (embedded_name, embedded) = self.embedded.as_ref()?;
        if *embedded_name == name {
            return Some(Value::Object(embedded.clone()));
        }
        embedded.field(name)
    }

    fn fields(&self) -> Vec<Value> {
        let embedded = self.embedded.iter().map(|(_, embedded)| Value::Object(embedded.clone()));
        embedded.chain(self.fields.iter().map(|field| field.value.clone())).collect()
    }

    fn field_names(&self) -> Vec<&'static str> {
        let embedded = self.embedded.iter().map(|(name, _)| *name);
        embedded.chain(self.fields.iter().map(|field| field.name)).collect()
    }

    fn json_fields(&self) -> Option<Vec<(&'static str, Value)>> {
        let mut fields = Vec::new();
        self.collect_json(&mut fields);
        Some(fields)
    }

    fn plain(&self) -> Value {
        let mut fields = Vec::new();
        self.collect_json(&mut fields);
        Value::Map(Map::from_entries(
            MapType::Any,
            fields.into_iter().map(|(name, value)| (Text::from(name), value)),
        ))
    }
}
