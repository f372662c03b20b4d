//! Prints what the account of a level has on a cluster: each rule below what it is for.

use anyhow::Context as _;
use emco_engine::identity::ClusterId;

use super::account::Account;
use super::confined::{Asked, Confined};
use super::target::{self, Target};
use crate::cli::args::Level;
use crate::cli::args::deployments::ManifestFormat;
use crate::cli::args::role::RoleArgs;
use crate::cli::diff::edge;
use crate::cli::role::show;
use crate::cli::{hub, print};

/// `kubectl emco role --level`.
pub async fn run(args: &RoleArgs, level: Level) -> anyhow::Result<()> {
    let target = target(args).await?;
    let asked = Asked { level, may_bind: &args.may_bind, people: &args.people };
    let account = Account::new(None, Confined::read(&target, &asked).await?);
    let objects = account.objects();
    match args.output {
        ManifestFormat::Yaml => {
            let heading =
                format!("What the hub has on {} at level {level:?}; kinds as it serves them.", target.server);
            print(&show::text(&heading, &objects))
        }
        ManifestFormat::Json => print(&(serde_json::to_string_pretty(&show::list(&objects))? + "\n")),
    }
}

/// The cluster that is asked what it serves: by a context of the person's own, or as the hub reaches it.
async fn target(args: &RoleArgs) -> anyhow::Result<Target> {
    if let Some(context) = &args.account.edge_context {
        let client = target::person(args.account.edge_kubeconfig.as_deref(), Some(context)).await?;
        return Ok(target::asked(client, context));
    }
    let id = args.part.cluster.first().context(
        "which kinds there are, a cluster says: name one that is registered with --cluster PROVIDER/CLUSTER, or another one with \
         --edge-context",
    )?;
    let id = ClusterId::parse(id).context("write PROVIDER/CLUSTER, such as acme/berlin")?;
    let hub = hub::connect(&args.hub).await?;
    let edge = edge::connect(&hub, &id, None, String::new()).await?;
    Ok(target::asked(edge.client, id.as_str()))
}
