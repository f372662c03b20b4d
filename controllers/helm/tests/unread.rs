//! Values that were set and that nothing reads or explains, and values that turn a chart off.
use emco_helm::{Chart, Compiled, Limits, RenderRequest, Rendered};
use serde_json::{Value, json};

const CHART: &str = "apiVersion: v2\nname: shop\nversion: 0.1.0\n";
const VALUES: &str = "replicaCount: 1\nimage:\n  repository: web\n  tag: '1'\nresources: {}\nnodeSelector:\n  os: linux\n\
                      persistence:\n  enabled: false\nglobal: {}\n";
const TEMPLATE: &str = r#"
kind: Service
apiVersion: v1
metadata: {name: web}
spec:
  a: {{ .Values.replicaCount }}
  b: {{ .Values.image.repository }}:{{ .Values.image.tag }}
  c: {{ get .Values "fullname-override" | quote }}
{{- if .Values.persistence.enabled }}
  d: {{ .Values.persistence.existingClaim }}
  e: {{ toYaml .Values.nodeSelector }}
  {{- range $name, $port := .Values.ports }}
  {{ $name }}: {{ $port.number }}
  {{- end }}
{{- end }}
"#;

fn render(files: &[(&str, &str)], values: Value) -> Rendered {
    let files = files.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec()));
    let compiled = Compiled::new(Chart::from_files(files.collect(), &Limits::default()).unwrap()).unwrap();
    compiled.render(&RenderRequest { values, ..RenderRequest::default() }).unwrap()
}

/// The values of the chart above that are found, each with the one that was perhaps meant.
fn unread(values: Value) -> Vec<String> {
    of(&render(&[("Chart.yaml", CHART), ("values.yaml", VALUES), ("templates/a.yaml", TEMPLATE)], values))
}

fn of(rendered: &Rendered) -> Vec<String> {
    let one = |value: &emco_helm::UnreadValue| match &value.similar {
        Some(similar) => format!("{} ({})", value.path.join("."), similar.join(".")),
        None => value.path.join("."),
    };
    rendered.unread.iter().map(one).collect()
}

#[test]
fn a_misspelt_value_is_found_with_the_one_that_was_meant() {
    assert_eq!(unread(json!({"replicaCout": 2})), ["replicaCout (replicaCount)"]);
    assert_eq!(unread(json!({"replicacount": 2})), ["replicacount (replicaCount)"]);
    assert_eq!(unread(json!({"imgae": {"tag": "2"}})), ["imgae (image)"]);
    assert_eq!(unread(json!({"image": {"tga": "2"}})), ["image.tga (image.tag)"]);
    assert_eq!(unread(json!({"fullname-overide": "a"})), ["fullname-overide (fullname-override)"]);
    assert_eq!(unread(json!({"persistance": {"enabled": true}})), ["persistance (persistence)"]);
}

#[test]
fn a_value_in_the_wrong_place_is_found_with_the_right_one() {
    assert_eq!(unread(json!({"tag": "2"})), ["tag (image.tag)"]);
    assert_eq!(unread(json!({"colour": "red"})), ["colour"]);
}

#[test]
fn values_with_a_default_or_a_template_that_names_them_are_not_found() {
    let none: [&str; 0] = [];
    assert_eq!(unread(json!({"replicaCount": 2, "image": {"tag": "2"}, "fullname-override": "a"})), none);
    // Below a default that is an empty table, or another value.
    assert_eq!(unread(json!({"resources": {"limits": {"cpu": 1}}})), none);
    // In a template that this render does not come to.
    assert_eq!(unread(json!({"persistence": {"existingClaim": "a"}})), none);
    assert_eq!(unread(json!({"nodeSelector": {"disk": "fast"}, "ports": {"web": {"number": 80}}})), none);
    // For other charts, for YAML alone, and nothing at all.
    assert_eq!(
        unread(json!({"global": {"a": {"b": 1}}, "x-anchors": {"a": 1}, "_a": 1, "gone": null})),
        none
    );
}

#[test]
fn a_table_that_is_read_as_a_whole_explains_everything_below() {
    for template in [
        "a: {{ toYaml .Values | quote }}",
        "{{ range $k, $v := .Values }}{{ $k }}: 1\n{{ end }}",
        "{{ $m := merge (dict) .Values }}a: {{ $m.x }}",
        "{{ define \"t\" }}{{ toJson . }}{{ end }}a: {{ include \"t\" .Values | quote }}",
        "a: {{ tpl (toYaml .Values) . | quote }}",
    ] {
        let rendered =
            render(&[("Chart.yaml", CHART), ("templates/a.txt", template)], json!({"any": {"thing": 1}}));
        assert!(rendered.unread.is_empty(), "{template}: {:?}", rendered.unread);
    }
}

#[test]
fn a_table_that_is_only_asked_whether_it_is_empty_explains_nothing() {
    for template in [
        "{{ with .Values.image }}a: {{ .tag }}{{ end }}",
        "{{ if and .Values .Values.image }}a: {{ .Values.image.tag }}{{ end }}",
        "{{ if not (empty .Values.image) }}a: {{ get .Values.image \"tag\" }}{{ end }}",
    ] {
        let files =
            [("Chart.yaml", CHART), ("values.yaml", "image: {tag: '1'}\n"), ("templates/a.txt", template)];
        let rendered = render(&files, json!({"image": {"tga": "2"}}));
        assert_eq!(of(&rendered), ["image.tga (image.tag)"], "{template}");
    }
}

#[test]
fn values_of_dependencies_are_held_against_their_charts() {
    let files = [
        (
            "Chart.yaml",
            "apiVersion: v2\nname: shop\nversion: 0.1.0\ndependencies:\n- {name: db, version: 1.0.0, alias: store, \
             condition: store.enabled}\n- {name: cache, version: 1.0.0, tags: [fast]}\n",
        ),
        ("values.yaml", "store: {enabled: false}\n"),
        ("charts/db/Chart.yaml", "apiVersion: v2\nname: db\nversion: 1.0.0\n"),
        ("charts/db/values.yaml", "auth: {user: a}\n"),
        (
            "charts/db/templates/a.yaml",
            "{{ .Values.auth.user }}{{ .Values.auth.password }}{{ .Values.size }}",
        ),
        ("charts/cache/Chart.yaml", "apiVersion: v2\nname: cache\nversion: 1.0.0\n"),
        ("charts/cache/templates/a.yaml", "# {{ .Values.memory }}"),
    ];
    // The chart is off, and its values are known all the same.
    let values =
        json!({"store": {"auth": {"user": "b", "password": "c"}, "size": 1}, "tags": {"fast": true}});
    assert_eq!(of(&render(&files, values)), [""; 0]);
    let values = json!({
        "store": {"auth": {"pasword": "c"}, "global": {"a": 1}}, "db": {"size": 1}, "cache": {"memry": 1},
        "memory": 1, "tags": {"fats": true},
    });
    assert_eq!(
        of(&render(&files, values)),
        [
            "cache.memry (cache.memory)",
            "db",
            "memory",
            "store.auth.pasword (store.auth.password)",
            "tags.fats (tags.fast)"
        ]
    );
}

#[test]
fn schemas_texts_for_tpl_and_assignments_count() {
    let files = [
        ("Chart.yaml", CHART),
        ("values.yaml", "extra: '{{ .Values.mine.a }}'\n"),
        ("values.schema.json", r#"{"properties": {"reserved": {"type": "string"}}}"#),
        ("config.txt", "{{ .Values.fromFile }}"),
        ("templates/a.yaml", "# nothing"),
    ];
    let values =
        json!({"reserved": "a", "mine": {"a": 1}, "fromFile": 1, "own": "{{ .Values.other }}", "other": 1});
    assert_eq!(of(&render(&files, values)), ["own"]);
}

#[test]
fn what_is_found_is_bounded() {
    let values: serde_json::Map<String, Value> =
        (0..5_000).map(|n| (format!("some-value-{n}"), json!(n))).collect();
    assert_eq!(unread(Value::Object(values)).len(), 100);
}

#[test]
fn a_chart_that_renders_nothing_names_the_value_that_turns_it_on() {
    let switches = |template: &str, values: Value| -> Vec<String> {
        let files = [
            ("Chart.yaml", CHART),
            ("values.yaml", "web: {enabled: false}\n"),
            ("templates/NOTES.txt", "Thanks."),
            ("templates/_helpers.tpl", "{{ define \"a\" }}a{{ end }}"),
            ("templates/a.yaml", template),
        ];
        let rendered = render(&files, values);
        assert!(rendered.manifests.is_empty());
        rendered.switches.iter().map(|path| path.join(".")).collect()
    };
    let object = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n";
    let body = format!("{{{{- if .Values.web.enabled }}}}\n{object}{{{{- end }}}}\n");
    assert_eq!(switches(&body, json!({})), ["web.enabled"]);
    assert_eq!(switches(&format!("{{{{/* It is off. */}}}}\n{body}"), json!({})), ["web.enabled"]);
    // What is more than one `if` is not certain.
    let more = format!("{{{{ if and .Values.web.enabled .Values.a }}}}{object}{{{{ end }}}}");
    assert_eq!(switches(&more, json!({})), [""; 0]);
    let other = format!("{{{{ if .Values.web.enabled }}}}{object}{{{{ else }}}}# {{{{ end }}}}");
    assert_eq!(switches(&other, json!({})), [""; 0]);
    assert_eq!(switches("{{ if .Values.web.enabled }}{{ end }}", json!({"web": {"enabled": true}})), [""; 0]);
    assert_eq!(switches("# nothing", json!({})), [""; 0]);
}
