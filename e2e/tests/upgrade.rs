//! In: deployments that run, and the charts of the commit before. Out: the hub goes from those charts to the present ones and gets
//! its operator back, and no edge is written to.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_e2e::bed::{Audit, Bed, BedSpec, Parts, PlaneSpec};
use emco_e2e::operator::{
    Operator, SOON, as_account, call, chart, chart_map, deployed, deployment, program, project, register,
    root, wait, written,
};
use emco_e2e::programs::Program;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::ListParams;
use serde_json::Value;
use tokio::process::Command;

const EDGES: [&str; 2] = ["a", "b"];
const CHARTS: [&str; 2] = ["emco-crds", "emco"];

async fn said(command: &mut Command) -> Result<String> {
    let output =
        command.stdin(Stdio::null()).kill_on_drop(true).output().await.context("it cannot be started")?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{:?}: {}", command.as_std(), error.trim());
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

async fn git(args: &[&str]) -> Result<String> {
    said(Command::new("git").arg("-C").arg(root()).args(args)).await
}

/// Charts as they once were, for checkouts that have no history: `git archive COMMIT charts`.
const KEPT: &str = "e2e/tests/data/charts-before.tar.gz";

/// The commit whose charts people upgrade from: the one before the last change of the charts, as far as the history goes; else the
/// parent. None in a checkout without history.
async fn previous() -> Result<Option<String>> {
    let Ok(parent) = git(&["rev-parse", "--verify", "--quiet", "HEAD~1"]).await else { return Ok(None) };
    let changed = git(&["log", "-1", "--format=%H", "HEAD", "--", "charts"]).await?;
    let before = git(&["rev-parse", "--verify", "--quiet", &format!("{changed}~1")]).await;
    let before = before.unwrap_or_else(|_| parent.clone());
    // The charts may have been new in that very commit.
    let there = git(&["cat-file", "-e", &format!("{before}:charts/emco/Chart.yaml")]).await.is_ok();
    Ok(Some(if there { before } else { parent }))
}

/// The charts of a commit, else those kept, in a folder.
async fn charts_of(commit: Option<&str>, folder: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(folder)?;
    let mut file = root().join(KEPT).display().to_string();
    if let Some(commit) = commit {
        file = folder.join("charts.tar").display().to_string();
        git(&["archive", "--format=tar", "--output", &file, commit, "charts"]).await?;
    }
    let into = folder.display().to_string();
    said(Command::new("tar").args(["-xf", &file, "-C", &into])).await?;
    Ok(folder.join("charts"))
}

/// Installs the charts of a folder, or goes to them from those that are there.
async fn go_to(bed: &Bed, charts: &Path) -> Result<()> {
    for name in CHARTS {
        let chart = charts.join(name).display().to_string();
        let args = ["upgrade", "--install", name, &chart, "--namespace", "emco-system", "--create-namespace"];
        call(bed, bed.programs().path(Program::Helm)?, &args).await?;
    }
    bed.hub()
        .kubectl()
        .run(&["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"])
        .await
        .map(drop)
}

/// The schemas that the hub serves, by name.
async fn schemas(bed: &Bed) -> Result<Vec<(String, Value)>> {
    let all =
        Api::<CustomResourceDefinition>::all(bed.hub().client().await?).list(&ListParams::default()).await?;
    let schema = |crd: &CustomResourceDefinition| {
        let versions = crd
            .spec
            .versions
            .iter()
            .map(|version| serde_json::to_value(&version.schema))
            .collect::<Result<_, _>>();
        Ok((crd.metadata.name.clone().unwrap_or_default(), versions?))
    };
    all.items.iter().map(schema).collect()
}

async fn deploy(bed: &Bed) -> Result<()> {
    register(bed, "acme", &EDGES).await?;
    project(bed, "shop").await?;
    let template = "
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-note}
data: {key: {{ .Values.key | quote }}, drawn: {{ randAlphaNum 8 | quote }}}
---
apiVersion: v1
kind: Secret
metadata: {name: {{ .Release.Name }}-key}
stringData: {key: {{ .Values.key | quote }}}
";
    let note = chart("note", "1.0.0", &[("values.yaml", "key: one\n"), ("templates/note.yaml", template)])?;
    chart_map(bed, "shop", "charts", std::slice::from_ref(&note)).await?;
    for (revision, value) in [(1, "one"), (2, "two")] {
        let spec = format!(
            "placement: {{allOf: [{{provider: acme, selector: {{}}}}]}}\noverrideValues: [{{app: note, values: {{key: {value}}}}}]"
        );
        bed.hub().kubectl().apply(&deployment("shop", "till", std::slice::from_ref(&note), &spec)).await?;
        deployed(bed, "shop", "till", revision).await?;
    }
    Ok(())
}

/// Waits until an operator that has just started lists and watches on every edge.
async fn looks_at_every_edge(bed: &Bed, marks: &[emco_e2e::audit::AuditMark]) -> Result<()> {
    let deadline = Instant::now() + SOON;
    for (edge, mark) in EDGES.iter().zip(marks) {
        loop {
            let events = bed.edge(edge).audit_since(*mark)?;
            if events.iter().any(|e| e.user == "emco" && e.verb == "list" && e.resource == "configmaps") {
                break;
            }
            ensure!(Instant::now() < deadline, "the operator does not look at {edge}");
            // The log is a file; nothing tells of its growth.
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    Ok(())
}

#[tokio::test]
async fn an_upgrade_from_the_charts_before_writes_to_no_edge() {
    let mut spec = BedSpec::hub().with_helm();
    for edge in EDGES {
        spec = spec.with(PlaneSpec::new(edge, Parts::Controllers).audit(Audit::All));
    }
    let bed = Bed::start(spec).await.unwrap();
    bed.explain(async {
        let (before, now) = (
            charts_of(previous().await?.as_deref(), &bed.dir().join("previous")).await?,
            root().join("charts"),
        );
        go_to(&bed, &now).await?;
        let mut operator =
            Operator::start_as(&bed, &program()?, as_account(&bed).await?, String::new()).await?;
        deploy(&bed).await?;
        let fresh = schemas(&bed).await?;
        operator.process().terminate().await?;
        operator.process().ended().await;

        // The charts as they were, and older still in one thing that an upgrade has to bring back.
        let marks: Vec<_> = EDGES.iter().map(|edge| bed.edge(edge).audit_mark()).collect::<Result<_>>()?;
        let kind = before.join("emco-crds/templates/clusters.yaml");
        let text = std::fs::read_to_string(&kind)?;
        let older = text.replacen("description: ", "description: An older word. ", 1);
        ensure!(older != text, "the chart of the kinds describes nothing");
        std::fs::write(&kind, older)?;
        go_to(&bed, &before).await?;
        ensure!(schemas(&bed).await? != fresh, "the older kinds are not those of now");

        go_to(&bed, &now).await?;
        assert_eq!(schemas(&bed).await?, fresh, "an upgrade brings the kinds of now");
        operator.restart(&bed).await?;
        looks_at_every_edge(&bed, &marks).await?;
        // It works again: what is asked of it is answered, and the deployment is as it was.
        let ask = ["annotate", "dig", "till", "-n", "shop", "emco.io/requestedAt=after-the-upgrade"];
        bed.hub().kubectl().run(&ask).await?;
        let group = wait(&bed, "shop", "till", |group: &DeploymentIntentGroup| {
            let status = group.status.as_ref().ok_or("it has no status")?;
            match status.last_handled_request.as_deref() {
                Some("after-the-upgrade") => emco_e2e::operator::settled(group).map(|()| group.clone()),
                other => Err(format!("it answered {other:?}")),
            }
        })
        .await?;
        assert_eq!(group.status.and_then(|status| status.revision), Some(2), "no new revision");
        for (edge, mark) in EDGES.iter().zip(&marks) {
            let writes = written(&bed, edge, *mark, "emco")?;
            assert_eq!(writes, Vec::<String>::new(), "writes to {edge}");
        }
        Ok(())
    })
    .await;
}
