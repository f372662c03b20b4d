//! Runs the benchmarks of an area, and writes a table and `target/bench/AREA.json`.

mod dashboard;
mod fleet;
mod git;
mod hostile;
mod intents;
mod lifecycle;
mod record;
mod spine;
mod store;
mod tenancy;
mod traffic;
mod user;

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail, ensure};
use emco_e2e::operator;

/// The command line.
#[derive(clap::Args)]
pub struct BenchArgs {
    /// What is measured: spine, store, hostile, user, lifecycle, tenancy, intents, traffic, dashboard, git or fleet.
    area: String,
    /// The operator's program; the one beside this program if absent.
    #[arg(long, value_name = "FILE")]
    operator: Option<PathBuf>,
    /// Only this part: of spine sample, fleet, latency, restart or throughput; of hostile an attack such as spin; of user
    /// burst, edits, oncall, clusters or failover; of lifecycle dependency, approval, changes or waves; of tenancy real or simulated; of fleet many or placements. Nothing is written to the file then.
    #[arg(long, value_name = "PART")]
    only: Option<String>,
}

/// Areas whose missed goals are an error, too: what they measure is promised to people.
const PROMISED: [&str; 4] = ["user", "hostile", "tenancy", "dashboard"];

/// Measures. A goal that is missed is in the table.
pub fn run(args: &BenchArgs) -> Result<()> {
    let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
    let entries = runtime.block_on(Box::pin(measured(args)))?;
    if args.only.is_some() {
        record::print(&entries);
        return Ok(());
    }
    let root = operator::root().canonicalize().context("the repository is not where this was built")?;
    let file = root.join("target/bench").join(format!("{}.json", args.area));
    record::write(&file, &entries)?;
    record::print(&entries);
    println!("written to {}", file.display());
    promises_hold(&args.area, &entries)
}

async fn measured(args: &BenchArgs) -> Result<Vec<record::Entry>> {
    let (area, only) = (args.area.as_str(), args.only.as_deref());
    let in_parts = ["spine", "hostile", "user", "lifecycle", "tenancy", "fleet"].contains(&area);
    ensure!(only.is_none() || in_parts, "the benchmark {area} has no parts");
    match area {
        "spine" => Box::pin(spine::measure(&program(args)?, only)).await,
        "hostile" => Box::pin(hostile::measure(&program(args)?, only)).await,
        "store" => Box::pin(store::measure()).await,
        "user" => Box::pin(user::measure(&program(args)?, only)).await,
        "lifecycle" => Box::pin(lifecycle::measure(&program(args)?, only)).await,
        "tenancy" => Box::pin(tenancy::measure(&program(args)?, only)).await,
        "git" => Box::pin(git::measure(&program(args)?)).await,
        "fleet" => Box::pin(fleet::measure(&program(args)?, only)).await,
        "intents" => intents::measure(),
        "traffic" => traffic::measure(),
        "dashboard" => Box::pin(dashboard::measure(&program(args)?)).await,
        area => bail!(
            "there is no benchmark {area}: they are spine, store, hostile, user, lifecycle, tenancy, intents, traffic, dashboard, git and fleet"
        ),
    }
}

fn promises_hold(area: &str, entries: &[record::Entry]) -> Result<()> {
    let missed = record::missed(entries);
    ensure!(!PROMISED.contains(&area) || missed.is_empty(), "missed goals: {}", missed.join(", "));
    Ok(())
}

fn program(args: &BenchArgs) -> Result<PathBuf> {
    let program = args.operator.clone().map_or_else(operator::program, Ok)?;
    ensure!(
        program.is_file(),
        "there is no operator at {}: build it first (`make build`)",
        program.display()
    );
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_that_is_promised_to_people_and_missed_is_an_error() {
        let missed =
            [record::Entry::one("operator_restarts", "restarts", 1.0, "make bench-hostile").at_most(0.0)];
        let fails = ["spine", "store", "hostile", "user", "tenancy", "dashboard"]
            .map(|area| promises_hold(area, &missed).is_err());
        assert_eq!(fails, [false, false, true, true, true, true]);
        promises_hold("hostile", &[]).unwrap();
    }
}
