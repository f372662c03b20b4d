//! Prints the least roles that deployments need on clusters, made from what is stored of all their revisions.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use emco_controllers::remote::served;
use emco_controllers::sync::content::HubContent;
use emco_crds::{DeploymentIntentGroup, Project};
use emco_engine::apis::ApiList;
use emco_engine::identity::{ClusterId, SetDigest};
use emco_engine::role::{self, Names};
use emco_engine::set::ManifestSet;
use emco_engine::text::counted;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use serde_json::json;

use super::add::level;
use super::args::deployments::ManifestFormat;
use super::args::role::{Account, RoleArgs};
use super::diff::{edge, past};
use super::hub::{self, Hub};
use super::{Outcome, print, stored};

mod listed;
pub mod show;

/// Clusters that are asked what they serve, until one answers.
const MOST_ASKED: usize = 3;
/// For one cluster.
const LIMIT: Duration = Duration::from_secs(20);

/// `kubectl emco role`.
pub async fn run(args: RoleArgs) -> anyhow::Result<Outcome> {
    if let Some(level) = args.level {
        level::run(&args, level).await?;
        return Ok(Outcome::AsWanted);
    }
    if args.permissions {
        listed::run(&args).await?;
        return Ok(Outcome::AsWanted);
    }
    if args.account.edge_context.is_some() {
        bail!("--edge-context is for --level: which rights a deployment needs is read on the hub");
    }
    let hub = hub::connect(&args.hub).await?;
    let (namespace, digs, of) = asked_for(&hub, &args).await?;
    stored::may_read(&hub, "role", &namespace, digs.first().map_or("", String::as_str)).await?;
    let content = stored::content(&hub);
    let mut found = Found::default();
    for dig in &digs {
        found.add(&hub, &content, (namespace.as_str(), dig.as_str()), &args).await?;
    }
    if found.sets.is_empty() {
        bail!("nothing is stored of {of} for this part: no role is needed");
    }
    let (id, apis) = apis(&hub, &found.clusters).await?;
    let names = if args.by_name { Names::Listed } else { Names::Any };
    let roles = role::least(found.sets.values().map(AsRef::as_ref), &apis, names);
    if let Some(((group, kind), because)) = roles.unknown.first_key_value() {
        bail!(
            "{id} does not serve kind {kind} of group {group:?}, so that the rights to it have no name yet; it is needed by {}",
            because.first().map_or("", String::as_str)
        );
    }
    let subject = match (&args.serviceaccount, &args.user) {
        (Some(Account { namespace, name }), _) => {
            Some(json!({"kind": "ServiceAccount", "namespace": namespace, "name": name}))
        }
        (None, Some(user)) => Some(json!({"apiGroup": role::RBAC, "kind": "User", "name": user})),
        (None, None) => None,
    };
    let name = match &args.project {
        Some(project) => format!("emco:{project}"),
        None => format!("emco:{namespace}:{}", digs.first().map_or("", String::as_str)),
    };
    let objects = show::objects(&roles, &name, subject.as_ref());
    match args.output {
        ManifestFormat::Yaml => {
            let revisions = counted(found.revisions, "stored revision");
            let heading = format!("What {of} needs on clusters, of {revisions}; kinds as {id} serves them.");
            print(&show::text(&heading, &objects))?;
        }
        ManifestFormat::Json => print(&(serde_json::to_string_pretty(&show::list(&objects))? + "\n"))?,
    }
    Ok(Outcome::AsWanted)
}

/// The namespace on the hub, the deployments in it, and how they are called together.
async fn asked_for(hub: &Hub, args: &RoleArgs) -> anyhow::Result<(String, Vec<String>, String)> {
    if let Some(deployment) = &args.deployment {
        let (namespace, name) = hub.locate(deployment, args.namespace.as_deref()).await?;
        hub.deployment(&namespace, &name).await?;
        let of = format!("{namespace}/{name}");
        return Ok((namespace, vec![name], of));
    }
    let project = args.project.as_deref().unwrap_or_default();
    let found = Api::<Project>::all(hub.client.clone())
        .get_opt(project)
        .await
        .map_err(|error| hub.sentence(&error, "read project", project))?
        .with_context(|| format!("there is no Project {project} on the hub {}", hub.url))?;
    let namespace = found.spec.namespace.unwrap_or_else(|| project.to_owned());
    let api = Api::<DeploymentIntentGroup>::namespaced(hub.client.clone(), &namespace);
    let digs = hub.list(api, &ListParams::default(), "deployment intent groups", Some(&namespace)).await?;
    Ok((namespace, digs.iter().map(ResourceExt::name_any).collect(), format!("project {project}")))
}

/// What is stored of deployments.
#[derive(Default)]
struct Found {
    sets: BTreeMap<(String, SetDigest), Arc<ManifestSet>>,
    clusters: BTreeSet<ClusterId>,
    revisions: usize,
}

impl Found {
    async fn add(
        &mut self,
        hub: &Hub,
        content: &HubContent,
        (namespace, name): (&str, &str),
        args: &RoleArgs,
    ) -> anyhow::Result<()> {
        for context in past::contexts(hub, namespace, name).await? {
            let (source, targets) = past::given(content, namespace, &context).await?;
            self.revisions += 1;
            for (cluster, target) in targets {
                for (app, digest) in target.apps {
                    if !args.part.takes(&app, cluster.as_str()) {
                        continue;
                    }
                    self.clusters.insert(cluster.clone());
                    if let Entry::Vacant(fresh) = self.sets.entry((source.owner.clone(), digest)) {
                        let set = stored::set(content, &source, &fresh.key().1).await?;
                        fresh.insert(set);
                    }
                }
            }
        }
        Ok(())
    }
}

/// What the first of some clusters serves that answers.
async fn apis(hub: &Hub, clusters: &BTreeSet<ClusterId>) -> anyhow::Result<(ClusterId, Arc<ApiList>)> {
    let mut why = anyhow!("no cluster could be asked what it serves");
    for id in clusters.iter().take(MOST_ASKED) {
        let asked = async {
            let edge = edge::connect(hub, id, None, String::new()).await?;
            anyhow::Ok(served(edge.client, id.as_str()).await?.0)
        };
        match tokio::time::timeout(LIMIT, asked).await {
            Ok(Ok(list)) => return Ok((id.clone(), list)),
            Ok(Err(error)) => why = error.context(format!("{id} cannot be asked what it serves")),
            Err(_) => why = anyhow!("{id} does not answer within {} s", LIMIT.as_secs()),
        }
    }
    Err(why.context("rights are to resources, and which resource a kind has, a cluster says"))
}
