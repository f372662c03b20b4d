//! Hands objects over as files, where the cluster is written through Git. A pass hands all of them over before it waits, so that they are
//! one commit; what the branch has counts as applied, and whether it is true on the cluster the watches tell.

use std::sync::Arc;
use std::time::Duration;

use emco_engine::git::files::{self, Handling, OwnerText};
use emco_engine::identity::Identity;
use emco_engine::{marks, order};
use serde_json::Value;
use tokio::time::Instant;

use super::super::super::agent;
use super::super::super::edge::Session;
use super::super::super::observe::{Look, Seen};
use super::super::desired::{App, Item, PruneSet};
use super::super::row::Facts;
use super::super::{Job, JobContext, Key};
use crate::publish::File;

impl JobContext {
    /// The owner, as files name it.
    pub(in super::super) fn owner_text(&self) -> OwnerText {
        let owner = &self.owner;
        OwnerText {
            kind: owner.kind.clone(),
            namespace: owner.namespace.clone(),
            name: owner.name.clone(),
            hash: owner.hash.clone(),
        }
    }
}

impl Job {
    /// Whether the cluster is written through Git, and its branch has this object so.
    pub(in super::super) fn is_on_branch(&self, item: &Item, session: &Session) -> bool {
        session
            .branch()
            .is_some_and(|branch| branch.has(&self.ctx.owner_text(), &item.app, &item.id, &item.token))
    }

    /// Whether the cluster shows an object as it is wanted, or nothing more of it is to come.
    pub(in super::super) fn is_shown(&self, item: &Item) -> bool {
        let is_so = |seen: Arc<Seen>| {
            seen.owner.as_ref() == Some(&self.ctx.owner.hash)
                && seen.manifest.as_deref() == Some(&*item.token)
        };
        self.memory.taken.contains_key(&item.id)
            || self.finished_and_gone(item)
            || self.left_alone(item)
            || self.ctx.edge.observed.get(&item.id).is_some_and(is_so)
    }

    /// Hands objects over; true when the branch has all of them.
    pub(in super::super) fn hand_over(
        &mut self,
        items: Vec<Item>,
        session: &Session,
        facts: &mut Facts,
    ) -> bool {
        let placed_by: Arc<str> = self.policy().placed_by.into();
        let (owner, revision) = (self.ctx.owner_text(), self.revision().unwrap_or_default());
        let mut all = true;
        for item in items {
            if self.stale() {
                return false;
            }
            let file = File {
                owner: &owner,
                app: &item.app,
                id: &item.id,
                token: &item.token,
                account: item.account(),
                revision,
                shared: item.manifest().is_some_and(|one| one.crd_folder || one.hook.is_some()),
            };
            match session.put(&file, || text(&item, &owner, session, &placed_by)) {
                Ok(0) => self.memory.backoff.worked(&Key::Object(item.id.clone())),
                Ok(wish) => {
                    all = false;
                    self.memory.handed = self.memory.handed.max(wish);
                    self.memory.gone.remove(&item.id);
                    self.memory.deletes.remove(&*item.id);
                }
                Err(trouble) => {
                    all = false;
                    self.item_failed(&item, &trouble, facts);
                }
            }
        }
        all
    }

    /// Takes files off the branch; true when it has none of them.
    pub(in super::super) fn take_off<'a>(
        &mut self,
        ids: impl IntoIterator<Item = &'a Identity>,
        session: &Session,
        facts: &mut Facts,
    ) -> bool {
        let (owner, revision) = (self.ctx.owner_text(), self.revision().unwrap_or_default());
        match session.take_off(&owner, ids, revision) {
            Ok(0) => true,
            Ok(wish) => {
                self.memory.handed = self.memory.handed.max(wish);
                false
            }
            Err(trouble) => {
                self.failed_and_told(&Key::Server, &trouble, facts);
                false
            }
        }
    }

    /// Takes all files of what is pruned off at once; true when the branch has none of them. A namespace that is there comes later: it is
    /// looked into first.
    pub(in super::super) fn take_files_off(
        &mut self,
        pruned: &PruneSet,
        session: &Session,
        facts: &mut Facts,
    ) -> bool {
        let ctx = Arc::clone(&self.ctx);
        let absent = |id: &Identity| matches!(ctx.edge.observed.look(id), Look::Absent);
        let goes = |id: &&Identity| !order::is_namespace(id.kind()) || absent(id);
        self.take_off(pruned.objects.keys().filter(goes), session, facts)
    }

    /// Waits until the branch has what the pass handed over, and asks for another pass then.
    pub(in super::super) async fn settle(&mut self, session: &Session, facts: &mut Facts) {
        let wish = std::mem::take(&mut self.memory.handed);
        if wish == 0 {
            return;
        }
        match session.answered(&self.ctx.owner_text(), wish).await {
            Ok(()) => {
                self.memory.backoff.worked(&Key::Server);
                facts.wake_at(Instant::now() + BREATH);
            }
            Err(trouble) => self.failed_and_told(&Key::Server, &trouble, facts),
        }
    }

    /// Asks the agent, not too often, why it has not applied what the branch has.
    pub(in super::super) async fn hear_agent(&mut self, apps: &[App], session: &Session, facts: &mut Facts) {
        let Some(branch) = session.branch().cloned() else { return };
        let owner = self.ctx.owner_text();
        let waits = |item: &&Item| {
            let shown = self.ctx.edge.observed.get(&item.id);
            self.is_on_branch(item, session)
                && shown.is_none_or(|seen| seen.manifest.as_deref() != Some(&*item.token))
        };
        let late: Vec<Item> = apps.iter().filter_map(|app| app.items().find(&waits)).cloned().collect();
        self.memory.words.retain(|app, _| late.iter().any(|item| item.app == *app));
        if late.is_empty() {
            return;
        }
        let now = Instant::now();
        // The first look is for an agent that had time to work.
        let due = *self.memory.next_word.get_or_insert(now + BETWEEN_WORDS);
        if due <= now {
            for item in &late {
                let Some((namespace, name)) = branch.agent_object(&owner, &item.app, item.account()) else {
                    continue;
                };
                match agent::refusal(&self.ctx.edge, session, &namespace, &name).await {
                    Some(trouble) => drop(self.memory.words.insert(Arc::clone(&item.app), trouble)),
                    None => drop(self.memory.words.remove(&item.app)),
                }
            }
            self.memory.next_word = Some(now + BETWEEN_WORDS);
        }
        for (app, trouble) in &self.memory.words {
            facts.trouble(Some(app), None, trouble, 1);
        }
        facts.wake_at(self.memory.next_word.unwrap_or(now));
    }

    /// Says that a complete row has no other files, where its apps have no hooks: files of hooks come and go.
    pub(in super::super) fn hand_over_all(&self, apps: &[App], session: &Session) {
        let Some(branch) = session.branch() else { return };
        let owner = self.ctx.owner_text();
        for app in apps {
            let plain = app.set.set.manifests.iter().all(|manifest| manifest.hook.is_none());
            if plain && app.items().all(|item| self.is_on_branch(item, session)) {
                branch.is_all(&owner, &app.name);
            }
        }
    }

    /// Says that files of apps are about to change.
    pub(in super::super) fn hand_over_some(&self, apps: &[App], session: &Session) {
        let Some(branch) = session.branch() else { return };
        let owner = self.ctx.owner_text();
        for app in apps {
            branch.is_not_all(&owner, &app.name);
        }
    }
}

/// Between two questions to the agent.
const BETWEEN_WORDS: Duration = Duration::from_secs(15);
/// Until the next pass, once the branch has what this one handed over.
const BREATH: Duration = Duration::from_millis(1);

/// The file of an object.
fn text(item: &Item, owner: &OwnerText, session: &Session, placed_by: &str) -> String {
    let Some(manifest) = item.manifest() else { return String::new() };
    let mut body = manifest.json.clone();
    let spans = session.resource_of(&manifest.json).is_some_and(|resource| !resource.namespaced);
    if let (true, Some(metadata)) = (spans, body.get_mut("metadata").and_then(Value::as_object_mut)) {
        metadata.remove("namespace");
    }
    // The agent would make a Job again that its own time-out removed.
    if let ("Job", Some(spec)) = (&*item.id.kind, body.get_mut("spec").and_then(Value::as_object_mut)) {
        spec.remove("ttlSecondsAfterFinished");
    }
    let marked = marks::mark(body, &owner.hash, &item.token, placed_by);
    let handling = Handling { stays: manifest.keep || manifest.crd_folder, once: manifest.crd_folder };
    files::object(owner, &marked, handling)
}
