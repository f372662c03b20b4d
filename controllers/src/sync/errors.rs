//! Answers of an API server in, reasons that people can act on out, with how soon another try makes sense.

use crate::api::ApiError;

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
    /// A sentence with the server's own words, at most 256 bytes.
    pub message: String,
    /// When to try again.
    pub retry: Retry,
}

impl Trouble {
    /// A trouble with its message cut to 256 bytes.
    pub fn new(reason: &'static str, message: &str, retry: Retry) -> Self {
        Self { reason, message: cut(message), retry }
    }

    /// Whether an edit or a person is needed: this is a failure, not waiting.
    pub const fn is_failure(&self) -> bool {
        matches!(self.retry, Retry::Slowly)
    }

    /// What an apply's refusal means.
    pub fn of_apply(error: &ApiError) -> Self {
        let (code, text) = match error {
            ApiError::Unreachable { message, .. } | ApiError::Protocol(message) => {
                return Self::new("Unreachable", message, Retry::Soon);
            }
            ApiError::Status { code, message, .. } => (*code, message.as_str()),
        };
        match code {
            401 | 403 if text.contains("because it is being terminated") => {
                Self::new("Progressing", text, Retry::Soon)
            }
            401 | 403 => Self::new("Forbidden", text, Retry::Slowly),
            // Another writer was faster, or the object was made anew: looked at again at once.
            409 => Self::conflict(error),
            404 if text.contains("namespaces") => Self::new("Progressing", text, Retry::Soon),
            404 => Self::new("KindMissing", text, Retry::Soon),
            422 if text.contains("immutable")
                || text.contains("may not be changed")
                || text.contains("forbidden: updates to") =>
            {
                Self::new("ImmutableField", text, Retry::Slowly)
            }
            // Server-side apply answers 500 to what is plainly wrong in the manifest: not an outage.
            500 if text.contains("failed to create typed patch object") => {
                Self::new("Invalid", text, Retry::Slowly)
            }
            400 | 405 | 413 | 415 | 422 => Self::new("Invalid", text, Retry::Slowly),
            _ => Self::of_server(error),
        }
    }

    /// What a refused read or delete means.
    pub fn of_request(error: &ApiError) -> Self {
        match error {
            ApiError::Status { code: 401 | 403, message, .. } => {
                Self::new("Forbidden", message, Retry::Slowly)
            }
            ApiError::Status { code: 409, .. } => Self::conflict(error),
            ApiError::Status { code: 400 | 405 | 413 | 415 | 422, message, .. } => {
                Self::new("Invalid", message, Retry::Slowly)
            }
            _ => Self::of_server(error),
        }
    }

    /// Overload, outages, time-outs.
    fn of_server(error: &ApiError) -> Self {
        match error {
            ApiError::Status { message, retry_after: Some(seconds), .. } => {
                Self::new("Unreachable", message, Retry::After((*seconds).min(300)))
            }
            other => Self::new("Unreachable", &other.to_string(), Retry::Soon),
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

/// At most 256 bytes, cut at a character.
pub fn cut(text: &str) -> String {
    const MOST: usize = 256;
    if text.len() <= MOST {
        return text.to_owned();
    }
    let mut end = MOST - 3;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}...", text.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(code: u16, message: &str) -> ApiError {
        let (reason, causes) = (String::new(), Vec::new());
        ApiError::Status { code, reason, message: message.to_owned(), retry_after: None, causes }
    }

    #[test]
    fn a_500_of_a_wrong_manifest_is_a_rejection_and_not_an_outage() {
        let trouble = Trouble::of_apply(&status(
            500,
            "failed to create typed patch object: .spec.x: field not declared in schema",
        ));
        assert_eq!((trouble.reason, trouble.retry), ("Invalid", Retry::Slowly));
        let trouble = Trouble::of_apply(&status(500, "etcdserver: request timed out"));
        assert_eq!((trouble.reason, trouble.retry), ("Unreachable", Retry::Soon));
    }

    #[test]
    fn every_refusal_keeps_its_own_reason_and_the_servers_words() {
        for (code, message, reason) in [
            (
                422,
                "Deployment.apps \"web\" is invalid: spec.selector: Invalid value: field is immutable",
                "ImmutableField",
            ),
            (422, "Service \"web\" is invalid: spec.ports: Required value", "Invalid"),
            (403, "deployments.apps is forbidden: User cannot patch", "Forbidden"),
            (404, "namespaces \"shop\" not found", "Progressing"),
            (404, "the server could not find the requested resource", "KindMissing"),
        ] {
            let trouble = Trouble::of_apply(&status(code, message));
            assert_eq!(trouble.reason, reason, "{message}");
            assert_eq!(trouble.message, message);
        }
    }

    #[test]
    fn an_overloaded_server_says_when() {
        let error = ApiError::Status {
            code: 429,
            reason: "TooManyRequests".to_owned(),
            message: "too many requests".to_owned(),
            retry_after: Some(7),
            causes: Vec::new(),
        };
        assert_eq!(Trouble::of_apply(&error).retry, Retry::After(7));
    }

    #[test]
    fn messages_end_at_256_bytes_and_at_a_character() {
        let long = "ü".repeat(300);
        assert!(cut(&long).len() <= 256 && cut(&long).ends_with("..."));
    }
}
