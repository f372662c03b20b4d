//! Bundles of certificates that a manifest leaves empty: they belong to whoever fills them in, such as cert-manager.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::identity::kind_of;

const BUNDLE: &str = "caBundle";

/// Takes empty bundles out of a manifest: an apply would own them, and set them back.
pub fn leave_empty(manifest: &mut Value) {
    match kind_of(manifest) {
        (
            "admissionregistration.k8s.io",
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration",
        ) => {
            let webhooks = manifest.get_mut("webhooks").and_then(Value::as_array_mut);
            for webhook in webhooks.into_iter().flatten() {
                leave(webhook.get_mut("clientConfig"));
            }
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            leave(manifest.pointer_mut("/spec/conversion/webhook/clientConfig"));
        }
        ("apiregistration.k8s.io", "APIService") => leave(manifest.get_mut("spec")),
        _ => {}
    }
}

fn leave(place: Option<&mut Value>) {
    let Some(place) = place.and_then(Value::as_object_mut) else { return };
    if place.get(BUNDLE).is_some_and(is_empty) {
        place.remove(BUNDLE);
    }
}

/// Nothing, or nothing but space: generators write a line break where something is to come.
fn is_empty(bundle: &Value) -> bool {
    let Some(text) = bundle.as_str() else { return bundle.is_null() };
    STANDARD.decode(text.trim()).is_ok_and(|bytes| bytes.trim_ascii().is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_bundle_that_is_left_empty_is_not_said_and_another_is() {
        let empty = [json!(""), Value::Null, json!("Cg==")].map(|bundle| (bundle, false));
        let full = [json!("eA=="), json!("%")].map(|bundle| (bundle, true));
        for (bundle, said) in empty.into_iter().chain(full) {
            let client = json!({"service": {"name": "w"}, "caBundle": bundle});
            for (kind, mut manifest, at) in [
                (
                    "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration",
                    json!({"webhooks": [{"name": "w"}, {"name": "x", "clientConfig": client}]}),
                    "/webhooks/1/clientConfig",
                ),
                (
                    "apiextensions.k8s.io/v1 CustomResourceDefinition",
                    json!({"spec": {"conversion": {"webhook": {"clientConfig": client}}}}),
                    "/spec/conversion/webhook/clientConfig",
                ),
                ("apiregistration.k8s.io/v1 APIService", json!({"spec": client}), "/spec"),
                ("example.com/v1 APIService", json!({"spec": client}), "/spec"),
            ] {
                let (version, name) = kind.split_once(' ').unwrap();
                manifest["apiVersion"] = json!(version);
                manifest["kind"] = json!(name);
                leave_empty(&mut manifest);
                let has = manifest.pointer(at).unwrap().get("caBundle").is_some();
                assert_eq!(has, said || version.starts_with("example"), "{kind} {bundle}");
            }
        }
    }
}
