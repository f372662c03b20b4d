//! Decides what Helm decides about a test: whether it is meant, what makes room for it, when its object is deleted.

use emco_crds::names::{PREFIX, annotation, label};
use emco_engine::identity::kind_of;
use emco_engine::set::SetManifest;
use emco_engine::{marks, order};
use serde_json::{Map, Value};

use crate::cli::args::test::NameFilter;

const BEFORE: &str = "before-hook-creation";
const SUCCEEDED: &str = "hook-succeeded";
const FAILED: &str = "hook-failed";
/// Helm's annotation with the events of a hook.
const EVENTS: &str = "helm.sh/hook";

/// Whether the filters mean a test: of those that are named, if any are, without those that are excluded.
pub fn is_meant(filters: &[NameFilter], name: &str) -> bool {
    let named = |not: bool| filters.iter().any(|filter| filter.not == not && filter.name == name);
    let only = filters.iter().any(|filter| !filter.not);
    (!only || named(false)) && !named(true)
}

/// What an object of a test's name means for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Room {
    /// There is none.
    Free,
    /// It is of an earlier run, and goes.
    Clear {
        /// Its UID.
        uid: String,
    },
    /// It stays, and the test cannot be made.
    Taken(String),
}

/// Judges the object of a test's name. Only what an earlier run of this deployment's tests left is deleted.
pub fn room(live: Option<&Value>, test: &SetManifest, hash: &str) -> Room {
    let Some(live) = live else { return Room::Free };
    let labelled = |key: &str| live["metadata"]["labels"][key].as_str();
    if labelled(label::TEST) != Some(hash) && !is_hook_of(live, hash) {
        let whose = if labelled(label::OWNER) == Some(hash) {
            "is an object of the deployment itself"
        } else if labelled(label::TEST).is_some() || labelled(label::OWNER).is_some() {
            "is another deployment's"
        } else {
            "was not made by a test"
        };
        return Room::Taken(format!("the object of this name {whose}: rename one of them"));
    }
    if is_kept(test) {
        return Room::Taken("it is there already, and definitions are never deleted".to_owned());
    }
    match live["metadata"]["uid"].as_str() {
        Some(uid) if goes_before(test) => Room::Clear { uid: uid.to_owned() },
        _ => Room::Taken(format!(
            "an earlier run left it, and its delete policy ({}) keeps it: delete it, or add {BEFORE}",
            policies(test).join(", ")
        )),
    }
}

/// Whether it is what the operator made of a hook that is a test, too.
fn is_hook_of(live: &Value, hash: &str) -> bool {
    marks::owner_of(live) == Some(hash) && !marks::is_adopted(live) && is_test(events(live))
}

fn events(object: &Value) -> &str {
    object["metadata"]["annotations"][EVENTS].as_str().unwrap_or_default()
}

fn each(events: &str) -> impl Iterator<Item = &str> {
    events.split(',').map(str::trim).filter(|event| !event.is_empty())
}

fn is_test(events: &str) -> bool {
    each(events).any(|event| matches!(event, "test" | "test-success"))
}

fn policies(test: &SetManifest) -> &[String] {
    test.hook.as_ref().map_or(&[], |hook| &hook.delete_policies)
}

/// Whether what an earlier run left is deleted first: also where nothing is said.
fn goes_before(test: &SetManifest) -> bool {
    let policies = policies(test);
    policies.is_empty() || policies.iter().any(|policy| policy == BEFORE)
}

/// Helm never deletes these.
fn is_kept(test: &SetManifest) -> bool {
    order::is_crd(kind_of(&test.json))
}

/// Whether the object goes after the test.
pub fn goes_after(test: &SetManifest, passed: bool) -> bool {
    let wanted = if passed { SUCCEEDED } else { FAILED };
    !is_kept(test) && policies(test).iter().any(|policy| policy == wanted)
}

/// The object that is made. Without a label of its owner, the operator neither watches nor prunes it; but what is a hook of other
/// events, too, has that label, or the operator could not make room for that hook.
pub fn mark(test: &SetManifest, hash: &str, placed_by: &str) -> Value {
    let mut object = test.json.clone();
    let also_hook = each(events(&object)).any(|event| !is_test(event));
    // A chart may claim no owner.
    for map in ["labels", "annotations"] {
        if let Some(map) = object["metadata"][map].as_object_mut() {
            map.retain(|key, _| !key.starts_with(PREFIX));
        }
    }
    put(&mut object, "labels", label::TEST, hash);
    if also_hook {
        put(&mut object, "labels", label::OWNER, hash);
    }
    put(&mut object, "annotations", annotation::PLACED_BY, placed_by);
    object
}

fn put(object: &mut Value, map: &str, key: &str, value: &str) {
    let slot = &mut object["metadata"][map];
    if !slot.is_object() {
        *slot = Value::Object(Map::new());
    }
    slot[key] = Value::from(value);
}

#[cfg(test)]
mod tests {
    use emco_engine::set::{HookSpec, Phase, TEST};
    use serde_json::json;

    use super::*;

    fn test(events: &str, policies: &[&str]) -> SetManifest {
        SetManifest {
            digest: String::new(),
            phase: Phase::PostHook,
            hook: Some(HookSpec {
                events: vec![TEST.to_owned()],
                weight: 0,
                delete_policies: policies.iter().map(|&policy| policy.to_owned()).collect(),
            }),
            crd_folder: false,
            keep: false,
            take_existing: false,
            edited_by: Vec::new(),
            account: None,
            json: json!({"apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": "smoke", "annotations": {EVENTS: events}}}),
        }
    }

    fn live(labels: &Value, events: &str) -> Value {
        json!({"metadata": {"uid": "u", "labels": labels, "annotations": {EVENTS: events}}})
    }

    #[test]
    fn filters_take_what_they_name_and_leave_what_they_exclude() {
        let filter = |name: &str, not| NameFilter { name: name.to_owned(), not };
        assert!(is_meant(&[], "a"));
        let only = [filter("a", false), filter("b", false)];
        assert_eq!(["a", "b", "c"].map(|name| is_meant(&only, name)), [true, true, false]);
        let without = [filter("a", true)];
        assert_eq!(["a", "b"].map(|name| is_meant(&without, name)), [false, true]);
        assert!(!is_meant(&[filter("a", false), filter("a", true)], "a"));
    }

    #[test]
    fn only_what_an_earlier_run_left_makes_room() {
        let plain = test("test", &[]);
        let clear = Room::Clear { uid: "u".to_owned() };
        let is = |labels: &Value, events: &str| room(Some(&live(labels, events)), &plain, "mine");
        assert_eq!(room(None, &plain, "mine"), Room::Free);
        assert_eq!(is(&json!({label::TEST: "mine"}), "test"), clear);
        assert_eq!(is(&json!({label::OWNER: "mine"}), "post-install, test"), clear, "a hook that is a test");
        for (labels, events, says) in [
            (json!({}), "test", "was not made by a test"),
            (json!({label::OWNER: "mine"}), "post-install", "the deployment itself"),
            (json!({label::OWNER: "mine"}), "", "the deployment itself"),
            (json!({label::TEST: "other"}), "test", "another deployment's"),
            (json!({label::OWNER: "other"}), "test", "another deployment's"),
        ] {
            let Room::Taken(why) = is(&labels, events) else { panic!("{labels} makes room") };
            assert!(why.contains(says), "{labels}: {why}");
        }
        let mut adopted = live(&json!({label::OWNER: "mine"}), "test");
        adopted["metadata"]["annotations"][annotation::ADOPTED] = json!("true");
        assert!(matches!(room(Some(&adopted), &plain, "mine"), Room::Taken(_)), "it was there before");
    }

    #[test]
    fn delete_policies_are_helms() {
        let left = live(&json!({label::TEST: "mine"}), "test");
        for (policies, before, succeeded, failed) in [
            (&[][..], true, false, false),
            (&[BEFORE], true, false, false),
            (&[SUCCEEDED], false, true, false),
            (&[FAILED], false, false, true),
            (&[BEFORE, SUCCEEDED, FAILED], true, true, true),
        ] {
            let one = test("test", policies);
            assert_eq!(matches!(room(Some(&left), &one, "mine"), Room::Clear { .. }), before, "{policies:?}");
            assert_eq!(
                (goes_after(&one, true), goes_after(&one, false)),
                (succeeded, failed),
                "{policies:?}"
            );
        }
        let mut definition = test("test", &[BEFORE, SUCCEEDED]);
        definition.json["apiVersion"] = json!("apiextensions.k8s.io/v1");
        definition.json["kind"] = json!("CustomResourceDefinition");
        assert!(!goes_after(&definition, true), "definitions stay");
        assert!(matches!(room(Some(&left), &definition, "mine"), Room::Taken(_)));
    }

    #[test]
    fn an_object_of_a_test_is_none_of_the_operators_unless_it_is_its_hook_too() {
        let made = mark(&test("test", &[]), "mine", "shop/till");
        assert_eq!(made["metadata"]["labels"], json!({label::TEST: "mine"}));
        assert_eq!(made["metadata"]["annotations"][annotation::PLACED_BY], "shop/till");
        let made = mark(&test("post-upgrade,test", &[]), "mine", "shop/till");
        assert_eq!(made["metadata"]["labels"], json!({label::TEST: "mine", label::OWNER: "mine"}));
        let mut forged = test("test", &[]);
        forged.json["metadata"]["labels"] =
            json!({label::OWNER: "other", label::TEST: "other", "app": "web"});
        forged.json["metadata"]["annotations"][annotation::ADOPTED] = json!("true");
        let made = mark(&forged, "mine", "shop/till");
        assert_eq!(made["metadata"]["labels"], json!({label::TEST: "mine", "app": "web"}));
        assert_eq!(
            made["metadata"]["annotations"],
            json!({EVENTS: "test", annotation::PLACED_BY: "shop/till"})
        );
    }
}
