//! Tests versions against ranges such as `>=1.2 <2 || ^3`.
use std::cmp::Ordering;
use std::sync::LazyLock;

use regex::Regex;

use super::{Version, compare_pre};

const VERSION: &str = r"v?([0-9|x|X|\*]+)(\.[0-9|x|X|\*]+)?(\.[0-9|x|X|\*]+)?(-([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?(\+([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?";
// The empty operator stands second: the order decides what is found first.
const OPERATORS: &str = r"=||!=|>|<|>=|=>|<=|=<|~|~>|\^";
const SPACE: &str = r"[\t\n\x0C\r ]";

struct Patterns {
    one: Regex,
    range: Regex,
    find: Regex,
    all: Regex,
}

static PATTERNS: LazyLock<Option<Patterns>> = LazyLock::new(|| {
    let (v, o, s) = (VERSION, OPERATORS, SPACE);
    Some(Patterns {
        one: Regex::new(&format!(r"\A{s}*({o}){s}*({v}){s}*\z")).ok()?,
        range: Regex::new(&format!("{s}*({v}){s}+-{s}+({v}){s}*")).ok()?,
        find: Regex::new(&format!("({o}){s}*({v})")).ok()?,
        all: Regex::new(&format!(r"\A({s}*({o}){s}*({v}){s}*)((?:{s}+|,{s}*)({o}){s}*({v}){s}*)*\z")).ok()?,
    })
});

/// Alternatives, each a list of conditions that all hold.
#[derive(Debug)]
pub(crate) struct Constraints(Vec<Vec<Constraint>>);

#[derive(Debug)]
struct Constraint {
    operator: String,
    version: Version,
    /// Some segment was left out or a wildcard.
    dirty: bool,
    minor_dirty: bool,
    patch_dirty: bool,
}

impl Constraints {
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some(patterns) = PATTERNS.as_ref() else { return Err("constraint Parser Error".to_owned()) };
        let text = rewrite_ranges(text, patterns);
        let alternative = |part: &str| {
            if !patterns.all.is_match(part) {
                return Err(format!("improper constraint: {part}"));
            }
            patterns.find.find_iter(part).map(|found| Constraint::parse(found.as_str(), patterns)).collect()
        };
        text.split("||").map(alternative).collect::<Result<_, _>>().map(Self)
    }

    pub fn check(&self, version: &Version) -> bool {
        self.0.iter().any(|all| all.iter().all(|one| one.check(version)))
    }
}

/// `1.2 - 3` is `>= 1.2, <= 3`.
fn rewrite_ranges(text: &str, patterns: &Patterns) -> String {
    let mut out = text.to_owned();
    for found in patterns.range.captures_iter(text) {
        let group = |i: usize| found.get(i).map_or("", |group| group.as_str());
        out = out.replacen(group(0), &format!(">= {}, <= {} ", group(1), group(11)), 1);
    }
    out
}

fn is_wildcard(segment: &str) -> bool {
    matches!(segment.trim_start_matches('.'), "x" | "X" | "*" | "")
}

impl Constraint {
    fn parse(text: &str, patterns: &Patterns) -> Result<Self, String> {
        let found = patterns.one.captures(text).ok_or_else(|| format!("improper constraint: {text}"))?;
        let group = |i: usize| found.get(i).map_or("", |group| group.as_str());
        let (major, minor, patch, pre) = (group(3), group(4), group(5), group(6));
        let (mut dirty, mut minor_dirty, mut patch_dirty) = (true, false, false);
        let version = if is_wildcard(major) {
            format!("0.0.0{pre}")
        } else if is_wildcard(minor) {
            minor_dirty = true;
            format!("{major}.0.0{pre}")
        } else if is_wildcard(patch) {
            patch_dirty = true;
            format!("{major}{minor}.0{pre}")
        } else {
            dirty = false;
            group(2).to_owned()
        };
        let version = Version::parse(&version).map_err(|_| "constraint Parser Error".to_owned())?;
        Ok(Self { operator: group(1).to_owned(), version, dirty, minor_dirty, patch_dirty })
    }

    fn check(&self, version: &Version) -> bool {
        let con = &self.version;
        // Pre-releases are only in ranges that name one.
        let unwanted_pre = !version.pre.is_empty() && con.pre.is_empty();
        let order = version.compare(con);
        match self.operator.as_str() {
            "!=" => self.differs(version, unwanted_pre),
            _ if unwanted_pre => false,
            "" | "=" if self.dirty => self.tilde(version),
            "" | "=" => order == Ordering::Equal,
            ">" => self.greater(version),
            "<" => order == Ordering::Less,
            ">=" | "=>" => order != Ordering::Less,
            "<=" | "=<" => self.at_most(version),
            "~" | "~>" => self.tilde(version),
            _ => self.caret(version),
        }
    }

    fn differs(&self, version: &Version, unwanted_pre: bool) -> bool {
        let con = &self.version;
        if self.dirty {
            if unwanted_pre {
                return false;
            }
            if con.major != version.major {
                return true;
            }
            if self.minor_dirty {
                return false;
            }
            if con.minor != version.minor {
                return true;
            }
            if self.patch_dirty {
                let pre = !version.pre.is_empty() || !con.pre.is_empty();
                return pre && compare_pre(&version.pre, &con.pre) != Ordering::Equal;
            }
            if con.patch != version.patch {
                return true;
            }
        }
        version.compare(con) != Ordering::Equal
    }

    fn greater(&self, version: &Version) -> bool {
        let con = &self.version;
        if !self.dirty {
            return version.compare(con) == Ordering::Greater;
        }
        match version.major.cmp(&con.major) {
            Ordering::Greater => true,
            Ordering::Less => false,
            Ordering::Equal if self.minor_dirty => false,
            Ordering::Equal if self.patch_dirty => version.minor > con.minor,
            Ordering::Equal => version.compare(con) == Ordering::Greater,
        }
    }

    fn at_most(&self, version: &Version) -> bool {
        let con = &self.version;
        if !self.dirty {
            return version.compare(con) != Ordering::Greater;
        }
        !(version.major > con.major
            || (version.major == con.major && version.minor > con.minor && !self.minor_dirty))
    }

    fn tilde(&self, version: &Version) -> bool {
        let con = &self.version;
        if version.compare(con) == Ordering::Less {
            return false;
        }
        let zero = (con.major, con.minor, con.patch) == (0, 0, 0);
        (zero && !self.minor_dirty && !self.patch_dirty)
            || (version.major == con.major && (version.minor == con.minor || self.minor_dirty))
    }

    fn caret(&self, version: &Version) -> bool {
        let con = &self.version;
        if version.compare(con) == Ordering::Less || version.major != con.major {
            return false;
        }
        if con.major > 0 || self.minor_dirty {
            return true;
        }
        if con.minor > 0 || self.patch_dirty {
            return version.minor == con.minor;
        }
        version.minor == 0 && con.patch == version.patch
    }
}
