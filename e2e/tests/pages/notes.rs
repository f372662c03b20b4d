//! Follows what Helm prints when the chart was installed: the next three commands, as they stand there.

use anyhow::{Context as _, Result, ensure};
use emco_crds::LogicalCloud;
use emco_crds::conditions::types;
use emco_e2e::bed::{Bed, BedSpec, Parts, PlaneSpec};
use emco_e2e::operator::{Operator, as_account, install_charts, is, program, wait};

use super::kubeconfig;
use super::page::{Page, folder};

/// The indented lines of the notes; an empty line stands between two commands.
fn commands(notes: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut open = false;
    for line in notes.lines() {
        match line.strip_prefix("  ") {
            Some(line) if open => {
                if let Some(command) = found.last_mut() {
                    command.push('\n');
                    command.push_str(line);
                }
            }
            Some(line) => found.push(line.to_owned()),
            None => {}
        }
        open = line.starts_with("  ");
    }
    found
}

async fn follow(bed: &Bed) -> Result<()> {
    let contexts = ["hub", "edge-1"].map(|name| (name, name));
    tokio::fs::write(folder(bed)?.join("all.kubeconfig"), kubeconfig(bed, &contexts)?).await?;
    let installed = install_charts(bed).await?;
    let notes = installed.rsplit_once("NOTES:\n").context("the chart has no notes")?.1.to_owned();
    ensure!(!notes.contains("not there yet"), "{notes}");
    // No image is built here: the program runs beside, with the rights of the chart.
    let operator = Operator::start_as(bed, &program()?, as_account(bed).await?, installed).await?;
    let steps = async {
        let mut page = Page::of(bed, "the notes of the chart", commands(&notes));
        let said = page.run("kubectl -n emco-system rollout status deployment/emco-operator").await?;
        ensure!(said.contains("successfully rolled out"), "{said}");
        let said = page.run("echo '{apiVersion: v1, kind: List, items: [").await?;
        ensure!(said == "clusterprovider.emco.io/acme created\nproject.emco.io/shop created\n", "{said}");
        let said = page.run("kubectl emco cluster add acme/edge-1 --context edge-1").await?;
        ensure!(said.contains("acme/edge-1 is registered and ready"), "{said}");
        page.end()?;
        // What can be done next: the project has the cluster.
        wait(bed, "shop", "default", |cloud: &LogicalCloud| {
            is(cloud.status.as_ref(), types::READY, "True")?;
            let clusters = cloud.status.as_ref().and_then(|status| status.summary.as_ref()?.clusters.clone());
            if clusters.as_deref() == Some("1/1") { Ok(()) } else { Err(format!("clusters: {clusters:?}")) }
        })
        .await
    };
    emco_e2e::operator::unless_ended(operator.process(), steps).await
}

#[tokio::test]
async fn notes_of_the_chart_lead_to_a_project_with_a_cluster() {
    let spec = BedSpec::default().edges(&["hub"]).with(PlaneSpec::new("edge-1", Parts::Controllers));
    let bed = Bed::start(spec.with_helm()).await.unwrap();
    bed.explain(Box::pin(follow(&bed))).await;
}
