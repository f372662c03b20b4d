//! Replaces a server's words about Secrets with sentences that cannot hold a value.
//!
//! API servers quote values in refusals, and admission webhooks say what they like. Of a refusal of a Secret only the
//! object, the names of fields and the code are kept. Of all other kinds, values that a server quotes are left out ([`values`]).

use std::collections::BTreeSet;

use emco_engine::path::ApiPath;

use super::{ApiError, ApiResult};

pub mod values;

/// Fields named in one message.
const FIELDS: usize = 3;
/// Longest name of a field, in bytes.
const LONGEST_FIELD: usize = 100;
/// What server-side apply says of a manifest that does not fit its kind.
const TYPED: &str = "failed to create typed patch object";
/// What it says of a field that it does not know.
const UNDECLARED: &str = ": field not declared in schema";

/// What it says of a field that cannot be changed.
const IMMUTABLE: &str = "field is immutable";
/// What is kept of that where the API server's own validation says it of a Secret.
const FIXED: &str = ": the field is immutable: 422 ";
/// A field of a Secret whose name is withheld, or that has none.
pub const UNNAMED: &str = "a field";

/// Whether a refusal is the API server's own validation of an object (`Deployment.apps "web" is invalid: ...`). What admission
/// denies begins with other words.
pub fn is_validation(message: &str) -> bool {
    let named = |object: &str| object.ends_with('"') && object.split_whitespace().count() == 2;
    message.split_once(" is invalid:").is_some_and(|(object, _)| named(object))
        || message.starts_with("Secret ") && message.contains(FIXED)
}

/// The Secret that a request is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    namespace: String,
    name: String,
}

/// The verb that a user lacks, in the words of an API server's authorizer: `cannot patch resource "secrets" in ...`.
pub fn lacking(words: &str) -> Option<&str> {
    let (_, rest) = words.split_once(" cannot ")?;
    let (verb, _) = rest.split_once(" resource \"")?;
    (!verb.is_empty() && verb.bytes().all(|byte| byte.is_ascii_lowercase())).then_some(verb)
}

impl Subject {
    /// The Secret behind a path; `None` where it is another kind's.
    pub fn of(path: &ApiPath) -> Option<Self> {
        Self::at(path.as_str())
    }

    /// The same behind a path of a request that others made.
    pub fn at(path: &str) -> Option<Self> {
        let rest = path.strip_prefix("/api/v1/")?;
        let parts: Vec<&str> = rest.split('/').collect();
        let (namespace, name) = match parts.as_slice() {
            ["secrets", ..] => ("", ""),
            ["namespaces", namespace, "secrets"] => (*namespace, ""),
            ["namespaces", namespace, "secrets", name, ..] => (*namespace, *name),
            _ => return None,
        };
        Some(Self { namespace: namespace.to_owned(), name: name.to_owned() })
    }

    /// An answer about `subject`, without the server's words.
    pub fn withhold<T>(subject: Option<&Self>, answer: ApiResult<T>) -> ApiResult<T> {
        answer.map_err(|error| match (subject, error) {
            (Some(subject), ApiError::Status { code, reason, message, retry_after, causes }) => {
                let reason = word(&reason);
                let message = subject.sentence(code, &reason, &message, &causes);
                let causes = causes
                    .iter()
                    .map(|(field, cause)| (or(plain(field), UNNAMED), or(known(cause), "withheld")))
                    .collect();
                ApiError::Status { code, reason, message, retry_after, causes }
            }
            (_, error) => error,
        })
    }

    fn named(&self) -> String {
        match (self.namespace.as_str(), self.name.as_str()) {
            ("", _) => "Secrets".to_owned(),
            (namespace, "") => format!("Secrets in namespace {namespace}"),
            (namespace, name) => format!("Secret {namespace}/{name}"),
        }
    }

    /// Keeps the words that decide how work goes on, which `sync/errors.rs`, `sync/absence.rs` and `sync/job/undeclared.rs` read.
    fn sentence(&self, code: u16, reason: &str, words: &str, causes: &[(String, String)]) -> String {
        let named = self.named();
        if words.contains("because it is being terminated") {
            return format!("{named} is refused: its namespace takes nothing because it is being terminated");
        }
        if let (403, Some(verb)) = (code, lacking(words)) {
            return format!("{named} is refused: the user cannot {verb} resource \"secrets\" there");
        }
        if code == 404 && words.starts_with("namespaces ") {
            return format!("{named}: its namespace is not found (namespaces)");
        }
        if code == 404 {
            // The server names the object it does not have: that alone proves the object's absence.
            let lacks = not_found(&self.name);
            if words.contains(&lacks) {
                return format!("{named}: {lacks}");
            }
            return format!("{named} is not found");
        }
        let unknown = undeclared(words);
        if !unknown.is_empty() {
            let lines: Vec<String> = unknown.iter().map(|field| format!("{field}{UNDECLARED}")).collect();
            return format!("{TYPED} ({named}): {}", lines.join("\n"));
        }
        let fields = fields(words, causes);
        let at = if fields.is_empty() { String::new() } else { format!(" at {}", fields.join(", ")) };
        let why = if words.contains("immutable") && is_validation(words) {
            ": the field is immutable"
        } else if words.contains("immutable") {
            " (its words speak of something immutable)"
        } else if words.contains(TYPED) {
            " (failed to create typed patch object)"
        } else {
            ""
        };
        let cure = match code {
            401 | 403 => "check rights and admission rules there",
            400 | 422 | 500 => "check that each value is a text",
            _ => "look there",
        };
        format!(
            "{named} is refused{at}{why}: {code} {reason}; the server's words are withheld, for they may quote it: {cure}"
        )
    }
}

/// What an API server says when it has no object of a name, after the kind. Another 404 says only that it serves nothing there.
pub fn not_found(name: &str) -> String {
    format!("\"{name}\" not found")
}

/// Whether a server's own answer names the object that it does not have.
pub fn is_absence(code: u16, message: &str, name: &str) -> bool {
    code == 404 && message.contains(&not_found(name))
}

fn or(text: String, instead: &str) -> String {
    if text.is_empty() { instead.to_owned() } else { text }
}

/// A reason of a Status is one word.
fn word(reason: &str) -> String {
    let fits = reason.len() <= 40 && reason.bytes().all(|b| b.is_ascii_alphabetic());
    if fits { reason.to_owned() } else { String::new() }
}

/// A field of a Secret by its name; empty where it is none. Keys of `data` may be shown.
fn plain(field: &str) -> String {
    let path = field.trim_start_matches('.');
    let known = ["data", "stringData", "metadata", "type", "immutable"];
    let head = path.split(['.', '[']).next().unwrap_or_default();
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"-._[]\"/".contains(&b);
    if known.contains(&head) && path.len() <= LONGEST_FIELD && path.bytes().all(fits) {
        path.to_owned()
    } else {
        String::new()
    }
}

/// What a cause says in words of the server's own.
fn known(cause: &str) -> String {
    if cause.contains(IMMUTABLE) { format!("the {IMMUTABLE}") } else { manager(cause) }
}

/// A conflict names the other manager; every other cause may quote.
fn manager(cause: &str) -> String {
    let named = cause.strip_prefix("conflict with \"").and_then(|rest| rest.split_once('"'));
    match named {
        Some((manager, _)) if manager.len() <= 128 && !manager.contains(char::is_control) => {
            format!("conflict with \"{manager}\"")
        }
        _ => String::new(),
    }
}

fn fields(words: &str, causes: &[(String, String)]) -> Vec<String> {
    // "... Kind=Secret): .data.password: expected string, got ..."
    let typed = words.split_once("): .").and_then(|(_, rest)| rest.split_once(": "));
    let typed = typed.filter(|_| words.contains(TYPED)).map(|(field, _)| field);
    let of_causes = causes.iter().map(|(field, _)| field.as_str());
    let all: BTreeSet<String> =
        typed.into_iter().chain(of_causes).map(plain).filter(|field| !field.is_empty()).collect();
    all.into_iter().take(FIELDS).collect()
}

/// Paths of fields that a Secret does not have: a misspelt name, never what is under it.
fn undeclared(words: &str) -> Vec<String> {
    if !words.contains(TYPED) {
        return Vec::new();
    }
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"-._[]\"=/".contains(&b);
    let paths = words.lines().filter_map(|line| {
        let (before, _) = line.split_once(UNDECLARED)?;
        Some(before.split_once("): ").map_or(before, |(_, path)| path).trim())
    });
    paths
        .filter(|path| path.starts_with('.') && path.len() <= LONGEST_FIELD && path.bytes().all(fits))
        .take(16)
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUE: &str = "90210417";

    fn withheld(code: u16, message: &str, causes: &[(&str, &str)]) -> (String, ApiError) {
        let path = ApiPath::core("pin", "secrets").then("pin");
        let causes = causes.iter().map(|(field, text)| ((*field).to_owned(), (*text).to_owned())).collect();
        let reason = "Invalid".to_owned();
        let error = ApiError::Status { code, reason, message: message.to_owned(), retry_after: None, causes };
        let error = Subject::withhold::<()>(Subject::of(&path).as_ref(), Err(error)).unwrap_err();
        assert!(!format!("{error} {error:?}").contains(VALUE), "{error:?}");
        (error.to_string(), error)
    }

    #[test]
    fn a_wrong_type_in_a_secret_is_named_without_its_value() {
        let text = format!(
            "failed to create typed patch object (/pin; /v1, Kind=Secret): .data.password: expected string, got \
             &value.valueUnstructured{{Value:{VALUE}}}"
        );
        let (said, _) = withheld(500, &text, &[]);
        assert!(said.starts_with("Secret pin/pin is refused at data.password (failed to create"), "{said}");
        assert!(said.ends_with("check that each value is a text") && said.len() <= 256, "{said}");
    }

    #[test]
    fn what_a_webhook_says_of_a_secret_is_not_quoted() {
        let text = format!("admission webhook \"w\" denied the request: password {VALUE} is too short");
        let (said, _) = withheld(403, &text, &[(VALUE, "no"), ("data[pin]", &text)]);
        assert!(said.contains("refused at data[pin]: 403 Invalid"), "{said}");
        let base64 =
            format!("Secret \"pin\" is invalid: data[pin]: Invalid value: \"{VALUE}\": illegal base64");
        assert!(withheld(422, &base64, &[("data[pin]", &base64)]).0.contains("data[pin]"));
    }

    #[test]
    fn only_what_validation_says_of_a_secret_counts_as_validation() {
        let said = |words: &str| withheld(422, words, &[("type", "field is immutable")]).0;
        let own = said("Secret \"pin\" is invalid: type: Invalid value: \"x\": field is immutable");
        assert!(is_validation(&own) && own.contains("the field is immutable"), "{own}");
        let denied =
            said("admission webhook \"w\" denied the request: Secret \"pin\" is invalid: field is immutable");
        assert!(!is_validation(&denied) && !denied.contains("is immutable"), "{denied}");
        assert!(is_validation("Deployment.apps \"web\" is invalid: spec.selector: Required value"));
        assert!(!is_validation(
            "deployments.apps \"web\" is forbidden: denied request: \"x\" is invalid: no"
        ));
    }

    #[test]
    fn a_missing_right_is_told_from_every_other_refusal() {
        let lacks = |kind: &'static str, words: &str| {
            let path = ApiPath::core("pin", kind).then("pin");
            let (reason, message) = ("Forbidden".to_owned(), words.to_owned());
            let error =
                ApiError::Status { code: 403, reason, message, retry_after: None, causes: Vec::new() };
            Subject::withhold::<()>(Subject::of(&path).as_ref(), Err(error)).unwrap_err().lacks_right()
        };
        let user = "\"pin\" is forbidden: User \"system:serviceaccount:shop:emco-edge\"";
        for kind in ["configmaps", "secrets"] {
            let words = format!(
                "{kind} {user} cannot delete resource \"{kind}\" in API group \"\" in the namespace \"pin\""
            );
            assert!(lacks(kind, &words), "{kind}");
            assert!(
                !lacks(kind, "admission webhook \"keep\" denied the request: you cannot delete it"),
                "{kind}"
            );
            assert!(
                !lacks(kind, &format!("{kind} {user} is attempting to grant RBAC permissions")),
                "{kind}"
            );
        }
    }

    #[test]
    fn the_words_that_decide_how_work_goes_on_stay() {
        let ends = format!("unable to create content in pin because it is being terminated {VALUE}");
        assert!(withheld(403, &ends, &[]).0.contains("because it is being terminated"));
        assert!(withheld(404, "namespaces \"pin\" not found", &[]).0.contains("namespaces"));
        assert!(!withheld(404, "secrets \"pin\" not found", &[]).0.contains("namespaces"));
        assert!(
            withheld(422, &format!("Invalid value: {VALUE}: field is immutable"), &[])
                .0
                .contains("immutable")
        );
        let (_, fixed) = withheld(
            422,
            "",
            &[("type", &format!("Invalid value: {VALUE}: {IMMUTABLE}")), ("data[pin]", VALUE)],
        );
        let ApiError::Status { causes, .. } = fixed else { panic!("a Status") };
        let said: Vec<&str> = causes.iter().map(|(_, cause)| cause.as_str()).collect();
        assert_eq!(said, ["the field is immutable", "withheld"]);
        let unknown = format!("{TYPED} (/p; /v1, Kind=Secret): .stringdata: field not declared in schema");
        assert!(withheld(500, &unknown, &[]).0.ends_with("): .stringdata: field not declared in schema"));
        let (_, error) =
            withheld(409, "Apply failed", &[(".data.pin", "conflict with \"kubectl\" using v1 at 1")]);
        let ApiError::Status { causes, .. } = error else { panic!("a Status") };
        assert_eq!(causes, [("data.pin".to_owned(), "conflict with \"kubectl\"".to_owned())]);
    }

    #[test]
    fn other_kinds_keep_the_words_of_the_server() {
        assert_eq!(Subject::of(&ApiPath::core("pin", "configmaps").then("secrets")), None);
        assert!(Subject::of(&ApiPath::core("pin", "secrets")).is_some());
        assert!(Subject::of(&ApiPath::new("/api/v1/secrets")).is_some());
    }
}
