//! Stores objects by the path of their URL, answers requests for them, and remembers after which revision each changed.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use axum::http::Method;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::apply::{applied, patched};
use super::kinds::{Known, collection, discovery};
use super::objects::{Contents, Object};

/// Deletions that are remembered for watches.
const GONE: usize = 256;

pub(super) struct Store {
    number: usize,
    revision: u64,
    /// Objects that were made.
    made: u64,
    objects: BTreeMap<Arc<str>, Object>,
    contents: Arc<Contents>,
    /// By revision.
    changes: BTreeMap<u64, Change>,
    /// Revisions of deletions, oldest first.
    gone: VecDeque<u64>,
    /// The newest revision of which a deletion is not remembered any more.
    forgotten: u64,
    /// Marked at each change.
    told: watch::Sender<()>,
}

/// What happened last to an object.
enum Change {
    /// The object of this path was written.
    There(Arc<str>),
    /// It was deleted.
    Gone(Arc<str>, Object),
}

/// What the query of a URL asks for. One requirement of each kind is known: no more are sent.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Query {
    pub watch: bool,
    pub version: Option<u64>,
    /// Nothing is to be stored.
    dry: bool,
    /// Who applies.
    manager: String,
    label: Option<(String, Option<String>)>,
    name: Option<String>,
}

impl Query {
    pub fn of(query: &str) -> Self {
        let mut found = Self::default();
        for (key, value) in query.split('&').filter_map(|part| part.split_once('=')) {
            let value = value.replace("%2F", "/").replace("%3D", "=");
            match key {
                "watch" => found.watch = matches!(value.as_str(), "true" | "1"),
                "resourceVersion" => found.version = value.parse().ok(),
                "dryRun" => found.dry = true,
                "fieldManager" => found.manager = value,
                "fieldSelector" => found.name = value.strip_prefix("metadata.name=").map(str::to_owned),
                "labelSelector" => {
                    found.label = Some(match value.split_once('=') {
                        Some((label, value)) => (label.to_owned(), Some(value.to_owned())),
                        None => (value, None),
                    });
                }
                _ => {}
            }
        }
        found
    }

    fn selects(&self, object: &Value) -> bool {
        let metadata = &object["metadata"];
        let named = self.name.as_ref().is_none_or(|name| metadata["name"] == name.as_str());
        named
            && self.label.as_ref().is_none_or(|(label, wanted)| {
                metadata["labels"][label]
                    .as_str()
                    .is_some_and(|value| wanted.as_ref().is_none_or(|wanted| wanted == value))
            })
    }
}

impl Store {
    /// With nothing but its kube-system.
    pub fn new(number: usize, contents: &Arc<Contents>) -> Self {
        let system = json!({"apiVersion": "v1", "kind": "Namespace", "status": {"phase": "Active"},
            "metadata": {"name": "kube-system"}});
        let path = contents.path("/api/v1/namespaces/kube-system");
        Self {
            number,
            revision: 1,
            made: 0,
            objects: BTreeMap::from([(path, contents.object(system, 0, 1))]),
            contents: Arc::clone(contents),
            changes: BTreeMap::new(),
            gone: VecDeque::new(),
            forgotten: 0,
            told: watch::Sender::new(()),
        }
    }

    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Says when something changed.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.told.subscribe()
    }

    /// Paths of a namespace and of what is in it.
    pub fn of_namespace<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a Arc<str>> + use<'a> {
        let (itself, inside) = (format!("/api/v1/namespaces/{name}"), format!("/namespaces/{name}/"));
        self.objects.keys().filter(move |path| ***path == *itself || path.contains(&inside))
    }

    fn get(&self, path: &str) -> Option<Value> {
        Some(self.objects.get(path)?.json(self.number))
    }

    pub fn answer(
        &mut self,
        method: &Method,
        path: &str,
        query: &Query,
        sent: Value,
        merge: bool,
    ) -> (u16, Value) {
        if let Some(known) = discovery(path) {
            return (200, known);
        }
        if matches!(method.as_str(), "POST" | "PUT" | "PATCH") && !sent.is_object() {
            return status(415, "UnsupportedMediaType");
        }
        let Some(kind) = collection(path) else { return self.object(method, path, query, sent, merge) };
        if method == Method::POST {
            let name = sent["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let path = format!("{path}/{name}");
            if self.objects.contains_key(path.as_str()) {
                return status(409, "AlreadyExists");
            }
            return self.write(201, &path, sent, query);
        }
        (200, self.list(kind, path, query))
    }

    fn object(
        &mut self,
        method: &Method,
        path: &str,
        query: &Query,
        sent: Value,
        merge: bool,
    ) -> (u16, Value) {
        let known = self.get(path);
        match (method.as_str(), known) {
            ("PATCH", Some(known)) if merge && !is_another(&sent, &known) => {
                self.write(200, path, patched(&known, &sent), query)
            }
            ("PATCH", None) if merge => not_found(path),
            ("PATCH" | "PUT", Some(known)) if is_another(&sent, &known) => status(409, "Conflict"),
            ("PATCH", known) => {
                let object = applied(known.as_ref(), &sent, &query.manager);
                self.write(200, path, object, query)
            }
            ("PUT", _) => self.write(200, path, sent, query),
            ("DELETE", Some(known)) => {
                let differs = |field: &str| {
                    let wanted = &sent["preconditions"][field];
                    !wanted.is_null() && *wanted != known["metadata"][field]
                };
                if differs("uid") || differs("resourceVersion") {
                    return status(409, "Conflict");
                }
                self.delete(path, &known);
                (200, known)
            }
            ("GET", Some(known)) => (200, known),
            _ => not_found(path),
        }
    }

    /// Stores an object, unless there is no room, or nothing is to be stored, or nothing changes.
    fn write(&mut self, code: u16, path: &str, mut object: Value, query: &Query) -> (u16, Value) {
        let before = self.objects.get(path);
        if let Some(sentence) = self.contents.is_full().filter(|_| before.is_none()) {
            let (code, mut answer) = status(507, "InternalError");
            answer["message"] = Value::String(sentence);
            return (code, answer);
        }
        workload(&mut object, before.map(Object::content));
        let (uid, version) = before.map_or((self.made + 1, 0), |before| (before.uid(), before.version));
        let object = self.contents.object(object, uid, version);
        let is_same = before.is_some_and(|before| before.content() == object.content());
        if is_same || query.dry {
            return (code, object.json(self.number));
        }
        if let Some(before) = before {
            self.changes.remove(&before.version);
        } else {
            self.made += 1;
            self.contents.counted(true);
        }
        self.revision += 1;
        let path = self.contents.path(path);
        let stored = Object { version: self.revision, ..object };
        let answer = stored.json(self.number);
        self.changes.insert(self.revision, Change::There(Arc::clone(&path)));
        self.objects.insert(path, stored);
        self.told.send_replace(());
        (code, answer)
    }

    /// A namespace takes along what is in it.
    fn delete(&mut self, path: &str, object: &Value) {
        let mut paths = vec![self.contents.path(path)];
        if let (true, Some(name)) = (object["kind"] == "Namespace", object["metadata"]["name"].as_str()) {
            paths = self.of_namespace(name).cloned().collect();
        }
        for path in paths {
            self.remove(path);
        }
        self.told.send_replace(());
    }

    fn remove(&mut self, path: Arc<str>) {
        let Some(object) = self.objects.remove(&path) else { return };
        self.changes.remove(&object.version);
        self.contents.counted(false);
        self.revision += 1;
        self.changes.insert(self.revision, Change::Gone(path, object));
        self.gone.push_back(self.revision);
        while self.gone.len() > GONE {
            self.forgotten = self.gone.pop_front().unwrap_or_default();
            self.changes.remove(&self.forgotten);
        }
    }

    fn list(&self, kind: &Known, path: &str, query: &Query) -> Value {
        let found =
            self.objects.iter().filter(|(at, object)| is_in(at, path) && query.selects(object.content()));
        let items: Vec<Value> = found.map(|(_, object)| object.json(self.number)).collect();
        json!({"kind": format!("{}List", kind.kind), "apiVersion": kind.version(),
            "metadata": {"resourceVersion": self.revision.to_string()}, "items": items})
    }

    /// What changed in a collection after a revision, as lines of a watch: each object once, as it is now. `None` where a deletion since
    /// then is not remembered.
    pub fn since(&self, revision: u64, path: &str, query: &Query) -> Option<String> {
        if revision < self.forgotten {
            return None;
        }
        let mut lines = String::new();
        for (version, change) in self.changes.range(revision + 1..) {
            let (what, at, object) = match change {
                Change::There(at) => ("MODIFIED", at, self.objects.get(at)),
                Change::Gone(at, object) => ("DELETED", at, Some(object)),
            };
            if let Some(object) = object.filter(|object| is_in(at, path) && query.selects(object.content())) {
                let object = match change {
                    Change::There(_) => object.json(self.number),
                    Change::Gone(..) => object.last(self.number, *version),
                };
                lines.push_str(&json!({"type": what, "object": object}).to_string());
                lines.push('\n');
            }
        }
        Some(lines)
    }
}

/// Whether what is sent names a version or an object that is not the one that is there.
fn is_another(sent: &Value, known: &Value) -> bool {
    ["resourceVersion", "uid"].into_iter().any(|field| {
        let named = &sent["metadata"][field];
        !named.is_null() && *named != known["metadata"][field]
    })
}

/// What controllers of a cluster say at once of some kinds.
fn workload(object: &mut Value, before: Option<&Value>) {
    if object["kind"] == "Namespace" {
        object["status"] = json!({"phase": "Active"});
    }
    if object["kind"] != "Deployment" {
        return;
    }
    let known = before.map_or(0, |before| before["metadata"]["generation"].as_i64().unwrap_or_default());
    let is_same = before.is_some_and(|before| before["spec"] == object["spec"]);
    let generation = if is_same { known } else { known + 1 };
    object["metadata"]["generation"] = json!(generation);
    let replicas = object["spec"]["replicas"].as_i64().unwrap_or(1);
    let available = json!({"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"});
    object["status"] = json!({"observedGeneration": generation, "replicas": replicas, "updatedReplicas": replicas,
        "readyReplicas": replicas, "availableReplicas": replicas, "conditions": [available]});
}

/// Whether the object of a path is in a collection: of one namespace, or of all.
fn is_in(object: &str, collection: &str) -> bool {
    let Some((folder, _)) = object.rsplit_once('/') else { return false };
    let of_all = || {
        let (base, plural) = collection.rsplit_once('/')?;
        let (_, last) = folder.strip_prefix(base)?.strip_prefix("/namespaces/")?.split_once('/')?;
        (last == plural).then_some(())
    };
    folder == collection || of_all().is_some()
}

pub(super) fn status(code: u16, reason: &str) -> (u16, Value) {
    let message = format!("a cluster that is none answers {code}");
    (
        code,
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message}),
    )
}

/// Names the object, as an API server does: only so it is proved that there is none.
fn not_found(path: &str) -> (u16, Value) {
    let (code, mut answer) = status(404, "NotFound");
    let mut parts = path.rsplit('/');
    let (name, plural) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    answer["message"] = Value::String(format!("{plural} \"{name}\" not found"));
    (code, answer)
}

#[cfg(test)]
mod tests;
