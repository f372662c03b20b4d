//! Compares what our patches make of manifests with Kubernetes' own library and with `kubectl patch --local`.

mod keys;
mod library;
mod local;
mod made;
mod operations;

use std::fmt;

use anyhow::{Context as _, Result, bail, ensure};
use emco_engine::canonical;
use emco_engine::edits::{Patch, check, patched};
use serde_json::{Value, json};

use crate::random::Random;

pub use keys::{ComparedKeys, merge_keys};

/// Built-in kinds with each kind of list that Kubernetes merges.
const SAMPLES: &str = include_str!("patches/samples.yaml");
/// Larger objects are left out: a patch of one may be longer than an argument of a program.
const MOST_BYTES: usize = 64 * 1024;
/// Patches that are in memory at once, beside those for kubectl.
const BATCH: usize = 500;
/// Differences that are kept, and shown in full.
const MOST_SHOWN: usize = 5;
/// Groups whose kinds API servers merge strategically and kubectl does not.
const OF_SERVERS: [&str; 2] = ["apiextensions.k8s.io/", "apiregistration.k8s.io/"];
/// The words in which Kubernetes' library refuses a field that its version of a kind does not have. We merge it as any other.
const UNKNOWN_FIELD: [&str; 2] = ["unable to find api field", "data type is not struct"];

/// Numbers of random patches.
#[derive(Debug, Clone, Copy)]
pub struct Amounts {
    /// Strategic merge patches, which Kubernetes' own library carries out in one process.
    pub strategic: usize,
    /// Those of them that `kubectl patch --local` carries out, too; a process each.
    pub through_kubectl: usize,
    /// JSON patches, and as many merge patches, which only kubectl carries out.
    pub others: usize,
}

/// The findings of a comparison.
#[derive(Debug, Default)]
pub struct Compared {
    /// Patches with the same result.
    pub applied: usize,
    /// Patches that both refuse.
    pub refused: usize,
    /// Patches that Kubernetes refuses for a field that it does not know.
    pub unknown: usize,
    /// Patches with another result, or that one side refuses.
    pub different: usize,
    /// The first of these, each with object and patch.
    pub differences: Vec<String>,
}

impl Compared {
    /// An error where something was different, or where too little was compared to mean anything.
    pub fn agree(&self) -> Result<()> {
        ensure!(
            self.different == 0,
            "{} of the patches differ, such as\n{}",
            self.different,
            self.differences.join("\n\n")
        );
        ensure!(
            self.applied > 4 * (self.refused + self.unknown),
            "most patches should be applied, but {self}"
        );
        Ok(())
    }

    fn count(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Applied => self.applied += 1,
            Outcome::Refused => self.refused += 1,
            Outcome::Unknown => self.unknown += 1,
            Outcome::Different(difference) => {
                self.different += 1;
                if self.differences.len() < MOST_SHOWN {
                    self.differences.push(difference);
                }
            }
        }
    }
}

impl fmt::Display for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { applied, refused, unknown, different, differences: _ } = self;
        write!(
            f,
            "{applied} patches give the same, both refuse {refused}, Kubernetes knows no field of {unknown}"
        )?;
        write!(f, ", {different} differ")
    }
}

/// Objects of our own to try patches on.
pub fn samples() -> Result<Vec<Value>> {
    emco_helm::yaml::documents(SAMPLES.as_bytes()).context("the samples are no YAML")
}

/// Those of the objects that can be compared: of built-in kinds, not too large, without `null`.
pub fn comparable(objects: Vec<Value>) -> Vec<Value> {
    let empty = Patch::Strategic(json!({}));
    let mut objects: Vec<Value> = objects.into_iter().filter(Value::is_object).collect();
    objects.retain(|object| {
        let version = object["apiVersion"].as_str().unwrap_or_default();
        let is_known = check(version, object["kind"].as_str().unwrap_or_default(), &empty).is_ok();
        let is_named = object["metadata"]["name"].is_string();
        is_known && is_named && !is_of_servers(version) && object.to_string().len() <= MOST_BYTES
    });
    objects.iter_mut().for_each(without_nulls);
    objects
}

fn is_of_servers(api_version: &str) -> bool {
    OF_SERVERS.iter().any(|group| api_version.starts_with(group))
}

fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => {
            items.retain(|item| !item.is_null());
            items.iter_mut().for_each(without_nulls);
        }
        _ => {}
    }
}

/// Compares so many random patches of the objects. The same seed makes the same ones.
pub async fn compare(objects: &[Value], seed: u64, amounts: Amounts) -> Result<Compared> {
    ensure!(!objects.is_empty(), "there is no object to patch");
    ensure!(
        amounts.through_kubectl <= amounts.strategic,
        "kubectl gets strategic merge patches that the library got, so not more of them: {amounts:?}"
    );
    let mut random = Random(seed.max(1));
    let mut compared = Compared::default();
    let mut for_kubectl = Vec::new();
    let mut library = library::Library::start().await?;
    let mut left = amounts.strategic;
    while left > 0 {
        let batch: Vec<Case> =
            (0..left.min(BATCH)).map(|_| Case::new(&mut random, objects, made::strategic)).collect();
        left -= batch.len();
        for (case, theirs) in batch.iter().zip(library.answers(&batch).await?) {
            compared.count(case.judged("library", &theirs)?);
        }
        let wanted = amounts.through_kubectl - for_kubectl.len();
        for_kubectl.extend(batch.into_iter().take(wanted));
    }
    library.end().await?;
    for _ in 0..amounts.others {
        for_kubectl.push(Case::new(&mut random, objects, made::merge));
        for_kubectl.push(Case::new(&mut random, objects, operations::json));
    }
    for outcome in Box::pin(local::outcomes(for_kubectl)).await? {
        compared.count(outcome);
    }
    Ok(compared)
}

/// A patch and the object that it is for.
struct Case {
    object: Value,
    patch: Patch,
}

/// The outcome for one patch.
enum Outcome {
    Applied,
    Refused,
    Unknown,
    Different(String),
}

impl Case {
    /// A random patch of one of the objects.
    fn new(random: &mut Random, objects: &[Value], make: fn(&mut Random, &Value) -> Patch) -> Self {
        let object = random.of(objects).clone();
        let patch = make(random, &object);
        Self { object, patch }
    }

    /// The type of the patch in kubectl's words, and its text.
    fn form(&self) -> Result<(&'static str, String)> {
        match &self.patch {
            Patch::Json(operations) => Ok(("json", json!(operations).to_string())),
            Patch::Merge(fields) => Ok(("merge", fields.to_string())),
            Patch::Strategic(fields) => Ok(("strategic", fields.to_string())),
            Patch::Workload(_) => bail!("Kubernetes has no such patch: {}", self.object),
        }
    }

    /// Compares our result with that of Kubernetes, or with its refusal. `judge` says which of its programs it comes from.
    fn judged(&self, judge: &str, theirs: &Result<Value, String>) -> Result<Outcome> {
        let what = match (patched(&self.object, &self.patch), theirs) {
            (Ok(ours), Ok(theirs)) if canonical::json(&ours) == canonical::json(theirs) => {
                return Ok(Outcome::Applied);
            }
            (Err(_), Err(_)) => return Ok(Outcome::Refused),
            (Ok(_), Err(words)) if UNKNOWN_FIELD.iter().any(|unknown| words.contains(unknown)) => {
                return Ok(Outcome::Unknown);
            }
            (Ok(ours), Ok(theirs)) => format!("ours: {ours}\n{judge}: {theirs}"),
            (Ok(ours), Err(words)) => format!("ours: {ours}\n{judge} refuses it: {words}"),
            (Err(refusal), Ok(theirs)) => format!("ours refuses it: {refusal}\n{judge}: {theirs}"),
        };
        let (form, text) = self.form()?;
        Ok(Outcome::Different(format!("object: {}\n{form}: {text}\n{what}", self.object)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment(replicas: u64) -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"replicas": replicas},
        })
    }

    /// The finding where a patch sets two replicas, and Kubernetes answers so.
    fn compared(theirs: Result<Value, &str>) -> Compared {
        let patch = Patch::Strategic(json!({"spec": {"replicas": 2}}));
        let case = Case { object: deployment(1), patch };
        let mut compared = Compared::default();
        compared.count(case.judged("library", &theirs.map_err(str::to_owned)).unwrap());
        compared
    }

    #[test]
    fn another_result_and_another_refusal_are_differences() {
        let same = compared(Ok(deployment(2)));
        assert_eq!((same.applied, same.different), (1, 0));
        same.agree().unwrap();
        for (theirs, words) in [
            (Ok(deployment(3)), r#"library: {"apiVersion""#),
            (Err("list element types are not identical"), "library refuses it: list element types"),
        ] {
            let compared = compared(theirs);
            let refused = compared.agree().unwrap_err().to_string();
            assert!(refused.contains("1 of the patches differ") && refused.contains(words), "{refused}");
            assert!(refused.contains(r#"strategic: {"spec":{"replicas":2}}"#), "{refused}");
        }
    }

    #[test]
    fn a_field_unknown_to_kubernetes_is_no_difference_and_no_proof() {
        let unknown = compared(Err("unable to find api field in struct Deployment for the json field \"x\""));
        assert_eq!((unknown.unknown, unknown.different), (1, 0));
        assert!(unknown.agree().unwrap_err().to_string().contains("most patches should be applied"));
    }

    #[test]
    fn of_many_differences_the_first_are_kept() {
        let mut compared = Compared::default();
        for number in 0..MOST_SHOWN + 2 {
            compared.count(Outcome::Different(number.to_string()));
        }
        assert_eq!((compared.different, compared.differences.len()), (MOST_SHOWN + 2, MOST_SHOWN));
    }
}
