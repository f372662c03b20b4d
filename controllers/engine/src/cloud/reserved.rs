//! Knows namespaces of clusters that no logical cloud has: the operator's own, and those that a provider reserves.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::ClusterProvider;
use emco_crds::fields::Level;
use emco_crds::names::object;

use crate::identity::ClusterId;

/// Takes out of what is granted the clusters where nobody is to have a namespace, and says which. `own` is the operator's on the hub.
pub fn reserve(
    granted: &mut BTreeMap<ClusterId, Level>,
    namespace: &str,
    own: &str,
    providers: &[&ClusterProvider],
) -> BTreeSet<ClusterId> {
    let operators = namespace == own || namespace == object::EDGE_NAMESPACE;
    let by_provider = |id: &ClusterId| {
        let mut of = providers.iter().filter(|one| one.metadata.name.as_deref() == Some(id.provider()));
        of.any(|provider| provider.spec.reserved_namespaces.iter().any(|entry| covers(entry, namespace)))
    };
    let reserved: BTreeSet<ClusterId> =
        granted.keys().filter(|id| operators || by_provider(id)).cloned().collect();
    granted.retain(|id, _| !reserved.contains(id));
    reserved
}

/// A name, or the beginning of names: `openshift-*`.
fn covers(entry: &str, namespace: &str) -> bool {
    entry.strip_suffix('*').map_or(entry == namespace, |start| namespace.starts_with(start))
}
