//! In: the Secret that Argo CD knows a cluster by. Out: the cluster is registered of it, and what Argo CD would run is refused.

use anyhow::Context as _;
use emco_crds::Cluster;
use emco_crds::conditions::types;
use emco_e2e::operator::{cluster, is, says, wait};
use serde_json::{Value, json};

use super::{STAGE, has};

#[tokio::test]
async fn a_cluster_is_registered_of_the_secret_that_argo_cd_has() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        let kubeconfig: Value = serde_yaml::from_str(&bed.edge("b").kubeconfig()?)?;
        let text =
            |pointer: &str| kubeconfig.pointer(pointer).and_then(Value::as_str).context(pointer.to_owned());
        let config = json!({"tlsClientConfig": {
            "insecure": false,
            "caData": text("/clusters/0/cluster/certificate-authority-data")?,
            "certData": text("/users/0/user/client-certificate-data")?,
            "keyData": text("/users/0/user/client-key-data")?,
        }});
        let server = text("/clusters/0/cluster/server")?;
        let secret = |config: &Value| {
            json!({
                "apiVersion": "v1", "kind": "Secret",
                "metadata": {
                    "name": "b-kubeconfig", "namespace": "acme",
                    "labels": {"argocd.argoproj.io/secret-type": "cluster"},
                },
                "stringData": {"name": "b", "server": server, "config": config.to_string()},
            })
            .to_string()
        };
        let kubectl = bed.hub().kubectl();
        let exec = json!({"execProviderConfig": {"command": "argocd-k8s-auth"}, "tlsClientConfig": {}});
        kubectl.apply(&secret(&exec)).await?;
        kubectl.apply(&cluster("acme", "b")).await?;
        let message = says::<Cluster, _>(bed, "acme", "b", types::READY, "KubeconfigForbidden").await?;
        has(&message, &["Secret b-kubeconfig", "config.execProviderConfig runs a program"]);
        kubectl.apply(&secret(&config)).await?;
        wait(bed, "acme", "b", |cluster: &Cluster| is(cluster.status.as_ref(), types::READY, "True")).await
    })
    .await;
}
