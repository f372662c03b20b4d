//! Parses the challenge of a registry's refusal.

use http::header::{HeaderMap, WWW_AUTHENTICATE};

/// Longest realm or service that is taken.
const LONGEST: usize = 2048;

/// What a registry asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Challenge {
    /// A token of this realm.
    Bearer {
        /// Where tokens are made.
        realm: String,
        /// For whom.
        service: Option<String>,
    },
    /// A user with a password.
    Basic,
    /// Nothing that is known.
    Unknown,
}

/// Reads `WWW-Authenticate`. A token is preferred to a password.
pub fn read(headers: &HeaderMap) -> Challenge {
    let mut found = Challenge::Unknown;
    for value in headers.get_all(WWW_AUTHENTICATE).iter().take(8) {
        let Ok(text) = value.to_str() else { continue };
        for (scheme, parameters) in schemes(text) {
            let parameter = |wanted: &str| {
                let found = parameters.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
                found.map(|(_, value)| value.clone()).filter(|value| value.len() <= LONGEST)
            };
            match parameter("realm") {
                Some(realm) if scheme.eq_ignore_ascii_case("bearer") => {
                    return Challenge::Bearer { realm, service: parameter("service") };
                }
                _ if scheme.eq_ignore_ascii_case("basic") => found = Challenge::Basic,
                _ => {}
            }
        }
    }
    found
}

type Scheme<'a> = (&'a str, Vec<(String, String)>);

/// `Basic realm="a", Bearer realm="b",service="c"` has two schemes with their parameters.
fn schemes(text: &str) -> Vec<Scheme<'_>> {
    let mut all: Vec<Scheme<'_>> = Vec::new();
    for part in parts(text) {
        let part = part.trim();
        let (head, value) =
            part.split_once('=').map_or((part, None), |(head, value)| (head.trim(), Some(value)));
        let name = match head.rsplit_once(char::is_whitespace) {
            Some((scheme, name)) => {
                all.push((scheme.trim(), Vec::new()));
                name
            }
            None if value.is_none() => {
                all.push((head, Vec::new()));
                continue;
            }
            None => head,
        };
        if let (Some(value), Some((_, parameters))) = (value, all.last_mut()) {
            parameters.push((name.to_owned(), unquoted(value.trim())));
        }
    }
    all
}

/// Cut at the commas that are in no quotes.
fn parts(text: &str) -> Vec<&str> {
    let (mut found, mut start, mut quoted, mut escaped) = (Vec::new(), 0, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' if !quoted => {
                found.push(text.get(start..at).unwrap_or_default());
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(text.get(start..).unwrap_or_default());
    found
}

fn unquoted(value: &str) -> String {
    let Some(inner) = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return value.to_owned();
    };
    let mut text = String::with_capacity(inner.len());
    let mut escaped = false;
    for c in inner.chars() {
        if c == '\\' && !escaped {
            escaped = true;
        } else {
            escaped = false;
            text.push(c);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[&str]) -> Challenge {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(WWW_AUTHENTICATE, value.parse().unwrap());
        }
        read(&headers)
    }

    fn bearer(realm: &str, service: Option<&str>) -> Challenge {
        Challenge::Bearer { realm: realm.to_owned(), service: service.map(str::to_owned) }
    }

    #[test]
    fn a_token_is_preferred_to_a_password_wherever_they_stand() {
        let text =
            r#"Bearer realm="https://auth.example/token",service="registry",scope="repository:a:pull,push""#;
        assert_eq!(of(&[text]), bearer("https://auth.example/token", Some("registry")));
        assert_eq!(
            of(&["Basic realm=\"a, b\"", text]),
            bearer("https://auth.example/token", Some("registry"))
        );
        assert_eq!(of(&[r#"basic realm="x", BEARER realm="y\"z""#]), bearer("y\"z", None));
        assert_eq!(of(&["bearer realm=plain , service = s"]), bearer("plain", Some("s")));
        assert_eq!(of(&["Basic"]), Challenge::Basic);
    }

    #[test]
    fn what_is_not_understood_is_no_challenge() {
        for text in ["", "Negotiate", "Bearer", r#"Bearer service="x""#, "=,=", "\"", "Digest realm=\"x\""] {
            assert_eq!(of(&[text]), Challenge::Unknown, "{text}");
        }
        assert_eq!(of(&[&format!("Bearer realm=\"{}\"", "x".repeat(LONGEST + 1))]), Challenge::Unknown);
    }
}
