//! Takes together what others read of a cluster, by its Cluster and by its connection.

use emco_crds::cluster::ClusterSpec;
use emco_crds::conditions::types;
use emco_crds::{Cluster, Conditioned};
use emco_engine::identity::ClusterId;
use emco_engine::snapshot::ClusterFacts;

use crate::object::context::HubContext;
use crate::object::meta;
use crate::remote::{Admission, Observation, State};
use crate::tenancy::facts;

/// What the connection of a cluster shows: work on a cluster that is away is abandoned by this.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Link {
    /// Nobody asked for a connection; the reason that the condition Reachable gives where it is False.
    Unconnected(Option<String>),
    /// Not tried to the end yet.
    Connecting,
    /// The last probe failed, and why.
    Failed(&'static str),
    /// The last probe succeeded; why no work is done there, where that was judged.
    Connected { refused: Option<&'static str> },
}

impl Default for Link {
    fn default() -> Self {
        Self::Unconnected(None)
    }
}

impl Link {
    fn of(cluster: &Cluster, seen: Option<&Observation>) -> Self {
        let Some(seen) = seen else {
            let status = cluster.status.as_ref();
            let condition = status.and_then(|status| status.condition(types::REACHABLE));
            let unreachable = condition.filter(|condition| condition.status == "False");
            return Self::Unconnected(unreachable.map(|condition| condition.reason.clone()));
        };
        match (&seen.state, &seen.admission) {
            (State::Connecting, _) => Self::Connecting,
            (State::Failed { reason, .. }, _) => Self::Failed(reason),
            (State::Connected, Admission::Refused { reason, .. }) => {
                Self::Connected { refused: Some(*reason) }
            }
            (State::Connected, _) => Self::Connected { refused: None },
        }
    }
}

/// A cluster as others read it at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterView {
    /// UID of the Cluster.
    pub(super) object: String,
    /// All that plans read of it, without its APIs; `None` where nobody owns its namespace.
    pub facts: Option<ClusterFacts>,
    /// Its id while somebody owned its namespace, where nobody does now: there may be rows of it.
    pub(super) formerly: Option<ClusterId>,
    /// The wishes of people.
    pub spec: ClusterSpec,
    /// It is being deleted.
    pub deleting: bool,
    /// UID of its kube-system, as the status has it.
    pub identity: Option<String>,
    /// The same as it was seen last.
    pub seen_as: Option<String>,
    /// A digest of what it serves.
    pub(super) apis: Option<String>,
    /// That is known whole: plans wait for a cluster of which it is not.
    pub(super) is_listed: bool,
    /// What its connection shows.
    pub(super) link: Link,
    /// It answers, and work may be done there.
    pub(super) admitted: bool,
    /// Ready and Reachable.
    pub(super) conditions: [bool; 2],
}

impl ClusterView {
    /// As it is now.
    pub fn of(ctx: &HubContext, cluster: &Cluster) -> Self {
        let mut facts = facts::facts(ctx, cluster);
        let seen = facts.as_ref().and_then(|facts| ctx.connector.observation(&facts.id));
        let seen = seen.as_deref();
        let is_listed = facts.as_mut().and_then(|facts| facts.apis.take()).is_some();
        let status = cluster.status.as_ref();
        let says = |condition: &str| status.is_some_and(|status| status.is_true(condition));
        let last_id = || ClusterId::parse(status?.id.as_deref()?);
        Self {
            object: meta::uid(cluster).to_owned(),
            formerly: if facts.is_none() { last_id() } else { None },
            facts,
            spec: cluster.spec.clone(),
            deleting: meta::deleting(cluster),
            identity: status.and_then(|status| status.uid.clone()),
            seen_as: seen.and_then(|seen| seen.uid.clone()),
            apis: seen
                .and_then(|seen| seen.api_digest.clone())
                .or_else(|| status.and_then(|s| s.api_groups_digest.clone())),
            is_listed,
            link: Link::of(cluster, seen),
            admitted: seen.is_some_and(|seen| seen.connected() && seen.admission == Admission::Admitted),
            conditions: [types::READY, types::REACHABLE].map(says),
        }
    }

    /// `provider/cluster`, where somebody owns its namespace.
    pub fn id(&self) -> Option<&ClusterId> {
        self.facts.as_ref().map(|facts| &facts.id)
    }

    /// True where this differs from an earlier one only by that a connection was asked for. That makes nothing due, and nobody says anything
    /// else of it; told, it would have what the first probe shows wait.
    pub fn has_only_begun(&self, before: &Self) -> bool {
        matches!((&before.link, &self.link), (Link::Unconnected(_), Link::Connecting))
            && *before == Self { link: before.link.clone(), ..self.clone() }
    }

    /// True where this differs from another one by what people wrote, or by who the cluster is. No cluster says that of itself again and again.
    /// Without a connection it is people, too, who bring another reason: by the Secret that it names.
    pub fn is_written_anew(&self, other: &Self) -> bool {
        let labels = |view: &Self| view.facts.as_ref().map(|facts| facts.labels.clone());
        let uid = |view: &Self| view.facts.as_ref().and_then(|facts| facts.uid.clone());
        self.object != other.object
            || self.spec != other.spec
            || self.deleting != other.deleting
            || self.id() != other.id()
            || labels(self) != labels(other)
            || self.identity != other.identity
            || uid(self) != uid(other)
            || matches!((&self.link, &other.link), (Link::Unconnected(a), Link::Unconnected(b)) if a != b)
    }

    /// True where this differs from another one by no more than that a cluster that work is done on answers, or does not any more. What was
    /// not asked since the start counts as it was known.
    pub fn only_answers_or_not(&self, other: &Self) -> bool {
        let is_known = |view: &Self| {
            let is_unasked = matches!(view.link, Link::Unconnected(None) | Link::Connecting);
            view.identity.is_some()
                && (is_unasked || matches!(view.link, Link::Failed(_) | Link::Connected { refused: None }))
        };
        let alike = |view: &Self| Self {
            facts: view.facts.clone().map(|facts| ClusterFacts { reachable: true, ..facts }),
            seen_as: view.seen_as.clone().or_else(|| view.identity.clone()),
            link: Link::default(),
            admitted: true,
            conditions: [true; 2],
            ..view.clone()
        };
        is_known(self) && is_known(other) && alike(self) == alike(other)
    }

    /// True where others than those of another one may be concerned: they find this by something else.
    pub fn is_found_anew(&self, other: &Self) -> bool {
        self.is_written_anew(other) || self.is_selected_anew(other) || self.seen_as != other.seen_as
    }

    /// True where this differs from another one by what terms of placements, logical clouds and grants select by.
    pub fn is_selected_anew(&self, other: &Self) -> bool {
        let read = |view: &Self| {
            let facts = view.facts.as_ref()?;
            Some((facts.id.clone(), facts.labels.clone(), facts.kubernetes_version.clone()))
        };
        read(self) != read(other)
    }
}
