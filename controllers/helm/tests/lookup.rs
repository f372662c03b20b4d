//! What templates get from `lookup`, what a render says it asked, and what it may cost.
use std::time::Duration;

use emco_helm::{
    Chart, Compiled, Found, LimitError, Limits, Lookup, LookupRead, Release, RenderError, RenderRequest,
    Rendered,
};
use serde_json::{Value, json};

/// Objects of one cluster: what is asked for by name and namespace, as a chart's own objects are.
struct Cluster(Vec<Value>);

impl Lookup for Cluster {
    fn lookup(&self, read: &LookupRead) -> Result<Found<'_>, String> {
        if read.api_version != "v1" {
            return Err(format!("no kind {}", read.kind));
        }
        let text = |object: &Value, at: &str| {
            object.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let alike = |object: &&Value| {
            text(object, "/kind") == read.kind
                && (read.namespace.is_empty() || text(object, "/metadata/namespace") == read.namespace)
        };
        if read.name.is_empty() {
            return Ok(Found::List(self.0.iter().filter(alike).collect()));
        }
        let mut found = self.0.iter().filter(alike);
        let found = found.find(|object| text(object, "/metadata/name") == read.name);
        Ok(found.map_or(Found::Nothing, Found::Object))
    }
}

fn secret(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "ns"}, "data": data})
}

fn render(template: &str, cluster: &Cluster, is_install: bool) -> Result<Rendered, RenderError> {
    let files =
        [("Chart.yaml", "apiVersion: v2\nname: web\nversion: 0.1.0\n"), ("templates/a.yaml", template)];
    let files = files.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec()));
    let chart = Chart::from_files(files.to_vec(), &Limits::default()).unwrap();
    Compiled::new(chart).unwrap().render(&RenderRequest {
        release: Release { is_install, namespace: "ns".to_owned(), ..Release::default() },
        seed: Some([7; 32]),
        lookup: Some(cluster),
        limits: Limits { time: Duration::from_secs(20), ..Limits::default() },
        ..RenderRequest::default()
    })
}

/// The way of many charts: what is there stays, what is not there is drawn, but never by an upgrade.
const PASSWORD: &str = r#"
{{- $password := randAlphaNum 12 | b64enc }}
{{- $there := lookup "v1" "Secret" .Release.Namespace "db" }}
{{- if $there }}
{{- $password = index $there.data "password" }}
{{- else if .Release.IsUpgrade }}
{{- fail "PASSWORD ERROR: give the password that is in use" }}
{{- end }}
apiVersion: v1
kind: Secret
metadata: {name: db}
data: {password: {{ $password | quote }}}
"#;

#[test]
fn what_is_there_stays_and_what_is_not_is_drawn() {
    let none = Cluster(Vec::new());
    let first = render(PASSWORD, &none, true).unwrap();
    let drawn = first.manifests[0].json["data"]["password"].as_str().unwrap();
    assert_eq!(drawn.len(), 16, "{drawn}");
    let kept = Cluster(vec![secret("db", &json!({"password": "a2VwdA=="}))]);
    for is_install in [true, false] {
        let again = render(PASSWORD, &kept, is_install).unwrap();
        assert_eq!(again.manifests[0].json["data"]["password"], "a2VwdA==");
    }
    let refused = render(PASSWORD, &none, false).unwrap_err().to_string();
    assert!(refused.contains("templates/a.yaml:7:4): PASSWORD ERROR"), "{refused}");
}

#[test]
fn objects_and_lists_have_the_shape_that_helm_shows() {
    let cluster = Cluster(vec![secret("one", &json!({"n": 5, "half": 0.5})), secret("two", &json!({}))]);
    let template = r#"
{{- $one := lookup "v1" "Secret" "ns" "one" }}
{{- $all := lookup "v1" "Secret" "" "" }}
{{- $none := lookup "v1" "ConfigMap" "ns" "" }}
whole: {{ $one.data.n }} {{ kindOf $one.data.n }}
half: {{ kindOf $one.data.half }}
name: {{ $one.metadata.name }}
absent: {{ lookup "v1" "Secret" "ns" "other" | toJson }}
names: [{{ range $all.items }}{{ .metadata.name }},{{ end }}]
kind: {{ $all.apiVersion }} {{ $all.kind }}
none: {{ $none.kind }} {{ len $none.items }} {{ kindOf $none.items }}
"#;
    let rendered = render(template, &cluster, true).unwrap();
    assert_eq!(
        rendered.manifests[0].json,
        json!({
            "whole": "5 int64", "half": "float64", "name": "one", "absent": {}, "names": ["one", "two"],
            "kind": "v1 SecretList", "none": "ConfigMapList 0 slice",
        })
    );
}

#[test]
fn a_render_says_what_it_looked_up_once_each() {
    let template = r#"
{{- range until 3 }}{{ $_ := lookup "v1" "Secret" "ns" "db" }}{{ end }}
{{- $_ := lookup "v1" "Node" "" "" }}
a: b
"#;
    let reads = render(template, &Cluster(Vec::new()), true).unwrap().reads;
    let reads: Vec<_> = reads
        .lookups
        .iter()
        .map(|LookupRead { api_version, kind, namespace, name }| {
            [api_version, kind, namespace, name].map(String::as_str)
        })
        .collect();
    assert_eq!(reads, [["v1", "Node", "", ""], ["v1", "Secret", "ns", "db"]]);
}

#[test]
fn an_answer_that_is_an_error_fails_at_its_place() {
    let error = render("\n{{ lookup \"v2\" \"Nope\" \"\" \"\" }}", &Cluster(Vec::new()), true).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("a.yaml:2:3") && text.contains("error calling lookup: no kind Nope"), "{text}");
}

#[test]
fn what_a_template_changes_is_not_changed_for_the_next() {
    let cluster = Cluster(vec![secret("db", &json!({"password": "a2VwdA=="}))]);
    let template = r#"
{{- $one := lookup "v1" "Secret" "ns" "db" }}
{{- $_ := set $one.data "password" "other" }}
kept: {{ (lookup "v1" "Secret" "ns" "db").data.password }}
"#;
    assert_eq!(render(template, &cluster, true).unwrap().manifests[0].json, json!({"kept": "a2VwdA=="}));
}

#[test]
fn looked_up_objects_count_against_the_memory_of_the_render() {
    let many: serde_json::Map<_, _> = (0..20_000).map(|n| (format!("k{n}"), json!([]))).collect();
    let cluster = Cluster(vec![secret("db", &Value::Object(many))]);
    let ok = r#"a: {{ len (lookup "v1" "Secret" "ns" "db").data }}"#;
    assert_eq!(render(ok, &cluster, true).unwrap().manifests[0].json, json!({"a": 20_000}));
    for again in [
        r#"{{ $l := list }}{{ range until 100 }}{{ $l = append $l (lookup "v1" "Secret" "ns" "db") }}{{ end }}"#,
        r#"{{ $l := list }}{{ range until 100 }}{{ $l = append $l (lookup "v1" "Secret" "" "") }}{{ end }}"#,
    ] {
        let error = render(again, &cluster, true).unwrap_err();
        assert_eq!(error.limit(), Some(LimitError::Memory(64 << 20)), "{error}");
    }
    // One that is too large is not made first and measured then.
    let huge = Value::Array(vec![Value::Array(Vec::new()); 1_000_000]);
    let cluster = Cluster(vec![secret("db", &json!({"all": huge}))]);
    let error = render(ok, &cluster, true).unwrap_err();
    assert_eq!(error.limit(), Some(LimitError::Memory(64 << 20)), "{error}");
}
