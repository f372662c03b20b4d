//! Looks at the sources of pinned charts that somebody asked for: what they found stays said.

use emco_crds::CompositeApp;
use serde_json::{Value, json};

use super::rig::{Rig, emco, namespace};
use super::shop::TENANT;
use crate::chart::tests::{Repo, chart_yaml};
use crate::chart::{digest, on_hub};
use crate::reconcile::composite_app;
use crate::remote::testing::{Reply, Server};

/// A project whose app `web` comes from this server.
async fn resolved(repo: &Repo, server: &Server) -> Rig {
    let url = format!("http://{}/charts", server.address);
    let mut rig =
        with(&url, &json!({"repository": {"url": url, "name": "web", "version": "1.4.0"}}), json!({}));
    repo.good();
    rig.settle().await;
    assert_eq!(says(&rig), ("True".to_owned(), "ChartsResolved".to_owned(), "1 chart".to_owned()));
    rig
}

fn app(chart: &Value, annotations: Value) -> Value {
    let mut app =
        emco("CompositeApp", Some("team-a"), "shop", &json!({"apps": [{"name": "web", "chart": chart}]}));
    app["metadata"]["annotations"] = annotations;
    app
}

fn with(url: &str, chart: &Value, annotations: Value) -> Rig {
    let rig = Rig::new();
    let project = json!({"logicalCloud": {"level": "Admin"}, "chartSources": [format!("{url}/")]});
    for object in [
        namespace("team-a", &json!({"emco.io/project": "team-a"})),
        emco("Project", None, "team-a", &project),
        app(chart, annotations),
    ] {
        rig.hub.put("test", &object);
    }
    rig
}

/// Somebody asks for a look, and everything comes to rest.
async fn look(rig: &mut Rig, when: &str) {
    let mut now = rig.hub.object(&format!("{TENANT}/compositeapps/shop")).unwrap();
    now = app(&now["spec"]["apps"][0]["chart"], json!({"emco.io/requestedAt": when}));
    rig.hub.put("test", &now);
    rig.settle().await;
}

fn says(rig: &Rig) -> (String, String, String) {
    rig.ready(&format!("{TENANT}/compositeapps/shop"))
}

fn stored(rig: &Rig) -> CompositeApp {
    serde_json::from_value(rig.hub.object(&format!("{TENANT}/compositeapps/shop")).unwrap()).unwrap()
}

/// Whether deployments still get the pinned chart.
async fn is_usable(rig: &Rig) -> bool {
    let object = stored(rig);
    composite_app::chart(&rig.ctx, &object, &object.spec.apps[0]).await.unwrap().is_some()
}

#[tokio::test]
async fn other_bytes_stay_said_until_the_source_gives_the_pinned_ones() {
    let repo = Repo::default();
    let server = repo.serve().await;
    let mut rig = resolved(&repo, &server).await;
    let pin = stored(&rig).status.unwrap().apps.remove(0);
    let other = chart_yaml("web", "1.4.0", "description: other\n");
    repo.index("web", "1.4.0", "web-1.4.0.tgz", Some(&digest(&other)));
    repo.file("/charts/web-1.4.0.tgz", other.clone());
    look(&mut rig, "one").await;
    for _ in 0..2 {
        let (ready, reason, message) = says(&rig);
        assert_eq!((ready.as_str(), reason.as_str()), ("False", "ChartDigestChanged"), "{message}");
        assert!(message.starts_with("app web: the same version now has other bytes"), "{message}");
        assert!(message.contains(&pin.digest) && message.contains(&digest(&other)), "{message}");
        let status = stored(&rig).status.unwrap();
        assert!(status.conditions.iter().any(|one| one.type_ == "Stalled" && one.status == "True"));
        assert_eq!(status.apps[0].digest, pin.digest, "the pin stays");
        assert!(is_usable(&rig).await);
        // A new process reads it, and asks nobody.
        repo.asked();
        rig.restart();
        rig.settle().await;
        assert!(repo.asked().is_empty());
    }
    repo.good();
    look(&mut rig, "two").await;
    assert_eq!(says(&rig).1, "ChartsResolved");
    assert_eq!(stored(&rig).status.unwrap().apps, [pin]);
}

#[tokio::test]
async fn an_edit_of_the_chart_ends_what_a_look_found() {
    let repo = Repo::default();
    let server = repo.serve().await;
    let mut rig = resolved(&repo, &server).await;
    let other = chart_yaml("web", "1.4.0", "description: other\n");
    repo.index("web", "1.4.0", "web-1.4.0.tgz", Some(&digest(&other)));
    repo.file("/charts/web-1.4.0.tgz", other.clone());
    look(&mut rig, "one").await;
    assert_eq!(says(&rig).1, "ChartDigestChanged");
    let mut accepts = stored(&rig).spec.apps[0].chart.clone();
    accepts.digest = Some(digest(&other));
    rig.hub.put("test", &app(&json!(accepts), json!({"emco.io/requestedAt": "one"})));
    rig.settle().await;
    assert_eq!(says(&rig).1, "ChartsResolved");
    assert_eq!(stored(&rig).status.unwrap().apps[0].digest, digest(&other));
}

#[tokio::test]
async fn a_source_that_is_down_stays_said_and_is_asked_again_by_itself() {
    let repo = Repo::default();
    let server = repo.serve().await;
    let mut rig = resolved(&repo, &server).await;
    repo.put("/charts/index.yaml", || Reply::text(503, "text/plain", "down"));
    look(&mut rig, "one").await;
    let (ready, reason, message) = says(&rig);
    assert_eq!((ready.as_str(), reason.as_str()), ("False", "SourceUnreachable"), "{message}");
    assert!(is_usable(&rig).await);
    // Within the minute nobody is asked.
    repo.asked();
    rig.settle().await;
    assert!(repo.asked().is_empty());
    assert_eq!(says(&rig).1, "SourceUnreachable");
    repo.good();
    // Another process remembers no minute.
    rig.restart();
    rig.settle().await;
    assert!(!repo.asked().is_empty());
    assert_eq!(says(&rig).1, "ChartsResolved");
}

#[tokio::test]
async fn where_a_branch_moved_to_stays_said_beside_success() {
    let chart = json!({"git": {"url": "http://127.0.0.1:1/charts", "ref": {"branch": "main"}}});
    let mut rig = with("http://127.0.0.1:1/charts", &chart, json!({"emco.io/requestedAt": "one"}));
    let archive = chart_yaml("web", "1.4.0", "");
    let source = composite_app::source_digest(&stored(&rig).spec.apps[0]);
    let moved = "branch main has moved to 2222 and the chart stays at 1111";
    let pin = json!({
        "name": "web", "chart": "web", "version": "1.4.0", "digest": digest(&archive), "source": source,
        "commit": "1111111111111111111111111111111111111111",
        "lastLook": {"reason": "BranchMoved", "message": moved},
    });
    let hub = on_hub::Hub { server: &rig.hub, namespace: "emco-system" };
    let kept = serde_json::from_value(pin.clone()).unwrap();
    rig.ctx.charts.on_hub.keep(hub, ("team-a", "shop"), &kept, &archive).await.unwrap();
    super::kept_charts::set_status(&rig, &json!({"apps": [pin], "lastHandledRequest": "one"})).await;
    rig.settle().await;
    let message = format!("1 chart; app web: {moved}");
    assert_eq!(says(&rig), ("True".to_owned(), "ChartsResolved".to_owned(), message));
    assert!(is_usable(&rig).await);
}
