//! Kubeconfigs of many clusters: how they are divided among Secrets, also by a process that dies meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use emco_crds::{LogicalCloud, OwnerKind};
use emco_engine::identity::ClusterId;
use emco_engine::people::{self, Endpoint, Person, Proof};
use k8s_openapi::jiff::Timestamp;
use serde_json::json;

use super::super::life::lost;
use super::super::rig::{Rig, emco, namespace};
use crate::api::Method;
use crate::crash_points;
use crate::memory::Fault;
use crate::object::Owner;
use crate::object::context::Failure;
use crate::people::Issued;
use crate::people::index::Index;
use crate::people::secrets::Secrets;

struct Hub {
    rig: Rig,
    cloud: LogicalCloud,
    owner: Owner,
}

fn id(number: usize) -> ClusterId {
    ClusterId::new("acme", &format!("c{number}"))
}

/// A kubeconfig of some KiB.
fn issued(number: usize, at: i64) -> (ClusterId, Issued) {
    let endpoint = Endpoint {
        server: "https://192.0.2.1:6443".to_owned(),
        authority: "QUJD".repeat(800),
        tls_server_name: None,
    };
    let person = Person {
        user: "emco:team-a:edge:ann".to_owned(),
        groups: Vec::new(),
        namespace: "shop".to_owned(),
        account: "emco-edge-user-0".to_owned(),
    };
    let [begins, ends] = [at, at + 86_400].map(|second| Timestamp::from_second(second).unwrap());
    let text = people::write(&id(number), &endpoint, &person, &Proof::Token("t"), (begins, ends)).unwrap();
    (id(number), Issued { text: text.into() })
}

impl Hub {
    fn new() -> Self {
        let rig = Rig::new();
        rig.hub.put("test", &namespace("team-a", &json!({"emco.io/project": "team-a"})));
        let mut cloud = emco("LogicalCloud", Some("team-a"), "edge", &json!({}));
        cloud["metadata"]["uid"] = json!("u1");
        let cloud: LogicalCloud = serde_json::from_value(cloud).unwrap();
        let owner = Owner::of(&rig.ctx, OwnerKind::LogicalCloud, &cloud);
        Self { rig, cloud, owner }
    }

    async fn read(&self) -> Index {
        Secrets::of(&self.rig.ctx, &self.owner).read().await.unwrap()
    }

    async fn write(
        &self,
        index: Index,
        issued: BTreeMap<ClusterId, Issued>,
        removed: &BTreeSet<ClusterId>,
    ) -> Result<Index, Failure> {
        Secrets::of(&self.rig.ctx, &self.owner).write(&self.cloud, index, issued, removed).await
    }

    /// Secrets that hold something, with the number of their keys.
    fn filled(&self) -> BTreeMap<String, usize> {
        let secrets = self.rig.hub.of_kind("Secret");
        let keys = |secret: &serde_json::Value| secret["data"].as_object().map_or(0, serde_json::Map::len);
        let name = |secret: &serde_json::Value| secret["metadata"]["name"].as_str().unwrap().to_owned();
        secrets.iter().map(|secret| (name(secret), keys(secret))).filter(|(_, keys)| *keys > 0).collect()
    }

    /// The hub loses the n-th write from now on.
    fn loses(&self, which: u64) {
        let count = AtomicU64::new(0);
        self.rig.hub.faults(Some(Arc::new(move |request, _| {
            let write = request.method != Method::Get;
            let hit = write && count.fetch_add(1, Ordering::SeqCst) == which;
            hit.then(|| Fault::Refuse(lost()))
        })));
    }
}

#[tokio::test]
async fn kubeconfigs_of_many_clusters_are_divided_and_joined_again() {
    let hub = Hub::new();
    let nothing = BTreeSet::new();
    let first = (0..100).map(|number| issued(number, 1_800_000_000)).collect();
    let index = hub.write(hub.read().await, first, &nothing).await.unwrap();
    assert_eq!(
        hub.filled(),
        BTreeMap::from([("edge-kubeconfig".to_owned(), 1), ("edge-kubeconfig-0".to_owned(), 100)])
    );
    let more = (100..400).map(|number| issued(number, 1_800_000_000)).collect();
    let index = hub.write(index, more, &nothing).await.unwrap();
    let filled = hub.filled();
    // Beyond 200 clusters nobody opens one file of all.
    assert!(
        !filled.contains_key("edge-kubeconfig") && !filled.contains_key("edge-kubeconfig-0"),
        "{filled:?}"
    );
    assert!(filled.keys().all(|name| name.ends_with("of4")) && filled.len() == 4, "{filled:?}");
    assert_eq!((filled.values().sum::<usize>(), index.stored().len()), (400, 400));
    // What a process that begins reads is what was known.
    assert_eq!(hub.read().await.stored(), index.stored());
    let most = (20..400).map(id).collect();
    let index = hub.write(index, BTreeMap::new(), &most).await.unwrap();
    assert_eq!(
        hub.filled(),
        BTreeMap::from([("edge-kubeconfig".to_owned(), 1), ("edge-kubeconfig-0".to_owned(), 20)])
    );
    assert_eq!(index.stored().len(), 20);
    let secrets = hub.rig.hub.of_kind("Secret");
    assert!(secrets.iter().all(|secret| secret["metadata"]["ownerReferences"][0]["uid"] == "u1"));
}

#[tokio::test]
async fn a_renewal_writes_the_secret_of_its_cluster_alone() {
    let hub = Hub::new();
    let nothing = BTreeSet::new();
    let all = (0..400).map(|number| issued(number, 1_800_000_000)).collect();
    let index = hub.write(hub.read().await, all, &nothing).await.unwrap();
    hub.rig.hub.take_seen();
    let index = hub.write(index, BTreeMap::from([issued(7, 1_800_050_000)]), &nothing).await.unwrap();
    assert_eq!(hub.rig.writes().len(), 1);
    assert_eq!(index.stored()[&id(7)].issued.as_second(), 1_800_050_000);
    assert_eq!(hub.read().await.stored(), index.stored());
    hub.rig.hub.take_seen();
    hub.write(index, BTreeMap::new(), &nothing).await.unwrap();
    assert_eq!(hub.rig.writes().len(), 0);
}

#[tokio::test]
async fn a_process_that_dies_while_it_divides_loses_nothing() {
    let nothing = BTreeSet::new();
    let more = || -> BTreeMap<_, _> { (150..400).map(|number| issued(number, 1_800_000_000)).collect() };
    let undivided = async || {
        let hub = Hub::new();
        let first = (0..150).map(|number| issued(number, 1_800_000_000)).collect();
        let index = hub.write(hub.read().await, first, &nothing).await.unwrap();
        hub.rig.hub.take_seen();
        (hub, index)
    };
    let (hub, index) = undivided().await;
    hub.write(index, more(), &nothing).await.unwrap();
    let writes = u64::try_from(hub.rig.writes().len()).unwrap();
    assert!(writes >= 4, "only {writes} writes were there to die at");
    for which in crash_points::chosen(0..writes) {
        let (hub, index) = undivided().await;
        hub.loses(which);
        let died = hub.write(index, more(), &nothing).await.is_err();
        hub.rig.hub.faults(None);
        // The next process: those of the first are all there, and what was lost is issued again.
        let index = hub.read().await;
        let stored = index.stored();
        assert!((0..150).all(|number| stored.contains_key(&id(number))), "write {which}");
        let missing = more().into_iter().filter(|(id, _)| !stored.contains_key(id)).collect();
        hub.write(index, missing, &nothing).await.unwrap();
        assert_eq!(hub.filled().values().sum::<usize>(), 400, "write {which}, died: {died}");
        assert_eq!(hub.read().await.stored().len(), 400);
    }
}
