//! What all reconcilers share: handles of the process, no state of any object.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crate::api::looks::Looks;
use crate::api::plan_turns::PlanTurns;
use crate::api::planning::Planning;
use crate::api::renders::Renders;
use crate::api::views::{AnswerBudget, Answers, NoAnswers};
use crate::chart::ChartStore;
use crate::object::context::HubContext;
use crate::people::People;
use crate::producer::Producers;
use crate::reconcile::cluster::{Accesses, Admitted, Renewals};
use crate::reconcile::git_target::Paces;
use crate::reconcile::hardware::Hardware;
use crate::store::{Revisions, StoreContext};

/// Handles of the process. Whatever takes only the hub, or only what is stored, is given a part of it.
pub struct Context {
    /// The hub, revisions and charts.
    pub store: StoreContext,
    /// Kinds of owners.
    pub producers: Producers,
    /// What is known of people's credentials, and is being made of them.
    pub people: Arc<People>,
    /// What the last renewals of clusters' tokens came to.
    pub renewals: Arc<Renewals>,
    /// The pace of statuses of Git targets.
    pub paces: Arc<Paces>,
    /// Secrets of clusters, as they were read last.
    pub accesses: Arc<Accesses>,
    /// Clusters at their first contact.
    pub admitted: Arc<Admitted>,
    /// What deployments need of nodes, and what was read of clusters for them.
    pub hardware: Arc<Hardware>,
    /// Times that planning takes.
    pub planning: Arc<Planning>,
    /// Looks at deployments, and what they keep for the next ones.
    pub looks: Arc<Looks>,
    /// The same of logical clouds.
    pub cloud_looks: Arc<Looks>,
    /// Turns of plans.
    pub turns: PlanTurns,
    /// Turns of renderings.
    pub renders: Arc<Renders>,
    /// Answers to questions of members.
    pub answers: Arc<dyn Answers>,
    /// Answers of the last minute.
    pub answered: AnswerBudget,
}

impl Context {
    /// Of the operator, of a plan of files and of tests alike.
    pub fn new(
        hub: HubContext,
        revisions: Revisions,
        charts: Arc<ChartStore>,
        planning: Arc<Planning>,
    ) -> Self {
        Self {
            store: StoreContext { hub, revisions, charts },
            producers: Producers::default(),
            people: Arc::default(),
            renewals: Arc::default(),
            paces: Arc::default(),
            accesses: Arc::default(),
            admitted: Arc::default(),
            hardware: Arc::default(),
            planning,
            looks: Arc::default(),
            cloud_looks: Arc::default(),
            turns: PlanTurns::default(),
            renders: Arc::default(),
            answers: Arc::new(NoAnswers),
            answered: AnswerBudget::default(),
        }
    }
}

impl Deref for Context {
    type Target = StoreContext;

    fn deref(&self) -> &StoreContext {
        &self.store
    }
}

impl DerefMut for Context {
    fn deref_mut(&mut self) -> &mut StoreContext {
        &mut self.store
    }
}
