//! Takes objects of many kinds away from an edge: those that no watch shows are found out by a list, minutes later.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use kube::Api;
use kube::api::DynamicObject;

use super::{EDGE, PLACEMENT, kinds};
use crate::bed::Bed;
use crate::operator::{chart, chart_map, deployed, deployment, project, register};
use crate::wait::wait_for;

/// Far less than the three minutes after which a kind without a watch is listed, and enough for a slow machine.
const SOON: Duration = Duration::from_secs(90);
const SPACE: &str = "watched";
const RELEASE: &str = "app";

/// Deploys an object of each of so many kinds, which the edge has already, deletes all of them on the edge, and waits until each is
/// there again. Answers how long that took. In the end the deployment is removed.
///
/// # Errors
/// An object is not made again while its watch would show its end.
pub async fn watched(bed: &Bed, kinds: usize) -> Result<Duration> {
    let edge = bed.edge(EDGE);
    register(bed, "acme", &[EDGE]).await?;
    project(bed, SPACE).await?;
    let manifests: String = (0..kinds).map(kinds::manifest).collect();
    let app = chart("web", "1.0.0", &[("templates/all.yaml", &manifests)])?;
    chart_map(bed, SPACE, "charts", std::slice::from_ref(&app)).await?;
    bed.hub().kubectl().apply(&deployment(SPACE, RELEASE, &[app], PLACEMENT)).await?;
    deployed(bed, SPACE, RELEASE, 1).await?;

    let client = edge.client().await?;
    let mut before = Vec::new();
    for number in 0..kinds {
        let api: Api<DynamicObject> = kinds::api(client.clone(), number, SPACE);
        let uid = api.get(RELEASE).await?.metadata.uid.context("an object without uid")?;
        before.push((number, api, uid));
    }
    let all: Vec<String> = (0..kinds).map(kinds::resource).collect();
    let deleted = Instant::now();
    edge.kubectl().run(&["delete", &all.join(","), RELEASE, "-n", SPACE, "--wait=false"]).await?;
    for (number, api, old) in before {
        let what = format!("{} again", kinds::name(number, SPACE, RELEASE));
        wait_for(api, SOON.saturating_sub(deleted.elapsed()), &what, |found| {
            let again = found.values().any(|object| {
                let metadata = &object.metadata;
                metadata.name.as_deref() == Some(RELEASE)
                    && metadata.uid.as_ref().is_some_and(|uid| *uid != old)
            });
            if again { Ok(()) } else { Err("it is not made again".to_owned()) }
        })
        .await?;
    }
    let took = deleted.elapsed();
    deployed(bed, SPACE, RELEASE, 1).await?;
    let remove = ["delete", "dig", RELEASE, "-n", SPACE, "--timeout=90s"];
    bed.hub().kubectl().run(&remove).await?;
    Ok(took)
}
