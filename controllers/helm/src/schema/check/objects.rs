//! Objects: their properties, the names of these, and what they must have.
use serde_json::{Map, Value as Json};

use super::outcome::Outcome;
use super::{Done, Walk};
use crate::schema::Draft;

impl<'r> Walk<'r> {
    pub(super) fn object(
        &mut self,
        map: &'r Map<String, Json>,
        entries: &Map<String, Json>,
        out: &mut Outcome,
    ) -> Done {
        let count = entries.len() as u64;
        let bound = |word: &str| map.get(word).and_then(Json::as_u64);
        if let Some(least) = bound("minProperties").filter(|least| count < *least) {
            self.problem(out, || format!("Must have at least {least} properties"));
        }
        if let Some(most) = bound("maxProperties").filter(|most| count > *most) {
            self.problem(out, || format!("Must have at most {most} properties"));
        }
        let required = map.get("required").and_then(Json::as_array);
        for name in required.into_iter().flatten().filter_map(Json::as_str) {
            if entries.contains_key(name) {
                out.score += 1;
            } else {
                self.problem(out, || format!("{name} is required"));
            }
        }
        self.additional(map, entries, out)?;
        if let Some(schema) = map.get("propertyNames").filter(|_| self.rules.draft >= Draft::Six) {
            for name in entries.keys() {
                let outcome = self.apart(schema, &Json::String(name.clone()))?;
                if !outcome.is_valid() {
                    self.problem(out, || format!("Property name of \"{name}\" does not match"));
                    out.merge(outcome);
                }
            }
        }
        out.score += 1;
        Ok(())
    }

    /// `patternProperties`, and `additionalProperties` for those that neither these nor `properties` name.
    fn additional(
        &mut self,
        map: &'r Map<String, Json>,
        entries: &Map<String, Json>,
        out: &mut Outcome,
    ) -> Done {
        let named = map.get("properties").and_then(Json::as_object);
        let patterns = map.get("patternProperties").and_then(Json::as_object);
        let additional = map.get("additionalProperties");
        for (name, value) in entries {
            let mut is_known = named.is_some_and(|named| named.contains_key(name));
            let mut fits = false;
            for (pattern, schema) in patterns.into_iter().flatten() {
                // One that is not kept is compiled for each name.
                self.meter.step()?;
                if self.rules.fits(pattern, name) {
                    fits = true;
                    self.below(name.clone(), schema, value, out)?;
                }
            }
            out.score += i64::from(fits);
            is_known |= fits;
            match additional {
                Some(Json::Bool(false)) if !is_known => {
                    self.problem(out, || format!("Additional property {name} is not allowed"));
                }
                Some(schema @ Json::Object(_)) if !is_known => {
                    self.below(name.clone(), schema, value, out)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The properties that have a schema of their own.
    pub(super) fn properties(
        &mut self,
        map: &'r Map<String, Json>,
        entries: &Map<String, Json>,
        out: &mut Outcome,
    ) -> Done {
        for (name, schema) in map.get("properties").and_then(Json::as_object).into_iter().flatten() {
            if let Some(value) = entries.get(name) {
                self.below(name.clone(), schema, value, out)?;
            }
        }
        Ok(())
    }
}
