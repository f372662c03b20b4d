//! Runs an etcd on ports of its own, with its data in a folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::net::TcpStream;

use super::ports::Port;
use crate::supervisor::{Process, ProgramSpec, Supervisor};

const PATIENCE: Duration = Duration::from_mins(1);
/// A program that does not listen yet can only be asked again.
const ASK_EVERY: Duration = Duration::from_millis(20);

/// What an etcd needs to start, and to start again with the same address.
pub(super) struct EtcdPlace {
    pub name: String,
    pub data: PathBuf,
    program: PathBuf,
    log: PathBuf,
    clients: Port,
    peers: Port,
}

impl EtcdPlace {
    pub fn new(name: &str, root: &Path, program: &Path) -> Result<Self> {
        Ok(Self {
            name: format!("{name}/etcd"),
            data: root.join(format!("{name}-etcd")),
            program: program.to_owned(),
            log: super::start::log_file(root, &format!("{name}-etcd")),
            clients: Port::reserve()?,
            peers: Port::reserve()?,
        })
    }

    /// The address for API servers.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.clients.number)
    }

    /// Starts it on whatever is in the folder, and answers once it listens.
    pub async fn start(&self, supervisor: &Arc<Supervisor>) -> Result<Process> {
        let (clients, peers) = (self.url(), format!("http://127.0.0.1:{}", self.peers.number));
        let args = [
            "--name=bed".to_owned(),
            format!("--data-dir={}", self.data.display()),
            format!("--listen-client-urls={clients}"),
            format!("--advertise-client-urls={clients}"),
            format!("--listen-peer-urls={peers}"),
            format!("--initial-advertise-peer-urls={peers}"),
            format!("--initial-cluster=bed={peers}"),
            "--socket-reuse-port=true".to_owned(),
            "--unsafe-no-fsync=true".to_owned(),
            "--log-level=error".to_owned(),
        ];
        let spec = ProgramSpec {
            name: self.name.clone(),
            program: self.program.clone(),
            args: args.into(),
            env: std::collections::BTreeMap::new(),
            log: self.log.clone(),
        };
        let process = supervisor.run(spec).await?;
        let listens = async {
            while TcpStream::connect(("127.0.0.1", self.clients.number)).await.is_err() {
                tokio::time::sleep(ASK_EVERY).await;
            }
        };
        tokio::select! {
            how = process.ended() => bail!("{} ended ({how}):\n{}", self.name, process.log_tail(20)),
            listening = tokio::time::timeout(PATIENCE, listens) => {
                listening.with_context(|| format!("{} does not listen:\n{}", self.name, process.log_tail(20)))?;
            }
        }
        Ok(process)
    }
}
