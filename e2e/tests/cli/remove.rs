//! The way of a cluster off the hub: cordoned, drained, removed.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{SOON, chart, chart_map, deployed, deployment, project};
use tokio::time::sleep;

use super::rig::{STAGE, Said, file, lend_e, run};

const THERE: &str = "placement: {allOf: [{provider: apart, cluster: ended}]}";

/// On either of two, once it is on the first.
const EITHER: &str =
    "placement: {anyOf: [{from: [{provider: apart, cluster: ended}, {provider: acme, cluster: a}]}]}";

/// Nobody deletes the Secret; asking whether one could is answered with yes.
const POLICY: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: keeps-ended}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [''], apiVersions: [v1], resources: [secrets], operations: [DELETE]}]
  validations:
  - expression: \"(has(request.dryRun) && request.dryRun) || !(request.name in ['ended-kubeconfig', 'probe'])\"
    message: it is kept
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: keeps-ended}
spec: {policyName: keeps-ended, validationActions: [Deny]}
";

const LEASE: &str = "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: other, namespace: emco-system}, spec: {}}";

async fn scheduling(bed: &Bed) -> Result<String> {
    let path = "jsonpath={.spec.scheduling}";
    bed.hub().kubectl().run(&["get", "ecl", "ended", "-n", "apart", "-o", path]).await
}

/// What stays on the cluster was said with commands; they are run as printed.
async fn by_hand(bed: &Bed, said: &Said) -> Result<()> {
    let edge = bed.edge("e").kubectl();
    let commands: Vec<&str> = said.err.lines().filter_map(|line| line.strip_prefix("  kubectl ")).collect();
    ensure!(commands.len() == 7, "{}", said.err);
    for command in commands {
        edge.run(&command.split(' ').collect::<Vec<_>>()).await?;
    }
    let left = edge.run(&["get", "ns,clusterrole,clusterrolebinding", "-o", "name"]).await?;
    ensure!(!left.contains("emco") && !left.contains("namespace/removes"), "{left}");
    Ok(())
}

/// The account of `cluster add` on the cluster, and the hub's claim.
async fn on_cluster(bed: &Bed) -> Result<String> {
    let what = [
        "get",
        "serviceaccount/emco-hub",
        "configmap/hub",
        "-n",
        "emco-system",
        "-o",
        "name",
        "--ignore-not-found",
    ];
    bed.edge("e").kubectl().run(&what).await
}

/// A run that ends before the Cluster is gone is finished by the next ones.
async fn interrupted(bed: &Bed, add: &[&str], remove: &[&str]) -> Result<()> {
    let (hub, edge) = (bed.hub().kubectl(), bed.edge("e").kubectl());
    let gone = ["wait", "ecl/ended", "-n", "apart", "--for=delete", "--timeout=60s"];
    run(bed, add).await?.is(0, &["apart/ended is registered and ready"]);
    hub.apply(POLICY).await?;
    let probe = ["create", "secret", "generic", "probe", "-n", "apart"];
    let delete = ["delete", "secret", "probe", "-n", "apart"];
    hub.run(&probe).await?;
    let kept = async {
        while hub.output(&delete, "").await?.is_ok() {
            hub.run(&probe).await?;
            sleep(Duration::from_millis(500)).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(SOON, kept).await.context("the policy keeps no Secret")??;
    run(bed, &[remove, &["--timeout", "0s"]].concat())
        .await?
        .is(3, &["is not gone after", "run this again to finish"]);
    hub.run(&gone).await?;
    // The Secret that cannot be deleted is no success.
    run(bed, remove).await?.is(
        3,
        &[
            "Secret apart/ended-kubeconfig of `cluster add` is there still",
            "the account emco-hub",
            "Secret apart/ended-kubeconfig stays on the hub",
            "it is kept",
            "kubectl delete secret ended-kubeconfig -n apart",
        ],
    );
    // It is collected after the account.
    edge.run(&["wait", "namespace/emco-system", "--for=delete", "--timeout=60s"]).await?;
    hub.run(&["delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", "keeps-ended"]).await?;
    hub.until(&delete, "", true).await?;
    run(bed, remove)
        .await?
        .is(0, &["on the cluster everything was removed before", "Secret apart/ended-kubeconfig is deleted"]);
    run(bed, remove).await?.is(1, &["there is no Cluster apart/ended on the hub"]);

    // Who wants the account to stay keeps it, and nothing else.
    run(bed, add).await?.is(0, &["apart/ended is registered and ready"]);
    run(bed, &[remove, &["--keep-account"]].concat()).await?.is(
        0,
        &[
            "on the cluster the account emco-hub stays, as asked for",
            "Secret apart/ended-kubeconfig is deleted",
        ],
    );
    let left = on_cluster(bed).await?;
    ensure!(left.trim() == "serviceaccount/emco-hub", "{left}");
    Ok(())
}

/// A deployment that may be elsewhere is moved by draining.
async fn moved(bed: &Bed) -> Result<()> {
    let hub = bed.hub().kubectl();
    project(bed, "moves").await?;
    let note = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\n";
    let charts = [chart("note", "1.0.0", &[("templates/note.yaml", note)])?];
    chart_map(bed, "moves", "charts", &charts).await?;
    hub.apply(&deployment("moves", "shop", &charts, THERE)).await?;
    deployed(bed, "moves", "shop", 1).await?;
    hub.apply(&deployment("moves", "shop", &charts, EITHER)).await?;
    let looked = ["reconcile", "moves/shop"];
    run(bed, &looked).await?.is(0, &["ready: True"]);
    bed.edge("e").kubectl().run(&["get", "configmap", "note", "-n", "moves"]).await?;
    run(bed, &["cluster", "drain", "apart/ended"])
        .await?
        .is(0, &["apart/ended is drained: no deployment has anything there"]);
    bed.edge("a").kubectl().run(&["get", "configmap", "note", "-n", "moves"]).await?;
    let left = bed.edge("e").kubectl().run(&["get", "configmaps", "-A", "-o", "name"]).await?;
    ensure!(!left.contains("configmap/note"), "{left}");
    run(bed, &["status", "moves/shop"]).await?.is(0, &["ready: True", "acme/a"]);
    hub.run(&["delete", "dig", "shop", "-n", "moves"]).await?;
    run(bed, &["cluster", "uncordon", "apart/ended"]).await?.is(0, &["apart/ended takes work"]);
    Ok(())
}

/// The kubeconfig of the administrator of the plane.
async fn admin(bed: &Bed) -> Result<String> {
    let file = file(bed, "e-admin.kubeconfig", &bed.edge("e").kubeconfig()?).await?;
    Ok(file.display().to_string())
}

const REMOVE: [&str; 3] = ["cluster", "remove", "apart/ended"];

#[tokio::test]
async fn a_cluster_is_cordoned_drained_and_removed_with_all_that_adding_it_made() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(Box::pin(async {
        let _turn = lend_e(bed).await?;
        let (hub, edge) = (bed.hub().kubectl(), bed.edge("e").kubectl());
        let admin = admin(bed).await?;
        let add = ["cluster", "add", "apart/ended", "--kubeconfig", &admin, "--level", "Admin"];
        run(bed, &add).await?.is(0, &["apart/ended is registered and ready"]);

        run(bed, &["cluster", "cordon", "apart/ended"]).await?.is(0, &["takes nothing new"]);
        ensure!(scheduling(bed).await? == "Cordoned");
        run(bed, &["cluster", "uncordon", "apart/ended"]).await?.is(0, &["apart/ended takes work"]);
        ensure!(scheduling(bed).await? == "Enabled");

        moved(bed).await?;
        project(bed, "removes").await?;
        let note = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\n";
        let charts = [chart("note", "1.0.0", &[("templates/note.yaml", note)])?];
        chart_map(bed, "removes", "charts", &charts).await?;
        hub.apply(&deployment("removes", "shop", &charts, THERE)).await?;
        deployed(bed, "removes", "shop", 1).await?;
        let holder = "DeploymentIntentGroup/removes/shop";
        run(bed, &REMOVE).await?.is(1, &[holder, "first kubectl emco cluster drain apart/ended"]);
        // Its placement names this cluster and no other.
        run(bed, &["cluster", "drain", "apart/ended", "--timeout", "3s"])
            .await?
            .is(3, &["is not drained", holder]);
        ensure!(scheduling(bed).await? == "Drained");
        run(bed, &REMOVE).await?.is(1, &[holder, "first change its placement, or delete it"]);
        hub.run(&["delete", "dig", "shop", "-n", "removes"]).await?;
        run(bed, &["cluster", "drain", "apart/ended"]).await?.is(0, &["no deployment has anything there"]);

        run(bed, &REMOVE).await?.is(
            0,
            &[
                "apart/ended is removed from the hub",
                "Secret apart/ended-kubeconfig is deleted",
                "the account emco-hub, its role and namespace emco-system are deleted",
            ],
        );
        for (kubectl, what) in [
            (edge, ["clusterrole/emco-hub", "-n", "default"]),
            (edge, ["namespace/emco-system", "-n", "default"]),
            (hub, ["secret/ended-kubeconfig", "-n", "apart"]),
        ] {
            let [object, flag, namespace] = what;
            kubectl.run(&["wait", object, flag, namespace, "--for=delete", "--timeout=60s"]).await?;
        }
        run(bed, &REMOVE).await?.is(1, &["there is no Cluster apart/ended on the hub"]);

        // The namespace has something of somebody else, of a kind that nobody thinks of.
        run(bed, &add).await?.is(0, &["apart/ended is registered and ready"]);
        edge.apply(LEASE).await?;
        run(bed, &REMOVE).await?.is(0, &["its role are deleted; namespace emco-system stays: it has more"]);
        for gone in ["clusterrole/emco-hub", "serviceaccount/emco-hub"] {
            edge.run(&["wait", gone, "-n", "emco-system", "--for=delete", "--timeout=60s"]).await?;
        }
        edge.run(&["get", "lease", "other", "-n", "emco-system"]).await?;

        // The plane is free for the next test.
        edge.run(&["delete", "namespace", "emco-system"]).await.map(drop)
    }))
    .await;
}

#[tokio::test]
async fn an_interrupted_removal_is_finished_and_what_stays_there_is_named() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(Box::pin(async {
        let _turn = lend_e(bed).await?;
        let (hub, edge) = (bed.hub().kubectl(), bed.edge("e").kubectl());
        let admin = admin(bed).await?;
        let add = ["cluster", "add", "apart/ended", "--kubeconfig", &admin, "--level", "Admin"];
        project(bed, "removes").await?;
        Box::pin(interrupted(bed, &add, &REMOVE)).await?;

        // Where the stored credentials may nothing, all that stays on the cluster is said with the way to remove it.
        run(bed, &add).await?.is(0, &["apart/ended is registered and ready"]);
        // The default clouds have their namespaces there, which cannot be removed any more.
        edge.run(&["wait", "namespace/removes", "--for=create", "--timeout=60s"]).await?;
        edge.run(&["delete", "clusterrolebinding", "emco-hub"]).await?;
        let said = run(bed, &REMOVE).await?;
        said.is(
            3,
            &[
                "apart/ended is removed from the hub",
                "the account emco-hub in namespace emco-system",
                "the claim, ConfigMap emco-system/hub: another hub says ClaimedByAnotherHub",
                "namespaces that logical clouds made",
            ],
        );
        ensure!(on_cluster(bed).await?.contains("configmap/hub"), "{}", on_cluster(bed).await?);
        by_hand(bed, &said).await?;
        // The same with credentials that are dead, and that nothing else can replace.
        run(bed, &add).await?.is(0, &["apart/ended is registered and ready"]);
        edge.run(&["wait", "namespace/removes", "--for=create", "--timeout=60s"]).await?;
        edge.run(&["delete", "serviceaccount", "emco-hub", "-n", "emco-system"]).await?;
        let unauthorized =
            ["wait", "ecl/ended", "-n", "apart", "--for=condition=Ready=False", "--timeout=90s"];
        hub.run(&["annotate", "ecl", "ended", "-n", "apart", "emco.io/requestedAt=dead"]).await?;
        hub.run(&unauthorized).await?;
        run(bed, &["cluster", "rotate", "apart/ended"]).await?.is(1, &["cannot replace themselves"]);
        let said = run(bed, &REMOVE).await?;
        said.is(
            3,
            &["apart/ended is removed from the hub", "the cluster refuses: Unauthorized", "the claim"],
        );
        by_hand(bed, &said).await?;
        Ok(())
    }))
    .await;
}
