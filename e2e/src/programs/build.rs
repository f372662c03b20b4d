//! Builds programs that the machine lacks into the cache, one after the other.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::fs::{FlockOperation, flock};

use super::{Program, cache_dir, find, go, stages, versions};
use crate::launch;

/// How often a running build says that it is still running.
const TELL_EVERY: Duration = Duration::from_secs(15);

/// Builds `missing` and answers where they are. Waits while another process builds, and then takes what that one made.
pub(super) fn build(missing: &[Program]) -> Result<BTreeMap<Program, PathBuf>> {
    let cache = cache_dir()?;
    fs::create_dir_all(&cache).with_context(|| format!("cannot make {}", cache.display()))?;
    let _lock = lock(&cache)?;
    let mut built = BTreeMap::new();
    for (index, &program) in missing.iter().enumerate() {
        let path = match find::built(program) {
            Some(path) => path,
            None => build_one(&cache, program, &format!("{} of {}", index + 1, missing.len()))?,
        };
        built.insert(program, path);
    }
    Ok(built)
}

fn build_one(cache: &Path, program: Program, nth: &str) -> Result<PathBuf> {
    let module = program.module();
    let go = go::go(versions::go_release(module.go_mod).context("the go.mod names no Go release")?)?;
    let dir = cache.join(program.cache_key());
    let work = cache.join(format!("build-{}", module.name));
    fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    fs::create_dir_all(&work).with_context(|| format!("cannot make {}", work.display()))?;
    fs::write(work.join("go.mod"), module.go_mod).context("cannot write go.mod")?;
    fs::write(work.join("go.sum"), module.go_sum).context("cannot write go.sum")?;
    for (name, text) in module.sources {
        fs::write(work.join(name), text).with_context(|| format!("cannot write {name}"))?;
    }

    let what = format!("{} {}", program.name(), program.version());
    // Not named as it will be called, until it is whole.
    let unfinished = dir.join(format!(".{}.unfinished", program.name()));
    let mut command = launch::tied(&go)?;
    command
        // What debuggers would read is not linked in, so it need not be compiled either: a sixth of the time.
        .args(["build", "-mod=readonly", "-trimpath", "-gcflags=all=-dwarf=0", "-ldflags"])
        .arg(program.ldflags())
        .args(["-tags", program.tags()])
        .arg("-o")
        .arg(&unfinished)
        .arg(program.package())
        .current_dir(&work)
        .env("CGO_ENABLED", "0")
        .env("GOTOOLCHAIN", "local")
        .env_remove("GOFLAGS")
        .stdin(Stdio::null());
    let status = telling(&what, nth, || command.status())
        .with_context(|| format!("cannot start {} to build {what}", go.display()))?;
    if !status.success() {
        bail!("building {what} from {}/go.mod failed ({status}); what Go said stands above", module.name);
    }
    let path = dir.join(program.name());
    fs::rename(&unfinished, &path).with_context(|| format!("cannot name {}", path.display()))?;
    if program == Program::Kwok {
        stages::copy_from_module(&go, &work, &dir)?;
    }
    Ok(path)
}

/// Runs `work` and says on standard error what is built, and for how long already.
fn telling<T>(what: &str, nth: &str, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let elapsed = move || format!("{} s", start.elapsed().as_secs());
    let (done, ended) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            eprintln!("building {what} ({nth})");
            while ended.recv_timeout(TELL_EVERY) == Err(mpsc::RecvTimeoutError::Timeout) {
                eprintln!("building {what} ({nth}), {} so far", elapsed());
            }
        });
        let result = work();
        drop(done);
        eprintln!("built    {what} ({nth}) in {}", elapsed());
        result
    })
}

/// Held by the one process that builds; the kernel releases it however that process ends.
fn lock(cache: &Path) -> Result<File> {
    let path = cache.join("lock");
    let file = File::create(&path).with_context(|| format!("cannot make {}", path.display()))?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        eprintln!("another process is building programs: waiting for it");
        flock(&file, FlockOperation::LockExclusive)
            .with_context(|| format!("cannot lock {}", path.display()))?;
    }
    Ok(file)
}
