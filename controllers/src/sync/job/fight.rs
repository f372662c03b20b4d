//! Paces corrections of one object that others change, delete or strip of our marks again and again, and names who does it.

use std::collections::BTreeSet;
use std::time::Duration;

use emco_crds::deployment_intent_group::sync::DriftPolicy;
use emco_engine::drift;
use emco_engine::identity::{Id, Identity};
use tokio::time::Instant;

use super::super::errors::{LONGEST, Retry, Trouble};
use super::super::metrics::count;
use super::desired::{App, Item};
use super::drift::Differs;
use super::row::{self, Facts};
use super::send::Over;
use super::{Job, Key};

/// Corrections of one object after which it is a fight: from then on with long pauses, and reported.
const FIGHT: u32 = 5;
/// After this time without a round a fight counts as over.
const CALM: Duration = Duration::from_mins(10);

impl Job {
    /// Whether an object of a complete row may be made again now. Each round of a fight has a longer pause; where changes are
    /// only reported, the object stays away until another revision, unless it was deleted to be made again.
    pub(super) fn may_restore(&mut self, item: &Item, facts: &mut Facts) -> bool {
        if !self.memory.settled {
            return true;
        }
        if self.memory.pace.drift == DriftPolicy::Report {
            return self.memory.drift.is_awaited(&item.id);
        }
        let key = Key::Again(item.id.clone());
        if let Some(tries) = self.memory.backoff.waiting(&key) {
            facts.trouble(Some(&item.app), Some(&item.id), &tries.trouble, tries.count);
            return false;
        }
        true
    }

    /// Notes that an object was applied again because of others; false where it was not.
    pub(super) fn restored(&mut self, item: &Item) -> bool {
        let differed = self.memory.drift.differ.remove(&item.id.to_string());
        if differed.is_none() && !self.memory.settled {
            return false;
        }
        if differed.is_none() {
            count(&self.ctx.edge.metrics.drifts);
        }
        self.memory.drift.count_restored(&item.id);
        self.memory.drift.last = row::now(self);
        match differed.filter(|differs| !["", drift::DELETED].contains(&differs.by.as_str())) {
            Some(Differs { by, fields, .. }) => self.again(item, "changed", &by, &fields),
            None => self.again(item, "deleted or replaced", "others", &[]),
        }
        true
    }

    /// Objects of ours that get another content by this revision.
    pub(super) fn touched(&self, send: &[(Item, Over)]) -> BTreeSet<Id> {
        let has_another = |item: &Item| {
            let seen = self.ctx.edge.observed.get(&item.id);
            seen.is_some_and(|seen| seen.manifest.as_deref().is_some_and(|token| *token != *item.token))
        };
        let open = send.iter().filter(|(_, over)| !self.memory.settled && over.is_ours());
        open.filter(|(item, _)| has_another(item)).map(|(item, _)| item.id.clone()).collect()
    }

    /// A revision gave the object another content: whether others fight over that is found out anew.
    pub(super) fn begins_anew(&mut self, item: &Item) {
        self.memory.backoff.worked(&Key::Again(item.id.clone()));
    }

    /// Forgets fights over what is not wanted any more.
    pub(super) fn forget_fights(&mut self, apps: &[App]) {
        let wanted = |id: &Identity| apps.iter().any(|app| app.set.names(id));
        self.memory.backoff.forget(|key| matches!(key, Key::Again(id) if !wanted(id)));
    }

    /// Counts one more round over an object, and says who is in it and over which fields.
    pub(super) fn again(&mut self, item: &Item, what: &str, by: &str, fields: &[String]) {
        let key = Key::Again(item.id.clone());
        if self.memory.backoff.last(&key).is_some_and(|tries| tries.due + CALM < Instant::now()) {
            self.memory.backoff.worked(&key);
        }
        let times = self.memory.backoff.last(&key).map_or(1, |tries| tries.count + 1);
        let trouble = if times < FIGHT {
            let text = format!("{} was {what} by {by} and is applied again", item.id);
            Trouble::new("Conflict", &text, Retry::Soon)
        } else {
            // The row names the object beside it.
            let text = format!("{what} again and again by {by}, put right {times} times: stop that");
            Trouble::new("DriftFight", &self.with_ways(text, &item.id, fields), Retry::Slowly)
        };
        self.memory.backoff.failed(key, trouble);
    }

    /// Adds what may be done besides: with the rule to copy that leaves the fields alone, of as many of them as find room.
    fn with_ways(&self, text: String, id: &Identity, fields: &[String]) -> String {
        if !self.has_sync_policy() {
            return if fields.is_empty() { text } else { format!("{text} ({})", fields.join(", ")) };
        }
        let ruled = |most: usize| {
            let (named, rest) = fields.split_at_checked(most)?;
            let more = match rest.len() {
                0 => String::new(),
                1 => " and 1 more field".to_owned(),
                more => format!(" and {more} more fields"),
            };
            let rule = drift::named::rule(id, named);
            let text = format!("{text}, or leave it alone: spec.sync.ignore: {rule}{more}");
            (text.len() <= LONGEST).then_some(text)
        };
        let ways = "list the fields under spec.sync.ignore, or set spec.sync.drift: Report";
        (1..=fields.len()).rev().find_map(ruled).unwrap_or_else(|| format!("{text}, {ways}"))
    }

    /// Fights that are not over, in the row.
    pub(super) fn tell_fights(&self, facts: &mut Facts) {
        let now = Instant::now();
        let fights = self.memory.backoff.all().filter_map(|(key, tries)| match key {
            Key::Again(id) if tries.trouble.reason == "DriftFight" && tries.due + CALM > now => {
                Some((id, tries))
            }
            _ => None,
        });
        let mut fights: Vec<_> = fights.collect();
        // The row has room for one: the first by name.
        fights.sort_by(|(a, _), (b, _)| Identity::cmp(a, b));
        for (id, tries) in fights {
            facts.trouble(None, Some(id), &tries.trouble, tries.count);
            facts.wake_at(tries.due + CALM);
        }
    }
}
