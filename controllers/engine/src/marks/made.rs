//! Proves of a namespace on a cluster that this installation made it for an owner: by the proof alone it is taken again once it was
//! released.

use emco_crds::names::annotation;
use serde_json::{Value, json};

use crate::canonical;

/// Domain of the proof; the number is the format.
const MADE: &str = "emco-made/1\0";

/// The proof that the namespace of this UID was made for an owner. Nobody writes it who does not have the installation's key; on another
/// namespace, or for another owner, it proves nothing. `tenant` is the UID of the owner's namespace on the hub: whoever is given that name
/// later is somebody else.
pub fn proof(key: &[u8; 32], uid: &str, owner_hash: &str, tenant: &str) -> String {
    canonical::digest_hex(key, MADE, &json!([uid, owner_hash, tenant]))
}

/// What a live object carries as its proof. Takes the object or a partial one with `metadata`.
pub fn proof_on(live: &Value) -> Option<&str> {
    live.get("metadata")?.get("annotations")?.get(annotation::MADE_FOR)?.as_str()
}

#[cfg(test)]
mod tests {
    use super::super::{mark, release_made_patch, release_patch};
    use super::*;

    const KEY: [u8; 32] = [1; 32];

    fn namespace() -> Value {
        let plain = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
            "name": "shop", "uid": "u", "resourceVersion": "7",
            "managedFields": [{"manager": "emco-hash"}, {"manager": "kubectl"}]}});
        mark(plain, "hash", "digest", "p/d")
    }

    fn released(mut live: Value) -> Value {
        let patch = release_made_patch(&live, "hash", &proof(&KEY, "u", "hash", "t")).unwrap();
        json_patch::patch(&mut live, &patch).unwrap();
        live
    }

    #[test]
    fn a_proof_is_of_all_that_it_names() {
        let all = [
            proof(&KEY, "u", "hash", "t"),
            proof(&[2; 32], "u", "hash", "t"),
            proof(&KEY, "v", "hash", "t"),
            proof(&KEY, "u", "other", "t"),
            proof(&KEY, "u", "hash", "s"),
            proof(&KEY, "uhash", "", "t"),
        ];
        let different: std::collections::BTreeSet<&String> = all.iter().collect();
        assert_eq!(different.len(), all.len());
        assert!(all.iter().all(|proof| proof.len() == 32));
    }

    #[test]
    fn a_released_namespace_carries_the_proof_and_no_other_mark() {
        let metadata =
            |live: &Value| (live["metadata"]["labels"].clone(), live["metadata"]["annotations"].clone());
        let proven = json!({"emco.io/made-for": proof(&KEY, "u", "hash", "t")});
        let live = released(namespace());
        assert_eq!(metadata(&live), (json!({}), proven.clone()));
        assert_eq!(live["metadata"]["managedFields"], json!([{"manager": "kubectl"}]));
        assert_eq!(release_made_patch(&live, "hash", "again"), None, "there is nothing of ours");
        // Others took our annotations off.
        let mut bare = namespace();
        bare["metadata"]["annotations"] = Value::Null;
        assert_eq!(metadata(&released(bare)), (json!({}), proven));
    }

    #[test]
    fn one_of_which_nobody_else_has_a_field_keeps_that_of_the_proof() {
        let mut ours = namespace();
        ours["metadata"]["managedFields"] = json!([{"manager": "emco-hash"}]);
        let live = released(ours);
        let entries = live["metadata"]["managedFields"].as_array().unwrap();
        assert_eq!(entries.len(), 1);
        let fields = json!({"f:metadata": {"f:annotations": {"f:emco.io/made-for": {}}}});
        assert_eq!((&entries[0]["manager"], &entries[0]["fieldsV1"]), (&json!("emco-release"), &fields));
    }

    #[test]
    fn one_that_was_taken_again_and_is_released_is_proven_again_or_not() {
        // An apply leaves what it does not name.
        let proven = proof(&KEY, "u", "hash", "t");
        let mut again = mark(released(namespace()), "hash", "digest", "p/d");
        again["metadata"]["annotations"][annotation::MADE_FOR] = json!(proven);
        assert_eq!(proof_on(&released(again.clone())), proof_on(&again));
        let mut left = again;
        let patch = release_patch(&left, "hash").unwrap();
        json_patch::patch(&mut left, &patch).unwrap();
        assert_eq!(proof_on(&left), None);
    }
}
