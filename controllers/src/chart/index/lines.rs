//! Finds one chart in an index line by line, as `helm repo index` and all servers of charts write it: only the entries of that
//! chart are read as YAML, each by itself.

use super::{Choice, Entry, Found};

/// Bytes of one entry.
const ENTRY: usize = 256 << 10;

/// Looks a chart up; `None` where the index is written in another form.
pub fn find(index: &[u8], name: &str, version: &str) -> Option<Found> {
    let mut lines = index.split_inclusive(|byte| *byte == b'\n');
    let mut listed = false;
    for line in lines.by_ref() {
        match (indent(line)?, text(line)) {
            (_, b"" | b"---") => {}
            (0, b"entries:") => {
                listed = true;
                break;
            }
            (0, other) if other.starts_with(b"entries") || other.starts_with(b"%") => return None,
            (0, other) if !is_key(other) => return None,
            _ => {}
        }
    }
    if !listed {
        return None;
    }
    let (mut found, mut reading, mut column) = (Found::Nothing, None::<Reading<'_>>, None);
    for line in lines {
        let (at, content) = (indent(line)?, text(line));
        if content.is_empty() {
            if let Some(reading) = &mut reading {
                reading.more(line)?;
            }
            continue;
        }
        // The next key of the index.
        if at == 0 && !content.starts_with(b"-") {
            break;
        }
        let column = *column.get_or_insert(at);
        if at < column {
            return None;
        }
        if at == column && !content.starts_with(b"- ") && content != b"-" {
            if let Some(done) = reading.take() {
                found = done.end()?;
            }
            if let Some(rest) = after_key(content, name) {
                if !rest.is_empty() {
                    return None;
                }
                reading = Some(Reading { choice: Choice::new(version), entry: Vec::new(), column: None });
            }
        } else if let Some(reading) = &mut reading {
            reading.line(at, content, line)?;
        }
    }
    match reading {
        Some(reading) => reading.end(),
        None => Some(found),
    }
}

/// The entries of the chart, as they come.
struct Reading<'a> {
    choice: Choice<'a>,
    entry: Vec<u8>,
    /// Where the dashes are.
    column: Option<usize>,
}

impl Reading<'_> {
    fn line(&mut self, at: usize, content: &[u8], line: &[u8]) -> Option<()> {
        let dash = content == b"-" || content.starts_with(b"- ");
        let column = *self.column.get_or_insert(at);
        if dash && at == column {
            self.take()?;
        } else if at <= column {
            return None;
        }
        self.more(line)
    }

    fn more(&mut self, line: &[u8]) -> Option<()> {
        self.entry.extend_from_slice(line);
        (self.entry.len() <= ENTRY).then_some(())
    }

    /// Reads the entry that ends here.
    fn take(&mut self) -> Option<()> {
        let entry = std::mem::take(&mut self.entry);
        if entry.iter().all(u8::is_ascii_whitespace) {
            return Some(());
        }
        for entry in serde_yaml::from_slice::<Vec<Entry>>(&entry).ok()? {
            self.choice.offer(entry);
        }
        Some(())
    }

    fn end(mut self) -> Option<Found> {
        self.take()?;
        Some(self.choice.found())
    }
}

/// Spaces in front of a line; `None` where there are tabs.
fn indent(line: &[u8]) -> Option<usize> {
    let at = line.iter().take_while(|byte| **byte == b' ').count();
    (line.get(at) != Some(&b'\t')).then_some(at)
}

/// A line without the space around it; nothing of a comment.
fn text(line: &[u8]) -> &[u8] {
    let text = line.trim_ascii();
    if text.starts_with(b"#") { b"" } else { text }
}

fn is_key(text: &[u8]) -> bool {
    let Some(end) = text.iter().position(|byte| *byte == b':') else { return false };
    text.iter().take(end).all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

/// What stands behind a key, where the line has that key.
fn after_key<'t>(text: &'t [u8], key: &str) -> Option<&'t [u8]> {
    let quotes = text.first().filter(|byte| matches!(byte, b'"' | b'\''));
    let rest = match quotes {
        Some(quote) => text.get(1..)?.strip_prefix(key.as_bytes())?.strip_prefix(&[*quote])?,
        None => text.strip_prefix(key.as_bytes())?,
    };
    Some(rest.strip_prefix(b":")?.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions(found: Option<Found>) -> Vec<String> {
        match found {
            Some(Found::Versions(all)) => all,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_chart_is_found_as_servers_write_indexes() {
        let flush = "apiVersion: v1\nentries:\n  api:\n  - version: 9.9.9\n    description: |-\n      web:\n      - version: 0.0.1\n  web:\n  - apiVersion: v2\n    version: 1.4.0\n    urls:\n    - a\n\n  - version: 1.3.0\n    urls: [b]\ngenerated: \"2026-01-01\"\n";
        let deeper = "entries:\n    api:\n        - version: 9.9.9\n    web:\n        - version: 1.4.0\n          urls:\n            - a\n\n        # older\n        - {version: 1.3.0, urls: [b]}\n";
        for text in [flush, deeper, &flush.replace("  web:", "  \"web\":"), &flush.replace('\n', "\r\n")] {
            let Some(Found::Entry(entry)) = find(text.as_bytes(), "web", "1.4.0") else { panic!("{text}") };
            assert_eq!(entry.urls.unwrap(), ["a"], "{text}");
            assert_eq!(versions(find(text.as_bytes(), "web", "2.0.0")), ["1.4.0", "1.3.0"]);
            assert_eq!(find(text.as_bytes(), "none", "1.0.0"), Some(Found::Nothing));
        }
    }

    #[test]
    fn another_form_is_left_to_the_reader_of_all_yaml() {
        for text in [
            "entries: {web: [{version: 1.4.0}]}\n",
            "entries:\n  web: [{version: 1.4.0}]\n",
            "entries:\n\tweb:\n",
            "{entries: {}}\n",
            "%YAML 1.1\n---\nentries:\n",
            "apiVersion: v1\n",
        ] {
            assert_eq!(find(text.as_bytes(), "web", "1.4.0"), None, "{text}");
        }
        let long = format!("entries:\n  web:\n  - version: 1.4.0\n    description: {}\n", "x".repeat(ENTRY));
        assert_eq!(find(long.as_bytes(), "web", "1.4.0"), None);
    }

    #[test]
    fn entries_of_other_charts_are_not_read() {
        let noise = "  - [,[,[\n".repeat(1_000_000);
        let text = format!("entries:\n  noise:\n{noise}  web:\n  - version: 1.4.0\n    urls: [a]\n");
        assert!(matches!(find(text.as_bytes(), "web", "1.4.0"), Some(Found::Entry(_))));
    }

    #[test]
    fn a_large_index_in_another_form_is_refused_before_it_is_read() {
        let text = format!("entries: {{web: [{}]}}\n", "[],".repeat(1 << 20));
        let error = super::super::find(text.as_bytes(), "web", "1.4.0").unwrap_err();
        assert!(error.contains("helm repo index"), "{error}");
    }
}
