//! Laws of placement by hardware, for any nodes.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Case, case, chosen, consumer, gpus};

fn nodes() -> impl Strategy<Value = Value> {
    let one = (0..4_i64, 0..4_i64, any::<bool>());
    prop::collection::vec(one, 0..4).prop_map(|nodes| {
        let named = nodes.into_iter().enumerate().map(|(at, (has, used, closed))| {
            let node = json!({"allocatable": {"nvidia.com/gpu": has.to_string()},
                "requested": {"nvidia.com/gpu": used.min(has).to_string()}, "closed": closed});
            (format!("n{at}"), node)
        });
        Value::Object(named.collect())
    })
}

/// The clusters of both apps; nothing where the plan is refused.
fn placed(case: &Case) -> Option<[Vec<String>; 2]> {
    let plan = case.plan().ok()?;
    Some(["web", "db"].map(|app| chosen(&plan, app)))
}

fn asks(web: i64, db: i64, clusters: &[Value]) -> Case {
    let clusters: Vec<(String, Value)> =
        (0..).zip(clusters).map(|(at, nodes): (u8, _)| (format!("c{at}"), nodes.clone())).collect();
    let clusters: Vec<(&str, Value)> =
        clusters.iter().map(|(name, nodes)| (name.as_str(), nodes.clone())).collect();
    case(&[consumer("web", &gpus(web)), consumer("db", &gpus(db))], &clusters)
}

/// Free GPUs of one node at most.
fn free(nodes: &Value) -> i64 {
    let number =
        |node: &Value, field: &str| node[field]["nvidia.com/gpu"].as_str().unwrap().parse::<i64>().unwrap();
    let open = nodes.as_object().unwrap().values().filter(|node| node["closed"] == false);
    open.map(|node| number(node, "allocatable") - number(node, "requested")).max().unwrap_or(0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_chosen_has_room(web in 1..4_i64, clusters in prop::collection::vec(nodes(), 1..4)) {
        let mut case = asks(web, 1, &clusters);
        case.hardware.get_mut("gpu").unwrap()["consumers"].as_array_mut().unwrap().truncate(1);
        let room: Vec<String> = (0..).zip(&clusters).filter(|(_, nodes)| free(nodes) >= web).map(|(at, _): (u8, _)| format!("acme/c{at}")).collect();
        match placed(&case) {
            Some([chosen, _]) => prop_assert_eq!(chosen.first(), room.first()),
            None => prop_assert!(room.is_empty()),
        }
    }

    #[test]
    fn an_unrelated_cluster_changes_nothing(
        web in 1..3_i64,
        db in 1..3_i64,
        clusters in prop::collection::vec(nodes(), 1..4),
        other in nodes(),
    ) {
        let before = asks(web, db, &clusters);
        let mut after = before.clone();
        after.clusters.extend(case(&[], &[("zz", other)]).clusters);
        let zz = after.clusters.get_mut("acme/zz").unwrap();
        zz.labels.insert("other".to_owned(), "yes".to_owned());
        let not = json!([{"from": [{"selector": {"matchExpressions": [{"key": "other", "operator": "DoesNotExist"}]}}]}]);
        after.dig["placement"]["anyOf"] = not;
        prop_assert_eq!(placed(&before), placed(&after));
    }

    #[test]
    fn a_plan_that_runs_is_planned_again_as_it_is(
        web in 1..3_i64,
        db in 1..3_i64,
        clusters in prop::collection::vec(nodes(), 1..4),
    ) {
        let case = asks(web, db, &clusters);
        if let Ok(plan) = case.plan() {
            let running = case.run(&plan);
            let again = emco_engine::plan::plan(&case.snapshot(Some(running))).unwrap();
            prop_assert_eq!(again.assignment, plan.assignment);
            prop_assert!(again.change.is_none());
        }
    }
}
