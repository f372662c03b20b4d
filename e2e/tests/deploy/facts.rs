//! What clusters say of themselves, and what is written of them for templates.

use anyhow::{Result, ensure};
use emco_crds::Cluster;
use emco_e2e::bed::Bed;
use emco_e2e::operator::{chart, deployed, deployment, wait};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;

use super::{AT_WORK, EVERYWHERE, start};

const SPACE: &str = "facts";
const NOTE: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\ndata: {say: {{ .Values.say | quote }}}\n";

/// Version, nodes and what they offer, and the identity, as the cluster itself has them.
async fn discovered(bed: &Bed, edge: &str) -> Result<()> {
    let uid = Api::<Namespace>::all(bed.edge(edge).client().await?).get("kube-system").await?.metadata.uid;
    wait(bed, "acme", edge, |cluster: &Cluster| {
        let status = cluster.status.as_ref().ok_or("it has no status")?;
        let nodes = status.nodes.as_ref().map(|nodes| (nodes.ready, nodes.total));
        let offers = ["cpu", "memory", "pods"].iter().all(|name| status.allocatable.contains_key(*name));
        let version = status.kubernetes_version.as_deref().unwrap_or_default();
        let digest = status.api_groups_digest.as_deref().unwrap_or_default();
        let known = version.starts_with("v1.") && digest.starts_with("sha256:") && status.uid == uid;
        if nodes == Some((1, 1)) && offers && known { Ok(()) } else { Err(format!("{status:?}")) }
    })
    .await
}

#[tokio::test]
async fn clusters_say_what_they_have_and_values_read_their_properties() {
    let _working = AT_WORK.read().await;
    let files = [("values.yaml", "say: nothing\n"), ("templates/note.yaml", NOTE)];
    let note = chart("note", "1.0.0", &files).unwrap();
    let bed = start(SPACE, std::slice::from_ref(&note)).await.unwrap();
    bed.explain(async {
        let hub = bed.hub().kubectl();
        for (edge, rack) in [("a", "12"), ("b", "13")] {
            discovered(bed, edge).await?;
            let patch = format!("{{\"spec\":{{\"properties\":{{\"rack\":\"{rack}\"}}}}}}");
            hub.run(&["patch", "ecl", edge, "-n", "acme", "--type=merge", "-p", &patch]).await?;
        }
        let values = "{app: note, templating: Handlebars, values: {say: 'rack {{cluster.properties.rack}}'}}";
        let spec = format!("{EVERYWHERE}\noverrideValues: [{values}]");
        hub.apply(&deployment(SPACE, "shop", &[note], &spec)).await?;
        deployed(bed, SPACE, "shop", 1).await?;
        for (edge, wanted) in [("a", "rack 12"), ("b", "rack 13")] {
            let say = ["get", "cm", "note", "-n", SPACE, "-o", "jsonpath={.data.say}"];
            let said = bed.edge(edge).kubectl().run(&say).await?;
            ensure!(said == wanted, "{edge}: {said}");
        }
        hub.run(&["delete", "dig", "shop", "-n", SPACE, "--timeout=60s"]).await.map(drop)
    })
    .await;
}
