//! Finds the tests of what runs: of the newest stored revision that gives a cluster exactly what its row says.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::bail;
use emco_controllers::sync::content::{HubContent, Source};
use emco_crds::{AppContext, DeploymentIntentGroup};
use emco_engine::identity::{ClusterId, SetDigest};
use emco_engine::set::{Assigned, Assignment, SetManifest};
use emco_engine::shard::{Row, rows};
use kube::ResourceExt as _;

use super::report::Problem;
use crate::cli::args::deployments::PartArgs;
use crate::cli::diff::past;
use crate::cli::hub::Hub;
use crate::cli::stored;

/// The tests of one app on one cluster.
pub(super) struct AppTests {
    pub app: String,
    /// The revision that they are of.
    pub revision: i64,
    /// In the order of running.
    pub tests: Vec<SetManifest>,
    /// Why tests cannot be run.
    problems: Vec<String>,
}

/// A cluster, and the tests of what it has.
pub(super) struct OnCluster {
    pub id: ClusterId,
    /// The identity it is known to have.
    pub uid: Option<String>,
    /// Of the owner.
    pub hash: String,
    pub apps: Vec<AppTests>,
    /// Why nothing is tested there.
    problem: Option<String>,
}

impl OnCluster {
    /// How many there are.
    pub fn tests(&self) -> usize {
        self.apps.iter().map(|app| app.tests.len()).sum()
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.apps.iter().flat_map(|app| &app.tests).map(|test| test.identity().name)
    }

    /// Leaves out the others.
    pub fn keep(&mut self, is_meant: impl Fn(&str) -> bool) {
        for app in &mut self.apps {
            app.tests.retain(|test| is_meant(&test.identity().name));
        }
    }

    /// What keeps tests from being run.
    pub fn problems(&self) -> Vec<Problem> {
        let cluster = self.id.as_str();
        let mut all: Vec<Problem> = self.problem.iter().map(|why| Problem::new(cluster, None, why)).collect();
        for app in &self.apps {
            all.extend(app.problems.iter().map(|why| Problem::new(cluster, Some(&app.app), why)));
        }
        all
    }
}

/// The clusters and apps that are asked for.
pub(super) async fn all(
    hub: &Hub,
    group: &DeploymentIntentGroup,
    part: &PartArgs,
) -> anyhow::Result<Vec<OnCluster>> {
    let (namespace, name) = (group.namespace().unwrap_or_default(), group.name_any());
    let shards = hub.shards(&namespace, &name).await?;
    let mut contexts = past::contexts(hub, &namespace, &name).await?;
    // A pinned revision before all others, then the newest.
    let pinned = group.spec.revision;
    contexts.sort_by_key(|context| {
        (Some(context.spec.revision) != pinned, std::cmp::Reverse(context.spec.revision))
    });
    let content = stored::content(hub);
    let mut revisions =
        Revisions { content: &content, namespace: &namespace, contexts: &contexts, read: BTreeMap::new() };
    let mut found: BTreeMap<ClusterId, OnCluster> = BTreeMap::new();
    let mut apps = Vec::new();
    let said = format!("{namespace}/{name}");
    for shard in &shards {
        let hash = stored::owner_hash(shard)?;
        for row in rows(&shard.spec, shard.status.as_ref()) {
            let Some(target) = row.target.as_ref().filter(|target| !target.is_found()) else { continue };
            apps.extend(target.apps.keys().cloned());
            if target.apps.keys().any(|app| part.takes(app, row.cluster.as_str())) {
                let one = on_cluster(&mut revisions, &row, hash.clone(), part, &said);
                found.insert(row.cluster.clone(), one.await);
            }
        }
    }
    if let Some(missing) = part.cluster.iter().find(|wanted| !found.keys().any(|id| id.as_str() == *wanted)) {
        bail!("{said} has nothing on cluster {missing} that could be tested");
    }
    if let Some(missing) = part.app.iter().find(|wanted| !apps.contains(wanted)) {
        bail!("{said} has no app {missing} on any cluster");
    }
    if found.is_empty() {
        bail!("{said} has nothing on any cluster that could be tested");
    }
    Ok(found.into_values().collect())
}

async fn on_cluster(
    revisions: &mut Revisions<'_>,
    row: &Row,
    hash: String,
    part: &PartArgs,
    said: &str,
) -> OnCluster {
    let mut one =
        OnCluster { id: row.cluster.clone(), uid: row.uid.clone(), hash, apps: Vec::new(), problem: None };
    let Some(target) = &row.target else { return one };
    if !row.complete {
        one.problem = Some(format!(
            "revision {} is not completely applied there: `kubectl emco wait {said} --for=applied` waits for it",
            target.revision
        ));
        return one;
    }
    for (app, set) in target.apps.iter().filter(|(app, _)| part.takes(app, row.cluster.as_str())) {
        one.apps.push(revisions.tests(&row.cluster, app, set, &one.hash).await);
    }
    one
}

/// Stored revisions, each read once.
struct Revisions<'a> {
    content: &'a HubContent,
    namespace: &'a str,
    /// Those that are asked first, first.
    contexts: &'a [AppContext],
    read: BTreeMap<i64, Result<Arc<Assignment>, String>>,
}

impl Revisions<'_> {
    fn source(&self, hash: &str, revision: i64) -> Source {
        Source { namespace: self.namespace.to_owned(), owner: hash.to_owned(), revision }
    }

    async fn assignment(&mut self, hash: &str, revision: i64) -> Result<Arc<Assignment>, String> {
        if let Some(known) = self.read.get(&revision) {
            return known.clone();
        }
        let source = self.source(hash, revision);
        let read = self.content.assignment(&source).await.map(Arc::new).map_err(|trouble| trouble.message);
        self.read.insert(revision, read.clone());
        read
    }

    /// The first revision that gives the app this set there, and what it says.
    async fn of_set(
        &mut self,
        cluster: &ClusterId,
        app: &str,
        set: &SetDigest,
        hash: &str,
    ) -> Result<(i64, Assigned), String> {
        let mut unread = None;
        for revision in self.contexts.iter().map(|context| context.spec.revision) {
            match self.assignment(hash, revision).await {
                Ok(assignment) => {
                    let assigned = assignment.get(cluster).and_then(|apps| apps.get(app));
                    if let Some(assigned) = assigned.filter(|assigned| assigned.set == *set) {
                        return Ok((revision, assigned.clone()));
                    }
                }
                Err(why) => unread = unread.or(Some(why)),
            }
        }
        Err(unread.unwrap_or_else(|| "no stored revision is what runs there".to_owned()))
    }

    async fn tests(&mut self, cluster: &ClusterId, app: &str, set: &SetDigest, hash: &str) -> AppTests {
        let mut found =
            AppTests { app: app.to_owned(), revision: 0, tests: Vec::new(), problems: Vec::new() };
        let (revision, assigned) = match self.of_set(cluster, app, set, hash).await {
            Ok(found) => found,
            Err(why) => {
                found.problems.push(why);
                return found;
            }
        };
        found.revision = revision;
        let Some(tests) = assigned.tests else {
            found.problems.push(format!(
                "revision {revision} was rendered before tests were kept: raise spec.renderSerial, which renders its charts again"
            ));
            return found;
        };
        found.problems.extend(tests.left_out);
        if let Some(digest) = &tests.set {
            match stored::set(self.content, &self.source(hash, revision), digest).await {
                Ok(set) => found.tests.clone_from(&set.manifests),
                Err(why) => found.problems.push(format!("the tests of revision {revision}: {why:#}")),
            }
        }
        found
    }
}
