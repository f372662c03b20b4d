//! Writes TOML: first a table's own values, then its tables, each sorted by key.
use crate::gofloat;
use crate::gotext::runes;
use crate::value::{Kind, List, Map, Object, Value};

/// How deep values may nest.
const MAX_DEPTH: usize = 512;

/// Why a value is not written.
#[derive(Debug)]
pub(crate) enum Unwritten {
    /// A complaint, which `toToml` gives as its text.
    Complaint(String),
    /// The library crashes, which fails the template.
    Crash(String),
}

fn complain<T>(text: impl Into<String>) -> Result<T, Unwritten> {
    Err(Unwritten::Complaint(text.into()))
}

#[derive(Default)]
struct Writer {
    out: Vec<u8>,
}

/// What decides where a value is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Nil,
    Plain,
    Table,
    Tables,
}

/// The document of a value. Values that are no tables are written alone.
pub(crate) fn encode(value: &Value) -> Result<Vec<u8>, Unwritten> {
    if let Value::Nil = value {
        return Err(Unwritten::Crash("reflect: call of reflect.Value.Type on zero Value".to_owned()));
    }
    let mut writer = Writer::default();
    writer.value(&[], value, 0)?;
    Ok(writer.out)
}

/// An object as its fields, if it is written as a table.
fn table_of(object: &dyn Object) -> Option<Map> {
    match (object.kind(), object.display(), object.plain()) {
        (Kind::Struct | Kind::Map, None, Value::Map(map)) => Some(map),
        _ => None,
    }
}

fn shape(value: &Value, depth: usize) -> Result<Shape, Unwritten> {
    if depth > MAX_DEPTH {
        return complain(format!("toml: the value nests deeper than {MAX_DEPTH} or contains itself"));
    }
    // Lists that share lists can be exponentially many, and nothing is written while they are looked through.
    if !crate::limits::look() {
        return complain("toml: the value has too many parts");
    }
    Ok(match value {
        value if value.is_nil() => Shape::Nil,
        Value::Map(_) => Shape::Table,
        Value::List(list) => {
            let mut tables = !list.is_empty();
            for item in list.items() {
                match shape(item, depth + 1)? {
                    Shape::Nil => return complain("toml: cannot encode array with nil element"),
                    Shape::Table => {}
                    _ => tables = false,
                }
            }
            if tables { Shape::Tables } else { Shape::Plain }
        }
        Value::Object(object) if table_of(object.as_ref()).is_some() => Shape::Table,
        Value::Complex(..) => return complain("unsupported type: complex128"),
        _ => Shape::Plain,
    })
}

impl Writer {
    fn push(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    fn newline(&mut self) {
        if !self.out.is_empty() {
            self.out.push(b'\n');
        }
    }

    fn indent(&mut self, key: &[Vec<u8>]) {
        for _ in 1..key.len() {
            self.push("  ");
        }
    }

    fn value(&mut self, key: &[Vec<u8>], value: &Value, depth: usize) -> Result<(), Unwritten> {
        // Maps that share maps can be exponentially long.
        if !crate::limits::fits(self.out.len()) {
            return complain("toml: the text is too long");
        }
        match value {
            value if value.is_nil() && !matches!(value, Value::List(_)) => Ok(()),
            Value::Map(map) => self.table(key, map, depth),
            Value::List(list) if shape(value, depth)? == Shape::Tables => self.tables(key, list, depth),
            Value::Object(object) => match table_of(object.as_ref()) {
                Some(map) => self.table(key, &map, depth),
                None => self.key_value(key, value, false, depth),
            },
            _ => self.key_value(key, value, false, depth),
        }
    }

    fn key_value(
        &mut self,
        key: &[Vec<u8>],
        value: &Value,
        inline: bool,
        depth: usize,
    ) -> Result<(), Unwritten> {
        let Some(name) = key.last() else { return self.element(value, depth) };
        self.indent(key);
        self.name(name);
        self.push(" = ");
        self.element(value, depth)?;
        if !inline {
            self.newline();
        }
        Ok(())
    }

    fn table(&mut self, key: &[Vec<u8>], map: &Map, depth: usize) -> Result<(), Unwritten> {
        if key.len() == 1 {
            self.newline();
        }
        if !key.is_empty() {
            self.heading(key, "[", "]");
        }
        self.entries(key, map, false, depth)
    }

    fn tables(&mut self, key: &[Vec<u8>], list: &List, depth: usize) -> Result<(), Unwritten> {
        if key.is_empty() {
            return complain("toml: top-level values must be Go maps or structs");
        }
        for item in list.items() {
            let map = match item {
                Value::Map(map) => map.clone(),
                Value::Object(object) => table_of(object.as_ref()).unwrap_or_default(),
                _ => continue,
            };
            self.newline();
            self.heading(key, "[[", "]]");
            self.entries(key, &map, false, depth + 1)?;
        }
        Ok(())
    }

    fn heading(&mut self, key: &[Vec<u8>], open: &str, close: &str) {
        self.indent(key);
        self.push(open);
        for (i, part) in key.iter().enumerate() {
            if i > 0 {
                self.push(".");
            }
            self.name(part);
        }
        self.push(close);
        self.newline();
    }

    /// A table's values and then its tables.
    fn entries(&mut self, key: &[Vec<u8>], map: &Map, inline: bool, depth: usize) -> Result<(), Unwritten> {
        let (mut plain, mut tables) = (Vec::new(), Vec::new());
        for (name, value) in map.entries() {
            match shape(&value, depth + 1)? {
                Shape::Table | Shape::Tables => tables.push((name, value)),
                Shape::Plain | Shape::Nil => plain.push((name, value)),
            }
        }
        if inline {
            self.push("{");
        }
        for (entries, more) in [(&plain, !tables.is_empty()), (&tables, false)] {
            for (i, (name, value)) in entries.iter().enumerate() {
                if value.is_nil() {
                    continue;
                }
                if inline {
                    self.key_value(&[name.as_bytes().to_vec()], value, true, depth + 1)?;
                    if more || i + 1 != entries.len() {
                        self.push(", ");
                    }
                } else {
                    let mut inner = key.to_vec();
                    inner.push(name.as_bytes().to_vec());
                    self.value(&inner, value, depth + 1)?;
                }
            }
        }
        if inline {
            self.push("}");
        }
        Ok(())
    }

    fn element(&mut self, value: &Value, depth: usize) -> Result<(), Unwritten> {
        match value {
            Value::Text(text) => self.quoted(text.as_bytes()),
            Value::Bool(value) => self.push(if *value { "true" } else { "false" }),
            Value::Int(int) => self.push(&int.to_string()),
            Value::Float(float) => self.push(&float_text(*float)),
            Value::List(list) => {
                self.push("[");
                for (i, item) in list.items().iter().enumerate() {
                    if i > 0 {
                        self.push(", ");
                    }
                    self.element(item, depth + 1)?;
                }
                self.push("]");
            }
            Value::Map(map) => self.entries(&[], map, true, depth)?,
            Value::Object(object) => match (table_of(object.as_ref()), object.plain()) {
                (Some(map), _) => self.entries(&[], &map, true, depth)?,
                // Times stand without quotes.
                (None, Value::Text(text)) if object.type_name() == "time.Time" => {
                    self.out.extend_from_slice(text.as_bytes());
                }
                (None, Value::Int(int)) if object.type_name() != "time.Duration" => {
                    self.push(&int.to_string());
                }
                (None, _) => self.quoted(&object.display().unwrap_or_default()),
            },
            Value::Nil | Value::Complex(..) => return complain("unexpected type"),
        }
        Ok(())
    }

    fn name(&mut self, name: &[u8]) {
        let bare = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if !name.is_empty() && name.iter().all(bare) {
            self.out.extend_from_slice(name);
        } else {
            self.quoted(name);
        }
    }

    fn quoted(&mut self, text: &[u8]) {
        self.push("\"");
        let mut last = 0;
        for (at, c) in runes(text) {
            let escape = match c {
                '"' => "\\\"".to_owned(),
                '\\' => "\\\\".to_owned(),
                '\x08' => "\\b".to_owned(),
                '\t' => "\\t".to_owned(),
                '\n' => "\\n".to_owned(),
                '\x0C' => "\\f".to_owned(),
                '\r' => "\\r".to_owned(),
                '\0'..' ' | '\x7F' => format!("\\u{:04x}", u32::from(c)),
                _ => continue,
            };
            self.out.extend_from_slice(text.get(last..at).unwrap_or_default());
            self.push(&escape);
            last = at + 1;
        }
        self.out.extend_from_slice(text.get(last..).unwrap_or_default());
        self.push("\"");
    }
}

/// A float with a decimal point.
fn float_text(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value < 0.0 { "-inf" } else { "inf" }.to_owned();
    }
    let text = gofloat::format(value, 'f', None);
    if text.contains('.') { text } else { text + ".0" }
}
