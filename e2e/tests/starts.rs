//! API servers of edges that start, and kinds that come late: nothing is forgotten, and nothing is taken for another scope by guess.

use std::ops::RangeInclusive;

use anyhow::{Context as _, Result, ensure};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{OperatorInTurn, chart, chart_map, deployed, deployment, project, register};
use emco_e2e::package::Package;
use emco_e2e::starts::{self, Scope, definition};
use kube::Api;
use kube::api::{ApiResource, DynamicObject};
use kube::core::GroupVersionKind;

const PLACEMENT: &str = "placement: {allOf: [{provider: acme, selector: {matchLabels: {tier: edge}}}]}";
/// More than one connection carries watches. All tests define the same ones.
const KINDS: usize = 70;
/// The third has both an API that is down and a new process of the operator, to which no earlier answer shows what that API served.
/// `make soak` has each alone, too.
const STARTS: RangeInclusive<usize> = 3..=3;

static IN_TURN: OperatorInTurn = OperatorInTurn::new(starts::bed);

#[tokio::test]
async fn an_edge_that_starts_while_work_waits_loses_and_repeats_nothing() {
    let (bed, mut turn) = IN_TURN.turn().await.unwrap();
    bed.explain(Box::pin(async {
        starts::define(bed, KINDS).await?;
        let operator = turn.start(&[]).await?;
        Box::pin(starts::run(bed, operator, STARTS, KINDS)).await.map(drop)
    }))
    .await;
}

#[tokio::test]
async fn an_object_of_each_of_seventy_kinds_is_made_again_at_once() {
    let (bed, mut turn) = IN_TURN.turn().await.unwrap();
    bed.explain(Box::pin(async {
        starts::define(bed, KINDS).await?;
        turn.start(&[]).await?;
        let took = Box::pin(starts::watched(bed, KINDS)).await?;
        println!("{KINDS} objects of {KINDS} kinds are made again within {took:?}");
        Ok(())
    }))
    .await;
}

fn realm(say: &str) -> Result<Package> {
    let realm =
        "apiVersion: late.example.com/v1\nkind: Realm\nmetadata: {name: r}\nspec: {say: {{ .Values.say }}}\n";
    chart("web", "1.0.0", &[("values.yaml", &format!("say: {say}\n")), ("templates/realm.yaml", realm)])
}

async fn uid(bed: &Bed) -> Result<String> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("late.example.com", "v1", "Realm"));
    let realms: Api<DynamicObject> = Api::all_with(bed.edge("a").client().await?, &kind);
    realms.get("r").await?.metadata.uid.context("an object without uid")
}

#[tokio::test]
async fn an_object_whose_kind_comes_late_is_made_once_and_kept() {
    let (bed, mut turn) = IN_TURN.turn().await.unwrap();
    bed.explain(Box::pin(async {
        let operator = turn.start(&[]).await?;
        register(bed, "acme", &["a"]).await?;
        project(bed, "late").await?;
        chart_map(bed, "late", "charts", &[realm("one")?]).await?;
        let apply = |spec: String| {
            let chart = realm("one");
            async move { bed.hub().kubectl().apply(&deployment("late", "shop", &[chart?], &spec)).await }
        };
        apply(PLACEMENT.to_owned()).await?;
        emco_e2e::operator::failing(bed, "late", "shop", "acme/a", "KindMissing").await?;
        bed.edge("a").kubectl().apply(&definition("late.example.com", "Realm", Scope::Cluster)).await?;
        deployed(bed, "late", "shop", 1).await?;
        let first = uid(bed).await?;
        apply(format!("{PLACEMENT}\noverrideValues: [{{app: web, values: {{say: two}}}}]")).await?;
        deployed(bed, "late", "shop", 2).await?;
        ensure!(uid(bed).await? == first, "the update made it anew");
        operator.restart(bed).await?;
        apply(format!("{PLACEMENT}\noverrideValues: [{{app: web, values: {{say: three}}}}]")).await?;
        deployed(bed, "late", "shop", 3).await?;
        ensure!(uid(bed).await? == first, "the restart made it anew");
        bed.hub().kubectl().run(&["delete", "dig", "shop", "-n", "late"]).await?;
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("late.example.com", "v1", "Realm"));
        let realms: Api<DynamicObject> = Api::all_with(bed.edge("a").client().await?, &kind);
        let left = realms.list(&kube::api::ListParams::default()).await?.items.len();
        ensure!(left == 0, "{left} objects are left");
        Ok(())
    }))
    .await;
}
