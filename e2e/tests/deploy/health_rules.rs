//! A custom resource whose readiness only a health rule knows; the rule is that of the book.

use anyhow::{Context as _, Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_crds::conditions::types;
use emco_e2e::bed::Bed;
use emco_e2e::operator::{
    SOON, chart, chart_map, deployed, deployment, is, program, project, refused, root, wait,
};
use emco_e2e::wait::wait_for_some;
use k8s_openapi::api::core::v1::Event;
use kube::runtime::watcher::Config;
use tokio::process::Command;

use super::{AT_WORK, EVERYWHERE, STAGE};

/// The kind, as far as the rule looks at it; it has no conditions.
const KIND: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: elasticsearches.elasticsearch.k8s.elastic.co}
spec:
  group: elasticsearch.k8s.elastic.co
  scope: Namespaced
  names: {kind: Elasticsearch, plural: elasticsearches, singular: elasticsearch, listKind: ElasticsearchList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";
const SEARCH: &str = "
apiVersion: elasticsearch.k8s.elastic.co/v1
kind: Elasticsearch
metadata: {name: {{ .Release.Name }}-search}
spec: {version: 9.1.0}
";
const OBJECT: &str = "elasticsearch.k8s.elastic.co/Elasticsearch/ruled/shop-search";

/// The example of the page.
fn example() -> Result<String> {
    let page = std::fs::read_to_string(root().join("docs/health-rules.md"))?;
    let block = page.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next());
    block.map(str::to_owned).context("the page has no example")
}

/// What the operator of a cluster would say of the object.
async fn phase(bed: &Bed, phase: &str, health: &str) -> Result<()> {
    let status = format!("{{\"status\":{{\"phase\":\"{phase}\",\"health\":\"{health}\"}}}}");
    for edge in ["a", "b"] {
        let patch = ["patch", "elasticsearch", "shop-search", "-n", "ruled", "--subresource=status"];
        let patch = [&patch[..], &["--type=merge", "-p", &status]].concat();
        bed.edge(edge).kubectl().run(&patch).await?;
    }
    Ok(())
}

/// Waits until the deployment is not ready, in these words.
async fn not_ready(bed: &Bed, words: &str) -> Result<()> {
    wait(bed, "ruled", "shop", |dig: &DeploymentIntentGroup| {
        let said = refused(dig.status.as_ref(), types::READY, "NotReady")?;
        if said.contains(OBJECT) && said.contains(words) { Ok(()) } else { Err(said) }
    })
    .await
}

async fn ready(bed: &Bed) -> Result<()> {
    wait(bed, "ruled", "shop", |dig: &DeploymentIntentGroup| is(dig.status.as_ref(), types::READY, "True"))
        .await
}

/// The Warning about the rules that has these words.
async fn warned(bed: &Bed, words: &str) -> Result<()> {
    let about = "involvedObject.name=emco-health-rules,type=Warning,reason=HealthRuleInvalid";
    let events = bed.hub().api::<Event>("emco-system").await?;
    let config = Config::default().fields(about);
    let count = wait_for_some(events, config, SOON, &format!("an Event with {words:?}"), |events| {
        let says = |event: &&Event| event.message.as_ref().is_some_and(|message| message.contains(words));
        match events.values().filter(says).count() {
            0 => Err(format!("{events:?}")),
            count => Ok(count),
        }
    })
    .await?;
    ensure!(count == 1, "{words:?} is said {count} times");
    Ok(())
}

/// What `kubectl emco get` says of the object.
async fn seen(bed: &Bed) -> Result<String> {
    let mut get = Command::new(program()?.with_file_name("kubectl-emco"));
    get.args(["get", "ruled/shop", "--live"]).env("KUBECONFIG", bed.hub().kubectl().kubeconfig());
    let output = bed.hear(&mut get).await?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[tokio::test]
async fn only_its_health_rule_says_when_a_custom_resource_is_ready() {
    let (bed, _) = STAGE.get().await.unwrap();
    let _at_work = AT_WORK.read().await;
    bed.explain(Box::pin(async {
        let hub = bed.hub().kubectl();
        project(bed, "ruled").await?;
        for edge in ["a", "b"] {
            bed.edge(edge).kubectl().apply(KIND).await?;
        }
        let charts = [chart("search", "1.0.0", &[("templates/search.yaml", SEARCH)])?];
        chart_map(bed, "ruled", "charts", &charts).await?;
        hub.apply(&deployment("ruled", "shop", &charts, EVERYWHERE)).await?;
        // Without a rule it is ready by being there, as it has no conditions.
        deployed(bed, "ruled", "shop", 1).await?;

        // The rule takes effect on what is there already, without a restart.
        let rules = example()?;
        hub.apply(&rules).await?;
        not_ready(bed, "its health is unknown: inProgress of its health rule needs the field status").await?;
        ensure!(seen(bed).await?.contains("Unknown"), "{}", seen(bed).await?);
        phase(bed, "ApplyingChanges", "red").await?;
        not_ready(bed, "its health rule says inProgress").await?;
        phase(bed, "Invalid", "red").await?;
        not_ready(bed, "its health rule says failed").await?;
        phase(bed, "Ready", "red").await?;
        not_ready(bed, "its health rule does not say current").await?;
        phase(bed, "Ready", "green").await?;
        ready(bed).await?;
        ensure!(!seen(bed).await?.contains("Unknown"), "{}", seen(bed).await?);

        // What cannot be used makes nothing ready, and says where it is wrong.
        hub.apply(&rules.replace("status.phase == 'Ready' &&", "status.phase == && ")).await?;
        not_ready(bed, "its health rule in ConfigMap emco-health-rules cannot be used").await?;
        warned(bed, "key elastic.yaml, rule of Elasticsearch (elasticsearch.k8s.elastic.co/v1), field current: the expression does not compile").await?;
        hub.apply(&rules.replace("status.phase == 'Ready' && status.health in ['green', 'yellow']", "status.phase"))
            .await?;
        not_ready(bed, "current of its health rule answers text, not true or false").await?;
        warned(bed, "field current: the expression answers text, not true or false").await?;
        let loops = "status.phase.matches('x') || [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18].all(a, [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18].all(b, [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18].all(c, [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18].all(d, true))))";
        hub.apply(&rules.replace("status.phase == 'Ready' && status.health in ['green', 'yellow']", loops)).await?;
        not_ready(bed, "current of its health rule takes more than 100000 steps").await?;
        warned(bed, "field current: the expression takes more than 100000 steps").await?;

        hub.apply(&rules).await?;
        ready(bed).await?;
        hub.run(&["delete", "configmap", "emco-health-rules", "-n", "emco-system"]).await?;
        phase(bed, "Invalid", "red").await?;
        deployed(bed, "ruled", "shop", 1).await.map(drop)
    }))
    .await;
}
