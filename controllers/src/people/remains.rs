//! Finds what a person may have made on clusters while they had credentials: role bindings and tokens' Secrets that are nobody's of EMCO. They
//! outlive the credentials, and only who knows of them can take them away.

use std::collections::BTreeSet;
use std::time::Duration;

use emco_crds::names::label;
use emco_engine::identity::ClusterId;
use emco_engine::path::ApiPath;
use emco_engine::selector::{FieldSelector, LabelSelector};
use futures::future::join_all;
use serde_json::Value;
use tokio::time::timeout;

use super::People;
use crate::api::world::World;
use crate::api::{ApiServer, Method, Request};

/// One request.
const REQUEST: Duration = Duration::from_secs(20);
/// Objects that are named of one kind in one namespace.
const MOST: usize = 20;
/// Bindings that clusters make by themselves begin so.
const OF_CLUSTER: &str = "system:";

/// Where it is looked.
pub(crate) struct Places {
    /// Clusters that the person had credentials of.
    pub clusters: BTreeSet<ClusterId>,
    /// Namespaces there.
    pub namespaces: BTreeSet<String>,
}

/// What is there, each with its cluster; a cluster that cannot be asked is named with why.
pub(crate) async fn find(world: &World, people: &People, tenant: &str, places: &Places) -> Vec<String> {
    let looks = places.clusters.iter().map(|cluster| async move {
        let _place = people.place(tenant).await;
        let Some(server) = world.edges.get(cluster) else {
            return vec![format!("{cluster}: not seen, for it is not connected")];
        };
        let mut found = Vec::new();
        for namespace in &places.namespaces {
            for (kind, path, fields) in kinds(namespace) {
                match list(&*server, &path, fields).await {
                    Ok(names) => {
                        found
                            .extend(names.iter().map(|name| format!("{cluster}: {kind}/{namespace}/{name}")));
                    }
                    Err(why) => found.push(format!("{cluster}: {kind}s of {namespace} not seen: {why}")),
                }
            }
        }
        found
    });
    join_all(looks).await.concat()
}

/// Kinds that give rights or say who somebody is.
fn kinds(namespace: &str) -> [(&'static str, ApiPath, Option<FieldSelector>); 2] {
    let bindings =
        ApiPath::new("/apis/rbac.authorization.k8s.io/v1/namespaces").then(namespace).then("rolebindings");
    let tokens = FieldSelector::new("type", "kubernetes.io/service-account-token");
    [("RoleBinding", bindings, None), ("Secret", ApiPath::core(namespace, "secrets"), Some(tokens))]
}

/// Names of those that no owner of EMCO has.
async fn list(
    server: &dyn ApiServer,
    path: &ApiPath,
    fields: Option<FieldSelector>,
) -> Result<Vec<String>, String> {
    let mut request = Request::new(Method::Get, path).metadata().labels(&LabelSelector::lacks(label::OWNER));
    if let Some(fields) = &fields {
        request = request.fields(fields);
    }
    let answer = timeout(REQUEST, server.send(request.query("limit", "500"))).await;
    let page = match answer {
        Ok(Ok(page)) => page,
        // The namespace went with the logical cloud's.
        Ok(Err(error)) if error.is_not_found() => return Ok(Vec::new()),
        Ok(Err(error)) => return Err(error.to_string()),
        Err(_) => return Err(format!("no answer within {} s", REQUEST.as_secs())),
    };
    let items = page.get("items").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let names = items.iter().filter_map(|item| item.pointer("/metadata/name")?.as_str());
    Ok(names.filter(|name| !name.starts_with(OF_CLUSTER)).take(MOST).map(str::to_owned).collect())
}
