use serde_json::{Value, json};
use sha2::Digest as _;

use super::*;
use crate::set::provenance::{Became, EditedObject};
use crate::set::{HookSpec, ManifestSet, Phase, SetManifest};
use std::sync::Arc;

#[allow(clippy::needless_pass_by_value)] // reads better where it is called
fn manifest(kind: &str, name: &str, data: Value) -> SetManifest {
    SetManifest {
        digest: format!("d-{name}"),
        phase: Phase::Main,
        hook: None,
        crd_folder: false,
        keep: false,
        take_existing: false,
        edited_by: Vec::new(),
        account: None,
        json: json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, "data": data}),
    }
}

fn set(app: &str, digest: &str, manifests: Vec<SetManifest>) -> Arc<ManifestSet> {
    Arc::new(ManifestSet { digest: SetDigest(digest.to_owned()), app: app.to_owned(), manifests })
}

/// Text that does not compress.
fn noise(seed: u64, bytes: usize) -> String {
    let mut text = String::new();
    let mut block = 0_u64;
    while text.len() < bytes {
        text.push_str(&hex::encode(sha2::Sha256::digest(format!("{seed}/{block}"))));
        block += 1;
    }
    text.truncate(bytes);
    text
}

fn read(objects: &[PackObject]) -> Vec<Pack> {
    objects.iter().map(|o| Pack::read(&o.bytes).unwrap()).collect()
}

fn round_trip(sets: &[Arc<ManifestSet>]) -> Vec<PackObject> {
    let objects = write_sets("uid", sets).unwrap();
    for object in &objects {
        assert!(object.bytes.len() <= LARGEST, "{}", object.bytes.len());
    }
    let packs = read(&objects);
    let refs: Vec<&Pack> = packs.iter().collect();
    for set in sets {
        assert_eq!(assemble(&set.digest, &refs).unwrap(), **set);
    }
    objects
}

#[test]
fn a_set_comes_back_as_it_was_and_secrets_are_apart() {
    let mut hook = manifest("Job", "migrate", json!(1.5));
    hook.phase = Phase::PreHook;
    hook.hook = Some(HookSpec {
        events: vec!["pre-install".to_owned()],
        weight: -3,
        delete_policies: vec!["hook-failed".to_owned()],
    });
    let objects = round_trip(&[
        set(
            "web",
            "s1",
            vec![
                hook,
                manifest("Secret", "pw", json!({"a": "c2VjcmV0"})),
                manifest("ConfigMap", "c", json!({"k": "v"})),
            ],
        ),
        set("web", "s2", vec![manifest("ConfigMap", "c", json!({"k": "w"}))]),
        set("empty", "s3", vec![]),
    ]);
    assert_eq!(objects.iter().map(|o| o.kind).collect::<Vec<_>>(), [PackKind::ConfigMap, PackKind::Secret]);
    let plain = Pack::read(&objects[0].bytes).unwrap();
    for frame in 0..plain.index.frames.len() {
        let content = String::from_utf8(plain.content(frame).unwrap()).unwrap();
        assert!(!content.contains("c2VjcmV0"), "{content}");
    }
    assert!(plain.holds(&SetDigest("s2".to_owned())) && plain.sets().count() == 3);
    // Without the pack of the Secrets the set is not whole.
    assert_eq!(
        assemble(&SetDigest("s1".to_owned()), &[&plain]),
        Err(PackError::Missing("set s1".to_owned()))
    );
}

#[test]
fn a_sibling_costs_what_differs() {
    let variant = |n: usize| {
        let manifests = (0..10)
            .map(|i| manifest("ConfigMap", &format!("c{i}"), json!({"text": noise(i, 1500), "cluster": n})));
        set("web", &format!("s{n:04}"), manifests.collect())
    };
    let one = round_trip(&[variant(0)])[0].bytes.len();
    let hundred = round_trip(&(0..100).map(variant).collect::<Vec<_>>())[0].bytes.len();
    assert!(one > 7_000 && (hundred - one) / 99 < 300, "{one} {hundred}");
}

#[test]
fn more_than_fits_goes_to_several_packs() {
    let big: Vec<_> = (0..8)
        .map(|n| set("web", &format!("s{n}"), vec![manifest("ConfigMap", "c", json!(noise(n, 600_000)))]))
        .collect();
    assert!(round_trip(&big).len() > 2);
    // One set larger than a pack is divided.
    let parts = (0..8).map(|n| manifest("ConfigMap", &format!("c{n}"), json!(noise(n, 600_000)))).collect();
    assert!(round_trip(&[set("web", "huge", parts)]).len() > 2);
}

#[test]
fn a_manifest_larger_than_a_pack_stands_in_pieces() {
    let fat = |kind: &str, seed| manifest(kind, "fat", json!(noise(seed, 2_200_000)));
    let whole = [
        set("web", "alone", vec![fat("ConfigMap", 1)]),
        set("web", "beside", vec![manifest("ConfigMap", "c", json!("v")), fat("Secret", 2)]),
        set("web", "sibling", vec![manifest("ConfigMap", "c", json!("w")), fat("ConfigMap", 1)]),
    ];
    let objects = round_trip(&whole);
    assert!(objects.iter().all(|object| object.bytes.starts_with(b"EMCOPK0")));
    // One without pieces is read by versions that know of none.
    assert!(
        round_trip(&[set("web", "s", vec![manifest("ConfigMap", "c", json!("v"))])])[0]
            .bytes
            .starts_with(b"EMCOPK01")
    );
    let packs = read(&objects);
    let lacks = |at: usize| -> Vec<&Pack> {
        packs.iter().enumerate().filter(|(place, _)| *place != at).map(|(_, pack)| pack).collect()
    };
    for (at, pack) in packs.iter().enumerate() {
        for set in whole.iter().filter(|set| pack.holds(&set.digest)) {
            assert!(matches!(assemble(&set.digest, &lacks(at)), Err(PackError::Missing(_))), "{at}");
            let left = salvage(&set.digest, &lacks(at)).map_or(0, |left| left.manifests.len());
            assert!(left < set.manifests.len(), "{at}");
        }
    }
}

#[test]
fn the_same_content_gives_the_same_bytes_whatever_the_order() {
    let a = set("a", "s1", vec![manifest("ConfigMap", "c", json!({"k": "v"}))]);
    let b = set("b", "s2", vec![manifest("ConfigMap", "d", json!({"k": "v"}))]);
    let first = write_sets("uid", &[a.clone(), b.clone(), a.clone()]).unwrap();
    assert_eq!(first, write_sets("uid", &[b.clone(), a.clone()]).unwrap());
    assert_ne!(first[0].name, write_sets("other", &[b, a]).unwrap()[0].name);
    assert_eq!(first[0].name.len(), "emco-pack-".len() + 16 + 1 + 16);
    assert!(first[0].name.ends_with(&first[0].digest[..16]));
}

fn wide(clusters: usize) -> Assignment {
    (0..clusters)
        .map(|n| {
            let cell = |app: &str| Assigned {
                set: SetDigest(noise(n as u64, 32)),
                render_key: noise(n as u64 + 1_000_000, 32),
                now: 1_700_000_000,
                release_revision: if app == "web" { 2 } else { 1 },
                findings: None,
                provenance: None,
                rendered_revision: None,
                tests: None,
                edits: None,
            };
            let apps = ["db", "web", "api"].map(|app| (app.to_owned(), cell(app)));
            (ClusterId::new("acme", &format!("edge-{n:05}")), apps.into_iter().collect())
        })
        .collect()
}

#[test]
fn an_assignment_comes_back_also_from_several_packs() {
    for clusters in [0, 1, 300, 20_000] {
        let written = write_assignment("uid", &wide(clusters)).unwrap();
        let packs = read(&written);
        let refs: Vec<&Pack> = packs.iter().collect();
        assert_eq!(assignment(&refs).unwrap(), wide(clusters));
        assert_eq!(packs.len() > 1, clusters == 20_000);
        assert!(assignment(&refs[1..]).is_err());
    }
    let shared: Assignment = (0..10_000)
        .map(|n| (ClusterId::new("a", &format!("{n}")), wide(1).into_values().next().unwrap()))
        .collect();
    assert!(write_assignment("uid", &shared).unwrap()[0].bytes.len() < 100_000);
}

#[test]
fn fields_of_intents_come_back_and_are_counted_where_there_is_no_room() {
    let provenance = |fields: usize| Provenance {
        actions: vec!["GenericActionIntent a, spec.actions[b]".to_owned()],
        objects: vec![EditedObject {
            object: "ConfigMap/shop/a".to_owned(),
            became: Became::Changed,
            fields: (0..fields).map(|n| (format!("/data/{}", noise(n as u64, 400)), 0)).collect(),
        }],
        more: 0,
        intents: [("GenericActionIntent a".to_owned(), 1)].into(),
    };
    for (fields, are_named) in [(3, true), (10_000, false)] {
        let mut all = wide(1);
        let made = Arc::new(provenance(fields));
        for web in all.values_mut().filter_map(|apps| apps.get_mut("web")) {
            web.provenance = Some(Arc::clone(&made));
        }
        let packs = read(&write_assignment("uid", &all).unwrap());
        let stored = assignment(&packs.iter().collect::<Vec<_>>()).unwrap();
        let kept = stored.values().next().unwrap()["web"].provenance.as_deref().unwrap().clone();
        assert_eq!(kept, if are_named { provenance(fields) } else { provenance(fields).counted() });
    }
}

#[test]
fn identities_come_back() {
    let all: BTreeSet<Identity> =
        [manifest("ConfigMap", "a", Value::Null), manifest("Secret", "b", Value::Null)]
            .iter()
            .map(SetManifest::identity)
            .collect();
    let written = write_identities("uid", &all).unwrap();
    assert_eq!(Pack::read(&written.bytes).unwrap().identities().unwrap(), Some(all));
    let sets = write_sets("uid", &[set("a", "s", vec![])]).unwrap();
    assert_eq!(Pack::read(&sets[0].bytes).unwrap().identities().unwrap(), None);
}

#[test]
fn every_torn_or_changed_byte_is_noticed() {
    let bytes = write_sets("uid", &[set("a", "s", vec![manifest("ConfigMap", "c", json!({"k": "v"}))])])
        .unwrap()
        .remove(0)
        .bytes;
    for length in 0..bytes.len() {
        assert!(Pack::read(&bytes[..length]).is_err(), "cut at {length}");
    }
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        assert!(Pack::read(&changed).is_err(), "changed at {at}");
    }
}

#[test]
fn a_later_format_is_refused_and_says_what_to_do() {
    let mut bytes = write_sets("uid", &[set("a", "s", vec![])]).unwrap().remove(0).bytes;
    bytes[7] = b'3';
    let error = Pack::read(&bytes).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the pack has format 3 and this version reads formats up to 2: upgrade the operator"
    );
    assert_eq!(Pack::read(b"something else"), Err(PackError::NotAPack));
}

/// A pack with a right digest whose index lies.
fn forged(change: impl FnOnce(&mut Index)) -> Pack {
    let object = write_sets("uid", &[set("a", "s", vec![manifest("ConfigMap", "c", json!({"k": "v"}))])])
        .unwrap()
        .remove(0);
    let mut pack = Pack::read(&object.bytes).unwrap();
    change(&mut pack.index);
    let bytes = codec::encode(&pack.index, &pack.frames).unwrap();
    Pack::read(&bytes).unwrap_or(pack)
}

#[test]
fn an_index_that_lies_is_an_error_and_no_memory_is_taken_for_it() {
    let digest = SetDigest("s".to_owned());
    for pack in [
        forged(|i| i.frames[0].raw = usize::MAX),
        forged(|i| i.frames[0].raw = 1),
        forged(|i| i.frames[0].dictionary = Some(0)),
        forged(|i| i.sets[0].frame = 7),
        forged(|i| i.sets[0].positions = Some(vec![5])),
        forged(|i| i.sets[0].piece = Some(Piece { number: 1, pieces: 1 })),
    ] {
        assert!(matches!(assemble(&digest, &[&pack]), Err(PackError::Corrupt(_))), "{:?}", pack.index);
    }
}

/// Whoever reads an AppContext sees the SHA-256 of packs of Secrets, and the digest of the set. Beside a guess of the password they
/// would need the key of the installation: it is in the digest of each manifest, which stands in the pack alone.
#[test]
fn the_digest_of_a_pack_does_not_help_to_guess_a_secret() {
    let pack = |key: &[u8; 32], password: &str| {
        let mut secret = manifest("Secret", "pin", json!({"password": password}));
        secret.digest = crate::canonical::manifest_digest(key, &secret.json);
        let packs = write_sets("uid", &[set("db", "seen", vec![secret])]).unwrap();
        let [pack] = &packs[..] else { panic!("{packs:?}") };
        assert_eq!(pack.kind, PackKind::Secret);
        (pack.name.clone(), pack.digest.clone())
    };
    let published = pack(&[7; 32], "hunter2");
    assert_eq!(pack(&[7; 32], "hunter2"), published);
    assert_ne!(pack(&[8; 32], "hunter2"), published, "the right guess with another key shows nothing");
}
