//! Checks the definitions: fresh files, names, columns, bounds, no traps.

#[path = "support/files.rs"]
mod support;

use std::fmt::Write as _;

use serde_json::Value;
use support::{files, root, schemas};

#[test]
fn config_crd_is_what_the_types_generate() {
    let folder = root().join("config/crd");
    let stored = files(&folder);
    let made = emco_crds::crds::files().unwrap();
    assert_eq!(
        stored.len(),
        made.len(),
        "config/crd has other files than the types make: run `make generate`"
    );
    for (name, text) in made {
        let stored = &stored[name.trim_end_matches(".yaml")];
        assert!(*stored == text, "config/crd/{name} is not what the types make: run `make generate`");
    }
}

/// Kind, plural, short name, scope, category, selectable fields, columns (those of `-o wide` after a bar).
const KINDS: &str = "
ClusterProvider clusterproviders cprov Cluster emco - Namespace,Clusters,Ready,Reason,Age|Message
GitTarget gittargets gitt Namespaced emco - URL,Branch,Clusters,Ready,Reason,Age|Commit,Message
Cluster clusters ecl Namespaced emco .spec.scheduling Provider,Ready,Reason,Version,Nodes,Age|Uses,Message
Project projects eproj Cluster emco - Namespace,Approval,Ready,Reason,Age|Message
LogicalCloud logicalclouds lc Namespaced emco - Level,Namespace,Clusters,Ready,Reason,Age|Message
CompositeApp compositeapps capp Namespaced emco - Version,Apps,Ready,Reason,Age|Uses,Message
CompositeProfile compositeprofiles cprof Namespaced emco - Ready,Reason,Uses,Age|Message
GenericActionIntent genericactionintents gai Namespaced emco - Ready,Reason,Uses,Age|Message
HardwareIntent hardwareintents hwi Namespaced emco - Ready,Reason,Uses,Age|Message
TrafficGroupIntent trafficgroupintents tgi Namespaced emco - Ready,Reason,Uses,Age|Message
DeploymentIntentGroup deploymentintentgroups dig Namespaced emco .status.state State,Ready,Reason,Clusters,Rev,Pending,Age|App,Cloud,Message
DeploymentApproval deploymentapprovals dappr Namespaced emco .spec.deploymentIntentGroupRef.name Group,Decision,State,Reason,By,Age|Message
DeploymentView deploymentviews dview Namespaced emco-generated - Group,What,State,Age|Message
AppContext appcontexts actx Namespaced emco-generated - Owner,Rev,Cause,Outcome,Reason,Deleted,Age|
SyncShard syncshards shard Namespaced emco-generated - Owner,Slot,Clusters,Failed,Unreachable,Reason,Deleted,Age|Message
";

#[test]
fn kinds_have_the_names_and_columns_people_learn() {
    let mut lines = String::from("\n");
    for crd in emco_crds::all() {
        let (names, version) = (&crd.spec.names, &crd.spec.versions[0]);
        let columns = |wide: bool| {
            let columns = version.additional_printer_columns.iter().flatten();
            columns
                .filter(|c| (c.priority.unwrap_or(0) > 0) == wide)
                .map(|c| c.name.clone())
                .collect::<Vec<_>>()
                .join(",")
        };
        let selectable: Vec<_> =
            version.selectable_fields.iter().flatten().map(|f| f.json_path.clone()).collect();
        let selectable = if selectable.is_empty() { "-".to_owned() } else { selectable.join(",") };
        writeln!(
            lines,
            "{} {} {} {} {} {selectable} {}|{}",
            names.kind,
            names.plural,
            names.short_names.clone().unwrap_or_default().join(","),
            crd.spec.scope,
            names.categories.clone().unwrap_or_default().join(","),
            columns(false),
            columns(true),
        )
        .unwrap();
        assert_eq!((crd.spec.group.as_str(), version.name.as_str()), ("emco.io", "v1alpha1"));
        assert!(
            version.subresources.as_ref().is_some_and(|s| s.status.is_some()),
            "{}: no status",
            names.kind
        );
    }
    assert_eq!(lines, KINDS);
}

fn walk(schema: &Value, at: &str, in_list: bool, visit: &mut impl FnMut(&Value, &str, bool)) {
    visit(schema, at, in_list);
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        walk(property, &format!("{at}.{name}"), in_list, visit);
    }
    if schema["items"].is_object() {
        walk(&schema["items"], &format!("{at}[]"), true, visit);
    }
    if schema["additionalProperties"].is_object() {
        walk(&schema["additionalProperties"], &format!("{at}{{}}"), in_list, visit);
    }
}

fn complaints(check: impl Fn(&Value, &str, bool) -> Option<&'static str>) -> Vec<String> {
    let mut found = Vec::new();
    for (kind, schema) in schemas() {
        walk(&schema, &kind, false, &mut |schema, at, in_list| {
            if let Some(complaint) = check(schema, at, in_list) {
                found.push(format!("{at}: {complaint}"));
            }
        });
    }
    found
}

/// An object without bounds makes CEL rules too dear and lets one tenant fill the store.
#[test]
fn everything_is_bounded() {
    let found = complaints(|schema, _, _| match schema["type"].as_str() {
        Some("string")
            if schema["maxLength"].is_null()
                && schema["enum"].is_null()
                && schema["format"] != "date-time" =>
        {
            Some("a text without maxLength")
        }
        Some("array") if schema["maxItems"].is_null() => Some("a list without maxItems"),
        Some("object") if schema["additionalProperties"].is_object() && schema["maxProperties"].is_null() => {
            Some("a map without maxProperties")
        }
        _ => None,
    });
    assert_eq!(found, Vec::<String>::new());
}

/// GitOps tools report a default inside a list item as a difference for ever.
#[test]
fn list_items_have_no_defaults() {
    let found = complaints(|schema, at, in_list| {
        (in_list && !schema["default"].is_null() && at.contains(".spec"))
            .then_some("a default inside a list item")
    });
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn schemas_have_none_of_the_known_traps() {
    let found = complaints(|schema, at, _| {
        let name = at.rsplit('.').next().unwrap_or_default();
        if ["n", "y", "on", "off", "yes", "no"].contains(&name) {
            return Some("kubectl reads this bare key as a boolean");
        }
        let is_any = schema["x-kubernetes-preserve-unknown-fields"] == true;
        if schema["type"].is_null() && schema["x-kubernetes-int-or-string"] != true && !is_any {
            return Some("no type: the API server refuses the definition");
        }
        if schema["format"].as_str().is_some_and(|f| f.starts_with("uint")) {
            return Some("an unsigned format: a warning at every installation");
        }
        if schema["type"] == "array" && schema["x-kubernetes-list-type"].is_null() {
            return Some("a list that does not say how it is merged");
        }
        let required =
            |name: &String| schema["required"].as_array().is_some_and(|r| r.iter().any(|r| r == name));
        let mut properties = schema["properties"].as_object().into_iter().flatten();
        if properties.any(|(name, p)| required(name) && (p["nullable"] == true || !p["default"].is_null())) {
            return Some("a field that is optional in Rust, but required here");
        }
        if schema["default"].as_object().is_some_and(serde_json::Map::is_empty) {
            return Some("a default {} that the rules inside may refuse: spell it out");
        }
        None
    });
    assert_eq!(found, Vec::<String>::new());
}

/// The annotation of a client-side `kubectl apply` holds the whole definition and may have 262,144 bytes.
#[test]
fn definitions_fit_into_a_client_side_apply() {
    for crd in emco_crds::all() {
        let bytes = serde_json::to_vec(&crd).unwrap().len();
        assert!(bytes < 200_000, "{}: {bytes} bytes", crd.spec.names.kind);
    }
}

/// Each address is looked at by a rule, for each client of each server: more than these would be refused by the API server as too dear.
#[test]
fn servers_clients_and_addresses_of_a_traffic_intent_are_few() {
    let schemas = schemas();
    let servers = "/properties/spec/properties/servers";
    let clients = format!("{servers}/items/properties/clients");
    let cidrs = format!("{clients}/items/properties/cidrs");
    let most = |list: &str| schemas["TrafficGroupIntent"].pointer(&format!("{list}/maxItems")).cloned();
    assert_eq!([servers, &clients, &cidrs].map(most), [Some(32.into()), Some(16.into()), Some(256.into())]);
}
