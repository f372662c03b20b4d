//! Judges approvals: whether a plan may be carried out, and what became of each approval.

use std::collections::BTreeSet;

use emco_crds::deployment_approval::{ApprovalState, Decision};
use emco_crds::deployment_intent_group::status::PendingRequires;
use emco_crds::project::{ApprovalMode, ApprovalScope};
use emco_crds::reasons::DeploymentIntentGroupReason as Reason;

pub mod without_plan;

/// One `DeploymentApproval` of a deployment intent group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vote {
    /// When it was created, in seconds; the older of two comes first.
    pub created: i64,
    /// Its name.
    pub name: String,
    /// The digest it speaks of.
    pub digest: String,
    /// Yes or no.
    pub decision: Decision,
    /// Who created it.
    pub by: String,
}

/// Digests of a plan or of a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digests<'a> {
    /// Over what people wrote.
    pub inputs: &'a str,
    /// Over the inputs, the assignment and the manifests.
    pub plan: &'a str,
}

impl Digests<'_> {
    fn has(&self, digest: &str) -> bool {
        self.inputs == digest || self.plan == digest
    }
}

/// A plan, and what the project asks for of it.
#[derive(Clone, Debug)]
pub struct Asked<'a> {
    /// Name of the deployment intent group.
    pub group: &'a str,
    /// Its namespace.
    pub namespace: &'a str,
    /// The plan.
    pub plan: Digests<'a>,
    /// The revision that clusters are to have now; `None` before the first.
    pub runs: Option<Digests<'a>>,
    /// Whether plans wait.
    pub mode: ApprovalMode,
    /// What an approval covers.
    pub scope: ApprovalScope,
    /// How the plan goes beyond the removal budget.
    pub over: Option<&'a str>,
}

/// What a plan needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Required {
    /// Nothing: it runs already, or the project asks for nothing.
    Nothing,
    /// An approval of what people wrote, or of exactly this plan.
    Inputs,
    /// An approval of exactly this plan.
    Plan,
}

/// Why a plan is not carried out yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Reason of the condition Approved.
    pub reason: Reason,
    /// What it waits for.
    pub requires: PendingRequires,
    /// The digest to approve.
    pub digest: String,
    /// What is wrong, and the command that helps.
    pub message: String,
}

/// The first twelve digits of a digest.
pub fn short(digest: &str) -> String {
    digest.trim_start_matches("sha256:").chars().take(12).collect()
}

impl Asked<'_> {
    /// What the plan needs.
    pub fn required(&self) -> Required {
        if self.runs.is_some_and(|runs| runs.plan == self.plan.plan) {
            return Required::Nothing;
        }
        match (self.over.is_some(), self.mode, self.scope) {
            (true, _, _) | (false, ApprovalMode::Manual, ApprovalScope::Plan) => Required::Plan,
            (false, ApprovalMode::Automatic, _) => Required::Nothing,
            (false, ApprovalMode::Manual, ApprovalScope::Inputs) => {
                let runs = self.runs.is_some_and(|runs| runs.inputs == self.plan.inputs);
                if runs { Required::Nothing } else { Required::Inputs }
            }
        }
    }

    /// Why the plan waits; `None` where it may be carried out.
    pub fn wait(&self, votes: &[Vote]) -> Option<Wait> {
        let required = self.required();
        let (digest, covers) = match required {
            Required::Nothing => return None,
            Required::Inputs => (self.plan.inputs, self.plan),
            Required::Plan => (self.plan.plan, Digests { inputs: self.plan.plan, plan: self.plan.plan }),
        };
        let requires = if self.over.is_some() {
            PendingRequires::RemovalConfirmation
        } else {
            PendingRequires::Approval
        };
        let wait = |reason, message| Some(Wait { reason, requires, digest: digest.to_owned(), message });
        // A rejection of the inputs rejects every plan of them.
        let no = first(votes, |vote| vote.decision == Decision::Rejected && self.plan.has(&vote.digest));
        if let Some(Vote { name, by, digest, .. }) = no {
            let short = short(digest);
            let message = format!(
                "DeploymentApproval {name} by {by} rejects digest {short}: change what is deployed, or delete that approval"
            );
            return wait(Reason::Rejected, message);
        }
        let yes = |vote: &Vote| vote.decision == Decision::Approved;
        if first(votes, |vote| yes(vote) && covers.has(&vote.digest)).is_some() {
            return None;
        }
        let Self { group, namespace, .. } = self;
        let command =
            format!("approve digest {}: kubectl emco approve dig/{group} -n {namespace}", short(digest));
        if let Some(over) = self.over {
            return wait(Reason::RemovalNeedsConfirmation, format!("{over}; {command}"));
        }
        // Approvals of earlier revisions did their work: only the newest says what is meant now.
        // Their times are whole seconds, so none of one second is known to be the last of it.
        let known =
            |vote: &Vote| self.plan.has(&vote.digest) || self.runs.is_some_and(|runs| runs.has(&vote.digest));
        let newest = last(votes, yes).filter(|newest| {
            let mut same = votes.iter().filter(|vote| yes(vote) && vote.created == newest.created);
            !same.any(known)
        });
        match newest {
            Some(vote) => {
                let (name, other) = (&vote.name, short(&vote.digest));
                let message = format!(
                    "DeploymentApproval {name} is of digest {other}, which is not this plan's; {command}"
                );
                wait(Reason::StaleApproval, message)
            }
            None => wait(Reason::AwaitingApproval, command),
        }
    }
}

/// The approval that covers a revision: of exactly its plan if there is one, else of its inputs.
pub fn covering<'a>(votes: &'a [Vote], revision: Digests<'_>) -> Option<&'a Vote> {
    let yes = Decision::Approved;
    of(votes, revision.plan, yes).or_else(|| of(votes, revision.inputs, yes))
}

/// The first vote on a digest.
fn of<'a>(votes: &'a [Vote], digest: &str, decision: Decision) -> Option<&'a Vote> {
    first(votes, |vote| vote.digest == digest && vote.decision == decision)
}

fn first(votes: &[Vote], which: impl Fn(&Vote) -> bool) -> Option<&Vote> {
    votes.iter().filter(|vote| which(vote)).min_by(|a, b| (a.created, &a.name).cmp(&(b.created, &b.name)))
}

fn last(votes: &[Vote], which: impl Fn(&Vote) -> bool) -> Option<&Vote> {
    votes.iter().filter(|vote| which(vote)).max_by(|a, b| (a.created, &a.name).cmp(&(b.created, &b.name)))
}

/// Where the digest of an approval stands with the deployment that the approval names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// There is no such deployment.
    NoGroup,
    /// A revision with the digest runs.
    Runs(i64),
    /// A revision with the digest ran before.
    Ran(i64),
    /// The plan that waits has it.
    Pending,
    /// Another deployment of the namespace has it.
    Elsewhere(String),
    /// No plan and no revision has it; this other digest waits, if any.
    Unknown(Option<String>),
}

/// What became of an approval: its state, the revision it is about, and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fate {
    /// For `status.state`.
    pub state: ApprovalState,
    /// For `status.revision`.
    pub revision: Option<i64>,
    /// Why.
    pub message: String,
}

/// What became of `vote`, one of `votes` of the deployment `group`. `before` is the state that was written last: a digest that was
/// seen once and is not there any more is stale, and one that never was may still come.
pub fn fate(
    vote: &Vote,
    votes: &[Vote],
    group: &str,
    standing: &Standing,
    before: Option<ApprovalState>,
) -> Fate {
    let is = |state, revision, message| Fate { state, revision, message };
    let no = of(votes, &vote.digest, Decision::Rejected);
    let yes = of(votes, &vote.digest, Decision::Approved);
    let seen = !matches!(before, None | Some(ApprovalState::Waiting));
    match (standing, vote.decision) {
        (Standing::NoGroup, _) => {
            let message = format!(
                "there is no DeploymentIntentGroup {group} in this namespace: create it, or create an approval that names another"
            );
            is(ApprovalState::Waiting, None, message)
        }
        (Standing::Runs(revision), Decision::Approved) => match yes {
            Some(first) if first.name != vote.name => {
                let message = format!("revision {revision} is approved by {} already", first.name);
                is(ApprovalState::Superseded, Some(*revision), message)
            }
            _ => is(ApprovalState::InEffect, Some(*revision), format!("revision {revision}")),
        },
        (Standing::Runs(revision), Decision::Rejected) => {
            let message = format!(
                "revision {revision} of this digest runs already, and a rejection takes nothing back: change what is deployed, or pin an earlier revision"
            );
            is(ApprovalState::Stale, Some(*revision), message)
        }
        (Standing::Pending, Decision::Rejected) => match no {
            Some(first) if first.name != vote.name => {
                is(ApprovalState::Superseded, None, format!("{} rejects the digest already", first.name))
            }
            _ => is(ApprovalState::InEffect, None, "the plan is not carried out".to_owned()),
        },
        (Standing::Pending, Decision::Approved) => match (no, yes) {
            (Some(no), _) => {
                let message = format!("{} rejects the same digest, and any rejection wins", no.name);
                is(ApprovalState::Superseded, None, message)
            }
            (None, Some(first)) if first.name != vote.name => {
                is(ApprovalState::Superseded, None, format!("{} approves the digest already", first.name))
            }
            _ => is(ApprovalState::InEffect, None, "the plan that waits has this digest".to_owned()),
        },
        // Nothing that changes later: each of many old approvals would be written again.
        (Standing::Ran(revision), _) => {
            is(ApprovalState::Stale, Some(*revision), format!("revision {revision} ran, and does no more"))
        }
        (Standing::Elsewhere(other), _) => {
            let message = format!(
                "the digest is of DeploymentIntentGroup {other}, and this approval names {group}: create an approval that names {other}"
            );
            is(ApprovalState::Waiting, None, message)
        }
        (Standing::Unknown(pending), _) => {
            let has = format!("no plan of DeploymentIntentGroup {group} has this digest");
            if seen {
                return is(ApprovalState::Stale, None, format!("{has} any more"));
            }
            let waits = pending
                .as_deref()
                .map(|digest| format!("; the plan that waits has digest {}", short(digest)));
            is(ApprovalState::Waiting, None, format!("{has} yet{}", waits.unwrap_or_default()))
        }
    }
}

/// The same of an approval that names a wave; `waves` are those that the deployment has.
pub fn fate_of_wave(
    vote: &Vote,
    votes: &[Vote],
    group: &str,
    standing: &Standing,
    before: Option<ApprovalState>,
    (wave, waves): (&str, &BTreeSet<String>),
) -> Fate {
    match (standing, vote.decision) {
        (Standing::Runs(_) | Standing::Pending, _) if !waves.contains(wave) => {
            let names = waves.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            let has = if names.is_empty() { "no spec.rollout.waves" } else { names.as_str() };
            let message = format!(
                "DeploymentIntentGroup {group} has no wave {wave}, it has {has}: create an approval that names one of its waves"
            );
            Fate { state: ApprovalState::Waiting, revision: None, message }
        }
        (Standing::Runs(revision), Decision::Rejected) => {
            let message = format!("the rollout of revision {revision} stops at wave {wave}");
            Fate { state: ApprovalState::InEffect, revision: Some(*revision), message }
        }
        (Standing::Runs(revision), Decision::Approved)
            if of(votes, &vote.digest, Decision::Rejected).is_some() =>
        {
            let message = format!("another approval rejects wave {wave}, and any rejection wins");
            Fate { state: ApprovalState::Superseded, revision: Some(*revision), message }
        }
        _ => fate(vote, votes, group, standing, before),
    }
}

#[cfg(test)]
mod tests;
