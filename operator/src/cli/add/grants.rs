//! Compares the level that a cluster is added for with what grants of its provider allow.

use emco_crds::ClusterProvider;
use emco_crds::fields::Level;

/// The highest level that a grant allows; `None` without grants.
pub(super) fn highest(provider: &ClusterProvider) -> Option<Level> {
    let grants = provider.spec.grants.iter();
    grants.map(|grant| grant.max_level.unwrap_or_default()).max()
}

/// What is to be said where both differ. Neither is refused: grants change, and hold for some clusters of a provider.
pub(super) fn compared(level: Level, granted: Option<Level>, provider: &str) -> Option<String> {
    let granted = granted?;
    if level > granted {
        return Some(format!(
            "level {} gives the hub more than any project may use: grants of ClusterProvider {provider} allow {} at most, for which \
             --level {} is enough",
            level.as_str(),
            granted.as_str(),
            granted.as_str()
        ));
    }
    (level < granted).then(|| {
        format!(
            "a grant of ClusterProvider {provider} allows logical clouds of level {}, and the cluster would refuse what these need beyond \
             level {}: have the grant name other clusters or a lower maxLevel, or add this one with --level {}",
            granted.as_str(),
            level.as_str(),
            granted.as_str()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provider(levels: &[Option<Level>]) -> ClusterProvider {
        let grants: Vec<serde_json::Value> = levels
            .iter()
            .map(|level| match level {
                Some(level) => serde_json::json!({"name": "g", "projectSelector": {}, "maxLevel": level}),
                None => serde_json::json!({"name": "g", "projectSelector": {}}),
            })
            .collect();
        serde_json::from_value(serde_json::json!({
            "apiVersion": "emco.io/v1alpha1", "kind": "ClusterProvider", "metadata": {"name": "acme"}, "spec": {"grants": grants},
        }))
        .unwrap()
    }

    #[test]
    fn the_highest_grant_counts_and_none_is_standard_where_it_says_nothing() {
        assert_eq!(highest(&provider(&[])), None);
        assert_eq!(highest(&provider(&[None])), Some(Level::Standard));
        assert_eq!(highest(&provider(&[Some(Level::Privileged), None])), Some(Level::Privileged));
    }

    #[test]
    fn a_level_above_or_below_what_is_granted_is_said_with_the_one_that_fits() {
        let said = |level, granted| compared(level, granted, "acme");
        assert_eq!(said(Level::Admin, None), None);
        assert_eq!(said(Level::Standard, Some(Level::Standard)), None);
        assert!(said(Level::Admin, Some(Level::Standard)).unwrap().ends_with("--level Standard is enough"));
        let less = said(Level::Standard, Some(Level::Admin)).unwrap();
        assert!(less.contains("level Admin") && less.ends_with("--level Admin"), "{less}");
    }
}
