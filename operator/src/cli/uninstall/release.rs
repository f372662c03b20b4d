//! Leaves what runs on the clusters and takes all away that is EMCO's. No operator works meanwhile, so that no deletion on the hub is
//! one on clusters; every step may be interrupted and done again.

use std::time::Duration;

use emco_crds::Cluster;
use emco_crds::names::{label, object};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

use super::free::{free, free_all};
use super::{Ended, Inventory, all, count, id, installation, working};
use crate::cli::args::UninstallArgs;
use crate::cli::diff::edge;
use crate::cli::hub::Hub;
use crate::cli::print;
use crate::cli::pulse::{self, Life};
use crate::cli::remove::{Left, Ours, RELEASED, made_by_us, remove_account, stays, unclaim};

/// What `--dry-run` says.
pub const PLAN: &str = "\
would be released (dry run):
  1. every cluster is asked; one that does not answer has to be given up with --give-up
  2. the Deployment emco-operator is scaled to 0, and its Lease has to end
  3. deployments, revisions, shards, logical clouds, apps and profiles are deleted on the hub; nothing is removed from clusters
  4. on each cluster EMCO's claim and the account of cluster add are deleted, on the hub the Cluster and its Secret
  5. projects, Git targets and providers are deleted; their namespaces stay, with what people put there
";

/// Between two looks at the Lease, which ends without an event.
const LOOK: Duration = Duration::from_secs(1);

/// Releases everything.
pub async fn run(hub: &Hub, there: Inventory, args: &UninstallArgs) -> anyhow::Result<Ended> {
    let mut clusters = Vec::new();
    let mut away = Vec::new();
    for cluster in &there.clusters {
        let id = id(cluster);
        if args.give_up.contains(&id) {
            clusters.push((cluster, None));
            continue;
        }
        let uid = cluster.status.as_ref().and_then(|status| status.uid.clone());
        match tokio::time::timeout(PATIENCE, edge::open(hub, cluster, uid.as_deref())).await {
            Ok(Ok((client, _))) => clusters.push((cluster, Some(client))),
            // The account went the last time.
            Ok(Err(_)) if cluster.annotations().contains_key(RELEASED) => clusters.push((cluster, None)),
            Ok(Err(error)) => away.push((id, format!("{error:#}"))),
            Err(_) => away.push((id, format!("it did not answer within {PATIENCE:?}"))),
        }
    }
    if !away.is_empty() {
        for (id, why) in &away {
            eprintln!(
                "warning: {id} holds it up: {why}. Wait for it, or give it up, with its claim and account left there: --give-up {id}"
            );
        }
        print(&format!("nothing was changed: {} cannot be asked\n", count(away.len(), "cluster")))?;
        return Ok(Ended::Waits);
    }
    if let Some(why) = stop(hub, &there, args.timeout).await? {
        eprintln!("warning: {why}");
        return Ok(Ended::Waits);
    }
    // What the operator last wrote is true no more, and would refuse deletions for ever.
    let bindings = Api::<ValidatingAdmissionPolicyBinding>::all(hub.client.clone());
    match bindings.delete("emco-in-use", &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.code != 404 => {
            eprintln!("warning: the binding emco-in-use of the chart's policies stays: {}", status.message);
        }
        _ => {}
    }
    // Read again: the operator may have written until it stopped.
    let there = Inventory::read(hub).await?;
    free_namespaced(hub, &there).await?;
    print(&format!("released: {}\n", count(there.digs.len(), "deployment")))?;
    let ours = installation(hub).await?;
    let mut ended = Ended::Wholly;
    for (seen, client) in clusters {
        let now = there.clusters.iter().find(|cluster| cluster.uid() == seen.uid());
        let Some(cluster) = now else { continue };
        if !leave(hub, cluster, client, ours.as_deref()).await? {
            ended = Ended::OnTheHub;
        }
    }
    for project in &there.projects {
        let api = Api::all(hub.client.clone());
        free(hub, &api, project, &super::named("Project", project), true).await?;
    }
    free_all(hub, "GitTarget", &there.git_targets).await?;
    for provider in &there.providers {
        let api = Api::all(hub.client.clone());
        free(hub, &api, provider, &super::named("ClusterProvider", provider), true).await?;
    }
    namespaces(hub).await?;
    if ended == Ended::OnTheHub {
        eprintln!("warning: EMCO is released, but for what is named above on clusters");
    }
    Ok(ended)
}

/// Frees deployments, what was made of them, and then what they name, the last row of the table first.
async fn free_namespaced(hub: &Hub, there: &Inventory) -> anyhow::Result<()> {
    let (mut made, mut named): (Vec<BoxFuture<'_, _>>, Vec<BoxFuture<'_, _>>) = (Vec::new(), Vec::new());
    macro_rules! free_each {
        ($($store:ident: $kind:ident, $called:literal, $writer:ident, $($column:ident),*;)*) => {
            $(free_each!(@$writer $store $kind);)*
        };
        (@Hub $store:ident $kind:ident) => {};
        (@Editor digs $kind:ident) => { made.push(free_all(hub, stringify!($kind), &there.digs).boxed()) };
        (@Editor $store:ident $kind:ident) => {
            named.push(free_all(hub, stringify!($kind), &there.$store).boxed())
        };
        (@Admin $store:ident $kind:ident) => { named.push(free_all(hub, stringify!($kind), &there.$store).boxed()) };
        (@$writer:ident $store:ident $kind:ident) => {
            made.push(free_all(hub, stringify!($kind), &there.$store).boxed())
        };
    }
    emco_crds::each_kind!(all => free_each);
    for step in made.into_iter().chain(named.into_iter().rev()) {
        step.await?;
    }
    Ok(())
}

/// What is EMCO's own on a cluster; what runs there stays on purpose, with its namespaces.
const OURS: [Left; 2] = [Left::Account, Left::Claim];
/// For one cluster to answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// Stops the operator that the chart runs, and waits until no operator works; why that takes too long.
async fn stop(hub: &Hub, there: &Inventory, limit: Duration) -> anyhow::Result<Option<String>> {
    let namespace = &hub.operator_namespace;
    let api = Api::<Deployment>::namespaced(hub.client.clone(), namespace);
    let none = Patch::Merge(json!({"spec": {"replicas": 0}}));
    let ran = match api.patch("emco-operator", &PatchParams::default(), &none).await {
        Ok(_) => true,
        Err(kube::Error::Api(status)) if status.code == 404 => false,
        Err(error) => {
            return Err(hub.sentence(&error, "scale deployment", &format!("{namespace}/emco-operator")));
        }
    };
    print("waiting until the operator has stopped\n")?;
    let ends = tokio::time::Instant::now() + limit;
    loop {
        let pulse = pulse::read(hub).await.pulse;
        match pulse.operator {
            // Looked at once more: one may have begun elsewhere meanwhile.
            Life::Silent => return working::refusal(hub, there).await,
            Life::Unknown => return Ok(Some(pulse.message)),
            Life::Alive => {}
        }
        if tokio::time::Instant::now() >= ends {
            let which = if ran {
                "beside the Deployment emco-operator, or before its Pods end"
            } else {
                "and no Deployment runs it"
            };
            return Ok(Some(format!(
                "an operator works on this hub, {which}: stop it and run this again. Nothing was released"
            )));
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Takes one cluster off the hub; whether nothing of EMCO's own is left there.
async fn leave(
    hub: &Hub,
    cluster: &Cluster,
    client: Option<Client>,
    ours: Option<&str>,
) -> anyhow::Result<bool> {
    let id = id(cluster);
    let namespace = cluster.namespace().unwrap_or_default();
    let api = Api::<Cluster>::namespaced(hub.client.clone(), &namespace);
    let place = crate::cli::scheduling::HubCluster {
        api: api.clone(),
        namespace: namespace.clone(),
        name: cluster.name_any(),
    };
    let secret = made_by_us(hub, &place, cluster).await?;
    let mut clean = true;
    let mut cluster = cluster.clone();
    match client {
        None if !cluster.annotations().contains_key(RELEASED) => {
            eprint!("{}", stays(&id, &OURS, "it is given up"));
            clean = false;
        }
        None => {}
        Some(client) => {
            let done = match unclaim(&client, ours).await {
                Ok(()) => {
                    let patch = json!({"metadata": {"annotations": {RELEASED: "true"}}});
                    cluster = api
                        .patch(&cluster.name_any(), &PatchParams::default(), &Patch::Merge(&patch))
                        .await
                        .map_err(|error| hub.sentence(&error, "change cluster", &id))?;
                    remove_account(&client).await
                }
                Err(error) => Err(error),
            };
            match done {
                Ok(said) => print(&format!("{id}: {said}\n"))?,
                Err(error) => {
                    eprint!("{}", stays(&id, &OURS, &format!("{error:#}")));
                    clean = false;
                }
            }
        }
    }
    if let Some(reference) = cluster.spec.access.kubeconfig() {
        let secrets = Api::<Secret>::namespaced(hub.client.clone(), &namespace);
        let what = format!("Secret {namespace}/{}", reference.name);
        let found = secrets.get_opt(&reference.name).await;
        if let Some(found) = found.map_err(|error| hub.sentence(&error, "read", &what))? {
            free(hub, &secrets, &found, &what, matches!(secret, Ours::Yes(_))).await?;
        }
    }
    free(hub, &api, &cluster, &format!("Cluster {id}"), true).await?;
    print(&format!("{id} is off the hub\n"))?;
    Ok(clean)
}

/// The rights that the operator gave itself in namespaces of projects and providers are kept by a finalizer of its own.
async fn namespaces(hub: &Hub) -> anyhow::Result<()> {
    let params = ListParams::default().fields("metadata.name=emco-operator");
    let bindings = Api::<RoleBinding>::all(hub.client.clone());
    let found = hub.list(bindings, &params, "role bindings", None).await?;
    let ours = |binding: &&RoleBinding| binding.role_ref.name == object::NAMESPACE_ACCESS;
    let found: Vec<RoleBinding> = found.iter().filter(ours).cloned().collect();
    free_all(hub, "RoleBinding", &found).await?;
    let all = all::<Namespace>(hub, "namespaces").await?;
    let labelled = |one: &&Namespace| {
        one.labels().contains_key(label::PROJECT) || one.labels().contains_key(label::PROVIDER)
    };
    let left: Vec<String> = all.iter().filter(labelled).map(kube::ResourceExt::name_any).collect();
    if !left.is_empty() {
        print(&format!("these namespaces stay, with what people put there: {}\n", left.join(", ")))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::{Request, Response};
    use http_body_util::Full;
    use hyper::body::Bytes;
    use kube::client::Body;
    use serde_json::Value;

    use super::*;

    /// A hub where an operator works in `emco`, asked about `emco-system`, where there is nothing.
    fn hub() -> Hub {
        let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": object::LEASE, "namespace": "emco"},
            "spec": {"holderIdentity": "a", "renewTime": "2026-11-28T12:00:00.000000Z", "leaseDurationSeconds": 13}});
        let service = tower::service_fn(move |request: Request<Body>| {
            let list = json!({"kind": "LeaseList", "apiVersion": "coordination.k8s.io/v1", "metadata": {}, "items": [lease]});
            let (code, answer): (u16, Value) = match request.uri().path() {
                "/apis/coordination.k8s.io/v1/leases" => (200, list),
                path => {
                    let name = path.rsplit('/').next().unwrap_or_default();
                    let message = format!("leases.coordination.k8s.io \"{name}\" not found");
                    (404, json!({"kind": "Status", "status": "Failure", "code": 404, "message": message}))
                }
            };
            let response = Response::builder().status(code).header("content-type", "application/json");
            let response = response.header("date", "Sat, 28 Nov 2026 12:00:20 GMT");
            let response = response.body(Full::new(Bytes::from(answer.to_string()))).unwrap();
            futures::future::ready(Ok::<_, Infallible>(response))
        });
        let (namespace, operator_namespace) = ("default".to_owned(), "emco-system".to_owned());
        let client = Client::new(service, "default");
        Hub { client, namespace, operator_namespace, url: "https://hub/".to_owned(), lender: None }
    }

    #[tokio::test]
    async fn a_namespace_without_a_lease_is_no_operator_that_stopped() {
        let project = json!({"apiVersion": "emco.io/v1alpha1", "kind": "Project", "metadata": {"name": "shop"}, "spec": {}});
        let projects = vec![serde_json::from_value(project).unwrap()];
        let there = Inventory { projects, ..Inventory::default() };
        let why = stop(&hub(), &there, Duration::ZERO).await.unwrap().unwrap();
        assert!(why.contains("Namespaces that have one: emco."), "{why}");
        assert_eq!(stop(&hub(), &Inventory::default(), Duration::ZERO).await.unwrap(), None);
    }
}
