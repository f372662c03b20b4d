//! Checks values against a schema in the order, and with the words, of Helm's validator.
mod lists;
mod objects;
mod outcome;
mod texts;
mod together;

use serde_json::{Map, Value as Json};

use self::outcome::{MAX_PROBLEMS, Outcome};
use super::Rules;
use crate::limits::{LimitError, Meter, apart};

/// Checks of which each leads into the next: far more than values nest. Schemas that refer to themselves go on for ever.
const MAX_DEPTH: usize = 4096;

const ENDLESS: &str = "values.schema.json refers to itself without end: correct its $ref, or skip it";

enum Stop {
    Limit(LimitError),
    Endless,
}

impl From<LimitError> for Stop {
    fn from(limit: LimitError) -> Self {
        Self::Limit(limit)
    }
}

type Done = Result<(), Stop>;

/// The problems values have, one a line.
pub(super) fn check(rules: &Rules, values: &Json, meter: &Meter) -> Result<Option<String>, LimitError> {
    let empty = Json::Object(Map::new());
    let values = if values.is_null() { &empty } else { values };
    let mut walk = Walk { rules, meter, path: Vec::new(), depth: 0 };
    let mut outcome = Outcome::default();
    match walk.node(&rules.root, values, &mut outcome) {
        Ok(()) if outcome.is_valid() => Ok(None),
        Ok(()) => Ok(Some(outcome.into_text())),
        Err(Stop::Limit(limit)) => Err(limit),
        Err(Stop::Endless) => Ok(Some(format!("{ENDLESS}\n"))),
    }
}

struct Walk<'r> {
    rules: &'r Rules,
    meter: &'r Meter,
    path: Vec<String>,
    depth: usize,
}

impl<'r> Walk<'r> {
    fn node(&mut self, schema: &'r Json, value: &Json, out: &mut Outcome) -> Done {
        self.meter.step()?;
        if self.depth >= MAX_DEPTH {
            return Err(Stop::Endless);
        }
        self.depth += 1;
        let done = self.node_here(schema, value, out);
        self.depth -= 1;
        done
    }

    fn node_here(&mut self, schema: &'r Json, value: &Json, out: &mut Outcome) -> Done {
        let map = match schema {
            Json::Object(map) => map,
            Json::Bool(false) => {
                self.problem(out, || "False always fails validation".to_owned());
                return Ok(());
            }
            _ => return Ok(()),
        };
        if let Some(reference) = map.get("$ref").and_then(Json::as_str) {
            let rules = self.rules;
            let target = rules.targets.get(reference).and_then(|pointer| rules.root.pointer(pointer));
            return target.map_or(Ok(()), |target| self.node(target, value, out));
        }
        if let Some(expected) = wrong_type(map, value) {
            self.problem(out, || format!("Invalid type. Expected: {expected}, given: {}", type_of(value)));
            return Ok(());
        }
        self.together(map, value, out)?;
        match value {
            Json::Number(number) => self.number(map, number.as_f64().unwrap_or_default(), out),
            Json::Array(items) => self.list(map, items, out)?,
            Json::Object(entries) => self.object(map, entries, out)?,
            _ => {}
        }
        self.same(map, value, out);
        match value {
            Json::String(text) => self.text(map, text, out),
            Json::Object(entries) => self.properties(map, entries, out)?,
            _ => {}
        }
        out.score += 1;
        Ok(())
    }

    /// Checks what the value has at one place.
    fn below(&mut self, step: String, schema: &'r Json, value: &Json, out: &mut Outcome) -> Done {
        self.path.push(step);
        let done = self.node(schema, value, out);
        self.path.pop();
        done
    }

    /// Checks for itself, to decide what becomes of it.
    fn apart(&mut self, schema: &'r Json, value: &Json) -> Result<Outcome, Stop> {
        let mut outcome = Outcome::default();
        self.node(schema, value, &mut outcome)?;
        Ok(outcome)
    }

    /// `const` and `enum`.
    fn same(&mut self, map: &'r Map<String, Json>, value: &Json, out: &mut Outcome) {
        let is_known = |word: &str| word != "const" || self.rules.draft >= super::Draft::Six;
        if let Some(wanted) = map.get("const").filter(|_| is_known("const")) {
            let wanted = canonical(wanted);
            if wanted != canonical(value) {
                self.problem(out, || format!("{} does not match: {wanted}", self.field()));
            }
        }
        if let Some(Json::Array(allowed)) = map.get("enum")
            && !allowed.is_empty()
        {
            let value = canonical(value);
            if !allowed.iter().any(|allowed| canonical(allowed) == value) {
                self.problem(out, || {
                    let allowed = allowed.iter().map(canonical).collect::<Vec<_>>().join(", ");
                    format!("{} must be one of the following: {allowed}", self.field())
                });
            }
        }
        out.score += 1;
    }

    /// The place of the value.
    fn field(&self) -> String {
        if self.path.is_empty() { "(root)".to_owned() } else { self.path.join(".") }
    }

    fn problem(&self, out: &mut Outcome, text: impl FnOnce() -> String) {
        // More problems than are shown only count.
        out.add((out.problems() < MAX_PROBLEMS).then(|| {
            let mut text = text();
            crate::limits::shorten(&mut text, 500);
            format!("- {}: {text}\n", self.field())
        }));
    }
}

/// The types that are asked for, where the value has none of them.
fn wrong_type(map: &Map<String, Json>, value: &Json) -> Option<String> {
    let wanted: Vec<&str> = match map.get("type")? {
        Json::String(name) => vec![name],
        Json::Array(names) => names.iter().filter_map(Json::as_str).collect(),
        _ => return None,
    };
    let given = type_of(value);
    let fits = |name: &&str| *name == given || (*name == "number" && given == "integer");
    if wanted.is_empty() || wanted.iter().any(fits) {
        return None;
    }
    Some(if let [one] = wanted.as_slice() { (*one).to_owned() } else { format!("[{}]", wanted.join(",")) })
}

fn type_of(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(number) if number.as_f64().is_some_and(|number| number.fract() == 0.0) => "integer",
        Json::Number(_) => "number",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    }
}

/// The text of a value in which numbers that are equal are written alike.
pub(super) fn canonical(value: &Json) -> String {
    // It is dropped at once.
    let write = || crate::gojson::encode(&crate::value::Value::from_json(value), true);
    String::from_utf8_lossy(&apart(write).unwrap_or_default()).into_owned()
}
