//! In: an operator at work, a real Prometheus beside it. Out: every expression finds the series it asks for.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use emco_e2e::bed::{Bed, BedSpec, Parts, PlaneSpec, SharedBed};
use emco_e2e::operator::{
    Operator, SOON, chart, chart_map, deployed, deployment, program, project, register, unless_ended,
};
use emco_e2e::programs::{Program, Programs};
use serde_json::Value;

use super::prometheus::Prometheus;
use super::{alerts, expressions, metrics};

static BED: SharedBed = SharedBed::new(|| BedSpec::bare_hub().with(PlaneSpec::new("a", Parts::ApiServer)));

/// A chart with a hook, an object that is later dropped, a field that no API server knows, and one that is refused.
fn busy_chart(version: &str, more: &str) -> Result<emco_e2e::package::Package> {
    let templates = format!(
        "
apiVersion: v1
kind: ConfigMap
metadata: {{name: {{{{ .Release.Name }}}}-note}}
data: {{version: \"{version}\"}}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{{{ .Release.Name }}}}-hook
  annotations: {{helm.sh/hook: \"pre-install,pre-upgrade\"}}
---
apiVersion: v1
kind: Service
metadata: {{name: {{{{ .Release.Name }}}}}}
spec: {{selector: {{app: x}}, ports: [{{port: 80}}], colour: red}}
{more}"
    );
    chart("busy", version, &[("templates/all.yaml", &templates)])
}

const DROPPED: &str = "---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-dropped}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-kept
  annotations: {helm.sh/resource-policy: keep}
";

const REFUSED: &str = "
apiVersion: v1
kind: Service
metadata: {name: refused}
spec: {selector: {app: x}, ports: [{port: 99999}]}
";

/// Everything that moves a counter: objects applied, changed, dropped, kept, refused and changed by others.
async fn work(bed: &Bed) -> Result<()> {
    register(bed, "acme", &["a"]).await?;
    project(bed, "shop").await?;
    let everywhere = "placement: {allOf: [{provider: acme, selector: {}}]}";
    let refused = chart("refused", "1.0.0", &[("templates/all.yaml", REFUSED)])?;
    let (first, second) = (busy_chart("1.0.0", DROPPED)?, busy_chart("1.0.1", "")?);
    chart_map(bed, "shop", "charts", &[first.clone(), second.clone(), refused.clone()]).await?;
    let kubectl = bed.hub().kubectl();
    kubectl.apply(&deployment("shop", "busy", &[first], everywhere)).await?;
    deployed(bed, "shop", "busy", 1).await?;
    let placed = bed
        .edge("a")
        .kubectl()
        .run(&["get", "configmaps", "-A", "-l", "emco.io/owner", "-o", "name"])
        .await?;
    ensure!(placed.contains("busy-note"), "{placed}");
    let change = [
        "annotate",
        "configmaps",
        "-n",
        "shop",
        "-l",
        "emco.io/owner",
        "emco.io/manifest=other",
        "--overwrite",
    ];
    bed.edge("a").kubectl().run(&change).await?;
    kubectl.apply(&deployment("shop", "busy", &[second], everywhere)).await?;
    deployed(bed, "shop", "busy", 2).await?;
    kubectl.apply(&deployment("shop", "refused", &[refused], everywhere)).await.map(drop)
}

/// The address that the operator says it serves metrics at.
async fn address(operator: &Operator) -> Result<String> {
    let deadline = Instant::now() + SOON;
    loop {
        let log = std::fs::read_to_string(operator.process().log())?;
        let line = log.lines().find(|line| line.contains("listening") && line.contains("\"--listen\""));
        if let Some(line) = line {
            let words = line.split_whitespace().find_map(|word| word.strip_prefix("address="));
            return words.map(str::to_owned).with_context(|| format!("no address in: {line}"));
        }
        ensure!(Instant::now() < deadline, "the operator does not say where it listens:\n{log}");
        // The log is a file; nothing tells of its growth.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// What has no series yet, until nothing is left. Prometheus tells nobody when it has scraped.
async fn until_all_have_series(prometheus: &Prometheus, expressions: BTreeSet<String>) -> Result<()> {
    let deadline = Instant::now() + SOON;
    let mut missing = expressions;
    loop {
        let mut still = BTreeSet::new();
        let mut last = None;
        for expression in missing {
            match prometheus.series(&expression).await {
                Ok(0) => drop(still.insert(expression)),
                Ok(_) => {}
                Err(error) => {
                    last = Some(error);
                    still.insert(expression);
                }
            }
        }
        if still.is_empty() {
            return Ok(());
        }
        if Instant::now() > deadline {
            let last = last.map(|error| format!("{error:#}")).unwrap_or_default();
            bail!("these find nothing: {still:#?} {last}");
        }
        missing = still;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn every_expression_finds_series_of_a_running_operator() {
    Box::pin(expressions_find_series(Programs::get(&[Program::Prometheus]).await.unwrap())).await;
}

/// Has this Prometheus read a running operator.
pub async fn expressions_find_series(programs: Programs) {
    let bed = BED.get().await.unwrap();
    bed.explain(Box::pin(async {
        let operator = Operator::start(bed, &program()?).await?;
        let prometheus = Prometheus::start(bed, &programs, &address(&operator).await?).await?;
        unless_ended(operator.process(), work(bed)).await?;
        let filled = |expression: &String| {
            expression
                .replace("$namespace", ".*")
                .replace("$__rate_interval", "2m")
                .replace("$__interval", "2m")
                // The annotation marks changes, of which there is none.
                .replace(" > 0", "")
        };
        let mut wanted: BTreeSet<String> = expressions().iter().map(filled).collect();
        ensure!(wanted.len() > 30, "only {} expressions were found", wanted.len());
        for rule in alerts().values() {
            wanted.extend(metrics(rule["expr"].as_str().unwrap_or_default()));
        }
        until_all_have_series(&prometheus, wanted).await?;
        // The rules are loaded and judged: none of them has an error, and none of the critical ones fires.
        let rules = prometheus.get("rules", &[]).await?;
        let groups = rules["groups"].as_array().cloned().unwrap_or_default();
        let rules: Vec<Value> =
            groups.iter().flat_map(|group| group["rules"].as_array().cloned().unwrap_or_default()).collect();
        assert_eq!(rules.len(), alerts().len());
        for rule in rules {
            assert_eq!(rule["health"], "ok", "{rule}");
            assert!(rule["labels"]["severity"] != "critical" || rule["state"] == "inactive", "{rule}");
        }
        Ok(())
    }))
    .await;
}
