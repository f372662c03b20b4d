use serde_json::json;

use super::*;
use crate::identity::{ClusterId, SetDigest};
use crate::order;
use crate::set::{Assigned, SetManifest, StoredEdits};

const FEW: &str = "GenericActionIntent banner, spec.actions[few]";
const NOTE: &str = "GenericActionIntent banner, spec.actions[note]";

fn identity(kind: &str, namespace: &str, name: &str) -> Identity {
    Identity {
        group: String::new(),
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

fn done(object: Identity, became: Became, fields: &[(&str, &str)]) -> Done {
    let fields = fields.iter().map(|(field, action)| ((*field).to_owned(), (*action).to_owned())).collect();
    Done { object, became, fields }
}

fn set(manifests: Vec<SetManifest>) -> ManifestSet {
    ManifestSet { digest: SetDigest("s".to_owned()), app: "web".to_owned(), manifests }
}

fn added(namespace: &str, name: &str, action: &str) -> SetManifest {
    let metadata = json!({"name": name, "namespace": namespace});
    let json = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
    SetManifest {
        digest: "d".to_owned(),
        phase: order::phase_of(&json, None),
        hook: None,
        crd_folder: false,
        keep: false,
        take_existing: false,
        edited_by: vec![format!("{ADDED}{action}")],
        account: None,
        json,
    }
}

#[test]
fn an_added_object_is_named_in_the_namespace_that_it_got() {
    let done = [
        done(identity("ConfigMap", "", "note"), Became::Added, &[("", NOTE)]),
        done(identity("Service", "shop", "web"), Became::Changed, &[("/spec/type", FEW)]),
    ];
    let provenance = Provenance::of(&done, &set(vec![added("shop", "note", NOTE)]));
    let objects: Vec<&str> = provenance.objects.iter().map(|edited| edited.object.as_str()).collect();
    assert_eq!(objects, ["ConfigMap/shop/note", "Service/shop/web"]);
    assert_eq!(provenance.actions, [NOTE, FEW]);
    assert_eq!(provenance.intents, [("GenericActionIntent banner".to_owned(), 2)].into());
    let by = BTreeSet::from(["GenericActionIntent banner"]);
    let by_object = BTreeMap::from([("ConfigMap/shop/note", by.clone()), ("Service/shop/web", by)]);
    assert_eq!(provenance.by_object(), by_object);
    assert!(!provenance.is_empty() && Provenance::of(&[], &set(Vec::new())).is_empty());
}

#[test]
fn fields_beyond_the_first_thousand_are_counted() {
    let name = |n: usize| format!("/data/{n}");
    let names: Vec<String> = (0..MOST_FIELDS).map(name).collect();
    let fields: Vec<(&str, &str)> = names.iter().map(|field| (field.as_str(), FEW)).collect();
    let all = [
        done(identity("ConfigMap", "shop", "a"), Became::Changed, &fields),
        done(identity("ConfigMap", "shop", "b"), Became::Changed, &fields[..3]),
    ];
    let provenance = Provenance::of(&all, &set(Vec::new()));
    assert_eq!((provenance.objects.len(), provenance.more), (1, 3));
    assert_eq!(provenance.intents, [("GenericActionIntent banner".to_owned(), 2)].into(), "both count");
    let counted = provenance.counted();
    assert_eq!((counted.objects.len(), counted.more), (0, MOST_FIELDS + 3));
    assert_eq!(counted.intents, provenance.intents);
    assert!(counted.size() < 64 && provenance.size() > MOST_FIELDS);
}

fn cell(provenance: Option<Provenance>, edited: bool) -> Assigned {
    let base = SetDigest("base".to_owned());
    Assigned {
        set: SetDigest("s".to_owned()),
        render_key: String::new(),
        now: 0,
        release_revision: 1,
        rendered_revision: None,
        findings: None,
        provenance: provenance.map(std::sync::Arc::new),
        tests: None,
        edits: edited.then(|| StoredEdits { digest: String::new(), base }),
    }
}

#[test]
fn a_status_counts_the_clusters_and_objects_of_each_listed_intent() {
    let all = [done(identity("Service", "shop", "web"), Became::Changed, &[("/spec/type", FEW)])];
    let provenance = Some(Provenance::of(&all, &set(Vec::new())));
    let listed: Vec<IntentRef> = ["banner", "idle"]
        .map(|name| IntentRef { group: None, kind: "GenericActionIntent".to_owned(), name: name.to_owned() })
        .into();
    let row = |edited| [("web".to_owned(), cell(provenance.clone(), edited))].into();
    let mut assignment: Assignment =
        ["a", "b"].map(|cluster| (ClusterId::new("acme", cluster), row(true))).into();
    let counts = |assignment: &Assignment| -> Vec<(String, i64, i64)> {
        let status = intents(&listed, assignment).into_iter();
        status.map(|intent| (intent.name, intent.clusters, intent.objects)).collect()
    };
    assert_eq!(counts(&assignment), [("banner".to_owned(), 2, 2), ("idle".to_owned(), 0, 0)]);
    let idle = [("web".to_owned(), cell(Some(Provenance::default()), true))].into();
    assignment.insert(ClusterId::new("acme", "c"), idle);
    assert_eq!(counts(&assignment)[0], ("banner".to_owned(), 2, 2), "it does nothing there");
    let stored_before = [("web".to_owned(), cell(None, true))].into();
    assignment.insert(ClusterId::new("acme", "c"), stored_before);
    assert!(counts(&assignment).is_empty(), "what is not known of one cluster is not said of all");
}
