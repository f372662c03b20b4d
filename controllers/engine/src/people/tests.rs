use std::collections::BTreeMap;

use jiff::SignedDuration;
use proptest::prelude::*;

use super::*;
use crate::identity::ClusterId;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

fn wanted(spec: &str) -> Option<Wanted> {
    Wanted::of(&serde_yaml::from_str(spec).unwrap(), "team-a", "edge", "shop")
}

fn person() -> Person {
    wanted("{user: {name: ann, groups: [dev]}}").unwrap().person
}

fn endpoint() -> Endpoint {
    Endpoint {
        server: "https://192.0.2.7:6443".to_owned(),
        authority: "QVVUSE9SSVRZ".to_owned(),
        tls_server_name: Some("edge.example.com".to_owned()),
    }
}

fn certificate(cluster: &str) -> String {
    let proof = Proof::Certificate { certificate: "Q0VSVElGSUNBVEU=", key: "S0VZ" };
    let cluster = ClusterId::parse(cluster).unwrap();
    write(&cluster, &endpoint(), &person(), &proof, (at(0), at(86_400))).unwrap()
}

#[test]
fn a_person_has_the_names_of_project_and_cloud_before_the_own_one() {
    let Wanted { person, type_, duration } = wanted("{user: {name: ann, groups: [ops, dev, ops]}}").unwrap();
    assert_eq!(person.user, "emco:team-a:edge:ann");
    assert_eq!(person.groups, ["emco:team-a:edge:dev", "emco:team-a:edge:ops"]);
    assert_eq!((type_, duration), (CredentialType::Auto, Duration::from_hours(24)));
    // Whoever is called otherwise has another account: tokens of the one before end with it.
    assert_ne!(person.account, wanted("{user: {name: bob}}").unwrap().person.account);
    assert!(person.account.starts_with("emco-edge-user-") && person.account.len() == 23);
    assert_eq!(wanted("{}"), None);
    assert_eq!(wanted("{level: Admin, user: {name: ann}}"), None);
    let short = wanted("{user: {name: ann}, credentials: {duration: 1s}}").unwrap();
    assert_eq!(short.duration, Duration::from_mins(10));
}

#[test]
fn a_kubeconfig_of_a_certificate_has_all_that_kubectl_needs() {
    insta::assert_snapshot!(certificate("acme/berlin"));
}

#[test]
fn a_kubeconfig_of_a_token_names_no_group() {
    let cluster = ClusterId::new("acme", "berlin");
    let endpoint = Endpoint { tls_server_name: None, ..endpoint() };
    let text = write(&cluster, &endpoint, &person(), &Proof::Token("t0ken"), (at(0), at(600))).unwrap();
    insta::assert_snapshot!(text);
}

#[test]
fn a_merged_kubeconfig_has_all_contexts_and_takes_none_for_granted() {
    let [one, two] = ["acme/berlin", "acme/oslo"].map(certificate);
    insta::assert_snapshot!(merged([one.as_str(), two.as_str()]).unwrap());
    assert_eq!(merged([one.as_str()]).as_deref(), Some(one.as_str()));
    assert_eq!(merged([]), None);
}

#[test]
fn a_kubeconfig_says_whose_it_is_and_how_long_it_holds() {
    let stored = read(&certificate("acme/berlin")).unwrap();
    assert_eq!((stored.issued, stored.expires, stored.kind), (at(0), at(86_400), Kind::Certificate));
    assert_eq!((stored.user, stored.groups), (person().user, person().groups));
    assert_eq!(stored.endpoint, endpoint().digest());
    assert_eq!(read("apiVersion: v1"), None);
    assert_eq!(read("- %"), None);
}

#[test]
fn keys_are_read_as_they_are_written() {
    let cluster = ClusterId::new("acme", "berlin");
    assert_eq!(cluster_of(&key_of(&cluster)), Some(cluster));
    for other in ["kubeconfig", "a.b.c", ".b", "a."] {
        assert_eq!(cluster_of(other), None, "{other}");
    }
}

/// What is to be done about a certificate of a day, after so many seconds.
fn after(spec: &str, seconds: i64) -> Need {
    let stored = read(&certificate("acme/berlin"));
    need(&wanted(spec).unwrap(), stored.as_ref(), Some(&endpoint().digest()), at(seconds), 0)
}

#[test]
fn a_credential_is_renewed_in_time_or_issued_anew() {
    let ann = "{user: {name: ann, groups: [dev]}}";
    let hour = 3600;
    assert_eq!(after(ann, 0), Need::Nothing(at(51_840)), "six tenths of a day");
    assert_eq!(after(ann, 15 * hour), Need::Renew);
    assert_eq!(after(ann, 24 * hour), Need::Issue, "it has ended");
    assert_eq!(after("{user: {name: bob, groups: [dev]}}", 0), Need::Issue);
    assert_eq!(after("{user: {name: ann}}", 0), Need::Issue, "it names a group");
    let tokens = "{user: {name: ann, groups: [dev]}, credentials: {type: ServiceAccountToken}}";
    assert_eq!(after(tokens, 0), Need::Issue, "another kind");
    let stored = read(&certificate("acme/berlin"));
    let wanted = wanted(ann).unwrap();
    assert_eq!(need(&wanted, stored.as_ref(), Some("moved"), at(0), 0), Need::Issue);
    assert_eq!(need(&wanted, stored.as_ref(), None, at(0), 0), Need::Nothing(at(51_840)));
    assert_eq!(need(&wanted, None, None, at(0), 0), Need::Issue);
}

#[test]
fn a_cloud_that_changed_its_mind_about_the_kind_keeps_the_person() {
    let stored = read(&certificate("acme/berlin")).unwrap();
    let tokens =
        wanted("{user: {name: ann, groups: [dev]}, credentials: {type: ServiceAccountToken}}").unwrap();
    assert!(tokens.is_of_person(&stored) && !tokens.is_met_by(&stored));
    assert!(!wanted("{user: {name: bob, groups: [dev]}}").unwrap().is_of_person(&stored));
}

fn sizes(clusters: usize, bytes: usize) -> BTreeMap<ClusterId, usize> {
    (0..clusters).map(|number| (ClusterId::new("acme", &format!("c{number}")), bytes)).collect()
}

#[test]
fn secrets_are_divided_when_they_grow_and_joined_when_little_is_left() {
    assert_eq!(bits(0, &sizes(100, 4000)), 0);
    assert_eq!(bits(0, &sizes(1000, 4000)), 3);
    // What is divided stays so until there is little of it.
    assert_eq!(bits(3, &sizes(200, 4000)), 3);
    assert_eq!(bits(3, &sizes(40, 4000)), 0);
    assert_eq!(bits(0, &sizes(10_000, 4000)), 7);
}

#[test]
fn names_of_secrets_are_read_as_they_are_written() {
    for (slot, name) in [
        (Slot { number: 0, bits: 0 }, "edge-kubeconfig-0"),
        (Slot { number: 3, bits: 3 }, "edge-kubeconfig-3of8"),
    ] {
        assert_eq!(slot.secret("edge-kubeconfig"), name);
        assert_eq!(Slot::parse("edge-kubeconfig", name), Some(slot));
    }
    for other in [
        "edge-kubeconfig",
        "edge-kubeconfig-1",
        "edge-kubeconfig-00",
        "edge-kubeconfig-8of8",
        "edge-kubeconfig-1of3",
        "other-0",
    ] {
        assert_eq!(Slot::parse("edge-kubeconfig", other), None, "{other}");
    }
}

proptest! {
    #[test]
    fn a_credential_is_renewed_between_six_tenths_and_two_thirds_of_its_life(life in 15_i64..40_000_000, spread: u64) {
        let (issued, expires) = (at(0), at(life));
        let renewed = renew_at(issued, expires, spread).duration_since(issued);
        let whole = SignedDuration::from_secs(life);
        prop_assert!(renewed >= whole * 6 / 10 - SignedDuration::from_secs(1));
        prop_assert!(renewed <= whole * 2 / 3);
    }

    #[test]
    fn a_credential_that_ends_before_it_begins_is_asked_for_with_a_pause(life in -1000_i64..15, spread: u64) {
        let pause = renew_at(at(0), at(life), spread).duration_since(at(0));
        prop_assert!(pause >= SignedDuration::from_secs(9));
    }

    #[test]
    fn no_secret_has_more_than_it_may(clusters in 1_usize..3000, bytes in 1000_usize..12_000, now in 0_i32..8) {
        let sizes = sizes(clusters, bytes);
        let bits = bits(now, &sizes);
        let mut slots = BTreeMap::<Slot, usize>::new();
        for (cluster, bytes) in &sizes {
            *slots.entry(Slot::of(cluster, bits)).or_default() += bytes;
        }
        prop_assert!(slots.values().all(|bytes| *bytes <= MOST_BYTES));
    }
}
