//! Edges whose credentials may list kinds in namespaces alone, or as the account of a logical cloud.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use emco_engine::set::SetManifest;
use serde_json::{Value, json};

use super::rig::*;
use crate::api::{ApiError, ApiServer, Content, Method, Request};
use crate::memory::{Fault, Faults};

const ACCOUNT: &str = "system:serviceaccount:shop:emco-edge";
const MAPS: &str = "/api/v1/namespaces/shop/configmaps";
const MAP: &str = "/api/v1/namespaces/shop/configmaps/c";
const WEB: &str = "/apis/apps/v1/namespaces/shop/deployments/web";

/// Lists that are refused.
fn refusing(refused: impl Fn(&Request) -> bool + Send + Sync + 'static) -> Faults {
    Arc::new(move |request, _| {
        (request.method == Method::Get && refused(request)).then(|| {
            Fault::Refuse(ApiError::Status {
                code: 403,
                reason: "Forbidden".to_owned(),
                message: format!("User \"hub\" cannot list {}", request.path.as_str()),
                retry_after: None,
                causes: Vec::new(),
            })
        })
    })
}

/// A list of `ConfigMaps` or Deployments on the whole cluster.
fn is_whole(request: &Request) -> bool {
    matches!(request.path.as_str(), "/api/v1/configmaps" | "/apis/apps/v1/deployments")
}

fn acting(json: Value) -> SetManifest {
    SetManifest { account: Some(ACCOUNT.to_owned()), ..manifest(json, None) }
}

#[tokio::test(start_paused = true)]
async fn what_may_not_be_listed_everywhere_is_watched_in_its_namespace() {
    let rig = Rig::new(&["a"]);
    let edge = rig.edge("a");
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    edge.faults(Some(refusing(move |request| {
        let whole = is_whole(request);
        counted.fetch_add(usize::from(whole), Ordering::Relaxed);
        whole
    })));
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "1"), deployment("web", "x")])])).await;
    rig.until_complete("a").await;
    assert_eq!(rig.row("a").unwrap().error, None);

    edge.remove(MAP);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(edge.object(MAP).is_some(), "it is made again");
    edge.set_workloads_ready(false);
    let status = json!({"status": {"readyReplicas": 0, "availableReplicas": 0}});
    let request = Request::new(Method::Patch, format!("{WEB}/status"));
    edge.send(request.body(Content::Merge, &status)).await.unwrap();
    rig.until("its health is seen", |rig| rig.row("a").is_some_and(|row| row.ready < row.total)).await;

    asked.store(0, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_mins(60)).await;
    let asked = asked.load(Ordering::Relaxed);
    assert!((2..=24).contains(&asked), "two kinds are asked for {asked} times in an hour");
    rig.target(&nowhere()).await;
    rig.until_complete("a").await;
    assert_eq!(rig.ours("a"), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn what_the_cluster_credentials_may_not_list_the_account_lists() {
    let rig = Rig::new(&["a"]);
    let edge = rig.edge("a");
    edge.faults(Some(refusing(|request| {
        let lists = is_whole(request) || request.path.as_str() == MAPS;
        lists && request.impersonate.as_deref() != Some(ACCOUNT)
    })));
    rig.start().await;
    rig.target(&on("a", &[app_of("web", vec![acting(config("c", "1"))])])).await;
    rig.until_complete("a").await;
    assert_eq!(rig.row("a").unwrap().error, None);
    let seen = edge.take_seen();
    let by_account = seen.iter().filter(|seen| seen.path == MAPS && seen.account == ACCOUNT);
    assert!(by_account.count() > 0, "{seen:?}");
    edge.remove(MAP);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(edge.object(MAP).is_some(), "it is made again");
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_nobody_may_list_is_named_until_somebody_may() {
    let rig = Rig::new(&["a"]);
    let edge = rig.edge("a");
    edge.faults(Some(refusing(|request| is_whole(request) || request.path.as_str() == MAPS)));
    rig.start().await;
    rig.target(&on("a", &[app_of("web", vec![acting(config("c", "1"))])])).await;
    let error = rig.until_reason("a", "Forbidden").await.error.unwrap();
    assert!(error.message.contains(MAPS), "the namespace is named: {}", error.message);
    edge.faults(Some(refusing(is_whole)));
    tokio::time::sleep(Duration::from_mins(3)).await;
    assert_eq!(rig.row("a").unwrap().error, None);
    assert!(rig.complete("a"));
}

#[tokio::test(start_paused = true)]
async fn a_right_to_list_everywhere_that_comes_later_is_used() {
    let rig = Rig::new(&["a"]);
    let edge = rig.edge("a");
    edge.faults(Some(refusing(is_whole)));
    rig.start().await;
    rig.target(&on("a", &[app("web", vec![config("c", "1")])])).await;
    rig.until_complete("a").await;
    edge.faults(None);
    tokio::time::sleep(Duration::from_mins(11)).await;
    edge.take_seen();
    rig.target(&on("a", &[app("web", vec![config("c", "2")])])).await;
    rig.until_complete("a").await;
    edge.remove(MAP);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(edge.object(MAP).is_some(), "it is made again");
    assert!(edge.take_seen().iter().all(|seen| seen.path != MAPS), "no namespace is listed any more");
}
