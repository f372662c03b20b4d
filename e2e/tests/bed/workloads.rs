//! In: a full edge and workloads as charts bring them. Out: they become ready, complete, get what they ask for, and go.

use std::time::Duration;

use anyhow::Context;
use emco_e2e::wait::{wait_for, wait_for_object, wait_until_gone};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{
    ContainerStatus, Event, Namespace, PersistentVolume, PersistentVolumeClaim, Pod, Service,
};
use kube::Api;
use kube::api::DeleteParams;

use super::edge;

const SOON: Duration = Duration::from_mins(1);

fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

const POD_TEMPLATE: &str = "
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: example.com/web
        resources: {requests: {cpu: 100m, memory: 64Mi, ephemeral-storage: 50Mi}}
";

#[tokio::test]
async fn a_pod_that_is_never_restarted_completes() {
    let (bed, edge) = edge("hook").await.unwrap();
    bed.explain(async {
        edge.kubectl()
            .apply_to(
                "hook",
                "
apiVersion: v1
kind: Pod
metadata: {name: hook, annotations: {helm.sh/hook: pre-install}}
spec:
  restartPolicy: Never
  containers: [{name: one, image: example.com/hook}, {name: two, image: example.com/hook}]
",
            )
            .await?;
        let pod =
            wait_for_object(edge.api::<Pod>("hook").await?, "hook", SOON, |pod| phase(pod) == "Succeeded")
                .await?;
        let statuses =
            pod.status.and_then(|status| status.container_statuses).context("no container statuses")?;
        let code = |state: &ContainerStatus| {
            state.state.as_ref().and_then(|state| state.terminated.as_ref()).map(|ended| ended.exit_code)
        };
        assert_eq!(statuses.iter().map(code).collect::<Vec<_>>(), [Some(0), Some(0)]);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_job_completes() {
    let (bed, edge) = edge("job").await.unwrap();
    bed.explain(async {
        edge.kubectl()
            .apply_to(
                "job",
                "
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  completions: 2
  template:
    spec:
      restartPolicy: OnFailure
      containers: [{name: once, image: example.com/job}]
",
            )
            .await?;
        let done = |job: &Job| job.status.as_ref().is_some_and(|status| status.succeeded == Some(2));
        wait_for_object(edge.api::<Job>("job").await?, "once", SOON, done).await
    })
    .await;
}

#[tokio::test]
async fn a_load_balancer_gets_an_address() {
    let (bed, edge) = edge("balanced").await.unwrap();
    bed.explain(async {
        edge.kubectl()
            .apply_to(
                "balanced",
                "
apiVersion: v1
kind: Service
metadata: {name: door}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80}]}
",
            )
            .await?;
        let address = |service: &Service| {
            let balancer = service.status.as_ref()?.load_balancer.as_ref()?;
            balancer.ingress.as_ref()?.first()?.ip.clone()
        };
        let services = edge.api::<Service>("balanced").await?;
        wait_for_object(services.clone(), "door", SOON, |service| address(service).is_some()).await?;
        services.delete("door", &DeleteParams::default()).await?;
        wait_until_gone(services, "door", SOON).await
    })
    .await;
}

#[tokio::test]
async fn a_claim_is_bound_and_its_volume_is_free_again_afterwards() {
    let (bed, edge) = edge("claim").await.unwrap();
    bed.explain(async {
        edge.kubectl()
            .apply_to(
                "claim",
                "
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 8Gi}}}
",
            )
            .await?;
        let claims = edge.api::<PersistentVolumeClaim>("claim").await?;
        let is_bound = |claim: &PersistentVolumeClaim| {
            claim.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Bound"))
        };
        let claim = wait_for_object(claims.clone(), "data", SOON, is_bound).await?;
        let volume = claim.spec.and_then(|spec| spec.volume_name).context("bound to nothing")?;
        claims.delete("data", &DeleteParams::default()).await?;
        wait_until_gone(claims, "data", SOON).await?;
        // Another test may have taken it at once.
        let belongs_to_others = |volume: &PersistentVolume| {
            let holder = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
            holder.is_none_or(|holder| holder.namespace.as_deref() != Some("claim"))
        };
        wait_for_object(Api::all(edge.client().await?), &volume, SOON, belongs_to_others).await
    })
    .await;
}

#[tokio::test]
async fn a_deployment_becomes_ready_and_its_pods_have_addresses() {
    let (bed, edge) = edge("deployment").await.unwrap();
    bed.explain(async {
        let yaml = format!("apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec:\n  replicas: 3{POD_TEMPLATE}");
        edge.kubectl().apply_to("deployment", &yaml).await?;
        let ready = |object: &Deployment| object.status.as_ref().is_some_and(|status| status.ready_replicas == Some(3));
        wait_for_object(edge.api::<Deployment>("deployment").await?, "web", SOON, ready).await?;
        let pods = edge.api::<Pod>("deployment").await?.list(&kube::api::ListParams::default()).await?;
        let addresses: std::collections::BTreeSet<_> =
            pods.iter().filter_map(|pod| pod.status.as_ref()?.pod_ip.clone()).collect();
        assert_eq!(addresses.len(), 3, "{addresses:?}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_stateful_set_with_claims_becomes_ready() {
    let (bed, edge) = edge("stateful").await.unwrap();
    bed.explain(async {
        let yaml = format!(
            "apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: db}}
spec:
  serviceName: db
  replicas: 2
  volumeClaimTemplates:
  - metadata: {{name: data}}
    spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}}}{POD_TEMPLATE}"
        );
        edge.kubectl().apply_to("stateful", &yaml).await?;
        let ready = |object: &StatefulSet| {
            object.status.as_ref().is_some_and(|status| status.ready_replicas == Some(2))
        };
        wait_for_object(edge.api::<StatefulSet>("stateful").await?, "db", SOON, ready).await
    })
    .await;
}

#[tokio::test]
async fn a_daemon_set_has_a_ready_pod_on_every_node() {
    let (bed, edge) = edge("daemon").await.unwrap();
    bed.explain(async {
        let yaml =
            format!("apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {{name: agent}}\nspec:{POD_TEMPLATE}");
        edge.kubectl().apply_to("daemon", &yaml).await?;
        let ready =
            |object: &DaemonSet| object.status.as_ref().is_some_and(|status| status.number_ready == 2);
        wait_for_object(edge.api::<DaemonSet>("daemon").await?, "agent", SOON, ready).await
    })
    .await;
}

#[tokio::test]
async fn a_pod_that_fits_no_node_stays_pending_with_the_reason_in_an_event() {
    let (bed, edge) = edge("crowded").await.unwrap();
    bed.explain(async {
        edge.kubectl()
            .apply_to(
                "crowded",
                "
apiVersion: v1
kind: Pod
metadata: {name: huge}
spec:
  containers: [{name: huge, image: example.com/huge, resources: {requests: {cpu: 65}}}]
",
            )
            .await?;
        wait_for(edge.api::<Event>("crowded").await?, SOON, "the scheduler's reason", |events| {
            let said = events.values().filter_map(|event| event.message.as_deref());
            let reason = said.into_iter().find(|text| text.contains("Insufficient cpu"));
            reason.map(drop).ok_or_else(|| "no such event".to_owned())
        })
        .await?;
        assert_eq!(phase(&edge.api::<Pod>("crowded").await?.get("huge").await?), "Pending");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_deleted_pod_goes_and_a_deleted_namespace_goes_with_everything_in_it() {
    let (bed, edge) = edge("going").await.unwrap();
    bed.explain(async {
        let yaml = format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec:\n  replicas: 2{POD_TEMPLATE}---
apiVersion: v1
kind: Pod
metadata: {{name: alone}}
spec:
  terminationGracePeriodSeconds: 600
  containers: [{{name: alone, image: example.com/alone}}]
"
        );
        edge.kubectl().apply_to("going", &yaml).await?;
        let pods = edge.api::<Pod>("going").await?;
        wait_for_object(pods.clone(), "alone", SOON, |pod| phase(pod) == "Running").await?;
        pods.delete("alone", &DeleteParams::default()).await?;
        wait_until_gone(pods.clone(), "alone", SOON).await?;

        let namespaces: Api<Namespace> = Api::all(edge.client().await?);
        namespaces.delete("going", &DeleteParams::default()).await?;
        wait_until_gone(namespaces, "going", SOON).await?;
        assert!(pods.list(&kube::api::ListParams::default()).await?.items.is_empty());
        Ok(())
    })
    .await;
}
