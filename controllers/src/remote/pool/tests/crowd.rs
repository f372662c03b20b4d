//! Many clusters: those of one provider that accept connections and say nothing, and those that are found by their UID.

use super::*;

/// More than connections are made at once.
const DARK: usize = 70;
/// Fewer of one provider's are made at once than this.
const ENOUGH: usize = 48;

#[tokio::test]
async fn a_providers_silent_clusters_do_not_delay_another_providers() {
    let (bed, api) = (Bed::with(|all| all.edge.answer_begins = Duration::from_mins(1)), Api::new(true));
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap();
    for n in 0..DARK {
        let id = ClusterId::new("dark", &format!("hole-{n}"));
        bed.pool.set_target(id, bed.target(address, "good", "1"));
    }
    let mut shaking = Vec::new();
    while shaking.len() < ENOUGH {
        shaking.push(silent.accept().await.unwrap());
    }
    let server = bed.serve(&api, None).await;
    bed.pool.set_target(bed.id.clone(), bed.target(server.address, "good", "1"));
    bed.connected().await;
}

#[tokio::test]
async fn a_cluster_is_found_by_the_uid_that_was_seen_until_it_is_forgotten() {
    let (bed, api) = (Bed::new(), Api::new(true));
    let server = bed.serve(&api, None).await;
    assert!(bed.pool.seen_as("uid-1").is_empty());
    bed.pool.set_target(bed.id.clone(), bed.target(server.address, "good", "1"));
    bed.connected().await;
    assert_eq!(bed.pool.seen_as("uid-1"), std::slice::from_ref(&bed.id));
    assert!(bed.pool.seen_as("uid-2").is_empty());
    bed.pool.forget(&bed.id);
    assert!(bed.pool.seen_as("uid-1").is_empty());
}
