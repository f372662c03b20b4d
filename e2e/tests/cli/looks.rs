//! Looking at clusters, deployments, differences and orphans.

use anyhow::Result;
use emco_e2e::bed::Bed;
use emco_e2e::operator::{chart, chart_map, deployed, deployment, project};
use serde_json::Value;

use super::rig::{Running, STAGE, file, run, run_as};

mod failed;

pub const EVERYWHERE: &str = "placement: {allOf: [{provider: acme, selector: {matchLabels: {tier: edge}}}]}";

/// Two apps on `a` and `b`; one of them can be made wrong by its values.
pub async fn deploy(bed: &Bed, tenant: &str, spec: &str) -> Result<()> {
    project(bed, tenant).await?;
    let note = "
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-note}
data: {key: {{ .Values.key | quote }}}
---
apiVersion: v1
kind: Secret
metadata: {name: {{ .Release.Name }}-key}
stringData: {password: hunter2}
";
    let gate = "
apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name }}-gate}
spec: {selector: {app: gate}, ports: [{port: {{ .Values.port }}}]}
";
    let charts = [
        chart("note", "1.0.0", &[("values.yaml", "key: one\n"), ("templates/note.yaml", note)])?,
        chart("gate", "1.0.0", &[("values.yaml", "port: 80\n"), ("templates/gate.yaml", gate)])?,
    ];
    chart_map(bed, tenant, "charts", &charts).await?;
    bed.hub().kubectl().apply(&deployment(tenant, "till", &charts, spec)).await?;
    deployed(bed, tenant, "till", 1).await.map(drop)
}

#[tokio::test]
async fn status_is_a_tree_with_filters_codes_and_a_watch() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        deploy(bed, "tree", EVERYWHERE).await?;
        let said = run(bed, &["status", "tree/till"]).await?;
        said.is(0, &["tree/till  Instantiated  ready: True  revision: 1  clusters: 2/2"]);
        assert_eq!(
            said.out.lines().skip(1).collect::<Vec<_>>(),
            ["├─ gate  2/2 clusters ready: acme/a, acme/b", "└─ note  2/2 clusters ready: acme/a, acme/b"]
        );
        let wide = run(
            bed,
            &["status", "dig/till", "-n", "tree", "-o", "wide", "--app", "note", "--cluster", "acme/a"],
        )
        .await?;
        wide.is(0, &["   └─ acme/a  Ready"]);
        assert!(!wide.out.contains("gate") && !wide.out.contains("acme/b"), "{}", wide.out);
        let all = run(bed, &["status", "-A", "-o", "json"]).await?.json();
        assert_eq!(all["operator"], "Alive");
        assert!(
            all["groups"]
                .as_array()
                .is_some_and(|groups| groups.iter().any(|group| group["namespace"] == "tree"))
        );

        // A manifest that is refused is told of below its cluster, to whoever watches as soon as it is known.
        let mut watch = Running::start(bed, &["status", "tree/till", "--watch"])?;
        watch.until("ready: True").await?;
        let values = "[{app: gate, clusters: [{provider: acme, cluster: a}], values: {port: 99999}}]";
        let patch = format!("spec: {{overrideValues: {values}}}");
        let args = ["patch", "dig", "till", "-n", "tree", "--type=merge", "-p", &patch];
        bed.hub().kubectl().run(&args).await?;
        let line = watch.until("Service/tree/till-gate  Invalid").await?;
        assert!(line.contains("must be between 1 and 65535") && !line.contains("99999"), "{line}");
        let said = run(bed, &["status", "tree/till", "--state", "Failed"]).await?;
        said.is(
            3,
            &["├─ gate", "acme/a  Failed", "Service/tree/till-gate  Invalid:"]
                .map(|w| w.trim_start_matches("├─ ")),
        );
        assert!(!said.out.contains("note"), "{}", said.out);
        let json = run(bed, &["status", "tree/till", "--app", "gate", "-o", "json"]).await?.json();
        assert_eq!(json["groups"][0]["apps"][0]["clusters"][0]["objects"][0]["reason"], "Invalid");
        let one = ["status", "tree/till", "--kind", "service", "--name", "till-gate", "--not-ready"];
        run(bed, &one).await?.is(3, &["acme/a  Failed", "Service/tree/till-gate  Invalid:", "shown: 1 of 4"]);
        let json = run(bed, &["status", "tree/till", "--app", "note", "--ready", "-o", "json"]).await?.json();
        assert_eq!(json["counts"]["appsOnClusters"], serde_json::json!({"shown": 2, "of": 4}));
        run(bed, &["status", "tree/till", "--app", "z"])
            .await?
            .is(1, &["tree/till has no app z: there are gate, note"]);
        bed.hub()
            .kubectl()
            .run(&[
                "patch",
                "dig",
                "till",
                "-n",
                "tree",
                "--type=merge",
                "-p",
                "spec: {overrideValues: null}",
            ])
            .await?;
        watch.until("ready: True").await?;
        run(bed, &["status", "tree/till"]).await?.is(0, &["2/2 clusters ready"]);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn names_that_lead_nowhere_and_missing_rights_are_sentences() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        project(bed, "empty").await?;
        run(bed, &["status", "nobody/till"]).await?.is(1, &["there is no project nobody on the hub"]);
        run(bed, &["status", "till", "-n", "empty"])
            .await?
            .is(1, &["there is no deployment intent group till in namespace empty"]);
        run(bed, &["diff", "empty/till"])
            .await?
            .is(1, &["there is no deployment intent group till in namespace empty"]);
        run(bed, &["status", "-n", "empty"]).await?.is(0, &["no deployment intent groups"]);
        run(bed, &["orphans", "-n", "empty"]).await?.is(0, &["no orphans"]);
        run(bed, &["status", "empty/till", "-n", "other"]).await?.is(1, &["exclude each other"]);
        run(bed, &["status", "--kubeconfig", "/nowhere"])
            .await?
            .is(1, &["there is no hub to connect to", "/nowhere"]);
        run(bed, &["status", "--context", "mars"]).await?.is(1, &["mars"]);
        run(bed, &["status", "--cluster", "berlin"]).await?.is(2, &["write PROVIDER/CLUSTER"]);
        run(bed, &["status", "--state", "Fine"]).await?.is(2, &["Unreachable"]);
        // An API server that is no hub.
        let edge = file(bed, "edge.kubeconfig", &bed.edge("a").kubeconfig()?).await?;
        run_as(bed, &edge, &["clusters"]).await?.is(1, &["are the kinds of EMCO installed there?"]);
        run_as(bed, &edge, &["status", "x", "-n", "default"])
            .await?
            .is(1, &["are the kinds of EMCO installed there?"]);
        // Somebody without any right.
        let nobody = file(bed, "nobody.kubeconfig", &bed.hub().kubeconfig_as("nobody", None)?).await?;
        run_as(bed, &nobody, &["status", "-n", "empty"])
            .await?
            .is(1, &["you may not list deployment intent groups in namespace empty"]);
        run_as(bed, &nobody, &["clusters"]).await?.is(1, &["you may not list clusters in all namespaces"]);
        run_as(bed, &nobody, &["orphans"]).await?.is(1, &["you may not list shards in all namespaces"]);
        Ok(())
    })
    .await;
}

/// A user who may read what is in one namespace, as the chart's role `emco-viewer` says.
pub async fn tenant(bed: &Bed, namespace: &str) -> Result<std::path::PathBuf> {
    bed.hub()
        .kubectl()
        .apply(&format!(
            "
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: viewer, namespace: {namespace}}}
rules:
- apiGroups: [emco.io]
  resources: [logicalclouds, compositeapps, compositeprofiles, genericactionintents, hardwareintents, trafficgroupintents, deploymentintentgroups, deploymentapprovals, appcontexts, syncshards]
  verbs: [get, list, watch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: viewer, namespace: {namespace}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: viewer}}
subjects: [{{kind: User, apiGroup: rbac.authorization.k8s.io, name: tenant}}]
"
        ))
        .await?;
    file(bed, "tenant.kubeconfig", &bed.hub().kubeconfig_as("tenant", None)?).await
}

#[tokio::test]
async fn diff_names_the_fields_that_others_changed_and_changes_nothing() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        // Drift is only reported, or the operator would be faster than this test.
        deploy(bed, "differ", &format!("{EVERYWHERE}\nsync: {{drift: Report}}")).await?;
        run(bed, &["diff", "differ/till"])
            .await?
            .is(0, &["acme/a, revision 1: no difference in 3 objects", "acme/b, revision 1"]);
        let edge = bed.edge("a").kubectl();
        let versions = async || {
            edge.run(&[
                "get",
                "cm,svc",
                "-n",
                "differ",
                "-o",
                "jsonpath={.items[*].metadata.resourceVersion}",
            ])
            .await
        };
        let patch = |kind: &'static str, name: &'static str, patch: &'static str| {
            [["patch", kind, name, "-n", "differ"].as_slice(), &["--type=merge", "-p", patch]].concat()
        };
        edge.run(&patch(
            "svc",
            "till-gate",
            r#"{"spec": {"ports": [{"port": 80, "name": "web"}], "selector": {"app": "fence"}}}"#,
        ))
        .await?;
        // An object that the deployment is told to have had: same owner, no manifest.
        let owner = edge
            .run(&[
                "get",
                "cm",
                "till-note",
                "-n",
                "differ",
                "-o",
                "jsonpath={.metadata.labels.emco\\.io/owner}",
            ])
            .await?;
        edge.run(&["create", "configmap", "left", "-n", "differ"]).await?;
        edge.run(&["label", "configmap", "left", "-n", "differ", &format!("emco.io/owner={owner}")]).await?;
        let before = versions().await?;
        let said = run(bed, &["diff", "differ/till", "--cluster", "acme/a"]).await?;
        said.is(
            3,
            &[
                "Service/differ/till-gate (app gate) differs",
                "spec.selector.app: \"fence\" -> \"gate\"",
                "ConfigMap/differ/left is to be removed",
            ],
        );
        assert!(!said.out.contains("acme/b"), "{}", said.out);
        let json = run(bed, &["diff", "differ/till", "-o", "json"]).await?;
        assert_eq!(json.code, Some(3));
        let json = json.json();
        assert_eq!(json[1]["differences"], Value::Array(Vec::new()), "{json}");
        assert_eq!(versions().await?, before, "a dry run changes nothing");
        let all = format!("{}{json}", said.out);
        assert!(!all.contains("hunter2") && !all.contains("aHVudGVyMg"), "{all}");
        run(bed, &["diff", "differ/till", "--cluster", "acme/z"])
            .await?
            .is(1, &["has nothing on cluster acme/z"]);
        // Packs are no tenant's to read.
        let tenant = tenant(bed, "differ").await?;
        run_as(bed, &tenant, &["diff", "differ/till"])
            .await?
            .is(1, &["diff is for administrators of the hub", "kubectl emco status differ/till"]);
        // A tenant sees the tree, is told that the Lease is not theirs to read, and sees the clusters of the logical clouds.
        let said = run_as(bed, &tenant, &["status", "differ/till"]).await?;
        said.is(0, &["whether the operator lives is not known", "2/2 clusters ready"]);
        let said = run_as(bed, &tenant, &["clusters", "-n", "differ"]).await?;
        said.is(0, &["acme", "Reachable", "LogicalCloud/default"]);
        run_as(bed, &tenant, &["clusters", "-n", "differ", "-l", "tier=edge"])
            .await?
            .is(1, &["leave out --selector"]);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn diff_with_an_older_revision_names_what_going_back_would_change() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        deploy(bed, "back", EVERYWHERE).await?;
        let apply = async |spec: &str| {
            let charts = [chart("note", "1.0.0", &[])?, chart("gate", "1.0.0", &[])?];
            bed.hub().kubectl().apply(&deployment("back", "till", &charts, spec)).await
        };
        let values = "overrideValues: [{app: note, values: {key: two}}]";
        apply(&format!("{EVERYWHERE}\n{values}")).await?;
        deployed(bed, "back", "till", 2).await?;
        apply(&format!("placement: {{allOf: [{{provider: acme, cluster: a}}]}}\n{values}")).await?;
        deployed(bed, "back", "till", 3).await?;
        // What is on `a` was made by the second revision, and is in the third as it was.
        run(bed, &["diff", "back/till"]).await?.is(0, &["acme/a, revision 2: no difference in 3 objects"]);
        let said = run(bed, &["diff", "back/till", "--revision", "1"]).await?;
        said.is(
            3,
            &[
                "acme/a, revision 1: 1 difference",
                "ConfigMap/back/till-note (app note) differs",
                "data.key: \"two\" -> \"one\"",
                "acme/b, revision 1: 3 differences",
                "ConfigMap/back/till-note (app note) is missing",
            ],
        );
        let said = run(bed, &["diff", "back/till", "--revision", "2", "--cluster", "acme/a"]).await?;
        said.is(0, &["acme/a, revision 2: no difference"]);
        assert!(!said.out.contains("acme/b"), "{}", said.out);
        run(bed, &["diff", "back/till", "--revision", "9"])
            .await?
            .is(1, &["revision 9 of back/till is not stored: there are 1, 2, 3", "revisionHistoryLimit"]);
        run(bed, &["diff", "back/till", "--revision", "0"]).await?.is(2, &["--revision"]);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn clusters_are_listed_with_version_labels_and_use() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        let said = run(bed, &["clusters", "-n", "acme", "-l", "edge in (a, b)"]).await?;
        said.is(0, &["PROVIDER   NAME   READY   REASON", "v1.36.3", "edge=a,tier=edge"]);
        assert_eq!(said.out.lines().count(), 3, "{}", said.out);
        let json = run(bed, &["clusters", "--provider", "acme", "-l", "edge=a", "-o", "json"]).await?.json();
        assert_eq!(json["clusters"][0]["name"], "a");
        assert_eq!(json["clusters"][0]["ready"], "True");
        run(bed, &["clusters", "--provider", "umbrella"]).await?.is(0, &["no clusters"]);
        // One that is not ready is code 3.
        let broken = "
apiVersion: emco.io/v1alpha1
kind: Cluster
metadata: {name: unready, namespace: acme, labels: {tier: broken}}
spec: {access: {kubeconfigSecretRef: {name: missing}}}
";
        bed.hub().kubectl().apply(broken).await?;
        bed.hub()
            .kubectl()
            .run(&[
                "wait",
                "--for=condition=Ready=false",
                "--timeout=60s",
                "-n",
                "acme",
                "clusters.emco.io/unready",
            ])
            .await?;
        let said = run(bed, &["clusters", "-l", "tier=broken", "-o", "wide"]).await?;
        said.is(3, &["False", "SecretNotFound", "MESSAGE"]);
        bed.hub().kubectl().run(&["delete", "-n", "acme", "clusters.emco.io/unready"]).await.map(drop)
    })
    .await;
}
