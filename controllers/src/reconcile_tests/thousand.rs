//! A revision for 1,000 clusters, each with its own values and a random password: how many objects and bytes it is.

use std::collections::BTreeSet;

use emco_crds::OwnerKind;
use serde_json::{Value, json};

use super::rig::*;
use super::shop::packed;
use crate::object::Owner;
use crate::object::context::Outcome;
use crate::reconcile::composite_app;
use crate::reconcile::deployment;
use crate::store;

const CLUSTERS: usize = 1000;
const MOST_OBJECTS: usize = 20;
const MOST_BYTES: usize = 5 * 1024 * 1024;
/// What a revision is stored in.
const REVISION: [&str; 4] = ["AppContext", "ConfigMap", "Secret", "SyncShard"];

/// Four objects of the usual kinds; two of them differ per cluster, one by a password. (The benchmark has twenty.)
fn template() -> String {
    let mut all = String::from(
        "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {password: {{ randAlphaNum 32 | quote }}}\n",
    );
    for n in 0..3 {
        let site = if n == 0 { "{{ .Values.site | quote }}" } else { "everywhere" };
        all.push_str(&format!(
            "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web-{n}}}\nspec:\n  replicas: 2\n  selector: {{matchLabels: {{app: web-{n}}}}}\n  template:\n    metadata: {{labels: {{app: web-{n}}}}}\n    spec:\n      containers:\n      - name: web\n        image: registry.example.com/shop/web:1.0.{n}\n        env: [{{name: SITE, value: {site}}}, {{name: MODE, value: production}}]\n        resources: {{requests: {{cpu: 100m, memory: 64Mi}}, limits: {{memory: 128Mi}}}}\n        readinessProbe: {{httpGet: {{path: /ready, port: 8080}}, periodSeconds: 5}}\n"
        ));
    }
    all
}

fn objects() -> Vec<Value> {
    let chart =
        packed("web", "1.0.0", &[("values.yaml", "site: none\n"), ("templates/web.yaml", &template())]);
    let mut all = vec![
        namespace("acme", &json!({"emco.io/provider": "acme"})),
        namespace("team-a", &json!({"emco.io/project": "team-a"})),
        emco(
            "ClusterProvider",
            None,
            "acme",
            &json!({"grants": [{"name": "all", "projects": ["team-a"], "maxLevel": "Admin"}]}),
        ),
        emco("Project", None, "team-a", &json!({})),
        emco(
            "LogicalCloud",
            Some("team-a"),
            "default",
            &json!({"level": "Admin", "clusters": [{"provider": "acme", "selector": {}}]}),
        ),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "charts", "namespace": "team-a"},
            "binaryData": {"web.tgz": chart}}),
        emco(
            "CompositeApp",
            Some("team-a"),
            "shop",
            &json!({"apps": [{"name": "web", "chart": {"configMapRef": {"name": "charts", "key": "web.tgz"}}}]}),
        ),
        deployment_of("1"),
    ];
    all.extend((0..CLUSTERS).map(|n| cluster_object(&format!("edge-{n:04}"))));
    all
}

fn deployment_of(version: &str) -> Value {
    emco(
        "DeploymentIntentGroup",
        Some("team-a"),
        "shop",
        &json!({
            "compositeAppRef": {"name": "shop"}, "logicalCloudRef": {"name": "default"},
            "placement": {"allOf": [{"selector": {}}]},
            "overrideValues": [{"app": "web", "templating": "Handlebars", "values": {"site": format!("{{{{cluster.name}}}}-v{version}")}}],
        }),
    )
}

async fn plan(rig: &mut Rig) {
    for _ in 0..3 {
        rig.see();
        assert_eq!(deployment::reconcile(&rig.ctx, "team-a", "shop").await.unwrap(), Outcome::Settled);
    }
}

/// Objects of a kind that were stored since, with their sizes.
fn stored(rig: &Rig, before: &BTreeSet<String>, kinds: &[&str]) -> Vec<(String, usize)> {
    let objects = rig.hub.objects();
    let new = objects.iter().filter(|(key, object)| {
        !before.contains(*key) && kinds.contains(&object["kind"].as_str().unwrap_or_default())
    });
    new.map(|(key, object)| (key.clone(), object.to_string().len())).collect()
}

/// A hub with all of it, on which nothing was planned yet.
async fn hub(more: &[Value]) -> Rig {
    let mut rig = Rig::new();
    for object in objects().iter().chain(more) {
        rig.hub.put("test", object);
    }
    for n in 0..CLUSTERS {
        rig.answers(&format!("edge-{n:04}"), &format!("00000000-0000-0000-0000-00000000{n:04}"));
    }
    for _ in 0..2 {
        rig.see();
        composite_app::reconcile(&rig.ctx, "team-a", "shop").await.unwrap();
    }
    rig
}

/// What an intent adds is one set for all of them, and costs next to nothing.
#[tokio::test]
async fn an_intent_of_a_thousand_clusters_is_one_set_and_hardly_a_write() {
    let policy = json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "closed"},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress"]}});
    let actions = json!([{"name": "closed", "type": "Add", "add": {"inline": policy}}]);
    let intent = emco("GenericActionIntent", Some("team-a"), "closed", &json!({"actions": actions}));
    let mut listing = deployment_of("1");
    listing["spec"]["intents"] = json!([{"kind": "GenericActionIntent", "name": "closed"}]);
    let mut counted = Vec::new();
    for more in [vec![], vec![intent, listing]] {
        let mut rig = hub(&more).await;
        rig.hub.take_seen();
        plan(&mut rig).await;
        let written = rig.hub.writes().len();
        let dig = rig.ctx.stores.digs.state().pop().unwrap();
        let owner = Owner::of(&rig.ctx, OwnerKind::DeploymentIntentGroup, dig.as_ref());
        let read = store::newest(&rig.ctx, &owner).await.unwrap().unwrap();
        counted.push((written, read.running.sets.len()));
    }
    let [(without, sets), (with, more_sets)] = counted[..] else { panic!("{counted:?}") };
    assert_eq!((sets, more_sets), (CLUSTERS, CLUSTERS + 1));
    assert!(with * 100 <= without * 101, "{without} writes without it, {with} with it");
}

#[tokio::test]
async fn a_revision_of_a_thousand_clusters_is_at_most_twenty_objects_and_five_mebibytes() {
    let mut rig = hub(&[]).await;
    for revision in 1..=2 {
        let before: BTreeSet<String> = rig.hub.objects().into_keys().collect();
        rig.hub.put("test", &deployment_of(&revision.to_string()));
        plan(&mut rig).await;
        let made = stored(&rig, &before, &REVISION);
        let bytes: usize = made.iter().map(|(_, bytes)| bytes).sum();
        assert!(made.len() <= MOST_OBJECTS, "revision {revision}: {} objects: {made:#?}", made.len());
        assert!(bytes <= MOST_BYTES, "revision {revision}: {bytes} bytes: {made:#?}");
        let shards = stored(&rig, &BTreeSet::new(), &["SyncShard"]);
        assert!(shards.len() > 1 && shards.iter().all(|(_, bytes)| *bytes <= 100 * 1024), "{shards:#?}");
    }
    // Another process reads it back: every cluster has a set of its own.
    rig.restart();
    rig.see();
    let dig = rig.ctx.stores.digs.state().pop().unwrap();
    let owner = Owner::of(&rig.ctx, OwnerKind::DeploymentIntentGroup, dig.as_ref());
    let read = store::newest(&rig.ctx, &owner).await.unwrap().unwrap();
    assert_eq!((read.spec.revision, read.running.sets.len()), (2, CLUSTERS));
    let passwords: BTreeSet<String> = read
        .running
        .sets
        .values()
        .flat_map(|set| &set.manifests)
        .filter_map(|manifest| manifest.json.pointer("/data/password").map(Value::to_string))
        .collect();
    assert_eq!(passwords.len(), CLUSTERS, "each has its own password");
}
