//! Sets and removes conditions in a list. The transition time moves only when the status flips.

use emco_crds::{Condition, Time};
use k8s_openapi::jiff::Timestamp;

/// Longest message of a condition, in bytes.
pub const LONGEST_MESSAGE: usize = 1024;

/// States one condition; `status` is `True`, `False` or `Unknown`. Returns whether anything changed.
pub fn set(
    conditions: &mut Vec<Condition>,
    type_: &str,
    status: &str,
    reason: &str,
    message: &str,
    generation: i64,
    now: Timestamp,
) -> bool {
    let mut fresh = Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: shorten(message, LONGEST_MESSAGE),
        observed_generation: Some(generation),
        last_transition_time: Time(now),
    };
    let Some(stored) = conditions.iter_mut().find(|c| c.type_ == type_) else {
        conditions.push(fresh);
        return true;
    };
    if stored.status == fresh.status {
        fresh.last_transition_time = stored.last_transition_time.clone();
    }
    let changed = *stored != fresh;
    *stored = fresh;
    changed
}

/// Takes a condition away; for those that are present only while True. Returns whether it was there.
pub fn remove(conditions: &mut Vec<Condition>, type_: &str) -> bool {
    let before = conditions.len();
    conditions.retain(|c| c.type_ != type_);
    conditions.len() < before
}

/// The condition of a type.
pub fn get<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|c| c.type_ == type_)
}

/// Whether a condition is present and True.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    get(conditions, type_).is_some_and(|c| c.status == "True")
}

/// A text of at most `longest` bytes: cut at a character, ending in `...` where something was cut.
pub fn truncate(text: &str, longest: usize) -> String {
    if text.len() <= longest {
        return text.to_owned();
    }
    let kept = text.get(..text.floor_char_boundary(longest.saturating_sub(3))).unwrap_or_default();
    let dots = if longest < 3 { "" } else { "..." };
    format!("{kept}{dots}")
}

/// Stands for what was left out of a text.
const LEFT_OUT: &str = " ... ";

/// A text of at most `longest` bytes: of a longer one its beginning and its end, at characters. A server says first what it refuses, and
/// last why; what may be done about it, EMCO says before the server's words.
pub fn shorten(text: &str, longest: usize) -> String {
    if text.len() <= longest {
        return text.to_owned();
    }
    let Some(room) = longest.checked_sub(LEFT_OUT.len()) else { return truncate(text, longest) };
    let of_end = room * 2 / 5;
    let beginning = text.get(..text.floor_char_boundary(room - of_end)).unwrap_or_default();
    let end = text.get(text.ceil_char_boundary(text.len() - of_end)..).unwrap_or_default();
    format!("{}{LEFT_OUT}{}", beginning.trim_end(), end.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(second: i64) -> Timestamp {
        Timestamp::constant(second, 0)
    }

    #[test]
    fn the_transition_time_moves_only_when_the_status_flips() {
        let mut all = Vec::new();
        assert!(set(&mut all, "Ready", "False", "Progressing", "1 of 2", 1, at(10)));
        assert!(!set(&mut all, "Ready", "False", "Progressing", "1 of 2", 1, at(20)));
        assert!(set(&mut all, "Ready", "False", "Unreachable", "dial", 1, at(30)));
        assert_eq!(all[0].last_transition_time.0, at(10));
        assert!(set(&mut all, "Ready", "True", "Ready", "", 2, at(40)));
        assert_eq!(all[0].last_transition_time.0, at(40));
        assert_eq!(all.len(), 1);
        assert!(is_true(&all, "Ready"));
        assert!(remove(&mut all, "Ready"));
        assert!(!remove(&mut all, "Ready"));
        assert_eq!(get(&all, "Ready"), None);
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        assert_eq!(truncate("short", 256), "short");
        let cut = truncate(&"ü".repeat(300), 256);
        assert!(cut.len() <= 256 && cut.ends_with("ü..."), "{cut}");
        assert_eq!(truncate("abcdef", 2), "");
    }

    #[test]
    fn a_shortened_text_keeps_its_beginning_and_its_end() {
        assert_eq!(shorten("short", 256), "short");
        let text = format!("roles \"own\" is forbidden: {} Verbs:[\"create\"]}}", "x".repeat(900));
        let said = shorten(&text, 256);
        assert_eq!(said.len(), 256, "{said}");
        let (beginning, end) = ("roles \"own\" is forbidden: ", "Verbs:[\"create\"]}");
        assert!(said.starts_with(beginning) && said.ends_with(end), "{said}");
        assert!(said.contains("x ... x"), "{said}");
        let said = shorten(&"ü".repeat(300), 256);
        assert!(said.len() <= 256 && said.starts_with('ü') && said.ends_with('ü'), "{said}");
        assert_eq!(shorten(&said, 256), said, "what is short stays");
        assert_eq!(shorten("abcdef", 4), "a...");
    }
}
