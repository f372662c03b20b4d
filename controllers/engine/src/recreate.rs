//! Decides whether an object whose change is refused, because a field cannot be changed, may be deleted and made again.

use serde_json::Value;

use crate::identity::Identity;
use crate::order;
use crate::set::{Phase, SetManifest};

mod fixed;

/// How API servers say that a field cannot be changed: most kinds, claims of volumes, Services, role bindings, `StatefulSets`, Pods.
const CANNOT_CHANGE: [&str; 9] = [
    "is immutable",
    "are immutable",
    "may not be changed",
    "may not change once set",
    "can not be unset",
    "can not be less than",
    "cannot change roleRef",
    "Forbidden: updates to",
    "Forbidden: pod updates may not change",
];

/// Where a `StatefulSet` says that its claims go with it.
const CLAIMS: &str = "/spec/persistentVolumeClaimRetentionPolicy/whenDeleted";

/// Whether an API server's sentence says that a field cannot be changed.
pub fn cannot_change(sentence: &str) -> bool {
    CANNOT_CHANGE.iter().any(|words| sentence.contains(words))
}

/// How an API server refuses a type that needs an address, of a Service that has none.
const NO_ADDRESS: &str = "may not be set to 'None' for";

/// Whether a sentence about this manifest says that a field cannot be changed. A Service keeps that it has no address where its
/// manifest does not say so any more, and is refused because of it.
pub fn is_fixed(manifest: &Value, sentence: &str) -> bool {
    let says = |pointer: &str| manifest.pointer(pointer).is_some();
    cannot_change(sentence)
        || sentence.contains(NO_ADDRESS) && !says("/spec/clusterIP") && !says("/spec/clusterIPs")
}

/// The first field that is refused for another reason than that it cannot be changed: the object would be refused anew, too.
/// `causes` are fields with what is said of them.
pub fn refused_besides<'a>(manifest: &Value, causes: &'a [(String, String)]) -> Option<&'a (String, String)> {
    causes.iter().find(|(_, cause)| !is_fixed(manifest, cause))
}

/// Why an object stays whose field cannot be changed and whose label others took off.
pub const UNMARKED: &str = "others took EMCO's label off the object, so it may be theirs";
/// Why an object stays that has our label alone.
pub const COPIED: &str = "EMCO has no field of the object, so others may have copied its label";

/// What is lost when an object is deleted and made again, beside what others wrote into it.
pub fn lost(id: &Identity) -> &'static str {
    match id.kind() {
        ("apps", "StatefulSet") => "its Pods end and start anew; the claims of its volumes stay",
        ("apps", "Deployment" | "DaemonSet" | "ReplicaSet") | ("", "ReplicationController") => {
            "its Pods end and start anew"
        }
        ("", "Pod") => "it ends and starts anew",
        ("batch", "Job") => "its Pods end, and it runs anew",
        ("batch", "CronJob") => "its Jobs end, and it does not know any more when it last ran",
        ("", "Service") => "it may get another address, and has none for a moment",
        ("", "ServiceAccount") => "tokens that it has end",
        ("", "Secret" | "ConfigMap") => "what others wrote into it",
        ("rbac.authorization.k8s.io", _) => "its rights are gone for a moment",
        _ => "its status, what others wrote into it, and objects that it owns",
    }
}

/// Why objects of a kind are never deleted to be made again; `None` where they may be.
pub fn kind_obstacle(id: &Identity) -> Option<String> {
    let lost = match id.kind() {
        ("", "PersistentVolumeClaim" | "PersistentVolume") => "its data",
        kind if order::is_namespace(kind) => "everything in it",
        kind if order::is_crd(kind) => "every object of its kind",
        _ => return None,
    };
    Some(format!("a {} is never made anew, for {lost} would be lost", id.kind))
}

/// Why this live object is not deleted to be made again; `None` where it may be. `stays`: it outlives its deployment.
pub fn obstacle(id: &Identity, live: &Value, stays: bool) -> Option<String> {
    if let Some(why) = kind_obstacle(id) {
        return Some(why);
    }
    if stays {
        return Some("an object that outlives its deployment is never deleted".to_owned());
    }
    let claims = live.pointer(CLAIMS).and_then(Value::as_str) == Some("Delete");
    (id.kind() == ("apps", "StatefulSet") && claims).then(|| {
        "its claims would go with it (persistentVolumeClaimRetentionPolicy.whenDeleted: Delete): set Retain first".to_owned()
    })
}

/// Says what is lost where `spec.sync.immutableFields: Recreate` deletes an object and makes it again, as far as its two manifests tell: a cluster
/// that is asked knows more.
pub fn foreseen(before: &SetManifest, now: &SetManifest) -> Option<&'static str> {
    let id = now.identity();
    let lasts = matches!(now.phase, Phase::Foundation | Phase::Main);
    let stays = [before, now].iter().any(|manifest| manifest.keep || manifest.crd_folder);
    (lasts && fixed::changes_fixed_field(id.kind(), &before.json, &now.json))
        .then(|| obstacle(&id, &before.json, stays))
        .and_then(|obstacle| obstacle.is_none().then(|| lost(&id)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn id(group: &str, kind: &str) -> Identity {
        Identity {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: "shop".to_owned(),
            name: "x".to_owned(),
        }
    }

    #[test]
    fn what_holds_data_or_others_is_never_made_anew() {
        for (group, kind, lost) in [
            ("", "PersistentVolumeClaim", Some("its data")),
            ("", "PersistentVolume", Some("its data")),
            ("", "Namespace", Some("everything in it")),
            ("apiextensions.k8s.io", "CustomResourceDefinition", Some("every object of its kind")),
            ("example.com", "Namespace", None),
            ("apps", "Deployment", None),
            ("batch", "Job", None),
            ("", "Service", None),
            ("storage.k8s.io", "StorageClass", None),
        ] {
            let said = obstacle(&id(group, kind), &json!({}), false);
            assert_eq!(said.is_some(), lost.is_some(), "{group}/{kind}: {said:?}");
            assert!(lost.is_none_or(|lost| said.unwrap().contains(lost)), "{group}/{kind}");
        }
    }

    #[test]
    fn what_is_lost_with_an_object_is_said_by_its_kind() {
        for (group, kind, says) in [
            ("apps", "StatefulSet", "claims of its volumes stay"),
            ("apps", "Deployment", "Pods end"),
            ("", "Service", "another address"),
            ("", "ConfigMap", "others wrote"),
            ("example.com", "Deployment", "objects that it owns"),
        ] {
            assert!(lost(&id(group, kind)).contains(says), "{group}/{kind}");
        }
    }

    #[test]
    fn an_object_that_outlives_its_deployment_is_not_deleted() {
        assert!(obstacle(&id("apps", "Deployment"), &json!({}), true).is_some());
    }

    #[test]
    fn a_stateful_set_that_takes_its_claims_along_is_not_deleted() {
        let with =
            |policy: &str| json!({"spec": {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": policy}}});
        let set = id("apps", "StatefulSet");
        assert!(obstacle(&set, &with("Delete"), false).unwrap().contains("Retain"));
        assert_eq!(obstacle(&set, &with("Retain"), false), None);
        assert_eq!(obstacle(&set, &json!({}), false), None);
        assert_eq!(obstacle(&id("apps", "Deployment"), &with("Delete"), false), None);
    }

    #[test]
    fn servers_say_in_many_words_that_a_field_cannot_be_changed() {
        for (sentence, fixed) in [
            ("Invalid value: (withheld): field is immutable", true),
            ("Forbidden: field is immutable when `immutable` is set", true),
            ("Forbidden: may not be changed in an update.", true),
            ("Invalid value: (withheld): may not change once set", true),
            ("Invalid value: (withheld): primary clusterIP can not be unset", true),
            ("Forbidden: field can not be less than status.capacity", true),
            ("Invalid value: (withheld): cannot change roleRef", true),
            ("Forbidden: updates to parameters are forbidden.", true),
            ("Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden", true),
            ("Invalid value: (withheld): Value is immutable", true),
            ("spec.volumes: Forbidden: volumes are immutable", true),
            ("image tags must be immutable: use digests", false),
            ("Required value", false),
            ("Invalid value: (withheld): must be less than 9", false),
        ] {
            assert_eq!(cannot_change(sentence), fixed, "{sentence}");
        }
    }

    #[test]
    fn a_field_that_is_wrong_besides_keeps_the_object() {
        let fixed = ("spec.selector", "Invalid value: (withheld): field is immutable");
        let wrong = ("spec.template.spec.containers", "Required value");
        assert_eq!(besides(&json!({}), &[fixed]), None);
        assert_eq!(besides(&json!({}), &[("data", "withheld")]).as_deref(), Some("data"), "nobody knows");
        assert_eq!(besides(&json!({}), &[fixed, wrong]).as_deref(), Some(wrong.0));
    }

    #[test]
    fn a_service_that_gets_an_address_is_fixed_unless_it_refuses_one() {
        let kept = (
            "spec.clusterIPs[0]",
            "Invalid value: (withheld): may not be set to 'None' for NodePort services",
        );
        assert_eq!(besides(&json!({"spec": {"type": "NodePort"}}), &[kept]), None);
        for wrong in [json!({"clusterIP": "None"}), json!({"clusterIPs": ["None"]})] {
            assert_eq!(besides(&json!({"spec": wrong}), &[kept]).as_deref(), Some(kept.0));
        }
    }

    fn besides(manifest: &Value, causes: &[(&str, &str)]) -> Option<String> {
        let causes: Vec<(String, String)> =
            causes.iter().map(|(field, cause)| ((*field).to_owned(), (*cause).to_owned())).collect();
        refused_besides(manifest, &causes).map(|(field, _)| field.clone())
    }
}
