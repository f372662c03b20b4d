//! Measures what a branch costs that 100 clusters are written to through: commits, bytes, time, and requests while nothing happens.
//!
//! The clusters are servers that only store what they are sent; an agent for all of them reads the branch past the server of the repository,
//! so that the requests there are the operator's.

mod agent;
mod update;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use emco_e2e::bed::{Audit, Bed, BedSpec, Parts, PlaneSpec};
use emco_e2e::fake_edges::{self, FakeEdges};
use emco_e2e::git_server::GitServer;
use emco_e2e::operator::{self, Operator, settled};

use super::record::Entry;
use super::spine::count;
use super::spine::quiet::{Marks, by_resource};
use agent::Agent;
use update::{Update, Updates};

/// What makes this.
const HOW: &str = "make bench-git";
const CLUSTERS: usize = 100;
/// Updates, one after the other.
const ROUNDS: usize = 10;
/// Project, its namespace and its deployment.
const NAME: &str = "branch";
/// The target, which looks at the branch so often.
const TARGET: &str = "fleet";
const INTERVAL: Duration = Duration::from_secs(10);
/// At rest.
const REST: Duration = Duration::from_mins(2);
/// How long all clusters may take to be registered.
const REGISTERED: Duration = Duration::from_mins(5);
const NOTE: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: note}
data: {version: {{ .Values.version | quote }}}
";

/// Measures on a bed of its own.
pub async fn measure(program: &Path) -> Result<Vec<Entry>> {
    let hub = PlaneSpec::new("hub", Parts::Controllers).audit(Audit::Writes);
    let bed = Bed::start(BedSpec::default().with(hub)).await?;
    // What nobody refers to any more is collected at once, and not while nothing is to happen.
    let operator = Operator::start_in(&bed, program, &[("EMCO_UNREFERENCED_SECONDS", "1")]).await?;
    let entries = operator::unless_ended(operator.process(), Box::pin(on(&bed))).await;
    drop(operator);
    bed.end().await?;
    entries
}

async fn on(bed: &Bed) -> Result<Vec<Entry>> {
    let (server, fakes) =
        (Arc::new(GitServer::bare(None).await?), Arc::new(FakeEdges::start(CLUSTERS).await?));
    register(bed, &server, &fakes).await?;
    let _agent = Agent::follow(Arc::clone(&server), fakes, bed.dir().join("branch"));
    operator::project(bed, NAME).await?;
    let files = [("values.yaml", "version: none\n"), ("templates/note.yaml", NOTE)];
    let charts = [operator::chart("note", "1.0.0", &files)?];
    operator::chart_map(bed, NAME, "charts", &charts).await?;
    let placement = format!("placement: {{allOf: [{{provider: {}, selector: {{}}}}]}}", fake_edges::PROVIDER);
    bed.hub().kubectl().apply(&operator::deployment(NAME, NAME, &charts, &placement)).await?;
    operator::wait(bed, NAME, NAME, settled).await?;
    println!("the first revision is everywhere");
    let updates = Updates { bed, server: &server, digs: bed.hub().api(NAME).await? };
    let mut measured = Vec::new();
    for round in 1..=ROUNDS {
        Marks::now(bed, &["hub"])?.until_quiet().await?;
        let update = updates.change(&format!("v{round}")).await?;
        println!("{round} of {ROUNDS}: {update}");
        measured.push(update);
    }
    let mut entries = of_updates(&measured)?;
    Marks::now(bed, &["hub"])?.until_quiet().await?;
    entries.extend(at_rest(bed, &server).await?);
    Ok(entries)
}

/// Makes the target, and registers the clusters that are written to through it.
async fn register(bed: &Bed, server: &GitServer, fakes: &FakeEdges) -> Result<()> {
    fake_edges::make_provider(bed, NAME).await?;
    let target = format!(
        "
apiVersion: emco.io/v1alpha1
kind: GitTarget
metadata: {{name: {TARGET}, namespace: {}}}
spec: {{url: {}, branch: main, folder: hub, interval: {}s}}
",
        fake_edges::PROVIDER,
        server.url(),
        INTERVAL.as_secs()
    );
    bed.hub().kubectl().apply(&target).await?;
    fakes.register_through_git(bed, TARGET).await?;
    fakes.seen(bed, REGISTERED).await
}

fn of_updates(measured: &[Update]) -> Result<Vec<Entry>> {
    let most = |name: &str, unit: &str, samples: Vec<f64>, goal: f64| {
        let value = samples.iter().copied().fold(0.0, f64::max);
        Entry { samples, ..Entry::one(name, unit, value, HOW) }.at_most(goal)
    };
    let all = |of: fn(&Update) -> f64| measured.iter().map(of).collect::<Vec<f64>>();
    let seconds = Entry::median("targets_to_moved_ref_s_100_clusters", "s", all(|one| one.seconds), HOW);
    Ok(vec![
        most("commits_per_update_100_clusters", "commits", all(|one| count(one.commits)), 1.0),
        most("pushed_bytes_per_update_100_clusters", "bytes", all(|one| count(one.bytes)), 8192.0),
        seconds.context("nothing was measured")?.at_most(1.0),
    ])
}

/// What happens while nothing is to happen.
async fn at_rest(bed: &Bed, server: &GitServer) -> Result<Vec<Entry>> {
    let marks = Marks::now(bed, &["hub"])?;
    let before = commits(server).await?;
    server.asked();
    tokio::time::sleep(REST).await;
    let (asked, made, wrote) =
        (server.asked(), commits(server).await?.saturating_sub(before), marks.writes()?);
    println!(
        "in {} s at rest: {} requests, {made} commits; the hub {}",
        REST.as_secs(),
        asked.len(),
        by_resource(&wrote)
    );
    let looks = REST.as_secs_f64() / INTERVAL.as_secs_f64();
    let requests = Entry::one("requests_per_target_and_interval", "", count(asked.len()) / looks, HOW);
    Ok(vec![
        Entry::one("commits_at_rest", "commits", count(made), HOW).at_most(0.0),
        Entry::one("hub_writes_at_rest", "writes", count(wrote.len()), HOW).at_most(0.0),
        requests.at_most(1.0),
    ])
}

/// Commits of the branch by now.
async fn commits(server: &GitServer) -> Result<usize> {
    Ok(server.git(&["rev-list", "--count", "main"]).await?.parse()?)
}
