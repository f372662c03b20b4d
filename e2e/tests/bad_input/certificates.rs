//! Lets the certificate of an edge run out, and its authority change: the condition says so and whose matter it is, deployments wait.

use anyhow::{Context as _, Result};
use emco_crds::conditions::types;
use emco_crds::{Cluster, DeploymentIntentGroup};
use emco_e2e::bed::{Bed, serial};
use emco_e2e::operator::{chart, cluster, deployed, deployment, is, ours, secret, wait};
use emco_e2e::tls_proxy::TlsProxy;

use super::{NOTE, cluster_says, has, of_one_file, provider, start};

/// The token of an account that may do everything.
async fn token(bed: &Bed) -> Result<String> {
    let kubectl = bed.edge("d").kubectl();
    kubectl.run(&["create", "serviceaccount", "registered", "-n", "default"]).await?;
    let role = [
        "create",
        "clusterrolebinding",
        "registered",
        "--clusterrole=cluster-admin",
        "--serviceaccount=default:registered",
    ];
    kubectl.run(&role).await?;
    let token = kubectl.run(&["create", "token", "registered", "-n", "default", "--duration=1h"]).await?;
    Ok(token.trim().to_owned())
}

/// A kubeconfig that leads through the proxy and trusts these authorities.
fn kubeconfig(bed: &Bed, proxy: &TlsProxy, token: &str, authorities: &str) -> Result<String> {
    let mut config: serde_yaml::Value = serde_yaml::from_str(&bed.edge("d").kubeconfig_with_token(token))?;
    let target =
        config.get_mut("clusters").and_then(|c| c.get_mut(0)?.get_mut("cluster")).context("no cluster")?;
    target["server"] = proxy.url().into();
    let ca = {
        use base64::Engine as _;
        base64::engine::general_purpose::STANDARD.encode(authorities)
    };
    target["certificate-authority-data"] = ca.into();
    Ok(serde_yaml::to_string(&config)?)
}

/// The authority of the edge changes under a deployment: it is named as the cause, what runs stays, and with both authorities in
/// the Secret the cluster is back.
async fn rotate_authority(bed: &Bed, proxy: &TlsProxy, token: &str) -> Result<()> {
    let before = proxy.ca();
    proxy.rotate()?;
    let message = cluster_says(bed, "expires", "d", "TLSFailed").await?;
    has(&message, &["certificate-authority-data did not sign"]);
    assert_eq!(ours(bed, "d", "configmaps", Some("expiring")).await?, ["ConfigMap/expiring/note"]);
    let both = format!("{before}{}", proxy.ca());
    secret(bed, "expires", "d", &kubeconfig(bed, proxy, token, &both)?).await?;
    wait(bed, "expires", "d", |cluster: &Cluster| is(cluster.status.as_ref(), types::READY, "True")).await?;
    deployed(bed, "expiring", "shop", 1).await.map(drop)
}

#[tokio::test]
async fn credentials_that_ended_stop_work_and_fresh_ones_bring_what_waited() {
    let _turn = serial().await;
    let note = of_one_file("web", NOTE).unwrap();
    let next = chart("web", "1.1.0", &[("templates/thing.yaml", NOTE)]).unwrap();
    let bed = start("ended", &[note.clone(), next.clone()]).await;
    bed.explain(async {
        provider(bed, "ends", "ended").await?;
        let edge = bed.edge("d");
        secret(bed, "ends", "d", &edge.kubeconfig()?).await?;
        bed.hub().kubectl().apply(&cluster("ends", "d")).await?;
        wait(bed, "ends", "d", |cluster: &Cluster| is(cluster.status.as_ref(), types::READY, "True")).await?;
        let placement = "placement: {allOf: [{provider: ends, cluster: d}]}";
        bed.hub().kubectl().apply(&deployment("ended", "shop", &[note], placement)).await?;
        deployed(bed, "ended", "shop", 1).await?;

        secret(bed, "ends", "d", &edge.kubeconfig_that_ended()?).await?;
        let message = cluster_says(bed, "ends", "d", "Unauthorized").await?;
        has(
            &message,
            &["the credentials ended at", "kubectl emco cluster rotate ends/d", "Secret d-kubeconfig"],
        );
        // What runs stays, and an edit waits, naming the cluster.
        bed.hub().kubectl().apply(&deployment("ended", "shop", &[next], placement)).await?;
        wait(bed, "ended", "shop", |dig: &DeploymentIntentGroup| {
            let failing = dig.status.as_ref().map(|status| status.failing.clone()).unwrap_or_default();
            if failing.iter().any(|row| row.cluster == "ends/d") {
                Ok(())
            } else {
                Err(format!("{failing:?}"))
            }
        })
        .await?;
        assert_eq!(said(bed).await?, "1.0.0");

        secret(bed, "ends", "d", &edge.kubeconfig()?).await?;
        wait(bed, "ends", "d", |cluster: &Cluster| is(cluster.status.as_ref(), types::READY, "True")).await?;
        deployed(bed, "ended", "shop", 2).await?;
        assert_eq!(said(bed).await?, "1.1.0");
        // The edge is free for the next test.
        let kubectl = bed.hub().kubectl();
        kubectl.run(&["delete", "dig", "shop", "-n", "ended", "--timeout=60s"]).await?;
        kubectl.run(&["delete", "ecl", "d", "-n", "ends", "--timeout=60s"]).await.map(drop)
    })
    .await;
}

/// What the note on the edge says.
async fn said(bed: &Bed) -> Result<String> {
    bed.edge("d").kubectl().run(&["get", "cm", "note", "-n", "ended", "-o", "jsonpath={.data.say}"]).await
}

#[tokio::test]
async fn an_edge_whose_certificate_expires_is_named_and_goes_on_with_the_next_one() {
    let _turn = serial().await;
    let note = of_one_file("web", NOTE).unwrap();
    let bed = start("expiring", std::slice::from_ref(&note)).await;
    bed.explain(async {
        let proxy = TlsProxy::before(bed.edge("d")).await?;
        provider(bed, "expires", "expiring").await?;
        let token = token(bed).await?;
        secret(bed, "expires", "d", &kubeconfig(bed, &proxy, &token, &proxy.ca())?).await?;
        bed.hub().kubectl().apply(&cluster("expires", "d")).await?;
        wait(bed, "expires", "d", |cluster: &Cluster| is(cluster.status.as_ref(), types::READY, "True"))
            .await?;
        proxy.expire()?;
        let message = cluster_says(bed, "expires", "d", "TLSFailed").await?;
        has(&message, &["expired certificate", "renew it on the cluster"]);
        let placement = "placement: {allOf: [{provider: expires, cluster: d}]}";
        bed.hub().kubectl().apply(&deployment("expiring", "shop", &[note], placement)).await?;
        wait(bed, "expiring", "shop", |dig: &DeploymentIntentGroup| {
            let failing = dig.status.as_ref().map(|status| status.failing.clone()).unwrap_or_default();
            let told = failing
                .iter()
                .any(|f| f.reason == "Unreachable" && f.message.contains("expired certificate"));
            if told { Ok(()) } else { Err(format!("{failing:?}")) }
        })
        .await?;
        proxy.renew()?;
        wait(bed, "expires", "d", |cluster: &Cluster| is(cluster.status.as_ref(), types::READY, "True"))
            .await?;
        deployed(bed, "expiring", "shop", 1).await?;
        assert_eq!(ours(bed, "d", "configmaps", Some("expiring")).await?, ["ConfigMap/expiring/note"]);
        rotate_authority(bed, &proxy, &token).await?;
        // The edge is free for the next test.
        let kubectl = bed.hub().kubectl();
        kubectl.run(&["delete", "dig", "shop", "-n", "expiring", "--timeout=60s"]).await?;
        kubectl.run(&["delete", "ecl", "d", "-n", "expires", "--timeout=60s"]).await.map(drop)
    })
    .await;
}
