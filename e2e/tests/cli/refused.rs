//! A refused change of what runs: everything that people look at says that it did not happen.

use anyhow::{Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_crds::conditions::types;
use emco_e2e::bed::Bed;
use emco_e2e::operator::{chart, chart_map, deployed, deployment, is, project, says, wait};
use serde_json::Value;

use super::rig::{STAGE, run};

const TENANT: &str = "refuses";
const EVERYWHERE: &str = "placement: {allOf: [{provider: acme, selector: {matchLabels: {tier: edge}}}]}";
const NOTE: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: note}
data: {count: {{ .Values.count | quote }}}
{{- if eq (int .Values.count) 13 }}{{ fail \"13 is unlucky\" }}{{ end }}
";
const SCHEMA: &str = r#"{"type": "object", "properties": {"count": {"type": "integer"}}}"#;

/// What is asked for, how it is refused, and words of the sentence.
const REFUSED: [(&str, &str, &str); 6] = [
    ("overrideValues: [{app: note, values: {count: two}}]", "SchemaViolation", "count"),
    ("overrideValues: [{app: note, values: {count: 13}}]", "TemplateError", "13 is unlucky"),
    // Two faults at one time are both told.
    (
        "overrideValues: [{app: nothing, values: {count: 2}}, {app: nobody, values: {count: 2}}]",
        "AppNotFound",
        "2 faults: (1) spec.overrideValues[0].app names app nothing, which CompositeApp till does not have: it has note; \
         (2) spec.overrideValues[1].app names app nobody",
    ),
    ("intents: [{kind: Net, name: net}]", "IntentKindUnknown", "no intent of kind Net in group emco.io"),
    (
        "intents: [{kind: GenericActionIntent, name: absent}]",
        "IntentNotFound",
        "GenericActionIntent absent does not exist in namespace refuses",
    ),
    (
        "placement: {allOf: [{provider: acme, selector: {matchLabels: {tier: nowhere}}}]}",
        "NoClusterMatches",
        "tier=nowhere",
    ),
];

async fn warnings(bed: &Bed, reason: &str) -> Result<usize> {
    let selector = format!("involvedObject.name=till,type=Warning,reason={reason}");
    let args = ["get", "events", "-n", TENANT, "--field-selector", &selector, "-o", "json"];
    let events: Value = serde_json::from_str(&bed.hub().kubectl().run(&args).await?)?;
    Ok(events["items"].as_array().map(Vec::len).unwrap_or_default())
}

async fn patch(bed: &Bed, spec: &str) -> Result<()> {
    let patch = format!("spec: {{{spec}}}");
    let args = ["patch", "dig", "till", "-n", TENANT, "--type=merge", "-p", &patch];
    bed.hub().kubectl().run(&args).await.map(drop)
}

#[tokio::test]
async fn a_refused_change_of_what_runs_is_nowhere_taken_for_success() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        let kubectl = bed.hub().kubectl();
        project(bed, TENANT).await?;
        let files =
            [("values.yaml", "count: 1\n"), ("values.schema.json", SCHEMA), ("templates/note.yaml", NOTE)];
        let charts = [chart("note", "1.0.0", &files)?];
        chart_map(bed, TENANT, "charts", &charts).await?;
        kubectl.apply(&deployment(TENANT, "till", &charts, EVERYWHERE)).await?;
        deployed(bed, TENANT, "till", 1).await?;
        for (change, reason, words) in REFUSED {
            patch(bed, change).await?;
            let message = says::<DeploymentIntentGroup, _>(bed, TENANT, "till", types::READY, reason).await?;
            let runs = "revision 1 runs on 2 of 2 clusters; the last change is refused: ";
            ensure!(message.starts_with(runs) && message.contains(words), "{change}: {message}");
            let waits = ["wait", "dig/till", "-n", TENANT, "--for=condition=Ready", "--timeout=0s"];
            ensure!(kubectl.run(&waits).await.is_err(), "{change}: kubectl wait takes it for Ready");
            let table = kubectl.run(&["get", "dig", "till", "-n", TENANT, "-o", "wide"]).await?;
            ensure!(table.contains("REASON") && table.contains("MESSAGE"), "{table}");
            ensure!(table.contains(reason) && table.contains(words), "{change}: {table}");
            run(bed, &["status", "refuses/till"])
                .await?
                .is(3, &[&format!("ready: False ({reason})"), runs, words]);
            ensure!(warnings(bed, reason).await? == 1, "{change}: {} Warnings", warnings(bed, reason).await?);
            // Taken back: what runs is what is wanted again.
            let back = if change.starts_with("placement") {
                EVERYWHERE.to_owned()
            } else {
                format!("{}: null", change.split(':').next().unwrap_or_default())
            };
            patch(bed, &back).await?;
            wait(bed, TENANT, "till", |dig: &DeploymentIntentGroup| {
                let seen = dig.status.as_ref().and_then(|status| status.observed_generation);
                if seen != dig.metadata.generation {
                    return Err("the last change was not looked at".to_owned());
                }
                is(dig.status.as_ref(), types::READY, "True")
            })
            .await?;
            run(bed, &["status", "refuses/till"]).await?.is(0, &["ready: True  revision: 1"]);
        }
        Ok(())
    })
    .await;
}
