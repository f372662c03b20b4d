//! Everything that a plan reads in, as one snapshot, with what is needed to see later whether it is still true.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_crds::conditions::types;
use emco_crds::fields::Level;
use emco_crds::names::object::DEFAULT_LOGICAL_CLOUD;
use emco_crds::reasons::DeploymentIntentGroupReason as Reason;
use emco_crds::{
    CompositeApp, CompositeProfile, Conditioned, DeploymentIntentGroup, GenericActionIntent, HardwareIntent,
    Project, TrafficGroupIntent,
};
use emco_engine::identity::ClusterId;
use emco_engine::refusal::Refusal;
use emco_engine::resolve;
use emco_engine::snapshot::{ChartFacts, Snapshot, SourceKey};
use emco_engine::text::counted;
use futures::future::{try_join, try_join3};
use kube::Resource;
use serde::de::DeserializeOwned;

use super::release;
use crate::api::{ApiResult, ApiServerExt};
use crate::object::Owner;
use crate::object::context::Failure;
use crate::object::meta;
use crate::reconcile::composite_app;
use crate::reconcile::context::Context;
use crate::reconcile::hardware::{self, Unread};
use crate::reconcile::logical_cloud;
use crate::reconcile::results;
use crate::reconcile::sources;
use crate::rows;
use crate::store::{self, Limit, Stored};
use crate::tenancy::facts;

/// When a deployment looks again whose charts are being downloaded; it is woken when they came.
pub const AWAITS: std::time::Duration = crate::chart::WANTED_EACH;

/// A snapshot, and what it was made of.
pub struct Gathered {
    pub snapshot: Snapshot,
    pub cloud_namespace: String,
    pub level: Level,
    /// How much may be stored.
    pub limit: Limit,
    /// Charts that were here before are being downloaded again.
    pub awaits_charts: bool,
    /// What clusters have is not read yet, for apps that need something of it.
    pub unread: Unread,
    /// The last claim on hardware that is known here.
    pub claims: u64,
    sources: BTreeMap<SourceKey, sources::Read>,
}

fn refused(reason: &'static str, stalled: bool, message: String) -> Box<Refusal> {
    Refusal::of("Resolved", reason, stalled, message)
}

/// Reads everything. The inner error is a refusal that the engine cannot know of.
pub async fn gather(
    ctx: &Context,
    dig: &Arc<DeploymentIntentGroup>,
    owner: &Owner,
    newest: Option<&Stored>,
) -> Result<Result<Gathered, Box<Refusal>>, Failure> {
    let namespace = &owner.namespace;
    let Some(project) = composite_app::project(ctx, namespace) else {
        let message =
            format!("no Project owns namespace {namespace}: create one with spec.namespace {namespace}");
        return Ok(Err(refused("NoProject", false, message)));
    };
    let limits = project.spec.limits.as_ref();
    if let Some(refusal) = without_place(ctx, dig, newest, &project) {
        return Ok(Err(refusal));
    }
    if let Some(other) = release::holder(ctx, dig) {
        let message = format!(
            "release {} in logical cloud {} is DeploymentIntentGroup {other}'s, which had it first: set another spec.release in a new object",
            dig.release(),
            dig.spec.logical_cloud_ref.name
        );
        return Ok(Err(refused("DuplicateRelease", true, message)));
    }
    let spec = &dig.spec;
    let app = ctx.stores.apps.named(namespace, &spec.composite_app_ref.name);
    let profile = spec
        .composite_profile_ref
        .as_ref()
        .and_then(|named| ctx.stores.profiles.named(namespace, &named.name));
    let clusters = facts::clusters(ctx);
    let cloud = match ctx.stores.clouds.named(namespace, &spec.logical_cloud_ref.name) {
        None if is_being_made(dig, &project) => {
            let message = format!("Project {} makes the LogicalCloud default", meta::name(project.as_ref()));
            return Ok(Err(refused(Reason::Progressing.as_str(), false, message)));
        }
        None => None,
        Some(cloud) => match logical_cloud::facts(ctx, &cloud, &project, &clusters) {
            Ok(facts) => Some((facts, cloud.spec.level)),
            Err(refusal) => return Ok(Err(refusal)),
        },
    };
    let (intents, traffic) = (intents(ctx, dig), traffic(ctx, dig));
    let mut keys = profile.as_deref().map(resolve::sources).unwrap_or_default();
    keys.extend(intents.values().flat_map(|intent| resolve::intent_sources(intent)));
    let (charts, sources) =
        try_join(charts(ctx, app.as_deref()), sources::read(ctx, namespace, &keys)).await?;
    let lacks = app.as_deref().filter(|app| charts.len() < app.spec.apps.len());
    let awaits_charts = lacks.is_some_and(composite_app::is_resolved);
    if let Some(app) = lacks.filter(|app| composite_app::is_pinned(app)) {
        ctx.charts.want(namespace, meta::name(app));
    }
    let level = cloud.as_ref().map(|(_, level)| *level).unwrap_or_default();
    let cloud = cloud.map(|(facts, _)| facts);
    let mut gathered = Gathered {
        cloud_namespace: cloud.as_ref().map(|cloud| cloud.namespace.clone()).unwrap_or_default(),
        level,
        awaits_charts,
        unread: Unread::default(),
        // Before what was given is looked at: what comes meanwhile counts twice and not never.
        claims: ctx.hardware.claims.number(),
        limit: Limit::of(
            limits.and_then(|limits| limits.stored_bytes.as_ref()),
            usize::try_from(dig.spec.revision_history_limit).unwrap_or(10),
        )
        .within(limits.and_then(|limits| limits.total_stored_bytes.as_ref())),
        snapshot: Snapshot {
            installation: Arc::clone(&ctx.installation),
            project: meta::name(project.as_ref()).to_owned(),
            objects_per_app: limits
                .and_then(|limits| limits.objects_per_app)
                .map(|most| usize::try_from(most).unwrap_or_default()),
            dig: Arc::clone(dig),
            composite_app: app,
            profile,
            intents,
            hardware: hardware_intents(ctx, dig),
            traffic,
            cloud,
            clusters,
            charts,
            sources: sources.iter().map(|(key, read)| (key.clone(), read.source.clone())).collect(),
            running: newest.map(|stored| stored.running.as_ref().clone()),
            waiting: super::held::waiting(ctx, owner, newest),
            installed: installed(ctx, owner),
            leaving: rows::leaving(ctx, owner, newest).await?,
            now: ctx.world.clock.now_ms() / 1000,
        },
        sources,
    };
    gathered.unread = hardware::gather(ctx, owner, &mut gathered.snapshot);
    Ok(Ok(gathered))
}

/// Whether the logical cloud of a deployment is the one that its Project keeps, and makes any moment.
fn is_being_made(dig: &DeploymentIntentGroup, project: &Project) -> bool {
    let stalled = project.status.as_ref().is_some_and(|status| status.is_true(types::STALLED));
    dig.spec.logical_cloud_ref.name == DEFAULT_LOGICAL_CLOUD
        && project.spec.logical_cloud.is_some()
        && !meta::deleting(project)
        && !stalled
}

/// Why a deployment may not begin: its namespace has more of them than its Project allows, and as many are older. One that has a
/// revision stays, and may change, also where the limit was lowered.
fn without_place(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    newest: Option<&Stored>,
    project: &Project,
) -> Option<Box<Refusal>> {
    let most = project.most_deployments();
    let runs = newest.is_some() || dig.status.as_ref().is_some_and(|status| status.revision.is_some());
    let places = &ctx.stores.deployment_places;
    if runs || places.has_one(dig, usize::try_from(most).unwrap_or_default()) {
        return None;
    }
    // Without the number of those there are: all that wait would have other words, and be written, with each that comes or goes.
    let message = format!(
        "Project {} allows {} in namespace {} (spec.limits.deploymentIntentGroups), of which the oldest come first: delete others, or have the limit raised",
        meta::name(project),
        counted(usize::try_from(most).unwrap_or_default(), "deployment intent group"),
        meta::namespace(dig),
    );
    Some(refused("TooManyDeployments", true, message))
}

/// The generic actions that a deployment lists and that there are, by name.
fn intents(ctx: &Context, dig: &DeploymentIntentGroup) -> BTreeMap<String, Arc<GenericActionIntent>> {
    let listed = dig.spec.intents.iter().filter(|listed| resolve::is_generic_action(listed));
    let found = |name: &String| Some((name.clone(), ctx.stores.intents.named(meta::namespace(dig), name)?));
    listed.filter_map(|listed| found(&listed.name)).collect()
}

/// The same of those that say what is needed of nodes.
fn hardware_intents(ctx: &Context, dig: &DeploymentIntentGroup) -> BTreeMap<String, Arc<HardwareIntent>> {
    let listed = dig.spec.intents.iter().filter(|listed| resolve::is_hardware(listed));
    let found = |name: &String| Some((name.clone(), ctx.stores.hardware.named(meta::namespace(dig), name)?));
    listed.filter_map(|listed| found(&listed.name)).collect()
}

/// The same of traffic.
fn traffic(ctx: &Context, dig: &DeploymentIntentGroup) -> BTreeMap<String, Arc<TrafficGroupIntent>> {
    let listed = dig.spec.intents.iter().filter(|listed| resolve::is_traffic(listed));
    let found = |name: &String| Some((name.clone(), ctx.stores.traffic.named(meta::namespace(dig), name)?));
    listed.filter_map(|listed| found(&listed.name)).collect()
}

async fn charts(ctx: &Context, app: Option<&CompositeApp>) -> ApiResult<BTreeMap<String, ChartFacts>> {
    let mut charts = BTreeMap::new();
    let Some(object) = app else { return Ok(charts) };
    for app in &object.spec.apps {
        if let Some(chart) = composite_app::chart(ctx, object, app).await? {
            charts.insert(app.name.clone(), chart);
        }
    }
    Ok(charts)
}

/// Where apps were completely applied: there, the next hooks are those of an upgrade.
pub(super) fn installed(ctx: &Context, owner: &Owner) -> BTreeSet<(ClusterId, String)> {
    results::of(&store::shards(ctx, owner))
        .into_iter()
        .flat_map(|(cluster, result)| {
            let apps = result.row.applied_apps.unwrap_or_default();
            apps.into_keys().map(move |app| (cluster.clone(), app))
        })
        .collect()
}

impl Gathered {
    /// Whether the tenant's objects are on the hub as they were planned.
    pub async fn still_true(&self, ctx: &Context, dig: &DeploymentIntentGroup) -> ApiResult<bool> {
        let keys: BTreeSet<SourceKey> = self.sources.keys().cloned().collect();
        let namespace = meta::namespace(dig);
        let (dig_same, refs_same, sources) = try_join3(
            same(ctx, dig, |_| true),
            try_join(
                same_or_absent(ctx, self.snapshot.composite_app.as_deref(), |live: &CompositeApp, known| {
                    live.status.as_ref().map(|s| &s.apps) == known.status.as_ref().map(|s| &s.apps)
                }),
                same_or_absent(ctx, self.snapshot.profile.as_deref(), |_: &CompositeProfile, _| true),
            ),
            sources::read(ctx, namespace, &keys),
        )
        .await?;
        let mut intents_same = true;
        for intent in self.snapshot.intents.values() {
            intents_same = intents_same && same(ctx, intent.as_ref(), |_| true).await?;
        }
        for intent in self.snapshot.hardware.values() {
            intents_same = intents_same && same(ctx, intent.as_ref(), |_| true).await?;
        }
        for intent in self.snapshot.traffic.values() {
            intents_same = intents_same && same(ctx, intent.as_ref(), |_| true).await?;
        }
        Ok(dig_same && refs_same.0 && refs_same.1 && intents_same && sources == self.sources)
    }

    /// Whether the project is not suspended, as the hub says.
    pub async fn goes_on(&self, ctx: &Context) -> ApiResult<bool> {
        goes_on(ctx, &self.snapshot.project).await
    }
}

/// Whether a project is there and not suspended, as the hub says.
pub async fn goes_on(ctx: &Context, project: &str) -> ApiResult<bool> {
    let path = meta::collection::<Project>(None).then(project);
    let live: Option<Project> = ctx.hub().get_as(path).await?;
    Ok(live.is_some_and(|project| project.spec.suspend != Some(true)))
}

async fn same_or_absent<K>(
    ctx: &Context,
    known: Option<&K>,
    equal: impl Fn(&K, &K) -> bool,
) -> ApiResult<bool>
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    match known {
        Some(known) => same(ctx, known, |live| equal(live, known)).await,
        None => Ok(true),
    }
}

/// Same object, same spec, not being deleted meanwhile.
async fn same<K>(ctx: &Context, known: &K, equal: impl Fn(&K) -> bool) -> ApiResult<bool>
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    let live: Option<K> = ctx.hub().get_as(meta::path(known)).await?;
    Ok(live.is_some_and(|live| {
        meta::uid(&live) == meta::uid(known)
            && meta::generation(&live) == meta::generation(known)
            && meta::deleting(&live) == meta::deleting(known)
            && equal(&live)
    }))
}
