//! Shows which objects of others a deployment would take over on its clusters and what an apply would change of each; sets
//! `spec.sync.conflicts`, by which the operator takes them over.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{anyhow, bail};
use emco_controllers::sync::content::{HubContent, Source};
use emco_crds::DeploymentIntentGroup;
use emco_crds::deployment_intent_group::DesiredState;
use emco_crds::deployment_intent_group::sync::ConflictPolicy;
use emco_engine::identity::ClusterId;
use emco_engine::shard::{Target, rows};
use futures::stream::{self, StreamExt as _};

use super::args::adopt::AdoptArgs;
use super::args::deployments::PartArgs;
use super::diff::{edge, past};
use super::hub::{self, Hub};
use super::output::machine;
use super::{Outcome, hold, print, stored};

mod found;
mod look;
mod show;
mod write;

use found::{Answer, OnCluster};
use look::Seeker;

/// Clusters that are asked at the same time.
const AT_ONCE: usize = 8;
/// For all objects of one cluster.
const PATIENCE: Duration = Duration::from_mins(1);

/// `kubectl emco adopt`.
pub async fn run(args: AdoptArgs) -> anyhow::Result<Outcome> {
    let AdoptArgs { named, part, conflicts, partly, output } = args;
    let hub = hub::connect(&named.hub).await?;
    let (namespace, name) = hub.locate(&named.deployment, named.namespace.as_deref()).await?;
    let group = hub.deployment(&namespace, &name).await?;
    let deployment = format!("{namespace}/{name}");
    let wanted = conflicts.map(ConflictPolicy::from);
    // What is taken over no more needs no look.
    let clusters = if wanted == Some(ConflictPolicy::Fail) {
        Vec::new()
    } else {
        stored::may_read(&hub, "adopt", &namespace, &name).await?;
        Box::pin(looked_at(&hub, &group, &namespace, &name, &part)).await?
    };
    let mut answer = Answer {
        deployment,
        conflicts: group.spec.sync.conflicts,
        needs: Answer::least(&clusters),
        waits: hold::waits(&group),
        clusters,
        change: None,
    };
    let refusal = wanted.filter(|_| !partly).and_then(|wanted| write::refusal(&answer, wanted));
    if let (Some(wanted), None) = (wanted, &refusal) {
        let nothing = wanted != ConflictPolicy::Fail && answer.needs.is_none();
        let now = if nothing { answer.conflicts } else { wanted };
        // People who read see what is taken before it is.
        if output.is_none() && wanted != ConflictPolicy::Fail {
            print(&show::list(&answer))?;
        }
        answer.change = Some(write::carry_out(&hub, &group, now).await?);
    }
    match machine(output, &answer)? {
        Some(text) => print(&text)?,
        None if answer.change.is_some() => print(&show::done(&answer))?,
        None => print(&format!("{}{}", show::list(&answer), show::advice(&answer)))?,
    }
    if let Some(refusal) = refusal {
        bail!("{refusal}");
    }
    let taken = |policy: ConflictPolicy| answer.objects().all(|(_, object)| object.is_taken_by(policy));
    let fine = match &answer.change {
        Some(change) => taken(change.now) && answer.silent().is_empty(),
        None => answer.objects().next().is_none() && answer.silent().is_empty(),
    };
    Ok(if fine { Outcome::AsWanted } else { Outcome::NotAsWanted })
}

/// All clusters of the stored revision that counts, asked.
async fn looked_at(
    hub: &Hub,
    group: &DeploymentIntentGroup,
    namespace: &str,
    name: &str,
    part: &PartArgs,
) -> anyhow::Result<Vec<OnCluster>> {
    let goes = group.metadata.deletion_timestamp.is_some();
    if goes || group.spec.desired_state == DesiredState::Terminated {
        let why = if goes { "is being deleted" } else { "is terminated" };
        bail!("{namespace}/{name} {why}: it is to have nothing on any cluster, and takes nothing over");
    }
    let contexts = past::contexts(hub, namespace, name).await?;
    let newest = contexts.iter().map(|context| context.spec.revision).max();
    let Some(revision) = group.spec.revision.or(newest) else {
        bail!("{}", unplanned(group, namespace, name))
    };
    let content = stored::content(hub);
    let mut targets = past::read(hub, &content, namespace, name, revision).await?;
    let hash = past::owner_hash(hub, namespace, name).await?;
    let known = targets.clone();
    targets.retain(|cluster, target| target.apps.keys().any(|app| part.takes(app, cluster.as_str())));
    if let Some(missing) = missing(part, &known) {
        bail!("{namespace}/{name} has {missing} in revision {revision}");
    }
    let shards = hub.shards(namespace, name).await?;
    let rows = shards.iter().flat_map(|shard| rows(&shard.spec, shard.status.as_ref()));
    let uids: BTreeMap<ClusterId, String> = rows.filter_map(|row| Some((row.cluster, row.uid?))).collect();
    let placed_by = format!("{namespace}/{name}");
    let seeker = Seeker { placed_by: &placed_by, ignore: &group.spec.sync.ignore };
    let jobs = targets.into_iter().map(|(cluster, target)| {
        let (uid, source) = (
            uids.get(&cluster).cloned(),
            Source { namespace: namespace.to_owned(), owner: hash.clone(), revision: target.revision },
        );
        Box::pin(on_cluster(hub, &content, &seeker, part, cluster, target, uid, source))
    });
    Ok(stream::iter(jobs).buffered(AT_ONCE).collect().await)
}

/// What of the apps and clusters that are named is nowhere in the revision.
fn missing(part: &PartArgs, targets: &BTreeMap<ClusterId, Target>) -> Option<String> {
    let clusters = |one: &&String| !targets.keys().any(|cluster| cluster.as_str() == one.as_str());
    if let Some(cluster) = part.cluster.iter().find(clusters) {
        return Some(format!("nothing on cluster {cluster}"));
    }
    let apps = |one: &&String| !targets.values().any(|target| target.apps.contains_key(one.as_str()));
    part.app.iter().find(apps).map(|app| format!("no app {app}"))
}

/// Why there is no revision to look at, and what to do.
fn unplanned(group: &DeploymentIntentGroup, namespace: &str, name: &str) -> String {
    let status = group.status.as_ref();
    let waits = status.is_some_and(|status| status.pending.is_some());
    let what = if waits {
        format!(
            "its first plan waits, and is stored once it is carried out: look at it with `kubectl emco plan {namespace}/{name}`, then \
             let it go on with spec.sync.conflicts: Fail, which touches no object of others"
        )
    } else {
        format!("nothing was planned yet: `kubectl emco status {namespace}/{name}` says why")
    };
    format!("{namespace}/{name} has no stored revision: {what}")
}

#[expect(clippy::too_many_arguments, reason = "one job, called in one place")]
async fn on_cluster(
    hub: &Hub,
    content: &HubContent,
    seeker: &Seeker<'_>,
    part: &PartArgs,
    cluster: ClusterId,
    target: Target,
    uid: Option<String>,
    source: Source,
) -> OnCluster {
    let looked = async {
        let mut all = Vec::new();
        for (app, set) in &target.apps {
            let set = stored::set(content, &source, set).await?;
            all.extend(set.manifests.iter().map(|manifest| (app.clone(), manifest.clone())));
        }
        let edge = edge::connect(hub, &cluster, uid.as_deref(), source.owner.clone()).await?;
        seeker.find(&edge, &all, |app| part.takes(app, cluster.as_str())).await
    };
    let late = |_| Err(anyhow!("the cluster does not answer within {} s", PATIENCE.as_secs()));
    let found = tokio::time::timeout(PATIENCE, Box::pin(looked)).await.unwrap_or_else(late);
    let (compared, objects, error) = match found {
        Ok((compared, objects)) => (compared, objects, None),
        Err(error) => (0, Vec::new(), Some(format!("{error:#}"))),
    };
    OnCluster { cluster: cluster.to_string(), revision: target.revision, compared, objects, error }
}
