//! Matches a name with a compiled pattern.
//!
//! Matchers know how many characters they match, if that is one number; trees of matchers rely on it. The first of
//! several alternatives decides wrongly for those whose length varies: `{*.json,a.yaml}` can be found to match six
//! characters only. Charts see that in Helm, so they see it here.
use memchr::memmem;

use crate::gotext::runes;

/// What names are separated by.
const SEPARATOR: u8 = b'/';

#[derive(Clone, Debug)]
pub(crate) enum Matcher {
    Nothing,
    Text(String),
    /// Everything up to a separator.
    Any,
    Super,
    /// One character, no separator.
    Single,
    List {
        chars: Vec<char>,
        not: bool,
    },
    Range {
        low: char,
        high: char,
        not: bool,
    },
    Contains {
        needle: String,
        not: bool,
    },
    Prefix(String),
    Suffix(String),
    PrefixSuffix(String, String),
    PrefixAny(String),
    SuffixAny(String),
    /// At least so many characters.
    Min(usize),
    /// At most so many characters.
    Max(usize),
    AnyOf(Vec<Self>),
    EveryOf(Vec<Self>),
    /// Matchers of known lengths one after the other.
    Row {
        length: usize,
        parts: Vec<Self>,
    },
    /// A matcher, with what stands on its sides.
    Tree(Box<Tree>),
}

#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub value: Matcher,
    pub left: Option<Matcher>,
    pub right: Option<Matcher>,
}

/// Where a matcher first matches, and the lengths its match can have there.
type Found = Option<(usize, Vec<usize>)>;

impl Matcher {
    /// The number of characters that match, if it is known.
    pub fn length(&self) -> Option<usize> {
        match self {
            Self::Nothing => Some(0),
            Self::Text(text) => Some(text.chars().count()),
            Self::Single | Self::List { .. } | Self::Range { .. } => Some(1),
            Self::Row { length, .. } => Some(*length),
            Self::AnyOf(parts) => {
                let mut length = None;
                for part in parts {
                    match (length, part.length()) {
                        (None, found) => length = found,
                        (Some(known), Some(found)) if known == found => {}
                        _ => return None,
                    }
                }
                length
            }
            Self::Tree(tree) => {
                let side = |side: &Option<Self>| side.as_ref().map_or(Some(0), Self::length);
                Some(tree.value.length()? + side(&tree.left)? + side(&tree.right)?)
            }
            _ => None,
        }
    }

    pub fn matches(&self, name: &[u8]) -> bool {
        match self {
            Self::Nothing => name.is_empty(),
            Self::Text(text) => text.as_bytes() == name,
            Self::Any => !name.contains(&SEPARATOR),
            Self::Super => true,
            Self::Single | Self::List { .. } | Self::Range { .. } => {
                let mut characters = runes(name);
                // The empty name is read as one invalid character.
                let first = characters.next().map_or('\u{FFFD}', |(_, c)| c);
                characters.next().is_none() && self.takes(first)
            }
            Self::Contains { needle, not } => find(name, needle).is_some() != *not,
            Self::Prefix(prefix) => name.starts_with(prefix.as_bytes()),
            Self::Suffix(suffix) => name.ends_with(suffix.as_bytes()),
            Self::PrefixSuffix(prefix, suffix) => {
                name.starts_with(prefix.as_bytes()) && name.ends_with(suffix.as_bytes())
            }
            Self::PrefixAny(prefix) => {
                name.strip_prefix(prefix.as_bytes()).is_some_and(|rest| !rest.contains(&SEPARATOR))
            }
            Self::SuffixAny(suffix) => {
                name.strip_suffix(suffix.as_bytes()).is_some_and(|rest| !rest.contains(&SEPARATOR))
            }
            Self::Min(limit) => runes(name).count() >= *limit && !name.is_empty(),
            Self::Max(limit) => runes(name).count() <= *limit,
            Self::AnyOf(parts) => parts.iter().any(|part| part.matches(name)),
            Self::EveryOf(parts) => parts.iter().all(|part| part.matches(name)),
            Self::Row { length, parts } => runes(name).count() == *length && row(parts, name),
            Self::Tree(tree) => tree.matches(name),
        }
    }

    /// Whether a matcher of one character takes this one.
    fn takes(&self, c: char) -> bool {
        match self {
            Self::Single => c != char::from(SEPARATOR),
            Self::List { chars, not } => chars.contains(&c) != *not,
            Self::Range { low, high, not } => (*low..=*high).contains(&c) != *not,
            _ => false,
        }
    }

    fn find(&self, name: &[u8]) -> Found {
        let until_separator =
            |name: &[u8]| name.iter().position(|byte| *byte == SEPARATOR).unwrap_or(name.len());
        match self {
            Self::Nothing => Some((0, vec![0])),
            Self::Text(text) => Some((find(name, text)?, vec![text.len()])),
            Self::Any => Some((0, ends(name, until_separator(name), 0))),
            Self::Super => Some((0, ends(name, name.len(), 0))),
            Self::Single | Self::List { .. } | Self::Range { .. } => {
                let (at, c) = runes(name).find(|(_, c)| self.takes(*c))?;
                Some((at, vec![c.len_utf8()]))
            }
            Self::Contains { needle, not: false } => {
                let after = find(name, needle)? + needle.len();
                Some((0, ends(name.get(after..)?, name.len() - after, after)))
            }
            Self::Contains { needle, not: true } => {
                Some((0, ends(name, find(name, needle).unwrap_or(name.len()), 0)))
            }
            Self::Prefix(prefix) => {
                let at = find(name, prefix)?;
                let rest = name.get(at + prefix.len()..)?;
                Some((at, ends(rest, rest.len(), prefix.len())))
            }
            Self::PrefixAny(prefix) => {
                let at = find(name, prefix)?;
                let rest = name.get(at + prefix.len()..)?;
                Some((at, ends(rest, until_separator(rest), prefix.len())))
            }
            Self::Suffix(suffix) => Some((0, vec![find(name, suffix)? + suffix.len()])),
            Self::SuffixAny(suffix) => {
                let at = find(name, suffix)?;
                let start =
                    name.get(..at)?.iter().rposition(|byte| *byte == SEPARATOR).map_or(0, |at| at + 1);
                Some((start, vec![at + suffix.len() - start]))
            }
            Self::PrefixSuffix(prefix, suffix) => {
                let at = find(name, prefix)?;
                let mut rest = name.get(at..)?;
                let mut lengths = Vec::new();
                while let Some(end) = memmem::rfind(rest, suffix.as_bytes()) {
                    lengths.push(end + suffix.len());
                    rest = rest.get(..end)?;
                }
                lengths.reverse();
                (!lengths.is_empty()).then_some((at, lengths))
            }
            Self::Min(limit) => {
                let lengths: Vec<usize> =
                    runes(name).skip(limit.saturating_sub(1)).map(|(at, c)| at + c.len_utf8()).collect();
                (!lengths.is_empty()).then_some((0, lengths))
            }
            Self::Max(limit) => {
                let lengths = runes(name).take(*limit).map(|(at, c)| at + c.len_utf8());
                Some((0, std::iter::once(0).chain(lengths).collect()))
            }
            Self::AnyOf(parts) => any_of(parts, name),
            Self::EveryOf(parts) => every_of(parts, name),
            Self::Row { length, parts } => runes(name)
                .map(|(at, _)| at)
                .take_while(|at| name.len() - at >= *length)
                .find(|at| name.get(*at..).is_some_and(|rest| row(parts, rest)))
                .map(|at| (at, vec![*length])),
            Self::Tree(_) => None,
        }
    }
}

fn find(name: &[u8], needle: &str) -> Option<usize> {
    memmem::find(name, needle.as_bytes())
}

/// The places where characters of a name begin, and its end, moved by `from`.
fn ends(name: &[u8], end: usize, from: usize) -> Vec<usize> {
    let name = name.get(..end).unwrap_or(name);
    runes(name).map(|(at, _)| from + at).chain(std::iter::once(from + end)).collect()
}

/// The earliest match, with all lengths alternatives find there.
fn any_of(parts: &[Matcher], name: &[u8]) -> Found {
    let mut best: Found = None;
    for (at, lengths) in parts.iter().filter_map(|part| part.find(name)) {
        match &mut best {
            Some((first, _)) if *first < at => {}
            Some((first, known)) if *first == at => {
                known.extend(lengths);
                known.sort_unstable();
                known.dedup();
            }
            _ => best = Some((at, lengths)),
        }
    }
    best
}

/// A match of all parts. They are found from the start on, as all parts that occur here are.
fn every_of(parts: &[Matcher], name: &[u8]) -> Found {
    let mut common: Option<Vec<usize>> = None;
    for part in parts {
        let (_, lengths) = part.find(name)?;
        let left = match common {
            None => lengths,
            Some(known) => known.into_iter().filter(|length| lengths.contains(length)).collect(),
        };
        if left.is_empty() {
            return None;
        }
        common = Some(left);
    }
    Some((0, common.unwrap_or_default()))
}

/// Whether parts of known lengths match one after the other. The last character of each is taken for one byte.
fn row(parts: &[Matcher], name: &[u8]) -> bool {
    let mut rest = name;
    for part in parts {
        let length = part.length().unwrap_or(0);
        let taken: Vec<usize> = runes(rest).map(|(at, _)| at).take(length.max(1)).collect();
        let (true, Some(last)) = (taken.len() >= length, taken.last()) else { return false };
        // Without a length to reach, everything is taken.
        let last = if length == 0 { runes(rest).map(|(at, _)| at).last().unwrap_or(0) } else { *last };
        let Some((head, tail)) = rest.split_at_checked(last + 1) else { return false };
        if !part.matches(head) {
            return false;
        }
        rest = tail;
    }
    true
}

impl Tree {
    fn matches(&self, name: &[u8]) -> bool {
        let known = |side: &Option<Matcher>| side.as_ref().map_or(Some(0), Matcher::length);
        let (left, right) = (known(&self.left), known(&self.right));
        if let (Some(left), Some(right), Some(value)) = (left, right, self.value.length())
            && left + value + right > name.len()
        {
            return false;
        }
        let fits =
            |side: &Option<Matcher>, text: &[u8]| side.as_ref().map_or(text.is_empty(), |m| m.matches(text));
        let mut offset = left.unwrap_or(0);
        let Some(limit) = name.len().checked_sub(right.unwrap_or(0)) else { return false };
        while offset < limit {
            let Some((at, lengths)) = name.get(offset..limit).and_then(|middle| self.value.find(middle))
            else {
                return false;
            };
            let at = offset + at;
            if name.get(..at).is_some_and(|before| fits(&self.left, before))
                && lengths.iter().any(|length| fits(&self.right, name.get(at + length..).unwrap_or_default()))
            {
                return true;
            }
            let step =
                name.get(at..).and_then(|rest| runes(rest).nth(1)).map_or(name.len() - at, |(next, _)| next);
            offset = at + step;
        }
        false
    }
}
