//! Actions that cannot be carried out: what is said of each.

use serde_json::json;

use super::{WEB, banner, case, on, plan, refusal, replicas, with};

#[test]
fn a_patch_whose_target_is_missing_is_refused_unless_it_may_be() {
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "wbe"});
    let action = with(replicas("few", 1), "target", target);
    let refusal = refusal(&json!([action]), &json!([]));
    assert_eq!((refusal.condition, refusal.reason, refusal.stalled), ("Rendered", "TargetMissing", true));
    assert_eq!(
        refusal.message,
        "app web on acme/a: GenericActionIntent one, spec.actions[few]: app web makes no Deployment wbe here (it makes shop-web): change target, \
         say on which clusters it is there with allow and deny, or set onMissing: Ignore"
    );
    let plan = plan(&json!([with(action, "onMissing", json!("Ignore"))]));
    assert_eq!(on(&plan, "acme/a", "web")[WEB]["spec"]["replicas"], 2);
}

#[test]
fn two_intents_that_contradict_each_other_are_a_named_conflict() {
    for first in [1, 2] {
        let conflict = refusal(&json!([replicas("few", first)]), &json!([replicas("many", 5)]));
        assert_eq!(conflict.reason, "EditConflict", "also where the first sets what is there already");
        for part in [
            "/spec/replicas",
            "GenericActionIntent one, spec.actions[few]",
            "GenericActionIntent two, spec.actions[many]",
        ] {
            assert!(conflict.message.contains(part), "{conflict}");
        }
    }
    let agreed = case(&json!([replicas("few", 1)]), &json!([replicas("few-too", 1)])).plan().unwrap();
    assert_eq!(on(&agreed, "acme/a", "web")[WEB]["spec"]["replicas"], 1);
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "{{release}}-web"});
    let delete = json!({"name": "none", "app": "web", "type": "Delete", "target": target});
    let conflict = refusal(&json!([replicas("few", 1)]), &json!([delete]));
    assert_eq!(conflict.reason, "EditConflict", "{conflict}");
}

#[test]
fn a_patch_that_changes_what_names_an_object_is_refused() {
    for (patch, field) in [
        (json!({"metadata": {"name": "other"}}), "metadata.name"),
        (json!({"metadata": {"namespace": "kube-system"}}), "metadata.namespace"),
        (json!({"kind": "StatefulSet"}), "kind"),
        (json!({"apiVersion": "extensions/v1beta1"}), "apiVersion"),
    ] {
        let refusal = refusal(&json!([with(replicas("x", 1), "jsonMerge", patch)]), &json!([]));
        assert_eq!(refusal.reason, "PatchFailed", "{refusal}");
        assert!(refusal.message.contains(&format!("the patch changes {field}")), "{refusal}");
    }
}

#[test]
fn what_an_action_adds_keeps_to_the_level_of_the_cloud() {
    let inline = |namespace: &str| {
        let metadata = json!({"name": "banner", "namespace": namespace});
        json!([with(
            banner(),
            "add",
            json!({"inline": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}})
        )])
    };
    let mut outside = case(&inline("kube-system"), &json!([]));
    outside.level = Some("Standard".to_owned());
    let refusal = outside.plan().unwrap_err();
    assert_eq!(refusal.reason, "NotAllowedByLevel", "{refusal}");
    let mut inside = case(&inline("shop"), &json!([]));
    inside.level = Some("Standard".to_owned());
    inside.plan().unwrap();
}

#[test]
fn what_the_chart_makes_already_is_not_added() {
    let inline = json!({"inline": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "page"}}});
    let refusal = refusal(&json!([with(banner(), "add", inline)]), &json!([]));
    assert_eq!(refusal.reason, "DuplicateResource");
    assert!(refusal.message.contains("GenericActionIntent one, spec.actions[banner]"), "{refusal}");
}

#[test]
fn a_resource_of_a_secret_is_a_secret_and_is_never_quoted() {
    let from = json!([{"name": "login", "app": "web", "type": "Add", "add": {"from": {"kind": "Secret", "name": "login", "key": "k"}}}]);
    let of = |text: &str| {
        let mut case = case(&from, &json!([]));
        case.sources.insert("Secret/login/k".to_owned(), text.to_owned());
        case.plan()
    };
    let secret = "{apiVersion: v1, kind: Secret, metadata: {name: login}, stringData: {password: hidden}}";
    assert_eq!(on(&of(secret).unwrap(), "acme/a", "web")["Secret/login"]["data"]["password"], "aGlkZGVu");
    for text in [
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: login}, data: {password: hidden}}",
        "hidden: [",
        "hidden",
        "{kind: hidden}",
    ] {
        let refusal = of(text).unwrap_err();
        assert_eq!(refusal.reason, "IntentInvalid", "{refusal}");
        assert!(!refusal.message.contains("hidden"), "{refusal}");
    }
    let missing = refusal(&from, &json!([]));
    assert_eq!((missing.reason, missing.stalled), ("SecretNotFound", false), "{missing}");
}

#[test]
fn what_is_wrong_with_an_action_is_said_with_intent_and_field() {
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "x"}});
    let unknown = json!({"inline": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"t": "a\n{{cluster.rack}}"}}});
    let custom = json!({"apiVersion": "example.com/v1", "kind": "Route", "name": "x"});
    let strategic = json!({"name": "x", "app": "web", "type": "StrategicMerge", "target": custom, "strategicMerge": {"spec": {}}});
    for (action, reason, parts) in [
        (
            with(banner(), "add", json!({"inline": crd})),
            "IntentInvalid",
            ["spec.actions[banner].add", "belongs to everybody"],
        ),
        (
            with(banner(), "add", json!({"inline": {"kind": "X"}})),
            "IntentInvalid",
            ["spec.actions[banner].add", "apiVersion"],
        ),
        (
            with(banner(), "add", unknown),
            "VariableUnknown",
            ["spec.actions[banner]: add.data.t line 2", "{{cluster.rack}}"],
        ),
        (
            with(banner(), "app", json!("wbe")),
            "AppNotFound",
            ["spec.actions[banner] names app wbe", "it has db, web"],
        ),
        (strategic, "IntentInvalid", ["spec.actions[x].strategicMerge", ""]),
    ] {
        let refusal = refusal(&json!([action]), &json!([]));
        assert_eq!(refusal.reason, reason, "{refusal}");
        assert!(refusal.message.contains("GenericActionIntent one"), "{refusal}");
        for part in parts {
            assert!(refusal.message.contains(part), "{part}: {refusal}");
        }
    }
}

#[test]
fn an_intent_that_is_missing_is_waited_for_and_an_unknown_kind_is_named() {
    let mut missing = case(&json!([]), &json!([]));
    missing.intents.remove("two");
    let refusal = missing.plan().unwrap_err();
    assert_eq!((refusal.reason, refusal.stalled), ("IntentNotFound", false));
    assert_eq!(
        refusal.message,
        "GenericActionIntent two does not exist in namespace team-a: create it, or change spec.intents"
    );
    for intent in [
        json!({"kind": "Net", "name": "two"}),
        json!({"kind": "GenericActionIntent", "group": "acme.example", "name": "two"}),
    ] {
        let mut unknown = case(&json!([]), &json!([]));
        unknown.dig["intents"] = json!([intent]);
        let refusal = unknown.plan().unwrap_err();
        assert_eq!((refusal.reason, refusal.stalled), ("IntentKindUnknown", true), "{refusal}");
        assert!(refusal.message.contains("/two]"), "{refusal}");
    }
}

#[test]
fn a_hook_stays_what_its_chart_made_of_it() {
    let metadata = json!({"annotations": {"helm.sh/hook": "pre-install"}});
    let refused =
        refusal(&json!([with(replicas("x", 1), "jsonMerge", json!({"metadata": metadata}))]), &json!([]));
    assert_eq!(refused.reason, "PatchFailed", "{refused}");
    let inline = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "annotations": {"helm.sh/hook": "test"}}});
    let refused = refusal(&json!([with(banner(), "add", json!({"inline": inline}))]), &json!([]));
    assert_eq!(refused.reason, "IntentInvalid", "{refused}");
}
