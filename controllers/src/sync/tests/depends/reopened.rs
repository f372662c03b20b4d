//! Gates that are open stay so, over revisions and deaths; and what is known badly opens none.

use super::*;
use crate::api::{ApiError, Method};
use crate::memory::{Fault, Watching};

const MAP: &str = "/api/v1/namespaces/shop/configmaps/web";

#[tokio::test(start_paused = true)]
async fn nothing_of_an_app_is_sent_before_its_open_gate_is_stored() {
    let rig = waiting(&["a"], on_db()).await;
    rig.target(&on("a", &both("db:1", "web:1"))).await;
    until_waits(&rig, "a").await;
    rig.hub.faults(Some(Arc::new(|request, _| {
        let message = "nobody listens".to_owned();
        let lost = ApiError::Unreachable { reason: "ConnectionLost", message };
        (request.method != Method::Get && request.path.ends_with("/status")).then_some(Fault::Refuse(lost))
    })));
    ready(&rig, "a", "db");
    sleep(Duration::from_mins(2)).await;
    assert_eq!((image(&rig, "a", "web"), rig.edge("a").object(MAP)), (None, None));
    rig.hub.faults(None);
    until_image(&rig, "a", "web", "web:1").await;
    let open = rig.row("a").unwrap().gates.unwrap().open;
    assert_eq!(open.iter().map(|gate| &*gate.app).collect::<Vec<_>>(), ["web"]);
}

#[tokio::test(start_paused = true)]
async fn a_revision_holds_no_app_again_whose_set_it_does_not_change() {
    let rig = waiting(&["a"], on_db()).await;
    let on_web = Dependency { app: "web".to_owned(), ..Dependency::default() };
    rig.depends.lock().insert("log".to_owned(), vec![on_web]);
    let all = |db: &str| on("a", &[both(db, "web:1"), vec![app("log", vec![config("log", "1")])]].concat());
    rig.target(&all("db:1")).await;
    until_waits(&rig, "a").await;
    ready(&rig, "a", "db");
    until_image(&rig, "a", "web", "web:1").await;
    // The last app waits for web: this revision is never completed.
    rig.target(&all("db:2")).await;
    until_image(&rig, "a", "db", "db:2").await;
    rig.edge("a").remove(MAP);
    rig.until("it is there again", |rig| rig.edge("a").object(MAP).is_some()).await;
    assert!(!rig.complete("a"));
}

/// Lets time pass on an edge that others write to, too, and that is probed every minute.
async fn minutes(rig: &Rig, minutes: u64) {
    let edge = rig.edge("a");
    for _ in 0..minutes {
        edge.put("somebody", &config("busy", &edge.revision().to_string()));
        *rig.edges.revision.lock() = Some(edge.revision());
        sleep(Duration::from_mins(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_known_of_a_kind_that_cannot_be_watched_opens_no_gate() {
    let rig = waiting(&["a"], on_db()).await;
    rig.edge("a").set_watching(Watching::Refused);
    rig.target(&on("a", &both("db:1", "web:1"))).await;
    minutes(&rig, 10).await;
    assert_eq!(rig.row("a").unwrap().error.unwrap().reason, "Forbidden");
    ready(&rig, "a", "db");
    minutes(&rig, 12).await;
    assert_eq!(image(&rig, "a", "web"), None);
    rig.edge("a").set_watching(Watching::Works);
    minutes(&rig, 12).await;
    assert_eq!(image(&rig, "a", "web").as_deref(), Some("web:1"));
}
