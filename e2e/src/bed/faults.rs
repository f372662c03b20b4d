//! Freezes, ends, cuts off, slows, wipes a running plane, or takes it back in time.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;

use super::etcd::EtcdPlace;
use super::plane::Plane;
use super::ready;
use crate::audit::{AuditEvent, AuditMark};
use crate::programs::Program;
use crate::supervisor::{Line, Proxy};

/// The state of a plane's own etcd at one moment; good for as long as the bed.
#[derive(Debug, Clone)]
pub struct Snapshot {
    dir: PathBuf,
}

impl Plane {
    /// Stops the API server where it is: connections stay open, nothing answers.
    pub async fn freeze(&self) -> Result<()> {
        self.process(Program::ApiServer).await?.freeze().await
    }

    /// Lets a frozen API server go on.
    pub async fn thaw(&self) -> Result<()> {
        self.process(Program::ApiServer).await?.thaw().await
    }

    /// Kills the API server: its port refuses connections until [`Plane::restart`].
    pub async fn kill(&self) -> Result<()> {
        self.kill_program(Program::ApiServer).await
    }

    /// Starts the API server again, on the same port and the same objects, killing it first if it runs; waits until it is
    /// ready.
    pub async fn restart(&self) -> Result<()> {
        self.kill().await?;
        self.start_api_server().await?;
        self.wait_until_ready().await
    }

    /// Starts the killed API server again and waits for nothing: it answers before it is ready.
    pub async fn begin(&self) -> Result<()> {
        self.start_api_server().await
    }

    /// Makes the line a black hole: connections stay open, new ones are accepted, nothing passes. Needs a proxy.
    pub async fn cut_off(&self) -> Result<()> {
        self.line()?.set(Line::Silent).await
    }

    /// Closes all connections and each new one. Needs a proxy.
    pub async fn refuse(&self) -> Result<()> {
        self.line()?.set(Line::Refusing).await
    }

    /// Makes each piece of up to 16 KiB this late, in both directions. Needs a proxy.
    pub async fn slow(&self, delay: Duration) -> Result<()> {
        self.line()?.set(Line::Slow(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX))).await
    }

    /// Makes the line good again; what was held up passes. Needs a proxy.
    pub async fn restore(&self) -> Result<()> {
        self.line()?.set(Line::Good).await
    }

    /// Loses all objects, as a machine that is installed again: same address and certificates, other identity. Needs an
    /// etcd of its own.
    pub async fn wipe(&self) -> Result<()> {
        let place = self.own()?;
        self.stop_all().await?;
        remove(&place.data)?;
        self.start().await
    }

    /// How far its store has come.
    pub async fn version(&self) -> Result<u64> {
        let all = Api::<Namespace>::all(self.client().await?);
        let list = all.list(&ListParams::default().limit(1)).await?;
        list.metadata.resource_version.unwrap_or_default().parse().context("the plane has no version")
    }

    /// Others use it as well: its store comes further by so many versions.
    pub async fn others_write(&self, times: usize) -> Result<()> {
        let maps = self.api::<ConfigMap>("default").await?;
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "busy"}});
        maps.patch("busy", &PatchParams::apply("others"), &Patch::Apply(map)).await?;
        for number in 1..times {
            // Costs the server half of what an apply does.
            let data = json!({"data": {"number": number.to_string()}});
            maps.patch("busy", &PatchParams::default(), &Patch::Merge(data)).await?;
        }
        Ok(())
    }

    /// Keeps a copy of all objects. The plane stands still for some milliseconds. Needs an etcd of its own.
    pub async fn snapshot(&self) -> Result<Snapshot> {
        let place = self.own()?;
        let etcd = self.process(Program::Etcd).await?;
        let number = std::fs::read_dir(&self.dir).context("cannot read the plane's folder")?.count();
        let dir = self.dir.join(format!("snapshot-{number}"));
        // What a stopped etcd has written is what a killed one would find again: as after a crash, nothing is lost.
        etcd.freeze().await?;
        let copied = copy(place.data.clone(), dir.clone()).await;
        etcd.thaw().await?;
        copied.map(|()| Snapshot { dir })
    }

    /// Goes back to the objects and the resourceVersion of a snapshot, as a restored backup. Needs an etcd of its own.
    pub async fn restore_from(&self, snapshot: &Snapshot) -> Result<()> {
        let place = self.own()?;
        self.stop_all().await?;
        remove(&place.data)?;
        copy(snapshot.dir.clone(), place.data.clone()).await?;
        self.start().await
    }

    /// Where the next entry of the audit log will stand. Needs an audit log.
    pub fn audit_mark(&self) -> Result<AuditMark> {
        AuditMark::end_of(&self.audit_log())
    }

    /// The entries of the audit log since then, oldest first. Needs an audit log.
    pub fn audit_since(&self, mark: AuditMark) -> Result<Vec<AuditEvent>> {
        mark.read(&self.audit_log())
    }

    /// All entries of the audit log, oldest first. Needs an audit log.
    pub fn audit(&self) -> Result<Vec<AuditEvent>> {
        self.audit_since(AuditMark::default())
    }

    pub(super) fn audit_log(&self) -> PathBuf {
        self.supervisor.root().join("logs").join(format!("{}.audit", self.name()))
    }

    /// All programs: those that watch would wait for revisions that the new past does not have.
    async fn stop_all(&self) -> Result<()> {
        for program in
            [Program::Kwok, Program::Scheduler, Program::ControllerManager, Program::ApiServer, Program::Etcd]
        {
            self.kill_program(program).await?;
        }
        Ok(())
    }

    /// Waits until the plane is as ready as when the bed started.
    pub async fn wait_until_ready(&self) -> Result<()> {
        let client = self.client().await?;
        ready::api_server(self, &client).await?;
        ready::everything(self, &client).await
    }

    fn line(&self) -> Result<&Proxy> {
        self.proxy
            .as_ref()
            .with_context(|| format!("{} has no proxy: ask for it with PlaneSpec::proxied", self.name()))
    }

    fn own(&self) -> Result<&EtcdPlace> {
        self.own_etcd.as_ref().with_context(|| {
            format!("{} shares its etcd: ask for its own with PlaneSpec::own_etcd", self.name())
        })
    }
}

fn remove(dir: &Path) -> Result<()> {
    std::fs::remove_dir_all(dir).with_context(|| format!("cannot remove {}", dir.display()))
}

async fn copy(from: PathBuf, to: PathBuf) -> Result<()> {
    tokio::task::spawn_blocking(move || copy_folder(&from, &to)).await.context("the copying thread ended")?
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir(to).with_context(|| format!("cannot make {}", to.display()))?;
    for entry in std::fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry.with_context(|| format!("cannot read {}", from.display()))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            copy_folder(&source, &target)?;
        } else {
            std::fs::copy(&source, &target).with_context(|| format!("cannot copy {}", source.display()))?;
        }
    }
    Ok(())
}
