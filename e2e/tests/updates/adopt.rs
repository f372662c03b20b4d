//! Objects that others made on the edge before.

use std::convert::Infallible;

use anyhow::{Result, ensure};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{SOON, chart, deployed};
use emco_e2e::package::Package;
use emco_e2e::wait::{wait_for_object, wait_until_gone};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::{SILENCE, deploy, fails, field, has, start, uid, writes};

const WEB: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: note}
data: {say: {{ .Values.say | quote }}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: example.com/web, resources: {requests: {cpu: "0.5", memory: 1Gi}}, ports: [{containerPort: 80}]}
"#;

/// The same as people write it by hand, without what servers fill in, and with other spellings of the same quantities. The API
/// server keeps neither the chart's `0.5` nor these `1024Mi`.
fn by_hand(say: &str) -> String {
    WEB.replace("{{ .Values.say | quote }}", &format!("\"{say}\""))
        .replace("\"0.5\"", "500m")
        .replace("1Gi", "1024Mi")
}

fn web() -> Package {
    chart("web", "1.0.0", &[("values.yaml", "say: hello\n"), ("templates/web.yaml", WEB)]).unwrap()
}

const OBJECTS: [&str; 3] = ["cm/note", "svc/web", "deploy/web"];

#[tokio::test]
async fn what_people_made_alike_is_taken_over_and_left_in_the_end() {
    let chart = web();
    let bed = start("alike", &chart).await.unwrap();
    bed.explain(async {
        bed.edge("a").kubectl().apply_to("alike", &by_hand("hello")).await?;
        let mut uids = Vec::new();
        for object in OBJECTS {
            uids.push(uid(bed, "alike", object).await?);
        }
        let rolled = wait_until_rolled_out(bed).await?;
        let mark = bed.edge("a").audit_mark()?;
        deploy(bed, "alike", &chart, "{say: hello}", "{}").await?;
        let message = fails(bed, "alike", "NotOurs").await?;
        has(&message, &["by kubectl", "2 more", "spec.sync.conflicts"])?;
        ensure!(writes(bed, "alike", mark)?.is_empty());
        deploy(bed, "alike", &chart, "{say: hello}", "{conflicts: AdoptIfSame}").await?;
        deployed(bed, "alike", "shop", 1).await?;
        for (object, before) in OBJECTS.iter().zip(&uids) {
            ensure!(uid(bed, "alike", object).await? == *before, "{object}");
            ensure!(
                field(bed, "alike", object, r"{.metadata.annotations.emco\.io/adopted}").await? == "true"
            );
        }
        ensure!(wait_until_rolled_out(bed).await? == rolled, "no Pod is started anew");
        bed.hub().kubectl().run(&["delete", "dig", "shop", "-n", "alike"]).await?;
        for (object, before) in OBJECTS.iter().zip(&uids) {
            ensure!(uid(bed, "alike", object).await? == *before, "{object}");
            let marks = field(
                bed,
                "alike",
                object,
                "{.metadata.labels}{.metadata.annotations}{.metadata.managedFields[*].manager}",
            );
            let marks = marks.await?;
            ensure!(!marks.contains("emco"), "{object}: {marks}");
        }
        let deletes: Vec<String> =
            writes(bed, "alike", mark)?.into_iter().filter(|w| w.starts_with("delete")).collect();
        ensure!(deletes.is_empty(), "{deletes:?}");
        Ok(())
    })
    .await;
}

/// The rollout and the Pods of the Deployment once its controller has seen all that was written. (The API server counts a change
/// of annotations as a new generation, too.)
async fn wait_until_rolled_out(bed: &Bed) -> Result<(String, String)> {
    bed.edge("a").kubectl().run(&["rollout", "status", "deploy/web", "-n", "alike", "--timeout=60s"]).await?;
    let rollout =
        field(bed, "alike", "deploy/web", r"{.metadata.annotations.deployment\.kubernetes\.io/revision}");
    let pods = ["get", "pods", "-n", "alike", "-l", "app=web", "-o", "jsonpath={.items[*].metadata.uid}"];
    let pods = bed.edge("a").kubectl().run(&pods).await?;
    ensure!(!pods.is_empty(), "there is no Pod");
    Ok((rollout.await?, pods))
}

#[tokio::test]
async fn what_differs_is_listed_then_held_by_its_manager_then_forced() {
    let chart = web();
    let bed = start("differs", &chart).await.unwrap();
    bed.explain(async {
        bed.edge("a").kubectl().apply_to("differs", &by_hand("theirs")).await?;
        let before = uid(bed, "differs", "cm/note").await?;
        deploy(bed, "differs", &chart, "{say: ours}", "{conflicts: AdoptIfSame}").await?;
        let message = fails(bed, "differs", "NotOurs").await?;
        has(&message, &["ConfigMap/differs/note", "by kubectl", "differs in data.say", "Adopt or Force"])?;
        deploy(bed, "differs", &chart, "{say: ours}", "{conflicts: Adopt}").await?;
        let held =
            |message: &str| has(message, &[".data.say", "conflict with \"kubectl\"", "conflicts: Force"]);
        super::says(bed, "differs", "NotOurs", held).await?;
        ensure!(field(bed, "differs", "cm/note", "{.data.say}").await? == "theirs");
        deploy(bed, "differs", &chart, "{say: ours}", "{conflicts: Force}").await?;
        deployed(bed, "differs", "shop", 1).await?;
        ensure!(field(bed, "differs", "cm/note", "{.data.say}").await? == "ours");
        // Adopted once, it is updated as any other, and still left in the end.
        deploy(bed, "differs", &chart, "{say: again}", "{conflicts: Fail}").await?;
        deployed(bed, "differs", "shop", 2).await?;
        bed.hub().kubectl().run(&["delete", "dig", "shop", "-n", "differs"]).await?;
        ensure!(uid(bed, "differs", "cm/note").await? == before);
        ensure!(field(bed, "differs", "cm/note", "{.data.say}").await? == "again");
        Ok(())
    })
    .await;
}

/// Sets what the note says to its own whenever it says something else.
async fn fight(maps: &Api<ConfigMap>) -> Result<Infallible> {
    loop {
        let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "note"}, "data": {"say": "theirs"}});
        maps.patch("note", &PatchParams::apply("other-operator").force(), &Patch::Apply(&theirs)).await?;
        let forced = |map: &ConfigMap| {
            map.data.as_ref().is_some_and(|data| data.get("say").is_some_and(|say| say == "ours"))
        };
        wait_for_object(maps.clone(), "note", SOON, forced).await?;
    }
}

#[tokio::test]
async fn who_writes_back_what_was_forced_is_named_and_keeps_the_object() {
    let chart = web();
    let bed = start("forced", &chart).await.unwrap();
    bed.explain(Box::pin(async {
        bed.edge("a").kubectl().apply_to("forced", &by_hand("theirs")).await?;
        deploy(bed, "forced", &chart, "{say: ours}", "{conflicts: Force}").await?;
        deployed(bed, "forced", "shop", 1).await?;
        let maps = bed.edge("a").api::<ConfigMap>("forced").await?;
        let mark = bed.edge("a").audit_mark()?;
        let message = tokio::select! {
            ended = fight(&maps) => match ended? {},
            message = fails(bed, "forced", "DriftFight") => message?,
        };
        has(&message, &["ConfigMap/forced/note", "again and again by other-operator", "spec.sync.ignore"])?;
        let before = writes(bed, "forced", mark)?.len();
        tokio::time::sleep(SILENCE).await;
        ensure!(writes(bed, "forced", mark)?.len() == before, "answered at once");
        Ok(())
    }))
    .await;
}

#[tokio::test]
async fn of_two_deployments_that_take_one_object_the_first_has_it_until_it_goes() {
    let chart = web();
    let bed = start("both", &chart).await.unwrap();
    bed.explain(async {
        bed.edge("a").kubectl().apply_to("both", &by_hand("hello")).await?;
        deploy(bed, "both", &chart, "{say: hello}", "{conflicts: Adopt}").await?;
        deployed(bed, "both", "shop", 1).await?;
        let spec =
            "release: till\nplacement: {allOf: [{provider: acme, cluster: a}]}\nsync: {conflicts: Force}";
        let second = emco_e2e::operator::deployment("both", "till", std::slice::from_ref(&chart), spec);
        bed.hub().kubectl().apply(&second).await?;
        let message = super::fails_of(bed, "both", "till", "Conflict").await?;
        has(&message, &["both/shop"])?;
        bed.hub().kubectl().run(&["delete", "dig", "shop", "-n", "both"]).await?;
        let now = ["annotate", "dig", "till", "-n", "both", "emco.io/requestedAt=now"];
        bed.hub().kubectl().run(&now).await?;
        deployed(bed, "both", "till", 1).await?;
        bed.hub().kubectl().run(&["delete", "dig", "till", "-n", "both"]).await?;
        let digs: Api<emco_crds::DeploymentIntentGroup> = bed.hub().api("both").await?;
        wait_until_gone(digs, "till", SOON).await?;
        ensure!(field(bed, "both", "cm/note", "{.data.say}").await? == "hello", "it is still there");
        Ok(())
    })
    .await;
}
