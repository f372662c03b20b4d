//! Targets that are picked by labels, from none to as many as an app may have; and templates that would name another object.

use emco_engine::identity::ClusterId;
use serde_json::{Value, json};

use super::{case, refusal, replicas, with};

/// A change of all ConfigMaps with these labels.
fn labelled(labels: &Value) -> Value {
    json!({"name": "text", "app": "web", "type": "JSONMerge",
        "target": {"apiVersion": "v1", "kind": "ConfigMap", "selector": {"matchLabels": labels}}, "jsonMerge": {"data": {"text": "new"}}})
}

#[test]
fn a_selector_of_nothing_is_a_missing_target_with_its_cure() {
    let refusal = refusal(&json!([labelled(&json!({"app": "nobody"}))]), &json!([]));
    assert_eq!((refusal.reason, refusal.stalled), ("TargetMissing", true), "{refusal}");
    for part in [
        "GenericActionIntent one, spec.actions[text]",
        "app web makes no ConfigMap with the labels of target.selector here (it makes page)",
        "or set onMissing: Ignore",
    ] {
        assert!(refusal.message.contains(part), "{refusal}");
    }
}

#[test]
fn five_thousand_objects_are_changed_and_a_thousand_fields_named() {
    let mut case = case(&json!([labelled(&json!({"app": "many"}))]), &json!([]));
    let many = "{{- range until 4998 }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c{{ . }}, labels: {app: many}}\ndata: {text: \
                plain}\n{{- end }}\n";
    case.charts.get_mut("web").unwrap().insert("templates/many.yaml".to_owned(), many.to_owned());
    let plan = case.plan().unwrap();
    let cell = &plan.assignment[&ClusterId::new("acme", "a")]["web"];
    let changed =
        plan.sets[&cell.set].manifests.iter().filter(|manifest| manifest.json["data"]["text"] == "new");
    assert_eq!(changed.count(), 4998);
    let provenance = cell.provenance.as_deref().unwrap();
    assert_eq!((provenance.objects.len(), provenance.more), (1000, 3998));
    assert_eq!(provenance.intents["GenericActionIntent one"], 4998);
    assert_eq!(plan.intents[0].objects, 3 * 4998);
}

#[test]
fn a_template_that_makes_another_name_is_refused_by_field() {
    let named = json!({"metadata": {"name": "web-{{cluster.name}}"}});
    let action = with(with(replicas("named", 1), "jsonMerge", named), "templating", json!("Handlebars"));
    let refusal = refusal(&json!([action]), &json!([]));
    assert_eq!(refusal.reason, "PatchFailed", "{refusal}");
    for part in [
        "app web on acme/a",
        "spec.actions[named]",
        "Deployment/shop/shop-web",
        "the patch changes metadata.name",
    ] {
        assert!(refusal.message.contains(part), "{refusal}");
    }
}

#[test]
fn a_template_in_a_patch_names_path_line_and_variable() {
    let operations = json!([{"op": "add", "path": "/metadata/annotations", "value": {"rack": "a\nb {{cluster.properties.rock}}"}}]);
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "{{release}}-web"});
    let action = json!({"name": "rack", "app": "web", "type": "JSONPatch", "templating": "Handlebars", "target": target, "jsonPatch": operations});
    let refusal = refusal(&json!([action]), &json!([]));
    assert_eq!(refusal.reason, "VariableUnknown", "{refusal}");
    for part in [
        "GenericActionIntent one, spec.actions[rack]",
        "jsonPatch[0].value.rack line 2",
        "cluster.properties.rock",
    ] {
        assert!(refusal.message.contains(part), "{refusal}");
    }
}
