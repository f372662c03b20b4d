//! Compiles regular expressions in Go's syntax (RE2).
mod class;
mod translate;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use regex::bytes::{Regex, RegexBuilder};

/// Compiled patterns kept per thread: charts match in loops.
const CACHED: usize = 24;
/// Bytes one compiled pattern may take.
const SIZE_LIMIT: usize = 2 << 20;
/// Bytes that patterns of charts take; larger ones are for short texts only.
const SMALL: usize = 64 << 10;
/// Bytes of a text that is searched. A search takes as many steps as the text and the pattern have together in the worst case,
/// and nothing ends it before.
const LONGEST: usize = 1 << 20;
const LONGEST_OF_LARGE: usize = 32 << 10;
/// Bytes that searching with one pattern may take for the states it keeps.
const STATES_LIMIT: usize = 1 << 20;
/// Longer patterns are refused.
const LENGTH_LIMIT: usize = 64 << 10;

type Cache = BTreeMap<Vec<u8>, Result<Rc<Compiled>, String>>;

thread_local! {
    static COMPILED: RefCell<Cache> = const { RefCell::new(BTreeMap::new()) };
}

/// A compiled pattern.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub regex: Regex,
    /// The names of the groups from the first on. Several groups may have one name.
    pub names: Vec<Option<String>>,
    longest: usize,
}

impl Compiled {
    /// Refuses a text that takes too long to search.
    pub fn admits(&self, text: &[u8]) -> Result<(), String> {
        if text.len() > self.longest {
            let longest = self.longest;
            return Err(format!(
                "a text of more than {longest} bytes is too long for this regular expression"
            ));
        }
        Ok(())
    }
}

/// The compiled form of a pattern, or Go's complaint about it.
pub(crate) fn compile(pattern: &[u8]) -> Result<Rc<Compiled>, String> {
    COMPILED.with_borrow_mut(|cache| {
        if let Some(known) = cache.get(pattern) {
            return known.clone();
        }
        let compiled = build(pattern).map(Rc::new);
        if cache.len() >= CACHED {
            cache.clear();
        }
        cache.insert(pattern.to_vec(), compiled.clone());
        compiled
    })
}

/// The compiled form of a pattern for keeping, `None` for one that is large or none.
pub(crate) fn small(pattern: &str) -> Option<Compiled> {
    build(pattern.as_bytes()).ok().filter(|compiled| compiled.longest == LONGEST)
}

fn build(pattern: &[u8]) -> Result<Compiled, String> {
    let text = std::str::from_utf8(pattern).map_err(|_| "error parsing regexp: invalid UTF-8".to_owned())?;
    if text.len() > LENGTH_LIMIT {
        return Err("error parsing regexp: expression too large".to_owned());
    }
    let (translated, names) =
        translate::translate(text).map_err(|problem| format!("error parsing regexp: {problem}"))?;
    let within = |bytes| {
        let mut builder = RegexBuilder::new(&translated);
        builder.size_limit(bytes).dfa_size_limit(STATES_LIMIT).nest_limit(250).build()
    };
    let (regex, longest) = match within(SMALL) {
        Ok(regex) => (Ok(regex), LONGEST),
        Err(_) => (within(SIZE_LIMIT), LONGEST_OF_LARGE),
    };
    regex
        .map(|regex| Compiled { regex, names, longest })
        .map_err(|error| format!("error parsing regexp: {}: `{text}`", first_line(&error.to_string())))
}

fn first_line(text: &str) -> &str {
    text.lines().last().unwrap_or(text).trim()
}
