//! Writes and reads PEM blocks.
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Bytes between a BEGIN and an END line.
pub(super) fn encode(label: &str, bytes: &[u8]) -> String {
    let packed = STANDARD.encode(bytes);
    let mut out = format!("-----BEGIN {label}-----\n");
    let mut rest = packed.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(64));
        let _ = writeln!(out, "{line}");
        rest = after;
    }
    let _ = writeln!(out, "-----END {label}-----");
    out
}

/// The first block of a text: its label and bytes.
pub(super) fn decode(text: &str) -> Option<(String, Vec<u8>)> {
    let mut rest = text;
    loop {
        let start = rest.find("-----BEGIN ")?;
        let line_start = start == 0 || rest.get(..start)?.ends_with('\n');
        rest = rest.get(start + "-----BEGIN ".len()..)?;
        if !line_start {
            continue;
        }
        let (first, body) = rest.split_once('\n')?;
        let Some(label) = first.trim_end().strip_suffix("-----") else { continue };
        let end = format!("-----END {label}-----");
        let Some((body, _)) = body.split_once(&end) else { continue };
        // Header lines have a colon, which base64 has not.
        let packed: String =
            body.lines().filter(|line| !line.contains(':')).flat_map(str::split_whitespace).collect();
        if let Ok(bytes) = STANDARD.decode(packed) {
            return Some((label.to_owned(), bytes));
        }
    }
}
