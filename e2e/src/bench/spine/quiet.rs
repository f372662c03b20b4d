//! Finds out from audit logs what the operator wrote, and when it stopped writing.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use emco_e2e::audit::{AuditEvent, AuditMark};
use emco_e2e::bed::Bed;

/// Without a write for so long, the operator is taken to be done.
const DONE: Duration = Duration::from_secs(5);
/// For that to happen.
const PATIENCE: Duration = Duration::from_mins(2);

/// Places in the audit logs of planes.
pub struct Marks<'a> {
    bed: &'a Bed,
    marks: BTreeMap<&'a str, AuditMark>,
}

impl<'a> Marks<'a> {
    /// The present end of each log.
    pub fn now(bed: &'a Bed, planes: &[&'a str]) -> Result<Self> {
        let mark = |name: &&'a str| Ok((*name, bed.edge(name).audit_mark()?));
        Ok(Self { bed, marks: planes.iter().map(mark).collect::<Result<_>>()? })
    }

    /// What the operator wrote since, Leases apart. It is the user `emco` on every plane.
    pub fn writes(&self) -> Result<Vec<AuditEvent>> {
        let mut writes = Vec::new();
        for (name, mark) in &self.marks {
            let events = self.bed.edge(name).audit_since(*mark)?;
            writes.extend(
                events
                    .into_iter()
                    .filter(|event| event.user == "emco" && event.is_write() && !event.is_lease()),
            );
        }
        Ok(writes)
    }

    /// Waits until the operator has written nothing for a while. Silence has no event to wait for: the logs are read again.
    pub async fn until_quiet(&self) -> Result<()> {
        let start = Instant::now();
        let (mut seen, mut since) = (self.writes()?.len(), Instant::now());
        while since.elapsed() < DONE {
            ensure!(
                start.elapsed() < PATIENCE,
                "the operator still writes: {}",
                by_resource(&self.writes()?)
            );
            tokio::time::sleep(DONE / 10).await;
            let now = self.writes()?.len();
            if now != seen {
                (seen, since) = (now, Instant::now());
            }
        }
        Ok(())
    }
}

/// How often what was written, for people.
pub fn by_resource(writes: &[AuditEvent]) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for write in writes {
        let slash = if write.subresource.is_empty() { "" } else { "/" };
        let refused = if write.code >= 400 { format!(" ({})", write.code) } else { String::new() };
        let what = format!("{} {}{slash}{}{refused}", write.verb, write.resource, write.subresource);
        *counts.entry(what).or_default() += 1;
    }
    let texts: Vec<String> = counts.iter().map(|(what, count)| format!("{count} {what}")).collect();
    if texts.is_empty() { "nothing".to_owned() } else { texts.join(", ") }
}
