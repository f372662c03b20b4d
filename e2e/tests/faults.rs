//! In: an edge behind a proxy, with an etcd of its own. Out: it behaves as a frozen, dead, lost or restored cluster does.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use emco_e2e::bed::{Audit, Bed, BedSpec, Plane, PlaneSpec, SharedBed, serial};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client};

/// After this, what has not answered is taken to hang.
const SHORT: Duration = Duration::from_secs(1);
/// After this, what ought to answer is taken to be broken.
const LONG: Duration = Duration::from_mins(1);

static BED: SharedBed = SharedBed::new(|| {
    BedSpec::default().with(PlaneSpec::edge("a").own_etcd().proxied().audit(Audit::Writes))
});

async fn bed() -> (tokio::sync::MutexGuard<'static, ()>, &'static Bed, &'static Plane) {
    let turn = serial().await;
    let bed = BED.get().await.unwrap();
    (turn, bed, bed.edge("a"))
}

/// A client as what is under test has it: through the proxy.
async fn through_the_proxy(edge: &Plane) -> Result<Client> {
    let config = Kubeconfig::from_yaml(&edge.kubeconfig()?)?;
    Ok(Client::try_from(kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?)?)
}

/// The answer in time, or an error: of the server, the line, or the time.
async fn ask_within(limit: Duration, client: &Client) -> Result<Namespace> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    Ok(tokio::time::timeout(limit, namespaces.get("kube-system")).await??)
}

async fn ask(client: &Client) -> Result<Namespace> {
    ask_within(LONG, client).await
}

async fn times_out(client: &Client) -> Result<()> {
    let error = ask_within(SHORT, client).await.err().context("it answered")?;
    ensure!(error.is::<tokio::time::error::Elapsed>(), "it failed instead of hanging: {error:#}");
    Ok(())
}

async fn refuses(client: &Client) -> Result<()> {
    let error = ask(client).await.err().context("it answered")?;
    ensure!(!error.is::<tokio::time::error::Elapsed>(), "it hangs instead of refusing");
    Ok(())
}

async fn mark(edge: &Plane, name: &str) -> Result<()> {
    edge.kubectl().run(&["create", "configmap", name]).await.map(drop)
}

async fn marks(edge: &Plane) -> Result<Vec<String>> {
    let all: Api<ConfigMap> = Api::namespaced(edge.client().await?, "default");
    let names = all
        .list(&kube::api::ListParams::default())
        .await?
        .items
        .into_iter()
        .filter_map(|map| map.metadata.name);
    Ok(names.filter(|name| name != "kube-root-ca.crt").collect())
}

async fn revision(edge: &Plane) -> Result<u64> {
    let all: Api<ConfigMap> = Api::namespaced(edge.client().await?, "default");
    let list = all.list(&kube::api::ListParams::default()).await?;
    Ok(list.metadata.resource_version.context("no revision")?.parse()?)
}

#[tokio::test]
async fn a_frozen_plane_hangs_and_answers_when_it_is_thawed() {
    let (_turn, bed, edge) = bed().await;
    bed.explain(async {
        let client = through_the_proxy(edge).await?;
        ask(&client).await?;
        edge.freeze().await?;
        let frozen = times_out(&client).await;
        edge.thaw().await?;
        frozen?;
        ask(&client).await.map(drop)
    })
    .await;
}

#[tokio::test]
async fn a_killed_plane_refuses_and_has_its_objects_when_it_is_started_again() {
    let (_turn, bed, edge) = bed().await;
    bed.explain(async {
        let client = edge.client().await?;
        let before = ask(&client).await?.metadata.uid;
        edge.kill().await?;
        let killed = refuses(&client).await;
        edge.restart().await?;
        killed?;
        ensure!(ask(&client).await?.metadata.uid == before, "another cluster came back");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_plane_that_is_cut_off_hangs_for_others_and_answers_the_test() {
    let (_turn, bed, edge) = bed().await;
    bed.explain(async {
        let client = through_the_proxy(edge).await?;
        ask(&client).await?;
        edge.cut_off().await?;
        let cut = times_out(&client).await;
        let fresh = times_out(&through_the_proxy(edge).await?).await;
        let own = ask(&edge.client().await?).await;
        edge.restore().await?;
        cut?;
        fresh?;
        own?;
        ask(&client).await.map(drop)
    })
    .await;
}

#[tokio::test]
async fn a_plane_that_refuses_closes_connections_at_once() {
    let (_turn, bed, edge) = bed().await;
    bed.explain(async {
        let client = through_the_proxy(edge).await?;
        ask(&client).await?;
        edge.refuse().await?;
        let refused = refuses(&client).await;
        edge.restore().await?;
        refused?;
        ask(&client).await.map(drop)
    })
    .await;
}

#[tokio::test]
async fn a_slow_plane_answers_late() {
    let (_turn, bed, edge) = bed().await;
    bed.explain(async {
        let client = through_the_proxy(edge).await?;
        ask(&client).await?;
        edge.slow(Duration::from_millis(200)).await?;
        let start = Instant::now();
        let answer = ask(&client).await;
        let took = start.elapsed();
        edge.restore().await?;
        answer?;
        ensure!(took >= Duration::from_millis(400), "it took {took:?}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_wiped_plane_is_another_cluster_at_the_same_address_and_still_runs_pods() {
    let (_turn, bed, edge) = bed().await;
    bed.explain(async {
        let client = through_the_proxy(edge).await?;
        let before = ask(&client).await?.metadata.uid;
        mark(edge, "before-the-wipe").await?;
        edge.wipe().await?;
        let after = ask(&client).await?.metadata.uid;
        ensure!(after != before, "it has the identity of before");
        ensure!(!marks(edge).await?.contains(&"before-the-wipe".to_owned()), "an object survived");
        edge.kubectl().run(&["run", "once", "--image=example.com/once", "--restart=Never"]).await?;
        edge.kubectl()
            .run(&["wait", "pod/once", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s"])
            .await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_restored_plane_has_the_objects_and_the_revision_of_its_snapshot() {
    let (_turn, bed, edge) = bed().await;
    bed.explain(async {
        let client = through_the_proxy(edge).await?;
        let identity = ask(&client).await?.metadata.uid;
        mark(edge, "kept").await?;
        let snapshot = edge.snapshot().await?;
        let later: Api<ConfigMap> = Api::namespaced(edge.client().await?, "default");
        for number in 0..200 {
            let mut map = ConfigMap::default();
            map.metadata.name = Some(format!("late-{number}"));
            later.create(&kube::api::PostParams::default(), &map).await?;
        }
        let late = revision(edge).await?;
        edge.restore_from(&snapshot).await?;
        let names = marks(edge).await?;
        ensure!(names.contains(&"kept".to_owned()), "an object was lost: {names:?}");
        ensure!(!names.contains(&"late-0".to_owned()), "an object came from the future: {names:?}");
        ensure!(ask(&client).await?.metadata.uid == identity, "it has another identity");
        let restored = revision(edge).await?;
        ensure!(restored < late, "the revision went from {late} to {restored}");
        Ok(())
    })
    .await;
}
