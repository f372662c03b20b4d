//! A manifest set: what one app is on one cluster, complete and in order, after rendering and normalising.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::identity::{ClusterId, Combination, Identity, SetDigest};

pub mod provenance;

use provenance::Provenance;

/// When a manifest is applied, relative to the others of its set. The order of the variants is the order of applying.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Phase {
    /// Namespaces and `CustomResourceDefinitions`: the next phase waits until they are established.
    Foundation,
    /// Objects of Helm's hooks that run before the main part, by weight.
    PreHook,
    /// Everything else, in Helm's install order.
    Main,
    /// Objects of Helm's hooks that run after the main part, by weight.
    PostHook,
    /// Objects of hooks that run around removal only.
    DeleteHook,
}

/// The beginning of [`SetManifest::edited_by`] where an action added the object.
pub const ADDED: &str = "added by ";

/// The event of the hooks that a chart tests itself with.
pub const TEST: &str = "test";

/// What Helm's hook annotations said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HookSpec {
    /// `pre-install`, `post-install`, `pre-upgrade`, `post-upgrade`, `pre-delete`, `post-delete` ...; `test` alone in sets of tests.
    pub events: Vec<String>,
    /// Lower first.
    #[serde(default)]
    pub weight: i32,
    /// `before-hook-creation` (also when none is given), `hook-succeeded`, `hook-failed`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delete_policies: Vec<String>,
}

/// One normalised manifest without our marks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SetManifest {
    /// Keyed digest of the manifest: 32 hexadecimal digits.
    pub digest: String,
    /// When it is applied.
    pub phase: Phase,
    /// Set for hook objects only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<HookSpec>,
    /// From the chart's `crds/` folder: made if absent, otherwise left alone, never removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub crd_folder: bool,
    /// `helm.sh/resource-policy: keep`, or a `CustomResourceDefinition`: released, not deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep: bool,
    /// An object of this name that is not ours is taken as it is: neither a conflict nor touched, and ready. (The namespace
    /// of a logical cloud.)
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub take_existing: bool,
    /// What actions of intents did to it, for people: `changed by GenericActionIntent banner, spec.actions[few]`. No digest covers it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edited_by: Vec<String>,
    /// The account of the cluster that it is applied as, such as `system:serviceaccount:shop:emco-edge`; absent = the credentials that the
    /// Cluster was registered with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The manifest.
    pub json: Value,
}

impl SetManifest {
    /// What names the object.
    pub fn identity(&self) -> Identity {
        Identity::of(&self.json)
    }

    /// True where no chart made it: an action of an intent did.
    pub fn was_added(&self) -> bool {
        self.edited_by.iter().any(|edit| edit.starts_with(ADDED))
    }
}

/// One app on one cluster (or on many that came out equal).
#[derive(Clone, Debug, PartialEq)]
pub struct ManifestSet {
    /// Keyed digest over the ordered digests of the manifests.
    pub digest: SetDigest,
    /// The app of the composite application.
    pub app: String,
    /// In the order of applying: by phase, within hooks by weight, within Main in Helm's install order.
    pub manifests: Vec<SetManifest>,
}

impl ManifestSet {
    /// Whether it is what a chart tests itself with, which no cluster gets by itself.
    pub fn is_of_tests(&self) -> bool {
        let first = self.manifests.first().and_then(|manifest| manifest.hook.as_ref());
        first.is_some_and(|hook| hook.events == [TEST])
    }
}

/// The tests of an app's chart, as rendered for a cluster. No digest of a set or plan covers them.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChartTests {
    /// A set of their own; absent where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<SetDigest>,
    /// Why tests that the chart has are not in it, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

/// Which set an app has on a cluster, and what it was rendered from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Assigned {
    /// The set.
    pub set: SetDigest,
    /// Digest of everything the rendering depended on. Same key: the stored set is used again.
    pub render_key: String,
    /// The time that `now` gave while rendering, Unix seconds.
    pub now: i64,
    /// How many different sets the app had on the cluster, with this one; as a rule the `.Release.Revision` it was rendered with.
    pub release_revision: i64,
    /// The `.Release.Revision` it was rendered with, where that is another one: edits changed since, and no chart was rendered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rendered_revision: Option<i64>,
    /// What the rendering showed that is no error; a pack stores equal ones once.
    #[serde(skip)]
    pub findings: Option<Arc<Findings>>,
    /// Which fields intents changed; a pack stores equal ones once. Absent where there are none, and where it was stored before they were
    /// kept.
    #[serde(skip)]
    pub provenance: Option<Arc<Provenance>>,
    /// The chart's tests; absent where it was rendered before tests were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<ChartTests>,
    /// The edits that made the set of what was rendered; absent where there are none, and where it was stored before rendered sets were
    /// kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edits: Option<StoredEdits>,
}

/// What intents did to what was rendered. No digest of a set or plan covers it: the set itself is what came of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredEdits {
    /// Digest of the edits.
    pub digest: String,
    /// The set that was rendered. It reaches no cluster: other edits begin with it.
    pub base: SetDigest,
}

impl Assigned {
    /// All that has to be stored for it: the set, the one that it was edited from, and that of the tests.
    pub fn sets(&self) -> impl Iterator<Item = &SetDigest> {
        let base = self.edits.as_ref().map(|edits| &edits.base);
        let tests = self.tests.as_ref().and_then(|tests| tests.set.as_ref());
        std::iter::once(&self.set).chain(base).chain(tests)
    }

    /// The set that was rendered: the one that it has, unless that was edited. Of what was edited before rendered sets were kept it is
    /// not known, and the edited one stands for it.
    pub fn base(&self) -> &SetDigest {
        self.edits.as_ref().map_or(&self.set, |edits| &edits.base)
    }

    /// The `.Release.Revision` that it was rendered with.
    pub fn rendered_revision(&self) -> i64 {
        self.rendered_revision.unwrap_or(self.release_revision)
    }
}

/// What a rendering showed that is no error. For people alone: nothing is decided by it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Findings {
    /// Values that were set and that nothing reads, each with the one that was perhaps meant.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unread: BTreeMap<String, Option<String>>,
    /// How many more of them there are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: usize,
    /// Secrets that set such values, whose names are not written down.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub secrets: BTreeSet<String>,
    /// The values that turn a chart on that rendered nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub switches: Vec<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde hands it over
const fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Cluster to app to set: the whole outcome of a plan.
pub type Assignment = BTreeMap<ClusterId, BTreeMap<String, Assigned>>;

/// The sets that clusters are to have, without those that are only stored beside them: tests of charts, and what was rendered before it
/// was edited.
pub fn deployed(
    assignment: &Assignment,
    sets: &BTreeMap<SetDigest, Arc<ManifestSet>>,
) -> BTreeMap<SetDigest, Arc<ManifestSet>> {
    let named: BTreeSet<&SetDigest> =
        assignment.values().flat_map(BTreeMap::values).map(|assigned| &assigned.set).collect();
    named.into_iter().filter_map(|digest| Some((digest.clone(), Arc::clone(sets.get(digest)?)))).collect()
}

/// What shards target: an assignment without the inputs it was rendered from.
pub fn combinations(assignment: &Assignment) -> BTreeMap<ClusterId, Combination> {
    let sets = |apps: &BTreeMap<String, Assigned>| {
        apps.iter().map(|(app, assigned)| (app.clone(), assigned.set.clone())).collect()
    };
    assignment.iter().map(|(cluster, apps)| (cluster.clone(), sets(apps))).collect()
}
