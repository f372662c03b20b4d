//! Stores objects by the path of their URL, answers requests for them, and remembers after which revision each changed.

use std::collections::{BTreeMap, VecDeque};

use axum::http::Method;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::kinds::{Known, collection, discovery};

/// Deletions that are remembered for watches.
const GONE: usize = 256;

pub(super) struct Store {
    number: usize,
    revision: u64,
    objects: BTreeMap<String, Value>,
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
    There(String),
    /// It was deleted.
    Gone(String, Value),
}

/// What the query of a URL asks for. One requirement of each kind is known: no more are sent.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Query {
    pub watch: bool,
    pub version: Option<u64>,
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
    pub fn new(number: usize) -> Self {
        let uid = format!("77777777-0000-0000-0000-{number:012}");
        let system = json!({"apiVersion": "v1", "kind": "Namespace", "status": {"phase": "Active"},
            "metadata": {"name": "kube-system", "uid": uid, "resourceVersion": "1"}});
        Self {
            number,
            revision: 1,
            objects: BTreeMap::from([("/api/v1/namespaces/kube-system".to_owned(), system)]),
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
    pub fn of_namespace<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a String> + use<'a> {
        let (itself, inside) = (format!("/api/v1/namespaces/{name}"), format!("/namespaces/{name}/"));
        self.objects.keys().filter(move |path| **path == itself || path.contains(&inside))
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
        let Some(kind) = collection(path) else { return self.object(method, path, sent, merge) };
        if method == Method::POST {
            let name = sent["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let path = format!("{path}/{name}");
            if self.objects.contains_key(&path) {
                return status(409, "AlreadyExists");
            }
            return (201, self.put(path, sent));
        }
        (200, self.list(kind, path, query))
    }

    fn object(&mut self, method: &Method, path: &str, sent: Value, merge: bool) -> (u16, Value) {
        let known = self.objects.get(path).cloned();
        match (method.as_str(), known) {
            ("PATCH", Some(mut known)) if merge => {
                known["data"]["seen"] = sent["data"]["seen"].clone();
                (200, self.put(path.to_owned(), known))
            }
            ("PATCH", None) if merge => not_found(path),
            ("PATCH" | "PUT", Some(known)) if is_of_another_version(&sent, &known) => status(409, "Conflict"),
            ("PATCH" | "PUT", _) => (200, self.put(path.to_owned(), sent)),
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

    fn put(&mut self, path: String, mut object: Value) -> Value {
        self.revision += 1;
        let before = self.objects.get(&path);
        if let Some(version) = before.and_then(version) {
            self.changes.remove(&version);
        }
        let before = before.map(|known| known["metadata"]["uid"].clone());
        let uid = format!("77777777-{:012}-{:012}", self.number, self.revision);
        object["metadata"]["uid"] = before.unwrap_or(Value::String(uid));
        object["metadata"]["resourceVersion"] = Value::String(self.revision.to_string());
        if object["kind"] == "Namespace" {
            object["status"] = json!({"phase": "Active"});
        }
        self.changes.insert(self.revision, Change::There(path.clone()));
        self.objects.insert(path, object.clone());
        self.told.send_replace(());
        object
    }

    /// A namespace takes along what is in it.
    fn delete(&mut self, path: &str, object: &Value) {
        let mut paths = vec![path.to_owned()];
        if let (true, Some(name)) = (object["kind"] == "Namespace", object["metadata"]["name"].as_str()) {
            paths = self.of_namespace(name).cloned().collect();
        }
        for path in paths {
            self.remove(path);
        }
        self.told.send_replace(());
    }

    fn remove(&mut self, path: String) {
        let Some(object) = self.objects.remove(&path) else { return };
        if let Some(version) = version(&object) {
            self.changes.remove(&version);
        }
        self.revision += 1;
        let mut last = json!({"apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": object["metadata"]});
        last["metadata"]["resourceVersion"] = Value::String(self.revision.to_string());
        self.changes.insert(self.revision, Change::Gone(path, last));
        self.gone.push_back(self.revision);
        while self.gone.len() > GONE {
            self.forgotten = self.gone.pop_front().unwrap_or_default();
            self.changes.remove(&self.forgotten);
        }
    }

    fn list(&self, kind: &Known, path: &str, query: &Query) -> Value {
        let items: Vec<&Value> = self
            .objects
            .iter()
            .filter(|(at, object)| is_in(at, path) && query.selects(object))
            .map(|(_, object)| object)
            .collect();
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
        for (_, change) in self.changes.range(revision + 1..) {
            let (what, at, object) = match change {
                Change::There(at) => ("MODIFIED", at, self.objects.get(at)),
                Change::Gone(at, object) => ("DELETED", at, Some(object)),
            };
            if let Some(object) = object.filter(|object| is_in(at, path) && query.selects(object)) {
                lines.push_str(&json!({"type": what, "object": object}).to_string());
                lines.push('\n');
            }
        }
        Some(lines)
    }
}

/// Whether what is sent names a version that is not the one of the object that is there.
fn is_of_another_version(sent: &Value, known: &Value) -> bool {
    let named = &sent["metadata"]["resourceVersion"];
    !named.is_null() && *named != known["metadata"]["resourceVersion"]
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

fn version(object: &Value) -> Option<u64> {
    object["metadata"]["resourceVersion"].as_str()?.parse().ok()
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
mod tests {
    use super::*;

    const NAMESPACES: &str = "/api/v1/namespaces";
    const BINDING: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/shop/rolebindings/one";
    const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/rolebindings";

    fn object(kind: &str, name: &str) -> Value {
        json!({"kind": kind, "metadata": {"name": name, "labels": {"emco.io/owner": "o"}}})
    }

    fn get(store: &mut Store, path: &str, query: &str) -> (u16, Value) {
        store.answer(&Method::GET, path, &Query::of(query), Value::Null, false)
    }

    fn put(store: &mut Store, path: &str, object: Value) {
        assert_eq!(store.answer(&Method::PATCH, path, &Query::default(), object, false).0, 200);
    }

    #[test]
    fn a_namespace_takes_along_what_is_in_it_and_watches_hear_of_both() {
        let mut store = Store::new(7);
        put(&mut store, "/api/v1/namespaces/shop", object("Namespace", "shop"));
        put(&mut store, BINDING, object("RoleBinding", "one"));
        put(&mut store, "/api/v1/namespaces/shops", object("Namespace", "shops"));
        assert_eq!(store.of_namespace("shop").count(), 2);
        let listed = get(&mut store, BINDINGS, "labelSelector=emco.io%2Fowner%3Do").1;
        assert_eq!(listed["items"][0]["metadata"]["name"], "one");
        let none = get(&mut store, BINDINGS, "labelSelector=emco.io%2Fowner%3Dother").1;
        assert_eq!(none["items"], json!([]));
        let seen = store.revision();
        let path = "/api/v1/namespaces/shop";
        let stale = json!({"preconditions": {"resourceVersion": "1"}});
        assert_eq!(store.answer(&Method::DELETE, path, &Query::default(), stale, false).0, 409);
        assert_eq!(store.answer(&Method::DELETE, path, &Query::default(), Value::Null, false).0, 200);
        assert_eq!(store.of_namespace("shop").count(), 0);
        for collection in [NAMESPACES, BINDINGS] {
            let lines = store.since(seen, collection, &Query::of("labelSelector=emco.io%2Fowner")).unwrap();
            assert_eq!(lines.lines().count(), 1, "{lines}");
            assert!(lines.contains("DELETED"), "{lines}");
        }
        assert_eq!(store.since(store.revision(), NAMESPACES, &Query::default()).unwrap(), "");
        assert_eq!(get(&mut store, BINDING, "").0, 404);
    }

    #[test]
    fn a_watch_from_before_what_is_remembered_is_told_so() {
        let mut store = Store::new(7);
        let begun = store.revision();
        for _ in 0..=GONE {
            let path = "/api/v1/namespaces/shop";
            put(&mut store, path, object("Namespace", "shop"));
            store.answer(&Method::DELETE, path, &Query::default(), Value::Null, false);
        }
        assert_eq!(store.since(begun, NAMESPACES, &Query::default()), None);
        assert_eq!(store.changes.len(), GONE);
        assert!(store.since(store.revision(), NAMESPACES, &Query::default()).is_some());
    }

    #[test]
    fn its_kube_system_says_which_cluster_it_is() {
        let mut store = Store::new(7);
        let found = get(&mut store, NAMESPACES, "fieldSelector=metadata.name%3Dkube-system&limit=1").1;
        assert_eq!(found["items"][0]["metadata"]["uid"], "77777777-0000-0000-0000-000000000007");
        assert_eq!(found["metadata"]["resourceVersion"], "1");
    }
}
