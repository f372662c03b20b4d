//! Compares versions of charts and clusters by the rules of Helm's semver library.
use crate::funcs::{self, Ctx, Shared};
use crate::limits::{Limits, Meter, apart};
use crate::semver::{Constraints, Version};
use crate::value::Value;

/// Calls a library function outside any template.
pub(crate) fn call(name: &'static str, args: &[Value]) -> Option<Value> {
    let def = funcs::find(name)?;
    // A render of this thread goes on with its own account.
    apart(|| {
        let shared = Shared::new(Meter::start(&Limits::default()), None, (0, 0));
        let mut ctx = Ctx::new(&shared, "", name);
        (def.call)(&mut ctx, args).ok()
    })
}

/// Whether a text is a semantic version, leniently read.
pub(crate) fn is_version(text: &str) -> bool {
    Version::parse(text).is_ok()
}

/// Whether a version lies in a range such as `>=1.2 <2 || ^3`. A malformed range or version lies in none.
pub(crate) fn in_range(range: &str, version: &str) -> bool {
    match (Constraints::parse(range), Version::parse(version)) {
        (Ok(range), Ok(version)) => range.check(&version),
        _ => false,
    }
}
