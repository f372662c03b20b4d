//! Registering clusters that are written to through Git.

use anyhow::{Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_e2e::bed::Bed;
use serde_json::Value;

use super::rig::{STAGE, file, lend_e, run};

/// A provider of its own, for no logical cloud of another test is to put anything on its cluster.
const PROVIDER: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: pulling, labels: {emco.io/provider: pulling}}
---
apiVersion: emco.io/v1alpha1
kind: ClusterProvider
metadata: {name: pulling}
spec:
  grants:
  - {name: own, projects: [pulling-alone], maxLevel: Admin}
";
const TARGET: &str = "
apiVersion: emco.io/v1alpha1
kind: GitTarget
metadata: {name: fleet, namespace: pulling}
spec: {url: 'https://127.0.0.1:1/fleet.git', branch: main, folder: hub}
";

/// Everything that the command makes on a cluster.
const MADE: [&[&str]; 4] = [
    &["delete", "clusterrolebinding", "emco-hub"],
    &["delete", "clusterrole", "emco-hub"],
    &["delete", "namespace", "emco-system", "--wait=false"],
    &["delete", "serviceaccounts", "--all", "-n", "emco-system", "--ignore-not-found"],
];

#[tokio::test]
async fn a_cluster_is_added_through_git_with_an_account_that_only_reads() {
    let bed = STAGE.get().await.unwrap().0;
    bed.explain(Box::pin(async {
        let _turn = lend_e(bed).await?;
        let kubectl = bed.hub().kubectl();
        kubectl.apply(PROVIDER).await?;
        let kubeconfig = file(bed, "e-admin.kubeconfig", &bed.edge("e").kubeconfig()?).await?;
        let kubeconfig = kubeconfig.display().to_string();
        let add =
            ["cluster", "add", "pulling/galway", "--kubeconfig", &kubeconfig, "--timeout", "0s", "--git"];
        run(bed, &[&add[..], &["nowhere"]].concat())
            .await?
            .is(1, &["there is no GitTarget nowhere in namespace pulling"]);
        let both = [&add[..], &["fleet", "--level", "Admin"]].concat();
        ensure!(run(bed, &both).await?.code != Some(0), "--git has no level");
        kubectl.apply(TARGET).await?;
        // First on paper.
        let dry = [&add[..], &["fleet", "--dry-run"]].concat();
        let flux = [
            "kind: GitRepository",
            "- hub/clusters/pulling/galway",
            "path: ./hub/clusters/pulling/galway/sync",
        ];
        run(bed, &dry).await?.is(0, &[&flux[..], &["name: fleet", "kind: ClusterRoleBinding"]].concat());
        // Flux is not there: its objects are printed for later.
        let add = [&add[..], &["fleet"]].concat();
        run(bed, &add).await?.is(0, &["pulling/galway is registered", "install Flux", "kind: GitRepository"]);
        let cluster =
            kubectl.run(&["get", "clusters.emco.io", "galway", "-n", "pulling", "-o", "json"]).await?;
        let cluster: Value = serde_json::from_str(&cluster)?;
        let access = &cluster["spec"]["access"]["gitOps"];
        assert_eq!(access["targetRef"]["name"], "fleet");
        assert_eq!(access["observe"]["kubeconfigSecretRef"]["name"], "galway-kubeconfig");
        only_reads(bed).await?;
        kubectl.run(&["delete", "gitt", "fleet", "-n", "pulling", "--wait=false"]).await?;
        // An account that only reads cannot remove itself: the commands are named.
        run(bed, &["cluster", "remove", "pulling/galway"]).await?.is(
            3,
            &[
                "pulling/galway is removed from the hub",
                "kubectl delete clusterrolebinding,clusterrole emco-hub",
            ],
        );
        for args in MADE {
            bed.edge("e").kubectl().run(args).await?;
        }
        Ok(())
    }))
    .await;
}

/// The credential that is stored on the hub lists what charts make, and neither writes nor reads Secrets.
async fn only_reads(bed: &Bed) -> Result<()> {
    let get = ["get", "secret", "galway-kubeconfig", "-n", "pulling", "-o", "jsonpath={.data.kubeconfig}"];
    let text = STANDARD.decode(bed.hub().kubectl().run(&get).await?.trim())?;
    let stored = file(bed, "galway.kubeconfig", std::str::from_utf8(&text)?).await?;
    let account = bed.edge("e").kubectl().with_kubeconfig(&stored);
    account.run(&["get", "configmaps,deployments,clusterroles", "-A", "-o", "name"]).await?;
    for refused in [
        ["get", "secrets", "-n", "emco-system"],
        ["create", "configmap", "mine", "--namespace=emco-system"],
        ["create", "token", "emco-hub", "--namespace=emco-system"],
    ] {
        let said = account.output(&refused, "").await?;
        ensure!(!said.is_ok() && said.stderr.to_lowercase().contains("forbidden"), "{refused:?}: {said:?}");
    }
    Ok(())
}
