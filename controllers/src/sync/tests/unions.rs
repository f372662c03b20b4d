//! Unions of which the API server filled in a member, or others said one: another member takes its place in one write.

use std::time::Duration;

use serde_json::{Value, json};

use super::rig::*;
use crate::api::Method;

const WEB: &str = "/apis/apps/v1/namespaces/shop/deployments/web";

/// A Deployment with this strategy, and one volume.
fn web(strategy: &Value, volume: &Value) -> Value {
    let mut web = deployment("web", "nginx:1");
    if !strategy.is_null() {
        web["spec"]["strategy"] = strategy.clone();
    }
    web["spec"]["template"]["spec"]["volumes"] = json!([volume]);
    web
}

fn work() -> Value {
    json!({"name": "work"})
}

async fn installed(object: Value) -> Rig {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![object])])).await;
    rig.until_complete("a").await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    rig.edge("a").take_seen();
    rig
}

async fn update(rig: &Rig, object: Value) {
    rig.target(&on("a", &[app("web", vec![object])])).await;
}

fn live(rig: &Rig) -> Value {
    rig.edge("a").object(WEB).unwrap()
}

fn patches(rig: &Rig) -> usize {
    rig.edge("a").writes().iter().filter(|write| write.method == Method::Patch && write.path == WEB).count()
}

#[tokio::test(start_paused = true)]
async fn a_strategy_that_was_filled_in_gives_way_in_one_change() {
    let said = [json!({"type": "Recreate"}), json!({"type": "Recreate", "rollingUpdate": null})];
    for (before, now) in [
        (Value::Null, said[0].clone()),
        (json!({"type": "RollingUpdate"}), said[0].clone()),
        (Value::Null, said[1].clone()),
    ] {
        let rig = installed(web(&before, &work())).await;
        assert_eq!(live(&rig)["spec"]["strategy"]["rollingUpdate"]["maxSurge"], "25%");
        update(&rig, web(&now, &work())).await;
        rig.until_complete("a").await;
        assert_eq!(live(&rig)["spec"]["strategy"], json!({"type": "Recreate"}), "{before} {now}");
        assert_eq!(live(&rig)["metadata"]["generation"], 2, "one rollout");
        assert_eq!(patches(&rig), 3, "one is refused, one claims, one changes");
        tokio::time::sleep(Duration::from_mins(5)).await;
        assert_eq!((patches(&rig), rig.row("a").unwrap().error), (3, None));
        // And back.
        update(&rig, web(&before, &work())).await;
        rig.until_complete("a").await;
        assert_eq!(live(&rig)["spec"]["strategy"]["type"], "RollingUpdate");
    }
}

#[tokio::test(start_paused = true)]
async fn a_volume_gets_a_source_with_one_rollout() {
    let rig = installed(web(&Value::Null, &work())).await;
    assert_eq!(live(&rig)["spec"]["template"]["spec"]["volumes"][0]["emptyDir"], json!({}));
    let volume = json!({"name": "work", "configMap": {"name": "x"}});
    let mut now = web(&Value::Null, &volume);
    now["spec"]["template"]["spec"]["containers"][0]["image"] = json!("nginx:2");
    update(&rig, now).await;
    rig.until_complete("a").await;
    let template = &live(&rig)["spec"]["template"]["spec"];
    assert_eq!(template["volumes"], json!([volume]));
    assert_eq!(template["containers"][0]["image"], "nginx:2");
    assert_eq!(live(&rig)["metadata"]["generation"], 2, "one rollout");
}

#[tokio::test(start_paused = true)]
async fn a_member_that_others_say_gives_way_to_the_manifests() {
    let probed = |probe: Value| {
        let mut web = deployment("web", "nginx:1");
        web["spec"]["template"]["spec"]["containers"][0]["livenessProbe"] = probe;
        web
    };
    let http = probed(json!({"httpGet": {"path": "/", "port": 80}}));
    let rig = installed(http.clone()).await;
    rig.edge("a").put("helm", &http);
    update(&rig, probed(json!({"tcpSocket": {"port": 80}}))).await;
    rig.until_complete("a").await;
    let probe = live(&rig)["spec"]["template"]["spec"]["containers"][0]["livenessProbe"].clone();
    assert_eq!(probe, json!({"tcpSocket": {"port": 80}}));
}

#[tokio::test(start_paused = true)]
async fn two_tools_that_fight_for_a_strategy_are_told_of() {
    let rig = installed(web(&json!({"type": "Recreate"}), &work())).await;
    let theirs = web(&json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}), &work());
    for _ in 0..1800 {
        if live(&rig)["spec"]["strategy"]["type"] == "Recreate" {
            rig.edge("a").put("other-operator", &theirs);
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert!(patches(&rig) < 60, "{} writes in half an hour", patches(&rig));
    let message = rig.until_reason("a", "DriftFight").await.error.unwrap().message;
    assert!(message.contains("other-operator"), "{message}");
    let is_as_applied = |rig: &Rig| live(rig)["spec"]["strategy"] == json!({"type": "Recreate"});
    rig.until("it ends as it was applied", is_as_applied).await;
}

#[tokio::test(start_paused = true)]
async fn a_strategy_that_nobody_knows_is_refused_in_the_servers_words() {
    let rig = installed(web(&Value::Null, &work())).await;
    update(&rig, web(&json!({"type": "BlueGreen"}), &work())).await;
    let error = rig.until_reason("a", "Invalid").await.error.unwrap();
    assert!(error.message.contains("spec.strategy.rollingUpdate"), "{error:?}");
    assert_eq!((live(&rig)["metadata"]["generation"].clone(), patches(&rig)), (json!(1), 1));
}
