//! Reads and orders versions as Helm's semver library does.
mod constraint;
mod object;

use std::cmp::Ordering;
use std::fmt;
use std::sync::LazyLock;

use regex::Regex;

pub(crate) use constraint::Constraints;
pub(crate) use object::VersionObject;

/// A version. Minor and patch may be left out in the text, and a `v` may stand before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub major: u64,
    pub minor: u64,
    pub patch: u64,
    pub pre: String,
    pub metadata: String,
    pub original: String,
}

static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let pattern = r"\Av?([0-9]+)(\.[0-9]+)?(\.[0-9]+)?(-([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?(\+([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?\z";
    Regex::new(pattern).ok()
});

impl Version {
    pub fn parse(text: &str) -> Result<Self, String> {
        let invalid = || "Invalid Semantic Version".to_owned();
        let found = PATTERN.as_ref().and_then(|pattern| pattern.captures(text)).ok_or_else(invalid)?;
        let group = |i: usize| found.get(i).map_or("", |group| group.as_str());
        let segment = |i: usize| {
            match group(i).trim_start_matches('.') {
            "" => Ok(0),
            digits => digits.parse::<u64>().map_err(|_| {
                format!("Error parsing version segment: strconv.ParseUint: parsing \"{digits}\": value out of range")
            }),
        }
        };
        let version = Self {
            major: segment(1)?,
            minor: segment(2)?,
            patch: segment(3)?,
            pre: group(5).to_owned(),
            metadata: group(8).to_owned(),
            original: text.to_owned(),
        };
        let leading_zero = |part: &str| part.len() > 1 && part.starts_with('0') && is_number(part);
        if version.pre.split('.').any(leading_zero) {
            return Err("Version segment starts with 0".to_owned());
        }
        Ok(version)
    }

    /// Orders two versions; metadata does not count.
    pub fn compare(&self, other: &Self) -> Ordering {
        let numbers = |version: &Self| (version.major, version.minor, version.patch);
        numbers(self).cmp(&numbers(other)).then_with(|| match (self.pre.as_str(), other.pre.as_str()) {
            ("", "") => Ordering::Equal,
            ("", _) => Ordering::Greater,
            (_, "") => Ordering::Less,
            (a, b) => compare_pre(a, b),
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if !self.pre.is_empty() {
            write!(f, "-{}", self.pre)?;
        }
        if !self.metadata.is_empty() {
            write!(f, "+{}", self.metadata)?;
        }
        Ok(())
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Orders pre-releases part by part: numbers before words, a shorter one before its continuation.
fn compare_pre(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a.split('.'), b.split('.'));
    loop {
        let order = match (left.next(), right.next()) {
            (None, None) => return Ordering::Equal,
            (Some(_), None) => Ordering::Greater,
            (None, Some(_)) => Ordering::Less,
            (Some(a), Some(b)) if a == b => Ordering::Equal,
            (Some(a), Some(b)) => match (a.parse::<u64>(), b.parse::<u64>()) {
                (Ok(a), Ok(b)) => a.cmp(&b),
                (Ok(_), Err(_)) => Ordering::Less,
                (Err(_), Ok(_)) => Ordering::Greater,
                (Err(_), Err(_)) => a.cmp(b),
            },
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}
