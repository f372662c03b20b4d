//! Splits rendered files into manifests and hooks in install order.
use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value as Json;

use super::documents::{Documents, Read};
use super::order::rank;
use super::{RenderError, Rendered};
use crate::limits::{MAP_BYTES, apart, take_document};

/// Bytes that a text, and an entry of a large map, take in a document beside their letters.
const SHORT_BYTES: usize = 32;
const ENTRY_BYTES: usize = 100;

/// One object a chart makes.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    pub json: Json,
    /// The template it comes from, for example `shop/templates/deployment.yaml`.
    pub source: String,
    /// Set for hooks, which are run at events rather than installed.
    pub hook: Option<Hook>,
    /// The object comes from a `crds` folder, which is installed first and untemplated.
    pub crd: bool,
}

/// When a hook runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    pub events: Vec<HookEvent>,
    /// Hooks of an event run from the lowest weight up.
    pub weight: i32,
    pub delete_policies: Vec<HookDeletePolicy>,
}

/// What a hook waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HookEvent {
    PreInstall,
    PostInstall,
    PreDelete,
    PostDelete,
    PreUpgrade,
    PostUpgrade,
    PreRollback,
    PostRollback,
    Test,
}

impl HookEvent {
    /// The event an annotation names.
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "pre-install" => Self::PreInstall,
            "post-install" => Self::PostInstall,
            "pre-delete" => Self::PreDelete,
            "post-delete" => Self::PostDelete,
            "pre-upgrade" => Self::PreUpgrade,
            "post-upgrade" => Self::PostUpgrade,
            "pre-rollback" => Self::PreRollback,
            "post-rollback" => Self::PostRollback,
            "test" | "test-success" => Self::Test,
            _ => return None,
        })
    }
}

/// When a hook's object is deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookDeletePolicy {
    BeforeHookCreation,
    HookSucceeded,
    HookFailed,
    /// A policy Helm does not know, which has no effect.
    Other(String),
}

impl HookDeletePolicy {
    fn parse(text: &str) -> Self {
        match text {
            "before-hook-creation" => Self::BeforeHookCreation,
            "hook-succeeded" => Self::HookSucceeded,
            "hook-failed" => Self::HookFailed,
            other => Self::Other(other.to_owned()),
        }
    }
}

/// A document as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    pub source: String,
    pub text: String,
    /// The events of a hook; empty for other documents.
    pub hook_events: Vec<HookEvent>,
    pub crd: bool,
}

/// A document on its way into the order.
pub(super) struct Parsed {
    pub document: Document,
    pub json: Json,
    pub hook: Option<Hook>,
    kind: String,
}

impl Parsed {
    /// The object, unless the document holds only comments.
    pub fn manifest(&mut self) -> Option<Manifest> {
        if self.json.is_null() {
            return None;
        }
        Some(Manifest {
            json: self.json.take(),
            source: self.document.source.clone(),
            hook: self.hook.take(),
            crd: false,
        })
    }
}

static SEPARATOR: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?:^|[\t\n\f\r ]*\n)---[\t\n\f\r ]*").ok());

/// The documents of a YAML stream, split by text as Helm does.
pub fn split(stream: &str) -> Vec<&str> {
    let stream = stream.trim();
    let Some(separator) = SEPARATOR.as_ref() else { return vec![stream] };
    separator.split(stream).filter(|document| !document.is_empty()).map(str::trim).collect()
}

/// Splits rendered files into manifests and hooks, both in install order, manifests first. What is in `known` is not read
/// again.
pub(super) fn sort(
    files: &BTreeMap<String, String>,
    known: Option<&Documents>,
    warnings: &mut Vec<String>,
) -> Result<Vec<Parsed>, RenderError> {
    let (mut manifests, mut hooks) = (Vec::new(), Vec::new());
    for (path, content) in files {
        let base = path.rsplit('/').next().unwrap_or_default();
        if base.starts_with('_') || content.trim().is_empty() {
            continue;
        }
        for text in split(content) {
            let Some(parsed) = parsed(path, text, known, warnings)? else { continue };
            if parsed.hook.is_some() { hooks.push(parsed) } else { manifests.push(parsed) }
        }
    }
    manifests.sort_by_cached_key(|parsed| rank(&parsed.kind));
    hooks.sort_by_cached_key(|parsed| rank(&parsed.kind));
    manifests.append(&mut hooks);
    Ok(manifests)
}

/// A file of a `crds` folder. Templates do not change it, so it is read once.
#[derive(Debug)]
pub(super) struct CrdFile {
    /// The name inside its chart.
    name: String,
    text: String,
    objects: Result<Vec<Json>, String>,
}

impl CrdFile {
    pub fn new(name: &str, data: &[u8]) -> Self {
        let text = String::from_utf8_lossy(data).into_owned();
        // Read once for all renders, so that none of them pays for it.
        let objects = apart(|| split(&text).into_iter().map(line_to_json).collect());
        Self { name: name.to_owned(), text, objects }
    }

    /// Adds the file's objects, and its text, which Helm prints as a whole, to what was rendered.
    pub fn render(&self, chart: &str, rendered: &mut Rendered) -> Result<(), RenderError> {
        let source = format!("{chart}/{}", self.name);
        let objects = self.objects.as_ref().map_err(|error| yaml_error(&source, error))?;
        for json in objects.iter().filter(|json| !json.is_null()) {
            rendered.manifests.push(Manifest {
                json: json.clone(),
                source: source.clone(),
                hook: None,
                crd: true,
            });
        }
        let text = self.text.clone();
        rendered.documents.push(Document { source, text, hook_events: Vec::new(), crd: true });
        Ok(())
    }
}

fn to_json(text: &[u8]) -> Result<Json, String> {
    crate::yaml::to_json(text).map_err(|error| format!("error converting YAML to JSON: {error}"))
}

/// With the line break that Helm puts behind a manifest before it is applied: the last line of a block of text has one, too.
///
/// An error is that of the text alone, which is what Helm looks at first: the lines it names may differ.
fn line_to_json(text: &str) -> Result<Json, String> {
    to_json(format!("{text}\n").as_bytes()).map_err(|error| to_json(text.as_bytes()).err().unwrap_or(error))
}

fn yaml_error(path: &str, error: &impl std::fmt::Display) -> RenderError {
    RenderError::new(format!("YAML parse error on {path}: {error}"))
}

/// The complaint about a rendered file that is not UTF-8, and so no YAML.
pub(super) fn not_text(path: &str, bytes: &[u8]) -> RenderError {
    let error = to_json(bytes.trim_ascii()).err();
    let unread = || "error converting YAML to JSON: yaml: invalid leading UTF-8 octet".to_owned();
    yaml_error(path, &error.unwrap_or_else(unread))
}

/// One document with what it says. `None` for a hook of unknown events, which Helm skips.
fn parsed(
    path: &str,
    text: &str,
    known: Option<&Documents>,
    warnings: &mut Vec<String>,
) -> Result<Option<Parsed>, RenderError> {
    let Read { json, kind, hook, bytes } = if let Some(read) = known.and_then(|known| known.get(text)) {
        Read::clone(&read)
    } else {
        let Some(read) = read(path, text, warnings)? else { return Ok(None) };
        if let Some(known) = known {
            known.put(text, &read);
        }
        read
    };
    // Also of one that was read before: whether a chart renders does not depend on what was rendered before.
    if !take_document(bytes) {
        return Err(yaml_error(path, &"there is no room for another document"));
    }
    let document = Document {
        source: path.to_owned(),
        text: text.to_owned(),
        hook_events: hook.as_ref().map(|hook| hook.events.clone()).unwrap_or_default(),
        crd: false,
    };
    Ok(Some(Parsed { document, json, hook, kind }))
}

/// Reads one document. Apart from complaints, what it says does not depend on where it stands.
fn read(path: &str, text: &str, warnings: &mut Vec<String>) -> Result<Option<Read>, RenderError> {
    let mut json = line_to_json(text).map_err(|error| yaml_error(path, &error))?;
    let head = Head::read(&json).map_err(|field| {
        yaml_error(
            path,
            &format!("error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {field}"),
        )
    })?;
    let mut hook = None;
    if let Some(types) = head.annotation("helm.sh/hook") {
        let mut events = Vec::new();
        for name in types.split(',') {
            let Some(event) = HookEvent::parse(&name.trim().to_lowercase()) else {
                warnings.push(format!("{path}: skipping unknown hook: {types:?}"));
                return Ok(None);
            };
            events.push(event);
        }
        let weight = head.annotation("helm.sh/hook-weight").and_then(|weight| weight.parse().ok());
        let policies = head.annotation("helm.sh/hook-delete-policy");
        let policies = policies.iter().flat_map(|policies| policies.split(','));
        let delete_policies = policies.map(|policy| HookDeletePolicy::parse(&policy.trim().to_lowercase()));
        // Helm applies a hook as it was split off, without a line break at its end.
        json = to_json(text.as_bytes()).map_err(|error| yaml_error(path, &error))?;
        hook = Some(Hook { events, weight: weight.unwrap_or(0), delete_policies: delete_policies.collect() });
    }
    let bytes = weight(&json);
    Ok(Some(Read { json, kind: head.kind, hook, bytes }))
}

/// About what a document takes in memory.
fn weight(json: &Json) -> usize {
    match json {
        Json::String(text) => text.len() + SHORT_BYTES,
        Json::Array(items) => items.iter().map(|item| size_of::<Json>() + weight(item)).sum(),
        Json::Object(entries) => {
            let below = entries.iter().map(|(key, value)| key.len() + SHORT_BYTES + weight(value));
            let tree = if entries.is_empty() { 0 } else { MAP_BYTES.max(entries.len() * ENTRY_BYTES) };
            tree + below.sum::<usize>()
        }
        _ => 0,
    }
}

/// The part of a document Helm looks at itself.
#[derive(Default)]
struct Head {
    kind: String,
    annotations: BTreeMap<String, String>,
}

impl Head {
    /// Reads the head with the types Helm demands; the error names what does not fit.
    fn read(json: &Json) -> Result<Self, String> {
        let map = match json {
            Json::Null => return Ok(Self::default()),
            Json::Object(map) => map,
            other => return Err(format!("{} into Go value of type releaseutil.SimpleHead", go_kind(other))),
        };
        let field = |name: &str| {
            let exact = map.get(name);
            exact.or_else(|| {
                map.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
            })
        };
        text(field("apiVersion"), "SimpleHead.apiVersion")?;
        let kind = text(field("kind"), "SimpleHead.kind")?;
        let metadata = match field("metadata") {
            None | Some(Json::Null) => return Ok(Self { kind, annotations: BTreeMap::new() }),
            Some(Json::Object(metadata)) => metadata,
            Some(other) => {
                return Err(format!(
                    "{} into Go struct field SimpleHead.metadata of type struct {{ Name string \"json:\\\"name\\\"\"; Annotations map[string]string \"json:\\\"annotations\\\"\" }}",
                    go_kind(other)
                ));
            }
        };
        text(metadata.get("name"), ".metadata.name")?;
        let mut annotations = BTreeMap::new();
        match metadata.get("annotations") {
            None | Some(Json::Null) => {}
            Some(Json::Object(map)) => {
                for (key, value) in map {
                    annotations.insert(key.clone(), text(Some(value), ".metadata.annotations")?);
                }
            }
            Some(other) => {
                return Err(format!(
                    "{} into Go struct field .metadata.annotations of type map[string]string",
                    go_kind(other)
                ));
            }
        }
        Ok(Self { kind, annotations })
    }

    fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.get(name).map(String::as_str)
    }
}

/// A field that holds text; other scalars are written out, as Helm's YAML library does for text fields.
fn text(value: Option<&Json>, field: &str) -> Result<String, String> {
    match value {
        None | Some(Json::Null) => Ok(String::new()),
        Some(value) => crate::chart::scalar(value)
            .ok_or_else(|| format!("{} into Go struct field {field} of type string", go_kind(value))),
    }
}

fn go_kind(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "bool",
        Json::Number(_) => "number",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_split_at_lines_that_start_with_three_dashes() {
        assert_eq!(split("---\na: 1\n---\n--- # note\n"), ["a: 1", "--- # note"]);
        assert_eq!(split("a: 1\n\n--- # note\nb: 2\n  ---\n"), ["a: 1", "# note\nb: 2\n  ---"]);
        assert_eq!(split("a: |\n  ---x\n---\n"), ["a: |\n  ---x"]);
    }
}
