//! Tells whether a message quotes the content of Secrets.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// Shorter texts are in any sentence by chance.
const SHORTEST: usize = 4;
/// Of a long line this much is looked for: messages are cut.
const HEAD: usize = 16;
/// More lines than any message is worth: beyond them it is taken for a quotation.
const MOST_LINES: usize = 20_000;

/// Whether a line of a value, as it is stored or decoded, stands in the text.
pub fn quotes<'a>(text: &str, secrets: impl IntoIterator<Item = &'a Value>) -> bool {
    let mut left = MOST_LINES;
    secrets.into_iter().filter_map(|secret| secret.get("data")?.as_object()).flatten().any(|(_, value)| {
        let Some(encoded) = value.as_str() else { return false };
        let decoded = STANDARD.decode(encoded).unwrap_or_default();
        stands_in(text, encoded, &mut left) || stands_in(text, &String::from_utf8_lossy(&decoded), &mut left)
    })
}

fn stands_in(text: &str, value: &str, left: &mut usize) -> bool {
    value.lines().map(str::trim).filter(|line| line.len() >= SHORTEST).any(|line| {
        let head = line.get(..line.floor_char_boundary(HEAD)).unwrap_or_default();
        // A message may show it quoted, as Go does.
        let escaped = head.escape_default().to_string();
        *left = left.saturating_sub(1);
        *left == 0 || text.contains(head) || text.contains(&escaped)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn secret() -> Value {
        let key = "-----BEGIN KEY-----\nMIIabcdefghijklmnopqrstuvwxyz\n-----END KEY-----\n";
        json!({"data": {
            "password": STANDARD.encode("hunter2"), "quoted": STANDARD.encode("say \"yes\""), "pin": STANDARD.encode("123"),
            "key": STANDARD.encode(key), "raw": STANDARD.encode([0xff, 0xfe, 0x00]), "none": null,
        }})
    }

    #[test]
    fn a_value_is_found_as_it_is_stored_decoded_quoted_or_cut() {
        for text in [
            "the password hunter2 is too short",
            "got aHVudGVyMg== instead",
            r#"error at "say \"yes\"": no"#,
            "say \"yes\"",
            "at MIIabcdefghijklm...",
        ] {
            assert!(quotes(text, [&secret()]), "{text}");
        }
    }

    #[test]
    fn other_words_are_no_quotation() {
        for text in ["", "the password is missing: 123", "replicas must be a number"] {
            assert!(!quotes(text, [&secret()]), "{text}");
        }
        assert!(!quotes("hunter2", []));
    }

    #[test]
    fn more_than_can_be_compared_counts_as_quoted() {
        let data: serde_json::Map<_, _> = (0..MOST_LINES)
            .map(|n| (format!("k{n}"), json!(STANDARD.encode(format!("value {n}")))))
            .collect();
        assert!(quotes("nothing of it", [&json!({"data": data})]));
    }
}
