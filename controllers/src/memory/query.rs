//! Requests as HTTP gives them: verb, query and content type decide what the store is asked.

use futures::channel::mpsc::UnboundedReceiver;
use serde_json::{Map, Value};

use super::store::{Store, Target, Via};
use super::{refusals, reviews, status};
use crate::api::{Accept, ApiError, ApiResult, Content, Method, Request, WatchEvent};

/// A parameter of the query.
pub(super) fn value<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    request.query.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_str())
}

/// Whether nothing is to be stored. Of applies alone.
pub(super) fn is_dry(request: &Request) -> bool {
    value(request, "dryRun") == Some("All")
}

fn sendable(request: &Request) -> ApiResult<()> {
    request.fault().map_or(Ok(()), |fault| Err(crate::remote::wire::unsendable(&fault)))
}

/// Carries a request out.
pub(super) fn answer(store: &mut Store, request: &Request) -> ApiResult<Value> {
    sendable(request)?;
    if let Some(review) = reviews::answer(store, request) {
        return Ok(review);
    }
    let target = store.resolve_path(&request.path)?;
    let manager = value(request, "fieldManager").unwrap_or("unknown");
    let body = || -> ApiResult<Value> {
        let (_, bytes) =
            request.body.as_ref().ok_or_else(|| status(400, "BadRequest", "the request has no body"))?;
        let text =
            std::str::from_utf8(bytes).map_err(|error| status(400, "BadRequest", error.to_string()))?;
        text.parse::<Value>().map_err(|error| status(400, "BadRequest", error.to_string()))
    };
    match request.method {
        Method::Get if target.name.is_empty() => list(store, &target, request),
        Method::Get => Ok(represent(store.stored(&target)?, request.accept)),
        Method::Post if target.subresource == "token" => store.token(&target, &body()?),
        Method::Post => store.create(&target, &body()?, manager),
        Method::Put => store.replace(&target, &body()?, manager, Via::Put),
        Method::Delete => {
            let options =
                request.body.as_ref().and_then(|(_, bytes)| serde_json::from_slice::<Value>(bytes).ok());
            store.delete(&target, options.as_ref())
        }
        Method::Patch => {
            patch(store, &target, request, manager, &body()?).map(|stored| represent(&stored, request.accept))
        }
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
        Some(Content::Apply) if value(request, "fieldManager").is_none() => Err(ApiError::Status {
            code: 422,
            reason: "Invalid".to_owned(),
            message: "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch".to_owned(),
            retry_after: None,
            causes: vec![("fieldManager".to_owned(), "Required value: is required for apply patch".to_owned())],
        }),
        Some(Content::Apply) => {
            let force = value(request, "force") == Some("true");
            if is_dry(request) {
                store.try_apply(target, body, manager, force)
            } else {
                store.apply(target, body, manager, force)
            }
        }
        Some(Content::Merge) if target.subresource == "scale" => store.scale(target, body, manager),
        Some(Content::Merge) => {
            let mut object = store.get(target)?;
            let given = body.pointer("/metadata/resourceVersion").cloned();
            json_patch::merge(&mut object, body);
            if let (None, Some(metadata)) = (given, object.get_mut("metadata").and_then(Value::as_object_mut))
            {
                metadata.remove("resourceVersion");
            }
            store.replace(target, &object, manager, Via::Patch)
        }
        Some(Content::JsonPatch) => {
            let mut object = store.get(target)?;
            let operations: json_patch::Patch = serde_json::from_value(body.clone())
                .map_err(|error| status(400, "BadRequest", error.to_string()))?;
            json_patch::patch(&mut object, &operations)
                .map_err(|_| status(422, "Invalid", "the server rejected our request due to an error in our request"))?;
            store.replace_with_fields(target, &object, manager)
        }
        _ => Err(status(415, "UnsupportedMediaType", "the body of the request was in an unknown format")),
    }
}

pub(super) fn represent(object: &Value, accept: Accept) -> Value {
    if accept == Accept::Full {
        return object.clone();
    }
    let metadata = object.get("metadata").cloned().unwrap_or_default();
    typed("meta.k8s.io/v1", "PartialObjectMetadata", [("metadata", metadata)])
}

/// An object with these fields, which are taken as they are.
fn typed<const N: usize>(api_version: &str, kind: &str, fields: [(&str, Value); N]) -> Value {
    let of_type = [("apiVersion", Value::from(api_version)), ("kind", Value::from(kind))];
    of_type.into_iter().chain(fields).map(|(name, value)| (name.to_owned(), value)).collect()
}

fn list(store: &Store, target: &Target, request: &Request) -> ApiResult<Value> {
    let selects = selector(request)?;
    let limit: usize = value(request, "limit").and_then(|l| l.parse().ok()).unwrap_or(usize::MAX);
    let start: usize = value(request, "continue").and_then(|c| c.parse().ok()).unwrap_or(0);
    let all: Vec<&Value> = store.list(target).filter(|object| selects(object)).collect();
    let mut metadata = Map::new();
    metadata.insert("resourceVersion".to_owned(), Value::from(store.revision().to_string()));
    if all.len() > start.saturating_add(limit) {
        metadata.insert("continue".to_owned(), Value::from((start + limit).to_string()));
    }
    let metadata_only = request.accept == Accept::Metadata;
    let custom = refusals::is_custom(&target.resource);
    if custom && !metadata_only {
        // Custom kinds say in words that there is no more.
        metadata.entry("continue").or_insert_with(|| Value::from(""));
    }
    let mut items: Vec<Value> =
        all.into_iter().skip(start).take(limit).map(|object| represent(object, request.accept)).collect();
    // Items of built-in kinds do not repeat what the list says.
    if !metadata_only && !custom {
        for item in items.iter_mut().filter_map(Value::as_object_mut) {
            item.remove("apiVersion");
            item.remove("kind");
        }
    }
    let (api_version, kind) = if metadata_only {
        ("meta.k8s.io/v1".to_owned(), "PartialObjectMetadataList".to_owned())
    } else {
        (target.resource.api_version(), format!("{}List", target.resource.kind))
    };
    // An empty list of metadata has no list at all.
    let items = if metadata_only && items.is_empty() { Value::Null } else { Value::Array(items) };
    Ok(typed(&api_version, &kind, [("metadata", Value::Object(metadata)), ("items", items)]))
}

pub(super) fn watch(store: &mut Store, request: &Request) -> ApiResult<UnboundedReceiver<WatchEvent>> {
    sendable(request)?;
    let target = store.resolve_path(&request.path)?;
    let selects = selector(request)?;
    let since = value(request, "resourceVersion").and_then(|v| v.parse().ok()).unwrap_or(0);
    if store.is_too_old(&target, since) {
        return Err(status(410, "Expired", format!("too old resource version: {since}")));
    }
    let namespace = target.namespace.clone();
    let in_namespace = move |object: &Value| {
        namespace.is_empty()
            || object.pointer("/metadata/namespace").and_then(Value::as_str) == Some(namespace.as_str())
    };
    Ok(store.watch(
        &target,
        since,
        request.accept,
        Box::new(move |object| in_namespace(object) && selects(object)),
    ))
}

type Selects = Box<dyn Fn(&Value) -> bool + Send>;

/// One requirement of a label selector.
enum Term {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
}

/// Splits at commas outside of parentheses.
fn terms(selector: &str) -> Vec<String> {
    let (mut all, mut depth) = (vec![String::new()], 0_i32);
    for c in selector.chars() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        match all.last_mut() {
            Some(last) if c != ',' || depth > 0 => last.push(c),
            _ => all.push(String::new()),
        }
    }
    all.into_iter().map(|term| term.trim().to_owned()).filter(|term| !term.is_empty()).collect()
}

fn term(text: &str) -> ApiResult<Term> {
    let set = |list: &str| -> Vec<String> {
        list.trim_matches(['(', ')']).split(',').map(|value| value.trim().to_owned()).collect()
    };
    let key = |text: &str| text.trim().to_owned();
    let words: Vec<&str> = text.splitn(3, ' ').collect();
    let term = if let [name, "notin", list] = words.as_slice() {
        Term::NotIn(key(name), set(list))
    } else if let [name, "in", list] = words.as_slice() {
        Term::In(key(name), set(list))
    } else if let Some((name, value)) = text.split_once("!=") {
        Term::NotIn(key(name), vec![key(value)])
    } else if let Some((name, value)) = text.split_once('=') {
        Term::In(key(name), vec![key(value.trim_start_matches('='))])
    } else if let Some(name) = text.strip_prefix('!') {
        Term::Absent(key(name))
    } else {
        Term::Exists(key(text))
    };
    let (Term::In(name, _) | Term::NotIn(name, _) | Term::Exists(name) | Term::Absent(name)) = &term;
    if name.is_empty() || name.contains(['(', ')', ' ']) {
        return Err(status(400, "BadRequest", format!("unable to parse requirement: {text}")));
    }
    Ok(term)
}

/// `labelSelector`, with sets, and `fieldSelector` on name and namespace.
fn selector(request: &Request) -> ApiResult<Selects> {
    let labels: Vec<Term> = terms(value(request, "labelSelector").unwrap_or_default())
        .iter()
        .map(|text| term(text))
        .collect::<ApiResult<_>>()?;
    let fields = field_terms(value(request, "fieldSelector").unwrap_or_default())?;
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
        let among =
            |name: &str, values: &[String]| label(name).is_some_and(|v| values.iter().any(|w| w == v));
        labels.iter().all(|term| match term {
            Term::In(name, values) => among(name, values),
            Term::NotIn(name, values) => !among(name, values),
            Term::Exists(name) => label(name).is_some(),
            Term::Absent(name) => label(name).is_none(),
        }) && fields.iter().all(|(name, equals, want)| (field(name) == want) == *equals)
    }))
}

/// Field, whether it must be equal, value: the requirements of a field selector, as `fields.ParseSelector` reads them.
fn field_terms(selector: &str) -> ApiResult<Vec<(String, bool, String)>> {
    let refused = |what: String| status(400, "BadRequest", what);
    let mut all = Vec::new();
    for term in unescaped_split(selector) {
        let Some((name, equals, value)) = operator(&term) else {
            return Err(refused(format!("invalid selector: '{selector}'; can't understand '{term}'")));
        };
        let mut text = String::new();
        let mut chars = value.chars();
        while let Some(c) = chars.next() {
            match c {
                '\\' => match chars.next() {
                    Some(c @ ('\\' | ',' | '=')) => text.push(c),
                    _ => {
                        return Err(refused(format!(
                            "invalid field selector: invalid escape sequence: {value}"
                        )));
                    }
                },
                '=' => {
                    return Err(refused(
                        "invalid field selector: unescaped character in value: =".to_owned(),
                    ));
                }
                c => text.push(c),
            }
        }
        all.push((name.to_owned(), equals, text));
    }
    Ok(all)
}

/// Splits at commas that are not escaped.
fn unescaped_split(selector: &str) -> Vec<String> {
    let (mut all, mut escaped) = (vec![String::new()], false);
    for c in selector.chars() {
        match all.last_mut() {
            Some(last) if c != ',' || escaped => last.push(c),
            _ => all.push(String::new()),
        }
        escaped = c == '\\' && !escaped;
    }
    all.into_iter().filter(|term| !term.is_empty()).collect()
}

/// The first operator of a term that is not escaped, between field and value.
fn operator(term: &str) -> Option<(&str, bool, &str)> {
    let mut escaped = false;
    for (at, c) in term.char_indices() {
        let rest = term.get(at..)?;
        if !escaped {
            for (operator, equals) in [("!=", false), ("==", true), ("=", true)] {
                if let Some(value) = rest.strip_prefix(operator) {
                    return Some((term.get(..at)?, equals, value));
                }
            }
        }
        escaped = c == '\\' && !escaped;
    }
    None
}
