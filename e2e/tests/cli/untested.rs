//! Deployments whose tests cannot be run: without tests, not applied, or rendered before tests were kept.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_crds::{AppContext, DeploymentIntentGroup};
use emco_e2e::bed::{Bed, BedSpec, Parts, PlaneSpec};
use emco_e2e::operator::{
    Operator, chart, chart_map, deployed, deployment, failing, program, project, register, settled, wait,
};
use emco_engine::pack::{self, Pack};
use serde_json::{Value, json};

use super::looks::EVERYWHERE;
use super::rig::{STAGE, run};

const NOTE: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: note}, data: {a: b}}";
/// What is neither Pod nor Job passes by being made.
const SMOKE: &str =
    "{apiVersion: v1, kind: ConfigMap, metadata: {name: smoke, annotations: {helm.sh/hook: test}}}";

#[tokio::test]
async fn a_deployment_without_tests_passes_and_says_so() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(Box::pin(async {
        project(bed, "untested").await?;
        let charts = [chart("web", "1.0.0", &[("templates/note.yaml", NOTE)])?];
        chart_map(bed, "untested", "charts", &charts).await?;
        bed.hub().kubectl().apply(&deployment("untested", "till", &charts, EVERYWHERE)).await?;
        deployed(bed, "untested", "till", 1).await?;
        let said = run(bed, &["test", "untested/till"]).await?;
        said.is(0, &[]);
        assert_eq!(said.out, "untested/till has no tests\n");
        let json = run(bed, &["test", "untested/till", "-o", "json"]).await?.json();
        assert_eq!(json, json!({"deployment": "untested/till", "passed": true, "tests": []}));
        run(bed, &["test", "untested/nothing"])
            .await?
            .is(1, &["there is no deployment intent group nothing"]);
        run(bed, &["test", "untested/till", "--cluster", "acme/z"])
            .await?
            .is(1, &["nothing on cluster acme/z"]);
        Ok(())
    }))
    .await;
}

#[tokio::test]
async fn a_cluster_that_has_not_its_revision_is_not_tested() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(Box::pin(async {
        project(bed, "halfway").await?;
        // Somebody else's, so the revision is never complete on this cluster.
        bed.edge("a").namespace("halfway").await?;
        bed.edge("a").kubectl().apply_to("halfway", NOTE).await?;
        let files = [("templates/note.yaml", NOTE), ("templates/smoke.yaml", SMOKE)];
        let charts = [chart("web", "1.0.0", &files)?];
        chart_map(bed, "halfway", "charts", &charts).await?;
        bed.hub().kubectl().apply(&deployment("halfway", "till", &charts, EVERYWHERE)).await?;
        failing(bed, "halfway", "till", "acme/a", "NotOurs").await?;
        let one = "--for=jsonpath={.status.summary.clusters}=1/2";
        bed.hub().kubectl().run(&["wait", "dig/till", "-n", "halfway", one, "--timeout=60s"]).await?;
        let said = run(bed, &["test", "halfway/till"]).await?;
        said.is(
            3,
            &[
                "acme/a: revision 1 is not completely applied there: `kubectl emco wait halfway/till --for=applied`",
                "Succeeded  acme/b  web  ConfigMap/halfway/smoke",
                "halfway/till: 1 of 1 test passed; 1 problem kept tests from being run",
            ],
        );
        let smoke = ["get", "cm", "smoke", "-n", "halfway", "--ignore-not-found", "-o", "name"];
        assert_eq!(bed.edge("a").kubectl().run(&smoke).await?, "");
        Ok(())
    }))
    .await;
}

/// Makes the newest revision what an operator stored that kept no tests. The operator is not running.
async fn forget_tests(bed: &Bed, namespace: &str, name: &str) -> Result<()> {
    let kubectl = bed.hub().kubectl();
    let get = async |kind: &str, name: &str, namespace: &str| -> Result<Value> {
        Ok(serde_json::from_str(&kubectl.run(&["get", kind, name, "-n", namespace, "-o", "json"]).await?)?)
    };
    let mut context = get("appcontext", name, namespace).await?;
    let read: AppContext = serde_json::from_value(context.clone())?;
    let stored = read.spec.assignment.context("it has no assignment")?.pack;
    let mut map = get("configmap", &stored, "emco-system").await?;
    let text = map["binaryData"][pack::KEY].as_str().context("it holds no pack")?;
    let old = Pack::read(&STANDARD.decode(text)?)?;
    let mut assignment = pack::assignment(&[&old])?;
    let mut kept = 0;
    for assigned in assignment.values_mut().flat_map(BTreeMap::values_mut) {
        kept += usize::from(assigned.tests.take().is_some());
    }
    ensure!(kept > 0, "it kept no tests anyway");
    let made = pack::write_assignment(&read.spec.owner.uid, &assignment)?.remove(0);
    map["binaryData"][pack::KEY] = json!(STANDARD.encode(&made.bytes));
    map["metadata"]["name"] = json!(made.name);
    context["spec"]["assignment"]["pack"] = json!(made.name);
    for reference in context["spec"]["packs"].as_array_mut().context("it names no packs")? {
        if reference["name"] == json!(stored) {
            reference["name"] = json!(made.name);
            reference["digest"] = json!(reference["digest"].as_str().map_or_else(String::new, |digest| {
                let prefix = if digest.starts_with("sha256:") { "sha256:" } else { "" };
                format!("{prefix}{}", made.digest)
            }));
        }
    }
    for object in [&mut map, &mut context] {
        let metadata = object["metadata"].as_object_mut().context("no metadata")?;
        for key in ["uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"] {
            metadata.remove(key);
        }
    }
    kubectl.run_with(&["create", "-f", "-"], &map.to_string()).await?;
    // What a revision says never changes, so it is made anew.
    let free = [
        "patch",
        "appcontext",
        name,
        "-n",
        namespace,
        "--type=merge",
        "-p",
        "{\"metadata\":{\"finalizers\":null}}",
    ];
    kubectl.run(&["delete", "appcontext", name, "-n", namespace, "--wait=false"]).await?;
    kubectl.run(&free).await?;
    kubectl
        .run(&["wait", "--for=delete", &format!("appcontext/{name}"), "-n", namespace, "--timeout=60s"])
        .await?;
    kubectl.run_with(&["create", "-f", "-"], &context.to_string()).await.map(drop)
}

#[tokio::test]
async fn a_revision_of_before_has_no_tests_until_it_is_rendered_again() {
    let bed = Bed::start(BedSpec::bare_hub().with(PlaneSpec::new("a", Parts::ApiServer))).await.unwrap();
    bed.explain(Box::pin(async {
        let program = program()?;
        let mut operator = Operator::start(&bed, &program).await?;
        register(&bed, "acme", &["a"]).await?;
        project(&bed, "shop").await?;
        let files = [("templates/note.yaml", NOTE), ("templates/smoke.yaml", SMOKE)];
        let charts = [chart("web", "1.0.0", &files)?];
        chart_map(&bed, "shop", "charts", &charts).await?;
        let everywhere = "placement: {allOf: [{provider: acme, selector: {}}]}";
        bed.hub().kubectl().apply(&deployment("shop", "till", &charts, everywhere)).await?;
        deployed(&bed, "shop", "till", 1).await?;
        operator.process().terminate().await?;
        operator.process().ended().await;
        forget_tests(&bed, "shop", "dig-till-1").await?;
        let before = "revision 1 was rendered before tests were kept: raise spec.renderSerial";
        run(&bed, &["test", "shop/till"]).await?.is(3, &[before]);

        // The operator of now makes no revision of it by itself.
        operator.replace(&bed).await?;
        run(&bed, &["reconcile", "shop/till"]).await?.is(0, &[]);
        let revision = wait(&bed, "shop", "till", |group: &DeploymentIntentGroup| {
            settled(group).map(|()| group.status.as_ref().and_then(|status| status.revision))
        })
        .await?;
        assert_eq!(revision, Some(1));
        run(&bed, &["test", "shop/till"]).await?.is(3, &[before]);

        let note = ["get", "cm", "note", "-n", "shop", "-o", "jsonpath={.metadata.resourceVersion}"];
        let version = bed.edge("a").kubectl().run(&note).await?;
        let again =
            ["patch", "dig", "till", "-n", "shop", "--type=merge", "-p", "{\"spec\":{\"renderSerial\":1}}"];
        bed.hub().kubectl().run(&again).await?;
        deployed(&bed, "shop", "till", 2).await?;
        run(&bed, &["test", "shop/till"])
            .await?
            .is(0, &["Succeeded  acme/a  web  ConfigMap/shop/smoke", "shop/till: 1 of 1 test passed"]);
        assert_eq!(bed.edge("a").kubectl().run(&note).await?, version, "nothing was written for it");
        Ok(())
    }))
    .await;
}
