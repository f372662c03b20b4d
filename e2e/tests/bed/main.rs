//! In: a hub and a full edge. Out: nodes as asked for, users with their rights, an audit log, and sentences when it fails. And workloads on the
//! edge, and a Lease on the hub.

mod lease;
mod workloads;

use std::time::Duration;

use anyhow::{Context, Result};
use emco_e2e::bed::{Audit, Bed, BedSpec, Capacity, NodeSpec, Parts, Plane, PlaneSpec, SharedBed};
use emco_e2e::kubectl::Kubectl;
use emco_e2e::wait::{wait_for_object, wait_until_gone};
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use kube::Api;
use serde_json::{Value, json};

const SOON: Duration = Duration::from_mins(1);

static BED: SharedBed = SharedBed::new(|| {
    let small = NodeSpec::new("small").label("example.com/zone", "north");
    let large =
        NodeSpec::new("large").capacity(Capacity::new("64", "256Gi", "500").extended("example.com/gpu", "4"));
    BedSpec::bare_hub().with(PlaneSpec::edge("a").nodes(vec![small, large]).audit(Audit::Writes))
});

/// The edge, a namespace on it and the bed, for one test.
async fn edge(namespace: &str) -> Result<(&'static Bed, &'static Plane)> {
    let bed = BED.get().await?;
    bed.edge("a").namespace(namespace).await?;
    Ok((bed, bed.edge("a")))
}

#[tokio::test]
async fn a_bare_hub_takes_objects() {
    let bed = BED.get().await.unwrap();
    bed.explain(async {
        bed.hub()
            .kubectl()
            .apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: default}}")
            .await
    })
    .await;
}

/// What becomes of a ConfigMap by changes of every sort, and who did which.
async fn changed(kubectl: &Kubectl, name: &str, by_program: bool) -> Result<Value> {
    let run = async |args: &[&str]| {
        if by_program { kubectl.run_with(args, "").await } else { kubectl.run(args).await }
    };
    let map = format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}, data: {{a: one}}}}");
    if by_program {
        kubectl.run_with(&["apply", "--server-side", "-f", "-"], &map).await?;
    } else {
        kubectl.apply(&map).await?;
    }
    run(&["label", "cm", name, "--overwrite", "x=y"]).await?;
    run(&["annotate", "configmap", name, "--overwrite", "x=y"]).await?;
    run(&["patch", "cm", name, "--type=merge", "-p", r#"{"data":{"b":"two"}}"#]).await?;
    run(&["patch", "cm", name, "--type=json", "-p", r#"[{"op":"remove","path":"/data/a"}]"#]).await?;
    let get = ["get", "cm", name, "-o", "json", "--show-managed-fields"];
    let object: Value = serde_json::from_str(&kubectl.run(&get).await?)?;
    let metadata = &object["metadata"];
    let fields = metadata["managedFields"].as_array().into_iter().flatten();
    let mut managers: Vec<_> =
        fields.map(|one| format!("{} {} {}", one["manager"], one["operation"], one["fieldsV1"])).collect();
    managers.sort();
    run(&["delete", "cm", name]).await?;
    let left = kubectl.run(&["get", "cm", name, "--ignore-not-found"]).await?;
    anyhow::ensure!(left.is_empty(), "{left}");
    Ok(json!([object["data"], metadata["labels"], metadata["annotations"], managers]))
}

#[tokio::test]
async fn what_is_sent_without_kubectl_is_what_kubectl_sends() {
    let bed = BED.get().await.unwrap();
    bed.explain(async {
        let kubectl = bed.hub().kubectl();
        let sent = changed(kubectl, "sent", false).await?;
        assert_eq!(sent, changed(kubectl, "called", true).await?);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_server_says_the_version_that_charts_compare_with() {
    let (bed, edge) = edge("version").await.unwrap();
    bed.explain(async {
        let version = edge.client().await?.apiserver_version().await?;
        assert_eq!(version.git_version, "v1.36.3");
        assert_eq!((version.major.as_str(), version.minor.as_str()), ("1", "36"));
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn nodes_have_their_labels_and_capacity() {
    let (bed, edge) = edge("nodes").await.unwrap();
    bed.explain(async {
        let nodes: Api<Node> = Api::all(edge.client().await?);
        let small = nodes.get("small").await?;
        let labels = small.metadata.labels.unwrap_or_default();
        assert_eq!(labels["example.com/zone"], "north");
        assert_eq!(labels["kubernetes.io/hostname"], "small");
        let large =
            nodes.get("large").await?.status.and_then(|status| status.allocatable).unwrap_or_default();
        assert_eq!((large["cpu"].0.as_str(), large["example.com/gpu"].0.as_str()), ("64", "4"));
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_user_has_the_rights_that_rbac_gives_and_no_others() {
    let (bed, edge) = edge("rights").await.unwrap();
    bed.explain(async {
        let pods: Api<Pod> = Api::namespaced(edge.client_as("jane", None).await?, "rights");
        let refused = pods.list(&kube::api::ListParams::default()).await;
        let Err(kube::Error::Api(refused)) = refused else {
            anyhow::bail!("jane was not refused: {refused:?}")
        };
        assert_eq!(refused.code, 403);
        edge.kubectl()
            .run(&["create", "rolebinding", "jane", "--clusterrole=view", "--user=jane", "-n", "rights"])
            .await?;
        // The API server learns of a binding by a watch of its own.
        let allowed = async {
            while pods.list(&kube::api::ListParams::default()).await.is_err() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(SOON, allowed).await.context("the aggregated role `view` gives no rights")
    })
    .await;
}

#[tokio::test]
async fn a_token_of_a_service_account_is_accepted() {
    let (bed, edge) = edge("token").await.unwrap();
    bed.explain(async {
        let token = edge.kubectl().run(&["create", "token", "default", "-n", "token"]).await?;
        let file = bed.dir().join("token.kubeconfig");
        std::fs::write(&file, edge.kubeconfig_with_token(token.trim()))?;
        let said = edge.kubectl().with_kubeconfig(&file).run(&["auth", "whoami"]).await?;
        assert!(said.contains("system:serviceaccount:token:default"), "{said}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_audit_log_tells_who_wrote_what() {
    let (bed, edge) = edge("audited").await.unwrap();
    bed.explain(async {
        let mark = edge.audit_mark()?;
        let kubectl = edge.kubectl().with_kubeconfig(&edge.kubeconfig_file()?);
        kubectl.run(&["create", "configmap", "one", "-n", "audited"]).await?;
        kubectl.run(&["get", "configmap", "one", "-n", "audited"]).await?;
        edge.kubectl().run(&["delete", "configmap", "one", "-n", "audited"]).await?;
        let events = edge.audit_since(mark)?;
        let mine = events.iter().filter(|event| event.namespace == "audited" && event.name == "one");
        let said: Vec<_> = mine
            .map(|event| (event.user.as_str(), event.verb.as_str(), event.resource.as_str(), event.code))
            .collect();
        assert_eq!(said, [("emco", "create", "configmaps", 201), ("tester", "delete", "configmaps", 200)]);
        let created = events.iter().find(|event| event.user == "emco").context("no event of emco")?;
        assert!(created.user_agent.starts_with("kubectl/v1.36.3"), "{}", created.user_agent);
        assert!(created.is_write() && !created.is_lease() && created.received <= created.answered);
        assert!(edge.audit()?.len() >= events.len());
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn the_planes_of_a_bed_share_no_objects() {
    let (bed, edge) = edge("apart").await.unwrap();
    bed.explain(async {
        let hub: Api<Namespace> = Api::all(bed.hub().client().await?);
        assert!(hub.get_opt("apart").await?.is_none());
        let uid = |namespace: Namespace| namespace.metadata.uid;
        let edge: Api<Namespace> = Api::all(edge.client().await?);
        assert_ne!(uid(hub.get("kube-system").await?), uid(edge.get("kube-system").await?));
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn each_program_of_a_plane_has_a_usage() {
    let (bed, edge) = edge("usage").await.unwrap();
    bed.explain(async {
        let usage = edge.usage().await?;
        let names: Vec<_> = usage.keys().copied().collect();
        assert_eq!(names, ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"]);
        assert!(usage.values().all(|usage| usage.rss_bytes > 1 << 20 && !usage.cpu.is_zero()), "{usage:?}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn waiting_for_what_does_not_come_says_what_is_missing() {
    let (bed, edge) = edge("patience").await.unwrap();
    bed.explain(async {
        let namespaces: Api<Namespace> = Api::all(edge.client().await?);
        let limit = Duration::from_secs(1);
        let said =
            wait_until_gone(namespaces.clone(), "patience", limit).await.err().map(|error| error.to_string());
        assert_eq!(
            said.as_deref(),
            Some("waited 1 s for the end of Namespace patience: it is still there, finalizers []")
        );
        let said =
            wait_for_object(namespaces, "nobody", limit, |_| true).await.err().map(|error| error.to_string());
        assert_eq!(said.as_deref(), Some("waited 1 s for Namespace nobody: it does not exist"));
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn what_a_plane_was_not_asked_for_is_refused_with_the_cure() {
    let plain = BED.get().await.unwrap().hub();
    let said = |result: Result<()>| result.expect_err("it worked").to_string();
    assert!(said(plain.cut_off().await).contains("PlaneSpec::proxied"));
    assert!(said(plain.wipe().await).contains("PlaneSpec::own_etcd"));
    assert!(said(plain.audit_mark().map(drop)).contains("PlaneSpec::audit"));
}

#[tokio::test]
async fn a_spec_with_two_planes_of_one_name_is_refused() {
    let spec = BedSpec::bare_hub().with(PlaneSpec::new("hub", Parts::ApiServer));
    let error = Bed::start(spec).await.err().expect("it started");
    assert_eq!(error.to_string(), "two planes of this bed are called hub");
}

#[tokio::test]
async fn a_program_that_does_not_start_is_named_with_what_it_said() {
    let spec = BedSpec::default().with(PlaneSpec::new("odd", Parts::ApiServer).api_flag("--no-such-flag"));
    let error = format!("{:#}", Bed::start(spec).await.err().expect("it started"));
    assert!(error.contains("odd/kube-apiserver ended (exit status: 1)"), "{error}");
    assert!(error.contains("unknown flag: --no-such-flag"), "{error}");
}
