//! Keeps the tests of a chart beside the manifest set of its app. Faulty or oversized tests are left out with a sentence.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Kind, Object, check, is_cloud_namespace, place_in_namespace};
use crate::canonical;
use crate::cloud::CloudFacts;
use crate::identity::{Id, Identity, kind_of};
use crate::normalise;
use crate::order;
use crate::set::{ChartTests, HookSpec, ManifestSet, Phase, SetManifest, TEST};

/// Test objects kept of one app.
const MOST_TESTS: usize = 100;
/// Bytes of JSON kept of them.
const MOST_BYTES: usize = 1 << 20;
/// Sentences about tests that are left out.
const MOST_SENTENCES: usize = 5;

/// The tests that one rendering gave.
#[derive(Clone, Debug, Default)]
pub(super) struct KeptTests {
    objects: Vec<Object>,
    bytes: usize,
    /// Why others are not kept.
    pub left_out: Vec<String>,
}

impl KeptTests {
    /// Keeps one document, if it can be; returns the kinds of its objects. Nothing here refuses a plan: what a chart tests itself with
    /// keeps nobody from deploying it.
    pub fn add(&mut self, app: &str, source: &str, hook: &HookSpec, json: &Value) -> Vec<Kind> {
        let hook = HookSpec { events: vec![TEST.to_owned()], ..hook.clone() };
        let normalised = normalise::normalise(json.clone());
        if let Some(fault) = normalised.fault {
            self.leave_out(format!("app {app}: the test of {source} makes {fault}"));
            return Vec::new();
        }
        let mut kinds = Vec::new();
        for json in normalised.objects {
            if let Err(refusal) = check(app, source, &json) {
                self.leave_out(refusal.message);
                continue;
            }
            let bytes = canonical::json(&json).len();
            if self.objects.len() >= MOST_TESTS || self.bytes + bytes > MOST_BYTES {
                self.leave_out(format!(
                    "app {app}: {} of {source} is not kept: of a chart's tests, {MOST_TESTS} objects with {MOST_BYTES} bytes are",
                    Identity::of(&json)
                ));
                continue;
            }
            self.bytes += bytes;
            let (group, kind) = kind_of(&json);
            kinds.push((group.to_owned(), kind.to_owned()));
            let hook = Some(hook.clone());
            self.objects.push(Object {
                json,
                phase: Phase::PostHook,
                hook,
                crd_folder: false,
                source: source.to_owned(),
                edited_by: Vec::new(),
            });
        }
        kinds
    }

    fn leave_out(&mut self, sentence: String) {
        if self.left_out.len() < MOST_SENTENCES {
            self.left_out.push(sentence);
        }
    }

    /// The tests on a cluster.
    pub fn finish(
        &self,
        app: &str,
        key: &[u8; 32],
        cloud: &CloudFacts,
        scopes: &BTreeMap<Kind, bool>,
    ) -> (ChartTests, Option<ManifestSet>) {
        let mut left_out = self.left_out.clone();
        let mut manifests = Vec::with_capacity(self.objects.len());
        for object in &self.objects {
            let (group, kind) = kind_of(&object.json);
            let namespaced = scopes.get(&(group.to_owned(), kind.to_owned())).copied().unwrap_or(true);
            let mut json = object.json.clone();
            if let Err(refusal) = place_in_namespace(app, object, &mut json, namespaced, cloud) {
                left_out.push(refusal.message);
                continue;
            }
            let identity = Id::new(Identity::of(&json));
            if is_cloud_namespace(&identity, cloud) {
                left_out.push(format!(
                    "app {app}: the test of {} makes Namespace {}, which logical cloud {} makes",
                    object.source, identity.name, cloud.name
                ));
                continue;
            }
            manifests.push(SetManifest {
                digest: canonical::manifest_digest(key, &json),
                phase: object.phase,
                hook: object.hook.clone(),
                crd_folder: false,
                keep: order::is_crd(kind_of(&json)),
                take_existing: false,
                edited_by: Vec::new(),
                account: cloud.account(),
                json,
            });
        }
        left_out.truncate(MOST_SENTENCES);
        if manifests.is_empty() {
            return (ChartTests { set: None, left_out }, None);
        }
        order::sort(&mut manifests);
        let digest = canonical::set_digest(key, &manifests);
        let tests = ChartTests { set: Some(digest.clone()), left_out };
        (tests, Some(ManifestSet { digest, app: app.to_owned(), manifests }))
    }
}
