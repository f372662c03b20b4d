//! Finds the token in a kubeconfig, and puts another one in its place.

use std::collections::BTreeMap;

use secrecy::ExposeSecret as _;
use zeroize::Zeroizing;

use super::{KEYS, User, choose, parse};

/// The key of a Secret's data that [`super::pick`] takes; `None` where it takes none.
pub fn key_of<'a, V>(data: &BTreeMap<String, V>, key: Option<&'a str>) -> Option<&'a str> {
    match key {
        Some(key) => data.contains_key(key).then_some(key),
        None => KEYS.into_iter().find(|key| data.contains_key(*key)),
    }
}

/// The token that a kubeconfig is used with; `None` where it does not parse, has none, or has a client certificate besides.
pub fn token_of(bytes: &[u8]) -> Option<Zeroizing<String>> {
    let file = parse(bytes).ok()?;
    let (_, user) = choose(&file).ok()?;
    only(user).map(|token| Zeroizing::new(token.to_owned()))
}

/// The token of a user who has one and no client certificate besides.
pub(super) fn only(user: &User) -> Option<&str> {
    if user.client_certificate_data.as_deref().is_some_and(|data| !data.is_empty()) {
        return None;
    }
    let token = user.token.as_ref()?.expose_secret().trim();
    (!token.is_empty()).then_some(token)
}

/// The same kubeconfig, to the letter, with another token; `None` where the one before does not stand in it exactly once.
pub fn with_token(text: &str, before: &str, token: &str) -> Option<Zeroizing<String>> {
    let (head, tail) = text.split_once(before)?;
    if before.is_empty() || tail.contains(before) {
        return None;
    }
    let text = Zeroizing::new([head, token, tail].concat());
    // What is quoted or folded in the file would be read as something else.
    (token_of(text.as_bytes()).as_deref().map(String::as_str) == Some(token)).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "apiVersion: v1
kind: Config
current-context: emco
clusters: [{name: emco, cluster: {server: 'https://192.0.2.1:6443'}}]
users:
- name: emco
  user:
    token: aaa.bbb.ccc
contexts: [{name: emco, context: {cluster: emco, user: emco}}]
";

    #[test]
    fn another_token_takes_the_place_of_the_one_before_and_all_else_stays() {
        assert_eq!(token_of(FILE.as_bytes()).unwrap().as_str(), "aaa.bbb.ccc");
        let other = with_token(FILE, "aaa.bbb.ccc", "ddd.eee.fff").unwrap();
        assert_eq!(other.as_str(), FILE.replace("aaa.bbb.ccc", "ddd.eee.fff"));
    }

    #[test]
    fn a_token_that_is_not_there_once_is_not_replaced() {
        assert!(with_token(FILE, "zzz.bbb.ccc", "d").is_none());
        assert!(with_token(FILE, "emco", "d").is_none(), "it is there more than once");
        assert!(with_token(FILE, "", "d").is_none());
        assert!(with_token(FILE, "aaa.bbb.ccc", "d: [").is_none(), "it would not parse");
    }

    #[test]
    fn a_client_certificate_beside_the_token_is_left_alone() {
        let both = FILE.replace("    token:", "    client-certificate-data: YQ==\n    token:");
        assert!(token_of(both.as_bytes()).is_none());
        assert!(token_of(b"nothing").is_none());
    }

    #[test]
    fn the_key_is_the_one_that_is_read() {
        let data = BTreeMap::from([("kubeconfig".to_owned(), 1), ("value".to_owned(), 2)]);
        assert_eq!(key_of(&data, None), Some("value"));
        assert_eq!(key_of(&data, Some("kubeconfig")), Some("kubeconfig"));
        assert_eq!(key_of(&data, Some("other")), None);
    }
}
