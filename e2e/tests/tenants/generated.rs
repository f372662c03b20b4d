//! Forging what the operator alone writes, by a user whose rights in the namespace hold every verb, `own` among them.

use anyhow::{Context as _, Result, ensure};
use emco_e2e::operator::{chart, chart_map, deployed, deployment, ours};
use serde_json::{Value, json};

use super::world::{ON_A, Tenant};

const NOTE: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\ndata: {say: {{ .Values.say }}}\n";
const ONLY: &str = "only the operator writes";

#[tokio::test]
async fn revisions_and_shards_are_written_by_no_tenant_whatever_its_rights() {
    let tenant = Tenant::mighty("forger").await.unwrap();
    let bed = tenant.bed;
    bed.explain(async {
        let note = chart("note", "1.0.0", &[("values.yaml", "say: one\n"), ("templates/note.yaml", NOTE)])?;
        chart_map(bed, "forger", "charts", std::slice::from_ref(&note)).await?;
        tenant.apply(&deployment("forger", "shop", &[note], ON_A)).await?;
        deployed(bed, "forger", "shop", 1).await?;
        for kind in ["syncshards.emco.io", "appcontexts.emco.io"] {
            forge(&tenant, kind).await?;
        }
        forged_status(&tenant).await?;
        assert_eq!(ours(bed, "a", "configmaps", Some("forger")).await?, ["ConfigMap/forger/note"]);
        Ok(())
    })
    .await;
}

/// Changes, replaces, deletes and makes an object of a kind that is generated.
async fn forge(tenant: &Tenant, kind: &str) -> Result<()> {
    let namespace = tenant.name;
    let list = tenant.kubectl.run(&["get", kind, "-n", namespace, "-o", "json"]).await?;
    let list: Value = serde_json::from_str(&list)?;
    let mut object = list["items"][0].clone();
    let name =
        object["metadata"]["name"].as_str().with_context(|| format!("there are no {kind}"))?.to_owned();
    let all = format!("/apis/emco.io/v1alpha1/namespaces/{namespace}/{}", kind.trim_end_matches(".emco.io"));
    let patch = |patch: &'static str| {
        ["patch", kind, &name, "-n", namespace, "--type=merge", "-p", patch].map(str::to_owned)
    };
    for args in [
        patch(r#"{"metadata":{"labels":{"emco.io/owner-name":"till"}}}"#).to_vec(),
        patch(r#"{"metadata":{"finalizers":null}}"#).to_vec(),
        [&patch(r#"{"status":{"observedGeneration":7}}"#)[..], &["--subresource=status".to_owned()]].concat(),
        ["delete", kind, &name, "-n", namespace].map(str::to_owned).to_vec(),
        ["delete", "--raw", &all].map(str::to_owned).to_vec(),
    ] {
        tenant.refused(&args.iter().map(String::as_str).collect::<Vec<_>>(), "", ONLY).await?;
    }
    tenant.refused(&["replace", "-f", "-"], &object.to_string(), ONLY).await?;
    object["metadata"] =
        json!({"name": "mine", "namespace": namespace, "labels": object["metadata"]["labels"]});
    tenant.refused(&["create", "-f", "-"], &object.to_string(), ONLY).await
}

/// A status is what the operator says: written by another it moves nothing, and does not stay.
async fn forged_status(tenant: &Tenant) -> Result<()> {
    let (bed, namespace) = (tenant.bed, tenant.name);
    let account = format!("system:serviceaccount:{namespace}:emco-default");
    let forged = r#"{"status":{"identity":"system:masters","namespace":"kube-system"}}"#;
    tenant
        .kubectl
        .run(&[
            "patch",
            "lc",
            "default",
            "-n",
            namespace,
            "--subresource=status",
            "--type=merge",
            "-p",
            forged,
        ])
        .await?;
    let edit = r#"{"spec":{"overrideValues":[{"app":"note","values":{"say":"two"}}]}}"#;
    tenant.kubectl.run(&["patch", "dig", "shop", "-n", namespace, "--type=merge", "-p", edit]).await?;
    deployed(bed, namespace, "shop", 2).await?;
    let says = format!("--for=jsonpath={{.status.identity}}={account}");
    bed.hub().kubectl().run(&["wait", "lc/default", "-n", namespace, &says, "--timeout=60s"]).await?;
    let written = bed.edge("a").audit()?;
    let notes = written.iter().filter(|event| {
        (event.resource.as_str(), event.name.as_str()) == ("configmaps", "note")
            && event.namespace == namespace
            && event.is_write()
            && event.code < 300
    });
    let by: Vec<&str> = notes.map(|event| event.acting_as.as_str()).collect();
    ensure!(!by.is_empty() && by.iter().all(|by| *by == account), "the note was written by {by:?}");
    Ok(())
}
