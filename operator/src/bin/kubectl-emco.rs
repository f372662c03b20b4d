//! `kubectl emco`: kubectl finds this program by its name.

use std::process::ExitCode;

fn main() -> ExitCode {
    emco_operator::cli::main()
}
