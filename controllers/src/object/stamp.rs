//! Tells an object that is as it was looked at, but for its status, from one that is another one.

use std::collections::BTreeMap;

use kube::Resource;

use super::meta;

/// An object as it was looked at, without its status.
#[derive(Debug, PartialEq)]
pub struct Stamp {
    uid: String,
    generation: i64,
    is_deleting: bool,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
    finalizers: Option<Vec<String>>,
}

impl Stamp {
    /// As it is now.
    pub fn of<K: Resource>(object: &K) -> Self {
        let known = object.meta();
        Self {
            uid: meta::uid(object).to_owned(),
            generation: meta::generation(object),
            is_deleting: meta::deleting(object),
            labels: known.labels.clone(),
            annotations: known.annotations.clone(),
            finalizers: known.finalizers.clone(),
        }
    }
}
