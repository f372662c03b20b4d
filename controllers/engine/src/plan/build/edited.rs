//! Has the actions of intents edit what was rendered: once for all clusters with the same rendering and the same edits.

use std::sync::Arc;

use super::Builder;
use crate::act::Edits;
use crate::manifests::Draft;
use crate::plan::render::Job;
use crate::refusal::Refusal;

type Drafts = Vec<Option<Arc<Draft>>>;

impl<'a> Builder<'a> {
    /// The drafts of jobs, in their order, as the actions leave them.
    pub(super) fn edit(&mut self, jobs: &[Job<'a>], drafts: Drafts) -> Result<Drafts, Box<Refusal>> {
        let edit = |(job, draft): (&Job<'a>, Option<Arc<Draft>>)| match (draft, &job.item.class.edits) {
            (Some(draft), Some(edits)) => self.edit_one(job, draft, edits),
            (draft, _) => Ok(draft),
        };
        jobs.iter().zip(drafts).map(edit).collect()
    }

    fn edit_one(
        &mut self,
        job: &Job<'a>,
        draft: Arc<Draft>,
        edits: &Edits,
    ) -> Result<Option<Arc<Draft>>, Box<Refusal>> {
        let key = (Arc::as_ptr(&draft).addr(), edits.digest.clone());
        if let Some(edited) = self.edited.get(&key) {
            return Ok(Some(Arc::clone(edited)));
        }
        let app = self.app(&job.item);
        match draft.edited(app, &format!("app {app} on {}", job.item.id()), edits) {
            Ok(edited) => {
                let edited = Arc::new(edited);
                self.drafts.push(draft);
                self.edited.insert(key, Arc::clone(&edited));
                Ok(Some(edited))
            }
            // A try refuses nothing: the set is rendered anew, and what is wrong is found then.
            Err(_) if job.tentative => Ok(None),
            Err(refusal) => Err(refusal),
        }
    }
}
