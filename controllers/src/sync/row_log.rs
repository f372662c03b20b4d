//! Logs rows that fail and recover: a line each, as long as they are few.

use std::sync::Arc;

use emco_crds::reasons::is_progress;
use emco_crds::sync_shard::status::Connectivity;
use emco_crds::{RowStatus, SyncShard};

use super::line_bound::{LineBound, Sort};
use crate::object::{LogFields, one_line};

/// Lines of one shard, within those of its owner.
pub struct RowLog(Arc<LineBound>);

/// A new result of a row that is worth a line.
#[derive(Debug, PartialEq, Eq)]
enum Transition {
    Failed,
    Recovered,
}

impl RowLog {
    /// Of the shard's owner.
    pub fn new(lines: Arc<LineBound>) -> Self {
        Self(lines)
    }

    /// Logs a result that took the place of another one.
    pub fn tell(&self, shard: &SyncShard, before: Option<&RowStatus>, now: &RowStatus) {
        let Some(transition) = transition(before, now) else { return };
        if !self.0.takes(Sort::Rows) {
            return;
        }
        let LogFields { project, deployment, object } = &self.0.owner;
        let (project, deployment, object) = (project.as_deref(), deployment.as_deref(), object.as_deref());
        let row = shard.spec.clusters.iter().find(|row| row.id == now.id);
        let target = row.and_then(|row| row.target.as_ref());
        let revision = shard.spec.combinations.iter().find(|one| Some(&one.name) == target);
        let revision = revision.map(|one| one.revision).filter(|revision| *revision > 0);
        let cluster = now.cluster.as_str();
        if let (Transition::Failed, Some(error)) = (transition, &now.error) {
            let on = error.resource.as_ref().map(|on| format!("{on}: ")).unwrap_or_default();
            let said = one_line(error.message.strip_prefix(&on).unwrap_or(&error.message));
            let (app, reason) = (error.app.as_deref(), error.reason.as_str());
            tracing::warn!(
                project,
                deployment,
                object,
                cluster,
                revision,
                app,
                reason,
                "cluster failed: {on}{said}"
            );
        } else {
            tracing::info!(project, deployment, object, cluster, revision, "cluster recovered");
        }
    }
}

/// A cluster that cannot be reached has a line of its own, and its rows have none.
fn transition(before: Option<&RowStatus>, now: &RowStatus) -> Option<Transition> {
    if now.connectivity != Connectivity::Reachable {
        return None;
    }
    // What is waited for comes by itself, most often at once.
    let errors = |status: &RowStatus| status.error.as_ref().map(|error| error.reason.clone());
    let reason = |status: &RowStatus| errors(status).filter(|reason| !is_progress(reason));
    let failed = before.filter(|before| before.connectivity == Connectivity::Reachable).and_then(reason);
    match (failed, reason(now)) {
        (was, Some(is)) if was.as_ref() != Some(&is) => Some(Transition::Failed),
        (Some(_), None) => Some(Transition::Recovered),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use emco_crds::SyncShardSpec;
    use emco_crds::sync_shard::status::RowError;

    use super::*;
    use crate::reconcile_tests::Log;

    fn row(connectivity: Connectivity, reason: Option<&str>) -> RowStatus {
        let error = reason.map(|reason| RowError {
            reason: reason.to_owned(),
            message: "x".to_owned(),
            ..RowError::default()
        });
        RowStatus { connectivity, error, ..RowStatus::default() }
    }

    #[test]
    fn a_row_is_logged_when_it_fails_and_when_it_recovers() {
        let (fine, failed) =
            (row(Connectivity::Reachable, None), row(Connectivity::Reachable, Some("Invalid")));
        assert_eq!(transition(None, &fine), None);
        assert_eq!(transition(Some(&fine), &failed), Some(Transition::Failed));
        assert_eq!(transition(Some(&failed), &failed), None, "the same failure");
        assert_eq!(
            transition(Some(&failed), &row(Connectivity::Reachable, Some("NotOurs"))),
            Some(Transition::Failed)
        );
        assert_eq!(
            transition(Some(&fine), &row(Connectivity::Reachable, Some("Progressing"))),
            None,
            "it is on its way"
        );
        assert_eq!(transition(Some(&failed), &fine), Some(Transition::Recovered));
    }

    #[test]
    fn rows_of_a_cluster_that_is_away_are_not_logged() {
        let away = row(Connectivity::Unreachable, Some("Timeout"));
        let fine = row(Connectivity::Reachable, None);
        assert_eq!(transition(Some(&fine), &away), None);
        assert_eq!(transition(Some(&away), &fine), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_thousand_failing_clusters_do_not_fill_the_log() {
        let log = Log::begin();
        let rows = RowLog::new(LineBound::new(LogFields::default()));
        let shard = SyncShard::new("s", SyncShardSpec::default());
        let failed = row(Connectivity::Reachable, Some("Invalid"));
        (0..1000).for_each(|_| rows.tell(&shard, None, &failed));
        tokio::time::sleep(Duration::from_mins(2)).await;
        let said = log.take();
        assert_eq!(said.matches("cluster failed: x").count(), 10, "{said}");
        assert!(said.contains("WARN 990 lines left out within a minute: clusters that failed"), "{said}");
        assert_eq!(said.lines().count(), 11, "{said}");
    }
}
