use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Instant;

use futures::StreamExt;
use serde_json::{Value, json};

use super::*;
use crate::api::{Method, Request};
use crate::remote::testing::{Authority, Server, Setup, Steady, dialer, kubeconfig};
use crate::remote::{State, kubeconfig};

mod api;
mod crowd;
mod past;
mod starting;

use api::{Api, node};

struct Bed {
    ca: Authority,
    pool: Arc<Pool>,
    id: ClusterId,
}

impl Bed {
    fn new() -> Self {
        Self::with(|_| {})
    }

    /// For clusters that do not answer. All others have as long as in production, whatever else the machine does.
    fn impatient() -> Self {
        Self::with(|settings| settings.edge.answer_begins = Duration::from_millis(300))
    }

    fn with(adjust: impl FnOnce(&mut PoolSettings)) -> Self {
        let mut settings = PoolSettings {
            probe_every: Duration::from_millis(60),
            backoff_first: Duration::from_millis(20),
            backoff_last: Duration::from_millis(100),
            round_gap: Duration::from_millis(1),
            refused_gap: Duration::from_millis(1),
            ..PoolSettings::default()
        };
        adjust(&mut settings);
        let steady = Arc::new(Steady::default());
        let pool = Pool::new(settings, dialer(), Arc::clone(&steady) as Arc<dyn Clock>, steady);
        Self { ca: Authority::new(), pool, id: ClusterId::new("acme", "berlin-1") }
    }

    async fn serve(&self, api: &Arc<Api>, at: Option<SocketAddr>) -> Server {
        let setup = Setup { authority: Some(&self.ca), alpn: &["h2"], names: &["localhost"] };
        Server::start_at(at.unwrap_or_else(|| "127.0.0.1:0".parse().unwrap()), setup, api.handler()).await
    }

    fn target(&self, server: SocketAddr, token: &str, version: &str) -> Target {
        let file = kubeconfig(&format!("https://localhost:{}", server.port()), &self.ca.pem(), token);
        Target {
            credentials: kubeconfig::read(&file).unwrap(),
            version: version.to_owned(),
            identity: None,
            installation: "ours".to_owned(),
            hub_version: 0,
            by_git: false,
            registered: None,
        }
    }

    fn seen(&self) -> Arc<Observation> {
        self.pool.observation(&self.id).unwrap()
    }

    /// Waits for an observation, by the stream of changes alone.
    async fn until(&self, what: &str, wanted: impl Fn(&Observation) -> bool) -> Arc<Observation> {
        self.until_of(&self.id, what, wanted).await
    }

    async fn until_of(
        &self,
        id: &ClusterId,
        what: &str,
        wanted: impl Fn(&Observation) -> bool,
    ) -> Arc<Observation> {
        let mut changes = self.pool.changes();
        let waiting = async {
            loop {
                let seen = self.pool.observation(id).unwrap();
                if wanted(&seen) {
                    return seen;
                }
                changes.next().await.unwrap();
            }
        };
        match tokio::time::timeout(Duration::from_mins(1), waiting).await {
            Ok(seen) => seen,
            Err(tokio::time::error::Elapsed { .. }) => {
                panic!("{what} did not come: {:?}", self.pool.observation(id))
            }
        }
    }

    async fn connected(&self) -> Arc<Observation> {
        self.until("Connected", Observation::connected).await
    }

    async fn failed(&self, wanted: &str) -> String {
        let fails =
            |seen: &Observation| matches!(&seen.state, State::Failed { reason, .. } if *reason == wanted);
        let seen = self.until(wanted, fails).await;
        let State::Failed { message, .. } = &seen.state else { panic!() };
        message.clone()
    }
}

#[tokio::test]
async fn a_cluster_is_learnt_at_first_contact() {
    for aggregated in [true, false] {
        let (bed, api) = (Bed::new(), Api::new(aggregated));
        let server = bed.serve(&api, None).await;
        assert!(bed.pool.observation(&bed.id).is_none());
        bed.pool.set_target(bed.id.clone(), bed.target(server.address, "good", "1"));
        assert!(bed.pool.get(&bed.id).is_none(), "nothing is connected yet");
        let seen = bed.connected().await;
        assert_eq!((seen.uid.as_deref(), seen.version.as_deref()), (Some("uid-1"), Some("v1.36.3")));
        assert_eq!((seen.nodes_ready, seen.nodes_total), (Some(1), Some(2)));
        assert_eq!(seen.allocatable["cpu"], "3920m");
        let apis = seen.apis.as_ref().unwrap();
        let kinds: Vec<_> =
            apis.resources.iter().map(|r| (r.kind.as_str(), r.namespaced, r.listable, r.watchable)).collect();
        let expected = [
            ("ConfigMap", true, true, true),
            ("Deployment", true, true, true),
            ("Metrics", true, false, false),
            ("Report", true, true, false),
            ("Review", false, false, false),
        ];
        assert_eq!(kinds, expected);
        assert_eq!(seen.api_digest.as_ref().unwrap().len(), 71);
        let edge = bed.pool.get(&bed.id).unwrap();
        assert!(edge.send(Request::new(Method::Get, "/version")).await.is_ok());
    }
}

#[tokio::test]
async fn at_rest_a_probe_is_one_request_and_nothing_is_told() {
    let (bed, api) = (Bed::with(|s| s.learn_every = 1000), Api::new(true));
    let server = bed.serve(&api, None).await;
    bed.pool.set_target(bed.id.clone(), bed.target(server.address, "good", "1"));
    let seen = bed.connected().await;
    let mut changes = bed.pool.changes();
    api.asked.lock().clear();
    let deadline = Instant::now() + Duration::from_secs(10);
    while api.count("/api/v1/namespaces") < 4 && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let asked = api.asked.lock().clone();
    assert!(asked.len() >= 4 && asked.iter().all(|path| path == "/api/v1/namespaces"), "{asked:?}");
    let told = tokio::time::timeout(Duration::from_millis(50), changes.next()).await;
    assert!(told.is_err(), "nothing changed");
    assert!(Arc::ptr_eq(&seen, &bed.seen()));
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn what_was_learnt_is_kept_while_a_cluster_is_away_and_it_comes_back_by_itself() {
    let (bed, api) = (Bed::new(), Api::new(true));
    let server = bed.serve(&api, None).await;
    let address = server.address;
    bed.pool.set_target(bed.id.clone(), bed.target(address, "good", "1"));
    let before = bed.connected().await;
    drop(server);
    bed.failed("ConnectionRefused").await;
    assert!(bed.pool.get(&bed.id).is_none());
    let away = bed.seen();
    assert_eq!((&away.uid, &away.apis, away.epoch), (&before.uid, &before.apis, before.epoch));
    let _server = bed.serve(&api, Some(address)).await;
    let back = bed.connected().await;
    assert_eq!((&back.uid, back.epoch), (&before.uid, before.epoch));
    assert!(back.since_ms > away.since_ms && away.since_ms > before.since_ms);
}

#[tokio::test]
async fn a_black_hole_becomes_a_time_out() {
    let (bed, dead) = (Bed::impatient(), Api::new(true));
    dead.silent.store(true, Ordering::SeqCst);
    let hole = bed.serve(&dead, None).await;
    bed.pool.set_target(bed.id.clone(), bed.target(hole.address, "good", "1"));
    bed.failed("Timeout").await;
}

#[tokio::test]
async fn a_black_hole_delays_no_other_cluster() {
    let bed = Bed::with(|settings| settings.edge.answer_begins = Duration::from_hours(1));
    let (dead, alive) = (Api::new(true), Api::new(true));
    dead.silent.store(true, Ordering::SeqCst);
    let (hole, server) = (bed.serve(&dead, None).await, bed.serve(&alive, None).await);
    bed.pool.set_target(bed.id.clone(), bed.target(hole.address, "good", "1"));
    let other = ClusterId::new("acme", "other");
    bed.pool.set_target(other.clone(), bed.target(server.address, "good", "1"));
    bed.until_of(&other, "Connected", Observation::connected).await;
    assert_eq!(bed.seen().state, State::Connecting, "its answer is still awaited");
    assert_eq!(bed.pool.clusters().len(), 2);
}

#[tokio::test]
async fn refused_credentials_are_named_and_new_ones_take_their_place() {
    let (bed, api) = (Bed::new(), Api::new(true));
    let server = bed.serve(&api, None).await;
    bed.pool.set_target(bed.id.clone(), bed.target(server.address, "bad", "1"));
    let message = bed.failed("Unauthorized").await;
    assert!(message.contains("new kubeconfig") && message.len() <= 256, "{message}");
    bed.pool.set_target(bed.id.clone(), bed.target(server.address, "good", "1"));
    bed.pool.probe_now(&bed.id);
    bed.failed("Unauthorized").await;
    bed.pool.set_target(bed.id.clone(), bed.target(server.address, "good", "2"));
    let first = bed.connected().await;
    // Rotation: the old token ends, the new Secret is read, work goes on with the same cluster.
    *api.token.lock() = "rotated".to_owned();
    bed.pool.set_target(bed.id.clone(), bed.target(server.address, "rotated", "3"));
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let answer = match bed.pool.get(&bed.id) {
            Some(edge) => edge.send(Request::new(Method::Get, "/version")).await.is_ok(),
            None => false,
        };
        if answer {
            break;
        }
        assert!(Instant::now() < deadline, "the new credentials are not used");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(bed.seen().epoch, first.epoch, "the same store needs no new lists");
}

#[tokio::test]
async fn rights_that_are_gone_are_noticed_at_the_first_refused_request() {
    let (bed, api) = (Bed::with(|s| s.probe_every = Duration::from_secs(300)), Api::new(true));
    let server = bed.serve(&api, None).await;
    bed.pool.set_target(bed.id.clone(), bed.target(server.address, "good", "1"));
    bed.connected().await;
    let edge = bed.pool.get(&bed.id).unwrap();
    *api.token.lock() = "revoked".to_owned();
    edge.send(Request::new(Method::Get, "/version")).await.unwrap_err();
    bed.failed("Unauthorized").await;
}

#[tokio::test]
async fn a_right_that_a_chart_lacks_costs_no_more_than_a_probe_now_and_then() {
    let adjust = |s: &mut PoolSettings| {
        (s.probe_every, s.refused_gap) = (Duration::from_secs(300), Duration::from_millis(200));
    };
    let (bed, api) = (Bed::with(adjust), Api::new(true));
    let server = bed.serve(&api, None).await;
    bed.pool.set_target(bed.id.clone(), bed.target(server.address, "good", "1"));
    bed.connected().await;
    api.nodes_forbidden.store(true, Ordering::SeqCst);
    api.asked.lock().clear();
    let (edge, began) = (bed.pool.get(&bed.id).unwrap(), Instant::now());
    while api.count("/api/v1/namespaces") < 3 {
        edge.send(Request::new(Method::Get, "/api/v1/nodes")).await.unwrap_err();
        assert!(began.elapsed() < Duration::from_secs(10), "the refusals bring no probe");
    }
    assert!(began.elapsed() >= Duration::from_millis(400), "{:?}", began.elapsed());
    assert!(bed.seen().connected());
}

#[tokio::test]
async fn a_secret_that_changes_while_connecting_is_used_at_once() {
    let bed = Bed::with(|settings| settings.edge.answer_begins = Duration::from_secs(300));
    let (silent, api) = (Api::new(true), Api::new(true));
    silent.silent.store(true, Ordering::SeqCst);
    let (hole, server) = (bed.serve(&silent, None).await, bed.serve(&api, None).await);
    bed.pool.set_target(bed.id.clone(), bed.target(hole.address, "good", "1"));
    let deadline = Instant::now() + Duration::from_secs(10);
    while silent.asked.lock().is_empty() {
        assert!(Instant::now() < deadline, "the first one was never asked");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    bed.pool.set_target(bed.id.clone(), bed.target(server.address, "good", "2"));
    let seen = bed.connected().await;
    assert_eq!(seen.uid.as_deref(), Some("uid-1"));
    assert!(bed.pool.get(&bed.id).unwrap().send(Request::new(Method::Get, "/version")).await.is_ok());
}

#[tokio::test]
async fn work_is_admitted_when_who_the_cluster_is_was_judged_or_is_known() {
    let (bed, api) = (Bed::new(), Api::new(true));
    let server = bed.serve(&api, None).await;
    bed.pool.set_target(bed.id.clone(), bed.target(server.address, "good", "1"));
    assert_eq!(bed.connected().await.admission, Admission::Awaited);
    let refused = Admission::Refused { reason: "SameClusterTwice", message: "twice".to_owned() };
    bed.pool.admit(&bed.id, "uid-1", refused.clone());
    assert_eq!(bed.seen().admission, refused);
    bed.pool.admit(&bed.id, "uid-1", Admission::Admitted);
    assert_eq!(bed.seen().admission, Admission::Admitted);
    // Another cluster behind the address was never judged.
    *api.uid.lock() = "uid-2".to_owned();
    bed.pool.probe_now(&bed.id);
    let other = bed.until("another uid", |seen| seen.uid.as_deref() == Some("uid-2")).await;
    assert_eq!(other.admission, Admission::Awaited);
    // After a restart, the identity that is stored is enough.
    let known = ClusterId::new("acme", "known");
    let target = Target { identity: Some("uid-2".to_owned()), ..bed.target(server.address, "good", "1") };
    bed.pool.set_target(known.clone(), target);
    let deadline = Instant::now() + Duration::from_secs(10);
    while !bed.pool.observation(&known).unwrap().connected() {
        assert!(Instant::now() < deadline, "never connected");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(bed.pool.observation(&known).unwrap().admission, Admission::Admitted);
}

#[tokio::test]
async fn a_new_kind_is_seen_when_asked_for() {
    let (bed, api) = (Bed::with(|s| s.learn_every = 100_000), Api::new(true));
    let server = bed.serve(&api, None).await;
    bed.pool.set_target(bed.id.clone(), bed.target(server.address, "good", "1"));
    let before = bed.connected().await;
    api.kinds.lock().push("Widget");
    bed.pool.refresh_apis(&bed.id);
    let after = bed
        .until("Widget", |seen| {
            seen.apis.as_ref().is_some_and(|apis| apis.find("", "v1", "Widget").is_some())
        })
        .await;
    assert_ne!(before.api_digest, after.api_digest);
    bed.pool.refresh_apis(&bed.id);
    let asked = api.count("/apis");
    while api.count("/apis") == asked {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(
        Arc::ptr_eq(after.apis.as_ref().unwrap(), bed.seen().apis.as_ref().unwrap()),
        "304 keeps the list"
    );
}

#[tokio::test]
async fn nodes_are_followed_and_their_lack_of_rights_is_no_failure() {
    let (bed, api) = (Bed::new(), Api::new(true));
    let event = |kind: &str, node: Value| json!({"type": kind, "object": node}).to_string() + "\n";
    *api.node_events.lock() =
        event("MODIFIED", node("b", true, "4")) + &event("DELETED", node("a", true, "1"));
    let server = bed.serve(&api, None).await;
    bed.pool.set_target(bed.id.clone(), bed.target(server.address, "good", "1"));
    let seen = bed.until("one node", |seen| seen.nodes_total == Some(1)).await;
    assert_eq!((seen.nodes_ready, seen.allocatable["cpu"].as_str()), (Some(1), "4"));

    let (bed, api) = (Bed::new(), Api::new(true));
    api.nodes_forbidden.store(true, Ordering::SeqCst);
    let server = bed.serve(&api, None).await;
    bed.pool.set_target(bed.id.clone(), bed.target(server.address, "good", "1"));
    assert_eq!(bed.connected().await.nodes_total, None);
}

#[tokio::test]
async fn nodes_that_may_be_listed_and_not_watched_stay_known() {
    let (bed, api) = (Bed::new(), Api::new(true));
    api.node_watch_forbidden.store(true, Ordering::SeqCst);
    let server = bed.serve(&api, None).await;
    bed.pool.set_target(bed.id.clone(), bed.target(server.address, "good", "1"));
    assert!(bed.connected().await.nodes.done().is_none(), "nobody asks");
    bed.pool.want_nodes(&bed.id, Some(&Arc::default()));
    bed.until("nodes in detail", |seen| seen.nodes.done().is_some_and(|seen| seen.nodes.len() == 2)).await;
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(bed.seen().nodes.done().is_some(), "round after round");
    }
    bed.pool.want_nodes(&bed.id, None);
    bed.until("nobody who asks", |seen| seen.nodes.done().is_none()).await;
}

#[tokio::test]
async fn a_lost_connection_is_noticed_before_the_next_probe_is_due() {
    let (bed, api) = (Bed::with(|s| s.probe_every = Duration::from_secs(3600)), Api::new(true));
    let server = bed.serve(&api, None).await;
    bed.pool.set_target(bed.id.clone(), bed.target(server.address, "good", "1"));
    bed.connected().await;
    drop(server);
    bed.failed("ConnectionRefused").await;
}

#[tokio::test]
async fn a_forgotten_cluster_leaves_nothing_behind() {
    let (bed, api) = (Bed::new(), Api::new(true));
    let server = bed.serve(&api, None).await;
    bed.pool.set_target(bed.id.clone(), bed.target(server.address, "good", "1"));
    bed.connected().await;
    let entry = Arc::downgrade(bed.pool.entries.read().get(&bed.id).unwrap());
    let mut changes = bed.pool.changes();
    bed.pool.forget(&bed.id);
    assert_eq!(changes.next().await.unwrap(), bed.id);
    assert!(bed.pool.observation(&bed.id).is_none() && bed.pool.get(&bed.id).is_none());
    let deadline = Instant::now() + Duration::from_secs(5);
    while entry.strong_count() > 0 {
        assert!(Instant::now() < deadline, "its task goes on");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
