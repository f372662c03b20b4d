//! Requests as HTTP gives them: verb, query and content type decide what the store is asked.

use futures::channel::mpsc::UnboundedReceiver;
use serde_json::{Value, json};

use super::status;
use super::store::{Store, Target};
use crate::api::{Accept, ApiResult, Content, Method, Request, WatchEvent};

/// A parameter of the query.
pub(super) fn value<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    request.query.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_str())
}

/// Carries a request out.
pub(super) fn answer(store: &mut Store, request: &Request) -> ApiResult<Value> {
    let target = store.resolve(&request.path)?;
    let manager = value(request, "fieldManager").unwrap_or("unknown");
    let body = || -> ApiResult<Value> {
        let (_, bytes) =
            request.body.as_ref().ok_or_else(|| status(400, "BadRequest", "the request has no body"))?;
        serde_json::from_slice(bytes).map_err(|error| status(400, "BadRequest", error.to_string()))
    };
    match request.method {
        Method::Get if target.name.is_empty() => list(store, &target, request),
        Method::Get => Ok(represent(store.get(&target)?, request.accept)),
        Method::Post => store.create(&target, &body()?, manager),
        Method::Put => store.replace(&target, &body()?, manager),
        Method::Delete => {
            let options =
                request.body.as_ref().and_then(|(_, bytes)| serde_json::from_slice::<Value>(bytes).ok());
            store.delete(&target, options.as_ref())
        }
        Method::Patch => patch(store, &target, request, manager, &body()?),
    }
}

fn patch(
    store: &mut Store,
    target: &Target,
    request: &Request,
    manager: &str,
    body: &Value,
) -> ApiResult<Value> {
    match request.body.as_ref().map(|(content, _)| *content) {
        Some(Content::Apply) => store.apply(target, body, manager, value(request, "force") == Some("true")),
        Some(Content::Merge) => {
            let mut object = store.get(target)?;
            let given = body.pointer("/metadata/resourceVersion").cloned();
            json_patch::merge(&mut object, body);
            if let (None, Some(metadata)) = (given, object.get_mut("metadata").and_then(Value::as_object_mut))
            {
                metadata.remove("resourceVersion");
            }
            store.replace(target, &object, manager)
        }
        Some(Content::JsonPatch) => {
            let mut object = store.get(target)?;
            let operations: json_patch::Patch = serde_json::from_value(body.clone())
                .map_err(|error| status(400, "BadRequest", error.to_string()))?;
            json_patch::patch(&mut object, &operations)
                .map_err(|error| status(422, "Invalid", error.to_string()))?;
            store.replace_with_fields(target, &object, manager)
        }
        _ => Err(status(415, "UnsupportedMediaType", "the body of the request was in an unknown format")),
    }
}

fn represent(object: Value, accept: Accept) -> Value {
    if accept == Accept::Full {
        return object;
    }
    json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": object.get("metadata")})
}

fn list(store: &Store, target: &Target, request: &Request) -> ApiResult<Value> {
    let selects = selector(request)?;
    let limit: usize = value(request, "limit").and_then(|l| l.parse().ok()).unwrap_or(usize::MAX);
    let start: usize = value(request, "continue").and_then(|c| c.parse().ok()).unwrap_or(0);
    let all: Vec<Value> = store.list(target).into_iter().filter(|object| selects(object)).collect();
    let mut metadata = json!({"resourceVersion": store.revision().to_string()});
    if let (true, Some(map)) = (all.len() > start.saturating_add(limit), metadata.as_object_mut()) {
        map.insert("continue".to_owned(), json!((start + limit).to_string()));
    }
    let items: Vec<Value> =
        all.into_iter().skip(start).take(limit).map(|object| represent(object, request.accept)).collect();
    Ok(json!({
        "apiVersion": target.resource.api_version(), "kind": format!("{}List", target.resource.kind),
        "metadata": metadata, "items": items,
    }))
}

pub(super) fn watch(store: &mut Store, request: &Request) -> ApiResult<UnboundedReceiver<WatchEvent>> {
    let target = store.resolve(&request.path)?;
    let selects = selector(request)?;
    let since = value(request, "resourceVersion").and_then(|v| v.parse().ok()).unwrap_or(0);
    let namespace = target.namespace.clone();
    let in_namespace = move |object: &Value| {
        namespace.is_empty()
            || object.pointer("/metadata/namespace").and_then(Value::as_str) == Some(namespace.as_str())
    };
    Ok(store.watch(&target, since, Box::new(move |object| in_namespace(object) && selects(object))))
}

/// `labelSelector` (`a`, `!a`, `a=b`, `a!=b`, joined by commas) and `fieldSelector` on name and namespace.
#[allow(clippy::type_complexity)]
fn selector(request: &Request) -> ApiResult<Box<dyn Fn(&Value) -> bool + Send>> {
    let labels = value(request, "labelSelector").unwrap_or_default().to_owned();
    let fields = value(request, "fieldSelector").unwrap_or_default().to_owned();
    if labels.contains('(') {
        return Err(status(400, "BadRequest", "set-based label selectors are not known here"));
    }
    Ok(Box::new(move |object| {
        let label = |name: &str| {
            object.pointer("/metadata/labels").and_then(|labels| labels.get(name)).and_then(Value::as_str)
        };
        let field = |name: &str| {
            object
                .pointer(&format!("/{}", name.replace('.', "/")))
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        labels.split(',').filter(|term| !term.is_empty()).all(|term| {
            if let Some((name, want)) = term.split_once("!=") {
                label(name) != Some(want)
            } else if let Some((name, want)) = term.split_once('=') {
                label(name) == Some(want.trim_start_matches('='))
            } else if let Some(name) = term.strip_prefix('!') {
                label(name).is_none()
            } else {
                label(term).is_some()
            }
        }) && fields.split(',').filter(|term| !term.is_empty()).all(|term| {
            term.split_once('=').is_some_and(|(name, want)| field(name) == want.trim_start_matches('='))
        })
    }))
}
