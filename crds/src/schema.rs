//! Schemas that a derive cannot state: bounded label selectors, conditions, maps of texts.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// Rule of a reference, and its message: `name` is a name that an object can have.
pub const OBJECT_NAME: (&str, &str) = (
    "self.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",
    "name must be the name of an object: lower-case letters, digits, '-' and '.'",
);
/// Rule of a reference, and its message: `key`, if there is one, can be a key of a `ConfigMap` or Secret.
pub const DATA_KEY: (&str, &str) = (
    "!has(self.key) || self.key.matches('^[-._a-zA-Z0-9]+$')",
    "key must be a key of a ConfigMap or Secret: letters, digits, '-', '_' and '.'",
);

fn label_selector_value(nullable: bool) -> Value {
    let mut schema = json!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchLabels": {
                "type": "object",
                "maxProperties": 16,
                "additionalProperties": {"type": "string", "maxLength": 63},
            },
            "matchExpressions": {
                "type": "array",
                "maxItems": 16,
                "x-kubernetes-list-type": "atomic",
                "items": {
                    "type": "object",
                    "required": ["key", "operator"],
                    "x-kubernetes-validations": [{
                        "rule": "has(self.values) == (self.operator == 'In' || self.operator == 'NotIn')",
                        "message": "operator In and NotIn need values, Exists and DoesNotExist take none",
                    }],
                    "properties": {
                        "key": {"type": "string", "minLength": 1, "maxLength": 317},
                        "operator": {"type": "string", "maxLength": 12, "enum": ["In", "NotIn", "Exists", "DoesNotExist"]},
                        "values": {
                            "type": "array",
                            "minItems": 1,
                            "maxItems": 64,
                            "x-kubernetes-list-type": "atomic",
                            "items": {"type": "string", "maxLength": 63},
                        },
                    },
                },
            },
        },
    });
    if nullable && let Some(object) = schema.as_object_mut() {
        object.insert("nullable".to_owned(), json!(true));
    }
    schema
}

/// A label selector with bounds.
pub fn optional_label_selector(_: &mut SchemaGenerator) -> Schema {
    Schema::try_from(label_selector_value(true)).unwrap_or_default()
}

/// Conditions as the Kubernetes API defines them, bounded.
pub fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 16,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "reason", "message", "lastTransitionTime"],
            "properties": {
                "type": {"type": "string", "minLength": 1, "maxLength": 64},
                "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
                "reason": {"type": "string", "minLength": 1, "maxLength": 64},
                "message": {"type": "string", "maxLength": 1024},
                "lastTransitionTime": {"type": "string", "format": "date-time"},
                "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
            },
        },
    })
}

/// Any value.
pub fn any(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"x-kubernetes-preserve-unknown-fields": true})
}

/// Texts people attach to a cluster.
pub fn properties(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "maxProperties": 64, "additionalProperties": {"type": "string", "maxLength": 1024}})
}

/// Resource name to quantity, at most 16.
pub fn allocatable(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "maxProperties": 16, "additionalProperties": {"type": "string", "maxLength": 64}})
}

/// Resource name to quantity, written by people.
pub fn quantities(generator: &mut SchemaGenerator) -> Schema {
    let quantity = <crate::fields::Quantity as schemars::JsonSchema>::json_schema(generator);
    json_schema!({"type": "object", "maxProperties": 64, "additionalProperties": quantity})
}

/// Labels and their values, at least one.
pub fn match_labels(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "minProperties": 1,
        "maxProperties": 16,
        "additionalProperties": {"type": "string", "maxLength": 63},
    })
}
