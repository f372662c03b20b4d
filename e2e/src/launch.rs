//! Starts a program so that the kernel ends it when the process that started it ends.
//!
//! The kernel ties a process to the *thread* that started it, and only the process itself can ask for that. So our own
//! binary starts in between, asks, and becomes the program.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Error, Result, anyhow, bail};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

/// The name of our own binary.
const BINARY: &str = "emco-e2e";

/// A command for `program` (arguments are added by the caller) that ends with the calling thread.
pub fn tied(program: impl AsRef<OsStr>) -> Result<Command> {
    launch(program.as_ref(), false)
}

/// As [`tied`], and its standard output is closed as soon as it is tied: until then a signal that stops it would keep it
/// from that for ever. What the program prints goes where its errors go.
pub(crate) fn tied_and_told(program: impl AsRef<OsStr>) -> Result<Command> {
    launch(program.as_ref(), true)
}

fn launch(program: &OsStr, tell: bool) -> Result<Command> {
    let mut command = Command::new(own_binary()?);
    command
        .arg("launch")
        .args(tell.then_some("--tell"))
        .arg(std::process::id().to_string())
        .arg("--")
        .arg(program);
    Ok(command)
}

/// Becomes `program` after tying this process to `parent`; with `tell`, standard output becomes standard error once it is
/// tied. Answers only when that is impossible.
pub fn become_program(parent: u32, tell: bool, program: &OsStr, args: &[OsString]) -> Error {
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return Error::new(error).context("cannot tie the program to its parent");
    }
    // The parent may have ended before the line above; then nobody would ever end us.
    let expected = i32::try_from(parent).ok().and_then(Pid::from_raw);
    if expected.is_none() || getppid() != expected {
        return anyhow!("the process {parent} that wanted {} has ended", program.to_string_lossy());
    }
    if tell && let Err(error) = rustix::stdio::dup2_stdout(std::io::stderr()) {
        return Error::new(error).context("cannot close standard output");
    }
    let error = Command::new(program).args(args).exec();
    Error::new(error).context(format!("cannot start {}", program.to_string_lossy()))
}

/// The binary of this crate: ourselves, or what Cargo put beside the tests.
pub fn own_binary() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("EMCO_E2E_BIN").filter(|path| !path.is_empty()) {
        return Ok(PathBuf::from(path));
    }
    let this = std::env::current_exe().context("cannot tell which program this is")?;
    if this.file_name().is_some_and(|name| name == BINARY) {
        return Ok(this);
    }
    // target/debug/deps/TEST-HASH, target/debug/examples/NAME or another binary in target/debug.
    let beside = this.ancestors().skip(1).take(2).map(|dir| dir.join(BINARY)).find(|path| path.is_file());
    match beside {
        Some(path) => Ok(path),
        None => bail!(
            "no {BINARY} beside {}: build it first (`cargo build -p emco-e2e`), or name it in EMCO_E2E_BIN",
            this.display()
        ),
    }
}
