//! Many clusters of one provider that accept connections and say nothing.

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
