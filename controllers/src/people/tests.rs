use super::*;

fn key() -> Key {
    ("team-a".to_owned(), "edge".to_owned())
}

fn wanted(name: &str) -> Wanted {
    let spec = serde_json::from_value(serde_json::json!({"user": {"name": name}})).unwrap();
    Wanted::of(&spec, "team-a", "edge", "shop").unwrap()
}

fn id(cluster: &str) -> ClusterId {
    ClusterId::new("acme", cluster)
}

fn issued() -> Issued {
    Issued { text: "kubeconfig".to_owned().into() }
}

fn refused() -> Refusal {
    let (pause, longest) = (Duration::from_mins(1), Duration::from_mins(30));
    Refusal { reason: Some("CSRNotSigned"), message: String::new(), pause, longest }
}

/// Clusters that brought something for a person.
fn taken(people: &People, name: &str) -> Option<Vec<ClusterId>> {
    people.take_issued(&key(), &wanted(name), 0).ok().map(|issued| issued.into_keys().collect())
}

#[tokio::test(start_paused = true)]
async fn what_comes_together_is_taken_together_and_nobody_waits_long() {
    let people = People::default();
    let [one, two] = ["a", "b"].map(|cluster| people.begin(&key(), &id(cluster), &wanted("ann")).unwrap());
    assert_eq!(taken(&people, "ann"), Some(vec![]));
    people.end(&key(), &id("a"), one.number, Ok(issued()));
    assert_eq!(taken(&people, "ann"), None, "the other one may come any moment");
    tokio::time::sleep(GATHER).await;
    assert_eq!(taken(&people, "ann"), Some(vec![id("a")]));
    assert!(!people.is_asked(&key(), &id("a")) && people.is_asked(&key(), &id("b")));
    people.end(&key(), &id("b"), two.number, Ok(issued()));
    assert_eq!(taken(&people, "ann"), Some(vec![id("b")]));
    assert_eq!(people.wake.take(), Some(key()));
}

/// What is known of one Secret.
fn known(version: &str) -> Index {
    let kept = index::Kept {
        uid: "u".to_owned(),
        version: version.to_owned(),
        slot: None,
        entries: BTreeMap::new(),
        filled: true,
    };
    Index { secrets: BTreeMap::from([("edge-kubeconfig".to_owned(), kept)]), ..Index::default() }
}

#[test]
fn a_secret_that_somebody_else_changes_is_read_again() {
    let people = People::default();
    let changed = |version: &str| people.secret_changed(&key(), "edge-kubeconfig", Some(version));
    assert!(people.take_index(&key()).is_none());
    people.keep(&key(), known("9"));
    assert!(!changed("9") && !changed("8"), "as it was written, and told late");
    assert!(changed("10"));
    assert!(people.take_index(&key()).is_none());
}

#[test]
fn a_secret_that_changes_while_a_reconcile_is_at_work_is_read_again() {
    let people = People::default();
    let changed = |version: &str| people.secret_changed(&key(), "edge-kubeconfig", Some(version));
    assert!(people.take_index(&key()).is_none());
    assert!(!changed("9"));
    people.keep(&key(), known("9"));
    assert_eq!(people.wake.take(), None, "it was its own write");
    assert!(people.take_index(&key()).is_some());
    assert!(!changed("10"));
    people.keep(&key(), known("9"));
    assert_eq!(people.wake.take(), Some(key()));
    assert!(people.take_index(&key()).is_none());
}

#[tokio::test(start_paused = true)]
async fn what_was_issued_for_another_person_is_dropped() {
    let people = People::default();
    let first = people.begin(&key(), &id("a"), &wanted("ann")).unwrap();
    assert_eq!(taken(&people, "bob"), Some(vec![]));
    assert!(first.stop.is_cancelled());
    assert!(people.begin(&key(), &id("a"), &wanted("bob")).is_none(), "the first one ends before");
    people.end(&key(), &id("a"), first.number, Ok(issued()));
    assert_eq!(taken(&people, "bob"), Some(vec![]));
    // Also where it came before anybody looked.
    let late = people.begin(&key(), &id("a"), &wanted("ann")).unwrap();
    people.end(&key(), &id("a"), late.number, Ok(issued()));
    assert_eq!(taken(&people, "bob"), Some(vec![]));
    assert_eq!(taken(&people, "ann"), Some(vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_task_of_a_logical_cloud_that_was_forgotten_brings_nothing() {
    let people = People::default();
    let first = people.begin(&key(), &id("a"), &wanted("ann")).unwrap();
    people.forget(&key());
    let second = people.begin(&key(), &id("a"), &wanted("ann")).unwrap();
    people.end(&key(), &id("a"), first.number, Ok(issued()));
    assert_eq!(taken(&people, "ann"), Some(vec![]));
    people.end(&key(), &id("a"), second.number, Ok(issued()));
    assert_eq!(taken(&people, "ann"), Some(vec![id("a")]));
}

#[tokio::test(start_paused = true)]
async fn pauses_grow_until_the_longest_and_end_with_success_or_another_wish() {
    let people = People::default();
    let mut pauses = Vec::new();
    for _ in 0..7 {
        let begun = people.begin(&key(), &id("a"), &wanted("ann")).unwrap();
        people.end(&key(), &id("a"), begun.number, Err(refused()));
        assert_eq!(taken(&people, "ann"), Some(vec![]));
        pauses.push(people.tried(&key(), &id("a")).unwrap().not_before_ms / 60_000);
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
    let begun = people.begin(&key(), &id("a"), &wanted("ann")).unwrap();
    people.end(&key(), &id("a"), begun.number, Ok(issued()));
    assert_eq!(taken(&people, "ann"), Some(vec![id("a")]));
    assert!(people.tried(&key(), &id("a")).is_none());
    let begun = people.begin(&key(), &id("a"), &wanted("ann")).unwrap();
    people.end(&key(), &id("a"), begun.number, Err(refused()));
    assert_eq!(taken(&people, "ann"), Some(vec![]));
    assert_eq!(taken(&people, "bob"), Some(vec![]));
    assert!(people.tried(&key(), &id("a")).is_none());
}
