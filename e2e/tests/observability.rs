//! In: the alerts and the dashboard of this repository, an operator at work. Out: real Prometheus takes them, every alert fires
//! when it should and not otherwise, and every expression finds the series it asks for.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use emco_e2e::bed::{Bed, BedSpec, SharedBed};
use emco_e2e::operator::{
    Operator, SOON, chart, chart_map, deployed, deployment, program, project, register, root, unless_ended,
};
use emco_e2e::programs::{Program, Programs};
use serde::Deserialize as _;
use serde_json::Value;
use tokio::process::Command;

static BED: SharedBed = SharedBed::new(|| BedSpec::hub().edges(&["a"]));

fn folder() -> PathBuf {
    root().join("config/observability")
}

fn yaml(file: &Path) -> Value {
    let text = std::fs::read_to_string(file).unwrap();
    serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// Rules by the name of their alert.
fn alerts() -> BTreeMap<String, Value> {
    let rules = yaml(&folder().join("rules.yaml"));
    let groups = rules["groups"].as_array().unwrap().iter();
    let all = groups.flat_map(|group| group["rules"].as_array().unwrap().clone());
    all.map(|rule| (rule["alert"].as_str().unwrap().to_owned(), rule)).collect()
}

/// What the panels and annotations of the dashboard ask, with its variables filled in.
fn expressions() -> BTreeSet<String> {
    fn collect(value: &Value, into: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => {
                if let Some(expression) = fields.get("expr").and_then(Value::as_str) {
                    into.insert(expression.to_owned());
                }
                fields.values().for_each(|value| collect(value, into));
            }
            Value::Array(items) => items.iter().for_each(|item| collect(item, into)),
            _ => {}
        }
    }
    let text = std::fs::read_to_string(folder().join("dashboard.json")).unwrap();
    let mut found = BTreeSet::new();
    collect(&serde_json::from_str(&text).unwrap(), &mut found);
    found
}

/// Names of our metrics in an expression.
fn metrics(expression: &str) -> BTreeSet<String> {
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("emco_")).map(str::to_owned).collect()
}

async fn promtool(args: &[&str]) -> Result<String> {
    let programs = Programs::get(&[Program::Promtool]).await?;
    let output = Command::new(programs.path(Program::Promtool)?)
        .args(args)
        .current_dir(folder())
        .kill_on_drop(true)
        .output()
        .await?;
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "promtool {} failed:\n{said}", args.join(" "));
    Ok(said)
}

#[tokio::test]
async fn promtool_accepts_every_rule() {
    let said = promtool(&["check", "rules", "--lint=all", "--lint-fatal", "rules.yaml"]).await.unwrap();
    assert!(said.contains(&format!("{} rules found", alerts().len())), "{said}");
}

#[tokio::test]
async fn the_scrape_configuration_of_the_book_is_one() {
    let page = std::fs::read_to_string(root().join("docs/observability.md")).unwrap();
    let example = page.split("```yml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    std::fs::copy(folder().join("rules.yaml"), dir.path().join("rules.yaml")).unwrap();
    let file = dir.path().join("prometheus.yml");
    std::fs::write(&file, example).unwrap();
    let said = promtool(&["check", "config", &file.display().to_string()]).await.unwrap();
    assert!(said.contains("1 rule files found"), "{said}");
}

#[tokio::test]
async fn every_alert_fires_when_it_should_and_not_otherwise() {
    let said = promtool(&["test", "rules", "rules.test.yaml"]).await.unwrap();
    assert!(said.contains("SUCCESS"), "{said}");
    let tests = yaml(&folder().join("rules.test.yaml"));
    let mut cases: BTreeMap<String, BTreeSet<bool>> = BTreeMap::new();
    for case in
        tests["tests"].as_array().unwrap().iter().flat_map(|test| test["alert_rule_test"].as_array().unwrap())
    {
        let fires = case["exp_alerts"].as_array().is_some_and(|alerts| !alerts.is_empty());
        cases.entry(case["alertname"].as_str().unwrap().to_owned()).or_default().insert(fires);
    }
    let both = BTreeSet::from([false, true]);
    assert_eq!(cases, alerts().into_keys().map(|alert| (alert, both.clone())).collect());
}

#[tokio::test]
async fn the_folder_makes_the_rules_and_the_dashboard() {
    let programs = Programs::get(&[Program::Kubectl]).await.unwrap();
    let output = Command::new(programs.path(Program::Kubectl).unwrap())
        .arg("kustomize")
        .arg(folder())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let objects: BTreeMap<String, Value> = serde_yaml::Deserializer::from_str(&text)
        .map(|document| Value::deserialize(document).unwrap())
        .map(|object| (object["kind"].as_str().unwrap().to_owned(), object))
        .collect();
    let rules = yaml(&folder().join("rules.yaml"));
    assert_eq!(objects["PrometheusRule"]["spec"], rules);
    let dashboard = &objects["ConfigMap"];
    assert_eq!(dashboard["metadata"]["labels"]["grafana_dashboard"], "1");
    let shown: Value = serde_json::from_str(dashboard["data"]["emco.json"].as_str().unwrap()).unwrap();
    assert_eq!(shown["title"], "EMCO operator");
    assert!(objects.values().all(|object| object["metadata"]["namespace"] == "emco-system"));
    assert_eq!(objects.len(), 2);
}

#[test]
fn every_alert_has_its_section_in_the_book() {
    let page = std::fs::read_to_string(root().join("docs/observability.md")).unwrap();
    let sections: BTreeSet<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("### "))
        .filter(|name| name.starts_with("Emco"))
        .collect();
    let rules = alerts();
    assert_eq!(sections, rules.keys().map(String::as_str).collect());
    for (name, rule) in rules {
        let annotations = &rule["annotations"];
        assert_eq!(annotations["runbook"], format!("EMCO book, Watching it, {name}"));
        for key in ["summary", "description"] {
            assert!(annotations[key].as_str().is_some_and(|text| text.ends_with('.')), "{name} {key}");
        }
        assert!(
            ["critical", "warning", "info"].contains(&rule["labels"]["severity"].as_str().unwrap()),
            "{name}"
        );
    }
}

#[test]
fn the_dashboard_shows_every_metric_of_the_book() {
    let book = std::fs::read_to_string(root().join("docs/metrics.md")).unwrap();
    let rows = book.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let written: BTreeSet<String> = rows.map(|(name, _)| name.to_owned()).collect();
    let histogram = |name: String| {
        ["_bucket", "_count", "_sum"]
            .iter()
            .find_map(|suffix| name.strip_suffix(suffix).filter(|base| written.contains(*base)))
            .map_or_else(|| name.clone(), str::to_owned)
    };
    let shown: BTreeSet<String> =
        expressions().iter().flat_map(|expression| metrics(expression)).map(histogram).collect();
    assert_eq!(shown, written);
}

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

/// Prometheus, asked over HTTP.
struct Prometheus {
    address: String,
}

impl Prometheus {
    /// Starts one that scrapes the operator each second and loads the rules.
    async fn start(bed: &Bed, target: &str) -> Result<Self> {
        let programs = Programs::get(&[Program::Prometheus]).await?;
        let dir = bed.dir().join("prometheus");
        std::fs::create_dir(&dir)?;
        let rules = folder().join("rules.yaml").canonicalize()?;
        let config = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{}]
scrape_configs:
- job_name: emco-operator
  static_configs:
  - {{targets: [\"{target}\"], labels: {{namespace: emco-system, pod: emco-operator-0}}}}
",
            rules.display()
        );
        std::fs::write(dir.join("prometheus.yml"), config)?;
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let address = format!("127.0.0.1:{port}");
        let args = [
            format!("--config.file={}", dir.join("prometheus.yml").display()),
            format!("--storage.tsdb.path={}", dir.join("data").display()),
            format!("--web.listen-address={address}"),
        ];
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        bed.run("prometheus", programs.path(Program::Prometheus)?, &args, &[]).await?;
        Ok(Self { address })
    }

    /// The answer of one path of its API; an error while it does not answer.
    async fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<Value> {
        let query: Vec<String> =
            query.iter().map(|(key, value)| format!("{key}={}", encode(value))).collect();
        let request = format!(
            "GET /api/v1/{path}?{} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            query.join("&"),
            self.address
        );
        let answer = exchange(&self.address, &request).await?;
        let (_, body) = answer.split_once("\r\n\r\n").context("no HTTP answer")?;
        let start = body.find('{').context("no JSON in the answer")?;
        let end = body.rfind('}').context("no JSON in the answer")?;
        let value: Value = serde_json::from_str(&body[start..=end]).with_context(|| body.to_owned())?;
        ensure!(value["status"] == "success", "{path}: {value}");
        Ok(value["data"].clone())
    }

    /// How many series an expression has now.
    async fn series(&self, expression: &str) -> Result<usize> {
        let data =
            self.get("query", &[("query", expression)]).await.with_context(|| expression.to_owned())?;
        Ok(data["result"].as_array().map_or(0, Vec::len))
    }
}

async fn exchange(address: &str, request: &str) -> Result<String> {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect(address).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn encode(text: &str) -> String {
    text.bytes().fold(String::new(), |out, byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'.' => out + &char::from(byte).to_string(),
        _ => out + &format!("%{byte:02X}"),
    })
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
    let bed = BED.get().await.unwrap();
    bed.explain(Box::pin(async {
        let operator = Operator::start(bed, &program()?).await?;
        let prometheus = Prometheus::start(bed, &address(&operator).await?).await?;
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
