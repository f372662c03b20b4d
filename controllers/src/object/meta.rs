//! Reads what all objects of the hub have: their path and the fields of their metadata.

use emco_crds::SyncShard;
use emco_engine::path::ApiPath;
use kube::Resource;

/// URL path of a collection.
pub fn collection<K: Resource<DynamicType = ()>>(namespace: Option<&str>) -> ApiPath {
    let (group, version, plural) = (K::group(&()), K::version(&()), K::plural(&()));
    let root = if group.is_empty() { ApiPath::new("/api") } else { ApiPath::new("/apis").then(&group) };
    let root = root.then(&version);
    let root = match namespace {
        Some(namespace) => root.then("namespaces").then(namespace),
        None => root,
    };
    root.then(&plural)
}

/// URL path of an object.
pub fn path<K: Resource<DynamicType = ()>>(object: &K) -> ApiPath {
    collection::<K>(object.meta().namespace.as_deref()).then(name(object))
}

/// Name; empty only of an object that was never stored.
pub fn name<K: Resource>(object: &K) -> &str {
    object.meta().name.as_deref().unwrap_or_default()
}

/// Namespace; empty for cluster-scoped objects.
pub fn namespace<K: Resource>(object: &K) -> &str {
    object.meta().namespace.as_deref().unwrap_or_default()
}

/// UID.
pub fn uid<K: Resource>(object: &K) -> &str {
    object.meta().uid.as_deref().unwrap_or_default()
}

/// `metadata.resourceVersion` as a number; 0 where it has none. Of one object, the larger one is newer.
pub fn version<K: Resource>(object: &K) -> u64 {
    object.meta().resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or_default()
}

/// `metadata.generation`.
pub fn generation<K: Resource>(object: &K) -> i64 {
    object.meta().generation.unwrap_or_default()
}

/// Number of the write that made a shard what it is; the next one has the number after it.
pub fn writes(shard: &SyncShard) -> i64 {
    emco_engine::shard::writes(&shard.spec, shard.status.as_ref(), generation(shard))
}

/// Whether it is being deleted.
pub fn deleting<K: Resource>(object: &K) -> bool {
    object.meta().deletion_timestamp.is_some()
}

/// An annotation.
pub fn annotation<'a, K: Resource>(object: &'a K, key: &str) -> Option<&'a str> {
    object.meta().annotations.as_ref()?.get(key).map(String::as_str)
}

/// Whether it has a finalizer.
pub fn has_finalizer<K: Resource>(object: &K, finalizer: &str) -> bool {
    object.meta().finalizers.iter().flatten().any(|f| f == finalizer)
}
