//! Renders every chart of the corpus with `emco-helm` as an installation, and has the corpus compare that with what Helm printed.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use super::upgrades::KUBE_VERSION;

/// The charts whose folder's name contains `only`; an error where one is not rendered as by Helm, which is printed.
pub fn compare(charts: &Path, only: &str) -> Result<()> {
    let this = std::env::current_exe().context("this program cannot be found")?;
    let helm = this.with_file_name("emco-helm");
    ensure!(
        helm.is_file(),
        "there is no emco-helm beside {}: build it with `cargo build --workspace --bins`",
        this.display()
    );
    let render = format!(
        "{} template myrel --namespace myns --include-crds --kube-version {KUBE_VERSION}",
        helm.display()
    );
    let python = std::env::var_os("PYTHON").unwrap_or_else(|| OsString::from("python3"));
    let script = charts.join("compare.py");
    let mut command = Command::new(&python);
    command.arg("-B").arg(&script).args(["--cmd", &render, "--only", only]).stdin(Stdio::null());
    let status = command.status().with_context(|| format!("cannot start {}", python.display()))?;
    ensure!(
        status.success(),
        "{} ended with {status}: it names the charts that are not rendered as by Helm, else it needs PyYAML, which `make conformance` brings",
        script.display()
    );
    Ok(())
}
