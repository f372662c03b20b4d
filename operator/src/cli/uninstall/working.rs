//! Judges by the Leases of all namespaces whether EMCO can be released without an operator at work.

use emco_crds::names::object;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};

use super::Inventory;
use crate::cli::hub::Hub;
use crate::cli::pulse::{self, Life, Pulse};

/// Says why nothing may be released: an operator may work that no Lease of the named namespace shows. A Lease that is not there is no proof
/// that nobody works, for the namespace may be the wrong one.
pub async fn refusal(hub: &Hub, there: &Inventory) -> anyhow::Result<Option<String>> {
    let params = ListParams::default().fields(&format!("metadata.name={}", object::LEASE));
    let leases = Api::<Lease>::all(hub.client.clone());
    let leases = hub.list(leases, &params, "leases", None).await?;
    let ahead = pulse::read(hub).await.ahead;
    let now = Timestamp::now().checked_add(ahead).unwrap_or_else(|_| Timestamp::now());
    Ok(judge(&leases, &hub.operator_namespace, there.is_empty(), now))
}

fn judge(leases: &[Lease], namespace: &str, is_empty: bool, now: Timestamp) -> Option<String> {
    let name = object::LEASE;
    let of = |lease: &Lease| lease.namespace().unwrap_or_default();
    let (ours, others): (Vec<&Lease>, Vec<&Lease>) = leases.iter().partition(|lease| of(lease) == namespace);
    let alive = others.iter().find(|lease| Pulse::of(Some(**lease), now, "").operator == Life::Alive);
    if let Some(other) = alive.map(|lease| of(lease)) {
        return Some(format!(
            "an operator works in namespace {other}, whose Lease {name} is renewed, and --operator-namespace is {namespace}: run this again with \
             --operator-namespace {other}. Nothing was released"
        ));
    }
    if is_empty || !ours.is_empty() {
        return None;
    }
    let others: Vec<String> = others.iter().map(|lease| of(lease)).collect();
    Some(match others.first() {
        Some(first) => format!(
            "namespace {namespace} has no Lease {name}, so that nobody knows whether an operator works. Namespaces that have one: {}. Run this \
             again with --operator-namespace {first}. Nothing was released",
            others.join(", ")
        ),
        None => format!(
            "no namespace has a Lease {name}, so that nobody knows whether an operator works on the objects of EMCO here. Where none does, for its \
             namespace was deleted, say so by a Lease that nobody holds, and run this again: echo '{}' | kubectl create -n {namespace} -f -. \
             Nothing was released",
            serde_json::json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}})
        ),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: &str = "2026-11-28T12:00:10Z";

    /// Leases of these namespaces, renewed ten seconds ago.
    fn leases(of: &[(&str, i32)]) -> Vec<Lease> {
        let lease = |(namespace, seconds): &(&str, i32)| {
            let spec = json!({"holderIdentity": "a", "renewTime": "2026-11-28T12:00:00.000000Z", "leaseDurationSeconds": seconds});
            let metadata = json!({"name": "emco-operator", "namespace": namespace});
            serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
        };
        of.iter().map(lease).collect()
    }

    fn said(of: &[(&str, i32)], is_empty: bool) -> Option<String> {
        judge(&leases(of), "no-such", is_empty, NOW.parse().unwrap())
    }

    #[test]
    fn a_lease_elsewhere_is_named_whether_it_is_renewed_or_not() {
        for (seconds, says) in [(13, "works in namespace emco-system"), (5, "that have one: emco-system.")] {
            let said = said(&[("emco-system", seconds)], false).unwrap();
            assert!(said.contains(says), "{said}");
            assert!(said.contains("--operator-namespace emco-system. Nothing was released"), "{said}");
        }
        // One of an installation before, in the namespace that is named.
        let said = said(&[("emco", 13), ("no-such", 5)], false).unwrap();
        assert!(said.contains("works in namespace emco,"), "{said}");
    }

    #[test]
    fn without_any_lease_objects_of_emco_are_not_released() {
        let said = said(&[], false).unwrap();
        assert!(said.contains("| kubectl create -n no-such -f -"), "{said}");
    }

    #[test]
    fn an_ended_lease_or_an_empty_hub_holds_nothing_up() {
        assert_eq!(said(&[("no-such", 5)], false), None);
        assert_eq!(said(&[("no-such", 5), ("emco", 5)], false), None);
        assert_eq!(said(&[], true), None);
    }
}
