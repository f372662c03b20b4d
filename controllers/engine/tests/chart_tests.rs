//! Charts' tests are stored beside what is deployed, and decide nothing: no digest knows of them, and none of them refuses a plan.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::Case;
use emco_crds::app_context::PackKind;
use emco_engine::identity::ClusterId;
use emco_engine::pack::{self, Pack};
use emco_engine::plan::{self, Plan};
use emco_engine::set::{Assigned, ChartTests, ManifestSet};
use emco_engine::snapshot::Running;

const WEB: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data: {text: "{{ .Values.text }}"}
"#;

const TESTS: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: late, annotations: {helm.sh/hook: test, helm.sh/hook-weight: "5"}}
spec: {hostname: "{{ .Values.host }}"}
---
apiVersion: batch/v1
kind: Job
metadata: {name: b, annotations: {helm.sh/hook: test-success, helm.sh/hook-delete-policy: hook-succeeded}}
---
apiVersion: v1
kind: Secret
metadata: {name: key, annotations: {helm.sh/hook: "post-install,test", helm.sh/hook-weight: "-1"}}
stringData: {password: hunter2}
---
apiVersion: batch/v1
kind: Job
metadata: {name: a, annotations: {helm.sh/hook: test}}
"#;

/// A chart with these tests, and a second app without.
fn case(tests: &str) -> Case {
    let mut case = Case::parse(
        r#"
about: ""
dig: {release: r1, placement: {allOf: [{selector: {}}]}}
charts: {web: {values.yaml: "text: one\nhost: one"}, db: {templates/db.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: db}}"}}
clusters: {acme/a: {}, acme/b: {}}
"#,
    )
    .unwrap();
    let web = case.charts.get_mut("web").unwrap();
    web.insert("templates/web.yaml".to_owned(), WEB.to_owned());
    if !tests.is_empty() {
        web.insert("templates/tests/all.yaml".to_owned(), tests.to_owned());
    }
    case
}

fn overriding(mut case: Case, values: &str) -> Case {
    let text = format!("[{{app: web, values: {values}}}]");
    case.dig["overrideValues"] = serde_yaml::from_str(&text).unwrap();
    case
}

fn planned(case: &Case, running: Option<Running>) -> Plan {
    plan::plan(&case.snapshot(running)).unwrap()
}

fn cell<'p>(plan: &'p Plan, app: &str) -> &'p Assigned {
    &plan.assignment[&ClusterId::new("acme", "a")][app]
}

fn tests(plan: &Plan) -> &ChartTests {
    cell(plan, "web").tests.as_ref().expect("tests are kept")
}

fn test_set(plan: &Plan) -> &Arc<ManifestSet> {
    &plan.sets[tests(plan).set.as_ref().expect("there are tests")]
}

/// What an operator that kept no tests has stored.
fn without_tests(mut running: Running) -> Running {
    for assigned in running.assignment.values_mut().flat_map(BTreeMap::values_mut) {
        assigned.tests = None;
    }
    running.sets.retain(|_, set| !set.is_of_tests());
    running
}

#[test]
fn tests_are_kept_by_weight_kind_and_name() {
    let plan = planned(&case(TESTS), None);
    let set = test_set(&plan);
    let names: Vec<String> = set.manifests.iter().map(|test| test.identity().to_string()).collect();
    assert_eq!(
        names,
        ["Secret/shop/key", "batch/Job/shop/a", "batch/Job/shop/b", "Pod/shop/late"],
        "in Helm's order"
    );
    assert!(
        set.is_of_tests() && set.manifests.iter().all(|test| test.hook.as_ref().unwrap().events == ["test"])
    );
    assert_eq!(set.manifests[2].hook.as_ref().unwrap().delete_policies, ["hook-succeeded"]);
    assert_eq!(cell(&plan, "db").tests, Some(ChartTests::default()), "none is not the same as unknown");
    // What is a hook besides is deployed as that.
    let deployed = &plan.sets[&cell(&plan, "web").set];
    let hooks: Vec<_> = deployed.manifests.iter().filter_map(|manifest| manifest.hook.as_ref()).collect();
    assert_eq!(hooks.iter().map(|hook| hook.events.join(",")).collect::<Vec<_>>(), ["post-install"]);
}

#[test]
fn no_digest_depends_on_tests() {
    let with = planned(
        &case("{apiVersion: v1, kind: Pod, metadata: {name: t, annotations: {helm.sh/hook: test}}}"),
        None,
    );
    let without = planned(&case(""), None);
    assert_eq!(cell(&with, "web").set, cell(&without, "web").set);
    assert_eq!(tests(&without), &ChartTests::default());
    // Other tests of the same deployment: the values are other ones, what is deployed is not.
    let (one, two) = (planned(&case(TESTS), None), planned(&overriding(case(TESTS), "{host: two}"), None));
    assert_eq!(cell(&one, "web").set, cell(&two, "web").set);
    assert_ne!(tests(&one), tests(&two));
    assert_eq!(test_set(&two).manifests[3].json["spec"]["hostname"], "two");
}

#[test]
fn an_upgrade_makes_no_plan_of_deployments_that_run() {
    let case = case(TESTS);
    let now = planned(&case, None);
    let before = without_tests(case.run(&now));
    let again = planned(&case, Some(before.clone()));
    assert_eq!((again.change, again.plan_digest), (None, now.plan_digest.clone()));
    assert_eq!(again.assignment, before.assignment, "nothing was rendered, so tests are still unknown");
    // A new revision for another reason says so of what it did not render.
    let mut other = case.clone();
    other.charts.get_mut("db").unwrap().insert("values.yaml".to_owned(), "a: b".to_owned());
    let next = planned(&other, Some(before.clone()));
    assert!(next.change.is_some());
    assert_eq!(cell(&next, "web").tests, None);
    assert_eq!(cell(&next, "db").tests, Some(ChartTests::default()));
    // Rendering again brings them, and changes nothing on a cluster.
    let mut serial = case.clone();
    serial.dig["renderSerial"] = 1.into();
    let rendered = planned(&serial, Some(before.clone()));
    assert!(rendered.change.is_some(), "a revision that has them");
    assert_eq!(tests(&rendered), tests(&now));
    assert_eq!(cell(&rendered, "web").set, before.assignment[&ClusterId::new("acme", "a")]["web"].set);
}

#[test]
fn tests_of_what_is_not_rendered_again_go_along() {
    let case = case(TESTS);
    let now = planned(&case, None);
    let mut other = case.clone();
    other.charts.get_mut("db").unwrap().insert("values.yaml".to_owned(), "a: b".to_owned());
    let next = planned(&other, Some(case.run(&now)));
    assert_eq!((tests(&next), test_set(&next)), (tests(&now), test_set(&now)));
    // Those that cannot be read are said to be missing, and stop nothing.
    let mut running = case.run(&now);
    running.sets.retain(|_, set| !set.is_of_tests());
    let next = planned(&other, Some(running));
    assert_eq!(tests(&next).set, None);
    assert_eq!(tests(&next).left_out, ["the tests that an earlier revision stored cannot be read"]);
}

#[test]
fn what_is_made_again_has_the_tests_that_were_stored() {
    let case = case(TESTS);
    let now = planned(&case, None);
    let lost = |mut running: Running| {
        running.sets.clear();
        running
    };
    let again = planned(&case, Some(lost(case.run(&now))));
    assert_eq!((again.change, &again.sets), (None, &now.sets), "all packs can be made again");
    let again = planned(&case, Some(lost(without_tests(case.run(&now)))));
    assert_eq!(cell(&again, "web").tests, None);
    assert!(again.sets.values().all(|set| !set.is_of_tests()), "a pack with more would be another pack");
}

#[test]
fn tests_come_back_from_packs_and_their_secrets_are_apart() {
    let plan = planned(&case(TESTS), None);
    let sets: Vec<Arc<ManifestSet>> = plan.sets.values().cloned().collect();
    let mut written = pack::write_sets("uid", &sets).unwrap();
    written.extend(pack::write_assignment("uid", &plan.assignment).unwrap());
    let packs: Vec<Pack> = written.iter().map(|object| Pack::read(&object.bytes).unwrap()).collect();
    let all: Vec<&Pack> = packs.iter().collect();
    assert_eq!(pack::assignment(&all).unwrap(), plan.assignment);
    let digest = tests(&plan).set.as_ref().unwrap();
    assert_eq!(&pack::assemble(digest, &all).unwrap(), test_set(&plan).as_ref());
    let plain: Vec<&Pack> = packs
        .iter()
        .zip(&written)
        .filter(|(_, object)| object.kind == PackKind::ConfigMap)
        .map(|(pack, _)| pack)
        .collect();
    assert!(pack::assemble(digest, &plain).is_err(), "the Secret is in a Secret");
}

#[test]
fn a_faulty_test_refuses_nothing_and_is_said_to_be_missing() {
    let of = |tests: &str| planned(&case(tests), None);
    for (faulty, says) in [
        (
            "{apiVersion: v1, kind: Pod, metadata: {annotations: {helm.sh/hook: test}}}",
            "without metadata.name",
        ),
        (
            "{apiVersion: v1, kind: Secret, metadata: {name: s, annotations: {helm.sh/hook: test}}, data: {a: '%'}}",
            "base64",
        ),
        (
            "{apiVersion: v1, kind: Namespace, metadata: {name: shop, annotations: {helm.sh/hook: test}}}",
            "which logical cloud edge makes",
        ),
    ] {
        let plan = of(&format!("{faulty}\n---\n{TESTS}"));
        assert!(tests(&plan).left_out[0].contains(says), "{:?}", tests(&plan).left_out);
        assert_eq!(test_set(&plan).manifests.len(), 4, "the others are kept");
    }
    let mut narrow = case(
        "{apiVersion: v1, kind: Pod, metadata: {name: t, namespace: other, annotations: {helm.sh/hook: test}}}",
    );
    narrow.level = Some("Standard".to_owned());
    let plan = planned(&narrow, None);
    assert!(tests(&plan).left_out[0].contains("outside its namespace"), "{:?}", tests(&plan).left_out);
    assert_eq!(tests(&plan).set, None);
}

#[test]
fn tests_are_kept_up_to_a_number_and_a_size() {
    let pod = |name: &str, text: usize| {
        format!(
            "---\n{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, annotations: {{helm.sh/hook: test}}}}, text: {}}}\n",
            "x".repeat(text)
        )
    };
    let many: String = (0..150).map(|n| pod(&format!("t{n}"), 1)).collect();
    let plan = planned(&case(&many), None);
    assert_eq!(test_set(&plan).manifests.len(), 100);
    assert_eq!(tests(&plan).left_out.len(), 5, "not a sentence for each of fifty");
    let large: String = (0..3).map(|n| pod(&format!("t{n}"), 400_000)).collect();
    let plan = planned(&case(&large), None);
    assert_eq!(test_set(&plan).manifests.len(), 2);
    assert!(tests(&plan).left_out[0].contains("is not kept"), "{:?}", tests(&plan).left_out);
}
