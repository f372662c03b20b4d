//! Prints a tree whenever it differs from the one before.

use anyhow::bail;
use emco_crds::{DeploymentIntentGroup, SyncShard};
use jiff::Timestamp;

use super::feed::Feed;
use super::filter::{Filter, absent};
use super::tree::Tree;
use super::{Scope, show};
use crate::cli::args::Format;
use crate::cli::hub::Hub;
use crate::cli::output::printable;
use crate::cli::pulse;
use crate::cli::{Outcome, print};

/// Looks until interrupted.
pub async fn run(
    hub: &Hub,
    scope: &Scope,
    filter: &Filter,
    format: Option<Format>,
) -> anyhow::Result<Outcome> {
    // A wrong name or a missing right is an error now, not something to wait for.
    {
        let (groups, shards) = super::read(hub, scope).await?;
        if let Some(absent) = absent(&groups, &shards, filter) {
            bail!("{absent}");
        }
    }
    let mut feed = Feed::new(hub, scope, pulse::read(hub).await);
    let (mut told, mut warned) = (None, None);
    let mut interrupted = std::pin::pin!(tokio::signal::ctrl_c());
    loop {
        if feed.is_complete() {
            let all: Vec<DeploymentIntentGroup> = feed.groups.seen.values().cloned().collect();
            let rows: Vec<SyncShard> = feed.rows().cloned().collect();
            let tree = Tree::of(&all, &rows, feed.pulse(), filter);
            if told.as_ref() != Some(&tree) {
                print(&text(&tree, format)?)?;
                told = Some(tree);
            }
        }
        let broken = feed.broken().map(str::to_owned);
        if broken != warned {
            if let Some(broken) = &broken {
                eprintln!("warning: {}", printable(broken));
            }
            warned = broken;
        }
        tokio::select! {
            changed = feed.changed() => changed?,
            _ = &mut interrupted => return Ok(Outcome::AsWanted),
        }
    }
}

/// One tree of many: JSON in one line, else text after a line with the time.
fn text(tree: &Tree, format: Option<Format>) -> anyhow::Result<String> {
    match format {
        Some(Format::Json) => Ok(serde_json::to_string(tree)? + "\n"),
        Some(Format::Yaml) => Ok(format!("---\n{}", serde_yaml::to_string(tree)?)),
        Some(Format::Wide) | None => {
            let now = Timestamp::now();
            let wide = format == Some(Format::Wide);
            Ok(format!("--- {now:.0}\n{}", show::text_with_warning(tree, wide)))
        }
    }
}
