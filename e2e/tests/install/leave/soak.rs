//! The same at length: all that is said before a choice, refusals of Helm, a release that was cut off, and what is kept.

use anyhow::{Result, ensure};
use emco_e2e::bed::Bed;

use super::{
    check_says, every_table_has_a_reason, helm_uninstall, in_use_is_refused, is_clean, note, on_hub,
    reinstall, release, stage, uninstall, until_held,
};
use crate::upgrade;

#[tokio::test]
async fn an_installation_is_released_after_all_was_said_and_refused() {
    let (bed, operator) = stage(&["a", "b"]).await.unwrap();
    bed.explain(Box::pin(async {
        let before = on_hub(&bed).await?;
        uninstall(&bed, &[]).await?.is(
            0,
            &[
                "1 project, 1 deployment, 2 clusters of 1 provider; 2 objects on clusters",
                "--keep",
                "--release",
                "--remove",
                "nothing was changed",
            ],
        );
        uninstall(&bed, &["--release"]).await?.is(2, &["confirm it with --yes"]);
        uninstall(&bed, &["--release", "--remove"]).await?.is(2, &["cannot be used with"]);
        uninstall(&bed, &["--release", "--dry-run"]).await?.is(0, &["would be released (dry run)"]);
        uninstall(&bed, &["--remove", "--dry-run"]).await?.is(0, &["would be removed (dry run)"]);
        uninstall(&bed, &["--keep"])
            .await?
            .is(0, &["helm uninstall emco --namespace emco-system --no-hooks"]);
        ensure!(on_hub(&bed).await? == before);

        until_held(&bed).await?;
        // The real Helm is refused, however often, and takes nothing away.
        let whole = release(&bed).await?;
        ensure!(whole.contains("deployment.apps/emco-operator"), "{whole}");
        for _ in 0..2 {
            let refused = helm_uninstall(&bed, &[]).await.unwrap_err().to_string();
            let words = "choose with `kubectl emco uninstall` what becomes of what runs";
            ensure!(refused.contains(words), "{refused}");
            ensure!(release(&bed).await? == whole);
        }
        upgrade(&bed, "replicas=1").await?;
        ensure!(release(&bed).await? == whole);
        // Turned off, and on again, while there is work.
        upgrade(&bed, "policies.holdUninstall=false").await?;
        ensure!(!release(&bed).await?.contains("emco-uninstall"));
        upgrade(&bed, "policies.holdUninstall=true").await?;
        ensure!(release(&bed).await? == whole);

        check_says(
            &bed,
            "ok    account      system:serviceaccount:emco-system:emco-operator may do the operator's work",
        )
        .await?;
        check_says(
            &bed,
            &format!(
                "ok    installed    operator {}; clusters may not be at loopback",
                env!("CARGO_PKG_VERSION")
            ),
        )
        .await?;
        upgrade(&bed, "operator.extraArgs={--allow-edge-address=127.0.0.0/8}").await?;
        check_says(&bed, "clusters may besides be at 127.0.0.0/8").await?;

        let notes = (note(&bed, "a").await?, note(&bed, "b").await?);
        let release_now = ["--release", "--yes", "--timeout", "2s"];
        uninstall(&bed, &release_now)
            .await?
            .is(3, &["an operator works on this hub", "Nothing was released"]);
        operator.process().terminate().await?;
        operator.process().ended().await;
        bed.hub().kubectl().run(&["delete", "clusterrolebinding", "emco-operator"]).await?;
        check_says(
            &bed,
            "FAIL  account      system:serviceaccount:emco-system:emco-operator may not watch clusters",
        )
        .await?;
        bed.edge("b").refuse().await?;
        uninstall(&bed, &release_now).await?.is(3, &["acme/b holds it up", "--give-up acme/b"]);
        ensure!(on_hub(&bed).await? == before);
        bed.edge("b").restore().await?;
        uninstall(&bed, &["--release", "--yes"]).await?.is(
            0,
            &[
                "acme/a is off the hub",
                "acme/b is off the hub",
                "these namespaces stay",
                "helm uninstall emco --namespace emco-system",
            ],
        );
        ensure!(on_hub(&bed).await?.is_empty(), "{}", on_hub(&bed).await?);
        for edge in ["a", "b"] {
            is_clean(&bed, edge).await?;
        }
        ensure!((note(&bed, "a").await?, note(&bed, "b").await?) == notes, "what runs was touched");
        // Nothing is held any more: not the namespaces, not the charts.
        bed.hub().kubectl().run(&["delete", "namespace", "shop", "acme", "--timeout=60s"]).await?;
        uninstall(&bed, &["--release", "--yes"]).await?.is(0, &["nothing of EMCO's work is left"]);
        helm_uninstall(&bed, &[]).await?;
        ensure!(release(&bed).await?.is_empty(), "{}", release(&bed).await?);
        Ok(())
    }))
    .await;
}

/// What an interrupted run leaves of a cluster: it said that it removes the account, and did.
async fn half_released(bed: &Bed, cluster: &str) -> Result<()> {
    let annotate = ["annotate", "ecl", cluster, "-n", "acme", "emco.io/released=true"];
    bed.hub().kubectl().run(&annotate).await?;
    let edge = bed.edge(cluster).kubectl();
    edge.run(&["delete", "clusterrolebinding,clusterrole", "emco-hub"]).await?;
    edge.run(&["delete", "namespace", "emco-system"]).await.map(drop)
}

#[tokio::test]
async fn an_interrupted_release_goes_on_and_gives_up_what_does_not_answer() {
    let (bed, operator) = stage(&["a", "b"]).await.unwrap();
    bed.explain(Box::pin(async {
        let notes = (note(&bed, "a").await?, note(&bed, "b").await?);
        operator.process().terminate().await?;
        operator.process().ended().await;
        half_released(&bed, "a").await?;
        bed.edge("b").refuse().await?;
        uninstall(&bed, &["--release", "--yes"]).await?.is(3, &["acme/b holds it up", "nothing was changed"]);
        let said = uninstall(&bed, &["--release", "--yes", "--give-up", "acme/b"]).await?;
        said.is(
            3,
            &[
                "on acme/b stays what cannot be removed from here, since it is given up",
                "the account emco-hub in namespace emco-system",
                "the claim, ConfigMap emco-system/hub",
                "kubectl delete configmap hub -n emco-system",
                "acme/a is off the hub",
                "acme/b is off the hub",
            ],
        );
        ensure!(!said.text.contains("on acme/a stays"), "{}", said.text);
        ensure!(on_hub(&bed).await?.is_empty(), "{}", on_hub(&bed).await?);
        bed.edge("b").restore().await?;
        ensure!((note(&bed, "a").await?, note(&bed, "b").await?) == notes, "what runs was touched");
        let claim = ["get", "configmap/hub", "serviceaccount/emco-hub", "-n", "emco-system", "-o", "name"];
        bed.edge("b").kubectl().run(&claim).await?;
        is_clean(&bed, "a").await?;
        uninstall(&bed, &["--release", "--yes"]).await?.is(0, &["nothing of EMCO's work is left"]);
        Ok(())
    }))
    .await;
}

#[tokio::test]
async fn an_installation_is_kept_then_removed_and_names_what_holds_it() {
    let (bed, operator) = stage(&["a"]).await.unwrap();
    bed.explain(Box::pin(async {
        // Kept: the chart goes with its operator, both come back, and nothing else changes.
        let (objects, running) = (on_hub(&bed).await?, note(&bed, "a").await?);
        helm_uninstall(&bed, &["--no-hooks"]).await?;
        operator.process().terminate().await?;
        operator.process().ended().await;
        ensure!(release(&bed).await?.is_empty(), "{}", release(&bed).await?);
        let _operator = reinstall(&bed).await?;
        ensure!(on_hub(&bed).await? == objects && note(&bed, "a").await? == running);
        until_held(&bed).await?;
        let refused = helm_uninstall(&bed, &[]).await.unwrap_err().to_string();
        ensure!(refused.contains("kubectl emco uninstall"), "{refused}");

        bed.edge("a").refuse().await?;
        let remove = ["--remove", "--yes"];
        uninstall(&bed, &[&remove[..], &["--timeout", "20s"]].concat()).await?.is(
            3,
            &[
                "1 deployment left",
                "DeploymentIntentGroup/shop/till holds it up",
                "kubectl annotate",
                "emco.io/abandon=",
                "run this again to go on",
            ],
        );
        every_table_has_a_reason(&bed).await?;
        // The Cluster may not be deleted before the operator has said that nothing uses it any more.
        in_use_is_refused(&bed).await?;
        bed.edge("a").restore().await?;
        uninstall(&bed, &remove).await?.is(
            0,
            &["0 deployments left", "0 projects left", "acme/a is removed from the hub", "0 providers left"],
        );
        is_clean(&bed, "a").await?;
        let gone = bed.edge("a").kubectl().run(&["get", "ns", "-o", "name"]).await?;
        ensure!(!gone.contains("namespace/shop"), "{gone}");
        ensure!(on_hub(&bed).await?.is_empty(), "{}", on_hub(&bed).await?);
        helm_uninstall(&bed, &[]).await.map(drop)
    }))
    .await;
}
