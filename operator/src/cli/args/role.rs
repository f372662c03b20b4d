//! Arguments of the command that prints the least roles of deployments.

use clap::{ArgGroup, Args};

use super::HubArgs;
use super::add::{Level, People};
use super::deployments::{AccountArgs, ManifestFormat, PartArgs};
use super::words::Deployment;

/// `kubectl emco role`.
#[derive(Args, Debug)]
#[command(group(ArgGroup::new("of").required(true)))]
pub struct RoleArgs {
    /// Where the hub is.
    #[command(flatten)]
    pub hub: HubArgs,
    /// Namespace on the hub; that of the context if not given.
    #[arg(short, long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// A deployment intent group, as NAME, dig/NAME or PROJECT/NAME.
    #[arg(value_name = "DEPLOYMENT", group = "of")]
    pub deployment: Option<Deployment>,
    /// All deployments of this project together.
    #[arg(long, value_name = "NAME", group = "of", conflicts_with = "namespace")]
    pub project: Option<String>,
    /// The permissions that its logical cloud needs instead, with the level that takes them; also where the plan is refused.
    #[arg(
        long,
        requires = "deployment",
        conflicts_with_all = ["project", "level", "cluster", "app", "by_name", "serviceaccount", "user", "edge_context"]
    )]
    pub permissions: bool,
    /// What the hub's account has on a cluster at this level, as `cluster add` makes it; for --cluster, or --edge-context.
    #[arg(long, value_enum, ignore_case = true, group = "of", conflicts_with_all = ["namespace", "app", "by_name", "serviceaccount", "user"])]
    pub level: Option<Level>,
    /// With --level: the account with which the cluster is asked what it serves.
    #[command(flatten)]
    pub account: AccountArgs,
    /// With --level: a cluster role that permissions of logical clouds may name, as for `cluster add`; repeat for more.
    #[arg(long, value_name = "NAME", requires = "level")]
    pub may_bind: Vec<String>,
    /// With --level: which credentials the cluster issues to people, as for `cluster add`.
    #[arg(long, value_enum, ignore_case = true, value_delimiter = ',', requires = "level")]
    pub people: Vec<People>,
    /// Which part of them.
    #[command(flatten)]
    pub part: PartArgs,
    /// Name the objects in rules to read, make, change and delete them: a new object needs a new role.
    #[arg(long)]
    pub by_name: bool,
    /// Bind the roles to this service account of the cluster.
    #[arg(long, value_name = "NAMESPACE:NAME", value_parser = account, conflicts_with = "user")]
    pub serviceaccount: Option<Account>,
    /// Bind the roles to this user of the cluster.
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// How the roles are written.
    #[arg(short, long, value_enum, default_value = "yaml")]
    pub output: ManifestFormat,
}

/// A service account of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

fn account(text: &str) -> Result<Account, String> {
    match text.split_once(':') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains(':') => {
            Ok(Account { namespace: namespace.to_owned(), name: name.to_owned() })
        }
        _ => Err("write NAMESPACE:NAME".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_written_as_kubectl_has_it() {
        let wanted = Account { namespace: "emco-system".to_owned(), name: "emco".to_owned() };
        assert_eq!(account("emco-system:emco"), Ok(wanted));
        for bad in ["emco", ":emco", "emco-system:", "a:b:c", ""] {
            assert!(account(bad).is_err_and(|why| why.contains("NAMESPACE:NAME")), "{bad}");
        }
    }
}
