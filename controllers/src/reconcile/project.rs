//! Reconciles Projects: their namespace, members, default logical cloud and counts.

use emco_crds::names::object::DEFAULT_LOGICAL_CLOUD;
use emco_crds::names::{annotation, finalizer, label};
use emco_crds::project::{ProjectCounts, ProjectStatus};
use emco_crds::{Cluster, ClusterProvider, DeploymentIntentGroup, LogicalCloud, Project};
use emco_engine::text::counted;
use emco_engine::{cloud, holders, unsupported};
use futures::future::BoxFuture;
use kube::Resource;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

use crate::api::ApiServerExt;
use crate::object::context::{Failure, Outcome, Reconciled};
use crate::object::finalizers;
use crate::object::meta;
use crate::object::status::{self, ReadyState};
use crate::object::transitions;
use crate::reconcile::context::Context;
use crate::reconcile::in_use::{self, Holders};
use crate::reconcile::kind::{Controlled, Listener, Reach};
use crate::reconcile::members;
use crate::store;
use crate::tenancy::facts;
use crate::tenancy::owned_namespace::{self, Owner, Refused};
use crate::triggers::ProjectChanged;

/// When what nobody tells of is looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

impl Controlled for Project {
    /// It counts what is in its namespace.
    const APART: Duration = Duration::from_secs(1);

    fn reconcile<'a>(ctx: &'a Context, _: &'a str, name: &'a str) -> BoxFuture<'a, Reconciled> {
        Box::pin(reconcile(ctx, name))
    }

    /// Everything in its namespace looks again.
    fn listener(_: &Reach) -> Listener<Self> {
        let changed = ProjectChanged::default();
        Box::new(move |reach, change| {
            let stores = &reach.ctx.stores;
            // Before anybody looks again.
            for namespace in stores.suspended.note(change.object, change.gone) {
                reach.ctx.turns.stop_all(&namespace);
                reach.sync.suspension_changed(&namespace);
            }
            if changed.changed(change) {
                reach.triggers.project(stores, change.object);
            }
            reach.maps.project(stores, change);
        })
    }
}

/// Brings one project to where it should be.
pub async fn reconcile(ctx: &Context, name: &str) -> Reconciled {
    let Some(project) = ctx.stores.projects.named("", name) else { return Ok(Outcome::Settled) };
    let namespace = project.owned_namespace().to_owned();
    let owner = Owner { kind: "Project", name, label: label::PROJECT };
    let mut status = project.status.clone().unwrap_or_default();
    let generation = meta::generation(project.as_ref());
    let owned = owned_namespace::project_of(ctx, &namespace).as_deref() == Some(name);
    let digs: Vec<Arc<DeploymentIntentGroup>> =
        if owned { ctx.stores.digs.within(&namespace) } else { Vec::new() };
    let clouds: Vec<Arc<LogicalCloud>> =
        if owned { ctx.stores.clouds.within(&namespace) } else { Vec::new() };
    let holders = holders::project(
        &project,
        &namespace,
        digs.iter().map(AsRef::as_ref),
        clouds.iter().map(AsRef::as_ref),
    );
    status.in_use = holders::in_use(&holders);
    if meta::deleting(project.as_ref()) {
        return terminate(ctx, &project, &namespace, owner, holders, status).await;
    }
    if finalizers::add(ctx, project.as_ref(), finalizer::IN_USE).await? {
        return Ok(Outcome::Settled);
    }
    status::set_in_use(ctx, &mut status, generation, None);
    let mut again = None;
    if let Some(sentence) = unsupported::check_project(&project.spec) {
        status::set_ready(ctx, &mut status, generation, &ReadyState::Stalled, "NotSupportedYet", &sentence);
    } else if let Err(refused) = owned_namespace::ensure(ctx, &namespace, owner).await? {
        stalled(ctx, &mut status, generation, &refused);
    } else {
        // Before anything that takes its time: members may look on.
        let members = members::ensure(ctx, &project, &namespace).await?;
        keep_default_cloud(ctx, &project, &namespace).await?;
        let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        status.namespace = Some(namespace.clone());
        status.counts = Some(ProjectCounts {
            deployment_intent_groups: count(digs.len()),
            logical_clouds: count(clouds.len()),
        });
        let granted = is_granted_any(ctx, &project);
        let noted = noted(&project, digs.len(), clouds.is_empty());
        if let Err(refused) = &members {
            stalled(ctx, &mut status, generation, refused);
            // Who takes a foreign binding away, or gives us the right, tells nobody.
            again = Some(LOOK_AGAIN);
        } else if !granted {
            let message = format!(
                "namespace {namespace}{noted}; no cluster is granted: a ClusterProvider must name project {name} in spec.grants, and have Clusters"
            );
            status::set_ready(
                ctx,
                &mut status,
                generation,
                &ReadyState::Ready,
                "NoClustersGranted",
                &message,
            );
        } else {
            let message = format!("namespace {namespace}{noted}");
            status::set_ready(ctx, &mut status, generation, &ReadyState::Ready, "NamespaceReady", &message);
        }
    }
    status::write(ctx, project.as_ref(), project.status.as_ref(), &status).await?;
    Ok(Outcome::Settled.at_latest(again))
}

/// True where a provider grants a project any cluster that there is. The first one is enough.
fn is_granted_any(ctx: &Context, project: &Project) -> bool {
    let (name, labels) = (meta::name(project), facts::labels(project));
    let providers = ctx.stores.providers.sorted();
    let providers: Vec<&ClusterProvider> = providers.iter().map(AsRef::as_ref).collect();
    let granting: Vec<_> =
        providers.into_iter().filter(|provider| cloud::grants_any(provider, name, &labels)).collect();
    let is_granted = |cluster: &Cluster| {
        let facts = facts::facts(ctx, cluster).map(|facts| (facts.id.clone(), facts));
        !cloud::granted(name, &labels, &granting, &facts.into_iter().collect()).is_empty()
    };
    !granting.is_empty() && ctx.stores.clusters.find(is_granted).is_some()
}

fn stalled(ctx: &Context, status: &mut ProjectStatus, generation: i64, refused: &Refused) {
    status::set_ready(ctx, status, generation, &ReadyState::Stalled, refused.reason, &refused.message);
}

/// What is said of the project beside its namespace.
fn noted(project: &Project, digs: usize, cloudless: bool) -> String {
    let suspended = match project.spec.suspend {
        Some(true) => "; suspended: nothing is written to clusters for it until spec.suspend is unset",
        _ => "",
    };
    let cloudless = match project.spec.logical_cloud {
        None if cloudless => "; it has no logical cloud to deploy in: spec.logicalCloud: {} makes one",
        _ => "",
    };
    format!("{suspended}{cloudless}{}", beyond_limit(project, digs))
}

/// What is said where the limit of deployments was lowered below what there is.
fn beyond_limit(project: &Project, digs: usize) -> String {
    let most = project.most_deployments();
    if usize::try_from(most).is_ok_and(|most| digs <= most) {
        return String::new();
    }
    let digs = counted(digs, "deployment intent group");
    format!("; it has {digs}, and spec.limits.deploymentIntentGroups allows {most}: those that run stay")
}

/// Makes the logical cloud `default` where the project keeps one. One that exists is left as it is: its level is its own.
async fn keep_default_cloud(ctx: &Context, project: &Project, namespace: &str) -> Result<(), Failure> {
    let Some(wanted) = &project.spec.logical_cloud else { return Ok(()) };
    if owned_namespace::ends(ctx, namespace)
        || ctx.stores.clouds.named(namespace, DEFAULT_LOGICAL_CLOUD).is_some()
    {
        return Ok(());
    }
    let object = json!({
        "apiVersion": LogicalCloud::api_version(&()), "kind": LogicalCloud::kind(&()),
        "metadata": {
            "name": DEFAULT_LOGICAL_CLOUD, "namespace": namespace,
            "annotations": {(annotation::MADE_BY): ctx.installation.id},
        },
        "spec": {"level": wanted.level},
    });
    match ctx.hub().create(meta::collection::<LogicalCloud>(Some(namespace)), &object).await {
        Err(error) if !error.already_exists() => Err(error.into()),
        _ => Ok(()),
    }
}

/// Waits for the holders, removes the default cloud, then the namespace, then lets go.
async fn terminate(
    ctx: &Context,
    project: &Project,
    namespace: &str,
    owner: Owner<'_>,
    holders: Vec<String>,
    mut status: ProjectStatus,
) -> Reconciled {
    let generation = meta::generation(project);
    let mut holders = Holders::shown(holders);
    let mut default_cloud = None;
    // The hub is asked last, for watches may be behind: what is in the namespace ends with it.
    if holders.names.is_empty() && owned_namespace::is_of(ctx, namespace, owner).await? {
        let digs: Vec<DeploymentIntentGroup> = in_use::listed(ctx, namespace).await?;
        let clouds: Vec<LogicalCloud> = in_use::listed(ctx, namespace).await?;
        holders = Holders::listed(holders::project(project, namespace, &digs, &clouds));
        default_cloud = clouds.into_iter().find(|cloud| meta::name(cloud) == DEFAULT_LOGICAL_CLOUD);
    }
    let mut waits = holders::waits_for(&holders.names);
    let mut again = holders.again();
    if waits.is_none()
        && let Some(cloud) = &default_cloud
    {
        if !meta::deleting(cloud) {
            ctx.hub().delete(meta::path(cloud), Some(meta::uid(cloud)), None).await?;
        }
        let shown = ctx.stores.clouds.named(namespace, DEFAULT_LOGICAL_CLOUD).is_some();
        again = (!shown).then_some(store::SHOWN);
        waits = Some(format!(
            "deletion waits for LogicalCloud/{namespace}/{DEFAULT_LOGICAL_CLOUD} to leave its clusters"
        ));
    }
    // Until then members may take away what holds it.
    if waits.is_none() && owned_namespace::is_of(ctx, namespace, owner).await? {
        members::release(ctx, project, namespace).await?;
    }
    if waits.is_none() && owned_namespace::remove(ctx, namespace, owner).await? {
        if finalizers::remove(ctx, project, finalizer::IN_USE).await? {
            transitions::removed(ctx, project);
        }
        return Ok(Outcome::Settled);
    }
    let mut message =
        waits.unwrap_or_else(|| format!("deletion waits for the content of namespace {namespace} to go"));
    if project.spec.suspend == Some(true) {
        message.push_str("; suspended: nothing is removed from clusters until spec.suspend is unset");
    }
    status.in_use = holders::in_use(&holders.names);
    status::set_in_use(ctx, &mut status, generation, Some(&message));
    status::set_ready(ctx, &mut status, generation, &ReadyState::Waiting, status::TERMINATING, &message);
    status::write(ctx, project, project.status.as_ref(), &status).await?;
    Ok(Outcome::Settled.at_latest(again))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_without_a_logical_cloud_says_which_line_makes_one() {
        let of = |spec: &serde_json::Value| -> Project {
            let metadata = json!({"name": "shop"});
            let object = json!({"apiVersion": "emco.io/v1alpha1", "kind": "Project", "metadata": metadata, "spec": spec});
            serde_json::from_value(object).unwrap()
        };
        let none = of(&json!({}));
        let said = noted(&none, 0, true);
        assert_eq!(said, "; it has no logical cloud to deploy in: spec.logicalCloud: {} makes one");
        assert_eq!(noted(&none, 0, false), "", "it has one of its own");
        assert_eq!(noted(&of(&json!({"logicalCloud": {}})), 0, true), "", "it comes");
    }
}
