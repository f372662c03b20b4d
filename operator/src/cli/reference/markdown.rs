//! Writes texts as Markdown that shows them as they are.

/// Code within a line.
pub fn code(text: &str) -> String {
    if text.contains('`') { format!("`` {text} ``") } else { format!("`{text}`") }
}

/// A text as one line. What stands between backticks is code in the text already; flags become code.
pub fn prose(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let parts: Vec<&str> = text.split('`').collect();
    // A backtick without a partner begins no code.
    if parts.len().is_multiple_of(2) {
        return plain(&text);
    }
    let shown = parts.iter().enumerate();
    shown.map(|(at, part)| if at.is_multiple_of(2) { plain(part) } else { code(part) }).collect()
}

/// The same, and it ends as a sentence does: clap takes the full stop away.
pub fn sentence(text: &str) -> String {
    let text = prose(text);
    if text.is_empty() || text.ends_with(['.', '!', '?', ':']) { text } else { format!("{text}.") }
}

/// A table of two columns, the second without a name; nothing without rows. Cells are Markdown.
pub fn table(title: &str, rows: Vec<(String, String)>) -> String {
    if rows.is_empty() {
        return String::new();
    }
    // A table ends its cells at every bar, also at those in code.
    let cell = |text: String| text.replace('|', "\\|");
    let rows: String =
        rows.into_iter().map(|(left, right)| format!("| {} | {} |\n", cell(left), cell(right))).collect();
    format!("| {title} | |\n|---|---|\n{rows}\n")
}

/// A text without code, with its flags as code.
fn plain(text: &str) -> String {
    let words = text.split(' ').map(|word| {
        let end = word.trim_end_matches(['.', ',', ':', ';', ')']).len();
        let (flag, rest) = word.split_at(end);
        // Two hyphens would be shown as a dash.
        let is_flag = flag.strip_prefix("--").is_some_and(|name| name.starts_with(char::is_alphabetic));
        if is_flag && !flag.contains('`') { format!("{}{}", code(flag), escape(rest)) } else { escape(word) }
    });
    words.collect::<Vec<_>>().join(" ")
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '*' | '_' | '[' | ']' | '`' | '~' => out.extend(['\\', c]),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            c => out.push(c),
        }
    }
    out.replace("--", "\\-\\-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_something_to_markdown_is_shown_as_it_is() {
        assert_eq!(
            prose("a <b> (*.yaml)\n  [c] d_e ~/f & \\g -- h"),
            "a &lt;b&gt; (\\*.yaml) \\[c\\] d\\_e \\~/f &amp; \\\\g \\-\\- h"
        );
        assert_eq!(prose("half a ` is none"), "half a \\` is none");
    }

    #[test]
    fn code_stays_code_and_flags_become_code() {
        assert_eq!(prose("as `a_<b>` has it"), "as `a_<b>` has it");
        assert_eq!(prose("with --dry-run: nothing, --a_b"), "with `--dry-run`: nothing, `--a_b`");
        assert_eq!(code("a`b"), "`` a`b ``");
    }

    #[test]
    fn a_sentence_ends_once() {
        assert_eq!(sentence("All of it"), "All of it.");
        assert_eq!(sentence("All. Of it."), "All. Of it.");
        assert_eq!(sentence(""), "");
    }

    #[test]
    fn a_bar_does_not_end_a_cell() {
        let rows = vec![(code("a|b"), prose("c | d"))];
        assert_eq!(table("Option", rows), "| Option | |\n|---|---|\n| `a\\|b` | c \\| d |\n\n");
        assert_eq!(table("Option", Vec::new()), "");
    }
}
