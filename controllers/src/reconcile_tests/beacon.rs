//! A third kind of owner, in tests alone: a Beacon puts one ConfigMap on each cluster that it names. No other code knows of it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use emco_crds::OwnerKind;
use emco_crds::deployment_intent_group::status::Cause;
use emco_crds::fields::Level;
use emco_crds::logical_cloud::LogicalCloudStatus;
use emco_crds::names::finalizer;
use emco_engine::identity::ClusterId;
use emco_engine::path::ApiPath;
use emco_engine::set::{Assigned, Assignment, ManifestSet, Phase, SetManifest, combinations};
use emco_engine::snapshot::uids;
use emco_engine::{canonical, rollup};
use k8s_openapi::NamespaceResourceScope;
use kube::Resource;
use kube::api::ObjectMeta;
use kube::core::object::HasStatus;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::rig::emco;
use crate::abandon::{self, AbandonPolicy};
use crate::memory::MemoryServer;
use crate::object::context::Failure;
use crate::object::{Owner, finalizers, meta, status};
use crate::producer::Producer;
use crate::reconcile::context::Context;
use crate::reconcile::revision::{self, Storing};
use crate::rows::{self, Removal};
use crate::store::{self, Draft, Limit, Stored};
use crate::stores::Stores;
use crate::sync::Policy;
use crate::tenancy::facts;

/// Its API group.
pub const GROUP: &str = "test.emco.io";
/// Path of the Beacons of the tenant.
pub const BEACONS: &str = "/apis/test.emco.io/v1/namespaces/team-a/beacons";
/// Revisions that are kept.
pub const HISTORY: usize = 2;

/// The kind, which is none that this version has a name for.
pub fn kind() -> OwnerKind {
    OwnerKind::from("Beacon")
}

/// The definition of the kind.
pub fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "beacons.test.emco.io"},
        "spec": {
            "group": GROUP, "scope": "Namespaced", "names": {"kind": "Beacon", "plural": "beacons"},
            "versions": [{"name": "v1", "served": true, "storage": true}],
        },
    })
}

/// A Beacon with this text on these clusters.
pub fn beacon(name: &str, text: &str, clusters: &[&str]) -> Value {
    let mut object =
        emco("Beacon", Some("team-a"), name, &json!({"text": text, "clusters": clusters, "suspend": false}));
    object["apiVersion"] = json!("test.emco.io/v1");
    object
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Beacon {
    metadata: ObjectMeta,
    spec: Spec,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<LogicalCloudStatus>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Spec {
    text: String,
    clusters: Vec<String>,
    suspend: bool,
}

impl Resource for Beacon {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Beacon".into()
    }
    fn group((): &()) -> Cow<'_, str> {
        GROUP.into()
    }
    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }
    fn plural((): &()) -> Cow<'_, str> {
        "beacons".into()
    }
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl HasStatus for Beacon {
    type Status = LogicalCloudStatus;

    fn status(&self) -> Option<&LogicalCloudStatus> {
        self.status.as_ref()
    }
    fn status_mut(&mut self) -> &mut Option<LogicalCloudStatus> {
        &mut self.status
    }
}

/// All that a hub has.
pub fn all(hub: &MemoryServer) -> Vec<Beacon> {
    hub.of_kind("Beacon").into_iter().map(|object| serde_json::from_value(object).unwrap()).collect()
}

/// Beacons as owners. A watch of them would never be behind.
pub struct Beacons(pub MemoryServer);

impl Beacons {
    fn named(&self, namespace: &str, name: &str) -> Option<Beacon> {
        all(&self.0).into_iter().find(|one| (meta::namespace(one), meta::name(one)) == (namespace, name))
    }
}

impl Producer for Beacons {
    fn kind(&self) -> OwnerKind {
        kind()
    }

    fn collection(&self, namespace: &str) -> ApiPath {
        meta::collection::<Beacon>(Some(namespace))
    }

    fn exists(&self, _: &Stores, namespace: &str, name: &str) -> bool {
        self.named(namespace, name).is_some()
    }

    fn suspends_itself(&self, _: &Stores, namespace: &str, name: &str) -> bool {
        self.named(namespace, name).is_some_and(|beacon| beacon.spec.suspend)
    }

    fn policy(&self, _: &Stores, owner: &Owner) -> Policy {
        Policy::of(owner)
    }
}

/// Brings one Beacon to where it should be.
pub async fn reconcile(ctx: &Context, beacon: &Beacon) -> Result<(), Failure> {
    let owner = Owner::of(ctx, kind(), beacon);
    let suspended = ctx.producers.is_suspended(&ctx.stores, &owner.kind, &owner.namespace, &owner.name);
    if meta::deleting(beacon) {
        return end(ctx, beacon, &owner, suspended).await;
    }
    if finalizers::add(ctx, beacon, finalizer::TERMINATE).await? || !store::all_shown(ctx, &owner).await? {
        return Ok(());
    }
    rows::invalidate_lost(ctx, &owner);
    if suspended {
        return Ok(());
    }
    let newest = store::newest(ctx, &owner).await?;
    let draft = draft(ctx, beacon, &owner);
    let (assignment, sets) = (draft.assignment.clone(), draft.sets.clone());
    let changed = newest.as_ref().is_none_or(|newest| newest.spec.digest != draft.digest);
    let draft = |_: Option<&Stored>| draft;
    let stored =
        match revision::store(ctx, &owner, newest, (changed, &sets), draft, async { Ok(true) }).await? {
            Storing::Kept(stored) => stored,
            Storing::New(stored) => Some(stored),
            Storing::Moved | Storing::TooMuch(_) => return Ok(()),
        };
    let Some(stored) = stored else { return Ok(()) };
    let (wanted, uids) = (combinations(&assignment), uids(&facts::clusters(ctx)));
    abandon::retarget(ctx, &owner, stored.spec.revision, &wanted, &uids, (None, None)).await?;
    report(ctx, beacon, &owner, &stored).await
}

/// Says what is true on the clusters, then what became of the revision.
async fn report(ctx: &Context, beacon: &Beacon, owner: &Owner, stored: &Stored) -> Result<(), Failure> {
    let mut status = beacon.status.clone().unwrap_or_default();
    let shards = store::shards(ctx, owner);
    let parts: Vec<rollup::Shard<'_>> = shards.iter().map(|s| (&s.spec, s.status.as_ref())).collect();
    let before = rollup::Before {
        state: status.state.unwrap_or_default(),
        revision: status.revision,
        apps: BTreeMap::new(),
    };
    status.revision = Some(stored.spec.revision);
    let rolled = rollup::cloud(&rollup::DigInputs {
        shards: &parts,
        wanted: &combinations(&stored.running.assignment),
        revision: status.revision,
        placement: &[],
        ready_clusters: None,
        before: &before,
        approved: true,
        removing: false,
        suspended: false,
        abandoned: &[],
    });
    (status.state, status.summary) = (Some(rolled.state), Some(rolled.summary));
    status::write(ctx, beacon, beacon.status.as_ref(), &status).await?;
    let now = store::Seen { running: stored.spec.revision, state: rolled.state, good: None };
    store::record_outcome(ctx, owner, now, None).await?;
    store::prune_history(ctx, owner, HISTORY, None).await
}

/// Leaves the clusters, then the hub.
async fn end(ctx: &Context, beacon: &Beacon, owner: &Owner, suspended: bool) -> Result<(), Failure> {
    if !suspended && abandon::abandon(ctx, beacon, owner, AbandonPolicy::of(beacon, None)).await? {
        return Ok(());
    }
    match revision::remove(ctx, owner, suspended, false).await? {
        Some(Removal::Done) => revision::release(ctx, beacon).await,
        _ => Ok(()),
    }
}

fn draft<'a>(ctx: &Context, beacon: &Beacon, owner: &'a Owner) -> Draft<'a> {
    let key = &ctx.installation.digest_key;
    let json = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": owner.name, "namespace": owner.namespace}, "data": {"text": beacon.spec.text},
    });
    let manifest = SetManifest {
        digest: canonical::manifest_digest(key, &json),
        phase: Phase::Main,
        hook: None,
        crd_folder: false,
        keep: false,
        take_existing: false,
        edited_by: Vec::new(),
        account: None,
        json,
    };
    let manifests = vec![manifest];
    let set =
        ManifestSet { digest: canonical::set_digest(key, &manifests), app: "light".to_owned(), manifests };
    let inputs = canonical::sha256("beacon-inputs/1\0", &json!(set.digest));
    let assigned = Assigned {
        set: set.digest.clone(),
        render_key: inputs.clone(),
        now: 0,
        release_revision: 0,
        findings: None,
        provenance: None,
        rendered_revision: None,
        tests: None,
        edits: None,
    };
    let on = |name: &String| {
        (ClusterId::new("acme", name), BTreeMap::from([("light".to_owned(), assigned.clone())]))
    };
    let assignment: Assignment = beacon.spec.clusters.iter().map(on).collect();
    let digest = canonical::sha256("beacon-plan/1\0", &json!([inputs, beacon.spec.clusters]));
    Draft {
        owner,
        at_least: beacon.status.as_ref().and_then(|status| status.revision).unwrap_or(0),
        digest,
        inputs_digest: inputs,
        cause: Cause::Update,
        namespace: owner.namespace.clone(),
        level: Level::Admin,
        apps: vec!["light".to_owned()],
        assignment,
        sets: BTreeMap::from([(set.digest.clone(), Arc::new(set))]),
        limit: Limit::of(None, HISTORY),
        deployment: None,
    }
}
