//! In: owners that are torn away, a hub made older, operators that stop and wake up. Out: nothing is forgotten, nothing is removed
//! without proof, and only one writes.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use emco_crds::conditions::types;
use emco_crds::{Cluster, SyncShard};
use emco_e2e::bed::{Audit, Bed, BedSpec, PlaneSpec, serial};
use emco_e2e::operator::{
    Operator, SOON, SharedOperator, deployed, deployment, do_as_told, failing, has_maps, note, noted, ours,
    program, saying, says, written,
};
use emco_e2e::wait::{wait_for_some, wait_until_gone};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use kube::runtime::watcher::Config;
use serde_json::Value;
use tokio::sync::Mutex;

/// Nothing runs on these edges: what is deployed here is ready when it is there.
static STAGE: SharedOperator = SharedOperator::new(
    || {
        let plane = |name| PlaneSpec::light(name, &[]).audit(Audit::Writes);
        BedSpec::default().with(plane("hub").own_etcd()).with(plane("a")).with(plane("b").proxied())
    },
    &["a", "b"],
);

/// The operator that leads since a test ended the one before; none: the first.
static LEADING: Mutex<Option<Operator>> = Mutex::const_new(None);

async fn start(name: &str) -> Result<&'static Bed> {
    let (bed, _) = STAGE.get().await?;
    noted(bed, name).await?;
    Ok(bed)
}

async fn here(bed: &Bed, plane: &str, namespace: &str) -> Result<Vec<String>> {
    ours(bed, plane, "configmaps", Some(namespace)).await
}

#[tokio::test]
async fn nothing_that_remembers_what_is_on_edges_has_an_owner_that_takes_it_along() {
    let _turn = serial().await;
    let bed = start("owned").await.unwrap();
    bed.explain(async {
        let packs = ["get", "configmaps,secrets", "-n", "emco-system", "-l", "emco.io/owner", "-o", "json"];
        let get = |kind: &'static str| ["get", kind, "-n", "owned", "-o", "json"];
        for args in [&get("appcontexts.emco.io")[..], &get("syncshards.emco.io"), &packs] {
            let list: Value = serde_json::from_str(&bed.hub().kubectl().run(args).await?)?;
            let objects: Vec<&Value> = list["items"].as_array().into_iter().flatten().collect();
            ensure!(!objects.is_empty(), "there is nothing to look at: {args:?}");
            for object in objects {
                let owners = &object["metadata"]["ownerReferences"];
                ensure!(owners.is_null(), "{} {}: {owners}", object["kind"], object["metadata"]["name"]);
            }
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_deployment_whose_finalizer_is_removed_by_hand_leaves_clean_edges_and_no_inventory() {
    let _turn = serial().await;
    let bed = start("torn").await.unwrap();
    bed.explain(async {
        let kubectl = bed.hub().kubectl();
        let patch = r#"{"metadata":{"finalizers":null}}"#;
        kubectl.run(&["delete", "dig", "shop", "-n", "torn", "--wait=false"]).await?;
        let shards: Api<SyncShard> = bed.hub().api("torn").await?;
        let of_shop = Config::default().labels("emco.io/owner-name=shop");
        // Without that in writing, nothing proves that it was deleted, and what it has on clusters would stay.
        wait_for_some(shards.clone(), of_shop.clone(), SOON, "nothing to be wanted any more", |objects| {
            let wanted =
                objects.values().flat_map(|shard| &shard.spec.clusters).find(|row| row.target.is_some());
            wanted.map_or(Ok(()), |row| Err(format!("{row:?}")))
        })
        .await?;
        kubectl.run(&["patch", "dig", "shop", "-n", "torn", "--type=merge", "-p", patch]).await.ok();
        for edge in ["a", "b"] {
            has_maps(bed, edge, "torn", &[]).await?;
        }
        wait_for_some(shards, of_shop, SOON, "the end of its shards", |objects| {
            if objects.is_empty() { Ok(()) } else { Err(format!("{} are left", objects.len())) }
        })
        .await
    })
    .await;
}

#[tokio::test]
async fn a_project_whose_namespace_is_deleted_while_an_edge_is_away_ends_with_clean_edges_when_it_is_back() {
    let _turn = serial().await;
    let bed = start("gone").await.unwrap();
    bed.explain(async {
        let kubectl = bed.hub().kubectl();
        bed.edge("b").refuse().await?;
        let deleted = async {
            kubectl.run(&["delete", "namespace", "gone", "--wait=false"]).await?;
            has_maps(bed, "a", "gone", &[]).await?;
            // Nothing is forgotten of the edge that is away.
            let shards = kubectl.run(&["get", "shard", "-n", "gone", "-o", "name"]).await?;
            ensure!(!shards.trim().is_empty(), "the inventory of the edge that is away is gone");
            Ok(())
        }
        .await;
        bed.edge("b").restore().await?;
        deleted?;
        let namespaces: Api<Namespace> = Api::all(bed.hub().client().await?);
        wait_until_gone(namespaces, "gone", Duration::from_mins(3)).await?;
        let left = here(bed, "b", "gone").await?;
        ensure!(left.is_empty(), "{left:?}");
        kubectl.run(&["delete", "eproj", "gone", "--ignore-not-found", "--timeout=60s"]).await.map(drop)
    })
    .await;
}

#[tokio::test]
async fn a_shard_deleted_by_hand_changes_nothing_on_edges() {
    let _turn = serial().await;
    let bed = start("shards").await.unwrap();
    bed.explain(async {
        let marks = (bed.edge("a").audit_mark()?, bed.edge("b").audit_mark()?);
        let kubectl = bed.hub().kubectl();
        kubectl.run(&["delete", "shard,actx", "--all", "-n", "shards", "--wait=false"]).await?;
        // It still knows what it knew, and the next revision finds its way.
        bed.hub().kubectl().apply(&deployment("shards", "shop", &[note()?], &saying("two"))).await?;
        deployed(bed, "shards", "shop", 2).await?;
        for (edge, mark) in [("a", marks.0), ("b", marks.1)] {
            let deleted: Vec<_> = bed
                .edge(edge)
                .audit_since(mark)?
                .into_iter()
                .filter(|e| e.user == "emco" && e.verb == "delete")
                .collect();
            ensure!(deleted.is_empty(), "{edge}: {deleted:?}");
            ensure!(here(bed, edge, "shards").await? == ["ConfigMap/shards/note"]);
        }
        kubectl.run(&["delete", "dig", "shop", "-n", "shards", "--timeout=120s"]).await?;
        for edge in ["a", "b"] {
            ensure!(here(bed, edge, "shards").await?.is_empty(), "{edge}");
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_leader_that_wakes_up_after_another_took_over_changes_nothing() {
    let _turn = serial().await;
    let bed = start("leaders").await.unwrap();
    let (_, first) = STAGE.get().await.unwrap();
    bed.explain(async {
        let mut leading = LEADING.lock().await;
        let (first, who) = leading.as_ref().map_or((first, "emco"), |later| (later, "after-the-restore"));
        let second = Operator::standby(bed, &program()?, "standby").await?;
        // What is under way when a process stops cannot be called back: nothing is.
        quiet(bed, &[("hub", who), ("a", "emco"), ("b", "emco")]).await?;
        first.process().freeze().await?;
        // Known to the frozen one from its sockets, and not worked on yet.
        bed.hub().kubectl().apply(&deployment("leaders", "shop", &[note()?], &saying("two"))).await?;
        let moved = deployed(bed, "leaders", "shop", 2).await;
        // On an edge both are the same user: only what comes when the second is done can be the first's.
        quiet(bed, &[("a", "emco"), ("b", "emco")]).await?;
        let (hub, a, b) = (bed.hub().audit_mark()?, bed.edge("a").audit_mark()?, bed.edge("b").audit_mark()?);
        first.process().thaw().await?;
        moved?;
        let how = tokio::time::timeout(Duration::from_mins(1), first.process().ended()).await?;
        ensure!(!second.process().log_tail(5).is_empty(), "the standby is silent; the first ended: {how}");
        for (edge, mark) in [("a", a), ("b", b)] {
            let writes = written(bed, edge, mark, "emco")?;
            ensure!(writes.is_empty(), "{edge}: {writes:?}");
        }
        let writes = written(bed, "hub", hub, who)?;
        ensure!(writes.is_empty(), "on the hub: {writes:?}");
        // The other one goes on alone.
        bed.hub().kubectl().apply(&deployment("leaders", "shop", &[note()?], &saying("three"))).await?;
        deployed(bed, "leaders", "shop", 3).await?;
        *leading = Some(second);
        Ok(())
    })
    .await;
}

/// Waits until two seconds went by without a write of these users on these planes. Silence has no event to wait for.
async fn quiet(bed: &Bed, planes: &[(&str, &str)]) -> Result<()> {
    let begin = Instant::now();
    loop {
        let marks: Vec<_> =
            planes.iter().map(|(plane, _)| bed.edge(plane).audit_mark()).collect::<Result<_>>()?;
        tokio::time::sleep(Duration::from_secs(2)).await;
        let mut writes = Vec::new();
        for ((plane, user), mark) in planes.iter().zip(marks) {
            writes.extend(written(bed, plane, mark, user)?);
        }
        if writes.is_empty() {
            return Ok(());
        }
        ensure!(begin.elapsed() < SOON, "it does not come to rest: {writes:?}");
    }
}

/// How far the hub had come when it last worked on an edge, as the edge tells.
async fn marked(bed: &Bed, edge: &str) -> Result<u64> {
    let maps: Api<ConfigMap> = bed.edge(edge).api("emco-system").await?;
    Ok(seen(&maps.get("hub").await?))
}

fn seen(map: &ConfigMap) -> u64 {
    map.data.as_ref().and_then(|data| data.get("seen")?.parse().ok()).unwrap_or(0)
}

#[tokio::test]
async fn a_hub_restored_from_a_backup_touches_no_edge_that_knows_more_until_that_is_confirmed() {
    let _turn = serial().await;
    let bed = start("past").await.unwrap();
    bed.explain(async {
        let hub = bed.hub();
        let backup = hub.snapshot().await?;
        // Work goes on for a while, as it does between a backup and the day it is needed.
        hub.others_write(500).await?;
        let version = hub.version().await?;
        let mut last = 1;
        while marked(bed, "a").await?.min(marked(bed, "b").await?) <= version {
            last += 1;
            ensure!(last < 60, "the edges are not marked");
            hub.kubectl()
                .apply(&deployment("past", "shop", &[note()?], &saying(&format!("word-{last}"))))
                .await?;
            deployed(bed, "past", "shop", last).await?;
            // A mark comes at most every ten seconds: fewer edits are enough.
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
        let marks = [("a", bed.edge("a").audit_mark()?), ("b", bed.edge("b").audit_mark()?)];
        hub.restore_from(&backup).await?;
        *LEADING.lock().await = Some(Operator::standby(bed, &program()?, "after-the-restore").await?);
        let mut confirm = Vec::new();
        for edge in ["a", "b"] {
            confirm.push((edge, says::<Cluster, _>(bed, "acme", edge, types::READY, "HubRestored").await?));
        }
        // What is in Git is applied again; the edges have it already.
        hub.kubectl()
            .apply(&deployment("past", "shop", &[note()?], &saying(&format!("word-{last}"))))
            .await?;
        for (edge, _) in &confirm {
            failing(bed, "past", "shop", &format!("acme/{edge}"), "HubRestored").await?;
        }
        for (edge, mark) in marks {
            let writes = written(bed, edge, mark, "emco")?;
            ensure!(writes.is_empty(), "{edge}: {writes:?}");
        }
        for (_, message) in confirm {
            do_as_told(bed, &message).await?;
        }
        deployed(bed, "past", "shop", 2).await?;
        for (edge, mark) in marks {
            let touched: Vec<_> = bed
                .edge(edge)
                .audit_since(mark)?
                .into_iter()
                .filter(|e| e.user == "emco" && e.is_write() && e.namespace == "past")
                .collect();
            ensure!(touched.is_empty(), "{edge} had it already: {touched:?}");
        }
        Ok(())
    })
    .await;
}
