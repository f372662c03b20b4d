//! Says with which flags the programs of a Go module are built, and what Go calls them.
//!
//! One call of Go builds all programs of a module that are missing, so flags belong to the module. A variable that a program
//! does not have is passed over by the linker.

use std::collections::BTreeSet;

use super::Program;
use super::versions::{GoModule, HELM, required};

impl GoModule {
    fn programs(self) -> impl Iterator<Item = Program> {
        Program::ALL.into_iter().filter(move |program| program.module() == self)
    }

    /// What the linker is told: no symbols, and the versions of the module's programs.
    pub(super) fn ldflags(self) -> String {
        let set: BTreeSet<String> = self.programs().flat_map(variables).collect();
        set.iter().fold("-s -w".to_owned(), |flags, variable| flags + " -X " + variable)
    }

    /// Build tags: without the clients of every cloud that Prometheus could ask for targets, a third of the work, and without
    /// drivers of file systems that take C libraries.
    pub(super) fn tags(self) -> &'static str {
        match self.name {
            "prometheus" => "remove_all_sd",
            "release" => {
                "exclude_graphdriver_btrfs,exclude_graphdriver_devicemapper,containers_image_openpgp"
            }
            _ => "",
        }
    }
}

/// What Go calls the program that it builds into a folder: the last word of the package's path that is no version.
pub(super) fn built_name(program: Program) -> &'static str {
    match program {
        Program::Etcd => "server",
        Program::OldestApiServer => "kube-apiserver",
        // The package is the module itself.
        Program::GitOpsChecks | Program::Registry | Program::PolicyChecks | Program::PatchChecks => {
            program.module().name
        }
        _ => program.name(),
    }
}

/// Variables that the linker sets, as `PACKAGE.NAME=VALUE`. Without these a Kubernetes program calls itself v0.0.0, and charts with
/// a `kubeVersion` refuse it.
fn variables(program: Program) -> Vec<String> {
    let version = program.version();
    match program {
        Program::Helm => {
            // As Helm's own release is linked: the Kubernetes that is assumed where no cluster is asked is that of its libraries.
            let libraries = required(HELM.go_mod, "k8s.io/client-go").unwrap_or_default();
            let minor = libraries.split('.').nth(1).unwrap_or("0");
            let mut set = vec![format!("helm.sh/helm/v3/internal/version.version={version}")];
            for package in ["helm.sh/helm/v3/pkg/lint/rules", "helm.sh/helm/v3/pkg/chartutil"] {
                set.push(format!("{package}.k8sVersionMajor=1"));
                set.push(format!("{package}.k8sVersionMinor={minor}"));
            }
            set
        }
        Program::Prometheus | Program::Promtool => {
            vec![format!("github.com/prometheus/common/version.Version={}", program.said_version())]
        }
        Program::Krew => vec![format!("sigs.k8s.io/krew/internal/version.gitTag={version}")],
        Program::Etcd
        | Program::Kwok
        | Program::GitOpsChecks
        | Program::SourceController
        | Program::KustomizeController
        | Program::Registry
        | Program::PolicyChecks
        | Program::PatchChecks
        | Program::Buildah => Vec::new(),
        Program::ApiServer
        | Program::OldestApiServer
        | Program::Kubectl
        | Program::ControllerManager
        | Program::Scheduler => {
            let mut parts = version.trim_start_matches('v').split('.');
            let (major, minor) = (parts.next().unwrap_or("0"), parts.next().unwrap_or("0"));
            // The first is what discovery and `--version` say, the second is in the user agent.
            let packages = ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"];
            let set = |package| {
                [
                    format!("{package}.gitVersion={version}"),
                    format!("{package}.gitMajor={major}"),
                    format!("{package}.gitMinor={minor}"),
                ]
            };
            packages.into_iter().flat_map(set).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_a_module_are_linked_with_all_of_its_versions() {
        let flags = Program::Etcd.module().ldflags();
        assert!(flags.starts_with("-s -w -X k8s.io/"), "{flags}");
        for package in ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"] {
            assert!(flags.contains(&format!(" -X {package}.gitVersion=v1.36.3")), "{flags}");
            assert!(flags.contains(&format!(" -X {package}.gitMinor=36")), "{flags}");
        }
        assert_eq!(flags.matches("gitVersion").count(), 2, "{flags}");
        assert!(Program::OldestApiServer.module().ldflags().contains("gitMinor=33"));
    }

    #[test]
    fn helm_assumes_the_kubernetes_of_its_libraries() {
        let flags = HELM.ldflags();
        assert!(flags.contains("chartutil.k8sVersionMinor=32"), "{flags}");
        assert!(flags.contains("version.version=v3.17.3"), "{flags}");
    }

    #[test]
    fn programs_of_a_module_have_different_names() {
        for program in Program::ALL {
            let same = program.module().programs().filter(|other| built_name(*other) == built_name(program));
            assert_eq!(same.count(), 1, "{}", built_name(program));
        }
    }
}
