//! Compares the text of a ConfigMap with what it should say, at its bounds too.

use super::*;

fn row(provider: &str, name: &str, labels: &[(&str, &str)]) -> Row {
    Row {
        provider: provider.to_owned(),
        name: name.to_owned(),
        level: Level::Standard,
        scheduling: Scheduling::Enabled,
        reachable: "True".to_owned(),
        version: String::new(),
        labels: labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        labels_left_out: false,
    }
}

#[test]
fn a_map_has_one_line_per_cluster_and_nothing_but_its_fields() {
    let cordoned = Row {
        level: Level::Admin,
        scheduling: Scheduling::Cordoned,
        reachable: "Unknown".to_owned(),
        version: "v1.36.3".to_owned(),
        ..row("acme", "oslo", &[])
    };
    let said = text([cordoned, row("acme", "berlin", &[("tier", "edge"), ("region", "eu")])]).unwrap();
    let wanted = r#"{"format":1,"leftOut":0,"clusters":[
{"labels":{"region":"eu","tier":"edge"},"level":"Standard","name":"berlin","provider":"acme","reachable":"True","scheduling":"Enabled"},
{"level":"Admin","name":"oslo","provider":"acme","reachable":"Unknown","scheduling":"Cordoned","version":"v1.36.3"}
]}
"#;
    assert_eq!(said, wanted);
}

#[test]
fn the_order_of_clusters_changes_nothing_and_reading_gives_them_back() {
    let names = ["b", "a", "ab", "a-b", "z"];
    let rows: Vec<Row> = names.iter().map(|name| row("acme", name, &[("n", name)])).collect();
    let first = text(rows.clone()).unwrap();
    for turn in 0..rows.len() {
        let mut turned = rows.clone();
        turned.rotate_left(turn);
        assert_eq!(text(turned.clone()).unwrap(), first);
        turned.reverse();
        assert_eq!(text(turned).unwrap(), first);
    }
    let document = read(&first).unwrap();
    let mut sorted = rows;
    sorted.sort_by_key(|row| row.name.clone());
    assert_eq!((document.left_out, document.clusters), (0, sorted));
}

#[test]
fn no_cluster_makes_no_map() {
    assert_eq!(text([]), None);
}

#[test]
fn clusters_beyond_the_bound_are_counted_and_not_written() {
    let value = "v".repeat(60);
    let labels: Vec<(String, &str)> = (0..20).map(|n| (format!("label-{n}"), value.as_str())).collect();
    let labels: Vec<(&str, &str)> = labels.iter().map(|(key, value)| (key.as_str(), *value)).collect();
    let said = text((0..1000).map(|n| row("acme", &format!("c{n:04}"), &labels))).unwrap();
    assert!(said.len() <= LARGEST, "{}", said.len());
    let document = read(&said).unwrap();
    assert!(document.left_out > 0 && document.clusters.len() > 300, "{}", document.left_out);
    assert_eq!(document.left_out + document.clusters.len(), 1000);
    assert_eq!(document.clusters[0].name, "c0000");
}

#[test]
fn a_cluster_with_too_many_labels_is_listed_without_them() {
    let value = "v".repeat(63);
    let keys: Vec<String> = (0..300).map(|n| format!("label-{n}")).collect();
    let labels: Vec<(&str, &str)> = keys.iter().map(|key| (key.as_str(), value.as_str())).collect();
    let document =
        read(&text([row("acme", "loud", &labels), row("acme", "plain", &[("a", "b")])]).unwrap()).unwrap();
    let [loud, plain] = &document.clusters[..] else { panic!("{document:?}") };
    assert!(loud.labels_left_out && loud.labels.is_empty());
    assert!(!plain.labels_left_out && plain.labels["a"] == "b");
}

#[test]
fn clusters_are_dealt_to_all_maps_and_each_name_leads_back() {
    let mut dealt = [0; SLOTS];
    for n in 0..10_000 {
        dealt[slot("acme", &format!("edge-{n}"))] += 1;
    }
    assert!(dealt.iter().all(|clusters| (500..750).contains(clusters)), "{dealt:?}");
    for slot in 0..SLOTS {
        assert_eq!(slot_of(&name(slot)), Some(slot));
    }
    for other in
        ["emco-clusters-16", "emco-clusters-03", "emco-clusters-+1", "emco-clusters-", "emco-clusters", "x"]
    {
        assert_eq!(slot_of(other), None, "{other}");
    }
}

#[test]
fn a_text_of_a_later_format_is_refused() {
    let said = read(r#"{"format":2,"clusters":{}}"#).unwrap_err();
    assert!(said.contains("format 2"), "{said}");
    assert!(read("[]").is_err());
    let more = r#"{"format":1,"more":1,"clusters":[{"provider":"a","name":"b","level":"Standard","scheduling":"Enabled","reachable":"True","zone":"x"}]}"#;
    assert_eq!(read(more).unwrap().clusters, [row("a", "b", &[])]);
}
