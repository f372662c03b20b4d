//! What renderings showed that is no error: said from what is stored, and within bounds.

mod common;

use std::sync::Arc;

use common::Case;
use emco_engine::pack::{self, Pack};
use emco_engine::plan::{self, Plan, sentence};
use emco_engine::set::Assignment;
use emco_engine::snapshot::Running;

const CASE: &str = r#"
about: ""
dig:
  release: r1
  placement: {allOf: [{selector: {}}]}
  overrideValues: [{app: web, values: {replicaCout: 2}}]
charts:
  db: {values.yaml: "size: 1"}
  web:
    values.yaml: "replicaCount: 1"
    templates/a.yaml: |
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: web}
      data: {count: "{{ .Values.replicaCount }}"}
clusters: {acme/a: {}, acme/b: {}}
"#;

const SAID: &str = "chart db of app db renders no object; \
                    chart web of app web reads no value \"replicaCout\" (did you mean \"replicaCount\"?)";

fn planned(case: &Case, running: Option<Running>) -> Plan {
    plan::plan(&case.snapshot(running)).unwrap()
}

fn stored(assignment: &Assignment) -> Vec<Vec<u8>> {
    pack::write_assignment("uid", assignment).unwrap().into_iter().map(|pack| pack.bytes).collect()
}

fn read(packs: &[Vec<u8>]) -> Assignment {
    let packs: Vec<Pack> = packs.iter().map(|bytes| Pack::read(bytes).unwrap()).collect();
    pack::assignment(&packs.iter().collect::<Vec<_>>()).unwrap()
}

#[test]
fn what_was_said_is_said_again_from_what_is_stored() {
    let case = Case::parse(CASE).unwrap();
    let first = planned(&case, None);
    assert_eq!(sentence(&first.remarks), SAID);
    assert_eq!(first.remarks[1].unread, ["replicaCout"]);
    let running = Running { assignment: read(&stored(&first.assignment)), ..case.run(&first) };
    let mut again = case.snapshot(Some(running));
    // A chart that is rendered now would say something else.
    for chart in again.charts.values_mut() {
        chart.compiled = common::chart(chart.compiled.chart().name(), &[].into()).compiled;
    }
    let again = plan::plan(&again).unwrap();
    assert!(again.change.is_none());
    assert_eq!(again.remarks, first.remarks);
    assert_eq!(again.assignment, first.assignment);
}

#[test]
fn a_corrected_value_ends_the_remark_and_another_app_keeps_its_own() {
    let mut case = Case::parse(CASE).unwrap();
    let running = case.run(&planned(&case, None));
    case.dig["overrideValues"] = serde_json::json!([{"app": "web", "values": {"replicaCount": 2}}]);
    let next = planned(&case, Some(running));
    assert_eq!(sentence(&next.remarks), "chart db of app db renders no object");
}

#[test]
fn what_shows_nothing_is_stored_as_it_was_before_there_were_remarks() {
    let mut case = Case::parse(CASE).unwrap();
    case.dig["overrideValues"] = serde_json::json!([]);
    let plan = planned(&case, None);
    let cells = plan.assignment.values().flat_map(|apps| apps.values());
    assert!(cells.clone().count() == 4 && cells.clone().all(|cell| cell.findings.is_none()));
    let bytes = stored(&plan.assignment);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(bytes.iter().all(|pack| !text(pack).contains("findings")));
    // With remarks, they cost a few bytes once, and not for each cluster.
    let mut case = Case::parse(CASE).unwrap();
    case.charts.get_mut("web").unwrap().insert(
        "templates/b.yaml".to_owned(),
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: drawn}, data: {a: '{{ randAlphaNum 9 }}'}}"
            .to_owned(),
    );
    for n in 0..500 {
        case.clusters.insert(format!("acme/edge-{n}"), common::ClusterCase::default());
    }
    let plan = planned(&case, None);
    let mut without = plan.assignment.clone();
    without.values_mut().flat_map(|apps| apps.values_mut()).for_each(|cell| cell.findings = None);
    let length = |packs: &[Vec<u8>]| packs.iter().map(Vec::len).sum::<usize>();
    let (with, without) = (length(&stored(&plan.assignment)), length(&stored(&without)));
    assert!(with - without < 4_000, "{with} bytes with remarks, {without} without");
    assert_eq!(read(&stored(&plan.assignment)), plan.assignment);
}

#[test]
fn many_and_long_names_are_cut() {
    let mut case = Case::parse(CASE).unwrap();
    let many: serde_json::Map<_, _> =
        (0..200).map(|n| (format!("{n}-{}", "x".repeat(500)), serde_json::json!(1))).collect();
    case.dig["overrideValues"] = serde_json::json!([{"app": "web", "values": many}]);
    let plan = planned(&case, None);
    let web = plan.remarks.iter().find(|remarks| remarks.app == "web").unwrap();
    assert_eq!(web.unread.len(), 16);
    assert!(web.unread.iter().all(|value| value.len() <= 160));
    let said = sentence(&plan.remarks);
    assert!(said.ends_with("and 95 others"), "{said}");
    let findings = plan.assignment.values().filter_map(|apps| apps["web"].findings.clone());
    assert!(findings.clone().count() == 2 && findings.clone().all(|one| one.unread.len() == 16));
    assert!(Arc::ptr_eq(&findings.clone().next().unwrap(), &findings.clone().nth(1).unwrap()));
}
