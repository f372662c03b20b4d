//! Checks the user's rights that other commands need.

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::Api;
use kube::api::PostParams;

use super::{Finding, Level};
use crate::cli::hub::{Hub, chain};

const WHAT: &str = "rights";

/// A right, and the commands that need it.
struct Needed {
    verb: &'static str,
    group: &'static str,
    resource: &'static str,
    /// In the operator's namespace, or everywhere.
    in_operators: bool,
    used_by: &'static str,
}

/// What reading needs. Packs are ConfigMaps and Secrets of the operator's namespace; clusters are asked with their kubeconfigs.
const NEEDED: [Needed; 5] = [
    right("list", "emco.io", "deploymentintentgroups", false, "status of deployments (-A)"),
    right("list", "emco.io", "clusters", false, "clusters"),
    right("get", "", "configmaps", true, "get, manifests and diff"),
    right("get", "", "secrets", true, "get, manifests and diff"),
    right("get", "", "secrets", false, "diff, logs, exec, events and edge, which ask clusters"),
];

const fn right(
    verb: &'static str,
    group: &'static str,
    resource: &'static str,
    in_operators: bool,
    used_by: &'static str,
) -> Needed {
    Needed { verb, group, resource, in_operators, used_by }
}

/// Asks the hub.
pub async fn check(hub: &Hub) -> Finding {
    let mut lacking = Vec::new();
    for needed in &NEEDED {
        let attributes = ResourceAttributes {
            verb: Some(needed.verb.to_owned()),
            group: Some(needed.group.to_owned()),
            resource: Some(needed.resource.to_owned()),
            namespace: needed.in_operators.then(|| hub.operator_namespace.clone()),
            ..ResourceAttributes::default()
        };
        let spec =
            SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() };
        let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
        let api = Api::<SelfSubjectAccessReview>::all(hub.client.clone());
        match api.create(&PostParams::default(), &review).await {
            Ok(review) if review.status.as_ref().is_some_and(|status| status.allowed) => {}
            Ok(_) => lacking.push(needed),
            Err(error) => {
                let message = format!("what you may do cannot be asked: {}", chain(&error));
                return Finding::bad(Level::Warn, WHAT, message, "ask an administrator of the hub");
            }
        }
    }
    judged(&lacking, &hub.operator_namespace)
}

fn judged(lacking: &[&Needed], namespace: &str) -> Finding {
    if lacking.is_empty() {
        return Finding::ok(WHAT, "you may read everything, Secrets among it");
    }
    let said = |needed: &&Needed| {
        let place = if needed.in_operators { format!(" in namespace {namespace}") } else { String::new() };
        format!("{} {}{place} (for {})", needed.verb, needed.resource, needed.used_by)
    };
    Finding::bad(
        Level::Warn,
        WHAT,
        format!("you may not {}", lacking.iter().map(said).collect::<Vec<_>>().join(", ")),
        "a tenant needs no more than the role emco-viewer in its project's namespace: name that with -n; the rest is for administrators of \
         the hub",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_that_is_missing_is_named_with_the_commands_that_need_it() {
        assert_eq!(judged(&[], "emco-system").level, Level::Ok);
        let finding = judged(&[&NEEDED[1], &NEEDED[3]], "emco-system");
        let words = "you may not list clusters (for clusters), get secrets in namespace emco-system (for get, manifests and \
                     diff)";
        assert_eq!((finding.level, finding.message.as_str()), (Level::Warn, words));
    }
}
