//! What an API server says when it refuses: codes, reasons, sentences and causes as a real one gives them.

use emco_engine::apis::ApiResource;

use super::status;
use crate::api::ApiError;

/// `configmaps`, or `widgets.example.com`.
fn plural(resource: &ApiResource) -> String {
    qualified(&resource.plural, &resource.group)
}

fn qualified(name: &str, group: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}

fn caused(code: u16, reason: &str, message: String, causes: Vec<(String, String)>) -> ApiError {
    ApiError::Status { code, reason: reason.to_owned(), message, retry_after: None, causes }
}

pub(super) fn not_found(resource: &ApiResource, name: &str) -> ApiError {
    status(404, "NotFound", format!("{} \"{name}\" not found", plural(resource)))
}

pub(super) fn already_exists(resource: &ApiResource, name: &str, deleting: bool) -> ApiError {
    let deleting = if deleting { "object is being deleted: " } else { "" };
    status(409, "AlreadyExists", format!("{deleting}{} \"{name}\" already exists", plural(resource)))
}

/// A field that cannot be so: `what` is such as `Required value: ...`.
pub(super) fn invalid(resource: &ApiResource, name: &str, field: &str, what: &str) -> ApiError {
    let kind = qualified(&resource.kind, &resource.group);
    let message = format!("{kind} \"{name}\" is invalid: {field}: {what}");
    caused(422, "Invalid", message, vec![(field.to_owned(), what.to_owned())])
}

/// Several fields that cannot be so.
pub(super) fn invalid_fields(resource: &ApiResource, name: &str, causes: Vec<(String, String)>) -> ApiError {
    let kind = qualified(&resource.kind, &resource.group);
    let all: Vec<String> = causes.iter().map(|(field, what)| format!("{field}: {what}")).collect();
    let all = if let [one] = all.as_slice() { one.clone() } else { format!("[{}]", all.join(", ")) };
    let message = format!("{kind} \"{name}\" is invalid: {all}");
    caused(422, "Invalid", message, causes.into_iter().take(16).collect())
}

/// A replacement that does not say which version it replaces; the one refusal of a field that names the kind as the URL does.
pub(super) fn unversioned(resource: &ApiResource, name: &str) -> ApiError {
    let (field, what) =
        ("metadata.resourceVersion", "Invalid value: (withheld): must be specified for an update");
    let message = format!("{} \"{name}\" is invalid: {field}: {what}", plural(resource));
    caused(422, "Invalid", message, vec![(field.to_owned(), what.to_owned())])
}

/// Whether a kind came with a definition.
pub(super) fn is_custom(resource: &ApiResource) -> bool {
    resource.group.contains('.') && !resource.group.ends_with(".k8s.io")
}

pub(super) fn conflict(resource: &ApiResource, name: &str, why: &str) -> ApiError {
    let kind = plural(resource);
    status(409, "Conflict", format!("Operation cannot be fulfilled on {kind} \"{name}\": {why}"))
}

pub(super) fn modified(resource: &ApiResource, name: &str) -> ApiError {
    let why = "the object has been modified; please apply your changes to the latest version and try again";
    conflict(resource, name, why)
}

/// A precondition of a deletion does not hold.
pub(super) fn precondition(
    resource: &ApiResource,
    name: &str,
    what: &str,
    wanted: &str,
    found: &str,
) -> ApiError {
    let hint = if what == "UID" { "deleted and then recreated" } else { "modified" };
    let kind = qualified(&resource.kind, &resource.group);
    let message = format!(
        "Operation cannot be fulfilled on {kind} \"{name}\": the {what} in the precondition ({wanted}) does not match the {what} in record ({found}). The object might have been {hint}"
    );
    status(409, "Conflict", message)
}

pub(super) fn terminating(resource: &ApiResource, name: &str, namespace: &str) -> ApiError {
    let message = format!(
        "{} \"{name}\" is forbidden: unable to create new content in namespace {namespace} because it is being terminated",
        plural(resource)
    );
    let cause = ("metadata.namespace".to_owned(), format!("namespace {namespace} is being terminated"));
    caused(403, "Forbidden", message, vec![cause])
}

/// Fields of others that an apply would change: `(manager, field)`, the manager as it is to be shown.
pub(super) fn apply_conflicts(mut conflicts: Vec<(String, String)>) -> ApiError {
    conflicts.sort();
    let mut causes: Vec<(String, String)> = conflicts
        .iter()
        .map(|(manager, field)| (field.clone(), format!("conflict with {manager}")))
        .collect();
    let message = if let [(manager, field)] = conflicts.as_slice() {
        format!("Apply failed with 1 conflict: conflict with {manager}: {field}")
    } else {
        let mut lines: Vec<String> = Vec::new();
        let mut last = None;
        for (manager, field) in &conflicts {
            if last != Some(manager) {
                lines.push(format!("conflicts with {manager}:"));
                last = Some(manager);
            }
            lines.push(format!("- {field}"));
        }
        format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"))
    };
    causes.truncate(16);
    caused(409, "Conflict", message, causes)
}
