//! What the hub answered to a write of a shard is worked on before its watch shows the same.

use super::rig::*;

const CONFIG: &str = "/api/v1/namespaces/shop/configmaps/c";

#[tokio::test(start_paused = true)]
async fn work_begins_with_the_answer_and_does_not_wait_for_the_watch() {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "1"), config("old", "1")])])).await;
    rig.until_complete("a").await;
    rig.deafen();
    rig.target(&on("a", &[app("web", vec![config("c", "2")])])).await;
    rig.until_complete("a").await;
    assert_eq!(rig.edge("a").object(CONFIG).unwrap()["data"]["value"], "2");
    assert_eq!(rig.ours("a"), ["configmaps./shop/c"]);
}

#[tokio::test(start_paused = true)]
async fn what_the_watch_shows_of_the_time_before_an_answer_is_not_acted_on() {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "1")])])).await;
    rig.until_complete("a").await;
    let before = rig.shard();
    rig.deafen();
    rig.target(&on("a", &[app("web", vec![config("c", "2")])])).await;
    rig.until_complete("a").await;
    rig.edge("a").take_seen();
    let sync = rig.sync.lock().clone().unwrap();
    sync.shard(before);
    tokio::time::sleep(std::time::Duration::from_mins(5)).await;
    assert!(rig.edge("a").writes().is_empty(), "{:?}", rig.edge("a").writes());
    assert_eq!(rig.edge("a").object(CONFIG).unwrap()["data"]["value"], "2");
    sync.shard(rig.shard());
    tokio::time::sleep(std::time::Duration::from_mins(5)).await;
    assert!(rig.edge("a").writes().is_empty());
}
