//! Says which token the operator renews, and when: from the Secret alone.

use emco_crds::names::{annotation, manager, object};
use emco_engine::identity::ClusterId;
use emco_engine::people::renew_at;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::object::meta;
use crate::remote::kubeconfig::claims::{self, Bound};
use crate::remote::kubeconfig::{key_of, token_of};

/// What API servers take for a `TokenRequest`, seconds.
const SHORTEST: i64 = 600;
const LONGEST: i64 = 1 << 32;

/// A token that the operator renews.
pub struct Renewable {
    /// The kubeconfig that it stands in.
    pub kubeconfig: Zeroizing<String>,
    /// The key of the Secret's data.
    pub key: String,
    /// The token.
    pub token: Zeroizing<String>,
    /// What it says of itself.
    pub bound: Bound,
    /// For how long the next one is asked for, seconds.
    pub seconds: i64,
}

/// The token in a Secret, where `kubectl emco cluster add` or `rotate` wrote it, nobody else did since, and it ends. `key` is the one that
/// the Cluster names.
pub fn renewable(secret: &Secret, key: Option<&str>) -> Option<Renewable> {
    let data = secret.data.as_ref()?;
    let key = key_of(data, key)?;
    if !is_of_cli(secret, key) {
        return None;
    }
    let kubeconfig = Zeroizing::new(String::from_utf8(data.get(key)?.0.clone()).ok()?);
    let token = token_of(kubeconfig.as_bytes())?;
    let bound = claims::bound(&token)?;
    if !is_of_edge(&bound) {
        return None;
    }
    let life = bound.ends.duration_since(bound.issued).as_secs();
    let asked = meta::annotation(secret, annotation::TOKEN_DURATION).and_then(seconds_of);
    let seconds = asked.unwrap_or(life).clamp(SHORTEST, LONGEST);
    Some(Renewable { kubeconfig, key: key.to_owned(), token, bound, seconds })
}

/// True where the operator renews the token in a Secret that says this of itself, when it reaches the cluster.
pub fn is_renewable(secret: &Secret, key: Option<&str>, bound: &Bound) -> bool {
    let key = secret.data.as_ref().and_then(|data| key_of(data, key));
    key.is_some_and(|key| is_of_cli(secret, key)) && is_of_edge(bound)
}

/// The time at which the token of a cluster is renewed.
pub fn at(id: &ClusterId, bound: &Bound) -> Timestamp {
    renew_at(bound.issued, bound.ends, spread(id))
}

/// True where it is the account's that the command line makes on clusters.
fn is_of_edge(bound: &Bound) -> bool {
    let (namespace, name) = &bound.account;
    namespace == object::EDGE_NAMESPACE && name == object::EDGE_ACCOUNT
}

/// Whether the command line made the Secret, and the kubeconfig in it is its own or the operator's: who else writes it, such as a GitOps
/// tool, would put the old token back.
fn is_of_cli(secret: &Secret, key: &str) -> bool {
    let entries = secret.metadata.managed_fields.as_deref().unwrap_or_default();
    let by = |entry: &ManagedFieldsEntry, name: &str| entry.manager.as_deref() == Some(name);
    let field = format!("/f:data/f:{key}");
    let mut writers = entries
        .iter()
        .filter(|entry| entry.fields_v1.as_ref().is_some_and(|fields| fields.0.pointer(&field).is_some()));
    entries.iter().any(|entry| by(entry, manager::CLI))
        && writers.all(|entry| by(entry, manager::CLI) || by(entry, manager::OPERATOR))
}

/// `31536000s`.
fn seconds_of(text: &str) -> Option<i64> {
    text.strip_suffix('s')?.parse().ok().filter(|seconds| *seconds > 0)
}

/// Clusters that were registered by one script are not renewed at one moment.
fn spread(id: &ClusterId) -> u64 {
    let digest: [u8; 32] = Sha256::digest(id.as_str()).into();
    let [a, b, c, d, ..] = digest;
    u64::from(u32::from_be_bytes([a, b, c, d]))
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    const BEGAN: i64 = 1_800_000_000;

    fn claims(life: i64) -> Value {
        json!({"iat": BEGAN, "exp": BEGAN + life, "sub": "system:serviceaccount:emco-system:emco-hub"})
    }

    fn kubeconfig(claims: &Value) -> String {
        let token = format!("head.{}.signature", URL_SAFE_NO_PAD.encode(claims.to_string()));
        json!({
            "current-context": "emco", "clusters": [{"name": "emco", "cluster": {"server": "https://192.0.2.1"}}],
            "users": [{"name": "emco", "user": {"token": token}}],
            "contexts": [{"name": "emco", "context": {"cluster": "emco", "user": "emco"}}],
        })
        .to_string()
    }

    /// Written by these managers.
    fn secret(text: &str, managers: &[&str], annotations: &Value) -> Secret {
        let fields = json!({"f:data": {"f:kubeconfig": {}}, "f:type": {}});
        let entries: Vec<Value> = managers
            .iter()
            .map(|manager| json!({"manager": manager, "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": fields}))
            .collect();
        serde_json::from_value(json!({
            "metadata": {"name": "a", "managedFields": entries, "annotations": annotations},
            "data": {"kubeconfig": STANDARD.encode(text)},
        }))
        .unwrap()
    }

    fn found(claims: &Value, managers: &[&str]) -> Option<Renewable> {
        let secret = secret(&kubeconfig(claims), managers, &json!({}));
        renewable(&secret, None)
    }

    #[test]
    fn only_what_the_command_line_wrote_is_renewed() {
        let day = claims(86_400);
        assert!(found(&day, &["emco-cli"]).is_some());
        assert!(found(&day, &["emco-cli", "emco-operator"]).is_some(), "it was renewed before");
        for others in
            [&["argocd-controller"][..], &["emco-cli", "argocd-controller"], &["emco-operator"], &[]]
        {
            assert!(found(&day, others).is_none(), "{others:?}");
        }
    }

    #[test]
    fn tokens_without_an_end_or_of_other_accounts_are_left_alone() {
        let with = |key: &str, value: Value| {
            let mut claims = claims(86_400);
            claims[key] = value;
            found(&claims, &["emco-cli"])
        };
        assert!(with("exp", Value::Null).is_none());
        assert!(with("iat", Value::Null).is_none());
        assert!(with("sub", json!("system:serviceaccount:emco-system:default")).is_none());
        let opaque = kubeconfig(&claims(86_400)).replace("head.", "head-");
        let opaque = secret(&opaque, &["emco-cli"], &json!({}));
        assert!(renewable(&opaque, None).is_none());
    }

    #[test]
    fn the_next_token_is_asked_for_as_long_as_the_first_one_was() {
        for (said, seconds) in [
            (json!({"emco.io/token-duration": "31536000s"}), 31_536_000),
            (json!({"emco.io/token-duration": "a year"}), 86_400),
            (json!({"emco.io/token-duration": "1s"}), 600),
            (json!({}), 86_400),
        ] {
            let secret = secret(&kubeconfig(&claims(86_400)), &["emco-cli"], &said);
            assert_eq!(renewable(&secret, None).unwrap().seconds, seconds, "{said}");
        }
    }

    proptest! {
        #[test]
        fn a_token_is_renewed_between_six_tenths_and_two_thirds_of_its_life(life in 600_i64..40_000_000, number: u32) {
            let secret = secret(&kubeconfig(&claims(life)), &["emco-cli"], &json!({}));
            let found = renewable(&secret, None).unwrap();
            let after = at(&ClusterId::new("acme", &format!("c{number}")), &found.bound).as_second() - BEGAN;
            prop_assert!(after >= life * 6 / 10 - 1 && after <= life * 2 / 3, "{after} of {life}");
        }
    }
}
