//! Makes canonical JSON, and the keyed and unkeyed digests of everything that is stored or approved.
//!
//! These formats are stored on hubs and edges; a change here is a new format number in the domain text, never an edit.

use hkdf::{Hkdf, HmacImpl};
use hmac::{Hmac, Mac};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::identity::SetDigest;
use crate::set::SetManifest;

/// Domain of manifest digests; the number is the format.
const MANIFEST: &str = "emco-manifest/1\0";
/// Domain of set digests.
const SET: &str = "emco-set/1\0";
/// Domain of digests of Secret values.
const SECRET: &str = "emco-secret/1\0";

/// Canonical JSON: keys sorted by their bytes, no white space, and every number that is a whole one written as an
/// integer, so that the text does not depend on who parsed the value.
pub fn json(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    write(value, &mut out);
    out
}

fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Array(items) => {
            out.push(b'[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write(item, out);
            }
            out.push(b']');
        }
        // Sorted as it is, unless some crate of the build asks serde_json to preserve order.
        Value::Object(map) if map.keys().is_sorted() => write_entries(map.iter(), out),
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by(|a, b| a.0.cmp(b.0));
            write_entries(entries.into_iter(), out);
        }
        Value::Number(number) => match whole(number) {
            Some(integer) => out.extend_from_slice(integer.to_string().as_bytes()),
            None => write_scalar(value, out),
        },
        Value::Null | Value::Bool(_) | Value::String(_) => write_scalar(value, out),
    }
}

fn write_entries<'a>(entries: impl Iterator<Item = (&'a String, &'a Value)>, out: &mut Vec<u8>) {
    out.push(b'{');
    for (i, (key, item)) in entries.enumerate() {
        if i > 0 {
            out.push(b',');
        }
        write_scalar(key, out);
        out.push(b':');
        write(item, out);
    }
    out.push(b'}');
}

/// Scalars are written by `serde_json`; writing to memory cannot fail.
fn write_scalar(value: &impl serde::Serialize, out: &mut Vec<u8>) {
    let written = serde_json::to_writer(out, value);
    debug_assert!(written.is_ok());
}

/// Deepest nesting of values and manifests: as deep as `serde_json` reads back what was stored.
pub const DEEPEST: usize = 120;

/// Whether a value nests more than [`DEEPEST`] levels. Everything else here may then recurse without fear for the stack.
pub fn too_deep(value: &Value) -> bool {
    fn deeper(value: &Value, left: usize) -> bool {
        match value {
            Value::Array(items) => left == 0 || items.iter().any(|item| deeper(item, left - 1)),
            Value::Object(map) => left == 0 || map.values().any(|item| deeper(item, left - 1)),
            _ => false,
        }
    }
    deeper(value, DEEPEST)
}

/// Whether canonical JSON of a value is longer than this. Most are much shorter, which is seen without writing them.
pub fn longer_than(value: &Value, bytes: usize) -> Option<usize> {
    /// Every byte of a text may become six; numbers are short.
    fn most(value: &Value) -> usize {
        match value {
            Value::Null | Value::Bool(_) => 5,
            Value::Number(_) => 32,
            Value::String(text) => 2 + 6 * text.len(),
            Value::Array(items) => 2 + items.iter().map(|item| 1 + most(item)).sum::<usize>(),
            Value::Object(map) => {
                2 + map.iter().map(|(key, item)| 4 + 6 * key.len() + most(item)).sum::<usize>()
            }
        }
    }
    if most(value) <= bytes {
        return None;
    }
    Some(json(value).len()).filter(|length| *length > bytes)
}

/// A float that is a whole number, within the range where floats are exact.
fn whole(number: &serde_json::Number) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if !number.is_f64() {
        return None;
    }
    let float = number.as_f64()?;
    #[allow(clippy::cast_possible_truncation)]
    (float.fract() == 0.0 && float.abs() <= EXACT).then_some(float as i64)
}

/// `sha256:` and 64 hexadecimal digits over the domain and the canonical JSON.
pub fn sha256(domain: &str, value: &Value) -> String {
    format!("sha256:{}", sha256_hex(domain, value))
}

/// 64 hexadecimal digits over the domain and the canonical JSON.
pub fn sha256_hex(domain: &str, value: &Value) -> String {
    hex::encode(Sha256::new().chain_update(domain).chain_update(json(value)).finalize())
}

/// First 32 hexadecimal digits of HMAC-SHA256 over the domain and the canonical JSON: what a viewer may see of content
/// without being able to test guesses against it.
pub fn digest_hex(key: &[u8; 32], domain: &str, value: &Value) -> String {
    keyed(key, domain, &json(value))
}

fn keyed(key: &[u8; 32], domain: &str, bytes: &[u8]) -> String {
    let mut mac = <Hmac<Sha256> as HmacImpl>::new_from_slice(key);
    Mac::update(&mut mac, domain.as_bytes());
    Mac::update(&mut mac, bytes);
    let mut text = hex::encode(Mac::finalize(mac).into_bytes());
    text.truncate(32);
    text
}

/// Digest of one normalised manifest without our marks.
pub fn manifest_digest(key: &[u8; 32], manifest: &Value) -> String {
    digest_hex(key, MANIFEST, manifest)
}

/// Digest of a set: what is applied, when, and what becomes of it, in order. The app's name is not part of it.
pub fn set_digest(key: &[u8; 32], manifests: &[SetManifest]) -> SetDigest {
    let ordered: Vec<Value> = manifests.iter().map(entry).collect();
    SetDigest(digest_hex(key, SET, &Value::Array(ordered)))
}

/// What stands for one manifest in the digest of its set. Naming every field makes a new one a decision here.
fn entry(manifest: &SetManifest) -> Value {
    let SetManifest { digest, phase, hook, crd_folder, keep, take_existing, edited_by: _, account, json: _ } =
        manifest;
    let mut entry = serde_json::Map::new();
    entry.insert("digest".to_owned(), Value::from(digest.as_str()));
    entry.insert("phase".to_owned(), Value::from(format!("{phase:?}")));
    if let Some(hook) = hook {
        let hook = serde_json::json!({
            "events": hook.events, "weight": hook.weight, "deletePolicies": hook.delete_policies,
        });
        entry.insert("hook".to_owned(), hook);
    }
    if *crd_folder {
        entry.insert("crdFolder".to_owned(), Value::Bool(true));
    }
    if *keep {
        entry.insert("keep".to_owned(), Value::Bool(true));
    }
    if *take_existing {
        entry.insert("takeExisting".to_owned(), Value::Bool(true));
    }
    if let Some(account) = account {
        entry.insert("account".to_owned(), Value::from(account.as_str()));
    }
    Value::Object(entry)
}

/// Stands for the content of a Secret where a digest has to cover it: 64 bits more than anybody can guess without the key.
pub fn secret_digest(key: &[u8; 32], text: &str) -> String {
    keyed(key, SECRET, text.as_bytes())
}

/// What the random functions of one app's chart draw from on one cluster.
pub fn seed(random_key: &[u8; 32], project: &str, dig: &str, app: &str, cluster: &str) -> [u8; 32] {
    let info = [project, dig, app, cluster].join("\0");
    let mut seed = [0; 32];
    let expanded = Hkdf::<Sha256>::new(None, random_key).expand(info.as_bytes(), &mut seed);
    // Fails only for more than 255 blocks; one is asked for.
    debug_assert!(expanded.is_ok());
    seed
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::set::Phase;

    #[test]
    fn keys_are_sorted_and_whole_numbers_are_integers() {
        let value = json!({"b": 1.0, "a": [true, null, "x\n", 1.5, -3], "é": {}});
        assert_eq!(
            String::from_utf8(super::json(&value)).unwrap(),
            r#"{"a":[true,null,"x\n",1.5,-3],"b":1,"é":{}}"#
        );
    }

    #[test]
    fn a_length_is_told_where_it_is_beyond_the_limit() {
        let value = json!({"a\u{1}": [null, true, -1.5e-300, "x\u{1}\"é"], "b": {}});
        let length = super::json(&value).len();
        assert_eq!(longer_than(&value, length), None);
        assert_eq!(longer_than(&value, length - 1), Some(length));
        assert_eq!(longer_than(&json!("\u{1}".repeat(9)), 6 * 9 + 1), Some(6 * 9 + 2), "nothing grows more");
    }

    #[test]
    fn what_could_not_be_read_back_is_too_deep() {
        let nested = |levels| (0..levels).fold(json!(1), |inner, _| json!([inner]));
        assert!(!too_deep(&nested(DEEPEST)));
        assert!(too_deep(&nested(DEEPEST + 1)));
        let text = super::json(&nested(DEEPEST));
        assert!(serde_json::from_slice::<Value>(&text).is_ok());
    }

    #[test]
    fn digests_do_not_move_between_releases() {
        // Format 1, as stored on hubs. A failure here means that every deployment would be redeployed.
        let key = [7; 32];
        assert_eq!(manifest_digest(&key, &json!({"kind": "A"})), "15e6b8b0cb17cb8650cfaf10e4be11fe");
        assert_eq!(secret_digest(&key, "x"), "75c549ea4a3beec49f7332408f987a2d");
        assert_eq!(
            sha256("emco-inputs/1\0", &json!({})),
            "sha256:caac3f45029d00a0ed50850e1baadb915b19a69f9561fab2227a467fa5636533"
        );
        assert_eq!(
            hex::encode(seed(&key, "p", "d", "a", "c/d")),
            "43e07c73ce04f2a3e2a1dc773df1858370c048c563bc84d90a6f12348923228e"
        );
    }

    #[test]
    fn a_set_digest_depends_on_order_and_phase() {
        let key = [7; 32];
        let one = |digest: &str, phase| SetManifest {
            digest: digest.to_owned(),
            phase,
            hook: None,
            crd_folder: false,
            keep: false,
            take_existing: false,
            edited_by: Vec::new(),
            account: None,
            json: Value::Null,
        };
        let set = |a, b| set_digest(&key, &[a, b]);
        let first = set(one("x", Phase::Main), one("y", Phase::Main));
        assert_ne!(first, set(one("y", Phase::Main), one("x", Phase::Main)));
        assert_ne!(first, set(one("x", Phase::Foundation), one("y", Phase::Main)));
    }

    #[test]
    fn every_cluster_draws_its_own_random_values() {
        let key = [9; 32];
        assert_ne!(seed(&key, "p", "d", "a", "x/1"), seed(&key, "p", "d", "a", "x/2"));
        assert_ne!(seed(&key, "p", "d", "ab", "c"), seed(&key, "p", "d", "a", "bc"));
    }
}
