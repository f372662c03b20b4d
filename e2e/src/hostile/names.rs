//! Names that mean something in a URL, stored as a release without rules on names had them, and names that no object can have.

use anyhow::Result;
use serde_json::{Value, json};

use super::{Object, Running, Size, on};
use crate::bed::Bed;
use crate::operator::{chart, chart_map, without_rules_on_names};

/// What mean more than a name where a URL is put together from them.
const NAMES: [&str; 6] = [
    "?watch=true",
    "?limit=5000&labelSelector=",
    "..",
    "../../hostile-charts/configmaps/charts",
    "%2e%2e%2f%2e%2e",
    "a\0b",
];
const NOTE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\n";

/// An object that the API server did not take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The name in it that was meant to hurt, cut to some bytes.
    pub name: String,
    /// What kubectl printed.
    pub said: String,
}

pub(super) async fn begin(bed: &Bed, project: &str, size: Size) -> Result<Running> {
    let package = chart("note", "1.0.0", &[("templates/note.yaml", NOTE)])?;
    let key = package.file_name();
    chart_map(bed, project, "charts", &[package]).await?;
    let mut running = Running::default();
    send(
        bed,
        &mut running,
        "",
        &[app(project, "note", &json!({"configMapRef": {"name": "charts", "key": key}}))],
    )
    .await?;
    let probe = profile(project, "probe", NAMES[0]).to_string();
    let app_probe =
        app(project, "probe", &json!({"configMapRef": {"name": NAMES[0], "key": "chart.tgz"}})).to_string();
    let stored = send_all(bed, &mut running, project, size);
    let with_apps = Box::pin(without_rules_on_names(bed, "compositeapps.emco.io", &app_probe, stored));
    Box::pin(without_rules_on_names(bed, "compositeprofiles.emco.io", &probe, with_apps)).await?;
    Ok(running)
}

async fn send_all(bed: &Bed, running: &mut Running, project: &str, size: Size) -> Result<()> {
    // As many that ask for a watch as it takes to hold every place for plans.
    let watches = std::iter::repeat_n(NAMES[0], size.of(2, 2, 10));
    let long = "x".repeat(1 << 20);
    let all = watches.chain(NAMES).chain(std::iter::once(long.as_str()));
    for (number, name) in all.enumerate() {
        let values = format!("values-{number}");
        let objects = [
            profile(project, &values, name),
            json!({
                "apiVersion": "emco.io/v1alpha1", "kind": "DeploymentIntentGroup",
                "metadata": {"name": values, "namespace": project},
                "spec": {"compositeAppRef": {"name": "note"}, "release": values, "placement": on("a"),
                    "compositeProfileRef": {"name": values}},
            }),
        ];
        if send(bed, running, name, &objects).await? {
            running.objects.push(Object { kind: "dig", name: values });
        }
        let source = format!("source-{number}");
        let object = app(project, &source, &json!({"configMapRef": {"name": name, "key": "chart.tgz"}}));
        if send(bed, running, name, &[object]).await? {
            running.objects.push(Object { kind: "capp", name: source });
        }
    }
    Ok(())
}

fn app(project: &str, name: &str, source: &Value) -> Value {
    json!({
        "apiVersion": "emco.io/v1alpha1", "kind": "CompositeApp", "metadata": {"name": name, "namespace": project},
        "spec": {"apps": [{"name": "note", "chart": source}]},
    })
}

fn profile(project: &str, name: &str, values: &str) -> Value {
    json!({
        "apiVersion": "emco.io/v1alpha1", "kind": "CompositeProfile",
        "metadata": {"name": name, "namespace": project},
        "spec": {"apps": [{"app": "note", "valuesFrom": [{"kind": "ConfigMap", "name": values}]}]},
    })
}

/// Whether the API server took all of them; what it says of the first that it does not take is kept.
async fn send(bed: &Bed, running: &mut Running, name: &str, objects: &[Value]) -> Result<bool> {
    for object in objects {
        let args = ["apply", "--server-side", "-f", "-"];
        let output = bed.hub().kubectl().at_low_priority().output(&args, &object.to_string()).await?;
        if !output.is_ok() {
            let name = name.chars().take(40).collect();
            running.refused.push(Refused { name, said: output.stderr });
            return Ok(false);
        }
    }
    Ok(true)
}
