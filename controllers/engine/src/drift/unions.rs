//! Finds what keeps a change of a union from being applied. Of a union's fields an object has one, or those that another field
//! admits: a `Recreate` Deployment has no `rollingUpdate`, a volume has one source.
//!
//! Server-side apply removes what its manager had and does not say any more, and nothing else. What an API server filled in
//! for the member of before is nobody's, and what was taken over is another manager's, too: it stays beside the new member,
//! and the object is refused for ever.

mod claim;
mod table;

use serde_json::{Map, Value};

pub use claim::claimed;
use table::{Admits, Union};

use crate::identity::kind_of;

/// One step into an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A field of a map.
    Field(String),
    /// The item of a list with these keys.
    Item(Map<String, Value>),
}

/// A field of the live object that the manifest's choice in a union excludes.
#[derive(Clone, Debug, PartialEq)]
pub struct Stale {
    /// The way to it.
    pub steps: Vec<Step>,
    /// Its value.
    pub value: Value,
    /// Field paths of refusals that are about this union, without places in lists: themselves, and all below them.
    about: Vec<String>,
}

impl Stale {
    /// A refused field, as an API server names it, is of this union.
    fn is_about(&self, field: &str) -> bool {
        let field = without_places(field);
        self.about.iter().any(|about| {
            field.strip_prefix(about.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    }

    /// A refused field says that a container mounts no volume of the Pod: to an API server one of two sources is none.
    fn takes_mounts(&self, field: &str) -> bool {
        let field = without_places(field);
        let mounts =
            field.strip_suffix(".volumeMounts.name").or_else(|| field.strip_suffix(".volumeDevices.name"));
        let pod = mounts.and_then(|container| container.rsplit_once('.')).map(|(pod, _)| pod);
        pod.is_some_and(|pod| self.about.iter().any(|about| about.strip_prefix(pod) == Some(".volumes")))
    }
}

/// Objects of its kind have unions.
pub fn has(object: &Value) -> bool {
    !table::of_kind(kind_of(object)).is_empty()
}

/// The fields that the live object has of unions in which the manifest says another member, where one of the refused fields is of
/// that union.
pub fn stale(manifest: &Value, live: &Value, refused: &[&str]) -> Vec<Stale> {
    let mut found = Vec::new();
    for (before, union) in table::of_kind(kind_of(manifest)) {
        let at = format!("{before}{}", union.at);
        let segments: Vec<&str> = at.split('.').collect();
        let mut place = Place { union, steps: Vec::new(), text: String::new(), found: &mut found };
        place.descend(&segments, manifest, live);
    }
    found.retain(|stale| refused.iter().any(|field| stale.is_about(field)));
    found
}

/// Tells whether such fields are all that is refused.
pub fn explains(manifest: &Value, live: &Value, refused: &[&str]) -> bool {
    let found = stale(manifest, live, refused);
    let is_explained =
        |field: &str| found.iter().any(|stale| stale.is_about(field) || stale.takes_mounts(field));
    !found.is_empty() && refused.iter().all(|field| is_explained(field))
}

/// Takes members of unions that a manifest says to be nothing out of it: an apply would own them, and not remove them.
pub fn drop_nulls(manifest: &mut Value) {
    for (before, union) in table::of_kind(kind_of(manifest)) {
        let at = format!("{before}{}", union.at);
        let segments: Vec<&str> = at.split('.').collect();
        drop_at(manifest, &segments, union);
    }
}

fn drop_at(value: &mut Value, segments: &[&str], union: &Union) {
    let Some((segment, rest)) = segments.split_first() else {
        if let Some(map) = value.as_object_mut() {
            map.retain(|name, value| !value.is_null() || !is_member(union, name));
        }
        return;
    };
    let (name, keys) = split(segment);
    match value.get_mut(name) {
        Some(Value::Array(items)) if !keys.is_empty() => {
            for item in items {
                drop_at(item, rest, union);
            }
        }
        Some(below) if keys.is_empty() => drop_at(below, rest, union),
        _ => {}
    }
}

fn is_member(union: &Union, name: &str) -> bool {
    match union.admits {
        Admits::One(members) => members.contains(&name),
        Admits::OneBut(besides) => !besides.contains(&name),
        Admits::By { without, .. } => without.iter().any(|(_, members)| members.contains(&name)),
    }
}

/// The place of a walk.
struct Place<'a> {
    union: &'static Union,
    steps: Vec<Step>,
    /// The same as a field path without places in lists.
    text: String,
    found: &'a mut Vec<Stale>,
}

impl Place<'_> {
    fn descend(&mut self, segments: &[&str], manifest: &Value, live: &Value) {
        let Some((segment, rest)) = segments.split_first() else {
            self.judge(manifest, live);
            return;
        };
        let (name, keys) = split(segment);
        let (Some(manifest), Some(live)) = (manifest.get(name), live.get(name)) else { return };
        let (steps, text) = (self.steps.len(), self.text.len());
        if text > 0 {
            self.text.push('.');
        }
        self.text.push_str(name);
        self.steps.push(Step::Field(name.to_owned()));
        if keys.is_empty() {
            self.descend(rest, manifest, live);
        } else {
            for item in manifest.as_array().into_iter().flatten() {
                let Some(key) = key_of(item, &keys) else { continue };
                let mut all = live.as_array().into_iter().flatten();
                let Some(live) = all.find(|live| key_of(live, &keys).as_ref() == Some(&key)) else {
                    continue;
                };
                self.steps.push(Step::Item(key));
                self.descend(rest, item, live);
                self.steps.pop();
            }
        }
        self.steps.truncate(steps);
        self.text.truncate(text);
    }

    fn judge(&mut self, manifest: &Value, live: &Value) {
        let (Some(manifest), Some(live)) = (manifest.as_object(), live.as_object()) else { return };
        let says = |name: &str| manifest.get(name).is_some_and(|value| !value.is_null());
        let others = live.keys().filter(|name| is_member(self.union, name) && !says(name));
        let others: Vec<&String> = match self.union.admits {
            Admits::By { field, default, without } => {
                let said = manifest.get(field).and_then(Value::as_str).or(default);
                let excluded =
                    without.iter().find(|(value, _)| Some(*value) == said).map(|(_, names)| *names);
                others.filter(|name| excluded.is_some_and(|names| names.contains(&name.as_str()))).collect()
            }
            // Nothing is said: any member that is there will do.
            Admits::One(_) | Admits::OneBut(_)
                if !manifest.keys().any(|name| is_member(self.union, name) && says(name)) =>
            {
                Vec::new()
            }
            Admits::One(_) | Admits::OneBut(_) => others.collect(),
        };
        for name in others {
            let Some(value) = live.get(name).filter(|value| !value.is_null()) else { continue };
            let mut steps = self.steps.clone();
            steps.push(Step::Field(name.clone()));
            let about = self.about(name, manifest);
            self.found.push(Stale { steps, value: value.clone(), about });
        }
    }

    /// The fields that a refusal may name because of a member.
    fn about(&self, member: &str, manifest: &Map<String, Value>) -> Vec<String> {
        let below = |name: &str| format!("{}.{name}", self.text);
        let mut about = vec![below(member)];
        match self.union.admits {
            Admits::By { field, .. } => about.push(below(field)),
            Admits::One(_) | Admits::OneBut(_) => {
                about.extend(
                    manifest.keys().filter(|name| is_member(self.union, name)).map(|name| below(name)),
                );
            }
        }
        // All of a specification may be refused for anything.
        if self.text.contains('.') {
            about.push(self.text.clone());
        }
        about
    }
}

/// The name of a field, and the keys of its items where it is a list.
fn split(segment: &str) -> (&str, Vec<&str>) {
    match segment.strip_suffix(']').and_then(|segment| segment.split_once('[')) {
        Some((name, keys)) => (name, keys.split(',').collect()),
        None => (segment, Vec::new()),
    }
}

fn key_of(item: &Value, keys: &[&str]) -> Option<Map<String, Value>> {
    keys.iter().map(|key| Some(((*key).to_owned(), item.get(*key)?.clone()))).collect()
}

/// A field path without what stands in brackets.
fn without_places(field: &str) -> String {
    let mut depth = 0_u32;
    let outside = |c: &char| {
        match c {
            '[' => depth += 1,
            ']' => {
                depth = depth.saturating_sub(1);
                return false;
            }
            _ => {}
        }
        depth == 0
    };
    field.chars().filter(outside).collect()
}

#[cfg(test)]
mod tests;
