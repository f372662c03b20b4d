//! Says what becomes of a field that was changed by hand where Flux or Argo CD applies the object from Git.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// Field managers of those who apply from Git, with their names.
const MANAGERS: [(&str, &str); 4] = [
    ("kustomize-controller", "Flux"),
    ("helm-controller", "Flux"),
    ("argocd-controller", "Argo CD"),
    ("argocd-application-controller", "Argo CD"),
];

/// Who applies an object from Git, such as `Flux's Kustomization flux-system/apps`.
pub fn source(meta: &ObjectMeta) -> Option<String> {
    let label = |key: &str| meta.labels.as_ref().and_then(|labels| labels.get(key));
    let annotation = |key: &str| meta.annotations.as_ref().and_then(|all| all.get(key));
    for (kind, prefix) in
        [("Kustomization", "kustomize.toolkit.fluxcd.io"), ("HelmRelease", "helm.toolkit.fluxcd.io")]
    {
        if let Some(name) = label(&format!("{prefix}/name")) {
            let namespace = label(&format!("{prefix}/namespace")).map(|space| format!("{space}/"));
            return Some(format!("Flux's {kind} {}{name}", namespace.unwrap_or_default()));
        }
    }
    let tracked = annotation("argocd.argoproj.io/tracking-id").and_then(|id| id.split(':').next());
    if let Some(name) = tracked.or_else(|| label("argocd.argoproj.io/instance").map(String::as_str)) {
        return Some(format!("Argo CD's Application {name}"));
    }
    let mut entries = meta.managed_fields.iter().flatten();
    entries.find_map(|entry| by(entry.manager.as_deref())).map(str::to_owned)
}

fn by(manager: Option<&str>) -> Option<&'static str> {
    MANAGERS.iter().find(|(name, _)| Some(*name) == manager).map(|(_, who)| *who)
}

/// Whether a field of the spec, such as `suspend` or `sync.conflicts`, came from Git.
fn has(meta: &ObjectMeta, field: &str) -> bool {
    let pointer = format!("/f:spec/f:{}", field.replace('.', "/f:"));
    meta.managed_fields.iter().flatten().any(|entry| {
        by(entry.manager.as_deref()).is_some()
            && entry.fields_v1.as_ref().is_some_and(|fields| fields.0.pointer(&pointer).is_some())
    })
}

/// What Git will undo, or that it will not, of a change of `spec.FIELD` on an object as it was before; `None` where nobody applies it
/// from Git. `back` is the command that takes the change back.
pub fn sentence(before: &ObjectMeta, field: &str, back: &str) -> Option<String> {
    let source = source(before)?;
    Some(if has(before, field) {
        format!(
            "{source} has spec.{field} in Git, and will set it back at its next look: change it in Git as well"
        )
    } else {
        format!(
            "{source} applies this deployment and has not set spec.{field}: the change stays until {back}; what Git says of the field later holds"
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn meta(value: Value) -> ObjectMeta {
        serde_json::from_value(value).unwrap()
    }

    fn managed(manager: &str, fields: &Value) -> Value {
        json!([{"manager": manager, "operation": "Apply", "apiVersion": "emco.io/v1alpha1", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": fields}}])
    }

    #[test]
    fn who_applies_from_git_is_named() {
        let of = |value: Value| source(&meta(value));
        let flux = json!({"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"});
        assert_eq!(of(json!({"labels": flux})).unwrap(), "Flux's Kustomization flux-system/apps");
        let argo = json!({"argocd.argoproj.io/tracking-id": "shop:emco.io/DeploymentIntentGroup:shop/till"});
        assert_eq!(of(json!({"annotations": argo})).unwrap(), "Argo CD's Application shop");
        assert_eq!(
            of(json!({"managedFields": managed("argocd-controller", &json!({}))})).unwrap(),
            "Argo CD"
        );
        assert_eq!(of(json!({"managedFields": managed("kubectl", &json!({}))})), None);
    }

    #[test]
    fn a_field_that_is_in_git_is_set_back_and_another_one_stays() {
        let fields = json!({"f:suspend": {}, "f:placement": {}});
        let ours = meta(json!({"managedFields": managed("kustomize-controller", &fields)}));
        let said = sentence(&ours, "suspend", "kubectl emco resume").unwrap();
        assert!(said.starts_with("Flux has spec.suspend in Git, and will set it back"), "{said}");
        let said = sentence(&ours, "revision", "kubectl emco rollback --unpin").unwrap();
        assert!(
            said.contains("has not set spec.revision: the change stays until kubectl emco rollback --unpin"),
            "{said}"
        );
        assert_eq!(sentence(&meta(json!({})), "suspend", ""), None);
        let below = json!({"f:sync": {"f:conflicts": {}}});
        let ours = meta(json!({"managedFields": managed("argocd-controller", &below)}));
        assert!(
            sentence(&ours, "sync.conflicts", "")
                .unwrap()
                .starts_with("Argo CD has spec.sync.conflicts in Git")
        );
        assert!(sentence(&ours, "sync.drift", "").unwrap().contains("has not set spec.sync.drift"));
    }
}
