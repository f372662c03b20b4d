use proptest::prelude::*;

use super::*;

const PLAN: Digests<'static> = Digests { inputs: "sha256:inputs", plan: "sha256:plan" };
const RUNS: Digests<'static> = Digests { inputs: "sha256:before", plan: "sha256:ran" };

fn vote(name: &str, digest: &str, decision: Decision) -> Vote {
    Vote { created: 0, name: name.to_owned(), digest: digest.to_owned(), decision, by: "ann".to_owned() }
}

fn yes(name: &str, digest: &str) -> Vote {
    vote(name, digest, Decision::Approved)
}

fn no(name: &str, digest: &str) -> Vote {
    vote(name, digest, Decision::Rejected)
}

fn asked(mode: ApprovalMode, scope: ApprovalScope) -> Asked<'static> {
    Asked { group: "shop", namespace: "team-a", plan: PLAN, runs: Some(RUNS), mode, scope, over: None }
}

fn manual(scope: ApprovalScope) -> Asked<'static> {
    asked(ApprovalMode::Manual, scope)
}

fn reason(asked: &Asked<'_>, votes: &[Vote]) -> Option<Reason> {
    asked.wait(votes).map(|wait| wait.reason)
}

#[test]
fn a_plan_waits_with_the_command_that_approves_it() {
    let wait = manual(ApprovalScope::Plan).wait(&[]).unwrap();
    assert_eq!((wait.reason, wait.requires), (Reason::AwaitingApproval, PendingRequires::Approval));
    assert_eq!(wait.digest, "sha256:plan");
    assert_eq!(wait.message, "approve digest plan: kubectl emco approve dig/shop -n team-a");
    assert_eq!(manual(ApprovalScope::Inputs).wait(&[]).unwrap().digest, "sha256:inputs");
    assert_eq!(asked(ApprovalMode::Automatic, ApprovalScope::Plan).wait(&[]), None);
}

#[test]
fn an_approval_of_the_plan_covers_its_inputs_and_not_the_other_way() {
    let (plan, inputs) = ([yes("a", "sha256:plan")], [yes("a", "sha256:inputs")]);
    assert_eq!(reason(&manual(ApprovalScope::Plan), &plan), None);
    assert_eq!(reason(&manual(ApprovalScope::Inputs), &plan), None);
    assert_eq!(reason(&manual(ApprovalScope::Inputs), &inputs), None);
    assert_eq!(reason(&manual(ApprovalScope::Plan), &inputs), Some(Reason::AwaitingApproval));
}

#[test]
fn new_clusters_of_approved_inputs_need_no_new_approval() {
    let runs = Some(Digests { inputs: PLAN.inputs, plan: "sha256:ran" });
    assert_eq!(reason(&Asked { runs, ..manual(ApprovalScope::Inputs) }, &[]), None);
    assert_eq!(reason(&Asked { runs, ..manual(ApprovalScope::Plan) }, &[]), Some(Reason::AwaitingApproval));
}

#[test]
fn a_plan_beyond_the_budget_needs_an_approval_of_itself_everywhere() {
    let over = Some("app web leaves 3 of the 5 clusters");
    for mode in [ApprovalMode::Automatic, ApprovalMode::Manual] {
        let asked = Asked { over, ..asked(mode, ApprovalScope::Inputs) };
        let wait = asked.wait(&[yes("a", "sha256:inputs")]).unwrap();
        assert_eq!(wait.reason, Reason::RemovalNeedsConfirmation);
        assert_eq!(wait.requires, PendingRequires::RemovalConfirmation);
        assert_eq!(
            wait.message,
            "app web leaves 3 of the 5 clusters; approve digest plan: kubectl emco approve dig/shop -n team-a"
        );
        assert_eq!(reason(&asked, &[yes("a", "sha256:plan")]), None);
    }
}

#[test]
fn what_runs_needs_nothing_whatever_was_rejected_since() {
    let asked = Asked { runs: Some(PLAN), ..manual(ApprovalScope::Plan) };
    assert_eq!(reason(&asked, &[no("a", "sha256:plan")]), None);
}

#[test]
fn an_approval_of_another_digest_is_named() {
    let votes = [yes("old", "sha256:ran"), Vote { created: 1, ..yes("other", "sha256:else") }];
    let wait = manual(ApprovalScope::Plan).wait(&votes).unwrap();
    assert_eq!(wait.reason, Reason::StaleApproval);
    assert!(wait.message.starts_with(
        "DeploymentApproval other is of digest else, which is not this plan's; approve digest plan: "
    ));
    assert_eq!(
        reason(&manual(ApprovalScope::Plan), &votes[..1]),
        Some(Reason::AwaitingApproval),
        "that of the running revision did its work"
    );
}

#[test]
fn no_approval_is_stale_by_its_name_within_one_second() {
    let votes = [yes("first", "sha256:ran"), yes("second", "sha256:else")];
    assert_eq!(reason(&manual(ApprovalScope::Plan), &votes), Some(Reason::AwaitingApproval));
    assert_eq!(reason(&manual(ApprovalScope::Plan), &votes[1..]), Some(Reason::StaleApproval));
}

#[test]
fn a_rejection_is_a_refusal_that_names_who_rejected() {
    let wait = manual(ApprovalScope::Plan).wait(&[no("n", "sha256:inputs")]).unwrap();
    assert!(wait.reason.stalled());
    assert_eq!(
        wait.message,
        "DeploymentApproval n by ann rejects digest inputs: change what is deployed, or delete that approval"
    );
}

#[test]
fn every_approval_says_what_became_of_it() {
    use ApprovalState as S;
    let votes = [yes("a", "d"), yes("b", "d"), no("c", "e"), yes("d", "e")];
    let state = |at: usize, standing: &Standing, before: Option<S>| {
        let fate = fate(&votes[at], &votes, "shop", standing, before);
        (fate.state, fate.revision)
    };
    assert_eq!(state(0, &Standing::NoGroup, None), (S::Waiting, None));
    assert_eq!(state(0, &Standing::Unknown(None), None), (S::Waiting, None));
    assert_eq!(state(0, &Standing::Unknown(None), Some(S::Waiting)), (S::Waiting, None));
    assert_eq!(state(0, &Standing::Unknown(None), Some(S::InEffect)), (S::Stale, None));
    assert_eq!(state(0, &Standing::Unknown(None), Some(S::Stale)), (S::Stale, None));
    assert_eq!(state(0, &Standing::Pending, None), (S::InEffect, None));
    assert_eq!(state(1, &Standing::Pending, None), (S::Superseded, None));
    assert_eq!(state(0, &Standing::Runs(3), None), (S::InEffect, Some(3)));
    assert_eq!(state(1, &Standing::Runs(3), None), (S::Superseded, Some(3)));
    assert_eq!(state(0, &Standing::Ran(2), None), (S::Stale, Some(2)));
    assert_eq!(state(2, &Standing::Pending, None), (S::InEffect, None));
    assert_eq!(state(3, &Standing::Pending, None), (S::Superseded, None), "any rejection wins");
    assert_eq!(state(2, &Standing::Runs(3), None), (S::Stale, Some(3)));
    let other = fate(&votes[0], &votes, "shop", &Standing::Elsewhere("pos".to_owned()), None);
    assert_eq!(
        other.message,
        "the digest is of DeploymentIntentGroup pos, and this approval names shop: create an approval that names pos"
    );
}

fn votes() -> impl Strategy<Value = Vec<Vote>> {
    let digest = prop::sample::select(vec!["sha256:plan", "sha256:inputs", "sha256:ran", "sha256:else"]);
    let one = (digest, any::<bool>(), 0..3i64).prop_map(|(digest, approved, created)| {
        let decision = if approved { Decision::Approved } else { Decision::Rejected };
        Vote { created, ..vote("", digest, decision) }
    });
    // Names are unique in a namespace.
    prop::collection::vec(one, 0..6).prop_map(|votes| {
        let named = |(at, vote): (usize, Vote)| Vote { name: format!("v{at}"), ..vote };
        votes.into_iter().enumerate().map(named).collect()
    })
}

proptest! {
    #[test]
    fn any_rejection_wins_and_no_order_of_approvals_matters(
        given in votes(), shift in 0..6usize, automatic in any::<bool>(), plan in any::<bool>(), over in any::<bool>()
    ) {
        let mode = if automatic { ApprovalMode::Automatic } else { ApprovalMode::Manual };
        let scope = if plan { ApprovalScope::Plan } else { ApprovalScope::Inputs };
        let asked = Asked { over: over.then_some("too many leave"), ..asked(mode, scope) };
        let wait = asked.wait(&given);
        let mut turned = given.clone();
        if !turned.is_empty() {
            let by = shift % turned.len();
            turned.rotate_left(by);
        }
        prop_assert_eq!(&asked.wait(&turned), &wait);
        turned.reverse();
        prop_assert_eq!(&asked.wait(&turned), &wait);
        let rejected =
            given.iter().any(|vote| vote.decision == Decision::Rejected && PLAN.has(&vote.digest));
        if asked.required() == Required::Nothing {
            prop_assert_eq!(wait, None);
        } else if rejected {
            prop_assert_eq!(wait.map(|wait| wait.reason), Some(Reason::Rejected));
        } else if wait.is_none() {
            prop_assert!(given.iter().any(|vote| vote.decision == Decision::Approved && PLAN.has(&vote.digest)));
        }
    }
}
