//! Runs Flux's source-controller and kustomize-controller beside the API server of a plane.

use std::net::TcpListener;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use emco_e2e::bed::Bed;
use emco_e2e::programs::{Program, Programs, definitions_of_flux};
use emco_e2e::supervisor::Process;

use super::fleet::Fleet;

/// The user whom the controllers are, who may do everything.
const USER: &str = "flux";
const NAMESPACE: &str = "apiVersion: v1\nkind: Namespace\nmetadata: {name: flux-system}\n";
/// Random ports, no leader, and only their own objects.
const COMMON: [&str; 4] = [
    "--enable-leader-election=false",
    "--health-addr=127.0.0.1:0",
    "--metrics-addr=127.0.0.1:0",
    "--events-addr=",
];

/// The programs. A first build takes long, and should not be beside a bed.
pub async fn built() -> Result<Programs> {
    Programs::get(&[Program::SourceController, Program::KustomizeController]).await
}

/// The controllers of a plane. They end with its bed.
pub struct Flux {
    plane: String,
    kubeconfig: PathBuf,
    applies: Process,
}

impl Flux {
    /// Installs the kinds and starts the controllers.
    pub async fn start(bed: &Bed, plane: &str) -> Result<Self> {
        let kubectl = bed.edge(plane).kubectl();
        kubectl.apply(&format!("{NAMESPACE}---\n{}", definitions_of_flux().await?)).await?;
        kubectl.run(&["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"]).await?;
        let kubeconfig = bed.dir().join(format!("flux-{plane}.kubeconfig"));
        std::fs::write(&kubeconfig, bed.edge(plane).kubeconfig_as(USER, Some("system:masters"))?)?;
        let storage = bed.dir().join(format!("flux-{plane}"));
        std::fs::create_dir_all(&storage)?;
        let address = free_address()?;
        let source = [
            format!("--storage-path={}", storage.display()),
            format!("--storage-addr={address}"),
            format!("--storage-adv-addr={address}"),
        ];
        run(bed, plane, Program::SourceController, &kubeconfig, &source).await?;
        let applies = applier(bed, plane, &kubeconfig).await?;
        Ok(Self { plane: plane.to_owned(), kubeconfig, applies })
    }

    /// Ends what applies.
    pub async fn stop(&self) -> Result<()> {
        self.applies.kill().await
    }

    /// Starts it again.
    pub async fn go_on(&mut self, bed: &Bed) -> Result<()> {
        self.applies = applier(bed, &self.plane, &self.kubeconfig).await?;
        Ok(())
    }
}

async fn applier(bed: &Bed, plane: &str, kubeconfig: &Path) -> Result<Process> {
    let soon = ["--requeue-dependency=2s".to_owned()];
    run(bed, plane, Program::KustomizeController, kubeconfig, &soon).await
}

/// The two objects that a cluster needs once, as `kubectl emco cluster add --git` makes them; in a hurry.
pub fn root(fleet: &Fleet, edge: &str) -> String {
    let (url, folder) = (fleet.server.url(), fleet.folder(edge));
    format!(
        "
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {{name: emco, namespace: flux-system}}
spec: {{interval: 5s, url: '{url}', ref: {{branch: main}}, sparseCheckout: ['{folder}']}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {{name: emco, namespace: flux-system}}
spec:
  interval: 10s
  retryInterval: 5s
  path: ./{folder}/sync
  prune: true
  sourceRef: {{kind: GitRepository, name: emco}}
"
    )
}

async fn run(
    bed: &Bed,
    plane: &str,
    program: Program,
    kubeconfig: &Path,
    more: &[String],
) -> Result<Process> {
    let programs = built().await?;
    let kubeconfig = kubeconfig.display().to_string();
    let home = bed.dir().display().to_string();
    let args: Vec<&str> = COMMON.into_iter().chain(more.iter().map(String::as_str)).collect();
    let env =
        [("KUBECONFIG", kubeconfig.as_str()), ("RUNTIME_NAMESPACE", "flux-system"), ("HOME", home.as_str())];
    let name = format!("{}-{plane}", program.name());
    bed.run(&name, programs.path(program)?, &args, &env).await
}

/// An address on loopback that nobody has now.
fn free_address() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").context("no free port on 127.0.0.1")?;
    Ok(listener.local_addr()?.to_string())
}
