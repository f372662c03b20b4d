//! Decides which of several deployments has a release, and says on both sides that another one wants it.

use std::collections::BTreeSet;
use std::sync::Arc;

use emco_crds::conditions::types;
use emco_crds::deployment_intent_group::DesiredState;
use emco_crds::deployment_intent_group::status::DeploymentIntentGroupStatus;
use emco_crds::{Conditioned, DeploymentIntentGroup, LogicalCloud};
use emco_engine::conditions;
use emco_engine::identity::ClusterId;
use emco_engine::text::{counted, listed};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::object::Owner;
use crate::object::{events, meta};
use crate::reconcile::context::Context;
use crate::reconcile::logical_cloud;
use crate::store;
use crate::stores::Release;

/// Reason of the Event that says so to the deployment that has the release.
const REASON: &str = "ReleaseContested";
/// Between the release and who wants it.
const WANTED_BY: &str = "is also wanted by";

/// The smallest has the release: the one that is recorded to have a revision of it, then the older one, then the smaller name. After a
/// restore of the hub ages may say something else.
fn rank(dig: &DeploymentIntentGroup) -> (bool, Option<&Time>, &str) {
    let recorded = dig.status.as_ref().is_some_and(|status| status.revision.is_some());
    (!recorded, dig.metadata.creation_timestamp.as_ref(), meta::name(dig))
}

/// Other deployments of the release through a logical cloud of some namespace.
fn others(ctx: &Context, dig: &DeploymentIntentGroup, release: &Release) -> Vec<Arc<DeploymentIntentGroup>> {
    let names = ctx.stores.releases.deployments(release);
    let all = names.iter().filter_map(|name| ctx.stores.digs.named(&release.within, name));
    all.filter(|other| meta::uid(other.as_ref()) != meta::uid(dig)).collect()
}

/// Another deployment of the same cloud that has the release already. Through other clouds no release is shared: of two clouds with one
/// namespace on one cluster, one is refused (`logical_cloud/taken.rs`).
pub(super) fn holder(ctx: &Context, dig: &DeploymentIntentGroup) -> Option<String> {
    let others = others(ctx, dig, &Release::of(dig));
    let holder = others.iter().find(|other| rank(other) < rank(dig))?;
    Some(meta::name(holder.as_ref()).to_owned())
}

/// That others want the release of a deployment, which has it.
pub(super) struct Contested {
    /// All of it, without a full stop.
    sentence: String,
    /// Who they are, each once, as the deployment may know them.
    rivals: Vec<String>,
}

/// Whether a deployment still wants its release.
fn wants(dig: &DeploymentIntentGroup) -> bool {
    !meta::deleting(dig) && dig.spec.desired_state != DesiredState::Terminated
}

/// Those of the same project by name. Of another project no object is named, as where a namespace is contested.
fn called_for(rival: &DeploymentIntentGroup, reader: &DeploymentIntentGroup) -> String {
    if meta::namespace(rival) == meta::namespace(reader) {
        format!("DeploymentIntentGroup {}", meta::name(rival))
    } else {
        "a deployment of another project".to_owned()
    }
}

/// Deployments of the release through clouds that want the namespace of this one and do not get it, and the clusters where it is so.
fn through_other_clouds(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    cloud: &LogicalCloud,
) -> Vec<(Vec<Arc<DeploymentIntentGroup>>, BTreeSet<ClusterId>)> {
    let of = |other: &LogicalCloud| {
        let (within, cloud) = (meta::namespace(other).to_owned(), meta::name(other).to_owned());
        others(ctx, dig, &Release { within, cloud, name: dig.release().to_owned() })
    };
    let losing = logical_cloud::losing_to(ctx, cloud, |other| !of(other).is_empty());
    losing.into_iter().map(|(other, at)| (of(&other), at)).collect()
}

/// Who wants the release of a deployment besides; `None` where nobody does, or another one has it.
pub(super) fn contested(ctx: &Context, dig: &DeploymentIntentGroup, owner: &Owner) -> Option<Contested> {
    let release = Release::of(dig);
    let cloud = ctx.stores.clouds.named(&release.within, &release.cloud)?;
    let mut rivals = others(ctx, dig, &release);
    if rivals.iter().any(|other| rank(other) < rank(dig)) {
        return None;
    }
    let losing = through_other_clouds(ctx, dig, &cloud);
    if rivals.is_empty() && losing.is_empty() {
        return None;
    }
    let on: BTreeSet<ClusterId> = store::targets(ctx, owner).into_keys().collect();
    let here = losing.into_iter().filter(|(_, at)| !at.is_disjoint(&on));
    rivals.extend(here.flat_map(|(others, _)| others));
    let rivals: BTreeSet<String> =
        rivals.iter().filter(|rival| wants(rival)).map(|rival| called_for(rival, dig)).collect();
    if rivals.is_empty() {
        return None;
    }
    let rivals: Vec<String> = rivals.into_iter().collect();
    let (name, namespace) = (&release.name, cloud.cluster_namespace());
    let gets = if rivals.len() == 1 { "does not get it" } else { "do not get it" };
    let place = if on.is_empty() {
        String::new()
    } else {
        let ids: Vec<String> = on.iter().map(ToString::to_string).collect();
        format!(" on {} ({})", counted(ids.len(), "cluster"), listed(&ids))
    };
    let sentence = format!(
        "release {name} in namespace {namespace}{place} {WANTED_BY} {}, which {gets}",
        listed(&rivals)
    );
    Some(Contested { sentence, rivals })
}

/// The part of the condition Ready that says who wants the release.
fn said(status: Option<&DeploymentIntentGroupStatus>) -> &str {
    let ready = status.and_then(|status| status.condition(types::READY));
    let by = ready.and_then(|ready| ready.message.rsplit_once(WANTED_BY));
    by.map(|(_, by)| by).unwrap_or_default()
}

impl Contested {
    /// Adds it to what the condition Ready says.
    pub(super) fn add_to(&self, ctx: &Context, status: &mut DeploymentIntentGroupStatus, generation: i64) {
        let now = ctx.now();
        let Some(ready) = status.condition(types::READY).cloned() else { return };
        let separator = if ready.message.is_empty() { "" } else { "; " };
        let message = format!("{}{separator}{}", ready.message, self.sentence);
        let list = status.conditions_mut();
        conditions::set(list, types::READY, &ready.status, &ready.reason, &message, generation, now);
    }

    /// Writes an Event, when the condition begins to say it or names another one.
    pub(super) async fn tell(
        &self,
        ctx: &Context,
        dig: &DeploymentIntentGroup,
        now: &DeploymentIntentGroupStatus,
    ) {
        let (before, now) = (said(dig.status.as_ref()), said(Some(now)));
        // One that the words before do not name, and these do: both may have been cut, and name the first only.
        let is_named = |by: &str, rival: &str| {
            by.contains(&format!("{rival},")) || by.contains(&format!("{rival} and "))
        };
        if self.rivals.iter().any(|rival| is_named(now, rival) && !is_named(before, rival)) {
            events::emit(ctx, dig, false, REASON, &self.sentence).await;
        }
    }
}
