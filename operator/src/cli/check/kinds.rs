//! Compares the kinds of the hub with those that this program was built with.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use serde_json::Value;

use super::{Finding, Level};
use crate::cli::hub::{Hub, chain, is_forbidden};

const WHAT: &str = "kinds";
const CURE: &str = "helm upgrade --install emco-crds charts/emco-crds";

/// The kinds are there, and as this program knows them.
pub async fn check(hub: &Hub) -> Finding {
    let api = Api::<CustomResourceDefinition>::all(hub.client.clone());
    let (mut missing, mut other) = (Vec::new(), Vec::new());
    // Both are of the same type, which leaves out what only one side writes.
    let mut all = emco_crds::all();
    all.sort_by(|one, other| one.metadata.name.cmp(&other.metadata.name));
    for known in all.iter().filter_map(|known| serde_json::to_value(known).ok()) {
        let name = text(&known, "/metadata/name");
        match api.get_opt(&name).await {
            Ok(None) => missing.push(name),
            Ok(Some(found)) => {
                let found = serde_json::to_value(&found).unwrap_or_default();
                if schemas(&known) != schemas(&found) {
                    other.push(name);
                }
            }
            Err(error) if is_forbidden(&error) => {
                let message = "you may not read CustomResourceDefinitions";
                return Finding::bad(Level::Warn, WHAT, message, "look as an administrator of the hub");
            }
            Err(error) => return Finding::bad(Level::Fail, WHAT, chain(&error), "look again"),
        }
    }
    match (missing.as_slice(), other.as_slice()) {
        ([], []) => Finding::ok(
            WHAT,
            format!("all {} are there, of version {}", all.len(), env!("CARGO_PKG_VERSION")),
        ),
        ([], other) => Finding::bad(
            Level::Warn,
            WHAT,
            format!("of another version than this program: {}", other.join(", ")),
            format!("{CURE}; or use the program of the hub's version"),
        ),
        (missing, _) => Finding::bad(Level::Fail, WHAT, format!("missing: {}", missing.join(", ")), CURE),
    }
}

fn text(object: &Value, at: &str) -> String {
    object.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Names and schemas of the versions.
fn schemas(definition: &Value) -> Vec<(String, Option<&Value>)> {
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    versions
        .into_iter()
        .flatten()
        .map(|one| (text(one, "/name"), one.pointer("/schema/openAPIV3Schema")))
        .collect()
}
