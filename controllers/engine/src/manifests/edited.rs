//! Edits what a chart made by the actions of intents, after it was put into its namespace.
//!
//! What comes out is finished once more, and held to all that a chart is held to, so that no action reaches where its chart could not.

use std::collections::BTreeMap;

use emco_crds::conditions::types::RENDERED;
use emco_crds::reasons::DeploymentIntentGroupReason as Reason;
use serde_json::Value;

use super::{Draft, Object, check, check_count};
use crate::act::{self, Edit, Edits, Wanted, What};
use crate::edits::{self, Patch};
use crate::identity::{Identity, kind_of};
use crate::normalise;
use crate::order;
use crate::refusal::Refusal;
use crate::set::{ADDED, ManifestSet, SetManifest};

/// Edits of one object that are written down.
const MOST_SAID: usize = 8;
/// Annotations that are read when a chart is rendered begin so; what an action makes of them would have no effect.
const HOOKS: &str = "helm.sh/hook";

impl Draft {
    /// A finished set, to be edited. `rendered` is what it was finished from, and names the files for messages; a stored set has none.
    pub fn of_set(set: &ManifestSet, rendered: Option<&Self>) -> Self {
        let printed = rendered.into_iter().flat_map(|draft| draft.objects.iter().rev());
        let sources: BTreeMap<_, &str> =
            printed.map(|object| (named(&object.json), object.source.as_str())).collect();
        let object = |manifest: &SetManifest| {
            let source = sources.get(&named(&manifest.json)).copied().unwrap_or("the chart");
            Object {
                json: manifest.json.clone(),
                phase: manifest.phase,
                hook: manifest.hook.clone(),
                crd_folder: manifest.crd_folder,
                source: source.to_owned(),
                // All that is known of a set that was stored before rendered sets were kept.
                edited_by: manifest.edited_by.clone(),
            }
        };
        let mut draft = Self { objects: set.manifests.iter().map(object).collect(), ..Self::empty() };
        draft.find_kinds();
        draft
    }

    /// The file of the chart that printed an object.
    pub fn source(&self, kind: (&str, &str), name: &str) -> Option<&str> {
        let found = self.objects.iter().rev().find(|object| named(&object.json) == (kind, name));
        found.map(|object| object.source.as_str())
    }

    fn find_kinds(&mut self) {
        let kinds = self.objects.iter().map(|object| kind_of(&object.json));
        self.kinds = kinds.map(|(group, kind)| (group.to_owned(), kind.to_owned())).collect();
    }

    /// The draft as the actions leave it; `place` says for messages where it is: `app web on acme/a`.
    pub fn edited(mut self, app: &str, place: &str, edits: &Edits) -> Result<Self, Box<Refusal>> {
        let objects = self.objects.into_iter().map(|object| Standing::new(object, None)).collect();
        let mut stage = Stage { app, place, objects, warnings: Vec::new() };
        for edit in &edits.all {
            stage.carry_out(edit)?;
        }
        let Stage { objects, warnings, .. } = stage;
        let objects = objects.into_iter().filter(|standing| standing.gone.is_none());
        self.objects = objects.map(|standing| standing.object).collect();
        check_count(app, self.objects.len())?;
        self.find_kinds();
        for warning in warnings {
            self.warn(warning);
        }
        Ok(self)
    }
}

/// One object, and what was done to it so far.
struct Standing {
    object: Object,
    added: Option<Who>,
    /// Who left it out.
    gone: Option<Who>,
    /// Who changed it, and which fields.
    touches: Vec<(Who, Vec<String>)>,
}

/// Whose edit it was.
#[derive(Clone)]
struct Who {
    intent: String,
    origin: String,
}

impl Who {
    fn of(edit: &Edit) -> Self {
        Self { intent: edit.intent.clone(), origin: edit.origin.clone() }
    }
}

impl Standing {
    fn new(object: Object, added: Option<Who>) -> Self {
        Self { object, added, gone: None, touches: Vec::new() }
    }
}

/// An app on its way through the actions.
struct Stage<'a> {
    app: &'a str,
    place: &'a str,
    objects: Vec<Standing>,
    warnings: Vec<String>,
}

impl Stage<'_> {
    fn carry_out(&mut self, edit: &Edit) -> Result<(), Box<Refusal>> {
        match &edit.what {
            What::Add(resource) => self.add(edit, resource),
            What::Change(wanted, patch) => {
                for at in self.found(edit, wanted)? {
                    self.change(edit, patch, at)?;
                }
                Ok(())
            }
            What::Delete(wanted) => {
                for at in self.found(edit, wanted)? {
                    self.delete(edit, at)?;
                }
                Ok(())
            }
        }
    }

    fn refuse(&self, edit: &Edit, reason: Reason, what: &str) -> Box<Refusal> {
        Refusal::new(RENDERED, reason, format!("{}: {}: {what}", self.place, edit.origin))
    }

    fn add(&mut self, edit: &Edit, resource: &Value) -> Result<(), Box<Refusal>> {
        if hooks(resource).next().is_some() {
            let what = format!("what an action adds cannot be a hook: leave the annotations {HOOKS} out");
            return Err(self.refuse(edit, Reason::IntentInvalid, &what));
        }
        for json in self.normalised(edit, resource.clone(), Reason::IntentInvalid)? {
            if act::is_definition(text(&json, "/apiVersion"), text(&json, "/kind")) {
                let what =
                    "a CustomResourceDefinition belongs to everybody on the cluster: put it into the chart";
                return Err(self.refuse(edit, Reason::IntentInvalid, what));
            }
            let object = Object {
                phase: order::phase_of(&json, None),
                json,
                hook: None,
                crd_folder: false,
                source: edit.origin.clone(),
                edited_by: vec![format!("{ADDED}{}", edit.origin)],
            };
            self.objects.push(Standing::new(object, Some(Who::of(edit))));
        }
        Ok(())
    }

    /// Positions of the objects that an action is about.
    fn found(&self, edit: &Edit, wanted: &Wanted) -> Result<Vec<usize>, Box<Refusal>> {
        let is = |standing: &Standing| !standing.object.crd_folder && wanted.is(&standing.object.json);
        let all = self.objects.iter().enumerate();
        let found: Vec<usize> =
            all.filter(|(_, standing)| standing.gone.is_none() && is(standing)).map(|(at, _)| at).collect();
        if !found.is_empty() || wanted.may_be_missing {
            return Ok(found);
        }
        let what = wanted.describe();
        let gone =
            self.objects.iter().filter(|standing| is(standing)).find_map(|standing| standing.gone.as_ref());
        let why = match gone {
            Some(who) => format!("{what} is left out already by {}", who.origin),
            None => format!("app {} makes no {what} here{}", self.app, self.others(wanted)),
        };
        Err(self.refuse(edit, Reason::TargetMissing, &format!("{why}: {}", edit.cure())))
    }

    /// The names that there are of a kind, for whoever wrote another one.
    fn others(&self, wanted: &Wanted) -> String {
        let kind = (wanted.group.as_str(), wanted.kind.as_str());
        let of_kind = self.objects.iter().filter(|standing| kind_of(&standing.object.json) == kind);
        let names: Vec<&str> =
            of_kind.map(|standing| text(&standing.object.json, "/metadata/name")).take(5).collect();
        if names.is_empty() { String::new() } else { format!(" (it makes {})", names.join(", ")) }
    }

    fn change(&mut self, edit: &Edit, patch: &Patch, at: usize) -> Result<(), Box<Refusal>> {
        let Some(before) = self.objects.get(at).map(|standing| standing.object.json.clone()) else {
            return Ok(());
        };
        let identity = Identity::of(&before);
        let failed = |what: &str| self.refuse(edit, Reason::PatchFailed, &format!("{identity}: {what}"));
        let after = edits::patched(&before, patch).map_err(|error| failed(&error.to_string()))?;
        if !hooks(&before).eq(hooks(&after)) {
            return Err(failed(&format!(
                "the patch changes annotations {HOOKS}, which are read when the chart is rendered: change them in the chart"
            )));
        }
        let mut made = self.normalised(edit, after, Reason::PatchFailed)?;
        let (Some(after), true) = (made.pop(), made.is_empty()) else {
            return Err(self.refuse(
                edit,
                Reason::PatchFailed,
                "the patch makes more than one object of one",
            ));
        };
        let changed = act::touched(&before, &after);
        let Some(standing) = self.objects.get(at) else { return Ok(()) };
        for (who, fields) in standing.touches.iter().filter(|(who, _)| who.intent != edit.intent) {
            if let Some(field) = act::overlap(&changed, fields) {
                let what = format!(
                    "{identity}: it changes {field}, which {} sets as well: two intents that contradict each other are refused; leave the \
                     field to one of them, or put both actions into one intent, where the later one counts",
                    who.origin
                );
                return Err(self.refuse(edit, Reason::EditConflict, &what));
            }
        }
        let has_changed = !changed.is_empty();
        let mut fields = changed;
        fields.extend(act::stated(patch));
        if let Some(standing) = self.objects.get_mut(at) {
            standing.object.json = after;
            if has_changed && standing.object.edited_by.len() < MOST_SAID {
                standing.object.edited_by.push(format!("changed by {}", edit.origin));
            }
            standing.touches.push((Who::of(edit), fields));
        }
        Ok(())
    }

    fn delete(&mut self, edit: &Edit, at: usize) -> Result<(), Box<Refusal>> {
        let Some(standing) = self.objects.get(at) else { return Ok(()) };
        let identity = Identity::of(&standing.object.json);
        let mut by = standing.added.iter().chain(standing.touches.iter().map(|(who, _)| who));
        if let Some(other) = by.find(|who| who.intent != edit.intent) {
            let what = format!(
                "{identity}: it leaves out what {} adds or changes: two intents that contradict each other are refused; take one of the \
                 actions away, or put both into one intent",
                other.origin
            );
            return Err(self.refuse(edit, Reason::EditConflict, &what));
        }
        if let Some(standing) = self.objects.get_mut(at) {
            standing.gone = Some(Who::of(edit));
        }
        Ok(())
    }

    /// What came of an action, as what charts print is normalised and checked.
    fn normalised(&mut self, edit: &Edit, json: Value, reason: Reason) -> Result<Vec<Value>, Box<Refusal>> {
        let made = normalise::normalise(json);
        if let Some(fault) = made.fault {
            return Err(self.refuse(edit, reason, &format!("it makes {fault}")));
        }
        for warning in made.warnings {
            self.warnings.push(format!("app {}: {}: {warning}", self.app, edit.origin));
        }
        for json in &made.objects {
            check(self.app, &edit.origin, json)?;
        }
        Ok(made.objects)
    }
}

/// The name of an object within its namespace.
fn named(json: &Value) -> ((&str, &str), &str) {
    (kind_of(json), text(json, "/metadata/name"))
}

fn text<'a>(json: &'a Value, pointer: &str) -> &'a str {
    json.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Annotations that make an object a hook of its chart.
fn hooks(json: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let annotations = json.pointer("/metadata/annotations").and_then(Value::as_object);
    annotations.into_iter().flatten().filter(|(key, _)| key.starts_with(HOOKS))
}
