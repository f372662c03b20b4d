//! Proves who reaches servers, from all that a plan would put on clusters. What is not as intents say refuses the plan, or is reported.

use std::sync::Arc;

use emco_crds::conditions::types::RENDERED;
use emco_crds::reasons::DeploymentIntentGroupReason as Reason;

use super::{Builder, render};
use crate::plan::work::Item;
use crate::refusal::Refusal;
use crate::set::ADDED;
use crate::traffic::proof::{Question, Violation};

/// Group and kind of policies.
const POLICY: (&str, &str) = ("networking.k8s.io", "NetworkPolicy");

impl<'a> Builder<'a> {
    /// Judges what is built. `items` are the cells of charts.
    pub(super) fn prove(&mut self, items: &[Item<'a>]) -> Result<(), Box<Refusal>> {
        let resolved = self.resolved;
        if resolved.traffic.is_empty() {
            return Ok(());
        }
        let proof = self.question().proof()?;
        if let Some(violation) = proof.fails() {
            let made_in = self.made_in(items, violation);
            let text = proof.refusal(violation, made_in.as_deref());
            return Err(Refusal::new(RENDERED, Reason::ReachabilityViolated, text));
        }
        self.built.reachability = Some(proof.status());
        Ok(())
    }

    fn question(&self) -> Question<'_> {
        let resolved = self.resolved;
        Question {
            groups: &resolved.traffic,
            clusters: &resolved.snapshot.clusters,
            assignment: &self.built.assignment,
            waiting: &self.built.waiting,
            sets: &self.built.sets,
            namespace: &resolved.cloud.namespace,
            isolation: resolved.cloud.isolation,
            release: resolved.dig.release(),
        }
    }

    /// The file of the chart, or the action, that makes the policy. A stored set does not say it: its chart is rendered once more, for this
    /// sentence alone.
    fn made_in(&mut self, items: &[Item<'a>], violation: &Violation) -> Option<String> {
        let (policy, maker) = violation.found.policy.as_ref()?;
        let app = maker.strip_prefix("app ")?;
        let (_, name) = policy.rsplit_once('/')?;
        let cluster = violation.clusters.first()?;
        let assigned = self.built.assignment.get(cluster)?.get(app)?;
        let set = Arc::clone(self.built.sets.get(&assigned.set)?);
        let manifest = set.manifests.iter().find(|manifest| {
            let identity = manifest.identity();
            identity.kind() == POLICY && identity.name == name
        });
        let added =
            manifest.and_then(|manifest| manifest.edited_by.iter().find_map(|by| by.strip_prefix(ADDED)));
        if let Some(action) = added {
            return Some(action.to_owned());
        }
        let item = items.iter().find(|item| item.id() == cluster && self.app(item) == app)?;
        let mut job = self.rendering(item).job;
        job.tentative = true;
        let drafts = render::render(self.resolved, &[job]).ok()?;
        let draft = drafts.into_iter().flatten().next()?;
        draft.source(POLICY, name).map(str::to_owned)
    }
}
