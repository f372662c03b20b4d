//! Chooses the account with which a cluster is asked: the credential that the hub has for it, as far as the user may read that, or
//! a context of the user's own.

use std::io::Write as _;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;

use anyhow::{Context as _, anyhow, bail};
use emco_engine::identity::ClusterId;
use k8s_openapi::api::core::v1::Namespace;
use kube::config::KubeConfigOptions;
use kube::{Api, Client, ResourceExt as _};

use crate::cli::args::deployments::AccountArgs;
use crate::cli::diff::edge;
use crate::cli::hub::{self, Hub, chain};
use crate::cli::output::printable;
use crate::cli::{scheduling, stored};

/// An account of a cluster.
pub struct Account {
    /// A client with it.
    pub client: Client,
    source: KubeconfigSource,
}

/// Where kubectl gets it from.
enum KubeconfigSource {
    /// The text of the hub's Secret.
    Hub(String),
    /// A context of the user's own.
    Own { file: Option<PathBuf>, context: String },
    /// Nowhere: the client is lent.
    Lent,
}

/// The user may not read the credential that the hub has for a cluster.
#[derive(Debug)]
pub struct NoCredential(String);

impl std::fmt::Display for NoCredential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoCredential {}

/// Opens an account of a cluster; `uid` is the identity that the cluster is known to have.
pub async fn open(
    hub: &Hub,
    id: &ClusterId,
    uid: Option<&str>,
    args: &AccountArgs,
) -> anyhow::Result<Account> {
    if let Some(lender) = &hub.lender {
        return Ok(Account { client: lender.client(id, uid)?, source: KubeconfigSource::Lent });
    }
    match &args.edge_context {
        Some(context) => own(hub, id, uid, args.edge_kubeconfig.clone(), context.clone()).await,
        None => of_the_hub(hub, id, uid).await,
    }
}

/// Uses the kubeconfig of the Cluster, which the user reads with their own rights on the hub.
async fn of_the_hub(hub: &Hub, id: &ClusterId, uid: Option<&str>) -> anyhow::Result<Account> {
    let place = scheduling::locate(hub, id.as_str()).await?;
    let namespace = &place.namespace;
    let refused = |what: &str| {
        anyhow::Error::from(NoCredential(format!(
            "you may not get {what} in namespace {namespace} of the hub {}, and the hub's credential for cluster {id} is for those who \
             may: with an account of your own on the cluster, name its context with --edge-context",
            hub.url
        )))
    };
    let cluster = match place.api.get_opt(&place.name).await {
        Ok(Some(cluster)) => cluster,
        Ok(None) => bail!("there is no Cluster {id} on the hub {}", hub.url),
        Err(error) if hub::is_forbidden(&error) => return Err(refused(&format!("Cluster {}", place.name))),
        Err(error) => return Err(hub.sentence(&error, "read cluster", id.as_str())),
    };
    if let Some(secret) = cluster.spec.access.kubeconfig()
        && !stored::may_get(hub, namespace, "secrets", Some(&secret.name)).await?
    {
        return Err(refused(&format!("Secret {}", secret.name)));
    }
    let text = edge::kubeconfig_of(hub, &cluster).await?;
    let known = cluster.status.as_ref().and_then(|status| status.uid.as_deref()).or(uid);
    let (client, _) = edge::open(hub, &cluster, known).await.with_context(|| format!("cluster {id}"))?;
    Ok(Account { client, source: KubeconfigSource::Hub(text) })
}

/// A context of the user's own, if it leads to that cluster.
async fn own(
    hub: &Hub,
    id: &ClusterId,
    uid: Option<&str>,
    file: Option<PathBuf>,
    context: String,
) -> anyhow::Result<Account> {
    let options = KubeConfigOptions { context: Some(context.clone()), ..Default::default() };
    let kubeconfig = hub::kubeconfig(file.as_deref())?;
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .map_err(|error| anyhow!("context {context} cannot be used: {}", chain(&error)))?;
    let client = hub::client(config)?;
    let known = match uid {
        Some(uid) => Some(uid.to_owned()),
        None => known_uid(hub, id).await?,
    };
    let found = Api::<Namespace>::all(client.clone()).get("kube-system").await;
    match (found, known) {
        (Ok(system), Some(known)) if system.uid().as_ref() != Some(&known) => {
            bail!(
                "context {context} leads to another cluster than {id}: the UIDs of their kube-system differ"
            )
        }
        (Ok(_), Some(_)) => {}
        (Err(kube::Error::Api(status)), _) if status.code == 403 => warn(&format!(
            "whether context {context} leads to {id} is not checked: you may not get namespace kube-system there"
        )),
        (Err(error), _) => return Err(edge::failed(&error).context(format!("context {context}"))),
        (Ok(_), None) => warn(&format!(
            "whether context {context} leads to {id} is not checked: you may not read Cluster {id} on the hub, or it was not looked at yet"
        )),
    }
    Ok(Account { client, source: KubeconfigSource::Own { file, context } })
}

/// The identity of a Cluster, where the user may read it.
async fn known_uid(hub: &Hub, id: &ClusterId) -> anyhow::Result<Option<String>> {
    let place = scheduling::locate(hub, id.as_str()).await?;
    match place.api.get_opt(&place.name).await {
        Ok(Some(cluster)) => Ok(cluster.status.and_then(|status| status.uid)),
        Ok(None) => bail!("there is no Cluster {id} on the hub {}", hub.url),
        Err(error) if hub::is_forbidden(&error) => Ok(None),
        Err(error) => Err(hub.sentence(&error, "read cluster", id.as_str())),
    }
}

fn warn(text: &str) {
    eprintln!("warning: {}", printable(text));
}

impl Account {
    /// Becomes kubectl. Comes back where that cannot be.
    pub fn replace_by_kubectl(&self, words: &[String]) -> anyhow::Error {
        let mut command = std::process::Command::new("kubectl");
        let _kept = match &self.source {
            KubeconfigSource::Hub(text) => match in_memory(text) {
                Ok(file) => {
                    command.env("KUBECONFIG", format!("/proc/self/fd/{}", file.as_raw_fd()));
                    Some(file)
                }
                Err(error) => return error,
            },
            KubeconfigSource::Own { file, context } => {
                command.args(["--context", context]);
                if let Some(file) = file {
                    command.env("KUBECONFIG", file);
                }
                None
            }
            KubeconfigSource::Lent => return anyhow!("a lent client runs no kubectl"),
        };
        let error = command.args(words).exec();
        if error.kind() == std::io::ErrorKind::NotFound {
            return anyhow!("there is no kubectl in the PATH, and this command needs it");
        }
        anyhow!("kubectl cannot be run: {error}")
    }
}

/// A file that is in memory alone, for this process and what it becomes: no copy of the credential is left behind, however it ends.
#[cfg(target_os = "linux")]
fn in_memory(text: &str) -> anyhow::Result<OwnedFd> {
    let made = rustix::fs::memfd_create("kubeconfig", rustix::fs::MemfdFlags::empty());
    let mut file = std::fs::File::from(made.context("no memory for a kubeconfig")?);
    file.write_all(text.as_bytes()).context("no memory for a kubeconfig")?;
    Ok(file.into())
}

/// Elsewhere it would be a file on a disk.
#[cfg(not(target_os = "linux"))]
fn in_memory(_: &str) -> anyhow::Result<OwnedFd> {
    bail!(
        "on this system the hub's credential is not given to kubectl: name a context of your own with --edge-context"
    )
}
