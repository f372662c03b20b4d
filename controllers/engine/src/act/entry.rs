//! Reads one action of an intent: its resource or patch and its templates. What is wrong with it in itself is found here, before any
//! deployment lists it.

use emco_crds::fields::{ClusterTerm, Templating};
use emco_crds::generic_action_intent::{Action, ActionType, AddedResource, JsonPatchOp, JsonPatchOperation};
use emco_crds::hardware_intent::{Consumer, Workload};
use emco_crds::reasons::GenericActionIntentReason as Reason;
use serde_json::{Map, Value, json};

use super::is_definition;
use crate::canonical;
use crate::edits::{self, Patch, WorkloadChange};
use crate::hardware;
use crate::terms::{self, Candidate};
use crate::values::template::Templates;

/// Names of the fields that hold what an action does; messages about templates begin with them.
pub(super) const ADD: &str = "add";
const JSON_PATCH: &str = "jsonPatch";
const STRATEGIC_MERGE: &str = "strategicMerge";
const JSON_MERGE: &str = "jsonMerge";
/// Holds the target's name.
pub(super) const TARGET: &str = "target";

/// One action that can be carried out.
pub struct Entry<'a> {
    /// Name of its intent.
    pub intent: &'a str,
    /// As the intent has it.
    pub(super) doing: Doing<'a>,
    /// Its resource was read from a Secret: nothing of it may be quoted.
    pub secret: bool,
    /// The resource or patch, and the target's name, by the names of their fields.
    pub(super) body: Map<String, Value>,
    /// Set where the action says `templating: Handlebars`.
    pub(super) templates: Option<Templates>,
}

/// What is carried out.
pub(super) enum Doing<'a> {
    /// An action of a `GenericActionIntent`.
    Action(&'a Action),
    /// A consumer of a `HardwareIntent`, which asks for something of its target.
    Asking(&'a Consumer, &'a Workload, WorkloadChange),
}

impl std::fmt::Debug for Entry<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry").field("origin", &self.origin()).finish_non_exhaustive()
    }
}

/// What is wrong with an action, whatever deployment lists its intent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Of the intent's condition.
    pub reason: Reason,
    /// A sentence that begins with the field, such as `spec.actions[banner].add`, and quotes nothing of a Secret.
    pub message: String,
}

impl Entry<'_> {
    /// For messages: `GenericActionIntent banner, spec.actions[text]`.
    pub fn origin(&self) -> String {
        match &self.doing {
            Doing::Action(action) => origin(self.intent, &action.name),
            Doing::Asking(consumer, ..) => hardware::origin(self.intent, &consumer.name),
        }
    }

    /// Whether the action counts on a cluster: `deny` wins over `allow`; without both it counts everywhere.
    pub fn applies(&self, cluster: &Candidate<'_>) -> bool {
        let picks = |terms: &[ClusterTerm]| terms::any_matches(terms, cluster);
        match &self.doing {
            Doing::Action(action) => {
                action.allow.as_deref().is_none_or(picks) && !action.deny.as_deref().is_some_and(picks)
            }
            Doing::Asking(..) => true,
        }
    }
}

pub(super) fn origin(intent: &str, action: &str) -> String {
    format!("GenericActionIntent {intent}, spec.actions[{action}]")
}

/// Which entries count on a cluster.
pub fn mask(entries: &[Entry<'_>], cluster: &Candidate<'_>) -> Vec<bool> {
    entries.iter().map(|entry| entry.applies(cluster)).collect()
}

/// Whether those that count may differ between clusters of the same mask.
pub fn templated(entries: &[Entry<'_>], mask: &[bool]) -> bool {
    entries.iter().zip(mask).any(|(entry, applies)| *applies && entry.templates.is_some())
}

/// Reads an action; `text` is what `add.from` found.
pub fn read<'a>(intent: &'a str, action: &'a Action, text: Option<&str>) -> Result<Entry<'a>, Fault> {
    let at = format!("spec.actions[{}]", action.name);
    if action.app.is_none() && action.type_ != ActionType::Add {
        return Err(fault(Reason::PatchInvalid, format!("{at}: app is needed by every type but Add")));
    }
    let mut body = Map::new();
    let mut secret = false;
    if action.type_ == ActionType::Add {
        let from = action.add.as_ref().and_then(|add| add.from.as_ref());
        secret = from.is_some_and(|from| from.kind == emco_crds::SourceKind::Secret);
        let found = resource(action.add.as_ref(), text, secret);
        let found = found.map_err(|what| fault(Reason::ResourceInvalid, format!("{at}.{ADD}: {what}")))?;
        body.insert(ADD.to_owned(), found);
    } else {
        change(action, &at, &mut body)?;
    }
    if body.values().any(canonical::too_deep) {
        let text = format!("{at} nests more than {} levels: make it flatter", canonical::DEEPEST);
        return Err(fault(Reason::ResourceInvalid, text));
    }
    let templates = match action.templating.unwrap_or_default() {
        Templating::None => None,
        Templating::Handlebars => Some(Templates::parse(&body).map_err(|error| {
            let message =
                if secret { "the template is not valid; its text is withheld" } else { &error.message };
            let text = format!("{at}: {} line {}: {message}", error.path, error.line);
            fault(Reason::TemplateInvalid, text)
        })?),
    };
    Ok(Entry { intent, doing: Doing::Action(action), secret, body, templates })
}

fn fault(reason: Reason, message: String) -> Fault {
    Fault { reason, message }
}

/// The resource to add.
fn resource(add: Option<&AddedResource>, text: Option<&str>, secret: bool) -> Result<Value, String> {
    let inline = add.and_then(|add| add.inline.as_ref());
    let found = match (inline, text) {
        (Some(inline), _) => Value::Object(inline.0.clone()),
        (None, Some(text)) => parsed(text, secret)?,
        (None, None) => return Err("there is neither inline nor from: give one of them".to_owned()),
    };
    let text = |pointer: &str| found.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    for (pointer, field) in [("/apiVersion", "apiVersion"), ("/kind", "kind")] {
        if text(pointer).is_empty() {
            return Err(format!("the resource has no {field}: every resource needs one"));
        }
    }
    if text("/metadata/name").is_empty() && text("/metadata/generateName").is_empty() {
        return Err("the resource has no metadata.name: every resource needs one".to_owned());
    }
    if is_definition(text("/apiVersion"), text("/kind")) {
        return Err("a CustomResourceDefinition belongs to everybody on the cluster: put it into the chart"
            .to_owned());
    }
    if secret && (text("/apiVersion"), text("/kind")) != ("v1", "Secret") {
        return Err(
            "what is written in a Secret must be a Secret, for other resources are stored where more people may read: write it into a ConfigMap"
                .to_owned(),
        );
    }
    Ok(found)
}

/// The one document of a text.
fn parsed(text: &str, secret: bool) -> Result<Value, String> {
    let mut documents = emco_helm::yaml::documents(text.as_bytes()).map_err(|error| {
        if secret {
            "the text is not YAML; what is wrong is withheld".to_owned()
        } else {
            format!("the text is not YAML: {error}")
        }
    })?;
    match (documents.pop(), documents.len()) {
        (Some(found @ Value::Object(_)), 0) => Ok(found),
        (Some(_), 0) => Err("the text is no resource: it is not a map".to_owned()),
        (None, _) => Err("the text is empty: write one resource".to_owned()),
        (Some(_), more) => {
            Err(format!("the text has {} resources: write each under a key of its own", more + 1))
        }
    }
}

/// The patch and the name of its target.
fn change(action: &Action, at: &str, body: &mut Map<String, Value>) -> Result<(), Fault> {
    let Some(target) = &action.target else {
        return Err(fault(Reason::PatchInvalid, format!("{at}: target is needed by every type but Add")));
    };
    if is_definition(&target.api_version, &target.kind) {
        let text = format!(
            "{at}.target: a CustomResourceDefinition is no target: it belongs to everybody on the cluster, change it in the chart"
        );
        return Err(fault(Reason::PatchInvalid, text));
    }
    if let Some(name) = &target.name {
        body.insert(TARGET.to_owned(), json!({"name": name}));
    }
    let (field, value) = match action.type_ {
        ActionType::Add | ActionType::Delete => return Ok(()),
        ActionType::JSONPatch => {
            let operations = action.json_patch.as_ref();
            (JSON_PATCH, operations.map(|operations| operations.iter().map(operation).collect::<Value>()))
        }
        ActionType::StrategicMerge => {
            (STRATEGIC_MERGE, action.strategic_merge.as_ref().map(|patch| Value::Object(patch.0.clone())))
        }
        ActionType::JSONMerge => {
            (JSON_MERGE, action.json_merge.as_ref().map(|patch| Value::Object(patch.0.clone())))
        }
    };
    let Some(value) = value else {
        return Err(fault(Reason::PatchInvalid, format!("{at}: the type needs the field {field}: fill it")));
    };
    body.insert(field.to_owned(), value);
    if let Some(patch) = patch(action.type_, body) {
        edits::check(&target.api_version, &target.kind, &patch)
            .map_err(|error| fault(Reason::PatchInvalid, format!("{at}.{field}: {error}")))?;
    }
    Ok(())
}

/// One operation as RFC 6902 writes it.
fn operation(operation: &JsonPatchOperation) -> Value {
    let JsonPatchOperation { op, path, from, value } = operation;
    let mut written = json!({"op": op.as_str(), "path": path});
    if let Some(map) = written.as_object_mut() {
        if let Some(from) = from {
            map.insert("from".to_owned(), from.as_str().into());
        }
        if matches!(op, JsonPatchOp::Add | JsonPatchOp::Replace | JsonPatchOp::Test) {
            map.insert("value".to_owned(), value.clone().unwrap_or_default());
        }
    }
    written
}

/// The patch of a body; `None` of what is no patch.
pub(super) fn patch(type_: ActionType, body: &Map<String, Value>) -> Option<Patch> {
    let field = |name: &str| body.get(name).cloned();
    match type_ {
        ActionType::Add | ActionType::Delete => None,
        ActionType::JSONPatch => match field(JSON_PATCH)? {
            Value::Array(operations) => Some(Patch::Json(operations)),
            _ => None,
        },
        ActionType::StrategicMerge => field(STRATEGIC_MERGE).map(Patch::Strategic),
        ActionType::JSONMerge => field(JSON_MERGE).map(Patch::Merge),
    }
}
