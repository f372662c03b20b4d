//! Says why there is no plan: what every stage refuses with.

use emco_crds::conditions::types::STAGES;
use emco_crds::reasons::{DeploymentIntentGroupReason as Reason, is_progress};

use crate::conditions::shorten;
use crate::text::counted;

/// Why there is no plan. Everything a condition needs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The condition that becomes False: `Resolved`, `Placed` or `Rendered`.
    pub condition: &'static str,
    /// From the closed set of reasons.
    pub reason: &'static str,
    /// A sentence that names the object, the field, what is wrong and what to do. No times, no generated names.
    pub message: String,
    /// Whether only an edit can cure it (Stalled) or it may cure itself (Reconciling).
    pub stalled: bool,
}

impl Refusal {
    /// Longest message, in bytes: what comes from charts and templates has no bound of its own.
    const LONGEST: usize = 1024;
    /// Refusals that are told in full where there are several.
    const TOLD: usize = 3;

    /// A refusal; whether it is stalled follows from the reason.
    pub fn new(condition: &'static str, reason: Reason, message: impl Into<String>) -> Box<Self> {
        Self::of(condition, reason.as_str(), reason.stalled(), message.into())
    }

    /// A refusal with a reason of another kind.
    pub fn of(
        condition: &'static str,
        reason: &'static str,
        stalled: bool,
        mut message: String,
    ) -> Box<Self> {
        // A table of kubectl shows the first line of a message, and a log has one.
        if message.contains('\n') {
            let lines = message.lines().map(str::trim).filter(|line| !line.is_empty());
            message = lines.collect::<Vec<_>>().join(" ");
        }
        let message = shorten(&message, Self::LONGEST);
        Box::new(Self { condition, reason, message, stalled })
    }

    /// Several refusals as one: of the first stage among them, then what only an edit cures. What is on its way is no fault beside a
    /// fault. None of none.
    pub fn all(refusals: impl IntoIterator<Item = Box<Self>>) -> Option<Box<Self>> {
        let mut all: Vec<Box<Self>> = Vec::new();
        for refusal in refusals {
            if !all.iter().any(|known| known.message == refusal.message) {
                all.push(refusal);
            }
        }
        if all.iter().any(|refusal| !is_progress(refusal.reason)) {
            all.retain(|refusal| !is_progress(refusal.reason));
        }
        let stage = |refusal: &Self| STAGES.iter().position(|stage| *stage == refusal.condition);
        all.sort_by_key(|refusal| (stage(refusal), !refusal.stalled));
        let first = all.first()?;
        let (number, stalled) = (all.len(), all.iter().any(|refusal| refusal.stalled));
        if number == 1 {
            return all.pop();
        }
        // Each finds room, however long another one is.
        let room = Self::LONGEST / Self::TOLD - 24;
        let told = all.iter().take(Self::TOLD).zip(1..);
        let told = told.map(|(refusal, at)| format!("({at}) {}", shorten(&refusal.message, room)));
        let more = match number.saturating_sub(Self::TOLD) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let told = told.collect::<Vec<_>>().join("; ");
        let message = format!("{}: {told}{more}", counted(number, "fault"));
        Some(Self::of(first.condition, first.reason, stalled, message))
    }
}

#[cfg(test)]
mod tests {
    use emco_crds::conditions::types::{RENDERED, RESOLVED};

    use super::*;

    fn absent(name: &str) -> Box<Refusal> {
        Refusal::new(RESOLVED, Reason::SecretNotFound, format!("Secret {name} does not exist"))
    }

    #[test]
    fn two_refusals_at_one_time_are_both_told() {
        let wrong = || Refusal::new(RENDERED, Reason::ValuesInvalid, "app web: no map");
        assert_eq!(Refusal::all([]), None);
        assert_eq!(Refusal::all([wrong(), wrong()]), Some(wrong()), "the same once");
        let both = Refusal::all([wrong(), absent("a")]).unwrap();
        assert_eq!((both.condition, both.reason), (RESOLVED, "SecretNotFound"), "the first stage");
        assert!(both.stalled, "one of them only an edit cures");
        assert_eq!(both.message, "2 faults: (1) Secret a does not exist; (2) app web: no map");
        let coming = Refusal::new(RESOLVED, Reason::Fetching, "app db: its chart is being fetched");
        assert_eq!(Refusal::all([coming.clone(), wrong()]), Some(wrong()), "what comes is no fault");
        assert_eq!(Refusal::all([coming.clone()]), Some(coming));
    }

    #[test]
    fn many_long_refusals_are_counted_and_each_that_is_told_has_room() {
        let long = |name: &str| absent(&name.repeat(800));
        let all = Refusal::all(["a", "b", "c", "d", "e"].map(long)).unwrap();
        assert!(all.message.len() <= Refusal::LONGEST, "{}", all.message.len());
        for words in ["5 faults: (1) Secret aaa", "; (2) Secret bbb", "; (3) Secret ccc", "; and 2 more"] {
            assert!(all.message.contains(words), "{words}: {}", all.message);
        }
    }
}
