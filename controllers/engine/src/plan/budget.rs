//! Says where a plan goes beyond a Project's removal budget, given what ran recently.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::fields::{IntOrText, PercentOrCount};
use emco_crds::names::generated_app;

use crate::identity::ClusterId;

/// No budget is so small that not even this many clusters may lose an app.
const ALWAYS: usize = 2;

/// Says which apps would leave more clusters than the budget allows; `None` where none would. `plan` says who would have what, `runs`
/// which app is on which cluster now: an app that leaves none of those is none of the plan's doing. `lately` is which app was on which
/// cluster besides at any time within the last 24 hours: what was removed in many small steps counts as in one. A cluster that gets the
/// app again does not count.
pub fn over_budget<'a, Set>(
    plan: &BTreeMap<ClusterId, BTreeMap<String, Set>>,
    runs: impl IntoIterator<Item = (&'a str, &'a ClusterId)>,
    lately: impl IntoIterator<Item = (&'a str, &'a ClusterId)>,
    budget: &PercentOrCount,
) -> Option<String> {
    let has = |app: &str, cluster: &ClusterId| plan.get(cluster).is_some_and(|apps| apps.contains_key(app));
    let mut had: BTreeMap<&str, BTreeSet<&ClusterId>> = BTreeMap::new();
    let mut leaves: BTreeSet<&str> = BTreeSet::new();
    // What an intent adds to no chart leaves with the intent, which people take off a list by its name.
    for (app, cluster) in runs.into_iter().filter(|(app, _)| !generated_app::is(app)) {
        had.entry(app).or_default().insert(cluster);
        if !has(app, cluster) {
            leaves.insert(app);
        }
    }
    for (app, cluster) in lately {
        had.entry(app).or_default().insert(cluster);
    }
    let mut over = Vec::new();
    for (app, had) in had.iter().filter(|(app, _)| leaves.contains(*app)) {
        let removed = had.iter().filter(|cluster| !has(app, cluster)).count();
        if removed > allowed(budget, had.len()) {
            over.push(format!(
                "app {app} leaves {removed} of the {} clusters it had within 24 hours",
                had.len()
            ));
        }
    }
    let first = over.first()?;
    let more = match over.len() {
        1 => String::new(),
        2 => ", 1 more app as well".to_owned(),
        n => format!(", {} more apps as well", n - 1),
    };
    Some(format!("{first}{more}: more than the project's removalBudget {budget} (at least {ALWAYS})"))
}

/// A share is rounded down. A text that is neither share nor number (the schema refuses such) allows the least.
fn allowed(budget: &PercentOrCount, of: usize) -> usize {
    let number = match &budget.0 {
        IntOrText::Int(number) => usize::try_from(*number).unwrap_or_default(),
        IntOrText::Text(text) => match text.strip_suffix('%') {
            Some(percent) => percent.parse::<usize>().unwrap_or_default().saturating_mul(of) / 100,
            None => text.parse().unwrap_or_default(),
        },
    };
    number.max(ALWAYS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::SetDigest;
    use crate::set::{Assigned, Assignment};

    fn text(text: &str) -> PercentOrCount {
        PercentOrCount(IntOrText::Text(text.to_owned()))
    }

    fn on(clusters: std::ops::RangeInclusive<u32>) -> Assignment {
        let assigned = Assigned {
            set: SetDigest("s".to_owned()),
            render_key: String::new(),
            now: 0,
            release_revision: 1,
            findings: None,
            provenance: None,
            rendered_revision: None,
            tests: None,
            edits: None,
        };
        clusters
            .map(|n| (ClusterId::new("acme", &n.to_string()), [("web".to_owned(), assigned.clone())].into()))
            .collect()
    }

    fn pairs(assignment: &Assignment) -> impl Iterator<Item = (&str, &ClusterId)> {
        assignment.iter().flat_map(|(cluster, apps)| apps.keys().map(move |app| (app.as_str(), cluster)))
    }

    /// `ran` are the assignments of the last day; the last one runs.
    fn over(plan: &Assignment, ran: &[Assignment], budget: &PercentOrCount) -> Option<String> {
        over_budget(plan, pairs(ran.last().unwrap()), ran.iter().flat_map(pairs), budget)
    }

    #[test]
    fn a_share_is_rounded_down_and_never_below_two() {
        assert_eq!(allowed(&text("50%"), 9), 4);
        assert_eq!(allowed(&text("50%"), 1), 2);
        assert_eq!(allowed(&text("7"), 100), 7);
        assert_eq!(allowed(&PercentOrCount(IntOrText::Int(0)), 100), 2);
    }

    #[test]
    fn the_budget_is_the_projects_and_not_half() {
        assert_eq!(over(&on(1..=2), &[on(1..=5)], &text("60%")), None);
        assert_eq!(
            over(&on(1..=2), &[on(1..=5)], &text("40%")).unwrap(),
            "app web leaves 3 of the 5 clusters it had within 24 hours: more than the project's removalBudget 40% (at least 2)"
        );
    }

    #[test]
    fn many_small_steps_of_a_day_count_as_one() {
        let steps = [on(1..=6), on(1..=5), on(1..=4), on(1..=3)];
        assert_eq!(over(&on(1..=2), &steps[3..], &text("50%")), None);
        assert!(over(&on(1..=2), &steps, &text("50%")).unwrap().contains("leaves 4 of the 6"));
        assert_eq!(over(&on(1..=6), &steps, &text("50%")), None, "what came back never left");
        let done = [on(1..=6), on(1..=2)];
        assert_eq!(
            over(&on(1..=2), &done, &text("50%")),
            None,
            "a plan that removes nothing waits for nothing"
        );
        assert!(over(&on(1..=1), &done, &text("50%")).unwrap().contains("leaves 5 of the 6"));
    }
}
