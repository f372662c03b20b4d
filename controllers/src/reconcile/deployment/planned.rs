//! Says what became of a plan, for what is reported and finished afterwards.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use emco_engine::approval::Wait;
use emco_engine::changes::{Changes, Details};
use emco_engine::hold::{Hold, Next};
use emco_engine::identity::SetDigest;
use emco_engine::placement::AppPlacement;
use emco_engine::plan::Plan;
use emco_engine::refusal::Refusal;
use emco_engine::set::{Assignment, ManifestSet};
use emco_engine::snapshot::Running;

use super::rollout::Way;
use crate::store::Stored;

/// What planning came to.
pub enum Planned {
    /// There is no plan; what is stored goes on.
    Refused(Box<Refused>),
    /// There is one; stored, unless nothing could be rendered yet, and how far it may go.
    Done(Box<Plan>, Option<Box<Stored>>, Option<Box<Way>>),
    /// It is not carried out: the deployment is suspended, only planned, pinned to a stored revision, or waits for an approval.
    Held(Box<Held>),
}

/// A deployment whose newest change cannot be planned.
pub struct Refused {
    /// Why.
    pub refusal: Box<Refusal>,
    /// The revision that runs.
    pub stored: Option<Stored>,
    /// What clusters are to have of it.
    pub assignment: Assignment,
    /// How far it may go meanwhile.
    pub way: Option<Box<Way>>,
}

impl Refused {
    /// Beside what runs, where nothing goes on.
    pub fn beside(refusal: Box<Refusal>, stored: Option<Stored>) -> Self {
        let assignment = stored.as_ref().map(|stored| stored.running.assignment.clone()).unwrap_or_default();
        Self { refusal, stored, assignment, way: None }
    }
}

/// A deployment whose newest plan is not carried out.
pub struct Held {
    /// The revision that runs.
    pub stored: Option<Stored>,
    /// What clusters are to have meanwhile.
    pub assignment: Assignment,
    /// What would be carried out, or why there is nothing.
    pub plan: Result<Plan, Box<Refusal>>,
    /// Why it is not.
    pub hold: Hold,
    /// Digest of what comes afterwards.
    pub digest: String,
    /// What that changes; `None` where nothing waits.
    pub change: Option<PendingChange>,
    /// How far what runs may go meanwhile.
    pub way: Option<Box<Way>>,
}

/// What changes when a plan that waits is carried out.
pub struct PendingChange {
    /// By app and cluster.
    pub changes: Changes,
    /// The same by name, as it is written down.
    pub details: Details,
    /// Digest of that.
    pub digest: String,
    /// What runs.
    pub running: Option<Arc<Running>>,
    /// Sets that clusters would get.
    pub sets: BTreeMap<SetDigest, Arc<ManifestSet>>,
}

impl PendingChange {
    pub fn new(
        changes: Changes,
        running: Option<Arc<Running>>,
        sets: BTreeMap<SetDigest, Arc<ManifestSet>>,
    ) -> Self {
        let details = changes.details();
        let digest = emco_engine::changes::digest(&details);
        Self { changes, details, digest, running, sets }
    }

    /// Names what would be deleted and made again, as far as the manifests tell.
    pub fn foresee(&mut self) {
        let runs = self.running.as_ref().map(|running| &running.sets);
        self.details.foresee(&self.changes, runs, &self.sets);
        self.renew();
    }

    /// What is written down has changed.
    pub fn renew(&mut self) {
        self.digest = emco_engine::changes::digest(&self.details);
    }
}

impl Planned {
    /// The revision that runs: one that comes back in the place of another, where that was taken back.
    pub fn stored(&self) -> Option<&Stored> {
        if let Some(back) = self.way().and_then(|way| way.back.as_ref()) {
            return Some(&back.to);
        }
        match self {
            Self::Refused(refused) => refused.stored.as_ref(),
            Self::Done(_, stored, _) => stored.as_deref(),
            Self::Held(held) => held.stored.as_ref(),
        }
    }

    /// What was worked out.
    pub fn plan(&self) -> Option<&Plan> {
        match self {
            Self::Refused(..) => None,
            Self::Done(plan, ..) => Some(plan),
            Self::Held(held) => held.plan.as_ref().ok(),
        }
    }

    /// Why nothing was.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refused) => Some(&refused.refusal),
            Self::Done(..) => None,
            Self::Held(held) => held.plan.as_ref().err().map(AsRef::as_ref),
        }
    }

    /// How far it may go.
    pub fn way(&self) -> Option<&Way> {
        match self {
            Self::Done(_, _, way) => way.as_deref(),
            Self::Held(held) => held.way.as_deref(),
            Self::Refused(refused) => refused.way.as_deref(),
        }
    }

    /// The approval that it lacks.
    pub fn awaits(&self) -> Option<&Wait> {
        self.held().and_then(|held| held.hold.awaits.as_ref())
    }

    pub fn held(&self) -> Option<&Held> {
        match self {
            Self::Held(held) => Some(held),
            Self::Refused(..) | Self::Done(..) => None,
        }
    }

    /// Whether what runs is the plan itself: then all that the plan says is true of it.
    pub fn is_carried_out(&self) -> bool {
        match self {
            Self::Refused(..) => false,
            Self::Done(..) => true,
            Self::Held(held) => held.plan.is_ok() && held.hold.next == Next::Same,
        }
    }

    /// Which app runs where: by the plan, or by what is held in its place.
    pub fn placement(&self) -> Cow<'_, [(String, AppPlacement)]> {
        match self {
            Self::Done(plan, ..) => Cow::Borrowed(plan.placement.as_slice()),
            Self::Held(held) if self.is_carried_out() => {
                Cow::Borrowed(held.plan.as_ref().map_or(&[][..], |plan| plan.placement.as_slice()))
            }
            Self::Held(held) => Cow::Owned(placed(held.stored.as_ref(), &held.assignment)),
            Self::Refused(refused) => Cow::Owned(placed(refused.stored.as_ref(), &refused.assignment)),
        }
    }
}

/// Where apps of a stored revision are.
fn placed(stored: Option<&Stored>, assignment: &Assignment) -> Vec<(String, AppPlacement)> {
    let apps = stored.into_iter().flat_map(|stored| &stored.spec.apps);
    let has = |app: &str| {
        let having = assignment.iter().filter(|(_, apps)| apps.contains_key(app));
        AppPlacement { chosen: having.map(|(id, _)| id.clone()).collect(), rejected: Vec::new() }
    };
    apps.map(|app| (app.name.clone(), has(&app.name))).collect()
}
