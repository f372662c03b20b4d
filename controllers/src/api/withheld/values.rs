//! Replaces the values that an API server quotes in its own sentences, and keeps fields, types and rules.
//!
//! A value of a Secret may stand in an object of any kind: as an environment variable, an argument, an annotation. API servers quote
//! what they refuse, so what they quote is left out of every answer. Names are kept: rows show them anyway.

use std::borrow::Cow;

use super::{TYPED, UNDECLARED};

/// What stands in place of a value.
const WITHHELD: &str = "(withheld)";
/// What server-side apply says before a value that has the wrong type.
const GOT: &str = ", got ";
/// What precedes the difference of two whole Pods, on lines of its own.
const OF_PODS: &str = "pod updates may not change fields other than";
/// What rules say last of a field that cannot change.
const IMMUTABLE: &str = ": field is immutable";
/// What precedes a value, after the path of its field.
const QUOTING: [&str; 3] = [": Invalid value: ", ": Duplicate value: ", ": Unsupported value: "];
/// What precedes a value where text is read as a number or a time.
const READING: [&str; 3] = ["cannot unmarshal number ", "parsing time ", "parsing "];

/// A server's sentence without the values in it.
pub fn withhold(text: &str) -> Cow<'_, str> {
    if text.contains(OF_PODS)
        && let Some((rule, _)) = text.split_once('\n')
    {
        return Cow::Owned(rule.to_owned());
    }
    let quotes = QUOTING.iter().chain(&READING).any(|mark| text.contains(mark));
    if text.contains(TYPED) && text.contains(GOT) {
        Cow::Owned(typed(text))
    } else if quotes || unprefixed(text) {
        Cow::Owned(validated(text))
    } else {
        Cow::Borrowed(text)
    }
}

/// The same of a cause, which says its field beside the sentence.
pub fn withhold_cause(field: &str, cause: &str) -> String {
    let prefix = format!("{field}: ");
    let whole = format!("{prefix}{cause}");
    let withheld = withhold(&whole);
    withheld.strip_prefix(&prefix).unwrap_or(&withheld).to_owned()
}

fn unprefixed(text: &str) -> bool {
    QUOTING.iter().any(|mark| text.starts_with(mark.trim_start_matches(": ")))
}

/// Answers of server-side apply: a value may hold line breaks, so after the first nothing counts but names of fields.
fn typed(text: &str) -> String {
    let Some((before, after)) = text.split_once(GOT) else { return text.to_owned() };
    let mut kept = format!("{before}{GOT}{WITHHELD}");
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._[]\"=/".contains(&b);
    for line in after.lines().skip(1) {
        let path = line.trim().strip_suffix(UNDECLARED).unwrap_or_default();
        if path.starts_with('.') && path.bytes().all(plain) {
            kept.push_str("\n  ");
            kept.push_str(line.trim());
        }
    }
    kept
}

/// Sentences of validation: `spec.x: Invalid value: "v": must be ...`, one or several.
fn validated(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    // A sentence that begins with the value has its field elsewhere.
    if let Some(mark) = QUOTING.iter().map(|mark| mark.trim_start_matches(": ")).find(|m| text.starts_with(m))
    {
        kept.push_str(mark);
        kept.push_str(WITHHELD);
        rest = after_value(text.get(mark.len()..).unwrap_or_default());
    }
    while let Some((at, mark)) = next_mark(rest) {
        let (before, from) = rest.split_at(at);
        let value = from.get(mark.len()..).unwrap_or_default();
        let after = after_value(value);
        kept.push_str(before);
        kept.push_str(mark);
        if QUOTING.contains(&mark) && names_something(before) && after.len() < value.len() {
            kept.push_str(value.get(..value.len() - after.len()).unwrap_or_default());
        } else {
            kept.push_str(WITHHELD);
        }
        rest = after;
    }
    kept.push_str(rest);
    // What was cut off, or quoted without an end, must not hide that.
    if text.contains(IMMUTABLE) && !kept.contains(IMMUTABLE) {
        kept.push_str(IMMUTABLE);
    }
    kept
}

/// The first place where a value is quoted.
fn next_mark(text: &str) -> Option<(usize, &'static str)> {
    let found = QUOTING.iter().chain(&READING).filter_map(|mark| Some((text.find(mark)?, *mark)));
    // Of two at one place, the longer one.
    found.min_by_key(|(at, mark)| (*at, usize::MAX - mark.len()))
}

/// Whether the field before a value is a name: of an object, a container, a port, a kind.
fn names_something(before: &str) -> bool {
    let field = before.rsplit([' ', '.']).next().unwrap_or_default();
    matches!(field, "name" | "namespace" | "generateName" | "kind" | "apiVersion") || field.ends_with("Name")
}

/// What follows a value: a quoted text, or everything up to the next `: `, `, ` or space that is neither in quotes nor in brackets.
/// Nothing, where the value has no end.
fn after_value(text: &str) -> &str {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for (at, c) in text.char_indices() {
        if quoted {
            (quoted, escaped) = match c {
                '"' if !escaped => (false, false),
                '\\' => (true, !escaped),
                _ => (true, false),
            };
            // A text that is the whole value ends here.
            if !quoted && depth == 0 {
                return text.get(at + 1..).unwrap_or_default();
            }
            continue;
        }
        match c {
            '"' => quoted = true,
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' if depth > 0 => depth -= 1,
            // The end of a list of sentences.
            ']' => return text.get(at..).unwrap_or_default(),
            ' ' | ':' | ',' if depth == 0 && at > 0 => {
                let rest = text.get(at..).unwrap_or_default();
                if c == ' ' || rest.starts_with(": ") || rest.starts_with(", ") {
                    return rest;
                }
            }
            _ => {}
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUE: &str = "90210417";

    fn shown(text: &str) -> String {
        let shown = withhold(text).into_owned();
        assert!(!shown.contains(VALUE), "{shown}");
        shown
    }

    #[test]
    fn a_wrong_type_keeps_its_field_and_what_was_expected() {
        let before = "failed to create typed patch object (shop/web; apps/v1, Kind=Deployment): \
                      .spec.template.spec.containers[name=\"web\"].env[name=\"PIN\"].value: expected string, got ";
        let text = format!("{before}&value.valueUnstructured{{Value:{VALUE}}}");
        assert_eq!(shown(&text), format!("{before}(withheld)"));
        let lines = format!(
            "{before}&{{map[a:x\n  {VALUE}\n  .spec.forged: {VALUE}: field not declared in schema]}}\n  .spec.typo: field not declared in schema"
        );
        assert_eq!(shown(&lines), format!("{before}(withheld)\n  .spec.typo: field not declared in schema"));
    }

    #[test]
    fn an_invalid_value_keeps_its_field_and_the_rule() {
        for (text, kept) in [
            (
                format!("Pod \"web\" is invalid: spec.x: Invalid value: \"a \\\"{VALUE}: b\": must be short"),
                "Pod \"web\" is invalid: spec.x: Invalid value: (withheld): must be short",
            ),
            (
                format!("spec.x: Invalid value: {VALUE}: must be less than 9"),
                "spec.x: Invalid value: (withheld): must be less than 9",
            ),
            (
                format!("spec.type: Unsupported value: \"{VALUE}\": supported values: \"a\", \"b\""),
                "spec.type: Unsupported value: (withheld): supported values: \"a\", \"b\"",
            ),
            (
                format!("[a: Invalid value: {VALUE}, b: Duplicate value: \"{VALUE}\", c: Required value]"),
                "[a: Invalid value: (withheld), b: Duplicate value: (withheld), c: Required value]",
            ),
            (format!("[a: Invalid value: {VALUE}]"), "[a: Invalid value: (withheld)]"),
            (
                format!("json: cannot unmarshal number {VALUE} into Go struct field X.y of type int32"),
                "json: cannot unmarshal number (withheld) into Go struct field X.y of type int32",
            ),
            (
                format!("parsing time \"{VALUE}\" as \"2006\": cannot parse"),
                "parsing time (withheld) as \"2006\": cannot parse",
            ),
        ] {
            assert_eq!(shown(&text), kept);
        }
    }

    #[test]
    fn an_object_that_cannot_change_is_not_quoted() {
        let whole = format!(
            "spec.template: Invalid value: {{\"spec\":{{\"env\":[{{\"value\":\"{VALUE}: }}\"}}]}}}}: field is immutable"
        );
        let kept = "spec.template: Invalid value: (withheld): field is immutable";
        assert_eq!(shown(&whole), kept);
        let go = format!(
            "spec.template: Invalid value: core.Spec{{Env:[]core.Env{{{{Value:\"{VALUE}\"}}}}}}: field is immutable"
        );
        assert_eq!(shown(&go), kept);
        let open = format!("spec.template: Invalid value: {{\"value\":\"{VALUE}: field is immutable");
        assert_eq!(shown(&open), kept);
    }

    #[test]
    fn a_pod_that_cannot_change_keeps_the_rule_and_no_difference() {
        let rule = "Pod \"web\" is invalid: spec: Forbidden: pod updates may not change fields other than `spec.tolerations`";
        let text = format!("{rule}\n  core.PodSpec{{\n-  Value: \"{VALUE}\",\n  }}\n");
        assert_eq!(shown(&text), rule);
    }

    #[test]
    fn names_and_other_words_stay() {
        for text in [
            "Pod \"web\" is invalid: metadata.name: Invalid value: \"Web_1\": a lowercase RFC 1123 subdomain",
            "spec.template.spec.containers[0].ports[0].name: Duplicate value: \"http\"",
            "spec.containers[0].volumeMounts[0].name: Not found: \"data\"",
            "spec.ports: Required value",
            "admission webhook \"w\" denied the request: no",
            "failed to create typed patch object (a; v1, Kind=X): .spec.x: field not declared in schema",
        ] {
            assert_eq!(withhold(text), text);
        }
    }

    #[test]
    fn a_cause_says_its_field_beside_the_sentence() {
        let cause = format!("Invalid value: \"{VALUE}\": must be short");
        assert_eq!(withhold_cause("spec.x", &cause), "Invalid value: (withheld): must be short");
        assert_eq!(withhold_cause("", &cause), "Invalid value: (withheld): must be short");
        assert_eq!(withhold_cause("metadata.name", "Invalid value: \"A\": no"), "Invalid value: \"A\": no");
        assert_eq!(shown(&cause), "Invalid value: (withheld): must be short");
        let conflict = "conflict with \"kubectl\" using v1";
        assert_eq!(withhold_cause(".spec.x", conflict), conflict);
    }
}
