//! Names the object that revisions, shards and what is on clusters belong to.

use std::collections::BTreeMap;

use emco_crds::names::label;
use emco_crds::{OwnerKind, SyncShard};
use emco_engine::marks;
use emco_engine::snapshot::Installation;
use kube::Resource;

use super::context::HubContext;
use super::{LogFields, meta};
use crate::tenancy::owned_namespace;

/// An object that produces revisions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// Kind.
    pub kind: OwnerKind,
    /// Namespace on the hub.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// UID; that of a shard when it was written.
    pub uid: String,
    /// Label value on everything that is its.
    pub hash: String,
}

impl Owner {
    /// The owner of this name in this installation.
    pub fn new(of: &Installation, kind: OwnerKind, namespace: &str, name: &str, uid: &str) -> Self {
        let hash = marks::owner_hash(&of.id, &kind, namespace, name);
        let (namespace, name, uid) = (namespace.to_owned(), name.to_owned(), uid.to_owned());
        Self { kind, namespace, name, uid, hash }
    }

    /// The owner that an object is.
    pub fn of<K: Resource<DynamicType = ()>>(ctx: &HubContext, kind: OwnerKind, object: &K) -> Self {
        let (namespace, name) = (meta::namespace(object), meta::name(object));
        Self::new(&ctx.installation, kind, namespace, name, meta::uid(object))
    }

    /// The owner of a shard's rows, also where that is a ledger.
    pub fn of_shard(of: &Installation, shard: &SyncShard) -> Self {
        let owner = &shard.spec.owner;
        Self::new(of, owner.kind.clone(), shard.owner_namespace(), &owner.name, &owner.uid)
    }

    /// Name of one of its revisions: `dig-shop-3`.
    pub fn context_name(&self, revision: i64) -> String {
        format!("{}-{}-{revision}", self.kind.short(), self.name)
    }

    /// What names it in log lines.
    pub fn log_fields(&self, ctx: &HubContext) -> LogFields {
        let project = owned_namespace::project_of(ctx, &self.namespace);
        LogFields::of(project, self.kind.as_str(), &self.namespace, &self.name)
    }

    pub(crate) fn labels(&self) -> BTreeMap<&'static str, String> {
        BTreeMap::from([
            (label::OWNER, self.hash.clone()),
            (label::OWNER_KIND, self.kind.to_string()),
            (label::OWNER_NAME, self.name.clone()),
        ])
    }
}
