//! Compares what a member of a project, who may not read Clusters, sees of them with what a stranger sees.

use anyhow::{Result, ensure};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{SOON, project};
use emco_e2e::wait::wait_for;
use emco_engine::cluster_maps::{KEY, Row, SLOTS, name, read, slot};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use serde_json::json;

use super::rig::{STAGE, file, run_as};

const NAMESPACE: &str = "seen";

/// A user with the right that the chart's roles for people have on ConfigMaps.
async fn member(bed: &Bed) -> Result<std::path::PathBuf> {
    let names: Vec<String> = (0..SLOTS).map(name).collect();
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "member", "namespace": NAMESPACE},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": names, "verbs": ["get", "list", "watch"]}],
    });
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "member", "namespace": NAMESPACE},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "member"},
        "subjects": [{"kind": "User", "apiGroup": group, "name": "seer"}],
    });
    bed.hub().kubectl().apply(&format!("{role}\n---\n{binding}\n")).await?;
    file(bed, "seer.kubeconfig", &bed.hub().kubeconfig_as("seer", None)?).await
}

/// Waits until clusters a and b are written down as they are.
async fn written_down(bed: &Bed, what: &str) -> Result<()> {
    let api = Api::<ConfigMap>::namespaced(bed.hub().client().await?, NAMESPACE);
    wait_for(api, SOON, what, |maps| {
        for cluster in ["a", "b"] {
            let map = maps.get(&format!("{NAMESPACE}/{}", name(slot("acme", cluster))));
            let text = map.and_then(|map| map.data.as_ref()?.get(KEY)).ok_or("a map is missing")?;
            let rows = read(text)?.clusters;
            let is_it = |row: &Row| {
                row.name == cluster
                    && row.reachable == "True"
                    && !row.version.is_empty()
                    && row.labels.get("edge").is_some_and(|l| l == cluster)
            };
            if !rows.iter().any(is_it) {
                return Err(format!("{cluster} is not in {text}"));
            }
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn members_see_labels_of_clusters_and_strangers_see_nothing() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        project(bed, NAMESPACE).await?;
        written_down(bed, "the clusters of a new project").await?;
        let member = member(bed).await?;
        let may = ["auth", "can-i", "get", "configmaps/emco-clusters-0", "-n", NAMESPACE, "--as", "seer"];
        bed.hub().kubectl().until(&may, "", true).await?;
        let said = run_as(bed, &member, &["clusters", "-n", NAMESPACE, "--provider", "acme", "-l", "edge=a"])
            .await?;
        said.is(
            0,
            &[
                "PROVIDER   NAME   LEVEL   STATE       VERSION   LABELS",
                "Reachable   v1.36.3   edge=a,tier=edge",
            ],
        );
        assert_eq!(said.out.lines().count(), 2, "{}", said.out);
        let both = ["clusters", "-n", NAMESPACE, "--provider", "acme", "-l", "edge in (a, b)", "-o", "json"];
        let json = run_as(bed, &member, &both).await?.json();
        assert_eq!(json["clusters"][1]["name"], "b", "{json:#}");
        assert_eq!(json["clusters"][1]["level"], "Admin", "{json:#}");
        assert_eq!(json["clusters"][1]["labels"]["edge"], "b", "{json:#}");
        // Where clusters are, and how they are reached, is written nowhere.
        let maps = ["get", "configmaps", "-n", NAMESPACE, "-l", "emco.io/project", "-o", "json"];
        let all = bed.hub().kubectl().run(&maps).await?;
        for hidden in ["https:", "127.0.0.1", "kubeconfig", "certificate", "access"] {
            ensure!(!all.contains(hidden), "{hidden}: {all}");
        }
        for what in ["secrets", "configmaps", "configmaps/kube-root-ca.crt"] {
            let asked = ["auth", "can-i", "get", what, "-n", NAMESPACE, "--as", "seer"];
            bed.hub().kubectl().until(&asked, "", false).await?;
        }
        let stranger = file(bed, "stranger.kubeconfig", &bed.hub().kubeconfig_as("stranger", None)?).await?;
        run_as(bed, &stranger, &["clusters", "-n", NAMESPACE])
            .await?
            .is(1, &["you may not list clusters in namespace seen"]);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn what_a_tenant_writes_into_the_list_of_clusters_is_taken_back() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        project(bed, NAMESPACE).await?;
        written_down(bed, "the clusters of a project").await?;
        let map = name(slot("acme", "a"));
        let patch = json!({"data": {(KEY): "{}", "more": "x"}}).to_string();
        bed.hub().kubectl().run(&["patch", "configmap", &map, "-n", NAMESPACE, "-p", &patch]).await?;
        written_down(bed, "an edit is taken back").await?;
        bed.hub().kubectl().run(&["delete", "configmap", &map, "-n", NAMESPACE]).await?;
        written_down(bed, "what is deleted is made again").await
    })
    .await;
}
