//! In: the operator on a hub, two real edges, and charts. Out: what a tenant applies runs there, follows every edit, and goes.

mod actions;
mod confined;
mod derived;
mod edited;
mod facts;
mod fails_on_upgrade;
mod generated;
mod health_rules;
mod lifts;
mod merges;
mod on_demand;
mod ordered;
mod passwords;
mod privileged;
mod redefined;
mod standard;
mod tenant;
mod traffic;
mod unready;

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_crds::conditions::types;
use emco_crds::state::State;
use emco_e2e::audit::AuditEvent;
use emco_e2e::bed::{Audit, Bed, BedSpec, Parts, PlaneSpec};
use emco_e2e::operator::{
    SOON, SharedOperator, chart, chart_map, deployed, deployment, ours, project, refused, wait,
};
use emco_e2e::package::Package;
use emco_e2e::wait::wait_until_gone;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::jiff::Timestamp;
use tokio::sync::RwLock;

static STAGE: SharedOperator = SharedOperator::new(
    || {
        let edge = |name| PlaneSpec::edge(name).audit(Audit::Writes);
        let hub = PlaneSpec::new("hub", Parts::ApiServer).audit(Audit::Writes);
        BedSpec::default().with(hub).with(edge("a")).with(edge("b"))
    },
    &["a", "b"],
);
/// Tests that change something read; the one that looks at what happens at rest writes.
static AT_WORK: RwLock<()> = RwLock::const_new(());

const KINDS: &str = "configmaps,services,deployments.apps,jobs.batch";
const EVERYWHERE: &str = "placement: {allOf: [{provider: acme, selector: {matchLabels: {tier: edge}}}]}";

/// A hook, a ConfigMap named by the values, a Service and a Deployment.
fn web(version: &str) -> Result<Package> {
    chart(
        "web",
        version,
        &[
            ("values.yaml", "page: one\nreplicas: 1\n"),
            (
                "templates/hook.yaml",
                r#"
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-prepare
  annotations: {helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-delete-policy: before-hook-creation}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: prepare, image: example.com/prepare}]
"#,
            ),
            (
                "templates/web.yaml",
                r"
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-page-{{ .Values.page }}}
data: {page: {{ .Values.page | quote }}}
---
apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name }}-web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}-web}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: example.com/web, env: [{name: PAGE, value: {{ .Values.page | quote }}}]}
",
            ),
        ],
    )
}

/// One ConfigMap.
fn note(name: &str) -> Result<Package> {
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-{{ .Chart.Name }}}\ndata: {say: {{ .Values.say | quote }}}\n";
    chart(name, "1.0.0", &[("values.yaml", "say: nothing\n"), ("templates/note.yaml", template)])
}

/// What `web` leaves on an edge in `namespace`.
fn web_objects(namespace: &str, page: &str) -> Vec<String> {
    ["ConfigMap/NS/shop-page-", "Deployment/NS/shop-web", "Job/NS/shop-prepare", "Service/NS/shop-web"]
        .iter()
        .map(|name| name.replace("NS", namespace).replace("page-", &format!("page-{page}")))
        .collect()
}

async fn start(name: &str, charts: &[Package]) -> Result<&'static Bed> {
    let (bed, _) = STAGE.get().await?;
    project(bed, name).await?;
    chart_map(bed, name, "charts", charts).await?;
    Ok(bed)
}

async fn here(bed: &Bed, plane: &str, namespace: &str) -> Result<Vec<String>> {
    ours(bed, plane, KINDS, Some(namespace)).await
}

async fn delete_dig(bed: &Bed, namespace: &str, name: &str) -> Result<()> {
    bed.hub().kubectl().run(&["delete", "dig", name, "-n", namespace, "--wait=false"]).await?;
    wait_until_gone(bed.hub().api::<DeploymentIntentGroup>(namespace).await?, name, SOON).await
}

#[tokio::test]
async fn two_objects_of_a_tenant_bring_an_app_with_a_hook_to_two_edges_and_deletion_takes_it_back() {
    let _working = AT_WORK.read().await;
    let web = web("1.0.0").unwrap();
    let bed = start("hooked", std::slice::from_ref(&web)).await.unwrap();
    bed.explain(async {
        bed.hub().kubectl().apply(&deployment("hooked", "shop", &[web], EVERYWHERE)).await?;
        let dig = deployed(bed, "hooked", "shop", 1).await?;
        let status = dig.status.context("no status")?;
        assert_eq!(status.state, Some(State::Instantiated));
        assert_eq!(status.clusters.map(|clusters| (clusters.total, clusters.ready)), Some((2, 2)));
        for edge in ["a", "b"] {
            assert_eq!(here(bed, edge, "hooked").await?, web_objects("hooked", "one"), "{edge}");
            let hook = bed.edge(edge).api::<Job>("hooked").await?.get("shop-prepare").await?;
            assert_eq!(hook.status.and_then(|status| status.succeeded), Some(1), "the hook ran on {edge}");
        }
        let line = bed.hub().kubectl().run(&["get", "dig", "-n", "hooked", "--no-headers"]).await?;
        assert!(line.contains("2/2"), "{line}");

        delete_dig(bed, "hooked", "shop").await?;
        for edge in ["a", "b"] {
            assert_eq!(here(bed, edge, "hooked").await?, Vec::<String>::new(), "{edge}");
        }
        let left =
            bed.hub().kubectl().run(&["get", "appcontexts,syncshards", "-n", "hooked", "-o", "name"]).await?;
        assert!(!left.contains("dig-shop"), "{left}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn edited_values_are_a_new_revision_and_what_it_does_not_have_goes() {
    let _working = AT_WORK.read().await;
    let web = web("1.0.0").unwrap();
    let bed = start("edited", std::slice::from_ref(&web)).await.unwrap();
    bed.explain(async {
        let values = |page: &str| {
            format!("{EVERYWHERE}\noverrideValues: [{{app: web, clusters: [{{selector: {{}}}}], values: {{page: {page}}}}}]")
        };
        let kubectl = bed.hub().kubectl();
        kubectl.apply(&deployment("edited", "shop", std::slice::from_ref(&web), &values("red"))).await?;
        deployed(bed, "edited", "shop", 1).await?;
        assert_eq!(here(bed, "a", "edited").await?, web_objects("edited", "red"));

        kubectl.apply(&deployment("edited", "shop", std::slice::from_ref(&web), &values("blue"))).await?;
        let dig = deployed(bed, "edited", "shop", 2).await?;
        let status = dig.status.context("no status")?;
        assert_eq!((status.revision, status.state), (Some(2), Some(State::Updated)));
        assert_eq!(status.history.iter().map(|entry| entry.revision).collect::<Vec<_>>(), [2, 1]);
        for edge in ["a", "b"] {
            assert_eq!(here(bed, edge, "edited").await?, web_objects("edited", "blue"), "{edge}");
        }
        // The old page was there until the new Deployment had been written.
        let events = bed.edge("a").audit()?;
        let when = |verb: &str, resource: &str, name: &str, last: bool| {
            let mut found = events.iter().filter(|event| {
                event.user == "emco"
                    && event.namespace == "edited"
                    && (event.verb.as_str(), event.resource.as_str(), event.name.as_str()) == (verb, resource, name)
            });
            let event = if last { found.next_back() } else { found.next() };
            event.map(|event| event.answered).with_context(|| format!("nobody did {verb} {resource} {name}"))
        };
        assert!(
            when("delete", "configmaps", "shop-page-red", false)? > when("patch", "deployments", "shop-web", true)?
        );
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_cluster_that_loses_its_label_is_left_and_one_that_gets_it_is_joined() {
    let _working = AT_WORK.read().await;
    let note = note("note").unwrap();
    let bed = start("labelled", std::slice::from_ref(&note)).await.unwrap();
    bed.explain(async {
        let kubectl = bed.hub().kubectl();
        kubectl.run(&["label", "ecl", "-n", "acme", "a", "b", "labelled=yes"]).await?;
        let placement = "placement: {allOf: [{selector: {matchLabels: {labelled: 'yes'}}}]}";
        kubectl.apply(&deployment("labelled", "shop", &[note], placement)).await?;
        deployed(bed, "labelled", "shop", 1).await?;
        let all = ["ConfigMap/labelled/shop-note".to_owned()];
        assert_eq!(
            (here(bed, "a", "labelled").await?, here(bed, "b", "labelled").await?),
            (all.to_vec(), all.to_vec())
        );

        kubectl.run(&["label", "ecl", "-n", "acme", "b", "labelled-"]).await?;
        deployed(bed, "labelled", "shop", 2).await?;
        wait_until_gone(bed.edge("b").api::<ConfigMap>("labelled").await?, "shop-note", SOON).await?;
        assert_eq!(here(bed, "a", "labelled").await?, all);

        kubectl.run(&["label", "ecl", "-n", "acme", "b", "labelled=yes"]).await?;
        deployed(bed, "labelled", "shop", 3).await?;
        assert_eq!(here(bed, "b", "labelled").await?, all);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_terminated_deployment_leaves_the_edges_and_comes_back_when_it_is_wanted_again() {
    let _working = AT_WORK.read().await;
    let note = note("note").unwrap();
    let bed = start("switched", std::slice::from_ref(&note)).await.unwrap();
    bed.explain(async {
        bed.hub().kubectl().apply(&deployment("switched", "shop", &[note], EVERYWHERE)).await?;
        deployed(bed, "switched", "shop", 1).await?;
        let desire = async |state: &str| {
            let patch = format!("{{\"spec\":{{\"desiredState\":\"{state}\"}}}}");
            let args = ["patch", "dig", "shop", "-n", "switched", "--type=merge", "-p", &patch];
            bed.hub().kubectl().run(&args).await
        };
        desire("Terminated").await?;
        wait(bed, "switched", "shop", |dig: &DeploymentIntentGroup| {
            refused(dig.status.as_ref(), types::READY, "Terminated")
        })
        .await?;
        for edge in ["a", "b"] {
            assert_eq!(here(bed, edge, "switched").await?, Vec::<String>::new(), "{edge}");
        }
        desire("Instantiated").await?;
        deployed(bed, "switched", "shop", 1).await?;
        for edge in ["a", "b"] {
            assert_eq!(here(bed, edge, "switched").await?, ["ConfigMap/switched/shop-note"], "{edge}");
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn nothing_is_written_at_rest() {
    let web = web("1.0.0").unwrap();
    let bed = start("resting", std::slice::from_ref(&web)).await.unwrap();
    let _alone = AT_WORK.write().await;
    bed.explain(async {
        bed.hub().kubectl().apply(&deployment("resting", "shop", &[web], EVERYWHERE)).await?;
        deployed(bed, "resting", "shop", 1).await?;
        let written_since = |from: Timestamp| -> Result<Vec<AuditEvent>> {
            let mut found = Vec::new();
            for plane in ["hub", "a", "b"] {
                // What other tests let go of is marked a minute later.
                let litter =
                    |event: &AuditEvent| event.name.starts_with("emco-pack-") && event.verb == "patch";
                let by_us = |event: &AuditEvent| {
                    event.user == "emco" && event.is_write() && !event.is_lease() && !litter(event)
                };
                found.extend(
                    bed.edge(plane)
                        .audit()?
                        .into_iter()
                        .filter(|event| by_us(event) && event.answered > from),
                );
            }
            Ok(found)
        };
        // The last words of what was done before, here and by other tests: the first second without one.
        let begin = Instant::now();
        loop {
            let from = Timestamp::now();
            tokio::time::sleep(Duration::from_secs(1)).await;
            let written = written_since(from)?;
            if written.is_empty() {
                break;
            }
            ensure!(begin.elapsed() < Duration::from_secs(30), "it does not come to rest: {written:#?}");
        }
        // Not a wait for something: the ten seconds in which nothing may happen.
        let from = Timestamp::now();
        tokio::time::sleep(Duration::from_secs(10)).await;
        let written = written_since(from)?;
        assert!(written.is_empty(), "{written:#?}");
        Ok(())
    })
    .await;
}
