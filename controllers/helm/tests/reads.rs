//! What a render says it read of the values: precise where it can be, and never less than what mattered.
use std::collections::BTreeSet;

use emco_helm::{Chart, Compiled, Limits, RenderRequest, merge_values};
use serde_json::{Value, json};

/// Templates that read in as many ways as there are.
const TEMPLATES: [&str; 14] = [
    "a: {{ .Values.image.tag }}",
    "{{ with .Values.image }}a: {{ .tag }}{{ end }}",
    "{{ $v := .Values }}a: {{ $v.cluster.labels.zone }}{{ range $v.ports }}{{ .port }}{{ end }}",
    r#"a: {{ tpl "{{ .Values.on }}" . }}{{ if .Values.image.pull }}x{{ end }}"#,
    r#"a: {{ get .Values.image "tag" }}{{ dig "pull" "secret" "none" .Values.image }}"#,
    r#"a: {{ index .Values "image" "tag" }}{{ (index .Values "ports" 0).port }}"#,
    r#"a: {{ hasKey .Values "zone" }}{{ kindOf .Values.env }}{{ empty .Values.cluster }}"#,
    r#"a: {{ default "x" .Values.image.digest }}{{ coalesce .Values.none .Values.on }}"#,
    r#"a: {{ (pick .Values.image "tag").tag }}{{ pluck "A" .Values.env | first }}"#,
    r#"{{ $_ := set .Values.image "tag" "2" }}a: {{ .Values.image.tag }}{{ $_ := unset .Values "on" }}{{ .Values.on }}"#,
    r"{{ $c := deepCopy .Values.image }}{{ $_ := merge $c .Values.env }}a: {{ $c.tag }}{{ $c.A }}",
    r#"a: {{ eq .Values.image.tag "1" | ternary .Values.env.A .Values.env.B }}{{ .Values.cluster.labels | toJson | quote }}"#,
    "{{ define \"t\" }}{{ range $k, $v := .env }}{{ $k }}{{ end }}{{ end }}a: {{ include \"t\" .Values }}",
    "a: {{ .Values.PathValue \"image.tag\" }}{{ (.Values.Table \"cluster.labels\").zone }}",
];

const CHART: &str = "apiVersion: v2\nname: shop\nversion: 0.1.0\n";

fn compile(files: &[(&str, &str)]) -> Compiled {
    let files = files.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec()));
    Compiled::new(Chart::from_files(files.collect(), &Limits::default()).unwrap()).unwrap()
}

fn read(compiled: &Compiled, values: Value) -> Vec<String> {
    let rendered = compiled.render(&RenderRequest { values, ..RenderRequest::default() }).unwrap();
    rendered.reads.values.into_iter().map(|path| path.join(".")).collect()
}

fn values() -> Value {
    json!({
        "image": {"repository": "web", "tag": "1", "pull": {"secret": "s"}},
        "env": {"A": "1"}, "ports": [{"port": 80}], "on": true, "cluster": {"labels": {"zone": "a", "tier": "b"}},
    })
}

/// What a template of one chart reads.
fn template(text: &str) -> Vec<String> {
    read(&compile(&[("Chart.yaml", CHART), ("templates/a.txt", text)]), values())
}

#[test]
fn a_template_reads_the_fields_it_names() {
    assert_eq!(template("a: {{ .Values.image.tag }}"), ["image.tag"]);
    assert_eq!(template("a: {{ .Values.cluster.labels.zone }}"), ["cluster.labels.zone"]);
    assert_eq!(template("{{ with .Values.image }}a: {{ .tag }}{{ end }}"), ["image"]);
    assert_eq!(
        template("{{ $i := .Values.image }}a: {{ $i.tag }}{{ $i.pull.secret }}"),
        ["image.pull.secret", "image.tag"]
    );
    assert_eq!(template(r#"a: {{ tpl "{{ .Values.on }}" . }}"#), ["on"]);
    assert_eq!(
        template(r#"{{ define "t" }}{{ .image.tag }}{{ end }}a: {{ include "t" .Values }}"#),
        ["image.tag"]
    );
    assert!(template("a: {{ .Release.Name }}{{ .Chart.Name }}").is_empty());
}

#[test]
fn functions_read_the_keys_they_are_given() {
    assert_eq!(template(r#"a: {{ get .Values.image "tag" }}"#), ["image.tag"]);
    assert_eq!(template(r#"a: {{ index .Values "image" "tag" }}"#), ["image.tag"]);
    assert_eq!(template(r#"a: {{ dig "pull" "secret" "none" .Values.image }}"#), ["image.pull.secret"]);
    assert_eq!(
        template(r#"a: {{ hasKey .Values "zone" }}{{ .Values.image.digest }}"#),
        ["image.digest", "zone"]
    );
    assert_eq!(template(r"a: {{ kindOf .Values.image.pull }}"), ["image.pull"]);
}

#[test]
fn maps_that_are_printed_counted_copied_or_ranged_over_are_read_whole() {
    assert_eq!(template("a: {{ toJson .Values.image }}"), ["image"]);
    assert_eq!(template("{{ range $k, $v := .Values.env }}{{ $k }}: {{ $v }}\n{{ end }}"), ["env"]);
    assert_eq!(template("{{ range .Values.ports }}a: {{ .port }}\n{{ end }}"), ["ports"]);
    assert_eq!(template("a: {{ len .Values.env }}{{ keys .Values.image | len }}"), ["env", "image"]);
    assert_eq!(template("a: {{ (merge (dict) .Values.image).tag }}"), ["image"]);
    for whole in [
        "{{ range .Values }}{{ end }}",
        "a: {{ toJson .Values }}",
        "a: {{ toJson . }}",
        "a: {{ .Values.AsMap | quote }}",
    ] {
        assert_eq!(template(whole), [""], "{whole}");
    }
}

fn family() -> Compiled {
    compile(&[
        (
            "Chart.yaml",
            "apiVersion: v2\nname: shop\nversion: 0.1.0\ndependencies:\n- {name: web, version: 0.1.0, alias: front, condition: front.on}\n\
             - {name: db, version: 0.1.0, tags: [store]}\n",
        ),
        ("charts/web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 0.1.0\n"),
        ("charts/web/values.yaml", "{port: 80, unused: 1}"),
        ("charts/web/templates/a.txt", "port: {{ .Values.port }}\nzone: {{ .Values.global.zone }}"),
        ("charts/db/Chart.yaml", "apiVersion: v2\nname: db\nversion: 0.1.0\n"),
        ("charts/db/templates/a.txt", "{{ with .Values.all }}{{ toJson $.Values }}{{ end }}"),
    ])
}

#[test]
fn what_dependencies_read_is_named_as_the_parent_sets_it() {
    assert_eq!(
        read(&family(), json!({})),
        ["db.all", "front.global.zone", "front.on", "front.port", "global.zone", "tags.store"]
    );
    assert_eq!(
        read(&family(), json!({"tags": {"store": false}})),
        ["front.global.zone", "front.on", "front.port", "global.zone", "tags.store"]
    );
}

#[test]
fn a_dependency_that_reads_all_its_values_reads_the_global_ones() {
    assert_eq!(
        read(&family(), json!({"front": {"on": false}, "db": {"all": true}})),
        ["db", "front.on", "global", "tags.store"]
    );
}

/// All paths of mappings and leaves.
fn all_paths(value: &Value, path: &[String], out: &mut BTreeSet<Vec<String>>) {
    for (key, below) in value.as_object().into_iter().flatten() {
        let path = [path, std::slice::from_ref(key)].concat();
        all_paths(below, &path, out);
        out.insert(path);
    }
}

/// Values with one place changed: a mapping gets one more key, everything else is replaced.
fn changed(values: &Value, known: &Value, path: &[String]) -> Value {
    let old = path.iter().try_fold(known, |value, key| value.get(key));
    let new = if old.is_some_and(Value::is_object) { json!({"more": 1}) } else { json!("changed") };
    let change = path.iter().rev().fold(new, |below, key| json!({key: below}));
    let mut values = values.clone();
    merge_values(&mut values, change);
    values
}

/// Changes everything that a render says it did not read, place by place, which must not change what it gives; how many
/// places that were. `known` are the values whose places are tried.
fn change_what_was_not_read(compiled: &Compiled, values: &Value, known: &Value) -> usize {
    let request = |values: Value| RenderRequest {
        values,
        seed: Some([1; 32]),
        now: Some(0),
        skip_schema: true,
        ..RenderRequest::default()
    };
    let before = compiled.render(&request(values.clone())).unwrap();
    let mut paths = BTreeSet::new();
    all_paths(known, &[], &mut paths);
    // A place of which something else read a part was read.
    paths.retain(|path| {
        !before.reads.values.iter().any(|read| path.starts_with(read) || read.starts_with(path))
    });
    for path in &paths {
        let after = compiled
            .render(&request(changed(values, known, path)))
            .unwrap_or_else(|error| panic!("{path:?} was not read, but with another value there: {error}"));
        assert_eq!(before.documents, after.documents, "{path:?} was not read");
        assert_eq!(before.notes, after.notes, "{path:?} was not read");
    }
    paths.len()
}

#[test]
fn what_was_not_read_changes_nothing() {
    let mut places = 0;
    for text in TEMPLATES {
        let chart = compile(&[("Chart.yaml", CHART), ("templates/a.txt", text)]);
        places += change_what_was_not_read(&chart, &values(), &values());
    }
    let known = json!({
        "front": {"on": true, "port": 80, "unused": 1, "global": {"zone": "a", "other": 1}}, "global": {"zone": "a", "other": 1},
        "db": {"all": null, "size": 1}, "tags": {"store": null, "other": true}, "port": 1,
    });
    for over in [
        json!({}),
        json!({"tags": {"store": false}}),
        json!({"global": {"zone": "b"}}),
        json!({"front": {"on": false}}),
    ] {
        places += change_what_was_not_read(&family(), &over, &known);
    }
    assert!(places > 100, "only {places} places were changed");
}
