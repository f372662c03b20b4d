//! Looks through a text before it is parsed, for what the parser takes for something else.
//!
//! The crate parses what stands behind an even number of `!` or `-` twice and leaves the signs out: `!!ready` would mean `!ready`, and thirty
//! of them inside of each other would be parsed a billion times. It keeps the backquotes of a field in its name.

/// What is in the way, as the rest of the sentence "its expression ...".
pub(super) fn obstacle(text: &str) -> Option<&'static str> {
    let mut rest = text;
    let mut last = ' ';
    while let Some(first) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("//") {
            rest = after.split_once('\n').map_or("", |(_, next)| next);
            continue;
        }
        let quotes = ["\"\"\"", "'''", "\"", "'"];
        if let Some(quote) = quotes.into_iter().find(|quote| rest.starts_with(quote)) {
            let inside = rest.get(quote.len()..).unwrap_or_default();
            let Some(after) = after_text(inside, quote, last) else {
                return Some("has a text without its end");
            };
            (rest, last) = (after, '"');
            continue;
        }
        match (last, first) {
            ('!', '!') => return Some("has two ! in a row, which health rules do not have: leave both out"),
            ('-', '-') => {
                return Some(
                    "has two - in a row, which health rules do not have: put the second into brackets",
                );
            }
            (_, '`') => {
                return Some(
                    "has a field in backquotes, which health rules do not have: write it as ['name']",
                );
            }
            _ => {}
        }
        if !first.is_whitespace() {
            last = first;
        }
        rest = rest.get(first.len_utf8()..).unwrap_or_default();
    }
    None
}

/// What comes after a text, from behind its first quote; none where it does not end. `last` is the character before that.
fn after_text<'a>(mut rest: &'a str, quote: &str, last: char) -> Option<&'a str> {
    // Behind `r`, and only there, a backslash is a backslash. A name that ends so has no text behind it.
    let raw = last.eq_ignore_ascii_case(&'r');
    loop {
        if let Some(after) = rest.strip_prefix(quote) {
            return Some(after);
        }
        let mut chars = rest.chars();
        match chars.next()? {
            '\\' if !raw => {
                chars.next();
            }
            '\n' | '\r' if quote.len() == 1 => return None,
            _ => {}
        }
        rest = chars.as_str();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_in_a_row_and_backquotes_are_found_and_texts_are_left_alone() {
        for text in ["!!x", "! !x", "!\n// of both\n!x", "!!!x", "x == 'a\\'' && !!y", "r'\\' == x && !!y"] {
            assert!(obstacle(text).is_some_and(|why| why.starts_with("has two !")), "{text}");
        }
        for text in ["--x", "1 - -x", "x == '''a''' && --y < 0"] {
            assert!(obstacle(text).is_some_and(|why| why.starts_with("has two -")), "{text}");
        }
        assert!(obstacle("has(a.`b/c`)").is_some());
        assert!(obstacle("x == 'a").is_some());
        for text in [
            "!x && !y",
            "x != 1 - 2",
            "'!!' == x",
            "\"--`\" == x",
            "!(!x)",
            "- (-x) < 0",
            "x // !! `",
            "'''a'b''' == x",
        ] {
            assert_eq!(obstacle(text), None, "{text}");
        }
    }
}
