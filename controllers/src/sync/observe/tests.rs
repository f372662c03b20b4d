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
                observed.listed(&kind, &Place::Everywhere, 1, Vec::new());
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

/// One that needs `ConfigMap`s in a namespace.
fn need(observed: &Observed, owner: &str, namespace: &str, account: Option<&str>) {
    let resource = emco_engine::apis::ApiResource {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        plural: "configmaps".to_owned(),
        namespaced: true,
        listable: true,
        watchable: true,
    };
    let wanted = [Wanted { resource, namespaces: [namespace.to_owned()].into() }];
    observed.want(owner, &wanted, account.map(Arc::<str>::from).as_ref());
}

/// Where there are watches, and as whom they look where the Cluster's credentials may not.
fn watches(observed: &Observed) -> Vec<(String, Option<String>)> {
    let wanted = observed.wanted();
    let wanted = wanted.borrow();
    let place = |key: &WatchKey| key.place.namespace().to_owned();
    wanted.iter().map(|(key, to)| (place(key), to.account.as_deref().map(str::to_owned))).collect()
}

#[test]
fn a_kind_that_may_not_be_listed_everywhere_is_seen_where_needed() {
    let observed = Observed::new(HealthRules::new(Arc::default()));
    let kind = (String::new(), "ConfigMap".to_owned());
    let within = |namespace: &str| Place::Within(namespace.to_owned());
    need(&observed, "one", "shop", Some("system:serviceaccount:shop:emco-edge"));
    need(&observed, "two", "logs", None);
    assert_eq!(watches(&observed), [(String::new(), None)]);

    let refused = || Some(Trouble::new("Forbidden", "no", super::super::errors::Retry::Soon));
    observed.unlisted(&kind, &Place::Everywhere, refused());
    let account = Some("system:serviceaccount:shop:emco-edge".to_owned());
    let both = [(String::new(), None), ("logs".to_owned(), None), ("shop".to_owned(), account)];
    assert_eq!(watches(&observed), both);
    assert_eq!(observed.known(&kind, "shop"), Known::Nothing);

    observed.listed(&kind, &within("shop"), 5, Vec::new());
    observed.unlisted(&kind, &within("logs"), refused());
    assert_eq!(observed.known(&kind, "shop"), Known::All);
    assert!(matches!(observed.known(&kind, "logs"), Known::Refused(_)));
    // What becomes of the whole meanwhile changes nothing.
    observed.unlisted(&kind, &Place::Everywhere, None);
    assert_eq!(observed.known(&kind, "shop"), Known::All);

    need(&observed, "one", "shop", None);
    observed.want("two", &[], None);
    assert_eq!(watches(&observed), [(String::new(), None), ("shop".to_owned(), None)]);
    observed.listed(&kind, &Place::Everywhere, 9, Vec::new());
    assert_eq!(watches(&observed), [(String::new(), None)]);
    assert_eq!(observed.known(&kind, "logs"), Known::All);
}

#[test]
fn a_list_of_one_namespace_says_nothing_of_another() {
    let observed = Observed::new(HealthRules::new(Arc::default()));
    let kind = (String::new(), "ConfigMap".to_owned());
    let id = |namespace: &str| Identity {
        group: kind.0.clone(),
        kind: kind.1.clone(),
        namespace: namespace.to_owned(),
        name: "note".to_owned(),
    };
    let seen = |namespace: &str| Seen::of(&id(namespace), &object(&id(namespace), 3)).unwrap();
    need(&observed, "one", "shop", None);
    need(&observed, "two", "logs", None);
    observed.unlisted(
        &kind,
        &Place::Everywhere,
        Some(Trouble::new("Forbidden", "no", super::super::errors::Retry::Soon)),
    );
    for namespace in ["shop", "logs"] {
        let place = Place::Within(namespace.to_owned());
        observed.listed(&kind, &place, 4, vec![(id(namespace), seen(namespace))]);
    }
    observed.listed(&kind, &Place::Within("logs".to_owned()), 7, Vec::new());
    assert!(matches!(observed.look(&id("shop")), Look::There(_)));
    assert!(matches!(observed.look(&id("logs")), Look::Absent));
    assert!(matches!(observed.look(&id("other")), Look::Unknown));
}
