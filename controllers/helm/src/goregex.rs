//! Go's regular expressions: a pattern in RE2's syntax comes in, a compiled one goes out.
mod class;
mod translate;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use regex::bytes::{Regex, RegexBuilder};

/// Compiled patterns kept per thread: charts match in loops.
const CACHED: usize = 256;
/// Bytes one compiled pattern may take.
const SIZE_LIMIT: usize = 10 << 20;
/// Longer patterns are refused.
const LENGTH_LIMIT: usize = 64 << 10;

type Cache = BTreeMap<Vec<u8>, Result<Rc<Compiled>, String>>;

thread_local! {
    static COMPILED: RefCell<Cache> = const { RefCell::new(BTreeMap::new()) };
}

/// A compiled pattern.
pub(crate) struct Compiled {
    pub regex: Regex,
    /// The names of the groups from the first on. Several groups may have one name.
    pub names: Vec<Option<String>>,
}

/// The compiled form of a pattern, or Go's complaint about it.
pub(crate) fn compile(pattern: &[u8]) -> Result<Rc<Compiled>, String> {
    COMPILED.with_borrow_mut(|cache| {
        if let Some(known) = cache.get(pattern) {
            return known.clone();
        }
        let compiled = build(pattern);
        if cache.len() >= CACHED {
            cache.clear();
        }
        cache.insert(pattern.to_vec(), compiled.clone());
        compiled
    })
}

fn build(pattern: &[u8]) -> Result<Rc<Compiled>, String> {
    let text = std::str::from_utf8(pattern).map_err(|_| "error parsing regexp: invalid UTF-8".to_owned())?;
    if text.len() > LENGTH_LIMIT {
        return Err("error parsing regexp: expression too large".to_owned());
    }
    let (translated, names) =
        translate::translate(text).map_err(|problem| format!("error parsing regexp: {problem}"))?;
    RegexBuilder::new(&translated)
        .size_limit(SIZE_LIMIT)
        .nest_limit(250)
        .build()
        .map(|regex| Rc::new(Compiled { regex, names }))
        .map_err(|error| format!("error parsing regexp: {}: `{text}`", first_line(&error.to_string())))
}

fn first_line(text: &str) -> &str {
    text.lines().last().unwrap_or(text).trim()
}
