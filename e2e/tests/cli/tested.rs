//! Tests of charts, run by `kubectl emco test`. No kubelet runs here: the tests say how Pods end, as one would.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use axum::Router;
use axum::extract::{Path, RawQuery};
use axum::routing::get;
use emco_e2e::bed::Bed;
use emco_e2e::https::Server;
use emco_e2e::operator::{SOON, chart, chart_map, deployed, deployment, project};
use emco_e2e::wait::{wait_for, wait_until_gone};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::looks::{EVERYWHERE, tenant};
use super::rig::{STAGE, Said, command, run, run_as};

const NOTE: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: note}, data: {a: b}}";

/// A deployment of one app, whose chart has these tests.
async fn deploy(bed: &Bed, tenant: &str, tests: &str) -> Result<()> {
    project(bed, tenant).await?;
    let charts =
        [chart("web", "1.0.0", &[("templates/note.yaml", NOTE), ("templates/tests/all.yaml", tests)])?];
    chart_map(bed, tenant, "charts", &charts).await?;
    bed.hub().kubectl().apply(&deployment(tenant, "till", &charts, EVERYWHERE)).await?;
    deployed(bed, tenant, "till", 1).await.map(drop)
}

/// A Pod that is a test; `more` are further annotations.
fn pod(name: &str, more: &str) -> String {
    format!(
        "---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, annotations: {{helm.sh/hook: test{more}}}}}
spec: {{restartPolicy: Never, containers: [{{name: probe, image: example.com/probe}}]}}
"
    )
}

/// A Pod whose name begins so and that did not end comes, and ends with this code.
async fn end(bed: &Bed, edge: &str, namespace: &str, begins: &str, code: i64) -> Result<()> {
    let pods = bed.edge(edge).api::<Pod>(namespace).await?;
    let name = Box::pin(wait_for(pods, SOON, "a Pod of a test", |pods| {
        let runs = |pod: &&Pod| {
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            pod.name_any().starts_with(begins)
                && pod.metadata.deletion_timestamp.is_none()
                && phase == Some("Pending")
        };
        pods.values().find(runs).map(kube::ResourceExt::name_any).ok_or_else(|| format!("none is {begins}"))
    }))
    .await?;
    let phase = if code == 0 { "Succeeded" } else { "Failed" };
    let status = json!({"status": {"phase": phase, "containerStatuses": [{
        "name": "probe", "image": "example.com/probe", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"terminated": {"exitCode": code, "reason": "Error"}}}]}});
    let patch = [
        "patch",
        "pod",
        &name,
        "-n",
        namespace,
        "--subresource=status",
        "--type=merge",
        "-p",
        &status.to_string(),
    ];
    bed.edge(edge).kubectl().run(&patch).await.map(drop)
}

/// What `kubectl emco test` says while something else happens.
async fn while_testing(bed: &Bed, args: &[&str], happens: impl Future<Output = Result<()>>) -> Result<Said> {
    tokio::try_join!(Box::pin(run(bed, args)), Box::pin(happens)).map(|(said, ())| said)
}

/// The object of a test on the edge `a`; none where it is not there.
async fn there(bed: &Bed, namespace: &str, object: &str) -> Result<Option<Value>> {
    let args = ["get", object, "-n", namespace, "-o", "json", "--ignore-not-found"];
    let text = bed.edge("a").kubectl().run(&args).await?;
    if text.trim().is_empty() { Ok(None) } else { Ok(Some(serde_json::from_str(&text)?)) }
}

async fn uid(bed: &Bed, namespace: &str, object: &str) -> Result<String> {
    let live = there(bed, namespace, object).await?.with_context(|| format!("{object} is not there"))?;
    live["metadata"]["uid"].as_str().map(str::to_owned).context("it has no uid")
}

fn suite() -> String {
    let settings = "---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, annotations: {helm.sh/hook: test, helm.sh/hook-weight: \"-5\", helm.sh/hook-delete-policy: hook-succeeded}}
";
    let second = "---
apiVersion: batch/v1
kind: Job
metadata: {name: second, annotations: {helm.sh/hook: test-success, helm.sh/hook-weight: \"2\", helm.sh/hook-delete-policy: \"before-hook-creation,hook-failed\"}}
spec:
  backoffLimit: 0
  template: {spec: {restartPolicy: Never, containers: [{name: probe, image: example.com/probe}]}}
";
    let pods = [pod("third", ", helm.sh/hook-weight: \"3\""), pod("first", ", helm.sh/hook-weight: \"1\"")];
    format!("{}{second}{}{settings}", pods[0], pods[1])
}

#[tokio::test]
async fn tests_run_in_order_until_one_fails_and_go_by_their_policies() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(Box::pin(async {
        deploy(bed, "suite", &suite()).await?;
        let on_a = ["test", "suite/till", "--cluster", "acme/a"];
        let said = while_testing(bed, &on_a, async { end(bed, "a", "suite", "second", 3).await });
        let first = async {
            let settings = bed.edge("a").api::<ConfigMap>("suite").await?;
            wait_for(settings, SOON, "what the tests share", |maps| {
                let shared = maps.values().any(|map| map.name_any() == "settings");
                if shared { Ok(()) } else { Err("it is not there".to_owned()) }
            })
            .await?;
            let jobs = there(bed, "suite", "job/second").await?;
            ensure!(jobs.is_none(), "the second did not wait for the first");
            end(bed, "a", "suite", "first", 0).await?;
            Ok(())
        };
        let (said, ()) = tokio::try_join!(Box::pin(said), Box::pin(first))?;
        said.is(
            3,
            &["suite/till: 2 of 4 tests passed", "BackoffLimitExceeded", "container probe: exit code 3"],
        );
        let begins: Vec<Vec<&str>> =
            said.out.lines().take(4).map(|line| line.split_whitespace().take(4).collect()).collect();
        assert_eq!(
            begins,
            [
                ["Succeeded", "acme/a", "web", "ConfigMap/suite/settings"],
                ["Succeeded", "acme/a", "web", "Pod/suite/first"],
                ["Failed", "acme/a", "web", "batch/Job/suite/second"],
                ["NotRun", "acme/a", "web", "Pod/suite/third"],
            ]
        );
        for (object, stays) in
            [("cm/settings", false), ("pod/first", true), ("job/second", false), ("pod/third", false)]
        {
            ensure!(there(bed, "suite", object).await?.is_some() == stays, "{object} stays: {stays}");
        }
        // The operator leaves it alone, and counts it nowhere.
        let first = there(bed, "suite", "pod/first").await?.context("it is there")?;
        let labels = &first["metadata"]["labels"];
        ensure!(labels["emco.io/test"].is_string() && labels["emco.io/owner"].is_null(), "{first:#}");
        run(bed, &["reconcile", "suite/till"]).await?.is(0, &[]);
        run(bed, &["status", "suite/till"]).await?.is(0, &["objects: 2/2"]);
        let before = uid(bed, "suite", "pod/first").await?;

        // What the last run left makes room, and filters are Helm's.
        let only = [&on_a[..], &["--filter", "name=first"]].concat();
        let replaced = async {
            let pods = bed.edge("a").api::<Pod>("suite").await?;
            wait_for(pods, SOON, "another Pod", |pods| {
                let other = |pod: &Pod| pod.name_any() == "first" && pod.uid().as_ref() != Some(&before);
                if pods.values().any(other) { Ok(()) } else { Err("it is the same".to_owned()) }
            })
            .await?;
            end(bed, "a", "suite", "first", 0).await
        };
        while_testing(bed, &only, replaced).await?.is(0, &["suite/till: 1 of 1 test passed"]);
        let without = [&on_a[..], &["--filter", "!name=second,!name=first"]].concat();
        while_testing(bed, &without, end(bed, "a", "suite", "third", 0))
            .await?
            .is(0, &["suite/till: 2 of 2 tests passed"]);
        let unknown = [&on_a[..], &["--filter", "name=fourth"]].concat();
        run(bed, &unknown).await?.is(1, &["there is no test named fourth", "first"]);
        run(bed, &["test", "suite/till", "--filter", "first"]).await?.is(2, &["name=NAME"]);
        run(bed, &["test", "suite/till", "--app", "db"]).await?.is(1, &["has no app db"]);
        run_as(bed, &tenant(bed, "suite").await?, &["test", "suite/till"])
            .await?
            .is(1, &["test is for administrators of the hub"]);
        Ok(())
    }))
    .await;
}

#[tokio::test]
async fn a_test_that_fails_on_a_cluster_stops_no_other_cluster() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(Box::pin(async {
        deploy(bed, "twice", &pod("smoke", "")).await?;
        let ends = async {
            let (a, b) = (end(bed, "a", "twice", "smoke", 7), end(bed, "b", "twice", "smoke", 0));
            tokio::try_join!(Box::pin(a), Box::pin(b))?;
            Ok(())
        };
        let said = while_testing(bed, &["test", "twice/till", "-o", "json"], ends).await?;
        ensure!(said.code == Some(3), "{said:?}");
        let json = said.json();
        assert_eq!(json["passed"], false);
        let ends: Vec<[&str; 3]> = json["tests"]
            .as_array()
            .context("tests")?
            .iter()
            .map(|test| ["cluster", "test", "phase"].map(|key| test[key].as_str().unwrap_or_default()))
            .collect();
        let smoke = "Pod/twice/smoke";
        assert_eq!(ends, [["acme/a", smoke, "Failed"], ["acme/b", smoke, "Succeeded"]]);
        let why = json["tests"][0]["message"].as_str().unwrap_or_default();
        ensure!(why.contains("container probe: exit code 7"), "{json:#}");
        run(bed, &["test", "twice/till", "--edge-context", "a"])
            .await?
            .is(2, &["--edge-context is for one cluster"]);
        Ok(())
    }))
    .await;
}

#[tokio::test]
async fn logs_are_read_before_what_succeeded_is_deleted() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(Box::pin(async {
        let log = async |Path((namespace, pod, container)): Path<(String, String, String)>,
                         RawQuery(query): RawQuery| {
            format!("{namespace}/{pod}/{container} \u{1b}[31m {}\n", query.unwrap_or_default())
        };
        let router = Router::new().route("/containerLogs/{namespace}/{pod}/{container}", get(log));
        let kubelet = Server::secure(router, &["127.0.0.1"]).await?;
        let kubectl = bed.edge("a").kubectl();
        kubectl.apply("{apiVersion: v1, kind: Node, metadata: {name: logger}}").await?;
        let status = json!({"status": {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet.address().port()}}}});
        kubectl
            .run(&[
                "patch",
                "node",
                "logger",
                "--subresource=status",
                "--type=merge",
                "-p",
                &status.to_string(),
            ])
            .await?;
        let smoke = pod("smoke", ", helm.sh/hook-delete-policy: hook-succeeded");
        let smoke = smoke.replace("restartPolicy: Never", "restartPolicy: Never, nodeName: logger");
        deploy(bed, "logged", &smoke).await?;
        let args = ["test", "logged/till", "--cluster", "acme/a", "--logs"];
        let said = while_testing(bed, &args, end(bed, "a", "logged", "smoke", 0)).await?;
        said.is(
            0,
            &[
                "LOGS of Pod smoke, container probe, on acme/a:",
                "logged/smoke/probe \u{fffd}[31m ",
                "tailLines=2000",
            ],
        );
        ensure!(there(bed, "logged", "pod/smoke").await?.is_none(), "it succeeded and goes");
        Ok(())
    }))
    .await;
}

#[tokio::test]
async fn what_is_in_the_way_of_a_test_stays_and_fails_it() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(Box::pin(async {
        let of_the_app = "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: note, annotations: {helm.sh/hook: test}}}\n";
        deploy(bed, "taken", &format!("{}{of_the_app}", pod("smoke", ""))).await?;
        let kubectl = bed.edge("a").kubectl();
        kubectl.apply_to("taken", &pod("smoke", "")).await?;
        let (theirs, note) = (uid(bed, "taken", "pod/smoke").await?, uid(bed, "taken", "cm/note").await?);
        let on_a = |more: &[&'static str]| [&["test", "taken/till", "--cluster", "acme/a"][..], more].concat();
        run(bed, &on_a(&["--filter", "name=smoke"]))
            .await?
            .is(3, &["Failed", "Pod/taken/smoke", "the object of this name was not made by a test"]);
        run(bed, &on_a(&["--filter", "name=note"]))
            .await?
            .is(3, &["the object of this name is an object of the deployment itself"]);
        assert_eq!(uid(bed, "taken", "pod/smoke").await?, theirs, "it is not ours to delete");
        assert_eq!(uid(bed, "taken", "cm/note").await?, note, "it is the deployment's");

        // One that does not end fails, stays, and is told apart from the next.
        kubectl.run(&["delete", "pod", "smoke", "-n", "taken", "--wait"]).await?;
        let said = run(bed, &on_a(&["--filter", "name=smoke", "--timeout", "1s"])).await?;
        said.is(3, &["Failed", "it did not end within 1 s", "taken/till: 0 of 1 test passed"]);
        ensure!(there(bed, "taken", "pod/smoke").await?.is_some(), "it stays to be looked at");
        // One that is deleted by others did not pass.
        let deleted = async {
            let pods = bed.edge("a").api::<Pod>("taken").await?;
            let left = uid(bed, "taken", "pod/smoke").await?;
            wait_for(pods.clone(), SOON, "the next Pod", |pods| {
                let next = |pod: &Pod| pod.uid().as_ref() != Some(&left);
                if pods.values().any(next) { Ok(()) } else { Err("it is the last one".to_owned()) }
            })
            .await?;
            bed.edge("a").kubectl().run(&["delete", "pod", "smoke", "-n", "taken", "--wait=false"]).await.map(drop)
        };
        while_testing(bed, &on_a(&["--filter", "name=smoke"]), deleted)
            .await?
            .is(3, &["it was deleted before it ended"]);
        Ok(())
    }))
    .await;
}

#[tokio::test]
async fn an_interrupted_run_leaves_what_is_there_and_names_it() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(Box::pin(async {
        deploy(bed, "cutoff", &pod("smoke", "")).await?;
        let args = ["test", "cutoff/till", "--cluster", "acme/a"];
        let child = command(bed, bed.hub().kubectl().kubeconfig(), &args)?.spawn()?;
        let pods = bed.edge("a").api::<Pod>("cutoff").await?;
        wait_for(pods, SOON, "the Pod", |pods| if pods.is_empty() { Err("none".to_owned()) } else { Ok(()) })
            .await?;
        let id = child.id().context("it ended")?.to_string();
        ensure!(std::process::Command::new("kill").args(["-INT", &id]).status()?.success(), "no signal");
        let output = tokio::time::timeout(Duration::from_secs(30), child.wait_with_output()).await??;
        bed.printed().keep(&args, &[&output.stdout, &output.stderr])?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.code() == Some(3), "{output:?}");
        ensure!(
            error.contains("interrupted: 1 object of a test stays as it is: acme/a: Pod/cutoff/smoke"),
            "{error}"
        );
        uid(bed, "cutoff", "pod/smoke").await.map(drop)
    }))
    .await;
}

#[tokio::test]
async fn a_hook_that_is_a_test_can_be_run_by_the_operator_afterwards() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(Box::pin(async {
        project(bed, "both").await?;
        let job = "
apiVersion: batch/v1
kind: Job
metadata: {name: both, annotations: {helm.sh/hook: \"post-upgrade,test\"}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: probe, image: example.com/probe}]}}}
";
        let note = NOTE.replace("{a: b}", "{a: {{ .Values.a }}}");
        let files = [
            ("values.yaml", "a: one\n"),
            ("templates/note.yaml", note.as_str()),
            ("templates/job.yaml", job),
        ];
        let charts = [chart("web", "1.0.0", &files)?];
        chart_map(bed, "both", "charts", &charts).await?;
        let spec = |more: &str| {
            deployment(
                "both",
                "till",
                &charts,
                &format!("placement: {{allOf: [{{provider: acme, cluster: a}}]}}\n{more}"),
            )
        };
        bed.hub().kubectl().apply(&spec("")).await?;
        deployed(bed, "both", "till", 1).await?;
        while_testing(bed, &["test", "both/till"], end(bed, "a", "both", "both", 0))
            .await?
            .is(0, &["1 of 1 test passed"]);
        let tested = uid(bed, "both", "job/both").await?;
        bed.hub().kubectl().apply(&spec("overrideValues: [{app: web, values: {a: two}}]")).await?;
        let jobs = bed.edge("a").api::<Job>("both").await?;
        wait_for(jobs, SOON, "the hook", |jobs| {
            let hook = |job: &Job| job.uid().as_ref() != Some(&tested);
            if jobs.values().any(hook) { Ok(()) } else { Err("the test is in its way".to_owned()) }
        })
        .await?;
        end(bed, "a", "both", "both", 0).await?;
        deployed(bed, "both", "till", 2).await?;
        // And the other way round.
        while_testing(bed, &["test", "both/till"], end(bed, "a", "both", "both", 0))
            .await?
            .is(0, &["1 of 1 test passed"]);
        bed.hub().kubectl().run(&["delete", "dig", "till", "-n", "both", "--wait=false"]).await?;
        wait_until_gone(bed.edge("a").api::<Job>("both").await?, "both", SOON).await
    }))
    .await;
}
