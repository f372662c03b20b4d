//! Texts that only Secrets hold, and everything that is stored or said of them.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::life::*;
use super::shop::{objects, packed};

const PLANTED: &str = "planted-8d1f";
const NUMBER: u64 = 90_210_417;

/// The hub without Secrets: what people without a right to them may read.
fn readable(life: &Life) -> String {
    let objects = life.rig.hub.objects();
    let shown = objects.values().filter(|object| object["kind"] != "Secret");
    // Values of deployments that are no Secret's are not of interest.
    shown.map(|object| format!("{object}\n")).collect()
}

fn assert_nothing_shown(life: &Life) {
    let encoded = STANDARD.encode(PLANTED);
    for text in [PLANTED, encoded.as_str(), "90210417"] {
        let all = readable(life);
        let line = all.lines().find(|line| line.contains(text));
        assert_eq!(line, None, "{text} is shown");
    }
}

/// The shop with other values in its Secret, and another template for `db`.
async fn shop(values: &str, template: &str, extra: &[(&str, &str)]) -> Life {
    let mut all = objects();
    let mut files = vec![("templates/store.yaml", template)];
    files.extend_from_slice(extra);
    for object in &mut all {
        if object["kind"] == "Secret" && object["metadata"]["name"] == "values" {
            object["data"]["values.yaml"] = json!(STANDARD.encode(values));
        }
        if object["metadata"]["name"] == "charts" {
            object["binaryData"]["db-1.0.0.tgz"] = json!(packed("db", "1.0.0", &files));
        }
    }
    let mut life = Life::with(&all);
    life.settle().await;
    life
}

fn good() -> String {
    format!("key: {PLANTED}\npin: {NUMBER}\n")
}

const NOTHING: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: nothing}\n";

#[tokio::test(start_paused = true)]
async fn a_template_that_fails_with_a_secret_value_does_not_show_it() {
    for template in [
        "{{ fail .Values.key }}",
        "{{ fail (.Values | toYaml) }}",
        "{{ required .Values.key .Values.none }}",
        "{{ .Values.key | int | div 1 }}{{ .Values.key.inner }}",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {{ .Values.key }}: : {{ .Values.pin }}\n",
    ] {
        let life = shop(&good(), template, &[]).await;
        let (status, reason, message) = life.says("Rendered");
        assert_eq!((status.as_str(), reason.as_str()), ("False", "TemplateError"), "{template}: {message}");
        assert!(
            message.contains("withheld") && message.contains("Secret values key values.yaml"),
            "{message}"
        );
        assert_nothing_shown(&life);
    }
}

#[tokio::test(start_paused = true)]
async fn a_schema_that_refuses_a_secret_value_does_not_show_it() {
    let schema = r#"{"type": "object", "properties": {"key": {"enum": ["a"]}, "pin": {"type": "string"}}}"#;
    let life = shop(&good(), NOTHING, &[("values.schema.json", schema)]).await;
    let (_, reason, message) = life.says("Rendered");
    assert_eq!(reason, "SchemaViolation", "{message}");
    assert_nothing_shown(&life);
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_is_not_yaml_is_not_quoted() {
    for values in [
        format!("key: [{PLANTED}\n{PLANTED}: x"),
        format!("- {PLANTED}"),
        format!("*{PLANTED}"),
        format!("{PLANTED}: 1\n{PLANTED}: 2"),
    ] {
        let life = shop(&values, NOTHING, &[]).await;
        assert_nothing_shown(&life);
    }
}

#[tokio::test(start_paused = true)]
async fn a_number_in_a_rendered_secret_is_refused_at_plan_time_by_key() {
    let template =
        "apiVersion: v1\nkind: Secret\nmetadata: {name: pin}\nstringData: {password: {{ .Values.pin }}}\n";
    let life = shop(&good(), template, &[]).await;
    let (_, reason, message) = life.says("Rendered");
    assert_eq!(reason, "TemplateError");
    assert!(
        message.contains("Secret pin, whose stringData key password is a number and no text"),
        "{message}"
    );
    assert!(message.contains("db/templates/store.yaml"), "{message}");
    assert_nothing_shown(&life);
}

/// What an edge says that quotes the content of a Secret.
fn quoting() -> String {
    format!("denied: {PLANTED} {} {NUMBER}", STANDARD.encode(PLANTED))
}

#[tokio::test(start_paused = true)]
async fn an_edge_that_quotes_a_secret_is_not_quoted() {
    use crate::api::{ApiError, Method};
    use crate::memory::Fault;
    for code in [400, 403, 409, 422, 429, 500] {
        let mut all = objects();
        for object in &mut all {
            if object["kind"] == "Secret" && object["metadata"]["name"] == "values" {
                object["data"]["values.yaml"] = json!(STANDARD.encode(good()));
            }
        }
        let mut life = Life::with(&all);
        for edge in life.edges.values() {
            edge.faults(Some(Arc::new(move |request, _| {
                let secret = request.path.as_str().contains("/secrets/");
                let text = quoting();
                (secret && request.method == Method::Patch).then(|| {
                    Fault::Refuse(ApiError::Status {
                        code,
                        reason: "Invalid".to_owned(),
                        message: text.clone(),
                        retry_after: None,
                        causes: vec![("data.key".to_owned(), text), (PLANTED.to_owned(), String::new())],
                    })
                })
            })));
        }
        life.settle().await;
        let shown = readable(&life);
        assert!(shown.contains("withheld"), "{code}: {}", life.dig());
        assert_nothing_shown(&life);
    }
}

#[tokio::test(start_paused = true)]
async fn a_kubeconfig_that_is_refused_is_not_quoted() {
    for config in [
        PLANTED.to_owned(),
        format!("clusters: [{PLANTED}"),
        format!("apiVersion: {PLANTED}\nkind: {PLANTED}\nusers: {PLANTED}\n"),
        format!("users: [{{name: u, user: {{token: [{PLANTED}]}}}}]\n"),
    ] {
        let mut all = objects();
        for object in &mut all {
            if object["kind"] == "Secret" && object["metadata"]["name"] == "a" {
                object["data"]["kubeconfig"] = json!(STANDARD.encode(&config));
            }
        }
        let mut life = Life::with(&all);
        life.settle().await;
        assert_nothing_shown(&life);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stored_name_that_is_no_name_is_refused_without_a_request() {
    for (name, key) in
        [("?watch=true", "values.yaml"), ("../../acme/secrets/a", "x"), ("values", "a/b"), ("%2e%2e", "x")]
    {
        let mut all = objects();
        for object in all.iter_mut().filter(|object| object["kind"] == "CompositeProfile") {
            object["spec"]["apps"][0]["valuesFrom"] =
                json!([{"kind": "ConfigMap", "name": name, "key": key}]);
        }
        let mut life = Life::with(&all);
        life.settle().await;
        let (_, reason, message) = life.says("Resolved");
        assert_eq!(reason, "ConfigMapNotFound", "{message}");
        assert!(message.contains("no ConfigMap can have the name"), "{message}");
        let (status, reason, message) =
            life.rig.ready("/apis/emco.io/v1alpha1/namespaces/team-a/compositeprofiles/shop");
        assert_eq!((status.as_str(), reason.as_str()), ("False", "ConfigMapNotFound"), "{message}");
        life.rig.hub.take_seen();
        life.rig.round().await;
        let asked: Vec<_> = life.rig.hub.take_seen().into_iter().map(|seen| seen.path).collect();
        assert!(!asked.iter().any(|path| path.contains("watch") || path.contains("..")), "{asked:?}");
    }
}
