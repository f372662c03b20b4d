//! Pushes that the server refuses because of what one owner has, and others that go on.

use super::*;

fn bad() -> OwnerText {
    let [namespace, name, hash] = ["team-b", "bad", "fedcba9876543210"].map(str::to_owned);
    OwnerText { kind: OwnerKind::DeploymentIntentGroup, namespace, name, hash }
}

/// Wants a file of an owner in an app.
fn want(bench: &Bench, owner: &OwnerText, app: &str, text: &str) -> u64 {
    let id = id("c");
    let file = File { owner, app, id: &id, token: text, account: None, revision: 1, shared: false };
    bench.branch("a").put(&file, || format!("{text}\n")).unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_the_server_refuses_of_one_owner_holds_up_no_other() {
    let bench = Bench::new().await;
    *bench.remote.refuses.lock() = Some("evil");
    let (bad, good) = (bad(), owner());
    let (theirs, ours) = (want(&bench, &bad, "web", "evil"), bench.want("a", "c", "1"));
    let branch = bench.branch("a");
    let (theirs, ours) = tokio::join!(branch.settled(&bad, theirs), branch.settled(&good, ours));
    assert_eq!(ours, Ok(()));
    let fault = theirs.unwrap_err();
    assert_eq!(fault.reason, "PushRefused");
    assert!(fault.message.ends_with("declined; of team-b/dig-bad alone, others are published"), "{fault:?}");
    bench.until(&PublishState::Published).await;
    assert_eq!(bench.status().refused, ["team-b/dig-bad"]);
    assert!(bench.remote.message().contains("\nteam-a/shop r1 on 1 cluster\n"), "{}", bench.remote.message());

    // What others want is published at once, however long that lasts.
    sleep(Duration::from_mins(10)).await;
    assert_eq!(bench.put("a", "d", "1").await, Ok(()));
    assert_eq!(bench.status().refused, ["team-b/dig-bad"]);
    let is_of_bad = |path: &String| path.contains("dig-bad") || path.contains("fedcba");
    assert!(!bench.remote.files().keys().any(is_of_bad), "{:?}", bench.remote.files());

    want(&bench, &bad, "web", "better");
    sleep(Duration::from_secs(20)).await;
    let files = bench.remote.files();
    assert_eq!(files["clusters/acme/a/team-b/dig-bad/web/core-configmap-c_shop.yaml"], "better\n");
    assert!(files.contains_key("clusters/acme/a/sync/emco-fedcba9876543210-web.yaml"));
    assert!(bench.status().refused.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_takes_nothing_is_the_targets_failure() {
    let bench = Bench::new().await;
    *bench.remote.refuses.lock() = Some("e");
    want(&bench, &bad(), "web", "one");
    want(&bench, &owner(), "web", "one");
    bench.until_failed("PushRefused").await;
    assert!(bench.status().refused.is_empty());
    *bench.remote.refuses.lock() = None;
    bench.until(&PublishState::Published).await;
    assert!(bench.remote.files().contains_key(&path("c")));
}

#[tokio::test(start_paused = true)]
async fn an_app_may_be_called_like_the_folder_of_the_agent() {
    let bench = Bench::new().await;
    let wish = want(&bench, &owner(), "git-sync", "1");
    bench.branch("a").settled(&owner(), wish).await.unwrap();
    assert!(bench.remote.files().contains_key("clusters/acme/a/sync/emco-0123456789abcdef-git-sync.yaml"));
}

#[tokio::test(start_paused = true)]
async fn what_is_on_its_way_when_its_owner_is_suspended_is_not_sent_again() {
    let bench = Bench::new().await;
    bench.remote.tricks.lock().push_back(Trick::RefuseLater("not now"));
    bench.want("a", "c", "1");
    sleep(Duration::from_secs(2)).await;
    bench.branch("a").withdraw(&owner());
    sleep(Duration::from_mins(3)).await;
    bench.until(&PublishState::Published).await;
    assert!(!bench.remote.files().contains_key(&path("c")));
}

#[tokio::test(start_paused = true)]
async fn a_folder_stays_ours_while_its_claim_is_put_back() {
    let bench = Bench::new().await;
    bench.put("a", "c", "1").await.unwrap();
    *bench.remote.refuses.lock() = Some("installation");
    bench.remote.others(&[(".emco/installation", None)]);
    bench.look().await;
    bench.until_failed("PushRefused").await;
    let status = bench.status();
    assert!(status.admitted && status.found == Found { claim: Claim::Absent, files: true }, "{status:?}");
    *bench.remote.refuses.lock() = None;
    bench.until(&PublishState::Published).await;
    assert!(bench.remote.files().contains_key(".emco/installation"));
}

#[tokio::test(start_paused = true)]
async fn a_commit_of_others_beside_our_files_is_one_with_all_of_ours() {
    let bench = Bench::new().await;
    bench.put("a", "c", "1").await.unwrap();
    bench.remote.others(&[("docs/notes", Some("theirs"))]);
    bench.look().await;
    let published = bench.status().published.map(|(commit, _)| commit);
    assert_eq!(published, bench.remote.tip_now().map(|tip| tip.to_string()));
    assert_eq!(bench.pushes(), 2);
}
