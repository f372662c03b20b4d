//! Clusters that are written through Git: what goes onto the branch, what an agent makes of it, and what rows say of both.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use emco_crds::composite_app::{Dependency, DependencyState};
use emco_engine::apis::ApiList;
use emco_engine::identity::{ClusterId, Identity, split_api_version};
use emco_engine::set::ManifestSet;
use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::rig::*;
use crate::api::{ApiError, ApiServer, Content, Method, Request};
use crate::memory::{Fault, MemoryServer};
use crate::publish::PublishState;
use crate::publish::testing::{MemoryRemote, key, publishers};

const AGENT: &str = "kustomize-controller";

/// Clusters `a` and `b` on one branch, with an agent on each.
struct Fleet {
    rig: Rig,
    remote: Arc<MemoryRemote>,
    /// Ends the agents.
    stop: CancellationToken,
    /// Ends the publishers.
    hub: CancellationToken,
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.stop.cancel();
        self.hub.cancel();
    }
}

impl Fleet {
    async fn new() -> Self {
        Self::with(&["a", "b"]).await
    }

    /// With agents on these alone.
    async fn with(agents: &[&str]) -> Self {
        let (mut rig, remote) = (Rig::new(&["a", "b"]), Arc::new(MemoryRemote::default()));
        let (stop, hub) = (CancellationToken::new(), CancellationToken::new());
        rig.publishers = publishers(&remote, &hub);
        for name in agents {
            let agent = follow(rig.edge(name), Arc::clone(&remote), format!("clusters/acme/{name}"));
            let stop = stop.clone();
            tokio::spawn(async move { stop.run_until_cancelled(agent).await });
        }
        let fleet = Self { rig, remote, stop, hub };
        fleet.published().await;
        fleet.remote.pushes.store(0, Ordering::Relaxed);
        fleet.rig.start().await;
        fleet
    }

    async fn published(&self) {
        let state = |rig: &Rig| rig.publishers.status(&key()).map(|status| status.state);
        self.rig.until("it is published", |rig| state(rig) == Some(PublishState::Published)).await;
    }

    /// Another process of the hub.
    async fn restart(&mut self) {
        self.rig.crash().await;
        self.hub.cancel();
        self.hub = CancellationToken::new();
        self.rig.publishers = publishers(&self.remote, &self.hub);
        self.published().await;
        self.rig.start().await;
    }

    fn commits(&self) -> u64 {
        self.remote.pushes.load(Ordering::Relaxed)
    }

    /// Files of objects of a cluster.
    fn files(&self, cluster: &str) -> Vec<String> {
        let start = format!("clusters/acme/{cluster}/team-a/");
        let files = self.remote.files().into_keys();
        files.filter_map(|path| path.strip_prefix(&start).map(str::to_owned)).collect()
    }

    /// Whether anybody but the agent wrote to a cluster.
    fn hub_wrote(&self, cluster: &str) -> bool {
        let of_agent = |account: &str| account == AGENT;
        self.rig.edge(cluster).writes().iter().any(|seen| !of_agent(&seen.account))
    }
}

/// Applies what the lists of a cluster name, and removes what left them.
async fn follow(server: MemoryServer, remote: Arc<MemoryRemote>, folder: String) {
    let mut has: BTreeMap<String, Value> = BTreeMap::new();
    loop {
        let files = remote.files();
        let lists = files.iter().filter_map(|(path, text)| {
            let at = path.strip_suffix("/kustomization.yaml")?;
            (at.starts_with(&folder) && !at.ends_with("/sync")).then_some((at, text))
        });
        let mut now: BTreeMap<String, Value> = BTreeMap::new();
        for (at, text) in lists {
            for name in text.lines().filter_map(|line| line.strip_prefix("- ")) {
                let path = format!("{at}/{name}");
                let documents = emco_helm::yaml::documents(files[&path].as_bytes()).unwrap();
                now.insert(path, documents.into_iter().next().unwrap());
            }
        }
        let apis = server.apis();
        for (path, object) in &now {
            if has.get(path) != Some(object) {
                let request = at(&apis, object, Method::Patch).query("fieldManager", AGENT);
                let request = request.query("force", "true").body(Content::Apply, object);
                server.send(request).await.unwrap();
            }
        }
        for (_, object) in has.iter().filter(|(path, _)| !now.contains_key(*path)) {
            let stays = "/metadata/annotations/kustomize.toolkit.fluxcd.io~1prune";
            if object.pointer(stays).is_none() {
                let _ = server.send(at(&apis, object, Method::Delete)).await;
            }
        }
        has = now;
        sleep(Duration::from_millis(500)).await;
    }
}

fn at(apis: &ApiList, object: &Value, method: Method) -> Request {
    let (group, version) = split_api_version(object["apiVersion"].as_str().unwrap());
    let id = Identity::of(object);
    let resource = apis.find(group, version, &id.kind).unwrap();
    Request::new(method, resource.path(&id.namespace, Some(&id.name))).acting_as(Some(AGENT))
}

fn both(sets: &[Arc<ManifestSet>]) -> BTreeMap<ClusterId, Vec<Arc<ManifestSet>>> {
    let mut all = on("a", sets);
    all.extend(on("b", sets));
    all
}

#[tokio::test(start_paused = true)]
async fn two_apps_on_two_clusters_are_one_commit_and_the_hub_writes_nothing() {
    let fleet = Fleet::new().await;
    let sets =
        [app("db", vec![config("d", "1")]), app("web", vec![config("c", "1"), deployment("web", "nginx:1")])];
    fleet.rig.target(&both(&sets)).await;
    for name in ["a", "b"] {
        fleet.rig.until_complete(name).await;
        let ready = |rig: &Rig| rig.row(name).is_some_and(|row| (row.ready, row.total) == (3, 3));
        fleet.rig.until("the row is ready", ready).await;
        assert!(!fleet.hub_wrote(name));
    }
    assert_eq!(fleet.commits(), 1);
    assert_eq!(
        fleet.files("a"),
        [
            "dig-shop/db/core-configmap-d_shop.yaml",
            "dig-shop/db/kustomization.yaml",
            "dig-shop/web/apps-deployment-web_shop.yaml",
            "dig-shop/web/core-configmap-c_shop.yaml",
            "dig-shop/web/kustomization.yaml",
        ]
    );
    let live = fleet.rig.edge("a").object("/apis/apps/v1/namespaces/shop/deployments/web").unwrap();
    assert_eq!(live["metadata"]["labels"]["emco.io/owner"], json!(fleet.rig.hash));
}

#[tokio::test(start_paused = true)]
async fn a_row_without_an_agent_is_applied_and_not_ready() {
    let fleet = Fleet::with(&[]).await;
    fleet.rig.target(&on("a", &[app("web", vec![config("c", "1")])])).await;
    let applied = |rig: &Rig| rig.row("a").is_some_and(|row| (row.applied_count, row.ready) == (1, 0));
    fleet.rig.until("the branch has it", applied).await;
    assert_eq!(fleet.commits(), 1);
    sleep(Duration::from_mins(5)).await;
    assert_eq!(fleet.commits(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_app_that_waits_is_published_when_the_cluster_shows_the_other() {
    let fleet = Fleet::with(&[]).await;
    let on_db =
        Dependency { app: "db".to_owned(), state: Some(DependencyState::Deployed), ..Dependency::default() };
    *fleet.rig.depends.lock() = BTreeMap::from([("web".to_owned(), vec![on_db])]);
    let sets = [app("db", vec![config("d", "1")]), app("web", vec![config("c", "1")])];
    fleet.rig.target(&on("a", &sets)).await;
    sleep(Duration::from_mins(5)).await;
    assert_eq!(
        fleet.files("a"),
        ["dig-shop/db/core-configmap-d_shop.yaml", "dig-shop/db/kustomization.yaml"]
    );
    let agent = follow(fleet.rig.edge("a"), Arc::clone(&fleet.remote), "clusters/acme/a".to_owned());
    let stop = fleet.stop.clone();
    tokio::spawn(async move { stop.run_until_cancelled(agent).await });
    fleet.rig.until_complete("a").await;
    assert_eq!(fleet.files("a").len(), 4);
}

#[tokio::test(start_paused = true)]
async fn an_update_prunes_after_the_agent_followed_and_a_removal_leaves_nothing() {
    let fleet = Fleet::new().await;
    fleet.rig.target(&on("a", &[app("web", vec![config("old", "1"), config("c", "1")])])).await;
    fleet.rig.until_complete("a").await;
    fleet.rig.target(&on("a", &[app("web", vec![config("c", "2"), config("new", "1")])])).await;
    fleet.rig.until_complete("a").await;
    let edge = fleet.rig.edge("a");
    assert!(edge.object("/api/v1/namespaces/shop/configmaps/old").is_none());
    assert_eq!(edge.object("/api/v1/namespaces/shop/configmaps/c").unwrap()["data"]["value"], "2");
    fleet.rig.target(&nowhere()).await;
    fleet.rig.until_complete("a").await;
    assert!(fleet.rig.ours("a").is_empty() && fleet.files("a").is_empty());
    assert!(!fleet.hub_wrote("a"));
}

#[tokio::test(start_paused = true)]
async fn a_hub_that_starts_again_makes_no_commit() {
    let mut fleet = Fleet::new().await;
    fleet.rig.target(&on("a", &[app("web", vec![config("c", "1"), deployment("web", "nginx:1")])])).await;
    fleet.rig.until_complete("a").await;
    let before = fleet.commits();
    fleet.restart().await;
    sleep(Duration::from_mins(10)).await;
    assert_eq!(fleet.commits(), before);
    assert!(!fleet.hub_wrote("a"));
}

#[tokio::test(start_paused = true)]
async fn an_object_of_others_is_not_put_onto_the_branch() {
    let fleet = Fleet::new().await;
    fleet.rig.edge("a").put("somebody", &config("c", "theirs"));
    fleet.rig.target(&on("a", &[app("web", vec![config("c", "1")])])).await;
    fleet.rig.until_reason("a", "NotOurs").await;
    assert!(fleet.files("a").is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_somebody_deletes_on_the_cluster_is_left_to_the_agent() {
    let fleet = Fleet::new().await;
    fleet.rig.target(&on("a", &[app("web", vec![config("c", "1")])])).await;
    fleet.rig.until_complete("a").await;
    let before = fleet.commits();
    fleet.rig.edge("a").remove("/api/v1/namespaces/shop/configmaps/c");
    let missed = |rig: &Rig| rig.row("a").is_some_and(|row| row.ready == 0);
    fleet.rig.until("the row says so", missed).await;
    sleep(Duration::from_mins(5)).await;
    assert_eq!(fleet.commits(), before);
    assert!(!fleet.hub_wrote("a"));
}

#[tokio::test(start_paused = true)]
async fn the_job_of_a_hook_leaves_the_branch_when_it_ended() {
    let fleet = Fleet::new().await;
    let set = app_of(
        "web",
        vec![
            hook(job("migrate"), &["pre-install"], 0, &["before-hook-creation"]),
            manifest(config("c", "1"), None),
        ],
    );
    fleet.rig.target(&on("a", &[set])).await;
    fleet.rig.until_complete("a").await;
    sleep(Duration::from_secs(10)).await;
    assert_eq!(
        fleet.files("a"),
        ["dig-shop/web/core-configmap-c_shop.yaml", "dig-shop/web/kustomization.yaml"]
    );
    assert!(fleet.rig.edge("a").object("/apis/batch/v1/namespaces/shop/jobs/migrate").is_none());
}

#[tokio::test(start_paused = true)]
async fn the_file_of_a_job_has_no_time_out_after_which_it_would_run_again() {
    let fleet = Fleet::with(&[]).await;
    let mut seed = job("seed");
    seed["spec"]["ttlSecondsAfterFinished"] = json!(2);
    fleet.rig.target(&on("a", &[app("web", vec![seed])])).await;
    let file = "clusters/acme/a/team-a/dig-shop/web/batch-job-seed_shop.yaml";
    fleet.rig.until("the branch has it", |_| fleet.remote.files().contains_key(file)).await;
    let text = fleet.remote.files()[file].clone();
    assert!(text.contains("restartPolicy") && !text.contains("ttlSecondsAfterFinished"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_cannot_be_looked_into_stays_with_its_file() {
    let fleet = Fleet::new().await;
    let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "extra"}});
    fleet.rig.target(&on("a", &[app("web", vec![space, config("c", "1")])])).await;
    fleet.rig.until_complete("a").await;
    fleet.rig.edge("a").faults(Some(Arc::new(|request, _| {
        let is_look = request.method == Method::Get && request.path.ends_with("/namespaces/extra/configmaps");
        is_look.then(|| {
            Fault::Refuse(ApiError::Status {
                code: 403,
                reason: "Forbidden".to_owned(),
                message: "configmaps is forbidden".to_owned(),
                retry_after: None,
                causes: Vec::new(),
            })
        })
    })));
    fleet.rig.target(&nowhere()).await;
    fleet.rig.until_complete("a").await;
    assert_eq!(
        fleet.files("a"),
        ["dig-shop/web/core-namespace-extra.yaml", "dig-shop/web/kustomization.yaml"]
    );
    assert!(fleet.rig.edge("a").object("/api/v1/namespaces/extra").is_some());
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_is_kept_and_in_the_way_is_told() {
    let fleet = Fleet::new().await;
    let set = |value: &str| {
        let mut kept = hook(job("migrate"), &["pre-install", "pre-upgrade"], 0, &["before-hook-creation"]);
        kept.keep = true;
        app_of("web", vec![kept, manifest(config("c", value), None)])
    };
    fleet.rig.target(&on("a", &[set("1")])).await;
    fleet.rig.until_complete("a").await;
    fleet.rig.target(&on("a", &[set("2")])).await;
    fleet.rig.until_reason("a", "NotSupportedByGit").await;
    fleet.rig.edge("a").remove("/apis/batch/v1/namespaces/shop/jobs/migrate");
    fleet.rig.until_complete("a").await;
}
