//! Many clusters behind one listener on loopback: the address that is dialled says which of them answers, so that an idle one costs its
//! connection and nothing else.
//!
//! Real are TCP, TLS, HTTP/2 with watches as open streams, discovery, server-side apply with the fields of each manager, and a kube-system
//! and a claim for each cluster. Not real are scheduling, kubelets, admission, validation, etcd and distance: workloads are ready at once.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use axum::Router;
use emco_crds::conditions::types;
use parking_lot::Mutex;
use rustix::process::{Resource, getrlimit};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::objects::Contents;
use super::store::Store;
use super::{
    Counts, FULL, PROVIDER, Requests, Server, Shared, Written, address, answer, connection, kubeconfig,
    make_provider, name, register_all, so_many_are,
};
use crate::bed::Bed;
use crate::https::configuration;

/// Where each cluster answers the requests of all clusters, counted.
pub const COUNTS: &str = "/counts";
/// Open files of this process besides a connection for each cluster.
const FILES: usize = 128;
/// Connections that may wait to be accepted: all clusters may be dialled at once.
const BACKLOG: u32 = 4096;

/// `emco-e2e fleet`.
#[derive(Debug, Clone, clap::Args)]
pub struct FleetArgs {
    /// Clusters that are simulated.
    #[arg(long, default_value_t = 2000)]
    pub clusters: usize,
    /// TCP port of all clusters, at 127.77.0.1 and the addresses after it; a free one if 0.
    #[arg(long, default_value_t = 0)]
    pub port: u16,
    /// MiB of objects of all clusters together; more are refused.
    #[arg(long, value_name = "MIB", default_value_t = 2048)]
    pub memory: usize,
    /// Where to write the ClusterProvider, Secrets and Clusters, for kubectl apply --server-side.
    #[arg(long, value_name = "FILE")]
    pub write: Option<PathBuf>,
    /// The project that the provider grants its clusters to.
    #[arg(long, default_value = "default")]
    pub project: String,
}

/// Plays clusters until Ctrl-C, and says each half minute what they were asked.
pub async fn run(args: &FleetArgs) -> Result<()> {
    let fleet = Fleet::start(args.clusters, args.port, args.memory << 20)?;
    println!("{} simulated clusters at https://127.77.0.1:{} and after it", args.clusters, fleet.port);
    if let Some(file) = &args.write {
        let manifests = fleet.manifests(&args.project)?;
        std::fs::write(file, manifests.to_string())
            .with_context(|| format!("cannot write {}", file.display()))?;
        println!("kubectl apply --server-side -f {}", file.display());
    }
    let mut said = Counts::default();
    loop {
        tokio::select! {
            ended = tokio::signal::ctrl_c() => return ended.context("Ctrl-C cannot be waited for"),
            () = tokio::time::sleep(Duration::from_secs(30)) => {}
        }
        let counts = fleet.counts();
        if counts != said {
            println!("{} ({} MiB of objects)", counts.json(), fleet.bytes() >> 20);
            said = counts;
        }
    }
}

/// Simulated clusters. They end when this is dropped.
pub struct Fleet {
    port: u16,
    ca: String,
    clusters: Arc<Vec<Simulated>>,
    written: Arc<Mutex<Written>>,
    requests: Arc<Requests>,
    contents: Arc<Contents>,
    _server: JoinSet<()>,
}

struct Simulated {
    store: Shared,
    /// It does not answer.
    is_down: watch::Sender<bool>,
}

impl Fleet {
    /// Starts so many clusters on a port, with at most about so many bytes of objects.
    pub fn start(count: usize, port: u16, most_bytes: usize) -> Result<Self> {
        has_files(getrlimit(Resource::Nofile).current, count)?;
        let (ca, mut tls) = configuration(&[])?;
        tls.alpn_protocols = vec![b"h2".to_vec()];
        let contents = Arc::new(Contents::new(most_bytes));
        let simulated = |number| Simulated {
            store: Arc::new(Mutex::new(Store::new(number, &contents))),
            is_down: watch::Sender::new(false),
        };
        // The last one has an address, too.
        address(count.saturating_sub(1))?;
        let clusters: Arc<Vec<Simulated>> = Arc::new((0..count).map(simulated).collect());
        let socket = tokio::net::TcpSocket::new_v4().context("no socket")?;
        socket.set_reuseaddr(true).context("no socket")?;
        // Each cluster has an address of 127.0.0.0/8: no other network is listened on.
        socket.bind_device(Some(b"lo")).context("the socket cannot be bound to the loopback device")?;
        socket
            .bind(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port).into())
            .with_context(|| format!("port {port} cannot be listened on"))?;
        let listener = socket.listen(BACKLOG).context("cannot listen")?;
        let port = listener.local_addr()?.port();
        let (written, requests) = (Arc::default(), Arc::<Requests>::default());
        let door = Door {
            acceptor: TlsAcceptor::from(Arc::new(tls)),
            clusters: Arc::clone(&clusters),
            written: Arc::clone(&written),
            requests: Arc::clone(&requests),
        };
        let mut server = JoinSet::new();
        server.spawn(door.serve(listener));
        Ok(Self { port, ca, clusters, written, requests, contents, _server: server })
    }

    /// The provider, which grants its clusters to `project` alone, and all clusters, as one list.
    pub fn manifests(&self, project: &str) -> Result<Value> {
        let grants = json!([{"name": "one", "projects": [project], "maxLevel": "Admin"}]);
        let mut items = vec![
            json!({"apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": PROVIDER, "labels": {"emco.io/provider": PROVIDER}}}),
            json!({"apiVersion": "emco.io/v1alpha1", "kind": "ClusterProvider",
                "metadata": {"name": PROVIDER}, "spec": {"grants": grants}}),
        ];
        for number in 0..self.clusters.len() {
            let metadata = json!({"name": name(number), "namespace": PROVIDER});
            let access = json!({"kubeconfigSecretRef": {"name": name(number)}});
            items.push(json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata,
                "stringData": {"kubeconfig": self.kubeconfig(number)?}}));
            items.push(json!({"apiVersion": "emco.io/v1alpha1", "kind": "Cluster", "metadata": metadata,
                "spec": {"access": access}}));
        }
        Ok(json!({"apiVersion": "v1", "kind": "List", "items": items}))
    }

    /// Registers all of them on a hub, with a provider that grants them to `project` alone.
    pub async fn register(&self, bed: &Bed, project: &str) -> Result<()> {
        make_provider(bed, project).await?;
        let kubeconfigs = (0..self.clusters.len()).map(|number| self.kubeconfig(number));
        let kubeconfigs: Vec<String> = kubeconfigs.collect::<Result<_>>()?;
        let access = |name: &str| json!({"kubeconfigSecretRef": {"name": name}});
        register_all(bed, kubeconfigs.into_iter(), access).await
    }

    /// Waits until the operator has reached all of them.
    pub async fn reached(&self, bed: &Bed, limit: Duration) -> Result<()> {
        so_many_are(bed, self.clusters.len(), types::READY, limit).await
    }

    /// Makes one of them vanish, with its connections, or come back.
    pub fn set_down(&self, number: usize, is_down: bool) {
        if let Some(cluster) = self.clusters.get(number) {
            cluster.is_down.send_replace(is_down);
        }
    }

    /// What all of them were asked since the start.
    pub fn counts(&self) -> Counts {
        self.requests.read()
    }

    /// What was written to all of them since the last call, or since they started.
    pub fn take_written(&self) -> Written {
        std::mem::take(&mut *self.written.lock())
    }

    /// About how many bytes their objects take.
    pub fn bytes(&self) -> usize {
        self.contents.bytes()
    }

    /// How many objects each of them has of a namespace: the namespace, and what is in it.
    pub fn objects(&self, namespace: &str) -> Vec<usize> {
        self.clusters.iter().map(|one| one.store.lock().of_namespace(namespace).count()).collect()
    }

    fn kubeconfig(&self, number: usize) -> Result<String> {
        let address = SocketAddr::V4(SocketAddrV4::new(address(number)?, self.port));
        Ok(kubeconfig(&self.ca, address))
    }
}

/// Whether this process may have a connection for each cluster. `most`: files that it may open; `None`: any number.
fn has_files(most: Option<u64>, clusters: usize) -> Result<()> {
    let needed = u64::try_from(clusters + FILES).unwrap_or(u64::MAX);
    ensure!(
        most.is_none_or(|most| most >= needed),
        "{clusters} clusters need {needed} open files, and this process may have {}: raise the limit with `ulimit -n {needed}`, or simulate fewer",
        most.unwrap_or_default()
    );
    Ok(())
}

/// Takes connections for all clusters.
struct Door {
    acceptor: TlsAcceptor,
    clusters: Arc<Vec<Simulated>>,
    written: Arc<Mutex<Written>>,
    requests: Arc<Requests>,
}

impl Door {
    async fn serve(self, listener: TcpListener) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => self.open(stream, &mut connections),
                    Err(_) => tokio::time::sleep(FULL).await,
                },
                // What ended is not kept.
                Some(_) = connections.join_next() => {}
            }
        }
    }

    /// Whoever dials an address of no cluster, or of one that is down, is hung up on.
    fn open(&self, stream: TcpStream, connections: &mut JoinSet<()>) {
        let dialled = stream.local_addr().ok().and_then(number_of);
        let Some(cluster) = dialled.and_then(|number| self.clusters.get(number)) else { return };
        let mut is_down = cluster.is_down.subscribe();
        if *is_down.borrow_and_update() {
            return;
        }
        self.requests.connected();
        let (store, written) = (Arc::clone(&cluster.store), Arc::clone(&self.written));
        let server = Server { store, written, requests: Arc::clone(&self.requests) };
        let router = Router::new().fallback(answer).with_state(server);
        let acceptor = self.acceptor.clone();
        connections.spawn(async move {
            tokio::select! {
                () = connection(stream, acceptor, router) => {}
                _ = is_down.wait_for(|is_down| *is_down) => {}
            }
        });
    }
}

/// The cluster whose address was dialled.
fn number_of(address: SocketAddr) -> Option<usize> {
    let SocketAddr::V4(address) = address else { return None };
    let [127, 77, high, low] = address.ip().octets() else { return None };
    usize::from(u16::from_be_bytes([high, low])).checked_sub(1)
}

#[cfg(test)]
mod tests {
    use emco_controllers::api::{ApiServer as _, ApiServerExt as _, Content, Method, Request};
    use emco_controllers::remote::dialer::{Dialer, DialerSettings, SystemResolver};
    use emco_controllers::remote::{Edge, EdgeSettings, kubeconfig};

    use super::*;

    const MAP: &str = "/api/v1/namespaces/shop/configmaps/one";

    /// The operator's own connection.
    fn connection_to(fleet: &Fleet, number: usize) -> Arc<Edge> {
        let allow_edge_addresses = vec!["127.0.0.0/8".parse().unwrap()];
        let settings = DialerSettings { allow_edge_addresses, ..DialerSettings::default() };
        let dialer = Dialer::new(settings, Arc::new(SystemResolver::new().unwrap()));
        let credentials = kubeconfig::read(fleet.kubeconfig(number).unwrap().as_bytes()).unwrap();
        Edge::new(credentials, dialer, EdgeSettings::default())
    }

    #[test]
    fn the_dialled_address_says_which_cluster_answers() {
        for number in [0, 254, 255, 1999, 65_534] {
            let address = SocketAddr::V4(SocketAddrV4::new(address(number).unwrap(), 6443));
            assert_eq!(number_of(address), Some(number), "{address}");
        }
        assert!(address(65_535).is_err());
        for other in ["127.0.0.1:1", "127.77.0.0:1", "[::1]:1"] {
            assert_eq!(number_of(other.parse().unwrap()), None, "{other}");
        }
    }

    #[test]
    fn too_few_open_files_are_said_before_the_start() {
        assert!(has_files(Some(20_000), 2000).is_ok() && has_files(None, 2000).is_ok());
        let text = has_files(Some(1024), 2000).unwrap_err().to_string();
        assert!(text.contains("ulimit -n 2128") && text.contains("1024"), "{text}");
    }

    #[tokio::test]
    async fn clusters_behind_one_port_are_told_apart_and_can_vanish() {
        let fleet = Fleet::start(3, 0, 1 << 20).unwrap();
        let manifests = fleet.manifests("shop").unwrap();
        assert_eq!(manifests["items"].as_array().unwrap().len(), 2 + 2 * 3);
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "one", "namespace": "shop"}, "data": {"a": "1"}});
        let (first, second) = (connection_to(&fleet, 0), connection_to(&fleet, 1));
        let apply = Request::new(Method::Patch, MAP).query("fieldManager", "emco").body(Content::Apply, &map);
        let answer = first.send(apply).await.unwrap();
        assert_eq!(answer["metadata"]["managedFields"][0]["manager"], "emco");
        assert!(second.get_opt(MAP).await.unwrap().is_none(), "it is another cluster");
        let system = "/api/v1/namespaces/kube-system";
        let uid = |found: Option<Value>| found.unwrap()["metadata"]["uid"].clone();
        let one = uid(first.get_opt(system).await.unwrap());
        assert_ne!(one, uid(second.get_opt(system).await.unwrap()));
        assert_eq!(fleet.take_written().of_objects(), 1);
        assert_eq!((fleet.counts().applies, fleet.objects("shop")), (1, vec![1, 0, 0]));
        fleet.set_down(0, true);
        assert!(first.get_opt(MAP).await.is_err());
        fleet.set_down(0, false);
        assert_eq!(connection_to(&fleet, 0).get_opt(MAP).await.unwrap().unwrap()["data"]["a"], "1");
    }
}
