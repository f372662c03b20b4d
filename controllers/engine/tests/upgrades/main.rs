//! Charts that look up what they made before: passwords stay, and what is not the app's own is not found.

#[path = "../common/mod.rs"]
mod common;
mod found;
mod unreadable;

use emco_crds::deployment_intent_group::status::Cause;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use common::{Case, ClusterCase};
use emco_engine::identity::{ClusterId, SetDigest};
use emco_engine::plan::{self, Plan};
use emco_engine::refusal::Refusal;
use emco_engine::set::{ManifestSet, SetManifest};
use emco_engine::snapshot::{Leaving, Running, Snapshot};
use serde_json::{Value, json};

/// A password that is kept where it is there, drawn by an installation, and demanded by an upgrade.
const PASSWORD: &str = r#"
{{- define "db.password" }}
{{- $there := lookup "v1" "Secret" .Release.Namespace "db" }}
{{- if and $there (hasKey $there.data "password") }}
{{- index $there.data "password" }}
{{- else if .Release.IsUpgrade }}
{{- fail "PASSWORD ERROR: the password in use must be given: auth.password" }}
{{- else }}
{{- randAlphaNum (int .Values.length) | b64enc }}
{{- end }}
{{- end }}
"#;
const SECRET: &str = r#"
apiVersion: v1
kind: Secret
metadata: {name: db, labels: {size: "{{ .Values.size }}"}}
data: {password: {{ include "db.password" . }}}
"#;

fn chart(templates: &[(&str, &str)]) -> BTreeMap<String, String> {
    let files = [("values.yaml", "{size: 1, length: 16}"), ("templates/_password.tpl", PASSWORD)];
    let files = files.iter().chain(templates);
    files.map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

/// The app `db` of these templates on the clusters a and b.
fn case(templates: &[(&str, &str)]) -> Case {
    let mut case = Case::parse(
        "{about: '', dig: {release: r1, placement: {allOf: [{selector: {}}]}}, charts: {}, \
         clusters: {acme/a: {}, acme/b: {}}}",
    )
    .unwrap();
    case.charts.insert("db".to_owned(), chart(templates));
    case
}

fn database() -> Case {
    case(&[("templates/secret.yaml", SECRET)])
}

/// A chart that prints a text into a ConfigMap.
fn printing(text: &str) -> Case {
    let template = format!(
        "{text}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: cm, labels: {{size: \"{{{{ .Values.size }}}}\"}}}}\n\
         data: {{text: {{{{ $text | quote }}}}}}\n"
    );
    case(&[("templates/all.yaml", &template)])
}

fn with(mut case: Case, values: &Value) -> Case {
    case.dig["overrideValues"] = json!([{"app": "db", "values": values}]);
    case
}

fn id(cluster: &str) -> ClusterId {
    ClusterId::new("acme", cluster)
}

fn first(case: &Case) -> Running {
    case.run(&plan::plan(&case.snapshot(None)).unwrap())
}

/// What becomes of it with other values.
fn upgraded(case: &Case, running: Running, values: &Value) -> Result<(Case, Plan), Box<Refusal>> {
    let case = with(case.clone(), values);
    let plan = plan::plan(&case.snapshot(Some(running)))?;
    Ok((case, plan))
}

fn objects<'p>(
    assignment: &emco_engine::set::Assignment,
    sets: &'p BTreeMap<SetDigest, Arc<ManifestSet>>,
    cluster: &str,
) -> &'p [SetManifest] {
    &sets[&assignment[&id(cluster)]["db"].set].manifests
}

fn object<'p>(plan: &'p Plan, cluster: &str, name: &str) -> &'p Value {
    let manifests = objects(&plan.assignment, &plan.sets, cluster);
    &manifests.iter().find(|manifest| manifest.identity().name == name).unwrap().json
}

fn password(running: &Running, cluster: &str) -> String {
    let manifests = objects(&running.assignment, &running.sets, cluster);
    let secret = manifests.iter().find(|manifest| manifest.identity().kind == "Secret").unwrap();
    secret.json["data"]["password"].as_str().unwrap().to_owned()
}

#[test]
fn passwords_of_all_clusters_stay_when_a_value_changes() {
    let case = database();
    let before = first(&case);
    let (case, plan) = upgraded(&case, before.clone(), &json!({"size": 2})).unwrap();
    let after = case.run(&plan);
    for cluster in ["a", "b"] {
        assert_eq!(password(&before, cluster), password(&after, cluster), "on {cluster}");
        assert_eq!(object(&plan, cluster, "db")["metadata"]["labels"]["size"], "2");
    }
    assert_ne!(password(&after, "a"), password(&after, "b"));
    assert_eq!(plan.change.unwrap().cause, Cause::Update);
}

#[test]
fn what_would_be_drawn_anew_is_not_drawn() {
    let case = database();
    let before = first(&case);
    // The seed is the same, but a password of this length was never drawn.
    let (case, plan) = upgraded(&case, before.clone(), &json!({"length": 20})).unwrap();
    let after = case.run(&plan);
    assert_eq!(password(&before, "a"), password(&after, "a"));
    assert_eq!(STANDARD.decode(password(&after, "a")).unwrap().len(), 16);
    // And so it goes on, revision after revision.
    let (case, plan) = upgraded(&case, after, &json!({"length": 30, "size": 3})).unwrap();
    assert_eq!(password(&before, "b"), password(&case.run(&plan), "b"));
}

#[test]
fn a_chart_that_prints_its_passwords_as_text_finds_them_encoded() {
    let text = r#"
apiVersion: v1
kind: Secret
metadata: {name: db}
stringData: {password: {{ include "db.password" . | b64dec | quote }}, size: "{{ .Values.size }}"}
"#;
    let case = case(&[("templates/secret.yaml", text)]);
    let before = first(&case);
    let (case, plan) = upgraded(&case, before.clone(), &json!({"size": 2, "length": 20})).unwrap();
    assert_eq!(password(&before, "a"), password(&case.run(&plan), "a"));
}

#[test]
fn nothing_is_rendered_anew_for_its_lookups_alone() {
    let mut case = database();
    let before = first(&case);
    let again = plan::plan(&case.snapshot(Some(before.clone()))).unwrap();
    assert_eq!((again.change, again.assignment), (None, before.assignment.clone()));
    case.clusters.insert("acme/c".to_owned(), ClusterCase::default());
    let grown = plan::plan(&case.snapshot(Some(before.clone()))).unwrap();
    for cluster in ["a", "b"] {
        assert_eq!(grown.assignment[&id(cluster)], before.assignment[&id(cluster)]);
    }
    let grown = case.run(&grown);
    assert!(!["a", "b"].map(|cluster| password(&grown, cluster)).contains(&password(&grown, "c")));
    let (case, plan) = upgraded(&case, grown.clone(), &json!({"length": 20})).unwrap();
    let after = case.run(&plan);
    for cluster in ["a", "b", "c"] {
        assert_eq!(password(&grown, cluster), password(&after, cluster), "after growth, on {cluster}");
    }
}

#[test]
fn passwords_of_a_revision_that_was_never_applied_stay() {
    let case = database();
    let before = first(&case);
    let changed = with(case, &json!({"length": 20}));
    let mut snapshot = changed.snapshot(Some(before.clone()));
    snapshot.installed.clear();
    let plan = plan::plan(&snapshot).unwrap();
    assert_eq!(password(&before, "a"), password(&changed.run(&plan), "a"), "a part of it may be there");
}

#[test]
fn an_upgrade_without_what_it_needs_is_refused_in_the_words_of_the_chart() {
    let plain = case(&[("templates/a.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: cm}}")]);
    let before = first(&plain);
    // The next version of the chart has a database.
    let case = database();
    let refusal = plan::plan(&case.snapshot(Some(before))).unwrap_err();
    assert_eq!((refusal.reason, refusal.stalled), ("TemplateError", true));
    let words = "execution error at (db/templates/secret.yaml:5:20): PASSWORD ERROR: the password in use must be given";
    assert!(refusal.message.contains(words), "{}", refusal.message);
    assert!(refusal.message.starts_with("app db on acme/a: "), "{}", refusal.message);
}

#[test]
fn a_chart_that_fails_only_on_upgrade_is_named_with_its_place() {
    let text = "{{ if .Release.IsUpgrade }}{{ fail \"move to version 2 first\" }}{{ end }}{{ $text := 1 }}";
    let case = printing(text);
    let before = first(&case);
    let refusal = upgraded(&case, before, &json!({"size": 2})).unwrap_err();
    assert_eq!(refusal.reason, "TemplateError");
    let words = "app db on acme/a: execution error at (db/templates/all.yaml:1:30): move to version 2 first";
    assert!(refusal.message.contains(words), "{}", refusal.message);
}
