mod apart;
mod real;

use emco_crds::OwnerKind;
use emco_engine::git::files::OwnerText;
use emco_engine::identity::Identity;
use tokio::time::sleep;

use super::testing::{MemoryRemote, Trick, key, publishers};
use super::*;

const WEB: &str = "clusters/acme/a/team-a/dig-shop/web";

/// A repository with publishers, which end with it.
struct Bench {
    remote: Arc<MemoryRemote>,
    publishers: Arc<Publishers>,
    stop: CancellationToken,
}

fn owner() -> OwnerText {
    let [namespace, name, hash] = ["team-a", "shop", "0123456789abcdef"].map(str::to_owned);
    OwnerText { kind: OwnerKind::DeploymentIntentGroup, namespace, name, hash }
}

fn id(name: &str) -> Identity {
    let [kind, namespace, name] = ["ConfigMap", "shop", name].map(str::to_owned);
    Identity { group: String::new(), kind, namespace, name }
}

fn path(name: &str) -> String {
    format!("{WEB}/core-configmap-{name}_shop.yaml")
}

impl Bench {
    async fn new() -> Self {
        let bench = Self::on(Arc::default());
        bench.until(&PublishState::Published).await;
        bench
    }

    fn on(remote: Arc<MemoryRemote>) -> Self {
        let stop = CancellationToken::new();
        let publishers = publishers(&remote, &stop);
        Self { remote, publishers, stop }
    }

    fn status(&self) -> TargetStatus {
        self.publishers.status(&key()).unwrap()
    }

    async fn until(&self, state: &PublishState) {
        for _ in 0..1000 {
            if self.status().state == *state {
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
        panic!("{:?} and not {state:?}", self.status());
    }

    async fn until_failed(&self, wanted: &str) {
        for _ in 0..1000 {
            if matches!(self.status().state, PublishState::Failed { reason, .. } if reason == wanted) {
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
        panic!("{:?} and not {wanted}", self.status());
    }

    fn branch(&self, cluster: &str) -> Branch {
        self.publishers.branch(&ClusterId::new("acme", cluster)).unwrap()
    }

    fn want(&self, cluster: &str, name: &str, token: &str) -> u64 {
        let (owner, id) = (owner(), id(name));
        let file =
            File { owner: &owner, app: "web", id: &id, token, account: None, revision: 1, shared: false };
        self.branch(cluster).put(&file, || format!("{name}: {token}\n")).unwrap()
    }

    async fn put(&self, cluster: &str, name: &str, token: &str) -> Result<(), Fault> {
        let wish = self.want(cluster, name, token);
        self.branch(cluster).settled(&owner(), wish).await
    }

    async fn take_off(&self, cluster: &str, name: &str) -> Result<(), Fault> {
        let branch = self.branch(cluster);
        let wish = branch.take_off(&owner(), [&id(name)], 0).unwrap();
        branch.settled(&owner(), wish).await
    }

    /// Another look, now.
    async fn look(&self) {
        self.publishers.look_now(&key());
        sleep(Duration::from_secs(1)).await;
    }

    fn pushes(&self) -> u64 {
        self.remote.pushes.load(std::sync::atomic::Ordering::Relaxed)
    }
}

#[tokio::test(start_paused = true)]
async fn what_two_clusters_get_together_is_one_commit() {
    let bench = Bench::new().await;
    assert_eq!(bench.pushes(), 1, "an empty repository gets its first commit, with the claim");
    let (a, b) = (bench.put("a", "c", "1"), bench.put("b", "c", "1"));
    let (a, b) = tokio::join!(a, b);
    assert_eq!((a, b), (Ok(()), Ok(())));
    assert_eq!(bench.pushes(), 2);
    let files = bench.remote.files();
    assert_eq!(files[&path("c")], "c: 1\n");
    assert!(
        files["clusters/acme/b/sync/emco-0123456789abcdef-web.yaml"]
            .contains("path: ./clusters/acme/b/team-a")
    );
    assert!(files[".emco/installation"].contains("installation: inst\n"));
    assert!(bench.remote.message().contains("\nteam-a/shop r1 on 2 clusters\n"));
    assert_eq!(bench.status().clusters, 2);
}

#[tokio::test(start_paused = true)]
async fn at_rest_there_is_one_request_in_an_interval() {
    let bench = Bench::new().await;
    bench.put("a", "c", "1").await.unwrap();
    sleep(Duration::from_mins(2)).await;
    let before = bench.remote.requests.swap(0, std::sync::atomic::Ordering::Relaxed);
    assert!(before > 0);
    sleep(Duration::from_mins(10)).await;
    let requests = bench.remote.requests.load(std::sync::atomic::Ordering::Relaxed);
    assert!((9..=11).contains(&requests), "{requests}");
    assert_eq!(bench.pushes(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_makes_no_second_commit() {
    let bench = Bench::new().await;
    bench.remote.tricks.lock().push_back(Trick::LoseAnswer);
    assert_eq!(bench.put("a", "c", "1").await, Ok(()));
    assert_eq!(bench.pushes(), 2);
    let follow = Trick::LoseAnswerAndFollow(vec![("README", Some("theirs"))]);
    bench.remote.tricks.lock().push_back(follow);
    assert_eq!(bench.put("a", "d", "1").await, Ok(()));
    assert_eq!(bench.pushes(), 3);
    assert_eq!(bench.publishers.take_corrected(&key()), None);
    assert_eq!(bench.remote.files()["README"], "theirs");
}

#[tokio::test(start_paused = true)]
async fn a_push_that_did_not_arrive_is_tried_again() {
    let bench = Bench::new().await;
    bench.remote.tricks.lock().push_back(Trick::LosePush);
    let lost = bench.put("a", "c", "1").await.unwrap_err();
    assert_eq!(lost.reason, "Timeout");
    assert!(lost.message.starts_with("GitTarget acme/fleet: Timeout: "), "{}", lost.message);
    bench.until(&PublishState::Published).await;
    assert!(bench.remote.files().contains_key(&path("c")));
    assert_eq!(bench.pushes(), 2);
}

#[tokio::test(start_paused = true)]
async fn commits_of_others_in_between_stay_below_ours() {
    let bench = Bench::new().await;
    for n in ["1", "2", "3", "4"] {
        let between = Trick::Between(vec![("docs/notes", Some(n))]);
        bench.remote.tricks.lock().push_back(between);
    }
    assert_eq!(bench.put("a", "c", "1").await, Ok(()));
    let files = bench.remote.files();
    assert_eq!((files["docs/notes"].as_str(), files[&path("c")].as_str()), ("4", "c: 1\n"));
    for _ in 0..5 {
        let between = Trick::Between(vec![("docs/more", Some("x"))]);
        bench.remote.tricks.lock().push_back(between);
    }
    assert_eq!(bench.put("a", "c", "2").await.unwrap_err().reason, "PushConflict");
    bench.until(&PublishState::Published).await;
    assert_eq!(bench.remote.files()[&path("c")], "c: 2\n");
}

#[tokio::test(start_paused = true)]
async fn a_refused_push_says_so_and_is_tried_on() {
    let bench = Bench::new().await;
    for _ in 0..2 {
        bench.remote.tricks.lock().push_back(Trick::Refuse("pre-receive hook declined"));
    }
    let refused = bench.put("a", "c", "1").await.unwrap_err();
    assert_eq!(refused.reason, "PushRefused");
    assert!(refused.message.ends_with("the server refuses the push: pre-receive hook declined"));
    bench.until(&PublishState::Published).await;
    assert!(bench.remote.files().contains_key(&path("c")));
}

#[tokio::test(start_paused = true)]
async fn a_login_that_ended_is_told_and_nothing_is_lost() {
    let bench = Bench::new().await;
    bench.put("a", "c", "1").await.unwrap();
    *bench.remote.down.lock() = Some(Fault::new("Unauthorized", "put a valid login into the Secret"));
    assert_eq!(bench.put("a", "c", "2").await.unwrap_err().reason, "Unauthorized");
    bench.until_failed("Unauthorized").await;
    *bench.remote.down.lock() = None;
    bench.until(&PublishState::Published).await;
    assert_eq!(bench.remote.files()[&path("c")], "c: 2\n");
}

#[tokio::test(start_paused = true)]
async fn what_a_suspended_owner_wanted_does_not_come_later() {
    let bench = Bench::new().await;
    bench.put("a", "c", "1").await.unwrap();
    *bench.remote.down.lock() = Some(Fault::new("Timeout", "no answer"));
    bench.put("a", "c", "2").await.unwrap_err();
    bench.put("a", "d", "1").await.unwrap_err();
    bench.branch("a").withdraw(&owner());
    *bench.remote.down.lock() = None;
    sleep(Duration::from_mins(3)).await;
    bench.until(&PublishState::Published).await;
    let files = bench.remote.files();
    assert!(files[&path("c")] == "c: 1\n" && !files.contains_key(&path("d")), "{files:?}");
    bench.put("a", "c", "2").await.unwrap();
    assert_eq!(bench.remote.files()[&path("c")], "c: 2\n");
}

#[tokio::test(start_paused = true)]
async fn edits_of_our_files_are_undone_and_counted_and_files_beside_stay() {
    let bench = Bench::new().await;
    bench.put("a", "c", "1").await.unwrap();
    let (hacked, evil) = (path("c"), format!("{WEB}/evil.yaml"));
    bench.remote.others(&[
        (hacked.as_str(), Some("hacked")),
        (evil.as_str(), Some("kind: ClusterRole")),
        ("mine/notes", Some("theirs")),
        (".emco/installation", None),
    ]);
    bench.look().await;
    bench.until(&PublishState::Published).await;
    let files = bench.remote.files();
    assert_eq!(files[&hacked], "c: 1\n");
    assert!(!files.contains_key(&evil) && files["mine/notes"] == "theirs");
    assert!(files.contains_key(".emco/installation"));
    let corrected = bench.publishers.take_corrected(&key()).unwrap();
    assert_eq!((corrected.count, corrected.first), (2, hacked));
    bench.look().await;
    assert_eq!(bench.publishers.take_corrected(&key()), None);
}

#[tokio::test(start_paused = true)]
async fn a_branch_that_went_back_is_published_again() {
    let bench = Bench::new().await;
    bench.put("a", "c", "1").await.unwrap();
    let before = bench.remote.tip_now();
    bench.put("a", "d", "1").await.unwrap();
    bench.take_off("a", "c").await.unwrap();
    let wanted = bench.remote.files();
    assert!(!wanted.contains_key(&path("c")));
    bench.remote.rewind(before);
    bench.look().await;
    bench.until(&PublishState::Published).await;
    assert_eq!(bench.remote.files(), wanted);
    assert_eq!(bench.publishers.take_corrected(&key()), None, "nobody edited anything");
}

#[tokio::test(start_paused = true)]
async fn a_repository_that_was_emptied_or_replaced_is_published_again() {
    let bench = Bench::new().await;
    bench.put("a", "c", "1").await.unwrap();
    let wanted = bench.remote.files();
    let all: Vec<(&str, Option<&str>)> = wanted.keys().map(|path| (path.as_str(), None)).collect();
    bench.remote.others(&all);
    bench.look().await;
    bench.until(&PublishState::Published).await;
    assert_eq!(bench.remote.files(), wanted);
    bench.remote.replace();
    bench.look().await;
    bench.until(&PublishState::Published).await;
    assert_eq!(bench.remote.files(), wanted);
    bench.remote.lose_branch();
    bench.look().await;
    bench.until_failed("BranchNotFound").await;
}

#[tokio::test(start_paused = true)]
async fn a_push_of_the_process_before_that_comes_late_is_not_undone() {
    let before = Bench::new().await;
    let next = Bench::on(Arc::clone(&before.remote));
    next.until(&PublishState::Published).await;
    before.put("a", "c", "1").await.unwrap();
    next.look().await;
    next.until(&PublishState::Published).await;
    assert!(next.remote.files().contains_key(&path("c")));
    assert_eq!(next.pushes(), 2);
}

#[tokio::test(start_paused = true)]
async fn contents_that_nobody_has_do_not_hold_up_what_is_known() {
    let bench = Bench::new().await;
    bench.put("a", "c", "1").await.unwrap();
    bench.put("a", "d", "1").await.unwrap();
    bench.stop.cancel();
    let next = Bench::on(Arc::clone(&bench.remote));
    next.until(&PublishState::Published).await;
    assert_eq!(next.want("a", "c", "1"), 0);
    next.remote.replace();
    next.look().await;
    next.until(&PublishState::Published).await;
    let files = next.remote.files();
    assert!(files.contains_key(&path("c")) && !files.contains_key(&path("d")), "{files:?}");
}

#[tokio::test(start_paused = true)]
async fn a_folder_of_another_hub_is_left_alone() {
    let bench = Bench::new().await;
    bench.put("a", "c", "1").await.unwrap();
    let theirs = "installation: other\nsince: 2026-11-22T10:00:00Z\nseen: 7\n";
    bench.remote.others(&[(".emco/installation", Some(theirs)), (path("c").as_str(), Some("theirs"))]);
    let before = bench.pushes();
    bench.look().await;
    bench.until_failed("ClaimedByAnotherHub").await;
    assert!(matches!(bench.branch("a").ready(), Err(NotReady::Failed(_))));
    sleep(Duration::from_mins(5)).await;
    assert_eq!((bench.pushes(), bench.remote.files()[&path("c")].as_str()), (before, "theirs"));
    // A person confirms.
    bench.publishers.admit(&key(), &bench.status().found, Permit::Admitted);
    bench.until(&PublishState::Published).await;
    assert_eq!(bench.remote.files()[&path("c")], "c: 1\n");
    assert!(bench.remote.files()[".emco/installation"].contains("installation: inst\n"));
}

#[tokio::test(start_paused = true)]
async fn files_without_a_claim_are_not_ours() {
    let remote = Arc::new(MemoryRemote::default());
    remote.others(&[("clusters/acme/a/x", Some("theirs"))]);
    let bench = Bench::on(remote);
    bench.until_failed("FolderNotOurs").await;
    assert_eq!(bench.pushes(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_begins_writes_nothing_that_is_there() {
    let bench = Bench::new().await;
    bench.put("a", "c", "1").await.unwrap();
    bench.put("a", "d", "1").await.unwrap();
    bench.stop.cancel();
    let next = Bench::on(Arc::clone(&bench.remote));
    next.until(&PublishState::Published).await;
    sleep(Duration::from_mins(5)).await;
    let pushes = next.pushes();
    assert_eq!(pushes, 3, "and what nobody spoke of is there");
    assert_eq!(next.want("a", "c", "1"), 0, "it is on the branch already");
    assert!(next.branch("a").has(&owner(), "web", &id("c"), "1"));
    assert!(!next.branch("a").has(&owner(), "web", &id("d"), "1"), "nobody said what it is");
    next.put("a", "c", "2").await.unwrap();
    assert!(next.remote.files().contains_key(&path("d")));
}

#[tokio::test(start_paused = true)]
async fn the_last_file_takes_the_object_for_the_agent_along() {
    let bench = Bench::new().await;
    bench.put("a", "c", "1").await.unwrap();
    bench.take_off("a", "c").await.unwrap();
    let files = bench.remote.files();
    let left: Vec<&str> = files.keys().map(String::as_str).collect();
    assert_eq!(left, [".emco/installation", "clusters/acme/a/sync/kustomization.yaml"]);
    assert_eq!(bench.take_off("a", "c").await, Ok(()));
    assert_eq!(bench.pushes(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_claim_says_how_far_the_hub_had_come_and_makes_no_commit_alone() {
    let bench = Bench::new().await;
    bench.branch("a").working(4711);
    sleep(Duration::from_mins(3)).await;
    assert_eq!(bench.pushes(), 1);
    bench.put("a", "c", "1").await.unwrap();
    assert!(bench.remote.files()[".emco/installation"].contains("seen: 4711\n"));
    assert!(matches!(bench.status().found.claim, Claim::Held { seen: 4711, .. }));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_moves_to_another_app_leaves_the_first() {
    let bench = Bench::new().await;
    bench.put("a", "c", "1").await.unwrap();
    let (owner, id) = (owner(), id("c"));
    let file =
        File { owner: &owner, app: "db", id: &id, token: "1", account: None, revision: 2, shared: false };
    let wish = bench.branch("a").put(&file, || "c: 1\n".to_owned()).unwrap();
    bench.branch("a").settled(&owner, wish).await.unwrap();
    let files = bench.remote.files();
    assert!(!files.contains_key(&path("c")));
    assert!(files.contains_key("clusters/acme/a/team-a/dig-shop/db/core-configmap-c_shop.yaml"));
    assert!(!files.contains_key("clusters/acme/a/sync/emco-0123456789abcdef-web.yaml"));
}
