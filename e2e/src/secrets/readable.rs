//! Searches the logs, metrics, Events and statuses of a bed, and what commands printed, for the secrets that its planes hold.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::process::Output;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use emco_crds::kinds::{self, Writer};
use k8s_openapi::api::core::v1::Secret;
use kube::api::ListParams;
use kube::{Api, Client};
use serde_json::Value;
use tokio::process::Command;

use super::{Printed, Secrets, listening, metrics};
use crate::bed::Bed;

/// A plane that a test has stopped does not answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Logs of programs that are not under test.
const OTHERS: [&str; 5] = ["kube-", "etcd", "kwok", "prometheus", "registry"];

impl Bed {
    /// The secrets in all Secrets of all planes as they are now.
    pub async fn secrets(&self) -> Result<Secrets> {
        let mut all = Secrets::default();
        for plane in self.planes() {
            let list = Api::<Secret>::all(plane.client().await?).list(&ListParams::default()).await;
            for secret in list.with_context(|| format!("the Secrets of {}", plane.name()))? {
                all.0.extend(Secrets::of(&secret).0);
            }
        }
        Ok(all)
    }

    /// What the programs under test logged and show as metrics, and the Events and statuses of the hub.
    pub async fn readable(&self) -> Result<String> {
        let (mut text, addresses) = self.logs_under_test()?;
        text.push_str(&metrics::of(&addresses).await);
        let client = self.hub().client().await?;
        if let Some(events) = list(&client, "/api/v1/events").await? {
            text.push_str(&events.to_string());
        }
        for row in kinds::ALL {
            let kind = row.plural();
            let Some(objects) = list(&client, &format!("/apis/emco.io/v1alpha1/{kind}")).await? else {
                continue;
            };
            for object in objects["items"].as_array().into_iter().flatten() {
                // What the operator writes is names, digests and messages.
                let shown = if row.writer == Writer::Operator { object } else { &object["status"] };
                text.push_str(&format!("\n{kind} {}: {shown}", object["metadata"]["name"]));
            }
        }
        Ok(text)
    }

    /// What each operator that runs shows as metrics now.
    pub async fn metrics(&self) -> Result<String> {
        let (_, addresses) = self.logs_under_test()?;
        Ok(metrics::of(&addresses).await)
    }

    /// What `kubectl emco` printed.
    pub fn printed(&self) -> Printed {
        Printed::new(self.dir())
    }

    /// Runs `kubectl emco`, or a shell with it, to its end and keeps what it prints: that is searched for secrets when a test ends.
    pub async fn hear(&self, command: &mut Command) -> Result<Output> {
        let output = command.output().await?;
        let args: Vec<_> = command.as_std().get_args().map(OsStr::to_string_lossy).collect();
        self.printed().keep(&args, &[&output.stdout, &output.stderr])?;
        Ok(output)
    }

    /// All logs, and where operators said last that they serve metrics.
    fn logs_under_test(&self) -> Result<(String, BTreeSet<SocketAddr>)> {
        let (mut text, mut addresses) = (String::new(), BTreeSet::new());
        for entry in std::fs::read_dir(self.dir().join("logs")).context("the folder of logs")? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let of_others = OTHERS.iter().any(|other| name.contains(other));
            if !of_others && path.extension().is_some_and(|extension| extension == "log") {
                let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
                let log = String::from_utf8_lossy(&bytes);
                addresses.extend(listening(&log, "--listen"));
                text.push_str(&log);
            }
        }
        Ok((text, addresses))
    }

    /// An error where a secret of this bed stands where people may read it. A bed with a plane that does not answer is not searched.
    pub async fn shows_no_secret(&self) -> Result<()> {
        if self.planes().all(|plane| plane.name() != "hub") {
            return Ok(());
        }
        let both = async { Ok::<_, anyhow::Error>((self.secrets().await?, self.readable().await?)) };
        let Ok(Ok((secrets, readable))) = tokio::time::timeout(PATIENCE, both).await else { return Ok(()) };
        let shown = secrets.shown_in(&readable);
        ensure!(shown.is_none(), "{}", shown.unwrap_or_default());
        let shown = self.printed().shows(&secrets)?;
        ensure!(shown.is_none(), "kubectl emco: {}", shown.unwrap_or_default());
        Ok(())
    }
}

/// The objects of a collection; `None` where the server does not know the kind.
async fn list(client: &Client, path: &str) -> Result<Option<Value>> {
    let request = http::Request::get(path).body(Vec::new()).context("a path of our own")?;
    match client.request::<Value>(request).await {
        Ok(list) => Ok(Some(list)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error).context(path.to_owned()),
    }
}
