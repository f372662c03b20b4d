//! Holds the outcome of placement: the chosen clusters of an app, and the rejected ones by reason.

use crate::identity::ClusterId;

/// How many clusters were not chosen for a reason, with one example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// `LabelMissing`, `NotInLogicalCloud`, `Cordoned`, `NotChosen` ...
    pub reason: String,
    /// How many.
    pub clusters: usize,
    /// One of them.
    pub example: ClusterId,
    /// The smallest change that would admit the example.
    pub needs: String,
}

/// Where one app goes, and why not elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppPlacement {
    /// Chosen clusters.
    pub chosen: Vec<ClusterId>,
    /// By reason, most clusters first.
    pub rejected: Vec<Rejected>,
}
