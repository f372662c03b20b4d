//! Two servers that are asked the same, and what of their answers is compared.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use emco_controllers::api::{ApiError, ApiResult, ApiServer, Content, Method, Request};
use emco_controllers::driver::hub::HubApi;
use emco_controllers::memory::MemoryServer;
use emco_e2e::bed::{Bed, BedSpec, SharedBed};
use emco_engine::path::ApiPath;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

pub static BED: SharedBed = SharedBed::new(BedSpec::hub);
static DEFINED: OnceCell<Result<(), String>> = OnceCell::const_new();

/// A kind of our own: whatever is in it, with a status of its own.
pub fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.test.example.com"},
        "spec": {
            "group": "test.example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

/// What makes versions and identities of two servers comparable: the number of each in the order of its appearance.
#[derive(Default)]
struct Names {
    uids: BTreeMap<String, usize>,
    versions: BTreeMap<(usize, String), usize>,
}

impl Names {
    fn uid(&mut self, uid: &str) -> usize {
        let next = self.uids.len();
        *self.uids.entry(uid.to_owned()).or_insert(next)
    }

    /// The how-maniest version of its object this is.
    fn version(&mut self, uid: usize, version: &str) -> usize {
        let known = self.versions.keys().filter(|(of, _)| *of == uid).count();
        *self.versions.entry((uid, version.to_owned())).or_insert(known)
    }
}

/// One of the two.
pub struct Side {
    pub server: Box<dyn ApiServer>,
    names: Names,
}

/// Both, in a namespace of the test's own.
pub struct Pair {
    pub real: Side,
    pub memory: Side,
    pub namespace: String,
    pub asked: usize,
}

impl Pair {
    pub async fn new(bed: &'static Bed, namespace: &str) -> Result<Self> {
        let define = || async {
            let hub = bed.hub().kubectl();
            let define = async {
                hub.apply(&definition().to_string()).await?;
                let name = "crd/widgets.test.example.com";
                hub.run(&["wait", "--for=condition=Established", "--timeout=60s", name]).await
            };
            define.await.map(drop).map_err(|error: anyhow::Error| format!("{error:#}"))
        };
        DEFINED.get_or_init(define).await.clone().map_err(anyhow::Error::msg)?;
        bed.hub().namespace(namespace).await?;
        let memory = MemoryServer::new();
        memory.put("test", &definition());
        memory
            .put("test", &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}));
        let side = |server| Side { server, names: Names::default() };
        Ok(Self {
            real: side(Box::new(HubApi::new(bed.hub().client().await?)) as Box<dyn ApiServer>),
            memory: side(Box::new(memory)),
            namespace: namespace.to_owned(),
            asked: 0,
        })
    }

    pub fn maps(&self) -> String {
        format!("/api/v1/namespaces/{}/configmaps", self.namespace)
    }

    pub fn widgets(&self) -> String {
        format!("/apis/test.example.com/v1/namespaces/{}/widgets", self.namespace)
    }

    /// Asks both, where versions and identities in the request are those that each gave itself: `{version}`, `{uid}` in texts
    /// stand for what `of` is at on that side. Answers what the real server said.
    pub async fn ask(&mut self, request: &Request, of: Option<&str>) -> Result<ApiResult<Value>> {
        self.asked += 1;
        let real = self.real.ask(request, of).await;
        let memory = self.memory.ask(request, of).await;
        let (wanted, found) = (self.real.names.shown(&real), self.memory.names.shown(&memory));
        ensure!(
            wanted == found,
            "{:?} {} {:?} {}\nreal:\n{wanted:#}\nmemory:\n{found:#}\nraw:\n{real:?}\n{memory:?}",
            request.method,
            request.path,
            request.query,
            request.body.as_ref().map(|(_, bytes)| String::from_utf8_lossy(bytes)).unwrap_or_default(),
        );
        Ok(real)
    }

    pub async fn get(&mut self, path: &str) -> Result<ApiResult<Value>> {
        self.ask(&Request::new(Method::Get, ApiPath::split(path)), None).await
    }

    pub async fn create(&mut self, collection: &str, object: &Value) -> Result<ApiResult<Value>> {
        let request = Request::new(Method::Post, ApiPath::split(collection)).query("fieldManager", "maker");
        self.ask(&request.body(Content::Json, object), None).await
    }

    pub async fn apply(
        &mut self,
        path: &str,
        manager: &str,
        force: bool,
        object: &Value,
    ) -> Result<ApiResult<Value>> {
        let request = Request::new(Method::Patch, ApiPath::split(path))
            .query("fieldManager", manager)
            .query("force", force.to_string());
        self.ask(&request.body(Content::Apply, object), Some(path)).await
    }

    pub async fn patch(&mut self, path: &str, content: Content, body: &Value) -> Result<ApiResult<Value>> {
        let request = Request::new(Method::Patch, ApiPath::split(path)).query("fieldManager", "patcher");
        self.ask(&request.body(content, body), Some(path)).await
    }

    pub async fn put(&mut self, path: &str, object: &Value) -> Result<ApiResult<Value>> {
        let request = Request::new(Method::Put, ApiPath::split(path)).query("fieldManager", "putter");
        let of = path.trim_end_matches("/status").to_owned();
        self.ask(&request.body(Content::Json, object), Some(&of)).await
    }

    pub async fn delete(&mut self, path: &str, options: &Value) -> Result<ApiResult<Value>> {
        let mut options = options.clone();
        options["kind"] = json!("DeleteOptions");
        options["apiVersion"] = json!("v1");
        self.ask(
            &Request::new(Method::Delete, ApiPath::split(path)).body(Content::Json, &options),
            Some(path),
        )
        .await
    }
}

impl Side {
    async fn ask(&self, request: &Request, of: Option<&str>) -> ApiResult<Value> {
        let mut request = request.clone();
        if let (Some(of), Some((_, bytes))) = (of, &mut request.body) {
            let text = String::from_utf8_lossy(bytes).into_owned();
            if text.contains("{version}") || text.contains("{uid}") {
                let now =
                    self.server.send(Request::new(Method::Get, ApiPath::split(of))).await.unwrap_or_default();
                let field = |name: &str| now["metadata"][name].as_str().unwrap_or("1").to_owned();
                let text =
                    text.replace("{version}", &field("resourceVersion")).replace("{uid}", &field("uid"));
                *bytes = text.into_bytes().into();
            }
        }
        self.server.send(request).await
    }
}

impl Names {
    /// An answer as it is compared.
    fn shown(&mut self, answer: &ApiResult<Value>) -> Value {
        match answer {
            Ok(value) => self.object(value.clone()),
            Err(ApiError::Status { code, reason, message, causes, .. }) => {
                // Built-in kinds are validated twice, and then say everything twice.
                let mut causes: Vec<Value> =
                    causes.iter().map(|(field, message)| json!([field, self.text(message)])).collect();
                causes.sort_by_key(ToString::to_string);
                causes.dedup();
                json!({"code": code, "reason": reason, "message": self.text(message), "causes": causes})
            }
            Err(other) => json!({"error": other.to_string()}),
        }
    }

    /// A text with identities and versions as they are compared, and without where etcd keeps things.
    fn text(&mut self, text: &str) -> String {
        let mut shown = text.to_owned();
        if let (Some(from), Some(to)) = (text.find("StorageError:"), text.find("Precondition failed:")) {
            shown.replace_range(from..to, "");
        }
        for (uid, number) in self.uids.clone() {
            shown = shown.replace(&uid, &format!("<uid {number}>"));
        }
        // Versions stand in parentheses.
        let mut plain = String::new();
        for part in shown.split_inclusive(')') {
            match part.rsplit_once('(') {
                Some((before, number)) if number.trim_end_matches(')').parse::<u64>().is_ok() => {
                    plain.push_str(&format!("{before}(<version>)"));
                }
                _ => plain.push_str(part),
            }
        }
        plain
    }

    fn object(&mut self, mut value: Value) -> Value {
        if let Some(items) = value.get_mut("items") {
            if let Value::Array(taken) = items.take() {
                // What controllers put into every namespace is not the client's.
                let ours = taken.into_iter().filter(|item| item["metadata"]["name"] != "kube-root-ca.crt");
                value["items"] = ours.map(|item| self.object(item)).collect();
            }
            // The list's own version, and the word for where to go on, are the server's own.
            let more = value["metadata"].get("continue").and_then(Value::as_str);
            value["metadata"] = json!({"more": more.map(|token| !token.is_empty())});
            return value;
        }
        if value["kind"] == "Status" {
            if let Some(uid) = value["details"]["uid"].as_str().map(str::to_owned) {
                value["details"]["uid"] = json!(self.uid(&uid));
            }
            return value;
        }
        let namespace = value["kind"] == "Namespace";
        if namespace && let Some(map) = value.as_object_mut() {
            // The namespace controller's own finalizer.
            map.remove("spec");
        }
        let body = value.clone();
        let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) else { return value };
        if namespace {
            metadata.remove("labels");
            metadata.remove("managedFields");
        }
        let uid = metadata.get("uid").and_then(Value::as_str).unwrap_or_default().to_owned();
        let uid = self.uid(&uid);
        metadata.insert("uid".to_owned(), json!(uid));
        let version = metadata.get("resourceVersion").and_then(Value::as_str).unwrap_or_default().to_owned();
        metadata.insert("resourceVersion".to_owned(), json!(self.version(uid, &version)));
        for time in ["creationTimestamp", "deletionTimestamp"] {
            if metadata.contains_key(time) {
                metadata.insert(time.to_owned(), json!("a time"));
            }
        }
        if let Some(Value::Array(entries)) = metadata.remove("managedFields") {
            let mut entries: Vec<Value> = entries.iter().map(|entry| owned(&body, entry)).collect();
            entries.retain(|entry| !entry["fields"].as_array().is_some_and(Vec::is_empty));
            entries.sort_by_key(ToString::to_string);
            if !entries.is_empty() {
                metadata.insert("managedFields".to_owned(), json!(entries));
            }
        }
        value
    }
}

/// Who owns which leaves. That somebody also owns the map around its leaves is left out: what is around goes with its leaves.
fn owned(object: &Value, entry: &Value) -> Value {
    let mut fields = Vec::new();
    leaves(entry.get("fieldsV1").unwrap_or(&Value::Null), String::new(), &mut fields);
    // A map that this entry owns although nothing in it is its own any more, or nothing is in it at all.
    fields.retain(|path| !is_map(object, path));
    fields.sort();
    json!({
        "manager": entry["manager"], "operation": entry["operation"], "apiVersion": entry["apiVersion"],
        "subresource": entry.get("subresource"), "fieldsType": entry["fieldsType"], "fields": fields,
    })
}

fn leaves(at: &Value, path: String, fields: &mut Vec<String>) {
    match at.as_object() {
        Some(map) if map.keys().any(|key| key != ".") => {
            for (key, value) in map.iter().filter(|(key, _)| *key != ".") {
                leaves(value, format!("{path}\n{key}"), fields);
            }
        }
        _ => fields.push(path),
    }
}

/// Whether a path leads to a map, or to where one was: parts of the object, and of its metadata.
fn is_map(object: &Value, path: &str) -> bool {
    let steps: Vec<&str> = path.split('\n').filter(|step| !step.is_empty()).collect();
    let mut at = object;
    for step in &steps {
        let Some(next) = step.strip_prefix("f:").and_then(|name| at.get(name)) else {
            return matches!(steps.as_slice(), [_] | ["f:metadata", _]);
        };
        at = next;
    }
    at.is_object()
}
