//! Undoes changes by others to our objects, or reports them where the owner wants no more than that. Suspicion comes of
//! metadata alone; before anything is done, one look at the object says which fields were taken and by whom.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use emco_crds::RowStatus;
use emco_crds::deployment_intent_group::sync::DriftPolicy;
use emco_crds::fields::Time;
use emco_crds::sync_shard::status::{RowDrift, RowDrifted};
use emco_engine::drift::{self, bundles, joint};
use emco_engine::identity::{Id, Identity};
use emco_engine::marks;
use emco_engine::shard::MOST_RESTORED;
use futures::StreamExt;
use futures::stream;
use serde_json::Value;
use tokio::time::Instant;

use super::super::edge::Session;
use super::super::metrics::count;
use super::super::observe::{Look, Seen};
use super::desired::{App, Item};
use super::row::Facts;
use super::send::Over;
use super::{Job, Key};
use crate::api::{ApiResult, Method, Request};

mod autoscaled;
mod lines;
mod said;

pub(super) use autoscaled::Autoscaled;

/// Another try to look at an object that could not be read.
const AGAIN: Duration = Duration::from_secs(30);

/// Changes by others since the row was completed. A job that begins goes on with what the row says.
#[derive(Default)]
pub(super) struct Drift {
    corrected: i64,
    /// The first objects that were put right.
    restored: Vec<String>,
    pub(super) last: Option<Time>,
    /// By the text of the identity: objects that differ.
    pub(super) differ: BTreeMap<String, Differs>,
    /// Our fields of an object as our own apply's answer showed them, or as they were found in order.
    baseline: BTreeMap<Id, String>,
    /// What was looked at when an object was found to differ: while it is the same, so is the answer.
    judged: BTreeMap<Id, Judged>,
    /// Versions at which lists that others alone have were looked at.
    shared: BTreeMap<Id, String>,
    /// Objects that were deleted to be made again.
    awaited: BTreeSet<Id>,
}

pub(super) struct Differs {
    /// What our own apply left us with; nothing for an object that is gone.
    baseline: String,
    pub(super) by: String,
    /// Pointers to the fields that others took, as far as the object was looked at.
    pub(super) fields: Vec<String>,
}

/// All that an answer may be another one for. The version and not our fields alone: who has the others is in the answer, too, and
/// fields that come back by a patch in our name ([`Job::mark_adopted`]) leave what our own apply has as it is.
#[derive(PartialEq, Eq)]
struct Judged {
    version: String,
    /// Fields that are left to others.
    theirs: Vec<String>,
}

/// Why an object is looked at.
struct Suspect {
    item: Item,
    seen: Arc<Seen>,
    baseline: String,
    /// It was never seen before by this process: only what others have for certain is a change.
    first: bool,
}

impl Differs {
    /// By somebody, in what nobody looked at.
    const fn of(by: String) -> Self {
        Self { baseline: String::new(), by, fields: Vec::new() }
    }
}

impl Drift {
    pub fn of(status: &RowStatus) -> Self {
        let Some(RowDrift { corrected, reported: _, objects, restored, last }) = status.drift.clone() else {
            return Self::default();
        };
        let differ = objects.into_iter().map(|object| {
            let RowDrifted { resource, by, fields } = object;
            (resource, Differs { baseline: fields, by, fields: Vec::new() })
        });
        Self { corrected, restored, last, differ: differ.collect(), ..Self::default() }
    }

    /// For the row; `None` where nobody changed anything.
    pub fn row(&self) -> Option<RowDrift> {
        let Self { corrected, restored, last, differ, baseline: _, judged: _, shared: _, awaited: _ } = self;
        if *corrected == 0 && differ.is_empty() {
            return None;
        }
        let object = |(resource, Differs { baseline, by, fields: _ }): (&String, &Differs)| RowDrifted {
            resource: resource.clone(),
            by: by.clone(),
            fields: baseline.clone(),
        };
        Some(RowDrift {
            corrected: *corrected,
            reported: i64::try_from(differ.len()).unwrap_or(i64::MAX),
            objects: differ.iter().map(object).collect(),
            restored: restored.clone(),
            last: last.clone(),
        })
    }

    /// Our own apply was answered with these fields.
    pub fn applied(&mut self, id: &Id, fields: Option<String>) {
        self.baseline.insert(id.clone(), fields.unwrap_or_default());
        self.judged.remove(id);
        self.shared.remove(id);
        self.awaited.remove(id);
    }

    /// Forgets what was known of an object.
    pub fn forget(&mut self, id: &Identity) {
        self.baseline.retain(|known, _| **known != *id);
        self.judged.retain(|known, _| **known != *id);
    }

    /// An object was deleted to be made again.
    pub fn awaits(&mut self, id: &Id) {
        self.awaited.insert(id.clone());
    }

    /// Whether an object was deleted to be made again, and is not yet.
    pub fn is_awaited(&self, id: &Id) -> bool {
        self.awaited.contains(id)
    }

    /// Whether our own apply was answered, or our fields were found in order.
    pub fn has_applied(&self, id: &Id) -> bool {
        self.baseline.contains_key(id)
    }

    /// Counts an object that was put right, and names the first ones.
    pub(super) fn count_restored(&mut self, id: &Id) {
        self.corrected += 1;
        let name = id.to_string();
        if self.restored.len() < MOST_RESTORED && !self.restored.contains(&name) {
            self.restored.push(name);
        }
    }

    /// Another target was completed: corrections are counted anew. What differs still does.
    pub fn completed(&mut self) {
        self.corrected = 0;
        self.restored.clear();
        if self.differ.is_empty() {
            self.last = None;
        }
    }
}

impl Job {
    /// Finds objects that others changed, deleted or took fields of since our apply, or since they were first seen; puts them
    /// right where the owner wants that.
    pub(super) async fn drifted(&mut self, apps: &[App], session: &Session, facts: &mut Facts) {
        if session.branch().is_some() {
            // The agent puts it right.
            return;
        }
        let report = self.memory.pace.suspended || self.memory.pace.drift == DriftPolicy::Report;
        let mut before = std::mem::take(&mut self.memory.drift.differ);
        let mut suspects = Vec::new();
        let mut wrong = Vec::new();
        let mut unmarked = Vec::new();
        let items = || apps.iter().flat_map(App::items);
        let found = self.ctx.edge.observed.find(items().map(|item| &*item.id));
        for (item, found) in items().zip(found) {
            if self.left_alone(item) {
                continue;
            }
            let known = if before.is_empty() { None } else { before.remove(&item.id.to_string()) };
            let seen = match found.into() {
                Look::There(seen) => seen,
                Look::Absent if report && self.is_missed(item) => {
                    self.differs(item, known.is_some(), Differs::of(drift::DELETED.to_owned()));
                    continue;
                }
                Look::Absent | Look::Unknown => continue,
            };
            if seen.owner.as_ref() != Some(&self.ctx.owner.hash) || seen.deleting {
                continue;
            }
            if seen.adopted {
                self.note_adopted(&item.id, &seen.uid);
            }
            let lacks_mark = !seen.adopted && self.was_adopted(&item.id, &seen.uid);
            if lacks_mark && report {
                unmarked.push((item.clone(), Arc::clone(&seen)));
            }
            if seen.manifest.as_deref() != Some(&*item.token) {
                if report && self.memory.settled {
                    self.differs(item, known.is_some(), Differs::of(seen.managers.join(", ")));
                }
                continue;
            }
            let had = self.memory.drift.baseline.get(&item.id);
            let scaled = self.memory.scaled.contains(&*item.id);
            let now = seen.fields.as_deref().unwrap_or_default();
            let unlooked = self.is_unlooked(item, &seen);
            // Nearly all of them nearly always.
            if known.is_none() && !unlooked && had.is_some_and(|had| drift::same(had, now, scaled)) {
                if lacks_mark && !report {
                    unmarked.push((item.clone(), Arc::clone(&seen)));
                }
                continue;
            }
            // Known from the row, after a restart; otherwise as it is seen first.
            let from_row = known.as_ref().map(|known| &known.baseline).filter(|text| !text.is_empty());
            let first = had.is_none() && from_row.is_none();
            let baseline = had.or(from_row).cloned().unwrap_or_else(|| now.to_owned());
            let differs = if first {
                now.is_empty() || (self.memory.settled && !seen.managers.is_empty())
            } else {
                !drift::same(&baseline, now, scaled)
            };
            let odd = differs || unlooked;
            if !odd {
                self.memory.drift.baseline.insert(item.id.clone(), baseline);
                continue;
            }
            let certain = known.is_some() && self.is_judged(item, &seen);
            if let Some(known) = known {
                self.memory.drift.differ.insert(item.id.to_string(), known);
            }
            if certain {
                wrong.push((item.clone(), seen.uid.clone()));
            } else {
                suspects.push(Suspect { item: item.clone(), seen, baseline, first });
            }
        }
        self.judge(suspects, &mut wrong, session, facts).await;
        if !report {
            self.correct(wrong, session, facts).await;
        }
        if !self.memory.pace.suspended {
            self.mark_adopted(unmarked, session, facts).await;
        }
        self.tell_fights(facts);
    }

    /// Whether the object was found to differ just as it is now.
    fn is_judged(&self, item: &Item, seen: &Seen) -> bool {
        self.memory.drift.judged.get(&item.id).is_some_and(|judged| {
            judged.version == seen.version_text && judged.theirs == self.left_to_others(item)
        })
    }

    /// An object of a complete row that is not there and should be.
    fn is_missed(&self, item: &Item) -> bool {
        self.memory.settled && !self.finished_and_gone(item) && !self.memory.taken.contains_key(&item.id)
    }

    fn differs(&mut self, item: &Item, known: bool, how: Differs) {
        if !known {
            count(&self.ctx.edge.metrics.drifts);
            self.memory.drift.last = super::row::now(self);
        }
        self.memory.drift.differ.insert(item.id.to_string(), how);
    }

    /// Notes that others took our marks off an object, which is applied again.
    pub(super) fn note_difference(&mut self, item: &Item, by: String) {
        let known = self.memory.drift.differ.contains_key(&item.id.to_string());
        self.differs(item, known, Differs::of(by));
    }

    /// Looks at each suspect: what differs for certain is `wrong`, all else is how things are to be.
    async fn judge(
        &mut self,
        suspects: Vec<Suspect>,
        wrong: &mut Vec<(Item, String)>,
        session: &Session,
        facts: &mut Facts,
    ) {
        let ctx = self.ctx.clone();
        let mut looks = stream::iter(suspects.into_iter().map(|suspect| {
            let (ctx, session) = (ctx.clone(), session.clone());
            async move {
                let answer: Option<ApiResult<Value>> = match session.resource(&suspect.item.id) {
                    Some(resource) => {
                        let path = resource.path(&suspect.item.id.namespace, Some(&suspect.item.id.name));
                        let request = Request::new(Method::Get, path);
                        // Of a list that others add to the entries count, of all else who has it.
                        let joint = suspect.item.manifest().is_some_and(|m| joint::field(&m.json).is_some());
                        let request = if joint { request } else { request.metadata() };
                        Some(session.send(&ctx.edge, request).await)
                    }
                    None => None,
                };
                (suspect, answer)
            }
        }))
        .buffer_unordered(ctx.in_flight);
        while let Some((Suspect { item, seen, baseline, first }, answer)) = looks.next().await {
            let live = match answer {
                Some(Ok(live)) => live,
                // The watch tells its end.
                Some(Err(error)) if error.is_not_found() => continue,
                Some(Err(_)) | None => {
                    facts.wake_at(Instant::now() + AGAIN);
                    continue;
                }
            };
            let name = item.id.to_string();
            let known = self.memory.drift.differ.remove(&name);
            let Some(now) = Seen::of(&item.id, &live).filter(|now| now.uid == seen.uid) else { continue };
            let Some(manifest) = item.manifest() else { continue };
            let mut json = manifest.json.clone();
            bundles::leave_empty(&mut json);
            let marked = marks::mark(json, &self.ctx.owner.hash, &item.token, &self.memory.pace.placed_by);
            let marked = if self.is_adopted(&item.id, &now.uid) { marks::adopt(marked) } else { marked };
            let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array);
            let entries = entries.map_or(&[][..], Vec::as_slice);
            let mut judged = drift::judge(&marked, entries, &self.ctx.manager);
            let theirs = self.left_to_others(&item);
            judged.taken.retain(|pointer| {
                !drift::owned::left_to_others(&marked, &theirs, pointer)
                    && !joint::holds(&marked, &live, pointer)
            });
            match now.shared {
                Some(version) => drop(self.memory.drift.shared.insert(item.id.clone(), version)),
                None => drop(self.memory.drift.shared.remove(&item.id)),
            }
            let ours = now.fields.unwrap_or_default();
            // Of an object that is seen for the first time nobody knows what the cluster made of our apply: what nobody has
            // may never have been ours.
            let doubtful = first && judged.by.is_empty() && !ours.is_empty();
            if judged.taken.is_empty() || doubtful {
                self.memory.drift.baseline.insert(item.id.clone(), ours);
                self.memory.drift.judged.remove(&item.id);
                continue;
            }
            let by = if judged.by.is_empty() { seen.managers.join(", ") } else { judged.by.join(", ") };
            self.log_changed(&item, &judged.taken, &by);
            let fields = drift::named::fields(&marked, &judged.taken);
            // Something else than what it is now, so that it stays a difference after a restart.
            let baseline = if first { "unknown".to_owned() } else { baseline };
            self.memory.drift.baseline.insert(item.id.clone(), baseline.clone());
            let judged = Judged { version: now.version_text, theirs };
            self.memory.drift.judged.insert(item.id.clone(), judged);
            self.differs(&item, known.is_some(), Differs { baseline, by, fields });
            wrong.push((item, now.uid));
        }
    }

    /// Applies what differs again, as far as its pace allows.
    async fn correct(&mut self, wrong: Vec<(Item, String)>, session: &Session, facts: &mut Facts) {
        let waits = |item: &Item| {
            [Key::Again(item.id.clone()), Key::Object(item.id.clone())]
                .iter()
                .any(|key| self.memory.backoff.waiting(key).is_some())
        };
        let send: Vec<(Item, Over)> = wrong
            .into_iter()
            .filter(|(item, _)| !waits(item))
            .map(|(item, uid)| (item, Over::Ours(uid)))
            .collect();
        if !send.is_empty() && !self.stale() {
            self.send_all(send, session, facts).await;
        }
    }

    /// Pointers to fields of an object that are left alone once it is there: the owner says so, or an autoscaler sets them.
    pub(super) fn left_to_others(&self, item: &Item) -> Vec<String> {
        drift::left_to_others(&self.memory.pace.ignore, &item.id, self.memory.scaled.contains(&*item.id))
    }
}
