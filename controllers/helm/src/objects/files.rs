//! Makes `.Files`, with which templates get, match and encode a chart's other files.
use std::any::Any;
use std::rc::Rc;

use base64::Engine as _;

use crate::chart::File;
use crate::funcs::{self, Ctx, FuncError, Param};
use crate::glob::Glob;
use crate::limits::{NODE_BYTES, fits};
use crate::value::{Int, IntKind, Kind, List, ListType, Map, MapType, Method, Object, Text, Value};

/// A `[]byte`, kept as the bytes it holds.
#[derive(Clone, Debug)]
pub struct Bytes(pub Text);

impl Object for Bytes {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn type_name(&self) -> &'static str {
        ListType::Bytes.name()
    }

    fn kind(&self) -> Kind {
        Kind::Slice
    }

    fn truth(&self) -> bool {
        !self.0.is_empty()
    }

    fn plain(&self) -> Value {
        let byte = |byte: &u8| Value::Int(Int::unsigned(IntKind::Uint8, u64::from(*byte)));
        // A render that has no room for it fails at its next step.
        if !fits(self.0.len().saturating_mul(size_of::<Value>())) {
            return Value::List(List::nil(ListType::Bytes));
        }
        Value::List(List::new(ListType::Bytes, self.0.as_bytes().iter().map(byte).collect()))
    }
}

/// The bytes of a `[]byte` value, for functions that treat it as text.
pub fn file_contents(value: &Value) -> Option<&Text> {
    value.as_object()?.as_any().downcast_ref::<Bytes>().map(|bytes| &bytes.0)
}

/// The object `.Files` and what its `Glob` yields.
#[derive(Debug)]
pub(crate) struct FilesObject {
    /// In the order of their names, each once.
    files: Vec<Rc<Entry>>,
}

#[derive(Debug)]
struct Entry {
    file: File,
    contents: std::cell::OnceCell<Text>,
}

impl Entry {
    fn contents(&self) -> Text {
        self.contents.get_or_init(|| Text::from(self.file.data.as_ref())).clone()
    }
}

impl FilesObject {
    pub fn new(files: &[File]) -> Self {
        let mut by_name = std::collections::BTreeMap::new();
        for file in files {
            let entry = Rc::new(Entry { file: file.clone(), contents: std::cell::OnceCell::new() });
            by_name.insert(file.name.clone(), entry);
        }
        Self { files: by_name.into_values().collect() }
    }

    fn get(&self, name: &Text) -> Option<Text> {
        let found =
            self.files.binary_search_by(|entry| entry.file.name.as_bytes().cmp(name.as_bytes())).ok()?;
        self.files.get(found).map(|entry| entry.contents())
    }

    fn glob(&self, pattern: &Text) -> Self {
        let glob = Glob::new(&pattern.lossy()).unwrap_or(Glob::Any);
        let files = self.files.iter().filter(|entry| glob.matches(&entry.file.name)).cloned().collect();
        Self { files }
    }

    /// Base names and contents as YAML; of equal base names one wins, as in Go where it is any.
    fn yaml(&self, ctx: &mut Ctx<'_>, encode: impl Fn(Text) -> Text) -> Result<Value, FuncError> {
        let entries = self.files.iter().map(|entry| {
            let name = entry.file.name.rsplit('/').next().unwrap_or_default();
            (Text::from(name), Value::Text(encode(entry.contents())))
        });
        let map = Value::Map(Map::from_entries(MapType::String, entries));
        let Some(def) = funcs::find("toYaml") else {
            return Err(FuncError::new("function \"toYaml\" not defined"));
        };
        (def.call)(ctx, &[map])
    }
}

impl Object for FilesObject {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn type_name(&self) -> &'static str {
        "engine.files"
    }

    fn kind(&self) -> Kind {
        Kind::Map
    }

    fn truth(&self) -> bool {
        !self.files.is_empty()
    }

    fn field(&self, name: &str) -> Option<Value> {
        self.get(&Text::from(name)).map(|contents| Value::object(Bytes(contents)))
    }

    fn method(&self, name: &str) -> Option<Method> {
        match name {
            "Get" | "GetBytes" | "Glob" | "Lines" => {
                Some(Method { params: &[Param::String], variadic: None })
            }
            "AsConfig" | "AsSecrets" => Some(Method::GETTER),
            _ => None,
        }
    }

    fn call(&self, ctx: &mut Ctx<'_>, name: &str, args: &[Value]) -> Result<Value, FuncError> {
        let argument = args.first().and_then(Value::as_text).cloned().unwrap_or_default();
        match name {
            "Get" => Ok(Value::Text(self.get(&argument).unwrap_or_default())),
            "GetBytes" => Ok(Value::object(Bytes(self.get(&argument).unwrap_or_default()))),
            "Glob" => Ok(Value::object(self.glob(&argument))),
            "Lines" => lines(ctx, self.get(&argument)),
            "AsConfig" => self.yaml(ctx, |contents| contents),
            "AsSecrets" => self.yaml(ctx, |contents| {
                // What has no room is left out of a text that nobody gets to see.
                if !fits(contents.len().saturating_mul(2)) {
                    return Text::default();
                }
                Text::from(base64::engine::general_purpose::STANDARD.encode(contents.as_bytes()))
            }),
            other => Err(FuncError::new(format!("files have no method {other}"))),
        }
    }

    fn plain(&self) -> Value {
        Value::map(
            self.files
                .iter()
                .map(|entry| (Text::from(entry.file.name.as_str()), Value::object(Bytes(entry.contents())))),
        )
    }
}

/// The lines of a file; one final newline ends the last line and starts none.
fn lines(ctx: &Ctx<'_>, contents: Option<Text>) -> Result<Value, FuncError> {
    let Some(contents) = contents else { return Ok(Value::strings::<Text>([])) };
    let bytes = contents.as_bytes();
    if bytes.is_empty() {
        return Err(FuncError::new("runtime error: index out of range [-1]"));
    }
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let count = memchr::memchr_iter(b'\n', bytes).count() + 1;
    ctx.charge(bytes.len().saturating_add(count.saturating_mul(NODE_BYTES)))?;
    Ok(Value::strings(bytes.split(|byte| *byte == b'\n')))
}
