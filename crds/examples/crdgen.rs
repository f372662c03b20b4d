//! A folder in; one file per kind in its `config/crd`, with a kustomization that lists them, and in the templates of the chart
//! `emco-crds`.
//!
//! `cargo run -q -p emco-crds --example crdgen -- .`

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use emco_crds::crds;

fn main() -> ExitCode {
    let Some(root) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: crdgen FOLDER");
        return ExitCode::from(2);
    };
    for (folder, files) in
        [("config/crd", crds::files()), ("charts/emco-crds/templates", crds::chart_templates())]
    {
        let files = match files {
            Ok(files) => files,
            Err(error) => {
                eprintln!("cannot write the custom resource definitions as YAML: {error}");
                return ExitCode::FAILURE;
            }
        };
        if let Err(error) = write(&root.join(folder), files) {
            eprintln!("cannot write {folder} in {}: {error}", root.display());
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn write(folder: &Path, files: Vec<(String, String)>) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    files.into_iter().try_for_each(|(name, text)| std::fs::write(folder.join(name), text))
}
