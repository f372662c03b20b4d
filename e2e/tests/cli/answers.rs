//! What the commands that change a deployment answer to programs, and that an error leaves their output empty.

use anyhow::ensure;
use emco_crds::DeploymentIntentGroup;
use emco_crds::conditions::types;
use emco_e2e::operator::{refused, wait};
use serde_json::{Value, json};

use super::looks::{EVERYWHERE, deploy};
use super::past::change;
use super::rig::{STAGE, run};

/// The fields of an answer, in this order.
fn fields(answer: &Value, names: &[&str]) -> Value {
    names.iter().map(|name| answer[name].clone()).collect()
}

#[tokio::test]
async fn commands_that_change_a_deployment_answer_programs_with_what_they_did() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(Box::pin(async {
        deploy(bed, "answers", EVERYWHERE).await?;
        let values = "overrideValues: [{app: note, values: {key: two}}]";
        change(bed, "answers", &format!("{EVERYWHERE}\n{values}"), 2).await?;
        let names = ["field", "before", "now", "changed"];
        for (words, wanted) in [
            (&["suspend", "answers/till"][..], json!(["spec.suspend", null, true, true])),
            (&["suspend", "answers/till"], json!(["spec.suspend", true, true, false])),
            (&["resume", "answers/till"], json!(["spec.suspend", true, null, true])),
            (&["rollback", "answers/till", "1"], json!(["spec.revision", null, 1, true])),
            (&["rollback", "answers/till", "--unpin"], json!(["spec.revision", 1, null, true])),
        ] {
            let said = run(bed, &[words, &["-o", "json"][..]].concat()).await?;
            said.is(0, &[]);
            let answer = said.json();
            ensure!(answer["deployment"] == "answers/till", "{words:?}: {answer:#}");
            ensure!(fields(&answer, &names) == wanted, "{words:?}: {answer:#}");
        }
        let second = ["wait", "answers/till", "--for=revision=2", "--timeout=2m", "-o", "yaml"];
        run(bed, &second).await?.is(0, &["deployment: answers/till", "for: revision=2", "met: true"]);
        // Programs that read the output of a command that failed must not find half an answer.
        for words in [
            &["approve", "answers/till"][..],
            &["reject", "answers/till"],
            &["confirm", "answers/till"],
            &["rollback", "answers/till", "9"],
            &["suspend", "answers/none"],
            &["plan", "answers/none"],
            &["test", "answers/none"],
            &["adopt", "answers/none"],
            &["wait", "answers/none", "--for=ready"],
        ] {
            let said = run(bed, &[words, &["-o", "json"][..]].concat()).await?;
            said.is(1, &[]);
            ensure!(said.out.is_empty() && !said.err.is_empty(), "{words:?}: {said:?}");
        }

        let kubectl = bed.hub().kubectl();
        let always = r#"{"spec":{"confirmDeletion":"Always"}}"#;
        kubectl.run(&["patch", "eproj", "answers", "--type=merge", "-p", always]).await?;
        let seen = "--for=jsonpath={.status.observedGeneration}=2";
        kubectl.run(&["wait", "projects.emco.io/answers", seen, "--timeout=30s"]).await?;
        kubectl.run(&["delete", "dig", "till", "-n", "answers", "--wait=false"]).await?;
        wait(bed, "answers", "till", |dig: &DeploymentIntentGroup| {
            refused(dig.status.as_ref(), types::READY, "RemovalNeedsConfirmation")
        })
        .await?;
        let said = run(bed, &["confirm", "answers/till", "-o", "json"]).await?;
        said.is(0, &[]);
        let answer = said.json();
        ensure!(fields(&answer, &["deployment", "changed"]) == json!(["answers/till", true]), "{answer:#}");
        ensure!(answer["digest"].as_str().is_some_and(|digest| digest.starts_with("sha256:")), "{answer:#}");
        let gone = run(bed, &["wait", "answers/till", "--for=delete", "--timeout=2m", "-o", "json"]).await?;
        gone.is(0, &[]);
        let answer = gone.json();
        ensure!(answer == json!({"deployment": "answers/till", "for": "delete", "met": true}), "{answer:#}");
        Ok(())
    }))
    .await;
}
