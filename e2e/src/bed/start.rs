//! Starts all planes of a bed, and sets the flags of every program.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use futures::future::try_join_all;
use tokio::sync::Mutex;

use super::certs::Authority;
use super::etcd::EtcdPlace;
use super::plane::Plane;
use super::ports::Port;
use super::spec::{Audit, BedSpec, Etcd, Parts, PlaneSpec};
use super::{Bed, bootstrap};
use crate::kubectl::Kubectl;
use crate::programs::{Program, Programs};
use crate::supervisor::Supervisor;
use crate::{audit, diagnose};

pub(super) async fn start(spec: BedSpec) -> Result<Bed> {
    let mut names = BTreeSet::new();
    if let Some(twice) = spec.planes.iter().find(|plane| !names.insert(plane.name.clone())) {
        bail!("two planes of this bed are called {}", twice.name);
    }
    let programs = Programs::get(&wanted(&spec)).await?;
    let supervisor = Supervisor::start().await?;
    supervisor.lease(spec.planes.len()).await?;
    let root = supervisor.root().to_owned();
    fs::create_dir(root.join("logs")).context("cannot make the folder for logs")?;

    let shared = if spec.planes.iter().any(|plane| plane.etcd == Etcd::Shared) {
        Some(EtcdPlace::new("shared", &root, programs.path(Program::Etcd)?)?)
    } else {
        None
    };
    let shared_etcd = match &shared {
        Some(place) => Some(place.start(&supervisor).await?),
        None => None,
    };
    let shared_url = shared.as_ref().map(EtcdPlace::url).unwrap_or_default();
    let mut planes = Vec::new();
    for plane in spec.planes {
        planes.push(prepare(plane, &supervisor, &programs, &shared_url).await?);
    }
    if let Err(error) = try_join_all(planes.iter().map(Plane::start)).await {
        let logs = diagnose::logs(&root.join("logs"), 8);
        return Err(error.context(format!("the test bed did not start; its logs end with:\n{logs}\n")));
    }
    let planes = planes.into_iter().map(|plane| (plane.name().to_owned(), plane)).collect();
    Ok(Bed { supervisor, programs, planes, _shared_etcd: shared.zip(shared_etcd) })
}

/// Where the log of a program is; a name may hold slashes.
pub(super) fn log_file(root: &Path, name: &str) -> PathBuf {
    root.join("logs").join(format!("{}.log", name.replace('/', "-")))
}

fn wanted(spec: &BedSpec) -> Vec<Program> {
    let most = spec.planes.iter().map(|plane| plane.parts).max();
    let mut wanted = vec![Program::Etcd, Program::ApiServer, Program::Kubectl];
    if most >= Some(Parts::Controllers) {
        wanted.push(Program::ControllerManager);
    }
    if most == Some(Parts::Full) {
        wanted.extend([Program::Scheduler, Program::Kwok]);
    }
    if spec.planes.iter().any(|plane| plane.oldest) {
        wanted.push(Program::OldestApiServer);
    }
    if spec.helm {
        wanted.push(Program::Helm);
    }
    wanted
}

/// Makes keys, ports and files of a plane; nothing of it runs yet but its proxy.
async fn prepare(
    spec: PlaneSpec,
    supervisor: &Arc<Supervisor>,
    programs: &Programs,
    shared_etcd: &str,
) -> Result<Plane> {
    let root = supervisor.root();
    let dir = root.join(&spec.name);
    fs::create_dir(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let authority = Authority::new(&spec.name)?;
    authority.ca.write(&dir.join("ca.crt"), &dir.join("ca.key"))?;
    authority.server()?.write(&dir.join("server.crt"), &dir.join("server.key"))?;
    // Its key signs the tokens of ServiceAccounts; nobody trusts it for anything else.
    authority.client("tokens", None)?.write(&dir.join("tokens.crt"), &dir.join("tokens.key"))?;
    if let Some(policy) = audit::policy(spec.audit) {
        fs::write(dir.join("audit.yaml"), policy).context("cannot write the audit policy")?;
    }
    let port = Port::reserve()?;
    let proxy = if spec.proxied { Some(supervisor.proxy(port.number).await?) } else { None };
    let own_etcd = match spec.etcd {
        Etcd::Own => Some(EtcdPlace::new(&spec.name, root, programs.path(Program::Etcd)?)?),
        Etcd::Shared => None,
    };
    let etcd_url = own_etcd.as_ref().map_or_else(|| shared_etcd.to_owned(), EtcdPlace::url);
    let kubectl = Kubectl::new(programs.path(Program::Kubectl)?, &dir);
    let running = Mutex::new(BTreeMap::new());
    let (supervisor, programs) = (Arc::clone(supervisor), programs.clone());
    let plane = Plane {
        spec,
        supervisor,
        programs,
        authority,
        dir,
        port,
        proxy,
        etcd_url,
        own_etcd,
        running,
        kubectl,
    };

    fs::write(plane.kubectl.kubeconfig(), plane.tester_kubeconfig()?).context("cannot write a kubeconfig")?;
    let admins = Some("system:masters");
    let components = [
        (Program::ControllerManager, "system:kube-controller-manager", None),
        (Program::Scheduler, "system:kube-scheduler", None),
        (Program::Kwok, "kwok", admins),
    ];
    for (program, user, group) in components {
        let text = plane.config(plane.port.number, user, group)?;
        fs::write(kubeconfig_of(&plane, program), text).context("cannot write a kubeconfig")?;
    }
    if plane.spec.parts == Parts::Full {
        bootstrap::write_stages(&plane.dir)?;
    }
    Ok(plane)
}

pub(super) fn kubeconfig_of(plane: &Plane, program: Program) -> PathBuf {
    plane.dir.join(format!("{}.kubeconfig", program.name()))
}

pub(super) fn api_server_args(plane: &Plane) -> Vec<String> {
    let file = |name: &str| plane.dir.join(name).display().to_string();
    let mut args = vec![
        format!("--etcd-servers={}", plane.etcd_url),
        format!("--etcd-prefix=/{}", plane.name()),
        format!("--secure-port={}", plane.port.number),
        "--bind-address=127.0.0.1".to_owned(),
        "--permit-port-sharing=true".to_owned(),
        // Of a network that exists nowhere: a machine without a route to the world has no address to find.
        "--advertise-address=192.0.2.1".to_owned(),
        format!("--tls-cert-file={}", file("server.crt")),
        format!("--tls-private-key-file={}", file("server.key")),
        format!("--client-ca-file={}", file("ca.crt")),
        format!("--service-account-key-file={}", file("tokens.crt")),
        format!("--service-account-signing-key-file={}", file("tokens.key")),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        "--authorization-mode=RBAC".to_owned(),
        "--service-cluster-ip-range=10.0.0.0/16".to_owned(),
        "--allow-privileged=true".to_owned(),
        format!("--cert-dir={}", file("certs")),
    ];
    if plane.spec.audit != Audit::Off {
        args.push(format!("--audit-policy-file={}", file("audit.yaml")));
        args.push(format!("--audit-log-path={}", plane.audit_log().display()));
        args.push("--audit-log-maxsize=1024".to_owned());
        args.push("--audit-log-maxbackup=1".to_owned());
    }
    args.extend(plane.spec.api_flags.iter().cloned());
    args
}

pub(super) fn controller_manager_args(plane: &Plane) -> Vec<String> {
    let file = |name: &str| plane.dir.join(name).display().to_string();
    let mut args = vec![
        format!("--kubeconfig={}", kubeconfig_of(plane, Program::ControllerManager).display()),
        format!("--service-account-private-key-file={}", file("tokens.key")),
        format!("--root-ca-file={}", file("ca.crt")),
        format!("--cluster-signing-cert-file={}", file("ca.crt")),
        format!("--cluster-signing-key-file={}", file("ca.key")),
        "--use-service-account-credentials=true".to_owned(),
        "--leader-elect=false".to_owned(),
        "--secure-port=0".to_owned(),
        // It starts with some hundred requests, and would take five seconds for them.
        "--kube-api-qps=200".to_owned(),
        "--kube-api-burst=400".to_owned(),
        // A frozen API server must not make the nodes look dead when it is thawed: nothing would heal their Pods.
        "--node-monitor-grace-period=24h".to_owned(),
    ];
    args.extend(plane.spec.controller_flags.iter().cloned());
    args
}

pub(super) fn scheduler_args(plane: &Plane) -> Vec<String> {
    vec![
        format!("--kubeconfig={}", kubeconfig_of(plane, Program::Scheduler).display()),
        "--leader-elect=false".to_owned(),
        "--secure-port=0".to_owned(),
    ]
}

pub(super) fn kwok_args(plane: &Plane) -> Result<Vec<String>> {
    let mut args = vec![
        format!("--kubeconfig={}", kubeconfig_of(plane, Program::Kwok).display()),
        "--manage-all-nodes=true".to_owned(),
        "--node-lease-duration-seconds=40".to_owned(),
    ];
    let mut stages = Vec::new();
    for dir in [plane.programs.stages()?, &bootstrap::stages_dir(&plane.dir)] {
        let entries = fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
        stages.extend(entries.flatten().map(|entry| entry.path()));
    }
    stages.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    stages.sort();
    args.extend(stages.iter().map(|path| format!("--config={}", path.display())));
    Ok(args)
}
