//! Judges whose the folder of a GitTarget is, by what its branch says: until that is judged nothing is published.

use emco_crds::GitTarget;
use emco_crds::cluster::HubRestored;
use emco_crds::cluster::git_target::GitTargetStatus;
use emco_crds::fields::Time;
use emco_crds::reasons::GitTargetReason as Reason;

use super::Judged;
use crate::object::context::Failure;
use crate::object::status::ReadyState;
use crate::publish::{Permit, TargetKey, TargetStatus};
use crate::reconcile::context::Context;
use crate::reconcile::restored::{annotate, confirmation, confirmed, hub_reaches};
use crate::remote::Claim;
use crate::remote::claim;

/// The confirmation of a person who gives EMCO files that are there already.
const ADOPT: &str = "adopt";
/// Short name of the kind.
const SHORT: &str = "gitt";

/// Judges, and tells the publisher. `None`: the folder is ours, or was not read yet.
pub(super) async fn judge(
    ctx: &Context,
    target: &GitTarget,
    key: &TargetKey,
    seen: &TargetStatus,
    status: &mut GitTargetStatus,
) -> Result<Option<Judged>, Failure> {
    let found = &seen.found;
    let ours = ctx.installation.id.as_str();
    let refused = match &found.claim {
        // Not read yet.
        Claim::Unknown => return Ok(None),
        Claim::Held { installation, seen, .. } if installation == ours => {
            match unconfirmed(ctx, target, *seen, status).await? {
                Confirmation::NotNeeded => None,
                Confirmation::Given => {
                    ctx.publishers.admit(key, found, Permit::Reset);
                    return Ok(None);
                }
                Confirmation::Missing(refused) => Some(refused),
            }
        }
        Claim::Held { installation, since, .. } => {
            status.hub_restored = None;
            let answer = claim::confirmation(installation, since);
            (!confirmed(target, &answer)).then(|| elsewhere(target, installation, since, &answer))
        }
        // Somebody took the claim off: what is published next puts it back.
        Claim::Absent if seen.admitted => return Ok(None),
        Claim::Absent | Claim::Unreadable(_) => {
            // A process that has published knows what was there, and puts all of it back at once.
            let before = status.branch.as_ref().filter(|_| seen.published.is_none());
            unclaimed(target, found.files, before.map(|branch| branch.commit.as_str()))
        }
    };
    let permit = refused.as_ref().map_or(Permit::Admitted, |judged| Permit::Refused {
        reason: judged.reason,
        message: judged.message.clone(),
    });
    ctx.publishers.admit(key, found, permit);
    Ok(refused)
}

/// The confirmation that a hub may need that was restored from a backup.
enum Confirmation {
    NotNeeded,
    Given,
    Missing(Judged),
}

/// That a hub was restored is seen only until its store has come as far again; so once it was seen, the status keeps it until it is
/// confirmed.
async fn unconfirmed(
    ctx: &Context,
    target: &GitTarget,
    seen: u64,
    status: &mut GitTargetStatus,
) -> Result<Confirmation, Failure> {
    let text = seen.to_string();
    let known = status.hub_restored.take().filter(|known| known.seen == text);
    if seen == 0 || (known.is_none() && hub_reaches(ctx, target, seen).await?) {
        return Ok(Confirmation::NotNeeded);
    }
    // It is kept until the mark is another one: what is confirmed is published a moment later.
    let restored = known.unwrap_or_else(|| HubRestored { seen: text, since: Some(Time(ctx.now())) });
    let answer = confirmation(&restored);
    status.hub_restored = Some(restored);
    if confirmed(target, &answer) {
        return Ok(Confirmation::Given);
    }
    let message = format!(
        "this hub was restored from a backup: the branch was published to at version {seen} of the hub's store, which the restored one had not reached. Nothing is published or removed until somebody confirms that what this hub knows is to be put there: {}",
        annotate(SHORT, target, &answer)
    );
    Ok(Confirmation::Missing(Judged::new(ReadyState::Stalled, Reason::HubRestored, message)))
}

fn elsewhere(target: &GitTarget, installation: &str, since: &str, answer: &str) -> Judged {
    let message = format!(
        "the folder belongs to another EMCO hub (installation {installation}, since {since}): nothing is published or removed there. Make a GitTarget with another folder; to move this one here: {}",
        annotate(SHORT, target, answer)
    );
    Judged::new(ReadyState::Stalled, Reason::ClaimedByAnotherHub, message)
}

/// Judges a folder that nobody claims; `before`: the commit that another process of this hub published last.
fn unclaimed(target: &GitTarget, files: bool, before: Option<&str>) -> Option<Judged> {
    if confirmed(target, ADOPT) {
        return None;
    }
    if files { Some(not_ours(target)) } else { before.map(|commit| emptied(target, commit)) }
}

/// One deployment after the other would come onto the branch, and agents would remove those that are still to come.
fn emptied(target: &GitTarget, commit: &str) -> Judged {
    let message = format!(
        "folder {:?} of branch {} is empty, and this hub had published commit {} there: restore the repository; to have all of it published anew, suspend Flux's Kustomization emco on the clusters until the GitTarget is Ready, since Flux removes what it does not find meanwhile, and: {}",
        target.spec.folder,
        target.spec.branch,
        commit.get(..8).unwrap_or(commit),
        annotate(SHORT, target, ADOPT)
    );
    Judged::new(ReadyState::Stalled, Reason::FolderNotOurs, message)
}

fn not_ours(target: &GitTarget) -> Judged {
    let message = format!(
        "there are files below clusters in folder {:?} of branch {}, and no claim of this hub: make a GitTarget with another folder; if EMCO may have them, which removes what it does not know: {}",
        target.spec.folder,
        target.spec.branch,
        annotate(SHORT, target, ADOPT)
    );
    Judged::new(ReadyState::Stalled, Reason::FolderNotOurs, message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_branch_that_lost_all_is_filled_anew_when_somebody_confirms() {
        let mut target: GitTarget = serde_json::from_value(json!({
            "apiVersion": "emco.io/v1alpha1", "kind": "GitTarget", "metadata": {"name": "fleet", "namespace": "acme"},
            "spec": {"url": "https://git.example.com/acme/fleet.git", "branch": "main"},
        }))
        .unwrap();
        assert!(unclaimed(&target, false, None).is_none(), "it is new");
        let refused = unclaimed(&target, false, Some("5d1f0c27aa")).unwrap();
        assert_eq!(refused.reason, "FolderNotOurs");
        assert!(refused.message.contains("commit 5d1f0c27 there"), "{}", refused.message);
        assert!(refused.message.ends_with("emco.io/confirm=adopt"), "{}", refused.message);
        assert!(unclaimed(&target, true, None).is_some());
        let confirm = ("emco.io/confirm".to_owned(), "adopt".to_owned());
        target.metadata.annotations = Some([confirm].into());
        assert!(unclaimed(&target, true, Some("5d1f0c27aa")).is_none());
    }
}
