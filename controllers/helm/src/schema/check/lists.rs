//! Lists: `items`, their number, `uniqueItems`, `contains`.
use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use super::outcome::{Outcome, better};
use super::{Done, Walk, canonical};
use crate::schema::Draft;

impl<'r> Walk<'r> {
    pub(super) fn list(&mut self, map: &'r Map<String, Json>, items: &[Json], out: &mut Outcome) -> Done {
        match map.get("items") {
            Some(Json::Array(schemas)) if !schemas.is_empty() => self.positions(map, schemas, items, out)?,
            Some(Json::Array(_)) | None => {}
            Some(schema) => {
                for (at, item) in items.iter().enumerate() {
                    self.below(at.to_string(), schema, item, out)?;
                }
            }
        }
        let count = items.len() as u64;
        let bound = |word: &str| map.get(word).and_then(Json::as_u64);
        if let Some(least) = bound("minItems").filter(|least| count < *least) {
            self.problem(out, || format!("Array must have at least {least} items"));
        }
        if let Some(most) = bound("maxItems").filter(|most| count > *most) {
            self.problem(out, || format!("Array must have at most {most} items"));
        }
        if map.get("uniqueItems").and_then(Json::as_bool) == Some(true) {
            self.unique(items, out);
        }
        if let Some(schema) = map.get("contains").filter(|_| self.rules.draft >= Draft::Six) {
            self.contains(schema, items, out)?;
        }
        out.score += 1;
        Ok(())
    }

    /// One schema for each position; what comes after them is `additionalItems`.
    fn positions(
        &mut self,
        map: &'r Map<String, Json>,
        schemas: &'r [Json],
        items: &[Json],
        out: &mut Outcome,
    ) -> Done {
        for (at, (schema, item)) in schemas.iter().zip(items).enumerate() {
            self.below(at.to_string(), schema, item, out)?;
        }
        if items.len() <= schemas.len() {
            return Ok(());
        }
        match map.get("additionalItems") {
            Some(Json::Bool(false)) => {
                self.problem(out, || "No additional items allowed on array".to_owned());
            }
            Some(schema @ Json::Object(_)) => {
                for (at, item) in items.iter().enumerate().skip(schemas.len()) {
                    self.below(at.to_string(), schema, item, out)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn unique(&mut self, items: &[Json], out: &mut Outcome) {
        let mut seen = BTreeMap::new();
        for (at, item) in items.iter().enumerate() {
            if let Some(before) = seen.insert(canonical(item), at) {
                self.problem(out, || format!("array items[{before},{at}] must be unique"));
            }
        }
    }

    fn contains(&mut self, schema: &'r Json, items: &[Json], out: &mut Outcome) -> Done {
        let mut best = None;
        for (at, item) in items.iter().enumerate() {
            let mut outcome = Outcome::default();
            self.below(at.to_string(), schema, item, &mut outcome)?;
            if outcome.is_valid() {
                return Ok(());
            }
            best = Some(better(best, outcome));
        }
        self.problem(out, || "At least one of the items must match".to_owned());
        if let Some(best) = best {
            out.merge(best);
        }
        Ok(())
    }
}
