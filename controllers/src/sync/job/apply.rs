//! Applies the objects of a set that are not as wanted. What is there already and ours costs no request; what others made is not
//! touched: where nothing is known to be there, one request makes the object, and the server refuses it where there is one.

use std::sync::Arc;

use emco_crds::deployment_intent_group::sync::ConflictPolicy;
use emco_engine::cloud::account_parts;
use emco_engine::identity::Identity;
use futures::StreamExt;
use futures::stream;
use serde_json::Value;

use super::super::definitions;
use super::super::edge::Session;
use super::super::errors::{Retry, Trouble, lacks_namespace};
use super::super::metrics::Applied;
use super::super::observe::{Found, Look, Seen};
use super::desired::Item;
use super::halt::Halt;
use super::row::Facts;
use super::send::{Over, Refusal, Sending, Sent, apply};
use super::{Job, Key};
use crate::api::ApiError;

/// What a round of applies came to.
pub(super) struct Round {
    /// All of it is applied now.
    pub all: bool,
    /// What was to be made, with the conflict: an object of that name, as a rule.
    pub met: Vec<(Item, ApiError)>,
}

/// What has to be done about one object.
pub(super) enum Need {
    /// It is as wanted.
    Nothing,
    /// It is somebody else's, and taken as it is.
    Taken,
    /// Not there, as far as we know.
    Look,
    /// Ours with another content; the UID makes sure that it is still this one.
    Renew(String),
    /// Waits for something else.
    Wait,
    /// Not possible.
    Trouble(Trouble),
}

impl Job {
    /// Applies what is not as wanted; true when all of it is applied now.
    pub(super) async fn ensure(&mut self, items: &[Item], session: &Session, facts: &mut Facts) -> bool {
        let mut all = true;
        let mut look: Vec<Item> = Vec::new();
        let mut send: Vec<(Item, Over)> = Vec::new();
        let mut hand: Vec<Item> = Vec::new();
        let found = self.ctx.edge.observed.find(items.iter().map(|item| &*item.id));
        for (item, Found { seen, .. }) in items.iter().zip(found) {
            if let Some(tries) = self.memory.backoff.waiting(&Key::Object(item.id.clone())) {
                facts.trouble(Some(&item.app), Some(&item.id), &tries.trouble, tries.count);
                all = false;
                continue;
            }
            match self.need(item, seen, session) {
                Need::Nothing => {}
                Need::Taken => self.take(&item.id),
                Need::Renew(_) if session.branch().is_some() => hand.push(item.clone()),
                Need::Look if session.branch().is_some() => look.push(item.clone()),
                Need::Look | Need::Renew(_) if !self.may_restore(item, facts) => all = false,
                Need::Look if self.may_be_there(item) => look.push(item.clone()),
                Need::Look => send.push((item.clone(), Over::Nothing)),
                Need::Renew(uid) => send.push((item.clone(), Over::Ours(uid))),
                Need::Wait => {
                    all = false;
                    self.name_leaving(item, facts);
                }
                Need::Trouble(trouble) => {
                    all = false;
                    self.item_failed(item, &trouble, facts);
                }
            }
        }
        if look.is_empty() && send.is_empty() && hand.is_empty() {
            return all;
        }
        if self.held_up(facts) {
            return false;
        }
        all &= self.hand_over(hand, session, facts);
        let fine = self.look(look, session, &mut send, facts).await;
        all = all && fine;
        // In the order of the set, as far as requests in flight keep an order.
        // What failed before comes last: it must not keep the rest from its turn.
        send.sort_by_cached_key(|(item, _)| (self.has_failed(item), item.place));
        let mut round = self.send_all(send, session, facts).await;
        all = all && round.all;
        if round.met.is_empty() || self.stale() {
            return all && round.met.is_empty();
        }
        round.met.sort_by_key(|(item, _)| item.place);
        let (mut send, met) = (Vec::new(), round.met.into_iter().map(|(item, _)| item).collect());
        let fine = self.look(met, session, &mut send, facts).await;
        let round = self.send_all(send, session, facts).await;
        for (item, error) in &round.met {
            let trouble = self.refusal(item, error);
            self.item_failed(item, &trouble, facts);
        }
        all && fine && round.all && round.met.is_empty()
    }

    /// Whether an object that we do not know is likely, so that a look at it costs less than an apply that is refused: where
    /// those of others are taken or taken over, where its kind is not watched, and where an apply failed before. So what is said
    /// of it, too, is about the object that is there, where admission refuses its change before the server finds that it is there.
    fn may_be_there(&self, item: &Item) -> bool {
        let takes_over = self.memory.pace.conflicts != ConflictPolicy::Fail && self.may_take_over(item);
        let unwatched = || matches!(self.ctx.edge.observed.look(&item.id), Look::Unknown);
        takes_over
            || self.take_existing(item)
            || self.left_alone(item)
            || self.has_failed(item)
            || unwatched()
    }

    /// What has to be done about an object that was last seen so.
    pub(super) fn need(&self, item: &Item, seen: Option<Arc<Seen>>, session: &Session) -> Need {
        let Some(manifest) = item.manifest() else { return Need::Wait };
        // Nearly all of them nearly always: nothing else has to be found out.
        if seen.as_ref().is_some_and(|seen| {
            seen.owner.as_ref() == Some(&self.ctx.owner.hash)
                && seen.manifest.as_deref() == Some(&*item.token)
                && !seen.deleting
        }) && (session.branch().is_none() || self.is_on_branch(item, session))
        {
            return Need::Nothing;
        }
        if session.resource_of(&manifest.json).is_none() {
            let version = manifest.json.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
            let text = definitions::not_served(&session.apis, version, &item.id.kind);
            self.ctx.edge.refresh_apis();
            self.misses_definition(&item.id.group);
            return Need::Trouble(Trouble::new("KindMissing", &text, Retry::Soon));
        }
        if item.spans() && !self.memory.pace.whole_cluster {
            let text = format!(
                "{} belongs to the whole cluster, which was not known when it was planned: use a logical cloud that may have such \
                 objects (level Privileged, with a permission with scope: Cluster), or remove it",
                item.id
            );
            return Need::Trouble(Trouble::new("NotAllowedByLevel", &text, Retry::Slowly));
        }
        if self.memory.taken.contains_key(&item.id) {
            return Need::Nothing;
        }
        if let Some(account) = item.account()
            && !self.has_account(account)
        {
            let text = self.awaits_account(account);
            return Need::Trouble(Trouble::new("Progressing", &text, Retry::Soon));
        }
        match seen {
            None if self.finished_and_gone(item) => Need::Nothing,
            // The rest is the agent's.
            _ if self.is_on_branch(item, session) => Need::Nothing,
            None => Need::Look,
            Some(seen) => match self.compare(item, &seen) {
                Need::Nothing if session.branch().is_some() => Need::Renew(seen.uid.clone()),
                need => need,
            },
        }
    }

    /// Whether the account is there, or may be: where its kind is not watched, the answer of the API server tells.
    fn has_account(&self, account: &str) -> bool {
        let Some((namespace, name)) = account_parts(account) else { return true };
        let id = Identity {
            group: String::new(),
            kind: "ServiceAccount".to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        !matches!(self.ctx.edge.observed.look(&id), Look::Absent)
    }

    /// What an object that is there and carries somebody's owner label asks for.
    pub(super) fn compare(&self, item: &Item, seen: &Seen) -> Need {
        let ours = seen.owner.as_ref() == Some(&self.ctx.owner.hash);
        if !ours && (self.left_alone(item) || self.take_existing(item)) {
            return Need::Taken;
        }
        if !ours {
            let other = seen.placed_by.as_deref().unwrap_or("another hub or owner");
            let text = format!("{} belongs to {other}: remove it there, or change its name here", item.id);
            return Need::Trouble(Trouble::new("Conflict", &text, Retry::Slowly));
        }
        if seen.deleting {
            return Need::Wait;
        }
        if self.left_alone(item) || seen.manifest.as_deref() == Some(&*item.token) {
            return Need::Nothing;
        }
        Need::Renew(seen.uid.clone())
    }

    /// From a chart's `crds/` folder: made if absent, otherwise left as it is.
    #[allow(clippy::unused_self)]
    pub(super) fn left_alone(&self, item: &Item) -> bool {
        item.manifest().is_some_and(|manifest| manifest.crd_folder)
    }

    #[allow(clippy::unused_self)]
    pub(super) fn take_existing(&self, item: &Item) -> bool {
        item.manifest().is_some_and(|manifest| manifest.take_existing)
    }

    /// Sends applies, a few at a time, and takes in the answers. What was to be made where an object is has not failed.
    pub(super) async fn send_all(
        &mut self,
        send: Vec<(Item, Over)>,
        session: &Session,
        facts: &mut Facts,
    ) -> Round {
        if session.branch().is_some() {
            let items = send.into_iter().map(|(item, _)| item).collect();
            return Round { all: self.hand_over(items, session, facts), met: Vec::new() };
        }
        let ctx = self.ctx.clone();
        let placed_by: Arc<str> = self.policy().placed_by.into();
        let end = self.pass_end();
        let halt = Arc::new(Halt::default());
        let touched = self.touched(&send);
        let send: Vec<_> = send
            .into_iter()
            .map(|(item, over)| {
                let theirs = if over.uid().is_some() { self.left_to_others(&item) } else { Vec::new() };
                let adopted = match &over {
                    Over::Others(_) => true,
                    over => over.uid().is_some_and(|uid| self.is_adopted(&item.id, uid)),
                };
                let said = self.memory.said.get(&*item.id).cloned().unwrap_or_default();
                (item, over, adopted, theirs, said)
            })
            .collect();
        let mut answers = stream::iter(send.into_iter().map(|(item, over, adopted, theirs, said)| {
            let (ctx, session, placed_by, end, halt) =
                (ctx.clone(), session.clone(), placed_by.clone(), end.clone(), Arc::clone(&halt));
            async move {
                // The wish changed meanwhile, or it makes no sense: what is not sent yet is not sent any more.
                let stale = || end.is_over() || halt.holds(&item.id.namespace);
                let sending = Sending {
                    item: &item,
                    over: &over,
                    adopted,
                    theirs: &theirs,
                    said: &said,
                    placed_by: &placed_by,
                };
                let answer = apply(&sending, &session, &ctx, stale).await;
                (item, over, answer)
            }
        }))
        .buffer_unordered(ctx.in_flight);
        let mut round = Round { all: true, met: Vec::new() };
        let mut refused = Vec::new();
        while let Some((item, over, answer)) = answers.next().await {
            match answer {
                Some(Sent { answer: Ok(object), left_out, rewritten }) => {
                    halt.answered();
                    self.applied(&item, &over, &object, (left_out, rewritten));
                    if touched.contains(&item.id) {
                        self.begins_anew(&item);
                    }
                }
                Some(Sent { answer: Err(Refusal::Server(error)), .. })
                    if matches!(over, Over::Nothing) && error.is_conflict() =>
                {
                    halt.answered();
                    round.met.push((item, error));
                }
                Some(Sent { answer: Err(refusal), .. }) => {
                    round.all = false;
                    let trouble = match (&over, &refusal) {
                        (Over::Others(takeover), _) => self.refused_takeover(&item, takeover, &refusal),
                        (_, Refusal::Server(error)) => self.refusal(&item, error),
                        (_, Refusal::Differs(_) | Refusal::Taken) => continue,
                    };
                    self.ctx.edge.metrics.applied(Applied::Failed(trouble.reason));
                    if let (true, Some(uid), Refusal::Server(error)) = (over.is_ours(), over.uid(), &refusal)
                        && let Some(one) = self.to_make_anew(&item, uid, error)
                    {
                        halt.answered();
                        refused.push(one);
                        continue;
                    }
                    self.item_failed(&item, &trouble, facts);
                    if let Refusal::Server(error) = &refusal
                        && lacks_namespace(error)
                    {
                        halt.absent(&item.id.namespace);
                    }
                    if halt.refused(&trouble) {
                        self.failed(Key::Server, trouble);
                    }
                }
                None => round.all = false,
            }
        }
        drop(answers);
        if !refused.is_empty() {
            self.make_anew(refused, session, facts).await;
        }
        round
    }

    /// Takes in that an object was applied, as the cluster answered it, with what that left out and rewrote of it.
    fn applied(
        &mut self,
        item: &Item,
        over: &Over,
        object: &Value,
        (left_out, rewritten): (Vec<String>, Vec<String>),
    ) {
        self.ctx.edge.metrics.applied(match over {
            _ if self.memory.settled => Applied::Restored,
            Over::Others(_) => Applied::TakenOver,
            Over::Ours(_) | Over::Stripped(_) => Applied::Changed,
            Over::Nothing => Applied::Made,
        });
        self.log_left_out(item, &left_out);
        self.memory.left_out.applied(&item.id.to_string(), left_out);
        self.memory.rewritten.applied(&item.id.to_string(), rewritten);
        self.memory.backoff.worked(&Key::Object(item.id.clone()));
        self.memory.backoff.worked(&Key::Server);
        if !self.restored(item)
            && let Some(by) = over.stripped_by()
        {
            self.again(item, "changed", by, &[]);
        }
        self.memory.gone.remove(&item.id);
        self.memory.deletes.remove(&*item.id);
        self.ctx.edge.observed.learn(&item.id, object);
        let seen = Seen::of(&item.id, object);
        if let Over::Others(takeover) = over {
            self.taken_over(item, &takeover.uid, &takeover.holder.who);
        }
        self.memory.drift.applied(&item.id, seen.and_then(|seen| seen.fields));
    }

    /// Whether the cluster wants to be left alone for now.
    pub(super) fn held_up(&self, facts: &mut Facts) -> bool {
        let Some(tries) = self.memory.backoff.waiting(&Key::Server) else { return false };
        facts.trouble(None, None, &tries.trouble, tries.count);
        true
    }

    pub(super) fn item_failed(&mut self, item: &Item, trouble: &Trouble, facts: &mut Facts) {
        let key = Key::Object(item.id.clone());
        self.failed(key.clone(), trouble.clone());
        let attempts = self.memory.backoff.last(&key).map_or(1, |tries| tries.count);
        facts.trouble(Some(&item.app), Some(&item.id), trouble, attempts);
    }
}
