//! Builds the path of a request to an API server: fixed text is written, names of others are encoded or refused.

use std::fmt;
use std::ops::Deref;

/// Longest name in a path, in bytes. Kubernetes' longest names have 253.
const LONGEST: usize = 1024;

/// The path of a request. Text that is not part of this program gets into it by [`ApiPath::then`] alone, so that no name can
/// begin a query, leave its folder or reach another resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ApiPath {
    text: String,
    fault: Option<&'static str>,
}

impl ApiPath {
    /// Begins with text of this program, such as `/api/v1/namespaces`.
    pub fn new(text: &'static str) -> Self {
        Self { text: text.to_owned(), fault: None }
    }

    /// A whole path that is only known at run time, segment by segment. Whoever wrote it chose how many there are: this is for
    /// tests, and clippy refuses it elsewhere.
    pub fn split(text: &str) -> Self {
        text.split('/').skip(1).fold(Self::new(""), Self::then)
    }

    /// The collection of a core kind in a namespace: `secrets`, `configmaps`.
    pub fn core(namespace: &str, plural: &'static str) -> Self {
        Self::new("/api/v1/namespaces").then(namespace).then(plural)
    }

    /// A namespace itself.
    pub fn namespace(name: &str) -> Self {
        Self::new("/api/v1/namespaces").then(name)
    }

    /// Adds one segment. A name that no object can have is remembered: the request is refused before it is sent.
    #[must_use]
    pub fn then(mut self, segment: &str) -> Self {
        self.fault = self.fault.or_else(|| fault(segment));
        self.text.push('/');
        // What is refused is not kept: it may be as large as a chart can make it.
        if self.fault.is_none() {
            encode(segment, &mut self.text);
        }
        self
    }

    /// The path, encoded.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Why it cannot be requested.
    pub const fn fault(&self) -> Option<&'static str> {
        self.fault
    }

    /// The same as a sentence.
    pub fn fault_sentence(&self) -> Option<String> {
        let path = crate::conditions::truncate(&self.text, 120);
        self.fault.map(|fault| format!("the name of an object below {path} cannot be requested: {fault}"))
    }

    /// The last name in the path, as it was before it was encoded.
    pub fn name(&self) -> String {
        decoded(self.text.rsplit('/').next().unwrap_or_default())
    }
}

/// A path is read as a text; it is never made of one.
impl Deref for ApiPath {
    type Target = str;
    fn deref(&self) -> &str {
        &self.text
    }
}

impl PartialEq<&str> for ApiPath {
    fn eq(&self, other: &&str) -> bool {
        self.text == *other
    }
}

impl fmt::Display for ApiPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Why a text cannot be one segment of a path; `None` where it can. An API server takes an encoded slash for a slash, so
/// encoding does not help there.
pub fn fault(segment: &str) -> Option<&'static str> {
    match segment {
        "" => Some("it is empty"),
        "." | ".." => Some("it leads to another folder"),
        _ if segment.len() > LONGEST => Some("it is longer than 1024 bytes"),
        _ if segment.contains(['/', '\\']) => Some("it contains a slash"),
        _ if segment.contains('%') => Some("it contains a percent sign"),
        _ if segment.contains(char::is_control) => Some("it contains a control character"),
        _ => None,
    }
}

/// Whether a text is a DNS subdomain: what `ConfigMaps`, Secrets and all kinds of EMCO are called.
pub fn is_dns_subdomain(text: &str) -> bool {
    let ends = |label: &str| {
        let edge = |byte: Option<u8>| byte.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        edge(label.bytes().next()) && edge(label.bytes().last())
    };
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    text.len() <= 253 && text.split('.').all(|label| ends(label) && label.bytes().all(plain))
}

/// Whether a text can be a key of a `ConfigMap` or Secret.
pub fn is_data_key(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
    !text.is_empty() && text.len() <= 253 && text.bytes().all(plain)
}

fn encode(segment: &str, into: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in segment.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:@".contains(&byte) {
            into.push(char::from(byte));
        } else {
            into.push('%');
            for half in [byte >> 4, byte & 15] {
                into.push(DIGITS.get(usize::from(half)).copied().map_or('0', char::from));
            }
        }
    }
}

/// Takes back what [`encode`] did. No name has a percent sign of its own.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    loop {
        match rest {
            [b'%', high, low, after @ ..] => {
                let half =
                    |digit: &u8| char::from(*digit).to_digit(16).and_then(|half| u8::try_from(half).ok());
                bytes.extend(half(high).zip(half(low)).map(|(high, low)| high << 4 | low));
                rest = after;
            }
            [byte, after @ ..] => {
                bytes.push(*byte);
                rest = after;
            }
            [] => return String::from_utf8_lossy(&bytes).into_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "/api/v1/namespaces/team-a/configmaps";

    #[test]
    fn a_name_cannot_begin_a_query() {
        let path = ApiPath::new(MAPS).then("?watch=true");
        assert_eq!(path.as_str(), format!("{MAPS}/%3Fwatch%3Dtrue"));
        assert_eq!(path.fault(), None);
        assert_eq!(ApiPath::new(MAPS).then("a#b c;ü").as_str(), format!("{MAPS}/a%23b%20c%3B%C3%BC"));
        for name in ["a#b c;ü", "system:a.b", "?watch=true"] {
            assert_eq!(ApiPath::new(MAPS).then(name).name(), name);
        }
    }

    #[test]
    fn a_name_with_a_colon_or_dots_stays_as_it_is() {
        let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
        assert_eq!(ApiPath::new(roles).then("system:a.b-c..d").as_str(), format!("{roles}/system:a.b-c..d"));
    }

    #[test]
    fn a_name_that_leads_elsewhere_is_refused() {
        let long = "x".repeat(1 << 20);
        for name in
            ["", ".", "..", "../../acme/secrets/kc", "web/status", "%2e%2e", "a\0b", "a\nb", "a\\b", &long]
        {
            let path = ApiPath::new(MAPS).then(name).then("status");
            assert!(path.fault().is_some(), "{}", name.get(..20.min(name.len())).unwrap_or_default());
            assert!(path.as_str().len() < 100);
        }
    }

    #[test]
    fn names_and_keys_are_what_kubernetes_takes_them_for() {
        for name in ["a", "shop-values", "a.b.c", "0", "values.v1"] {
            assert!(is_dns_subdomain(name), "{name}");
        }
        for name in ["", "A", "-a", "a-", "a..b", ".a", "a_b", "?watch=true", "../x", "a b", &"a".repeat(254)]
        {
            assert!(!is_dns_subdomain(name), "{name}");
        }
        assert!(is_data_key("values_2.YAML-x") && is_data_key("..data"));
        assert!(!is_data_key("") && !is_data_key("a/b") && !is_data_key("a b"));
    }
}
