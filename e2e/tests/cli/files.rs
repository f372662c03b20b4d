//! Plans of files that are not applied yet: those that the operator makes once they are.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_crds::conditions::{Conditioned as _, types};
use emco_crds::{DeploymentIntentGroup, LogicalCloud};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{chart, deployed, is, wait};
use emco_e2e::package::Package;
use serde_json::{Value, json};

use super::looks::EVERYWHERE;
use super::rig::{STAGE, Said, file, run, run_as};
use super::rights::user;

/// Says whether it is an upgrade, and what the profile and the deployment want.
const NOTE: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-note}
data:
  key: {{ .Values.key | quote }}
  upgrade: {{ .Release.IsUpgrade | quote }}
  revision: {{ .Release.Revision | quote }}
  deployments: {{ .Capabilities.APIVersions.Has \"apps/v1/Deployment\" | quote }}
";

/// Draws a password once, and keeps it.
const DRAWS: &str = "
{{- $known := lookup \"v1\" \"Secret\" .Release.Namespace \"drawn\" }}
apiVersion: v1
kind: Secret
metadata: {name: drawn, annotations: {size: {{ .Values.size | quote }}}}
data:
  password: {{ if $known }}{{ $known.data.password }}{{ else }}{{ randAlphaNum 16 | b64enc }}{{ end }}
  fresh: {{ randAlphaNum 8 | b64enc }}
";

const SCHEMA: &str = r#"{"type": "object", "properties": {"size": {"type": "integer"}}}"#;

fn charts(draws: &str) -> Result<Vec<Package>> {
    Ok(vec![
        chart("note", "1.0.0", &[("values.yaml", "key: one\n"), ("templates/note.yaml", NOTE)])?,
        chart(
            "draws",
            draws,
            &[("values.yaml", "size: 1\n"), ("values.schema.json", SCHEMA), ("templates/secret.yaml", DRAWS)],
        )?,
    ])
}

/// A project whose whole plans wait.
async fn project(bed: &Bed, tenant: &str) -> Result<()> {
    let objects = format!(
        "
apiVersion: v1
kind: Namespace
metadata: {{name: {tenant}, labels: {{emco.io/project: {tenant}}}}}
---
apiVersion: emco.io/v1alpha1
kind: Project
metadata: {{name: {tenant}}}
spec: {{logicalCloud: {{level: Admin}}, approval: {{mode: Manual, scope: Plan}}}}
"
    );
    bed.hub().kubectl().apply(&objects).await?;
    wait::<LogicalCloud, _>(bed, tenant, "default", |cloud| is(cloud.status.as_ref(), types::READY, "True"))
        .await
}

/// A folder of Git: a deployment with its profile, values and charts.
struct Folder(PathBuf);

impl Folder {
    fn new(bed: &Bed, tenant: &str) -> Result<Self> {
        let folder = bed.dir().join(format!("files-{tenant}"));
        std::fs::create_dir_all(&folder)?;
        let folder = Self(folder);
        folder.deployment(tenant, &charts("1.0.0")?, "")?;
        folder.values(tenant, "two")?;
        folder.write(
            "profile.yaml",
            &format!(
                "
apiVersion: emco.io/v1alpha1
kind: CompositeProfile
metadata: {{name: till, namespace: {tenant}}}
spec: {{apps: [{{app: note, valuesFrom: [{{kind: ConfigMap, name: values}}]}}]}}
"
            ),
        )?;
        Ok(folder)
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        std::fs::write(self.0.join(name), text).map_err(Into::into)
    }

    fn values(&self, tenant: &str, key: &str) -> Result<()> {
        let values = format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: values, namespace: {tenant}}}, data: {{values.yaml: 'key: {key}'}}}}"
        );
        self.write("values.yaml", &values)
    }

    fn deployment(&self, tenant: &str, charts: &[Package], more: &str) -> Result<()> {
        let data: serde_json::Map<String, Value> =
            charts.iter().map(|chart| (chart.file_name(), STANDARD.encode(&chart.bytes).into())).collect();
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "charts", "namespace": tenant},
            "binaryData": data,
        });
        self.write("charts.json", &map.to_string())?;
        let spec = format!("{EVERYWHERE}\ncompositeProfileRef: {{name: till}}\n{more}");
        self.write("till.yaml", &emco_e2e::operator::deployment(tenant, "till", charts, &spec))
    }

    fn path(&self) -> Result<&str> {
        self.0.to_str().context("no text")
    }

    async fn apply(&self, bed: &Bed) -> Result<()> {
        bed.hub().kubectl().run(&["apply", "--server-side", "-f", self.path()?]).await.map(drop)
    }
}

/// Plans a folder, then applies it: the operator's plan that waits is the same, with all names and lines. Returns it.
async fn foreseen(bed: &Bed, tenant: &str, folder: &Folder) -> Result<Value> {
    let said = run(bed, &["plan", "-f", folder.path()?, "-o", "json"]).await?;
    said.is(2, &[]);
    let before = said.json();
    folder.apply(bed).await?;
    let digest = before["plans"][0]["plan"]["digest"].as_str().context("no digest")?.to_owned();
    wait(bed, tenant, "till", |dig: &DeploymentIntentGroup| {
        let pending = dig.status.as_ref().and_then(|status| status.pending.as_ref());
        let waits = pending.map(|pending| pending.digest.clone());
        if waits.as_ref() == Some(&digest) {
            Ok(())
        } else {
            Err(format!("{digest} was planned, and {waits:?} waits"))
        }
    })
    .await?;
    let after = run(bed, &["plan", "dig/till", "-n", tenant, "-o", "json"]).await?;
    after.is(2, &[]);
    let (before, after) = (&before["plans"][0], after.json());
    for field in ["deployment", "verdict", "runs"] {
        ensure!(before[field] == after[field], "{field}: {before:#}\n{after:#}");
    }
    for field in
        ["revision", "digest", "requires", "waits", "summary", "clusters", "resources", "apps", "notes"]
    {
        let (planned, waits) = (&before["plan"][field], &after["plan"][field]);
        ensure!(planned == waits, "{field} was planned as {planned:#}, and is {waits:#}");
    }
    Ok(after)
}

#[tokio::test]
async fn files_are_planned_as_the_operator_plans_them_once_they_are_applied() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        project(bed, "ahead").await?;
        let folder = Folder::new(bed, "ahead")?;
        let first = foreseen(bed, "ahead", &folder).await?;
        assert_eq!(first["plan"]["clusters"]["added"], 4, "two of each app: {first:#}");
        run(bed, &["approve", "dig/till", "-n", "ahead"]).await?.is(0, &[]);
        deployed(bed, "ahead", "till", 1).await?;
        let said = run(bed, &["plan", "-f", folder.path()?]).await?;
        said.is(0, &["ahead/till: revision 1 runs, and nothing would change\n"]);

        // A new version of a chart that looks its password up and draws another value, and an upgrade of the other.
        folder.deployment("ahead", &charts("1.1.0")?, "overrideValues: [{app: draws, values: {size: 2}}]")?;
        folder.values("ahead", "three")?;
        let text = run(bed, &["plan", "-f", folder.path()?, "--app", "note"]).await?;
        text.is(
            2,
            &[
                "ahead/till: revision 1 runs\nrevision 2 would come, digest ",
                "└─ note on 2 clusters\n   └─ changes on acme/a, acme/b: 1 changed\n",
                "     -  key: two\n",
                "     +  key: three\n",
                "waits: ",
            ],
        );
        assert!(!text.out.contains("draws on"), "{}", text.out);
        let second = foreseen(bed, "ahead", &folder).await?;
        assert_eq!(second["plan"]["resources"]["changed"], 4, "{second:#}");
        run(bed, &["approve", "dig/till", "-n", "ahead"]).await?.is(0, &[]);
        deployed(bed, "ahead", "till", 2).await?;

        // Values alone change deployments that are in none of the files.
        folder.values("ahead", "four")?;
        let values = folder.0.join("values.yaml");
        let values = values.to_str().context("no text")?;
        run(bed, &["plan", "-f", values, "--short"])
            .await?
            .is(2, &["ahead/till: revision 2 runs\nrevision 3 would come"]);
        folder.values("ahead", "three")?;
        run(bed, &["plan", "-f", values]).await?.is(
            0,
            &[
                "nothing would change\n",
                "note: 1 deployment that the files may change as well stays as it is\n",
            ],
        );
        Ok(())
    })
    .await;
}

/// What a condition says once it has this reason.
async fn says(bed: &Bed, tenant: &str, type_: &str, reason: &str) -> Result<String> {
    wait(bed, tenant, "till", |dig: &DeploymentIntentGroup| {
        let condition = dig.status.as_ref().and_then(|status| status.condition(type_));
        let generation = dig.metadata.generation;
        match condition {
            Some(found) if found.reason == reason && found.observed_generation == generation => {
                Ok(found.message.clone())
            }
            found => Err(format!("{found:?}")),
        }
    })
    .await
}

/// Files that are refused have the operator's words for it.
async fn refused(bed: &Bed, tenant: &str, folder: &Folder, type_: &str, reason: &str) -> Result<()> {
    let said = run(bed, &["plan", "-f", folder.path()?, "-o", "json"]).await?;
    said.is(4, &[]);
    let refusal = said.json()["plans"][0]["refusal"].clone();
    folder.apply(bed).await?;
    let message = says(bed, tenant, type_, reason).await?;
    let wanted = json!({"condition": type_, "reason": reason, "message": message});
    ensure!(refusal == wanted, "{refusal:#} was said, and then {wanted:#}");
    let text = run(bed, &["plan", "-f", folder.path()?]).await?;
    text.is(4, &[&format!("refused: {type_}=False {reason}: ")]);
    Ok(())
}

#[tokio::test]
async fn files_that_would_be_refused_are_with_the_words_of_operator_and_hub() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        project(bed, "amiss").await?;
        let folder = Folder::new(bed, "amiss")?;
        folder.deployment(
            "amiss",
            &charts("1.0.0")?,
            "overrideValues: [{app: draws, values: {size: large}}]",
        )?;
        refused(bed, "amiss", &folder, types::RENDERED, "SchemaViolation").await?;
        folder.deployment("amiss", &charts("1.0.0")?, "logicalCloudRef: {name: nowhere}")?;
        refused(bed, "amiss", &folder, types::RESOLVED, "LogicalCloudNotFound").await?;
        folder.deployment("amiss", &charts("1.0.0")?, "intents: [{kind: Net, name: net}]")?;
        refused(bed, "amiss", &folder, types::RESOLVED, "IntentKindUnknown").await?;
        // The hub keeps the release of a deployment.
        folder.deployment("amiss", &charts("1.0.0")?, "release: other")?;
        run(bed, &["plan", "-f", folder.path()?])
            .await?
            .is(4, &["refused: the hub does not store DeploymentIntentGroup amiss/till: Invalid: "]);
        folder.write("till.yaml", "kind: [")?;
        let said = run(bed, &["plan", "-f", folder.path()?]).await?;
        said.is(1, &["till.yaml: "]);
        std::fs::remove_dir_all(&folder.0)?;
        std::fs::create_dir(&folder.0)?;
        run(bed, &["plan", "-f", folder.path()?])
            .await?
            .is(1, &["there is nothing in ", "that a plan depends on"]);
        run(bed, &["plan", "dig/till", "-f", folder.path()?]).await?.is(2, &["cannot be used with"]);
        Ok(())
    })
    .await;
}

/// Nobody sees this.
const WORD: &str = "hidden-word-of-a-secret";

fn silent(said: &Said) {
    for text in [&said.out, &said.err] {
        assert!(!text.contains(WORD) && !text.contains(&STANDARD.encode(WORD)), "{text}");
    }
}

fn with_secret(folder: &Folder, tenant: &str, word: &str) -> Result<()> {
    folder.write(
        "secret.yaml",
        &format!(
            "
apiVersion: v1
kind: Secret
metadata: {{name: words, namespace: {tenant}}}
stringData: {{values.yaml: \"key: {word}\"}}
---
apiVersion: emco.io/v1alpha1
kind: CompositeProfile
metadata: {{name: till, namespace: {tenant}}}
spec: {{apps: [{{app: note, valuesFrom: [{{kind: Secret, name: words}}]}}]}}
"
        ),
    )?;
    let profile = folder.0.join("profile.yaml");
    if profile.exists() {
        std::fs::remove_file(profile)?;
    }
    Ok(())
}

#[tokio::test]
async fn a_secret_is_in_no_plan_of_files_and_who_lacks_a_right_is_told_which() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        project(bed, "hushed").await?;
        let folder = Folder::new(bed, "hushed")?;
        // The chart puts it into a ConfigMap.
        with_secret(&folder, "hushed", WORD)?;
        for args in [&["plan", "-f"][..], &["plan", "-o", "json", "-f"][..]] {
            let said = run(bed, &[args, &[folder.path()?]].concat()).await?;
            said.is(2, &["(withheld)"]);
            silent(&said);
        }
        // What it replaces is not shown either.
        folder.apply(bed).await?;
        wait(bed, "hushed", "till", |dig: &DeploymentIntentGroup| {
            let pending = dig.status.as_ref().and_then(|status| status.pending.as_ref());
            pending.map(drop).ok_or_else(|| "nothing waits".to_owned())
        })
        .await?;
        run(bed, &["approve", "dig/till", "-n", "hushed"]).await?.is(0, &[]);
        deployed(bed, "hushed", "till", 1).await?;
        with_secret(&folder, "hushed", "another-word")?;
        let said = run(bed, &["plan", "-f", folder.path()?]).await?;
        said.is(2, &["1 changed"]);
        assert!(!said.out.contains("another-word"), "{}", said.out);
        silent(&said);

        let path = Path::new(folder.path()?).to_owned();
        let path = path.to_str().context("no text")?;
        let nobody = file(bed, "none.kubeconfig", &bed.hub().kubeconfig_as("none", None)?).await?;
        run_as(bed, &nobody, &["plan", "-f", path]).await?.is(1, &["you may not list logical clouds in all namespaces"]);
        let reads = "- {apiGroups: [emco.io], resources: ['*'], verbs: [get, list]}\n- {apiGroups: [''], resources: [namespaces], verbs: [list]}\n";
        let reader = user(bed, "files-reader", reads).await?;
        let said = run_as(bed, &reader, &["plan", "-f", path]).await?;
        said.is(1, &["the right to get Secret emco-system/emco-installation is missing", "you may not read secret"]);
        silent(&said);
        // With all rights to read, and none to write.
        folder.deployment("hushed", &charts("1.0.0")?, "revisionHistoryLimit: 5")?;
        let all = "- {apiGroups: [emco.io, ''], resources: ['*'], verbs: [get, list]}\n";
        let auditor = user(bed, "files-auditor", all).await?;
        let said = run_as(bed, &auditor, &["plan", "-f", path]).await?;
        said.is(2, &["1 changed", "note: whether the hub would store DeploymentIntentGroup hushed/till is not known"]);
        let edge = bed.edge("a").kubectl();
        let key = edge.run(&["get", "cm", "till-note", "-n", "hushed", "-o", "jsonpath={.data.key}"]).await?;
        ensure!(key == WORD, "a plan puts nothing anywhere");
        Ok(())
    })
    .await;
}
