//! Finds the workload of a deployment on a cluster that is meant.

use anyhow::bail;
use emco_crds::names::label;
use emco_engine::identity::ClusterId;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::core::Selector;
use kube::{Api, Client, ResourceExt as _};

use super::account::{self, Account};
use super::place::{self, Placed};
use crate::cli::args::deployments::WorkloadArgs;
use crate::cli::diff::edge;
use crate::cli::hub;
use crate::cli::orphans::some;

/// Workloads that a message names.
const NAMED: usize = 8;

/// Something that has Pods, or is one.
#[derive(Clone, Debug)]
pub struct Workload {
    pub kind: String,
    pub name: String,
    pub namespace: String,
    /// Label selector of its Pods; none of a Pod.
    pub selector: Option<String>,
}

/// The workload that is meant, and an account with which its cluster is asked.
pub async fn find(args: &WorkloadArgs) -> anyhow::Result<(Account, Workload)> {
    let hub = hub::connect(&args.named.hub).await?;
    let placed = place::find(&hub, &args.named).await?;
    let (id, uid) = placed.one(args.cluster.as_deref())?;
    let account = account::open(&hub, id, uid, &args.account).await?;
    let workload = on_cluster(&account.client, &placed, id, args.workload.as_deref()).await?;
    Ok((account, workload))
}

/// The same on a cluster that this client leads to.
pub async fn on_cluster(
    client: &Client,
    placed: &Placed,
    id: &ClusterId,
    named: Option<&str>,
) -> anyhow::Result<Workload> {
    let mut all = Vec::new();
    for resource in [
        ApiResource::erase::<Deployment>(&()),
        ApiResource::erase::<StatefulSet>(&()),
        ApiResource::erase::<DaemonSet>(&()),
        ApiResource::erase::<Job>(&()),
        ApiResource::erase::<Pod>(&()),
    ] {
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &placed.namespace, &resource);
        let params = ListParams::default().labels(&format!("{}={}", label::OWNER, placed.hash));
        let list =
            api.list(&params).await.map_err(|error| edge::failed(&error).context(format!("cluster {id}")))?;
        all.extend(list.items.iter().map(|object| workload(&resource.kind, object)));
    }
    choose(&all, named).map_err(|why| {
        anyhow::anyhow!("{} on cluster {id}, namespace {}: {why}", placed.said, placed.namespace)
    })
}

fn workload(kind: &str, object: &DynamicObject) -> Workload {
    let selector = object.data["spec"]["selector"].clone();
    let selector = serde_json::from_value::<LabelSelector>(selector).ok().filter(|_| kind != "Pod");
    Workload {
        kind: kind.to_owned(),
        name: object.name_any(),
        namespace: object.namespace().unwrap_or_default(),
        selector: selector.and_then(|selector| Selector::try_from(selector).ok()).map(|s| s.to_string()),
    }
}

/// The one of a name, or the only one.
fn choose(all: &[Workload], named: Option<&str>) -> anyhow::Result<Workload> {
    let names: Vec<String> = all.iter().map(|one| format!("{}/{}", one.kind, one.name)).collect();
    let (kind, name) = match named {
        Some(named) => match named.split_once('/') {
            Some((kind, name)) => (Some(kind), Some(name)),
            None => (None, Some(named)),
        },
        None => (None, None),
    };
    let fits = |one: &&Workload| {
        name.is_none_or(|name| name == one.name) && kind.is_none_or(|kind| is_kind(kind, &one.kind))
    };
    let found: Vec<&Workload> = all.iter().filter(fits).collect();
    match (found.as_slice(), named) {
        ([one], _) => Ok((*one).clone()),
        ([], None) => bail!("it has no Deployment, StatefulSet, DaemonSet, Job or Pod there"),
        ([], Some(named)) if names.is_empty() => bail!("there is no workload {named}, and no other one"),
        ([], Some(named)) => bail!("there is no workload {named}: there are {}", some(&names, NAMED)),
        (several, _) => bail!(
            "there are {} workloads: name one, as KIND/NAME: {}",
            several.len(),
            some(&several.iter().map(|one| format!("{}/{}", one.kind, one.name)).collect::<Vec<_>>(), NAMED)
        ),
    }
}

/// Whether a word means a kind, as kubectl reads it.
fn is_kind(word: &str, kind: &str) -> bool {
    let (word, kind) = (word.to_lowercase(), kind.to_lowercase());
    let short = match kind.as_str() {
        "deployment" => "deploy",
        "statefulset" => "sts",
        "daemonset" => "ds",
        "pod" => "po",
        _ => "",
    };
    word == kind || word == format!("{kind}s") || word == short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: &str, name: &str) -> Workload {
        Workload {
            kind: kind.to_owned(),
            name: name.to_owned(),
            namespace: "shop".to_owned(),
            selector: None,
        }
    }

    fn chosen(all: &[Workload], named: Option<&str>) -> Result<String, String> {
        let one = choose(all, named).map_err(|error| error.to_string())?;
        Ok(format!("{}/{}", one.kind, one.name))
    }

    #[test]
    fn a_workload_is_named_unless_it_is_the_only_one() {
        let all = [of("Deployment", "web"), of("StatefulSet", "web"), of("Job", "seed")];
        assert_eq!(chosen(&all[..1], None).unwrap(), "Deployment/web");
        assert_eq!(chosen(&all, Some("seed")).unwrap(), "Job/seed");
        assert_eq!(chosen(&all, Some("sts/web")).unwrap(), "StatefulSet/web");
        assert_eq!(chosen(&all, Some("deployments/web")).unwrap(), "Deployment/web");
        for (named, says) in [
            (
                None,
                "there are 3 workloads: name one, as KIND/NAME: Deployment/web, StatefulSet/web, Job/seed",
            ),
            (Some("web"), "there are 2 workloads"),
            (Some("nothing"), "there is no workload nothing: there are Deployment/web"),
        ] {
            assert!(chosen(&all, named).is_err_and(|why| why.contains(says)), "{named:?}");
        }
        assert!(chosen(&[], None).is_err_and(|why| why.contains("it has no Deployment")));
    }

    #[test]
    fn pods_of_a_workload_are_selected_by_labels_and_expressions() {
        let object: DynamicObject = serde_json::from_value(serde_json::json!({
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"selector": {"matchLabels": {"app": "web"},
                "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a", "b"]}]}},
        }))
        .unwrap();
        let selector = workload("Deployment", &object).selector.unwrap();
        assert!(selector.contains("app=web") && selector.contains("tier in (a,b)"), "{selector}");
        assert_eq!(workload("Pod", &object).selector, None);
    }
}
