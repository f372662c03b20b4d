//! Orders the manifests of a set for applying and for removal: Helm's install order, hooks by weight.

use std::cmp::Reverse;

use emco_crds::names::object;
use emco_helm::render::INSTALL_ORDER;
use serde_json::Value;

use crate::identity::{Identity, kind_of};
use crate::set::{HookSpec, Phase, SetManifest};

/// Kinds of every API server that Helm's order does not know and that answer for other objects: they follow it, before what
/// they answer for.
const BEHIND: [&str; 2] = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];

/// Groups that every API server has itself; kinds of other groups come from custom resource
/// definitions or aggregation.
const BUILT_IN: [&str; 22] = [
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "extensions",
    "flowcontrol.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
];

/// When a manifest is applied. A hook of several events is in the earliest phase one of them names; which events run is
/// decided at the time, by what the cluster has.
pub fn phase_of(manifest: &Value, hook: Option<&HookSpec>) -> Phase {
    let Some(hook) = hook else {
        let kind = kind_of(manifest);
        return if is_namespace(kind) || is_crd(kind) { Phase::Foundation } else { Phase::Main };
    };
    let any = |events: &[&str]| hook.events.iter().any(|e| events.contains(&e.as_str()));
    if any(&["pre-install", "pre-upgrade", "pre-rollback"]) {
        Phase::PreHook
    } else if any(&["post-install", "post-upgrade", "post-rollback"]) {
        Phase::PostHook
    } else {
        Phase::DeleteHook
    }
}

/// Place of a kind in Helm's install order (groups play no part in it, as in Helm); kinds that are not known come last.
pub fn rank(kind: &str) -> usize {
    INSTALL_ORDER.iter().chain(&BEHIND).position(|known| *known == kind).unwrap_or(KNOWN)
}

/// The rank of all others.
const KNOWN: usize = INSTALL_ORDER.len() + BEHIND.len();

/// Sorts the manifests of one set by phase; hooks by weight, kind and name; the others by kind, unknown kinds by their
/// name. Equal ones keep their order: Helm's is that of the chart's files.
pub fn sort(manifests: &mut [SetManifest]) {
    manifests.sort_by_cached_key(|manifest| {
        let (_, kind) = kind_of(&manifest.json);
        let rank = rank(kind);
        let known = rank < KNOWN;
        let weight = manifest.hook.as_ref().map_or(0, |hook| hook.weight);
        let kind = if known { String::new() } else { kind.to_owned() };
        let name = if manifest.hook.is_some() { manifest.identity().name } else { String::new() };
        (manifest.phase, weight, rank, kind, name)
    });
}

/// Sorts identities the way they are removed, in groups: all of a group must be gone before the next begins.
///
/// Custom resources come first, because the controllers that take care of their end may be in the same set; then the rest
/// in reverse install order; namespaces last, but for the bindings by which the operator itself may see what a namespace holds.
/// Custom resource definitions are nowhere: they are released, not removed.
pub fn removal(identities: impl IntoIterator<Item = Identity>) -> Vec<Vec<Identity>> {
    let mut sorted: Vec<Identity> = identities.into_iter().filter(|id| !is_crd(id.kind())).collect();
    sorted.sort_by(|a, b| stage(a).cmp(&stage(b)).then_with(|| a.cmp(b)));
    sorted.dedup();
    let mut groups: Vec<Vec<Identity>> = Vec::new();
    for id in sorted {
        match groups.last_mut() {
            Some(group) if group.first().is_some_and(|first| stage(first) == stage(&id)) => group.push(id),
            _ => groups.push(vec![id]),
        }
    }
    groups
}

/// What is removed in one go, lower first.
fn stage(id: &Identity) -> (u8, Reverse<usize>) {
    if is_of_hub(id) {
        (3, Reverse(0))
    } else if is_namespace(id.kind()) {
        (2, Reverse(0))
    } else if is_custom(id) {
        (0, Reverse(0))
    } else {
        (1, Reverse(rank(&id.kind)))
    }
}

/// Whether it holds the pods of a namespace to something: it stays there as long as they may.
pub fn confines(id: &Identity) -> bool {
    matches!(id.kind(), ("", "ResourceQuota" | "LimitRange") | ("networking.k8s.io", "NetworkPolicy"))
}

/// Whether it is a binding of the operator itself in a namespace of a logical cloud: what else is made and removed there may need it.
pub fn is_of_hub(id: &Identity) -> bool {
    let names = [object::EDGE_TENANT_BINDING, object::EDGE_CEILING_BINDING];
    id.kind() == ("rbac.authorization.k8s.io", "RoleBinding") && names.contains(&id.name.as_str())
}

/// Whether its kind comes from a custom resource definition or another API server, judged by its group.
pub fn is_custom(id: &Identity) -> bool {
    !is_built_in(&id.group)
}

/// Whether every API server has the kinds of this group itself.
pub fn is_built_in(group: &str) -> bool {
    BUILT_IN.contains(&group)
}

/// Whether an object of this group and kind may be the owner of Pods, also by way of others: workloads, and whatever a controller of a
/// custom kind makes.
pub fn may_own_pods((group, kind): (&str, &str)) -> bool {
    matches!(group, "apps" | "batch") || (group, kind) == ("", "ReplicationController") || !is_built_in(group)
}

/// Whether group and kind are those of a Namespace.
pub fn is_namespace(kind: (&str, &str)) -> bool {
    kind == ("", "Namespace")
}

/// Whether group and kind are those of a custom resource definition.
pub fn is_crd(kind: (&str, &str)) -> bool {
    kind == ("apiextensions.k8s.io", "CustomResourceDefinition")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn manifest(api_version: &str, kind: &str, name: &str, hook: Option<(&str, i32)>) -> SetManifest {
        let json = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
        let hook = hook.map(|(events, weight)| HookSpec {
            events: events.split(',').map(str::to_owned).collect(),
            weight,
            delete_policies: Vec::new(),
        });
        SetManifest {
            digest: String::new(),
            phase: phase_of(&json, hook.as_ref()),
            hook,
            crd_folder: false,
            keep: false,
            take_existing: false,
            edited_by: Vec::new(),
            account: None,
            json,
        }
    }

    #[test]
    fn a_set_is_in_the_order_of_applying() {
        let mut set = vec![
            manifest("example.com/v1", "Zebra", "z", None),
            manifest("v1", "Pod", "after", Some(("post-upgrade", -5))),
            manifest("example.com/v1", "Ant", "a", None),
            manifest("apps/v1", "Deployment", "web", None),
            manifest("v1", "Service", "web", None),
            manifest("batch/v1", "Job", "b", Some(("pre-install,pre-upgrade", 1))),
            manifest("v1", "ConfigMap", "second", None),
            manifest("v1", "ConfigMap", "first", None),
            manifest("batch/v1", "Job", "bye", Some(("pre-delete", 0))),
            manifest("batch/v1", "Job", "a", Some(("pre-install", 1))),
            manifest("v1", "ServiceAccount", "z", Some(("pre-install", 1))),
            manifest("batch/v1", "Job", "c", Some(("pre-install", -1))),
            manifest("apiextensions.k8s.io/v1", "CustomResourceDefinition", "zebras", None),
            manifest("v1", "Namespace", "shop", None),
        ];
        sort(&mut set);
        let names: Vec<String> = set.iter().map(|m| format!("{:?} {}", m.phase, m.identity())).collect();
        assert_eq!(
            names,
            [
                "Foundation Namespace/shop",
                "Foundation apiextensions.k8s.io/CustomResourceDefinition/zebras",
                "PreHook batch/Job/c",
                "PreHook ServiceAccount/z",
                "PreHook batch/Job/a",
                "PreHook batch/Job/b",
                "Main ConfigMap/second",
                "Main ConfigMap/first",
                "Main Service/web",
                "Main apps/Deployment/web",
                "Main example.com/Ant/a",
                "Main example.com/Zebra/z",
                "PostHook Pod/after",
                "DeleteHook batch/Job/bye",
            ]
        );
    }

    /// The original deleted in install order: the namespace first, then everything in it.
    #[test]
    fn removal_goes_backwards_with_custom_resources_first_and_namespaces_last() {
        let id = |api: &str, kind: &str, name: &str| manifest(api, kind, name, None).identity();
        let groups = removal([
            id("v1", "Namespace", "shop"),
            id("apiextensions.k8s.io/v1", "CustomResourceDefinition", "zebras"),
            id("v1", "ConfigMap", "b"),
            id("v1", "ConfigMap", "a"),
            id("apps/v1", "Deployment", "web"),
            id("networking.k8s.io/v1", "Ingress", "web"),
            id("discovery.k8s.io/v1", "EndpointSlice", "e"),
            id("example.com/v1", "Zebra", "z"),
            id("example.com/v1", "Ant", "a"),
            id("v1", "ConfigMap", "a"),
        ]);
        let texts: Vec<Vec<String>> =
            groups.iter().map(|g| g.iter().map(ToString::to_string).collect()).collect();
        assert_eq!(
            texts,
            [
                vec!["example.com/Ant/a", "example.com/Zebra/z"],
                vec!["discovery.k8s.io/EndpointSlice/e"],
                vec!["networking.k8s.io/Ingress/web"],
                vec!["apps/Deployment/web"],
                vec!["ConfigMap/a", "ConfigMap/b"],
                vec!["Namespace/shop"],
            ]
        );
    }

    #[test]
    fn the_operators_own_bindings_go_after_the_namespace_that_they_show() {
        let id = |api: &str, kind: &str, name: &str| manifest(api, kind, name, None).identity();
        let rbac = "rbac.authorization.k8s.io/v1";
        let groups = removal([
            id(rbac, "RoleBinding", object::EDGE_TENANT_BINDING),
            id("v1", "Namespace", "shop"),
            id(rbac, "RoleBinding", "emco-edge"),
            id(rbac, "RoleBinding", object::EDGE_CEILING_BINDING),
        ]);
        let names: Vec<Vec<&str>> =
            groups.iter().map(|group| group.iter().map(|id| id.name.as_str()).collect()).collect();
        assert_eq!(names, [vec!["emco-edge"], vec!["shop"], vec!["emco:hub", "emco:hub-ceiling"]]);
    }

    #[test]
    fn a_hook_of_several_events_is_in_the_earliest_phase() {
        let phase = |events| manifest("batch/v1", "Job", "j", Some((events, 0))).phase;
        assert_eq!(phase("post-install,pre-upgrade"), Phase::PreHook);
        assert_eq!(phase("pre-delete,post-install"), Phase::PostHook);
        assert_eq!(phase("post-delete"), Phase::DeleteHook);
    }
}
