//! The kinds of the table in `crds`, for the macros of this crate. In tests there is one more, which shows what a kind costs.

macro_rules! names {
    ($($store:ident: $kind:ident, $($column:tt),*;)*) => {
        pub use emco_crds::{$($kind,)*};
    };
}
emco_crds::each_kind!(all => names);

#[cfg(test)]
pub use crate::reconcile_tests::gadget::Gadget;

#[cfg(not(test))]
macro_rules! each_kind {
    ($which:ident => $use:ident) => {
        emco_crds::each_kind! { $which => $use }
    };
}
#[cfg(test)]
macro_rules! each_kind {
    ($which:ident => $use:ident) => {
        emco_crds::each_kind! { $which => $use [
            gadgets: Gadget, "gadgets", Editor, Nowhere, AtOnce, AsWatched;
        ] }
    };
}
pub(crate) use each_kind;
