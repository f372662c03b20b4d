//! Finds what helps against the reason of a condition: the book says it, and nobody else.

const BOOK: &str = include_str!("../../../../docs/troubleshooting.md");

/// What the book says that a person does about a reason of a kind; `None` where it says nothing of it.
pub fn cure(kind: &str, reason: &str) -> Option<&'static str> {
    let section = BOOK.split("\n## ").find(|section| section.lines().next() == Some(kind))?;
    section.lines().find_map(|row| {
        let mut cells = row.strip_prefix("| ")?.strip_suffix(" |")?.splitn(3, " | ");
        let (named, _meaning, cure) = (cells.next()?, cells.next()?, cells.next()?);
        (named.trim_matches('`') == reason).then_some(cure)
    })
}

#[cfg(test)]
mod tests {
    use emco_crds::reasons::ClusterReason;

    use super::*;

    #[test]
    fn every_reason_of_a_cluster_has_a_cure_that_a_terminal_can_show() {
        for reason in ClusterReason::ALL {
            let said = cure("Cluster", reason.as_str()).unwrap_or_default();
            assert!(!said.is_empty() && !said.contains("]("), "{}: {said:?}", reason.as_str());
        }
        assert_eq!(cure("Cluster", "Nonsense"), None);
        assert_eq!(cure("Nothing", "Timeout"), None);
    }
}
