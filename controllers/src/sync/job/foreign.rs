//! Names objects that are not ours: who has them, and all of those that are in the way of a row.

use std::collections::BTreeSet;

use emco_crds::sync_shard::status::RowError;
use emco_engine::identity::Identity;
use serde_json::Value;

use super::super::errors::{LONGEST, Retry, Trouble, first_bytes};
use super::super::observe::Seen;

/// Said where not all are named.
const ALL: &str = ", ...; emco diff lists them all";
/// Objects named besides the first.
const NAMED: usize = 9;

/// Who has an object, as its own marks say, and where it is to be removed.
pub(super) fn holder(metadata: &Value, managers: &[String]) -> (String, String) {
    let annotation = |key: &str| text(metadata, "annotations", key);
    let label = |key: &str| text(metadata, "labels", key);
    if let Some(release) = annotation("meta.helm.sh/release-name") {
        let space = annotation("meta.helm.sh/release-namespace").unwrap_or("default");
        let flux = label("helm.toolkit.fluxcd.io/name").map(|name| {
            let space = label("helm.toolkit.fluxcd.io/namespace").unwrap_or("default");
            format!(" of Flux's HelmRelease {space}/{name}")
        });
        let remedy = match &flux {
            Some(_) => "delete the HelmRelease".to_owned(),
            None => format!("helm uninstall {release} -n {space}"),
        };
        return (format!("Helm release {space}/{release}{}", flux.unwrap_or_default()), remedy);
    }
    if let Some(name) = label("kustomize.toolkit.fluxcd.io/name") {
        let space = label("kustomize.toolkit.fluxcd.io/namespace").unwrap_or("default");
        return (format!("Flux's Kustomization {space}/{name}"), "remove it from its source".to_owned());
    }
    // The tracking id begins with the Application's name.
    let tracked = annotation("argocd.argoproj.io/tracking-id").and_then(|id| id.split(':').next());
    if let Some(name) =
        tracked.or_else(|| label("argocd.argoproj.io/instance")).filter(|name| !name.is_empty())
    {
        return (format!("Argo CD's Application {name}"), "remove it from its source".to_owned());
    }
    let who = if annotation("kubectl.kubernetes.io/last-applied-configuration").is_some() {
        "kubectl apply".to_owned()
    } else if managers.is_empty() {
        "somebody else".to_owned()
    } else {
        managers.join(", ")
    };
    (who, "delete it".to_owned())
}

fn text<'a>(metadata: &'a Value, map: &str, key: &str) -> Option<&'a str> {
    metadata.get(map)?.get(key)?.as_str().filter(|text| !text.is_empty())
}

/// The trouble with an object that exists and that EMCO did not make. The row names the object beside it.
pub(super) fn trouble((who, remedy): &(String, String)) -> Trouble {
    let text = format!("was not made by EMCO but by {who}: {remedy}, or change its name here");
    Trouble::new("NotOurs", &text, Retry::Slowly)
}

/// An object that carries no owner, with who has it.
pub(super) struct Foreign {
    pub seen: Seen,
    pub holder: (String, String),
}

/// Adds to the error of a row the other objects that are in the way: people who move in see all of them at once.
pub(super) fn name_all(error: &mut RowError, others: &BTreeSet<Identity>) {
    if error.reason != "NotOurs" {
        return;
    }
    let first = error.resource.clone().unwrap_or_default();
    let names: Vec<String> = others.iter().map(Identity::to_string).filter(|name| *name != first).collect();
    if names.is_empty() {
        return;
    }
    let shown = names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    let text = format!("{}; {} more not made by EMCO: {shown}", error.message, names.len());
    // Where they do not all find room, the command that lists them does.
    error.message = if names.len() > NAMED || text.len() > LONGEST {
        format!("{}{ALL}", first_bytes(&text, LONGEST - ALL.len()))
    } else {
        text
    };
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn says(metadata: &Value) -> String {
        trouble(&holder(metadata, &["web".to_owned()])).message
    }

    #[test]
    fn an_object_of_others_is_named_with_its_tool_and_the_way_out() {
        let helm = json!({"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop"});
        insta::assert_snapshot!(says(&json!({"annotations": helm})), @"was not made by EMCO but by Helm release shop/web: helm uninstall web -n shop, or change its name here");
        insta::assert_snapshot!(
            says(&json!({"annotations": helm, "labels": {"helm.toolkit.fluxcd.io/name": "web", "helm.toolkit.fluxcd.io/namespace": "flux"}})),
            @"was not made by EMCO but by Helm release shop/web of Flux's HelmRelease flux/web: delete the HelmRelease, or change its name here"
        );
        insta::assert_snapshot!(
            says(&json!({"labels": {"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux"}})),
            @"was not made by EMCO but by Flux's Kustomization flux/apps: remove it from its source, or change its name here"
        );
        insta::assert_snapshot!(
            says(&json!({"annotations": {"argocd.argoproj.io/tracking-id": "web:/ConfigMap:shop/c"}})),
            @"was not made by EMCO but by Argo CD's Application web: remove it from its source, or change its name here"
        );
        insta::assert_snapshot!(
            says(&json!({"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}})),
            @"was not made by EMCO but by kubectl apply: delete it, or change its name here"
        );
        insta::assert_snapshot!(says(&json!({})), @"was not made by EMCO but by web: delete it, or change its name here");
    }

    #[test]
    fn a_row_in_the_way_of_many_objects_counts_them_all() {
        let id = |n: usize| Identity {
            group: String::new(),
            kind: "ConfigMap".to_owned(),
            namespace: "s".to_owned(),
            name: format!("c{n:03}"),
        };
        let of = |count: usize| {
            let mut error = RowError {
                reason: "NotOurs".to_owned(),
                resource: Some(id(0).to_string()),
                message: "was not made by EMCO".to_owned(),
                ..RowError::default()
            };
            name_all(&mut error, &(0..count).map(id).collect());
            error.message
        };
        assert_eq!(of(1), "was not made by EMCO");
        assert_eq!(
            of(3),
            "was not made by EMCO; 2 more not made by EMCO: ConfigMap/s/c001, ConfigMap/s/c002"
        );
        let many = of(100);
        assert!(
            many.contains("99 more")
                && many.ends_with(", ...; emco diff lists them all")
                && many.len() <= 256,
            "{many}"
        );
    }
}
