//! Names the object that revisions belong to.

use std::collections::BTreeMap;

use emco_crds::names::{label, owner_short};
use emco_engine::marks;
use kube::Resource;

use crate::object::LogFields;
use crate::object::context::HubContext;
use crate::object::meta;
use crate::tenancy::owned_namespace;

/// An object that produces revisions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// `DeploymentIntentGroup` or `LogicalCloud`.
    pub kind: &'static str,
    /// Namespace on the hub.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
    /// Label value on everything that is its.
    pub hash: String,
}

impl Owner {
    /// The owner that an object is.
    pub fn of<K: Resource<DynamicType = ()>>(ctx: &HubContext, kind: &'static str, object: &K) -> Self {
        let (namespace, name) = (meta::namespace(object).to_owned(), meta::name(object).to_owned());
        let hash = marks::owner_hash(&ctx.installation.id, kind, &namespace, &name);
        Self { kind, uid: meta::uid(object).to_owned(), hash, namespace, name }
    }

    /// What names it in log lines.
    pub fn log_fields(&self, ctx: &HubContext) -> LogFields {
        let project = owned_namespace::project_of(ctx, &self.namespace);
        LogFields::of(project, self.kind, &self.namespace, &self.name)
    }

    /// Name of one of its revisions: `dig-shop-3`.
    pub fn context_name(&self, revision: i64) -> String {
        format!("{}-{}-{revision}", owner_short(self.kind), self.name)
    }

    pub(crate) fn labels(&self) -> BTreeMap<&'static str, String> {
        BTreeMap::from([
            (label::OWNER, self.hash.clone()),
            (label::OWNER_KIND, self.kind.to_owned()),
            (label::OWNER_NAME, self.name.clone()),
        ])
    }
}
