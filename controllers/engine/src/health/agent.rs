//! Reads what Flux says of a folder that it applies.

use serde_json::Value;

use crate::conditions::truncate;

/// Group of the kind that Flux applies folders by.
pub const GROUP: &str = "kustomize.toolkit.fluxcd.io";
/// Its version.
pub const VERSION: &str = "v1";
/// That kind.
pub const KIND: &str = "Kustomization";
/// Name of the one that stands for all others of a cluster, and of the `GitRepository` beside it.
pub const ROOT: &str = "emco";
/// Longest words of an agent, in bytes.
const WORDS: usize = 256;

/// Flux's words about a folder that it refuses; `None` where it does not, or has not said.
pub fn refusal(kustomization: &Value) -> Option<String> {
    let conditions = kustomization.pointer("/status/conditions").and_then(Value::as_array);
    let ready = conditions.into_iter().flatten().find(|one| one["type"] == "Ready")?;
    let text = |key: &str| ready[key].as_str().unwrap_or_default();
    // A wait that ends by itself is no refusal.
    if text("status") != "False" || text("reason") == "DependencyNotReady" {
        return None;
    }
    let generation = kustomization.pointer("/metadata/generation").and_then(Value::as_i64);
    let observed = ready["observedGeneration"].as_i64();
    if observed.is_some() && observed != generation {
        return None;
    }
    let words = text("message").split_whitespace().collect::<Vec<_>>().join(" ");
    Some(truncate(&format!("Flux: {}: {words}", text("reason")), WORDS))
}

/// The commit that was applied last, as `main@sha1:5d1f0c27...` ends with it.
pub fn has_applied(kustomization: &Value, commit: &str) -> bool {
    let applied = kustomization.pointer("/status/lastAppliedRevision").and_then(Value::as_str);
    applied.is_some_and(|applied| applied.ends_with(commit))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(status: &str, reason: &str, observed: i64) -> Option<String> {
        refusal(&json!({
            "metadata": {"generation": 2},
            "status": {"conditions": [
                {"type": "Reconciling", "status": "True"},
                {"type": "Ready", "status": status, "reason": reason, "message": "ClusterRole/x is\n forbidden", "observedGeneration": observed},
            ]},
        }))
    }

    #[test]
    fn a_refusal_of_flux_is_told_in_its_words_and_nothing_else_is_one() {
        let words = "Flux: ReconciliationFailed: ClusterRole/x is forbidden";
        assert_eq!(said("False", "ReconciliationFailed", 2).as_deref(), Some(words));
        assert_eq!(said("False", "ReconciliationFailed", 1), None, "it is about what was before");
        assert_eq!(said("False", "DependencyNotReady", 2), None);
        assert_eq!(said("True", "ReconciliationSucceeded", 2), None);
        assert_eq!(said("Unknown", "Progressing", 2), None);
        assert_eq!(refusal(&json!({})), None);
    }

    #[test]
    fn the_commit_that_was_applied_is_the_end_of_the_revision() {
        let object = json!({"status": {"lastAppliedRevision": "main@sha1:5d1f0c27"}});
        assert!(has_applied(&object, "5d1f0c27") && !has_applied(&object, "0c28"));
        assert!(!has_applied(&json!({}), "5d1f0c27"));
    }
}
