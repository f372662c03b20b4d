//! Finds out from audit logs how long each part of a change's way took.

use std::collections::BTreeMap;

use anyhow::Result;
use emco_e2e::audit::{AuditEvent, AuditMark};
use emco_e2e::bed::Bed;
use k8s_openapi::jiff::Timestamp;

use super::stage::EDGES;

/// Places in the logs, and the changes since.
pub struct Phases<'a> {
    bed: &'a Bed,
    hub: AuditMark,
    edges: Vec<(&'static str, AuditMark)>,
    changes: Vec<Timestamp>,
}

impl<'a> Phases<'a> {
    /// From now on.
    pub fn begin(bed: &'a Bed) -> Result<Self> {
        let mark = |name: &&'static str| Ok((*name, bed.edge(name).audit_mark()?));
        let edges = EDGES.iter().map(mark).collect::<Result<_>>()?;
        Ok(Self { bed, hub: bed.hub().audit_mark()?, edges, changes: Vec::new() })
    }

    /// A change was just accepted.
    pub fn changed(&mut self) {
        self.changes.push(Timestamp::now());
    }

    /// What the operator asked the hub for since, Leases apart.
    pub fn hub(&self) -> Result<Vec<AuditEvent>> {
        Ok(ours(self.bed.hub().audit_since(self.hub)?))
    }

    /// Medians in milliseconds since the change was accepted, in the order of the way.
    pub fn medians(&self) -> Result<Vec<(&'static str, f64)>> {
        let hub = self.hub()?;
        let mut edges = Vec::new();
        for (name, mark) in &self.edges {
            edges.extend(ours(self.bed.edge(name).audit_since(*mark)?));
        }
        let mut all: BTreeMap<(usize, &str), Vec<f64>> = BTreeMap::new();
        for (place, at) in self.changes.iter().enumerate() {
            let until = self.changes.get(place + 1).copied();
            let within =
                |event: &&AuditEvent| event.received >= *at && until.is_none_or(|end| event.received < end);
            let of = |verb: &str, resource: &str| -> Vec<&AuditEvent> {
                let is = |event: &&AuditEvent| event.verb == verb && event.resource == resource;
                hub.iter().filter(within).filter(is).filter(|event| event.subresource.is_empty()).collect()
            };
            let (contexts, packs) = (of("create", "appcontexts"), of("create", "configmaps"));
            let shards = of("update", "syncshards");
            let applies: Vec<&AuditEvent> = edges.iter().filter(within).collect();
            let times = [
                ("storing begins", contexts.iter().map(|event| event.received).min()),
                ("all is stored", contexts.iter().chain(&packs).map(|event| event.answered).max()),
                ("targeting begins", shards.iter().map(|event| event.received).min()),
                ("it is targeted", shards.iter().map(|event| event.answered).min()),
                ("the first apply begins", applies.iter().map(|event| event.received).min()),
                ("the last apply begins", applies.iter().map(|event| event.received).max()),
                ("the last apply is answered", applies.iter().map(|event| event.answered).max()),
            ];
            for (order, (what, time)) in times.into_iter().enumerate() {
                let since = time.map(|time| time.duration_since(*at).as_secs_f64() * 1000.0);
                all.entry((order, what)).or_default().extend(since);
            }
        }
        Ok(all
            .into_iter()
            .filter_map(|((_, what), mut times)| {
                times.sort_by(f64::total_cmp);
                Some((what, *times.get(times.len() / 2)?))
            })
            .collect())
    }
}

/// The operator is the user `emco` on every plane.
fn ours(events: Vec<AuditEvent>) -> Vec<AuditEvent> {
    events.into_iter().filter(|event| event.user == "emco" && !event.is_lease()).collect()
}
