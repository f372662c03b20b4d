//! Waits for the account of a logical cloud, and until it has all that a target needs where its rights are derived. The cluster itself is
//! asked: with a right missing, half of a revision would be applied, and the rest refused.

use emco_crds::{OwnerKind, RowStatus};
use emco_engine::cloud::{account_name, account_parts};
use emco_engine::path::ApiPath;
use emco_engine::role::Derived;
use emco_engine::role::{Asked, Rights, Rule};
use serde_json::json;

use super::super::edge::Session;
use super::super::errors::{Retry, Trouble};
use super::super::work::Named;
use super::desired::App;
use super::row::{Facts, deadline};
use super::{Job, Key};
use crate::api::{ApiResult, Content, Method, Request};

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";

impl Job {
    /// Whether the rights of a target are there, where they are derived; once for a wish.
    pub(super) async fn has_rights(
        &mut self,
        target: &Named,
        apps: &[App],
        session: &Session,
        facts: &mut Facts,
    ) -> bool {
        let pace = &self.memory.pace;
        let (Some(derived), Some(account)) = (pace.derived.clone(), self.memory.account.clone()) else {
            return true;
        };
        if self.memory.rights.as_deref() == Some(target.name.as_str()) {
            return true;
        }
        if !self.waits(&Key::Rights, facts) {
            let Some(trouble) = self.lacks(&account, &derived, apps, session).await else {
                self.memory.backoff.worked(&Key::Rights);
                self.memory.rights = Some(target.name.as_str().into());
                return true;
            };
            self.failed_and_told(&Key::Rights, &trouble, facts);
        }
        facts.keep = true;
        facts.wake_at(deadline(self));
        false
    }

    /// What is said while the account is not there: with what is in the way of its logical cloud, where that is known.
    pub(super) fn awaits_account(&self, account: &str) -> String {
        let named = account_parts(account).map(|(_, name)| name);
        match named.and_then(|name| self.ctx.edge.hindered.why(&self.ctx.owner.namespace, name)) {
            Some(why) => format!("its logical cloud cannot make {account} there: {why}"),
            None => format!("waits for its logical cloud to make {account} there"),
        }
    }

    /// Says why deployments of this logical cloud wait, if it is one: its own row does, and nobody who waits reads that.
    pub(super) fn tell_deployments(&self, status: &RowStatus) {
        let owner = &self.ctx.owner;
        if owner.kind != OwnerKind::LogicalCloud {
            return;
        }
        let why = status.error.as_ref().filter(|error| error.reason != "Progressing").map(|error| {
            let object = error.resource.as_ref().map(|object| format!("{object}: ")).unwrap_or_default();
            format!("{}: {object}{}", error.reason, error.message)
        });
        self.ctx.edge.hindered.note(&owner.namespace, &account_name(&owner.name), &owner.hash, why);
    }

    async fn lacks(
        &self,
        account: &str,
        derived: &Derived,
        apps: &[App],
        session: &Session,
    ) -> Option<Trouble> {
        let mut asked = Asked::default();
        for app in apps {
            asked.add(&Asked::of(&app.set.set, account));
        }
        let rights = asked.rights(&session.apis, derived);
        match self.lacking(account, &rights, session).await {
            Ok(None) => None,
            Ok(Some(right)) => {
                let text = format!("waits for its logical cloud to let {account} {right} there");
                Some(Trouble::new("Progressing", &text, Retry::Soon))
            }
            // Who may not ask hears of each object whether it may be applied.
            Err(error) if error.lacks_right() || error.is_not_found() => None,
            Err(error) => Some(Trouble::of_request(&error)),
        }
    }

    /// The first right that the account does not have, in the words of the cluster's resources.
    async fn lacking(&self, account: &str, rights: &Rights, session: &Session) -> ApiResult<Option<String>> {
        let home = account_parts(account).map_or("default", |(namespace, _)| namespace);
        let within = rights.namespaces.iter().map(|(namespace, rules)| (namespace.as_str(), rules));
        // What is bound for the whole cluster is among the rules of each namespace.
        let cluster = (!rights.cluster.is_empty()).then_some((home, &rights.cluster));
        for (namespace, rules) in within.chain(cluster) {
            let had = self.review(account, namespace, session).await?;
            if let Some(right) = rules.iter().find_map(|rule| rule.lacks(&had)) {
                return Ok(Some(right));
            }
        }
        Ok(None)
    }

    /// The rules that hold for the account in a namespace.
    async fn review(&self, account: &str, namespace: &str, session: &Session) -> ApiResult<Vec<Rule>> {
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": namespace},
        });
        let request = Request::new(Method::Post, ApiPath::new(REVIEWS))
            .acting_as(Some(account))
            .body(Content::Json, &review);
        let answer = self.send(session, request).await?;
        Ok(Rule::list(answer.pointer("/status/resourceRules")))
    }
}
