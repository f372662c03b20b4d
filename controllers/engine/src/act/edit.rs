//! Works out what the actions of an app's intents are on one cluster: those that count there, with their texts filled in.

use emco_crds::fields::LabelSelector;
use emco_crds::generic_action_intent::{ActionType, OnMissing};
use serde_json::{Map, Value, json};

use super::entry::{self, ADD, Doing, Entry, TARGET};
use crate::canonical;
use crate::edits::Patch;
use crate::identity::{kind_of, split_api_version};
use crate::terms;
use crate::values::template::{Fault, Scope};

/// Domain of digests of edits; the number is the format.
const DOMAIN: &str = "emco-edits/1\0";
/// What stands for the release name in a target's name, also without templating.
const RELEASE: [&str; 2] = ["{{release}}", "{{ release }}"];

/// What the actions do on one cluster, in order.
#[derive(Debug)]
pub struct Edits {
    /// Keyed digest of all of them, 32 hexadecimal digits: the same digest does the same.
    pub digest: String,
    /// In the order in which they are carried out; never empty.
    pub all: Vec<Edit>,
}

/// One action on one cluster.
#[derive(Clone, Debug)]
pub struct Edit {
    /// Names the intent among all others.
    pub intent: String,
    /// For messages: `GenericActionIntent banner, spec.actions[text]`.
    pub origin: String,
    /// Nothing of it may be quoted.
    pub secret: bool,
    /// What is done.
    pub what: What,
}

/// What an action does.
#[derive(Clone, Debug)]
pub enum What {
    /// Adds a resource.
    Add(Value),
    /// Patches resources.
    Change(Wanted, Patch),
    /// Leaves resources out.
    Delete(Wanted),
}

/// Which resources an action is about.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// API group; empty for the core group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Which of them.
    pub pick: Pick,
    /// Whether there may be none.
    pub may_be_missing: bool,
}

/// How resources of a kind are picked.
#[derive(Clone, Debug)]
pub enum Pick {
    /// By their name.
    Name(String),
    /// By their labels.
    Labels(LabelSelector),
}

impl Wanted {
    /// Whether a resource is one of them. The API version does not count, as it does not in the identity of an object.
    pub fn is(&self, object: &Value) -> bool {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let picked = || match &self.pick {
            Pick::Name(name) => text("/metadata/name") == Some(name),
            Pick::Labels(selector) => {
                let labels = object.pointer("/metadata/labels");
                terms::selects(selector, |key| {
                    labels.and_then(|labels| labels.get(key)).and_then(Value::as_str)
                })
            }
        };
        kind_of(object) == (self.group.as_str(), self.kind.as_str()) && picked()
    }

    /// For messages: `Deployment web`, `Deployments of these labels`.
    pub fn describe(&self) -> String {
        match &self.pick {
            Pick::Name(name) => format!("{} {name}", self.kind),
            Pick::Labels(_) => format!("{} with the labels of target.selector", self.kind),
        }
    }
}

/// An entry whose texts could not be filled in.
#[derive(Debug)]
pub struct Unfilled {
    /// Position of the entry.
    pub entry: usize,
    /// What is wrong.
    pub fault: Fault,
}

impl Edit {
    /// The cure where there is no such resource.
    pub const fn cure(&self) -> &'static str {
        match &self.what {
            What::Change(_, Patch::Workload(_)) => "name a workload of the app in target",
            _ => {
                "change target, say on which clusters it is there with allow and deny, or set onMissing: Ignore"
            }
        }
    }
}

impl Edits {
    /// Those of the entries that count; `None` where none does.
    pub fn of(
        entries: &[Entry<'_>],
        mask: &[bool],
        scope: &Scope<'_>,
        release: &str,
        key: &[u8; 32],
    ) -> Result<Option<Self>, Unfilled> {
        let counting = entries.iter().zip(mask).enumerate().filter(|(_, (_, applies))| **applies);
        let (mut all, mut documents) = (Vec::new(), Vec::new());
        for (position, (entry, _)) in counting {
            let body = filled(entry, scope, release).map_err(|fault| Unfilled { entry: position, fault })?;
            documents.push(document(entry, &body));
            all.extend(edit(entry, body));
        }
        if all.is_empty() {
            return Ok(None);
        }
        let digest = canonical::digest_hex(key, DOMAIN, &Value::Array(documents));
        Ok(Some(Self { digest, all }))
    }

    /// Objects that are complete, to be added; `None` without any. What does anything else is left out.
    pub fn made(mut all: Vec<Edit>, key: &[u8; 32]) -> Option<Self> {
        all.retain(|edit| matches!(edit.what, What::Add(_)));
        let document = |edit: &Edit| match &edit.what {
            What::Add(object) => json!({"origin": edit.origin, "object": object}),
            What::Change(..) | What::Delete(_) => Value::Null,
        };
        let documents = all.iter().map(document).collect();
        let digest = canonical::digest_hex(key, DOMAIN, &Value::Array(documents));
        (!all.is_empty()).then_some(Self { digest, all })
    }
}

fn filled(entry: &Entry<'_>, scope: &Scope<'_>, release: &str) -> Result<Map<String, Value>, Fault> {
    if let Some(templates) = &entry.templates {
        return templates.fill(&entry.body, scope);
    }
    let mut body = entry.body.clone();
    if let Some(Value::String(name)) = body.get_mut(TARGET).and_then(|target| target.get_mut("name")) {
        *name = RELEASE.iter().fold(name.clone(), |name, of| name.replace(of, release));
    }
    Ok(body)
}

/// What stands for an edit in the digest.
fn document(entry: &Entry<'_>, body: &Map<String, Value>) -> Value {
    let action = match &entry.doing {
        Doing::Action(action) => action,
        Doing::Asking(consumer, target, change) => {
            let amounts = change.resources.iter();
            let amounts: Value = amounts.map(|(name, of)| json!([name, of.request, of.limit])).collect();
            return json!({
                "intent": entry.intent,
                "consumer": consumer.name,
                "body": body,
                "group": split_api_version(&target.api_version).0,
                "kind": target.kind,
                "container": change.container,
                "nodeSelector": change.node_selector,
                "resources": amounts,
                "replicas": change.replicas,
            });
        }
    };
    let target = action.target.as_ref();
    json!({
        "intent": entry.intent,
        "action": action.name,
        "type": action.type_,
        "body": body,
        "group": target.map(|target| split_api_version(&target.api_version).0),
        "kind": target.map(|target| &target.kind),
        "selector": target.and_then(|target| target.selector.as_ref()),
        "ignoreMissing": action.on_missing == Some(OnMissing::Ignore),
    })
}

fn edit(entry: &Entry<'_>, mut body: Map<String, Value>) -> Option<Edit> {
    let name = |body: &Map<String, Value>| {
        let name = body.get(TARGET).and_then(|target| target.get("name")).and_then(Value::as_str);
        name.map(|name| Pick::Name(name.to_owned()))
    };
    let wanted = |api_version: &str, kind: &str, pick: Pick, may_be_missing: bool| Wanted {
        group: split_api_version(api_version).0.to_owned(),
        kind: kind.to_owned(),
        pick,
        may_be_missing,
    };
    let what = match &entry.doing {
        Doing::Asking(_, target, change) => {
            let wanted = wanted(&target.api_version, &target.kind, name(&body)?, false);
            What::Change(wanted, Patch::Workload(change.clone()))
        }
        Doing::Action(action) if action.type_ == ActionType::Add => What::Add(body.remove(ADD)?),
        Doing::Action(action) => {
            let target = action.target.as_ref()?;
            let pick = match name(&body) {
                Some(name) => name,
                None => Pick::Labels(target.selector.clone()?),
            };
            let may_be_missing = action.on_missing == Some(OnMissing::Ignore);
            let wanted = wanted(&target.api_version, &target.kind, pick, may_be_missing);
            match entry::patch(action.type_, &body) {
                Some(patch) => What::Change(wanted, patch),
                None => What::Delete(wanted),
            }
        }
    };
    let intent = match &entry.doing {
        Doing::Action(_) => entry.intent.to_owned(),
        // One of another kind may have the same name.
        Doing::Asking(..) => format!("HardwareIntent/{}", entry.intent),
    };
    Some(Edit { intent, origin: entry.origin(), secret: entry.secret, what })
}
