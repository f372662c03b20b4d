//! In: samples that were synced, and what the operator made of them. Out: whether Argo CD's own comparison sees a difference.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use emco_e2e::bed::{Bed, BedSpec};
use emco_e2e::operator::{Operator, SOON, program, root, unless_ended};
use serde::Deserialize as _;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{ask, lives};

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

/// Live objects, once the operator has said something of each and has put its finalizers there.
async fn observed(bed: &Bed, configs: &[Value]) -> Result<Vec<Value>> {
    let deadline = Instant::now() + SOON;
    loop {
        let items = lives(bed, &["namespaces"]).await?;
        let live_of =
            |config: &Value| items.iter().find(|live| same(live, config)).filter(|live| is_judged(live));
        if let Some(lives) =
            configs.iter().map(|config| live_of(config).cloned()).collect::<Option<Vec<Value>>>()
        {
            return Ok(lives);
        }
        let missing: Vec<_> = configs.iter().filter(|config| live_of(config).is_none()).collect();
        ensure!(Instant::now() < deadline, "the operator says nothing of {missing:#?}");
        // Some wait for places that do not answer; a kubectl costs more than it would be sooner.
        sleep(Duration::from_secs(1)).await;
    }
}

/// Whether the operator has said something of an object, if it is for it to say.
fn is_judged(live: &Value) -> bool {
    let ours = live["apiVersion"] == "emco.io/v1alpha1";
    let conditions = live["status"]["conditions"].as_array();
    !ours || conditions.into_iter().flatten().any(|condition| condition["type"] == "Ready")
}

/// What Argo CD says of each object in all its ways of comparing. It asks the API server for each.
async fn compared(bed: &Bed, configs: &[Value], lives: &[Value]) -> Result<Vec<Value>> {
    let pairs: Vec<Value> =
        configs.iter().zip(lives).map(|(config, live)| json!({"config": config, "live": live})).collect();
    let kubectl = bed.hub().kubectl().program().display().to_string();
    let answers = ask(bed, "diff", &json!({"kubectl": kubectl, "pairs": pairs})).await?;
    assert_eq!(answers.len(), configs.len());
    Ok(answers)
}

/// The objects that differ in one way of comparing.
fn differing(configs: &[Value], answers: &[Value], way: &str) -> Vec<String> {
    let differing = configs.iter().zip(answers).filter(|(_, answer)| answer[way] == true);
    differing
        .map(|(config, answer)| {
            format!(
                "{} {}\n   live: {}\n wanted: {}",
                config["kind"], config["metadata"]["name"], answer["live"], answer["predicted"]
            )
        })
        .collect()
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
                let answers = compared(&bed, &configs, &lives).await?;
                for way in ways {
                    let found = differing(&configs, &answers, way);
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
        let of_kind = |kind: &str| configs.iter().find(|config| config["kind"] == kind).cloned();
        let mut other =
            vec![of_kind("Project").context("no Project")?, of_kind("Cluster").context("no Cluster")?];
        other[0]["spec"]["removalBudget"] = json!("10%");
        let lives = observed(&bed, &other).await?;
        let answers = compared(&bed, &other, &lives).await?;
        for way in ["clientSide", "structured", "serverSide"] {
            let found = differing(&other, &answers, way);
            assert!(found.len() == 1 && found[0].contains("Project"), "{way}: {found:#?}");
        }
        Ok(())
    }))
    .await;
}
