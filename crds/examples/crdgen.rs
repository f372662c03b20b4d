//! A folder in, one CRD file per kind in it, and a kustomization that lists them.
//!
//! `cargo run -q -p emco-crds --example crdgen -- config/crd`

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: crdgen FOLDER");
        return ExitCode::from(2);
    };
    let files = match emco_crds::crds::files() {
        Ok(files) => files,
        Err(error) => {
            eprintln!("cannot write the custom resource definitions as YAML: {error}");
            return ExitCode::FAILURE;
        }
    };
    for (name, text) in files {
        if let Err(error) = std::fs::write(folder.join(&name), text) {
            eprintln!("cannot write {name} in {}: {error}", folder.display());
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
