//! Apps that intents make: there before every chart's, and gone after them, whatever happens on the way.

use std::sync::Arc;

use parking_lot::Mutex;

use super::super::deaths::{Death, all, end};
use super::leaving::deletions;
use super::*;
use crate::api::{ApiError, Method};
use crate::memory::{Fault, Faults};

const POLICIES: &str = "/apis/networking.k8s.io/v1/namespaces/shop/networkpolicies";
const CLOSED: &str = "gai.closed";

fn policy(name: &str, version: &str) -> Value {
    json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": name, "namespace": "shop"},
        "spec": {"podSelector": {"matchLabels": {"version": version}}}})
}

/// `web` of this image, and a policy of an intent.
fn closed(version: &str, web: &str) -> Vec<Arc<ManifestSet>> {
    vec![
        app(CLOSED, vec![policy("closed", version)]),
        app("web", vec![config("web", web), deployment("web", web)]),
    ]
}

/// The cluster refuses every write of policies.
fn refusing() -> Faults {
    Arc::new(|request, _| {
        let denied = request.method == Method::Patch && request.path.contains("/networkpolicies/");
        denied.then(|| {
            let message = "networkpolicies is forbidden: no right".to_owned();
            let (reason, causes) = ("Forbidden".to_owned(), Vec::new());
            Fault::Refuse(ApiError::Status { code: 403, reason, message, retry_after: None, causes })
        })
    })
}

async fn rig() -> Rig {
    let rig = Rig::new(&["a"]);
    rig.start().await;
    rig
}

/// Names of what was sent, in order; a write whose answer was lost is sent once more.
fn sent(rig: &Rig) -> Vec<String> {
    let writes = rig.edge("a").writes().into_iter().filter(|seen| seen.method == Method::Patch);
    let mut names: Vec<String> =
        writes.filter_map(|seen| seen.path.rsplit('/').next().map(str::to_owned)).collect();
    names.dedup();
    names
}

#[tokio::test(start_paused = true)]
async fn a_chart_waits_until_what_an_intent_adds_is_applied() {
    let rig = rig().await;
    rig.edge("a").faults(Some(refusing()));
    rig.target(&on("a", &closed("1", "web:1"))).await;
    let row = rig.until_reason("a", "Forbidden").await;
    let error = row.error.clone().unwrap();
    assert_eq!(error.resource.as_deref(), Some("networking.k8s.io/NetworkPolicy/shop/closed"));
    let waits =
        |row: &RowStatus| row.apps.iter().find(|app| app.app == "web").and_then(|app| app.waits_for.clone());
    let text = "waits until this revision of app gai.closed is applied on acme/a";
    rig.until("it says what it waits for", |rig| waits(&rig.row("a").unwrap()).as_deref() == Some(text))
        .await;
    sleep(Duration::from_mins(2)).await;
    assert!(rig.ours("a").is_empty(), "nothing of the chart is sent");
    rig.edge("a").faults(None);
    rig.edge("a").take_seen();
    rig.until_complete("a").await;
    let sent = sent(&rig);
    assert_eq!(sent.first().map(String::as_str), Some("closed"), "{sent:?}");
    assert!(rig.row("a").unwrap().gates.is_none(), "that is seen and not recorded");
}

#[tokio::test(start_paused = true)]
async fn a_refused_object_of_an_intent_leaves_what_runs_and_names_itself() {
    let rig = rig().await;
    rig.target(&on("a", &closed("1", "web:1"))).await;
    rig.until_complete("a").await;
    rig.edge("a").faults(Some(refusing()));
    rig.target(&on("a", &closed("2", "web:2"))).await;
    let error = rig.until_reason("a", "Forbidden").await.error.unwrap();
    assert_eq!(error.resource.as_deref(), Some("networking.k8s.io/NetworkPolicy/shop/closed"));
    sleep(Duration::from_mins(2)).await;
    assert_eq!(image(&rig, "a", "web").as_deref(), Some("web:1"), "what runs is left alone");
    // The operator begins anew, and does not forget who comes first.
    rig.crash().await;
    rig.start().await;
    sleep(Duration::from_mins(2)).await;
    assert_eq!(image(&rig, "a", "web").as_deref(), Some("web:1"));
    rig.edge("a").faults(None);
    until_image(&rig, "a", "web", "web:2").await;
    rig.until_complete("a").await;
}

#[tokio::test(start_paused = true)]
async fn a_chart_that_does_not_change_waits_for_no_intent() {
    let rig = rig().await;
    rig.target(&on("a", &closed("1", "web:1"))).await;
    rig.until_complete("a").await;
    sleep(Duration::from_secs(30)).await;
    rig.edge("a").take_seen();
    rig.target(&on("a", &closed("2", "web:1"))).await;
    rig.until_complete("a").await;
    assert_eq!(sent(&rig), ["closed"], "a changed intent touches no object of a chart");
    rig.edge("a").faults(Some(refusing()));
    rig.target(&on("a", &closed("3", "web:1"))).await;
    rig.until_reason("a", "Forbidden").await;
    rig.edge("a").remove("/api/v1/namespaces/shop/configmaps/web");
    rig.until("what somebody deleted is there again", |rig| {
        rig.edge("a").object("/api/v1/namespaces/shop/configmaps/web").is_some()
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_intent_that_an_upgrade_adds_is_there_before_the_new_pods() {
    let rig = rig().await;
    rig.target(&on("a", &[app("web", vec![deployment("web", "web:1")])])).await;
    rig.until_complete("a").await;
    sleep(Duration::from_secs(30)).await;
    rig.edge("a").take_seen();
    rig.target(&on(
        "a",
        &[app(CLOSED, vec![policy("closed", "1")]), app("web", vec![deployment("web", "web:2")])],
    ))
    .await;
    rig.until_complete("a").await;
    assert_eq!(sent(&rig), ["closed", "web"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_moves_from_a_chart_to_an_intent_is_never_gone() {
    let rig = rig().await;
    let web = |with: bool| {
        let mut all = vec![deployment("web", "web:1")];
        all.extend(with.then(|| policy("closed", "1")));
        app("web", all)
    };
    rig.target(&on("a", &[web(true)])).await;
    rig.until_complete("a").await;
    rig.edge("a").take_seen();
    rig.target(&on("a", &[app(CLOSED, vec![policy("closed", "1")]), web(false)])).await;
    rig.until_complete("a").await;
    rig.target(&on("a", &[web(true)])).await;
    rig.until_complete("a").await;
    assert!(deletions(&rig, "a").is_empty());
}

#[tokio::test(start_paused = true)]
async fn generated_apps_leave_last_and_after_the_pods_of_charts() {
    let rig = rig().await;
    rig.target(&on("a", &closed("1", "web:1"))).await;
    rig.until_complete("a").await;
    // As a garbage collector does while there are Pods.
    let held = |finalizers: Value| {
        rig.edge("a").put(
            "somebody",
            &json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop", "finalizers": finalizers}}),
        );
    };
    held(json!(["x/pods"]));
    sleep(Duration::from_secs(30)).await;
    rig.edge("a").take_seen();
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let notes = Arc::clone(&asked);
    rig.edge("a").faults(Some(Arc::new(move |request, _| {
        if request.method == Method::Delete {
            let body = request.body.as_ref().map(|(_, bytes)| String::from_utf8_lossy(bytes).into_owned());
            notes.lock().push(format!("{} {}", request.path.as_str(), body.unwrap_or_default()));
        }
        None
    })));
    rig.target(&nowhere()).await;
    rig.until("the chart leaves", |rig| deletions(rig, "a").contains(&"web".to_owned())).await;
    sleep(Duration::from_mins(2)).await;
    assert!(rig.edge("a").object(&format!("{POLICIES}/closed")).is_some(), "there are Pods yet");
    held(json!([]));
    rig.until_complete("a").await;
    assert_eq!(deletions(&rig, "a").last().map(String::as_str), Some("closed"));
    assert!(rig.ours("a").is_empty());
    for request in asked.lock().iter() {
        let foreground = request.contains("\"Foreground\"");
        assert_eq!(foreground, request.contains("/deployments/"), "{request}");
    }
}

#[tokio::test(start_paused = true)]
async fn old_objects_that_go_first_make_room_after_generated_apps_came() {
    let rig = rig().await;
    rig.prune(PrunePolicy::Before);
    rig.target(&on("a", &[app("web", vec![config("old", "1"), deployment("web", "web:1")])])).await;
    rig.until_complete("a").await;
    sleep(Duration::from_secs(30)).await;
    rig.edge("a").take_seen();
    rig.target(&on("a", &closed("1", "web:2"))).await;
    rig.until_complete("a").await;
    let writes = rig.edge("a").writes().into_iter();
    let names: Vec<String> =
        writes.filter_map(|seen| seen.path.rsplit('/').next().map(str::to_owned)).collect();
    let place = |name: &str| names.iter().position(|written| written == name);
    assert!(place("closed") < place("old") && place("old") < place("web"), "{names:?}");
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_write_brings_no_chart_before_its_intents() {
    let stations = [on("a", &closed("1", "web:1")), on("a", &closed("2", "web:2"))];
    let story = async |rig: &Rig| {
        for station in &stations {
            rig.target(station).await;
            rig.until_complete("a").await;
        }
    };
    let outcome = |rig: &Rig| {
        let (mut objects, row) = end(rig);
        for object in objects.values_mut() {
            object["status"].take();
        }
        (objects, row)
    };
    let plain = rig().await;
    story(&plain).await;
    sleep(Duration::from_secs(30)).await;
    let wanted = outcome(&plain);
    for death in all(6, 4) {
        let rig = rig().await;
        death.strikes(&rig, story(&rig)).await;
        rig.target(&stations[1]).await;
        rig.until_complete("a").await;
        sleep(Duration::from_secs(30)).await;
        assert_eq!(outcome(&rig), wanted, "{death:?}");
        let sent = sent(&rig);
        let place = |name: &str| sent.iter().position(|written| written == name);
        assert!(place("closed") < place("web"), "{death:?}: {sent:?}");
        rig.edge("a").take_seen();
        let crash = Death { n: death.n % 3, ..death };
        crash
            .strikes(&rig, async {
                rig.target(&nowhere()).await;
                rig.until_complete("a").await;
            })
            .await;
        rig.target(&nowhere()).await;
        rig.until_complete("a").await;
        assert!(rig.ours("a").is_empty(), "{death:?}");
        let order = deletions(&rig, "a");
        let first = order.iter().position(|deleted| deleted == "closed");
        let last = order.iter().rposition(|deleted| deleted == "web");
        assert!(last < first, "{death:?}: {order:?}");
    }
}
