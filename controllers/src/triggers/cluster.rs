//! Wakes those whom a change of a cluster concerns, and no others.
//!
//! The reasons why these are enough are in docs/decisions/who-looks-again.md. `reconcile_tests/concerned.rs` compares with waking everybody.

use std::collections::BTreeSet;

use emco_crds::conditions::types;
use emco_crds::deployment_intent_group::placement::{Membership, Placement};
use emco_crds::fields::ClusterTerm;
use emco_crds::sync_shard::ShardRow;
use emco_crds::{Cluster, ClusterProvider, Conditioned, DeploymentIntentGroup, LogicalCloud, Project};
use emco_engine::cloud;
use emco_engine::identity::ClusterId;
use emco_engine::terms::{self, Candidate};

use super::cluster_maps_changed;
use super::cluster_pace::ClusterChange;
use super::cluster_view::ClusterView;
use super::{Change, Triggers};
use crate::api::key_queue::Key;
use crate::object::context::HubContext;
use crate::object::meta::{name, namespace};
use crate::stores::Stores;
use crate::stores::indexes::{IDENTITY, ROW};
use crate::tenancy::{facts, owned_namespace};

impl Triggers {
    /// The watch shows a Cluster: what it changes for others is told at its pace.
    pub fn cluster_shown(&self, ctx: &HubContext, change: &Change<'_, Cluster>) {
        let key = (namespace(change.object).to_owned(), name(change.object).to_owned());
        ctx.stores.cluster_maps.note(change.object, change.gone);
        let told = if change.gone {
            self.pace.gone(&key)
        } else if is_first_list(ctx) {
            // Each object is looked at once all is listed, whatever this one says.
            self.pace.begin(&key, || view(ctx, &key));
            None
        } else {
            self.pace.note(&key, || view(ctx, &key))
        };
        if let Some(told) = told {
            self.cluster(ctx, &told);
        }
    }

    /// The watch shows a namespace. Clusters may be listed before it: they are taken in once more, for it says whose they are.
    pub fn namespace_shown(&self, ctx: &HubContext, changed: &str) {
        self.namespace(&ctx.stores, changed);
        if is_first_list(ctx) {
            for cluster in ctx.stores.clusters.within(changed) {
                let key = (changed.to_owned(), name(cluster.as_ref()).to_owned());
                self.pace.begin(&key, || view(ctx, &key));
            }
        }
    }

    /// Its connection shows something: the Cluster looks, and what it changes for others is told at its pace.
    pub fn cluster_observed(&self, ctx: &HubContext, id: &ClusterId) {
        let Some(cluster) = facts::registered(ctx, id) else { return };
        let key = (namespace(cluster.as_ref()).to_owned(), name(cluster.as_ref()).to_owned());
        self.clusters.enqueue(&key.0, &key.1);
        if let Some(told) = self.pace.note(&key, || view(ctx, &key)) {
            self.cluster(ctx, &told);
        }
    }

    /// A cluster tells that it is another one than others know.
    pub fn cluster(&self, ctx: &HubContext, change: &ClusterChange) {
        let stores = &ctx.stores;
        let concerned = Concerned::new(stores, change);
        for provider in stores.providers.sorted() {
            if owned_namespace::of_provider(&provider) == change.key.0 {
                self.providers.enqueue("", name(provider.as_ref()));
            }
        }
        if concerned.selected_anew {
            for project in &concerned.granted {
                self.projects.enqueue("", project);
            }
        }
        self.twins(ctx, change);
        let targets: BTreeSet<&str> =
            change.views.iter().filter_map(|view| view.spec.access.git_target()).collect();
        for target in targets {
            self.git_targets.enqueue(&change.key.0, target);
        }
        cluster_maps_changed::cluster(stores, &change.key);
        self.with_rows(stores, &concerned);
        self.clouds.all(stores.clouds.sorted().iter().filter(|cloud| concerned.cloud(cloud)));
        self.digs.all(stores.digs.sorted().iter().filter(|dig| concerned.deployment(dig)));
    }

    /// Owners with a row of a cluster, and ledgers. Of a cluster that answers or does not, its row tells whatever is to stay there.
    fn with_rows(&self, stores: &Stores, concerned: &Concerned<'_>) {
        for id in &concerned.ids {
            for shard in stores.shards.indexed(ROW, id.as_str()) {
                let stays = |row: &ShardRow| row.cluster == id.as_str() && row.target.is_some();
                if shard.spec.abandoned.is_some() {
                    self.stored(&shard);
                } else if !concerned.only_answers || !shard.spec.clusters.iter().any(stays) {
                    let owner = &shard.spec.owner;
                    self.producer(&owner.kind, shard.owner_namespace(), &owner.name);
                }
            }
        }
    }

    /// Clusters of the same API server: the others are judged by the one that has it. One that does not have it while another one does
    /// concerns none of them.
    fn twins(&self, ctx: &HubContext, change: &ClusterChange) {
        let clusters = &ctx.stores.clusters;
        let is_own = |cluster: &Cluster| namespace(cluster) == change.key.0 && name(cluster) == change.key.1;
        let is_another = |a: &ClusterView, b: &ClusterView| {
            a.identity != b.identity || a.deleting != b.deleting || a.id() != b.id()
        };
        let uids: BTreeSet<&String> =
            change.views.iter().flat_map(|view| view.identity.iter().chain(&view.seen_as)).collect();
        for uid in uids {
            let mut others = clusters.indexed(IDENTITY, uid);
            others.retain(|other| !is_own(other));
            let has = |view: &ClusterView| view.identity.as_ref() == Some(uid);
            let has_it = change.views.iter().any(has);
            let concerns = if has_it { change.moved(is_another) } else { others.is_empty() };
            if !concerns {
                continue;
            }
            self.clusters.all(&others);
            let seen = ctx.connector.seen_as(uid);
            let seen: Vec<_> = seen.iter().filter_map(|id| facts::registered(ctx, id)).collect();
            self.clusters.all(seen.iter().filter(|other| !is_own(other)));
        }
    }
}

/// True while not all is listed that says what a cluster is to others: nobody looks yet.
fn is_first_list(ctx: &HubContext) -> bool {
    ["Cluster", "Namespace"].iter().any(|kind| ctx.stores.listed.awaits(kind))
}

/// A cluster as its store and its connection have it at this moment.
fn view(ctx: &HubContext, (within, called): &Key) -> Option<ClusterView> {
    ctx.stores.clusters.named(within, called).map(|cluster| ClusterView::of(ctx, &cluster))
}

impl ClusterChange {
    /// True where it came, went, or was or is another one by this.
    fn moved(&self, differs: impl Fn(&ClusterView, &ClusterView) -> bool) -> bool {
        let mut pairs = self.views.iter().zip(self.views.iter().skip(1));
        self.came || self.gone || self.overflowed || pairs.any(|(before, after)| differs(before, after))
    }
}

/// Judges whom a change concerns.
struct Concerned<'a> {
    /// Terms may pick it that did not, or the other way round.
    selected_anew: bool,
    /// Names that it has and had.
    ids: BTreeSet<ClusterId>,
    /// The cluster as terms see it, and saw it.
    candidates: Vec<Candidate<'a>>,
    /// Not all that it was is known.
    unknown: bool,
    /// It answers, or does not any more, and nothing else.
    only_answers: bool,
    /// Projects that its provider grants anything.
    granted: BTreeSet<String>,
    /// Their namespaces.
    tenants: BTreeSet<String>,
}

impl<'a> Concerned<'a> {
    fn new(stores: &Stores, change: &'a ClusterChange) -> Self {
        let ids = change.views.iter().filter_map(|view| view.id().or(view.formerly.as_ref()));
        let ids: BTreeSet<ClusterId> = ids.cloned().collect();
        let providers = ids.iter().filter_map(|id| stores.providers.named("", id.provider()));
        let providers: Vec<_> = providers.collect();
        let mut granted = BTreeSet::new();
        let mut tenants = BTreeSet::new();
        for project in stores.projects.sorted() {
            if providers.iter().any(|provider| grants(provider, &project)) {
                granted.insert(name(project.as_ref()).to_owned());
                tenants.insert(project.owned_namespace().to_owned());
            }
        }
        let facts = change.views.iter().filter_map(|view| view.facts.as_ref());
        // A moment ago nobody owned its namespace, or its namespace was not shown yet.
        let has_id = |view: &ClusterView| view.id().is_some();
        let lacks_one = change.views.iter().any(has_id) && !change.views.iter().all(has_id);
        Self {
            selected_anew: change.moved(ClusterView::is_selected_anew),
            ids,
            candidates: facts.map(Candidate::new).collect(),
            unknown: change.overflowed || lacks_one,
            only_answers: !change.moved(|before, after| !after.only_answers_or_not(before)),
            granted,
            tenants,
        }
    }

    fn picks(&self, terms: &[ClusterTerm]) -> bool {
        self.candidates.iter().any(|candidate| terms::any_matches(terms, candidate))
    }

    /// True in a namespace whose terms may have picked it as something that is not known: only a project that is granted clusters can.
    fn may_have_picked(&self, within: &str) -> bool {
        self.unknown && self.tenants.contains(within)
    }

    /// A logical cloud reads clusters that its terms pick; without terms, those that its project is granted. One that is not as it should be
    /// may say of any cluster why. Whether one answers matters where credentials are made there.
    fn cloud(&self, cloud: &LogicalCloud) -> bool {
        let ready = cloud.status.as_ref().is_some_and(|status| status.is_true(types::READY));
        if ready && self.only_answers && cloud.spec.user.is_none() {
            return false;
        }
        !ready
            || match &cloud.spec.clusters {
                Some(terms) => self.picks(terms) || self.may_have_picked(namespace(cloud)),
                None => self.tenants.contains(namespace(cloud)),
            }
    }

    /// A deployment reads clusters that its terms pick, beside those of its rows. Where it has another plan than its terms and its rows say, or
    /// none, it may say of any cluster why. Whether one answers matters where some of several are chosen.
    fn deployment(&self, dig: &DeploymentIntentGroup) -> bool {
        let placement = &dig.spec.placement;
        is_unsettled(dig)
            || self.may_have_picked(namespace(dig))
            || choices_of(placement).any(|terms| self.picks(terms))
            || !self.only_answers && conditions_of(placement).any(|terms| self.picks(terms))
    }
}

fn grants(provider: &ClusterProvider, project: &Project) -> bool {
    cloud::grants_any(provider, name(project), &facts::labels(project))
}

/// Terms that pick all of their clusters.
fn conditions_of(placement: &Placement) -> impl Iterator<Item = &[ClusterTerm]> {
    let Placement { all_of, any_of: _, membership: _, weights: _, apps } = placement;
    std::iter::once(all_of.as_slice()).chain(apps.iter().map(|rule| rule.all_of.as_slice()))
}

/// Terms of whose clusters some are chosen.
fn choices_of(placement: &Placement) -> impl Iterator<Item = &[ClusterTerm]> {
    let of_apps = placement.apps.iter().flat_map(|rule| &rule.any_of);
    placement.any_of.iter().chain(of_apps).map(|group| group.from.as_slice())
}

/// True where a deployment does not show what its terms and rows come to: nothing was planned yet, a plan is refused or waits, a revision is
/// pinned or rolled out, or its clusters are those of an earlier moment.
pub fn is_unsettled(dig: &DeploymentIntentGroup) -> bool {
    let spec = &dig.spec;
    let is_frozen = |membership: Option<Membership>| membership == Some(Membership::Frozen);
    let frozen = is_frozen(spec.placement.membership)
        || spec.placement.apps.iter().any(|rule| is_frozen(rule.membership));
    let Some(status) = &dig.status else { return true };
    let refuses = |stage: &&str| status.condition(stage).is_some_and(|stage| stage.status != "True");
    frozen
        || types::STAGES.iter().any(refuses)
        || spec.revision.is_some()
        || status.revision.is_none()
        || status.pending.is_some()
        || status.rollout.is_some()
        || status.observed_generation != dig.metadata.generation
}
