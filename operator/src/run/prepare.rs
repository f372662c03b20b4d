//! Waits for a hub that answers and has the kinds and the operator's namespace.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Context as _;
use emco_controllers::api::{ApiResult, ApiServer, Method, Request};
use emco_controllers::driver::hub::HubApi;
use emco_controllers::driver::installation::ensure_namespace;
use http::header::{HeaderValue, USER_AGENT};
use serde_json::Value;
use tokio::time::sleep;

use super::Process;

/// Between two looks at a hub that is not ready.
const PAUSE: Duration = Duration::from_secs(2);
const KINDS: &str = "/apis/emco.io/v1alpha1";

/// The hub of KUBECONFIG, else of the cluster we run in.
pub async fn hub_config() -> anyhow::Result<kube::Config> {
    let mut config = kube::Config::infer().await.context(
        "there is no hub to connect to: set KUBECONFIG to a kubeconfig file, or run in a cluster with a service account",
    )?;
    let agent = concat!("emco-operator/", env!("CARGO_PKG_VERSION"));
    config.headers.push((USER_AGENT, HeaderValue::from_static(agent)));
    Ok(config)
}

/// Waits until the hub can be worked with; readiness says what it lacks.
pub async fn wait_for_hub(hub: &HubApi, process: &Process) {
    let hold = process.readiness.hold("hub", "it has not answered yet");
    loop {
        let why = match look(hub, &process.args.namespace).await {
            Ok(None) => return,
            Ok(Some(why)) => why,
            Err(error) => error.to_string(),
        };
        if hold.explain(why.clone()) {
            tracing::warn!("waiting for the hub: {why}");
        }
        sleep(PAUSE).await;
    }
}

/// What the hub lacks, as a sentence.
async fn look(hub: &dyn ApiServer, namespace: &str) -> ApiResult<Option<String>> {
    let served = match hub.send(Request::new(Method::Get, KINDS)).await {
        Ok(list) => served(&list),
        Err(error) if error.is_not_found() => BTreeSet::new(),
        Err(error) => return Err(error),
    };
    let missing = missing(&served);
    if missing.is_empty() {
        return ensure_namespace(hub, namespace).await.map(|()| None);
    }
    Ok(Some(format!(
        "it does not serve {}: apply config/crd first, or run `emco-operator crds | kubectl apply --server-side -f -`",
        missing.join(", ")
    )))
}

/// A kind is served once its CRD is established.
fn served(list: &Value) -> BTreeSet<String> {
    let resources = list.pointer("/resources").and_then(Value::as_array);
    resources.into_iter().flatten().filter_map(|r| r.pointer("/name")?.as_str().map(str::to_owned)).collect()
}

fn missing(served: &BTreeSet<String>) -> Vec<String> {
    let plurals = emco_crds::crds::all().into_iter().map(|crd| crd.spec.names.plural);
    plurals.filter(|plural| !served.contains(plural)).map(|plural| format!("{plural}.emco.io")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_hub_lacks_the_kinds_it_does_not_serve() {
        let list =
            json!({"resources": [{"name": "clusters"}, {"name": "clusters/status"}, {"name": "projects"}]});
        let missing = missing(&served(&list));
        assert_eq!(missing.len(), emco_crds::crds::all().len() - 2);
        assert!(missing.contains(&"syncshards.emco.io".to_owned()));
        assert!(!missing.contains(&"clusters.emco.io".to_owned()));
    }
}
