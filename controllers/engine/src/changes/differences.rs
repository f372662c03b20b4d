//! Compares the manifests of two sets line by line, as `diff -u` does. Values in Secrets are replaced by keyed digests, which nobody
//! can test guesses against.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_helm::yaml;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use similar::TextDiff;

use super::details::size;
use super::{Changes, Variant, What};
use crate::canonical;
use crate::identity::{Id, SetDigest, kind_of};
use crate::set::ManifestSet;
use crate::snapshot::Running;

/// Key of the document in its Secret.
pub const DIFFERENCES: &str = "differences.json";
/// Type of that Secret.
pub const SECRET_TYPE: &str = "emco.io/plan";
/// Domain of the digests that stand for values.
const DOMAIN: &str = "emco-plan-value/1\0";
/// Digits of them.
const DIGITS: usize = 12;
/// Version of the format.
const FORMAT: i32 = 1;
/// Bytes of the document.
const MOST_BYTES: usize = 512 * 1024;
/// Longest manifests that are compared, in bytes of both.
const LONGEST: usize = 256 * 1024;
/// Most lines that are compared, of both: how long that takes grows with their square.
const MOST_LINES: usize = 4000;
/// Lines around a change.
const AROUND: usize = 3;

/// What changes inside of objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Differences {
    /// Version of the format.
    pub format: i32,
    /// Digest of the document with the names, which this belongs to.
    pub digest: String,
    /// Each object of two sets once.
    pub objects: Vec<Difference>,
    /// Objects that there was no room for.
    pub left_out: usize,
}

/// One object of two sets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The set before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The set afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
    /// The object.
    pub object: String,
    /// Lines with `@@`, `-`, `+` or a space before them.
    pub text: String,
}

/// What a plan changes inside of objects: first of those that are changed, then of those that are added. `digest` is that of the names.
pub fn differences(
    changes: &Changes,
    running: Option<&Running>,
    sets: &BTreeMap<SetDigest, Arc<ManifestSet>>,
    key: &[u8; 32],
    digest: &str,
) -> Differences {
    let mut found =
        Differences { format: FORMAT, digest: digest.to_owned(), objects: Vec::new(), left_out: 0 };
    let mut room = MOST_BYTES.saturating_sub(size(&found));
    let empty = BTreeMap::new();
    let ran = running.map_or(&empty, |running| &running.sets);
    for what in [What::Changed, What::Added] {
        let mut pairs = BTreeSet::new();
        for variant in changes.apps.iter().flat_map(|app| &app.variants) {
            // Clusters that differ in the hooks that run have the same sets.
            if !pairs.insert((&variant.before, &variant.now)) {
                continue;
            }
            if room == 0 {
                found.left_out += variant.count(what);
            } else {
                compare(variant, what, &Sides::of(variant, ran, sets), key, &mut room, &mut found);
            }
        }
    }
    found
}

/// The manifests of a variant by object.
struct Sides<'a> {
    before: BTreeMap<Id, &'a Value>,
    now: BTreeMap<Id, &'a Value>,
}

impl<'a> Sides<'a> {
    fn of(
        variant: &Variant,
        ran: &'a BTreeMap<SetDigest, Arc<ManifestSet>>,
        sets: &'a BTreeMap<SetDigest, Arc<ManifestSet>>,
    ) -> Self {
        let by_id = |set: Option<&'a Arc<ManifestSet>>| {
            let manifests = set.into_iter().flat_map(|set| &set.manifests);
            manifests.map(|manifest| (Id::new(manifest.identity()), &manifest.json)).collect()
        };
        let before = variant.before.as_ref().and_then(|set| ran.get(set));
        Self { before: by_id(before), now: by_id(variant.now.as_ref().and_then(|set| sets.get(set))) }
    }
}

fn compare(
    variant: &Variant,
    what: What,
    sides: &Sides<'_>,
    key: &[u8; 32],
    room: &mut usize,
    found: &mut Differences,
) {
    let set = |set: &Option<SetDigest>| set.as_ref().map(|set| set.0.clone());
    for (_, id) in variant.objects.iter().filter(|(is, _)| *is == what) {
        if *room == 0 {
            found.left_out += 1;
            continue;
        }
        let side = |manifests: &BTreeMap<Id, &Value>| {
            manifests.get(id).map(|manifest| yaml::from_json(&masked(manifest, key))).unwrap_or_default()
        };
        let (before, now) = (side(&sides.before), side(&sides.now));
        if before.len() + now.len() > LONGEST || before.lines().count() + now.lines().count() > MOST_LINES {
            found.left_out += 1;
            continue;
        }
        let text = unified(&before, &now);
        let (before, now) = (set(&variant.before), set(&variant.now));
        let difference = Difference { before, now, object: id.to_string(), text };
        // The first one that does not fit is the last one that is compared.
        *room = room.saturating_sub(size(&difference));
        if *room == 0 {
            found.left_out += 1;
        } else {
            found.objects.push(difference);
        }
    }
}

/// The lines that differ, with some around them.
fn unified(before: &str, now: &str) -> String {
    TextDiff::from_lines(before, now).unified_diff().context_radius(AROUND).to_string()
}

/// A manifest without the values of a Secret.
fn masked(manifest: &Value, key: &[u8; 32]) -> Value {
    let mut manifest = manifest.clone();
    if kind_of(&manifest) != ("", "Secret") {
        return manifest;
    }
    for field in ["data", "stringData"] {
        match manifest.get_mut(field) {
            Some(Value::Object(values)) => values.values_mut().for_each(|value| mask(value, key)),
            Some(value) => mask(value, key),
            None => {}
        }
    }
    manifest
}

fn mask(value: &mut Value, key: &[u8; 32]) {
    let digest = canonical::digest_hex(key, DOMAIN, value);
    let digits: String = digest.chars().take(DIGITS).collect();
    *value = Value::from(format!("(withheld, digest {digits})"));
}

impl Differences {
    /// Reads a document; the error is a sentence.
    pub fn read(text: &[u8]) -> Result<Self, String> {
        let found: Self =
            serde_json::from_slice(text).map_err(|error| format!("it cannot be read: {error}"))?;
        if found.format > FORMAT {
            return Err(format!(
                "it has format {}, and this version reads format {FORMAT}: upgrade kubectl-emco",
                found.format
            ));
        }
        Ok(found)
    }
}
