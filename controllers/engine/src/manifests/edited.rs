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

mod shares;
mod standing;

use shares::Contradiction;
use standing::{Standing, Who};

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
        let mut stage = Stage { app, place, objects, deleted: Vec::new(), warnings: Vec::new() };
        for edit in &edits.all {
            stage.carry_out(edit)?;
        }
        stage.agree()?;
        let Stage { objects, warnings, .. } = stage;
        self.done = objects.iter().filter_map(Standing::done).collect();
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

/// An app on its way through the actions.
struct Stage<'a> {
    app: &'a str,
    place: &'a str,
    objects: Vec<Standing>,
    /// Deletions so far: by whom, and of which resources.
    deleted: Vec<(Who, &'a Wanted)>,
    warnings: Vec<String>,
}

impl<'a> Stage<'a> {
    fn carry_out(&mut self, edit: &'a Edit) -> Result<(), Box<Refusal>> {
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
                self.deleted.push((Who::of(edit), wanted));
                Ok(())
            }
        }
    }

    fn refuse(&self, edit: &Edit, reason: Reason, what: &str) -> Box<Refusal> {
        self.refuse_action(&edit.origin, reason, what)
    }

    fn refuse_action(&self, action: &str, reason: Reason, what: &str) -> Box<Refusal> {
        Refusal::new(RENDERED, reason, format!("{}: {action}: {what}", self.place))
    }

    /// Refuses two intents that make different things of one object, whichever of them comes first.
    fn agree(&self) -> Result<(), Box<Refusal>> {
        for standing in self.objects.iter().filter(|standing| standing.gone.is_none()) {
            let identity = || Identity::of(&standing.object.json);
            if let Some(found) = standing.contradiction() {
                return Err(self.contradicted(&identity(), &found));
            }
            if let Some((action, why)) = standing.failed() {
                let what = format!("{}: {why}", identity());
                return Err(self.refuse_action(action, Reason::PatchFailed, &what));
            }
        }
        Ok(())
    }

    fn contradicted(&self, identity: &Identity, found: &Contradiction) -> Box<Refusal> {
        let Contradiction { field, action, other } = found;
        let what = format!(
            "{identity}: it changes {field}, which {other} sets as well: two intents that contradict each other are refused; leave the field \
             to one of them, or put both actions into one intent, where the later one counts"
        );
        self.refuse_action(action, Reason::EditConflict, &what)
    }

    /// One intent leaves out what the other adds or changes.
    fn left_out(&self, edit: &Edit, what: &str, other: &str) -> Box<Refusal> {
        let what = format!(
            "{what} {other}: two intents that contradict each other are refused; take one of the actions away, or put both into one intent"
        );
        self.refuse(edit, Reason::EditConflict, &what)
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
            let leaves_it_out =
                |(who, wanted): &&(Who, &Wanted)| who.intent != edit.intent && wanted.is(&json);
            if let Some((other, _)) = self.deleted.iter().find(leaves_it_out) {
                let what = format!("{}: it adds what is left out by", Identity::of(&json));
                return Err(self.left_out(edit, &what, &other.origin));
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
        let (mut found, mut gone) = (Vec::new(), Vec::new());
        for (at, standing) in self.objects.iter().enumerate() {
            if standing.object.crd_folder || !wanted.is(&standing.object.json) {
                continue;
            }
            match &standing.gone {
                None => found.push(at),
                Some(who) => gone.push((standing, who)),
            }
        }
        let mut of_others = gone.iter().filter(|(_, who)| who.intent != edit.intent).peekable();
        let is_gone = of_others.peek().is_some();
        for (standing, who) in of_others {
            self.check_gone(edit, standing, who)?;
        }
        if !found.is_empty() || wanted.may_be_missing || is_gone {
            return Ok(found);
        }
        let what = wanted.describe();
        let why = match gone.first() {
            Some((_, who)) => format!("{what} is left out already by {}", who.origin),
            None => format!("app {} makes no {what} here{}", self.app, self.others(wanted)),
        };
        Err(self.refuse(edit, Reason::TargetMissing, &format!("{why}: {}", edit.cure())))
    }

    /// An object that another intent left out may be left out once more, and nothing else may be done to it.
    fn check_gone(&self, edit: &Edit, standing: &Standing, who: &Who) -> Result<(), Box<Refusal>> {
        if matches!(edit.what, What::Delete(_)) {
            return self.check_others(edit, standing);
        }
        let what = format!("{}: it changes what is left out by", Identity::of(&standing.object.json));
        Err(self.left_out(edit, &what, &who.origin))
    }

    /// An object that another intent adds or changes may not be left out.
    fn check_others(&self, edit: &Edit, standing: &Standing) -> Result<(), Box<Refusal>> {
        let Some(other) = standing.by_others(&edit.intent) else { return Ok(()) };
        let what = format!("{}: it leaves out what", Identity::of(&standing.object.json));
        Err(self.left_out(edit, &what, &format!("{other} adds or changes")))
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
        let Some(standing) = self.objects.get_mut(at) else { return Ok(()) };
        let before = standing.object.json.clone();
        let identity = Identity::of(&before);
        let after = match edits::patched(&before, patch) {
            Ok(after) => after,
            Err(error) => {
                let why = error.to_string();
                if standing.defer(edit, patch, &why) {
                    return Ok(());
                }
                return Err(self.refuse(edit, Reason::PatchFailed, &format!("{identity}: {why}")));
            }
        };
        if !hooks(&before).eq(hooks(&after)) {
            let what = format!(
                "{identity}: the patch changes annotations {HOOKS}, which are read when the chart is rendered: change them in the chart"
            );
            return Err(self.refuse(edit, Reason::PatchFailed, &what));
        }
        let mut made = self.normalised(edit, after, Reason::PatchFailed)?;
        let (Some(after), true) = (made.pop(), made.is_empty()) else {
            return Err(self.refuse(
                edit,
                Reason::PatchFailed,
                "the patch makes more than one object of one",
            ));
        };
        if let Some(standing) = self.objects.get_mut(at) {
            let has_changed = standing.change(edit, patch, before, after);
            if has_changed && standing.object.edited_by.len() < MOST_SAID {
                standing.object.edited_by.push(format!("changed by {}", edit.origin));
            }
        }
        Ok(())
    }

    fn delete(&mut self, edit: &Edit, at: usize) -> Result<(), Box<Refusal>> {
        if let Some(standing) = self.objects.get(at) {
            self.check_others(edit, standing)?;
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
