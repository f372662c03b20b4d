//! Finds what the troubleshooting page says of a reason, and where these pages show it.

const BOOK: &str = include_str!("../../../../docs/troubleshooting.md");
/// Kinds whose reasons a row of a deployment may have.
const OF_ROWS: [&str; 3] = ["SyncShard", "DeploymentIntentGroup", "Cluster"];

/// A reason as the page explains it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    pub name: &'static str,
    pub meaning: &'static str,
    pub cure: &'static str,
}

/// All reasons of a kind.
pub fn reasons(kind: &str) -> Vec<Reason> {
    let section = BOOK.split("\n## ").find(|section| section.lines().next() == Some(kind));
    let lines = section.unwrap_or_default().lines();
    let rows = lines.filter_map(|row| row.strip_prefix("| `")?.strip_suffix('|'));
    let read = |row: &'static str| {
        let mut cells = row.splitn(3, " | ");
        let name = cells.next()?.trim().trim_end_matches('`');
        Some(Reason { name, meaning: cells.next()?.trim(), cure: cells.next()?.trim() })
    };
    rows.filter_map(read).collect()
}

/// Explanation of one reason.
pub fn reason(kind: &str, name: &str) -> Option<Reason> {
    reasons(kind).into_iter().find(|reason| reason.name == name)
}

/// The kind under which a reason of a row is explained.
pub fn kind_of_row(name: &str) -> Option<&'static str> {
    OF_ROWS.into_iter().find(|kind| reason(kind, name).is_some())
}

/// Markdown as pieces of plain text and of code; links are their text.
pub fn pieces(text: &str) -> Vec<(bool, String)> {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        plain.push_str(before);
        let whole = link.split_once("](").and_then(|(text, to)| Some((text, to.split_once(')')?.1)));
        if let Some((text, after)) = whole {
            plain.push_str(text);
            rest = after;
        } else {
            plain.push('[');
            rest = link;
        }
    }
    plain.push_str(rest);
    let parts = plain.split('`').enumerate().map(|(at, part)| (at % 2 == 1, part.to_owned()));
    parts.filter(|(_, part)| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use emco_crds::reasons::{ClusterReason, DeploymentIntentGroupReason};

    use super::*;

    #[test]
    fn every_reason_of_deployments_and_clusters_is_explained() {
        for name in DeploymentIntentGroupReason::ALL {
            assert!(reason("DeploymentIntentGroup", name.as_str()).is_some(), "{}", name.as_str());
        }
        for name in ClusterReason::ALL {
            assert!(reason("Cluster", name.as_str()).is_some(), "{}", name.as_str());
        }
        assert_eq!(reason("Cluster", "Nonsense"), None);
        assert_eq!(kind_of_row("Unreachable"), Some("SyncShard"));
        assert_eq!(kind_of_row("Nonsense"), None);
    }

    #[test]
    fn links_become_their_text_and_code_stays_code() {
        let plain = |text: &str| (false, text.to_owned());
        let code = |text: &str| (true, text.to_owned());
        let read = pieces("See [Actions](actions.md#x) or `kubectl get` [here.");
        assert_eq!(read, [plain("See Actions or "), code("kubectl get"), plain(" [here.")]);
        assert_eq!(pieces("`a[0]` b"), [code("a[0]"), plain(" b")]);
    }
}
