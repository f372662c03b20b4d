//! Deploys everyday charts at level Standard, and those that it does not let be with the permissions that `kubectl emco role` prints for
//! them. The page of the book that says which need what is written by this.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use emco_crds::conditions::types;
use emco_crds::{DeploymentIntentGroup, LogicalCloud};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{self, root};
use emco_e2e::package::Package;
use futures::StreamExt as _;
use futures::stream;
use serde_json::{Value, json};
use tokio::process::Command;

use super::corpus::Corpus;
use super::{EDGES, MOST_BYTES, PROVIDER};

/// The project.
const SPACE: &str = "levels";
/// Longest time until a cluster is seen with all definitions that charts bring to it meanwhile.
const LOOKED: Duration = Duration::from_mins(2);
/// Charts at a time.
const AT_ONCE: usize = 4;
/// The page, and what is written of it.
const PAGE: &str = "docs/charts-and-levels.md";
const BEGIN: &str = "<!-- From here on `EMCO_WRITE_PAGES=1 make conformance` writes. -->";
const END: &str = "<!-- It ends here. -->";
/// Verbs of rules for objects of a chart; other rules are given away by it.
const KEPT: [&str; 2] = ["create", "patch"];

/// Folder, publisher and values of each chart.
const CHARTS: [(&str, &str, &str); 20] = [
    ("bitnami-nginx", "bitnami", "{}"),
    ("bitnami-redis", "bitnami", "{}"),
    ("bitnami-postgresql", "bitnami", "{}"),
    ("bitnami-mysql", "bitnami", "{}"),
    ("bitnami-mongodb", "bitnami", "{}"),
    ("bitnami-rabbitmq", "bitnami", "{}"),
    ("bitnami-kafka", "bitnami", "{}"),
    ("bitnami-minio", "bitnami", "{}"),
    ("bitnami-sealed-secrets", "bitnami", "{}"),
    ("nats-nats", "nats", "{}"),
    ("jenkins", "jenkins", "{}"),
    ("prom-alertmanager", "prometheus-community", "{}"),
    ("prom-prometheus-blackbox-exporter", "prometheus-community", "{}"),
    ("prom-prometheus-node-exporter", "prometheus-community", "{}"),
    ("prom-kube-state-metrics", "prometheus-community", "{}"),
    ("grafana-promtail", "grafana", "{}"),
    ("k8s-ingress-nginx", "kubernetes", "{}"),
    // Nothing answers behind its API, without which a cluster says of no namespace that it is empty.
    ("k8s-metrics-server", "kubernetes", r#"{"apiService": {"create": false}}"#),
    ("jetstack-cert-manager", "jetstack", "{}"),
    ("traefik", "traefik", "{}"),
];

/// A chart that is tried.
struct Chart {
    package: Package,
    publisher: &'static str,
    values: Value,
}

/// The charts, and the program that prints permissions.
pub struct Charts {
    charts: Vec<Chart>,
    program: PathBuf,
}

/// What became of a chart at level Standard with the rights that a logical cloud has by itself.
enum AtStandard {
    Ready,
    /// For this reason.
    Refused(&'static str),
}

/// A row of the page.
struct Row {
    chart: String,
    version: String,
    refused: Option<&'static str>,
    needs: String,
}

impl Charts {
    /// Packages them. `operator` is the operator's program, beside which that of the commands is.
    pub fn of(corpus: &Corpus, operator: &Path) -> Result<Self> {
        let chart = |&(folder, publisher, values): &(&str, &'static str, &str)| -> Result<Chart> {
            let package = Package::of_folder(&corpus.chart(folder)?)?;
            let size = package.bytes.len();
            ensure!(size <= MOST_BYTES, "{folder} has {size} bytes, and a ConfigMap holds {MOST_BYTES}");
            let values = serde_json::from_str(values).with_context(|| format!("{folder}: no JSON"))?;
            Ok(Chart { package, publisher, values })
        };
        let charts = CHARTS.iter().map(chart).collect::<Result<_>>()?;
        Ok(Self { charts, program: operator.with_file_name("kubectl-emco") })
    }
}

/// Tries all of them, and compares the page with what was seen, or writes it. Answers how many need what.
pub async fn check(bed: &Bed, Charts { charts, program }: &Charts) -> Result<String> {
    operator::project(bed, SPACE).await?;
    cloud(bed, "standard", &json!({"level": "Standard"})).await?;
    let tried = stream::iter(charts).map(|chart| {
        Box::pin(async move {
            let row = try_chart(bed, program, chart).await;
            row.with_context(|| chart.package.name.clone())
        })
    });
    let rows: Vec<Result<Row>> = tried.buffered(AT_ONCE).collect().await;
    if rows.iter().any(Result::is_err) {
        // Now, while everything is still as it failed.
        println!("{}", bed.diagnostics().await);
    }
    let rows = rows.into_iter().collect::<Result<Vec<_>>>()?;
    keep(&root().join(PAGE), &table(&rows))?;
    let refused = rows.iter().filter(|row| row.refused.is_some()).count();
    Ok(format!(
        "{} are ready as they are, and {refused} with the permissions that are printed for them",
        rows.len() - refused
    ))
}

/// One chart, from its archive to its removal.
async fn try_chart(bed: &Bed, program: &Path, chart: &Chart) -> Result<Row> {
    let name = chart.package.name.as_str();
    let map = BTreeMap::from([("chart.tgz".to_owned(), chart.package.bytes.clone())]);
    operator::binary_map(bed, SPACE, name, map).await?;
    apply(bed, chart, "standard").await?;
    let (refused, needs) = match at_standard(bed, name).await? {
        AtStandard::Ready => (None, "nothing".to_owned()),
        AtStandard::Refused(reason) => {
            let spec = permissions(bed, program, name).await?;
            remove(bed, name).await?;
            cloud(bed, name, &spec).await?;
            apply(bed, chart, name).await?;
            let deployed = operator::deployed(bed, SPACE, name, 1).await;
            deployed.with_context(|| format!("it does not get ready with what is printed for it: {spec}"))?;
            (Some(reason), needs(&spec))
        }
    };
    remove(bed, name).await?;
    let chart_said = format!("{}/{name}", chart.publisher);
    Ok(Row { chart: chart_said, version: chart.package.version.clone(), refused, needs })
}

/// Makes a logical cloud on one edge, and waits until it is ready.
async fn cloud(bed: &Bed, name: &str, more: &Value) -> Result<()> {
    let clusters = json!([{"provider": PROVIDER, "cluster": EDGES[0]}]);
    let mut spec = json!({"namespace": format!("{SPACE}-{name}"), "clusters": clusters});
    let fields = spec.as_object_mut().zip(more.as_object()).context("a spec is an object")?;
    fields.0.extend(fields.1.clone());
    let metadata = json!({"name": name, "namespace": SPACE});
    let object =
        json!({"apiVersion": "emco.io/v1alpha1", "kind": "LogicalCloud", "metadata": metadata, "spec": spec});
    bed.hub().kubectl().apply(&object.to_string()).await?;
    let ready = operator::wait(bed, SPACE, name, |cloud: &LogicalCloud| {
        operator::is(cloud.status.as_ref(), types::READY, "True")
    });
    ready.await.with_context(|| format!("logical cloud {name}: {spec}"))
}

async fn apply(bed: &Bed, chart: &Chart, cloud: &str) -> Result<()> {
    let name = chart.package.name.as_str();
    let metadata = json!({"name": name, "namespace": SPACE});
    let archive = json!({"configMapRef": {"name": name, "key": "chart.tgz"}});
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "emco.io/v1alpha1", "kind": "CompositeApp", "metadata": metadata,
         "spec": {"apps": [{"name": "chart", "chart": archive}]}},
        {"apiVersion": "emco.io/v1alpha1", "kind": "DeploymentIntentGroup", "metadata": metadata, "spec": {
            "compositeAppRef": {"name": name}, "logicalCloudRef": {"name": cloud},
            "placement": {"allOf": [{"provider": PROVIDER, "cluster": EDGES[0]}]},
            "overrideValues": [{"app": "chart", "values": chart.values}],
            // Definitions outlive what brought them.
            "sync": {"conflicts": "Adopt"},
        }},
    ]});
    bed.hub().kubectl().apply(&objects.to_string()).await.map(drop)
}

async fn at_standard(bed: &Bed, name: &str) -> Result<AtStandard> {
    operator::wait(bed, SPACE, name, |dig: &DeploymentIntentGroup| {
        let status = dig.status.as_ref().ok_or("it has no status yet")?;
        let looked_at = status.observed_generation == dig.metadata.generation;
        if looked_at && operator::refused(Some(status), types::READY, "NotAllowedByLevel").is_ok() {
            return Ok(AtStandard::Refused("NotAllowedByLevel"));
        }
        if status.failing.iter().any(|row| row.reason == "Forbidden") {
            return Ok(AtStandard::Refused("Forbidden"));
        }
        operator::settled(dig).map(|()| AtStandard::Ready)
    })
    .await
    .context("at level Standard it is neither ready nor refused")
}

/// What `kubectl emco role` prints for a deployment, as the spec of a logical cloud has it. Charts beside it bring definitions at any moment:
/// where the command says that the operator has to look at the cluster first, that is done.
async fn permissions(bed: &Bed, program: &Path, name: &str) -> Result<Value> {
    let edge = format!("{PROVIDER}/{}", EDGES[0]);
    let of = format!("{SPACE}/{name}");
    let until = Instant::now() + LOOKED;
    loop {
        let output = emco(bed, program, &["role", &of, "--permissions", "-o", "json"]).await?;
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.success() {
            return serde_json::from_slice(&output.stdout).context("kubectl emco role prints no JSON");
        }
        let outdated = said.contains(&format!("(kubectl emco reconcile cluster {edge})"));
        ensure!(outdated && Instant::now() < until, "kubectl emco role ends with {}: {said}", output.status);
        let output = emco(bed, program, &["reconcile", "cluster", &edge]).await?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "kubectl emco reconcile ends with {}: {said}", output.status);
    }
}

async fn emco(bed: &Bed, program: &Path, args: &[&str]) -> Result<Output> {
    let mut command = Command::new(program);
    command.args(args).env("KUBECONFIG", bed.hub().kubectl().kubeconfig()).kill_on_drop(true);
    bed.hear(&mut command).await.with_context(|| program.display().to_string())
}

/// Removes a chart, and the claims that its `StatefulSets` leave: there are few volumes, and more charts.
async fn remove(bed: &Bed, name: &str) -> Result<()> {
    for kind in ["deploymentintentgroups", "compositeapps"] {
        let object = format!("{kind}.emco.io/{name}");
        let args = ["delete", &object, "-n", SPACE, "--timeout=120s"];
        bed.hub().kubectl().run(&args).await.with_context(|| format!("{kind} {name} is not removed"))?;
    }
    let of = format!("app.kubernetes.io/instance={name}");
    let claims = ["delete", "persistentvolumeclaims", "-A", "-l", &of, "--ignore-not-found", "--timeout=60s"];
    bed.edge(EDGES[0]).kubectl().run(&claims).await.with_context(|| format!("claims of {name} stay"))?;
    Ok(())
}

/// Level and permissions of a spec, for people.
fn needs(spec: &Value) -> String {
    let level = spec["level"].as_str().unwrap_or_default();
    let list = spec["permissions"].as_array().map_or(&[][..], Vec::as_slice);
    let beyond: Vec<String> = list.iter().filter_map(beyond).collect();
    if beyond.is_empty() {
        return format!("level `{level}`, with permissions for what its Roles give away");
    }
    format!("level `{level}`: {}", beyond.join("; "))
}

/// A permission that reaches beyond the namespace of its logical cloud, with the objects that it is for.
fn beyond(permission: &Value) -> Option<String> {
    let place = match (&permission["scope"], permission["namespaces"].as_array()) {
        (Value::String(scope), _) => format!("`scope: {scope}`"),
        (_, Some(namespaces)) => {
            let namespaces: Vec<&str> = namespaces.iter().filter_map(Value::as_str).collect();
            format!("`namespaces: [{}]`", namespaces.join(", "))
        }
        _ => return None,
    };
    let has = |rule: &&Value, verb: &str| {
        rule["verbs"].as_array().is_some_and(|verbs| verbs.iter().any(|one| one == verb))
    };
    let rules = permission["rules"].as_array().into_iter().flatten();
    let kept = rules.filter(|rule| KEPT.iter().all(|&verb| has(rule, verb)));
    let resources: BTreeSet<&str> =
        kept.filter_map(|rule| rule["resources"].as_array()).flatten().filter_map(Value::as_str).collect();
    if permission["derived"] == true {
        return Some(format!("{place}, `derived: true`"));
    }
    if resources.is_empty() {
        return Some(place);
    }
    Some(format!("{place} for {}", resources.into_iter().collect::<Vec<_>>().join(", ")))
}

fn table(rows: &[Row]) -> String {
    let mut text = "| Chart | Version | At level `Standard` | Needs |\n|---|---|---|---|\n".to_owned();
    for Row { chart, version, refused, needs } in rows {
        let seen = refused.map_or_else(|| "ready".to_owned(), |reason| format!("`{reason}`"));
        text.push_str(&format!("| {chart} | {version} | {seen} | {needs} |\n"));
    }
    text
}

/// Compares a page with a table, or writes it into the page where `EMCO_WRITE_PAGES` is set.
fn keep(path: &Path, table: &str) -> Result<()> {
    let write = std::env::var_os("EMCO_WRITE_PAGES").is_some();
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let wanted = with(&text, table).with_context(|| format!("{PAGE} has no place for a table"))?;
    if write {
        return std::fs::write(path, wanted).with_context(|| path.display().to_string());
    }
    ensure!(text == wanted, "{PAGE} says otherwise: EMCO_WRITE_PAGES=1 writes it anew, with\n{table}");
    Ok(())
}

/// A page with this table.
fn with(text: &str, table: &str) -> Option<String> {
    let (head, rest) = text.split_once(BEGIN)?;
    let (_, tail) = rest.split_once(END)?;
    Some(format!("{head}{BEGIN}\n\n{table}\n{END}{tail}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(resources: &[&str], verbs: &[&str]) -> Value {
        json!({"apiGroups": [""], "resources": resources, "verbs": verbs})
    }

    #[test]
    fn what_a_chart_needs_is_its_level_with_the_objects_of_each_place() {
        let kept = ["create", "delete", "get", "patch"];
        let own = json!({"name": "own", "rules": [rule(&["pods"], &kept)]});
        let standard = json!({"level": "Standard", "permissions": [own]});
        assert_eq!(needs(&standard), "level `Standard`, with permissions for what its Roles give away");
        let everywhere = json!({"name": "cluster", "scope": "Cluster", "rules": [
            rule(&["nodes"], &["list", "watch"]), rule(&["ingressclasses", "clusterroles"], &kept),
        ]});
        let there =
            json!({"name": "there", "namespaces": ["kube-system"], "rules": [rule(&["roles"], &kept)]});
        let privileged = json!({"level": "Privileged", "permissions": [own, everywhere, there]});
        assert_eq!(
            needs(&privileged),
            "level `Privileged`: `scope: Cluster` for clusterroles, ingressclasses; `namespaces: [kube-system]` for roles"
        );
        let paths = json!({"level": "Privileged", "permissions": [{"name": "cluster", "scope": "Cluster", "derived": true}]});
        assert_eq!(needs(&paths), "level `Privileged`: `scope: Cluster`, `derived: true`");
    }

    #[test]
    fn a_table_takes_the_place_of_the_one_before_it() {
        let row = |needs: &str, refused| Row {
            chart: "jenkins/jenkins".to_owned(),
            version: "1.0.0".to_owned(),
            refused,
            needs: needs.to_owned(),
        };
        let (one, other) =
            (table(&[row("nothing", None)]), table(&[row("level `Standard`", Some("Forbidden"))]));
        assert!(one.ends_with("| jenkins/jenkins | 1.0.0 | ready | nothing |\n"), "{one}");
        assert!(other.contains("| `Forbidden` | level `Standard` |"), "{other}");
        let page = with(&format!("# Title\n{BEGIN}\n{END}\nend\n"), &one).unwrap();
        let again = with(&page, &other).unwrap();
        assert!(
            again.starts_with("# Title\n") && again.ends_with("end\n") && !again.contains("nothing"),
            "{again}"
        );
        assert_eq!(with(&again, &other).as_ref(), Some(&again));
        assert_eq!(with("# Title\n", &one), None);
    }
}
