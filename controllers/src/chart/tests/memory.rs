//! Tests of what compiled charts may take in memory.

use super::*;

#[test]
fn compiled_charts_in_memory_are_bounded_and_the_last_used_stay() {
    let compiled = Arc::new(compile(&chart_yaml("web", "1.0.0", ""), &emco_helm::Limits::default()).unwrap());
    let mut ready = ready::Ready::new(2, 100);
    for (name, bytes) in [("a", 10), ("b", 10)] {
        ready.put(name, Arc::clone(&compiled), bytes, Arc::from(""));
    }
    assert!(ready.get("a").is_some());
    ready.put("c", Arc::clone(&compiled), 10, Arc::from(""));
    assert!(ready.get("b").is_none() && ready.get("a").is_some() && ready.get("c").is_some());
    ready.put("d", Arc::clone(&compiled), 95, Arc::from(""));
    assert!(ready.get("d").is_some() && ready.get("a").is_none() && ready.get("c").is_none());
}

#[tokio::test]
async fn charts_in_memory_count_with_all_that_they_unpack_to() {
    const MIB: usize = 1 << 20;
    let bench = Bench::with(|limits| limits.compiled_bytes = 20 * MIB).await;
    let zeros = "0".repeat(3 * MIB);
    for number in 0..9 {
        let yaml = format!("apiVersion: v2\nname: bomb{number}\nversion: 1.0.0\n");
        let archive = packed(&[("Chart.yaml", &yaml), ("zeros", &zeros), ("more", &zeros)]);
        assert!(archive.len() < 100_000, "{} bytes", archive.len());
        let source = Source::ConfigMap { label: format!("ConfigMap bomb{number}"), bytes: archive };
        let turn = Turn::new("team-a", "bomb");
        let request = FetchRequest { source, credentials: None, sources: None, pinned: None, turn: &turn };
        bench.store.fetch(request).await.unwrap();
        let held = bench.store.ready.lock().bytes();
        assert!((6 * MIB..=20 * MIB).contains(&held), "{held} bytes after {number}");
    }
}
