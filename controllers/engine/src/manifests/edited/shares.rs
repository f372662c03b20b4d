//! Compares what two intents do to one object, each by itself.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::act::{self, Stated};

/// Two intents that make different things of an object.
pub(super) struct Contradiction {
    /// A field that they differ in, or the places of items in a list.
    pub(super) field: String,
    /// The action that comes later.
    pub(super) action: String,
    /// The other one.
    pub(super) other: String,
}

/// The part of one intent in an object.
pub(super) struct Share {
    pub(super) intent: String,
    /// In their order.
    pub(super) steps: Vec<Step>,
    /// The object as this intent alone makes it; `None` where it needs what another did, and while there is no other.
    pub(super) alone: Option<Value>,
    /// The first action that could not be carried out on what others made of the object, and why.
    pub(super) deferred: Option<(String, String)>,
}

/// One action.
pub(super) struct Step {
    pub(super) action: String,
    /// Fields that were others before.
    pub(super) changed: BTreeSet<String>,
    /// The fields it sets, whatever was there.
    pub(super) stated: Stated,
}

impl Share {
    pub(super) fn new(intent: &str, step: Step, alone: Option<Value>) -> Self {
        Self { intent: intent.to_owned(), steps: vec![step], alone, deferred: None }
    }

    /// The last of its actions that concerns a field.
    pub(super) fn action(&self, field: &str) -> &str {
        let concerns =
            |step: &&Step| act::meets(field, &step.changed) || act::meets(field, &step.stated.fields);
        let concerning = self.steps.iter().rev().find(concerns);
        concerning.or_else(|| self.steps.last()).map(|step| step.action.as_str()).unwrap_or_default()
    }

    /// A list of which it took an item by its place, where that is another one in what another intent makes of the object.
    fn displaced(&self, before: &Value, other: &Value) -> Option<String> {
        self.steps.iter().find_map(|step| act::displaced(&step.stated.counted, before, other))
    }
}

/// A share, with all fields that it sets.
pub(super) struct Side<'a> {
    share: &'a Share,
    pub(super) fields: BTreeSet<String>,
}

impl<'a> Side<'a> {
    /// `before`: the object before anything was done to it.
    pub(super) fn of(share: &'a Share, before: &Value) -> Self {
        let mut fields: BTreeSet<String> = match &share.alone {
            Some(alone) => act::touched(before, alone).into_iter().collect(),
            None => share.steps.iter().flat_map(|step| &step.changed).cloned().collect(),
        };
        fields.extend(share.steps.iter().flat_map(|step| &step.stated.fields).cloned());
        Self { share, fields }
    }

    /// True where each has fields of its own, which is most often so: then no two of many have to be compared.
    pub(super) fn are_apart(sides: &[Self]) -> bool {
        let mut seen = BTreeSet::new();
        sides.iter().all(|side| {
            let is_apart = side.is_by_names() && !side.fields.iter().any(|field| act::meets(field, &seen));
            seen.extend(side.fields.iter().cloned());
            is_apart
        })
    }

    /// It needs nothing of what others did, and takes no item by its place.
    fn is_by_names(&self) -> bool {
        self.share.alone.is_some() && self.share.steps.iter().all(|step| step.stated.counted.is_empty())
    }

    /// A field of which each alone makes something else than the other, or that is neither's in what both together `made`; and a list where
    /// one takes an item by its place, and the other puts another one there. Where one needs what the other did, it may not change it.
    pub(super) fn contradicts(
        &self,
        earlier: &Self,
        before: &Value,
        made: Option<&Value>,
    ) -> Option<Contradiction> {
        let (Some(one), Some(other)) = (&earlier.share.alone, &self.share.alone) else {
            let mut changed = self.share.steps.iter().flat_map(|step| &step.changed);
            let field = changed.find(|field| act::meets(field, &earlier.fields))?;
            return Some(self.found(earlier, field, field.clone()));
        };
        if let Some(field) = act::differing((one, &earlier.fields), (other, &self.fields), made) {
            return Some(self.found(earlier, &field, field.clone()));
        }
        let list = self.share.displaced(before, one).or_else(|| earlier.share.displaced(before, other))?;
        Some(self.found(earlier, &list, format!("the places of items in {list}")))
    }

    fn found(&self, earlier: &Self, at: &str, field: String) -> Contradiction {
        let (action, other) = (self.share.action(at).to_owned(), earlier.share.action(at).to_owned());
        Contradiction { field, action, other }
    }
}
