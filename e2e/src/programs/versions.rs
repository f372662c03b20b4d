//! Reads package and version of each program from the `go.mod` files of the repository.

use sha2::{Digest as _, Sha256};

/// `go.mod` and `go.sum` of one Go module that names programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GoModule {
    pub name: &'static str,
    pub go_mod: &'static str,
    pub go_sum: &'static str,
    /// Files of its own, where the program is ours.
    pub sources: &'static [(&'static str, &'static str)],
}

pub(super) const CONTROL_PLANE: GoModule = GoModule {
    name: "controlplane",
    go_mod: include_str!("../../controlplane/go.mod"),
    go_sum: include_str!("../../controlplane/go.sum"),
    sources: &[],
};

/// Of its own, because Helm wants other versions of the Kubernetes libraries.
pub(super) const HELM: GoModule = GoModule {
    name: "helm",
    go_mod: include_str!("../../helm/go.mod"),
    go_sum: include_str!("../../helm/go.sum"),
    sources: &[],
};

/// Of its own, because it wants everything of everybody.
pub(super) const PROMETHEUS: GoModule = GoModule {
    name: "prometheus",
    go_mod: include_str!("../../prometheus/go.mod"),
    go_sum: include_str!("../../prometheus/go.sum"),
    sources: &[],
};

/// Our own program around what Flux and Argo CD judge objects with.
pub(super) const GITOPS: GoModule = GoModule {
    name: "gitops",
    go_mod: include_str!("../../gitops/go.mod"),
    go_sum: include_str!("../../gitops/go.sum"),
    sources: &[
        ("main.go", include_str!("../../gitops/main.go")),
        ("status.go", include_str!("../../gitops/status.go")),
        ("health.go", include_str!("../../gitops/health.go")),
        ("cel.go", include_str!("../../gitops/cel.go")),
        ("diff.go", include_str!("../../gitops/diff.go")),
    ],
};

/// Of its own, because nothing else wants its libraries. The project's own `main` would want those of every cloud, too.
pub(super) const REGISTRY: GoModule = GoModule {
    name: "registry",
    go_mod: include_str!("../../registry/go.mod"),
    go_sum: include_str!("../../registry/go.sum"),
    sources: &[("main.go", include_str!("../../registry/main.go"))],
};

/// The agent of clusters that are written to through Git.
pub(super) const FLUX: GoModule = GoModule {
    name: "flux",
    go_mod: include_str!("../../flux/go.mod"),
    go_sum: include_str!("../../flux/go.sum"),
    sources: &[],
};

/// Our own program around what cyclonus judges connections with. Of its own, because it wants nothing else.
pub(super) const REACH: GoModule = GoModule {
    name: "reach",
    go_mod: include_str!("../../reach/go.mod"),
    go_sum: include_str!("../../reach/go.sum"),
    sources: &[("main.go", include_str!("../../reach/main.go"))],
};

/// Our own program around the library with which Kubernetes merges patches. Of its own, because it wants the types and nothing else; its
/// libraries are those of the control planes, so that most of it is compiled already.
pub(super) const PATCHES: GoModule = GoModule {
    name: "patches",
    go_mod: include_str!("../../patches/go.mod"),
    go_sum: include_str!("../../patches/go.sum"),
    sources: &[
        ("main.go", include_str!("../../patches/main.go")),
        ("kinds.go", include_str!("../../patches/kinds.go")),
        ("tags.go", include_str!("../../patches/tags.go")),
    ],
};

/// The oldest Kubernetes that hubs and edges may have. Of its own, because it wants its own libraries.
pub(super) const OLDEST: GoModule = GoModule {
    name: "oldest",
    go_mod: include_str!("../../oldest/go.mod"),
    go_sum: include_str!("../../oldest/go.sum"),
    sources: &[],
};

/// What images and archives of a release are made and tried with.
pub(super) const RELEASE: GoModule = GoModule {
    name: "release",
    go_mod: include_str!("../../release/go.mod"),
    go_sum: include_str!("../../release/go.sum"),
    sources: &[],
};

/// A program that a test bed runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Program {
    /// The store of the API servers.
    Etcd,
    /// `kube-apiserver`.
    ApiServer,
    /// `kube-apiserver` of the oldest version that hubs and edges may have.
    OldestApiServer,
    /// `kubectl`.
    Kubectl,
    /// `kube-controller-manager`.
    ControllerManager,
    /// `kube-scheduler`.
    Scheduler,
    /// Plays the nodes and their kubelets.
    Kwok,
    /// Helm, the reference that rendered charts are compared with.
    Helm,
    /// Prometheus, which reads metrics and judges alerts.
    Prometheus,
    /// Its tool, which tests the rules.
    Promtool,
    /// Judges objects as Flux and Argo CD do; ours, from `gitops/`.
    GitOpsChecks,
    /// Fetches repositories for Flux.
    SourceController,
    /// Applies folders of them.
    KustomizeController,
    /// A registry for charts.
    Registry,
    /// Makes container images.
    Buildah,
    /// Installs plug-ins of kubectl.
    Krew,
    /// Judges connections by NetworkPolicies as cyclonus does; ours, from `reach/`.
    PolicyChecks,
    /// Merges patches by Kubernetes' own library, and reads the tags of its types; ours, from `patches/`.
    PatchChecks,
}

impl Program {
    /// Every program, in the order in which they are built: what most tests need first.
    pub const ALL: [Self; 18] = [
        Self::Etcd,
        Self::ApiServer,
        Self::Kubectl,
        Self::ControllerManager,
        Self::Scheduler,
        Self::Kwok,
        Self::Helm,
        Self::GitOpsChecks,
        Self::PatchChecks,
        Self::Prometheus,
        Self::Promtool,
        Self::Registry,
        Self::SourceController,
        Self::KustomizeController,
        Self::OldestApiServer,
        Self::Buildah,
        Self::Krew,
        Self::PolicyChecks,
    ];

    /// Whether only `make soak` runs it: it is found or built when a test of that asks for it.
    pub fn is_for_soak(self) -> bool {
        let of_flux = self.module() == FLUX;
        of_flux || matches!(self, Self::OldestApiServer | Self::Buildah | Self::Krew | Self::PolicyChecks)
    }

    /// The file name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            // Not that of another version which a machine has.
            Self::OldestApiServer => "kube-apiserver-oldest",
            Self::Kubectl => "kubectl",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kwok => "kwok",
            Self::Helm => "helm",
            Self::Prometheus => "prometheus",
            Self::Promtool => "promtool",
            Self::GitOpsChecks => "gitops-checks",
            Self::SourceController => "source-controller",
            Self::KustomizeController => "kustomize-controller",
            Self::Registry => "registry",
            Self::Buildah => "buildah",
            Self::Krew => "krew",
            Self::PolicyChecks => "policy-checks",
            Self::PatchChecks => "patch-checks",
        }
    }

    /// The program called `name`.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|program| program.name() == name)
    }

    /// The version that this repository asks for, such as `v1.36.3`.
    pub fn version(self) -> &'static str {
        let module = self.go_module();
        required(self.module().go_mod, module).unwrap_or_default()
    }

    /// The module that `version` is a version of.
    pub(super) fn go_module(self) -> &'static str {
        match self {
            Self::Etcd => "go.etcd.io/etcd/server/v3",
            Self::Kwok => "sigs.k8s.io/kwok",
            Self::Helm => "helm.sh/helm/v3",
            Self::Prometheus | Self::Promtool => "github.com/prometheus/prometheus",
            Self::GitOpsChecks => "github.com/argoproj/gitops-engine",
            Self::SourceController => "github.com/fluxcd/source-controller",
            Self::KustomizeController => "github.com/fluxcd/kustomize-controller",
            Self::Registry => "github.com/distribution/distribution/v3",
            Self::Buildah => "github.com/containers/buildah",
            Self::Krew => "sigs.k8s.io/krew",
            Self::PolicyChecks => "github.com/mattfenwick/cyclonus",
            Self::PatchChecks => "k8s.io/apimachinery",
            Self::ApiServer
            | Self::OldestApiServer
            | Self::Kubectl
            | Self::ControllerManager
            | Self::Scheduler => "k8s.io/kubernetes",
        }
    }

    /// The Go package of the program.
    pub(super) fn package(self) -> String {
        match self {
            Self::Etcd | Self::SourceController | Self::KustomizeController => self.go_module().to_owned(),
            Self::GitOpsChecks | Self::Registry | Self::PolicyChecks | Self::PatchChecks => ".".to_owned(),
            Self::OldestApiServer => format!("{}/cmd/kube-apiserver", self.go_module()),
            _ => format!("{}/cmd/{}", self.go_module(), self.name()),
        }
    }

    pub(super) fn module(self) -> GoModule {
        match self {
            Self::Helm => HELM,
            Self::Prometheus | Self::Promtool => PROMETHEUS,
            Self::GitOpsChecks => GITOPS,
            Self::SourceController | Self::KustomizeController => FLUX,
            Self::Registry => REGISTRY,
            Self::OldestApiServer => OLDEST,
            Self::Buildah | Self::Krew => RELEASE,
            Self::PolicyChecks => REACH,
            Self::PatchChecks => PATCHES,
            _ => CONTROL_PLANE,
        }
    }

    /// What the program calls its version: Prometheus 3.13 is its module's v0.313.
    pub(super) fn said_version(self) -> String {
        let version = self.version();
        let parsed = version.strip_prefix("v0.").and_then(|rest| {
            let (minor, patch) = rest.split_once('.')?;
            Some((minor.parse::<u32>().ok()?.checked_sub(300)?, patch))
        });
        match (self, parsed) {
            (Self::Prometheus | Self::Promtool, Some((minor, patch))) => format!("3.{minor}.{patch}"),
            _ => version.to_owned(),
        }
    }

    /// Whether its source, or a part of it, is here: nobody else has such a program.
    pub(super) fn is_ours(self) -> bool {
        !self.module().sources.is_empty()
    }

    /// Arguments with which the program prints its version.
    pub(super) fn version_args(self) -> &'static [&'static str] {
        match self {
            Self::Kubectl => &["version", "--client"],
            Self::Helm => &["version", "--short"],
            Self::Krew => &["version"],
            _ => &["--version"],
        }
    }

    /// The folder of the cache for the built program; programs of one module share it.
    pub(super) fn cache_key(self) -> String {
        match self {
            Self::Helm => format!("helm-{}", self.version()),
            Self::Buildah
            | Self::Krew
            | Self::OldestApiServer
            | Self::SourceController
            | Self::KustomizeController => {
                format!("{}-{}", self.name(), self.version())
            }
            Self::Prometheus | Self::Promtool => format!("prometheus-{}", self.version()),
            Self::GitOpsChecks | Self::Registry | Self::PolicyChecks | Self::PatchChecks => {
                let mut hash = Sha256::new();
                let module = self.module();
                hash.update(module.go_mod);
                module.sources.iter().for_each(|(_, text)| hash.update(text));
                format!("{}-{}-{}", module.name, self.version(), &hex::encode(hash.finalize())[..12])
            }
            _ => format!(
                "kubernetes-{}-etcd-{}-kwok-{}",
                Self::ApiServer.version(),
                Self::Etcd.version(),
                Self::Kwok.version()
            ),
        }
    }
}

/// The version that a `go.mod` requires of `module`.
pub(super) fn required(go_mod: &'static str, module: &str) -> Option<&'static str> {
    go_mod.lines().find_map(|line| {
        let mut words = line.trim().trim_start_matches("require ").split_whitespace();
        (words.next() == Some(module)).then(|| words.next()).flatten().filter(|word| word.starts_with('v'))
    })
}

/// The Go release that a `go.mod` asks for, as (major, minor).
pub(super) fn go_release(go_mod: &str) -> Option<(u32, u32)> {
    let line = go_mod.lines().find_map(|line| line.strip_prefix("go "))?;
    let mut parts = line.trim().split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_has_a_version_from_its_go_mod() {
        for program in Program::ALL {
            assert!(program.version().starts_with('v'), "{} has no version", program.name());
        }
        assert_eq!(Program::ApiServer.version(), "v1.36.3");
        assert_eq!(Program::OldestApiServer.version(), "v1.33.13");
        assert_eq!(Program::Helm.version(), "v3.17.3");
        assert_eq!(Program::Promtool.said_version(), "3.13.5");
        assert_eq!(Program::Etcd.said_version(), Program::Etcd.version());
    }

    #[test]
    fn patches_are_compared_with_the_kubernetes_of_the_control_planes() {
        let types = required(PATCHES.go_mod, "k8s.io/api").unwrap();
        assert_eq!(types, Program::PatchChecks.version());
        assert_eq!(types.replacen("v0.", "v1.", 1), Program::Kubectl.version());
        let known: Vec<&str> = CONTROL_PLANE.go_sum.lines().collect();
        let other = PATCHES.go_sum.lines().find(|line| !known.contains(line));
        assert_eq!(other, None, "a library of another version is compiled once more");
    }

    #[test]
    fn every_program_is_a_tool_of_its_module() {
        for program in Program::ALL {
            if program.package() == "." {
                let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(program.module().name);
                assert!(folder.join("main.go").is_file(), "{} is no program", folder.display());
                continue;
            }
            assert!(
                program.module().go_mod.contains(&program.package()),
                "{} is not named by {}/go.mod",
                program.package(),
                program.module().name
            );
        }
    }

    #[test]
    fn the_go_release_is_read_from_the_go_line() {
        assert_eq!(go_release("module x\n\ngo 1.26.0\n"), Some((1, 26)));
    }
}
