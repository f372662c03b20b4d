//! Lives of a deployment as the first EMCO's examples have them, with their charts: apps in order, and hooks. With `--all` it is
//! stopped, terminated halfway and made again before, and updated and rolled back afterwards.

use anyhow::{Context as _, Result, anyhow, ensure};
use emco_crds::conditions::{Conditioned as _, types};
use emco_crds::{DeploymentIntentGroup, State};
use emco_e2e::bed::Bed;
use emco_e2e::operator;
use emco_e2e::package::Package;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::corpus::Corpus;
use super::{EDGES, PROJECT, PROVIDER, all, hand_over, left, remove};

/// Of the deployment and its CompositeApp.
const NAME: &str = "life";
/// How long `operator` waits for `collectd`: nothing comes of it while it is stopped and terminated.
const LONG: &str = "1h";
/// The same where it is to come.
const SHORT: &str = "2s";
/// Objects of `collectd`, `operator` and `nginx`, as kubectl names them.
const COLLECTD: &str = "daemonset/life-collectd";
const OPERATOR: &str = "statefulset/etcd";
const HOOK_BEFORE: &str = "pod/pre-install-hook-pod";
const NGINX: &str = "deployment/life-nginx";
const HOOK_AFTER: &str = "pod/post-install-hook-pod";

/// The charts of the examples `test-dependency` and `test-update`.
pub struct Apps {
    collectd: Package,
    pub(super) operator: Package,
    nginx: Package,
    /// The whole life is lived.
    whole: bool,
}

impl Apps {
    /// Packages them.
    pub fn of(corpus: &Corpus, whole: bool) -> Result<Self> {
        let package = |folder| Package::of_folder(&corpus.chart(folder)?);
        Ok(Self {
            collectd: package("emco-collectd_helm_collectd")?,
            operator: package("emco-operators-latest_helm_operator")?,
            nginx: package("emco-nginx_helm_nginx")?,
            whole,
        })
    }
}

/// From clean edges to clean edges. Answers what was seen.
pub async fn live(bed: &Bed, apps: &Apps) -> Result<String> {
    let before = all(bed).await?;
    let lived = async {
        if !apps.whole {
            begin(bed, apps, SHORT).await?;
            return in_order(bed).await;
        }
        begin(bed, apps, LONG).await?;
        waits(bed).await?;
        stop(bed).await?;
        change(bed, &json!({"desiredState": "Terminated"})).await?;
        state(bed, State::Terminated).await.context("terminated while it was instantiated")?;
        left(bed, &before).await?;
        again(bed).await?;
        in_order(bed).await?;
        move_and_back(bed).await
    };
    let lived = Box::pin(lived).await;
    if lived.is_err() {
        // Now, while everything is still as it failed.
        println!("{}", bed.diagnostics().await);
    }
    let removed = remove(bed, NAME).await;
    lived?;
    removed?;
    let left = left(bed, &before).await?;
    let seen = if apps.whole {
        "stopped, terminated halfway, came in order, moved, and went back"
    } else {
        "came in order"
    };
    Ok(format!("{seen}; afterwards {left}"))
}

fn on(cluster: &str) -> Value {
    json!([{"provider": PROVIDER, "cluster": cluster}])
}

/// Applies them so that they wait for each other: `operator`, which is on one edge alone, for `collectd` and this delay; `nginx` for
/// `operator`.
async fn begin(bed: &Bed, apps: &Apps, delay: &str) -> Result<()> {
    let collectd = hand_over(bed, &apps.collectd, NAME).await?;
    let operators = hand_over(bed, &apps.operator, NAME).await?;
    let nginx = hand_over(bed, &apps.nginx, NAME).await?;
    let metadata = json!({"name": NAME, "namespace": PROJECT});
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "emco.io/v1alpha1", "kind": "CompositeApp", "metadata": metadata, "spec": {"apps": [
            {"name": "collectd", "chart": collectd},
            {"name": "operator", "chart": operators,
             "dependsOn": [{"app": "collectd", "delay": delay}]},
            {"name": "nginx", "chart": nginx, "dependsOn": [{"app": "operator"}]},
        ]}},
        {"apiVersion": "emco.io/v1alpha1", "kind": "DeploymentIntentGroup", "metadata": metadata, "spec": {
            "compositeAppRef": {"name": NAME},
            "placement": {"allOf": [{"selector": {}}], "apps": [{"app": "operator", "allOf": on(EDGES[0])}]},
            // Definitions outlive what brought them.
            "sync": {"conflicts": "Adopt"},
        }},
    ]});
    bed.hub().kubectl().apply(&objects.to_string()).await.map(drop)
}

/// Until the delay runs.
async fn waits(bed: &Bed) -> Result<()> {
    operator::wait(bed, PROJECT, NAME, |dig: &DeploymentIntentGroup| {
        let failing = dig.status.as_ref().map(|status| status.failing.clone()).unwrap_or_default();
        let delayed = format!("app collectd is Ready, and the delay of {LONG} after that runs");
        let found = failing.iter().any(|one| one.message.contains(&delayed));
        if found { Ok(()) } else { Err(format!("{failing:?}")) }
    })
    .await
}

/// Stopped halfway it stays so, and goes on from there.
async fn stop(bed: &Bed) -> Result<()> {
    change(bed, &json!({"suspend": true})).await?;
    state(bed, State::InstantiateStopped).await.context("stopped while it was instantiated")?;
    ensure!(!uid(bed, EDGES[0], COLLECTD).await?.is_empty(), "collectd is gone from {}", EDGES[0]);
    for edge in EDGES {
        ensure!(uid(bed, edge, NGINX).await?.is_empty(), "nginx came to {edge} before its turn");
    }
    change(bed, &json!({"suspend": null})).await?;
    state(bed, State::Instantiating).await.context("resumed")?;
    waits(bed).await
}

/// Instantiates it again, with a delay that ends.
async fn again(bed: &Bed) -> Result<()> {
    let patch =
        json!([{"op": "replace", "path": "/spec/apps/1/dependsOn/0/delay", "value": SHORT}]).to_string();
    let object = format!("compositeapps.emco.io/{NAME}");
    bed.hub().kubectl().run(&["patch", &object, "-n", PROJECT, "--type=json", "-p", &patch]).await?;
    change(bed, &json!({"desiredState": "Instantiated"})).await
}

/// All come, each after what it waits for, nginx between its hooks.
async fn in_order(bed: &Bed) -> Result<()> {
    operator::deployed(bed, PROJECT, NAME, 1).await.context("instantiated")?;
    let [one, two] = EDGES;
    ensure!(uid(bed, two, OPERATOR).await?.is_empty(), "operator is on {two}");
    let (first, second) = (created(bed, one, COLLECTD).await?, created(bed, one, OPERATOR).await?);
    // Both are cut to whole seconds, so that what lies between them is not less than the delay.
    let passed = second.duration_since(first).as_secs();
    ensure!(passed >= 2, "operator came {passed} s after collectd, which its delay of 2 s does not allow");
    for edge in EDGES {
        let mut last = second;
        for object in [HOOK_BEFORE, NGINX, HOOK_AFTER] {
            let now = created(bed, edge, object).await?;
            ensure!(now >= last, "{object} came to {edge} at {now}, and what is before it at {last}");
            last = now;
        }
    }
    Ok(())
}

/// An update moves one app and touches no other; a rollback takes it back.
async fn move_and_back(bed: &Bed) -> Result<()> {
    let [one, two] = EDGES;
    let others = async || {
        let mut uids = vec![uid(bed, one, OPERATOR).await?, uid(bed, two, COLLECTD).await?];
        for edge in EDGES {
            for object in [HOOK_BEFORE, NGINX, HOOK_AFTER] {
                uids.push(uid(bed, edge, object).await?);
            }
        }
        Ok::<_, anyhow::Error>(uids)
    };
    let before = others().await?;
    let had = revision(bed).await?;
    let apps = json!([{"app": "operator", "allOf": on(one)}, {"app": "collectd", "allOf": on(two)}]);
    change(bed, &json!({"placement": {"apps": apps}})).await?;
    operator::deployed(bed, PROJECT, NAME, had + 1).await.context("moved by a new placement")?;
    gone(bed, one, COLLECTD).await?;
    ensure!(others().await? == before, "the update touched what it does not change");

    change(bed, &json!({"revision": had})).await?;
    operator::wait(bed, PROJECT, NAME, |dig: &DeploymentIntentGroup| {
        let status =
            dig.status.as_ref().filter(|status| status.observed_generation == dig.metadata.generation);
        let ready = status.and_then(|status| status.condition(types::READY));
        let back = ready.is_some_and(|ready| ready.status == "True" && ready.reason == "Pinned");
        if back { Ok(()) } else { Err(format!("{ready:?}")) }
    })
    .await
    .context("rolled back")?;
    ensure!(!uid(bed, one, COLLECTD).await?.is_empty(), "collectd did not come back to {one}");
    ensure!(others().await? == before, "the rollback touched what it does not change");
    Ok(())
}

async fn change(bed: &Bed, spec: &Value) -> Result<()> {
    let (object, patch) =
        (format!("deploymentintentgroups.emco.io/{NAME}"), json!({"spec": spec}).to_string());
    bed.hub().kubectl().run(&["patch", &object, "-n", PROJECT, "--type=merge", "-p", &patch]).await.map(drop)
}

/// Waits until it has this state as it is defined now.
async fn state(bed: &Bed, wanted: State) -> Result<()> {
    operator::wait(bed, PROJECT, NAME, |dig: &DeploymentIntentGroup| {
        let status =
            dig.status.as_ref().filter(|status| status.observed_generation == dig.metadata.generation);
        let now = status.and_then(|status| status.state);
        if now == Some(wanted) { Ok(()) } else { Err(format!("its state is {now:?}, not {wanted:?}")) }
    })
    .await
}

async fn revision(bed: &Bed) -> Result<i64> {
    let dig = bed.hub().api::<DeploymentIntentGroup>(PROJECT).await?.get(NAME).await?;
    dig.status.and_then(|status| status.revision).context("it runs no revision")
}

/// What kubectl prints of an object on an edge; nothing where it is not there.
async fn field(bed: &Bed, edge: &str, object: &str, path: &str) -> Result<String> {
    let path = format!("jsonpath={path}");
    let get = ["get", object, "-n", PROJECT, "--ignore-not-found", "-o", &path];
    bed.edge(edge).kubectl().run(&get).await
}

async fn uid(bed: &Bed, edge: &str, object: &str) -> Result<String> {
    field(bed, edge, object, "{.metadata.uid}").await
}

async fn created(bed: &Bed, edge: &str, object: &str) -> Result<Timestamp> {
    let at = field(bed, edge, object, "{.metadata.creationTimestamp}").await?;
    at.parse::<Timestamp>().map_err(|error| anyhow!("{object} is not on {edge}: {at:?}: {error}"))
}

async fn gone(bed: &Bed, edge: &str, object: &str) -> Result<()> {
    let wait = ["wait", object, "-n", PROJECT, "--for=delete", "--timeout=60s"];
    bed.edge(edge).kubectl().run(&wait).await.map(drop)
}
