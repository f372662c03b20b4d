//! Starts and stops the programs of one control plane together, and gives access to it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Resource};
use tokio::sync::{Mutex, Semaphore};

use super::certs::Authority;
use super::etcd::EtcdPlace;
use super::kubeconfig::{self, Credentials};
use super::ports::Port;
use super::spec::{Parts, PlaneSpec};
use super::{bootstrap, ready, start};
use crate::kubectl::Kubectl;
use crate::programs::{Program, Programs};
use crate::supervisor::{Process, ProgramSpec, Proxy, Supervisor};
use crate::usage::Usage;

/// The group that may do everything.
const ADMINS: &str = "system:masters";

/// How many API servers start at once. Starting is all computing: of ten that start together, none answers before all of them have
/// worked, and the etcd that they share comes too late for some.
static STARTS: Semaphore = Semaphore::const_new(3);

/// One running control plane.
pub struct Plane {
    pub(super) spec: PlaneSpec,
    pub(super) supervisor: Arc<Supervisor>,
    pub(super) programs: Programs,
    pub(super) authority: Authority,
    pub(super) dir: PathBuf,
    pub(super) port: Port,
    pub(super) proxy: Option<Proxy>,
    pub(super) etcd_url: String,
    pub(super) own_etcd: Option<EtcdPlace>,
    pub(super) running: Mutex<BTreeMap<Program, Arc<Process>>>,
    pub(super) kubectl: Kubectl,
}

/// Growth of the heap, in percent, after which Go collects garbage. With its own choice of 100 API servers collect for a fifth of
/// all the processor time that they use.
const COLLECT_AT: &str = "300";

impl Plane {
    /// The name given in the spec.
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// A kubeconfig for what is under test: user `emco`, who may do everything, through the proxy if there is one.
    pub fn kubeconfig(&self) -> Result<String> {
        self.kubeconfig_as("emco", Some(ADMINS))
    }

    /// A file with that kubeconfig, for as long as the bed.
    pub fn kubeconfig_file(&self) -> Result<PathBuf> {
        let file = self.dir.join("emco.kubeconfig");
        std::fs::write(&file, self.kubeconfig()?)
            .with_context(|| format!("cannot write {}", file.display()))?;
        Ok(file)
    }

    /// A kubeconfig for `user` in `group`, with no rights but those that RBAC gives them; through the proxy if there is one.
    pub fn kubeconfig_as(&self, user: &str, group: Option<&str>) -> Result<String> {
        self.config(self.public_port(), user, group)
    }

    /// A kubeconfig for user `emco`, who may do everything, whose certificate ended an hour ago; through the proxy if there is one.
    pub fn kubeconfig_that_ended(&self) -> Result<String> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).context("the clock stands before 1970")?;
        let end = now.saturating_sub(Duration::from_hours(1));
        let pair = self.authority.client_until("emco", Some(ADMINS), end)?;
        let (port, ca) = (self.public_port(), &self.authority.ca.cert);
        Ok(kubeconfig::kubeconfig(self.name(), port, ca, &Credentials::Certificate(&pair)))
    }

    /// A kubeconfig with a bearer token, such as one of a service account; through the proxy if there is one.
    pub fn kubeconfig_with_token(&self, token: &str) -> String {
        let name = self.name();
        kubeconfig::kubeconfig(name, self.public_port(), &self.authority.ca.cert, &Credentials::Token(token))
    }

    /// A kubeconfig for the test itself: user `tester`, who may do everything, past the proxy.
    pub fn tester_kubeconfig(&self) -> Result<String> {
        self.config(self.port.number, "tester", Some(ADMINS))
    }

    /// A new client of user `tester`, past the proxy. It belongs to the runtime it is made on: make one per test.
    pub async fn client(&self) -> Result<kube::Client> {
        kubeconfig::client(&self.tester_kubeconfig()?).await
    }

    /// The objects of one kind in a namespace, through a new client of user `tester`.
    pub async fn api<K>(&self, namespace: &str) -> Result<Api<K>>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Ok(Api::namespaced(self.client().await?, namespace))
    }

    /// A new client of `user` in `group`, past the proxy.
    pub async fn client_as(&self, user: &str, group: Option<&str>) -> Result<kube::Client> {
        kubeconfig::client(&self.config(self.port.number, user, group)?).await
    }

    /// Makes a namespace for one test and waits until Pods can be made in it; an error if it exists.
    pub async fn namespace(&self, name: &str) -> Result<String> {
        let client = self.client().await?;
        let object = Namespace {
            metadata: ObjectMeta { name: Some(name.to_owned()), ..Default::default() },
            ..Default::default()
        };
        Api::<Namespace>::all(client.clone())
            .create(&PostParams::default(), &object)
            .await
            .with_context(|| format!("cannot make namespace {name} in {}", self.name()))?;
        if self.spec.parts >= Parts::Controllers {
            ready::default_account(&client, name).await?;
        }
        Ok(name.to_owned())
    }

    /// The key that signs tokens of its service accounts, in PEM.
    pub fn tokens_key(&self) -> Result<String> {
        let file = self.dir.join("tokens.key");
        std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
    }

    /// The certificate of its authority, in PEM.
    pub fn ca(&self) -> &str {
        &self.authority.ca.cert
    }

    /// The address handed out: of the proxy if there is one.
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.public_port())
    }

    /// kubectl as user `tester`, past the proxy.
    pub fn kubectl(&self) -> &Kubectl {
        &self.kubectl
    }

    /// What each of its running programs has used; an etcd only if it is the plane's own.
    pub async fn usage(&self) -> Result<BTreeMap<&'static str, Usage>> {
        let running = self.running.lock().await;
        let of = |(program, process): (&Program, &Arc<Process>)| Ok((program.name(), process.usage()?));
        running.iter().filter(|(_, process)| process.is_running()).map(of).collect()
    }

    /// The programs that were started for it and not killed since.
    pub async fn processes(&self) -> Vec<Arc<Process>> {
        self.running.lock().await.values().cloned().collect()
    }

    pub(super) fn config(&self, port: u16, user: &str, group: Option<&str>) -> Result<String> {
        let pair = self.authority.client(user, group)?;
        let credentials = Credentials::Certificate(&pair);
        Ok(kubeconfig::kubeconfig(self.name(), port, &self.authority.ca.cert, &credentials))
    }

    fn public_port(&self) -> u16 {
        self.proxy.as_ref().map_or(self.port.number, Proxy::port)
    }

    /// Starts all programs and waits until the plane is ready for objects.
    pub(super) async fn start(&self) -> Result<()> {
        self.start_etcd().await?;
        let client = self.client_as("bed", Some(ADMINS)).await?;
        {
            let _turn = STARTS.acquire().await.context("nothing starts any more")?;
            self.start_api_server().await?;
            ready::api_server(self, &client).await?;
        }
        self.start_controllers().await?;
        bootstrap::apply(&self.spec, &client)
            .await
            .with_context(|| format!("cannot make the first objects of {}", self.name()))?;
        ready::everything(self, &client).await
    }

    pub(super) async fn start_etcd(&self) -> Result<()> {
        if let Some(place) = &self.own_etcd {
            let process = place.start(&self.supervisor).await?;
            self.running.lock().await.insert(Program::Etcd, Arc::new(process));
        }
        Ok(())
    }

    pub(super) async fn start_api_server(&self) -> Result<()> {
        self.start_program(Program::ApiServer, start::api_server_args(self)).await
    }

    pub(super) async fn start_controllers(&self) -> Result<()> {
        if self.spec.parts >= Parts::Controllers {
            self.start_program(Program::ControllerManager, start::controller_manager_args(self)).await?;
        }
        if self.spec.parts == Parts::Full {
            self.start_program(Program::Scheduler, start::scheduler_args(self)).await?;
            self.start_program(Program::Kwok, start::kwok_args(self)?).await?;
        }
        Ok(())
    }

    async fn start_program(&self, program: Program, args: Vec<String>) -> Result<()> {
        let which = match program {
            Program::ApiServer if self.spec.oldest => Program::OldestApiServer,
            other => other,
        };
        self.start_program_at(program, self.programs.path(which)?, args).await
    }

    /// Starts a program from a place of its own.
    pub(super) async fn start_program_at(
        &self,
        program: Program,
        at: &Path,
        args: Vec<String>,
    ) -> Result<()> {
        let name = format!("{}-{}", self.name(), program.name());
        let spec = ProgramSpec {
            name: format!("{}/{}", self.name(), program.name()),
            program: at.to_owned(),
            args,
            env: BTreeMap::from([
                ("HOME".to_owned(), self.dir.display().to_string()),
                ("GOGC".to_owned(), COLLECT_AT.to_owned()),
                ("GOMEMLIMIT".to_owned(), format!("{}MiB", self.spec.memory_mib)),
            ]),
            log: start::log_file(self.supervisor.root(), &name),
        };
        let process = self.supervisor.run(spec).await?;
        self.running.lock().await.insert(program, Arc::new(process));
        Ok(())
    }

    /// The running program; an error says that it was killed and not started again.
    pub(super) async fn process(&self, program: Program) -> Result<Arc<Process>> {
        let running = self.running.lock().await;
        let process = running.get(&program).cloned();
        process.with_context(|| format!("{} of {} does not run", program.name(), self.name()))
    }

    pub(super) async fn kill_program(&self, program: Program) -> Result<()> {
        let process = self.running.lock().await.remove(&program);
        match process {
            Some(process) => process.kill().await,
            None => Ok(()),
        }
    }
}
