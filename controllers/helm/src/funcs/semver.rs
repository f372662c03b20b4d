//! Version functions.
use super::args::{def, fail, lossy};
use super::{FuncDef, Param};
use crate::semver::{Constraints, Version, VersionObject};

use Param::String as Str;

pub(super) const FUNCS: &[FuncDef] = &[
    def("semver", &[Str], |_, a| match Version::parse(&lossy(a, 0)) {
        Ok(version) => Ok(VersionObject::pointer(version)),
        Err(error) => fail(error),
    }),
    def("semverCompare", &[Str, Str], |_, a| {
        let verdict = Constraints::parse(&lossy(a, 0))
            .and_then(|range| Ok(range.check(&Version::parse(&lossy(a, 1))?)));
        verdict.map_or_else(fail, |verdict| Ok(verdict.into()))
    }),
];
