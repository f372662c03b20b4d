//! A chart's folder goes into a ConfigMap, again and again, and what runs follows it; what must not be replaced is not.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use emco_crds::CompositeApp;
use emco_e2e::bed::Bed;
use emco_e2e::operator::{deployed, project};
use k8s_openapi::api::core::v1::ConfigMap;

use super::looks::{EVERYWHERE, tenant};
use super::rig::{STAGE, run, run_as};

const SPACE: &str = "pushes";

/// The chart `page` of this word, in a folder.
fn folder(bed: &Bed, name: &str, word: &str) -> Result<PathBuf> {
    let folder = bed.dir().join(name);
    std::fs::create_dir_all(folder.join("templates"))?;
    std::fs::write(folder.join("Chart.yaml"), "apiVersion: v2\nname: page\nversion: 1.0.0\n")?;
    let note = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: page}}\ndata: {{say: {word}}}\n");
    std::fs::write(folder.join("templates/page.yaml"), note)?;
    Ok(folder)
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().context("the path is no UTF-8")
}

/// What an edge says.
async fn says(bed: &Bed, word: &str) -> Result<()> {
    let maps = bed.edge("a").api::<ConfigMap>(SPACE).await?;
    let data = maps.get("page").await?.data.unwrap_or_default();
    ensure!(data.get("say").map(String::as_str) == Some(word), "{data:?}");
    Ok(())
}

#[tokio::test]
async fn a_folder_is_pushed_again_and_what_runs_follows_it() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        project(bed, SPACE).await?;
        let page = folder(bed, SPACE, "one")?;
        let push = ["chart", "push", text(&page)?, "-n", SPACE];
        run(bed, &push).await?.is(
            0,
            &[
                "page 1.0.0 is now in ConfigMap pushes/page, key chart.tgz: ",
                "no CompositeApp of namespace pushes names it yet: chart: {configMapRef: {name: page}}",
            ],
        );
        let group = format!("compositeAppRef: {{name: pages}}\n  {EVERYWHERE}");
        let objects = format!(
            "
apiVersion: emco.io/v1alpha1
kind: CompositeApp
metadata: {{name: pages, namespace: {SPACE}}}
spec: {{apps: [{{name: page, chart: {{configMapRef: {{name: page}}}}}}]}}
---
apiVersion: emco.io/v1alpha1
kind: DeploymentIntentGroup
metadata: {{name: pages, namespace: {SPACE}}}
spec:
  {group}
"
        );
        bed.hub().kubectl().apply(&objects).await?;
        deployed(bed, SPACE, "pages", 1).await?;
        says(bed, "one").await?;

        // The same version with other bytes: the CompositeApp takes them.
        folder(bed, SPACE, "two")?;
        run(bed, &push).await?.is(
            0,
            &[
                "page 1.0.0 is now in",
                "CompositeApp pushes/pages takes it: spec.apps[].chart.digest is set of app page",
            ],
        );
        deployed(bed, SPACE, "pages", 2).await?;
        says(bed, "two").await?;

        // Once more is no change, neither of the one nor of the other.
        let versions = async || -> Result<Vec<Option<String>>> {
            let map = bed.hub().api::<ConfigMap>(SPACE).await?.get("page").await?;
            let app = bed.hub().api::<CompositeApp>(SPACE).await?.get("pages").await?;
            Ok(vec![map.metadata.resource_version, app.metadata.resource_version])
        };
        let before = versions().await?;
        let said = run(bed, &push).await?;
        said.is(0, &["page 1.0.0 is already in", "CompositeApp pushes/pages has this digest: app page"]);
        ensure!(versions().await? == before, "something was written");
        let app = bed.hub().api::<CompositeApp>(SPACE).await?.get("pages").await?;
        let digest = app.spec.apps[0].chart.digest.clone().context("no digest is set")?;
        ensure!(said.out.contains(&digest), "{} does not say {digest}", said.out);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_chart_that_cannot_be_pushed_is_refused_with_a_sentence() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        let space = "unpushed";
        project(bed, space).await?;
        let page = folder(bed, space, "one")?;
        let push = |path: &'static str| ["chart", "push", path, "-n", space];
        run(bed, &push("/dev/null")).await?.is(1, &["/dev/null is no chart"]);
        run(bed, &push("/nowhere")).await?.is(1, &["/nowhere cannot be read: name the folder of a chart"]);
        run(bed, &["chart", "push"]).await?.is(2, &["<DIR>"]);

        // More than a ConfigMap holds, and no compressor makes it smaller.
        let large = bed.dir().join("pushed-large");
        std::fs::create_dir_all(&large)?;
        std::fs::write(large.join("Chart.yaml"), "apiVersion: v2\nname: large\nversion: 1.0.0\n")?;
        let mut word = 1_u64;
        let noise = std::iter::repeat_with(|| {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            word.to_be_bytes()[0]
        });
        std::fs::write(large.join("noise"), noise.take(1_200_000).collect::<Vec<u8>>())?;
        run(bed, &["chart", "push", text(&large)?, "-n", space])
            .await?
            .is(1, &["chart large 1.0.0 has 1", "a ConfigMap holds 1048576", "chart.repository"]);

        // What is not this chart is not replaced.
        let here = text(&page)?;
        let kubectl = bed.hub().kubectl();
        let named = ["create", "cm", "page", "-n", space, "--from-literal=chart.tgz=settings"];
        kubectl.run(&named).await?;
        run(bed, &["chart", "push", here, "-n", space])
            .await?
            .is(1, &["key chart.tgz of ConfigMap unpushed/page is a text, and no chart"]);
        run(bed, &["chart", "push", here, "-n", space, "--key", "page.tgz"])
            .await?
            .is(0, &["page 1.0.0 is now in ConfigMap unpushed/page, key page.tgz", "key: page.tgz}}"]);
        let kept = ["get", "cm", "page", "-n", space, "-o", r"jsonpath={.data.chart\.tgz}"];
        ensure!(kubectl.run(&kept).await? == "settings", "another key was changed");

        // With the rights of who asks.
        let tenant = tenant(bed, space).await?;
        run_as(bed, &tenant, &["chart", "push", here, "-n", space])
            .await?
            .is(1, &["you may not read config map unpushed/page"]);
        run(bed, &["chart", "push", here, "-n", space, "--as", "nobody-at-all"])
            .await?
            .is(1, &["you may not read config map unpushed/page"]);
        Ok(())
    })
    .await;
}
