//! In: deployments that cannot be, and deletions that must wait. Out: what would have to change, and who holds what.

use std::collections::BTreeMap;

use anyhow::ensure;
use emco_crds::conditions::types;
use emco_crds::{
    Cluster, ClusterProvider, CompositeApp, Conditioned, DeploymentIntentGroup, LogicalCloud, Project,
};
use emco_e2e::bed::serial;
use emco_e2e::operator::{SOON, chart, cluster, deployed, deployment, is, ours, refused, secret, wait};
use emco_e2e::package::Package;
use emco_e2e::wait::wait_until_gone;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::ObjectMeta;

use super::{EVERYWHERE, NOTE, dig_says, has, of_one_file, provider, start};

/// Whether a deletion is held, and by whom.
fn held<S: Conditioned>(status: Option<&S>, by: &str) -> Result<(), String> {
    let condition = status.and_then(|status| status.condition(types::IN_USE)).ok_or("it has no InUse")?;
    let named = condition.reason == "HeldBy" && condition.message.contains(by);
    if named { Ok(()) } else { Err(format!("{condition:?}")) }
}

#[tokio::test]
async fn a_selector_that_matches_nothing_says_what_would_have_to_change() {
    let note = of_one_file("web", NOTE).unwrap();
    let bed = start("nomatch", std::slice::from_ref(&note)).await;
    bed.explain(async {
        let placement =
            "placement: {allOf: [{provider: acme, selector: {matchLabels: {tier: edge, disk: nvme}}}]}";
        bed.hub().kubectl().apply(&deployment("nomatch", "shop", &[note], placement)).await?;
        let message = dig_says(bed, "nomatch", types::PLACED, "NoClusterMatches").await?;
        has(&message, &["app web", "nearest is acme/a", "needs label disk=nvme"]);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn an_object_of_somebody_else_on_the_edge_is_named_and_not_touched() {
    let note = of_one_file("web", NOTE).unwrap();
    let bed = start("foreign", std::slice::from_ref(&note)).await;
    bed.explain(async {
        wait(bed, "foreign", "default", |cloud: &LogicalCloud| {
            is(cloud.status.as_ref(), types::READY, "True")
        })
        .await?;
        let maps = bed.edge("a").api::<ConfigMap>("foreign").await?;
        let theirs = ConfigMap {
            metadata: ObjectMeta { name: Some("note".to_owned()), ..ObjectMeta::default() },
            data: Some(BTreeMap::from([("say".to_owned(), "mine".to_owned())])),
            ..ConfigMap::default()
        };
        let before = maps.create(&kube::api::PostParams::default(), &theirs).await?;
        bed.hub().kubectl().apply(&deployment("foreign", "shop", &[note], EVERYWHERE)).await?;
        let failing = wait(bed, "foreign", "shop", |dig: &DeploymentIntentGroup| {
            let failing = dig.status.as_ref().map(|status| status.failing.clone()).unwrap_or_default();
            let found =
                failing.iter().find(|one| one.cluster == "acme/a" && one.reason == "NotOurs").cloned();
            found.ok_or_else(|| format!("failing: {failing:?}"))
        })
        .await?;
        has(&failing.message, &["note", "was not made by EMCO"]);
        assert_eq!(maps.get("note").await?, before, "it is untouched");
        maps.delete("note", &kube::api::DeleteParams::default()).await?;
        // Looked at again by itself, but slowly; somebody who cured it says so.
        let now = ["annotate", "dig", "shop", "-n", "foreign", "emco.io/requestedAt=now"];
        bed.hub().kubectl().run(&now).await?;
        deployed(bed, "foreign", "shop", 1).await?;
        assert_eq!(ours(bed, "a", "configmaps", Some("foreign")).await?, ["ConfigMap/foreign/note"]);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn both_deployments_of_one_release_say_so_and_the_second_is_woken() {
    let note = of_one_file("web", NOTE).unwrap();
    let bed = start("contested", std::slice::from_ref(&note)).await;
    bed.explain(async {
        let hub = bed.hub().kubectl();
        let notes = std::slice::from_ref(&note);
        let spec = "release: shop
placement: {allOf: [{provider: acme, cluster: a}, {provider: acme, cluster: b}]}";
        hub.apply(&deployment("contested", "shop", notes, spec)).await?;
        deployed(bed, "contested", "shop", 1).await?;
        hub.apply(&deployment("contested", "again", notes, spec)).await?;
        let says = |wanted: bool| {
            wait(bed, "contested", "shop", move |dig: &DeploymentIntentGroup| {
                let ready = dig.status.as_ref().and_then(|status| status.condition(types::READY));
                let ready = ready.ok_or("it has no Ready")?;
                let also = "; release shop in namespace contested on 2 clusters (acme/a, acme/b) is also wanted by \
                            DeploymentIntentGroup again, which does not get it";
                let is_said = if wanted { ready.message.ends_with(also) } else { !ready.message.contains("wanted") };
                if is_said && ready.status == "True" { Ok(()) } else { Err(format!("{ready:?}")) }
            })
        };
        says(true).await?;
        let again = |dig: &DeploymentIntentGroup| refused(dig.status.as_ref(), types::READY, "DuplicateRelease");
        wait(bed, "contested", "again", again).await?;
        hub.run(&["delete", "dig", "again", "-n", "contested"]).await?;
        says(false).await?;
        // It is written after the status that it is about, and before the next one.
        let events = ["get", "events", "-n", "contested", "-o", "jsonpath={.items[*].reason}"];
        ensure!(hub.run(&events).await?.matches("ReleaseContested").count() == 1, "one Event");
        hub.apply(&deployment("contested", "again", notes, spec)).await?;
        wait(bed, "contested", "again", again).await?;
        hub.run(&["delete", "dig", "shop", "-n", "contested"]).await?;
        deployed(bed, "contested", "again", 1).await.map(drop)
    })
    .await;
}

#[tokio::test]
async fn what_is_in_use_stays_with_its_holders_named_and_goes_when_they_are_gone() {
    let note = of_one_file("web", NOTE).unwrap();
    let bed = start("held", std::slice::from_ref(&note)).await;
    let _turn = serial().await;
    bed.explain(async {
        provider(bed, "holding", "held").await?;
        secret(bed, "holding", "d", &bed.edge("d").kubeconfig()?).await?;
        bed.hub().kubectl().apply(&cluster("holding", "d")).await?;
        let placement = "placement: {allOf: [{provider: holding, cluster: d}]}";
        bed.hub().kubectl().apply(&deployment("held", "shop", &[note], placement)).await?;
        deployed(bed, "held", "shop", 1).await?;
        let hub = bed.hub().kubectl();
        for [kind, name, namespace] in [
            ["capp", "shop", "held"],
            ["lc", "default", "held"],
            ["eproj", "held", "default"],
            ["ecl", "d", "holding"],
            ["clusterproviders.emco.io", "holding", "default"],
        ] {
            hub.run(&["delete", kind, name, "-n", namespace, "--wait=false"]).await?;
        }
        let dig = "DeploymentIntentGroup/held/shop";
        wait(bed, "held", "shop", |app: &CompositeApp| held(app.status.as_ref(), dig)).await?;
        wait(bed, "held", "default", |cloud: &LogicalCloud| held(cloud.status.as_ref(), dig)).await?;
        wait(bed, "holding", "d", |cluster: &Cluster| held(cluster.status.as_ref(), dig)).await?;
        let client = bed.hub().client().await?;
        let (projects, providers): (Api<Project>, Api<ClusterProvider>) =
            (Api::all(client.clone()), Api::all(client));
        emco_e2e::operator::wait_in(projects.clone(), "held", |project| held(project.status.as_ref(), dig))
            .await?;
        emco_e2e::operator::wait_in(providers.clone(), "holding", |provider| {
            held(provider.status.as_ref(), "Cluster/holding/d")
        })
        .await?;
        assert_eq!(ours(bed, "d", "configmaps", Some("held")).await?, ["ConfigMap/held/note"], "it runs on");

        hub.run(&["delete", "dig", "shop", "-n", "held", "--wait=false"]).await?;
        wait_until_gone(projects, "held", SOON).await?;
        wait_until_gone(providers, "holding", SOON).await?;
        ensure!(ours(bed, "d", "configmaps,namespaces", None).await?.is_empty());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_field_of_a_later_version_is_answered_instead_of_ignored() {
    let note = of_one_file("web", NOTE).unwrap();
    let bed = start("early", std::slice::from_ref(&note)).await;
    bed.explain(async {
        let spec = EVERYWHERE.replacen("placement: {", "placement: {weights: [{name: cost, weight: 1}], ", 1);
        bed.hub().kubectl().apply(&deployment("early", "shop", std::slice::from_ref(&note), &spec)).await?;
        let message = dig_says(bed, "early", types::READY, "NotSupportedYet").await?;
        has(&message, &["spec.placement.weights is not supported yet: remove the field"]);
        bed.hub().kubectl().apply(&deployment("early", "shop", &[note], EVERYWHERE)).await?;
        deployed(bed, "early", "shop", 1).await.map(drop)
    })
    .await;
}

const PROFILE: &str = "{apiVersion: emco.io/v1alpha1, kind: CompositeProfile, metadata: {name: prod, namespace: missing}, spec: \
                       {apps: [{app: web, values: {say: prod}}]}}";

#[tokio::test]
async fn what_a_deployment_refers_to_is_named_while_it_is_missing_and_its_arrival_is_noticed() {
    let web = web().unwrap();
    let bed = start("missing", std::slice::from_ref(&web)).await;
    bed.explain(async {
        let kubectl = bed.hub().kubectl();
        let spec = format!("{EVERYWHERE}\ncompositeProfileRef: {{name: prod}}");
        let both = deployment("missing", "shop", std::slice::from_ref(&web), &spec);
        let (app, group) = both.split_once("---").unwrap_or_default();
        kubectl.apply(group).await?;
        let resolved = async |reason: &str| dig_says(bed, "missing", types::RESOLVED, reason).await;
        has(&resolved("CompositeAppNotFound").await?, &["CompositeApp shop", "spec.compositeAppRef"]);
        kubectl.apply(app).await?;
        has(
            &resolved("CompositeProfileNotFound").await?,
            &["CompositeProfile prod", "spec.compositeProfileRef"],
        );
        kubectl.apply(PROFILE).await?;
        deployed(bed, "missing", "shop", 1).await?;

        // What runs stays while something is missing that it would need to change.
        let later = spec.replace("prod", "later");
        kubectl.apply(&deployment("missing", "shop", std::slice::from_ref(&web), &later)).await?;
        has(&resolved("CompositeProfileNotFound").await?, &["CompositeProfile later"]);
        for edge in ["a", "b"] {
            assert_eq!(ours(bed, edge, "configmaps", Some("missing")).await?, ["ConfigMap/missing/prod"]);
        }
        kubectl.apply(&PROFILE.replace("prod", "later")).await?;
        deployed(bed, "missing", "shop", 2).await?;
        assert_eq!(ours(bed, "a", "configmaps", Some("missing")).await?, ["ConfigMap/missing/later"]);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_workload_that_does_not_become_ready_is_counted_by_app_and_cluster_and_what_ran_stays() {
    let web = web().unwrap();
    let bed = start("unready", std::slice::from_ref(&web)).await;
    bed.explain(async {
        let apply = async |spec: &str| {
            bed.hub().kubectl().apply(&deployment("unready", "shop", std::slice::from_ref(&web), spec)).await
        };
        apply(EVERYWHERE).await?;
        deployed(bed, "unready", "shop", 1).await?;
        // There is no node for a Pod on these edges.
        let on_b = |values: &str| {
            let one =
                format!("[{{app: web, clusters: [{{provider: acme, cluster: b}}], values: {{{values}}}}}]");
            format!("{EVERYWHERE}\nprogressDeadline: 3s\noverrideValues: {one}")
        };
        apply(&on_b("replicas: 1")).await?;
        let not_ready = Box::pin(dig_says(bed, "unready", types::READY, "NotReady"));
        has(&not_ready.await?, &["1 of 2 clusters ready"]);
        let dig = bed.hub().api::<DeploymentIntentGroup>("unready").await?.get("shop").await?;
        let status = dig.status.unwrap_or_default();
        let app = status.apps.first().map(|app| (app.name.as_str(), app.clusters, app.ready));
        assert_eq!(app, Some(("web", 2, 1)), "{status:?}");
        assert_eq!(status.ready.map(|counts| (counts.ready, counts.not_ready)), Some((3, 1)));

        // What the next revision does not have stays until that one is ready.
        apply(&on_b("say: two, replicas: 1")).await?;
        let message = wait(bed, "unready", "shop", |dig: &DeploymentIntentGroup| {
            let message = refused(dig.status.as_ref(), types::READY, "ProgressDeadlineExceeded")?;
            if message.contains("no progress") { Ok(message) } else { Err(message) }
        })
        .await?;
        has(
            &message,
            &[
                "1 of 2 clusters ready; 1 failed; acme/b",
                "apps/Deployment/unready/web",
                "no progress for 3 seconds: 0 of 1 ",
                "work goes on",
            ],
        );
        let both = ["ConfigMap/unready/one", "ConfigMap/unready/two"];
        assert_eq!(ours(bed, "b", "configmaps", Some("unready")).await?, both);
        assert_eq!(ours(bed, "a", "configmaps", Some("unready")).await?, ["ConfigMap/unready/one"]);
        // What is mended goes on by itself.
        apply(&on_b("say: two, replicas: 0")).await?;
        deployed(bed, "unready", "shop", 4).await?;
        assert_eq!(ours(bed, "b", "configmaps", Some("unready")).await?, ["ConfigMap/unready/two"]);
        Ok(())
    })
    .await;
}

/// A ConfigMap whose name its values say, and a Deployment of as many Pods as they say.
fn web() -> anyhow::Result<Package> {
    let template = "
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Values.say }}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: example.com/web}]}
";
    chart("web", "1.0.0", &[("values.yaml", "say: one\nreplicas: 0\n"), ("templates/web.yaml", template)])
}
