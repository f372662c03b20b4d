//! Names the files of a cluster on a branch. All names are functions of what they name, so nothing has to be remembered of them.

use emco_crds::OwnerKind;
use sha2::{Digest, Sha256};

use super::tree::join;
use crate::identity::{ClusterId, Identity};
use crate::{cloud, order};

/// The folder of all clusters, below that of the `GitTarget`.
pub const CLUSTERS: &str = "clusters";
/// The file that says whose the folder is.
pub const CLAIM: &str = ".emco/installation";
/// The list of files of a folder: what it does not name is never applied.
pub const LIST: &str = "kustomization.yaml";
/// The folder of objects for the agent.
pub const SYNC: &str = "sync";
/// Digits of an owner's hash in names: nobody finds another owner with the same ones, whose files would take the place of the first one's.
const DIGITS: usize = 20;
/// Digits of the digest of what was cut off a name.
const SHORT: usize = 10;
/// Longest name of an object for the agent: Flux makes a label of it.
const LONGEST_LABEL: usize = 63;
/// Longest name of a file, without its ending.
const LONGEST: usize = 180;

/// The folder of a cluster, below that of the `GitTarget`.
pub fn cluster(id: &ClusterId) -> String {
    format!("{CLUSTERS}/{id}")
}

/// The folder of an owner's app, below that of its cluster.
pub fn app(kind: &OwnerKind, namespace: &str, name: &str, app: &str) -> String {
    let owner = owner(kind, namespace, name);
    if *kind == OwnerKind::LogicalCloud && app == cloud::APP { owner } else { join(&owner, app) }
}

/// The folder of an owner, below that of its cluster.
pub fn owner(kind: &OwnerKind, namespace: &str, name: &str) -> String {
    format!("{namespace}/{}-{name}", kind.short())
}

/// The object for the agent of an owner's app, without its ending: a name of an object, too.
pub fn agent_name(owner_hash: &str, app: &str) -> String {
    let digits = owner_hash.get(..DIGITS).unwrap_or(owner_hash);
    let name = format!("emco-{digits}-{app}");
    if name.len() <= LONGEST_LABEL {
        return name;
    }
    let digest = hex::encode(Sha256::digest(app));
    let start = name.get(..LONGEST_LABEL - SHORT - 1).unwrap_or_default();
    format!("{start}-{}", digest.get(..SHORT).unwrap_or_default())
}

/// The file of such an object, below the folder of its cluster.
pub fn agent_file(owner_hash: &str, app: &str) -> String {
    format!("{SYNC}/{}.yaml", agent_name(owner_hash, app))
}

/// The file of an object below the folder of its cluster; `app` is the folder of its app. A namespace of a logical cloud stands among the
/// objects for the agent: applied with them, it is there before what goes into it.
pub fn object(kind: &OwnerKind, app: &str, id: &Identity) -> String {
    if *kind == OwnerKind::LogicalCloud && order::is_namespace(id.kind()) {
        return format!("{SYNC}/emco-namespace-{}.yaml", id.name);
    }
    join(app, &file(id))
}

/// Whether a file of an app's folder is that of a namespace.
pub fn is_namespace(file: &str) -> bool {
    file.starts_with("core-namespace-")
}

/// The name of an object's file: `apps-deployment-web_shop.yaml`.
pub fn file(id: &Identity) -> String {
    let group = if id.group.is_empty() { "core" } else { &id.group };
    let mut name = format!("{group}-{}-{}", id.kind.to_lowercase(), id.name);
    if !id.namespace.is_empty() {
        name.push('_');
        name.push_str(&id.namespace);
    }
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-._".contains(c);
    if name.len() <= LONGEST && name.chars().all(plain) {
        return format!("{name}.yaml");
    }
    // Names of roles may have every character, and capitals are one with small letters on some disks.
    let whole = [&id.group, &id.kind, &id.namespace, &id.name].map(String::as_str).join("\0");
    let digest = hex::encode(Sha256::digest(whole));
    let short: String =
        name.to_lowercase().chars().map(|c| if plain(c) { c } else { '-' }).take(LONGEST - 20).collect();
    format!("{short}-{}.yaml", digest.get(..SHORT).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(group: &str, kind: &str, namespace: &str, name: &str) -> Identity {
        let [group, kind, namespace, name] = [group, kind, namespace, name].map(str::to_owned);
        Identity { group, kind, namespace, name }
    }

    #[test]
    fn files_are_named_after_their_objects() {
        assert_eq!(file(&id("apps", "Deployment", "shop", "web")), "apps-deployment-web_shop.yaml");
        assert_eq!(file(&id("", "Namespace", "", "shop")), "core-namespace-shop.yaml");
        let role = id("rbac.authorization.k8s.io", "ClusterRole", "", "system:web");
        let (one, other) = (file(&role), file(&Identity { name: "system-web".to_owned(), ..role.clone() }));
        assert!(one.starts_with("rbac.authorization.k8s.io-clusterrole-system-web-"), "{one}");
        assert_ne!(one, other);
        let long = file(&id("a.example.org", "Thing", "shop", &"x".repeat(253)));
        assert!(long.len() < 200, "{long}");
    }

    #[test]
    fn folders_are_named_after_owners_and_apps() {
        let cluster = cluster(&ClusterId::new("acme", "berlin-1"));
        assert_eq!(cluster, "clusters/acme/berlin-1");
        let web = app(&OwnerKind::DeploymentIntentGroup, "team-a", "shop", "web");
        assert_eq!(web, "team-a/dig-shop/web");
        let edge = app(&OwnerKind::LogicalCloud, "team-a", "edge", cloud::APP);
        assert_eq!(edge, "team-a/lc-edge");
        let space = id("", "Namespace", "", "shop");
        assert_eq!(object(&OwnerKind::LogicalCloud, &edge, &space), "sync/emco-namespace-shop.yaml");
        assert_eq!(
            object(&OwnerKind::DeploymentIntentGroup, &web, &space),
            "team-a/dig-shop/web/core-namespace-shop.yaml"
        );
        assert_eq!(agent_file("0123456789abcdef", "web"), "sync/emco-0123456789abcdef-web.yaml");
    }

    #[test]
    fn an_object_for_the_agent_has_a_name_that_may_be_a_label() {
        let hash = "0123456789abcdef0123456789abcdef";
        assert_eq!(agent_name(hash, "web"), "emco-0123456789abcdef0123-web");
        let (one, other) = (agent_name(hash, &"a".repeat(63)), agent_name(hash, &"a".repeat(62)));
        assert_eq!((one.len(), other.len()), (63, 63));
        assert_ne!(one, other);
    }
}
