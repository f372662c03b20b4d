//! kubectl on a cluster through what the hub knows of it, and who may.

use anyhow::{Result, ensure};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{SOON, chart, chart_map, deployment, project};
use emco_e2e::wait::wait_for;
use k8s_openapi::api::core::v1::Event;

use super::looks::{EVERYWHERE, tenant};
use super::rig::{STAGE, file, run, run_as, run_with};

/// Two workloads, one of them without Pods. Pods of these planes run nowhere.
const WEB: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: example.com/web}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 0
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: example.com/db}]}
";

async fn deploy(bed: &Bed, tenant: &str) -> Result<()> {
    project(bed, tenant).await?;
    let charts = [chart("web", "1.0.0", &[("templates/web.yaml", WEB)])?];
    chart_map(bed, tenant, "charts", &charts).await?;
    bed.hub().kubectl().apply(&deployment(tenant, "till", &charts, EVERYWHERE)).await?;
    for edge in ["a", "b"] {
        let kubectl = bed.edge(edge).kubectl();
        kubectl.run(&["wait", "--for=create", "deploy/web", "-n", tenant, "--timeout=60s"]).await?;
        let one = "--for=jsonpath={.status.replicas}=1";
        kubectl.run(&["wait", one, "deploy/web", "-n", tenant, "--timeout=60s"]).await?;
    }
    Ok(())
}

/// Waits until an edge has an Event about an object whose name begins so.
async fn event(bed: &Bed, edge: &str, namespace: &str, kind: &str, name: &str) -> Result<()> {
    let events = bed.edge(edge).api::<Event>(namespace).await?;
    wait_for(events, SOON, "an Event", |events| {
        let about = |event: &Event| {
            let object = &event.involved_object;
            object.kind.as_deref() == Some(kind)
                && object.name.as_deref().is_some_and(|found| found.starts_with(name))
        };
        if events.values().any(about) { Ok(()) } else { Err(format!("none of {kind}/{name}")) }
    })
    .await
}

/// The node that the Pod is bound to gets a kubelet: logs and commands come through it.
async fn a_kubelet_answers(bed: &Bed, pod: &str) -> Result<()> {
    let edge = bed.edge("a");
    edge.add_kubelet("ghost", &["first", "second", "third"]).await?;
    edge.kubectl()
        .run(&["wait", "--for=condition=Ready", &format!("pod/{pod}"), "-n", "enters", "--timeout=60s"])
        .await?;
    let on = |words: &[&'static str]| [words, &["--cluster", "acme/a"]].concat();
    let said = run(bed, &on(&["logs", "enters/till", "web", "--tail", "2"])).await?;
    said.is(0, &[&format!("[pod/{pod}/web] second\n[pod/{pod}/web] third\n")]);
    assert!(!said.out.contains("first"), "{}", said.out);
    let mut shell = on(&["exec", "enters/till", "web"]);
    shell.extend(["--", "sh", "-c", "echo in; id -un; echo beside >&2"]);
    let said = run(bed, &shell).await?;
    said.is(0, &[]);
    assert_eq!((said.out.as_str(), said.err.as_str()), ("in\nnobody\n", "beside\n"));
    Ok(())
}

#[tokio::test]
async fn logs_and_exec_reach_the_pods_of_the_named_workload() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        deploy(bed, "enters").await?;
        let on = |words: &[&'static str]| [words, &["--cluster", "acme/a"]].concat();
        run(bed, &["logs", "enters/till"])
            .await?
            .is(1, &["enters/till is on 2 clusters: name one with --cluster: acme/a, acme/b"]);
        run(bed, &on(&["logs", "enters/till"]))
            .await?
            .is(1, &["there are 2 workloads: name one, as KIND/NAME: Deployment/web, StatefulSet/db"]);
        let said = run(bed, &on(&["logs", "enters/till", "db", "--tail", "5"])).await?;
        said.is(0, &["No resources found in enters namespace"]);
        let mut exec = on(&["exec", "enters/till", "deploy/web"]);
        exec.extend(["--", "date", "-u"]);
        // kubectl says so with its own words and code.
        run(bed, &exec).await?.is(1, &["does not have a host assigned"]);
        // The exit code of a remote command is kubectl's, which takes this program's place.
        let stand_in = bed.dir().join("stand-in");
        std::fs::create_dir_all(&stand_in)?;
        std::fs::write(stand_in.join("kubectl"), "#!/bin/sh\necho \"asked: $*\"\nexit 42\n")?;
        std::fs::set_permissions(stand_in.join("kubectl"), std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
        run_with(bed, &stand_in, &exec)
            .await?
            .is(42, &["asked: exec --namespace=enters deployment/web -- date -u"]);
        let kubectl = bed.edge("a").kubectl();
        let name = ["get", "pods", "-n", "enters", "-l", "app=web", "-o", "jsonpath={.items[0].metadata.name}"];
        let pod = kubectl.run(&name).await?;
        let binding = format!(
            "{{apiVersion: v1, kind: Binding, metadata: {{name: {pod}}}, target: {{apiVersion: v1, kind: Node, name: ghost}}}}"
        );
        let binding = serde_yaml::from_str::<serde_json::Value>(&binding)?.to_string();
        let path = format!("/api/v1/namespaces/enters/pods/{pod}/binding");
        kubectl.run_with(&["create", "--raw", &path, "-f", "-"], &binding).await?;
        run(bed, &on(&["logs", "enters/till", "web"])).await?.is(1, &["ghost"]);
        a_kubelet_answers(bed, &pod).await?;
        run(bed, &on(&["exec", "enters/till", "web"])).await?.is(2, &["COMMAND"]);
        run(bed, &on(&["logs", "enters/till", "nothing"])).await?.is(1, &["there is no workload nothing"]);
        run(bed, &["logs", "enters/till", "--cluster", "acme/z"])
            .await?
            .is(1, &["enters/till has nothing on cluster acme/z: it is on acme/a, acme/b"]);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn events_are_those_of_the_deployment_and_of_what_it_made() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        deploy(bed, "news").await?;
        // Of another owner, in the same namespace.
        let edge = bed.edge("a").kubectl();
        edge.run(&["create", "deployment", "other", "-n", "news", "--image=example.com/other"]).await?;
        event(bed, "a", "news", "Deployment", "other").await?;
        for edge in ["a", "b"] {
            event(bed, edge, "news", "ReplicaSet", "web-").await?;
            event(bed, edge, "news", "Deployment", "web").await?;
        }
        let said = run(bed, &["events", "news/till"]).await?;
        said.is(
            0,
            &["CLUSTER", "acme/a", "acme/b", "ScalingReplicaSet", "Deployment/web", "ReplicaSet/web-"],
        );
        assert!(!said.out.contains("other"), "{}", said.out);
        let json = run(bed, &["events", "news/till", "--cluster", "acme/b", "-o", "json"]).await?.json();
        ensure!(
            json.as_array().is_some_and(|all| all.iter().all(|one| one["cluster"] == "acme/b")),
            "{json:#}"
        );
        run(bed, &["events", "news/till", "--warnings"]).await?.is(0, &[]);
        run(bed, &["events", "news/till", "--edge-context", "x"]).await?.is(2, &["--cluster"]);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_hubs_credential_is_for_those_who_may_read_it_others_use_their_own() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        deploy(bed, "rights").await?;
        let who = ["auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"];
        let said = run(bed, &[&["edge", "acme/a"][..], &who].concat()).await?;
        said.is(0, &[]);
        assert_eq!(said.out.trim(), "emco", "the user of the registered kubeconfig");
        run(bed, &["edge", "acme/a", "get", "deploy", "-n", "rights", "-o", "name"])
            .await?
            .is(0, &["deployment.apps/web"]);
        run(bed, &["edge", "acme/a", "--", "get", "deploy", "nothing", "-n", "rights"])
            .await?
            .is(1, &["deployments.apps \"nothing\" not found"]);
        run(bed, &["edge", "acme/none", "get", "pods"]).await?.is(1, &["there is no Cluster acme/none"]);
        run(bed, &["edge", "acme/a"]).await?.is(2, &["KUBECTL ARGUMENTS"]);

        // A tenant of the hub gains nothing on the edge.
        let viewer = tenant(bed, "rights").await?;
        for words in [
            &["edge", "acme/a", "get", "pods"][..],
            &["logs", "rights/till", "web", "--cluster", "acme/a"],
            &["events", "rights/till", "--cluster", "acme/a"],
        ] {
            run_as(bed, &viewer, words)
                .await?
                .is(1, &["you may not get Cluster a in namespace acme of the hub", "--edge-context"]);
        }
        // Nor does a user who may read the Cluster, and not its Secret.
        let role = "
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: sees, namespace: acme}
rules: [{apiGroups: [emco.io], resources: [clusters], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: sees, namespace: acme}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: sees}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: sees}]
";
        bed.hub().kubectl().apply(role).await?;
        let sees = file(bed, "sees.kubeconfig", &bed.hub().kubeconfig_as("sees", None)?).await?;
        run_as(bed, &sees, &["edge", "acme/a", "get", "pods"])
            .await?
            .is(1, &["you may not get Secret a-kubeconfig in namespace acme of the hub", "--edge-context"]);

        // With an account of their own on the edge they do what that may do.
        let own = file(bed, "own.kubeconfig", &bed.edge("a").kubeconfig_as("shopkeeper", None)?).await?;
        let own = own.display().to_string();
        let parsed: serde_json::Value = serde_yaml::from_str(&std::fs::read_to_string(&own)?)?;
        let context = parsed["current-context"].as_str().unwrap_or_default().to_owned();
        let mine = ["--edge-context", &context, "--edge-kubeconfig", &own];
        let whoami = [&["edge"][..], &mine, &["acme/a"], &who].concat();
        let said = run_as(bed, &viewer, &whoami).await?;
        said.is(0, &["is not checked"]);
        assert_eq!(said.out.trim(), "shopkeeper");
        let logs = [&["logs", "rights/till", "web", "--cluster", "acme/a"][..], &mine].concat();
        run_as(bed, &viewer, &logs).await?.is(1, &["the cluster refuses", "shopkeeper"]);
        // A context that leads elsewhere is no way around.
        let admin =
            file(bed, "admin-b.kubeconfig", &bed.edge("b").kubeconfig()?).await?.display().to_string();
        let parsed: serde_json::Value = serde_yaml::from_str(&std::fs::read_to_string(&admin)?)?;
        let context = parsed["current-context"].as_str().unwrap_or_default().to_owned();
        let other = ["--edge-context", &context, "--edge-kubeconfig", &admin];
        let logs = [&["logs", "rights/till", "web", "--cluster", "acme/a"][..], &other].concat();
        run_as(bed, &viewer, &logs).await?.is(1, &["leads to another cluster than acme/a"]);
        Ok(())
    })
    .await;
}
