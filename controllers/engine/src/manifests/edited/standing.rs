//! Keeps what actions did to one object: which fields are whose, and whether two intents contradict each other.

use std::collections::BTreeSet;

use serde_json::Value;

use super::shares::{Contradiction, Share, Side, Step};
use crate::act::{self, Edit};
use crate::edits::{self, Patch};
use crate::identity::Identity;
use crate::manifests::Object;
use crate::normalise;
use crate::set::provenance::{Became, Done};

/// One object, and what was done to it so far.
pub(super) struct Standing {
    pub(super) object: Object,
    /// The action that added it.
    added: Option<Who>,
    /// The action that left it out.
    pub(super) gone: Option<Who>,
    /// The object before it was changed.
    before: Option<Value>,
    /// The part of each intent, in their order.
    shares: Vec<Share>,
}

/// Whose edit it was.
#[derive(Clone)]
pub(super) struct Who {
    pub(super) intent: String,
    pub(super) origin: String,
}

impl Who {
    pub(super) fn of(edit: &Edit) -> Self {
        Self { intent: edit.intent.clone(), origin: edit.origin.clone() }
    }
}

impl Standing {
    pub(super) const fn new(object: Object, added: Option<Who>) -> Self {
        Self { object, added, gone: None, before: None, shares: Vec::new() }
    }

    /// An action of another intent that added or changed it.
    pub(super) fn by_others(&self, intent: &str) -> Option<&str> {
        let added = self.added.iter().filter(|who| who.intent != intent).map(|who| who.origin.as_str());
        let changed = self.shares.iter().filter(|share| share.intent != intent).map(|share| share.action(""));
        added.chain(changed).next()
    }

    /// Takes what a patch made of it; true where something differs.
    pub(super) fn change(&mut self, edit: &Edit, patch: &Patch, before: Value, after: Value) -> bool {
        let changed: BTreeSet<String> = act::touched(&before, &after).into_iter().collect();
        let has_changed = !changed.is_empty();
        let own = self.shares.iter().position(|share| share.intent == edit.intent);
        // Until now there was one intent at most, and what stands is what it makes alone.
        if let (None, [only]) = (own, self.shares.as_mut_slice()) {
            only.alone = Some(before.clone());
        }
        let start = match own {
            Some(at) => self.shares.get(at).and_then(|share| share.alone.as_ref()),
            None => self.before.as_ref(),
        };
        let stated = act::stated(patch, start.unwrap_or(&before));
        let alone = start.and_then(|start| applied(start, patch));
        let step = Step { action: edit.origin.clone(), changed, stated };
        match own.and_then(|at| self.shares.get_mut(at)) {
            Some(share) => {
                share.alone = alone;
                share.steps.push(step);
            }
            None => self.shares.push(Share::new(&edit.intent, step, alone)),
        }
        self.object.json = after;
        if self.before.is_none() {
            self.before = Some(before);
        }
        has_changed
    }

    /// Remembers a patch that cannot be carried out on what other intents made of the object, but on what the chart made: in the end it is
    /// seen whether the intents contradict each other. False where it cannot be carried out there, either.
    pub(super) fn defer(&mut self, edit: &Edit, patch: &Patch, why: &str) -> bool {
        let now = self.object.json.clone();
        self.change(edit, patch, now.clone(), now);
        let own = self.shares.iter_mut().find(|share| share.intent == edit.intent);
        let Some(share) = own.filter(|share| share.alone.is_some()) else { return false };
        if share.deferred.is_none() {
            share.deferred = Some((edit.origin.clone(), why.to_owned()));
        }
        true
    }

    /// Two intents that make different things of it, whichever of them comes first.
    pub(super) fn contradiction(&self) -> Option<Contradiction> {
        let before = self.before.as_ref().filter(|_| self.shares.len() > 1)?;
        let sides: Vec<Side<'_>> = self.shares.iter().map(|share| Side::of(share, before)).collect();
        if Side::are_apart(&sides) {
            return None;
        }
        // What came of all is looked at last: where two agree, a third may be the reason that it is something else.
        for made in [None, Some(&self.object.json)] {
            for (at, later) in sides.iter().enumerate() {
                for earlier in sides.iter().take(at) {
                    if let Some(found) = later.contradicts(earlier, before, made) {
                        return Some(found);
                    }
                }
            }
        }
        None
    }

    /// An action that could not be carried out on what others made of the object, and why, where its outcome is missing.
    pub(super) fn failed(&self) -> Option<(&str, &str)> {
        let before = self.before.as_ref()?;
        self.shares.iter().find_map(|share| {
            let (action, why) = share.deferred.as_ref()?;
            let fields = Side::of(share, before).fields;
            let is_missing = share.alone.as_ref().is_none_or(|alone| {
                act::differing((alone, &fields), (&self.object.json, &fields), None).is_some()
            });
            is_missing.then_some((action.as_str(), why.as_str()))
        })
    }

    /// Sums up the actions on it; `None` where it is as the chart made it.
    pub(super) fn done(&self) -> Option<Done> {
        let whole = |who: &Who| (String::new(), who.origin.clone());
        let (became, mut fields) = match (&self.added, &self.gone) {
            (Some(_), Some(_)) => return None,
            (None, Some(who)) => (Became::LeftOut, vec![whole(who)]),
            (Some(who), None) => (Became::Added, vec![whole(who)]),
            (None, None) => (Became::Changed, Vec::new()),
        };
        if let Some(before) = self.before.as_ref().filter(|_| self.gone.is_none()) {
            fields.extend(self.fields(before));
        }
        (!fields.is_empty()).then(|| Done { object: Identity::of(&self.object.json), became, fields })
    }

    /// Fields that are others than before, each with the last action that made it what it is.
    fn fields(&self, before: &Value) -> Vec<(String, String)> {
        let steps = || self.shares.iter().flat_map(|share| &share.steps);
        let mut all = steps();
        if let (Some(only), None) = (all.next(), all.next()) {
            return only.changed.iter().map(|field| (field.clone(), only.action.clone())).collect();
        }
        let author = |field: &str| {
            let made = steps().rev().find(|step| act::meets(field, &step.changed));
            made.map(|step| step.action.clone()).unwrap_or_default()
        };
        let differing = act::touched(before, &self.object.json).into_iter();
        differing.map(|field| (field.clone(), author(&field))).collect()
    }
}

/// Applies a patch to an object by itself; `None` where it cannot be carried out there.
fn applied(object: &Value, patch: &Patch) -> Option<Value> {
    let mut made = normalise::normalise(edits::patched(object, patch).ok()?);
    let json = made.objects.pop()?;
    (made.fault.is_none() && made.objects.is_empty()).then_some(json)
}
