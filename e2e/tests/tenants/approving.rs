//! Approving one's own change without the role for it.

use anyhow::{Context as _, Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_crds::conditions::{Conditioned as _, types};
use emco_e2e::operator::{chart, chart_map, deployed, deployment, ours, wait};

use super::world::{ON_A, Tenant, binding, refused, user};

const NOTE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\n";
/// Who is to approve: vera, and an account in another namespace. One in the project's own would be everybody's who may edit there.
const SPEC: &str = "approval: {mode: Manual}, members: [{role: Approver, subjects: [{kind: User, name: vera}, \
                    {kind: ServiceAccount, name: gate, namespace: default}]}]";

fn approval(by: &str, digest: &str) -> String {
    format!(
        "{{apiVersion: emco.io/v1alpha1, kind: DeploymentApproval, metadata: {{name: of-{by}, namespace: hasty-shop}}, \
         spec: {{deploymentIntentGroupRef: {{name: shop}}, digest: \"{digest}\", approvedBy: {by}}}}}"
    )
}

#[tokio::test]
async fn who_may_write_a_change_and_not_approve_it_cannot_have_it_carried_out() {
    let tenant = Tenant::new("hasty-shop", &["admin", "emco-admin"], SPEC).await.unwrap();
    let bed = tenant.bed;
    bed.explain(async {
        tenant.ready("default").await?;
        let note = chart("note", "1.0.0", &[("templates/note.yaml", NOTE)])?;
        chart_map(bed, tenant.name, "charts", std::slice::from_ref(&note)).await?;
        tenant.apply(&deployment(tenant.name, "shop", &[note], ON_A)).await?;
        let digest = wait(bed, tenant.name, "shop", |dig: &DeploymentIntentGroup| {
            let status = dig.status.as_ref().ok_or("it has no status")?;
            let waits =
                status.condition(types::APPROVED).is_some_and(|found| found.reason == "AwaitingApproval");
            let digest = status.pending.as_ref().map(|pending| pending.digest.clone());
            digest.filter(|_| waits).ok_or_else(|| format!("{status:?}"))
        })
        .await?;
        let vera = user(bed, "vera").await?;
        vera.until(&["auth", "can-i", "create", "deploymentapprovals.emco.io", "-n", tenant.name], "", true)
            .await?;
        attempts(&tenant, &digest).await?;
        // Whoever may approve does so in their own name alone.
        refused(&vera, &["create", "-f", "-"], &approval("hasty-shop", &digest), "your own user name: vera")
            .await?;
        let objects = ours(bed, "a", "configmaps", Some(tenant.name)).await?;
        ensure!(objects.is_empty(), "{objects:?} was deployed without an approval");
        vera.run_with(&["create", "-f", "-"], &approval("vera", &digest))
            .await
            .context("vera may approve")?;
        deployed(bed, tenant.name, "shop", 1).await.map(drop)
    })
    .await;
}

/// Each would approve, or make approving unnecessary.
async fn attempts(tenant: &Tenant, digest: &str) -> Result<()> {
    let (namespace, own) = (tenant.name, approval("hasty-shop", digest));
    let role = "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: approve, namespace: hasty-shop}, \
                rules: [{apiGroups: [emco.io], resources: [deploymentapprovals], verbs: [create]}]}";
    let member = r#"[{"op": "add", "path": "/subjects/-", "value":
        {"kind": "User", "name": "hasty-shop", "apiGroup": "rbac.authorization.k8s.io"}}]"#;
    let status = r#"{"status":{"conditions":[]}}"#;
    let automatic = r#"{"spec":{"approval":{"mode":"Automatic"}}}"#;
    let binding = binding(namespace, namespace, "emco-approver");
    let create: &[&str] = &["create", "-f", "-"];
    let attempts: &[(&[&str], &str, &str)] = &[
        (create, &own, "forbidden"),
        (create, &binding, "attempting to grant RBAC permissions"),
        (create, role, "attempting to grant RBAC permissions"),
        (
            &["patch", "rolebinding", "emco-approvers", "-n", namespace, "--type=json", "-p", member],
            "",
            "attempting to grant RBAC permissions",
        ),
        (&["patch", "eproj", namespace, "--type=merge", "-p", automatic], "", "forbidden"),
        (
            &["patch", "dig", "shop", "-n", namespace, "--subresource=status", "--type=merge", "-p", status],
            "",
            "forbidden",
        ),
        (&["create", "--as=vera", "--validate=false", "-f", "-"], &own, "forbidden"),
        (
            &["create", "--as=system:serviceaccount:default:gate", "--validate=false", "-f", "-"],
            &own,
            "forbidden",
        ),
        (&["create", "token", "gate", "-n", "default"], "", "forbidden"),
    ];
    for (args, input, words) in attempts {
        tenant.refused(args, input, words).await?;
    }
    Ok(())
}
