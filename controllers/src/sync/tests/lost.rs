//! Stored manifests that cannot be read: what is wanted and known goes on, and nothing is removed.

use serde_json::{Value, json};

use super::rig::*;

/// Deletes all packs on the hub, and answers them.
fn lose_all_packs(rig: &Rig) -> Vec<Value> {
    let packs = rig.hub.objects().into_iter().filter(|(key, _)| key.contains("emco-pack-"));
    let lose = |(key, pack): (String, Value)| {
        let (_, path) = key.split_once('/').unwrap();
        let (namespace, name) = path.split_once('/').unwrap();
        rig.hub.remove(&format!("/api/v1/namespaces/{namespace}/configmaps/{name}"));
        pack
    };
    packs.map(lose).collect()
}

#[tokio::test(start_paused = true)]
async fn what_is_wanted_is_applied_while_what_was_there_before_cannot_be_read_and_nothing_is_removed() {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "1"), config("old", "1")])])).await;
    rig.until_complete("a").await;
    rig.crash().await;
    let packs = lose_all_packs(&rig);
    rig.target(&on("a", &[app("web", vec![config("c", "2"), config("new", "1")])])).await;
    rig.start().await;
    rig.until_reason("a", "ContentLost").await;
    rig.until("what is wanted is there", |rig| rig.ours("a").len() == 3).await;
    let value = |name: &str| {
        let path = format!("/api/v1/namespaces/shop/configmaps/{name}");
        rig.edge("a").object(&path).map(|object| object["data"]["value"].clone())
    };
    assert_eq!(
        (value("c"), value("old"), value("new")),
        (Some(json!("2")), Some(json!("1")), Some(json!("1")))
    );
    tokio::time::sleep(std::time::Duration::from_mins(30)).await;
    assert!(!rig.complete("a") && value("old").is_some());
    assert_eq!(rig.row("a").unwrap().counts.unwrap().applied, 2, "what is there is told all the same");
    // What others change is put right meanwhile.
    rig.edge("a").remove("/api/v1/namespaces/shop/configmaps/new");
    rig.until("it is there again", |_| value("new").is_some()).await;
    for mut pack in packs {
        if let Some(metadata) = pack["metadata"].as_object_mut() {
            metadata.retain(|key, _| ["name", "namespace", "labels"].contains(&key.as_str()));
        }
        rig.hub.put("backup", &pack);
    }
    rig.until_complete("a").await;
    assert!(value("old").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_row_that_may_not_be_removed_for_lack_of_content_stays_untouched() {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "1")])])).await;
    rig.until_complete("a").await;
    rig.crash().await;
    lose_all_packs(&rig);
    rig.target(&nowhere()).await;
    rig.start().await;
    rig.until_reason("a", "ContentLost").await;
    assert_eq!(rig.ours("a"), ["configmaps./shop/c"]);
}
