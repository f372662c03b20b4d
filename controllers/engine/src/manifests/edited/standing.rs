//! Keeps what actions did to one object: which fields are whose, and whether two intents contradict each other.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::act::{self, Edit};
use crate::edits::{self, Patch};
use crate::identity::Identity;
use crate::manifests::Object;
use crate::normalise;
use crate::provenance::{Became, Done};

/// One object, and what was done to it so far.
pub(super) struct Standing {
    pub(super) object: Object,
    /// Who added it.
    pub(super) added: Option<Who>,
    /// Who left it out.
    pub(super) gone: Option<Who>,
    /// The object before it was changed.
    before: Option<Value>,
    /// What each intent did, in their order.
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

/// Two intents that give a field different values.
pub(super) struct Contradiction {
    pub(super) field: String,
    /// The action that comes later.
    pub(super) action: String,
    /// The other one.
    pub(super) other: String,
}

/// Why a patch cannot be carried out.
pub(super) enum Obstacle {
    /// It cannot be carried out on what the chart made, either.
    Itself,
    /// Another intent did already what it does.
    Done,
    /// Another intent made a field something else.
    Other(Contradiction),
}

/// What the actions of one intent did to an object.
struct Share {
    intent: String,
    /// In their order.
    steps: Vec<Step>,
    /// The object as this intent alone makes it; `None` where it needs what another did, and while there is no other.
    alone: Option<Value>,
}

/// What one action did.
struct Step {
    action: String,
    /// Fields that were others before.
    changed: Vec<String>,
    /// Fields that it sets, whatever they were.
    stated: Vec<String>,
}

impl Step {
    fn concerns(&self, field: &str) -> bool {
        let field = [field.to_owned()];
        act::overlap(&field, &self.changed).or_else(|| act::overlap(&field, &self.stated)).is_some()
    }
}

impl Share {
    /// The last of its actions that concerns a field.
    fn action(&self, field: &str) -> &str {
        let concerning = self.steps.iter().rev().find(|step| step.concerns(field));
        concerning.or(self.steps.last()).map_or("", |step| &step.action)
    }

    fn stated(&self) -> impl Iterator<Item = &String> {
        self.steps.iter().flat_map(|step| &step.stated)
    }

    fn changed(&self) -> impl Iterator<Item = &String> {
        self.steps.iter().flat_map(|step| &step.changed)
    }
}

impl Standing {
    pub(super) const fn new(object: Object, added: Option<Who>) -> Self {
        Self { object, added, gone: None, before: None, shares: Vec::new() }
    }

    /// Another intent that added or changed it.
    pub(super) fn by_others(&self, intent: &str) -> Option<&str> {
        let added = self.added.iter().filter(|who| who.intent != intent).map(|who| who.origin.as_str());
        let changed = self.shares.iter().filter(|share| share.intent != intent).map(|share| share.action(""));
        added.chain(changed).next()
    }

    /// Takes what a patch made of it; true where something differs.
    pub(super) fn change(&mut self, edit: &Edit, patch: &Patch, before: Value, after: Value) -> bool {
        let changed = act::touched(&before, &after);
        let has_changed = !changed.is_empty();
        let stated = act::stated(patch, &before);
        let step = Step { action: edit.origin.clone(), changed, stated };
        self.object.json = after;
        let is_first = self.before.is_none();
        match self.shares.iter().position(|share| share.intent == edit.intent) {
            Some(at) => {
                let others = self.shares.len() > 1;
                if let Some(share) = self.shares.get_mut(at) {
                    if others {
                        share.alone = share.alone.take().and_then(|alone| applied(&alone, patch));
                    }
                    share.steps.push(step);
                }
            }
            None => {
                // Until now there was one intent at most, and what stands is what it makes alone.
                if let [only] = self.shares.as_mut_slice() {
                    only.alone = Some(before.clone());
                }
                let start = self.before.as_ref();
                let alone = start.and_then(|start| applied(start, patch));
                self.shares.push(Share { intent: edit.intent.clone(), steps: vec![step], alone });
            }
        }
        if is_first {
            self.before = Some(before);
        }
        has_changed
    }

    /// Two intents of which each alone gives a field another value than the other, or of which one changes what the other made of it.
    pub(super) fn contradiction(&self) -> Option<Contradiction> {
        let before = self.before.as_ref()?;
        let pairs = self.shares.iter().enumerate().flat_map(|(at, later)| {
            self.shares.iter().take(at).map(move |earlier| (earlier, later))
        });
        for (earlier, later) in pairs {
            let field = match (&earlier.alone, &later.alone) {
                (Some(one), Some(other)) => {
                    let fields = |alone: &Value, share: &Share| -> BTreeSet<String> {
                        act::touched(before, alone).into_iter().chain(share.stated().cloned()).collect()
                    };
                    let (ours, theirs) = (fields(one, earlier), fields(other, later));
                    act::differing((one, &ours), (other, &theirs))
                }
                _ => {
                    let changed: Vec<String> = later.changed().cloned().collect();
                    let set: Vec<String> = earlier.changed().chain(earlier.stated()).cloned().collect();
                    act::overlap(&changed, &set).map(str::to_owned)
                }
            };
            if let Some(field) = field {
                let (action, other) = (later.action(&field).to_owned(), earlier.action(&field).to_owned());
                return Some(Contradiction { field, action, other });
            }
        }
        None
    }

    /// Why a patch cannot be carried out on what other intents made of the object.
    pub(super) fn obstacle(&self, edit: &Edit, patch: &Patch) -> Obstacle {
        let own = self.shares.iter().find(|share| share.intent == edit.intent);
        let start = own.map_or(self.before.as_ref(), |share| share.alone.as_ref());
        let Some((start, alone)) = start.and_then(|start| Some((start, applied(start, patch)?))) else {
            return Obstacle::Itself;
        };
        let mut fields = act::touched(start, &alone);
        fields.extend(act::stated(patch, start));
        let all: BTreeSet<String> = fields.iter().cloned().collect();
        if act::differing((&alone, &all), (&self.object.json, &all)).is_none() {
            return Obstacle::Done;
        }
        let others = self.shares.iter().filter(|share| share.intent != edit.intent);
        let mut met = others.filter_map(|share| {
            let set: Vec<String> = share.changed().chain(share.stated()).cloned().collect();
            let field = act::overlap(&fields, &set)?.to_owned();
            let (action, other) = (edit.origin.clone(), share.action(&field).to_owned());
            Some(Contradiction { field, action, other })
        });
        met.next().map_or(Obstacle::Itself, Obstacle::Other)
    }

    /// What was done to it in all; `None` where it is as the chart made it.
    pub(super) fn done(&self) -> Option<Done> {
        let whole = |who: &Who| (String::new(), who.origin.clone());
        let (became, mut fields) = match (&self.added, &self.gone) {
            (Some(_), Some(_)) => return None,
            (None, Some(who)) => (Became::LeftOut, vec![whole(who)]),
            (Some(who), None) => (Became::Added, vec![whole(who)]),
            (None, None) => (Became::Changed, Vec::new()),
        };
        if let Some(before) = self.before.as_ref().filter(|_| self.gone.is_none()) {
            let differing = act::touched(before, &self.object.json);
            fields.extend(differing.into_iter().map(|field| {
                let action = self.author(&field).to_owned();
                (field, action)
            }));
        }
        (!fields.is_empty()).then(|| Done { object: Identity::of(&self.object.json), became, fields })
    }

    /// The last action that made a field what it is.
    fn author(&self, field: &str) -> &str {
        let steps = || self.shares.iter().flat_map(|share| &share.steps);
        let mut all = steps();
        if let (Some(only), None) = (all.next(), all.next()) {
            return &only.action;
        }
        let field = [field.to_owned()];
        let made = |step: &&Step| act::overlap(&field, &step.changed).is_some();
        steps().rev().find(made).map_or("", |step| &step.action)
    }
}

/// What a patch makes of an object by itself; `None` where it cannot be carried out there.
fn applied(object: &Value, patch: &Patch) -> Option<Value> {
    let mut made = normalise::normalise(edits::patched(object, patch).ok()?);
    let json = made.objects.pop()?;
    (made.fault.is_none() && made.objects.is_empty()).then_some(json)
}
