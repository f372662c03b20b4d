//! Judges an object of a plan that a cluster cannot change, where `spec.sync.immutableFields: Recreate` makes it again.

use emco_crds::deployment_intent_group::sync::ImmutablePolicy;
use emco_engine::changes::{RecreatedRow, RefusedRow};
use emco_engine::identity::Identity;
use emco_engine::set::SetManifest;
use emco_engine::{drift, marks, recreate};
use serde_json::Value;

use super::Asker;
use super::verdict::Verdict;
use crate::api::ApiError;
use crate::sync::errors::{IMMUTABLE, Trouble, names_each_field};
use crate::sync::observe::Seen;
use crate::sync::tried::TriedApply;

impl Asker<'_> {
    /// What comes of an object whose change is refused because a field cannot be changed; `None` where this is another refusal, or the
    /// deployment wants no object made again.
    pub(super) async fn anew(
        &self,
        tried: &TriedApply<'_>,
        manifest: &SetManifest,
        error: &ApiError,
    ) -> Option<Verdict> {
        let words = Trouble::of_manifest(&manifest.json, error);
        let wanted = self.dig.spec.sync.immutable_fields == ImmutablePolicy::Recreate;
        if !wanted || words.reason != IMMUTABLE || !names_each_field(error) {
            return None;
        }
        let id = manifest.identity();
        if let Some(why) = recreate::kind_obstacle(&id) {
            return Some(refused(&id, &Trouble::fixed(&why, &words.message)));
        }
        if let Some(trouble) = Trouble::besides(&manifest.json, error) {
            return Some(refused(&id, &trouble));
        }
        let live = match tried.read().await {
            Ok(Some(live)) => live,
            // It went in between: the next answer is another one.
            Ok(None) => return Some(Verdict::Silent),
            Err(error) if tried.account.is_some() && error.lacks_right() => return Some(Verdict::Open),
            Err(error) => {
                let trouble = Trouble::of_request(&error);
                return Some(if trouble.is_failure() { refused(&id, &trouble) } else { Verdict::Silent });
            }
        };
        Some(match self.stays(&id, manifest, &live) {
            Some(why) => refused(&id, &Trouble::fixed(&why, &words.message)),
            None => Verdict::Recreated(RecreatedRow {
                object: id.to_string(),
                lost: recreate::lost(&id).to_owned(),
            }),
        })
    }

    /// Why the live object is not deleted, as the real apply would find.
    fn stays(&self, id: &Identity, manifest: &SetManifest, live: &Value) -> Option<String> {
        if !self.is_ours(live) {
            return Some(recreate::UNMARKED.to_owned());
        }
        let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array);
        let manager = marks::field_manager(&self.owner.hash);
        if entries.is_none_or(|entries| drift::entry(entries, &manager, "Apply").is_none()) {
            return Some(recreate::COPIED.to_owned());
        }
        let keeps = manifest.keep || manifest.crd_folder || Seen::of(id, live).is_some_and(|seen| seen.keep);
        recreate::obstacle(id, live, keeps)
    }
}

fn refused(id: &Identity, trouble: &Trouble) -> Verdict {
    Verdict::Refused(RefusedRow {
        object: id.to_string(),
        reason: trouble.reason.to_owned(),
        message: trouble.message.clone(),
    })
}
