//! Charts beyond what the hub keeps: they are said, they are deployed, and a new Pod of the operator asks their source for them.

use anyhow::{Context as _, Result, ensure};
use emco_crds::conditions::{Conditioned as _, types};
use emco_crds::names::annotation::{BYTES, CHART};
use emco_crds::{CompositeApp, DeploymentIntentGroup};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{deployed, deployment, is, project, register, wait};
use emco_e2e::package::Package;
use emco_e2e::random::Random;
use emco_e2e::repository::Repository;
use serde_json::{Value, json};

use super::IN_TURN;

const TENANT: &str = "stuffed";
const MIB: usize = 1 << 20;
/// Four of them fit beside each other, and no fifth.
const PARTS: [&str; 5] = ["part-1", "part-2", "part-3", "part-4", "part-5"];

/// A chart whose archive has about this many bytes.
fn of_bytes(name: &str, bytes: usize) -> Result<Package> {
    let mut random = Random(bytes as u64 ^ u64::from(name.bytes().last().unwrap_or_default()));
    let noise: Vec<u8> = (0..bytes / 8).flat_map(|_| random.below(u64::MAX).to_le_bytes()).collect();
    let note = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{say: {{{{ .Values.say | quote }}}}}}\n"
    );
    let chart = format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n");
    let mut files: Vec<(String, &[u8])> = vec![
        ("Chart.yaml".to_owned(), chart.as_bytes()),
        ("values.yaml".to_owned(), b"say: one\n"),
        ("templates/note.yaml".to_owned(), note.as_bytes()),
    ];
    // A file may have 5 MiB.
    files.extend(noise.chunks(4 * MIB).enumerate().map(|(at, part)| (format!("noise-{at}.bin"), part)));
    // Noise becomes no shorter by it.
    let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none()));
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, format!("{name}/{path}"), content)?;
    }
    Package::of_archive(tar.into_inner()?.finish()?)
}

async fn deploy(bed: &Bed, repository: &Repository, names: &[&str]) -> Result<()> {
    project(bed, TENANT).await?;
    let sources = json!({"spec": {"chartSources": [format!("{}/", repository.url())]}}).to_string();
    bed.hub().kubectl().run(&["patch", "eproj", TENANT, "--type=merge", "-p", &sources]).await?;
    let of = |name: &&str| json!({"name": name, "chart": {"repository": {"url": repository.url(), "name": name, "version": "1.0.0"}}});
    let apps: Vec<Value> = names.iter().map(of).collect();
    let app = json!({
        "apiVersion": "emco.io/v1alpha1", "kind": "CompositeApp",
        "metadata": {"name": "shop", "namespace": TENANT}, "spec": {"apps": apps},
    });
    bed.hub().kubectl().apply(&app.to_string()).await?;
    say(bed, "one").await
}

async fn say(bed: &Bed, word: &str) -> Result<()> {
    let spec = format!(
        "placement: {{allOf: [{{provider: acme, cluster: a}}]}}\noverrideValues: [{{app: huge, values: {{say: {word}}}}}]"
    );
    let both = deployment(TENANT, "shop", &[], &spec);
    let (_, group) = both.split_once("---\n").unwrap_or_default();
    bed.hub().kubectl().apply(group).await.map(drop)
}

/// Bytes of the archives that the hub keeps for the project.
async fn kept(bed: &Bed) -> Result<usize> {
    let list =
        ["get", "secrets", "-n", "emco-system", "--field-selector", "type=emco.io/chart", "-o", "json"];
    let list: Value = serde_json::from_str(&bed.hub().kubectl().run(&list).await?)?;
    let parts = list["items"].as_array().context("no list")?;
    let first =
        parts.iter().filter(|part| part["metadata"]["name"].as_str().is_some_and(|n| n.ends_with("-0")));
    let mut sum = 0;
    for part in first {
        let annotation = |name: &str| part["metadata"]["annotations"][name].as_str().unwrap_or_default();
        // Beside those of other tests.
        if annotation(CHART).starts_with(&format!("{TENANT}: ")) {
            sum += annotation(BYTES).parse::<usize>().context("no size")?;
        }
    }
    Ok(sum)
}

#[tokio::test]
async fn charts_beyond_what_the_hub_keeps_are_named_and_fetched_again_by_a_new_pod() {
    let (bed, mut turn) = IN_TURN.turn().await.unwrap();
    let parts = PARTS.iter().map(|name| of_bytes(name, 7 * MIB));
    let packages: Vec<Package> =
        [of_bytes("huge", 9 * MIB)].into_iter().chain(parts).collect::<Result<_>>().unwrap();
    let repository = Repository::start(packages).await.unwrap();
    bed.explain(Box::pin(async {
        let operator = turn.start(&[]).await?;
        register(bed, "acme", &["a"]).await?;
        let names: Vec<&str> = ["huge"].into_iter().chain(PARTS).collect();
        deploy(bed, &repository, &names).await?;
        deployed(bed, TENANT, "shop", 1).await?;
        let said = wait(bed, TENANT, "shop", |app: &CompositeApp| {
            is(app.status.as_ref(), types::READY, "True")?;
            let ready = app.status.as_ref().and_then(|status| status.condition(types::READY));
            Ok(ready.map(|ready| ready.message.clone()).unwrap_or_default())
        })
        .await?;
        for part in [
            "app huge: its chart is not kept on the hub, as it has more than 8 MiB: a new operator Pod needs its source",
            "app part-5: its chart is not kept on the hub, as the charts of the namespace have 32 MiB",
        ] {
            ensure!(said.contains(part), "{said}");
        }
        ensure!(!said.contains("part-4"), "{said}");
        let bytes = kept(bed).await?;
        ensure!(bytes > 24 * MIB && bytes <= 32 * MIB, "{bytes} bytes are kept");

        // The new Pod has four of the six charts from the hub; what runs stays, and a change waits for the other two.
        repository.hold(true);
        operator.roll(bed).await?;
        say(bed, "two").await?;
        repository.is_waited_for().await;
        let running = bed.hub().api::<DeploymentIntentGroup>(TENANT).await?.get("shop").await?;
        ensure!(running.status.and_then(|status| status.revision) == Some(1));
        repository.hold(false);
        deployed(bed, TENANT, "shop", 2).await?;
        ensure!(kept(bed).await? == bytes, "what is kept stays within its bound");
        Ok(())
    }))
    .await;
}
