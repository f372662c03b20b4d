//! Finds the intents that a deployment lists, and reads what they do.
//!
//! They are found by name in the deployment's own namespace: one of another project cannot be listed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_crds::GenericActionIntent;
use emco_crds::conditions::types::RESOLVED;
use emco_crds::deployment_intent_group::IntentRef;
use emco_crds::generic_action_intent::{Action, ResourceFrom};
use emco_crds::names::GROUP;
use emco_crds::reasons::DeploymentIntentGroupReason as Reason;

use super::find;
use crate::act::{self, Effects, Entry, Generated, Objects};
use crate::refusal::Refusal;
use crate::snapshot::{Snapshot, SourceKey};
use crate::traffic::{self, Group};

/// The kind of generic actions.
const KNOWN: &str = "GenericActionIntent";
/// Kinds of intents and their priority. Those of a lower number are carried out first, whatever the order of the list: what later kinds
/// change, or read, may have been made by earlier ones.
const PRIORITIES: &[(&str, u8)] = &[(KNOWN, 10), (traffic::KIND, 60)];
/// Its short name, which the apps begin with that its intents make.
const SHORT: &str = "gai";
/// The kind that a later version will know.
const LATER: &str = "HardwareIntent";

/// Whether a reference names a `GenericActionIntent`.
pub fn is_generic_action(reference: &IntentRef) -> bool {
    is_ours(reference) && reference.kind == KNOWN
}

/// Whether a reference names a `TrafficGroupIntent`.
pub fn is_traffic(reference: &IntentRef) -> bool {
    is_ours(reference) && reference.kind == traffic::KIND
}

/// Whether a reference names an intent of a kind that is known.
pub fn is_known(reference: &IntentRef) -> bool {
    is_ours(reference) && PRIORITIES.iter().any(|(kind, _)| reference.kind == *kind)
}

fn is_ours(reference: &IntentRef) -> bool {
    reference.group.as_deref().is_none_or(|group| group == GROUP)
}

/// What of the listed intents is not supported yet.
pub fn not_supported(intents: &[IntentRef]) -> Option<String> {
    let later = intents.iter().find(|reference| is_ours(reference) && reference.kind == LATER)?;
    Some(format!(
        "spec.intents[{LATER}/{}] is not supported yet: remove the entry; kind {KNOWN} is supported",
        later.name
    ))
}

/// Every `ConfigMap` and Secret key that an intent reads: what has to be fetched for a snapshot.
pub fn intent_sources(intent: &GenericActionIntent) -> BTreeSet<SourceKey> {
    let from = |action: &Action| action.add.as_ref().and_then(|add| add.from.as_ref()).map(source);
    intent.spec.actions.iter().filter_map(from).collect()
}

/// Where the text of an added resource is.
pub fn source(from: &ResourceFrom) -> SourceKey {
    let ResourceFrom { kind, name, key: _ } = from;
    SourceKey { kind: kind.as_str().to_owned(), name: name.clone(), key: from.key().to_owned() }
}

/// Intents in the order in which they are carried out: by the priority of their kind, then as they are listed.
fn ordered<'r>(intents: &'r [IntentRef], priorities: &[(&str, u8)]) -> Vec<&'r IntentRef> {
    let priority = |reference: &IntentRef| {
        let known = priorities.iter().find(|(kind, _)| is_ours(reference) && reference.kind == *kind);
        known.map_or(u8::MAX, |(_, priority)| *priority)
    };
    let mut all: Vec<&IntentRef> = intents.iter().collect();
    all.sort_by_key(|reference| priority(reference));
    all
}

/// What all listed intents do, in the order in which they are carried out.
#[derive(Default)]
pub(super) struct AllEffects<'a> {
    /// What is done to what charts make, by app.
    pub entries: BTreeMap<&'a str, Vec<Entry<'a>>>,
    /// Apps of intents alone.
    pub generated: Vec<Generated<'a>>,
    /// Intents of traffic, which read what all others leave.
    pub traffic: Vec<Group<'a>>,
}

pub(super) fn effects<'a>(
    snapshot: &'a Snapshot,
    composite_app: &str,
    names: &BTreeSet<&str>,
) -> Result<AllEffects<'a>, Box<Refusal>> {
    let mut all = AllEffects::default();
    for reference in ordered(&snapshot.dig.spec.intents, PRIORITIES) {
        let name = reference.name.as_str();
        if is_traffic(reference) {
            let group = group(snapshot, reference, composite_app, names)?;
            let Effects { edits: _, objects } = act::traffic::effects(&group);
            all.generated.extend(Generated::of((traffic::KIND, traffic::SHORT), name, objects));
            all.traffic.push(group);
            continue;
        }
        let intent = named(snapshot, reference, &snapshot.intents)?;
        let Effects { edits, objects } = generic_actions(snapshot, name, intent, composite_app, names)?;
        for (app, entry) in edits {
            all.entries.entry(app).or_default().push(entry);
        }
        all.generated.extend(Generated::of((KNOWN, SHORT), name, objects));
    }
    Ok(all)
}

/// A `TrafficGroupIntent`, whose apps the composite application has.
fn group<'a>(
    snapshot: &'a Snapshot,
    reference: &'a IntentRef,
    composite_app: &str,
    names: &BTreeSet<&str>,
) -> Result<Group<'a>, Box<Refusal>> {
    let spec = &named(snapshot, reference, &snapshot.traffic)?.spec;
    let group = Group { name: &reference.name, spec };
    if let Some(sentence) = traffic::fault(spec) {
        let text = format!("{} {}: {sentence}", traffic::KIND, group.name);
        return Err(Refusal::new(RESOLVED, Reason::IntentInvalid, text));
    }
    for server in &spec.servers {
        let clients = server.clients.iter().filter_map(|client| {
            Some((format!("{}.clients[{}]", group.origin(&server.name), client.name), client.app.as_deref()?))
        });
        let own = std::iter::once((group.origin(&server.name), server.app.as_str()));
        if let Some((origin, app)) = own.chain(clients).find(|(_, app)| !names.contains(app)) {
            let known = names.iter().take(10).copied().collect::<Vec<_>>().join(", ");
            let text = format!(
                "{origin} names app {app}, which CompositeApp {composite_app} does not have: it has {known}"
            );
            return Err(Refusal::new(RESOLVED, Reason::AppNotFound, text));
        }
    }
    Ok(group)
}

/// What a `GenericActionIntent` does: an action that names no app adds an object of its own.
fn generic_actions<'a>(
    snapshot: &'a Snapshot,
    name: &'a str,
    intent: &'a GenericActionIntent,
    composite_app: &str,
    names: &BTreeSet<&str>,
) -> Result<Effects<'a>, Box<Refusal>> {
    let (mut edits, mut objects) = (Vec::new(), Vec::new());
    for action in &intent.spec.actions {
        let Some(app) = action.app.as_deref() else {
            objects.push(entry(snapshot, name, action)?);
            continue;
        };
        if !names.contains(app) {
            let known = names.iter().take(10).copied().collect::<Vec<_>>().join(", ");
            let text = format!(
                "{KNOWN} {name}: spec.actions[{}] names app {app}, which CompositeApp {composite_app} does not have: it has {known}",
                action.name
            );
            return Err(Refusal::new(RESOLVED, Reason::AppNotFound, text));
        }
        edits.push((app, entry(snapshot, name, action)?));
    }
    Ok(Effects { edits, objects: Objects::Actions(objects) })
}

fn named<'a, K>(
    snapshot: &Snapshot,
    reference: &IntentRef,
    found: &'a BTreeMap<String, Arc<K>>,
) -> Result<&'a K, Box<Refusal>> {
    let IntentRef { group, kind, name } = reference;
    if !is_known(reference) {
        let group = group.as_deref().unwrap_or(GROUP);
        let known = PRIORITIES.iter().map(|(kind, _)| *kind).collect::<Vec<_>>().join(", ");
        let text = format!(
            "spec.intents[{kind}/{name}]: there is no intent of kind {kind} in group {group}, only {known} in {GROUP}: correct kind and group, or \
             remove the entry"
        );
        return Err(Refusal::new(RESOLVED, Reason::IntentKindUnknown, text));
    }
    found.get(name).map(AsRef::as_ref).ok_or_else(|| {
        let namespace = snapshot.dig.metadata.namespace.as_deref().unwrap_or_default();
        let text = format!(
            "{kind} {name} does not exist in namespace {namespace}: create it, or change spec.intents"
        );
        Refusal::new(RESOLVED, Reason::IntentNotFound, text)
    })
}

fn entry<'a>(snapshot: &'a Snapshot, intent: &'a str, action: &'a Action) -> Result<Entry<'a>, Box<Refusal>> {
    let from = action.add.as_ref().and_then(|add| add.from.as_ref());
    let text = match from {
        None => None,
        Some(from) => {
            let field = format!("{KNOWN} {intent}, spec.actions[{}].add.from", action.name);
            Some(find(&snapshot.sources, &source(from), &field)?)
        }
    };
    act::read(intent, action, text).map_err(|fault| {
        let text = format!("{KNOWN} {intent}: {}", fault.message);
        Refusal::new(RESOLVED, Reason::IntentInvalid, text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intents_come_by_the_priority_of_their_kind_and_then_as_listed() {
        let reference = |(group, kind, name): (Option<&str>, &str, &str)| IntentRef {
            group: group.map(str::to_owned),
            kind: kind.to_owned(),
            name: name.to_owned(),
        };
        let listed = [
            (Some("acme.example"), "Early", "theirs"),
            (None, "Late", "d"),
            (None, KNOWN, "c"),
            (Some(GROUP), "Early", "b"),
            (None, KNOWN, "a"),
        ]
        .map(reference);
        let names = |priorities: &[(&str, u8)]| {
            ordered(&listed, priorities).iter().map(|reference| reference.name.as_str()).collect::<Vec<_>>()
        };
        let kinds = [("Late", 20), (KNOWN, 10), ("Early", 5)];
        assert_eq!(names(&kinds), ["b", "c", "a", "d", "theirs"]);
        assert_eq!(names(PRIORITIES), ["c", "a", "theirs", "d", "b"], "what nobody knows is refused");
    }
}
