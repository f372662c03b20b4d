//! Jobs that remove themselves: a plain Job with `ttlSecondsAfterFinished` is applied, ends, and is gone. It was carried out;
//! making it again would run it for ever.

use serde_json::Value;

use super::super::observe::Look;
use super::Job;
use super::desired::Item;

impl Job {
    /// The cluster removed it because it had ended: seen by the watch, or, where nobody watched, known from the row, which was
    /// complete with it. One that somebody deleted before it ended, or that failed, was not carried out.
    pub(super) fn finished_and_gone(&self, item: &Item) -> bool {
        if !removes_itself(item) || !matches!(self.ctx.edge.observed.look(&item.id), Look::Absent) {
            return false;
        }
        let ended = self.ctx.edge.observed.ended(&item.id).filter(|seen| {
            seen.owner.as_ref() == Some(&self.ctx.owner.hash)
                && seen.manifest.as_deref() == Some(&*item.token)
        });
        if let Some(seen) = ended {
            return seen.outcome == Some(Ok(()));
        }
        let applied = self.memory.applied_named.as_ref().and_then(|named| named.apps.get(&*item.app));
        self.memory.settled || applied == Some(item.set_digest())
    }

    /// It could end and be gone before anybody watches, and would be carried out a second time.
    pub(super) fn ends_unseen(&self, item: &Item) -> bool {
        removes_itself(item) && matches!(self.ctx.edge.observed.look(&item.id), Look::Unknown)
    }
}

fn removes_itself(item: &Item) -> bool {
    let seconds = item.manifest().and_then(|m| m.json.pointer("/spec/ttlSecondsAfterFinished"));
    item.id.kind == "Job" && seconds.is_some_and(Value::is_number)
}
