//! Digests of what is carried out without a plan: a stored revision that is pinned, and the end of a deployment. An approval names them.

use std::collections::BTreeMap;

use serde_json::json;

use crate::canonical;
use crate::identity::{ClusterId, Combination};

/// Domains of digests.
const PIN: &str = "emco-pin/1\0";
const PINNED: &str = "emco-pinned/1\0";
const TERMINATE: &str = "emco-terminate/1\0";

/// Digests of a pin, of what people wrote and of all that clusters get: of a revision that has the digest `stored`, while `newest` is that
/// of the newest. With each new revision it is another pin.
pub fn pin(
    revision: i64,
    (stored, newest): (&str, &str),
    wanted: &BTreeMap<ClusterId, Combination>,
) -> (String, String) {
    let inputs = canonical::sha256(PIN, &json!([revision, stored, newest]));
    let clusters: BTreeMap<&str, BTreeMap<&str, &str>> = wanted
        .iter()
        .filter(|(_, apps)| !apps.is_empty())
        .map(|(id, apps)| {
            (id.as_str(), apps.iter().map(|(app, set)| (app.as_str(), set.0.as_str())).collect())
        })
        .collect();
    let plan = canonical::sha256(PINNED, &json!([inputs, clusters]));
    (inputs, plan)
}

/// Digest of the end of a deployment of this UID, while what runs has the digest `runs`.
pub fn terminate(uid: &str, runs: &str) -> String {
    canonical::sha256(TERMINATE, &json!([uid, runs]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::SetDigest;

    fn on(cluster: &str) -> BTreeMap<ClusterId, Combination> {
        let apps = [("web".to_owned(), SetDigest("s".to_owned()))].into();
        [(ClusterId::new("acme", cluster), apps)].into()
    }

    #[test]
    fn a_pin_is_another_one_with_each_revision_and_each_newest_one() {
        let first = pin(1, ("one", "two"), &on("a"));
        assert_eq!(pin(1, ("one", "two"), &on("a")), first);
        assert_ne!(pin(2, ("one", "two"), &on("a")).0, first.0);
        assert_ne!(pin(1, ("one", "three"), &on("a")).0, first.0);
        assert_ne!(pin(1, ("other", "two"), &on("a")).0, first.0);
        let elsewhere = pin(1, ("one", "two"), &on("b"));
        assert_eq!(elsewhere.0, first.0, "the inputs are the same");
        assert_ne!(elsewhere.1, first.1);
    }

    #[test]
    fn an_end_is_of_one_deployment_and_of_what_runs() {
        assert_ne!(terminate("a", "one"), terminate("b", "one"));
        assert_ne!(terminate("a", "one"), terminate("a", "two"));
    }
}
