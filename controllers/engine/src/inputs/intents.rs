//! What intents are in the digest of inputs: all that their actions say, and what is behind it.

use emco_crds::deployment_intent_group::IntentRef;
use emco_crds::fields::SourceKind;
use emco_crds::generic_action_intent::{Action, AddedResource, OnMissing, ResourceFrom, Target};
use emco_crds::hardware_intent::{Consumer, Importance, Requirement};
use emco_crds::names::GROUP;
use serde_json::{Value, json};

use super::{Fields, selector_of, term_of, traffic};
use crate::canonical;
use crate::resolve::{is_generic_action, is_hardware, is_traffic, source};
use crate::snapshot::{Snapshot, Source};

pub(super) fn intent_of(reference: &IntentRef, snapshot: &Snapshot) -> Value {
    let IntentRef { group, kind, name } = reference;
    let mut out = Fields::new();
    out.put("group", group.as_deref().unwrap_or(GROUP).into());
    out.put("kind", kind.as_str().into());
    out.put("name", name.as_str().into());
    if is_generic_action(reference)
        && let Some(intent) = snapshot.intents.get(name)
    {
        out.list("actions", intent.spec.actions.iter().map(|action| action_of(action, snapshot)));
    }
    if is_hardware(reference)
        && let Some(intent) = snapshot.hardware.get(name)
    {
        out.list("consumers", intent.spec.consumers.iter().map(consumer_of));
    }
    if is_traffic(reference)
        && let Some(intent) = snapshot.traffic.get(name)
    {
        traffic::put(&mut out, &intent.spec);
    }
    out.done()
}

fn consumer_of(consumer: &Consumer) -> Value {
    let Consumer { name, app, target, container, replicas, requirements } = consumer;
    let mut out = Fields::new();
    out.put("name", name.as_str().into());
    out.put("app", app.as_str().into());
    if let Some(target) = target {
        out.put("target", json!(target));
    }
    out.some("container", container.as_deref());
    out.some("replicas", *replicas);
    out.list("requirements", requirements.iter().map(requirement_of));
    out.done()
}

fn requirement_of(requirement: &Requirement) -> Value {
    let Requirement { name, resource, node_selector, importance, weight } = requirement;
    let mut out = Fields::new();
    out.put("name", name.as_str().into());
    if let Some(resource) = resource {
        out.put("resource", json!(resource));
    }
    if let Some(selector) = node_selector {
        out.put("nodeSelector", json!(selector));
    }
    let importance = importance.filter(|importance| *importance != Importance::default());
    out.some("importance", importance.map(|importance| format!("{importance:?}")));
    out.some("weight", weight.filter(|weight| *weight != 1));
    out.done()
}

fn action_of(action: &Action, snapshot: &Snapshot) -> Value {
    let Action {
        name,
        app,
        type_,
        templating,
        add,
        target,
        json_patch,
        strategic_merge,
        json_merge,
        on_missing,
        allow,
        deny,
    } = action;
    let mut out = Fields::new();
    out.put("name", name.as_str().into());
    out.some("app", app.as_deref());
    out.put("type", json!(type_));
    out.put_templating(*templating);
    if let Some(add) = add {
        out.put("add", added(add, snapshot));
    }
    if let Some(target) = target {
        out.put("target", target_of(target));
    }
    if let Some(operations) = json_patch {
        out.put("jsonPatch", json!(operations));
    }
    for (field, patch) in [("strategicMerge", strategic_merge), ("jsonMerge", json_merge)] {
        if let Some(patch) = patch {
            out.put(field, Value::Object(patch.0.clone()));
        }
    }
    out.some("onMissing", on_missing.filter(|on| *on != OnMissing::default()).map(|on| format!("{on:?}")));
    for (field, terms) in [("allow", allow), ("deny", deny)] {
        if let Some(terms) = terms {
            out.put(field, terms.iter().map(term_of).collect());
        }
    }
    out.done()
}

/// A `ConfigMap` counts as what it says, a Secret as a keyed digest: the document must not help to guess it.
fn added(add: &AddedResource, snapshot: &Snapshot) -> Value {
    let AddedResource { inline, from } = add;
    if let Some(inline) = inline {
        return json!({"inline": inline});
    }
    let Some(from) = from else { return Value::Null };
    let ResourceFrom { kind, name: _, key: _ } = from;
    let Some(Source::Found(text)) = snapshot.sources.get(&source(from)) else { return Value::Null };
    match kind {
        SourceKind::ConfigMap => json!({"text": text}),
        SourceKind::Secret => {
            json!({"secret": canonical::secret_digest(&snapshot.installation.digest_key, text)})
        }
    }
}

fn target_of(target: &Target) -> Value {
    let Target { api_version, kind, name, selector } = target;
    let mut out = Fields::new();
    out.put("apiVersion", api_version.as_str().into());
    out.put("kind", kind.as_str().into());
    out.some("name", name.clone());
    if let Some(selector) = selector {
        out.put("selector", selector_of(selector));
    }
    out.done()
}
