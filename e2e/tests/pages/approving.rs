//! `approvals.md`, `rollouts.md` and `plans.md`.

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_crds::DeploymentIntentGroup;
use emco_crds::conditions::{Conditioned as _, types};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{SOON, chart, chart_map, deployed, deployment, root, says, wait};
use emco_e2e::package::Package;
use emco_e2e::wait::wait_until_gone;
use serde_json::json;

use super::page::{Page, folder};

const EVERYWHERE: &str = "placement: {allOf: [{provider: acme, selector: {}}]}";

/// One ConfigMap: nothing has to run for it.
pub fn note() -> Result<Package> {
    let template =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\ndata: {say: {{ .Values.say | quote }}}\n";
    chart("web", "1.0.0", &[("values.yaml", "say: one\n"), ("templates/note.yaml", template)])
}

/// The deployment of this name, on both clusters, with a word.
pub fn saying(name: &str, word: &str, more: &str) -> Result<String> {
    let spec = format!("{EVERYWHERE}\noverrideValues: [{{app: web, values: {{say: {word}}}}}]\n{more}");
    Ok(deployment("shop", name, &[note()?], &spec))
}

pub async fn say(bed: &Bed, name: &str, word: &str, more: &str) -> Result<()> {
    bed.hub().kubectl().apply(&saying(name, word, more)?).await.map(drop)
}

pub async fn gone(bed: &Bed, name: &str) -> Result<()> {
    bed.hub().kubectl().run(&["delete", "dig", name, "-n", "shop", "--wait=false"]).await?;
    wait_until_gone(bed.hub().api::<DeploymentIntentGroup>("shop").await?, name, SOON).await
}

/// Says how plans of the project are approved, by an object or `null`, and waits until the operator has seen it.
async fn approval(bed: &Bed, wanted: &str) -> Result<()> {
    let kubectl = bed.hub().kubectl();
    let patch = format!("{{\"spec\":{{\"approval\":{wanted}}}}}");
    kubectl.run(&["patch", "eproj", "shop", "--type=merge", "-p", &patch]).await?;
    let generation = kubectl.run(&["get", "eproj", "shop", "-o", "jsonpath={.metadata.generation}"]).await?;
    let seen = format!("--for=jsonpath={{.status.observedGeneration}}={}", generation.trim());
    kubectl.run(&["wait", "projects.emco.io/shop", &seen, "--timeout=60s"]).await.map(drop)
}

/// The short digest of the plan of its present definition, once that waits for an approval.
async fn waits(bed: &Bed, name: &str) -> Result<String> {
    wait(bed, "shop", name, |dig: &DeploymentIntentGroup| {
        let status = dig.status.as_ref().ok_or("it has no status")?;
        let approved = status.condition(types::APPROVED).filter(|approved| {
            approved.status == "False" && approved.observed_generation == dig.metadata.generation
        });
        let pending = status.pending.as_ref().filter(|_| approved.is_some());
        pending.map(|pending| pending.short_digest.clone()).ok_or_else(|| format!("{status:?}"))
    })
    .await
}

/// Files of a tenant, the chart among them.
fn tenant(bed: &Bed) -> Result<()> {
    let folder = folder(bed)?.join("tenant");
    std::fs::create_dir(&folder)?;
    let note = note()?;
    let charts = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "charts", "namespace": "shop"},
        "binaryData": {(note.file_name()): STANDARD.encode(&note.bytes)},
    });
    let project = json!({
        "apiVersion": "emco.io/v1alpha1", "kind": "Project", "metadata": {"name": "shop"},
        "spec": {"logicalCloud": {"level": "Admin"}, "approval": {"mode": "Manual"}},
    });
    std::fs::write(folder.join("charts.yaml"), charts.to_string())?;
    std::fs::write(folder.join("project.yaml"), project.to_string())?;
    std::fs::write(folder.join("shop.yaml"), saying("shop", "four", "")?)?;
    Ok(())
}

pub async fn approvals(bed: &Bed) -> Result<()> {
    chart_map(bed, "shop", "charts", &[note()?]).await?;
    approval(bed, r#"{"mode":"Manual","scope":"Plan"}"#).await?;
    say(bed, "shop", "one", "").await?;
    let mut page = Page::read(bed, "approvals.md")?;
    let digest = waits(bed, "shop").await?;
    let approve = page.take("kubectl emco approve dig/shop -n shop --digest ")?;
    let shown = approve.split_whitespace().skip_while(|word| *word != "--digest").nth(1);
    let shown = shown.context("the command names no digest")?.to_owned();
    page.execute("hub", &approve.replace(&shown, &digest), 0).await?;
    deployed(bed, "shop", "shop", 1).await?;
    say(bed, "shop", "two", "").await?;
    waits(bed, "shop").await?;
    page.run("kubectl emco reject dig/shop -n shop").await?;
    says::<DeploymentIntentGroup, _>(bed, "shop", "shop", types::READY, "Rejected").await?;
    tenant(bed)?;
    let said = page.run("kubectl emco digest -f tenant/").await?;
    ensure!(said.starts_with("DEPLOYMENT   DIGEST\nshop/shop    sha256:"), "{said}");
    page.end()?;
    gone(bed, "shop").await?;
    approval(bed, "null").await
}

/// Waits until a rollout waits for the gate of its canary.
async fn gate(bed: &Bed, revision: i64) -> Result<()> {
    wait(bed, "shop", "shop", |dig: &DeploymentIntentGroup| {
        let status = dig.status.as_ref().filter(|status| status.revision == Some(revision));
        let rollout = status.and_then(|status| status.rollout.as_ref());
        let is_it = rollout.is_some_and(|rollout| rollout.waits_for.ends_with("--wave canary"));
        if is_it { Ok(()) } else { Err(format!("{rollout:?}")) }
    })
    .await
}

pub async fn rollouts(bed: &Bed) -> Result<()> {
    say(bed, "shop", "one", "").await?;
    deployed(bed, "shop", "shop", 1).await?;
    let waves =
        "rollout: {waves: [{name: canary, clusters: [{provider: acme, cluster: berlin}], approval: After}]}";
    say(bed, "shop", "two", waves).await?;
    gate(bed, 2).await?;
    let mut page = Page::read(bed, "rollouts.md")?;
    page.run("kubectl emco approve dig/shop -n shop --wave canary").await?;
    deployed(bed, "shop", "shop", 2).await?;
    say(bed, "shop", "three", waves).await?;
    gate(bed, 3).await?;
    page.run("kubectl emco reject dig/shop -n shop --wave canary").await?;
    says::<DeploymentIntentGroup, _>(bed, "shop", "shop", types::READY, "RolloutPaused").await?;
    page.end()?;
    gone(bed, "shop").await
}

/// The lines of a pipeline that the page shows.
fn script(text: &str) -> Result<String> {
    let (_, script) = text.split_once("plan:\n  script:\n").context("the page shows no pipeline")?;
    let lines = script.lines().map_while(|line| line.strip_prefix("  - "));
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

pub async fn plans(bed: &Bed) -> Result<()> {
    say(bed, "till", "one", "").await?;
    deployed(bed, "shop", "till", 1).await?;
    approval(bed, r#"{"mode":"Manual"}"#).await?;
    say(bed, "till", "two", "").await?;
    waits(bed, "till").await?;
    let mut page = Page::read(bed, "plans.md")?;
    // 2: something would change.
    let said = page.run_to("hub", "kubectl emco plan shop/till", 2).await?;
    for line in [
        "shop/till: revision 1 runs",
        "clusters: 0 gained, 2 changed, 0 lost",
        "objects: 0 added, 2 changed, 0 removed",
        "└─ web on 2 clusters",
        "-  say: one",
        "+  say: two",
        ": kubectl emco approve dig/till -n shop",
    ] {
        ensure!(said.contains(line), "{line}: {said}");
    }
    let files = folder(bed)?.join("deploy/shop");
    std::fs::create_dir_all(&files)?;
    std::fs::write(files.join("till.yaml"), saying("till", "three", "")?)?;
    let said = page.run_to("hub", "kubectl emco plan -f deploy/shop --context hub", 2).await?;
    ensure!(said.contains("+  say: three"), "{said}");
    let script = script(&std::fs::read_to_string(root().join("docs/plans.md"))?)?;
    ensure!(script.starts_with("kubectl emco plan -f deploy/shop "), "{script}");
    let said = page.execute("hub", &script, 0).await?;
    ensure!(said.contains("+  say: three"), "{said}");
    page.end()?;
    approval(bed, "null").await?;
    gone(bed, "till").await
}
