//! In: clusters that cannot be used. Out: each says why and how to cure it, and is used when it is cured.

use anyhow::Result;
use emco_crds::conditions::types;
use emco_crds::{Cluster, DeploymentIntentGroup, LogicalCloud};
use emco_e2e::bed::{Bed, serial};
use emco_e2e::operator::{cluster, deployed, deployment, is, ours, refused, says, secret, wait};

use super::{NOTE, STAGE, cluster_says, has, of_one_file, provider, start};

#[tokio::test]
async fn a_missing_kubeconfig_secret_is_named_and_its_creation_is_noticed() {
    let (bed, _) = STAGE.get().await.unwrap();
    let _turn = serial().await;
    bed.explain(async {
        provider(bed, "later", "nobody").await?;
        bed.hub().kubectl().apply(&cluster("later", "d")).await?;
        let message = cluster_says(bed, "later", "d", "SecretNotFound").await?;
        has(&message, &["Secret d-kubeconfig", "namespace later", "create it"]);
        secret(bed, "later", "d", &bed.edge("d").kubeconfig()?).await?;
        wait(bed, "later", "d", |cluster: &Cluster| is(cluster.status.as_ref(), types::READY, "True"))
            .await?;
        // Nobody uses it: it goes at once, for the next test.
        bed.hub().kubectl().run(&["delete", "ecl", "d", "-n", "later", "--timeout=60s"]).await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn kubeconfigs_that_cannot_or_must_not_be_used_are_refused_with_the_cure() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        provider(bed, "wrong", "nobody").await?;
        for name in ["garbled", "plugged"] {
            bed.hub().kubectl().apply(&cluster("wrong", name)).await?;
        }
        secret(bed, "wrong", "garbled", "clusters: [{").await?;
        let message = cluster_says(bed, "wrong", "garbled", "KubeconfigInvalid").await?;
        has(&message, &["garbled-kubeconfig"]);

        let good = bed.edge("d").kubeconfig()?;
        let mut config: serde_yaml::Value = serde_yaml::from_str(&good)?;
        let user = &mut config["users"][0]["user"];
        *user =
            serde_yaml::from_str("exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/true}")?;
        secret(bed, "wrong", "plugged", &serde_yaml::to_string(&config)?).await?;
        let message = cluster_says(bed, "wrong", "plugged", "KubeconfigForbidden").await?;
        has(&message, &["exec", "ServiceAccount token or a client certificate"]);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn an_edge_registered_twice_is_refused_and_the_first_registration_named() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        provider(bed, "twin", "nobody").await?;
        secret(bed, "twin", "again", &bed.edge("a").kubeconfig()?).await?;
        bed.hub().kubectl().apply(&cluster("twin", "again")).await?;
        let message = cluster_says(bed, "twin", "again", "SameClusterTwice").await?;
        has(&message, &["acme/a", "delete one of the two"]);
        wait(bed, "acme", "a", |cluster: &Cluster| is(cluster.status.as_ref(), types::READY, "True")).await
    })
    .await;
}

#[tokio::test]
async fn a_cluster_that_cannot_be_reached_is_named_while_others_finish_and_gets_all_when_it_is_back() {
    let note = of_one_file("web", NOTE).unwrap();
    let bed = start("far", std::slice::from_ref(&note)).await;
    let _turn = serial().await;
    bed.explain(Box::pin(async {
        provider(bed, "remote", "far").await?;
        secret(bed, "remote", "c", &bed.edge("d").kubeconfig()?).await?;
        bed.hub().kubectl().apply(&cluster("remote", "c")).await?;
        wait(bed, "remote", "c", |cluster: &Cluster| is(cluster.status.as_ref(), types::READY, "True"))
            .await?;
        bed.edge("d").refuse().await?;
        wait(bed, "remote", "c", |cluster: &Cluster| is(cluster.status.as_ref(), types::READY, "False"))
            .await?;
        let placement = "placement: {allOf: [{selector: {matchLabels: {tier: edge}}}]}";
        bed.hub().kubectl().apply(&deployment("far", "shop", &[note], placement)).await?;
        wait(bed, "far", "shop", |dig: &DeploymentIntentGroup| {
            let status = dig.status.as_ref().ok_or("it has no status")?;
            let counts = status.clusters.unwrap_or_default();
            let named = status.failing.iter().any(|failing| failing.cluster == "remote/c");
            if (counts.total, counts.ready, counts.unreachable) == (3, 2, 1) && named {
                return Ok(());
            }
            Err(format!("{counts:?}, failing {:?}", status.failing))
        })
        .await?;
        for edge in ["a", "b"] {
            assert_eq!(ours(bed, edge, "configmaps", Some("far")).await?, ["ConfigMap/far/note"], "{edge}");
        }
        a_logical_cloud_waits_for_it_alone(bed).await?;
        bed.edge("d").restore().await?;
        wait(bed, "far", "partly", |cloud: &LogicalCloud| is(cloud.status.as_ref(), types::READY, "True"))
            .await?;
        deployed(bed, "far", "shop", 1).await?;
        assert_eq!(ours(bed, "d", "configmaps", Some("far")).await?, ["ConfigMap/far/note"]);
        // The edge is free for the next test.
        let kubectl = bed.hub().kubectl();
        for [kind, name, namespace] in
            [["dig", "shop", "far"], ["lc", "partly", "far"], ["ecl", "c", "remote"]]
        {
            kubectl.run(&["delete", kind, name, "-n", namespace, "--timeout=120s"]).await?;
        }
        Ok(())
    }))
    .await;
}

/// A logical cloud made meanwhile is whole on the cluster that answers.
async fn a_logical_cloud_waits_for_it_alone(bed: &Bed) -> Result<()> {
    let cloud = "
apiVersion: emco.io/v1alpha1
kind: LogicalCloud
metadata: {name: partly, namespace: far}
spec:
  level: Standard
  namespace: far-partly
  clusters: [{provider: acme, cluster: a}, {provider: remote, cluster: c}]
";
    bed.hub().kubectl().apply(cloud).await?;
    wait(bed, "far", "partly", |cloud: &LogicalCloud| {
        let status = cloud.status.as_ref().ok_or("it has no status")?;
        let counts = status.clusters.clone().unwrap_or_default();
        let named = status.failing.iter().any(|failing| failing.cluster == "remote/c");
        if (counts.total, counts.ready, counts.unreachable) == (2, 1, 1) && named {
            return Ok(());
        }
        Err(format!("{counts:?}, failing {:?}", status.failing))
    })
    .await?;
    let may = [
        "auth",
        "can-i",
        "create",
        "configmaps",
        "-n",
        "far-partly",
        "--as=system:serviceaccount:far-partly:emco-partly",
    ];
    bed.edge("a").kubectl().until(&may, "", true).await
}

#[tokio::test]
async fn a_cluster_that_is_not_granted_is_refused_until_a_grant_names_the_project() {
    let bed = start("poor", &[]).await;
    bed.explain(async {
        provider(bed, "closed", "rich").await?;
        bed.hub().kubectl().apply(&cluster("closed", "vault")).await?;
        let cloud = "
apiVersion: emco.io/v1alpha1
kind: LogicalCloud
metadata: {name: vault, namespace: poor}
spec: {level: Admin, clusters: [{provider: closed, cluster: vault}]}
";
        bed.hub().kubectl().apply(cloud).await?;
        let message = says::<LogicalCloud, _>(bed, "poor", "vault", types::READY, "NotGranted").await?;
        has(&message, &["project poor", "closed/vault", "spec.grants"]);
        provider(bed, "closed", "poor").await?;
        wait(bed, "poor", "vault", |cloud: &LogicalCloud| {
            let granted = refused(cloud.status.as_ref(), types::READY, "NotGranted");
            granted.map_or(Ok(()), |message| Err(format!("still not granted: {message}")))
        })
        .await
    })
    .await;
}
