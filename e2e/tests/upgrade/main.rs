//! Upgrades a hub from the charts before to the present ones: no edge is written to, new defaults hold, and what was set stays.
//!
//! The operator is the present one before and after. `make soak STEP=upgrade` begins with the operator before, too, which is built for
//! that.

mod soak;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_e2e::bed::{Audit, Bed, BedSpec, Parts, PlaneSpec};
use emco_e2e::before::{self, Before};
use emco_e2e::operator::{
    Operator, SOON, as_account, call, chart, chart_map, deployed, deployment, program, project, register,
    root, wait, written,
};
use emco_e2e::programs::Program;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::ListParams;
use serde_json::Value;

const EDGES: [&str; 2] = ["a", "b"];
const CHARTS: [&str; 2] = ["emco-crds", "emco"];

/// Installs the charts of a folder, or goes to them from those that are there. The operator's is told more.
async fn go_to(bed: &Bed, charts: &Path, more: &[&str]) -> Result<()> {
    for name in CHARTS {
        let chart = charts.join(name).display().to_string();
        let args = ["upgrade", "--install", name, &chart, "--namespace", "emco-system", "--create-namespace"];
        let more = if name == "emco" { more } else { &[] };
        call(bed, bed.programs().path(Program::Helm)?, &[&args[..], more].concat()).await?;
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

/// A default that was another one in the charts before: the text in the chart's values, the older text, its variable in the Deployment.
const DEFAULT: (&str, &str, &str) = ("maxConnects: 64", "maxConnects: 32", "EMCO_MAX_CONNECTS");

/// What the Deployment of the operator says in its environment.
async fn setting(bed: &Bed, name: &str) -> Result<String> {
    let path = format!("jsonpath={{.spec.template.spec.containers[0].env[?(@.name==\"{name}\")].value}}");
    bed.hub().kubectl().run(&["get", "deployment", "emco-operator", "-n", "emco-system", "-o", &path]).await
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
    Box::pin(upgrades(before::charts)).await;
}

/// Upgrades from what `before` puts into a folder.
async fn upgrades(before: impl AsyncFn(PathBuf) -> Result<Before>) {
    let mut spec = BedSpec::bare_hub().with_helm();
    for edge in EDGES {
        spec = spec.with(PlaneSpec::new(edge, Parts::ApiServer).audit(Audit::All));
    }
    let bed = Bed::start(spec).await.unwrap();
    bed.explain(Box::pin(async {
        let (before, now) = (before(bed.dir().join("before")).await?, root().join("charts"));
        go_to(&bed, &now, &[]).await?;
        let fresh = schemas(&bed).await?;
        // As they were, and older still in two things that an upgrade has to bring back.
        let kind = before.charts.join("emco-crds/templates/clusters.yaml");
        let text = std::fs::read_to_string(&kind)?;
        let older = text.replacen("description: ", "description: An older word. ", 1);
        ensure!(older != text, "the chart of the kinds describes nothing");
        std::fs::write(&kind, older)?;
        let defaults = before.charts.join("emco/values.yaml");
        let text = std::fs::read_to_string(&defaults)?;
        let older = text.replacen(DEFAULT.0, DEFAULT.1, 1);
        ensure!(older != text, "the chart before has no {}", DEFAULT.0);
        std::fs::write(&defaults, older)?;
        go_to(&bed, &before.charts, &["--set", "operator.edgeInFlight=6"]).await?;
        ensure!(setting(&bed, DEFAULT.2).await? == "32", "the older default");
        ensure!(schemas(&bed).await? != fresh, "the older kinds are not those of now");
        let old = Operator::start_as(&bed, &before.program, as_account(&bed).await?, String::new()).await?;
        deploy(&bed).await?;
        old.process().terminate().await?;
        old.process().ended().await;

        let marks: Vec<_> = EDGES.iter().map(|edge| bed.edge(edge).audit_mark()).collect::<Result<_>>()?;
        // As the book says.
        go_to(&bed, &now, &["--reset-then-reuse-values"]).await?;
        assert_eq!(setting(&bed, DEFAULT.2).await?, "64", "a default that is another one now");
        assert_eq!(setting(&bed, "EMCO_EDGE_IN_FLIGHT").await?, "6", "what was set");
        assert_eq!(schemas(&bed).await?, fresh, "an upgrade brings the kinds of now");
        let _new = Operator::start_as(&bed, &program()?, as_account(&bed).await?, String::new()).await?;
        looks_at_every_edge(&bed, &marks).await?;
        // It works: what is asked of it is answered, and the deployment is as it was.
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
            assert_eq!(written(&bed, edge, *mark, "emco")?, Vec::<String>::new(), "writes to {edge}");
        }
        Ok(())
    }))
    .await;
}
