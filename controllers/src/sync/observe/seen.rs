//! Keeps of a live object the little that sync needs to know: whose it is, which manifest it has, how it is.

use emco_crds::names::{annotation, label};
use emco_engine::health::rules::{Judge, RuleFailure};
use emco_engine::health::{self, Health};
use emco_engine::identity::Identity;
use emco_engine::{drift, marks, normalise, order};
use serde_json::Value;

use super::leaving;

/// One live object, without its content.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools)] // independent facts, none of them a state
pub struct Seen {
    /// UID.
    pub uid: String,
    /// resourceVersion as a number, to tell older from newer.
    pub version: u64,
    /// resourceVersion as text, for preconditions.
    pub version_text: String,
    /// Owner hash of its label.
    pub owner: Option<String>,
    /// Manifest digest of its annotation.
    pub manifest: Option<String>,
    /// For people: the owner's project and name.
    pub placed_by: Option<String>,
    /// It is being deleted.
    pub deleting: bool,
    /// While it is being deleted: since when, and what it waits for.
    pub leaving: Option<Box<str>>,
    /// It was there before us.
    pub adopted: bool,
    /// It was there before us, or its chart or kind says that it stays: it is released, not deleted.
    pub keep: bool,
    /// How it is.
    pub health: Health,
    /// It is a Job or a Pod: as a hook it is done when it ended. All others are done when they are there.
    pub runs: bool,
    /// For objects of hooks: how it ended, once it did.
    pub outcome: Option<Result<(), String>>,
    /// Digest of the fields that its owner's manager has.
    pub fields: Option<String>,
    /// The kind of client that set its replicas as autoscalers do.
    pub scaled: Option<drift::ScaledBy>,
    /// The version, where others alone have a list that they add to: nothing else tells of what they make of it.
    pub shared: Option<String>,
    /// Other managers, at most sixteen.
    pub managers: Vec<String>,
}

impl Seen {
    /// Reads a live object for everything but its health, which is that of the built-in rules; `None` without uid or
    /// resourceVersion.
    pub fn of(id: &Identity, object: &Value) -> Option<Self> {
        Self::judged(id, object, &Judge::BuiltIn).map(|(seen, _)| seen)
    }

    /// The same, judged by the rule of its kind; and how that rule failed, if it did.
    pub fn judged(id: &Identity, object: &Value, judge: &Judge) -> Option<(Self, Option<RuleFailure>)> {
        let metadata = object.get("metadata")?;
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let version_text = text(metadata.get("resourceVersion"))?;
        let annotation = |key: &str| metadata.get("annotations").and_then(|all| all.get(key));
        let owner = text(metadata.get("labels").and_then(|all| all.get(label::OWNER)));
        let entries = metadata.get("managedFields").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let ours = owner.as_deref().map(marks::field_manager).unwrap_or_default();
        let mut managers = drift::others(entries, &ours);
        managers.truncate(16);
        let adopted = marks::is_adopted(object);
        let deleting = metadata.get("deletionTimestamp").is_some_and(|t| !t.is_null());
        let judgement = judge.judge(object);
        let shared = drift::joint::is_others(id, entries, &ours).then(|| version_text.clone());
        let seen = Self {
            uid: text(metadata.get("uid"))?,
            version: version_text.parse().unwrap_or_default(),
            version_text,
            manifest: text(annotation(annotation::MANIFEST)),
            placed_by: text(annotation(annotation::PLACED_BY)),
            deleting,
            leaving: deleting.then(|| leaving::sentence(id, object).into()),
            adopted,
            keep: order::is_crd(id.kind())
                || adopted
                || object.as_object().is_some_and(normalise::is_marked_to_stay),
            health: judgement.health,
            runs: matches!((id.group.as_str(), id.kind.as_str()), ("batch", "Job") | ("", "Pod")),
            outcome: health::hook_outcome(object),
            fields: drift::of_ours(entries, &ours),
            scaled: drift::scaled_by(entries),
            shared,
            managers,
            owner,
        };
        Some((seen, judgement.fault))
    }

    /// Nothing that anybody waits for differs.
    pub fn same(&self, other: &Self) -> bool {
        self.uid == other.uid
            && self.owner == other.owner
            && self.manifest == other.manifest
            && self.deleting == other.deleting
            && self.leaving == other.leaving
            && self.keep == other.keep
            && self.health == other.health
            && self.outcome == other.outcome
            && self.fields == other.fields
            && self.scaled == other.scaled
            && self.shared == other.shared
    }
}
