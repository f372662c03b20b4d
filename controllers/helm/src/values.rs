//! Merges a chart's defaults and the caller's overrides into the values that templates see.
mod coalesce;
mod imports;
mod select;

pub(crate) use coalesce::{Layer, Warnings, coalesce};
pub(crate) use imports::import_values;
pub(crate) use select::{Node, select};

use serde_json::Value as Json;

/// Lays one set of overrides over another, as Helm does with several `-f` files: mappings are merged, everything else
/// is replaced. A null stays in the result, where it removes the chart's default when the chart is rendered.
pub fn merge_values(base: &mut Json, over: Json) {
    match (base, over) {
        (Json::Object(base), Json::Object(over)) => {
            for (key, value) in over {
                match base.get_mut(&key) {
                    Some(old) if old.is_object() && value.is_object() => merge_values(old, value),
                    _ => {
                        base.insert(key, value);
                    }
                }
            }
        }
        (base, over) => *base = over,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn mappings_merge_and_everything_else_is_replaced() {
        let mut base = json!({"a": {"b": 1, "c": [1, 2]}, "d": {"e": 1}, "f": 1});
        merge_values(&mut base, json!({"a": {"c": [3], "x": null}, "d": 2, "f": {"g": 1}}));
        assert_eq!(base, json!({"a": {"b": 1, "c": [3], "x": null}, "d": 2, "f": {"g": 1}}));
    }
}
