//! Fetches or builds programs that the machine lacks into the cache, one module after the other.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::fs::{FlockOperation, flock};

use super::{Accept, Program, cache_dir, fetch, go, linked, stages, versions};
use crate::launch;

/// How often a running build says that it is still running.
const TELL_EVERY: Duration = Duration::from_secs(15);

/// Fetches or builds `missing` and answers where they are. Waits while another process does so, and then takes what that one made.
pub(super) fn build(missing: &[Program], accept: Accept) -> Result<BTreeMap<Program, PathBuf>> {
    let cache = cache_dir()?;
    fs::create_dir_all(&cache).with_context(|| format!("cannot make {}", cache.display()))?;
    let _lock = lock(&cache)?;
    let mut made = BTreeMap::new();
    let mut left = Vec::new();
    for &program in missing {
        match accept.kept(program) {
            Some(path) => drop(made.insert(program, path)),
            None => left.push(program),
        }
    }
    let mut nth = Nth { done: 0, all: left.len() };
    // What is fetched takes seconds. The rest is built by one call of Go for each module.
    let mut modules: Vec<Vec<Program>> = Vec::new();
    for program in left {
        // Where one of a module's programs could not be fetched, the others are not tried.
        if let Some(module) = modules.iter_mut().find(|module| module[0].module() == program.module()) {
            module.push(program);
        } else if let Some(path) = fetched(&cache, program, accept, &mut nth) {
            made.insert(program, path);
        } else {
            modules.push(vec![program]);
        }
    }
    for module in &modules {
        made.extend(build_module(&cache, module, &nth.next(module.len()))?);
    }
    Ok(made)
}

/// Counts programs for people.
struct Nth {
    done: usize,
    all: usize,
}

impl Nth {
    /// Such as `1 of 3`, or `2 to 3 of 3` where several are made at once.
    fn next(&mut self, count: usize) -> String {
        let first = self.done + 1;
        self.done += count;
        match count {
            1 => format!("{first} of {}", self.all),
            _ => format!("{first} to {} of {}", self.done, self.all),
        }
    }
}

/// A program that was fetched, or came with another one; none where it has to be built.
fn fetched(cache: &Path, program: Program, accept: Accept, nth: &mut Nth) -> Option<PathBuf> {
    if !fetch::is_ready_made(program, accept) {
        return None;
    }
    let name = program.name();
    if accept.kept(program).is_none() {
        eprintln!("fetching {name}");
        if let Err(error) = fetch::fetch(cache, program) {
            eprintln!("{name} cannot be fetched, so it is built: {error:#}");
        }
    }
    let path = accept.kept(program)?;
    eprintln!("fetched  {name} {} ({})", super::version_of(program, &path), nth.next(1));
    Some(path)
}

/// Builds programs of one module, all by one call: what they have in common is then looked at once.
fn build_module(cache: &Path, programs: &[Program], nth: &str) -> Result<Vec<(Program, PathBuf)>> {
    let module = programs[0].module();
    let go = go::go(versions::go_release(module.go_mod).context("the go.mod names no Go release")?)?;
    let work = cache.join(format!("build-{}", module.name));
    // Programs are not where they will be found, until they are whole.
    let unfinished = work.join("unfinished");
    if unfinished.is_dir() {
        fs::remove_dir_all(&unfinished).with_context(|| format!("cannot remove {}", unfinished.display()))?;
    }
    fs::create_dir_all(&unfinished).with_context(|| format!("cannot make {}", unfinished.display()))?;
    fs::write(work.join("go.mod"), module.go_mod).context("cannot write go.mod")?;
    fs::write(work.join("go.sum"), module.go_sum).context("cannot write go.sum")?;
    for (name, text) in module.sources {
        fs::write(work.join(name), text).with_context(|| format!("cannot write {name}"))?;
    }

    let named = |program: &Program| format!("{} {}", program.name(), program.version());
    let what = programs.iter().map(named).collect::<Vec<_>>().join(", ");
    let mut command = launch::tied(&go)?;
    command
        // What debuggers would read is not linked in, so it need not be compiled either: a sixth of the time.
        .args(["build", "-mod=readonly", "-trimpath", "-gcflags=all=-dwarf=0", "-ldflags"])
        .arg(module.ldflags())
        .args(["-tags", module.tags()])
        .arg("-o")
        .arg(&unfinished)
        .args(programs.iter().map(|program| program.package()))
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
    let mut built = Vec::new();
    for &program in programs {
        let dir = cache.join(program.cache_key());
        fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        if program == Program::Kwok {
            stages::copy_from_module(&go, &work, &dir)?;
        }
        let path = dir.join(program.name());
        fs::rename(unfinished.join(linked::built_name(program)), &path)
            .with_context(|| format!("cannot name {}", path.display()))?;
        built.push((program, path));
    }
    Ok(built)
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
pub(super) fn lock(cache: &Path) -> Result<File> {
    let path = cache.join("lock");
    let file = File::create(&path).with_context(|| format!("cannot make {}", path.display()))?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        eprintln!("another process is building programs: waiting for it");
        flock(&file, FlockOperation::LockExclusive)
            .with_context(|| format!("cannot lock {}", path.display()))?;
    }
    Ok(file)
}
