//! Reads the health rules that the operator judges custom resources by.

use emco_controllers::reconcile::health_rules;
use emco_crds::names::object::HEALTH_RULES;
use emco_engine::health::rules::Rules;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use serde_json::Value;

use crate::cli::absence::find;
use crate::cli::hub::{Hub, chain};
use crate::cli::pulse::Pulse;

/// The rules. Whoever cannot read them cannot say how a custom resource is; where no operator is, its rules are not either.
pub(super) async fn read(hub: &Hub, pulse: &Pulse) -> Rules {
    let namespace = &hub.operator_namespace;
    let maps: Api<ConfigMap> = Api::namespaced(hub.client.clone(), namespace);
    match find(&maps, HEALTH_RULES).await {
        Ok(Some(map)) => health_rules::read(&serde_json::to_value(&map).unwrap_or(Value::Null)),
        Ok(None) if pulse.until.is_some() => Rules::default(),
        Ok(None) => Rules::unread(&format!(
            "there is no ConfigMap {HEALTH_RULES} in namespace {namespace}, and whether the operator is there is not known: \
             name its namespace with --operator-namespace"
        )),
        Err(error) => Rules::unread(&format!(
            "ConfigMap {HEALTH_RULES} in namespace {namespace} cannot be read: {}",
            chain(&error)
        )),
    }
}
