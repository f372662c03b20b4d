//! In: the name of an area. Out: its measurements, as a table and in `target/bench/AREA.json`.

mod record;
mod spine;
mod store;

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail, ensure};
use emco_e2e::operator;

/// The command line.
#[derive(clap::Args)]
pub struct BenchArgs {
    /// What is measured: spine or store.
    area: String,
    /// The operator's program; the one beside this program if absent.
    #[arg(long, value_name = "FILE")]
    operator: Option<PathBuf>,
    /// Only this part of spine: sample, fleet, latency or throughput. Nothing is written to the file then.
    #[arg(long, value_name = "PART")]
    only: Option<String>,
}

/// Measures. A goal that is missed is no error: it is in the table.
pub fn run(args: &BenchArgs) -> Result<()> {
    let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
    let entries = match args.area.as_str() {
        "spine" => {
            let program = args.operator.clone().map_or_else(operator::program, Ok)?;
            ensure!(
                program.is_file(),
                "there is no operator at {}: build it first (`make build`)",
                program.display()
            );
            runtime.block_on(Box::pin(spine::measure(&program, args.only.as_deref())))?
        }
        "store" => {
            ensure!(args.only.is_none(), "the benchmark store has no parts");
            runtime.block_on(Box::pin(store::measure()))?
        }
        area => bail!("there is no benchmark {area}: they are spine and store"),
    };
    if args.only.is_some() {
        record::print(&entries);
        return Ok(());
    }
    let root = operator::root().canonicalize().context("the repository is not where this was built")?;
    let file = root.join("target/bench").join(format!("{}.json", args.area));
    record::write(&file, &entries)?;
    record::print(&entries);
    println!("written to {}", file.display());
    Ok(())
}
