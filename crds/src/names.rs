//! Every name that EMCO writes on objects: group, labels, annotations, finalizers, field managers. One table; and the names of
//! generated apps.

pub mod generated_app;

/// API group of all kinds.
pub const GROUP: &str = "emco.io";
/// The one served and stored version.
pub const VERSION: &str = "v1alpha1";
/// `apiVersion` of all kinds.
pub const API_VERSION: &str = "emco.io/v1alpha1";
/// Prefix of all keys below. Labels with it on a Cluster are refused.
pub const PREFIX: &str = "emco.io/";

/// Label keys.
pub mod label {
    /// On a Namespace of the hub: the Project that owns it. On one of an edge: the project it was made for.
    pub const PROJECT: &str = "emco.io/project";
    /// On a Namespace of the hub: the `ClusterProvider` that owns it.
    pub const PROVIDER: &str = "emco.io/provider";
    /// The owner hash, on everything applied to an edge and on `AppContexts`, shards and packs.
    pub const OWNER: &str = "emco.io/owner";
    /// Kind of the owner, for people: `kubectl get shard -l emco.io/owner-kind=...`.
    pub const OWNER_KIND: &str = "emco.io/owner-kind";
    /// Name of the owner, for people.
    pub const OWNER_NAME: &str = "emco.io/owner-name";
    /// Revision number of an `AppContext` or pack.
    pub const REVISION: &str = "emco.io/revision";
    /// Slot number of a shard, or of a Secret with kubeconfigs.
    pub const SLOT: &str = "emco.io/slot";
    /// On what a chart's test made on an edge: the owner hash. Such objects have no label of the owner, for they are no part of what
    /// the operator keeps.
    pub const TEST: &str = "emco.io/test";
    /// On a request for a person's certificate on an edge: hash of the logical cloud. It has no label of the owner, for it is no part of
    /// what the operator keeps there.
    pub const CREDENTIAL: &str = "emco.io/credential";

    /// Virtual labels: selectors see them on every cluster, nobody writes them.
    pub mod virtual_ {
        /// Name of the cluster's provider.
        pub const PROVIDER: &str = "emco.io/provider";
        /// Name of the cluster.
        pub const CLUSTER: &str = "emco.io/cluster";
        /// Major and minor version, such as `1.36`; absent before the first contact.
        pub const KUBERNETES_MINOR: &str = "emco.io/kubernetes-minor";
    }
}

/// Annotation keys.
pub mod annotation {
    /// On edge objects: keyed digest of the manifest that was applied.
    pub const MANIFEST: &str = "emco.io/manifest";
    /// On edge objects, for people: `project/name` of the owner.
    pub const PLACED_BY: &str = "emco.io/placed-by";
    /// On edge objects that existed before: released on removal, never deleted.
    pub const ADOPTED: &str = "emco.io/adopted";
    /// On a Namespace of an edge that was made there for an owner and is released: the proof of it, by which the owner takes it again.
    pub const MADE_FOR: &str = "emco.io/made-for";
    /// On a Cluster, `CompositeApp` or `DeploymentIntentGroup`: any new text means "do it now".
    pub const REQUESTED_AT: &str = "emco.io/requestedAt";
    /// On a `DeploymentIntentGroup`: confirms the deletion of exactly this digest.
    pub const CONFIRM: &str = "emco.io/confirm";
    /// On an owner that ends: its `uid@generation`, typed by a person, gives up what cannot be reached in this removal.
    pub const ABANDON: &str = "emco.io/abandon";
    /// On stored objects nothing names any more: since when. The mark of mark and sweep.
    pub const UNREFERENCED_SINCE: &str = "emco.io/unreferenced-since";
    /// On a kept archive, for people: whose it is, the chart and its version.
    pub const CHART: &str = "emco.io/chart";
    /// On a kept archive: its bytes in all parts.
    pub const BYTES: &str = "emco.io/bytes";
    /// On a Namespace: made by this installation, so it may be deleted with its owner.
    pub const MADE_BY: &str = "emco.io/made-by";
    /// On a Secret that `kubectl emco cluster add` or `rotate` wrote: for how long a token was asked for, such as `31536000s`. The
    /// operator asks for as long when it renews the token.
    pub const TOKEN_DURATION: &str = "emco.io/token-duration";
    /// On an `AppContext`: too many clusters failed with it, and it was taken back. A restore without statuses keeps it.
    pub const TAKEN_BACK: &str = "emco.io/taken-back";
}

/// Finalizers.
pub mod finalizer {
    /// On owners of edge objects (`DeploymentIntentGroup`, `LogicalCloud`): the edges are cleaned first.
    pub const TERMINATE: &str = "emco.io/terminate";
    /// On what others refer to, and on kubeconfig Secrets: stays while in use.
    pub const IN_USE: &str = "emco.io/in-use";
    /// On `AppContexts` and `SyncShards`: they are the inventory of the edges.
    pub const INVENTORY: &str = "emco.io/inventory";
}

/// Field managers of server-side apply.
pub mod manager {
    /// The operator's, on the hub.
    pub const OPERATOR: &str = "emco-operator";
    /// The command line's, on the hub.
    pub const CLI: &str = "emco-cli";
    /// Prefix of the manager on edges; the owner hash follows.
    pub const EDGE_PREFIX: &str = "emco-";
    /// Of the proof on a Namespace of an edge that is released. It is no owner's: the Namespace is nobody's then.
    pub const RELEASE: &str = "emco-release";
}

/// Fixed object names.
pub mod object {
    /// Lease of the active operator.
    pub const LEASE: &str = "emco-operator";
    /// Secret in the operator's namespace with `id`, `digest-key`, `random-key`.
    pub const INSTALLATION: &str = "emco-installation";
    /// `ClusterRole` the operator binds to itself in each namespace it owns.
    pub const NAMESPACE_ACCESS: &str = "emco-namespace-access";
    /// The logical cloud a Project keeps, and the one a `DeploymentIntentGroup` means when it names none.
    pub const DEFAULT_LOGICAL_CLOUD: &str = "default";
    /// Namespace on an edge that holds the claim.
    pub const EDGE_NAMESPACE: &str = "emco-system";
    /// Service account in that namespace whose token `kubectl emco cluster add` puts on the hub.
    pub const EDGE_ACCOUNT: &str = "emco-hub";
    /// `ConfigMap` in the operator's namespace with the health rules that users write per kind.
    pub const HEALTH_RULES: &str = "emco-health-rules";
    /// `ConfigMap` on an edge that says which installation it belongs to.
    pub const EDGE_CLAIM: &str = "hub";
    /// `ClusterRole` on an edge with what that account may do in namespaces of logical clouds.
    pub const EDGE_TENANT_ROLE: &str = "emco-hub-tenant";
    /// `ClusterRole` in which the owner of an edge says what tenants may be given at most.
    pub const EDGE_CEILING: &str = "emco-ceiling";
    /// `RoleBinding` of [`EDGE_TENANT_ROLE`] in a namespace of a logical cloud. No other name that EMCO makes has one colon.
    pub const EDGE_TENANT_BINDING: &str = "emco:hub";
    /// `RoleBinding` of [`EDGE_CEILING`], where a logical cloud makes roles: who gives rights away has to hold them.
    pub const EDGE_CEILING_BINDING: &str = "emco:hub-ceiling";
}
