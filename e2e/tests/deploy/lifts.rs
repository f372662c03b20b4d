//! Charts of an editor that would lift, by rights that are derived for them, what confines their namespace.

use anyhow::{Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_e2e::operator::{SOON, wait};
use emco_e2e::wait::wait_for_object;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};

use super::AT_WORK;
use super::tenant::Tenant;

const SPACE: &str = "lifts";
/// Namespace on the clusters.
const THERE: &str = "lifts-there";
const CONFINED: &str = ", podSecurity: Restricted, isolation: DefaultDeny, quotas: [{name: all, hard: {pods: '2'}}], \
                        permissions: [{name: own, derived: true}]";
/// A Role that is there already, of somebody else.
const NEIGHBOURS: &str = "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: neighbours, namespace: lifts-there}, \
                          rules: [{apiGroups: [''], resources: [namespaces], verbs: [patch]}]}";
/// Rules of a chart's Role: Pod Security, the quota's count, the isolation, the account's token, and roles to bind.
const RULES: [(&str, &str); 7] = [
    ("shop-security", "{apiGroups: [''], resources: [namespaces], verbs: [get, patch]}"),
    ("shop-count", "{apiGroups: [''], resources: ['*/status'], verbs: [get, patch, update]}"),
    ("shop-quota", "{apiGroups: [''], resources: [resourcequotas/status], verbs: [patch]}"),
    ("shop-open", "{apiGroups: [networking.k8s.io], resources: [networkpolicies], verbs: [delete]}"),
    ("shop-token", "{apiGroups: [''], resources: [serviceaccounts/token], verbs: [create]}"),
    (
        "shop-unbind",
        "{apiGroups: [rbac.authorization.k8s.io], resources: [rolebindings], verbs: [delete, patch]}",
    ),
    ("shop-binds", "{apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [bind]}"),
];
/// To see what confines it is nobody's harm.
const SEES: &str = "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: shop-sees}, \
                    rules: [{apiGroups: [''], resources: [resourcequotas, limitranges, namespaces], verbs: [get, list, watch]}, \
                    {apiGroups: [''], resources: [secrets], verbs: [get]}]}";

fn role(name: &str, rule: &str) -> String {
    format!(
        "{{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {{name: {name}}}, rules: [{rule}]}}"
    )
}

fn binding(name: &str, kind: &str, role: &str) -> String {
    format!(
        "{{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {{name: {name}}}, \
         roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: {kind}, name: {role}}}, \
         subjects: [{{kind: ServiceAccount, name: default, namespace: {THERE}}}]}}"
    )
}

/// The cluster refuses an object of this name, as it would refuse everybody who has not its rights.
async fn refused(tenant: &Tenant, name: &str, manifest: &str) -> Result<()> {
    tenant.deploy(name, manifest).await?;
    wait(tenant.bed, SPACE, "shop", |dig: &DeploymentIntentGroup| {
        let rows = dig.status.as_ref().map(|status| status.failing.as_slice()).unwrap_or_default();
        let told =
            |row: &&emco_crds::fields::Failing| row.reason == "Forbidden" && row.message.contains(name);
        if rows.iter().any(|row| told(&row)) { Ok(()) } else { Err(format!("{name}: {rows:?}")) }
    })
    .await
    .map(drop)
}

/// A Role of its own is bound by its rules, and to look is derived: the plan names what reaches furthest first.
async fn a_role_that_looks_is_made(tenant: &Tenant) -> Result<()> {
    let own = format!("{SEES}\n---\n{}", binding("shop-sees", "Role", "shop-sees"));
    tenant.plan("own", &own).await?;
    let gains = wait(tenant.bed, SPACE, "shop", |dig: &DeploymentIntentGroup| {
        let status = dig.status.as_ref();
        let current = status.filter(|status| status.observed_generation == dig.metadata.generation);
        let pending = current.and_then(|status| status.pending.as_ref());
        pending.map(|pending| pending.gains.clone()).ok_or_else(|| format!("{status:?}"))
    })
    .await?;
    let great = gains.iter().position(|gain| gain == "get secrets");
    let usual = gains.iter().position(|gain| gain.contains("resourcequotas"));
    ensure!(great.is_some() && great < usual, "{gains:?}");
    tenant.deploy("own", &own).await?;
    tenant.may("list", "resourcequotas", THERE, true).await?;
    let bindings = tenant.bed.edge("a").api::<RoleBinding>(THERE).await?;
    wait_for_object(bindings, "shop-sees", SOON, |_| true).await.map(drop)
}

#[tokio::test]
async fn a_chart_of_derived_rights_lifts_nothing_that_confines_it() {
    let _working = AT_WORK.read().await;
    let tenant = Tenant::new(SPACE, "Standard").await.unwrap();
    let bed = tenant.bed;
    bed.explain(async {
        tenant.cloud(CONFINED).await?;
        tenant.ready().await?;
        bed.edge("a").kubectl().apply(NEIGHBOURS).await?;
        for (name, rule) in RULES {
            refused(&tenant, name, &role(name, rule)).await?;
        }
        refused(&tenant, "shop-borrows", &binding("shop-borrows", "Role", "neighbours")).await?;
        refused(&tenant, "shop-admin", &binding("shop-admin", "ClusterRole", "admin")).await?;
        for (verb, resource) in [
            ("patch", "namespaces"),
            ("delete", "networkpolicies.networking.k8s.io/emco-isolation"),
            ("patch", "rolebindings.rbac.authorization.k8s.io/emco-tenant-own"),
            ("bind", "roles.rbac.authorization.k8s.io/neighbours"),
            ("bind", "clusterroles.rbac.authorization.k8s.io/admin"),
        ] {
            tenant.may(verb, resource, THERE, false).await?;
        }
        let edge = bed.edge("a");
        let roles = edge.api::<Role>(THERE).await?.list(&kube::api::ListParams::default()).await?;
        let made = |name: &str| roles.items.iter().any(|role| role.metadata.name.as_deref() == Some(name));
        ensure!(RULES.iter().all(|(name, _)| !made(name)) && made("emco-tenant-own"), "{roles:?}");
        for name in ["shop-borrows", "shop-admin"] {
            ensure!(edge.api::<RoleBinding>(THERE).await?.get_opt(name).await?.is_none(), "{name} is bound");
        }

        a_role_that_looks_is_made(&tenant).await?;
        let policies = edge.api::<NetworkPolicy>(THERE).await?;
        ensure!(policies.get_opt("emco-isolation").await?.is_some(), "the isolation is gone");
        edge.kubectl().run(&["delete", "role", "neighbours", "-n", THERE]).await?;
        tenant.leave().await
    })
    .await;
}
