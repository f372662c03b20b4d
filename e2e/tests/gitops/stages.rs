//! In: objects of every kind in every stage of their lives, as a real API server has them. Out: what Flux and Argo CD judge.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use emco_crds::conditions::types;
use emco_crds::{CompositeApp, Conditioned as _, DeploymentIntentGroup};
use emco_e2e::bed::{Bed, BedSpec, Parts, PlaneSpec};
use emco_e2e::operator::{
    Operator, chart, chart_map, cluster, deployed, deployment, is, program, project, register, root, secret,
    unless_ended, wait,
};
use serde_json::{Value, json};

use crate::objects::{GATED, MORE, REJECTED, SPARE};
use crate::{ask, held, lives, resource};

/// What Flux's kstatus says, what Argo CD's health check says.
async fn judged(bed: &Bed, objects: &[Value]) -> Result<Vec<(String, String)>> {
    let text = std::fs::read_to_string(root().join("config/argocd/argocd-cm.yaml"))?;
    let config: Value = serde_yaml::from_str(&text)?;
    let scripts: BTreeMap<String, Value> = config["data"]
        .as_object()
        .context("argocd-cm.yaml has no data")?
        .iter()
        .filter_map(|(key, script)| {
            Some((key.strip_prefix("resource.customizations.health.")?.to_owned(), script.clone()))
        })
        .collect();
    assert_eq!(scripts.len(), emco_crds::crds::all().len(), "each kind has its script");
    let flux = ask(bed, "status", &json!({"objects": objects})).await?;
    let argo = ask(bed, "health", &json!({"objects": objects, "scripts": scripts})).await?;
    assert_eq!((flux.len(), argo.len()), (objects.len(), objects.len()));
    let said = |answer: &Value| match answer["error"].as_str() {
        Some(error) => format!("error: {error}"),
        None => answer["status"].as_str().unwrap_or_default().to_owned(),
    };
    Ok(flux.iter().map(said).zip(argo.iter().map(said)).collect())
}

/// Does something to each of these objects with one kubectl for each namespace.
async fn with_all(bed: &Bed, objects: &[Object], args: &[&str]) -> Result<()> {
    let mut spaces: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (kind, namespace, name) in objects {
        spaces.entry(namespace).or_default().push(format!("{}/{name}", resource(kind)));
    }
    for (namespace, names) in spaces {
        let mut call = vec![args[0]];
        call.extend(names.iter().map(String::as_str));
        call.extend(&args[1..]);
        if !namespace.is_empty() {
            call.extend(["-n", namespace]);
        }
        bed.hub().kubectl().run(&call).await?;
    }
    Ok(())
}

/// These objects as the hub has them, in this order.
async fn live(bed: &Bed, objects: &[Object]) -> Result<Vec<Value>> {
    let all = lives(bed, &[]).await?;
    let is = |live: &Value, (kind, namespace, name): &Object| {
        let metadata = &live["metadata"];
        live["kind"] == *kind
            && metadata["namespace"].as_str().unwrap_or_default() == *namespace
            && metadata["name"] == *name
    };
    let found = |object: &Object| {
        all.iter().find(|live| is(live, object)).cloned().with_context(|| format!("{object:?} is not there"))
    };
    objects.iter().map(found).collect()
}

/// Kind, namespace and name on the hub.
type Object = (&'static str, &'static str, String);

/// Kind, namespace, name, and what Flux and Argo CD shall say.
pub type Stage = (&'static str, &'static str, &'static str, &'static str, &'static str);

/// Objects whose stage is told by their conditions.
const STAGES: [Stage; 39] = [
    ("ClusterProvider", "", "acme", "Current", "Healthy"),
    ("ClusterProvider", "", "other", "Failed", "Degraded"),
    ("Cluster", "acme", "a", "Current", "Healthy"),
    // Something may still come by itself: the Secret. Somebody has to make it, though.
    ("Cluster", "spare", "without-secret", "InProgress", "Degraded"),
    ("Cluster", "spare", "again", "Failed", "Degraded"),
    ("GitTarget", "spare", "without-secret", "InProgress", "Degraded"),
    ("Project", "", "shop", "Current", "Healthy"),
    ("Project", "", "taken", "Failed", "Degraded"),
    ("LogicalCloud", "shop", "default", "Current", "Healthy"),
    ("LogicalCloud", "shop", "empty", "InProgress", "Progressing"),
    ("LogicalCloud", "shop", "second", "Failed", "Degraded"),
    ("CompositeApp", "shop", "web", "Current", "Healthy"),
    ("CompositeApp", "shop", "waits", "InProgress", "Progressing"),
    ("CompositeApp", "shop", "broken", "Failed", "Degraded"),
    ("CompositeProfile", "shop", "good", "Current", "Healthy"),
    ("CompositeProfile", "shop", "waits", "InProgress", "Progressing"),
    ("CompositeProfile", "shop", "broken", "Failed", "Degraded"),
    ("GenericActionIntent", "shop", "good", "Current", "Healthy"),
    ("GenericActionIntent", "shop", "waits", "InProgress", "Progressing"),
    ("GenericActionIntent", "shop", "broken", "Failed", "Degraded"),
    ("HardwareIntent", "shop", "good", "Current", "Healthy"),
    ("HardwareIntent", "shop", "broken", "Failed", "Degraded"),
    ("TrafficGroupIntent", "shop", "good", "Current", "Healthy"),
    ("TrafficGroupIntent", "shop", "broken", "Failed", "Degraded"),
    ("DeploymentIntentGroup", "shop", "web", "Current", "Healthy"),
    ("DeploymentIntentGroup", "shop", "waits", "InProgress", "Progressing"),
    ("DeploymentIntentGroup", "shop", "broken", "Failed", "Degraded"),
    ("DeploymentIntentGroup", "shop", "refused", "InProgress", "Degraded"),
    // It runs, and its last change is refused.
    ("DeploymentIntentGroup", "shop", "changed", "Failed", "Degraded"),
    // The same, and the refusal may cure itself: a label that would match, a Secret that is to be made.
    ("DeploymentIntentGroup", "shop", "nowhere", "InProgress", "Progressing"),
    ("DeploymentIntentGroup", "shop", "without-secret", "InProgress", "Progressing"),
    // Ready speaks of what runs, and nothing runs: that is what is wanted, and only Argo CD has a word for it.
    ("DeploymentIntentGroup", "shop", "ended", "InProgress", "Suspended"),
    // Nothing ran before, and nothing is carried out.
    ("DeploymentIntentGroup", "shop", "planned", "InProgress", "Suspended"),
    // A wave waits for its approval, and another one was rejected: both go on when somebody says so.
    ("DeploymentIntentGroup", "shop", "gated", "InProgress", "Progressing"),
    ("DeploymentIntentGroup", "shop", "paused", "InProgress", "Progressing"),
    // No plan has its digest yet.
    ("DeploymentApproval", "shop", "early", "InProgress", "Progressing"),
    ("AppContext", "shop", "dig-web-1", "Current", "Healthy"),
    ("SyncShard", "shop", "of web", "Current", "Healthy"),
    ("SyncShard", "shop", "of refused", "InProgress", "Degraded"),
];

/// The condition that shows that the operator has come to its verdict.
const fn shown_by(flux: &str) -> (&'static str, &'static str) {
    match flux.as_bytes() {
        b"Failed" => (types::STALLED, "True"),
        b"Current" => (types::READY, "True"),
        _ => (types::READY, "False"),
    }
}

/// Makes the objects of [`STAGES`].
async fn make_stages(bed: &Bed) -> Result<()> {
    let kubectl = bed.hub().kubectl();
    register(bed, "acme", &["a"]).await?;
    project(bed, "shop").await?;
    // Granted to nobody: its clusters are in no logical cloud.
    kubectl.apply(SPARE).await?;
    let note = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Release.Name }}\"}\ndata: {say: {{ .Values.say }}}\n";
    let web = chart("web", "1.0.0", &[("values.yaml", "say: one\n"), ("templates/note.yaml", note)])?;
    let port = "apiVersion: v1\nkind: Service\nmetadata: {name: refused}\nspec: {ports: [{port: 99999}]}\n";
    let refused = chart("refused", "1.0.0", &[("templates/service.yaml", port)])?;
    chart_map(bed, "shop", "charts", &[web.clone(), refused.clone()]).await?;
    secret(bed, "spare", "again", &bed.edge("a").kubeconfig()?).await?;
    let everywhere = "placement: {allOf: [{provider: acme, selector: {}}]}";
    for text in [
        deployment("shop", "web", std::slice::from_ref(&web), everywhere),
        deployment("shop", "changed", std::slice::from_ref(&web), everywhere),
        deployment("shop", "nowhere", std::slice::from_ref(&web), everywhere),
        deployment(
            "shop",
            "planned",
            std::slice::from_ref(&web),
            &format!("{everywhere}\ndesiredState: Planned"),
        ),
        deployment("shop", "without-secret", std::slice::from_ref(&web), everywhere),
        deployment("shop", "gated", std::slice::from_ref(&web), &format!("{everywhere}\n{GATED}")),
        deployment("shop", "paused", std::slice::from_ref(&web), &format!("{everywhere}\n{GATED}")),
        deployment("shop", "refused", &[refused], &format!("{everywhere}\nprogressDeadline: 10s")),
        cluster("spare", "again"),
        cluster("spare", "without-secret"),
    ] {
        kubectl.apply(&text).await?;
    }
    // Its logical cloud holds the namespace by then, which `second` asks for as well.
    deployed(bed, "shop", "web", 1).await?;
    kubectl.apply(MORE).await?;
    for (name, change, reason) in [
        ("changed", "spec: {overrideValues: [{app: absent, values: {a: 1}}]}", "AppNotFound"),
        (
            "nowhere",
            "spec: {placement: {allOf: [{provider: acme, selector: {matchLabels: {tier: none}}}]}}",
            "NoClusterMatches",
        ),
        ("without-secret", "spec: {compositeProfileRef: {name: secret}}", "SecretNotFound"),
    ] {
        deployed(bed, "shop", name, 1).await?;
        kubectl.run(&["patch", "dig", name, "-n", "shop", "--type=merge", "-p", change]).await?;
        wait(bed, "shop", name, |dig: &DeploymentIntentGroup| {
            let ready = dig.status.as_ref().and_then(|status| status.condition(types::READY));
            let runs = "revision 1 runs on 1 of 1 cluster";
            let said = ready.is_some_and(|ready| ready.reason == reason && ready.message.starts_with(runs));
            said.then_some(()).ok_or_else(|| format!("{ready:?}"))
        })
        .await?;
    }
    says_waves(bed, "gated", "WaitingForWave").await?;
    let digest = says_waves(bed, "paused", "WaitingForWave").await?;
    kubectl.apply(&REJECTED.replace("DIGEST", &digest)).await?;
    says_waves(bed, "paused", "RolloutPaused").await?;
    wait(bed, "shop", "broken", |app: &CompositeApp| is(app.status.as_ref(), types::STALLED, "True")).await?;
    wait(bed, "shop", "refused", |dig: &DeploymentIntentGroup| {
        let state = dig.status.as_ref().and_then(|status| serde_json::to_value(status.state).ok());
        let failed = state.as_ref().and_then(Value::as_str) == Some("InstantiateFailed");
        failed.then_some(()).ok_or_else(|| format!("its state is {state:?}"))
    })
    .await?;
    held::make(bed, &web).await
}

/// Waits until a rollout says why it does not go on; the digest of its gates.
async fn says_waves(bed: &Bed, name: &str, reason: &str) -> Result<String> {
    wait(bed, "shop", name, |dig: &DeploymentIntentGroup| {
        let status = dig.status.as_ref();
        let ready = status.and_then(|status| status.condition(types::READY));
        let rollout = status.and_then(|status| status.rollout.as_ref());
        let found = rollout.filter(|_| ready.is_some_and(|ready| ready.reason == reason));
        found.map(|rollout| rollout.inputs_digest.clone()).ok_or_else(|| format!("{ready:?}"))
    })
    .await
}

/// The name of a stage's object on the hub: those of shards are made by the operator.
async fn name_of(bed: &Bed, namespace: &str, name: &str) -> Result<String> {
    let Some(owner) = name.strip_prefix("of ") else { return Ok(name.to_owned()) };
    let selector = format!("emco.io/owner-name={owner},emco.io/owner-kind=DeploymentIntentGroup");
    let path = "jsonpath={.items[0].metadata.name}";
    bed.hub().kubectl().run(&["get", "syncshards", "-n", namespace, "-l", &selector, "-o", path]).await
}

#[tokio::test]
async fn flux_and_argo_cd_judge_every_kind_in_every_stage_as_it_is_meant() {
    // No Pod has to run, and nothing that is deleted has to go.
    let edge = PlaneSpec::new("a", Parts::ApiServer);
    let bed = Bed::start(BedSpec::bare_hub().with(edge)).await.unwrap();
    bed.explain(Box::pin(async {
        let operator = Operator::start(&bed, &program()?).await?;
        unless_ended(operator.process(), make_stages(&bed)).await?;
        let stages = [&STAGES[..], &held::STAGES[..]].concat();
        let mut all: Vec<Object> = Vec::new();
        for &(kind, namespace, name, ..) in &stages {
            all.push((kind, namespace, name_of(&bed, namespace, name).await?));
        }
        let mut shown: BTreeMap<_, Vec<Object>> = BTreeMap::new();
        for (object, (.., flux, _)) in all.iter().zip(STAGES) {
            shown.entry(shown_by(flux)).or_default().push(object.clone());
        }
        for ((condition, status), objects) in shown {
            let wanted = format!("--for=condition={condition}={status}");
            with_all(&bed, &objects, &["wait", &wanted, "--timeout=120s"]).await?;
        }
        let objects = live(&bed, &all).await?;
        // A question is in nobody's Git, and is gone before anything judges it.
        let kinds = stages.iter().map(|stage| stage.0).chain(["DeploymentView"]);
        let kinds: std::collections::BTreeSet<_> = kinds.collect();
        assert_eq!(kinds.len(), emco_crds::crds::all().len(), "every kind is there");
        check(&bed, &objects, |at| (stages[at].3, stages[at].4)).await?;

        expressions_of_the_book(&bed, &objects, &stages).await?;

        // A change that nobody has looked at, of whatever was judged to be good or bad.
        operator.kill().await?;
        let mut changed = Vec::new();
        for object in &objects {
            let mut object = object.clone();
            let generation = object["metadata"]["generation"].as_i64().context("no generation")?;
            object["metadata"]["generation"] = json!(generation + 1);
            changed.push(object);
        }
        // Results of a shard are of each row's generation, and an AppContext's spec never changes.
        check(&bed, &changed, |_| ("InProgress", "Progressing")).await?;

        // Deleted, and held by a finalizer; of ours, or of somebody else's where we need none.
        let held = r#"[{"op":"add","path":"/metadata/finalizers","value":["example.com/held"]}]"#;
        with_all(&bed, &all, &["patch", "--type=json", "-p", held]).await?;
        with_all(&bed, &all, &["delete", "--wait=false"]).await?;
        check(&bed, &live(&bed, &all).await?, |_| ("Terminating", "Progressing")).await
    }))
    .await;
}

/// What the page gives to Flux for deployments is true of what it should be true of, also before the operator has looked.
async fn expressions_of_the_book(bed: &Bed, objects: &[Value], stages: &[Stage]) -> Result<()> {
    let page = std::fs::read_to_string(root().join("docs/gitops.md"))?;
    let example = page.split("```yml\n").nth(1).and_then(|rest| rest.split("```").next());
    let example: Value = serde_yaml::from_str(example.context("the page has no example for Flux")?)?;
    let checks = &example["spec"]["healthCheckExprs"][0];
    assert_eq!(
        (&checks["kind"], &checks["apiVersion"]),
        (&json!("DeploymentIntentGroup"), &json!("emco.io/v1alpha1"))
    );
    let expressions = json!({"current": checks["current"], "failed": checks["failed"]});
    let (mut asked, mut wanted) = (Vec::new(), Vec::new());
    for (object, &(kind, _, name, flux, _)) in objects.iter().zip(stages) {
        if kind == "DeploymentIntentGroup" {
            asked.push(object.clone());
            // Nothing runs, as is wanted; or a revision runs, and what is to come waits for people.
            let also = ["ended", "planned", "change", "suspended-change"].contains(&name);
            wanted.push((name, flux == "Current" || also, flux == "Failed"));
        }
    }
    let mut fresh = asked[0].clone();
    fresh.as_object_mut().context("no object")?.remove("status");
    asked.push(fresh);
    wanted.push(("without a status", false, false));
    let answers = ask(bed, "cel", &json!({"expressions": expressions, "objects": asked})).await?;
    let found: Vec<_> = wanted
        .iter()
        .zip(&answers)
        .map(|((name, ..), answer)| (*name, answer["current"] == true, answer["failed"] == true))
        .collect();
    assert_eq!(found, wanted);
    Ok(())
}

async fn check(
    bed: &Bed,
    objects: &[Value],
    wanted: impl Fn(usize) -> (&'static str, &'static str),
) -> Result<()> {
    let text = |at: usize, (flux, argo): (&str, &str)| {
        let object = &objects[at];
        format!("{} {}: {flux}, {argo}", object["kind"], object["metadata"]["name"])
    };
    let found = judged(bed, objects).await?;
    let found: Vec<String> =
        found.iter().enumerate().map(|(at, (flux, argo))| text(at, (flux, argo))).collect();
    let wanted: Vec<String> = (0..objects.len()).map(|at| text(at, wanted(at))).collect();
    assert_eq!(found, wanted);
    Ok(())
}
