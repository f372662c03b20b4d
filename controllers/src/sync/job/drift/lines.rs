//! Logs objects that others changed.

use super::super::super::line_bound::Sort;
use super::super::Job;
use super::super::desired::Item;
use crate::object::LogFields;

impl Job {
    /// Logs fields of an object that others changed.
    pub(super) fn log_changed(&self, item: &Item, taken: &[String], by: &str) {
        if !self.ctx.log.takes(Sort::Changed) {
            return;
        }
        let (cluster, resource) = (self.ctx.edge.id.as_str(), item.id.to_string());
        let (revision, fields) = (self.revision(), taken.join(" "));
        let LogFields { project, deployment, object } = &self.ctx.log.owner;
        tracing::info!(
            project,
            deployment,
            object,
            cluster,
            revision,
            resource,
            fields,
            by,
            "changed by others"
        );
    }
}
