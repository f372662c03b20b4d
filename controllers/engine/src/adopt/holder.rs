//! Says who has an object that EMCO did not make, as its own marks say, and where it is removed.

use serde::Serialize;
use serde_json::Value;

/// Where what comes from Git is removed.
const SOURCE: &str = "remove it from its source";

/// A tool that has an inventory of its own, and writes its objects again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Tool {
    /// A release of Helm.
    Helm,
    /// A `HelmRelease` of Flux.
    HelmRelease,
    /// A Kustomization of Flux.
    Kustomization,
    /// An Application of Argo CD.
    Application,
}

/// Who has an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// In words, such as `Helm release shop/web`.
    pub who: String,
    /// How the object is removed there.
    pub remedy: String,
    /// The tool, if it is one's.
    pub tool: Option<Tool>,
}

impl Holder {
    const fn tool(tool: Tool, who: String, remedy: String) -> Self {
        Self { who, remedy, tool: Some(tool) }
    }
}

/// Who has an object. `managers`: the field managers that wrote more than its status.
pub fn holder(metadata: &Value, managers: &[String]) -> Holder {
    let annotation = |key: &str| text(metadata, "annotations", key);
    let label = |key: &str| text(metadata, "labels", key);
    if let Some(release) = annotation("meta.helm.sh/release-name") {
        let space = annotation("meta.helm.sh/release-namespace").unwrap_or("default");
        let release_text = format!("Helm release {space}/{release}");
        return match label("helm.toolkit.fluxcd.io/name") {
            Some(name) => {
                let space = label("helm.toolkit.fluxcd.io/namespace").unwrap_or("default");
                let who = format!("{release_text} of Flux's HelmRelease {space}/{name}");
                Holder::tool(Tool::HelmRelease, who, "delete the HelmRelease".to_owned())
            }
            None => Holder::tool(Tool::Helm, release_text, format!("helm uninstall {release} -n {space}")),
        };
    }
    if let Some(name) = label("kustomize.toolkit.fluxcd.io/name") {
        let space = label("kustomize.toolkit.fluxcd.io/namespace").unwrap_or("default");
        let who = format!("Flux's Kustomization {space}/{name}");
        return Holder::tool(Tool::Kustomization, who, SOURCE.to_owned());
    }
    // The tracking id begins with the Application's name.
    let tracked = annotation("argocd.argoproj.io/tracking-id").and_then(|id| id.split(':').next());
    if let Some(name) =
        tracked.or_else(|| label("argocd.argoproj.io/instance")).filter(|name| !name.is_empty())
    {
        let who = format!("Argo CD's Application {name}");
        return Holder::tool(Tool::Application, who, SOURCE.to_owned());
    }
    let who = if annotation("kubectl.kubernetes.io/last-applied-configuration").is_some() {
        "kubectl apply".to_owned()
    } else if managers.is_empty() {
        "somebody else".to_owned()
    } else {
        managers.join(", ")
    };
    Holder { who, remedy: "delete it".to_owned(), tool: None }
}

fn text<'a>(metadata: &'a Value, map: &str, key: &str) -> Option<&'a str> {
    metadata.get(map)?.get(key)?.as_str().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn marks_of_a_tool_name_it_and_field_managers_count_where_none_has_any() {
        let helm = json!({"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop"});
        let flux = |kind: &str| json!({format!("{kind}.toolkit.fluxcd.io/name"): "web", format!("{kind}.toolkit.fluxcd.io/namespace"): "flux"});
        let managers = ["web".to_owned(), "scaler".to_owned()];
        for (metadata, who, tool) in [
            (json!({"annotations": helm}), "Helm release shop/web", Some(Tool::Helm)),
            (
                json!({"annotations": helm, "labels": flux("helm")}),
                "Helm release shop/web of Flux's HelmRelease flux/web",
                Some(Tool::HelmRelease),
            ),
            (
                json!({"labels": flux("kustomize")}),
                "Flux's Kustomization flux/web",
                Some(Tool::Kustomization),
            ),
            (
                json!({"annotations": {"argocd.argoproj.io/tracking-id": "web:/ConfigMap:shop/c"}}),
                "Argo CD's Application web",
                Some(Tool::Application),
            ),
            (
                json!({"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}}),
                "kubectl apply",
                None,
            ),
            (json!({}), "web, scaler", None),
        ] {
            let found = holder(&metadata, &managers);
            assert_eq!((found.who.as_str(), found.tool), (who, tool));
        }
        assert_eq!(holder(&json!({}), &[]).who, "somebody else");
    }
}
