//! The objects of a deployment: their health, and their manifests.

use anyhow::ensure;
use emco_e2e::operator::{chart, chart_map, deployed, deployment};
use serde_json::Value;

use super::adopt::{CUTS, TAKEN};
use super::looks::{EVERYWHERE, deploy, tenant};
use super::rig::{STAGE, run, run_as};

/// The objects of an app on a cluster, as `name state`.
fn states(json: &Value, app: &str, cluster: &str) -> Vec<String> {
    let named = |list: &Value, key: &str, name: &str| {
        let found = list.as_array().and_then(|all| all.iter().find(|one| one[key] == name).cloned());
        found.unwrap_or_else(|| panic!("no {name} in {list:#}"))
    };
    let there = named(&named(&json["apps"], "name", app)["clusters"], "cluster", cluster);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let objects = there["objects"].as_array().cloned().unwrap_or_default();
    objects.iter().map(|object| format!("{} {}", text(&object["name"]), text(&object["state"]))).collect()
}

#[tokio::test]
async fn get_lists_every_object_and_asks_where_something_is_wrong() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        // Drift is only reported, or the operator would be faster than this test.
        deploy(bed, "lists", &format!("{EVERYWHERE}\nsync: {{drift: Report}}")).await?;
        let said = run(bed, &["get", "lists/till"]).await?;
        said.is(0, &["lists/till  Instantiated  ready: True  revision: 1"]);
        let lines: Vec<&str> = said.out.lines().skip(1).take(8).collect();
        assert_eq!(
            lines,
            [
                "├─ gate",
                "│  ├─ acme/a  Ready  1/1 object ready  revision 1",
                "│  │  └─ Service/lists/till-gate  Ready",
                "│  └─ acme/b  Ready  1/1 object ready  revision 1",
                "│     └─ Service/lists/till-gate  Ready",
                "└─ note",
                "   ├─ acme/a  Ready  2/2 objects ready  revision 1",
                "   │  ├─ Secret/lists/till-key      Ready",
            ]
        );
        let json = run(bed, &["get", "lists/till", "-o", "json"]).await?.json();
        assert_eq!(json["apps"][0]["clusters"][0]["seen"], "Operator", "nobody is asked at rest: {json:#}");
        let wide =
            run(bed, &["get", "lists/till", "--app", "gate", "--cluster", "acme/a", "-o", "wide"]).await?;
        wide.is(0, &["Service/lists/till-gate  Ready  v1"]);
        assert!(!wide.out.contains("acme/b") && !wide.out.contains("note"), "{}", wide.out);

        // An object that was deleted, and one that has lost its owner.
        let edge = bed.edge("a").kubectl();
        edge.run(&["delete", "cm", "till-note", "-n", "lists"]).await?;
        edge.run(&["label", "service", "till-gate", "-n", "lists", "emco.io/owner-"]).await?;
        let said = run(bed, &["get", "lists/till", "--live", "-o", "json"]).await?;
        ensure!(said.code == Some(3), "{said:?}");
        let json = said.json();
        assert_eq!(states(&json, "note", "acme/a"), ["till-key Ready", "till-note Missing"]);
        assert_eq!(states(&json, "gate", "acme/a"), ["till-gate NotOurs"]);
        assert_eq!(states(&json, "note", "acme/b"), ["till-key Ready", "till-note Ready"]);
        let said = run(bed, &["get", "lists/till", "--live", "--cluster", "acme/a"]).await?;
        said.is(3, &["ConfigMap/lists/till-note  Missing  ", "Service/lists/till-gate  NotOurs  "]);

        run(bed, &["get", "lists/nothing"]).await?.is(1, &["there is no deployment intent group nothing"]);
        let one = ["get", "lists/till", "--live", "--kind", "configmap", "--not-ready"];
        let said = run(bed, &one).await?;
        said.is(
            3,
            &[
                "ConfigMap/lists/till-note  Missing  ",
                "0/1 object ready  1 of 2 shown",
                "shown: 1 of 6 objects",
            ],
        );
        assert!(!said.out.contains("acme/b") && !said.out.contains("till-key"), "{}", said.out);

        let there = "lists/till has nothing on cluster acme/z: there are acme/a, acme/b";
        run(bed, &["get", "lists/till", "--cluster", "acme/z"]).await?.is(1, &[there]);
        run(bed, &["get", "lists/till", "--app", "z"])
            .await?
            .is(1, &["lists/till has no app z: there are gate, note"]);
        run(bed, &["get", "lists/till", "--kind", "Job"])
            .await?
            .is(1, &["lists/till has no object of kind Job: there are ConfigMap, Secret, Service"]);
        run(bed, &["get", "lists/till", "--ready", "--not-ready"]).await?.is(2, &["cannot be used with"]);
        let tenant = tenant(bed, "lists").await?;
        run_as(bed, &tenant, &["get", "lists/till"])
            .await?
            .is(1, &["get is for administrators of the hub", "kubectl emco status lists/till"]);
        Ok(())
    })
    .await;
}

const WEB: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: example.com/web}]}
";

#[tokio::test]
async fn get_says_what_is_not_ready_and_which_cluster_cannot_be_asked() {
    let _turn = CUTS.lock().await;
    let (bed, _) = TAKEN.get().await.unwrap();
    bed.explain(Box::pin(async {
        bed.edge("away").restore().await?;
        emco_e2e::operator::project(bed, "apart").await?;
        let note =
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\ndata: {a: {{ .Values.a | quote }}}\n";
        let charts = [
            chart("note", "1.0.0", &[("values.yaml", "a: one\n"), ("templates/note.yaml", note)])?,
            chart("web", "1.0.0", &[("templates/web.yaml", WEB)])?,
        ];
        chart_map(bed, "apart", "charts", &charts).await?;
        // Nothing runs Pods of `away`.
        bed.hub().kubectl().apply(&deployment("apart", "till", &charts, EVERYWHERE)).await?;
        for edge in ["old", "away"] {
            let kubectl = bed.edge(edge).kubectl();
            kubectl.run(&["wait", "--for=create", "deploy/web", "-n", "apart", "--timeout=60s"]).await?;
        }
        let said = run(bed, &["get", "apart/till", "-o", "json"]).await?;
        ensure!(said.code == Some(3), "{said:?}");
        let json = said.json();
        assert_eq!(states(&json, "web", "acme/away"), ["web Progressing"]);
        assert_eq!(states(&json, "note", "acme/old"), ["note Ready"]);
        let web = &json["apps"][1]["clusters"][0]["objects"][0];
        ensure!(web["message"].as_str().is_some_and(|why| !why.is_empty()), "{web:#}");

        bed.edge("away").refuse().await?;
        let said = run(bed, &["get", "apart/till"]).await?;
        said.is(
            3,
            &[
                "the cluster cannot be reached",
                "ConfigMap/apart/note  Unknown",
                "ConfigMap/apart/note  Ready",
            ],
        );
        assert_eq!(said.out.matches("the cluster cannot be reached").count(), 2, "{}", said.out);
        bed.edge("away").restore().await
    }))
    .await;
}

#[tokio::test]
async fn manifests_are_those_of_the_charts_and_secrets_are_withheld() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        deploy(bed, "papers", EVERYWHERE).await?;
        let values = "overrideValues: [{app: note, values: {key: \"017\"}}]";
        let charts = [chart("note", "1.0.0", &[])?, chart("gate", "1.0.0", &[])?];
        let spec = format!("{EVERYWHERE}\n{values}");
        bed.hub().kubectl().apply(&deployment("papers", "till", &charts, &spec)).await?;
        deployed(bed, "papers", "till", 2).await?;
        let said = run(bed, &["manifests", "papers/till"]).await?;
        said.is(
            0,
            &["# app note, revision 2, on acme/a, acme/b", "# its values are withheld: --show-secrets"],
        );
        assert!(!said.out.contains("hunter2") && !said.out.contains("aHVudGVyMg"), "{}", said.out);
        // Equal sets are there once, and a text that looks like a number is one for kubectl, too.
        assert_eq!(said.out.matches("name: till-note").count(), 1, "{}", said.out);
        ensure!(said.out.contains("key: \"017\""), "{}", said.out);
        // What is printed is what an edge takes.
        let one = ["manifests", "papers/till", "--cluster", "acme/a", "--show-secrets"];
        let said = run(bed, &one).await?;
        said.is(0, &["aHVudGVyMg=="]);
        let edge = bed.edge("a").kubectl();
        let applied = edge
            .run_with(&["apply", "--dry-run=server", "-n", "papers", "-o", "name", "-f", "-"], &said.out)
            .await?;
        assert_eq!(applied.lines().count(), 3, "{applied}");
        let json = run(bed, &["manifests", "papers/till", "--app", "note", "-o", "json"]).await?;
        json.is(0, &["the values of 1 Secret are withheld"]);
        assert_eq!(json.json()["items"].as_array().map(Vec::len), Some(2));
        let old = run(bed, &["manifests", "papers/till", "--app", "note", "--revision", "1"]).await?;
        old.is(0, &["revision 1", "key: one"]);

        run(bed, &["manifests", "papers/till", "--revision", "9"])
            .await?
            .is(1, &["is not stored: there are 1, 2"]);
        run(bed, &["manifests", "papers/till", "--app", "x"])
            .await?
            .is(1, &["there are apps gate, note and clusters acme/a, acme/b"]);
        let tenant = tenant(bed, "papers").await?;
        let secrets = ["manifests", "papers/till", "--show-secrets"];
        run_as(bed, &tenant, &secrets).await?.is(1, &["you may not get configmaps in namespace emco-system"]);
        Ok(())
    })
    .await;
}
