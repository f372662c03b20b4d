//! How long a status is at the limits of what a deployment may have.

use emco_crds::deployment_intent_group::status::{DeploymentIntentGroupStatus, IntentStatus, Pending};

use super::*;
use crate::changes::{AppChanges, Changes, Variant, What};
use crate::identity::{Id, Identity};
use crate::placement::Rejected;

/// What objects of a hub may take, with room for what this test leaves out.
const MOST: usize = 63 * 1024;

fn id(n: usize) -> ClusterId {
    ClusterId::new("provider-of-the-usual-length", &format!("cluster-{n:05}"))
}

/// 64 apps of charts and as many of intents, each with the longest name.
fn names() -> Vec<String> {
    let charts = (0..64).map(|n| format!("{n:0>43}"));
    charts.chain((0..64).map(|n| format!("gai.{n:0>53}"))).collect()
}

fn placement() -> AppPlacement {
    let rejected = ["LabelMissing", "NotInLogicalCloud", "Cordoned", "Drained"].map(|reason| Rejected {
        reason: reason.to_owned(),
        clusters: 1000,
        example: id(1),
        needs: "x".repeat(256),
    });
    AppPlacement { chosen: (0..1000).map(id).collect(), rejected: rejected.into() }
}

/// All apps change on all clusters, in five objects each.
fn pending() -> Pending {
    let object = |n: usize| {
        let json = serde_json::json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": format!("{n:0>60}"), "namespace": "x".repeat(60)}});
        (What::Changed, Id::new(Identity::of(&json)))
    };
    let app = |app: String| {
        let set = |text: &str| Some(SetDigest(text.to_owned()));
        let (before, now) = (set("before"), set("now"));
        let (clusters, objects) = ((0..1000).map(id).collect(), (0..5).map(object).collect());
        let variant = Variant { before, now, clusters, objects, by: BTreeMap::new(), hooks: Vec::new() };
        AppChanges { app, clusters: 1000, variants: vec![variant] }
    };
    let changes = Changes { apps: names().into_iter().map(app).collect() };
    let mut pending = Pending { summary: changes.summary(), ..Pending::default() };
    changes.fill(&mut pending);
    pending
}

/// As many as may be listed, each with the longest name.
fn intents() -> Vec<IntentStatus> {
    let intent = |n: usize| IntentStatus {
        kind: "GenericActionIntent".to_owned(),
        name: format!("{n:0>53}"),
        clusters: 10_000,
        objects: 10_000_000,
    };
    (0..64).map(intent).collect()
}

#[test]
fn a_status_at_all_limits_keeps_to_its_length() {
    let mut fleet = Fleet::new(1000);
    let apps: Combination = names().into_iter().map(|app| (app, SetDigest("s2".to_owned()))).collect();
    let wanted = fleet.wanted.keys().map(|id| (id.clone(), apps.clone())).collect();
    fleet.retarget(wanted);
    let (ids, message): (Vec<i64>, _) = (fleet.rows.keys().copied().collect(), "x".repeat(256));
    for (n, row) in ids.into_iter().enumerate() {
        fleet.fail(row, "Forbidden", &message, i64::try_from(n).unwrap());
    }
    let placement: Vec<(String, AppPlacement)> =
        names().into_iter().map(|name| (name, placement())).collect();
    let rollup = fleet.with(None, |inputs| dig(&DigInputs { placement: &placement, ..*inputs }));
    assert_eq!((rollup.apps.len(), rollup.failing.len()), (128, MOST_FAILING));
    let status = DeploymentIntentGroupStatus {
        apps: rollup.apps,
        failing: rollup.failing,
        pending: Some(pending()),
        intents: intents(),
        ..DeploymentIntentGroupStatus::default()
    };
    let bytes = serde_json::to_vec(&status).unwrap().len();
    assert!(bytes <= MOST, "{bytes} bytes");
}
