//! A new Pod of the operator has no charts on its disk; one project's repository takes questions and answers none.

use anyhow::{Context as _, Result, ensure};
use emco_crds::conditions::types;
use emco_crds::{CompositeApp, DeploymentIntentGroup};
use emco_e2e::bed::Bed;
use emco_e2e::git_server::GitServer;
use emco_e2e::operator::{
    Operator, Turn, chart, chart_map, deployed, deployment, is, look_again, project, register, wait,
};
use emco_e2e::package::Package;
use emco_e2e::registry::{Guard, Registry};
use emco_e2e::repository::Repository;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use super::IN_TURN;

const PLACEMENT: &str = "placement: {allOf: [{provider: acme, selector: {matchLabels: {tier: edge}}}]}";

fn note(project: &str) -> Package {
    let template =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\ndata: {say: {{ .Values.say }}}\n";
    chart(project, "1.0.0", &[("values.yaml", "say: one\n"), ("templates/note.yaml", template)]).unwrap()
}

fn edited(app: &str) -> String {
    format!("{PLACEMENT}\noverrideValues: [{{app: {app}, values: {{say: two}}}}]")
}

/// A project whose chart `slow` comes from a repository.
async fn deploy_from(bed: &Bed, tenant: &str, repository: &Repository) -> Result<()> {
    project(bed, tenant).await?;
    let sources = json!({"spec": {"chartSources": [format!("{}/", repository.url())]}}).to_string();
    bed.hub().kubectl().run(&["patch", "eproj", tenant, "--type=merge", "-p", &sources]).await?;
    let app = json!({
        "apiVersion": "emco.io/v1alpha1", "kind": "CompositeApp",
        "metadata": {"name": "shop", "namespace": tenant},
        "spec": {"apps": [{
            "name": "slow",
            "chart": {"repository": {"url": repository.url(), "name": "slow", "version": "1.0.0"}},
        }]},
    });
    bed.hub().kubectl().apply(&app.to_string()).await?;
    edit(bed, tenant, PLACEMENT).await
}

/// An operator, a cluster, and an app of the repository on its way there.
async fn start<'a>(
    bed: &Bed,
    turn: &'a mut Turn,
    tenant: &str,
    repository: &Repository,
) -> Result<&'a mut Operator> {
    let operator = turn.start(&[]).await?;
    register(bed, "acme", &["a"]).await?;
    deploy_from(bed, tenant, repository).await?;
    Ok(operator)
}

#[tokio::test]
async fn a_new_pod_goes_on_with_kept_charts_while_their_source_is_down() {
    let (bed, mut turn) = IN_TURN.turn().await.unwrap();
    let repository = Repository::start([note("slow")]).await.unwrap();
    bed.explain(Box::pin(async {
        let operator = start(bed, &mut turn, "kept", &repository).await?;
        deployed(bed, "kept", "shop", 1).await?;

        repository.hold(true);
        operator.roll(bed).await?;
        edit(bed, "kept", &edited("slow")).await?;
        deployed(bed, "kept", "shop", 2).await?;
        let ready = |app: &CompositeApp| is(app.status.as_ref(), types::READY, "True");
        wait(bed, "kept", "shop", ready).await?;
        ensure!(repository.held() == 0, "the repository was asked for a chart that the hub keeps");

        // Somebody wants the source to be looked at: that it is down is said, and stops no change.
        look_again(bed, "kept", "shop", "now").await?;
        repository.is_waited_for().await;
        edit(bed, "kept", PLACEMENT).await?;
        deployed(bed, "kept", "shop", 3).await.map(drop)
    }))
    .await;
}

/// Charts of a registry and of a Git repository, both of which are gone: a new Pod deploys a change, and what ran before.
#[tokio::test]
async fn a_new_pod_needs_neither_the_registry_nor_the_git_server_of_kept_charts() {
    let (bed, mut turn) = IN_TURN.turn().await.unwrap();
    let registry = Registry::start(bed, "gone", Guard::Nobody).await.unwrap();
    let git = GitServer::start(None).await.unwrap();
    bed.explain(Box::pin(async {
        let operator = turn.start(&[]).await?;
        register(bed, "acme", &["a"]).await?;
        project(bed, "gone").await?;
        let sources = json!({"spec": {"chartSources": [format!("http://{}/", registry.host()), git.url()]}});
        let patch = ["patch", "eproj", "gone", "--type=merge", "-p", &sources.to_string()];
        bed.hub().kubectl().run(&patch).await?;
        registry.push(&note("slow"), "charts").await?;
        let chart = "apiVersion: v2\nname: git\nversion: 1.0.0\n";
        let first = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: git}\ndata: {say: one}\n";
        let one = git.commit(&[("Chart.yaml", chart), ("templates/git.yaml", first)]).await?;
        let two = git.commit(&[("templates/git.yaml", &first.replace("one", "two"))]).await?;
        let apps = |commit: &str| {
            json!({
                "apiVersion": "emco.io/v1alpha1", "kind": "CompositeApp",
                "metadata": {"name": "shop", "namespace": "gone"},
                "spec": {"apps": [
                    {"name": "slow", "chart": {"oci": {
                        "url": format!("oci://{}/charts/slow", registry.host()), "version": "1.0.0",
                    }}},
                    {"name": "git", "chart": {"git": {"url": git.url(), "ref": {"commit": commit}}}},
                ]},
            })
            .to_string()
        };
        bed.hub().kubectl().apply(&apps(&one)).await?;
        edit(bed, "gone", PLACEMENT).await?;
        deployed(bed, "gone", "shop", 1).await?;
        bed.hub().kubectl().apply(&apps(&two)).await?;
        deployed(bed, "gone", "shop", 2).await?;

        let [before, after] = [apps(&one), apps(&two)];
        registry.process().kill().await?;
        drop(git);
        operator.roll(bed).await?;
        edit(bed, "gone", &edited("slow")).await?;
        deployed(bed, "gone", "shop", 3).await?;
        bed.hub().kubectl().apply(&before).await?;
        deployed(bed, "gone", "shop", 4).await?;
        ensure!(word(bed, "gone", "git").await? == "one" && word(bed, "gone", "note").await? == "two");
        bed.hub().kubectl().apply(&after).await?;
        deployed(bed, "gone", "shop", 5).await?;
        ensure!(word(bed, "gone", "git").await? == "two");
        Ok(())
    }))
    .await;
}

/// What a note on `a` says.
async fn word(bed: &Bed, namespace: &str, name: &str) -> Result<String> {
    let map = bed.edge("a").api::<ConfigMap>(namespace).await?.get(name).await?;
    map.data.and_then(|mut data| data.remove("say")).context("the note says nothing")
}

async fn edit(bed: &Bed, tenant: &str, spec: &str) -> Result<()> {
    let both = deployment(tenant, "shop", &[], spec);
    let (_, group) = both.split_once("---\n").unwrap_or_default();
    bed.hub().kubectl().apply(group).await.map(drop)
}

#[tokio::test]
async fn a_new_pod_fetches_charts_of_a_dead_repository_beside_everything_else() {
    let (bed, mut turn) = IN_TURN.turn().await.unwrap();
    let repository = Repository::start([note("slow")]).await.unwrap();
    bed.explain(Box::pin(async {
        let operator = start(bed, &mut turn, "dead", &repository).await?;
        project(bed, "quick").await?;
        chart_map(bed, "quick", "charts", &[note("quick")]).await?;
        bed.hub().kubectl().apply(&deployment("quick", "shop", &[note("quick")], PLACEMENT)).await?;
        deployed(bed, "dead", "shop", 1).await?;
        deployed(bed, "quick", "shop", 1).await?;

        // As for an archive that is larger than what the hub keeps.
        let kept = ["delete", "secrets", "-n", "emco-system", "--field-selector", "type=emco.io/chart"];
        let deleted = bed.hub().kubectl().run(&kept).await?;
        ensure!(deleted.contains("emco-chart-"), "no chart was kept: {deleted}");
        repository.hold(true);
        operator.roll(bed).await?;
        repository.is_waited_for().await;
        let spec = edited("quick");
        bed.hub().kubectl().apply(&deployment("quick", "shop", &[note("quick")], &spec)).await?;
        deployed(bed, "quick", "shop", 2).await?;
        ensure!(repository.held() > 0, "the repository was given up before another project's edit arrived");
        let calm = |dig: &DeploymentIntentGroup| is(dig.status.as_ref(), types::READY, "True");
        wait(bed, "dead", "shop", calm).await?;

        // An edit of its own waits for the chart, and no longer than for that.
        edit(bed, "dead", &edited("slow")).await?;
        repository.hold(false);
        deployed(bed, "dead", "shop", 2).await?;
        let ready = |app: &CompositeApp| is(app.status.as_ref(), types::READY, "True");
        wait(bed, "dead", "shop", ready).await
    }))
    .await;
}
