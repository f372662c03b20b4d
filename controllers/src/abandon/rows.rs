//! Abandons removal on unreachable clusters: their rows leave the owner's shards, and a ledger names what is left
//! there. Only rows that shall have nothing can be given up, and only after it is proved that their cluster is away: by
//! the Cluster's own condition, which outlives this process, and by what is seen of it now; or by there being no such
//! Cluster.

use std::collections::BTreeSet;
use std::time::Duration;

use emco_crds::app_context::FORMAT;
use emco_crds::conditions::types;
use emco_crds::deployment_intent_group::sync::{Unreachable, UnreachableAction};
use emco_crds::names::annotation;
use emco_crds::{Cluster, Conditioned, SyncShard};
use emco_engine::identity::{ClusterId, Identity};
use emco_engine::pack::write_identities;
use emco_engine::shard::{self, GivenUp, Row};
use emco_engine::text::counted;
use kube::Resource;

use super::ledger;
use crate::object::LogFields;
use crate::object::Owner;
use crate::object::context::Failure;
use crate::object::events;
use crate::object::meta;
use crate::remote::{Admission, State};
use crate::store::{
    Contents, StoreContext, contents_of, replace, request_collection, store_pack, stored_shards,
};
use crate::tenancy::facts;

/// Clusters that an Event names.
const NAMED: usize = 3;

/// Who wants work to be given up.
#[derive(Clone, Copy, Debug, Default)]
pub struct AbandonPolicy<'a> {
    /// What the owner says; `None` where it cannot say anything.
    pub policy: Option<&'a Unreachable>,
    /// A person typed the text that stands for this removal.
    pub typed: bool,
    /// Clusters that are registered no more are given up at once: for owners that hold no Cluster, so that one which is away may
    /// be let go of while something of theirs is there.
    pub gone: bool,
}

impl<'a> AbandonPolicy<'a> {
    /// What an owner that ends says, by its policy and its annotation.
    pub fn of<K: Resource>(object: &K, policy: Option<&'a Unreachable>) -> Self {
        let typed = meta::annotation(object, annotation::ABANDON).is_some_and(|said| said == text(object));
        Self { policy, typed, gone: false }
    }

    fn after(&self) -> Option<Duration> {
        let policy = self.policy.filter(|policy| policy.action == UnreachableAction::Abandon)?;
        policy.after.as_ref()?.parse()
    }
}

/// The text that gives up for this removal alone. A removal begins with a change of the spec or a deletion, which both count the
/// generation up: what was typed for an earlier one says nothing.
fn text<K: Resource>(object: &K) -> String {
    format!("{}@{}", meta::uid(object), meta::generation(object))
}

/// The command that a person runs to give up what cannot be reached.
pub fn command<K: Resource>(object: &K, short: &str) -> String {
    let (name, namespace) = (meta::name(object), meta::namespace(object));
    format!(
        "kubectl annotate {short} {name} -n {namespace} --overwrite {}={}",
        annotation::ABANDON,
        text(object)
    )
}

/// What the annotation says where it says something else than the text for this removal.
pub fn annotation_error<K: Resource>(object: &K) -> Option<String> {
    let said = meta::annotation(object, annotation::ABANDON)?;
    let text = text(object);
    (said != text).then(|| {
        let said = emco_engine::conditions::truncate(said, 64);
        format!(
            "annotation {} is {said}, and nothing is given up: the text for this removal is {text}",
            annotation::ABANDON
        )
    })
}

/// When a row may be given up.
enum Due {
    Now,
    In(Duration),
    No,
}

/// One cluster that was given up.
struct Left {
    cluster: ClusterId,
    uid: Option<String>,
    objects: usize,
    first: Option<Identity>,
    /// Its provider's namespace ends, or is gone: nobody will remember.
    forgotten: bool,
}

/// Gives up what is due, and says in an Event of the owner's `object` what is left behind. Whether anything was.
pub async fn abandon<K: Resource<DynamicType = ()>>(
    ctx: &StoreContext,
    object: &K,
    owner: &Owner,
    give_up: AbandonPolicy<'_>,
) -> Result<bool, Failure> {
    if give_up.after().is_none() && !give_up.typed && !give_up.gone {
        return Ok(false);
    }
    let all = stored_shards(ctx, owner);
    let parts: Vec<_> = all.iter().map(|stored| (&stored.spec, stored.status.as_ref())).collect();
    // Rows that move to another shard arrive there first.
    let moves = shard::superseded(&parts).iter().any(|quiet| !quiet.is_empty());
    if moves || all.iter().any(|stored| stored.spec.format > FORMAT) {
        return Ok(false);
    }
    let mut left = Vec::new();
    for stored in &all {
        let due: Vec<Row> =
            leaving(stored).into_iter().filter(|row| matches!(due(ctx, row, give_up), Due::Now)).collect();
        if !due.is_empty() {
            left.extend(let_go(ctx, owner, stored, due, give_up.typed).await?);
        }
    }
    if left.is_empty() {
        return Ok(false);
    }
    events::emit(ctx, object, true, "Abandoned", &sentence(&left)).await;
    Ok(true)
}

/// When the next row is due, if time alone makes one due.
pub fn next_abandon(ctx: &StoreContext, owner: &Owner, policy: &Unreachable) -> Option<Duration> {
    let give_up = AbandonPolicy { policy: Some(policy), ..AbandonPolicy::default() };
    give_up.after()?;
    let rows = stored_shards(ctx, owner).into_iter().flat_map(|stored| leaving(&stored));
    rows.filter_map(|row| match due(ctx, &row, give_up) {
        Due::In(rest) => Some(rest.max(Duration::from_secs(1))),
        Due::Now | Due::No => None,
    })
    .min()
}

fn leaving(stored: &SyncShard) -> Vec<Row> {
    // Nearly always, and asked of every owner that is looked at.
    if stored.spec.clusters.iter().all(|row| row.target.is_some()) {
        return Vec::new();
    }
    shard::leaving(&stored.spec, stored.status.as_ref())
}

/// Whether the Cluster of a row is surely registered no more. One of its name whose provider is not known may be it.
fn is_gone(ctx: &StoreContext, id: &ClusterId) -> bool {
    let may_be = |cluster: &Cluster| facts::id(ctx, cluster).is_none_or(|found| found == *id);
    !ctx.stores.clusters.called(id.cluster()).iter().any(|cluster| may_be(cluster))
}

fn due(ctx: &StoreContext, row: &Row, give_up: AbandonPolicy<'_>) -> Due {
    let cluster = facts::registered(ctx, &row.cluster);
    let cluster = cluster.as_deref();
    if give_up.typed && is_away(ctx, &row.cluster, cluster) {
        return Due::Now;
    }
    if give_up.gone && cluster.is_none() && is_gone(ctx, &row.cluster) {
        return Due::Now;
    }
    let (Some(after), Some(known)) = (give_up.after(), cluster.and_then(|c| c.status.as_ref())) else {
        return Due::No;
    };
    let Some(condition) = known.condition(types::REACHABLE).filter(|c| c.status == "False") else {
        return Due::No;
    };
    if !is_proven(ctx, &row.cluster, &condition.reason) {
        return Due::No;
    }
    let since = condition.last_transition_time.0;
    match ctx.unreachable.left(&row.cluster, after, since, ctx.now()) {
        Duration::ZERO => Due::Now,
        left => Due::In(left),
    }
}

/// Whether no work can be done on a cluster now: it does not answer, is somebody else, or is another hub's.
fn is_away(ctx: &StoreContext, id: &ClusterId, cluster: Option<&Cluster>) -> bool {
    let Some(observed) = ctx.connector.observation(id) else {
        // Right after a start nobody asked for a connection yet.
        let ready = |cluster: &Cluster| cluster.status.as_ref().is_some_and(|s| s.is_true(types::READY));
        return !cluster.is_some_and(ready);
    };
    match observed.state {
        State::Connecting => false,
        State::Failed { .. } => true,
        State::Connected => matches!(observed.admission, Admission::Refused { .. }),
    }
}

/// Whether what the condition says is so now, too: before the first probe of a process nothing is known.
fn is_proven(ctx: &StoreContext, id: &ClusterId, reason: &str) -> bool {
    match ctx.connector.observation(id).map(|observed| (observed.state.clone(), observed.admission.clone())) {
        None => matches!(
            reason,
            "SecretNotFound" | "SecretKeyNotFound" | "KubeconfigInvalid" | "KubeconfigForbidden"
        ),
        Some((State::Connecting, _)) => false,
        Some((State::Failed { .. }, _)) => true,
        Some((State::Connected, admission)) => {
            matches!(admission, Admission::Refused { reason: "ClusterReplaced", .. })
        }
    }
}

/// Ledger first, then the rows leave their shard. Whoever dies in between has both, and begins again.
async fn let_go(
    ctx: &StoreContext,
    owner: &Owner,
    stored: &SyncShard,
    due: Vec<Row>,
    typed: bool,
) -> Result<Vec<Left>, Failure> {
    let contents = contents_of(ctx, owner, &stored.spec).await?;
    let mut given_up = Vec::new();
    let mut left = Vec::new();
    for row in due {
        let identities = match identities(&row, &contents, typed) {
            Ok(identities) => identities,
            Err(why) => {
                // Without a person's word, an inventory with a hole is not written down as if it were one.
                let LogFields { project, deployment, object } = owner.log_fields(ctx);
                let cluster = row.cluster.as_str();
                tracing::warn!(project, deployment, object, cluster, %why, "what is left on a cluster cannot be named, and is not given up");
                continue;
            }
        };
        let pack = write_identities(&owner.uid, &identities).map_err(|e| Failure::Stored(e.to_string()))?;
        store_pack(ctx, owner, &pack).await?;
        let known = facts::registered(ctx, &row.cluster).and_then(|c| c.status.as_ref()?.uid.clone());
        let uid = row.uid.or(known);
        let identities_ref =
            emco_crds::sync_shard::IdentitiesRef { pack: pack.name.clone(), digest: pack.digest.clone() };
        let cluster = row.cluster;
        left.push(Left {
            cluster: cluster.clone(),
            uid: uid.clone(),
            objects: identities.len(),
            first: identities.into_iter().next(),
            forgotten: false,
        });
        given_up.push(GivenUp { cluster, uid, identities: identities_ref });
    }
    if left.is_empty() {
        return Ok(left);
    }
    let forgotten = ledger::note(ctx, owner, given_up).await?;
    for one in &mut left {
        one.forgotten = forgotten.contains(&one.cluster);
    }
    let gone: BTreeSet<ClusterId> = left.iter().map(|one| one.cluster.clone()).collect();
    let place = (stored.spec.slot, stored.spec.bits);
    let spec = shard::without(&stored.spec, stored.status.as_ref(), &gone, place);
    replace(ctx, stored, spec).await?;
    request_collection(ctx);
    Ok(left)
}

/// Everything that may be there; of what cannot be read, nothing where a person wants it so.
fn identities(row: &Row, contents: &Contents, typed: bool) -> Result<BTreeSet<Identity>, String> {
    let mut all = BTreeSet::new();
    if let Some(name) = row.lost.first().filter(|_| !typed) {
        return Err(format!("the shard has no combination {name}"));
    }
    for content in &row.may_have {
        match contents.identities(content) {
            Ok(found) => all.extend(found),
            Err(_) if typed => {}
            Err(why) => return Err(why),
        }
    }
    Ok(all)
}

/// What was left behind, for an Event.
fn sentence(left: &[Left]) -> String {
    let one = |left: &Left| {
        let uid = left.uid.as_deref().map(|uid| format!(" (kube-system has uid {uid})")).unwrap_or_default();
        let first = left.first.as_ref().map(|first| format!(", such as {first}")).unwrap_or_default();
        let then = if left.forgotten {
            "its provider's namespace ends, so nobody will remember them"
        } else {
            "they are removed when it can be reached again"
        };
        format!("{}{uid}: {}{first}; {then}", left.cluster, counted(left.objects, "object"))
    };
    let mut text: Vec<String> = left.iter().take(NAMED).map(one).collect();
    if let Some(more @ 1..) = left.len().checked_sub(NAMED) {
        text.push(format!("and {} more", counted(more, "cluster")));
    }
    format!("given up on what cannot be reached: {}", text.join(". "))
}
