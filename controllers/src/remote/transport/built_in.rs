//! Tells the collections of Kubernetes' own kinds from those of kinds that a CustomResourceDefinition adds.

use emco_engine::order;

/// Whether a collection is of a kind that every API server has itself.
pub fn is_built_in(path: &str) -> bool {
    let mut segments = path.split('/').skip(1);
    match (segments.next(), segments.next()) {
        (Some("api"), _) => true,
        // No definition adds kinds to a group without a dot.
        (Some("apis"), Some(group)) => !group.contains('.') || order::is_built_in(group),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_that_somebody_defined_are_not_built_in() {
        for (path, expected) in [
            ("/api/v1/pods", true),
            ("/apis/apps/v1/deployments", true),
            ("/apis/networking.k8s.io/v1/ingresses", true),
            ("/apis/gateway.networking.k8s.io/v1/gateways", false),
            ("/apis/x.example.com/v1/kinds", false),
            ("", false),
        ] {
            assert_eq!(is_built_in(path), expected, "{path}");
        }
    }
}
