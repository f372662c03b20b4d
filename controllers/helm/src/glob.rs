//! Matches slash-separated names with glob patterns.
//!
//! The rules are those of the library Helm matches `.Files.Glob` with: `*` and `?` stop at slashes, `**` does not,
//! `{a,b}` are alternatives, `[abc]`, `[a-z]` and `[!a-z]` are one character.
mod compile;
mod matcher;
mod parse;

use matcher::Matcher;

/// Longer patterns are refused: the work to compile one grows with a power of its length.
const MAX_LENGTH: usize = 1000;

/// A compiled pattern.
#[derive(Clone, Debug)]
pub(crate) enum Glob {
    /// Every name.
    Any,
    Pattern(Matcher),
}

/// A pattern that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a glob pattern")]
pub(crate) struct GlobError(String);

impl Glob {
    pub fn new(pattern: &str) -> Result<Self, GlobError> {
        let short = Some(pattern).filter(|pattern| pattern.len() <= MAX_LENGTH);
        let tree = short.and_then(parse::parse).ok_or_else(|| GlobError(pattern.to_owned()))?;
        Ok(Self::Pattern(compile::compile(&tree)))
    }

    pub fn matches(&self, name: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Pattern(matcher) => matcher.matches(name.as_bytes()),
        }
    }
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
        assert!(matches("{a", "a") && !matches("{a", "ab"));
        assert!(matches("**", "a/b/c"));
    }

    #[test]
    fn a_bracket_holds_one_range_or_one_list() {
        for bad in ["[a", "[]", "[]]", "[!]", "[a-z0-9]", "[a-cx]", "[z-a]", "[a-]"] {
            assert!(Glob::new(bad).is_err(), "{bad}");
        }
        assert!(Glob::new(r"[\]x]").unwrap().matches("]"));
    }

    /// What the library does with these surprises, but charts get these files from Helm.
    #[test]
    fn alternatives_of_varying_length_count_as_long_as_a_later_fixed_one() {
        let matches = |pattern: &str, name: &str| Glob::new(pattern).unwrap().matches(name);
        assert!(!matches("x/{y/*,y.conf}", "x/y/z.conf"));
        assert!(matches("x/{y/*,y.conf}", "x/y/abcd"));
        assert!(matches("x/{y.conf,y/*}", "x/y/z.conf"));
    }
}
