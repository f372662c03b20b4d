//! In: an edge whose own admission rewrites what is placed, by a policy and by a webhook. Out: what it makes of it counts as wanted.

use anyhow::{Result, ensure};
use axum::Router;
use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::post;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_crds::conditions::types;
use emco_crds::{Conditioned, DeploymentIntentGroup};
use emco_e2e::bed::Bed;
use emco_e2e::https::Server;
use emco_e2e::operator::{SOON, deployed, deployment, wait};
use serde_json::{Value, json};

use super::{SILENCE, STAGE, counted, events, note, patch, says, spec, start, writes};

/// Rewrites what is said in ConfigMaps called note of one namespace, as a platform team's policy does.
const POLICY: &str = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: house-style}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: rewritten}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}]
  matchConditions: [{name: note, expression: "object.metadata.name == 'note'"}]
  failurePolicy: Fail
  reinvocationPolicy: Never
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: 'Object{data: {"say": "house style"}}'
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: house-style}
spec: {policyName: house-style}
"#;

/// The same by a webhook: a review in, with a JSON patch out.
async fn rewrite(body: Bytes) -> impl IntoResponse {
    let review: Value = serde_json::from_slice(&body).unwrap_or_default();
    let object = &review["request"]["object"];
    let patch = json!([{"op": "add", "path": "/data/say", "value": "house style"}]).to_string();
    let mut response = json!({"uid": review["request"]["uid"], "allowed": true});
    if object["metadata"]["name"] == "note" {
        response["patchType"] = json!("JSONPatch");
        response["patch"] = json!(STANDARD.encode(patch));
    }
    let answer =
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
    ([(CONTENT_TYPE, "application/json")], answer.to_string())
}

fn webhook(server: &Server) -> Value {
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "house-style"},
        "webhooks": [{
            "name": "house-style.example.com",
            "clientConfig": {"url": format!("{}/mutate", server.url()), "caBundle": STANDARD.encode(server.ca())},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "hooked"}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
                "resources": ["configmaps"], "scope": "Namespaced"}],
            "failurePolicy": "Fail", "sideEffects": "None", "admissionReviewVersions": ["v1"]}]})
}

/// Admission works some moments after it was registered, and nothing tells when.
async fn in_force(bed: &Bed, namespace: &str) -> Result<()> {
    let probe = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: note, namespace: {namespace}}}\ndata: {{say: probe}}\n"
    );
    let begun = std::time::Instant::now();
    loop {
        let args = ["apply", "--dry-run=server", "-o", "yaml", "-f", "-"];
        let answer = bed.edge("a").kubectl().run_with(&args, &probe).await?;
        if answer.contains("house style") {
            return Ok(());
        }
        ensure!(begun.elapsed() < SOON, "nothing is rewritten: {answer}");
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
}

/// A deployment's life under such an admission, with one write for each change.
async fn without_a_fight(bed: &Bed, namespace: &str, admission: &str) -> Result<()> {
    let edge = bed.edge("a").kubectl();
    edge.run(&["create", "namespace", namespace]).await?;
    edge.apply(admission).await?;
    in_force(bed, namespace).await?;
    let mark = bed.edge("a").audit_mark()?;
    start(namespace, note()?, &spec("one", "one", "{}")).await?;
    says(bed, namespace, ("house style", "one")).await?;
    wait(bed, namespace, "shop", |dig: &DeploymentIntentGroup| {
        let said = dig.status.as_ref().and_then(|status| status.condition(types::DEPLOYED));
        let message = said.map(|condition| condition.message.clone()).unwrap_or_default();
        let told = ["rewritten by the clusters' own admission", ".data.say"]
            .iter()
            .all(|part| message.contains(part));
        if told { Ok(()) } else { Err(message) }
    })
    .await?;
    tokio::time::sleep(SILENCE).await;
    let one = writes(bed, namespace, mark)?;
    ensure!(one == ["patch note"], "{one:?}");
    // An update of another field is one write more, and a change by people is put right as far as admission lets it.
    bed.hub().kubectl().apply(&deployment(namespace, "shop", &[note()?], &spec("one", "two", "{}"))).await?;
    deployed(bed, namespace, "shop", 2).await?;
    says(bed, namespace, ("house style", "two")).await?;
    patch(bed, namespace, "note", &json!({"data": {"more": "theirs"}})).await?;
    counted(bed, namespace, (1, 0)).await?;
    says(bed, namespace, ("house style", "two")).await?;
    tokio::time::sleep(SILENCE).await;
    let three = writes(bed, namespace, mark)?;
    ensure!(three.len() == 3, "{three:?}");
    let events = events(bed, namespace).await?;
    ensure!(events.contains("FieldsRewritten") && !events.contains("DriftFight"), "{events}");
    Ok(())
}

#[tokio::test]
async fn what_the_edges_own_admission_rewrites_becomes_the_baseline_without_a_fight() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(Box::pin(without_a_fight(bed, "rewritten", POLICY))).await;
}

#[tokio::test]
async fn what_a_webhook_of_the_edge_rewrites_becomes_the_baseline_without_a_fight() {
    let (bed, _) = STAGE.get().await.unwrap();
    let server = Server::secure(Router::new().route("/mutate", post(rewrite)), &[]).await.unwrap();
    bed.explain(Box::pin(async {
        without_a_fight(bed, "hooked", &webhook(&server).to_string()).await?;
        // Its server ends with this test, and nothing could be written there any more.
        bed.edge("a")
            .kubectl()
            .run(&["delete", "mutatingwebhookconfiguration", "house-style"])
            .await
            .map(drop)
    }))
    .await;
}
