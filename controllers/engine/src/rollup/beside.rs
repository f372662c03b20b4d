//! Says of a change that is refused what runs beside it, and how that is.

use emco_crds::reasons::is_progress;

use super::Verdict;
use crate::conditions::{LONGEST_MESSAGE, shorten};

/// Longest words about what runs, in bytes.
const LONGEST: usize = 400;

/// What Ready says of a refused change while an earlier revision runs. A client that applies a change and waits for Ready must not
/// take the health of the earlier revision for the success of the change. A change that waits for what comes by itself is not refused.
/// Where what `runs` is not ready, that is said as well: neither hides the other.
pub fn still_runs(revision: i64, applied: &str, (reason, refusal): (&str, &str), runs: &Verdict) -> String {
    let what = if is_progress(reason) { "waits" } else { "is refused" };
    let first = format!("revision {revision} runs on {applied}; the last change {what}: ");
    let also = match runs.status {
        "True" => String::new(),
        _ => format!("; besides, what runs is not ready: {}", shorten(&runs.message, LONGEST)),
    };
    let room = LONGEST_MESSAGE.saturating_sub(first.len() + also.len());
    format!("{first}{}{also}", shorten(refusal, room))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(status: &'static str, message: &str) -> Verdict {
        Verdict { status, reason: "Unreachable", message: message.to_owned() }
    }

    #[test]
    fn a_refused_change_does_not_hide_that_what_runs_is_away() {
        let away = runs("False", "0 of 1 cluster ready; 1 unreachable; acme/one: Unreachable");
        let on = "1 of 1 cluster, of which 1 cannot be reached";
        assert_eq!(
            still_runs(1, on, ("AppNotFound", "no app ap"), &away),
            "revision 1 runs on 1 of 1 cluster, of which 1 cannot be reached; the last change is refused: no app ap; \
             besides, what runs is not ready: 0 of 1 cluster ready; 1 unreachable; acme/one: Unreachable"
        );
        let ready = runs("True", "1 of 1 cluster ready");
        assert_eq!(
            still_runs(1, "1 of 1 cluster", ("Fetching", "its chart"), &ready),
            "revision 1 runs on 1 of 1 cluster; the last change waits: its chart"
        );
    }

    #[test]
    fn both_find_room_in_a_condition_however_long_they_are() {
        let (refusal, fails) = ("t".repeat(2000), runs("False", &"r".repeat(2000)));
        let said = still_runs(7, "2 of 2 clusters", ("TemplateError", &refusal), &fails);
        assert!(said.len() <= LONGEST_MESSAGE, "{}", said.len());
        assert!(said.contains("refused: ttt") && said.contains("not ready: rrr"), "{said}");
    }
}
