//! Checks what must hold for any bytes, and panics where it does not. The fuzz targets run these checks on inputs they make
//! up, the tests on those that are kept.
//!
//! That nothing takes longer or more memory than its limits allow is watched from outside: by the fuzzer, and by the
//! tests.
use std::time::Duration;

use emco_helm::{Chart, Compiled, Limits, RenderError, RenderRequest, Rendered, Set, merge_values, yaml};
use serde_json::{Value, json};

const CHART: &str = "apiVersion: v2\nname: fuzzed\nversion: 0.1.0\n";

/// What separates the texts of an input that is made of several.
const SEPARATOR: &str = "\n====\n";

/// Small enough that an input which uses them up is still quick.
fn limits() -> Limits {
    Limits {
        time: Duration::from_secs(1),
        depth: 100,
        output_bytes: 1 << 20,
        memory_bytes: 16 << 20,
        iterations: 50_000,
        archive_bytes: 4 << 20,
        archive_files: 500,
        ..Limits::default()
    }
}

/// The template of a chart.
pub fn template(data: &[u8]) {
    let helpers = r#"{{ define "name" }}{{ .Release.Name }}-{{ .Chart.Name }}{{ end }}{{ define "loop" }}{{ include "loop" . }}{{ end }}"#;
    let values = "s: text\ni: 7\nf: 1.5\nt: true\nn: null\nl: [a, 2, {k: v}]\nm: {a: 1, b: {c: d}}\ntpl: '{{ .Values.s }}'\n";
    let files = vec![
        file("Chart.yaml", CHART.as_bytes()),
        file("values.yaml", values.as_bytes()),
        file("config/a.txt", b"one\ntwo\n"),
        file("templates/_helpers.tpl", helpers.as_bytes()),
        file("templates/a.yaml", data),
    ];
    if let Ok(chart) = Chart::from_files(files, &limits()) {
        render(chart, &Value::Null, &[]);
    }
}

/// YAML: what is read can be written, and what is written reads as the same.
pub fn yaml(data: &[u8]) {
    let _ = yaml::documents(data);
    if let Ok(value) = yaml::to_json(data) {
        let written = yaml::from_json(&value);
        match yaml::to_json(written.as_bytes()) {
            Ok(again) => assert_eq!(again, value, "written as\n{written}"),
            Err(error) => panic!("{error}: {value} was written as\n{written}"),
        }
    }
    if let Ok(value) = yaml::to_value(data) {
        if let Ok(written) = yaml::from_value(&value) {
            assert!(yaml::to_value(&written).is_ok(), "{}", String::from_utf8_lossy(&written));
        }
        let _ = yaml::from_value_pretty(&value);
    }
}

/// Values: defaults of a chart, defaults of its dependency, overrides, and lines of assignments, each led by its kind.
pub fn values(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut parts = text.split(SEPARATOR);
    let mut next = || parts.next().unwrap_or_default().to_owned();
    let (own, child, over, lines) = (next(), next(), next(), next());
    let over = yaml::to_json(over.as_bytes()).unwrap_or(Value::Null);
    let mut merged = over.clone();
    merge_values(&mut merged, over.clone());
    assert_eq!(merged, over, "values merged over themselves change");
    let set: Vec<Set> = lines.lines().filter_map(assignment).take(20).collect();
    let meta = format!(
        "{CHART}dependencies:\n- {{name: child, version: 0.1.0, condition: 'child.on,on', tags: [front], import-values: [data, {{child: a, parent: b}}]}}\n"
    );
    let print = b"{{ toYaml .Values | quote }}{{ toJson .Values | quote }}";
    let files = vec![
        file("Chart.yaml", meta.as_bytes()),
        file("values.yaml", own.as_bytes()),
        file("templates/a.yaml", print),
        file("charts/child/Chart.yaml", b"apiVersion: v2\nname: child\nversion: 0.1.0\n"),
        file("charts/child/values.yaml", child.as_bytes()),
        file("charts/child/templates/a.yaml", print),
    ];
    if let Ok(chart) = Chart::from_files(files, &limits()) {
        render(chart, &over, &set);
    }
}

/// A chart as a gzipped tar, as a tar that is gzipped here, or as a list of paths with texts: the fuzzer cannot find
/// checksums, so most of its inputs are of the latter forms.
pub fn archive(data: &[u8]) {
    let chart = if data.starts_with(&[0x1f, 0x8b]) {
        Chart::load(data, &limits())
    } else if data.get(257..262) == Some(b"ustar") {
        Chart::load(&gzip(data), &limits())
    } else {
        let text = String::from_utf8_lossy(data);
        let files = text.split(SEPARATOR).map(|part| {
            let (name, text) = part.split_once('\n').unwrap_or((part, ""));
            file(name, text.as_bytes())
        });
        Chart::from_files(files.collect(), &limits())
    };
    if let Ok(chart) = chart {
        render(chart, &json!({"a": 1}), &[]);
    }
}

fn file(name: &str, data: &[u8]) -> (String, Vec<u8>) {
    (name.to_owned(), data.to_vec())
}

fn gzip(tar: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    gzip.write_all(tar).and_then(|()| gzip.finish()).unwrap_or_default()
}

fn assignment(line: &str) -> Option<Set> {
    let (kind, text) = line.split_once(' ')?;
    let text = text.to_owned();
    match kind {
        "set" => Some(Set::Typed(text)),
        "string" => Some(Set::Text(text)),
        "json" => Some(Set::Json(text)),
        "literal" => Some(Set::Literal(text)),
        _ => None,
    }
}

/// Renders twice under one seed: what is printed stays within its limit and is the same both times.
fn render(chart: Chart, values: &Value, set: &[Set]) {
    let Ok(compiled) = Compiled::new(chart) else { return };
    let request = RenderRequest {
        values: values.clone(),
        set: set.to_vec(),
        seed: Some([7; 32]),
        now: Some(1_700_000_000),
        limits: limits(),
        ..RenderRequest::default()
    };
    match (compiled.render(&request), compiled.render(&request)) {
        (Ok(first), Ok(second)) => {
            assert_eq!(text(&first), text(&second), "two renders differ");
            assert!(
                text(&first).len() <= limits().output_bytes + (64 << 10),
                "more was printed than allowed"
            );
        }
        // The clock decides where a slow render ends.
        (Err(first), _) | (_, Err(first)) => check_message(&first),
    }
}

fn check_message(error: &RenderError) {
    let message = error.to_string();
    assert!(!message.is_empty() && message.len() < 256 << 10, "a message of {} bytes", message.len());
}

fn text(rendered: &Rendered) -> String {
    let documents: Vec<&str> = rendered.documents.iter().map(|document| document.text.as_str()).collect();
    format!("{}{}", documents.concat(), rendered.notes.as_deref().unwrap_or_default())
}
