//! Lives the example `test-gac` of the first EMCO with its chart: what an intent adds and changes, its update, and the rollback.

use anyhow::{Context as _, Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_crds::conditions::{Conditioned as _, types};
use emco_e2e::bed::Bed;
use emco_e2e::operator;
use serde_json::{Value, json};

use super::life::Apps;
use super::{EDGES, PROJECT, all, hand_over, left, remove};

/// Of the deployment, its CompositeApp and its intent.
const NAME: &str = "acting";
/// Objects that the intent adds, with the keys that each has.
const ADDED: [(&str, &[&str]); 6] = [
    ("networkpolicy/netpol-web", &[]),
    ("networkpolicy/netpol-db", &[]),
    (
        "configmap/cm-game",
        &[
            "game.properties",
            "info.json",
            "player_initial_lives",
            "ui_properties_file_name",
            "user-interface.properties",
        ],
    ),
    ("configmap/cm-team", &["game.properties", "team_name", "team_size", "user-interface.properties"]),
    ("secret/secret-user", &["password", "username"]),
    ("secret/secret-auth", &["EXPIRATION", "PASSWORD", "USER_NAME"]),
];
/// What the intent changes; the chart says three replicas.
const ETCD: &str = "statefulset/etcd";

/// From clean edges to clean edges. Answers what was seen.
pub async fn act(bed: &Bed, apps: &Apps) -> Result<String> {
    let before = all(bed).await?;
    let lived = Box::pin(live(bed, apps)).await;
    if lived.is_err() {
        // Now, while everything is still as it failed.
        println!("{}", bed.diagnostics().await);
    }
    let removed = remove(bed, NAME).await;
    lived?;
    removed?;
    let object = format!("genericactionintents.emco.io/{NAME}");
    bed.hub().kubectl().run(&["delete", &object, "-n", PROJECT, "--timeout=60s"]).await?;
    let left = left(bed, &before).await?;
    let number = ADDED.len();
    Ok(format!("{number} objects added, etcd of 3 replicas has 1, then 2, and 1 again; afterwards {left}"))
}

async fn live(bed: &Bed, apps: &Apps) -> Result<()> {
    let kubectl = bed.hub().kubectl();
    let chart = hand_over(bed, &apps.operator, NAME).await?;
    kubectl.apply(&intent(1).to_string()).await?;
    let metadata = json!({"name": NAME, "namespace": PROJECT});
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "emco.io/v1alpha1", "kind": "CompositeApp", "metadata": metadata,
         "spec": {"apps": [{"name": "operator", "chart": chart}]}},
        {"apiVersion": "emco.io/v1alpha1", "kind": "DeploymentIntentGroup", "metadata": metadata, "spec": {
            "compositeAppRef": {"name": NAME}, "placement": {"allOf": [{"selector": {}}]},
            "intents": [{"kind": "GenericActionIntent", "name": NAME}],
            // Definitions outlive what brought them.
            "sync": {"conflicts": "Adopt"},
        }},
    ]});
    kubectl.apply(&objects.to_string()).await?;
    operator::deployed(bed, PROJECT, NAME, 1).await.context("instantiated")?;
    let uids = added(bed).await?;
    replicas(bed, 1).await?;

    kubectl.apply(&intent(2).to_string()).await?;
    operator::deployed(bed, PROJECT, NAME, 2).await.context("updated")?;
    replicas(bed, 2).await?;

    let object = format!("deploymentintentgroups.emco.io/{NAME}");
    let pin = json!({"spec": {"revision": 1}}).to_string();
    kubectl.run(&["patch", &object, "-n", PROJECT, "--type=merge", "-p", &pin]).await?;
    operator::wait(bed, PROJECT, NAME, |dig: &DeploymentIntentGroup| {
        let status =
            dig.status.as_ref().filter(|status| status.observed_generation == dig.metadata.generation);
        let ready = status.and_then(|status| status.condition(types::READY));
        let back = ready.is_some_and(|ready| ready.status == "True" && ready.reason == "Pinned");
        if back { Ok(()) } else { Err(format!("{ready:?}")) }
    })
    .await
    .context("rolled back")?;
    replicas(bed, 1).await?;
    ensure!(added(bed).await? == uids, "the update or the rollback made again what it does not change");
    Ok(())
}

/// The intent of the example.
fn intent(replicas: u32) -> Value {
    let add = |name: &str, inline: Value| json!({"name": name, "app": "operator", "type": "Add", "add": {"inline": inline}});
    let policy = |name: &str, role: &str| {
        let spec = json!({"podSelector": {"matchLabels": {"role": role}}, "policyTypes": ["Ingress"], "ingress": [{}]});
        add(
            name,
            json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": name}, "spec": spec}),
        )
    };
    let map = |name: &str, data: Value| {
        add(name, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}))
    };
    let secret = |name: &str, data: Value| {
        add(
            name,
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": "Opaque", "stringData": data}),
        )
    };
    let size = json!({
        "name": "etcd", "app": "operator", "type": "JSONPatch",
        "target": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "etcd"},
        "jsonPatch": [{"op": "test", "path": "/spec/replicas", "value": 3}, {"op": "replace", "path": "/spec/replicas", "value": replicas}],
    });
    let game = "enemies=aliens\nlives=3\n";
    let interface = "color.good=purple\nallow.textmode=true\n";
    let actions = json!([
        policy("netpol-web", "web"),
        policy("netpol-db", "database"),
        map(
            "cm-game",
            json!({
                "player_initial_lives": "3", "ui_properties_file_name": "user-interface.properties", "info.json": "{\"level\": 1}",
                "game.properties": game, "user-interface.properties": interface,
            })
        ),
        map(
            "cm-team",
            json!({
                "team_name": "blue", "team_size": "10", "game.properties": game, "user-interface.properties": interface,
            })
        ),
        secret("secret-user", json!({"username": "ann", "password": "not-a-real-one"})),
        secret(
            "secret-auth",
            json!({"USER_NAME": "ann", "PASSWORD": "not-a-real-one", "EXPIRATION": "never"})
        ),
        size,
    ]);
    json!({
        "apiVersion": "emco.io/v1alpha1", "kind": "GenericActionIntent",
        "metadata": {"name": NAME, "namespace": PROJECT}, "spec": {"actions": actions},
    })
}

/// The UIDs of what the intent adds, on all edges, once each object is as it is to be.
async fn added(bed: &Bed) -> Result<Vec<Value>> {
    let mut uids = Vec::new();
    for edge in EDGES {
        for (name, keys) in ADDED {
            let found = object(bed, edge, name).await?;
            let data = found["data"].as_object();
            let has: Vec<&str> = data.into_iter().flatten().map(|(key, _)| key.as_str()).collect();
            ensure!(has == keys, "{name} on {edge} has the keys {has:?}, not {keys:?}");
            uids.push(found["metadata"]["uid"].clone());
        }
        let policy = object(bed, edge, "networkpolicy/netpol-db").await?;
        let selects = &policy["spec"]["podSelector"]["matchLabels"];
        ensure!(*selects == json!({"role": "database"}), "netpol-db on {edge} selects {selects}");
        let size = object(bed, edge, "configmap/cm-team").await?["data"]["team_size"].clone();
        ensure!(size == "10", "the team on {edge} has the size {size}");
    }
    Ok(uids)
}

async fn replicas(bed: &Bed, wanted: u32) -> Result<()> {
    for edge in EDGES {
        let found = object(bed, edge, ETCD).await?["spec"]["replicas"].clone();
        ensure!(found == wanted, "etcd has {found} replicas on {edge}, not {wanted}");
    }
    Ok(())
}

async fn object(bed: &Bed, edge: &str, name: &str) -> Result<Value> {
    let found = bed.edge(edge).kubectl().run(&["get", name, "-n", PROJECT, "-o", "json"]).await;
    let found = found.with_context(|| format!("{name} on {edge}"))?;
    serde_json::from_str(&found).with_context(|| format!("{name} on {edge}: no JSON"))
}
