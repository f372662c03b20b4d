//! In: samples that were synced, and what the operator made of them. Out: whether Argo CD's own comparison sees a difference.

use anyhow::{Context as _, Result, ensure};
use emco_e2e::bed::{Bed, BedSpec};
use emco_e2e::operator::{Operator, program, root, unless_ended};
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::{KINDS, ask, live, resource};

/// The samples as a folder in Git has them, with the annotation by which Argo CD knows its own.
fn samples() -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for folder in ["config/samples", "config/samples/first"] {
        let mut files: Vec<_> =
            std::fs::read_dir(root().join(folder))?.flatten().map(|entry| entry.path()).collect();
        files.sort();
        for file in files {
            if file.extension().is_none_or(|extension| extension != "yaml")
                || file.ends_with("kustomization.yaml")
            {
                continue;
            }
            for document in serde_yaml::Deserializer::from_str(&std::fs::read_to_string(&file)?) {
                let mut object = Value::deserialize(document)?;
                let (kind, name) = (object["kind"].clone(), object["metadata"]["name"].clone());
                let id =
                    format!("emco:emco.io/{}:/{}", kind.as_str().unwrap_or(""), name.as_str().unwrap_or(""));
                object["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"] = json!(id);
                // Two folders have a provider of the same name; one application holds an object once.
                if !all.iter().any(|known: &Value| same(known, &object)) {
                    all.push(object);
                }
            }
        }
    }
    // As Argo CD does.
    all.sort_by_key(|object| object["kind"] != "Namespace");
    Ok(all)
}

fn same(a: &Value, b: &Value) -> bool {
    a["kind"] == b["kind"]
        && a["metadata"]["name"] == b["metadata"]["name"]
        && a["metadata"]["namespace"] == b["metadata"]["namespace"]
}

async fn live_of(bed: &Bed, config: &Value) -> Result<Value> {
    let kind = config["kind"].as_str().unwrap_or_default();
    let found = KINDS.iter().find(|(name, _)| *name == kind).map_or("namespaces", |(_, resource)| resource);
    let text = |key: &str| config["metadata"][key].as_str().unwrap_or_default().to_owned();
    live(bed, found, &text("namespace"), &text("name")).await
}

/// Live objects, once the operator has said something of each and has put its finalizers there.
async fn observed(bed: &Bed, configs: &[Value]) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for config in configs {
        let ours = config["apiVersion"] == "emco.io/v1alpha1";
        let wanted = "--for=jsonpath={.status.conditions[?(@.type==\"Ready\")].status}";
        if ours {
            let text = |key: &str| config["metadata"][key].as_str().unwrap_or_default().to_owned();
            let (namespace, name) = (text("namespace"), text("name"));
            let mut args = vec!["wait", resource(config["kind"].as_str().unwrap_or_default()), &name, wanted];
            args.push("--timeout=120s");
            if !namespace.is_empty() {
                args.extend(["-n", &namespace]);
            }
            bed.hub().kubectl().run(&args).await?;
        }
        all.push(live_of(bed, config).await?);
    }
    Ok(all)
}

/// In which of Argo CD's ways of comparing the objects differ.
async fn differences(bed: &Bed, configs: &[Value], lives: &[Value], way: &str) -> Result<Vec<String>> {
    let pairs: Vec<Value> =
        configs.iter().zip(lives).map(|(config, live)| json!({"config": config, "live": live})).collect();
    let kubectl = bed.hub().kubectl().program().display().to_string();
    let answers = ask(bed, "diff", &json!({"kubectl": kubectl, "pairs": pairs})).await?;
    assert_eq!(answers.len(), configs.len());
    let differing = configs.iter().zip(&answers).filter(|(_, answer)| answer[way] == true);
    Ok(differing
        .map(|(config, answer)| {
            format!(
                "{} {}\n   live: {}\n wanted: {}",
                config["kind"], config["metadata"]["name"], answer["live"], answer["predicted"]
            )
        })
        .collect())
}

#[tokio::test]
async fn samples_that_were_synced_show_no_difference_in_argo_cd() {
    let bed = Bed::start(BedSpec::bare_hub()).await.unwrap();
    bed.explain(Box::pin(async {
        let operator = Operator::start(&bed, &program()?).await?;
        let configs = samples()?;
        ensure!(configs.len() >= 12, "only {} samples were found", configs.len());
        let list = json!({"apiVersion": "v1", "kind": "List", "items": configs}).to_string();
        let kubectl = bed.hub().kubectl();
        for (args, ways) in [
            // As Argo CD syncs by default, then with ServerSideApply=true.
            (&["apply", "-f", "-"][..], &["clientSide"][..]),
            (
                &[
                    "apply",
                    "--server-side",
                    "--force-conflicts",
                    "--field-manager=argocd-controller",
                    "-f",
                    "-",
                ],
                &["structured", "serverSide"],
            ),
        ] {
            let mut before: Option<Vec<Value>> = None;
            for sync in 1..=2 {
                kubectl.run_with(args, &list).await?;
                let lives = unless_ended(operator.process(), observed(&bed, &configs)).await?;
                for way in ways {
                    let found = differences(&bed, &configs, &lives, way).await?;
                    assert!(found.is_empty(), "sync {sync}, {way}: {}", found.join("\n"));
                }
                if let Some(before) = before.replace(lives.clone()) {
                    for (before, after) in before.iter().zip(&lives) {
                        let generation = |object: &Value| object["metadata"]["generation"].clone();
                        assert_eq!(generation(before), generation(after), "{}", before["metadata"]["name"]);
                    }
                }
            }
        }
        // The comparison sees a difference where there is one.
        let mut other = configs.clone();
        let project = other.iter_mut().find(|config| config["kind"] == "Project").context("no Project")?;
        project["spec"]["removalBudget"] = json!("10%");
        let lives = observed(&bed, &configs).await?;
        for way in ["clientSide", "structured", "serverSide"] {
            let found = differences(&bed, &other, &lives, way).await?;
            assert_eq!(found.len(), 1, "{way}: {found:#?}");
        }
        Ok(())
    }))
    .await;
}
