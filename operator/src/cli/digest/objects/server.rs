//! Does to objects what the API server does to them: reads numbers as it does, and knows the fields that it would drop.

use std::collections::BTreeMap;

use emco_crds::kinds::{self, Row};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::Value;

/// From this on, Go writes numbers with an exponent.
const EXPONENT: f64 = 1e21;

/// Reads numbers as Go does, which has whole ones of 64 bits with a sign, and writes all others as floating-point ones.
pub fn numbers(value: &mut Value) {
    match value {
        Value::Number(number) if !number.is_i64() => {
            let float = number.as_f64().filter(|float| float.abs() < EXPONENT);
            // Go writes them without an exponent then, as `Display` does, and the operator reads what Go wrote.
            if let Some(read) = float.and_then(|float| serde_json::from_str(&float.to_string()).ok()) {
                *value = read;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(numbers),
        Value::Object(fields) => fields.values_mut().for_each(numbers),
        _ => {}
    }
}

/// Where a value has `null`, as paths from `spec`.
pub fn nulls(spec: &Value) -> Vec<String> {
    fn below(value: &Value, at: &str, found: &mut Vec<String>) {
        match value {
            Value::Null => found.push(at.to_owned()),
            Value::Array(items) => {
                for (n, item) in items.iter().enumerate() {
                    below(item, &format!("{at}[{n}]"), found);
                }
            }
            Value::Object(fields) => {
                for (name, value) in fields {
                    below(value, &format!("{at}.{name}"), found);
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    below(spec, "spec", &mut found);
    found
}

/// A kind, as it is installed with this release.
struct Installed {
    /// True where its objects live in namespaces.
    namespaced: bool,
    /// The schema of the spec.
    spec: JSONSchemaProps,
}

/// Kinds by name.
pub struct Schemas(BTreeMap<String, Installed>);

impl Schemas {
    /// Of some kinds.
    pub fn of(which: fn(&Row) -> bool) -> Self {
        let all = emco_crds::crds::all().into_iter().map(|crd| crd.spec);
        let of = all.filter(|spec| kinds::row(&spec.names.kind).is_some_and(which)).filter_map(|mut spec| {
            let version = spec.versions.pop()?;
            let mut properties = version.schema?.open_api_v3_schema?.properties?;
            let namespaced = spec.scope == "Namespaced";
            Some((spec.names.kind, Installed { namespaced, spec: properties.remove("spec")? }))
        });
        Self(of.collect())
    }

    /// True for a kind that is one of them.
    pub fn has(&self, kind: &str) -> bool {
        self.0.contains_key(kind)
    }

    /// True for a kind whose objects live in namespaces.
    pub fn namespaced(&self, kind: &str) -> bool {
        self.0.get(kind).is_none_or(|installed| installed.namespaced)
    }

    /// A field of an object's spec that the API server would drop.
    pub fn unknown(&self, kind: &str, object: &Value) -> Option<String> {
        unknown(object.get("spec")?, &self.0.get(kind)?.spec, "spec")
    }
}

fn unknown(value: &Value, schema: &JSONSchemaProps, at: &str) -> Option<String> {
    if schema.x_kubernetes_preserve_unknown_fields == Some(true) {
        return None;
    }
    match value {
        Value::Object(fields) => fields.iter().find_map(|(name, value)| {
            let known = schema.properties.as_ref().and_then(|known| known.get(name));
            let at = format!("{at}.{name}");
            match (known, &schema.additional_properties) {
                (Some(schema), _) => unknown(value, schema, &at),
                (None, Some(JSONSchemaPropsOrBool::Schema(schema))) => unknown(value, schema, &at),
                (None, Some(JSONSchemaPropsOrBool::Bool(true))) => None,
                (None, _) => Some(at),
            }
        }),
        Value::Array(items) => match &schema.items {
            Some(JSONSchemaPropsOrArray::Schema(schema)) => {
                let mut items = items.iter().enumerate();
                items.find_map(|(n, item)| unknown(item, schema, &format!("{at}[{n}]")))
            }
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_read_as_the_api_server_reads_them() {
        let mut value = json!({
            "id": u64::MAX, "ids": [10_000_000_000_000_000_001_u64, 1e19, i64::MIN, 1.5, 1e-7, 1e21, 7],
        });
        numbers(&mut value);
        let wanted = json!({
            "id": 18_446_744_073_709_551_616.0,
            "ids": [10_000_000_000_000_000_000_u64, 10_000_000_000_000_000_000_u64, i64::MIN, 1.5, 1e-7, 1e21, 7],
        });
        assert_eq!(value, wanted);
    }

    #[test]
    fn fields_that_the_api_server_drops_are_found_and_values_are_free() {
        let schemas = Schemas::of(|row| ["CompositeApp", "DeploymentIntentGroup"].contains(&row.kind));
        let app = |app: Value| json!({"kind": "CompositeApp", "spec": {"apps": [{"name": "web"}, app]}});
        assert_eq!(
            schemas.unknown("CompositeApp", &app(json!({"name": "db", "chart": {"digest": "x"}}))),
            None
        );
        let found = schemas.unknown("CompositeApp", &app(json!({"name": "db", "chart": {"digset": "x"}})));
        assert_eq!(found.as_deref(), Some("spec.apps[1].chart.digset"));
        let values =
            json!({"spec": {"overrideValues": [{"app": "web", "values": {"any": {"thing": [null]}}}]}});
        assert_eq!(schemas.unknown("DeploymentIntentGroup", &values), None);
        assert_eq!(nulls(&values["spec"]), ["spec.overrideValues[0].values.any.thing[0]"]);
        let wrong = json!({"spec": {"rollout": {"wave": []}}});
        let found = schemas.unknown("DeploymentIntentGroup", &wrong);
        assert_eq!(found.as_deref(), Some("spec.rollout.wave"));
    }
}
