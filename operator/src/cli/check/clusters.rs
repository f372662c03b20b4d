//! Checks that registered clusters are reached, and that their credentials last.

use emco_crds::Cluster;
use emco_crds::conditions::{Conditioned as _, types};
use kube::Api;
use kube::api::ListParams;

use super::{Finding, Level, cures};
use crate::cli::hub::{Hub, chain, is_forbidden};
use crate::cli::uninstall::{count, id};

const WHAT: &str = "clusters";
/// Clusters that are named.
const NAMED: usize = 10;

/// Looks at all Clusters of the hub.
pub async fn check(hub: &Hub) -> Vec<Finding> {
    match hub.try_list(Api::<Cluster>::all(hub.client.clone()), &ListParams::default()).await {
        Ok(all) => judged(&all),
        Err(error) if is_forbidden(&error) => {
            let message = "you may not list Clusters";
            let cure = "those of your project: kubectl emco clusters -n PROJECT";
            vec![Finding::bad(Level::Warn, WHAT, message, cure)]
        }
        Err(error) => {
            vec![Finding::bad(Level::Fail, WHAT, chain(&error), "helm install emco-crds charts/emco-crds")]
        }
    }
}

fn judged(all: &[Cluster]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (mut ready, mut ending, mut unrenewed) = (0, Vec::new(), Vec::new());
    for cluster in all {
        let said = |type_| cluster.status.as_ref().and_then(|status| status.condition(type_));
        match said(types::READY) {
            Some(condition) if condition.status == "True" => ready += 1,
            Some(condition) => findings.push(Finding::bad(
                Level::Fail,
                WHAT,
                format!("{}: {}: {}", id(cluster), condition.reason, condition.message),
                cures::cure("Cluster", &condition.reason).unwrap_or("see what the message says"),
            )),
            None => findings.push(Finding::bad(
                Level::Fail,
                WHAT,
                format!("{}: no operator has looked at it", id(cluster)),
                "see the line on the operator",
            )),
        }
        match said(types::CREDENTIALS_VALID).map(|condition| condition.reason.as_str()) {
            Some("EndSoon") => ending.push(id(cluster)),
            Some("RenewalRefused") => unrenewed.push(id(cluster)),
            _ => {}
        }
    }
    let more = findings.len().saturating_sub(NAMED);
    findings.truncate(NAMED);
    if more > 0 {
        let message = if more == 1 {
            "1 more is not reached".to_owned()
        } else {
            format!("{more} more are not reached")
        };
        findings.push(Finding::bad(Level::Fail, WHAT, message, "kubectl emco clusters"));
    }
    if let Some(id) = ending.first() {
        let message = format!("the credentials of {} end soon, first {id}", count(ending.len(), "cluster"));
        let cure = format!("kubectl emco cluster rotate {id} --context CONTEXT");
        findings.push(Finding::bad(Level::Warn, WHAT, message, cure));
    }
    if let Some(id) = unrenewed.first() {
        let many = count(unrenewed.len(), "cluster");
        let message = format!("the operator could not renew the credentials of {many}, first {id}");
        let cure = format!("kubectl emco cluster rotate {id} --context CONTEXT");
        findings.push(Finding::bad(Level::Warn, WHAT, message, cure));
    }
    if all.is_empty() {
        let cure = "kubectl emco cluster add PROVIDER/CLUSTER --context CONTEXT";
        findings.push(Finding::bad(Level::Warn, WHAT, "none is registered", cure));
    } else {
        findings.insert(0, Finding::ok(WHAT, format!("{ready} of {} are reached", all.len())));
    }
    findings
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cluster(name: &str, ready: &str, reason: &str, credentials: &str) -> Cluster {
        let condition = |type_: &str, status: &str, reason: &str| {
            json!({"type": type_, "status": status, "reason": reason, "message": "it is so",
                "lastTransitionTime": "2026-11-21T07:00:00Z"})
        };
        serde_json::from_value(json!({
            "apiVersion": "emco.io/v1alpha1", "kind": "Cluster",
            "metadata": {"name": name, "namespace": "acme"},
            "spec": {"access": {}},
            "status": {"id": format!("acme/{name}"), "conditions": [
                condition("Ready", ready, reason), condition("CredentialsValid", "True", credentials)]},
        }))
        .unwrap()
    }

    fn lines(all: &[Cluster]) -> Vec<(Level, String)> {
        judged(all).into_iter().map(|finding| (finding.level, finding.message)).collect()
    }

    #[test]
    fn a_hub_without_clusters_is_told_how_to_register_one() {
        let found = judged(&[]);
        assert_eq!((found[0].level, found[0].message.as_str()), (Level::Warn, "none is registered"));
        assert!(found[0].cure.as_deref().unwrap().starts_with("kubectl emco cluster add"));
    }

    #[test]
    fn of_many_unreached_clusters_ten_are_named_and_the_others_counted() {
        let lost = |number: usize| cluster(&format!("c{number}"), "False", "Timeout", "Accepted");
        let all: Vec<Cluster> =
            (0..12).map(lost).chain([cluster("up", "True", "Reachable", "Accepted")]).collect();
        let found = lines(&all);
        assert_eq!(found.len(), 1 + 10 + 1, "{found:?}");
        assert_eq!(found[0], (Level::Ok, "1 of 13 are reached".to_owned()));
        assert_eq!(found[1], (Level::Fail, "acme/c0: Timeout: it is so".to_owned()));
        assert_eq!(found[11], (Level::Fail, "2 more are not reached".to_owned()));
        assert_eq!(lines(&all[..11])[11].1, "1 more is not reached");
        assert_eq!(lines(&all[..10]).len(), 11);
    }

    #[test]
    fn credentials_that_end_soon_are_a_warning_with_the_first_cluster() {
        let ending = |name: &str| cluster(name, "True", "Reachable", "EndSoon");
        let found = judged(&[ending("a"), ending("b")]);
        assert_eq!(found[1].level, Level::Warn);
        assert_eq!(found[1].message, "the credentials of 2 clusters end soon, first acme/a");
        assert_eq!(found[1].cure.as_deref(), Some("kubectl emco cluster rotate acme/a --context CONTEXT"));
    }

    #[test]
    fn credentials_that_could_not_be_renewed_are_a_warning() {
        let found = judged(&[cluster("a", "True", "Reachable", "RenewalRefused")]);
        assert_eq!(found[1].level, Level::Warn);
        assert_eq!(
            found[1].message,
            "the operator could not renew the credentials of 1 cluster, first acme/a"
        );
    }

    #[test]
    fn a_cluster_that_nobody_looked_at_is_not_reached() {
        let mut unseen = cluster("a", "True", "Reachable", "Accepted");
        unseen.status = None;
        assert_eq!(lines(&[unseen])[1], (Level::Fail, "acme/a: no operator has looked at it".to_owned()));
    }
}
