//! Intents that add resources to a real chart's and change them, on real clusters.

use anyhow::{Result, ensure};
use emco_crds::conditions::types;
use emco_crds::{DeploymentIntentGroup, GenericActionIntent};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{SOON, deployed, deployment, is, says, wait, wait_in};
use emco_e2e::wait::wait_until_gone;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::DeleteParams;
use serde_json::Value;

use super::{AT_WORK, EVERYWHERE, start, web};

/// Every type, of which some are for one cluster.
const INTENT: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: motd, namespace: acting}
data:
  motd.yaml: |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: motd}
    data: {say: hello}
---
apiVersion: v1
kind: Secret
metadata: {name: login, namespace: acting}
stringData:
  resource.yaml: |
    apiVersion: v1
    kind: Secret
    metadata: {name: login}
    stringData: {password: swordfish}
---
apiVersion: emco.io/v1alpha1
kind: GenericActionIntent
metadata: {name: banner, namespace: acting}
spec:
  actions:
  - name: banner
    app: web
    type: Add
    templating: Handlebars
    add: {inline: {apiVersion: v1, kind: ConfigMap, metadata: {name: banner}, data: {text: "served from {{cluster.name}}"}}}
  - {name: motd, app: web, type: Add, add: {from: {kind: ConfigMap, name: motd, key: motd.yaml}}, allow: [{provider: acme, cluster: a}]}
  - {name: login, app: web, type: Add, add: {from: {kind: Secret, name: login}}, deny: [{provider: acme, cluster: a}]}
  - name: replicas
    app: web
    type: JSONPatch
    target: {apiVersion: apps/v1, kind: Deployment, name: "{{release}}-web"}
    jsonPatch: [{op: test, path: /spec/replicas, value: 1}, {op: replace, path: /spec/replicas, value: 2}]
    allow: [{selector: {matchLabels: {edge: a}}}]
  - name: image
    app: web
    type: StrategicMerge
    target: {apiVersion: apps/v1, kind: Deployment, name: "{{release}}-web"}
    strategicMerge: {spec: {template: {spec: {containers: [{name: web, image: "example.com/web:2"}]}}}}
  - name: note
    app: web
    type: JSONMerge
    target: {apiVersion: apps/v1, kind: Deployment, name: "{{release}}-web"}
    jsonMerge: {metadata: {annotations: {note: merged}}}
  - name: no-service
    app: web
    type: Delete
    target: {apiVersion: v1, kind: Service, name: "{{release}}-web"}
    deny: [{provider: acme, cluster: b}]
"#;

async fn map(bed: &Bed, edge: &str, name: &str) -> Result<Option<Value>> {
    let found = bed.edge(edge).api::<ConfigMap>("acting").await?.get_opt(name).await?;
    found.map(|found| serde_json::to_value(found.data).map_err(Into::into)).transpose()
}

async fn workload(bed: &Bed, edge: &str) -> Result<Value> {
    let found = bed.edge(edge).api::<Deployment>("acting").await?.get("shop-web").await?;
    serde_json::to_value(found).map_err(Into::into)
}

async fn has_service(bed: &Bed, edge: &str) -> Result<bool> {
    let args = ["get", "service", "-n", "acting", "-o", "name"];
    Ok(bed.edge(edge).kubectl().run(&args).await?.contains("service/shop-web"))
}

async fn as_wanted(bed: &Bed) -> Result<()> {
    for (edge, replicas) in [("a", 2), ("b", 1)] {
        let banner = map(bed, edge, "banner").await?.unwrap_or_default();
        ensure!(banner["text"] == format!("served from {edge}"), "{edge}: {banner}");
        let found = workload(bed, edge).await?;
        ensure!(found["spec"]["replicas"] == replicas, "{edge}: {found:#}");
        let containers = &found["spec"]["template"]["spec"]["containers"];
        ensure!(containers.as_array().is_some_and(|all| all.len() == 1), "{edge}: {containers}");
        ensure!(containers[0]["image"] == "example.com/web:2", "{edge}: {containers}");
        ensure!(containers[0]["env"][0]["name"] == "PAGE", "{edge}: the chart's own stays: {containers}");
        ensure!(found["metadata"]["annotations"]["note"] == "merged", "{edge}: {found:#}");
    }
    ensure!(map(bed, "a", "motd").await?.is_some() && map(bed, "b", "motd").await?.is_none());
    ensure!(!has_service(bed, "a").await? && has_service(bed, "b").await?);
    let login = |edge: &'static str| async move {
        bed.edge(edge).api::<Secret>("acting").await?.get_opt("login").await.map_err(anyhow::Error::from)
    };
    ensure!(login("a").await?.is_none() && login("b").await?.is_some());
    Ok(())
}

#[tokio::test]
async fn an_intent_adds_changes_and_deletes_by_cluster_and_all_of_it_is_taken_back() {
    let _working = AT_WORK.read().await;
    let web = web("1.0.0").unwrap();
    let bed = start("acting", std::slice::from_ref(&web)).await.unwrap();
    bed.explain(Box::pin(async {
        let kubectl = bed.hub().kubectl();
        kubectl.apply(INTENT).await?;
        wait(bed, "acting", "banner", |intent: &GenericActionIntent| {
            is(intent.status.as_ref(), types::READY, "True")
        })
        .await?;
        let listed = format!("{EVERYWHERE}\nintents: [{{kind: GenericActionIntent, name: banner}}]");
        kubectl.apply(&deployment("acting", "shop", std::slice::from_ref(&web), &listed)).await?;
        deployed(bed, "acting", "shop", 1).await?;
        as_wanted(bed).await?;
        let secrets = kubectl.run(&["get", "gai,dig,actx,shard,cm,events", "-n", "acting", "-o", "json"]).await?;
        ensure!(!secrets.contains("swordfish"), "a Secret is shown");

        // What is added and changed is kept as what charts make is.
        let maps = bed.edge("b").api::<ConfigMap>("acting").await?;
        maps.delete("banner", &DeleteParams::default()).await?;
        wait_in(maps, "banner", |_: &ConfigMap| Ok(())).await?;

        // A change of the intent alone.
        let path = r#"[{"op": "replace", "path": "/spec/actions/0/add/inline/data/text", "value": "on {{cluster.name}}"}]"#;
        kubectl.run(&["patch", "gai", "banner", "-n", "acting", "--type=json", "-p", path]).await?;
        deployed(bed, "acting", "shop", 2).await?;
        ensure!(map(bed, "a", "banner").await?.unwrap_or_default()["text"] == "on a");

        // It is held while it is listed, and what it did goes with it.
        kubectl.run(&["delete", "gai", "banner", "-n", "acting", "--wait=false"]).await?;
        wait(bed, "acting", "banner", |intent: &GenericActionIntent| {
            is(intent.status.as_ref(), types::IN_USE, "True")
        })
        .await?;
        kubectl.apply(&deployment("acting", "shop", std::slice::from_ref(&web), &format!("{EVERYWHERE}\nintents: []"))).await?;
        deployed(bed, "acting", "shop", 3).await?;
        wait_until_gone(bed.hub().api::<GenericActionIntent>("acting").await?, "banner", SOON).await?;
        for edge in ["a", "b"] {
            for gone in ["banner", "motd"] {
                ensure!(map(bed, edge, gone).await?.is_none(), "{gone} is still on {edge}");
            }
            let found = workload(bed, edge).await?;
            ensure!(found["spec"]["replicas"] == 1 && found["metadata"]["annotations"]["note"].is_null(), "{found:#}");
            ensure!(has_service(bed, edge).await?, "{edge}");
        }
        super::delete_dig(bed, "acting", "shop").await
    }))
    .await;
}

#[tokio::test]
async fn an_action_that_cannot_be_carried_out_refuses_the_change_and_what_runs_stays() {
    let _working = AT_WORK.read().await;
    let web = web("1.0.0").unwrap();
    let bed = start("unacting", std::slice::from_ref(&web)).await.unwrap();
    bed.explain(Box::pin(async {
        let kubectl = bed.hub().kubectl();
        let listed = format!("{EVERYWHERE}\nintents: [{{kind: GenericActionIntent, name: wrong}}]");
        kubectl.apply(&deployment("unacting", "shop", std::slice::from_ref(&web), EVERYWHERE)).await?;
        deployed(bed, "unacting", "shop", 1).await?;
        kubectl.apply(&deployment("unacting", "shop", std::slice::from_ref(&web), &listed)).await?;
        let says = async |reason: &str, words: &str| -> Result<()> {
            let said =
                says::<DeploymentIntentGroup, _>(bed, "unacting", "shop", types::READY, reason).await?;
            ensure!(said.contains("revision 1 runs on 2 of 2 clusters") && said.contains(words), "{said}");
            Ok(())
        };
        says("IntentNotFound", "GenericActionIntent wrong does not exist in namespace unacting").await?;
        for (action, reason, words) in WRONG {
            let intent = format!(
                "{{apiVersion: emco.io/v1alpha1, kind: GenericActionIntent, metadata: {{name: wrong, namespace: unacting}}, \
                 spec: {{actions: [{{name: wrong, app: web, {action}}}]}}}}"
            );
            kubectl.apply(&intent).await?;
            says(reason, words).await?;
        }
        Ok(())
    }))
    .await;
}

/// What an action says, how it is refused, and words of the sentence.
const WRONG: [(&str, &str, &str); 4] = [
    (
        "type: Delete, target: {apiVersion: v1, kind: Service, name: wbe}",
        "TargetMissing",
        "app web makes no Service wbe here (it makes shop-web)",
    ),
    (
        "type: JSONPatch, target: {apiVersion: v1, kind: Service, name: shop-web}, jsonPatch: [{op: remove, path: /spec/none}]",
        "PatchFailed",
        "/spec/none",
    ),
    (
        "type: StrategicMerge, target: {apiVersion: example.com/v1, kind: Route, name: x}, strategicMerge: {spec: {}}",
        "IntentInvalid",
        "strategicMerge",
    ),
    (
        "type: Add, templating: Handlebars, add: {inline: {apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {t: '{{cluster.rack}}'}}}",
        "VariableUnknown",
        "{{cluster.rack}}",
    ),
];
