//! In: edges that stay away, and a hub that is made anew. Out: what is left on an edge is given up and removed when it is back; and
//! what runs on edges is found again by a new hub, and not touched.

use anyhow::{Result, ensure};
use emco_crds::conditions::types;
use emco_crds::{Cluster, DeploymentIntentGroup, SyncShard};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{
    SOON, chart, chart_map, cluster, deployed, deployment, do_as_told, install_kinds, is, ours, program,
    project, provider, refused, register, secret, wait,
};
use emco_e2e::package::Package;
use emco_e2e::wait::{wait_for_some, wait_until_gone};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::runtime::watcher::Config;
use serde_json::Value;
use tokio::process::Command;

use super::{EDGES, IN_TURN};

const EVERYWHERE: &str = "placement: {allOf: [{provider: acme, selector: {matchLabels: {tier: edge}}}]}";
const NOTE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\ndata: {say: one}\n";

fn note() -> Result<Package> {
    chart("web", "1.0.0", &[("templates/note.yaml", NOTE)])
}

async fn install(bed: &Bed, namespace: &str, name: &str, spec: &str) -> Result<()> {
    project(bed, namespace).await?;
    chart_map(bed, namespace, "charts", &[note()?]).await?;
    bed.hub().kubectl().apply(&deployment(namespace, name, &[note()?], spec)).await?;
    deployed(bed, namespace, name, 1).await.map(drop)
}

/// Provider and clusters on a hub that is new to them. Marks of the old one's work are confirmed, where there are any.
async fn register_again(bed: &Bed) -> Result<()> {
    let kubectl = bed.hub().kubectl();
    provider(bed, "acme").await?;
    for edge in EDGES {
        secret(bed, "acme", edge, &bed.edge(edge).kubeconfig()?).await?;
        kubectl.apply(&cluster("acme", edge)).await?;
        let seen = wait(bed, "acme", edge, |cluster: &Cluster| {
            let status = cluster.status.as_ref();
            is(status, types::READY, "True")
                .map(|()| String::new())
                .or_else(|_| refused(status, types::READY, "HubRestored"))
        })
        .await?;
        if !seen.is_empty() {
            do_as_told(bed, &seen).await?;
            wait(bed, "acme", edge, |cluster: &Cluster| is(cluster.status.as_ref(), types::READY, "True"))
                .await?;
        }
    }
    Ok(())
}

async fn here(bed: &Bed, plane: &str, namespace: &str) -> Result<Vec<String>> {
    ours(bed, plane, "configmaps", Some(namespace)).await
}

/// `kubectl emco`, as the administrator of the hub; what it prints, and its exit code.
async fn emco(bed: &Bed, args: &[&str]) -> Result<(String, Option<i32>)> {
    let mut command = Command::new(program()?.with_file_name("kubectl-emco"));
    command.args(args).env("KUBECONFIG", bed.hub().kubectl().kubeconfig()).kill_on_drop(true);
    let output = bed.hear(&mut command).await?;
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    Ok((text, output.status.code()))
}

#[tokio::test]
async fn what_is_left_on_an_edge_that_stays_away_is_given_up_and_removed_when_it_is_back() {
    let (bed, mut turn) = IN_TURN.turn().await.unwrap();
    bed.explain(Box::pin(async {
        turn.start(&[]).await?;
        register(bed, "acme", &EDGES).await?;
        install(bed, "away", "shop", &format!("{EVERYWHERE}\nunreachable: {{action: Abandon, after: 5s}}"))
            .await?;
        install(bed, "kept", "till", EVERYWHERE).await?;
        let kubectl = bed.hub().kubectl();
        bed.edge("b").refuse().await?;
        kubectl.run(&["delete", "dig", "shop", "-n", "away", "--wait=false"]).await?;
        let groups: Api<DeploymentIntentGroup> = bed.hub().api("away").await?;
        wait_until_gone(groups, "shop", SOON).await?;
        ensure!(here(bed, "a", "away").await?.is_empty(), "the edge that answers is clean");
        let left = wait(bed, "acme", "b", |cluster: &Cluster| {
            let left = cluster.status.as_ref().and_then(|status| status.abandoned.clone());
            left.ok_or_else(|| "nothing was given up there".to_owned())
        })
        .await?;
        ensure!(left.example == "DeploymentIntentGroup/away/shop", "{left:?}");
        // Where no time says so, a person does: with the command that is in the message.
        kubectl.run(&["delete", "dig", "till", "-n", "kept", "--wait=false"]).await?;
        let message = wait(bed, "kept", "till", |dig: &DeploymentIntentGroup| {
            let message = refused(dig.status.as_ref(), types::READY, "Terminating")?;
            if message.contains("to give up") { Ok(message) } else { Err(message) }
        })
        .await?;
        do_as_told(bed, &message).await?;
        wait_until_gone(bed.hub().api::<DeploymentIntentGroup>("kept").await?, "till", SOON).await?;
        bed.edge("b").restore().await?;
        let ledgers: Api<SyncShard> = bed.hub().api("acme").await?;
        wait_for_some(ledgers, Config::default(), SOON, "the end of the ledger", |objects| {
            if objects.is_empty() { Ok(()) } else { Err(format!("{} are left", objects.len())) }
        })
        .await?;
        for namespace in ["away", "kept"] {
            let left = here(bed, "b", namespace).await?;
            ensure!(left.is_empty(), "{left:?}");
        }
        wait(bed, "acme", "b", |cluster: &Cluster| {
            is(cluster.status.as_ref(), types::READY, "True")?;
            let left = cluster.status.as_ref().and_then(|status| status.abandoned.as_ref());
            left.map_or(Ok(()), |left| Err(format!("{left:?}")))
        })
        .await
    }))
    .await;
}

#[tokio::test]
async fn a_new_hub_takes_in_what_runs_on_edges_and_writes_nothing_there_but_what_nobody_wants() {
    let (bed, mut turn) = IN_TURN.turn().await.unwrap();
    bed.explain(Box::pin(async {
        let operator = turn.start(&[]).await?;
        register(bed, "acme", &EDGES).await?;
        install(bed, "new", "shop", EVERYWHERE).await?;
        let kubectl = bed.hub().kubectl();
        let keys =
            kubectl.run(&["get", "secret", "emco-installation", "-n", "emco-system", "-o", "json"]).await?;
        let keys: Value = serde_json::from_str(&keys)?;
        operator.kill().await?;
        bed.hub().wipe().await?;
        // They stay for the next test, too.
        install_kinds(bed).await?;
        // All that was kept of the old hub, besides what is in Git.
        kubectl.run(&["create", "namespace", "emco-system"]).await.ok();
        let kept = serde_json::json!({"apiVersion": "v1", "kind": "Secret", "data": keys["data"],
            "type": keys["type"], "metadata": {"name": "emco-installation", "namespace": "emco-system"}});
        kubectl.apply(&kept.to_string()).await?;
        let marks = [("a", bed.edge("a").audit_mark()?), ("b", bed.edge("b").audit_mark()?)];
        operator.replace(bed).await?;
        register_again(bed).await?;
        project(bed, "new").await?;
        let (dry, code) = emco(bed, &["orphans", "--rebuild", "--dry-run"]).await?;
        ensure!(code == Some(3) && dry.contains("would be adopted"), "{code:?}: {dry}");
        let shards: Api<SyncShard> = bed.hub().api("new").await?;
        let of_shop = kube::api::ListParams::default().labels("emco.io/owner-name=shop");
        ensure!(shards.list(&of_shop).await?.items.is_empty(), "a dry run writes nothing");
        emco(bed, &["orphans", "--rebuild"]).await?;
        let found = shards.list(&of_shop).await?.items;
        ensure!(found.len() == 1 && found[0].spec.clusters.len() == 2, "{found:#?}");
        let (listed, code) = emco(bed, &["orphans", "-n", "new"]).await?;
        ensure!(code == Some(3) && listed.contains("DeploymentIntentGroup/shop"), "{listed}");
        // The deployment comes from Git.
        chart_map(bed, "new", "charts", &[note()?]).await?;
        kubectl.apply(&deployment("new", "shop", &[note()?], EVERYWHERE)).await?;
        deployed(bed, "new", "shop", 1).await?;
        let (all, _) = emco(bed, &["orphans", "--rebuild"]).await?;
        ensure!(all.contains("DeploymentIntentGroup/new/shop"), "{all}");
        for (edge, mark) in marks {
            let touched: Vec<_> = bed
                .edge(edge)
                .audit_since(mark)?
                .into_iter()
                .filter(|e| e.user == "emco" && e.is_write() && e.namespace != "emco-system")
                .collect();
            ensure!(touched.is_empty(), "{edge}: {touched:?}");
            ensure!(here(bed, edge, "new").await? == ["ConfigMap/new/note"]);
        }
        // What an owner that comes back no more had is removed when somebody says so, by its label.
        kubectl.run(&["delete", "dig", "shop", "-n", "new", "--timeout=120s"]).await?;
        for edge in EDGES {
            ensure!(here(bed, edge, "new").await?.is_empty(), "{edge}");
        }
        Ok(())
    }))
    .await;
}

#[tokio::test]
async fn rebuilding_takes_nothing_of_an_edge_that_another_hub_claims() {
    let (bed, mut turn) = IN_TURN.turn().await.unwrap();
    bed.explain(Box::pin(async {
        turn.start(&[]).await?;
        register(bed, "acme", &EDGES).await?;
        let theirs = r#"{"data":{"installation":"somebody-else"}}"#;
        let edge = bed.edge("b").kubectl();
        edge.run(&["patch", "cm", "hub", "-n", "emco-system", "--type=merge", "-p", theirs]).await?;
        let again = ["annotate", "ecl", "b", "-n", "acme", "--overwrite", "emco.io/requestedAt=now"];
        bed.hub().kubectl().run(&again).await?;
        let message = wait(bed, "acme", "b", |cluster: &Cluster| {
            refused(cluster.status.as_ref(), types::READY, "ClaimedByAnotherHub")
        })
        .await?;
        let mark = bed.edge("b").audit_mark()?;
        let (said, code) = emco(bed, &["orphans", "--rebuild"]).await?;
        ensure!(code == Some(3) && said.contains("somebody-else") && said.contains("refused"), "{said}");
        let maps: Api<ConfigMap> = bed.edge("b").api("emco-system").await?;
        let claim = maps.get("hub").await?.data.unwrap_or_default();
        ensure!(claim.get("installation").is_some_and(|holder| holder == "somebody-else"), "{claim:?}");
        let writes =
            bed.edge("b").audit_since(mark)?.into_iter().filter(|e| e.is_write() && e.user == "emco");
        ensure!(writes.count() == 0, "nothing is written there");
        // The edge comes back to this hub, for the next test.
        do_as_told(bed, &message).await?;
        wait(bed, "acme", "b", |cluster: &Cluster| is(cluster.status.as_ref(), types::READY, "True")).await
    }))
    .await;
}
