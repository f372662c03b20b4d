//! What a tenant may reach of the hub beyond its namespace: nothing.

use anyhow::{Result, ensure};

use super::world::Tenant;

const FORBIDDEN: &str = "forbidden";
const OURS: &str = "dig,capp,cprof,gai,lc,deploymentapprovals.emco.io,appcontexts.emco.io,syncshards.emco.io";
const GRANT: &str = r#"{"spec":{"grants":[{"name":"me","projectSelector":{},"maxLevel":"Admin"}]}}"#;
const MEMBER: &str =
    r#"{"spec":{"members":[{"role":"Approver","subjects":[{"kind":"User","name":"mallory"}]}]}}"#;
const OPERATOR: &str = "--as=system:serviceaccount:emco-system:emco-operator";
const LABEL: &str = r#"{"metadata":{"labels":{"emco.io/project":"mallory"}}}"#;

/// Each of them reads or changes something of others, or takes the place of somebody who may.
const TRIED: &[&[&str]] = &[
    // Kubeconfigs, and what else is secret.
    &["get", "secret", "a-kubeconfig", "-n", "acme"],
    &["get", "secrets", "-A"],
    &["get", "secrets,configmaps", "-n", "emco-system"],
    &["get", "secret", "victims-login", "-n", "victim"],
    // Objects of another project, and of those who own clusters.
    &["get", OURS, "-n", "victim"],
    &["get", "configmaps,events", "-n", "victim"],
    &["delete", "dig", "till", "-n", "victim"],
    &["get", "ecl", "-n", "acme"],
    &["label", "ecl", "a", "-n", "acme", "tier=core"],
    &["get", "eproj", "victim"],
    &["get", "cprov"],
    // More for its own project.
    &["patch", "cprov", "vault", "--type=merge", "-p", GRANT],
    &["patch", "eproj", "mallory", "--type=merge", "-p", MEMBER],
    &["patch", "namespace", "victim", "--type=merge", "-p", LABEL],
    // The operator's place, its Lease, its policies, an administrator's.
    &["create", "token", "emco-operator", "-n", "emco-system"],
    &["get", "secrets", "-n", "acme", OPERATOR],
    &["get", "secrets", "-n", "acme", "--as=anybody", "--as-group=system:masters"],
    &["delete", "lease", "emco-operator", "-n", "emco-system"],
    &["delete", "validatingadmissionpolicies", "emco-generated"],
    &["create", "clusterrolebinding", "me", "--clusterrole=cluster-admin", "--user=mallory"],
    &["create", "rolebinding", "me", "--clusterrole=view", "--user=mallory", "-n", "victim"],
    &["create", "namespace", "another"],
];

#[tokio::test]
async fn a_tenant_with_all_rights_in_its_namespace_reaches_no_other_object() {
    let mighty = Tenant::mighty("mallory").await.unwrap();
    let usual = Tenant::new("trent", &["admin", "emco-admin"], "").await.unwrap();
    mighty
        .bed
        .explain(async {
            for tenant in [&mighty, &usual] {
                for args in TRIED {
                    tenant.refused(args, "", FORBIDDEN).await?;
                }
                // In its own namespace it reads all of that.
                tenant.kubectl.run(&["get", "secrets", "-n", tenant.name]).await?;
                tenant.kubectl.run(&["get", OURS, "-n", tenant.name]).await?;
            }
            still_there(&mighty).await
        })
        .await;
}

/// What was to be deleted or changed is as it was.
async fn still_there(tenant: &Tenant) -> Result<()> {
    let hub = tenant.bed.hub().kubectl();
    hub.run(&["get", "dig", "till", "-n", "victim"]).await?;
    hub.run(&["get", "validatingadmissionpolicy", "emco-generated"]).await?;
    let label = "jsonpath={.metadata.labels.emco\\.io/project}";
    let owner = hub.run(&["get", "namespace", "victim", "-o", label]).await?;
    ensure!(owner == "victim", "namespace victim belongs to {owner}");
    Ok(())
}
