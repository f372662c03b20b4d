//! Reads the kinds that Flux's controllers work with out of their modules.

use std::fs;

use anyhow::{Context as _, Result, ensure};

use super::{Program, cache_dir, go, versions};

/// Definitions, in the module of each controller.
const FOLDER: &str = "config/crd/bases";

/// The definitions of the kinds of source-controller and kustomize-controller, as YAML. Go fetches the modules where it has not built
/// them on this machine.
pub async fn definitions_of_flux() -> Result<String> {
    tokio::task::spawn_blocking(read).await.context("the thread that reads definitions ended")?
}

fn read() -> Result<String> {
    let module = Program::SourceController.module();
    let go = go::go(versions::go_release(module.go_mod).context("the go.mod names no Go release")?)?;
    let work = cache_dir()?.join(format!("definitions-{}", module.name));
    fs::create_dir_all(&work).with_context(|| format!("cannot make {}", work.display()))?;
    fs::write(work.join("go.mod"), module.go_mod).context("cannot write go.mod")?;
    fs::write(work.join("go.sum"), module.go_sum).context("cannot write go.sum")?;
    let mut documents = Vec::new();
    for program in [Program::SourceController, Program::KustomizeController] {
        let folder = go::folder_of(&go, &work, program.go_module())?.join(FOLDER);
        let entries = fs::read_dir(&folder).with_context(|| format!("there is no {}", folder.display()))?;
        for entry in entries {
            let file = entry?.path();
            documents
                .push(fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?);
        }
    }
    ensure!(!documents.is_empty(), "the modules of Flux have no definitions");
    Ok(documents.join("\n---\n"))
}
