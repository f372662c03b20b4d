//! Kinds whose definition goes and is made anew, or comes back with fewer versions.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use emco_engine::set::ManifestSet;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::rig::*;
use crate::memory::MemoryServer;

const WIDGET: &str = "/apis/example.com/v1/namespaces/shop/widgets/w";

/// A definition with these versions, the preferred one first.
fn definition(versions: &[&str]) -> Value {
    let versions: Vec<Value> =
        versions.iter().map(|name| json!({"name": name, "served": true, "storage": *name == "v1"})).collect();
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
            "versions": versions}})
}

fn widget(version: &str, value: &str) -> Arc<ManifestSet> {
    let widget = json!({"apiVersion": format!("example.com/{version}"), "kind": "Widget",
        "metadata": {"name": "w", "namespace": "shop"}, "spec": {"a": value}});
    app("web", vec![config("c", "1"), widget])
}

/// A Widget is installed where its kind has these versions, and its watch lives.
async fn installed(versions: &[&str], version: &str) -> Rig {
    let rig = Rig::new(&["a"]);
    rig.edge("a").put("somebody", &definition(versions));
    let apis = Arc::new(rig.edge("a").apis());
    rig.edges.link(&cluster("a"), |link| link.apis = Some(Arc::clone(&apis)));
    rig.start().await;
    rig.target(&on("a", &[widget(version, "1")])).await;
    rig.until_complete("a").await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    rig
}

fn is_ready(rig: &Rig) -> bool {
    rig.row("a").is_some_and(|row| (row.ready, row.total, row.error) == (2, 2, None))
}

/// Nothing is said of the row any more for some minutes but that all is ready.
async fn stays_ready(rig: &Rig, what: &str) {
    for second in 0..300 {
        assert!(is_ready(rig), "{what}, {second} s later: {:?}", rig.row("a"));
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

fn there(edge: &MemoryServer) -> bool {
    edge.object(WIDGET).is_some()
}

#[tokio::test(start_paused = true)]
async fn a_definition_made_anew_is_answered_by_a_list_at_once() {
    for (away, sees) in
        [(0, true), (0, false), (3, false), (40, true), (90, false), (400, true), (400, false)]
    {
        let what = format!("away for {away} s, {}", if sees { "which is seen" } else { "which nobody sees" });
        let rig = installed(&["v1"], "v1").await;
        let edge = rig.edge("a");
        // Otherwise nothing that is asked of discovery shows it.
        rig.edges.stale.store(!sees, Ordering::Relaxed);
        edge.undefine("widgets", "example.com");
        tokio::time::sleep(Duration::from_secs(away)).await;
        edge.put("somebody", &definition(&["v1"]));
        let begun = Instant::now();
        rig.until(&format!("{what}: it is made again"), |_| there(&edge)).await;
        assert!(begun.elapsed() < Duration::from_secs(80), "{what}: {:?}", begun.elapsed());
        tokio::time::sleep(Duration::from_secs(5)).await;
        stays_ready(&rig, &what).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_there_is_seen_when_a_version_of_its_kind_is_gone() {
    let rig = installed(&["v2", "v1"], "v1").await;
    let edge = rig.edge("a");
    edge.take_seen();
    edge.put("somebody", &definition(&["v1"]));
    tokio::time::sleep(Duration::from_secs(5)).await;
    stays_ready(&rig, "without v2").await;
    assert_eq!(edge.writes(), [], "it is as wanted");
    edge.remove(WIDGET);
    rig.until("it is watched in the other version", |_| there(&edge)).await;
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_gone_is_named_with_the_definition_that_stays() {
    let rig = installed(&["v1", "v1beta1"], "v1beta1").await;
    rig.edge("a").put("somebody", &definition(&["v1"]));
    rig.target(&on("a", &[widget("v1beta1", "2")])).await;
    let error = rig.until_reason("a", "KindMissing").await.error.unwrap();
    tokio::time::sleep(Duration::from_mins(3)).await;
    let error = rig.row("a").unwrap().error.unwrap_or(error);
    assert_eq!(
        error.message,
        "the cluster serves no kind Widget of example.com/v1beta1: its definition widgets.example.com stays, with v1 alone: \
         change the apiVersion of the object, or have the version served"
    );
    rig.target(&on("a", &[widget("v1", "2")])).await;
    rig.until_complete("a").await;
}
