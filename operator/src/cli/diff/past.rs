//! Reads what an earlier revision gave to each cluster.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, anyhow, bail};
use emco_controllers::sync::content::{HubContent, Source};
use emco_crds::names::label;
use emco_crds::{AppContext, OwnerKind};
use emco_engine::identity::ClusterId;
use emco_engine::set::Assignment;
use emco_engine::shard::Target;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};

use crate::cli::hub::Hub;

/// The stored revisions of a deployment.
pub async fn contexts(hub: &Hub, namespace: &str, name: &str) -> anyhow::Result<Vec<AppContext>> {
    let params = ListParams::default().labels(&OwnerKind::DeploymentIntentGroup.selector(name));
    let api = Api::<AppContext>::namespaced(hub.client.clone(), namespace);
    hub.list(api, &params, "appcontexts", Some(namespace)).await
}

fn hash(context: &AppContext) -> anyhow::Result<String> {
    let hash = context.labels().get(label::OWNER).cloned();
    hash.with_context(|| format!("AppContext {} has lost its label {}", context.name_any(), label::OWNER))
}

/// The owner hash of a deployment.
pub async fn owner_hash(hub: &Hub, namespace: &str, name: &str) -> anyhow::Result<String> {
    let contexts = contexts(hub, namespace, name).await?;
    hash(contexts.first().with_context(|| format!("{namespace}/{name} has no revisions"))?)
}

/// What a stored revision gave to each cluster.
pub async fn read(
    hub: &Hub,
    content: &HubContent,
    namespace: &str,
    name: &str,
    number: i64,
) -> anyhow::Result<BTreeMap<ClusterId, Target>> {
    let context = context(hub, namespace, name, number).await?;
    Ok(given(content, namespace, &context).await?.1)
}

/// All cells of a stored revision, with what they were made of.
pub async fn assignment(
    hub: &Hub,
    content: &HubContent,
    namespace: &str,
    name: &str,
    number: i64,
) -> anyhow::Result<Assignment> {
    let context = context(hub, namespace, name, number).await?;
    let source = Source { namespace: namespace.to_owned(), owner: hash(&context)?, revision: number };
    content.assignment(&source).await.map_err(|trouble| anyhow!("{}", trouble.message))
}

async fn context(hub: &Hub, namespace: &str, name: &str, number: i64) -> anyhow::Result<AppContext> {
    let contexts = contexts(hub, namespace, name).await?;
    let found = contexts.iter().find(|context| context.spec.revision == number);
    let Some(context) = found else {
        let kept: BTreeSet<i64> = contexts.iter().map(|context| context.spec.revision).collect();
        let kept: Vec<String> = kept.iter().map(i64::to_string).collect();
        bail!(
            "revision {number} of {namespace}/{name} is not stored: there are {}; spec.revisionHistoryLimit says how many are kept",
            if kept.is_empty() { "none".to_owned() } else { kept.join(", ") }
        );
    };
    Ok(context.clone())
}

/// What a revision gave to each cluster, and where its manifests are.
pub async fn given(
    content: &HubContent,
    namespace: &str,
    context: &AppContext,
) -> anyhow::Result<(Source, BTreeMap<ClusterId, Target>)> {
    let number = context.spec.revision;
    let source = Source { namespace: namespace.to_owned(), owner: hash(context)?, revision: number };
    let assignment = content.assignment(&source).await.map_err(|trouble| anyhow!("{}", trouble.message))?;
    let target = |apps: BTreeMap<String, emco_engine::set::Assigned>| Target {
        name: format!("revision {number}"),
        revision: number,
        apps: apps.into_iter().map(|(app, assigned)| (app, assigned.set)).collect(),
    };
    let targets = assignment.into_iter().map(|(cluster, apps)| (cluster, target(apps))).collect();
    Ok((source, targets))
}
