//! Refuses what an API server would refuse for its shape alone, while planning, with the chart's file.

use emco_crds::conditions::types::RENDERED;
use emco_crds::reasons::DeploymentIntentGroupReason as Reason;
use serde_json::Value;

use super::{LARGEST_OBJECT, too_large};
use crate::canonical;
use crate::identity::Identity;
use crate::path;
use crate::refusal::Refusal;

/// Longest kind, and version within its group.
const LONGEST: usize = 63;

/// What an API server would refuse for its shape alone is refused here, with the file; nothing is dropped in silence.
pub(super) fn check(app: &str, source: &str, json: &Value) -> Result<(), Box<Refusal>> {
    let text = |pointer: &str| json.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    for (pointer, field) in
        [("/apiVersion", "apiVersion"), ("/kind", "kind"), ("/metadata/name", "metadata.name")]
    {
        if text(pointer).is_empty() {
            let named = match (text("/kind"), text("/metadata/name")) {
                ("", "") => "an object".to_owned(),
                ("", name) => format!("object {name}"),
                (kind, "") => format!("a {kind}"),
                (kind, name) => format!("{kind} {name}"),
            };
            let text = format!("app {app}: {source} makes {named} without {field}: every object needs one");
            return Err(Refusal::new(RENDERED, Reason::TemplateError, text));
        }
    }
    let unserved = |field: &str, what: &str| {
        // What it is instead may be a value of a Secret.
        let text = format!(
            "app {app}: {source} makes an object whose {field} is not {what}: no cluster can serve it; change the values or the \
             chart"
        );
        Err(Refusal::new(RENDERED, Reason::TemplateError, text))
    };
    if !is_api_version(text("/apiVersion")) {
        return unserved("apiVersion", "a version such as v1 or apps/v1");
    }
    if !is_kind(text("/kind")) {
        return unserved("kind", "a kind such as ConfigMap");
    }
    for (pointer, field) in
        [("/metadata/name", "metadata.name"), ("/metadata/namespace", "metadata.namespace")]
    {
        let value = text(pointer);
        if let Some(fault) = path::fault(value).filter(|_| !value.is_empty()) {
            let kind = text("/kind");
            let text = format!(
                "app {app}: {source} makes a {kind} whose {field} cannot be a name: {fault}; change the values or the chart"
            );
            return Err(Refusal::new(RENDERED, Reason::TemplateError, text));
        }
    }
    if let Some(bytes) = canonical::longer_than(json, LARGEST_OBJECT) {
        let identity = Identity::of(json);
        let text = format!("{source} makes {identity} of {bytes} bytes, more than {LARGEST_OBJECT}");
        return Err(too_large(app, &text));
    }
    Ok(())
}

/// Letters, digits and hyphens, from a letter to a letter or digit: the rule for kinds of a `CustomResourceDefinition`.
fn is_kind(kind: &str) -> bool {
    kind.len() <= LONGEST
        && kind.starts_with(|c: char| c.is_ascii_alphabetic())
        && kind.ends_with(|c: char| c.is_ascii_alphanumeric())
        && kind.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

/// A version, or a group and a version: `v1`, `apps/v1`.
fn is_api_version(text: &str) -> bool {
    let (group, version) =
        text.split_once('/').map_or((None, text), |(group, version)| (Some(group), version));
    group.is_none_or(path::is_dns_subdomain)
        && is_kind(version)
        && !version.bytes().any(|b| b.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn kinds_and_versions_are_what_a_server_can_serve() {
        for kind in ["ConfigMap", "X", "IPAddress", "v1beta1Thing", "My-Kind"] {
            assert!(is_kind(kind), "{kind}");
        }
        for kind in ["", "X\nERROR", "X Y", "-X", "X-", "1X", "a.b", "a/b", "Ärger", &"X".repeat(64)] {
            assert!(!is_kind(kind), "{kind:?}");
        }
        for version in ["v1", "apps/v1", "networking.k8s.io/v1beta1", "example.com/x1-y"] {
            assert!(is_api_version(version), "{version}");
        }
        for version in ["", "/v1", "apps/", "apps/v1/x", "Apps/v1", "apps/V1", "a b/v1", "v1\nERROR", "v1 "] {
            assert!(!is_api_version(version), "{version:?}");
        }
    }

    #[test]
    fn a_kind_that_begins_a_line_is_refused_with_its_file() {
        let object = json!({"apiVersion": "v1", "kind": "X\nERROR forged", "metadata": {"name": "a/b"}});
        let refusal = check("web", "web/templates/x.yaml", &object).unwrap_err();
        assert_eq!(
            refusal.message,
            "app web: web/templates/x.yaml makes an object whose kind is not a kind such as ConfigMap: no cluster can serve it; \
             change the values or the chart"
        );
    }
}
