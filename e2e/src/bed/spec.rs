//! Says which control planes a test wants.

use std::collections::BTreeMap;

/// The control planes of a bed.
#[derive(Debug, Clone, Default)]
pub struct BedSpec {
    pub(super) planes: Vec<PlaneSpec>,
    pub(super) helm: bool,
}

impl BedSpec {
    /// A bed with one plane called `hub`: API server and controller-manager.
    pub fn hub() -> Self {
        Self::default().with(PlaneSpec::new("hub", Parts::Controllers))
    }

    /// A bed with nothing but one API server called `hub`: the quickest to start.
    pub fn bare_hub() -> Self {
        Self::default().with(PlaneSpec::new("hub", Parts::ApiServer))
    }

    /// Adds a plane.
    #[must_use]
    pub fn with(mut self, plane: PlaneSpec) -> Self {
        self.planes.push(plane);
        self
    }

    /// Adds full edges with one node each.
    #[must_use]
    pub fn edges(mut self, names: &[&str]) -> Self {
        self.planes.extend(names.iter().map(|name| PlaneSpec::edge(name)));
        self
    }

    /// Also finds or builds Helm, the reference renderer.
    #[must_use]
    pub fn with_helm(mut self) -> Self {
        self.helm = true;
        self
    }
}

/// The controllers of every [`PlaneSpec::light`].
const OF_NAMESPACES: &[&str] = &[
    "namespace-controller",
    "serviceaccount-controller",
    "root-ca-certificate-publisher-controller",
    "clusterrole-aggregation-controller",
];

/// One control plane.
#[derive(Debug, Clone)]
pub struct PlaneSpec {
    pub(super) name: String,
    pub(super) parts: Parts,
    pub(super) oldest: bool,
    pub(super) nodes: Vec<NodeSpec>,
    pub(super) etcd: Etcd,
    pub(super) audit: Audit,
    pub(super) proxied: bool,
    pub(super) api_flags: Vec<String>,
    pub(super) controller_flags: Vec<String>,
    pub(super) memory_mib: u32,
}

/// MiB from which on a program collects garbage more often: many planes share a machine.
const MEMORY_MIB: u32 = 600;

impl PlaneSpec {
    /// A plane without nodes, with the shared etcd, no audit log and no proxy. The name is a DNS label.
    pub fn new(name: &str, parts: Parts) -> Self {
        Self {
            name: name.to_owned(),
            parts,
            oldest: false,
            nodes: Vec::new(),
            etcd: Etcd::Shared,
            audit: Audit::Off,
            proxied: false,
            api_flags: Vec::new(),
            controller_flags: Vec::new(),
            memory_mib: MEMORY_MIB,
        }
    }

    /// A plane on which namespaces get what they need and go, the roles `view`, `edit` and `admin` have their rules, and of
    /// kube-controller-manager nothing else runs but these controllers. Those left out would list and watch every kind.
    pub fn light(name: &str, more: &[&str]) -> Self {
        let controllers = [OF_NAMESPACES, more].concat().join(",");
        Self::new(name, Parts::Controllers).controller_flag(&format!("--controllers={controllers}"))
    }

    /// A full plane with one node, on which charts run to the end.
    pub fn edge(name: &str) -> Self {
        Self::new(name, Parts::Full).node(NodeSpec::new(&format!("{name}-1")))
    }

    /// Adds a node. Only full planes have something that plays it.
    #[must_use]
    pub fn node(mut self, node: NodeSpec) -> Self {
        self.nodes.push(node);
        self
    }

    /// Replaces the nodes.
    #[must_use]
    pub fn nodes(mut self, nodes: Vec<NodeSpec>) -> Self {
        self.nodes = nodes;
        self
    }

    /// Gives it the API server of the oldest version of Kubernetes that hubs and edges may have.
    #[must_use]
    pub fn oldest(mut self) -> Self {
        self.oldest = true;
        self
    }

    /// Gives the plane an etcd of its own: needed to wipe, restore or measure it.
    #[must_use]
    pub fn own_etcd(mut self) -> Self {
        self.etcd = Etcd::Own;
        self
    }

    /// Keeps an audit log.
    #[must_use]
    pub fn audit(mut self, audit: Audit) -> Self {
        self.audit = audit;
        self
    }

    /// Puts a proxy in front: the kubeconfigs handed out lead through it, the test's own clients do not.
    #[must_use]
    pub fn proxied(mut self) -> Self {
        self.proxied = true;
        self
    }

    /// Adds a flag of kube-apiserver, such as `--runtime-config=api/beta=true`.
    #[must_use]
    pub fn api_flag(mut self, flag: &str) -> Self {
        self.api_flags.push(flag.to_owned());
        self
    }

    /// Gives each of its programs more memory than many planes on one machine may have: a hub with more objects than that has room for
    /// would collect garbage all the time.
    #[must_use]
    pub fn memory_mib(mut self, memory_mib: u32) -> Self {
        self.memory_mib = memory_mib;
        self
    }

    /// Adds a flag of kube-controller-manager, such as `--cluster-signing-duration=60s`.
    #[must_use]
    pub fn controller_flag(mut self, flag: &str) -> Self {
        self.controller_flags.push(flag.to_owned());
        self
    }
}

/// Which programs a plane consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Parts {
    /// Objects are stored and validated. Nothing acts on them: a deleted namespace stays Terminating.
    ApiServer,
    /// Also kube-controller-manager: namespaces go, owned objects are collected, Deployments make Pods.
    Controllers,
    /// Also kube-scheduler and kwok, storage and load balancers: Pods run.
    Full,
}

/// Where a plane keeps its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Etcd {
    /// In one etcd for all such planes, under a prefix of its own.
    Shared,
    /// In an etcd of its own.
    Own,
}

/// What a plane writes down of the requests it gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audit {
    /// Nothing.
    Off,
    /// Who wrote what.
    Writes,
    /// Who wrote or read what.
    All,
}

/// A node that kwok plays.
#[derive(Debug, Clone)]
pub struct NodeSpec {
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) capacity: Capacity,
}

impl NodeSpec {
    /// A node with 8 CPUs, 32 GiB and room for 110 Pods, without labels but those that every node has.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), labels: BTreeMap::new(), capacity: Capacity::default() }
    }

    /// Adds a label.
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Sets what the node has room for.
    #[must_use]
    pub fn capacity(mut self, capacity: Capacity) -> Self {
        self.capacity = capacity;
        self
    }
}

/// What a node has room for, as Kubernetes quantities.
#[derive(Debug, Clone)]
pub struct Capacity(pub(super) BTreeMap<String, String>);

impl Default for Capacity {
    fn default() -> Self {
        Self::new("8", "32Gi", "110")
    }
}

impl Capacity {
    /// CPUs, memory and Pods, beside 256 GiB of ephemeral storage.
    pub fn new(cpu: &str, memory: &str, pods: &str) -> Self {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        // Every kubelet names its disk, and real charts ask for some of it.
        let disk = pair("ephemeral-storage", "256Gi");
        Self(BTreeMap::from([pair("cpu", cpu), pair("memory", memory), pair("pods", pods), disk]))
    }

    /// Adds an extended resource, such as `example.com/gpu`.
    #[must_use]
    pub fn extended(mut self, resource: &str, quantity: &str) -> Self {
        self.0.insert(resource.to_owned(), quantity.to_owned());
        self
    }
}
