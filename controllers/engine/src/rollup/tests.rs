use emco_crds::IntOrText;
use emco_crds::sync_shard::status::{
    Applied, Connectivity, LeftOut, RowApp, RowCounts, RowDrift, RowDrifted, RowError,
};
use emco_crds::{RowStatus, Time};
use k8s_openapi::jiff::Timestamp;

use super::*;
use crate::drift::DELETED;
use crate::identity::SetDigest;
use crate::shard::{encode_status, retarget};

mod replaced;
mod size;
mod sums;
mod waiting;

fn apps(set: &str) -> Combination {
    ["db", "web"].map(|app| (app.to_owned(), SetDigest(format!("{set}-{app}")))).into()
}

fn wanted(clusters: usize, set: &str) -> BTreeMap<ClusterId, Combination> {
    (1..=clusters).map(|n| (ClusterId::new("acme", &format!("edge-{n:02}")), apps(set))).collect()
}

/// A fleet where all is well with `wanted`.
struct Fleet {
    spec: SyncShardSpec,
    generation: i64,
    rows: BTreeMap<i64, RowStatus>,
    wanted: BTreeMap<ClusterId, Combination>,
}

impl Fleet {
    fn new(clusters: usize) -> Self {
        Self::of(wanted(clusters, "s1"))
    }

    fn of(wanted: BTreeMap<ClusterId, Combination>) -> Self {
        let empty = SyncShardSpec { format: 1, next_id: 1, ..SyncShardSpec::default() };
        let spec = retarget(&empty, None, 1, 1, &wanted).unwrap_or(empty);
        let rows = spec.clusters.iter().map(|row| {
            let status = RowStatus {
                id: row.id,
                connectivity: Connectivity::Reachable,
                state: State::Instantiated,
                applied: Some(Applied { combination: row.target.clone(), generation: 1 }),
                counts: Some(RowCounts { applied: 20, ready: 20, ..RowCounts::default() }),
                total: 20,
                applied_count: 20,
                ready: 20,
                ..RowStatus::default()
            };
            (row.id, status)
        });
        let rows = rows.collect();
        Self { spec, generation: 1, rows, wanted }
    }

    /// Everything is to become this set.
    fn retarget(&mut self, wanted: BTreeMap<ClusterId, Combination>) {
        let status = encode_status(&self.spec, self.generation, &self.rows);
        self.generation += 1;
        self.spec = retarget(&self.spec, Some(&status), self.generation, 2, &wanted).unwrap();
        self.wanted = wanted;
    }

    fn change(&mut self, id: i64, change: impl FnOnce(&mut RowStatus)) {
        change(self.rows.get_mut(&id).unwrap());
    }

    fn fail(&mut self, id: i64, reason: &str, message: &str, second: i64) {
        self.change(id, |row| {
            row.state = State::InstantiateFailed;
            row.applied = None;
            row.since = Some(Time(Timestamp::new(second, 0).unwrap()));
            row.error = Some(RowError {
                app: Some("web".to_owned()),
                resource: Some("apps/Deployment/shop/web".to_owned()),
                reason: reason.to_owned(),
                message: message.to_owned(),
                attempts: 3,
            });
            row.apps = vec![RowApp {
                app: "web".to_owned(),
                state: State::InstantiateFailed,
                ready: 0,
                total: 10,
                ..RowApp::default()
            }];
        });
    }

    fn lose(&mut self, id: i64) {
        self.change(id, |row| row.connectivity = Connectivity::Unreachable);
    }

    fn with<T>(&self, share: Option<&str>, look: impl FnOnce(&DigInputs<'_>) -> T) -> T {
        let status = encode_status(&self.spec, self.generation, &self.rows);
        let shards = [(&self.spec, Some(&status))];
        let placement: Vec<(String, AppPlacement)> = ["db", "web"]
            .map(|app| {
                (
                    app.to_owned(),
                    AppPlacement { chosen: self.wanted.keys().cloned().collect(), rejected: Vec::new() },
                )
            })
            .into();
        let share = share.map(|text| PercentOrCount(IntOrText::Text(text.to_owned())));
        look(&DigInputs {
            shards: &shards,
            wanted: &self.wanted,
            revision: Some(3),
            placement: &placement,
            ready_clusters: share.as_ref(),
            before: &Before::default(),
            approved: true,
            removing: self.wanted.is_empty(),
            suspended: false,
            abandoned: &[],
        })
    }

    fn dig(&self) -> DigRollup {
        self.with(None, dig)
    }
}

fn text(verdict: &Verdict) -> String {
    format!("{} {}: {}", verdict.status, verdict.reason, verdict.message)
}

#[test]
fn a_fleet_where_all_is_well() {
    let status = Fleet::new(42).dig();
    assert_eq!(text(&status.deployed), "True Deployed: 42 clusters have revision 3");
    assert_eq!(text(&status.ready), "True Ready: 42 of 42 clusters ready");
    assert_eq!(status.summary.clusters.as_deref(), Some("42/42"));
    assert_eq!(status.summary.resources.as_deref(), Some("840/840"));
    assert_eq!((status.state, status.failing.len(), status.left), (State::Instantiated, 0, 0));
    let apps: Vec<_> = status
        .apps
        .iter()
        .map(|a| (a.name.as_str(), a.state.unwrap(), a.clusters, a.ready, a.chosen.len()))
        .collect();
    assert_eq!(apps, [("db", State::Instantiated, 42, 42, 3), ("web", State::Instantiated, 42, 42, 3)]);
}

/// The original stayed Ready when a cluster died.
#[test]
fn a_dead_cluster_is_never_counted_ready_and_what_it_has_is_unknown() {
    let mut fleet = Fleet::new(42);
    fleet.lose(7);
    let status = fleet.dig();
    assert_eq!(
        text(&status.ready),
        "False Unreachable: 41 of 42 clusters ready; 1 unreachable; acme/edge-07: Unreachable"
    );
    // It has the revision: that is still true.
    assert_eq!(status.deployed.status, "True");
    assert_eq!(status.applied, "42 of 42 clusters, of which 1 cannot be reached");
    assert_eq!(status.state, State::Instantiated);
    assert_eq!((status.ready_counts.ready, status.ready_counts.unknown), (820, 20));
    assert_eq!((status.clusters.ready, status.clusters.unreachable), (41, 1));
    assert_eq!(status.apps[0].ready, 41);
    // A share of the clusters is enough where the owner says so.
    let status = fleet.with(Some("95%"), dig);
    assert_eq!(
        text(&status.ready),
        "True Ready: 41 of 42 clusters ready (40 needed); 1 unreachable; acme/edge-07: Unreachable"
    );
}

/// The original failed a whole rollout for one cluster, and kept no word of why.
#[test]
fn a_failed_cluster_is_named_with_the_servers_words_and_stops_nothing_else() {
    let mut fleet = Fleet::new(3);
    fleet.fail(2, "Invalid", "spec.replicas: must be at least 0", 5);
    let status = fleet.dig();
    assert_eq!(
        text(&status.deployed),
        "False Invalid: 2 of 3 clusters have revision 3; 1 failed; acme/edge-02 (web): Invalid: apps/Deployment/shop/web: spec.replicas: must be at least 0"
    );
    assert_eq!(status.ready.reason, "Invalid");
    assert_eq!(status.state, State::InstantiateFailed);
    let apps: Vec<_> = status.apps.iter().map(|a| (a.state.unwrap(), a.ready)).collect();
    assert_eq!(apps, [(State::Instantiated, 3), (State::InstantiateFailed, 2)]);
}

#[test]
fn the_words_of_a_cluster_that_answers_are_always_said() {
    for reason in ["ServerError", "Unreachable"] {
        let mut fleet = Fleet::new(2);
        fleet.fail(2, reason, "failed calling webhook \"deny\"", 5);
        fleet.change(2, |row| row.state = State::Instantiating);
        let said = format!(
            "False Progressing: 1 of 2 clusters ready; acme/edge-02 (web): {reason}: apps/Deployment/shop/web: failed calling webhook \"deny\""
        );
        assert_eq!(text(&fleet.dig().ready), said);
        assert_eq!(fleet.dig().clusters.unreachable, 0);
    }
    // Without progress for too long it counts as failed.
    let mut fleet = Fleet::new(2);
    fleet.fail(2, "ServerError", "failed calling webhook", 5);
    let status = fleet.dig();
    assert_eq!((status.ready.reason, status.clusters.failed), ("ServerError", 1));
}

/// The original called an application ready that had nothing anywhere.
#[test]
fn an_owner_that_is_nowhere_is_not_ready() {
    let status = Fleet::new(0).dig();
    assert_eq!(status.ready.status, "False");
}

#[test]
fn an_update_on_its_way_is_progressing_and_speaks_of_the_new_revision() {
    let mut fleet = Fleet::new(2);
    fleet.retarget(wanted(2, "s2"));
    let status = fleet.dig();
    assert_eq!(text(&status.deployed), "False Progressing: 0 of 2 clusters have revision 3");
    assert_eq!(status.ready.reason, "Progressing");
    assert_eq!(status.clusters.progressing, 2);
    let before = Before { state: State::Instantiated, revision: Some(2), apps: BTreeMap::new() };
    assert_eq!(fleet.with(None, |i| dig(&DigInputs { before: &before, ..*i })).state, State::Updating);
    // All that is left waits for a cluster.
    fleet.rows.remove(&1);
    fleet.lose(2);
    fleet.change(2, |row| row.applied = None);
    fleet.rows.insert(
        1,
        RowStatus {
            applied: Some(Applied { combination: Some("t2".to_owned()), generation: 2 }),
            connectivity: Connectivity::Reachable,
            state: State::Updated,
            ..RowStatus::default()
        },
    );
    let status = fleet.dig();
    assert_eq!(status.deployed.reason, "Unreachable");
    assert_eq!(status.state, State::Instantiated);
}

#[test]
fn a_cluster_that_is_left_counts_until_nothing_is_left_there() {
    let mut fleet = Fleet::new(3);
    fleet.retarget(wanted(2, "s1"));
    let status = fleet.dig();
    assert_eq!((status.clusters.total, status.left), (2, 1));
    assert_eq!(
        text(&status.deployed),
        "False Progressing: 2 of 2 clusters have revision 3; 1 cluster still to be cleaned"
    );
    // What runs is as it should be.
    assert_eq!(status.ready.reason, "Ready");
    fleet.change(3, |row| row.applied = Some(Applied { combination: None, generation: 2 }));
    let status = fleet.dig();
    assert_eq!((status.left, status.deployed.status, status.ready.status), (0, "True", "True"));
}

/// The original said Terminated while nothing had been deleted.
#[test]
fn terminated_is_said_only_when_every_row_says_that_nothing_is_left() {
    let mut fleet = Fleet::new(2);
    fleet.retarget(BTreeMap::new());
    assert_eq!(fleet.dig().state, State::Terminating);
    fleet.change(1, |row| row.applied = Some(Applied { combination: None, generation: 2 }));
    fleet.change(2, |row| row.state = State::TerminateFailed);
    assert_eq!(fleet.dig().state, State::TerminateFailed);
    fleet.change(2, |row| row.applied = Some(Applied { combination: None, generation: 2 }));
    assert_eq!(fleet.dig().state, State::Terminated);
}

#[test]
fn ten_failing_clusters_are_named_the_oldest_first_and_in_short() {
    let mut fleet = Fleet::new(30);
    for id in 1..=30 {
        fleet.fail(id, "Forbidden", &"x".repeat(2000), 1000 - id);
    }
    let status = fleet.dig();
    assert_eq!(status.failing.len(), 10);
    assert_eq!(status.failing[0].cluster, "acme/edge-30");
    assert!(status.failing.iter().all(|f| f.message.len() <= 256));
    assert!(status.deployed.message.len() < 600);
}

#[test]
fn a_cluster_without_a_row_or_a_result_is_progressing() {
    let mut fleet = Fleet::new(2);
    fleet.rows.remove(&1);
    fleet.wanted.insert(ClusterId::new("acme", "new"), apps("s1"));
    let status = fleet.dig();
    assert_eq!((status.clusters.total, status.clusters.ready, status.clusters.progressing), (3, 1, 2));
    assert_eq!(status.apps[0].ready, 1);
}

#[test]
fn while_a_shard_is_split_a_cluster_counts_once() {
    let fleet = Fleet::new(20);
    let status = encode_status(&fleet.spec, 1, &fleet.rows);
    let half = crate::shard::divide(&fleet.spec, Some(&status)).unwrap();
    let shards = [(&fleet.spec, Some(&status)), (&half.spec, Some(&half.status))];
    let counted = fleet.with(None, |inputs| dig(&DigInputs { shards: &shards, ..*inputs }));
    assert_eq!((counted.clusters.total, counted.clusters.ready), (20, 20));
}

#[test]
fn a_share_is_rounded_up_and_a_number_is_at_most_all() {
    let text = |t: &str| PercentOrCount(IntOrText::Text(t.to_owned()));
    assert_eq!(needed(None, 42), 42);
    assert_eq!(needed(Some(&text("95%")), 42), 40);
    assert_eq!(needed(Some(&text("0%")), 42), 0);
    assert_eq!(needed(Some(&text("7")), 42), 7);
    let borne_of = |share: &str| borne(Some(&text(share)), 42);
    assert_eq!((borne(None, 42), borne_of("5%"), borne_of("100%"), borne_of("7")), (0, 2, 42, 7));
    assert_eq!(needed(Some(&PercentOrCount(IntOrText::Int(50))), 42), 42);
    for odd in ["x", "101%", "%", ""] {
        assert_eq!(needed(Some(&text(odd)), 42), 42, "{odd}");
    }
}

#[test]
fn a_logical_cloud_is_ready_where_it_is() {
    let mut fleet = Fleet::new(3);
    fleet.lose(3);
    let status = fleet.with(None, cloud);
    assert_eq!(
        text(&status.ready),
        "True Ready: 2 of 3 clusters ready; 1 unreachable; acme/edge-03: Unreachable"
    );
    assert_eq!(
        status.ready_on.iter().map(ClusterId::as_str).collect::<Vec<_>>(),
        ["acme/edge-01", "acme/edge-02"]
    );
    fleet.fail(1, "NamespaceConflict", "held by team-b", 1);
    assert_eq!(fleet.with(None, cloud).ready.reason, "NamespaceConflict");
    // What a cluster refuses is a failure of the cloud, not a step on its way.
    for reason in ["Forbidden", "Invalid", "Conflict", "ServerError", "ProgressDeadlineExceeded"] {
        fleet.fail(1, reason, "no", 1);
        assert_eq!(fleet.with(None, cloud).ready.reason, reason);
    }
    fleet.lose(1);
    fleet.lose(2);
    assert_eq!(fleet.with(None, cloud).ready.reason, "Unreachable");
}

#[test]
fn changes_by_others_are_counted_and_named_and_make_nothing_less_ready() {
    let mut fleet = Fleet::new(3);
    assert_eq!(fleet.dig().drift, None);
    let last = |second| Some(Time(Timestamp::new(second, 0).unwrap()));
    fleet.change(1, |row| row.drift = Some(RowDrift { corrected: 2, last: last(50), ..RowDrift::default() }));
    fleet.change(3, |row| {
        let object = RowDrifted {
            resource: "ConfigMap/shop/web".to_owned(),
            by: "kubectl-edit".to_owned(),
            fields: "f".to_owned(),
        };
        row.drift = Some(RowDrift {
            corrected: 1,
            reported: 1,
            objects: vec![object],
            last: last(40),
            ..RowDrift::default()
        });
    });
    let status = fleet.dig();
    let drift = status.drift.unwrap();
    assert_eq!((drift.corrected, drift.reported, drift.last), (3, Some(1), last(50)));
    assert_eq!(
        text(&status.deployed),
        "True Deployed: 3 clusters have revision 3; others changed 1 object on 1 cluster: \
         ConfigMap/shop/web on acme/edge-03 (written by kubectl-edit)"
    );
    assert_eq!((status.ready.status, status.clusters.ready), ("True", 3));
    fleet.change(3, |row| {
        if let Some(object) = row.drift.as_mut().and_then(|drift| drift.objects.first_mut()) {
            object.by = DELETED.to_owned();
        }
    });
    let said = fleet.dig().deployed.message;
    assert!(said.ends_with("ConfigMap/shop/web on acme/edge-03 (it is deleted)"), "{said}");
}

#[test]
fn objects_that_were_put_right_are_named_with_their_cluster() {
    let mut fleet = Fleet::new(3);
    let restored = |names: &[&str]| names.iter().map(|name| format!("ConfigMap/shop/{name}")).collect();
    let one = restored(&["web"]);
    fleet.change(1, |row| {
        row.drift = Some(RowDrift { corrected: 1, restored: one, ..RowDrift::default() });
    });
    assert_eq!(fleet.dig().notes.corrected.as_deref(), Some("ConfigMap/shop/web on acme/edge-01"));
    let more = restored(&["a", "b", "c"]);
    fleet.change(3, |row| {
        row.drift = Some(RowDrift { corrected: 7, restored: more, ..RowDrift::default() });
    });
    let status = fleet.dig();
    assert_eq!(
        status.notes.corrected.as_deref(),
        Some(
            "ConfigMap/shop/web on acme/edge-01, ConfigMap/shop/a on acme/edge-03, ConfigMap/shop/b on acme/edge-03, and 5 more"
        )
    );
    assert_eq!(text(&status.deployed), "True Deployed: 3 clusters have revision 3");
    // A row of an earlier version counts and names nothing.
    let mut fleet = Fleet::new(1);
    fleet.change(1, |row| row.drift = Some(RowDrift { corrected: 2, ..RowDrift::default() }));
    assert_eq!(fleet.dig().notes.corrected, None);
}

#[test]
fn fields_that_clusters_do_not_know_are_said_and_make_nothing_less_ready() {
    let mut fleet = Fleet::new(3);
    for id in [1, 3] {
        let first = vec!["apps/DaemonSet/shop/agent .spec.replicas".to_owned()];
        fleet.change(id, |row| row.left_out = Some(LeftOut { fields: 1, first }));
    }
    let status = fleet.dig();
    assert_eq!(
        text(&status.deployed),
        "True Deployed: 3 clusters have revision 3; fields unknown to clusters are left out, as by Helm: 1 on 2 clusters, \
         first apps/DaemonSet/shop/agent .spec.replicas"
    );
    assert_eq!((status.ready.status, status.clusters.ready), ("True", 3));
    assert_eq!(status.notes.left_out_example.as_deref(), Some("apps/DaemonSet/shop/agent .spec.replicas"));
}

#[test]
fn what_was_given_up_is_counted_and_told() {
    let fleet = Fleet::new(1);
    let gone = [ClusterId::new("acme", "oslo"), ClusterId::new("acme", "riga")];
    let seen = fleet.with(None, |inputs| dig(&DigInputs { abandoned: &gone, ..*inputs }));
    assert_eq!(seen.clusters.abandoned, 2);
    assert!(
        seen.deployed.message.ends_with(
            "given up on 2 clusters: what is left on acme/oslo and others is removed when it can be reached again"
        ),
        "{}",
        seen.deployed.message
    );
}
