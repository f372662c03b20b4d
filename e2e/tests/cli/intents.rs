//! Plans and digests of files with intents, and what is said of files and intents that are wrong.

use anyhow::{Context as _, Result, ensure};
use emco_crds::LogicalCloud;
use emco_crds::conditions::types;
use emco_e2e::bed::Bed;
use emco_e2e::operator::{chart, chart_map, deployed, deployment, is, wait};
use emco_e2e::package::Package;

use super::decide::approved;
use super::looks::EVERYWHERE;
use super::rig::{STAGE, file, run};

const NOTE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\ndata: {key: one}\n";

fn charts() -> Result<[Package; 1]> {
    Ok([chart("note", "1.0.0", &[("templates/note.yaml", NOTE)])?])
}

/// A project, with its charts on the hub.
async fn project(bed: &Bed, tenant: &str, more: &str) -> Result<()> {
    let objects = format!(
        "
apiVersion: v1
kind: Namespace
metadata: {{name: {tenant}, labels: {{emco.io/project: {tenant}}}}}
---
apiVersion: emco.io/v1alpha1
kind: Project
metadata: {{name: {tenant}}}
spec: {{logicalCloud: {{level: Admin}}{more}}}
"
    );
    bed.hub().kubectl().apply(&objects).await?;
    wait::<LogicalCloud, _>(bed, tenant, "default", |cloud| is(cloud.status.as_ref(), types::READY, "True"))
        .await?;
    chart_map(bed, tenant, "charts", &charts()?).await
}

fn listing(tenant: &str) -> Result<String> {
    let spec = format!("{EVERYWHERE}\nintents: [{{kind: GenericActionIntent, name: note}}]");
    Ok(deployment(tenant, "till", &charts()?, &spec))
}

/// Changes the ConfigMap of the chart.
fn intent(tenant: &str, key: &str) -> String {
    format!(
        "
apiVersion: emco.io/v1alpha1
kind: GenericActionIntent
metadata: {{name: note, namespace: {tenant}}}
spec:
  actions:
  - name: key
    app: note
    type: JSONMerge
    target: {{apiVersion: v1, kind: ConfigMap, name: note}}
    jsonMerge: {{data: {{key: {key}}}}}
"
    )
}

async fn written(bed: &Bed, name: &str, text: &str) -> Result<String> {
    let path = file(bed, name, text).await?;
    Ok(path.to_str().context("no text")?.to_owned())
}

#[tokio::test]
async fn a_plan_of_files_shows_what_an_intent_in_them_would_change() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(Box::pin(async {
        let kubectl = bed.hub().kubectl();
        project(bed, "acts", "").await?;
        kubectl.apply(&intent("acts", "two")).await?;
        kubectl.apply(&listing("acts")?).await?;
        deployed(bed, "acts", "till", 1).await?;
        let same = written(bed, "acts.yaml", &intent("acts", "two")).await?;
        run(bed, &["plan", "-f", &same]).await?.is(0, &["nothing would change\n"]);
        let changed = written(bed, "acts-changed.yaml", &intent("acts", "three")).await?;
        run(bed, &["plan", "-f", &changed]).await?.is(
            2,
            &[
                "acts/till: revision 1 runs\nrevision 2 would come",
                "~ ConfigMap/acts/note (only by GenericActionIntent note)\n",
                "-  key: two\n",
                "+  key: three\n",
            ],
        );
        kubectl.apply(&intent("acts", "three")).await?;
        deployed(bed, "acts", "till", 2).await?;
        run(bed, &["plan", "-f", &changed]).await?.is(0, &["nothing would change\n"]);
        Ok(())
    }))
    .await;
}

#[tokio::test]
async fn the_fields_of_an_intent_are_listed_with_its_actions_and_without_values() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(Box::pin(async {
        let kubectl = bed.hub().kubectl();
        project(bed, "listed", "").await?;
        kubectl.apply(&deployment("listed", "till", &charts()?, EVERYWHERE)).await?;
        deployed(bed, "listed", "till", 1).await?;
        let edits = ["manifests", "listed/till", "--edits"];
        run(bed, &edits).await?.is(0, &["no intent changes anything of listed/till there\n"]);
        kubectl.apply(&intent("listed", "two")).await?;
        kubectl.apply(&listing("listed")?).await?;
        deployed(bed, "listed", "till", 2).await?;
        let said = run(bed, &edits).await?;
        said.is(0, &["APP    REVISION   CLUSTERS         OBJECT"]);
        let line = said.out.lines().nth(1).unwrap_or_default();
        let cells: Vec<&str> = line.split("   ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
        let by = "GenericActionIntent note, spec.actions[key]";
        let wanted = ["note", "2", "acme/a, acme/b", "ConfigMap/listed/note", "/data/key", by];
        ensure!(cells == wanted && said.out.lines().count() == 2, "{}", said.out);
        let json = run(bed, &[&edits[..], &["--cluster", "acme/a", "-o", "json"]].concat()).await?.json();
        ensure!(json[0]["clusters"] == serde_json::json!(["acme/a"]), "{json:#}");
        ensure!(json[0]["objects"][0]["fields"][0]["by"] == by, "{json:#}");
        run(bed, &[&edits[..], &["--revision", "1"]].concat())
            .await?
            .is(0, &["no intent changes anything of listed/till there\n"]);
        run(bed, &[&edits[..], &["--show-secrets"]].concat())
            .await?
            .is(2, &["the argument '--edits' cannot be used with '--show-secrets'"]);
        Ok(())
    }))
    .await;
}

#[tokio::test]
async fn the_digest_of_files_with_an_intent_is_the_one_that_waits_once_they_are_applied() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(Box::pin(async {
        let kubectl = bed.hub().kubectl();
        project(bed, "counts", ", approval: {mode: Manual}").await?;
        let context = kubectl.run(&["config", "current-context"]).await?;
        let whole = format!("{}\n---\n{}", intent("counts", "two"), listing("counts")?);
        let path = written(bed, "counts.yaml", &whole).await?;
        let said = run(bed, &["digest", "-f", &path, "--context", context.trim(), "-o", "json"]).await?;
        kubectl.apply(&whole).await?;
        let waits = approved(bed, "counts", "AwaitingApproval").await?.context("no plan waits")?;
        let said = if said.code == Some(0) {
            said
        } else {
            // Before the first look at it the hub has no digest of the chart.
            run(bed, &["digest", "-f", &path, "--context", context.trim(), "-o", "json"]).await?
        };
        ensure!(said.json()[0]["digest"] == waits, "{waits}: {}", said.out);
        let alone = written(bed, "counts-alone.yaml", &listing("counts")?).await?;
        run(bed, &["digest", "-f", &alone]).await?.is(
            3,
            &["GenericActionIntent counts/note is in none of the files: add it, or name a hub with --context"],
        );
        let from = "{apiVersion: emco.io/v1alpha1, kind: GenericActionIntent, metadata: {name: note, namespace: counts}, spec: \
                    {actions: [{name: login, app: note, type: Add, add: {from: {kind: Secret, name: login}}}]}}";
        let keyed = format!("{from}\n---\n{}", listing("counts")?);
        let keyed = written(bed, "counts-keyed.yaml", &keyed).await?;
        run(bed, &["digest", "-f", &keyed, "--context", context.trim()]).await?.is(
            3,
            &["GenericActionIntent counts/note reads Secret counts/login, which counts with a key that only the operator has"],
        );
        Ok(())
    }))
    .await;
}

#[tokio::test]
async fn what_is_wrong_with_an_intent_in_files_is_said_before_it_is_applied() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(Box::pin(async {
        project(bed, "errs", "").await?;
        let kubectl = bed.hub().kubectl();
        kubectl.apply(&intent("errs", "two")).await?;
        kubectl.apply(&listing("errs")?).await?;
        deployed(bed, "errs", "till", 1).await?;
        let plan = async |from: &str, to: &str| -> Result<_> {
            let text = intent("errs", "two").replace(from, to);
            let path = written(bed, "errs.yaml", &text).await?;
            run(bed, &["plan", "-f", &path]).await
        };
        plan("jsonMerge:", "jsonmerge:")
            .await?
            .is(1, &["GenericActionIntent note: spec.actions[0].jsonmerge is not known here"]);
        plan("type: JSONMerge", "type: JSONPatch").await?.is(
            4,
            &[
                "refused: the hub does not store GenericActionIntent errs/note: Invalid: ",
                "fill exactly the field that type names",
            ],
        );
        plan("name: note}\n    json", "name: nowhere}\n    json").await?.is(
            4,
            &[
                "refused: Rendered=False TargetMissing: ",
                "app note makes no ConfigMap nowhere here (it makes note)",
            ],
        );
        plan("app: note", "app: nothing")
            .await?
            .is(4, &["refused: Resolved=False AppNotFound: ", "spec.actions[key] names app nothing"]);
        Ok(())
    }))
    .await;
}
