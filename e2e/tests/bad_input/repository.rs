//! In: a Helm repository with its own authority and a login, and everything that can be wrong with it. Out: each is named, and
//! what runs stays.

use anyhow::{Context as _, Result, ensure};
use emco_crds::conditions::types;
use emco_crds::{CompositeApp, DeploymentIntentGroup};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{chart, deployed, is, look_again, project, still_says, wait};
use emco_e2e::package::Package;
use emco_e2e::repository::Repository;
use emco_e2e::wait::wait_until_gone;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use super::{EVERYWHERE, NOTE, STAGE, app_says, dig_says, has};

fn note(version: &str, say: &str) -> Package {
    let template = NOTE.replace("say:", &format!("{say}:"));
    chart("note", version, &[("templates/note.yaml", &template)]).unwrap()
}

/// A project that takes charts from this repository alone.
async fn begin(name: &str, repository: &Repository) -> Result<&'static Bed> {
    let (bed, _) = STAGE.get().await?;
    project(bed, name).await?;
    let sources = json!({"spec": {"chartSources": [format!("{}/", repository.url())]}}).to_string();
    bed.hub().kubectl().run(&["patch", "eproj", name, "--type=merge", "-p", &sources]).await?;
    Ok(bed)
}

async fn login(bed: &Bed, namespace: &str, repository: &Repository, password: &str) -> Result<()> {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": namespace},
        "stringData": {"username": "ann", "password": password, "ca.crt": repository.ca()},
    });
    bed.hub().kubectl().apply(&secret.to_string()).await.map(drop)
}

/// The app `note` of this version, and its deployment everywhere.
fn objects(namespace: &str, url: &str, version: &str) -> String {
    let placement: String = EVERYWHERE.lines().map(|line| format!("  {line}\n")).collect();
    format!(
        "
apiVersion: emco.io/v1alpha1
kind: CompositeApp
metadata: {{name: shop, namespace: {namespace}}}
spec:
  apps:
  - name: note
    chart:
      repository: {{url: {url}, name: note, version: {version}}}
      secretRef: {{name: login}}
---
apiVersion: emco.io/v1alpha1
kind: DeploymentIntentGroup
metadata: {{name: shop, namespace: {namespace}}}
spec:
  compositeAppRef: {{name: shop}}
{placement}"
    )
}

async fn says(bed: &Bed, namespace: &str) -> Result<Vec<String>> {
    let map = bed.edge("a").api::<ConfigMap>(namespace).await?.get("note").await?;
    Ok(map.data.context("no data")?.into_keys().collect())
}

#[tokio::test]
async fn a_chart_comes_from_a_guarded_repository_once_the_login_is_right() {
    let repository = Repository::start_guarded([note("1.0.0", "say")], "ann", "right").await.unwrap();
    let bed = begin("guarded", &repository).await.unwrap();
    bed.explain(async {
        let kubectl = bed.hub().kubectl();
        kubectl.apply(&objects("guarded", &repository.url(), "1.0.0")).await?;
        has(&app_says(bed, "guarded", "SecretNotFound").await?, &["app note", "Secret login", "create it"]);
        login(bed, "guarded", &repository, "wrong").await?;
        has(&app_says(bed, "guarded", "ChartUnauthorized").await?, &["app note", "401"]);
        login(bed, "guarded", &repository, "right").await?;
        deployed(bed, "guarded", "shop", 1).await?;
        ensure!(says(bed, "guarded").await? == ["say"]);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn what_a_repository_does_not_have_or_gives_otherwise_is_refused_and_what_runs_stays() {
    let first = note("1.0.0", "say");
    let repository = Repository::start_guarded([first.clone()], "ann", "right").await.unwrap();
    let bed = begin("swaps", &repository).await.unwrap();
    bed.explain(async {
        let kubectl = bed.hub().kubectl();
        login(bed, "swaps", &repository, "right").await?;
        kubectl.apply(&objects("swaps", &repository.url(), "2.0.0")).await?;
        let message = app_says(bed, "swaps", "ChartNotFound").await?;
        has(&message, &["app note", "lists chart note without version 2.0.0", "1.0.0"]);
        kubectl.apply(&objects("swaps", &repository.url(), "1.0.0")).await?;
        deployed(bed, "swaps", "shop", 1).await?;

        // The same version with other bytes, as the index says too.
        repository.publish([note("1.0.0", "said")])?;
        look_again(bed, "swaps", "shop", "one").await?;
        let message = app_says(bed, "swaps", "ChartDigestChanged").await?;
        has(&message, &["app note", "the same version now has other bytes", "sha256:"]);
        let fields = ["spec.apps[note].chart.digest of CompositeApp shop", "chart.repository.version"];
        has(&message, &fields);
        still_says(bed, "swaps", "shop", "ChartDigestChanged").await?;
        ensure!(says(bed, "swaps").await? == ["say"], "what runs stays");

        // A version that is no archive.
        let garbage =
            Package { name: "note".to_owned(), version: "3.0.0".to_owned(), bytes: b"no archive".to_vec() };
        repository.publish([first, garbage])?;
        kubectl.apply(&objects("swaps", &repository.url(), "3.0.0")).await?;
        has(&app_says(bed, "swaps", "ChartInvalid").await?, &["app note"]);
        dig_says(bed, "swaps", types::RESOLVED, "ChartNotReady").await?;
        wait(bed, "swaps", "shop", |dig: &DeploymentIntentGroup| {
            is(dig.status.as_ref(), types::STALLED, "True")
        })
        .await?;
        ensure!(says(bed, "swaps").await? == ["say"], "what runs stays");

        // Back to what was: nothing is left of the complaint.
        kubectl.apply(&objects("swaps", &repository.url(), "1.0.0")).await?;
        wait(bed, "swaps", "shop", |app: &CompositeApp| is(app.status.as_ref(), types::READY, "True"))
            .await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_repository_that_was_down_is_asked_again_without_anybody_doing_anything() {
    let mut repository = Repository::start_guarded([note("1.0.0", "say")], "ann", "right").await.unwrap();
    let bed = begin("down", &repository).await.unwrap();
    bed.explain(async {
        login(bed, "down", &repository, "right").await?;
        repository.stop().await;
        bed.hub().kubectl().apply(&objects("down", &repository.url(), "1.0.0")).await?;
        let message = app_says(bed, "down", "SourceUnreachable").await?;
        has(&message, &["app note", "127.0.0.1"]);
        repository.resume().await?;
        deployed(bed, "down", "shop", 1).await?;

        // Down again: what runs, and what is kept of the chart, does not need it.
        repository.stop().await;
        look_again(bed, "down", "shop", "now").await?;
        app_says(bed, "down", "SourceUnreachable").await?;
        still_says(bed, "down", "shop", "SourceUnreachable").await?;
        ensure!(says(bed, "down").await? == ["say"], "what runs stays");
        bed.hub().kubectl().run(&["delete", "dig", "shop", "-n", "down", "--wait=false"]).await?;
        wait_until_gone(bed.edge("a").api::<ConfigMap>("down").await?, "note", emco_e2e::operator::SOON).await
    })
    .await;
}

#[tokio::test]
async fn a_repository_that_the_project_does_not_list_is_refused_before_it_is_asked() {
    let listed = Repository::start_guarded([note("1.0.0", "say")], "ann", "right").await.unwrap();
    let other = Repository::start([note("1.0.0", "say")]).await.unwrap();
    let bed = begin("listed", &listed).await.unwrap();
    bed.explain(async {
        login(bed, "listed", &listed, "right").await?;
        let kubectl = bed.hub().kubectl();
        kubectl.apply(&objects("listed", &other.url(), "1.0.0")).await?;
        let message = app_says(bed, "listed", "ChartSourceNotAllowed").await?;
        has(&message, &["app note", &other.url(), "chartSources"]);
        kubectl.apply(&objects("listed", &listed.url(), "1.0.0")).await?;
        deployed(bed, "listed", "shop", 1).await.map(drop)
    })
    .await;
}

#[tokio::test]
async fn the_first_example_runs_as_printed_but_for_the_address_of_its_repository() {
    let podinfo = chart("podinfo", "6.9.2", &[("templates/note.yaml", NOTE)]).unwrap();
    let repository = Repository::start([podinfo]).await.unwrap();
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        // The platform's half, with the clusters of this bed in the place of its one.
        project(bed, "demo").await?;
        let sources = json!({"spec": {"chartSources": [format!("{}/", repository.url())]}}).to_string();
        bed.hub().kubectl().run(&["patch", "eproj", "demo", "--type=merge", "-p", &sources]).await?;
        let file = emco_e2e::operator::root().join("config/samples/first/2-tenant.yaml");
        let tenant = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let printed = "https://stefanprodan.github.io/podinfo";
        ensure!(tenant.contains(printed), "the example names another repository now");
        bed.hub().kubectl().apply(&tenant.replace(printed, &repository.url())).await?;
        deployed(bed, "demo", "hello", 1).await?;
        ensure!(says(bed, "demo").await? == ["say"]);
        Ok(())
    })
    .await;
}
