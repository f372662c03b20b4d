//! Gives a plane a node with a kubelet that kwok plays: Pods bound to it run, have a log, and take commands.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::Plane;
use super::ports::Port;
use super::spec::Parts;
use super::start::kubeconfig_of;
use crate::programs::{Program, Programs};

/// Nobody, on every Linux: commands in Pods are processes of this machine.
const NOBODY: u32 = 65_534;

/// Until it listens.
const PATIENCE: Duration = Duration::from_mins(1);
/// A program that does not listen yet can only be asked again.
const ASK_EVERY: Duration = Duration::from_millis(20);
/// Ports that are tried: kwok shares none, so that another program may be faster.
const PORTS: usize = 3;

impl Plane {
    /// Adds a node and its kubelet. Every container on it has `log` for its log, one line each; a command that is run in one runs on this
    /// machine as nobody. A plane has one such node, and none where kwok plays all nodes.
    pub async fn add_kubelet(&self, node: &str, log: &[&str]) -> Result<()> {
        ensure!(self.spec.parts < Parts::Full, "kwok plays all nodes of {}", self.name());
        let programs = Programs::get(&[Program::Kwok]).await?;
        let stages = programs.stages()?;
        let stages = fs::read_dir(stages).with_context(|| format!("cannot read {}", stages.display()))?;
        let mut configs = vec![self.kubelet_config(log)?];
        configs.extend(stages.flatten().map(|entry| entry.path()));
        self.kubectl()
            .apply(&json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}}).to_string())
            .await?;
        for _ in 0..PORTS {
            let port = Port::reserve()?.number;
            let args = self.kubelet_args(node, port, &configs);
            self.start_program_at(Program::Kwok, programs.path(Program::Kwok)?, args).await?;
            let kwok = self.process(Program::Kwok).await?;
            let listens = async {
                while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
                    tokio::time::sleep(ASK_EVERY).await;
                }
            };
            tokio::select! {
                _ = kwok.ended() => {}
                listening = tokio::time::timeout(PATIENCE, listens) => {
                    return listening.with_context(|| format!("kwok does not listen:\n{}", kwok.log_tail(20)));
                }
            }
        }
        bail!("kwok ended on {PORTS} ports:\n{}", self.process(Program::Kwok).await?.log_tail(20))
    }

    fn kubelet_args(&self, node: &str, port: u16, configs: &[PathBuf]) -> Vec<String> {
        let in_dir = |name: &str| self.dir.join(name).display().to_string();
        let mut args = vec![
            format!("--kubeconfig={}", kubeconfig_of(self, Program::Kwok).display()),
            "--manage-all-nodes=false".to_owned(),
            format!("--manage-single-node={node}"),
            "--node-ip=127.0.0.1".to_owned(),
            format!("--node-port={port}"),
            format!("--server-address=127.0.0.1:{port}"),
            format!("--tls-cert-file={}", in_dir("server.crt")),
            format!("--tls-private-key-file={}", in_dir("server.key")),
        ];
        args.extend(configs.iter().map(|path| format!("--config={}", path.display())));
        args
    }

    /// What kwok answers for containers, in a file.
    fn kubelet_config(&self, log: &[&str]) -> Result<PathBuf> {
        let log_file = self.dir.join("containers.log");
        // As container runtimes write it.
        let lines = log.iter().map(|line| format!("2026-01-01T00:00:00.000000000Z stdout F {line}\n"));
        fs::write(&log_file, lines.collect::<String>()).context("cannot write a log of containers")?;
        let of = |kind: &str, spec: &Value| {
            json!({"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": kind, "metadata": {"name": "all"}, "spec": spec})
                .to_string()
        };
        let logs = of("ClusterLogs", &json!({"logs": [{"logsFile": log_file, "follow": false}]}));
        let local = json!({"securityContext": {"runAsUser": NOBODY, "runAsGroup": NOBODY}});
        let execs = of("ClusterExec", &json!({"execs": [{"local": local}]}));
        let config = self.dir.join("kubelet.yaml");
        fs::write(&config, format!("{logs}\n---\n{execs}\n")).context("cannot write the config of kwok")?;
        Ok(config)
    }
}
