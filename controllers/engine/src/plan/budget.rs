//! A plan, what runs and a Project's removal budget in; what goes beyond the budget, as a sentence, out.

use emco_crds::fields::{IntOrText, PercentOrCount};

use super::Plan;
use crate::snapshot::Running;

/// No budget is so small that not even this many clusters may lose an app.
const ALWAYS: usize = 2;

/// Says which apps would leave more clusters than the budget allows in this one plan; `None` where none does.
pub fn over_budget(plan: &Plan, running: &Running, budget: &PercentOrCount) -> Option<String> {
    let removals = &plan.change.as_ref()?.removals;
    let mut over = Vec::new();
    for (app, removed) in removals {
        let had = running.assignment.values().filter(|apps| apps.contains_key(app)).count();
        let allowed = allowed(budget, had);
        if *removed > allowed {
            over.push(format!("app {app} would leave {removed} of {had} clusters"));
        }
    }
    let first = over.first()?;
    let more = if over.len() > 1 { format!(", {} more apps as well", over.len() - 1) } else { String::new() };
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

    #[test]
    fn a_share_is_rounded_down_and_never_below_two() {
        let text = |text: &str| PercentOrCount(IntOrText::Text(text.to_owned()));
        assert_eq!(allowed(&text("50%"), 9), 4);
        assert_eq!(allowed(&text("50%"), 1), 2);
        assert_eq!(allowed(&text("7"), 100), 7);
        assert_eq!(allowed(&PercentOrCount(IntOrText::Int(0)), 100), 2);
    }
}
