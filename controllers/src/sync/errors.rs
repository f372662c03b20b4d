//! Turns answers of an API server into reasons that people can act on, with how soon another try makes sense.

use emco_crds::names::object;
use emco_engine::conditions::shorten;
use emco_engine::recreate;
use serde_json::Value;

use crate::api::{ApiError, withheld};
use crate::remote::wire::CAUSES;

/// The reason of an object with a field that cannot be changed.
pub const IMMUTABLE: &str = "ImmutableField";

/// When another try makes sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// It may cure itself within seconds: exponential, up to a minute.
    Soon,
    /// The server said when, in seconds.
    After(u64),
    /// Somebody has to change something: half a minute up to five.
    Slowly,
    /// Not before the cluster answers again, or the lease is ours again: an event wakes the work, no timer does.
    WhenBack,
}

/// Why something could not be done on a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// From the closed set of reasons of a deployment.
    pub reason: &'static str,
    /// A sentence with the server's own words, at most 256 bytes: its beginning and its end.
    pub message: String,
    /// The whole of it, where that is longer.
    pub whole: Option<String>,
    /// When to try again.
    pub retry: Retry,
    /// Who has the object, where it is somebody else's.
    pub holder: Option<String>,
}

impl Trouble {
    /// A trouble with its message cut to 256 bytes, and the whole of it as far as an Event has room.
    pub fn new(reason: &'static str, message: &str, retry: Retry) -> Self {
        let whole = (message.len() > LONGEST).then(|| shorten(message, LONGEST_WHOLE));
        Self { reason, message: cut(message), whole, retry, holder: None }
    }

    /// All that is known of what the server said.
    pub fn words(&self) -> &str {
        self.whole.as_deref().unwrap_or(&self.message)
    }

    /// Whether an edit or a person is needed: this is a failure, not waiting.
    pub fn is_failure(&self) -> bool {
        matches!(self.retry, Retry::Slowly) || self.reason == NAMESPACE_MISSING
    }

    /// An object names a namespace that is not there, and that nothing known here makes. Somebody else may make it any moment, so it
    /// is tried again soon.
    pub fn no_namespace(namespace: &str, cure: &str) -> Self {
        let text = format!("namespace {namespace} does not exist there: {cure}; it is tried again");
        Self::new(NAMESPACE_MISSING, &text, Retry::Soon)
    }

    /// What an apply's refusal means.
    pub fn of_apply(error: &ApiError) -> Self {
        let (code, text) = match error {
            ApiError::Status { code, message, .. } => (*code, without_object(message)),
            ApiError::Unreachable { .. } | ApiError::Protocol(_) => return Self::of_server(error),
        };
        match code {
            401 | 403 if text.contains("because it is being terminated") => {
                Self::new("Progressing", text, Retry::Soon)
            }
            401 | 403 => Self::forbidden(text),
            // Another writer was faster, or the object was made anew: looked at again at once.
            409 => Self::conflict(error),
            404 if lacks_namespace(error) => Self::new("Progressing", text, Retry::Soon),
            404 => Self::new("KindMissing", text, Retry::Soon),
            // Its definition goes, and may come back.
            405 if text.contains(GOES) => Self::new("KindMissing", text, Retry::Soon),
            // The name is another object's by now.
            422 if names_another(error) => Self::new("Progressing", text, Retry::Soon),
            422 if recreate::cannot_change(text) => Self::new(IMMUTABLE, text, Retry::Slowly),
            // Server-side apply answers 500 to what is plainly wrong in the manifest: not an outage.
            500 if text.contains("failed to create typed patch object") => {
                Self::new("Invalid", text, Retry::Slowly)
            }
            400 | 405 | 413 | 415 | 422 => Self::new("Invalid", text, Retry::Slowly),
            _ => Self::of_server(error),
        }
    }

    /// The same of an apply of this manifest: some words say of some objects alone that a field cannot be changed.
    pub fn of_manifest(manifest: &Value, error: &ApiError) -> Self {
        let trouble = Self::of_apply(error);
        let ApiError::Status { code: 422, causes, .. } = error else { return trouble };
        let fixed = || causes.iter().any(|(_, cause)| recreate::is_fixed(manifest, cause));
        if trouble.reason == "Invalid" && fixed() {
            return Self { reason: IMMUTABLE, ..trouble };
        }
        trouble
    }

    /// What is wrong with a manifest beside a field that cannot be changed: it would be refused anew, and the object would be lost.
    pub fn besides(manifest: &Value, error: &ApiError) -> Option<Self> {
        let ApiError::Status { causes, .. } = error else { return None };
        let (field, cause) = recreate::refused_besides(manifest, causes)?;
        let text = format!(
            "the object is not deleted to be made again, for its manifest is refused besides: {field}: {cause}"
        );
        Some(Self::new("Invalid", &text, Retry::Slowly))
    }

    /// An object stays as it is although a field of it cannot be changed; `words` are the server's.
    pub fn fixed(why: &str, words: &str) -> Self {
        let text = format!("a field cannot be changed, and {why}; take the change back: {words}");
        Self::new(IMMUTABLE, &text, Retry::Slowly)
    }

    /// What a refused read or delete means.
    pub fn of_request(error: &ApiError) -> Self {
        match error {
            ApiError::Status { code: 401 | 403, message, .. } => Self::forbidden(message),
            ApiError::Status { code: 409, .. } => Self::conflict(error),
            ApiError::Status { code: 400 | 405 | 413 | 415 | 422, message, .. } => {
                Self::new("Invalid", message, Retry::Slowly)
            }
            _ => Self::of_server(error),
        }
    }

    /// A right is missing. Where it is the account of `kubectl emco cluster add` that lacks it, the cluster was added for a lower level than
    /// that of the work, or its owner's ceiling is lower: the row says so. Which right it is, stands last in the server's words, and who asked
    /// at such length before it that it would be cut off.
    fn forbidden(text: &str) -> Self {
        let account = format!("system:serviceaccount:{}:{}", object::EDGE_NAMESPACE, object::EDGE_ACCOUNT);
        let ours = text.contains(&format!("\"{account}\""));
        let said = match (text.split_once(GIVES_MORE), text.split_once("\" cannot ")) {
            (Some((_, rest)), _) => {
                let rules = rest.split_whitespace().collect::<Vec<_>>().join(" ");
                let most = if ours { "at most the ClusterRole emco-ceiling is given; " } else { "" };
                Some(format!("{most}{GIVES_MORE} {rules}"))
            }
            (None, Some((_, lacks))) if ours => Some(format!(
                "the Cluster's credentials lack a right; register the cluster for the level of the logical cloud (--level, \
                 docs/clusters.md): cannot {lacks}"
            )),
            (None, _) => None,
        };
        Self::new("Forbidden", said.as_deref().unwrap_or(text), Retry::Slowly)
    }

    /// Overload, outages, time-outs, and webhooks that fail. A server that answers is not unreachable.
    fn of_server(error: &ApiError) -> Self {
        match error {
            ApiError::Status { message, retry_after: Some(seconds), .. } => {
                Self::new("ServerError", message, Retry::After((*seconds).min(300)))
            }
            error => Self::new(server_reason(error), &error.to_string(), Retry::Soon),
        }
    }

    fn conflict(error: &ApiError) -> Self {
        let ApiError::Status { message, causes, .. } = error else { return Self::of_server(error) };
        if causes.is_empty() {
            return Self::new("Conflict", message, Retry::Soon);
        }
        let fields: Vec<String> =
            causes.iter().take(3).map(|(field, cause)| format!("{field} ({cause})")).collect();
        let text = format!("others manage fields of it: {}", fields.join(", "));
        Self::new("Conflict", &text, Retry::Slowly)
    }
}

/// What a server says before the rights that somebody gives away without having them.
const GIVES_MORE: &str = "attempting to grant RBAC permissions not currently held:";

/// Whether an apply is refused because the object that it was meant for is not there any more.
fn names_another(error: &ApiError) -> bool {
    matches!(error, ApiError::Status { causes, .. } if causes.iter().any(|(field, _)| field == "metadata.uid"))
}

/// What a server says of objects whose definition is being deleted.
const GOES: &str = "custom resource definition is terminating";

/// What stands for the field of a rule about a whole object.
const NO_FIELD: &str = "<nil>";

/// Whether a refusal is the API server's own validation of an object and names each field that it refuses. Admission and rules
/// that name no field may refuse the object anew after a deletion; and of more causes than are kept, some are unknown.
pub fn names_each_field(error: &ApiError) -> bool {
    let ApiError::Status { code: 422, message, causes, .. } = error else { return false };
    let named = |field: &str| !["", NO_FIELD, withheld::UNNAMED].contains(&field);
    withheld::is_validation(message)
        && (1..CAUSES).contains(&causes.len())
        && causes.iter().all(|(field, _)| named(field))
}

/// A server that answers with an error is not unreachable.
pub const fn server_reason(error: &ApiError) -> &'static str {
    match error {
        ApiError::Unreachable { .. } => "Unreachable",
        ApiError::Status { .. } | ApiError::Protocol(_) => "ServerError",
    }
}

/// Whether an object is refused because its namespace is not there.
pub fn lacks_namespace(error: &ApiError) -> bool {
    // The second as it is where the server's words are withheld.
    let says = |words: &str| words.contains("namespaces \"") || words.contains("(namespaces)");
    matches!(error, ApiError::Status { code: 404, message, .. } if says(message))
}

/// What helps where a chart names a namespace that is not there.
pub const A_CHART_NAMES_IT: &str =
    "change the chart or value that names it, or make it with a chart of this CompositeApp or a LogicalCloud";
/// The same of a logical cloud.
pub const A_PERMISSION_NAMES_IT: &str = "make it, or take it out of spec.permissions";
/// Reason of an object whose namespace nobody makes.
const NAMESPACE_MISSING: &str = "NamespaceMissing";

/// What a server says of an object without the object (`ConfigMap "web" is invalid: ...`): the row names it already.
fn without_object(text: &str) -> &str {
    match text.split_once(" is invalid:") {
        Some((_, rest)) if withheld::is_validation(text) => rest.trim_start(),
        _ => text,
    }
}

/// Bytes of a message in a row.
pub const LONGEST: usize = 256;
/// Bytes of a message in an Event.
const LONGEST_WHOLE: usize = 1000;

/// At most [`LONGEST`] bytes: the beginning and the end, at characters.
pub fn cut(text: &str) -> String {
    shorten(text, LONGEST)
}

/// At most the first `most` bytes, cut at a character.
pub fn first_bytes(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
