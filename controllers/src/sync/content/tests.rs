use emco_engine::set::{ManifestSet, Phase, SetManifest};
use serde_json::json;

use super::*;
use crate::memory::MemoryServer;

fn set(name: &str) -> Arc<ManifestSet> {
    // A text that has nothing in common with others.
    let text: String = (0..400_u32).map(|n| hex::encode(Sha256::digest(format!("{name} {n}")))).collect();
    let manifest = SetManifest {
        digest: format!("m-{name}"),
        phase: Phase::Main,
        hook: None,
        crd_folder: false,
        keep: false,
        take_existing: false,
        edited_by: Vec::new(),
        account: None,
        json: json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}, "data": {"text": text}}),
    };
    let digest = SetDigest(format!("s-{name}"));
    Arc::new(ManifestSet { digest, app: "web".to_owned(), manifests: vec![manifest] })
}

/// A revision with a pack for each of these sets.
async fn stored(hub: &MemoryServer, sets: &[Arc<ManifestSet>]) {
    for namespace in ["team-a", "emco-system"] {
        hub.put("test", &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}));
    }
    let mut packs = Vec::new();
    for set in sets {
        for object in pack::write_sets("uid-1", std::slice::from_ref(set)).unwrap() {
            let value = json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": object.name, "namespace": "emco-system"},
                "binaryData": {"pack": STANDARD.encode(&object.bytes)}});
            hub.create("/api/v1/namespaces/emco-system/configmaps", &value).await.unwrap();
            packs.push(json!({"name": object.name, "kind": "ConfigMap", "bytes": object.bytes.len(), "digest": object.digest}));
        }
    }
    let context = json!({"apiVersion": "emco.io/v1alpha1", "kind": "AppContext",
        "metadata": {"name": "dig-shop-1", "namespace": "team-a", "labels": {"emco.io/owner": "o", "emco.io/revision": "1"}},
        "spec": {"format": 1, "owner": {"kind": "DeploymentIntentGroup", "name": "shop", "uid": "u"}, "revision": 1,
            "digest": format!("sha256:{}", "0".repeat(64)), "cause": "Create", "packs": packs}});
    hub.create("/apis/emco.io/v1alpha1/namespaces/team-a/appcontexts", &context).await.unwrap();
}

#[tokio::test]
async fn a_set_reads_the_packs_that_hold_it_however_many_there_are() {
    let (hub, sets) = (MemoryServer::new(), ["a", "b", "c", "d", "e"].map(set));
    stored(&hub, &sets).await;
    // There is room for one set, some of the packs, and the indexes of all.
    let content = HubContent::new(Arc::new(hub.clone()), "emco-system".to_owned(), 150 * 1024);
    let source = Source { namespace: "team-a".to_owned(), owner: "o".to_owned(), revision: 1 };
    for (n, set) in sets.iter().enumerate() {
        assert!(content.set(&source, &set.digest).await.is_ok(), "{n}");
    }
    for _ in 0..2 {
        for set in &sets {
            hub.take_seen();
            let found = content.set(&source, &set.digest).await.ok().unwrap();
            assert_eq!(found.set.digest, set.digest);
            let packs = hub.take_seen().into_iter().filter(|seen| seen.path.contains("/configmaps/"));
            assert!(packs.count() <= 1, "what holds other sets is not read again");
        }
    }
    let missing = SetDigest("s-nowhere".to_owned());
    assert!(content.set(&source, &missing).await.is_err());
}
