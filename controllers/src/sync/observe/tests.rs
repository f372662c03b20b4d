//! Laws of what is known of objects.

use emco_engine::identity::Identity;
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn identity() -> impl Strategy<Value = Identity> {
    ("(|apps)", "[AB]", "(|one|two)", "[a-c]").prop_map(|(group, kind, namespace, name)| Identity {
        group,
        kind,
        namespace,
        name,
    })
}

/// An object of somebody's, as an API server answers it.
fn object(id: &Identity, version: usize) -> Value {
    let labels = json!({"emco.io/owner": "someone"});
    let (uid, version) = (format!("{id}"), version.to_string());
    json!({"kind": id.kind, "metadata": {"name": id.name, "uid": uid, "resourceVersion": version, "labels": labels}})
}

proptest! {
    #[test]
    fn whoever_asks_for_many_is_told_what_each_alone_would_be_told(
        there in proptest::collection::vec((identity(), any::<bool>()), 0..20),
        asked in proptest::collection::vec(identity(), 0..20),
    ) {
        let observed = Observed::new(HealthRules::new(Arc::default()));
        for (place, (id, is_listed)) in there.iter().enumerate() {
            let kind = (id.group.clone(), id.kind.clone());
            observed.inner.lock().kinds.or_default(&kind.0, &kind.1);
            if *is_listed {
                observed.listed(&kind, 1, Vec::new());
            }
            observed.learn(id, &object(id, place + 2));
        }
        let found = observed.find(asked.iter());
        prop_assert_eq!(found.len(), asked.len());
        for (id, found) in asked.iter().zip(found) {
            let uid = |seen: Option<Arc<Seen>>| seen.map(|seen| seen.uid.clone());
            prop_assert_eq!(uid(found.seen.clone()), uid(observed.get(id)));
            prop_assert_eq!(format!("{:?}", Look::from(found)), format!("{:?}", observed.look(id)));
        }
    }
}
