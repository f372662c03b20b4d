//! Lists every field of a schema under its full path, with its type and what holds for it.

use std::fmt::Write as _;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::Value;

/// The rows of all fields below a schema, depth first.
pub fn rows(schema: &JSONSchemaProps, path: &str) -> Vec<String> {
    let mut rows = Vec::new();
    below(schema, path, &mut rows);
    rows
}

fn below(schema: &JSONSchemaProps, path: &str, rows: &mut Vec<String>) {
    let required = schema.required.as_deref().unwrap_or_default();
    for (name, field) in schema.properties.iter().flatten() {
        let path = format!("{path}.{name}");
        let needed = if required.contains(name) { ", required" } else { "" };
        rows.push(format!("| `{path}` | {}{needed} | {} |", kind(field), meaning(field)));
        if !is_standard(name, field) {
            descend(field, &path, rows);
        }
    }
}

/// Into lists and maps until there are fields.
fn descend(field: &JSONSchemaProps, path: &str, rows: &mut Vec<String>) {
    if let Some(items) = items(field) {
        return descend(items, &format!("{path}[]"), rows);
    }
    if let Some(values) = values(field) {
        return descend(values, &format!("{path}.*"), rows);
    }
    below(field, path, rows);
}

/// What every reader of Kubernetes knows is not spelled out.
fn is_standard(name: &str, field: &JSONSchemaProps) -> bool {
    name == "conditions" || is_selector(field)
}

fn is_selector(field: &JSONSchemaProps) -> bool {
    field.properties.as_ref().is_some_and(|fields| fields.contains_key("matchExpressions"))
}

fn items(field: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    match &field.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => Some(items),
        _ => None,
    }
}

fn values(field: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    match &field.additional_properties {
        Some(JSONSchemaPropsOrBool::Schema(values)) => Some(values),
        _ => None,
    }
}

fn kind(field: &JSONSchemaProps) -> String {
    if field.x_kubernetes_int_or_string == Some(true) {
        return "integer or string".to_owned();
    }
    if is_selector(field) {
        return "label selector".to_owned();
    }
    if let Some(items) = items(field) {
        return format!("list of {}", kind(items));
    }
    if let Some(values) = values(field) {
        return format!("map of {}", kind(values));
    }
    if field.x_kubernetes_preserve_unknown_fields == Some(true) {
        return "anything".to_owned();
    }
    match (field.type_.as_deref(), field.format.as_deref()) {
        (Some("string"), Some("date-time")) => "time".to_owned(),
        (Some(name), _) => name.to_owned(),
        (None, _) => "anything".to_owned(),
    }
}

/// The description, then what is true of every value.
fn meaning(field: &JSONSchemaProps) -> String {
    let mut text = escape(field.description.as_deref().unwrap_or_default());
    if !text.is_empty() && !text.ends_with(['.', '!', '?', ':']) {
        text.push('.');
    }
    let of = items(field).unwrap_or(field);
    let each = if items(field).is_some() { " each" } else { "" };
    if let Some(choices) = &of.enum_ {
        let choices: Vec<String> =
            choices.iter().filter(|choice| !choice.0.is_null()).map(|choice| code(&choice.0)).collect();
        let _ = write!(text, " One of {}.", choices.join(", "));
    }
    if let Some(default) = &field.default {
        let _ = write!(text, " Default: {}.", code(&default.0));
    }
    for (limit, words) in [
        (range(field.min_items, field.max_items), "entries".to_owned()),
        (range(field.min_properties, field.max_properties), "keys".to_owned()),
        (range(of.min_length, of.max_length), format!("characters{each}")),
    ] {
        if let Some(limit) = limit {
            let _ = write!(text, " {limit} {words}.");
        }
    }
    let whole = |number: Option<f64>| number.map(|number| format!("{number}"));
    match (whole(of.minimum), whole(of.maximum)) {
        (Some(least), Some(most)) => drop(write!(text, " From {least} to {most}.")),
        (Some(least), None) => drop(write!(text, " At least {least}.")),
        (None, Some(most)) => drop(write!(text, " At most {most}.")),
        (None, None) => {}
    }
    if let Some(pattern) = &of.pattern {
        let _ = write!(text, " Matches `{}`.", pattern.replace('|', "\\|"));
    }
    for rule in field.x_kubernetes_validations.iter().flatten() {
        if let Some(message) = &rule.message {
            let _ = write!(text, " Rule: *{}*.", escape(message.trim_end_matches('.')));
        }
    }
    text.trim().to_owned()
}

fn range(least: Option<i64>, most: Option<i64>) -> Option<String> {
    match (least.filter(|least| *least > 0), most) {
        (Some(least), Some(most)) if least == most => Some(format!("Exactly {least}")),
        (Some(least), Some(most)) => Some(format!("{least} to {most}")),
        (Some(least), None) => Some(format!("At least {least}")),
        (None, Some(most)) => Some(format!("At most {most}")),
        (None, None) => None,
    }
}

fn code(value: &Value) -> String {
    match value {
        Value::String(text) => format!("`{text}`"),
        other => format!("`{other}`"),
    }
}

/// Text as Markdown that is shown as it is, in one cell of a table.
pub fn escape(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '*' | '_' | '[' | ']' | '`' => out.extend(['\\', c]),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_one_cell_and_is_shown_as_it_is() {
        assert_eq!(escape("a | b\n  *c* <d>"), "a \\| b \\*c\\* &lt;d&gt;");
    }
}
