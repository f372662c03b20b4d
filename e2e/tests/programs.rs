//! In: a machine with some programs, and a Go that only pretends. Out: which program is taken, and when it is built.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use emco_e2e::programs::Program;

/// A machine of its own: a cache, a folder on `PATH` and nothing else but the shell's tools.
struct Machine {
    dir: tempfile::TempDir,
}

impl Machine {
    fn new() -> Self {
        let machine = Self { dir: tempfile::tempdir().unwrap() };
        for name in ["bin", "assets", "cache"] {
            std::fs::create_dir(machine.path(name)).unwrap();
        }
        machine
    }

    /// With a Go that builds scripts, and counts how often.
    fn with_go(self, exit_code: u8) -> Self {
        let count = self.path("builds");
        let go = format!(
            "case $1 in
version) echo go version go1.99.0 linux/amd64 ;;
build)
  echo \"$@\" >> {count}
  while [ $# -gt 1 ]; do
    if [ $1 = -o ]; then echo '#!/bin/sh' > $2; chmod +x $2; fi
    shift
  done
  exit {exit_code} ;;
esac",
            count = count.display()
        );
        script(&self.path("bin/go"), &go);
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn builds(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.path("builds")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn built_etcd(&self) -> PathBuf {
        let [server, etcd, kwok] = [Program::ApiServer, Program::Etcd, Program::Kwok].map(Program::version);
        self.path("cache").join(format!("emco/kubernetes-{server}-etcd-{etcd}-kwok-{kwok}/etcd"))
    }

    /// `emco-e2e programs etcd` on this machine.
    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_emco-e2e"));
        command
            .args(["programs", "etcd"])
            .env("PATH", format!("{}:/usr/bin:/bin", self.path("bin").display()))
            .env("XDG_CACHE_HOME", self.path("cache"))
            .env_remove("EMCO_TEST_ASSETS")
            .env_remove("KUBEBUILDER_ASSETS")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

fn script(path: &Path, text: &str) {
    std::fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn etcd_that_says(version: &str, path: &Path) {
    script(path, &format!("echo etcd Version: {version}"));
}

fn found(output: &Output) -> String {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let path = stdout.trim().rsplit(' ').next().unwrap_or_default().to_owned();
    assert!(output.status.success(), "{stderr}");
    path
}

fn wanted() -> &'static str {
    Program::Etcd.version().trim_start_matches('v')
}

#[test]
fn a_program_of_the_right_version_on_the_path_is_taken() {
    let machine = Machine::new().with_go(0);
    etcd_that_says(wanted(), &machine.path("bin/etcd"));
    assert_eq!(found(&machine.command().output().unwrap()), machine.path("bin/etcd").display().to_string());
    assert!(machine.builds().is_empty());
}

#[test]
fn a_program_of_another_version_is_built_instead() {
    let machine = Machine::new().with_go(0);
    etcd_that_says("3.5.0", &machine.path("bin/etcd"));
    assert_eq!(found(&machine.command().output().unwrap()), machine.built_etcd().display().to_string());
    let builds = machine.builds();
    assert_eq!(builds.len(), 1);
    assert!(builds[0].ends_with("go.etcd.io/etcd/server/v3"), "{builds:?}");
}

#[test]
fn the_folder_of_the_environment_comes_before_the_path() {
    let machine = Machine::new();
    etcd_that_says(wanted(), &machine.path("bin/etcd"));
    etcd_that_says(wanted(), &machine.path("assets/etcd"));
    let output = machine.command().env("KUBEBUILDER_ASSETS", machine.path("assets")).output().unwrap();
    assert_eq!(found(&output), machine.path("assets/etcd").display().to_string());
}

#[test]
fn our_own_folder_is_taken_whatever_the_version() {
    let machine = Machine::new();
    etcd_that_says("9.9.9", &machine.path("assets/etcd"));
    let output = machine.command().env("EMCO_TEST_ASSETS", machine.path("assets")).output().unwrap();
    assert_eq!(found(&output), machine.path("assets/etcd").display().to_string());
}

#[test]
fn two_processes_build_a_program_once() {
    let machine = Machine::new().with_go(0);
    let both = [machine.command().spawn().unwrap(), machine.command().spawn().unwrap()];
    for child in both {
        let output = child.wait_with_output().unwrap();
        assert_eq!(found(&output), machine.built_etcd().display().to_string());
    }
    assert_eq!(machine.builds().len(), 1);
    // A third process finds it.
    found(&machine.command().output().unwrap());
    assert_eq!(machine.builds().len(), 1);
}

#[test]
fn a_build_that_fails_leaves_no_program_and_says_which() {
    let machine = Machine::new().with_go(1);
    let output = machine.command().output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(
        said.contains(&format!("building etcd {} from controlplane/go.mod failed", Program::Etcd.version())),
        "{said}"
    );
    assert!(!machine.built_etcd().exists());
}

#[test]
fn a_build_says_what_it_builds_and_how_many_there_are() {
    let machine = Machine::new().with_go(0);
    let output = machine.command().output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(&format!("building etcd {} (1 of 1)", Program::Etcd.version())), "{said}");
}

#[test]
fn an_unknown_program_is_refused_with_those_that_there_are() {
    let output = Machine::new().command().arg("ectd").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("no program is called ectd; there are etcd, kube-apiserver,"), "{said}");
}
