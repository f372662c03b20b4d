//! What `kubectl emco check` says of a hub that works, and of one on which nothing is installed.

use anyhow::{Context as _, Result, ensure};
use emco_e2e::bed::Bed;
use emco_e2e::operator::project;
use serde_json::Value;

use super::looks::tenant;
use super::rig::{STAGE, file, run, run_as};

/// The first finding on something.
fn finding<'a>(report: &'a Value, what: &str) -> Result<&'a Value> {
    let findings = report["findings"].as_array().context("there are no findings")?;
    findings
        .iter()
        .find(|finding| finding["what"] == what)
        .with_context(|| format!("nothing on {what}: {report}"))
}

fn is(report: &Value, what: &str, level: &str, words: &str) -> Result<()> {
    let finding = finding(report, what)?;
    let message = finding["message"].as_str().unwrap_or_default();
    ensure!(finding["level"] == level && message.contains(words), "{level}, {words}: {finding}");
    ensure!(level == "ok" || finding["cure"].as_str().is_some_and(|cure| !cure.is_empty()), "{finding}");
    Ok(())
}

#[tokio::test]
async fn check_says_what_works_on_a_hub_with_everything() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        let report = run(bed, &["check", "-o", "json"]).await?.json();
        is(&report, "hub", "ok", "Kubernetes v1.")?;
        is(&report, "kinds", "ok", "all 15 are there")?;
        is(&report, "rights", "ok", "everything")?;
        is(&report, "operator", "ok", "is renewed")?;
        is(&report, "clock", "ok", "clock")?;
        // The operator of this stage is a process beside the hub.
        is(&report, "installed", "warn", "no Deployment of the operator")?;
        is(&report, "clusters", "ok", "are reached")?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn check_says_what_is_missing_where_nothing_is_installed() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        let bare = file(bed, "bare.kubeconfig", &bed.edge("c").kubeconfig()?).await?;
        run_as(bed, &bare, &["check"]).await?.is(
            3,
            &[
                "ok    hub ",
                "FAIL  kinds        missing: appcontexts.emco.io, clusterproviders.emco.io",
                "-> helm upgrade --install emco-crds charts/emco-crds",
                "FAIL  operator     no operator has ever run here",
                "-> kubectl -n emco-system get pods",
                "warn  installed    no Deployment of the operator is in namespace emco-system",
                "FAIL  clusters     ",
            ],
        );
        // As a tenant: what cannot be looked at is said.
        project(bed, "checks").await?;
        let tenant = tenant(bed, "checks").await?;
        let report = run_as(bed, &tenant, &["check", "-o", "json"]).await?.json();
        is(&report, "kinds", "warn", "you may not read CustomResourceDefinitions")?;
        is(&report, "rights", "warn", "you may not list deploymentintentgroups")?;
        is(&report, "clusters", "warn", "you may not list Clusters")?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn check_names_clusters_that_are_not_reached_with_the_reason() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(Box::pin(unreached(bed))).await;
}

async fn unreached(bed: &Bed) -> Result<()> {
    let cluster = "{apiVersion: emco.io/v1alpha1, kind: Cluster, metadata: {name: lost, namespace: acme}, \
                   spec: {access: {kubeconfigSecretRef: {name: nowhere}}}}";
    bed.hub().kubectl().apply(cluster).await?;
    let waits = [
        "wait",
        "ecl/lost",
        "-n",
        "acme",
        "--for=jsonpath={.status.conditions[?(@.type==\"Ready\")].reason}=SecretNotFound",
    ];
    bed.hub().kubectl().run(&waits).await?;
    let said = run(bed, &["check"]).await?;
    bed.hub().kubectl().run(&["delete", "ecl", "lost", "-n", "acme"]).await?;
    said.is(
        3,
        &[
            "FAIL  clusters     acme/lost: SecretNotFound: ",
            "-> `kubectl create secret generic NAME -n NAMESPACE --from-file=kubeconfig=FILE`, or change",
        ],
    );
    Ok(())
}
