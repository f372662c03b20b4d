//! Makes a folder of kwok's stages that our nodes play by.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{Program, cache_dir, go, versions};

/// Files of kwok's module, relative to it: nodes become Ready, pods become Ready, pods of Jobs complete, deleted pods go.
const STOCK: [&str; 4] = [
    "kustomize/stage/node/fast/node-initialize.yaml",
    "kustomize/stage/pod/fast/pod-ready.yaml",
    "kustomize/stage/pod/fast/pod-complete.yaml",
    "kustomize/stage/pod/fast/pod-delete.yaml",
];

/// The folder `kwok-stages` beside kwok; in the cache, from the module, where kwok came without one.
pub(super) fn beside(kwok: &Path) -> Result<PathBuf> {
    if let Some(dir) = kwok.parent().map(|dir| dir.join("kwok-stages")).filter(|dir| is_complete(dir)) {
        return Ok(dir);
    }
    let module = Program::Kwok.module();
    let cache = cache_dir()?;
    let (work, dir) = (cache.join(format!("build-{}", module.name)), cache.join(Program::Kwok.cache_key()));
    for folder in [&work, &dir] {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    fs::write(work.join("go.mod"), module.go_mod).context("cannot write go.mod")?;
    fs::write(work.join("go.sum"), module.go_sum).context("cannot write go.sum")?;
    let go = go::go(versions::go_release(module.go_mod).context("the go.mod names no Go release")?)?;
    copy_from_module(&go, &work, &dir)
}

fn is_complete(dir: &Path) -> bool {
    STOCK.iter().all(|file| Path::new(file).file_name().is_some_and(|name| dir.join(name).is_file()))
}

/// Copies the stages out of the module cache of Go into `dir/kwok-stages`.
pub(super) fn copy_from_module(go: &Path, work: &Path, dir: &Path) -> Result<PathBuf> {
    let module = go::folder_of(go, work, Program::Kwok.go_module())?;
    let target = dir.join("kwok-stages");
    fs::create_dir_all(&target).with_context(|| format!("cannot make {}", target.display()))?;
    for file in STOCK {
        let name = Path::new(file).file_name().context("a stage without a name")?;
        let text = fs::read(module.join(file)).with_context(|| format!("kwok's module has no {file}"))?;
        let unfinished = target.join(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
        fs::write(&unfinished, text).with_context(|| format!("cannot write {}", unfinished.display()))?;
        fs::rename(&unfinished, target.join(name)).with_context(|| format!("cannot name {file}"))?;
    }
    Ok(target)
}
