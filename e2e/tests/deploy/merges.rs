//! The original's examples of generic actions, on real clusters: a strategic merge, and a value of each cluster; and which intent changed
//! which field.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use emco_crds::{DeploymentIntentGroup, SyncShard};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{deployed, deployment, wait, wait_in};
use emco_engine::shard::rows;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ListParams;
use serde_json::{Value, json};

use super::{AT_WORK, EVERYWHERE, start, web};

/// A second container and aliases of hosts, a property of the cluster in the place of a value from a URL, and a resource of a ConfigMap.
const INTENT: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: motd, namespace: merging}
data:
  resource.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: motd}, data: {say: hello}}"
---
apiVersion: emco.io/v1alpha1
kind: GenericActionIntent
metadata: {name: patches, namespace: merging}
spec:
  actions:
  - name: second
    app: web
    type: StrategicMerge
    target: {apiVersion: apps/v1, kind: Deployment, selector: {matchLabels: {merged: "true"}}}
    onMissing: Ignore
    strategicMerge: {spec: {paused: true}}
  - name: redis
    app: web
    type: StrategicMerge
    target: {apiVersion: apps/v1, kind: Deployment, name: "{{release}}-web"}
    strategicMerge:
      spec:
        template:
          spec:
            containers: [{name: redis-ctr, image: example.com/redis}, {name: web, env: [{name: MORE, value: "1"}]}]
            hostAliases: [{ip: 127.0.0.1, hostnames: [etcd.local]}]
  - name: rack
    app: web
    type: JSONPatch
    templating: Handlebars
    target: {apiVersion: apps/v1, kind: Deployment, name: "{{release}}-web"}
    jsonPatch: [{op: add, path: /metadata/annotations, value: {rack: "{{cluster.properties.rack}}"}}]
  - {name: motd, app: web, type: Add, add: {from: {kind: ConfigMap, name: motd}}}
"#;

async fn workload(bed: &Bed, edge: &str) -> Result<Value> {
    let found = bed.edge(edge).api::<Deployment>("merging").await?.get("shop-web").await?;
    serde_json::to_value(found).map_err(Into::into)
}

/// Sets that clusters get.
async fn sets(bed: &Bed) -> Result<BTreeSet<String>> {
    let shards = bed.hub().api::<SyncShard>("merging").await?.list(&ListParams::default()).await?;
    let rows = shards.items.iter().flat_map(|shard| rows(&shard.spec, shard.status.as_ref()));
    let targets: Vec<_> = rows.filter_map(|row| row.target).collect();
    Ok(targets.iter().flat_map(|target| target.apps.values()).map(|set| set.0.clone()).collect())
}

async fn rendered(bed: &Bed) -> Result<String> {
    let page = bed.metrics().await?;
    let count = page.lines().find(|line| line.starts_with("emco_render_duration_seconds_count "));
    Ok(count.context("no renderings are counted")?.to_owned())
}

async fn rack(bed: &Bed, cluster: &str, rack: &str) -> Result<()> {
    let patch = json!({"spec": {"properties": {"rack": rack}}}).to_string();
    bed.hub().kubectl().run(&["patch", "ecl", cluster, "-n", "acme", "--type=merge", "-p", &patch]).await?;
    Ok(())
}

#[tokio::test]
async fn strategic_merges_and_values_of_clusters_arrive_and_follow_sources() {
    // Nobody else's charts are to be counted.
    let _alone = AT_WORK.write().await;
    let web = web("1.0.0").unwrap();
    let bed = start("merging", std::slice::from_ref(&web)).await.unwrap();
    bed.explain(Box::pin(async {
        let kubectl = bed.hub().kubectl();
        for cluster in ["a", "b"] {
            rack(bed, cluster, "1").await?;
        }
        kubectl.apply(INTENT).await?;
        let listed = format!("{EVERYWHERE}\nintents: [{{kind: GenericActionIntent, name: patches}}]");
        kubectl.apply(&deployment("merging", "shop", std::slice::from_ref(&web), &listed)).await?;
        deployed(bed, "merging", "shop", 1).await?;
        for edge in ["a", "b"] {
            let found = workload(bed, edge).await?;
            let pods = &found["spec"]["template"]["spec"];
            let names: BTreeSet<_> =
                pods["containers"].as_array().into_iter().flatten().map(|one| one["name"].as_str()).collect();
            ensure!(names == [Some("redis-ctr"), Some("web")].into(), "{edge}: {pods:#}");
            let aliases = json!([{"ip": "127.0.0.1", "hostnames": ["etcd.local"]}]);
            ensure!(pods["hostAliases"] == aliases, "{edge}: {pods:#}");
            ensure!(found["metadata"]["annotations"]["rack"] == "1", "{edge}: {found:#}");
        }
        wait(bed, "merging", "shop", |dig: &DeploymentIntentGroup| {
            let intents = dig.status.iter().flat_map(|status| &status.intents);
            let counts: Vec<_> = intents.map(|of| (of.name.as_str(), of.clusters, of.objects)).collect();
            if counts == [("patches", 2, 4)] { Ok(()) } else { Err(format!("intents count as {counts:?}")) }
        })
        .await?;

        // What stands behind an action arrives.
        let say = r#"{"data": {"resource.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: motd}, data: {say: bye}}"}}"#;
        kubectl.run(&["patch", "cm", "motd", "-n", "merging", "--type=merge", "-p", say]).await?;
        deployed(bed, "merging", "shop", 2).await?;
        for edge in ["a", "b"] {
            let maps = bed.edge(edge).api::<ConfigMap>("merging").await?;
            wait_in(maps, "motd", |map: &ConfigMap| {
                let said = map.data.as_ref().and_then(|data| data.get("say"));
                if said.is_some_and(|said| said == "bye") { Ok(()) } else { Err(format!("{said:?}")) }
            })
            .await?;
        }

        // Another property of one cluster is another set for this cluster, and no rendering.
        let (before, had, untouched) = (rendered(bed).await?, sets(bed).await?, workload(bed, "b").await?);
        rack(bed, "a", "2").await?;
        deployed(bed, "merging", "shop", 3).await?;
        let changed = workload(bed, "a").await?;
        ensure!(changed["metadata"]["annotations"]["rack"] == "2", "{changed:#}");
        let new: Vec<String> = sets(bed).await?.difference(&had).cloned().collect();
        ensure!(new.len() == 1, "new sets: {new:?}");
        ensure!(rendered(bed).await? == before, "a chart was rendered for a property");
        let version = |found: &Value| found["metadata"]["resourceVersion"].clone();
        let other = workload(bed, "b").await?;
        ensure!(version(&other) == version(&untouched), "the other cluster was written to: {other:#}");
        super::delete_dig(bed, "merging", "shop").await
    }))
    .await;
}
