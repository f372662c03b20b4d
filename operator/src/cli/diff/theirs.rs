//! Asks what an apply would leave of an object, said as the operator says it: without what belongs to others without a rule, and
//! without nothing where a schema has something.

use emco_controllers::api::ApiError;
use emco_controllers::sync::{TRIES_TO_KNOW, leave_out_nulls};
use emco_engine::drift::{self, ScaledBy, bundles, joint};
use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::Status;
use serde_json::Value;

use crate::cli::hub;

/// The manifest over a live object of this field manager.
pub(super) fn beside(manifest: &Value, live: &Value, manager: &str) -> Value {
    let mut said = manifest.clone();
    bundles::leave_empty(&mut said);
    joint::join(&mut said, live, drift::entry(entries(live), manager, "Apply"), &[]);
    said
}

/// An autoscaler of whomever set its number of replicas.
pub(super) fn is_scaled(live: &Value) -> bool {
    drift::scaled_by(entries(live)) == Some(ScaledBy::Autoscaler)
}

fn entries(live: &Value) -> &[Value] {
    live.pointer("/metadata/managedFields").and_then(Value::as_array).map_or(&[][..], Vec::as_slice)
}

/// The answer to a dry run. What the credentials of the Cluster may not try, the account tries (`acting`).
pub(super) async fn tried(
    (api, acting): (&Api<DynamicObject>, Option<&Api<DynamicObject>>),
    name: &str,
    manager: &str,
    said: &mut Value,
) -> kube::Result<DynamicObject> {
    let params = PatchParams::apply(manager).force().dry_run();
    let mut tries = TRIES_TO_KNOW;
    loop {
        let mut answer = api.patch(name, &params, &Patch::Apply(&*said)).await;
        if let Some(acting) = acting.filter(|_| answer.as_ref().is_err_and(hub::is_forbidden)) {
            answer = acting.patch(name, &params, &Patch::Apply(&*said)).await;
        }
        tries -= 1;
        match &answer {
            Err(kube::Error::Api(status)) if tries > 0 && leave_out_nulls(said, &refusal(status)) => {}
            _ => return answer,
        }
    }
}

fn refusal(status: &Status) -> ApiError {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    ApiError::Status {
        code: status.code,
        reason: status.reason.clone(),
        message: status.message.clone(),
        retry_after: None,
        causes: causes.map(|cause| (cause.field.clone(), cause.message.clone())).collect(),
    }
}

#[cfg(test)]
mod tests {
    use kube::core::response::{StatusCause, StatusDetails};
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_platform_added_is_no_difference() {
        let account = |names: &[&str]| {
            let list: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}, "imagePullSecrets": list})
        };
        let live = account(&["one", "theirs"]);
        assert_eq!(beside(&account(&["one"]), &live, "emco-1"), live);
    }

    #[test]
    fn replicas_are_an_autoscalers_where_it_set_them() {
        let by = |manager: &str| {
            let entry = json!({"manager": manager, "operation": "Update", "subresource": "scale",
                "fieldsV1": {"f:spec": {"f:replicas": {}}}});
            is_scaled(&json!({"metadata": {"managedFields": [entry]}}))
        };
        assert!(by("kube-controller-manager") && !by("kubectl") && !is_scaled(&json!({})));
    }

    #[test]
    fn a_refusal_has_the_fields_that_the_server_names() {
        let cause = StatusCause {
            reason: "FieldValueTypeInvalid".to_owned(),
            message: "Invalid value: \"null\"".to_owned(),
            field: "spec.volumes".to_owned(),
        };
        let details = StatusDetails {
            name: "w".to_owned(),
            group: String::new(),
            kind: "Widget".to_owned(),
            uid: String::new(),
            causes: vec![cause],
            retry_after_seconds: 0,
        };
        let status = Status::failure("invalid", "Invalid").with_code(422).with_details(details);
        let mut said = json!({"spec": {"volumes": null, "size": 1}});
        assert!(leave_out_nulls(&mut said, &refusal(&status)));
        assert_eq!(said, json!({"spec": {"size": 1}}));
    }
}
