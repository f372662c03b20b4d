//! A namespace as another project's or a provider's, claimed by the label on it.

use std::io::ErrorKind;
use std::net::TcpListener;

use anyhow::{Context as _, Result, ensure};
use emco_crds::Cluster;
use emco_crds::conditions::types;
use emco_e2e::operator::{cluster, says};
use serde_json::{Value, json};

use super::world::Tenant;

const OWN: &str = "the verb own";
const PROVIDER: &str = r#"{"metadata":{"labels":{"emco.io/provider":"acme"}}}"#;

/// A kubeconfig that leads to this port.
fn kubeconfig(port: u16, ca: &str) -> String {
    use base64::Engine as _;
    let ca = base64::engine::general_purpose::STANDARD.encode(ca);
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        "clusters": [{"name": "x", "cluster": {
            "server": format!("https://127.0.0.1:{port}"), "certificate-authority-data": ca,
        }}],
        "users": [{"name": "x", "user": {"token": "rogue-token-0123456789"}}],
    })
    .to_string()
}

#[tokio::test]
async fn a_tenant_makes_its_namespace_no_other_projects_and_no_providers() {
    let tenant = Tenant::mighty("squatter").await.unwrap();
    let bed = tenant.bed;
    bed.explain(async {
        // It may write the object: the right to a namespace holds for the Namespace itself.
        tenant.kubectl.run(&["label", "namespace", "squatter", "example.com/team=one"]).await?;
        for args in [
            &["label", "namespace", "squatter", "emco.io/project=victim", "--overwrite"][..],
            &["label", "namespace", "squatter", "emco.io/project-"],
            &["label", "namespace", "squatter", "emco.io/provider=acme"],
            &["patch", "namespace", "squatter", "--subresource=status", "--type=merge", "-p", PROVIDER],
        ] {
            tenant.refused(args, "", OWN).await?;
        }
        let now = tenant.kubectl.run(&["get", "namespace", "squatter", "-o", "json"]).await?;
        let mut forged: Value = serde_json::from_str(&now)?;
        forged["metadata"]["labels"]["emco.io/provider"] = json!("acme");
        let finalize = ["replace", "--raw", "/api/v1/namespaces/squatter/finalize", "-f", "-"];
        tenant.refused(&finalize, &forged.to_string(), OWN).await?;
        a_cluster_of_nobody(&tenant).await
    })
    .await;
}

/// What it registers in its own namespace belongs to no provider, and is not connected to.
async fn a_cluster_of_nobody(tenant: &Tenant) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").context("cannot listen on loopback")?;
    listener.set_nonblocking(true)?;
    let (bed, namespace) = (tenant.bed, tenant.name);
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "rogue-kubeconfig"},
        "stringData": {"kubeconfig": kubeconfig(listener.local_addr()?.port(), bed.edge("a").ca())},
    });
    tenant.apply(&secret.to_string()).await?;
    tenant.apply(&cluster(namespace, "rogue")).await?;
    let said = says::<Cluster, _>(bed, namespace, "rogue", types::READY, "NoClusterProvider").await?;
    ensure!(said.contains("no ClusterProvider owns namespace squatter"), "{said}");
    let met = listener.accept();
    ensure!(
        met.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock),
        "it was dialled: {met:?}"
    );
    tenant.kubectl.run(&["delete", "ecl", "rogue", "-n", namespace, "--timeout=60s"]).await.map(drop)
}
