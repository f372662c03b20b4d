//! Counts deployments by what their condition Ready says, read at each scrape.

use std::collections::BTreeMap;
use std::fmt;

use emco_crds::conditions::types;
use emco_crds::deployment_intent_group::status::DeploymentIntentGroupStatus;
use emco_crds::{Conditioned as _, DeploymentIntentGroup};
use emco_engine::rollup;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::chart::BUSY;
use crate::stores::Objects;

pub(super) struct Deployments(pub Objects<DeploymentIntentGroup>);

impl fmt::Debug for Deployments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Deployments")
    }
}

/// Whether the last change of a deployment is refused: it did not resolve, place or render, or only an edit can cure it. Most
/// refusals end by themselves, too, as when a chart's source is back or a cluster gets the label; until then the change waits. One
/// that waits for a download is not refused.
fn is_refused(status: &DeploymentIntentGroupStatus) -> bool {
    let failed = |stage| {
        let condition = status.condition(stage);
        condition.is_some_and(|condition| condition.status == "False" && condition.reason != BUSY)
    };
    status.is_true(types::STALLED)
        || [types::RESOLVED, types::PLACED, types::RENDERED].into_iter().any(failed)
}

/// Whether a deployment is ready and failed on clusters that `readyClusters` does not need. Others say so with Ready.
fn has_partly_failed(status: &DeploymentIntentGroupStatus) -> bool {
    let failed = status.clusters.as_ref().is_some_and(|clusters| clusters.failed > 0);
    // The failed removals are no part of that number.
    status.is_true(types::READY)
        && (failed || status.failing.iter().any(|one| rollup::is_failure(&one.reason)))
}

/// Deployments, counted.
#[derive(Default)]
struct Counts {
    /// By status and reason of Ready.
    states: BTreeMap<(String, String), u32>,
    refused: u32,
    partly_failed: u32,
}

fn count<'a>(all: impl Iterator<Item = &'a DeploymentIntentGroup>) -> Counts {
    let mut counts = Counts::default();
    for status in all.filter_map(|deployment| deployment.status.as_ref()) {
        let Some(ready) = status.condition(types::READY) else { continue };
        *counts.states.entry((ready.status.clone(), ready.reason.clone())).or_default() += 1;
        counts.refused += u32::from(is_refused(status));
        counts.partly_failed += u32::from(has_partly_failed(status));
    }
    counts
}

impl Collector for Deployments {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let all = self.0.state();
        let counts = count(all.iter().map(AsRef::as_ref));
        let help = "Deployments, by status and reason of their condition Ready";
        let mut family = encoder.encode_descriptor("deployments", help, None, MetricType::Gauge)?;
        for ((ready, reason), count) in &counts.states {
            let labels = [("ready", ready.as_str()), ("reason", reason.as_str())];
            ConstGauge::new(f64::from(*count)).encode(family.encode_family(&labels)?)?;
        }
        for (name, help, count) in [
            (
                "deployments_refused",
                "Deployments whose last change is refused: it does not resolve, place or render",
                counts.refused,
            ),
            (
                "deployments_partly_failed",
                "Deployments that are ready on enough clusters and failed on others",
                counts.partly_failed,
            ),
        ] {
            let gauge = ConstGauge::new(f64::from(count));
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use emco_crds::{DeploymentIntentGroupSpec, Failing};
    use emco_engine::conditions;
    use k8s_openapi::jiff::Timestamp;

    use super::*;

    fn deployment(ready: &str, reason: &str, stalled: bool) -> DeploymentIntentGroup {
        let mut deployment = DeploymentIntentGroup::new("web", DeploymentIntentGroupSpec::default());
        let mut status = DeploymentIntentGroupStatus::default();
        let list = status.conditions_mut();
        conditions::set(list, types::READY, ready, reason, "", 1, Timestamp::UNIX_EPOCH);
        if stalled {
            conditions::set(list, types::STALLED, "True", reason, "", 1, Timestamp::UNIX_EPOCH);
        }
        deployment.status = Some(status);
        deployment
    }

    /// It is stopped at a stage that no edit of it has to cure.
    fn at_stage(stage: &str, reason: &str) -> DeploymentIntentGroup {
        let mut deployment = deployment("False", reason, false);
        let list = deployment.status.get_or_insert_default().conditions_mut();
        conditions::set(list, stage, "False", reason, "", 1, Timestamp::UNIX_EPOCH);
        deployment
    }

    #[test]
    fn deployments_are_counted_by_reason_and_refused_ones_by_themselves() {
        let all = vec![
            deployment("True", "Ready", false),
            deployment("True", "Ready", false),
            deployment("False", "TemplateError", true),
            deployment("False", "Unreachable", false),
            at_stage(types::RESOLVED, "ChartNotReady"),
            at_stage(types::RESOLVED, "Fetching"),
            at_stage(types::PLACED, "NoClusterMatches"),
            at_stage(types::RENDERED, "SecretNotFound"),
            at_stage(types::APPROVED, "WaitingForApproval"),
        ];
        let Counts { states, refused, .. } = count(all.iter());
        assert_eq!(refused, 4, "what waits for an approval or a download is not refused");
        let of = |ready: &str, reason: &str| states.get(&(ready.to_owned(), reason.to_owned())).copied();
        assert_eq!((of("True", "Ready"), of("False", "Unreachable")), (Some(2), Some(1)));
        assert_eq!(states.len(), 8);
    }

    #[test]
    fn a_ready_deployment_that_failed_on_a_cluster_is_counted() {
        let failing = |ready: &str, reason: &str| {
            let mut deployment = deployment(ready, "Ready", false);
            let one =
                Failing { cluster: "acme/b".to_owned(), reason: reason.to_owned(), ..Failing::default() };
            deployment.status.get_or_insert_default().failing.push(one);
            deployment
        };
        let all = [
            failing("True", "Invalid"),
            failing("True", "Unreachable"),
            failing("True", "NotReady"),
            failing("False", "Invalid"),
            deployment("True", "Ready", false),
        ];
        assert_eq!(count(all.iter()).partly_failed, 1);
    }
}
