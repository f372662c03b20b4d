//! What is said when nobody keeps it true.

use anyhow::Result;
use emco_e2e::bed::{Bed, Plane, serial};
use emco_e2e::operator::root;

use super::adopt::TAKEN;
use super::rig::{Running, Said, run_as};

/// A cluster of other tests, on which no operator ever ran: a hub is made of it.
fn hub(bed: &Bed) -> &Plane {
    bed.edge("away")
}

async fn run(bed: &Bed, args: &[&str]) -> Result<Said> {
    run_as(bed, hub(bed).kubectl().kubeconfig(), args).await
}

/// Statuses as an operator left them, on a hub without one.
const LEFT: &str = "
apiVersion: emco.io/v1alpha1
kind: DeploymentIntentGroup
metadata: {name: till, namespace: shop}
spec: {compositeAppRef: {name: till}, placement: {allOf: [{selector: {}}]}}
---
apiVersion: emco.io/v1alpha1
kind: SyncShard
metadata:
  name: dig-till-1
  namespace: shop
  labels: {emco.io/owner: aa, emco.io/owner-kind: DeploymentIntentGroup, emco.io/owner-name: till}
spec:
  format: 1
  owner: {kind: DeploymentIntentGroup, name: till, uid: u}
  slot: 0
  bits: 0
  epoch: 1
  nextId: 2
  combinations: [{name: t1, revision: 1, apps: [{app: web, set: s1}]}]
  clusters: [{id: 1, cluster: acme/a, target: t1}]
---
apiVersion: emco.io/v1alpha1
kind: Cluster
metadata: {name: a, namespace: acme}
spec: {access: {kubeconfigSecretRef: {name: a}}}
";

fn conditions(reason: &str) -> String {
    format!(
        r#"[{{"type": "Ready", "status": "True", "reason": "{reason}", "message": "", "lastTransitionTime": "2026-11-21T07:00:00Z", "observedGeneration": 1}}]"#
    )
}

/// A Lease of some seconds, renewed now.
fn lease() -> String {
    let now = k8s_openapi::jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
    format!(
        "{{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {{name: emco-operator, namespace: emco-system}},
          spec: {{holderIdentity: a, leaseDurationSeconds: 8, renewTime: \"{now}\"}}}}"
    )
}

/// A deployment in a namespace of its own, and the cluster of all of them.
async fn begin(bed: &Bed, space: &str) -> Result<()> {
    let kubectl = hub(bed).kubectl();
    let crds = root().join("config/crd").display().to_string();
    kubectl.run(&["apply", "--server-side", "-k", &crds]).await?;
    kubectl.run(&["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"]).await?;
    for namespace in ["acme", space, "emco-system"] {
        let object = format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {namespace}}}}}");
        kubectl.apply(&object).await?;
    }
    kubectl.apply(&LEFT.replace("namespace: shop", &format!("namespace: {space}"))).await?;
    let status = |conditions: &str, more: &str| {
        format!(r#"{{"status": {{"observedGeneration": 1, "conditions": {conditions}{more}}}}}"#)
    };
    let group = status(&conditions("Ready"), r#", "state": "Instantiated", "revision": 1"#);
    let shard = status(
        "[]",
        r#", "asWanted": [{"ids": "1", "applied": "t1", "generation": 1, "ready": 2, "total": 2}]"#,
    );
    let cluster = status(&conditions("Reachable"), r#", "provider": "acme", "id": "acme/a""#);
    for (kind, name, namespace, patch) in
        [("dig", "till", space, group), ("shard", "dig-till-1", space, shard), ("ecl", "a", "acme", cluster)]
    {
        kubectl
            .run(&[
                "patch",
                kind,
                name,
                "-n",
                namespace,
                "--subresource=status",
                "--type=merge",
                "-p",
                &patch,
            ])
            .await?;
    }
    Ok(())
}

#[tokio::test]
async fn under_an_expired_lease_everything_is_unknown_and_a_watch_says_so_by_itself() {
    let _turn = serial().await;
    let (bed, _) = TAKEN.get().await.unwrap();
    bed.explain(async {
        begin(bed, "shop").await?;
        run(bed, &["status", "till", "-n", "shop"]).await?.is(
            3,
            &[
                "no operator has ever run here",
                "shop/till  Unknown  ready: Unknown (OperatorSilent)",
                "(last reported Ready)",
            ],
        );
        hub(bed).kubectl().apply(&lease()).await?;
        run(bed, &["status", "till", "-n", "shop"]).await?.is(0, &["shop/till  Instantiated  ready: True"]);
        run(bed, &["clusters"]).await?.is(0, &["acme", "Reachable"]);
        // Nothing on the hub changes when a Lease ends; whoever watches is told all the same, and again when it is renewed.
        hub(bed).kubectl().apply(&lease()).await?;
        let mut watch =
            Running::start_as(bed, hub(bed).kubectl().kubeconfig(), &["status", "-A", "--watch"])?;
        watch.until("shop/till  Instantiated  ready: True").await?;
        watch.until("the operator has been silent since").await?;
        watch.until("shop/till  Unknown  ready: Unknown").await?;
        run(bed, &["clusters"]).await?.is(3, &["Unknown", "OperatorSilent", "the operator has been silent"]);
        let json = run(bed, &["status", "-A", "-o", "json"]).await?;
        assert_eq!((json.code, json.json()["operator"].as_str()), (Some(3), Some("Silent")));
        hub(bed).kubectl().apply(&lease()).await?;
        watch.until("shop/till  Instantiated  ready: True").await.map(drop)
    })
    .await;
}

#[tokio::test]
async fn shards_without_their_deployment_are_orphans() {
    let _turn = serial().await;
    let (bed, _) = TAKEN.get().await.unwrap();
    bed.explain(async {
        begin(bed, "orphans").await?;
        run(bed, &["orphans"]).await?.is(0, &["no orphans"]);
        // As after somebody took the finalizer off by hand: the group is gone, and its edges were not cleaned.
        hub(bed).kubectl().run(&["delete", "dig", "till", "-n", "orphans"]).await?;
        let said = run(bed, &["orphans"]).await?;
        said.is(3, &["DeploymentIntentGroup/till", "dig-till-1", "acme/a"]);
        let json = run(bed, &["orphans", "-n", "orphans", "-o", "json"]).await?;
        assert_eq!(json.code, Some(3));
        assert_eq!(json.json()[0]["clusters"][0], "acme/a");
        run(bed, &["orphans", "-n", "acme"]).await?.is(0, &["no orphans"]);
        Ok(())
    })
    .await;
}
