//! Adds to the status of a logical cloud how the credentials of its person stand.

use std::collections::BTreeSet;

use emco_crds::reasons::LogicalCloudReason as Reason;
use emco_crds::{Failing, Summary};

use super::{CloudRollup, LONGEST_MESSAGE, MOST_FAILING, Verdict, clusters};
use crate::conditions::truncate;
use crate::identity::ClusterId;

/// How the credentials stand, cluster by cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct People {
    /// Clusters whose first credential is on its way.
    pub awaited: BTreeSet<ClusterId>,
    /// Clusters that issue none, in the order of their names.
    pub failing: Vec<Failing>,
    /// Clusters that are asked for none, for they are written to through Git.
    pub left_out: BTreeSet<ClusterId>,
}

/// A cluster is ready when the person can work there, too.
pub fn with_people(rolled: CloudRollup, people: &People) -> CloudRollup {
    let People { awaited, failing, left_out } = people;
    let mut rolled = judged(rolled, awaited, failing);
    if let Some(first) = left_out.first() {
        let more = match left_out.len() {
            1 => String::new(),
            all => format!(" and {} more", all - 1),
        };
        let said = format!("no credentials of spec.user for {first}{more}: written to through Git");
        let message = &mut rolled.ready.message;
        *message = if message.is_empty() { said } else { format!("{message}; {said}") };
    }
    rolled
}

fn judged(mut rolled: CloudRollup, awaited: &BTreeSet<ClusterId>, failing: &[Failing]) -> CloudRollup {
    if awaited.is_empty() && failing.is_empty() {
        return rolled;
    }
    // Of a cluster that is in trouble itself, that is told.
    let failed: Vec<&Failing> =
        failing.iter().filter(|one| takes(&mut rolled.ready_on, &one.cluster)).collect();
    let waiting = awaited.iter().filter(|id| takes(&mut rolled.ready_on, id.as_str())).count();
    if failed.is_empty() && waiting == 0 {
        return rolled;
    }
    let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    rolled.clusters.ready -= count(failed.len() + waiting);
    rolled.clusters.failed += count(failed.len());
    let (ready, total) = (rolled.clusters.ready, rolled.clusters.total);
    rolled.summary = Summary { clusters: Some(format!("{ready}/{total}")), ..Summary::default() };
    for one in &failed {
        let mut row = (*one).clone();
        row.message = truncate(&row.message, LONGEST_MESSAGE);
        rolled.failing.push(row);
    }
    rolled.failing.truncate(MOST_FAILING);
    if rolled.ready.status == "True" || rolled.ready.reason == Reason::Unreachable.as_str() {
        rolled.ready = verdict(&rolled, &failed, waiting);
    }
    rolled
}

/// Takes a cluster out of those that are ready. Whether it was one.
fn takes(ready: &mut BTreeSet<ClusterId>, cluster: &str) -> bool {
    ClusterId::parse(cluster).is_some_and(|id| ready.remove(&id))
}

fn verdict(rolled: &CloudRollup, failed: &[&Failing], waiting: usize) -> Verdict {
    let total = usize::try_from(rolled.clusters.total).unwrap_or_default();
    let mut said = vec![format!("{} of {} ready", rolled.clusters.ready, clusters(total))];
    if waiting > 0 {
        said.push(format!("credentials of {} are awaited", clusters(waiting)));
    }
    if rolled.clusters.unreachable > 0 {
        said.push(format!("{} unreachable", rolled.clusters.unreachable));
    }
    if !failed.is_empty() {
        said.push(format!("{} failed", failed.len()));
    }
    if let Some(one) = failed.first() {
        said.push(format!("{}: {}: {}", one.cluster, one.reason, truncate(&one.message, LONGEST_MESSAGE)));
    }
    let reason = failed.first().and_then(|one| Reason::parse(&one.reason)).unwrap_or(Reason::Instantiating);
    Verdict { status: "False", reason: reason.as_str(), message: said.join("; ") }
}

#[cfg(test)]
mod tests {
    use emco_crds::logical_cloud::CloudClusters;
    use emco_crds::state::State;

    use super::*;

    fn rolled() -> CloudRollup {
        CloudRollup {
            state: State::Instantiated,
            summary: Summary { clusters: Some("2/2".to_owned()), ..Summary::default() },
            clusters: CloudClusters { total: 2, ready: 2, ..CloudClusters::default() },
            applied: "2 of 2 clusters".to_owned(),
            failing: Vec::new(),
            ready: Verdict { status: "True", reason: "Ready", message: "2 of 2 clusters ready".to_owned() },
            ready_on: ids(&["acme/a", "acme/b"]),
            applied_on: ids(&["acme/a", "acme/b"]),
            left: 0,
        }
    }

    fn ids(all: &[&str]) -> BTreeSet<ClusterId> {
        all.iter().filter_map(|id| ClusterId::parse(id)).collect()
    }

    fn failing(cluster: &str, reason: &str) -> Failing {
        let (cluster, reason) = (cluster.to_owned(), reason.to_owned());
        Failing { cluster, reason, message: "it did not".to_owned(), app: None, since: None }
    }

    /// Reason and message of Ready, ready clusters and failed ones.
    fn with(awaited: &[&str], refused: &[Failing]) -> (&'static str, String, i64, i64) {
        let people = People { awaited: ids(awaited), failing: refused.to_vec(), ..People::default() };
        let CloudRollup { ready, clusters, .. } = with_people(rolled(), &people);
        (ready.reason, ready.message, clusters.ready, clusters.failed)
    }

    #[test]
    fn clusters_written_through_git_are_left_out_with_a_sentence() {
        let people = People { left_out: ids(&["acme/b", "acme/c"]), ..People::default() };
        let CloudRollup { ready, clusters, .. } = with_people(rolled(), &people);
        assert_eq!((ready.status, clusters.ready), ("True", 2));
        assert_eq!(
            ready.message,
            "2 of 2 clusters ready; no credentials of spec.user for acme/b and 1 more: written to through Git"
        );
    }

    #[test]
    fn a_cloud_is_ready_when_its_person_has_credentials_everywhere() {
        assert_eq!(with_people(rolled(), &People::default()), rolled());
        let (reason, message, ready, failed) = with(&["acme/a"], &[]);
        assert_eq!((reason, ready, failed), ("Instantiating", 1, 0));
        assert_eq!(message, "1 of 2 clusters ready; credentials of 1 cluster are awaited");
        let (reason, message, ready, failed) = with(&["acme/a"], &[failing("acme/b", "CSRDenied")]);
        assert_eq!((reason, ready, failed), ("CSRDenied", 0, 1));
        assert_eq!(
            message,
            "0 of 2 clusters ready; credentials of 1 cluster are awaited; 1 failed; acme/b: CSRDenied: it did not"
        );
    }

    #[test]
    fn a_cluster_that_is_not_ready_anyway_is_told_of_once() {
        let (reason, _, ready, failed) = with(&["acme/c"], &[failing("acme/c", "CSRDenied")]);
        assert_eq!((reason, ready, failed), ("Ready", 2, 0));
    }
}
