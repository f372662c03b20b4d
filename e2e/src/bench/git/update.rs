//! Changes a value on all clusters, and says what that cost the repository.

use std::fmt;

use anyhow::{Context as _, Result};
use emco_crds::DeploymentIntentGroup;
use emco_e2e::bed::Bed;
use emco_e2e::git_server::GitServer;
use emco_e2e::operator::{self, settled};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::{NAME, commits};

/// What updates a deployment.
pub struct Updates<'a> {
    pub bed: &'a Bed,
    pub server: &'a GitServer,
    pub digs: Api<DeploymentIntentGroup>,
}

/// What an update cost.
pub struct Update {
    pub commits: usize,
    /// Sent with pushes.
    pub bytes: usize,
    /// From the last write of targets to the end of the last push.
    pub seconds: f64,
}

impl fmt::Display for Update {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { commits, bytes, seconds } = self;
        write!(f, "{commits} commits, {bytes} bytes pushed, {seconds:.3} s from targets to the moved branch")
    }
}

impl Updates<'_> {
    /// Changes the value, and waits until it is everywhere.
    pub async fn change(&self, version: &str) -> Result<Update> {
        let before = commits(self.server).await?;
        let mark = self.bed.hub().audit_mark()?;
        self.server.pushes();
        let values = json!([{"app": "note", "values": {"version": version}}]);
        let patch = Patch::Merge(json!({"spec": {"overrideValues": values}}));
        let changed = self.digs.patch(NAME, &PatchParams::default(), &patch).await?;
        let generation = changed.metadata.generation;
        operator::wait(self.bed, NAME, NAME, |dig: &DeploymentIntentGroup| {
            if dig.metadata.generation != generation {
                return Err("the watch is behind".to_owned());
            }
            settled(dig)
        })
        .await?;
        let pushes = self.server.pushes();
        let moved = pushes.last().context("nothing was pushed")?.at;
        let events = self.bed.hub().audit_since(mark)?;
        let targets = events.iter().filter(|event| {
            event.user == "emco"
                && event.resource == "syncshards"
                && event.subresource.is_empty()
                && event.is_write()
                && event.answered <= moved
        });
        let stored = targets.map(|event| event.answered).max().context("no target was stored")?;
        Ok(Update {
            commits: commits(self.server).await?.saturating_sub(before),
            bytes: pushes.iter().map(|push| push.bytes).sum(),
            seconds: moved.duration_since(stored).as_secs_f64(),
        })
    }
}
