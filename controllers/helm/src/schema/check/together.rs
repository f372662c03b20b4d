//! Schemas that hold together: `anyOf`, `oneOf`, `allOf`, `not`, `dependencies`, `if`.
use serde_json::{Map, Value as Json};

use super::outcome::{Outcome, better};
use super::{Done, Walk};
use crate::schema::Draft;

impl<'r> Walk<'r> {
    pub(super) fn together(&mut self, map: &'r Map<String, Json>, value: &Json, out: &mut Outcome) -> Done {
        self.any_of(map, value, out)?;
        self.one_of(map, value, out)?;
        self.all_of(map, value, out)?;
        if let Some(schema) = map.get("not")
            && self.apart(schema, value)?.is_valid()
        {
            self.problem(out, || "Must not validate the schema (not)".to_owned());
        }
        self.dependencies(map, value, out)?;
        if self.rules.draft >= Draft::Seven {
            self.condition(map, value, out)?;
        }
        out.score += 1;
        Ok(())
    }

    fn any_of(&mut self, map: &'r Map<String, Json>, value: &Json, out: &mut Outcome) -> Done {
        let Some(schemas) = schemas(map, "anyOf") else { return Ok(()) };
        let mut best = None;
        for schema in schemas {
            let outcome = self.apart(schema, value)?;
            if outcome.is_valid() {
                return Ok(());
            }
            best = Some(better(best, outcome));
        }
        self.problem(out, || "Must validate at least one schema (anyOf)".to_owned());
        if let Some(best) = best {
            out.merge(best);
        }
        Ok(())
    }

    fn one_of(&mut self, map: &'r Map<String, Json>, value: &Json, out: &mut Outcome) -> Done {
        let Some(schemas) = schemas(map, "oneOf") else { return Ok(()) };
        let (mut best, mut valid) = (None, 0);
        for schema in schemas {
            let outcome = self.apart(schema, value)?;
            if outcome.is_valid() {
                valid += 1;
            } else if valid == 0 {
                best = Some(better(best, outcome));
            }
        }
        if valid != 1 {
            self.problem(out, || "Must validate one and only one schema (oneOf)".to_owned());
            best.into_iter().filter(|_| valid == 0).for_each(|best| out.merge(best));
        }
        Ok(())
    }

    fn all_of(&mut self, map: &'r Map<String, Json>, value: &Json, out: &mut Outcome) -> Done {
        let Some(schemas) = schemas(map, "allOf") else { return Ok(()) };
        let mut valid = true;
        for schema in schemas {
            let outcome = self.apart(schema, value)?;
            valid &= outcome.is_valid();
            out.merge(outcome);
        }
        if !valid {
            self.problem(out, || "Must validate all the schemas (allOf)".to_owned());
        }
        Ok(())
    }

    fn dependencies(&mut self, map: &'r Map<String, Json>, value: &Json, out: &mut Outcome) -> Done {
        let (Some(Json::Object(all)), Json::Object(entries)) = (map.get("dependencies"), value) else {
            return Ok(());
        };
        for (_, dependency) in all.iter().filter(|(key, _)| entries.contains_key(*key)) {
            match dependency {
                Json::Array(names) => {
                    for name in names.iter().filter_map(Json::as_str) {
                        if !entries.contains_key(name) {
                            self.problem(out, || format!("Has a dependency on {name}"));
                        }
                    }
                }
                schema => self.node(schema, value, out)?,
            }
        }
        Ok(())
    }

    fn condition(&mut self, map: &'r Map<String, Json>, value: &Json, out: &mut Outcome) -> Done {
        let Some(condition) = map.get("if") else { return Ok(()) };
        let (word, was) =
            if self.apart(condition, value)?.is_valid() { ("then", "was") } else { ("else", "was not") };
        let Some(schema) = map.get(word) else { return Ok(()) };
        let outcome = self.apart(schema, value)?;
        if !outcome.is_valid() {
            self.problem(out, || format!("Must validate \"{word}\" as \"if\" {was} valid"));
            out.merge(outcome);
        }
        Ok(())
    }
}

/// The schemas behind a word; an empty list says nothing.
fn schemas<'r>(map: &'r Map<String, Json>, word: &str) -> Option<&'r [Json]> {
    map.get(word)?.as_array().map(Vec::as_slice).filter(|schemas| !schemas.is_empty())
}
