//! Approves or rejects the plan of a deployment that waits.

use emco_crds::DeploymentIntentGroup;
use emco_crds::deployment_approval::Decision;
use emco_crds::deployment_intent_group::rollout::Rollout;
use emco_crds::deployment_intent_group::status::{Pending, PendingRequires};
use emco_engine::rollout::LAST;

use super::args::deployments::DecideArgs;
use super::hub;
use super::output::machine;
use super::{Outcome, print};

pub mod approval;
pub mod confirm;

use approval::Done;

/// Fewest digits that stand for a digest.
const FEWEST: usize = 6;

/// `kubectl emco approve`.
pub async fn approve(args: DecideArgs) -> anyhow::Result<Outcome> {
    decide(args, Decision::Approved).await
}

/// `kubectl emco reject`.
pub async fn reject(args: DecideArgs) -> anyhow::Result<Outcome> {
    decide(args, Decision::Rejected).await
}

async fn decide(args: DecideArgs, decision: Decision) -> anyhow::Result<Outcome> {
    let DecideArgs { named, digest, wave, comment, output } = args;
    let hub = hub::connect(&named.hub).await?;
    let (namespace, name) = hub.locate(&named.deployment, named.namespace.as_deref()).await?;
    let group = hub.deployment(&namespace, &name).await?;
    let pending = decidable(&group);
    let digest = match &wave {
        Some(wave) => of_wave(&group, wave, decision, digest.as_deref()),
        None => choose(pending, digest.as_deref()),
    };
    let digest = digest.map_err(|why| anyhow::anyhow!("{namespace}/{name}: {why}"))?;
    let done = approval::give(&hub, &group, (digest, wave), decision, comment).await?;
    if let Some(text) = machine(output, &done)? {
        print(&text)?;
        return Ok(Outcome::AsWanted);
    }
    print(&said(&done, pending))?;
    Ok(Outcome::AsWanted)
}

/// The plan that an approval or a rejection may be of: what a deletion would remove is confirmed at the deployment itself.
pub fn decidable(group: &DeploymentIntentGroup) -> Option<&Pending> {
    let pending = group.status.as_ref()?.pending.as_ref()?;
    (pending.revision > 0 || pending.requires == PendingRequires::Approval).then_some(pending)
}

/// The digest, if the plan that waits has exactly it, or the revision that is rolled out where a wave is meant.
pub fn exactly(
    group: &DeploymentIntentGroup,
    wave: Option<&str>,
    decision: Decision,
    digest: &str,
) -> Result<String, String> {
    let waits = match wave {
        Some(wave) => of_wave(group, wave, decision, None)?,
        None => choose(decidable(group), None)?,
    };
    if waits == digest {
        return Ok(waits);
    }
    // Of a digest that is not shown any more, or was never one.
    Err(format!("the plan that waits has digest {}, not {}: look at it again", short(&waits), short(digest)))
}

/// What was done, in words.
pub fn said(done: &Done, pending: Option<&Pending>) -> String {
    let Done { deployment, decision, digest, wave, approval, created, by, rejected } = done;
    let what = match decision {
        Decision::Approved => "approved",
        Decision::Rejected => "rejected",
    };
    let before = if *created { "" } else { " (it was so before)" };
    let wave = wave.as_ref().map(|wave| format!("wave {wave} of ")).unwrap_or_default();
    let gains = pending.map(|pending| pending.gains.join(", ")).filter(|gains| !gains.is_empty());
    let gains = gains.map(|gains| format!("; gains: {gains}")).unwrap_or_default();
    let anew = pending.map(recreated).unwrap_or_default();
    let plan = match pending.filter(|pending| pending.digest == *digest) {
        Some(pending) if pending.revision == 0 => format!("all of it is removed: {}", pending.summary),
        Some(pending) if pending.summary.is_empty() => format!("revision {}{gains}{anew}", pending.revision),
        Some(pending) => format!("revision {}, {}{gains}{anew}", pending.revision, pending.summary),
        None if !wave.is_empty() && *decision == Decision::Rejected => {
            "the rollout is paused there".to_owned()
        }
        None if !wave.is_empty() => "the rollout goes on".to_owned(),
        None => "no plan has it now: it is for one that comes".to_owned(),
    };
    let rejected = rejected
        .as_ref()
        .map(|no| format!("; it is not carried out while DeploymentApproval {no} rejects it"));
    let rejected = rejected.unwrap_or_default();
    format!(
        "{deployment}: {wave}digest {} is {what} by {by}, as {approval}{before}; {plan}{rejected}\n",
        short(digest)
    )
}

/// The objects that it deletes and makes again.
fn recreated(pending: &Pending) -> String {
    let all: Vec<&str> = pending.apps.iter().flat_map(|app| &app.recreated).map(String::as_str).collect();
    if all.is_empty() { String::new() } else { format!("; deleted and made again: {}", all.join(", ")) }
}

/// The digest of the revision that is rolled out, where it has the wave.
fn of_wave(
    group: &DeploymentIntentGroup,
    wave: &str,
    decision: Decision,
    asked: Option<&str>,
) -> Result<String, String> {
    let Some(spec) = group.spec.rollout.as_ref().filter(|rollout| **rollout != Rollout::default()) else {
        return Err("it has no spec.rollout, and goes everywhere at once".to_owned());
    };
    let mut names: Vec<&str> = spec.waves.iter().map(|wave| wave.name.as_str()).collect();
    match decision {
        Decision::Rejected => names.push(LAST),
        Decision::Approved if wave == LAST => {
            return Err(format!("wave {LAST} waits for no approval; it may be rejected alone"));
        }
        Decision::Approved => {}
    }
    if !names.contains(&wave) {
        return Err(match names.join(", ") {
            none if none.is_empty() => "it has no spec.rollout.waves".to_owned(),
            names => format!("it has no wave {wave}; there are {names}"),
        });
    }
    // Of the inputs: it stays while clusters come and go.
    let rollout = group.status.as_ref().and_then(|status| status.rollout.as_ref());
    let runs = rollout.map(|rollout| Pending { digest: rollout.inputs_digest.clone(), ..Pending::default() });
    choose(runs.as_ref(), asked)
}

/// The first digits of a digest.
pub fn short(digest: &str) -> String {
    digest.trim_start_matches("sha256:").chars().take(12).collect()
}

/// The digest that is meant: that of the plan that waits, or one that is given as a whole.
pub fn choose(pending: Option<&Pending>, asked: Option<&str>) -> Result<String, String> {
    let waits = pending.map(|pending| pending.digest.as_str());
    let Some(asked) = asked else {
        return waits.map(str::to_owned).ok_or_else(|| "no plan of it waits".to_owned());
    };
    let digits = asked.trim_start_matches("sha256:");
    if digits.len() < FEWEST
        || digits.len() > 64
        || !digits.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'))
    {
        return Err(format!("{asked} is no digest: give at least {FEWEST} of its 64 hexadecimal digits"));
    }
    let is_it = |waits: &&str| waits.trim_start_matches("sha256:").starts_with(digits);
    match waits.filter(is_it) {
        Some(waits) => Ok(waits.to_owned()),
        // It may be of a change that is not applied yet.
        None if digits.len() == 64 => Ok(format!("sha256:{digits}")),
        None => Err(match waits {
            Some(waits) => {
                format!("the plan that waits has digest {}, not {digits}: look at it again", short(waits))
            }
            None => format!("no plan of it waits: give all digits of {digits} for a plan that comes"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use emco_crds::deployment_intent_group::status::DeploymentIntentGroupStatus;

    use super::*;

    const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn pending() -> Pending {
        Pending {
            digest: DIGEST.to_owned(),
            revision: 2,
            summary: "web on 1 cluster: 1 resource changed".to_owned(),
            ..Pending::default()
        }
    }

    #[test]
    fn the_plan_that_waits_is_meant_where_no_digest_is_given() {
        assert_eq!(choose(Some(&pending()), None), Ok(DIGEST.to_owned()));
        assert_eq!(choose(None, None).unwrap_err(), "no plan of it waits");
    }

    #[test]
    fn some_digits_have_to_be_those_of_the_plan_that_waits() {
        for asked in ["012345", "0123456789ab", "sha256:0123456789ab", DIGEST] {
            assert_eq!(choose(Some(&pending()), Some(asked)), Ok(DIGEST.to_owned()), "{asked}");
        }
        assert_eq!(
            choose(Some(&pending()), Some("9f2c41d07a3b")).unwrap_err(),
            "the plan that waits has digest 0123456789ab, not 9f2c41d07a3b: look at it again"
        );
        let long = "0".repeat(65);
        for asked in ["01234", "latest", long.as_str()] {
            let why = choose(Some(&pending()), Some(asked)).unwrap_err();
            assert_eq!(why, format!("{asked} is no digest: give at least 6 of its 64 hexadecimal digits"));
        }
    }

    #[test]
    fn a_whole_digest_may_be_of_a_plan_that_comes() {
        let other = format!("sha256:{}", "f".repeat(64));
        assert_eq!(choose(Some(&pending()), Some(&other)), Ok(other.clone()));
        assert_eq!(choose(None, Some(&other)), Ok(other));
    }

    #[test]
    fn the_last_wave_may_be_rejected_as_any_other_and_not_approved() {
        let mut group = DeploymentIntentGroup::default();
        let why = |group: &_, wave, decision| of_wave(group, wave, decision, Some(DIGEST)).unwrap_err();
        for none in [None, Some(Rollout::default())] {
            group.spec.rollout = none;
            assert!(why(&group, LAST, Decision::Rejected).starts_with("it has no spec.rollout, "));
        }
        let alone = serde_json::json!({"maxConcurrent": 1});
        let waves = serde_json::json!({"waves": [{"name": "canary", "size": 1}]});
        for rollout in [alone, waves] {
            group.spec.rollout = serde_json::from_value(rollout).unwrap();
            assert_eq!(of_wave(&group, LAST, Decision::Rejected, Some(DIGEST)), Ok(DIGEST.to_owned()));
            let why = why(&group, LAST, Decision::Approved);
            assert_eq!(why, "wave the rest waits for no approval; it may be rejected alone");
        }
        assert_eq!(of_wave(&group, "canary", Decision::Approved, Some(DIGEST)), Ok(DIGEST.to_owned()));
        let why = why(&group, "canaries", Decision::Rejected);
        assert_eq!(why, "it has no wave canaries; there are canary, the rest");
    }

    #[test]
    fn only_the_digest_that_waits_is_decided_where_exactly_one_is_meant() {
        let mut group = DeploymentIntentGroup::default();
        let decide = |group: &_, digest: &str| exactly(group, None, Decision::Approved, digest);
        assert_eq!(decide(&group, DIGEST).unwrap_err(), "no plan of it waits");
        group.status = Some(DeploymentIntentGroupStatus { pending: Some(pending()), ..Default::default() });
        assert_eq!(decide(&group, DIGEST), Ok(DIGEST.to_owned()));
        let other = format!("sha256:{}", "f".repeat(64));
        for wrong in ["", "0123456789ab", other.as_str()] {
            assert!(decide(&group, wrong).unwrap_err().ends_with(": look at it again"), "{wrong}");
        }
    }

    #[test]
    fn what_was_decided_is_said_with_what_it_does() {
        let done = Done {
            deployment: "team-a/shop".to_owned(),
            decision: Decision::Approved,
            digest: DIGEST.to_owned(),
            wave: None,
            approval: "shop-0123456789ab-x".to_owned(),
            created: true,
            by: "ann".to_owned(),
            rejected: None,
        };
        let text = "team-a/shop: digest 0123456789ab is approved by ann, as shop-0123456789ab-x; revision 2, web on 1 cluster: 1 resource changed";
        assert_eq!(said(&done, Some(&pending())), format!("{text}\n"));
        let rejected = Done { rejected: Some("no".to_owned()), ..done };
        let text = format!("{text}; it is not carried out while DeploymentApproval no rejects it\n");
        assert_eq!(said(&rejected, Some(&pending())), text);
    }
}
