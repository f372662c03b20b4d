//! Reads every format of stored objects that was ever released, and compares it with the values it was written from.
//! The files are never written again; a new format adds files.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use emco_engine::explain::{self, Considered, Explained, Explanation, Verdict};
use emco_engine::identity::{ClusterId, Identity, SetDigest};
use emco_engine::pack::{self, Pack};
use emco_engine::set::{
    Assigned, Assignment, ChartTests, HookSpec, ManifestSet, Phase, SetManifest, StoredEdits,
};
use emco_engine::shard::{self, Content};

fn golden(name: &str) -> Pack {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats").join(name);
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Pack::read(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[allow(clippy::needless_pass_by_value)] // reads better where it is called
fn manifest(digest: &str, json: Value) -> SetManifest {
    SetManifest {
        digest: digest.to_owned(),
        phase: Phase::Main,
        hook: None,
        crd_folder: false,
        keep: false,
        take_existing: false,
        edited_by: Vec::new(),
        account: None,
        json,
    }
}

/// Two variants of an app with a hook, a Secret and every flag; and an app without manifests.
fn sets() -> Vec<ManifestSet> {
    let variant = |digest: &str, cluster: &str| {
        let mut namespace =
            manifest("d0", json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}));
        namespace.phase = Phase::Foundation;
        namespace.take_existing = true;
        let mut crd = manifest(
            "d1",
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "a.b"}}),
        );
        (crd.phase, crd.crd_folder, crd.keep) = (Phase::Foundation, true, true);
        let mut hook =
            manifest("d2", json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}}));
        hook.phase = Phase::PreHook;
        hook.hook = Some(HookSpec {
            events: vec!["pre-install".to_owned(), "pre-upgrade".to_owned()],
            weight: -5,
            delete_policies: vec!["before-hook-creation".to_owned()],
        });
        let secret =
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": "dg=="}});
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "shop"},
            "data": {"cluster": cluster, "text": "Grüße\n", "number": 3, "float": 0.1, "null": null},
        });
        ManifestSet {
            digest: SetDigest(digest.to_owned()),
            app: "web".to_owned(),
            manifests: vec![namespace, crd, hook, manifest("d3", secret), manifest("d4", map)],
        }
    };
    vec![
        variant("00000000000000000000000000000001", "acme/berlin-1"),
        variant("00000000000000000000000000000002", "acme/oslo-2"),
        ManifestSet {
            digest: SetDigest("00000000000000000000000000000003".to_owned()),
            app: "empty".to_owned(),
            manifests: Vec::new(),
        },
    ]
}

fn assignment() -> Assignment {
    let cell = |set: &str, revision| Assigned {
        set: SetDigest(set.to_owned()),
        render_key: "00112233445566778899aabbccddeeff".to_owned(),
        now: 1_795_000_000,
        release_revision: revision,
        findings: None,
        provenance: None,
        rendered_revision: None,
        tests: None,
        edits: None,
    };
    [("berlin-1", "00000000000000000000000000000001", 1), ("oslo-2", "00000000000000000000000000000002", 7)]
        .map(|(cluster, set, revision)| {
            (ClusterId::new("acme", cluster), [("web".to_owned(), cell(set, revision))].into())
        })
        .into()
}

fn identities() -> BTreeSet<Identity> {
    sets().iter().flat_map(|set| &set.manifests).map(SetManifest::identity).collect()
}

#[test]
fn packs_of_format_1_are_read() {
    let packs = [golden("1-sets-configmap.pack"), golden("1-sets-secret.pack")];
    let packs: Vec<&Pack> = packs.iter().collect();
    for set in sets() {
        assert_eq!(pack::assemble(&set.digest, &packs).unwrap(), set);
    }
    assert_eq!(pack::assignment(&[&golden("1-assignment.pack")]).unwrap(), assignment());
    assert_eq!(golden("1-identities.pack").identities().unwrap(), Some(identities()));
}

/// The frame of an assignment holds such objects.
#[test]
fn a_cell_says_whether_its_chart_has_tests_or_nobody_knew() {
    let stored = |tests: Option<Value>| {
        let mut cell = json!({"set": "s", "renderKey": "k", "now": 7, "releaseRevision": 2});
        cell.as_object_mut().unwrap().extend(tests.map(|tests| ("tests".to_owned(), tests)));
        cell
    };
    let some = ChartTests { set: Some(SetDigest("t".to_owned())), left_out: vec!["why".to_owned()] };
    for (tests, read) in [
        (None, None),
        (Some(json!({})), Some(ChartTests::default())),
        (Some(json!({"set": "t", "leftOut": ["why"]})), Some(some)),
    ] {
        let cell: Assigned = serde_json::from_value(stored(tests.clone())).unwrap();
        assert_eq!(cell.tests, read);
        assert_eq!(serde_json::to_value(&cell).unwrap(), stored(tests), "it is stored as it was");
    }
}

#[test]
fn a_cell_says_what_it_was_edited_from_or_nothing() {
    let stored = |more: Value| {
        let mut cell = json!({"set": "s", "renderKey": "k", "now": 7, "releaseRevision": 2});
        cell.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        cell
    };
    let edits = StoredEdits { digest: "d".to_owned(), base: SetDigest("b".to_owned()) };
    for (more, read, base, rendered) in [
        (json!({}), None, "s", 2),
        (json!({"edits": {"digest": "d", "base": "b"}}), Some(&edits), "b", 2),
        (json!({"edits": {"digest": "d", "base": "b"}, "renderedRevision": 1}), Some(&edits), "b", 1),
        (json!({"renderedRevision": 1}), None, "s", 1),
    ] {
        let cell: Assigned = serde_json::from_value(stored(more.clone())).unwrap();
        assert_eq!(cell.edits.as_ref(), read);
        assert_eq!((cell.base().0.as_str(), cell.rendered_revision()), (base, rendered));
        assert_eq!(serde_json::to_value(&cell).unwrap(), stored(more), "it is stored as it was");
    }
}

fn explained() -> Vec<Explained> {
    let row = |cluster: &str, verdict, reason: &str, needs: &str| Considered {
        cluster: cluster.to_owned(),
        verdict,
        reason: reason.to_owned(),
        needs: needs.to_owned(),
    };
    vec![
        Explained {
            app: "web".to_owned(),
            clusters: vec![
                row("acme/berlin-1", Verdict::Chosen, "allOf", ""),
                row("acme/oslo-2", Verdict::Rejected, "LabelMissing", "label tier=edge"),
            ],
        },
        Explained {
            app: "db".to_owned(),
            clusters: vec![row("acme/berlin-1", Verdict::Chosen, "anyOf[0]", "")],
        },
    ]
}

#[test]
fn explanations_of_format_1_are_read() {
    let stored = include_bytes!("formats/1-explain.json.zst");
    let wanted = Explanation { apps: explained(), left_out: 0, missing: 0 };
    assert_eq!(explain::read(&[stored]), Ok(wanted.clone()));
    let written = explain::write(&explained());
    assert_eq!(written.len(), 1);
    assert_eq!(explain::read(&[&written[0]]), Ok(wanted));
}

#[test]
fn shards_of_format_1_are_read() {
    let stored: Value = serde_json::from_str(include_str!("formats/1-shard.json")).unwrap();
    let spec = serde_json::from_value(stored["spec"].clone()).unwrap();
    let status = serde_json::from_value(stored["status"].clone()).unwrap();
    let rows = shard::rows(&spec, Some(&status));
    let complete: Vec<(i64, bool)> = rows.iter().map(|row| (row.id, row.complete)).collect();
    assert_eq!(complete, [(1, true), (2, true), (8, false), (9, true)]);
    assert_eq!(rows[0].uid.as_deref(), Some("u1"));
    let names: Vec<&str> = rows[2]
        .may_have
        .iter()
        .map(|content| match content {
            Content::Sets(target) => target.name.as_str(),
            Content::Identities(pack) => pack.pack.as_str(),
        })
        .collect();
    assert_eq!(names, ["t2", "emco-pack-a-b"]);
    assert_eq!(rows[2].hooks[0].done, ["h1"]);
    assert_eq!(rows[3].target, None);
    let rows = shard::decode_status(&spec, &status);
    assert_eq!((rows[&2].total, rows[&8].applied_count, rows[&9].ready), (20, 12, 0));
}

#[test]
fn a_shard_of_before_the_counter_goes_on_where_it_was() {
    let stored: Value = serde_json::from_str(include_str!("formats/1-shard.json")).unwrap();
    let spec: emco_crds::SyncShardSpec = serde_json::from_value(stored["spec"].clone()).unwrap();
    let status: emco_crds::SyncShardStatus = serde_json::from_value(stored["status"].clone()).unwrap();
    assert_eq!(spec.writes, 0);
    for (what, status, generation) in [
        ("where it was written", Some(&status), 6),
        ("copied with its status", Some(&status), 1),
        ("copied without", None, 1),
    ] {
        assert_eq!(shard::writes(&spec, status, generation), 6, "{what}");
    }
    assert_eq!(shard::writes(&spec, Some(&status), 9), 9, "writes that added nothing");
    assert_eq!(serde_json::to_value(&spec).unwrap().get("writes"), None, "it is stored as it was");
    let wanted =
        [(ClusterId::new("acme", "bonn-3"), [("web".to_owned(), SetDigest("new".to_owned()))].into())];
    let next = shard::retarget(&spec, Some(&status), 7, 4, &wanted.into()).unwrap();
    assert_eq!(next.clusters[1].target.as_deref(), Some("t7"));
    assert_eq!(next.clusters[1].held[0].since, 7);
}

#[test]
fn what_is_written_today_is_format_1() {
    let sets: Vec<_> = sets().into_iter().map(std::sync::Arc::new).collect();
    let mut written = pack::write_sets("uid", &sets).unwrap();
    written.extend(pack::write_assignment("uid", &assignment()).unwrap());
    written.push(pack::write_identities("uid", &identities()).unwrap());
    assert_eq!(written.len(), 4);
    for object in &written {
        assert!(object.bytes.starts_with(b"EMCOPK01"));
    }
}
