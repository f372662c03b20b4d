//! Reads what publishing to a GitTarget needs: the fields, and the login from its Secret.

use std::collections::BTreeMap;

use emco_crds::GitTarget;
use emco_crds::reasons::GitTargetReason as Reason;
use emco_engine::git::files::EdgeObjects;
use k8s_openapi::api::core::v1::Secret;

use super::{Judged, interval};
use crate::api::ApiError;
use crate::object::context::Failure;
use crate::object::meta;
use crate::object::status::ReadyState;
use crate::publish::{Login, TargetOptions};
use crate::reconcile::context::Context;
use crate::reconcile::sources;
use crate::tenancy::namespace_access;

/// Reads what publishing needs, or says why it cannot begin.
pub(super) async fn read(
    ctx: &Context,
    target: &GitTarget,
) -> Result<Result<TargetOptions, Judged>, Failure> {
    let login = match login(ctx, target).await? {
        Ok(login) => login,
        Err(refused) => return Ok(Err(refused)),
    };
    let spec = &target.spec;
    Ok(Ok(TargetOptions {
        url: spec.url.clone(),
        branch: spec.branch.clone(),
        folder: spec.folder.clone(),
        login,
        interval: interval(&spec.interval),
        edge: EdgeObjects { namespace: spec.edge.namespace.clone(), interval: spec.edge.interval.0.clone() },
    }))
}

async fn login(ctx: &Context, target: &GitTarget) -> Result<Result<Login, Judged>, Failure> {
    let Some(named) = &target.spec.secret_ref else { return Ok(Ok(Login::default())) };
    let (namespace, name) = (meta::namespace(target), named.name.as_str());
    let refuse = |reason: &'static str, message: String| {
        Ok(Err(Judged { verdict: ReadyState::Waiting, reason, message }))
    };
    let found = match sources::object(ctx, namespace, "Secret", name).await {
        Ok(found) => found,
        Err(error) => {
            namespace_access::refused(ctx, namespace, &error).await;
            return Err(error.into());
        }
    };
    let Some(found) = found else {
        let message = format!(
            "Secret {name} does not exist in namespace {namespace}: create it with username and password, or bearerToken, or change spec.secretRef"
        );
        return refuse(Reason::SecretNotFound.as_str(), message);
    };
    // A parser's error would quote it.
    let secret: Secret = serde_json::from_value(found)
        .map_err(|_| ApiError::Protocol(format!("Secret {name} is not as Kubernetes stores Secrets")))?;
    let data: BTreeMap<String, Vec<u8>> =
        secret.data.unwrap_or_default().into_iter().map(|(key, bytes)| (key, bytes.0)).collect();
    match Login::read(&data) {
        Ok(login) => Ok(Ok(login)),
        Err((reason, message)) => refuse(reason, format!("Secret {name}: {message}")),
    }
}
