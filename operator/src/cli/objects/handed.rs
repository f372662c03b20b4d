//! Objects of a deployment as the operator hands them on to members of a project, who may read neither packs nor clusters.

use std::collections::BTreeMap;

use anyhow::bail;
use emco_crds::deployment_intent_group::view::{Question, ViewOf};
use emco_engine::shard::rows;
use serde::{Deserialize, Serialize};

use super::narrow::Met;
use super::report::ClusterObjects;
use super::{Asking, Job, OnCluster, rules};
use crate::cli::args::deployments::PartArgs;
use crate::cli::args::objects::ObjectArgs;
use crate::cli::hub::Hub;
use crate::cli::status::filter::Filter;
use crate::cli::status::tree::{App, There, Tree};
use crate::cli::{pulse, stored};

/// Objects of one app on one cluster.
#[derive(Serialize, Deserialize)]
pub struct Handed {
    app: String,
    objects: ClusterObjects,
}

/// The question for objects.
pub(super) fn question(part: &PartArgs, live: bool) -> Question {
    let (clusters, apps) = (part.cluster.clone(), part.app.clone());
    Question { what: ViewOf::Objects, clusters, apps, live: live.then_some(true), ..Question::default() }
}

/// The operator's answer as that of clusters, as far as it is asked for.
pub(super) fn found(handed: Vec<Handed>, there: &BTreeMap<(String, String), There>) -> Vec<OnCluster> {
    let is_asked_for = |one: &Handed| there.contains_key(&(one.objects.cluster.clone(), one.app.clone()));
    let asked_for = handed.into_iter().filter(is_asked_for);
    let as_found = |one: Handed| {
        let mut objects = one.objects;
        objects.read_back();
        OnCluster { met: Met::of_objects(&objects), apps: vec![(one.app, objects)] }
    };
    asked_for.map(as_found).collect()
}

/// The operator's answer to a question about a part of a deployment.
pub async fn handed(
    hub: &Hub,
    (namespace, name): &(String, String),
    part: &PartArgs,
    live: bool,
) -> anyhow::Result<Vec<Handed>> {
    let group = hub.deployment(namespace, name).await?;
    let shards = hub.shards(namespace, name).await?;
    let reading = pulse::read(hub).await;
    let rules = rules::read(hub, &reading.pulse).await;
    let (clusters, apps) = (part.cluster.clone(), part.app.clone());
    let filter = Filter { clusters, apps, ..Filter::default() };
    let mut tree = Tree::of(&[group], &shards, reading.pulse, &filter);
    let Some(group) = tree.groups.pop() else {
        bail!("{namespace}/{name} has no such app on such a cluster")
    };
    let mut jobs: Vec<Job> = Vec::new();
    for shard in &shards {
        let hash = stored::owner_hash(shard)?;
        for row in rows(&shard.spec, shard.status.as_ref()) {
            let here = |app: &App| {
                let there = app.clusters.iter().find(|there| there.cluster == row.cluster.as_str())?;
                Some((app.name.clone(), there.clone()))
            };
            let mine: BTreeMap<String, There> = group.apps.iter().filter_map(here).collect();
            if !mine.is_empty() {
                jobs.push((hash.clone(), row, mine));
            }
        }
    }
    let content = stored::content(hub);
    let objects = ObjectArgs::default();
    let (content, health_rules, objects) = (&content, &rules, &objects);
    let asking = Asking { hub, content, health_rules, part, objects, live, refusals: live };
    let answers = asking.all(namespace, jobs).await;
    let apps = answers.into_iter().flat_map(|one| one.apps);
    Ok(apps.map(|(app, objects)| Handed { app, objects }).collect())
}
