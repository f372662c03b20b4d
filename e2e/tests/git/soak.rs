//! The same with Flux's own controllers on the clusters: what they refuse, what they undo, and that they stop.

mod hub;
mod refused;
mod stopped;

use anyhow::{Result, ensure};
use emco_crds::Cluster;
use emco_crds::conditions::types;
use emco_e2e::bed::{Audit, Bed, BedSpec, PlaneSpec};
use emco_e2e::operator::{Operator, SharedOperator, chart_map, deployed, has_maps, is, wait};

use super::fleet::Fleet;
use super::flux::{Flux, built, root};
use super::{OF_JOBS, ROLE, deploy, hooks, killed, life, lost, moves, note, people, said, same};

/// Flux is on `a` and `b`; `c` is written to directly.
static STAGE: SharedOperator = SharedOperator::new(
    || {
        let edge = |name| PlaneSpec::light(name, OF_JOBS).audit(Audit::Writes);
        ["a", "b", "c"].into_iter().map(edge).fold(BedSpec::bare_hub(), BedSpec::with)
    },
    &["c"],
);
const EDGES: &[&str] = &["a", "b"];
const SPACE: &str = "flux-shop";

#[tokio::test]
async fn flux_makes_true_on_clusters_what_the_hub_publishes() {
    built().await.unwrap();
    let (bed, operator) = STAGE.get().await.unwrap();
    bed.explain(Box::pin(all(bed, operator))).await;
}

async fn all(bed: &'static Bed, operator: &'static Operator) -> Result<()> {
    let mut agents = Vec::new();
    for edge in EDGES {
        bed.edge(edge).kubectl().apply(ROLE).await?;
        agents.push(Flux::start(bed, edge).await?);
    }
    let fleet = Box::pin(Fleet::register(bed, "flux", EDGES, None)).await?;
    for edge in EDGES {
        bed.edge(edge).kubectl().apply(&root(&fleet, edge)).await?;
    }
    fleet.reached().await?;
    Box::pin(same::same(&fleet)).await?;
    for edge in EDGES {
        wait(bed, "flux", edge, |cluster: &Cluster| is(cluster.status.as_ref(), types::READY, "True"))
            .await?;
    }
    Box::pin(moves::moves(&fleet)).await?;
    Box::pin(life::life(&fleet)).await?;
    Box::pin(hooks::runs_once(&fleet)).await?;
    Box::pin(refused::refused(&fleet)).await?;

    let charts = [note("web", "2.0.0", "one")?, note("web", "2.0.1", "two")?];
    chart_map(bed, SPACE, "charts", &charts).await?;
    let [one, two] = &charts;
    deploy(&fleet, SPACE, one.clone()).await?;
    deployed(bed, SPACE, "shop", 1).await?;
    Box::pin(people::edit(&fleet, "flux-shop/dig-shop/web/")).await?;
    Box::pin(stopped::stopped(&fleet, &mut agents[0], two)).await?;
    // Flux, too, leaves what it has while the branch has nothing for it.
    Box::pin(lost::content_goes(&fleet, SPACE)).await?;
    let often = Box::pin(killed::at_each_request(&fleet, SPACE, operator, &charts, 2)).await?;
    ensure!(often > 0, "the operator was killed at no request");
    println!("the operator was killed at each of {often} requests of an update");

    bed.hub().kubectl().run(&["delete", "dig", "shop", "-n", SPACE, "--wait=false"]).await?;
    for edge in EDGES {
        has_maps(bed, edge, SPACE, &[]).await?;
    }
    fleet.is_left_by(SPACE).await?;
    fleet.end().await
}
