//! Asks clusters what they would say to the objects of a plan that is only planned, as dry runs: of each variant the first cluster that
//! can be reached. Nothing is changed there.

use std::collections::BTreeMap;
use std::time::Duration;

use emco_crds::{DeploymentIntentGroup, OwnerKind};
use emco_engine::canonical;
use emco_engine::changes::{DryRun, MOST_ASKED, RecreatedRow, RefusedRow, Variant, What};
use emco_engine::identity::{ClusterId, Id};
use emco_engine::role::Derived;
use emco_engine::set::{ManifestSet, Phase, SetManifest};
use futures::StreamExt as _;
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::Instant;

use super::planned::PendingChange;
use crate::object::Owner;
use crate::object::meta;
use crate::reconcile::context::Context;
use crate::reconcile::results;
use crate::remote::Admission;
use crate::store::plan_details::{self, Answers};
use crate::store::{self, Turn};
use crate::tenancy::facts;

mod anew;
mod verdict;

use verdict::{Comes, Edge, Verdict};

/// Domain of digests of who a cluster is, and of what it serves.
const STATE: &str = "emco-plan-cluster/1\0";
/// Objects of one variant that are asked about.
const MOST_OBJECTS: usize = 200;
/// Refusals of one variant that are written down, and objects that would be made again.
const MOST_REFUSED: usize = 10;
/// Objects of one variant for which a cluster gives no answer until it is asked no more.
const MOST_SILENT: usize = 5;
/// Requests to one cluster at a time: for all plans of all projects, since what is carried out there has only a few more.
const AT_ONCE: usize = 2;
/// For all of one plan.
const LIMIT: Duration = Duration::from_secs(10);
/// For a turn: one deployment of a project asks at a time, and one asks a cluster.
const TURN: Duration = Duration::from_secs(2);
/// When it is tried again where others had the turn.
const LATER: Duration = Duration::from_secs(15);
/// When clusters are asked again where one gave no answer.
const AGAIN: Duration = Duration::from_mins(1);

/// Puts the clusters' answers into what is written down of a plan. What was answered before is not asked again, unless people ask for a
/// look now. When to ask again, where something was not answered.
pub async fn ask(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    owner: &Owner,
    change: &mut PendingChange,
) -> Option<Duration> {
    let sync = &dig.spec.sync;
    let policies = format!("conflicts: {:?}, immutableFields: {:?}", sync.conflicts, sync.immutable_fields);
    change.details.judged_by = Some(policies);
    change.renew();
    let bare = change.digest.clone();
    let status = dig.status.as_ref();
    let requested = super::request(dig);
    let anew =
        requested.is_some() && requested != status.and_then(|status| status.last_handled_request.clone());
    let said = status.and_then(|status| status.pending.as_ref()?.details.as_ref());
    let said = said.map(|details| details.digest.as_str());
    let known = if anew { None } else { plan_details::answered(ctx, owner, &bare, said).await };
    let known = known.unwrap_or_default();
    let now = Instant::now();
    // Whatever wakes the deployment, what gave no answer is asked once in this time.
    let silent = known.silent.filter(|since| now < *since + AGAIN);
    let comes = Comes::of(ctx, dig, change);
    let asker = Asker { ctx, dig, owner, comes, accounts: accounts(ctx, dig, change), until: now + LIMIT };
    let mut round =
        Round { left: MOST_ASKED, rests: silent.is_some(), silent: false, turn: None, late: false };
    let mut runs = BTreeMap::new();
    for (of, app) in change.changes.apps.iter().zip(&mut change.details.apps) {
        for (variant, row) in of.variants.iter().zip(&mut app.variants) {
            let Some(set) = variant.now.as_ref().and_then(|set| change.sets.get(set)) else { continue };
            let key = row.key(&app.app);
            let objects = objects(variant, set);
            if objects.is_empty() {
                continue;
            }
            if variant.clusters.iter().all(|id| facts::is_by_git(ctx, id)) {
                row.dry_run = Some(DryRun { by_git: true, ..DryRun::default() });
                continue;
            }
            let run = asker.run(variant, &objects, known.runs.get(&key), &mut round).await;
            if run.cluster.is_some() {
                runs.insert(key, run.clone());
            }
            row.dry_run = Some(run);
        }
    }
    let silent = silent.or_else(|| round.silent.then_some(now));
    plan_details::remember(ctx, owner, Answers { of: bare, runs, silent });
    change.renew();
    if round.late { Some(LATER) } else { silent.map(|since| (since + AGAIN).saturating_duration_since(now)) }
}

/// How far the asking is.
struct Round {
    /// Variants that may still be asked about.
    left: usize,
    /// Nobody is asked: somebody was silent a moment ago.
    rests: bool,
    /// Somebody is silent.
    silent: bool,
    /// The project's turn.
    turn: Option<Turn>,
    /// Others had the turn.
    late: bool,
}

/// Whose plan is asked about.
struct Asker<'a> {
    ctx: &'a Context,
    dig: &'a DeploymentIntentGroup,
    owner: &'a Owner,
    comes: Comes,
    /// Clusters that have all of the logical cloud, with the name of what they have.
    accounts: BTreeMap<ClusterId, String>,
    until: Instant,
}

impl Asker<'_> {
    /// What is known of a variant, or what a cluster says now.
    async fn run(
        &self,
        variant: &Variant,
        objects: &[(What, &SetManifest)],
        known: Option<&DryRun>,
        round: &mut Round,
    ) -> DryRun {
        let found = variant.clusters.iter().find_map(|id| Some((id, self.edge(id)?)));
        // An answer counts as long as the cluster that gave it is who it was, and serves what it served.
        let another = found.as_ref().is_some_and(|(id, edge)| {
            known.is_some_and(|run| run.cluster.as_ref() == Some(&id.to_string()) && run.state != edge.state)
        });
        let known = known.filter(|run| run.cluster.is_some() && !another);
        if round.left == 0 {
            return DryRun { left_out: objects.len(), ..DryRun::default() };
        }
        if let Some(run) = known {
            round.left -= 1;
            if run.unanswered == 0 || round.rests {
                return run.clone();
            }
        }
        let kept = || known.cloned().unwrap_or_default();
        let Some((cluster, edge)) = found else { return kept() };
        if known.is_none() {
            round.left -= 1;
        }
        if round.rests {
            return kept();
        }
        if Instant::now() >= self.until {
            round.silent = true;
            return kept();
        }
        let askers = &self.ctx.revisions.askers;
        if round.turn.is_none() && !round.late {
            round.turn = askers.turn(format!("project {}", self.owner.namespace), TURN).await;
        }
        let of_cluster = match round.turn {
            Some(_) => askers.turn(format!("cluster {cluster}"), TURN).await,
            None => None,
        };
        if of_cluster.is_none() {
            round.late = true;
            return kept();
        }
        let answer = self.answer(cluster, &edge, objects).await;
        round.silent |= answer.as_ref().is_none_or(|run| run.unanswered > 0);
        answer.unwrap_or_else(kept)
    }

    /// What a cluster says; `None` where it says nothing at all.
    async fn answer(
        &self,
        cluster: &ClusterId,
        edge: &Edge,
        objects: &[(What, &SetManifest)],
    ) -> Option<DryRun> {
        let asked = objects.iter().take(MOST_OBJECTS);
        let total = asked.len();
        // What was answered in time counts.
        let found = Mutex::new(Found::default());
        let requests = futures::stream::iter(asked).for_each_concurrent(AT_ONCE, |(what, manifest)| {
            let found = &found;
            async move {
                if found.lock().silent < MOST_SILENT {
                    let verdict = self.verdict(edge, *what, manifest).await;
                    found.lock().add(verdict);
                }
            }
        });
        // What is left is unanswered.
        let _ = tokio::time::timeout_at(self.until, requests).await;
        let Found { asked, mut refused, mut recreated, open, silent: _ } = found.into_inner();
        let unanswered = total - asked - open;
        if unanswered == total {
            return None;
        }
        refused.sort_by(|a, b| a.object.cmp(&b.object));
        let more = refused.len().saturating_sub(MOST_REFUSED);
        refused.truncate(MOST_REFUSED);
        recreated.sort_by(|a, b| a.object.cmp(&b.object));
        let more_recreated = recreated.len().saturating_sub(MOST_REFUSED);
        recreated.truncate(MOST_REFUSED);
        let (state, left_out) = (edge.state.clone(), objects.len() - total);
        Some(DryRun {
            cluster: Some(cluster.to_string()),
            state,
            asked,
            unanswered,
            left_out,
            by_git: false,
            refused,
            more,
            recreated,
            more_recreated,
        })
    }

    /// A cluster, if it can be reached and may be worked with.
    fn edge(&self, id: &ClusterId) -> Option<Edge> {
        if facts::is_by_git(self.ctx, id) {
            return None;
        }
        let seen = self.ctx.connector.observation(id)?;
        let open = seen.connected() && seen.admission == Admission::Admitted;
        let (true, Some(apis)) = (open, seen.apis.clone()) else { return None };
        let mut state = vec![json!(seen.uid), json!(seen.api_digest)];
        let account = self.accounts.get(id);
        state.extend(account.map(|has| json!(has)));
        let state = canonical::sha256(STATE, &json!(state));
        Some(Edge { server: self.ctx.connector.get(id)?, apis, state, has_account: account.is_some() })
    }
}

/// Where the account of the deployment's logical cloud has its rights, and the namespace is the logical cloud's; nowhere, if it has none, or
/// if they follow what is applied. Elsewhere nothing is asked for it.
fn accounts(
    ctx: &Context,
    dig: &DeploymentIntentGroup,
    change: &PendingChange,
) -> BTreeMap<ClusterId, String> {
    let mut manifests = change.sets.values().flat_map(|set| &set.manifests);
    let cloud = ctx.stores.clouds.named(meta::namespace(dig), &dig.spec.logical_cloud_ref.name);
    let cloud = cloud.filter(|cloud| !Derived::is_in(&cloud.spec));
    let Some(cloud) = cloud.filter(|_| manifests.any(|manifest| manifest.account.is_some())) else {
        return BTreeMap::new();
    };
    let shards = store::shards(ctx, &Owner::of(ctx, OwnerKind::LogicalCloud, cloud.as_ref()));
    let rows = results::of(&shards).into_iter().filter(|(_, result)| result.row.complete);
    rows.filter_map(|(id, result)| Some((id, result.row.target?.name))).collect()
}

/// What would be sent: hooks make their objects anew, and what is of a chart's folder `crds` is only made where it is absent.
fn objects<'a>(variant: &Variant, set: &'a ManifestSet) -> Vec<(What, &'a SetManifest)> {
    let changed: BTreeMap<&Id, What> = variant.objects.iter().map(|(what, id)| (id, *what)).collect();
    let lasting = |manifest: &&SetManifest| {
        matches!(manifest.phase, Phase::Foundation | Phase::Main) && !manifest.crd_folder
    };
    let of = |manifest: &SetManifest| changed.get(&Id::new(manifest.identity())).copied();
    let manifests = set.manifests.iter().filter(lasting);
    manifests.filter_map(|manifest| Some((of(manifest)?, manifest))).collect()
}

/// What a cluster said to the objects of a variant.
#[derive(Default)]
struct Found {
    asked: usize,
    refused: Vec<RefusedRow>,
    recreated: Vec<RecreatedRow>,
    /// Objects about which it can say nothing yet.
    open: usize,
    /// Objects for which it did not answer.
    silent: usize,
}

impl Found {
    fn add(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Accepted => self.asked += 1,
            Verdict::Refused(row) => {
                self.asked += 1;
                self.refused.push(row);
            }
            Verdict::Recreated(row) => {
                self.asked += 1;
                self.recreated.push(row);
            }
            Verdict::Open => self.open += 1,
            Verdict::Silent => self.silent += 1,
        }
    }
}
