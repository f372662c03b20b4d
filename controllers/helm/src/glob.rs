//! Path patterns: glob text comes in, a matcher over slash-separated names goes out.
//!
//! The rules are those of the library Helm matches `.Files.Glob` with: `*` and `?` stop at slashes, `**` does not,
//! `{a,b}` are alternatives, `[a-z]` and `[!a-z]` are one character.
use regex::Regex;

/// A compiled pattern.
#[derive(Clone, Debug)]
pub(crate) enum Glob {
    /// Every name.
    Any,
    Pattern(Regex),
}

/// A pattern that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a glob pattern")]
pub(crate) struct GlobError(String);

impl Glob {
    pub fn new(pattern: &str) -> Result<Self, GlobError> {
        let bad = || GlobError(pattern.to_owned());
        let source = translate(pattern).ok_or_else(bad)?;
        let regex = regex::RegexBuilder::new(&source).size_limit(1 << 20).build().map_err(|_| bad())?;
        Ok(Self::Pattern(regex))
    }

    pub fn matches(&self, name: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Pattern(regex) => regex.is_match(name),
        }
    }
}

/// The pattern as a regular expression, `None` when it is malformed.
fn translate(pattern: &str) -> Option<String> {
    let mut out = String::from(r"(?s)\A(?:");
    let mut chars = pattern.chars().peekable();
    let mut groups = 0usize;
    while let Some(c) = chars.next() {
        match c {
            '*' if chars.peek() == Some(&'*') => {
                while chars.next_if_eq(&'*').is_some() {}
                out.push_str(".*");
            }
            '*' => out.push_str("[^/]*"),
            '?' => out.push_str("[^/]"),
            '{' => {
                groups += 1;
                out.push_str("(?:");
            }
            '}' if groups > 0 => {
                groups -= 1;
                out.push(')');
            }
            ',' if groups > 0 => out.push('|'),
            '[' => class(&mut chars, &mut out)?,
            '\\' => out.push_str(&regex::escape(&chars.next()?.to_string())),
            c => out.push_str(&regex::escape(&c.to_string())),
        }
    }
    out.push_str(r")\z");
    (groups == 0).then_some(out)
}

/// `[abc]`, `[a-z]` and their negations, after the opening bracket.
fn class(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String) -> Option<()> {
    out.push('[');
    if chars.next_if_eq(&'!').is_some() {
        out.push('^');
    }
    let mut empty = true;
    loop {
        match chars.next()? {
            ']' if !empty => break,
            '\\' => out.push_str(&regex::escape(&chars.next()?.to_string())),
            '-' if !empty && chars.peek() != Some(&']') => out.push('-'),
            c => out.push_str(&regex::escape(&c.to_string())),
        }
        empty = false;
    }
    out.push(']');
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stop_at_slashes_and_double_stars_do_not() {
        let matches = |pattern: &str, name: &str| Glob::new(pattern).unwrap().matches(name);
        assert!(matches("config/*", "config/a.yaml"));
        assert!(!matches("config/*", "config/b/a.yaml"));
        assert!(matches("config/**", "config/b/a.yaml"));
        assert!(matches("**.yaml", "config/b/a.yaml"));
        assert!(matches("a?c", "abc"));
        assert!(!matches("a?c", "a/c"));
        assert!(matches("{a,b}.json", "b.json"));
        assert!(matches("[!a-c]x", "dx"));
        assert!(!matches("[!a-c]x", "bx"));
        assert!(matches(r"a\*", "a*"));
        assert!(Glob::new("{a").is_err());
        assert!(Glob::new("[a").is_err());
        assert!(matches("**", "a/b/c"));
    }
}
