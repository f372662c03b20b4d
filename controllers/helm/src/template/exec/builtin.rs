//! Runs the functions that are part of the engine.
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use super::call::{Args, Failed};
use super::slot::Slot;
use super::{ExecError, State, without_no_value};
use crate::funcs::{Ctx, FuncError};
use crate::limits::Held;
use crate::template::ast::{Operand, Template};
use crate::template::parser;
use crate::template::quoting::quote;
use crate::template::set::{Scope, TemplateSet};
use crate::value::{Map, MapType, Text, Value};

/// Marks the text a chart itself gives to `fail` and `required`, which is reported without the path to it.
pub const WARN_START: &str = "HELM_ERR_START";
pub const WARN_END: &str = "HELM_ERR_END";

/// Inclusions of one template inside itself that Helm allows.
const MAX_INCLUDES: u32 = 1000;

/// The name every `tpl` text has.
const TPL_NAME: &str = "gotpl";

/// Bytes of `tpl` texts whose parsed form is kept for the rest of the render.
const CACHED_TEXT: usize = 8 << 20;

/// What the tree of one action takes, and what each of its letters may add.
const ACTION_BYTES: usize = 512;
const OPERAND_BYTES: usize = 40;

#[derive(Default)]
pub(super) struct TextCache {
    sets: BTreeMap<Text, Rc<Parsed>>,
    bytes: usize,
}

/// A parsed `tpl` text: what it defines, and its own template.
struct Parsed {
    own: Arc<Template>,
    defined: TemplateSet,
    /// The bytes that both take.
    _held: Held,
}

/// What the parsed form of a text takes at most: text stays text, but an action of a few letters is a tree.
fn parsed_bytes(source: &[u8]) -> usize {
    let mut bytes = source.len();
    let mut rest = source;
    while let Some(start) = memchr::memmem::find(rest, b"{{") {
        rest = rest.get(start + 2..).unwrap_or_default();
        let end = memchr::memmem::find(rest, b"}}").unwrap_or(rest.len());
        bytes = bytes.saturating_add(ACTION_BYTES).saturating_add(end.saturating_mul(OPERAND_BYTES));
        rest = rest.get(end..).unwrap_or_default();
        if !crate::limits::fits(bytes) {
            break;
        }
    }
    bytes
}

/// Why a template name leads nowhere.
pub(super) fn no_template(name: &str) -> String {
    format!("template: no template {} associated with template \"{TPL_NAME}\"", quote(name.as_bytes()))
}

fn text(args: &[Value], index: usize) -> &[u8] {
    args.get(index).and_then(Value::as_text).map(Text::as_bytes).unwrap_or_default()
}

fn lossy(args: &[Value], index: usize) -> String {
    String::from_utf8_lossy(text(args, index)).into_owned()
}

impl State<'_> {
    pub(super) fn include(&mut self, args: &Args) -> Result<Value, Failed> {
        let name = lossy(args, 0);
        let including = &self.render.including;
        {
            let mut including = including.borrow_mut();
            let count = including.entry(name.clone()).or_insert(0);
            if *count > MAX_INCLUDES {
                return Err(Failed::Text(format!(
                    "rendering template has a nested reference name: {name}: unable to execute template"
                )));
            }
            *count += 1;
        }
        let Some(template) = self.scope.get(&name) else {
            return Err(Failed::Text(no_template(&name)));
        };
        let dot = Slot::of(args.get(1).cloned().unwrap_or_default());
        let result = self.render.text_of(self.scope, template, &dot);
        if let Some(count) = including.borrow_mut().get_mut(&name) {
            *count -= 1;
        }
        Ok(Value::text(result.map_err(Failed::Template)?))
    }

    pub(super) fn tpl(&mut self, args: &Args) -> Result<Value, Failed> {
        let source = args.first().and_then(Value::as_text).cloned().unwrap_or_default();
        let parsed = self.parsed(&source)?;
        let scope = Scope::inner(self.scope, &parsed.defined);
        let dot = Slot::of(args.get(1).cloned().unwrap_or_default());
        let out = self.render.text_of(&scope, &parsed.own, &dot).map_err(|error| {
            let shown = shown(source.as_bytes());
            Failed::InText(format!("error during tpl function execution for {shown}"), error)
        })?;
        Ok(Value::text(without_no_value(out)))
    }

    fn parsed(&self, source: &Text) -> Result<Rc<Parsed>, Failed> {
        if let Some(known) = self.render.parsed.borrow().sets.get(source) {
            return Ok(Rc::clone(known));
        }
        let mut held = Held::default();
        held.add(parsed_bytes(source.as_bytes()));
        self.render.shared.meter.check_time().map_err(Failed::Limit)?;
        self.render.shared.meter.check_memory().map_err(Failed::Limit)?;
        let templates = parser::parse(TPL_NAME, source.as_bytes().to_vec()).map_err(|error| {
            Failed::Text(format!("cannot parse template {}: {error}", shown(source.as_bytes())))
        })?;
        let Some(own) = templates.iter().find(|template| template.name == TPL_NAME).cloned() else {
            return Err(Failed::Text(no_template(TPL_NAME)));
        };
        let mut defined = TemplateSet::default();
        defined.add(templates);
        let parsed = Rc::new(Parsed { own, defined, _held: held });
        let mut cache = self.render.parsed.borrow_mut();
        if cache.bytes + source.len() <= CACHED_TEXT {
            cache.bytes += source.len();
            cache.sets.insert(source.clone(), Rc::clone(&parsed));
        }
        Ok(parsed)
    }
}

/// A `tpl` text inside an error message.
fn shown(source: &[u8]) -> String {
    let mut shown = quote(source);
    crate::limits::shorten(&mut shown, 8 << 10);
    shown
}

pub(super) fn required(args: &Args) -> Result<Value, Failed> {
    match args.get(1) {
        None | Some(Value::Nil) => Err(fail(args)),
        Some(Value::Text(text)) if text.is_empty() => Err(fail(args)),
        Some(value) => Ok(value.clone()),
    }
}

pub(super) fn fail(args: &Args) -> Failed {
    let mut text = lossy(args, 0);
    // Errors are shortened to less before anybody reads them.
    crate::limits::shorten(&mut text, 64 << 10);
    Failed::Text(format!("{WARN_START}{text}{WARN_END}"))
}

/// No value in a chart is a function, so `call` can only say so.
pub(super) fn call(args: &Args, callee: Option<&Operand>, piped: String) -> Failed {
    match args.first() {
        None | Some(Value::Nil) => Failed::Text("call of nil".to_owned()),
        Some(value) => {
            let name = callee.map_or(piped, ToString::to_string);
            Failed::Text(format!("non-function {name} of type {}", value.type_name()))
        }
    }
}

/// The methods of `chartutil.Values`.
pub(super) fn values_call(
    ctx: &mut Ctx<'_>,
    map: &Map,
    name: &str,
    args: &[Value],
) -> Result<Value, FuncError> {
    let path = lossy(args, 0);
    match name {
        "AsMap" if map.is_empty() => Ok(Value::Map(Map::new(MapType::Any))),
        "AsMap" => Ok(Value::Map(map.with_type(MapType::Any))),
        "YAML" => {
            let Some(def) = crate::funcs::find("toYaml") else { return Ok(Value::Nil) };
            let yaml = (def.call)(ctx, &[Value::Map(map.clone())])?;
            let mut yaml = yaml.as_text().map(|text| text.as_bytes().to_vec()).unwrap_or_default();
            yaml.push(b'\n');
            Ok(Value::text(yaml))
        }
        "Table" => table(map, &path).map(|table| Value::Map(table.with_type(MapType::Values))),
        "PathValue" => path_value(map, &path),
        other => Err(FuncError::new(format!("chartutil.Values has no method {other} for templates"))),
    }
}

fn table(map: &Map, path: &str) -> Result<Map, FuncError> {
    let mut table = map.clone();
    for name in path.split('.') {
        match table.get(name) {
            Some(Value::Map(inner)) => table = inner,
            _ => return Err(FuncError::new(format!("{} is not a table", quote(name.as_bytes())))),
        }
    }
    Ok(table)
}

fn path_value(map: &Map, path: &str) -> Result<Value, FuncError> {
    if path.is_empty() {
        return Err(FuncError::new("YAML path cannot be empty"));
    }
    let (parent, key) = match path.rsplit_once('.') {
        Some((parent, key)) => match table(map, parent) {
            Ok(table) => (table, key),
            Err(_) => return Err(FuncError::new(format!("{} is not a value", quote(path.as_bytes())))),
        },
        None => (map.clone(), path),
    };
    match parent.get(key) {
        Some(value) if !matches!(value, Value::Map(_)) => Ok(value),
        _ => Err(FuncError::new(format!("{} is not a value", quote(path.as_bytes())))),
    }
}

/// An error of a chart in the words Helm prints.
pub fn clean(error: &ExecError) -> String {
    let Some(place) = error.place() else { return error.to_string() };
    let detail = error.detail();
    let marked = detail
        .find(WARN_START)
        .and_then(|start| detail.get(start + WARN_START.len()..))
        .and_then(|rest| rest.rfind(WARN_END).and_then(|end| rest.get(..end)));
    match marked {
        Some(text) => format!("execution error at ({}:{}:{}): {text}", place.file, place.line, place.column),
        None => error.to_string(),
    }
}
