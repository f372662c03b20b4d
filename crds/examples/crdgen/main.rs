//! Generates one file per kind in `config/crd`, with a kustomization that lists them, the templates of the chart `emco-crds`, the
//! resources that rights of the chart `emco` name, one page per kind of the book's reference, and the health checks for Argo CD.
//!
//! `cargo run -q -p emco-crds --example crdgen -- .`

mod argocd;
mod fields;
mod reference;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use emco_crds::crds::{self, rights};

fn main() -> ExitCode {
    let Some(root) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: crdgen FOLDER");
        return ExitCode::from(2);
    };
    // Samples and scripts are read where this program was built, whatever folder is written.
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config");
    let rights = vec![("_kinds.tpl".to_owned(), rights::template())];
    for (folder, files) in [
        ("config/crd", crds::files().map_err(|error| error.to_string())),
        ("charts/emco-crds/templates", crds::chart_templates().map_err(|error| error.to_string())),
        ("charts/emco/templates", Ok(rights)),
        ("docs/reference", reference::pages(&config.join("samples"))),
        ("config/argocd", argocd::files(&config.join("argocd/health.lua"))),
    ] {
        let written = files.and_then(|files| {
            write(&root.join(folder), files).map_err(|error| format!("{}: {error}", root.display()))
        });
        if let Err(error) = written {
            eprintln!("cannot write {folder}: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn write(folder: &Path, files: Vec<(String, String)>) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    files.into_iter().try_for_each(|(name, text)| std::fs::write(folder.join(name), text))
}
