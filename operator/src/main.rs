//! Runs the operator, or prints CRDs or the version.

use std::process::ExitCode;

use clap::Parser;
use emco_operator::args::{Args, Command};
use emco_operator::{args, telemetry, version};
use tikv_jemallocator::Jemalloc;

mod crds;
mod http;
mod limits;
mod listener;
mod policies;
mod probes;
mod readiness;
mod run;

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let random = provider.secure_random;
    // Before anything can make a TLS client, so that all agree on one provider.
    if provider.install_default().is_err() {
        eprintln!("emco-operator: a TLS provider is installed already");
        return ExitCode::FAILURE;
    }
    let result = match Args::parse().command {
        Command::Crds => crds::print(),
        Command::Version => {
            println!("emco-operator {}", *version::VERSION);
            Ok(())
        }
        Command::Run(args) => {
            // Its first bytes take long: they are gathered while the rest starts.
            std::thread::spawn(move || random.fill(&mut [0; 32]));
            return run::main(*args);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("emco-operator: {error:#}");
            ExitCode::FAILURE
        }
    }
}
