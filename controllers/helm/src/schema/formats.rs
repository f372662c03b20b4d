//! Checks texts against the `format`s of schemas, as Helm's validator does.
//!
//! They are laxer than the standard in places (a date alone is a `date-time`) and stricter in others (a `uuid` has
//! small letters), and the same for every draft. Formats that are not here are not checked.
use std::net::IpAddr;

use super::email;
use crate::funcs::Url;
use crate::{goregex, gotime};

/// Whether a text has a format.
type Check = fn(&str) -> bool;

/// Names and checks.
const FORMATS: &[(&str, Check)] = &[
    ("date", |text| is_time(text, &[DATE])),
    ("time", |text| is_time(text, &[ZONED_TIME, TIME])),
    ("date-time", |text| is_time(text, &[TIME, ZONED_TIME, DATE, DATE_TIME])),
    ("email", email::is_address),
    ("idn-email", email::is_address),
    ("hostname", |text| text.len() < 256 && fits(HOSTNAME, text)),
    ("ipv4", |text| is_address(text) && text.contains('.')),
    ("ipv6", |text| is_address(text) && text.contains(':')),
    ("uri", |text| is_uri(text)),
    ("iri", |text| is_uri(text)),
    ("uri-reference", |text| is_reference(text)),
    ("iri-reference", |text| is_reference(text)),
    ("uri-template", |text| {
        is_reference(text) && Url::of(text).is_some_and(|url| fits(TEMPLATE, &url.path_text()))
    }),
    ("uuid", |text| fits(UUID, text)),
    ("regex", |text| text.is_empty() || goregex::compile(text.as_bytes()).is_ok()),
    ("json-pointer", |text| fits(POINTER, text)),
    ("relative-json-pointer", |text| fits(RELATIVE_POINTER, text)),
];

const DATE: &str = "2006-01-02";
const TIME: &str = "15:04:05";
const ZONED_TIME: &str = "15:04:05Z07:00";
/// Fractions of seconds need no place in a layout.
const DATE_TIME: &str = "2006-01-02T15:04:05Z07:00";

const HOSTNAME: &str = r"^([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9\-]{0,61}[a-zA-Z0-9])(\.([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9\-]{0,61}[a-zA-Z0-9]))*$";
/// Every brace that opens is closed.
const TEMPLATE: &str = r"^([^{]*(\{[^}]*\})?)*$";
const UUID: &str = "^[a-f0-9]{8}(-[a-f0-9]{4}){3}-[a-f0-9]{12}$";
const POINTER: &str = "^(/([^~/]|~0|~1)*)*$";
const RELATIVE_POINTER: &str = "^(0|[1-9][0-9]*)(#|(/([^~/]|~0|~1)*)*)$";

fn fits(pattern: &str, text: &str) -> bool {
    goregex::compile(pattern.as_bytes()).is_ok_and(|compiled| compiled.regex.is_match(text.as_bytes()))
}

fn is_time(text: &str, layouts: &[&str]) -> bool {
    layouts.iter().any(|layout| gotime::parse(layout.as_bytes(), text.as_bytes()).is_ok())
}

fn is_address(text: &str) -> bool {
    text.parse::<IpAddr>().is_ok()
}

/// Tells whether a text has a format. Each has one that is not known.
pub(super) fn fits_format(name: &str, text: &str) -> bool {
    FORMATS.iter().find(|(known, _)| *known == name).is_none_or(|(_, check)| check(text))
}

/// Go reads a text as a URL, which it does of most texts.
pub(super) fn is_url(text: &str) -> bool {
    Url::of(text).is_some()
}

fn is_uri(text: &str) -> bool {
    Url::of(text).is_some_and(|url| url.has_scheme()) && !text.contains('\\')
}

fn is_reference(text: &str) -> bool {
    is_url(text) && !text.contains('\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The verdicts are those of Helm 3.17.3.
    #[test]
    fn formats_are_those_of_helms_validator() {
        let check =
            |name: &str, text: &str| FORMATS.iter().find(|(known, _)| *known == name).unwrap().1(text);
        for (name, good, bad) in [
            ("date", "2020-01-01", "2020-13-01"),
            ("time", "10:00:00", "10:00"),
            ("date-time", "2020-01-01", "2020-01-01T00:00:00"),
            ("date-time", "2020-01-01T00:00:00.5+01:00", "2020-01-01 00:00:00Z"),
            ("email", "Shop <a.b@example.com>", "a..b@example.com"),
            ("email", "\"a b\"@example (at home)", "a@b@c"),
            ("hostname", "xn--a", "host_name"),
            ("ipv4", "1.2.3.4", "01.2.3.4"),
            ("ipv6", "::1", "1:2"),
            ("uri", "x:y", "//x"),
            ("uri-reference", "a b", "http://a b"),
            ("uri-template", "{a}", "{"),
            ("uuid", "c9bf9e57-1685-4c89-bafb-ff5af830be8a", "C9BF9E57-1685-4C89-BAFB-FF5AF830BE8A"),
            ("regex", "{a}", "("),
            ("json-pointer", "/a/b", "~2"),
            ("relative-json-pointer", "0/a", "a"),
        ] {
            assert!(check(name, good), "{name} {good}");
            assert!(!check(name, bad), "{name} {bad}");
        }
    }
}
