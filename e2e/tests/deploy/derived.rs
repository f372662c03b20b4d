//! Deploys with nothing but rights that are derived from what is deployed, on real clusters.

use anyhow::{Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_crds::conditions::types;
use emco_e2e::operator::{deployed, says, wait};

use super::AT_WORK;
use super::tenant::Tenant;

const SPACE: &str = "derived";
/// Namespace on the clusters.
const THERE: &str = "derived-there";
const OWN: &str = ", permissions: [{name: own, derived: true}]";
const POLICY: &str = "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: shop-closed}, spec: {podSelector: {}}}";
/// What a chart gives its pods, its account has to hold; and a quota is nobody's to lift.
const ROLE: &str = "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: shop-reads}, \
                    rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}";
const GREEDY: &str = "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: shop-greedy}, \
                      rules: [{apiGroups: [''], resources: [resourcequotas], verbs: [delete]}]}";
const RANK: &str =
    "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: shop-rank}, value: 7}";

#[tokio::test]
async fn a_tenant_of_derived_rights_may_do_what_is_deployed_and_no_more() {
    let _working = AT_WORK.read().await;
    let tenant = Tenant::new(SPACE, "Standard").await.unwrap();
    let bed = tenant.bed;
    bed.explain(async {
        let policies = "networkpolicies.networking.k8s.io";
        // No request of the account was ever refused for a missing right.
        let refused = || -> Result<Vec<String>> {
            let mut all = Vec::new();
            for edge in ["a", "b"] {
                let events = bed.edge(edge).audit()?.into_iter();
                let ours = events.filter(|event| event.acting_as == tenant.account() && event.code == 403);
                all.extend(
                    ours.map(|event| format!("{edge}: {} {} {}", event.verb, event.resource, event.name)),
                );
            }
            Ok(all)
        };
        tenant.cloud(OWN).await?;
        tenant.ready().await?;
        tenant.may("create", "configmaps", THERE, false).await?;
        tenant.deploy("one", "").await?;
        deployed(bed, SPACE, "shop", 1).await?;
        for edge in ["a", "b"] {
            let names = tenant.written(edge, THERE)?;
            ensure!(names.contains("shop-note") && names.contains("shop-key"), "{edge}: {names:?}");
        }
        for (verb, resource, namespace, may) in [
            ("create", "configmaps", THERE, true),
            ("patch", "configmaps", THERE, true),
            ("delete", "secrets", THERE, true),
            // Neither what it does not do, nor what it does not have, nor where it is not.
            ("get", "secrets", THERE, false),
            ("list", "configmaps", THERE, false),
            ("update", "configmaps", THERE, false),
            ("create", "services", THERE, false),
            ("create", policies, THERE, false),
            ("create", "rolebindings.rbac.authorization.k8s.io", THERE, false),
            ("create", "configmaps", "default", false),
        ] {
            tenant.may(verb, resource, namespace, may).await?;
        }

        // A plan says what is gained, by a digest of its own, and gives nothing yet.
        let pending = async |say: &str, more: &str, gains: &[&str]| -> Result<String> {
            tenant.plan(say, more).await?;
            wait(bed, SPACE, "shop", |dig: &DeploymentIntentGroup| {
                let status = dig
                    .status
                    .as_ref()
                    .filter(|status| status.observed_generation == dig.metadata.generation);
                match status.and_then(|status| status.pending.as_ref()) {
                    Some(pending) if pending.gains == gains => Ok(pending.digest.clone()),
                    pending => Err(format!("{pending:?}")),
                }
            })
            .await
        };
        let plain = pending("two", "", &[]).await?;
        let more = pending("two", POLICY, &["create NetworkPolicies"]).await?;
        ensure!(plain != more, "{plain}");
        tenant.may("create", policies, THERE, false).await?;

        // An update that brings a kind has the right to it first, and what leaves takes it along.
        tenant.deploy("two", POLICY).await?;
        deployed(bed, SPACE, "shop", 2).await?;
        tenant.may("create", &format!("{policies}/shop-closed"), THERE, true).await?;
        tenant.may("create", policies, THERE, false).await?;
        for edge in ["a", "b"] {
            ensure!(tenant.written(edge, THERE)?.contains("shop-closed"), "{edge}");
        }
        tenant.deploy("three", ROLE).await?;
        deployed(bed, SPACE, "shop", 3).await?;
        tenant.may("create", &format!("{policies}/shop-closed"), THERE, false).await?;
        tenant.may("get", "pods", THERE, true).await?;
        tenant.may("patch", "roles.rbac.authorization.k8s.io/shop-reads", THERE, true).await?;
        tenant.deploy("four", "").await?;
        deployed(bed, SPACE, "shop", 4).await?;
        tenant.may("patch", "roles.rbac.authorization.k8s.io/shop-reads", THERE, false).await?;
        let all = refused()?;
        ensure!(all.is_empty(), "{all:?}");

        // A chart lifts no quota by having a role that may, and of the whole cluster it has nothing.
        tenant.deploy("five", GREEDY).await?;
        wait(bed, SPACE, "shop", |dig: &DeploymentIntentGroup| {
            let rows = dig.status.as_ref().map(|status| status.failing.as_slice()).unwrap_or_default();
            if rows.iter().any(|row| row.reason == "Forbidden") { Ok(()) } else { Err(format!("{rows:?}")) }
        })
        .await?;
        tenant.may("delete", "resourcequotas", THERE, false).await?;
        tenant.deploy("five", RANK).await?;
        says::<DeploymentIntentGroup, _>(bed, SPACE, "shop", types::READY, "NotAllowedByLevel").await?;
        tenant.leave().await
    })
    .await;
}
