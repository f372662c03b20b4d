//! Stored sets that cannot be read, or are kept for their lookups.

use super::*;

/// A snapshot after a change, where the content of cluster a cannot be read.
fn unreadable(case: &Case, before: &Running, part: Option<&str>, values: &Value) -> Snapshot {
    let mut running = before.clone();
    let digest = &before.assignment[&id("a")]["db"].set;
    let mut set = running.sets.remove(digest).unwrap().as_ref().clone();
    if let Some(kind) = part {
        set.manifests.retain(|manifest| manifest.identity().kind == kind);
        running.parts.insert(digest.clone(), Arc::new(set));
    }
    let same = values.as_object().is_some_and(serde_json::Map::is_empty);
    if same { case.clone() } else { with(case.clone(), values) }.snapshot(Some(running))
}

fn database_and_more() -> Case {
    let cm =
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: cm, labels: {size: \"{{ .Values.size }}\"}}}";
    case(&[("templates/secret.yaml", SECRET), ("templates/cm.yaml", cm)])
}

#[test]
fn a_change_waits_where_the_stored_password_cannot_be_read() {
    let case = database_and_more();
    let before = first(&case);
    for part in [None, Some("ConfigMap")] {
        let refusal = plan::plan(&unreadable(&case, &before, part, &json!({"size": 2}))).unwrap_err();
        assert_eq!((refusal.condition, refusal.reason, refusal.stalled), ("Rendered", "ContentLost", false));
        let words = "app db on acme/a: the chart looks up Secret db, and what is stored of the app there cannot be read";
        assert!(refusal.message.starts_with(words), "{}", refusal.message);
    }
    let plan = plan::plan(&unreadable(&case, &before, Some("Secret"), &json!({"size": 2}))).unwrap();
    assert_eq!(object(&plan, "a", "db")["data"]["password"], password(&before, "a"), "its pack can be read");
}

#[test]
fn a_set_that_was_kept_by_lookups_is_made_again_from_what_is_left() {
    let case = database_and_more();
    let (case, plan) = upgraded(&case, first(&case), &json!({"size": 2, "length": 20})).unwrap();
    let running = case.run(&plan);
    let again = plan::plan(&unreadable(&case, &running, Some("Secret"), &json!({"size": 2, "length": 20})));
    let again = again.unwrap();
    assert_eq!((again.change, again.sets), (None, running.sets.clone()));
    // Without the Secret nothing gives this password again: it is not drawn anew.
    let refusal =
        plan::plan(&unreadable(&case, &running, Some("ConfigMap"), &json!({"size": 2, "length": 20})));
    assert_eq!(refusal.unwrap_err().reason, "ContentLost");
}

#[test]
fn the_first_set_is_made_again_without_any_of_it() {
    let case = database_and_more();
    let running = first(&case);
    let again = plan::plan(&unreadable(&case, &running, None, &json!({}))).unwrap();
    assert_eq!((again.change, again.sets), (None, running.sets));
}

#[test]
fn what_an_app_has_where_it_leaves_is_found_when_it_comes_back() {
    let case = database();
    let before = first(&case);
    let mut away = case.clone();
    away.clusters.remove("acme/a");
    let gone = away.run(&plan::plan(&away.snapshot(Some(before.clone()))).unwrap());
    let back = with(case, &json!({"length": 20}));
    let place = (id("a"), "db".to_owned());
    let mut snapshot = back.snapshot(Some(gone));
    snapshot.installed.insert(place.clone());
    let set = before.sets[&before.assignment[&id("a")]["db"].set].clone();
    snapshot.leaving.insert(place.clone(), Some(Leaving { set, base: None }));
    let plan = plan::plan(&snapshot).unwrap();
    assert_eq!(password(&before, "a"), password(&back.run(&plan), "a"));
    snapshot.leaving.insert(place, None);
    assert_eq!(plan::plan(&snapshot).unwrap_err().reason, "ContentLost");
}

#[test]
fn words_that_quote_a_looked_up_secret_are_withheld() {
    let quoting = |what: &str| {
        let text = format!(
            "{{{{ $text := \"\" }}}}{{{{ if eq (int .Values.size) 2 }}}}\
             {{{{ fail (printf \"no %s\" ({what})) }}}}{{{{ end }}}}\n---\n\
             {{apiVersion: v1, kind: Secret, metadata: {{name: db}}, data: {{password: aHVudGVyMg==}}}}"
        );
        let case = printing(&text);
        let before = first(&case);
        upgraded(&case, before, &json!({"size": 2})).unwrap_err().message
    };
    let secret = "(lookup \"v1\" \"Secret\" \"shop\" \"db\").data.password";
    for what in [secret.to_owned(), format!("b64dec {secret}")] {
        let said = quoting(&what);
        assert!(said.contains("the words are withheld") && said.contains("all.yaml:1:"), "{said}");
        assert!(!said.contains("hunter2") && !said.contains("aHVudGVyMg"), "{said}");
    }
    let said = quoting(&format!("len {secret} | print"));
    assert!(said.ends_with("no 12"), "{said}");
}
