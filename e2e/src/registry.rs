//! Runs the real registry on loopback, into which real Helm pushes charts.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use crate::bed::{Authority, Bed};
use crate::package::Package;
use crate::programs::{Program, Programs};
use crate::supervisor::Process;

/// Until it listens.
const PATIENCE: Duration = Duration::from_mins(1);
/// A log can only be read again.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// `ann` with the password `hunter2`, as htpasswd hashes it.
const HTPASSWD: &str = "ann:$2a$10$2Z/1Sq2oI9wrC6Yb1eGtbO7dGK1oljfTRdP1AW5SONBq0PMZylhBi\n";
/// Who may use a guarded registry.
pub const LOGIN: (&str, &str) = ("ann", "hunter2");

/// Who may use a registry.
pub enum Guard<'a> {
    /// Everybody, without TLS.
    Nobody,
    /// Who has [`LOGIN`].
    Password,
    /// Who has a token that an authority signed.
    Token {
        /// Where tokens are made.
        realm: &'a str,
        /// What signs them, in PEM.
        authority: &'a str,
    },
}

/// A registry. It ends with its bed.
pub struct Registry {
    process: Process,
    address: String,
    /// Where Helm pushes, and the process behind it: Helm speaks plain http to loopback, whatever it is told, so a registry
    /// with TLS has a second one for the same data, without a guard.
    door: String,
    _door: Option<Process>,
    ca_pem: String,
    helm: PathBuf,
    work: PathBuf,
}

impl Registry {
    /// Starts it on a free port. `name` is its own in the bed.
    pub async fn start(bed: &Bed, name: &str, guard: Guard<'_>) -> Result<Self> {
        let programs = Programs::get(&[Program::Registry, Program::Helm]).await?;
        let work = bed.dir().join(name);
        std::fs::create_dir_all(&work).with_context(|| format!("cannot make {}", work.display()))?;
        let file = |file: &str| work.join(file).display().to_string();
        let mut config = json!({
            "version": 0.1,
            "log": {"level": "info"},
            "storage": {"filesystem": {"rootdirectory": file("data")}},
            "http": {"addr": "127.0.0.1:0"},
        });
        // It would report to a collector otherwise.
        let env = [("OTEL_TRACES_EXPORTER", "none")];
        let program = programs.path(Program::Registry)?;
        let (mut door, mut open) = (None, None);
        let mut ca_pem = String::new();
        if !matches!(guard, Guard::Nobody) {
            std::fs::write(file("door.yml"), config.to_string())?;
            let process =
                bed.run(&format!("{name}-door"), program, &["serve", &file("door.yml")], &env).await?;
            open = Some(listening(&process).await?);
            door = Some(process);
            let authority = Authority::new(name)?;
            let (cert, key) = (file("tls.crt"), file("tls.key"));
            authority.server()?.write(Path::new(&cert), Path::new(&key))?;
            config["http"]["tls"] = json!({"certificate": cert, "key": key});
            ca_pem.clone_from(&authority.ca.cert);
        }
        match guard {
            Guard::Nobody => {}
            Guard::Password => {
                std::fs::write(file("htpasswd"), HTPASSWD)?;
                config["auth"] = json!({"htpasswd": {"realm": "charts", "path": file("htpasswd")}});
            }
            Guard::Token { realm, authority } => {
                std::fs::write(file("tokens.crt"), authority)?;
                config["auth"] = json!({"token": {
                    "realm": realm, "service": "registry", "issuer": "tokens", "rootcertbundle": file("tokens.crt"),
                }});
            }
        }
        std::fs::write(file("config.yml"), config.to_string())?;
        let args = ["serve", &file("config.yml")];
        let process = bed.run(name, program, &args, &env).await?;
        let address = listening(&process).await?;
        let open = open.unwrap_or_else(|| address.clone());
        Ok(Self {
            process,
            address,
            door: open,
            _door: door,
            ca_pem,
            helm: programs.path(Program::Helm)?.to_owned(),
            work,
        })
    }

    /// Its host and port.
    pub fn host(&self) -> &str {
        &self.address
    }

    /// The authority of its certificate, in PEM; empty where it has none.
    pub fn ca(&self) -> &str {
        &self.ca_pem
    }

    /// Its process.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Pushes a chart below `folder` with `helm push`; answers the digest of the manifest, as Helm prints it.
    pub async fn push(&self, package: &Package, folder: &str) -> Result<String> {
        let archive = self.work.join(package.file_name());
        std::fs::write(&archive, &package.bytes)?;
        let mut command = tokio::process::Command::new(&self.helm);
        command.arg("push").arg(&archive);
        command.arg(format!("oci://{}/{folder}", self.door)).arg("--plain-http");
        let output = command.env("HOME", &self.work).output().await.context("cannot start helm")?;
        let said =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        ensure!(output.status.success(), "helm push failed: {said}\n{}", self.process.log_tail(20));
        let digest = said.lines().find_map(|line| line.strip_prefix("Digest: "));
        Ok(digest.with_context(|| format!("helm push printed no digest: {said}"))?.trim().to_owned())
    }
}

/// The address that a starting registry prints.
async fn listening(process: &Process) -> Result<String> {
    let printed = async {
        loop {
            let log = process.log_tail(100);
            let rest = log.split_once("listening on ").map(|(_, rest)| rest);
            if let Some((address, _)) = rest.and_then(|rest| rest.split_once(['"', ','])) {
                return address.to_owned();
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    tokio::select! {
        how = process.ended() => bail!("the registry ended ({how}):\n{}", process.log_tail(30)),
        address = tokio::time::timeout(PATIENCE, printed) => address.context("the registry does not listen"),
    }
}

/// A login for several hosts, as `kubectl create secret docker-registry` writes it.
pub fn docker_config(logins: &[(&str, &str, &str)]) -> String {
    let auths: serde_json::Map<String, Value> = logins
        .iter()
        .map(|(host, user, password)| ((*host).to_owned(), json!({"username": user, "password": password})))
        .collect();
    json!({"auths": auths}).to_string()
}
