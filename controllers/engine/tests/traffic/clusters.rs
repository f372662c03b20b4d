//! Where policies go: to clusters of the server, as far as they have an effect there.

use emco_crds::logical_cloud::Isolation;
use emco_engine::identity::ClusterId;
use emco_engine::plan::{self, Plan};
use emco_engine::traffic::Group;
use emco_engine::traffic::proof::Question;
use serde_json::{Value, json};

use super::common::Case;
use super::{case, on, plan, policy, refusal};

fn has(plan: &Plan, app: &str) -> Vec<String> {
    let having = plan.assignment.iter().filter(|(_, apps)| apps.contains_key(app));
    having.map(|(id, _)| id.to_string()).collect()
}

fn rejected(plan: &Plan, app: &str) -> Vec<(String, String, String)> {
    let (_, placed) = plan.placement.iter().find(|(name, _)| name == app).unwrap();
    placed.rejected.iter().map(|r| (r.reason.clone(), r.example.to_string(), r.needs.clone())).collect()
}

/// Two clusters, of which `acme/b` states that policies have no effect.
fn open(unsupported: Option<&str>) -> Case {
    let mut case = case(&json!({}));
    case.clusters.get_mut("acme/b").unwrap().network_policy = Some("NotEnforced".to_owned());
    if let Some(unsupported) = unsupported {
        case.traffic.get_mut("front").unwrap()["unsupported"] = json!(unsupported);
    }
    case
}

const NEEDS: &str = "NetworkPolicy enforcement (spec.network.networkPolicy: Enforced)";

#[test]
fn a_server_is_not_placed_where_no_policy_has_an_effect() {
    let plan = plan(&open(None));
    assert_eq!(has(&plan, "catalog"), ["acme/a"]);
    assert_eq!(has(&plan, "ui"), ["acme/a", "acme/b"], "a client needs none");
    assert_eq!(has(&plan, "tgi.front"), ["acme/a"]);
    let missing = ("BackendMissing".to_owned(), "acme/b".to_owned(), NEEDS.to_owned());
    assert_eq!(rejected(&plan, "catalog"), [missing]);
}

#[test]
fn ignored_the_server_runs_there_without_a_policy_and_that_is_told() {
    let plan = plan(&open(Some("Ignore")));
    assert_eq!(has(&plan, "catalog"), ["acme/a", "acme/b"]);
    assert_eq!(has(&plan, "tgi.front"), ["acme/a"]);
    let missing = ("BackendMissing".to_owned(), "acme/b".to_owned(), NEEDS.to_owned());
    assert_eq!(rejected(&plan, "tgi.front"), [missing]);
    assert!(
        plan.warnings.contains(
            &"TrafficGroupIntent front: its servers are open to everybody on acme/b, where spec.network.networkPolicy of the Cluster is \
              NotEnforced"
                .to_owned()
        ),
        "{:?}",
        plan.warnings
    );
}

#[test]
fn what_runs_stays_on_a_cluster_that_turns_and_is_told() {
    let before = case(&json!({}));
    let running = before.run(&plan(&before));
    let turned = open(None);
    let next = plan::plan(&turned.snapshot(Some(running))).unwrap();
    assert!(next.change.is_none(), "{:?}", next.change);
    assert_eq!(has(&next, "tgi.front"), ["acme/a", "acme/b"], "its policy, too");
    assert!(
        next.warnings.iter().any(|told| told.contains("open to everybody on acme/b")),
        "{:?}",
        next.warnings
    );
}

#[test]
fn a_cluster_of_which_nothing_is_stated_gets_the_server_and_its_policy() {
    let mut case = case(&json!({}));
    case.clusters.get_mut("acme/b").unwrap().network_policy = None;
    assert_eq!(has(&plan(&case), "tgi.front"), ["acme/a", "acme/b"]);
}

#[test]
fn a_server_without_any_cluster_is_refused_by_what_they_lack() {
    let mut case = open(None);
    case.clusters.remove("acme/a");
    let refused = refusal(&case);
    assert_eq!((refused.condition, refused.reason), ("Placed", "BackendMissing"));
    assert!(
        refused.message.contains(&format!("nearest is acme/b, which needs {NEEDS}")),
        "{}",
        refused.message
    );
}

#[test]
fn a_policy_is_only_where_the_server_is() {
    let mut case = case(&json!({}));
    case.dig["placement"] = json!({"allOf": [{"selector": {}}],
        "apps": [{"app": "catalog", "allOf": [{"provider": "acme", "cluster": "a"}]}]});
    let plan = plan(&case);
    assert_eq!(has(&plan, "tgi.front"), ["acme/a"]);
    assert_eq!(rejected(&plan, "tgi.front")[0].2, "a server of TrafficGroupIntent front (catalog)");
}

#[test]
fn a_client_counts_on_the_clusters_that_it_names() {
    let clients = json!([
        {"name": "ui", "app": "ui"},
        {"name": "corp", "cidrs": ["10.1.0.0/16"], "clusters": [{"provider": "acme", "cluster": "a"}]},
    ]);
    let plan = plan(&case(&json!({"clients": clients})));
    let from = |cluster| policy(&plan, cluster)["spec"]["ingress"][0]["from"].clone();
    let corp = json!({"ipBlock": {"cidr": "10.1.0.0/16"}});
    let has = |cluster| from(cluster).as_array().unwrap().contains(&corp);
    assert!(has("acme/a") && !has("acme/b"));
}

#[test]
fn a_server_without_a_client_on_its_cluster_is_closed_there() {
    let here = json!([{"name": "ui", "app": "ui", "clusters": [{"provider": "acme", "cluster": "a"}]}]);
    let plan = plan(&case(&json!({"clients": here})));
    assert!(policy(&plan, "acme/a")["spec"].get("ingress").is_some());
    assert_eq!(policy(&plan, "acme/b")["spec"].get("ingress"), None);
    assert_eq!(policy(&plan, "acme/b")["spec"]["policyTypes"], json!(["Ingress"]));
}

#[test]
fn a_cluster_never_contacted_waits_with_its_policy() {
    let mut case = case(&json!({}));
    case.clusters.get_mut("acme/b").unwrap().version = Some("never".to_owned());
    let plan = plan(&case);
    assert_eq!(has(&plan, "tgi.front"), ["acme/a"]);
    let waits = &plan.waiting[&ClusterId::new("acme", "b")];
    assert_eq!(waits, &["catalog", "ui", "tgi.front"]);
}

#[test]
fn an_intent_of_networkpolicy_none_makes_no_policy() {
    let mut case = case(&json!({}));
    case.traffic.get_mut("front").unwrap()["networkPolicy"] = json!("None");
    case.traffic.get_mut("front").unwrap()["onViolation"] = json!("Report");
    let plan = plan(&case);
    assert_eq!(on(&plan, "acme/a", "tgi.front").len(), 0);
    assert!(plan.placement.iter().all(|(app, _)| app != "tgi.front"));
}

#[test]
fn the_intent_leaves_the_list_and_its_policies_go() {
    let case = case(&json!({}));
    let running = case.run(&plan(&case));
    let mut next = case.clone();
    next.dig["intents"] = Value::Array(Vec::new());
    let next = plan::plan(&next.snapshot(Some(running))).unwrap();
    assert_eq!(has(&next, "tgi.front"), Vec::<String>::new());
    assert!(next.change.unwrap().summary.contains("tgi.front"));
}

#[test]
fn a_cluster_without_contact_keeps_no_other_from_its_policy() {
    let mut before = case(&json!({}));
    before.dig["intents"] = Value::Array(Vec::new());
    let running = before.run(&plan(&before));
    let mut now = case(&json!({}));
    now.clusters.get_mut("acme/b").unwrap().version = Some("never".to_owned());
    let next = plan::plan(&now.snapshot(Some(running))).unwrap_or_else(|refusal| panic!("{refusal}"));
    assert_eq!(has(&next, "tgi.front"), ["acme/a"]);
    let proof = next.reachability.unwrap();
    assert_eq!(proof.verdict.as_str(), "Assumed");
    assert_eq!(
        proof.assumptions[0],
        "acme/b: what is to be there waits for the first contact, and is not judged"
    );
}

#[test]
fn every_pair_is_open_where_no_policy_has_an_effect() {
    let case = open(Some("Ignore"));
    let (snapshot, plan) = (case.snapshot(None), plan(&case));
    let groups: Vec<Group<'_>> =
        snapshot.traffic.iter().map(|(name, intent)| Group { name, spec: &intent.spec }).collect();
    let question = Question {
        groups: &groups,
        clusters: &snapshot.clusters,
        assignment: &plan.assignment,
        waiting: &plan.waiting,
        sets: &plan.sets,
        namespace: "shop",
        isolation: Isolation::Closed,
        release: "r1",
    };
    let open = |cluster: &str| {
        let cells = question.cells(&ClusterId::new("acme", cluster)).unwrap();
        (cells.iter().filter(|cell| cell.open).count(), cells.len())
    };
    let ((few, all), (open, same)) = (open("a"), open("b"));
    assert!(few < all && open == same && same > 0, "{few} of {all}, {open} of {same}");
}
