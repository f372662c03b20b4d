//! Checks the alerts and the dashboard of this repository: a real Prometheus takes them, every alert fires when it should and not
//! otherwise, and every expression finds the series of an operator at work.

mod live;
mod prometheus;
mod soak;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use emco_e2e::operator::root;
use emco_e2e::programs::{Program, Programs};
use serde::Deserialize as _;
use serde_json::Value;
use tokio::process::Command;

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
    words
        .filter(|word| ["emco_", "process_"].iter().any(|start| word.starts_with(start)))
        .map(str::to_owned)
        .collect()
}

async fn promtool(args: &[&str]) -> Result<String> {
    ask(&Programs::get(&[Program::Promtool]).await?, args).await
}

async fn ask(programs: &Programs, args: &[&str]) -> Result<String> {
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

/// What the book has Prometheus scrape.
fn example_of_the_book() -> String {
    let page = std::fs::read_to_string(root().join("docs/observability.md")).unwrap();
    page.split("```yml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap().to_owned()
}

/// Checks a configuration, beside the rules that it names.
async fn is_a_configuration(programs: &Programs, text: &str) -> Result<()> {
    let dir = tempfile::tempdir()?;
    std::fs::copy(folder().join("rules.yaml"), dir.path().join("rules.yaml"))?;
    let file = dir.path().join("prometheus.yml");
    std::fs::write(&file, text)?;
    let said = ask(programs, &["check", "config", &file.display().to_string()]).await?;
    ensure!(said.contains("1 rule files found"), "{said}");
    Ok(())
}

/// Debian's promtool does not know how targets are found in Kubernetes. `make soak STEP=observability` has this judged as it is.
const FOUND: &str = "kubernetes_sd_configs:
  - {role: endpointslice, namespaces: {names: [emco-system]}}
";

#[tokio::test]
async fn the_scrape_configuration_of_the_book_is_one() {
    let example = example_of_the_book();
    let fixed = example.replacen(FOUND, "static_configs:\n  - {targets: [\"127.0.0.1:1\"]}\n", 1);
    assert_ne!(
        fixed, example,
        "targets are found otherwise: run `make soak STEP=observability`, and say so here"
    );
    let programs = Programs::get(&[Program::Promtool]).await.unwrap();
    is_a_configuration(&programs, &fixed).await.unwrap();
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

/// What people replace by where they put the book.
const BOOK: &str = "https://emco.example.com/book";

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
        // The anchor that mdBook makes of the section's title.
        let anchor = name.to_lowercase();
        assert_eq!(annotations["runbook_url"], format!("{BOOK}/observability.html#{anchor}"));
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
