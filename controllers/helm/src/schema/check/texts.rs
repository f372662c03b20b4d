//! Numbers and texts.
use serde_json::{Map, Value as Json};

use super::Walk;
use super::outcome::Outcome;
use crate::gofloat;
use crate::schema::{formats, number};

impl<'r> Walk<'r> {
    pub(super) fn number(&mut self, map: &'r Map<String, Json>, value: f64, out: &mut Outcome) {
        let shown = |bound: f64| gofloat::format(bound, 'g', None);
        let bound = |word: &str| map.get(word).and_then(Json::as_f64);
        if let Some(of) = bound("multipleOf").filter(|of| !number::is_multiple(value, *of)) {
            self.problem(out, || format!("Must be a multiple of {}", shown(of)));
        }
        // Draft 4 makes the bound itself exclusive.
        let limit = |inclusive: &str, exclusive: &str| match map.get(exclusive) {
            Some(Json::Bool(true)) => (None, bound(inclusive)),
            Some(Json::Number(number)) => (bound(inclusive), number.as_f64()),
            _ => (bound(inclusive), None),
        };
        let (most, below) = limit("maximum", "exclusiveMaximum");
        if let Some(most) = most.filter(|most| value > *most) {
            self.problem(out, || format!("Must be less than or equal to {}", shown(most)));
        }
        if let Some(below) = below.filter(|below| value >= *below) {
            self.problem(out, || format!("Must be less than {}", shown(below)));
        }
        let (least, above) = limit("minimum", "exclusiveMinimum");
        if let Some(least) = least.filter(|least| value < *least) {
            self.problem(out, || format!("Must be greater than or equal to {}", shown(least)));
        }
        if let Some(above) = above.filter(|above| value <= *above) {
            self.problem(out, || format!("Must be greater than {}", shown(above)));
        }
        out.score += 1;
    }

    pub(super) fn text(&mut self, map: &'r Map<String, Json>, value: &str, out: &mut Outcome) {
        let bound = |word: &str| map.get(word).and_then(Json::as_u64);
        let count = || value.chars().count() as u64;
        if let Some(least) = bound("minLength").filter(|least| count() < *least) {
            self.problem(out, || format!("String length must be greater than or equal to {least}"));
        }
        if let Some(most) = bound("maxLength").filter(|most| count() > *most) {
            self.problem(out, || format!("String length must be less than or equal to {most}"));
        }
        if let Some(pattern) = map.get("pattern").and_then(Json::as_str)
            && !self.rules.fits(pattern, value)
        {
            self.problem(out, || format!("Does not match pattern '{pattern}'"));
        }
        if let Some(format) = map.get("format").and_then(Json::as_str)
            && !formats::fits_format(format, value)
        {
            self.problem(out, || format!("Does not match format '{format}'"));
        }
        out.score += 1;
    }
}
