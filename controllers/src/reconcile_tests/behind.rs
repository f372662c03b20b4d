//! Watches that are behind: what they do not show yet is not gone.

use super::abandoned::{given_up, ledgers};

#[tokio::test(start_paused = true)]
async fn a_ledger_is_kept_while_the_watch_of_namespaces_is_behind() {
    let mut life = given_up().await;
    let before = ledgers(&life);
    assert_eq!(before.len(), 1);
    life.rig.see();
    life.rig.unsee_namespaces();
    let name = before[0]["metadata"]["name"].as_str().unwrap();
    crate::abandon::reconcile_ledger(&life.rig.ctx, "acme", name).await.unwrap();
    let after = ledgers(&life);
    assert_eq!(after[0]["spec"]["clusters"], before[0]["spec"]["clusters"]);
}
