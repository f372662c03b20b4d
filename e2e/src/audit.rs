//! Reads the audit log of an API server: who asked for what, when and with which result.

use std::fs::File;
use std::io::{BufRead as _, BufReader, ErrorKind, Seek as _, SeekFrom};
use std::path::Path;

use anyhow::{Context, Result, bail};
use k8s_openapi::jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::bed::Audit;

/// The policy file for an API server; `None` for no log.
pub(crate) fn policy(audit: Audit) -> Option<String> {
    let rules = match audit {
        Audit::Off => return None,
        Audit::Writes => "- level: None\n  verbs: [get, list, watch]\n- level: Metadata\n",
        Audit::All => "- level: Metadata\n",
    };
    Some(format!(
        "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived, ResponseStarted]\nrules:\n{rules}"
    ))
}

/// A place in an audit log; the default is its beginning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AuditMark(u64);

/// One request that an API server answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEvent {
    /// Who asked: `emco` (the kubeconfig handed out), `tester`, `bed`, or a name that starts with `system:`.
    pub user: String,
    /// Whom it acted as; empty: itself.
    pub acting_as: String,
    /// What the client calls itself.
    pub user_agent: String,
    /// `create`, `update`, `patch`, `delete`, `deletecollection`, and for [`Audit::All`] `get`, `list`, `watch`.
    pub verb: String,
    /// API group, empty for the core group.
    pub group: String,
    /// Plural, such as `pods`; empty for paths that are no objects.
    pub resource: String,
    /// Such as `status`, or empty.
    pub subresource: String,
    /// Empty for objects without.
    pub namespace: String,
    /// Empty for lists, and for objects whose name the server made.
    pub name: String,
    /// Path and query of the request.
    pub uri: String,
    /// HTTP status.
    pub code: u16,
    /// When the request came.
    pub received: Timestamp,
    /// When it had been answered.
    pub answered: Timestamp,
}

impl AuditEvent {
    /// Whether it was asked to change something; also true when it was refused.
    pub fn is_write(&self) -> bool {
        !matches!(self.verb.as_str(), "get" | "list" | "watch")
    }

    /// Whether nothing was to be stored.
    pub fn is_dry(&self) -> bool {
        self.uri.split(['?', '&']).any(|part| part.starts_with("dryRun="))
    }

    /// Whether it is about a Lease: the pulse of nodes and leaders.
    pub fn is_lease(&self) -> bool {
        self.group == "coordination.k8s.io" && self.resource == "leases"
    }
}

impl AuditMark {
    pub(crate) fn end_of(log: &Path) -> Result<Self> {
        match std::fs::metadata(log) {
            Ok(metadata) => Ok(Self(metadata.len())),
            Err(error) if error.kind() == ErrorKind::NotFound => bail!(no_log(log)),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", log.display())),
        }
    }

    pub(crate) fn read(self, log: &Path) -> Result<Vec<AuditEvent>> {
        let mut file = File::open(log).with_context(|| no_log(log))?;
        file.seek(SeekFrom::Start(self.0)).context("cannot go to the mark in the audit log")?;
        let mut events = Vec::new();
        for line in BufReader::new(file).lines() {
            let line = line.context("cannot read the audit log")?;
            // The last line may be half written.
            if let Ok(raw) = serde_json::from_str::<Raw>(&line) {
                events.push(raw.into());
            }
        }
        Ok(events)
    }
}

fn no_log(log: &Path) -> String {
    format!("no audit log {}: ask for it with PlaneSpec::audit", log.display())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    verb: String,
    user: Value,
    #[serde(default)]
    impersonated_user: Value,
    #[serde(default)]
    user_agent: String,
    #[serde(default, rename = "requestURI")]
    request_uri: String,
    #[serde(default)]
    object_ref: Value,
    #[serde(default)]
    response_status: Value,
    request_received_timestamp: Timestamp,
    stage_timestamp: Timestamp,
}

impl From<Raw> for AuditEvent {
    fn from(raw: Raw) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let object = |key: &str| text(&raw.object_ref[key]);
        Self {
            user: text(&raw.user["username"]),
            acting_as: text(&raw.impersonated_user["username"]),
            user_agent: raw.user_agent.clone(),
            verb: raw.verb.clone(),
            group: object("apiGroup"),
            resource: object("resource"),
            subresource: object("subresource"),
            namespace: object("namespace"),
            name: object("name"),
            uri: raw.request_uri.clone(),
            code: raw.response_status["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(0),
            received: raw.request_received_timestamp,
            answered: raw.stage_timestamp,
        }
    }
}
