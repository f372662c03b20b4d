//! Finds what an API server would refuse in a Secret's content, so that no server has to quote it.

use base64::Engine as _;
use base64::alphabet::STANDARD as ALPHABET;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Value};

use crate::identity::split_api_version;

/// As Go reads it: bits left over at the end do not matter.
const LENIENT: GeneralPurpose =
    GeneralPurpose::new(&ALPHABET, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

/// Whether an object is a Secret of Kubernetes.
pub(super) fn is_secret(object: &Map<String, Value>) -> bool {
    super::text(object, "kind") == "Secret"
        && split_api_version(super::text(object, "apiVersion")).0.is_empty()
}

/// What is wrong with the content, by field and key and without a value; `None` where it can be stored.
pub(super) fn fault(object: &Map<String, Value>) -> Option<String> {
    let named =
        || object.get("metadata").and_then(|m| m.get("name")).and_then(Value::as_str).unwrap_or_default();
    ["stringData", "data"].into_iter().find_map(|field| {
        let content = match object.get(field)? {
            Value::Null => return None,
            Value::Object(content) => content,
            other => {
                let found = super::name_of(other);
                return Some(format!(
                    "Secret {} with a {field} that is {found} and no map of texts",
                    named()
                ));
            }
        };
        content.iter().find_map(|(key, value)| {
            let what = match value {
                Value::Null => return None,
                Value::String(_) if field == "stringData" => return None,
                Value::String(text) if is_base64(text) => return None,
                Value::String(_) => {
                    "is not base64: encode it with b64enc, or write it into stringData".to_owned()
                }
                other => format!("is {} and no text: put quotes around it", super::name_of(other)),
            };
            Some(format!("Secret {}, whose {field} key {key} {what}", named()))
        })
    })
}

/// Line breaks do not count.
fn is_base64(text: &str) -> bool {
    if text.contains(['\n', '\r']) {
        let joined: String = text.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
        return LENIENT.decode(joined).is_ok();
    }
    LENIENT.decode(text).is_ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::normalise::normalise;

    #[allow(clippy::needless_pass_by_value)] // so that the macro can stand in the call
    fn fault(content: serde_json::Value) -> Option<String> {
        let mut secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pin"}});
        secret.as_object_mut().unwrap().extend(content.as_object().unwrap().clone());
        normalise(secret).fault
    }

    #[test]
    fn a_number_in_a_secret_is_refused_by_key_without_its_value() {
        for field in ["stringData", "data"] {
            let said = fault(json!({field: {"password": 90_210_417}})).unwrap();
            assert_eq!(
                said,
                format!(
                    "Secret pin, whose {field} key password is a number and no text: put quotes around it"
                )
            );
        }
        assert!(fault(json!({"stringData": {"on": true}})).unwrap().contains("is true or false and no text"));
        assert!(fault(json!({"data": ["x"]})).unwrap().contains("a data that is a list and no map of texts"));
    }

    #[test]
    fn text_in_data_that_is_not_base64_is_refused() {
        let said = fault(json!({"data": {"password": "hunter2!"}})).unwrap();
        assert!(said.contains("data key password is not base64") && !said.contains("hunter2"), "{said}");
    }

    #[test]
    fn what_an_api_server_takes_is_taken() {
        for text in ["", "aHVudGVyMg==", "aHVu\ndGVyMg==\n", "aHVudGVyMh=="] {
            assert_eq!(fault(json!({"data": {"password": text}})), None, "{text}");
        }
        assert_eq!(fault(json!({"stringData": {"password": "hunter2!", "empty": null}})), None);
        assert_eq!(fault(json!({"data": null, "stringData": null})), None);
        let other =
            json!({"apiVersion": "x/v1", "kind": "Secret", "metadata": {"name": "p"}, "data": {"n": 1}});
        assert_eq!(normalise(other).fault, None);
    }
}
