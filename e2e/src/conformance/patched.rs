//! Compares strategic merge patches of the objects that all charts render with those of Kubernetes' own library.

use anyhow::{Context as _, Result, anyhow, ensure};
use emco_e2e::patches::{self, Amounts};
use emco_helm::{Chart, Compiled, Limits, RenderRequest, yaml};
use futures::stream::{self, StreamExt as _};
use serde_json::Value;

use super::corpus::Case;
use super::third;

/// Patches that are compared in each run. Other types of them take a process each: `make soak STEP=patches` has those.
const PATCHES: Amounts = Amounts { strategic: 2000, through_kubectl: 0, others: 0 };
/// Charts that are rendered at once.
const AT_ONCE: usize = 4;
/// Fewer charts than these would say little.
const MEANINGFUL: usize = 20;
/// The time of renderings, Unix seconds.
const NOW: i64 = 1_800_000_000;

/// Compares random patches, others with every commit. Answers what was seen.
pub async fn compare(charts: Vec<Case>) -> Result<String> {
    let seed = third::seed()?;
    let objects = patches::comparable(rendered_objects(charts).await?);
    let compared = patches::compare(&objects, seed, PATCHES).await?;
    compared.agree().with_context(|| format!("{}={seed} makes these patches again", third::VARIABLE))?;
    Ok(format!("{compared}, of {} objects", objects.len()))
}

/// The objects of every chart that renders with its own values, or with those that it demands: the same ones each time.
pub async fn rendered_objects(charts: Vec<Case>) -> Result<Vec<Value>> {
    let renderings = charts.into_iter().map(|chart| tokio::task::spawn_blocking(move || rendered(&chart)));
    let mut renderings = stream::iter(renderings).buffered(AT_ONCE);
    let (mut count, mut objects) = (0, Vec::new());
    while let Some(ended) = renderings.next().await {
        // Some demand what only a cluster has.
        if let Ok(made) = ended.context("the thread that renders a chart ended in the middle")? {
            count += 1;
            objects.extend(made);
        }
    }
    ensure!(count >= MEANINGFUL, "only {count} charts can be rendered: too few to say much");
    Ok(objects)
}

fn rendered(case: &Case) -> Result<Vec<Value>> {
    let compiled = Compiled::new(Chart::load_path(&case.chart, &Limits::default())?)?;
    let values = match &case.values {
        Some(file) => yaml::to_json(&std::fs::read(file)?).map_err(|error| anyhow!("{error}"))?,
        None => Value::Null,
    };
    let request = RenderRequest {
        values,
        seed: Some([3; 32]),
        now: Some(NOW),
        // Schemas may be elsewhere, where nothing is reached.
        skip_schema: true,
        skip_crds: true,
        ..RenderRequest::default()
    };
    let rendered = compiled.render(&request).map_err(|error| anyhow!("{error}"))?;
    Ok(rendered.manifests.into_iter().map(|manifest| manifest.json).collect())
}
