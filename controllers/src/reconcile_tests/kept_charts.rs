//! Charts of a repository that nobody reaches any more: what ran can run again, and what is kept stays within its bound.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_crds::CompositeApp;
use emco_crds::composite_app::ChartPin;
use serde_json::{Value, json};

use super::life::*;
use super::rig::{Rig, emco};
use super::shop::{TENANT, charts, deployment, labelled, objects, values};
use crate::api::{ApiServer as _, Content, Method, Request};
use crate::chart::digest;
use crate::chart::on_hub::{self, Hub, Kept};
use crate::memory::MemoryServer;
use crate::reconcile::composite_app;

const APP: &str = "/compositeapps/shop";

/// The shop with `web` from a repository that does not answer.
fn app(version: &str) -> Value {
    let repository = json!({"url": "http://127.0.0.1:1/charts", "name": "web", "version": version});
    let db = json!({"configMapRef": {"name": "charts", "key": "db-1.0.0.tgz"}});
    let apps = json!([{"name": "web", "chart": {"repository": repository}}, {"name": "db", "chart": db}]);
    emco("CompositeApp", Some("team-a"), "shop", &json!({"apps": apps}))
}

pub async fn set_status(rig: &Rig, status: &Value) {
    let path = format!("{TENANT}{APP}/status");
    let request = Request::new(Method::Patch, &path).body(Content::Merge, &json!({"status": status}));
    rig.hub.send(request).await.unwrap();
}

fn archive(version: &str) -> Vec<u8> {
    STANDARD.decode(charts()["binaryData"][format!("web-{version}.tgz")].as_str().unwrap()).unwrap()
}

fn pin(version: &str) -> ChartPin {
    let app: CompositeApp = serde_json::from_value(app(version)).unwrap();
    ChartPin {
        name: "web".to_owned(),
        chart: "web".to_owned(),
        version: version.to_owned(),
        app_version: None,
        digest: digest(&archive(version)),
        commit: None,
        source: composite_app::source_digest(&app.spec.apps[0]),
        last_look: None,
    }
}

/// `web` in this version, as if its repository had just given it.
async fn deploy(life: &mut Life, version: &str) {
    life.put(&app(version));
    let hub = life.rig.hub.clone();
    let place = Hub { server: &hub, namespace: "emco-system" };
    let on_hub = &life.rig.ctx.charts.on_hub;
    let kept = on_hub.keep(place, ("team-a", "shop"), &pin(version), &archive(version)).await.unwrap();
    assert_eq!(kept, Kept::Yes);
    set_status(&life.rig, &json!({"apps": [pin(version)]})).await;
    life.settle().await;
    assert_eq!(life.says("Ready").0, "True", "{:#}", life.dig());
}

async fn life() -> Life {
    let sources = json!({"logicalCloud": {"level": "Admin"}, "chartSources": ["http://127.0.0.1:1/charts/"]});
    let mut all = objects();
    all.retain(|object| object["kind"] != "CompositeApp");
    for object in &mut all {
        if object["kind"] == "Project" {
            object["spec"] = sources.clone();
        }
    }
    let mut life = Life::with(&all);
    deploy(&mut life, "1.0.0").await;
    life
}

/// A new Pod of the operator.
async fn replace(life: &mut Life) {
    life.rig.forget_charts();
    life.restart().await;
}

fn has(hub: &MemoryServer, version: &str) -> bool {
    let name = format!("{}-0", on_hub::name("team-a", &pin(version)));
    hub.object(&format!("/api/v1/namespaces/emco-system/secrets/{name}")).is_some()
}

#[tokio::test(start_paused = true)]
async fn a_version_that_ran_is_taken_back_without_its_source() {
    let mut life = life().await;
    deploy(&mut life, "1.1.0").await;
    assert!(!life.names_on("a").iter().any(|name| name.ends_with("/old")));
    life.collect().await;
    assert!(has(&life.rig.hub, "1.0.0") && has(&life.rig.hub, "1.1.0"));
    replace(&mut life).await;
    life.put(&app("1.0.0"));
    life.settle().await;
    assert_eq!(life.says("Ready").0, "True", "{:#}", life.dig());
    assert_eq!(life.dig()["status"]["revision"], 3);
    assert!(life.names_on("a").iter().any(|name| name.ends_with("/old")));
}

#[tokio::test(start_paused = true)]
async fn a_chart_moves_to_another_cluster_without_its_source() {
    let mut life = life().await;
    life.put(&labelled("b", &json!({"tier": "other", "disk": "fast"})));
    life.settle().await;
    assert!(!life.names_on("b").iter().any(|name| name.ends_with("/page")));
    life.collect().await;
    replace(&mut life).await;
    life.put(&deployment("other"));
    life.settle().await;
    assert_eq!(life.says("Ready").0, "True", "{:#}", life.dig());
    assert!(life.names_on("b").iter().any(|name| name.ends_with("/page")));
    assert!(!life.names_on("a").iter().any(|name| name.ends_with("/page")));
}

#[tokio::test(start_paused = true)]
async fn a_chart_goes_with_the_last_revision_that_was_made_of_it() {
    let mut life = life().await;
    let mut short = deployment("edge");
    short["spec"]["revisionHistoryLimit"] = json!(1);
    life.put(&short);
    deploy(&mut life, "1.1.0").await;
    life.collect().await;
    assert!(has(&life.rig.hub, "1.0.0"), "it is what the clusters had before");
    life.put(&values("green"));
    life.settle().await;
    assert_eq!(life.rig.revisions().last().map(|(revision, _)| *revision), Some(3));
    life.collect().await;
    assert!(!has(&life.rig.hub, "1.0.0") && has(&life.rig.hub, "1.1.0"));
}

/// As much as a namespace may keep, in archives that nobody names. How many there was room for.
async fn fill(life: &Life) -> usize {
    let hub = life.rig.hub.clone();
    let place = Hub { server: &hub, namespace: "emco-system" };
    let mut kept = 0;
    for n in 0..4_u8 {
        let stray = ChartPin { digest: format!("sha256:{n}"), ..pin("1.0.0") };
        let on_hub = &life.rig.ctx.charts.on_hub;
        let one = on_hub.keep(place, ("team-a", "shop"), &stray, &vec![n; 8 << 20]).await.unwrap();
        kept += usize::from(one == Kept::Yes);
    }
    kept
}

#[tokio::test(start_paused = true)]
async fn an_earlier_chart_makes_room_where_a_namespace_keeps_as_much_as_it_may() {
    let mut life = life().await;
    deploy(&mut life, "1.1.0").await;
    assert_eq!(fill(&life).await, 3, "there is no room for the last one");
    life.collect().await;
    assert!(!has(&life.rig.hub, "1.0.0"), "what only the history has makes room");
    assert!(has(&life.rig.hub, "1.1.0"), "what is pinned stays");
}

#[tokio::test(start_paused = true)]
async fn a_chart_without_room_is_named_and_kept_once_there_is_some() {
    let mut life = life().await;
    let name = on_hub::name("team-a", &pin("1.0.0"));
    life.delete(&format!("/api/v1/namespaces/emco-system/secrets/{name}-0")).await;
    life.restart().await;
    assert_eq!(fill(&life).await, 4);
    life.settle().await;
    let (ready, reason, message) = life.rig.ready(&format!("{TENANT}{APP}"));
    assert_eq!((ready.as_str(), reason.as_str()), ("True", "ChartsResolved"), "{message}");
    let sentence = "app web: its chart is not kept on the hub, as the charts of the namespace have 32 MiB: a new operator Pod needs its source";
    assert_eq!(message, format!("2 charts; {sentence}"));
    assert!(!has(&life.rig.hub, "1.0.0"));
    while life.rig.ctx.charts.wanted.take().is_some() {}
    life.collect().await;
    let woken = life.rig.ctx.charts.wanted.take();
    assert_eq!(woken, Some(("team-a".to_owned(), "shop".to_owned())), "there is room: it tries again");
    life.settle().await;
    assert_eq!(life.rig.ready(&format!("{TENANT}{APP}")).2, "2 charts");
    assert!(has(&life.rig.hub, "1.0.0"));
}
