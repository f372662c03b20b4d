//! The outlook of a deployment on one cluster, as far as its placement depends on it: it looks again where that becomes another.

use super::demand::{Demand, Demands};
use super::nodes::NodeFacts;
use super::room::{Room, Verdict};

/// Verdicts on the apps that need something: of each alone, and of each with all before it; with the weights of what they prefer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outlook(Vec<(Kind, Kind, u32)>);

/// A verdict without its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Fits,
    Missing,
    InUse,
    Unknown,
}

impl Kind {
    const fn of(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Fits => Self::Fits,
            Verdict::Missing(_) => Self::Missing,
            Verdict::InUse(_) => Self::InUse,
            Verdict::Unknown(_) => Self::Unknown,
        }
    }
}

/// The outlook on one cluster.
pub fn outlook(demands: &Demands, facts: Option<&NodeFacts>) -> Outlook {
    let columns = demands.columns();
    let room = Room::new(facts, &columns);
    let judged = |demands: &[&Demand]| {
        (Kind::of(&room.takes(demands)), Kind::of(&room.carries(demands)), room.weight(demands))
    };
    let mut all: Vec<&Demand> = Vec::new();
    let mut seen = Vec::with_capacity(2 * demands.0.len());
    for app in demands.0.values() {
        let own: Vec<&Demand> = app.iter().map(AsRef::as_ref).collect();
        all.extend(&own);
        seen.push(judged(&own));
        if all.len() > own.len() {
            seen.push(judged(&all));
        }
    }
    Outlook(seen)
}
