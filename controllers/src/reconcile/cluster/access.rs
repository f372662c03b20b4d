//! Reads what a cluster is reached with, once for each version of its Secret.
//!
//! The watch of metadata shows the version of each Secret, and has the Clusters look again that name it. While it shows the one that was
//! read, a look asks nothing. Where it shows nothing, or somebody asks for a look, the Secret is read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_crds::Cluster;
use emco_crds::names::finalizer;
use k8s_openapi::api::core::v1::Secret;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use super::{renewal, requested};
use crate::api::ApiError;
use crate::api::key_queue::Key;
use crate::object::context::Failure;
use crate::object::finalizers;
use crate::object::meta;
use crate::reconcile::context::Context;
use crate::reconcile::sources;
use crate::remote::kubeconfig::claims::Bound;
use crate::remote::{Credentials, KubeconfigError, kubeconfig};
use crate::stores::SecretVersions;
use crate::stores::indexes::{self, SECRET};
use crate::tenancy::namespace_access;

/// All that a Secret says of the clusters that name it.
pub struct Access {
    /// Name of the Secret.
    pub secret: String,
    /// The way there, or why there is none.
    pub way: Result<Way, KubeconfigError>,
}

/// The way to a cluster.
pub struct Way {
    /// The credentials that it is reached with.
    pub credentials: Credentials,
    /// A digest of the Secret's data. The `resourceVersion` is not: our own finalizer on the Secret must not renew a connection.
    pub version: String,
    /// A digest of how people reach it.
    pub endpoint: Option<String>,
    /// The claims of the token, where the operator renews it.
    pub renewed: Option<Bound>,
}

impl Access {
    fn of(secret: &Secret, key: Option<&str>) -> Self {
        let data: BTreeMap<String, Vec<u8>> =
            secret.data.clone().unwrap_or_default().into_iter().map(|(key, bytes)| (key, bytes.0)).collect();
        let content = kubeconfig::content_of_secret(secret.metadata.labels.as_ref(), &data, key);
        let way = content.map(|content| Way {
            credentials: content.credentials,
            version: content_version(&data),
            endpoint: content.endpoint.map(|endpoint| endpoint.digest()),
            renewed: content.bound.filter(|bound| renewal::is_renewable(secret, key, bound)),
        });
        Self { secret: meta::name(secret).to_owned(), way }
    }
}

/// Namespace and name of a Secret, and the key that a Cluster names.
type Place = (String, String, Option<String>);

/// A Secret as it was read last.
struct Known {
    version: String,
    /// That before our finalizer, where this look added it: the watch shows that for a moment more.
    before: Option<String>,
    access: Arc<Access>,
    /// Names of the Clusters that are reached by it.
    clusters: BTreeSet<String>,
}

impl Known {
    fn is(&self, version: &str) -> bool {
        self.version == version || self.before.as_deref() == Some(version)
    }
}

#[derive(Default)]
struct Inner {
    known: BTreeMap<Place, Known>,
    /// What each Cluster names.
    named: BTreeMap<Key, Place>,
}

impl Inner {
    /// A Cluster names nothing any more. What no other one names is forgotten.
    fn leave(&mut self, cluster: &Key) {
        let Some(place) = self.named.remove(cluster) else { return };
        if let Some(known) = self.known.get_mut(&place) {
            known.clusters.remove(&cluster.1);
            if known.clusters.is_empty() {
                self.known.remove(&place);
            }
        }
    }
}

/// Secrets as they were read last, with the version of each, while a Cluster names them.
#[derive(Default)]
pub struct Accesses(Mutex<Inner>);

impl Accesses {
    /// A Cluster names this, and what it named before no more.
    fn names(&self, cluster: &Key, place: &Place) {
        let mut inner = self.0.lock();
        if inner.named.get(cluster) != Some(place) {
            inner.leave(cluster);
            inner.named.insert(cluster.clone(), place.clone());
        }
    }

    /// What was read of this version, for a Cluster that names it.
    fn at(&self, cluster: &Key, place: &Place, version: &str) -> Option<Arc<Access>> {
        let mut inner = self.0.lock();
        let known = inner.known.get_mut(place).filter(|known| known.is(version))?;
        known.clusters.insert(cluster.1.clone());
        Some(Arc::clone(&known.access))
    }

    /// Keeps what was read for a Cluster that names it, with its version and the one before that.
    fn keep(
        &self,
        cluster: &Key,
        place: Place,
        (version, before): (String, Option<String>),
        access: &Arc<Access>,
    ) {
        let mut inner = self.0.lock();
        let mut clusters = inner.known.remove(&place).map(|known| known.clusters).unwrap_or_default();
        clusters.insert(cluster.1.clone());
        inner.known.insert(place, Known { version, before, access: Arc::clone(access), clusters });
    }

    fn forget(&self, place: &Place) {
        self.0.lock().known.remove(place);
    }

    /// A Cluster is no more, or is reached by no Secret.
    pub fn gone(&self, cluster: &Key) {
        self.0.lock().leave(cluster);
    }

    /// Nobody owns a namespace any more.
    pub fn ends(&self, namespace: &str) {
        let mut inner = self.0.lock();
        inner.known.retain(|(within, _, _), _| within != namespace);
        inner.named.retain(|(within, _), _| within != namespace);
    }

    /// How many Secrets are known.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.0.lock().known.len()
    }
}

/// Reads how a cluster is reached; `None` where its Secret does not exist.
pub async fn read(ctx: &Context, cluster: &Cluster) -> Result<Option<Arc<Access>>, Failure> {
    let (namespace, key) = (meta::namespace(cluster), key(cluster));
    let Some(reference) = cluster.spec.access.kubeconfig() else {
        ctx.accesses.gone(&key);
        return Ok(None);
    };
    let name = reference.name.as_str();
    let place = (namespace.to_owned(), name.to_owned(), reference.key.clone());
    ctx.accesses.names(&key, &place);
    let shown = ctx.stores.secret_versions.of(namespace, name).filter(|_| !requested::is_asked(cluster));
    if let Some(known) = shown.as_ref().and_then(|version| ctx.accesses.at(&key, &place, version)) {
        return Ok(Some(known));
    }
    let Some(found) = secret(ctx, cluster).await? else {
        ctx.accesses.forget(&place);
        return Ok(None);
    };
    let added = finalizers::added(ctx, &found, finalizer::IN_USE).await?;
    let access = Arc::new(Access::of(&found, reference.key.as_deref()));
    let watched = ctx.stores.secret_versions.watches(namespace);
    let read = SecretVersions::version(&found.metadata);
    // Only what was read gets a finalizer: the write names its version.
    let versions = match added {
        Some(meta) => SecretVersions::version(&meta).map(|now| (now, read)),
        None => read.map(|now| (now, None)),
    };
    if let Some(versions) = versions.filter(|_| watched) {
        ctx.accesses.keep(&key, place, versions, &access);
    }
    Ok(Some(access))
}

/// Namespace and name.
pub fn key(cluster: &Cluster) -> Key {
    (meta::namespace(cluster).to_owned(), meta::name(cluster).to_owned())
}

/// Name of the Secret that a cluster is reached with.
pub fn secret_name(cluster: &Cluster) -> Option<&str> {
    cluster.spec.access.kubeconfig().map(|reference| reference.name.as_str())
}

/// True where another Cluster names the same Secret.
pub fn secret_is_shared(ctx: &Context, cluster: &Cluster) -> bool {
    let Some(name) = secret_name(cluster) else { return false };
    let naming = ctx.stores.clusters.indexed(SECRET, &indexes::within(meta::namespace(cluster), name));
    let names = |other: &Cluster| secret_name(other) == Some(name);
    naming.iter().any(|other| meta::uid(other.as_ref()) != meta::uid(cluster) && names(other))
}

/// The Secret as the hub has it now.
pub async fn secret(ctx: &Context, cluster: &Cluster) -> Result<Option<Secret>, Failure> {
    let Some(name) = secret_name(cluster) else { return Ok(None) };
    match sources::object(ctx, meta::namespace(cluster), "Secret", name).await {
        // What does not parse would be quoted.
        Ok(found) => found.map(serde_json::from_value).transpose().map_err(|_| {
            ApiError::Protocol(format!("Secret {name} is not as Kubernetes stores Secrets")).into()
        }),
        Err(error) => {
            namespace_access::refused(ctx, meta::namespace(cluster), &error).await;
            Err(error.into())
        }
    }
}

/// A digest of the Secret's data, so that a connection is renewed when and only when it changed.
fn content_version(data: &BTreeMap<String, Vec<u8>>) -> String {
    let mut hasher = Sha256::new();
    for (key, bytes) in data {
        hasher.update(key.len().to_be_bytes());
        hasher.update(key.as_bytes());
        hasher.update(bytes.len().to_be_bytes());
        hasher.update(bytes);
    }
    hex::encode(hasher.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access() -> Arc<Access> {
        let error = KubeconfigError { reason: "KubeconfigInvalid", message: String::new() };
        Arc::new(Access { secret: "a".to_owned(), way: Err(error) })
    }

    fn place(name: &str) -> Place {
        ("acme".to_owned(), name.to_owned(), None)
    }

    fn cluster(name: &str) -> Key {
        ("acme".to_owned(), name.to_owned())
    }

    #[test]
    fn what_was_read_counts_for_the_version_that_was_read() {
        let (accesses, a) = (Accesses::default(), cluster("a"));
        accesses.keep(&a, place("1"), ("7".to_owned(), None), &access());
        assert!(accesses.at(&a, &place("1"), "7").is_some());
        assert!(accesses.at(&a, &place("1"), "8").is_none() && accesses.at(&a, &place("2"), "7").is_none());
        accesses.forget(&place("1"));
        assert!(accesses.at(&a, &place("1"), "7").is_none());
    }

    #[test]
    fn a_secret_that_got_our_finalizer_counts_as_the_one_that_was_read() {
        let (accesses, a) = (Accesses::default(), cluster("a"));
        accesses.keep(&a, place("1"), ("8".to_owned(), Some("7".to_owned())), &access());
        assert!(accesses.at(&a, &place("1"), "7").is_some(), "the watch is behind");
        assert!(accesses.at(&a, &place("1"), "8").is_some());
        assert!(accesses.at(&a, &place("1"), "9").is_none(), "somebody wrote it since");
    }

    #[test]
    fn a_secret_is_forgotten_with_the_last_cluster_that_names_it() {
        let (accesses, a, b) = (Accesses::default(), cluster("a"), cluster("b"));
        let is_known = |name: &str| accesses.0.lock().known.contains_key(&place(name));
        accesses.names(&a, &place("shared"));
        accesses.keep(&a, place("shared"), ("7".to_owned(), None), &access());
        accesses.names(&b, &place("shared"));
        assert!(accesses.at(&b, &place("shared"), "7").is_some());
        accesses.keep(&a, place("shared"), ("8".to_owned(), None), &access());
        accesses.names(&a, &place("own"));
        accesses.keep(&a, place("own"), ("9".to_owned(), None), &access());
        assert!(is_known("shared") && is_known("own"), "b names it still");
        accesses.gone(&b);
        assert!(!is_known("shared") && is_known("own"));
        accesses.gone(&a);
        assert_eq!(accesses.count(), 0);
        let other = ("other".to_owned(), "a".to_owned());
        for (cluster, within) in [(&a, "acme"), (&other, "other")] {
            let place = (within.to_owned(), "own".to_owned(), None);
            accesses.names(cluster, &place);
            accesses.keep(cluster, place, ("9".to_owned(), None), &access());
        }
        accesses.ends("acme");
        assert!(!is_known("own"));
        assert_eq!((accesses.count(), accesses.0.lock().named.len()), (1, 1));
    }
}
