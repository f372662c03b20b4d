//! Arguments of the command that registers a cluster.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

use super::words::{duration, label};
use super::{Format, HubArgs};

/// What the stored credential may do on the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Level {
    /// Everything: charts of level Admin may hold any object.
    Admin,
    /// What logical clouds of level Standard need: namespaces of theirs, and nothing in others.
    Standard,
    /// The same and what logical clouds of level Privileged need: reads of all, and bindings of roles that --may-bind names.
    Privileged,
}

impl Level {
    /// As objects have it.
    pub const fn stored(self) -> emco_crds::fields::Level {
        match self {
            Self::Admin => emco_crds::fields::Level::Admin,
            Self::Standard => emco_crds::fields::Level::Standard,
            Self::Privileged => emco_crds::fields::Level::Privileged,
        }
    }
}

/// Credentials that a cluster issues to people, as `credentials.type` of a logical cloud has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum People {
    /// Certificates: who may approve them can be anybody on the cluster.
    #[value(name = "ClientCertificate")]
    ClientCertificate,
    /// Tokens of service accounts in namespaces of logical clouds.
    #[value(name = "ServiceAccountToken")]
    ServiceAccountToken,
}

/// Which kind of token is stored on the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TokenKind {
    /// Bound; a token Secret where the cluster only gives bound tokens that end much sooner than asked for.
    Auto,
    /// Bound to the service account, with an end.
    Bound,
    /// A token Secret: without an end, until the Secret is deleted.
    Secret,
}

/// `kubectl emco cluster add`. Here `--kubeconfig` and `--context` are those of the cluster that is added.
#[derive(clap::Args, Debug)]
#[command(group(clap::ArgGroup::new("edge").required(true).multiple(true).args(["kubeconfig", "context"])))]
pub struct AddArgs {
    /// The cluster's name, as PROVIDER/CLUSTER, or CLUSTER with --provider.
    #[arg(value_name = "PROVIDER/CLUSTER")]
    pub name: String,
    /// Its provider, where the name does not say it.
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,
    /// Kubeconfig of the cluster to add; KUBECONFIG if not given.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the cluster to add.
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Address of the API server for the hub, where it is not the one of the kubeconfig.
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
    /// File with the authority of the API server in PEM, where the kubeconfig has none.
    #[arg(long, value_name = "FILE")]
    pub certificate_authority: Option<PathBuf>,
    /// Labels of the Cluster, `tier=edge,region=eu`; repeat for more.
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',', value_parser = label)]
    pub labels: Vec<(String, String)>,
    /// What the stored credential may do on the cluster; Standard if not given, unless --cluster-role is.
    #[arg(long, value_enum, ignore_case = true)]
    pub level: Option<Level>,
    /// Nothing is written to the cluster but through this `GitTarget` of the provider: the stored credential may only read, and Flux on the
    /// cluster follows a folder of the branch.
    #[arg(long, value_name = "TARGET", conflicts_with_all = ["level", "may_bind", "people"])]
    pub git: Option<String>,
    /// With --git: Secret on the cluster, beside Flux, with a login that may read the repository; emco-git if not given and the target has a
    /// login.
    #[arg(long, value_name = "NAME", requires = "git")]
    pub git_secret: Option<String>,
    /// Bind this role of the cluster (a cluster role) instead of one that the command makes.
    #[arg(long, value_name = "NAME")]
    pub cluster_role: Option<String>,
    /// Below level Admin: a cluster role that permissions of logical clouds may name, besides emco-ceiling, or admin where there is no
    /// emco-ceiling; repeat for more.
    #[arg(long, value_name = "NAME")]
    pub may_bind: Vec<String>,
    /// Below level Admin: which credentials the cluster issues to people of logical clouds; none if not given.
    #[arg(long, value_enum, ignore_case = true, value_delimiter = ',')]
    pub people: Vec<People>,
    /// Which kind of token is stored on the hub.
    #[arg(long, value_enum, ignore_case = true, default_value = "Auto")]
    pub token: TokenKind,
    /// How long a bound token is asked for.
    #[arg(long, value_name = "DURATION", default_value = "8760h", value_parser = duration)]
    pub token_duration: Duration,
    /// With --secret-file: make a new token although the stored one still works. On the hub, kubectl emco cluster rotate does it.
    #[arg(long)]
    pub renew: bool,
    /// Change nothing; print what would be made, without a token.
    #[arg(long)]
    pub dry_run: bool,
    /// Print the Cluster for Git instead of applying it. The Secret goes to the hub, or to --secret-file.
    #[arg(short, long, value_enum)]
    pub output: Option<Format>,
    /// Write the Secret into this file, readable to nobody else, instead of applying it: to be encrypted for Git.
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
    /// How long to wait until the operator says that it reaches the cluster; 0s does not wait.
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration)]
    pub timeout: Duration,
    /// Kubeconfig of the hub; KUBECONFIG, else ~/.kube/config, if not given.
    #[arg(long, value_name = "FILE")]
    pub hub_kubeconfig: Option<PathBuf>,
    /// Context of the hub; the current one if not given.
    #[arg(long, value_name = "NAME")]
    pub hub_context: Option<String>,
    /// The operator's own namespace on the hub.
    #[arg(long, env = "EMCO_NAMESPACE", default_value = "emco-system", value_name = "NAME")]
    pub operator_namespace: String,
}

impl AddArgs {
    /// Where the hub is.
    pub fn hub(&self) -> HubArgs {
        HubArgs {
            kubeconfig: self.hub_kubeconfig.clone(),
            context: self.hub_context.clone(),
            as_user: None,
            as_group: Vec::new(),
            operator_namespace: self.operator_namespace.clone(),
        }
    }

    /// The level, and Standard where none is named. What a role of the cluster's own may do is its owner's to say, and an account that only
    /// reads has no level: nothing of one below Admin is made for them.
    pub fn level(&self) -> Level {
        let given = self.cluster_role.is_some() || self.git.is_some();
        let absent = if given { Level::Admin } else { Level::Standard };
        self.level.unwrap_or(absent)
    }

    /// The labels, the last of each key.
    pub fn labels(&self) -> BTreeMap<String, String> {
        self.labels.iter().cloned().collect()
    }
}
