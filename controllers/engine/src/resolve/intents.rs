//! Finds the intents that a deployment lists, and reads what they do.
//!
//! They are found by name in the deployment's own namespace: one of another project cannot be listed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_crds::conditions::types::RESOLVED;
use emco_crds::deployment_intent_group::IntentRef;
use emco_crds::generic_action_intent::{Action, ResourceFrom};
use emco_crds::names::GROUP;
use emco_crds::reasons::DeploymentIntentGroupReason as Reason;
use emco_crds::{GenericActionIntent, HardwareIntent};

use super::find;
use crate::act::{self, Effects, Entry, Generated, Objects};
use crate::hardware::{self, Demands};
use crate::refusal::Refusal;
use crate::snapshot::{Snapshot, SourceKey};
use crate::traffic::{self, Group};

/// Kinds of intents that are known.
const ACTIONS: &str = "GenericActionIntent";
const HARDWARE: &str = "HardwareIntent";
/// Their priority. Those of a lower number are carried out first, whatever the order of the list: what later kinds change, or read, may have
/// been made by earlier ones.
const PRIORITIES: &[(&str, u8)] = &[(ACTIONS, 10), (HARDWARE, 20), (traffic::KIND, 60)];
/// Short names, which the apps begin with that intents of a kind make.
const SHORT: &str = "gai";
const HARDWARE_SHORT: &str = "hwi";

/// Whether a reference names a `GenericActionIntent`.
pub fn is_generic_action(reference: &IntentRef) -> bool {
    is_ours(reference) && reference.kind == ACTIONS
}

/// True of a reference to a `HardwareIntent`.
pub fn is_hardware(reference: &IntentRef) -> bool {
    is_ours(reference) && reference.kind == HARDWARE
}

/// True of a reference to a `TrafficGroupIntent`.
pub fn is_traffic(reference: &IntentRef) -> bool {
    is_ours(reference) && reference.kind == traffic::KIND
}

/// True of a reference to an intent of a kind that is known.
pub fn is_known(reference: &IntentRef) -> bool {
    is_ours(reference) && PRIORITIES.iter().any(|(kind, _)| reference.kind == *kind)
}

fn is_ours(reference: &IntentRef) -> bool {
    reference.group.as_deref().is_none_or(|group| group == GROUP)
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
    /// Needs of apps, of nodes.
    pub hardware: Demands,
    /// Intents of traffic, which read what all others leave.
    pub traffic: Vec<Group<'a>>,
}

/// The apps that intents may name.
#[derive(Clone, Copy)]
struct Apps<'r> {
    composite_app: &'r str,
    names: &'r BTreeSet<&'r str>,
}

impl Apps<'_> {
    /// An app that is not there is a typing error.
    fn check(&self, origin: &str, app: &str) -> Result<(), Box<Refusal>> {
        if self.names.contains(app) {
            return Ok(());
        }
        let known = self.names.iter().take(10).copied().collect::<Vec<_>>().join(", ");
        let text = format!(
            "{origin} names app {app}, which CompositeApp {} does not have: it has {known}",
            self.composite_app
        );
        Err(Refusal::new(RESOLVED, Reason::AppNotFound, text))
    }
}

/// Effects of all of them, but for those that are refused: that is added to the `refusals`.
pub(super) fn effects<'a>(
    snapshot: &'a Snapshot,
    composite_app: &str,
    names: &BTreeSet<&str>,
    refusals: &mut Vec<Box<Refusal>>,
) -> AllEffects<'a> {
    let mut all = AllEffects::default();
    let apps = Apps { composite_app, names };
    for reference in ordered(&snapshot.dig.spec.intents, PRIORITIES) {
        refusals.extend(add(&mut all, snapshot, reference, apps).err());
    }
    all
}

fn add<'a>(
    all: &mut AllEffects<'a>,
    snapshot: &'a Snapshot,
    reference: &'a IntentRef,
    apps: Apps<'_>,
) -> Result<(), Box<Refusal>> {
    let name = reference.name.as_str();
    let (made_by, Effects { edits, objects }) = if is_traffic(reference) {
        let group = group(snapshot, reference, apps)?;
        all.traffic.push(group);
        ((traffic::KIND, traffic::SHORT), act::traffic::effects(&group))
    } else if is_hardware(reference) {
        let intent = named(snapshot, reference, &snapshot.hardware)?;
        ((HARDWARE, HARDWARE_SHORT), consumers(name, intent, apps, &mut all.hardware)?)
    } else {
        let intent = named(snapshot, reference, &snapshot.intents)?;
        ((ACTIONS, SHORT), generic_actions(snapshot, name, intent, apps)?)
    };
    for (app, entry) in edits {
        all.entries.entry(app).or_default().push(entry);
    }
    all.generated.extend(Generated::of(made_by, name, objects));
    Ok(())
}

/// A `TrafficGroupIntent`, whose apps the composite application has.
fn group<'a>(
    snapshot: &'a Snapshot,
    reference: &'a IntentRef,
    apps: Apps<'_>,
) -> Result<Group<'a>, Box<Refusal>> {
    let spec = &named(snapshot, reference, &snapshot.traffic)?.spec;
    let group = Group { name: &reference.name, spec };
    if let Some(sentence) = traffic::fault(spec) {
        let text = format!("{} {}: {sentence}", traffic::KIND, group.name);
        return Err(Refusal::new(RESOLVED, Reason::IntentInvalid, text));
    }
    for server in &spec.servers {
        let origin = group.origin(&server.name);
        let clients = server.clients.iter().filter_map(|client| {
            Some((format!("{origin}.clients[{}]", client.name), client.app.as_deref()?))
        });
        let own = std::iter::once((origin.clone(), server.app.as_str()));
        for (origin, app) in own.chain(clients) {
            apps.check(&origin, app)?;
        }
    }
    Ok(group)
}

/// What a `GenericActionIntent` does: an action that names no app adds an object of its own.
fn generic_actions<'a>(
    snapshot: &'a Snapshot,
    name: &'a str,
    intent: &'a GenericActionIntent,
    apps: Apps<'_>,
) -> Result<Effects<'a>, Box<Refusal>> {
    let (mut edits, mut objects) = (Vec::new(), Vec::new());
    for action in &intent.spec.actions {
        let Some(app) = action.app.as_deref() else {
            objects.push(entry(snapshot, name, action)?);
            continue;
        };
        apps.check(&format!("{ACTIONS} {name}: spec.actions[{}]", action.name), app)?;
        edits.push((app, entry(snapshot, name, action)?));
    }
    Ok(Effects { edits, objects: Objects::Actions(objects) })
}

/// Effects of a `HardwareIntent`: its consumers need something of nodes, and their targets ask for it.
fn consumers<'a>(
    name: &'a str,
    intent: &'a HardwareIntent,
    apps: Apps<'_>,
    needed: &mut Demands,
) -> Result<Effects<'a>, Box<Refusal>> {
    let demands = hardware::demands(name, &intent.spec).map_err(|fault| {
        let text = format!("{HARDWARE} {name}: {}", fault.message);
        Refusal::new(RESOLVED, Reason::IntentInvalid, text)
    })?;
    let mut edits = Vec::new();
    for (consumer, demand) in demands {
        apps.check(&format!("{HARDWARE} {name}: spec.consumers[{}]", consumer.name), &consumer.app)?;
        needed.0.entry(consumer.app.clone()).or_default().push(demand);
        edits.extend(act::asking(name, consumer).map(|entry| (consumer.app.as_str(), entry)));
    }
    if let Some(much) = needed.too_many() {
        return Err(Refusal::new(RESOLVED, Reason::IntentInvalid, format!("{HARDWARE} {name}: {much}")));
    }
    Ok(Effects { edits, objects: Objects::Actions(Vec::new()) })
}

/// Needs of apps by the intents that a deployment lists; `None` where one of them is not there or cannot be read, or where they are too many.
pub fn needed_hardware(snapshot: &Snapshot) -> Option<Demands> {
    let mut all = Demands::default();
    for reference in snapshot.dig.spec.intents.iter().filter(|reference| is_hardware(reference)) {
        let intent = snapshot.hardware.get(&reference.name)?;
        for (consumer, demand) in hardware::demands(&reference.name, &intent.spec).ok()? {
            all.0.entry(consumer.app.clone()).or_default().push(demand);
        }
    }
    all.too_many().is_none().then_some(all)
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
            let field = format!("{ACTIONS} {intent}, spec.actions[{}].add.from", action.name);
            Some(find(&snapshot.sources, &source(from), &field)?)
        }
    };
    act::read(intent, action, text).map_err(|fault| {
        let text = format!("{ACTIONS} {intent}: {}", fault.message);
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
            (None, ACTIONS, "c"),
            (Some(GROUP), "Early", "b"),
            (None, ACTIONS, "a"),
        ]
        .map(reference);
        let names = |priorities: &[(&str, u8)]| {
            ordered(&listed, priorities).iter().map(|reference| reference.name.as_str()).collect::<Vec<_>>()
        };
        let kinds = [("Late", 20), (ACTIONS, 10), ("Early", 5)];
        assert_eq!(names(&kinds), ["b", "c", "a", "d", "theirs"]);
        assert_eq!(names(PRIORITIES), ["c", "a", "theirs", "d", "b"], "what nobody knows is refused");
    }

    #[test]
    fn what_reads_manifests_comes_after_all_that_changes_them() {
        let reference =
            |kind: &str| IntentRef { group: None, kind: kind.to_owned(), name: "shop".to_owned() };
        let listed = [traffic::KIND, HARDWARE, ACTIONS].map(reference);
        let kinds: Vec<_> =
            ordered(&listed, PRIORITIES).iter().map(|reference| reference.kind.as_str()).collect();
        assert_eq!(kinds, [ACTIONS, HARDWARE, traffic::KIND]);
    }
}
