//! Digests of what is in files: those that the operator works out once they are applied, so that an approval may come with its change.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_crds::LogicalCloud;
use emco_crds::conditions::types;
use emco_e2e::bed::Bed;
use emco_e2e::operator::{chart, deployed, deployment, is, wait};
use serde_json::{Value, json};

use super::decide::approved;
use super::looks::EVERYWHERE;
use super::rig::{STAGE, file, run, run_fed};

const NOTE: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-note}
data: {key: {{ .Values.key | quote }}}
";

fn project(name: &str) -> String {
    format!(
        "
apiVersion: v1
kind: Namespace
metadata: {{name: {name}, labels: {{emco.io/project: {name}}}}}
---
apiVersion: emco.io/v1alpha1
kind: Project
metadata: {{name: {name}}}
spec: {{logicalCloud: {{level: Admin}}, approval: {{mode: Manual}}}}
"
    )
}

/// A project whose plans wait, a deployment, its profile and its charts, as a folder of Git.
fn folder(bed: &Bed, tenant: &str) -> Result<std::path::PathBuf> {
    let folder = bed.dir().join(format!("git-{tenant}"));
    std::fs::create_dir_all(folder.join("apps"))?;
    let charts = [chart("note", "1.0.0", &[("values.yaml", "key: one\n"), ("templates/note.yaml", NOTE)])?];
    let data: serde_json::Map<String, Value> =
        charts.iter().map(|chart| (chart.file_name(), STANDARD.encode(&chart.bytes).into())).collect();
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "charts", "namespace": tenant},
        "binaryData": data,
    });
    let spec = format!(
        "{EVERYWHERE}\ncompositeProfileRef: {{name: till}}\noverrideValues: [{{app: note, values: {{on: yes, ratio: 1.0}}}}]"
    );
    let profile = format!(
        "
apiVersion: v1
kind: ConfigMap
metadata: {{name: values, namespace: {tenant}}}
data: {{values.yaml: \"key: two\"}}
---
apiVersion: emco.io/v1alpha1
kind: CompositeProfile
metadata: {{name: till, namespace: {tenant}}}
spec: {{apps: [{{app: note, valuesFrom: [{{kind: ConfigMap, name: values}}]}}]}}
"
    );
    let dig = deployment(tenant, "till", &charts, &spec);
    for (name, text) in [
        ("project.yaml", project(tenant)),
        ("apps/charts.json", map.to_string()),
        ("apps/till.yml", dig),
        ("apps/profile.yaml", profile),
        ("README.md", "no manifest: {".to_owned()),
    ] {
        std::fs::write(folder.join(name), text)?;
    }
    Ok(folder)
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().context("no text")
}

#[tokio::test]
async fn an_approval_of_the_digest_of_a_folder_comes_with_its_change() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        let folder = folder(bed, "offline")?;
        let said = run(bed, &["digest", "-f", text(&folder)?, "-o", "json"]).await?;
        said.is(0, &["offline/till"]);
        let digest = said.json()[0]["digest"].as_str().context("no digest")?.to_owned();
        ensure!(digest.starts_with("sha256:") && digest.len() == 71, "{digest}");
        run(bed, &["digest", "-f", text(&folder)?]).await?.is(0, &["DEPLOYMENT     DIGEST", &digest]);
        let kubectl = bed.hub().kubectl();
        let who = kubectl.run(&["auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"]).await?;
        let approval = format!(
            "
apiVersion: emco.io/v1alpha1
kind: DeploymentApproval
metadata: {{name: with-the-change, namespace: offline}}
spec: {{deploymentIntentGroupRef: {{name: till}}, digest: \"{digest}\", approvedBy: \"{who}\"}}
"
        );
        std::fs::write(folder.join("apps/approval.yaml"), approval)?;
        kubectl.run(&["apply", "-f", text(&folder.join("project.yaml"))?]).await?;
        kubectl.run(&["apply", "--server-side", "-R", "-f", text(&folder)?]).await?;
        let runs = deployed(bed, "offline", "till", 1).await?;
        let approval = runs.status.and_then(|status| status.approval).context("nothing approved it")?;
        ensure!(approval.name.as_deref() == Some("with-the-change"), "{approval:?}");
        let note = ["get", "cm", "till-note", "-n", "offline", "-o", "jsonpath={.data.key}"];
        ensure!(bed.edge("a").kubectl().run(&note).await? == "two", "it is not what was approved");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn what_a_folder_lacks_for_its_digest_is_named_or_taken_from_the_hub() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        let folder = folder(bed, "lacking")?;
        let kubectl = bed.hub().kubectl();
        let offline = run(bed, &["digest", "-f", text(&folder)?, "-o", "json"]).await?;
        offline.is(
            0,
            &[
                "LogicalCloud lacking/default is made by its Project: one that exists with another level keeps it",
                "spec.apps[0].chart.configMapRef: no other archive was taken from key note-1.0.0.tgz of ConfigMap charts before",
            ],
        );
        kubectl.run(&["apply", "-f", text(&folder.join("project.yaml"))?]).await?;
        kubectl.run(&["apply", "--server-side", "-R", "-f", text(&folder)?]).await?;
        wait::<LogicalCloud, _>(bed, "lacking", "default", |cloud| {
            is(cloud.status.as_ref(), types::READY, "True")
        })
        .await?;
        // The deployment alone.
        let alone = folder.join("apps/till.yml");
        run(bed, &["digest", "-f", text(&alone)?]).await?.is(
            3,
            &[
                "lacking/till   <none>",
                "CompositeProfile lacking/till is in none of the files: add it, or name a hub with --context",
                "LogicalCloud lacking/default is in none of the files",
                "ConfigMap lacking/charts is in none of the files",
            ],
        );
        let context = kubectl.run(&["config", "current-context"]).await?;
        let asked = run(bed, &["digest", "-f", text(&alone)?, "--context", context.trim(), "-o", "json"]).await?;
        asked.is(0, &["sha256:"]);
        let waits = approved(bed, "lacking", "AwaitingApproval").await?.context("no plan waits")?;
        let [offline, asked] = [offline.json(), asked.json()];
        ensure!(offline[0]["digest"] == waits && asked[0]["digest"] == waits, "{waits}, {offline}, {asked}");
        ensure!(asked[0]["assumed"].is_null(), "{asked}");
        let other = format!(
            "
apiVersion: emco.io/v1alpha1
kind: CompositeApp
metadata: {{name: other, namespace: lacking}}
spec: {{apps: [{{name: web, chart: {{repository: {{url: \"https://charts.example.com\", name: web, version: 1.0.0}}}}}}]}}
---
apiVersion: emco.io/v1alpha1
kind: CompositeProfile
metadata: {{name: other, namespace: lacking}}
spec: {{apps: [{{app: web, valuesFrom: [{{kind: Secret, name: password}}]}}]}}
---
apiVersion: emco.io/v1alpha1
kind: DeploymentIntentGroup
metadata: {{name: other, namespace: lacking}}
spec: {{compositeAppRef: {{name: other}}, compositeProfileRef: {{name: other}}, {EVERYWHERE}}}
"
        );
        let path = file(bed, "other.yaml", &other).await?;
        run(bed, &["digest", "-f", text(&path)?, "--context", context.trim()]).await?.is(
            3,
            &[
                "lacking/other: CompositeApp lacking/other, spec.apps[0].chart: no digest of the chart of app web is stated: state it",
                "lacking/other: CompositeProfile lacking/other reads Secret lacking/password, which counts with a key that only the operator has",
            ],
        );
        let nobody = run(bed, &["digest", "-f", text(&path)?, "--context", "nobody"]).await?;
        nobody.is(1, &["error: there is no hub to connect to"]);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn files_without_a_digest_are_refused_with_a_sentence() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        let folder = folder(bed, "refused")?;
        let named = |name: &str| folder.join(name);
        run(bed, &["digest"]).await?.is(2, &["--filename"]);
        run(bed, &["digest", "-f", text(&named("absent"))?]).await?.is(1, &["absent cannot be read"]);
        run(bed, &["digest", "-f", text(&named("project.yaml"))?])
            .await?
            .is(1, &["there is no DeploymentIntentGroup in "]);
        let nowhere = "{apiVersion: emco.io/v1alpha1, kind: CompositeApp, metadata: {name: x}}";
        let other = "{apiVersion: emco.io/v9, kind: CompositeApp, metadata: {name: x}}";
        for (text_, said) in [(nowhere, "names no namespace, which counts"), (other, "is of emco.io/v9")] {
            std::fs::write(named("again.yaml"), text_)?;
            run(bed, &["digest", "-f", text(&folder)?]).await?.is(1, &["again.yaml: CompositeApp x ", said]);
        }
        let whole = project("refused").replace("mode: Manual", "mode: Manual, scope: Plan");
        std::fs::write(named("project.yaml"), whole)?;
        std::fs::remove_file(named("again.yaml"))?;
        run(bed, &["digest", "-f", text(&folder)?]).await?.is(3, &["Project refused wants whole plans approved"]);
        std::fs::copy(named("apps/till.yml"), named("again.yaml"))?;
        run(bed, &["digest", "-f", text(&folder)?])
            .await?
            .is(1, &["CompositeApp till of namespace refused is in ", "again.yaml", "keep one of them"]);
        std::fs::remove_file(named("again.yaml"))?;
        std::fs::write(named("project.yaml"), project("refused"))?;
        // Kustomize reads these two as another version of YAML has them.
        let till = std::fs::read_to_string(named("apps/till.yml"))?.replace("{on: yes, ratio: 1.0}", "{port: 80}");
        std::fs::write(named("apps/till.yml"), till)?;
        let whole = run(bed, &["digest", "-f", text(&folder)?, "-o", "json"]).await?;
        std::fs::write(
            named("kustomization.yaml"),
            "resources: [project.yaml, apps/charts.json, apps/till.yml, apps/profile.yaml]",
        )?;
        run(bed, &["digest", "-f", text(&folder)?]).await?.is(1, &["is built by Kustomize, ", " | kubectl emco digest -f -"]);
        let built = bed.hub().kubectl().run(&["kustomize", text(&folder)?]).await?;
        let built = run_fed(bed, &file(bed, "built.yaml", &built).await?, &["digest", "-f", "-", "-o", "json"]).await?;
        ensure!(whole.code == Some(0) && built.json() == whole.json(), "{} is not {}", built.out, whole.out);
        std::fs::remove_file(named("kustomization.yaml"))?;
        let wrong = std::fs::read_to_string(named("apps/till.yml"))?.replace("overrideValues:", "overideValues:");
        run_fed(bed, &file(bed, "wrong.yaml", &wrong).await?, &["digest", "-f", "-"])
            .await?
            .is(1, &["standard input: DeploymentIntentGroup till: spec.overideValues is not known here: correct it"]);
        std::fs::write(named("again.yaml"), "spec: {a: [}")?;
        run(bed, &["digest", "-f", text(&folder)?]).await?.is(1, &["again.yaml: "]);
        let wrong = "{apiVersion: emco.io/v1alpha1, kind: DeploymentIntentGroup, metadata: {name: x, namespace: refused}, spec: {placement: 3}}";
        std::fs::write(named("again.yaml"), wrong)?;
        run(bed, &["digest", "-f", text(&folder)?])
            .await?
            .is(1, &["again.yaml: DeploymentIntentGroup x cannot be read: "]);
        Ok(())
    })
    .await;
}
