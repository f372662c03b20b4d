//! Says what a deployment does not do that is suspended, only planned, pinned to a stored revision, or waits for an approval, and what
//! comes when that ends.

use emco_crds::deployment_intent_group::status::{Pending, PendingRequires};
use emco_crds::reasons::{DeploymentIntentGroupReason as Reason, is_progress};

use crate::approval::{Wait, short};
use crate::changes::Changes;
use crate::conditions::truncate;
use crate::rollup::Verdict;

/// Longest summary of what waits, in bytes.
const LONGEST: usize = 1024;

/// The field that suspends a deployment.
pub const FIELD: &str = "spec.suspend";

/// The field that suspends all of a project, as sentences name it.
pub fn field_of_project(project: &str) -> String {
    format!("{FIELD} of Project {project}")
}

/// The project that a sentence says a deployment is suspended by.
pub fn suspending_project(sentence: &str) -> Option<&str> {
    let (_, after) = sentence.split_once(&format!(" until {}", field_of_project("")))?;
    after.split_once(' ').map(|(project, _)| project)
}

/// Why the newest plan is not carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hold {
    /// Nothing is written to any cluster.
    pub suspended: bool,
    /// The field that has to be unset for that to end, and whose it is; empty = `spec.suspend`.
    pub suspending: String,
    /// Plans are made and not carried out (`spec.desiredState: Planned`).
    pub planned: bool,
    /// The revision that `spec.revision` pins.
    pub pinned: Option<i64>,
    /// The approval that the newest plan lacks.
    pub awaits: Option<Wait>,
    /// What comes when that ends, or why nothing could come.
    pub next: Next,
}

/// What comes when nothing is held back any more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Next {
    /// What runs already.
    #[default]
    Same,
    /// Another revision, with what it changes.
    Revision(i64, String),
    /// The newest plan is refused, for this reason.
    Refused(String),
}

impl Hold {
    /// What the condition Ready says of what runs, if a revision does. A failure that is observed stays one.
    pub fn ready(&self, running: Verdict, runs: bool) -> Verdict {
        let Verdict { status, reason, message } = running;
        let reason = match (status, self.suspended, self.pinned.is_some(), &self.awaits) {
            (_, true, _, _) if status == "True" || is_progress(reason) => Reason::Suspended.as_str(),
            (_, false, _, _) if !runs && self.planned => Reason::Planned.as_str(),
            // What is only planned is no pin that holds.
            ("True", false, true, None) if !self.planned => Reason::Pinned.as_str(),
            // Beside a revision that runs, a plan that waits says nothing about it.
            (_, false, _, Some(wait)) if !runs => wait.reason.as_str(),
            _ => reason,
        };
        if !runs && !self.suspended && (self.planned || self.awaits.is_some()) {
            return Verdict { status, reason, message: self.sentence() };
        }
        Verdict { status, reason, message: format!("{message}; {}", self.sentence()) }
    }

    /// What is held back, by which field, and what waits.
    pub fn sentence(&self) -> String {
        let what = match (self.suspended, self.pinned, &self.awaits) {
            (false, ..) if self.planned => {
                "spec.desiredState is Planned: no plan is carried out until it is Instantiated".to_owned()
            }
            (false, _, Some(wait)) => {
                return match &self.next {
                    Next::Revision(revision, _) => format!("revision {revision} waits: {}", wait.message),
                    Next::Same | Next::Refused(_) => wait.message.clone(),
                };
            }
            (true, _, _) => {
                let field = if self.suspending.is_empty() { FIELD } else { &self.suspending };
                format!("suspended: nothing is written to clusters until {field} is unset")
            }
            (false, Some(revision), None) => format!("spec.revision pins revision {revision}"),
            (false, None, None) => String::new(),
        };
        let next = match (&self.next, self.suspended || self.planned) {
            (Next::Same, _) => return what,
            (Next::Revision(revision, summary), true) => {
                let first = self.awaits.as_ref().map(|wait| format!("; {}", wait.message));
                format!("then comes revision {revision}: {summary}{}", first.unwrap_or_default())
            }
            (Next::Revision(revision, summary), false) => {
                format!("without it comes revision {revision}: {summary}")
            }
            (Next::Refused(why), _) => format!("without it the newest plan is refused: {why}"),
        };
        format!("{what}; {next}")
    }

    /// For `status.pending`: `digest` is that of the plan that would be carried out, with what it changes.
    pub fn pending(&self, digest: &str, changes: &Changes) -> Option<Pending> {
        let Next::Revision(revision, summary) = &self.next else { return None };
        let requires = self.awaits.as_ref().map_or(PendingRequires::Nothing, |wait| wait.requires);
        Some(pending(digest, *revision, requires, summary, changes))
    }

    /// Whether something else than what runs comes when this ends.
    pub const fn waits(&self) -> bool {
        matches!(self.next, Next::Revision(..))
    }
}

/// A `status.pending`.
pub fn pending(
    digest: &str,
    revision: i64,
    requires: PendingRequires,
    summary: &str,
    changes: &Changes,
) -> Pending {
    let mut pending = Pending {
        digest: digest.to_owned(),
        short_digest: short(digest),
        revision,
        requires,
        summary: truncate(summary, LONGEST),
        ..Pending::default()
    };
    changes.fill(&mut pending);
    pending
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(status: &'static str, reason: &'static str) -> Verdict {
        Verdict { status, reason, message: "2 of 2 clusters ready".to_owned() }
    }

    fn held(suspended: bool, pinned: Option<i64>) -> Hold {
        Hold { suspended, pinned, ..Hold::default() }
    }

    #[test]
    fn what_is_ready_stays_ready_and_says_why_nothing_is_done() {
        let ready = held(true, Some(2)).ready(running("True", "Ready"), true);
        assert_eq!((ready.status, ready.reason), ("True", "Suspended"));
        let ready = held(false, Some(2)).ready(running("True", "Ready"), true);
        assert_eq!((ready.status, ready.reason), ("True", "Pinned"));
        assert_eq!(ready.message, "2 of 2 clusters ready; spec.revision pins revision 2");
    }

    #[test]
    fn the_project_that_suspends_is_named_and_found_in_the_sentence() {
        let hold = Hold { suspending: field_of_project("team-a"), ..held(true, None) };
        let said = hold.ready(running("True", "Ready"), true).message;
        assert_eq!(suspending_project(&said), Some("team-a"), "{said}");
        assert_eq!(suspending_project(&held(true, None).sentence()), None);
        let removed = format!("nothing is removed until {} is unset", field_of_project("b"));
        assert_eq!(suspending_project(&removed), Some("b"));
    }

    #[test]
    fn what_was_under_way_is_suspended_and_what_failed_has_failed() {
        let hold = held(true, None);
        for (reason, said) in [
            ("Progressing", "Suspended"),
            ("NotReady", "Suspended"),
            ("Unreachable", "Unreachable"),
            ("ProgressDeadlineExceeded", "ProgressDeadlineExceeded"),
        ] {
            assert_eq!(hold.ready(running("False", reason), true).reason, said);
        }
        assert_eq!(held(false, Some(2)).ready(running("False", "Progressing"), true).reason, "Progressing");
    }

    #[test]
    fn what_waits_is_pending_and_requires_nothing() {
        let digest = format!("sha256:{}", "0123456789abcdef".repeat(4));
        let hold = Hold { next: Next::Revision(4, "web on 1 cluster".to_owned()), ..held(true, None) };
        let pending = hold.pending(&digest, &Changes::default()).unwrap();
        assert_eq!((pending.revision, pending.requires), (4, PendingRequires::Nothing));
        assert_eq!((pending.digest, pending.short_digest.as_str()), (digest, "0123456789ab"));
        assert_eq!(held(true, None).pending("sha256:0", &Changes::default()), None);
        let sentence = "suspended: nothing is written to clusters until spec.suspend is unset; then comes revision 4: web on 1 cluster";
        assert_eq!(hold.sentence(), sentence);
    }

    #[test]
    fn what_is_only_planned_leaves_what_runs_as_it_is() {
        let next = Next::Revision(4, "web on 1 cluster".to_owned());
        let hold = Hold { planned: true, next, ..Hold::default() };
        let sentence = "spec.desiredState is Planned: no plan is carried out until it is Instantiated; then comes revision 4: web on 1 cluster";
        let ready = hold.ready(running("True", "Ready"), true);
        assert_eq!((ready.status, ready.reason), ("True", "Ready"));
        assert_eq!(ready.message, format!("2 of 2 clusters ready; {sentence}"));
        let first = hold.ready(running("False", "Progressing"), false);
        assert_eq!((first.status, first.reason, first.message.as_str()), ("False", "Planned", sentence));
        let pinned = Hold { pinned: Some(2), ..hold };
        assert_eq!(pinned.ready(running("True", "Ready"), true).reason, "Ready", "the pin waits, too");
    }

    #[test]
    fn a_plan_that_awaits_approval_leaves_what_runs_as_it_is() {
        let wait = Wait {
            reason: Reason::AwaitingApproval,
            requires: PendingRequires::Approval,
            digest: "sha256:0123".to_owned(),
            message: "approve digest 0123".to_owned(),
        };
        let next = Next::Revision(4, "web on 1 cluster".to_owned());
        let hold = Hold { awaits: Some(wait), next, ..Hold::default() };
        let ready = hold.ready(running("True", "Ready"), true);
        assert_eq!((ready.status, ready.reason), ("True", "Ready"));
        assert_eq!(ready.message, "2 of 2 clusters ready; revision 4 waits: approve digest 0123");
        let first = hold.ready(running("False", "Progressing"), false);
        assert_eq!((first.status, first.reason), ("False", "AwaitingApproval"));
        assert_eq!(first.message, "revision 4 waits: approve digest 0123");
        assert_eq!(
            hold.pending("sha256:0123", &Changes::default()).unwrap().requires,
            PendingRequires::Approval
        );
        let pinned = Hold { pinned: Some(4), ..hold.clone() };
        let ready = pinned.ready(running("True", "Ready"), true);
        assert_eq!((ready.status, ready.reason), ("True", "Ready"), "a pin that waits holds nothing yet");
        assert_eq!(ready.message, "2 of 2 clusters ready; revision 4 waits: approve digest 0123");
        let suspended = Hold { suspended: true, ..hold };
        assert_eq!(suspended.ready(running("True", "Ready"), true).reason, "Suspended");
        assert!(
            suspended.sentence().ends_with("then comes revision 4: web on 1 cluster; approve digest 0123")
        );
    }
}
