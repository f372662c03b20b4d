//! Reads the health rules that users write per kind, and judges objects by them.
//!
//! A rule that cannot be used leaves its kind without a judgement: `Unknown`, never ready. So does an entry whose kind cannot be
//! read for every custom kind that has no rule of its own, since it may be meant for any of them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use emco_crds::names::object::HEALTH_RULES as CONFIG_MAP;
use serde_json::Value;

use super::cel::{Failure, MOST_STEPS, Program};
use super::{Health, by_conditions, checks};
use crate::conditions::truncate;
use crate::identity::split_api_version;
use crate::order;

/// Most rules of all keys.
const MOST: usize = 200;
/// Most patterns of all rules: a compiled one may take a hundred times as much memory as its text.
const MOST_PATTERNS: usize = 100;
/// Longest complaint of a YAML reader that is passed on.
const LONGEST_COMPLAINT: usize = 160;
/// Fields with expressions, in the order in which they are asked.
const FIELDS: [&str; 3] = ["inProgress", "failed", "current"];

/// The rules of all kinds.
#[derive(Debug, Default)]
pub struct Rules {
    kinds: BTreeMap<(String, String), Judge>,
    /// Why a kind without a rule may have one that cannot be read.
    unreadable: Option<Arc<str>>,
    faults: Vec<Fault>,
    /// How many patterns are kept.
    patterns: usize,
}

/// What is wrong with a rule as it is written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// Key of the ConfigMap.
    pub key: String,
    /// The entry: its kind where that can be read, else its number.
    pub rule: String,
    /// The field, where it is one field's fault.
    pub field: Option<&'static str>,
    /// A phrase that goes after them.
    pub what: String,
}

impl Fault {
    /// What comes of it, as a sentence.
    pub fn consequence(&self) -> &'static str {
        if self.what == BUILT_IN { "The built-in rule holds" } else { UNKNOWN }
    }
}

/// What comes of a fault on what its rule judges, as a sentence.
pub const UNKNOWN: &str = "What it judges is Unknown, not ready, until it is corrected";
/// The fault of a rule for what nobody else judges.
const BUILT_IN: &str = "kinds of Kubernetes itself have built-in rules: remove it";

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key {}", self.key)?;
        if !self.rule.is_empty() {
            write!(f, ", rule of {}", self.rule)?;
        }
        match self.field {
            Some(field) => write!(f, ", field {field}: the expression {}", self.what),
            None => write!(f, ": {}", self.what),
        }
    }
}

/// What a kind is judged by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Judge {
    /// The rules of this program.
    #[default]
    BuiltIn,
    /// A user's rule.
    Rule(Arc<Rule>),
    /// Nothing, for this reason.
    Nothing(Arc<str>),
}

/// A user's rule for one kind.
#[derive(Debug)]
pub struct Rule {
    /// Key of the ConfigMap.
    pub key: String,
    /// Kind and group.
    pub kind: String,
    in_progress: Option<Program>,
    failed: Option<Program>,
    current: Program,
}

/// Two rules that judge alike are the same, wherever they are written.
impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        (&self.in_progress, &self.failed, &self.current)
            == (&other.in_progress, &other.failed, &other.current)
    }
}

impl Eq for Rule {}

/// How an object is, and what was wrong with the rule on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// How it is.
    pub health: Health,
    /// The fault of the rule, where it had no answer.
    pub fault: Option<RuleFailure>,
}

/// A rule that had no answer on an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleFailure {
    /// Field of the expression.
    pub field: &'static str,
    /// Why.
    pub failure: Failure,
}

impl RuleFailure {
    /// Whether the object just does not have a field yet, which is no fault of the rule.
    pub const fn is_absence(&self) -> bool {
        matches!(self.failure, Failure::Absent(_))
    }

    /// All words that [`Self::reason`] says.
    pub const REASONS: [&str; 4] = ["FieldAbsent", "TooCostly", "NotBoolean", "EvaluationFailed"];

    /// A word of a closed set, for metrics.
    pub const fn reason(&self) -> &'static str {
        match self.failure {
            Failure::Absent(_) => "FieldAbsent",
            Failure::TooCostly => "TooCostly",
            Failure::NotTruth(_) => "NotBoolean",
            Failure::Wrong(_) => "EvaluationFailed",
        }
    }

    /// A phrase that goes after the field: what is wrong and what to do.
    pub fn what(&self) -> String {
        match &self.failure {
            Failure::Absent(field) => format!("needs the field {field}, which the object does not have"),
            Failure::TooCostly => {
                format!("takes more than {MOST_STEPS} steps: go through fewer lists within lists")
            }
            Failure::NotTruth(kind) => format!("answers {kind}, not true or false"),
            Failure::Wrong(what) => format!("has no answer: {what}"),
        }
    }
}

impl Rules {
    /// Reads the keys of the `ConfigMap`; each is a list in YAML, or no text. What cannot be used is in [`Self::faults`].
    pub fn read<'a>(data: impl IntoIterator<Item = (&'a str, Option<&'a str>)>) -> Self {
        let mut rules = Self::default();
        let mut read = 0;
        for (key, text) in data {
            let entries = match text.map_or_else(|| Err("it is binary: write it as text".to_owned()), entries)
            {
                Ok(entries) => entries,
                Err(what) => {
                    rules.unreadable(Fault { key: key.to_owned(), rule: String::new(), field: None, what });
                    continue;
                }
            };
            for (at, entry) in entries.iter().enumerate() {
                read += 1;
                if read > MOST {
                    let what = format!("the ConfigMap has more than {MOST} rules: remove some");
                    rules.unreadable(Fault { key: key.to_owned(), rule: String::new(), field: None, what });
                    return rules;
                }
                rules.take(key, at, entry);
            }
        }
        rules
    }

    /// Nothing was read yet, for this reason: custom kinds are not judged.
    pub fn unread(why: &str) -> Self {
        Self { unreadable: Some(why.into()), ..Self::default() }
    }

    /// What is wrong with the rules as they are written.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// How many kinds have a rule that can be used.
    pub fn usable(&self) -> usize {
        self.kinds.values().filter(|judge| matches!(judge, Judge::Rule(_))).count()
    }

    /// Groups and kinds that have a rule, whether it can be used or not.
    pub fn kinds(&self) -> impl Iterator<Item = &(String, String)> {
        self.kinds.keys()
    }

    /// What custom kinds without a rule are judged by.
    pub fn others(&self) -> Judge {
        self.unreadable.clone().map_or(Judge::BuiltIn, Judge::Nothing)
    }

    /// What a kind is judged by.
    pub fn judge(&self, group: &str, kind: &str) -> Judge {
        if order::is_built_in(group) {
            return Judge::BuiltIn;
        }
        let own = self.kinds.get(&(group.to_owned(), kind.to_owned())).cloned();
        own.unwrap_or_else(|| self.others())
    }

    /// The reason is the same for every fault of a key: another one there is no news for a kind that has no rule.
    fn unreadable(&mut self, fault: Fault) {
        let why = format!(
            "key {} of ConfigMap {CONFIG_MAP} has a rule that cannot be read: see its Events",
            fault.key
        );
        self.unreadable.get_or_insert_with(|| truncate(&why, LONGEST_WHY).into());
        self.faults.push(fault);
    }

    fn take(&mut self, key: &str, at: usize, entry: &Value) {
        let text = |field: &str| entry.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
        let (Some(api_version), Some(kind)) = (text("apiVersion"), text("kind")) else {
            let what =
                format!("entry {} names no kind: give it apiVersion and kind, which are texts", at + 1);
            self.unreadable(Fault { key: key.to_owned(), rule: String::new(), field: None, what });
            return;
        };
        let (group, _) = split_api_version(api_version);
        let named = format!("{kind} ({api_version})");
        let fault = |field, what: String| Fault { key: key.to_owned(), rule: named.clone(), field, what };
        if group.is_empty() && api_version != "v1" {
            let what = format!("apiVersion {api_version} of {kind} has no group: write GROUP/VERSION");
            self.unreadable(Fault { key: key.to_owned(), rule: String::new(), field: None, what });
            return;
        }
        if order::is_built_in(group) {
            self.faults.push(fault(None, BUILT_IN.to_owned()));
            return;
        }
        let place = (group.to_owned(), kind.to_owned());
        let mut faults = Vec::new();
        if let Some(other) = self.kinds.get(&place) {
            let where_ = match other {
                Judge::Rule(rule) => format!("key {} has a rule for it", rule.key),
                _ => "another entry has a rule for it".to_owned(),
            };
            faults.push(fault(None, format!("{where_}, too: keep one of them")));
        }
        let known = |field: &str| matches!(field, "apiVersion" | "kind") || FIELDS.contains(&field);
        for unknown in entry.as_object().into_iter().flat_map(|map| map.keys()).filter(|field| !known(field))
        {
            let unknown = truncate(unknown, 64);
            faults.push(fault(None, format!("it has no field {unknown}: remove it or correct its name")));
        }
        let mut programs = FIELDS.map(|field| match entry.get(field) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => match Program::compile(text) {
                Ok(program) => {
                    self.patterns += program.patterns();
                    if self.patterns > MOST_PATTERNS {
                        let what = format!(
                            "is the one with which all rules say matches more than {MOST_PATTERNS} times: use contains, or =="
                        );
                        faults.push(fault(Some(field), what));
                        return None;
                    }
                    Some(program)
                }
                Err(what) => {
                    faults.push(fault(Some(field), what));
                    None
                }
            },
            Some(_) => {
                faults.push(fault(Some(field), "is no text: put it into quotes".to_owned()));
                None
            }
        });
        let [in_progress, failed, current] = programs.each_mut().map(Option::take);
        if entry.get("current").is_none_or(Value::is_null) {
            faults.push(fault(None, "it has no field current: say when an object is ready".to_owned()));
        }
        let judge = match (faults.first(), current) {
            (None, Some(current)) => {
                let (key, kind) = (key.to_owned(), named.clone());
                Judge::Rule(Arc::new(Rule { key, kind, in_progress, failed, current }))
            }
            (first, _) => {
                let first = first.map(Fault::to_string).unwrap_or_default();
                let why = format!("its health rule in ConfigMap {CONFIG_MAP} cannot be used ({first})");
                Judge::Nothing(truncate(&why, LONGEST_WHY).into())
            }
        };
        self.kinds.insert(place, judge);
        self.faults.append(&mut faults);
    }
}

/// Longest reason for which nothing is judged, in bytes.
const LONGEST_WHY: usize = 250;

fn entries(text: &str) -> Result<Vec<Value>, String> {
    let no_yaml = |error: String| {
        format!("it is no YAML: {}", truncate(&error.replace(char::is_control, " "), LONGEST_COMPLAINT))
    };
    // This reader refuses aliases that unfold to far more than the text, ...
    let documents =
        emco_helm::yaml::documents(text.as_bytes()).map_err(|error| no_yaml(error.to_string()))?;
    match documents.len() {
        0 => return Ok(Vec::new()),
        1 => {}
        _ => return Err("it has more than one document: write all entries into one list".to_owned()),
    }
    // ... and this one a key that is there twice, as where a dash was forgotten between two entries.
    let read: serde_yaml::Value = serde_yaml::from_str(text).map_err(|error| no_yaml(error.to_string()))?;
    match serde_json::to_value(read).map_err(|error| no_yaml(error.to_string()))? {
        Value::Array(entries) => Ok(entries),
        _ => Err("it is no list: write one entry per kind, each after a dash".to_owned()),
    }
}

impl Judge {
    /// The health of a live object (with spec and status).
    pub fn judge(&self, object: &Value) -> Judgement {
        let sure = |health| Judgement { health, fault: None };
        if let Some(health) = checks(object) {
            return sure(health);
        }
        match self {
            Self::BuiltIn => sure(super::by_kind(object)),
            Self::Nothing(why) => sure(Health::unknown(why)),
            Self::Rule(rule) => match rule.health(object) {
                Ok(health) => sure(health),
                Err(fault) => {
                    let (field, what) = (fault.field, fault.what());
                    let health = Health::unknown(format!("{field} of its health rule {what}"));
                    Judgement { health, fault: Some(fault) }
                }
            },
        }
    }
}

impl Rule {
    /// As Flux asks them: `inProgress`, `failed`, `current`; what is none of them is in progress.
    fn health(&self, object: &Value) -> Result<Health, RuleFailure> {
        let mut steps = MOST_STEPS;
        let mut holds = |field, program: &Program| {
            program.is_true(object, &mut steps).map_err(|failure| RuleFailure { field, failure })
        };
        let [in_progress, failed, current] = FIELDS;
        if let Some(program) = &self.in_progress
            && holds(in_progress, program)?
        {
            return Ok(Health::progressing(with_conditions("its health rule says inProgress", object)));
        }
        if let Some(program) = &self.failed
            && holds(failed, program)?
        {
            return Ok(Health::failed(with_conditions("its health rule says failed", object)));
        }
        if holds(current, &self.current)? {
            return Ok(Health::Ready);
        }
        Ok(Health::progressing(with_conditions("its health rule does not say current", object)))
    }
}

/// What the rule says, and what the object says of itself, where that is no better.
fn with_conditions(rule: &str, object: &Value) -> String {
    match by_conditions(object) {
        Health::Progressing(said) | Health::Failed(said) => format!("{rule}; {said}"),
        Health::Ready | Health::Unknown(_) => rule.to_owned(),
    }
}

#[cfg(test)]
mod tests;
