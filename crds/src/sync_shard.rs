//! `SyncShard`: what each cluster of one slot shall have of one owner, and what it has.

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::app_context::OwnerRef;
use crate::composite_app::Dependency;

pub mod status;

use status::SyncShardStatus;

/// Targets of the clusters of one slot. All lists are atomic: a list map costs three times its size in managed fields.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "emco.io",
    version = "v1alpha1",
    kind = "SyncShard",
    plural = "syncshards",
    shortname = "shard",
    category = "emco-generated",
    namespaced,
    status = "SyncShardStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "Generated: targets and results of a slice of the clusters of one deployment intent group or logical cloud.",
    printcolumn(name = "Owner", type_ = "string", json_path = ".spec.owner.name"),
    printcolumn(name = "Slot", type_ = "integer", json_path = ".spec.slot"),
    printcolumn(name = "Clusters", type_ = "string", json_path = ".status.summary.clusters"),
    printcolumn(name = "Failed", type_ = "string", json_path = ".status.summary.failed"),
    printcolumn(name = "Unreachable", type_ = "string", json_path = ".status.summary.unreachable"),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Orphaned")].reason"#
    ),
    printcolumn(name = "Deleted", type_ = "date", json_path = ".metadata.deletionTimestamp"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Orphaned")].message"#,
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = ("self.epoch >= oldSelf.epoch", "epoch cannot go down: a newer writer holds this shard")
)]
pub struct SyncShardSpec {
    /// Format of spec and status.
    #[schemars(range(min = 1))]
    pub format: i32,
    /// Whose.
    pub owner: OwnerRef,
    /// Value of the leading bits of the digest of provider/cluster.
    #[schemars(range(min = 0))]
    pub slot: i64,
    /// How many leading bits; 0 = one slot for all.
    #[schemars(range(min = 0, max = 30))]
    pub bits: i32,
    /// Part of a slot that outgrew one object; 0 = the first.
    #[schemars(range(min = 0))]
    #[serde(default, skip_serializing_if = "is_zero")]
    pub part: i64,
    /// Of the writer's Lease; never goes down.
    #[schemars(range(min = 0))]
    pub epoch: i64,
    /// How often this spec was written, counted by its writers: names and `since` are taken from it. `metadata.generation` begins
    /// anew when the object is copied to another hub; this does not. Absent = nobody counted yet, and the generation stands for it.
    #[schemars(range(min = 0))]
    #[serde(default, skip_serializing_if = "is_zero")]
    pub writes: i64,
    /// The id the next row gets; ids are never used again.
    #[schemars(range(min = 1))]
    pub next_id: i64,
    /// What clusters may have, each written once.
    #[schemars(length(max = 4096), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub combinations: Vec<ShardCombination>,
    /// Present in a ledger: a shard in the namespace of a cluster provider, of what was given up because its clusters could
    /// not be reached. It is removed there when they return.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abandoned: Option<Abandoned>,
    /// Which apps wait for which; absent = none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<ShardOrder>,
    /// One row per cluster.
    #[schemars(length(max = 4096), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<ShardRow>,
}

/// Which apps wait for which.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShardOrder {
    /// The revision whose clusters are counted; 0 = no app waits for other clusters.
    #[schemars(range(min = 0))]
    #[serde(default, skip_serializing_if = "is_zero")]
    pub revision: i64,
    /// Apps that wait, as the newest revision says or, of apps that leave, as the last one said; and apps that are waited for on
    /// other clusters.
    #[schemars(length(max = 256), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apps: Vec<OrderedApp>,
    /// Generated apps in the order in which they are applied, where there is more than one. All of them come before every other app.
    #[schemars(length(max = 128), inner(length(max = 63)), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generated: Vec<String>,
    /// Combinations whose clusters have not had their turn in a rollout: how far their apps are says nothing of this revision.
    #[schemars(length(max = 4096), inner(length(max = 32)), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silent: Vec<String>,
}

/// What one app waits for.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OrderedApp {
    /// Name of the app.
    #[schemars(length(min = 1, max = 63))]
    pub app: String,
    /// Apps that must be there first.
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<Dependency>,
    /// How many clusters have the app, in all shards; absent = nobody waits for it on other clusters.
    #[schemars(range(min = 0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clusters: Option<i64>,
}

impl SyncShard {
    /// Namespace of the owner: the shard's own, except for a ledger.
    pub fn owner_namespace(&self) -> &str {
        let own = self.metadata.namespace.as_deref().unwrap_or_default();
        self.spec.abandoned.as_ref().map_or(own, |abandoned| abandoned.namespace.as_str())
    }
}

/// Whose work was given up.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Abandoned {
    /// Namespace of the owner; the owner itself may be gone.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde passes a reference
const fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// Which set each app has.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardCombination {
    /// Name within the shard, such as t3; never used again.
    #[schemars(length(min = 1, max = 32))]
    pub name: String,
    /// The revision that made it.
    pub revision: i64,
    /// By app, sorted by name.
    #[schemars(length(max = 128), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apps: Vec<AppSet>,
}

/// The set of one app.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppSet {
    /// Name of the app.
    #[schemars(length(min = 1, max = 63))]
    pub app: String,
    /// Keyed digest of the set, hexadecimal.
    #[schemars(length(min = 1, max = 64))]
    pub set: String,
}

/// One cluster.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardRow {
    /// Number of the row, never used again in this shard.
    #[schemars(range(min = 1))]
    pub id: i64,
    /// `provider/cluster`.
    #[schemars(length(min = 1, max = 127))]
    pub cluster: String,
    /// Identity of the cluster (UID of its kube-system) that the row speaks of; absent before the first contact.
    #[schemars(length(min = 1, max = 64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// The combination it shall have; absent = everything is to be removed.
    #[schemars(length(min = 1, max = 32))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// What may be there besides: everything targeted since the last complete one.
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<Held>,
}

/// What may be on a cluster: a combination, or a set of identities in a pack.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Name of a combination.
    #[schemars(length(min = 1, max = 32))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub combination: Option<String>,
    /// Or the identities of many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identities: Option<IdentitiesRef>,
    /// The write of the shard (`writes`) that added the entry.
    pub since: i64,
}

/// A set of object identities, stored as a pack.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdentitiesRef {
    /// Name of the pack.
    #[schemars(length(min = 1, max = 253))]
    pub pack: String,
    /// SHA-256 of its content, hexadecimal.
    #[schemars(length(min = 1, max = 71))]
    pub digest: String,
}
