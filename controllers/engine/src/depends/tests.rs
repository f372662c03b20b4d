use emco_crds::composite_app::DependencyState;
use emco_crds::sync_shard::{AppSet, ShardRow};
use proptest::prelude::*;

use super::*;
use crate::shard;

fn dependency(app: &str) -> Dependency {
    Dependency { app: app.to_owned(), ..Dependency::default() }
}

/// Apps by name, each with those that it waits for.
fn apps(all: &[(&str, &[&str])]) -> Vec<App> {
    let of = |(name, on): &(&str, &[&str])| App {
        name: (*name).to_owned(),
        depends_on: on.iter().map(|on| dependency(on)).collect(),
        ..App::default()
    };
    all.iter().map(of).collect()
}

fn of(apps: &[App], wanted: &BTreeMap<ClusterId, Combination>) -> Option<ShardOrder> {
    order(apps.iter().map(|app| (app.name.as_str(), app.depends_on.as_slice())), wanted, 3)
}

fn on(clusters: &[(&str, &[&str])]) -> BTreeMap<ClusterId, Combination> {
    let has = |apps: &[&str]| apps.iter().map(|app| ((*app).to_owned(), SetDigest("s".to_owned()))).collect();
    clusters.iter().map(|(cluster, apps)| (ClusterId::new("acme", cluster), has(apps))).collect()
}

#[test]
fn a_cycle_of_three_is_named_with_its_path() {
    let all = apps(&[("cache", &["web"]), ("db", &["cache"]), ("log", &["db"]), ("web", &["db", "log"])]);
    assert_eq!(
        fault(&all).as_deref(),
        Some(
            "spec.apps[cache].dependsOn: apps wait for each other: cache waits for web, web waits for db, db waits for cache; \
             remove one of these dependencies"
        )
    );
    assert_eq!(
        fault(&apps(&[("web", &["web"])])).as_deref(),
        Some("spec.apps[web].dependsOn: web waits for web, itself: remove that dependency")
    );
    assert_eq!(fault(&apps(&[("db", &[]), ("web", &["db"]), ("log", &["db", "web"])])), None);
}

#[test]
fn apps_come_after_what_they_wait_for_and_leave_before_it() {
    let all = apps(&[("a", &["b"]), ("b", &["c"]), ("c", &[]), ("d", &["c"]), ("e", &[])]);
    let order = Order::of(of(&all, &on(&[])).as_ref());
    let depths = ["a", "b", "c", "d", "e"].map(|app| order.depth(app));
    assert_eq!(depths, [2, 1, 0, 1, 0]);
    let groups = order.removal(["a", "b", "c", "d", "e"]);
    assert_eq!(groups, [["a", "d", "e"].into(), ["b"].into(), ["c"].into()]);
    // The chain leads over an app that is not there.
    assert_eq!(order.removal(["a", "c"]), [BTreeSet::from(["a"]), ["c"].into()]);
}

#[test]
fn clusters_are_counted_only_for_what_is_waited_for_elsewhere() {
    let mut all = apps(&[("db", &[]), ("web", &["db"])]);
    let order = of(&all, &on(&[("a", &["db", "web"]), ("b", &["db"])])).unwrap();
    assert_eq!((order.revision, order.apps.len(), order.apps[0].clusters), (0, 1, None));
    let order = of(&all, &on(&[("a", &["db", "web"]), ("b", &["web"])])).unwrap();
    assert_eq!((order.revision, Order::of(Some(&order)).clusters("db")), (3, Some(1)), "b has no db");
    all[1].depends_on[0].scope = Some(DependencyScope::All);
    let order = of(&all, &on(&[("a", &["db", "web"]), ("b", &["db"])])).unwrap();
    assert_eq!((order.revision, Order::of(Some(&order)).clusters("db")), (3, Some(2)));
    assert_eq!(of(&apps(&[("db", &[]), ("web", &[])]), &on(&[("a", &["db"])])), None);
}

#[test]
fn what_leaves_keeps_its_order_until_the_shard_names_it_no_more() {
    let combination = |name: &str, apps: &[&str]| ShardCombination {
        name: name.to_owned(),
        revision: 1,
        apps: apps.iter().map(|app| AppSet { app: (*app).to_owned(), set: "s".to_owned() }).collect(),
    };
    let with_order = of(&apps(&[("db", &[]), ("web", &["db"])]), &on(&[]));
    let combinations = vec![combination("t1", &["db", "web"]), combination("t2", &["db"])];
    let spec = SyncShardSpec { combinations, ..SyncShardSpec::default() };
    let first = ordered(&spec, with_order.as_ref(), None).unwrap();
    assert_eq!(first.order, with_order);
    assert_eq!(ordered(&first, with_order.as_ref(), None), None, "nothing to write");
    assert_eq!(ordered(&first, None, None), None, "web is still named");
    let row = ShardRow { target: Some("t1".to_owned()), ..ShardRow::default() };
    let wanted = SyncShardSpec { clusters: vec![row], ..first.clone() };
    assert_eq!(ordered(&wanted, None, None).unwrap().order, None, "web is wanted and waits no more");
    let later = SyncShardSpec { combinations: vec![combination("t2", &["db"])], ..first };
    assert_eq!(ordered(&later, None, None).unwrap().order, None);
}

/// The shard of one cluster, which has these sets of `db` and `web`.
fn shard_with(cluster: &str, set: &str) -> SyncShardSpec {
    let wanted = [(ClusterId::new("acme", cluster), sets(set))].into();
    shard::retarget(&SyncShardSpec::default(), None, 1, 1, &wanted).unwrap()
}

fn sets(set: &str) -> Combination {
    ["db", "web"].map(|app| (app.to_owned(), SetDigest(set.to_owned()))).into()
}

#[test]
fn a_wave_writes_the_shards_of_its_own_clusters_alone() {
    let mut all = apps(&[("db", &[]), ("web", &["db"])]);
    all[1].depends_on[0].scope = Some(DependencyScope::All);
    let given = |clusters: &[&str]| -> BTreeMap<ClusterId, Combination> {
        clusters.iter().map(|name| (ClusterId::new("acme", name), sets("new"))).collect()
    };
    let (having, old) = (BTreeSet::from([sets("new")]), ["a", "b", "c"].map(|name| shard_with(name, "old")));
    let before = old.map(|spec| ordered(&spec, of(&all, &given(&[])).as_ref(), None).unwrap());
    let counted = |spec: &SyncShardSpec| Order::of(spec.order.as_ref()).clusters("db");
    let mut orders = [1, 2, 3].map(|n| of(&all, &given(&["a", "b", "c"][..n])).unwrap());
    for order in &mut orders {
        order.revision = 4;
    }
    let [first, second, _] = &orders;
    // The first wave.
    for waits in &before[1..] {
        assert_eq!(ordered_alone(waits, Some(first), Some(&having)), None, "its turn has not come");
    }
    let targeted = |spec: &SyncShardSpec| {
        let cluster = ClusterId::parse(&spec.clusters[0].cluster).unwrap();
        shard::retarget(spec, None, 2, 4, &[(cluster, sets("new"))].into()).unwrap()
    };
    let a = ordered(&targeted(&before[0]), Some(first), Some(&having)).unwrap();
    assert_eq!(counted(&a), Some(1));
    // The second.
    let b = ordered(&targeted(&before[1]), Some(second), Some(&having)).unwrap();
    assert_eq!(counted(&b), Some(2), "whoever is written knows of all");
    assert_eq!(ordered_alone(&a, Some(second), Some(&having)), None, "more clusters are no news for it");
    assert_eq!(counted(&ordered_alone(&b, Some(first), Some(&having)).unwrap()), Some(1), "fewer are");
    // What is waited for, the revision, and who had its turn are written.
    let mut other = second.clone();
    other.apps[1].depends_on.clear();
    assert!(ordered_alone(&a, Some(&other), Some(&having)).is_some());
    let later = ShardOrder { revision: 5, ..second.clone() };
    assert!(ordered_alone(&a, Some(&later), Some(&having)).is_some());
    assert!(ordered_alone(&a, Some(second), Some(&BTreeSet::new())).is_some(), "it lost its turn");
    assert!(ordered_alone(&before[2], Some(first), None).is_some(), "without waves all have it at once");
}

#[test]
fn an_order_that_counts_more_clusters_is_the_same_for_a_row() {
    let mut all = apps(&[("db", &[]), ("web", &["db"])]);
    all[1].depends_on[0].scope = Some(DependencyScope::All);
    let order = |clusters: &[(&str, &[&str])]| of(&all, &on(clusters)).unwrap();
    let both: &[&str] = &["db", "web"];
    let (one, two) = (order(&[("a", both)]), order(&[("a", both), ("b", both)]));
    let is_same = |one: &ShardOrder, two: &ShardOrder| {
        let [one, two] = [one, two].map(|order| Order::of(Some(order)));
        one.is_same_for(&two, Some("t1"))
    };
    assert!(is_same(&one, &two));
    assert!(!is_same(&one, &ShardOrder { revision: 9, ..one.clone() }));
    let silent = |name: &str| ShardOrder { silent: vec![name.to_owned()], ..one.clone() };
    assert!(is_same(&one, &silent("t2")) && !is_same(&one, &silent("t1")), "its turn has come");
}

fn wait(on: &str, delay: u64) -> Wait {
    let (state, scope) = (DependencyState::Ready, DependencyScope::Cluster);
    Wait { on: on.to_owned(), state, scope, delay: Duration::from_millis(delay) }
}

#[test]
fn a_delay_runs_from_the_time_that_is_stored() {
    let waits = [wait("db", 10_000), wait("cache", 0)];
    let none = BTreeMap::new();
    let first = judge(&waits, |wait| Some(wait.on == "db"), &none, 5_400);
    assert_eq!(first.since, [("db".to_owned(), 6)].into());
    assert_eq!(first.waiting, Some(Waiting::For(&waits[1])));
    let second = judge(&waits, |_| Some(true), &first.since, 9_000);
    assert_eq!(second.waiting, Some(Waiting::Delay(&waits[0], 7_000)));
    assert_eq!(judge(&waits, |_| Some(true), &second.since, 16_000).waiting, None);
    let unknown = judge(&waits, |_| None, &second.since, 16_000);
    assert_eq!(
        (unknown.since, unknown.waiting),
        (second.since.clone(), Some(Waiting::For(&waits[0]))),
        "it goes on"
    );
    assert_eq!(judge(&waits, |_| Some(false), &second.since, 16_000).since, none, "it begins anew");
}

#[test]
fn what_is_reached_meets_what_is_less() {
    use DependencyState::{Deployed, Ready};
    let met = |reached: Reached| (reached.meets(Deployed), reached.meets(Ready));
    assert_eq!(
        [Reached::Nothing, Reached::Deployed, Reached::Ready].map(met),
        [(false, false), (true, false), (true, true)]
    );
}

proptest! {
    #[test]
    fn no_gate_opens_before_all_is_met_and_each_delay_is_over(
        delays in proptest::collection::vec(0..5_000_u64, 1..5),
        steps in proptest::collection::vec((0..3_000_i64, any::<u8>()), 1..20),
    ) {
        let waits: Vec<Wait> = delays.iter().enumerate().map(|(i, delay)| wait(&i.to_string(), *delay)).collect();
        let (mut now, mut before) = (1_000_000, BTreeMap::new());
        // Since when each is met, to the millisecond.
        let mut met: BTreeMap<String, i64> = BTreeMap::new();
        for (pause, bits) in steps {
            now += pause;
            let is_met = |wait: &Wait| bits & (1 << wait.on.parse::<u8>().unwrap()) != 0;
            for wait in &waits {
                if is_met(wait) { met.entry(wait.on.clone()).or_insert(now); } else { met.remove(&wait.on); }
            }
            let judged = judge(&waits, |wait| Some(is_met(wait)), &before, now);
            let over = |wait: &Wait| met.get(&wait.on).map(|since| now - since - i64::try_from(wait.delay.as_millis()).unwrap());
            match &judged.waiting {
                None => prop_assert!(waits.iter().all(|wait| over(wait).is_some_and(|over| over >= 0))),
                Some(Waiting::For(wait)) => prop_assert_eq!(over(wait), None),
                // Never later than a second after it could.
                Some(Waiting::Delay(wait, left)) => prop_assert!(*left > 0 && over(wait).is_some_and(|over| over + left < 1_001)),
            }
            before = judged.since;
        }
    }

    #[test]
    fn every_order_without_a_cycle_has_what_is_waited_for_first(edges in proptest::collection::vec((0..8_usize, 0..8_usize), 0..16)) {
        let mut all: Vec<App> = (0..8).map(|i| App { name: format!("a{i}"), ..App::default() }).collect();
        for (from, to) in edges {
            let on = format!("a{to}");
            if !all[from].depends_on.iter().any(|d| d.app == on) {
                all[from].depends_on.push(dependency(&on));
            }
        }
        let order = Order::of(of(&all, &on(&[])).as_ref());
        let acyclic = all.iter().all(|app| app.depends_on.iter().all(|d| order.depth(&d.app) < order.depth(&app.name)));
        prop_assert_eq!(fault(&all).is_none(), acyclic);
        if acyclic {
            let groups = order.removal(all.iter().map(|app| app.name.as_str()));
            let place = |name: &str| groups.iter().position(|group| group.contains(name));
            for app in &all {
                prop_assert!(app.depends_on.iter().all(|d| place(&app.name) < place(&d.app)));
            }
        }
    }
}

#[test]
fn clusters_before_their_turn_are_not_heard() {
    let combination = |name: &str, set: &str| ShardCombination {
        name: name.to_owned(),
        revision: 1,
        apps: vec![AppSet { app: "db".to_owned(), set: set.to_owned() }],
    };
    let row = |id, target: &str| ShardRow { id, target: Some(target.to_owned()), ..ShardRow::default() };
    let spec = SyncShardSpec {
        combinations: vec![combination("t1", "old"), combination("t2", "new"), combination("t3", "older")],
        clusters: vec![row(1, "t1"), row(2, "t2")],
        ..SyncShardSpec::default()
    };
    let apps = vec![OrderedApp { app: "db".to_owned(), clusters: Some(1), ..OrderedApp::default() }];
    let order = ShardOrder { revision: 2, apps, generated: Vec::new(), silent: Vec::new() };
    let given = BTreeSet::from([BTreeMap::from([("db".to_owned(), SetDigest("new".to_owned()))])]);
    let spec = ordered(&spec, Some(&order), Some(&given)).unwrap();
    assert_eq!(spec.order.as_ref().unwrap().silent, ["t1"]);
    let read = Order::of(spec.order.as_ref());
    assert_eq!(["t1", "t2"].map(|name| read.hears(name)), [false, true]);
    assert_eq!(ordered(&spec, Some(&order), Some(&given)), None, "nothing to write");
    assert_eq!(ordered(&spec, Some(&order), None).unwrap().order, Some(order), "all have had their turn");
}

#[test]
fn generated_apps_come_first_in_the_order_of_intents_and_leave_last() {
    let named = |apps: &[&'static str]| {
        let web = [dependency("db")];
        let depends = apps.iter().map(|app| (*app, if *app == "web" { &web[..] } else { &[] }));
        order(depends.collect::<Vec<_>>(), &on(&[]), 3)
    };
    let said = named(&["web", "db", "gai.z", "gai.a"]).unwrap();
    assert_eq!(said.generated, ["gai.z", "gai.a"]);
    let order = Order::of(Some(&said)).with(["web", "db", "gai.z", "gai.a", "gai.old"]);
    let mut apps = ["web", "gai.old", "db", "gai.a", "gai.z"];
    apps.sort_by_key(|app| order.place(app));
    assert_eq!(apps, ["gai.z", "gai.a", "gai.old", "db", "web"]);
    let groups = order.removal(apps);
    assert_eq!(groups, [["web"].into(), ["db"].into(), BTreeSet::from(["gai.z", "gai.a", "gai.old"])]);
}

#[test]
fn one_generated_app_makes_a_shard_no_longer() {
    assert_eq!(order([("db", &[][..]), ("gai.a", &[][..])], &on(&[]), 3), None);
    let order = Order::of(None).with(["db", "gai.a"]);
    assert!(!order.is_empty() && order.place("gai.a") < order.place("db"));
    assert!(Order::of(None).with(["db"]).is_empty(), "without generated apps nothing changes");
}
