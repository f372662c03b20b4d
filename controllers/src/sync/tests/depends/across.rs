//! Apps that wait for other clusters.

use emco_crds::composite_app::DependencyScope;
use emco_crds::sync_shard::{OrderedApp, ShardOrder};
use emco_engine::depends::{Order, Reached};
use emco_engine::identity::ClusterId;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::api::ApiServerExt as _;
use crate::remote::Admission;
use crate::sync::edge::Edge;
use crate::sync::fleet::{ClusterStand, Fleet};
use crate::sync::health_rules::HealthRules;

fn on_both(a: Vec<Arc<ManifestSet>>, b: Vec<Arc<ManifestSet>>) -> BTreeMap<ClusterId, Vec<Arc<ManifestSet>>> {
    BTreeMap::from([(cluster("a"), a), (cluster("b"), b)])
}

fn everywhere() -> Dependency {
    Dependency { scope: Some(DependencyScope::All), ..on_db() }
}

#[tokio::test(start_paused = true)]
async fn scope_all_waits_for_every_cluster_of_the_other_app() {
    let rig = waiting(&["a", "b"], everywhere()).await;
    rig.target(&on_both(both("db:1", "web:1"), both("db:1", "web:1"))).await;
    until_waits(&rig, "a").await;
    ready(&rig, "a", "db");
    rig.until("the other cluster is named", |rig| {
        says(rig, "a").is_some_and(|says| {
            says == "waits until this revision of app db is Ready on all its clusters: not yet on acme/b"
        })
    })
    .await;
    sleep(Duration::from_mins(2)).await;
    assert_eq!((image(&rig, "a", "web"), image(&rig, "b", "web")), (None, None));
    let met = tokio::time::Instant::now();
    ready(&rig, "b", "db");
    until_image(&rig, "a", "web", "web:1").await;
    until_image(&rig, "b", "web", "web:1").await;
    // The open gates are stored first.
    assert!(met.elapsed() < Duration::from_secs(1), "rung, not asked for: {:?}", met.elapsed());
}

#[tokio::test(start_paused = true)]
async fn scope_all_at_an_upgrade_takes_no_older_revision_for_met() {
    let rig = waiting(&["a", "b"], everywhere()).await;
    for name in ["a", "b"] {
        rig.edge(name).set_workloads_ready(true);
    }
    rig.target(&on_both(both("db:1", "web:1"), both("db:1", "web:1"))).await;
    rig.until_complete("a").await;
    rig.until_complete("b").await;
    for name in ["a", "b"] {
        rig.edge(name).set_workloads_ready(false);
    }
    rig.target(&on_both(both("db:2", "web:2"), both("db:2", "web:2"))).await;
    until_image(&rig, "a", "db", "db:2").await;
    ready(&rig, "a", "db");
    sleep(Duration::from_mins(2)).await;
    assert_eq!(image(&rig, "a", "web").as_deref(), Some("web:1"));
    ready(&rig, "b", "db");
    until_image(&rig, "a", "web", "web:2").await;
}

#[tokio::test(start_paused = true)]
async fn scope_all_skips_a_cluster_that_is_away_past_the_deadline() {
    let rig = waiting(&["a", "b"], everywhere()).await;
    rig.target(&on_both(both("db:1", "web:1"), both("db:1", "web:1"))).await;
    until_waits(&rig, "b").await;
    rig.edges.set_down(&cluster("b"), true);
    let away = tokio::time::Instant::now();
    ready(&rig, "a", "db");
    rig.until("the cluster is named", |rig| {
        let says = rig.row("a").and_then(|row| row.error).map(|error| error.message);
        says.is_some_and(|says| {
            says.ends_with("acme/b cannot be reached, and is skipped after spec.progressDeadline")
        })
    })
    .await;
    until_image(&rig, "a", "web", "web:1").await;
    let took = away.elapsed().as_secs();
    assert!((599..640).contains(&took), "{took} s");
}

#[tokio::test(start_paused = true)]
async fn no_gate_opens_where_every_cluster_of_the_other_app_is_away() {
    let rig = waiting(&["a", "b"], on_db()).await;
    let [db, web] = both("db:1", "web:1").try_into().unwrap_or_else(|_| panic!("two sets"));
    rig.edges.set_down(&cluster("b"), true);
    rig.target(&on_both(vec![web], vec![db])).await;
    sleep(Duration::from_hours(1)).await;
    assert_eq!(image(&rig, "a", "web"), None);
    rig.edges.set_down(&cluster("b"), false);
    until_image(&rig, "b", "db", "db:1").await;
    ready(&rig, "b", "db");
    until_image(&rig, "a", "web", "web:1").await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_without_the_other_app_waits_for_those_that_have_it() {
    let rig = waiting(&["a", "b"], on_db()).await;
    let web = || vec![app("web", vec![deployment("web", "web:1")])];
    rig.target(&on_both(both("db:1", "web:1"), web())).await;
    until_waits(&rig, "b").await;
    assert_eq!(image(&rig, "b", "web"), None);
    rig.crash().await;
    rig.start().await;
    sleep(Duration::from_mins(1)).await;
    assert_eq!(image(&rig, "b", "web"), None, "also after a restart, when nothing is known yet");
    ready(&rig, "a", "db");
    until_image(&rig, "b", "web", "web:1").await;
}

#[tokio::test(start_paused = true)]
async fn a_delay_across_clusters_runs_on_over_a_restart() {
    let rig = waiting(&["a", "b"], Dependency { delay: Some("1h".into()), ..everywhere() }).await;
    rig.target(&on_both(both("db:1", "web:1"), both("db:1", "web:1"))).await;
    until_waits(&rig, "a").await;
    ready(&rig, "a", "db");
    ready(&rig, "b", "db");
    let met = tokio::time::Instant::now();
    let says_delay = |rig: &Rig| {
        let error = rig.row("a").and_then(|row| row.error);
        error.is_some_and(|error| error.message.starts_with("app db is Ready, and the delay"))
    };
    rig.until("the delay is named", says_delay).await;
    sleep(Duration::from_mins(50)).await;
    rig.crash().await;
    rig.start().await;
    until_image(&rig, "a", "web", "web:1").await;
    let took = met.elapsed().as_secs();
    assert!((3600..3605).contains(&took), "{took} s");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_where_old_objects_stay_keeps_no_other_one_waiting() {
    let rig = waiting(&["a", "b"], everywhere()).await;
    rig.prune(PrunePolicy::Before);
    for name in ["a", "b"] {
        rig.edge(name).set_workloads_ready(true);
    }
    let first = || {
        let old = vec![config("web-old", "1"), deployment("web", "web:1")];
        vec![app("db", vec![deployment("db", "db:1")]), app("web", old)]
    };
    rig.target(&on_both(first(), first())).await;
    rig.until_complete("a").await;
    rig.until_complete("b").await;
    let held = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    rig.edge("a").merge("/api/v1/namespaces/shop/configmaps/web-old", &held).await.unwrap();
    for name in ["a", "b"] {
        rig.edge(name).set_workloads_ready(false);
    }
    rig.target(&on_both(both("db:2", "web:2"), both("db:2", "web:2"))).await;
    until_image(&rig, "a", "db", "db:2").await;
    until_image(&rig, "b", "db", "db:2").await;
    ready(&rig, "a", "db");
    let leaves = |rig: &Rig| {
        let old = rig.edge("a").object("/api/v1/namespaces/shop/configmaps/web-old");
        old.is_some_and(|old| !old["metadata"]["deletionTimestamp"].is_null())
    };
    ready(&rig, "b", "db");
    rig.until("room is made on a", leaves).await;
    until_image(&rig, "b", "web", "web:2").await;
    assert_eq!(image(&rig, "a", "web").as_deref(), Some("web:1"));
}

fn says(rig: &Rig, cluster: &str) -> Option<String> {
    rig.row(cluster).and_then(|row| row.error).map(|error| error.message)
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_may_not_be_worked_on_is_named_and_opens_no_gate() {
    let rig = waiting(&["a", "b"], everywhere()).await;
    rig.target(&on_both(both("db:1", "web:1"), both("db:1", "web:1"))).await;
    until_waits(&rig, "b").await;
    ready(&rig, "b", "db");
    rig.until("it counts", |rig| says(rig, "a").is_some_and(|says| says.ends_with("not yet on acme/a")))
        .await;
    rig.edges.link(&cluster("b"), |link| {
        let message = "another cluster answers".to_owned();
        link.admission = Admission::Refused { reason: "ClusterReplaced", message };
    });
    rig.until_reason("b", "ClusterReplaced").await;
    ready(&rig, "a", "db");
    rig.until("it is named", |rig| says(rig, "a").is_some_and(|says| says.ends_with("not yet on acme/b")))
        .await;
    sleep(Duration::from_mins(1)).await;
    assert_eq!(image(&rig, "a", "web"), None);
    rig.edges.link(&cluster("b"), |link| link.admission = Admission::Admitted);
    until_image(&rig, "a", "web", "web:1").await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_waits_is_not_late_while_the_others_go_forward() {
    let rig = waiting(&["a", "b", "c"], on_db()).await;
    let db = || vec![app("db", vec![deployment("db", "db:1")])];
    let web = vec![app("web", vec![deployment("web", "web:1")])];
    rig.target(&BTreeMap::from([(cluster("a"), web), (cluster("b"), db()), (cluster("c"), db())])).await;
    let named = |rig: &Rig| says(rig, "a").is_some_and(|says| says.ends_with("not yet on acme/b and others"));
    rig.until("the first is named", named).await;
    sleep(Duration::from_mins(8)).await;
    ready(&rig, "b", "db");
    sleep(Duration::from_mins(8)).await;
    let error = rig.row("a").unwrap().error.unwrap();
    assert_eq!(error.reason, WAITS, "{}", error.message);
    assert!(error.message.ends_with("not yet on acme/c"), "{}", error.message);
    rig.until_reason("a", "ProgressDeadlineExceeded").await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_whose_turn_has_not_come_holds_nobody_up() {
    let rig = waiting(&["a", "b"], everywhere()).await;
    // It keeps what it had before the rollout, and that is not ready.
    *rig.given.lock() = Some([cluster("a")].into());
    rig.target(&on_both(both("db:2", "web:2"), both("db:1", "web:1"))).await;
    until_image(&rig, "a", "db", "db:2").await;
    until_image(&rig, "b", "db", "db:1").await;
    sleep(Duration::from_mins(2)).await;
    assert_eq!(image(&rig, "a", "web"), None);
    ready(&rig, "a", "db");
    until_image(&rig, "a", "web", "web:2").await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_leaves_rings_those_that_wait_for_it() {
    let rig = Rig::new(&["a"]);
    let edge = Edge::new(
        cluster("a"),
        rig.edges.clone(),
        Arc::default(),
        rig.fence.clone(),
        Arc::default(),
        HealthRules::new(Arc::default()),
        8,
    );
    let db = OrderedApp { app: "db".to_owned(), clusters: Some(1), ..OrderedApp::default() };
    let order = Arc::new(Order::of(Some(&ShardOrder {
        revision: 3,
        apps: vec![db],
        generated: Vec::new(),
        silent: Vec::new(),
    })));
    let (fleet, stop) = (Fleet::default(), CancellationToken::new());
    fleet.wait("o", &cluster("a"), Some(&edge), &stop);
    let stand = ClusterStand { revision: 3, away: None, apps: [("db".to_owned(), Reached::Ready)].into() };
    fleet.put("o", &cluster("b"), &order, stand, &stop);
    let mut bell = edge.observed.bell("o");
    fleet.leave("o", &cluster("b"), false, None);
    assert!(bell.has_changed().unwrap());
    bell.borrow_and_update();
    fleet.leave("o", &cluster("b"), false, None);
    assert!(!bell.has_changed().unwrap(), "it was gone already");
    // Where it was the only one that was waited for, it opens a gate, also by an order that came with nothing else new.
    let db =
        |clusters| OrderedApp { app: "db".to_owned(), clusters: Some(clusters), ..OrderedApp::default() };
    let order = |clusters| {
        Arc::new(Order::of(Some(&ShardOrder {
            revision: 3,
            apps: vec![db(clusters)],
            generated: Vec::new(),
            silent: Vec::new(),
        })))
    };
    let stand = |reached| ClusterStand { revision: 3, away: None, apps: [("db".to_owned(), reached)].into() };
    fleet.put("o", &cluster("a"), &order(2), stand(Reached::Ready), &stop);
    fleet.put("o", &cluster("b"), &order(2), stand(Reached::Nothing), &stop);
    fleet.put("o", &cluster("a"), &order(1), stand(Reached::Ready), &stop);
    bell.borrow_and_update();
    fleet.leave("o", &cluster("b"), false, None);
    assert!(bell.has_changed().unwrap(), "nobody is waited for any more");
    // It said nothing of the revision, and waits on for those that do.
    fleet.leave("o", &cluster("a"), true, None);
    bell.borrow_and_update();
    fleet.put("o", &cluster("b"), &order(1), stand(Reached::Ready), &stop);
    assert!(bell.has_changed().unwrap(), "one that waits and is not heard is rung");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_answers_again_is_not_skipped_before_it_is_judged() {
    let rig = waiting(&["a", "b"], everywhere()).await;
    rig.prune(PrunePolicy::Before);
    for name in ["a", "b"] {
        rig.edge(name).set_workloads_ready(true);
    }
    let mut first = both("db:1", "web:1");
    first.push(app("old", vec![config("old", "1")]));
    rig.target(&on_both(first.clone(), first)).await;
    rig.until_complete("a").await;
    rig.until_complete("b").await;
    for name in ["a", "b"] {
        rig.edge(name).set_workloads_ready(false);
    }
    // Nothing is judged on b while this is on its way out.
    let held = |finalizers: Value| json!({"metadata": {"finalizers": finalizers}});
    let old = "/api/v1/namespaces/shop/configmaps/old";
    rig.edge("b").merge(old, &held(json!(["example.com/hold"]))).await.unwrap();
    rig.target(&on_both(both("db:2", "web:2"), both("db:2", "web:2"))).await;
    until_image(&rig, "a", "db", "db:2").await;
    ready(&rig, "a", "db");
    let names_b = |rig: &Rig| says(rig, "a").is_some_and(|says| says.ends_with("not yet on acme/b"));
    rig.until("b is named", names_b).await;
    rig.edges.set_down(&cluster("b"), true);
    rig.until("b is away", |rig| says(rig, "a").is_some_and(|says| says.contains("cannot be reached"))).await;
    sleep(Duration::from_mins(5)).await;
    rig.edges.set_down(&cluster("b"), false);
    rig.until("b is named again", names_b).await;
    sleep(Duration::from_mins(15)).await;
    assert_eq!(image(&rig, "a", "web").as_deref(), Some("web:1"));
    rig.edge("b").merge(old, &held(json!([]))).await.unwrap();
    until_image(&rig, "b", "db", "db:2").await;
    ready(&rig, "b", "db");
    until_image(&rig, "a", "web", "web:2").await;
}
