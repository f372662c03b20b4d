//! Classifies characters as YAML 1.1 does. Past the end every byte reads as zero.

/// The byte at a position, zero past the end.
pub(super) fn at(bytes: &[u8], i: usize) -> u8 {
    bytes.get(i).copied().unwrap_or(0)
}

/// The length in bytes of the character that starts with this byte (1 for bytes that start none).
pub(super) fn width(first: u8) -> usize {
    match first {
        0xC0..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF7 => 4,
        _ => 1,
    }
}

pub(super) fn is_blank(bytes: &[u8], i: usize) -> bool {
    matches!(at(bytes, i), b' ' | b'\t')
}

/// A line break: CR, LF, NEL, LS or PS.
pub(super) fn is_break(bytes: &[u8], i: usize) -> bool {
    match at(bytes, i) {
        b'\r' | b'\n' => true,
        0xC2 => at(bytes, i + 1) == 0x85,
        0xE2 => at(bytes, i + 1) == 0x80 && matches!(at(bytes, i + 2), 0xA8 | 0xA9),
        _ => false,
    }
}

/// A line break or the end.
pub(super) fn is_breakz(bytes: &[u8], i: usize) -> bool {
    at(bytes, i) == 0 || is_break(bytes, i)
}

/// A blank, a line break or the end.
pub(super) fn is_blankz(bytes: &[u8], i: usize) -> bool {
    is_blank(bytes, i) || is_breakz(bytes, i)
}

/// A character that anchors, tag handles and directive names consist of.
pub(super) fn is_alpha(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// Whether the writer may print the character as it is. Characters outside the basic plane may not, by the
/// writer's old rule, and are printed as escapes.
pub(super) fn is_printable(bytes: &[u8], i: usize) -> bool {
    match at(bytes, i) {
        0xC2 => at(bytes, i + 1) >= 0xA0,
        0xED => at(bytes, i + 1) < 0xA0,
        b'\n' | 0x20..=0x7E | 0xC3..=0xEE => true,
        0xEF => match (at(bytes, i + 1), at(bytes, i + 2)) {
            (0xBB, 0xBF) => false,
            (0xBF, third) => !matches!(third, 0xBE | 0xBF),
            _ => true,
        },
        _ => false,
    }
}

/// Where the text stops being YAML, and why: reading fails only if it gets that far.
pub(super) fn first_bad(bytes: &[u8]) -> Option<(usize, &'static str)> {
    const CONTROL: &str = "control characters are not allowed";
    let utf8_end = match std::str::from_utf8(bytes) {
        Ok(_) => bytes.len(),
        Err(error) => error.valid_up_to(),
    };
    let valid = bytes.get(..utf8_end).unwrap_or_default();
    for (i, byte) in valid.iter().enumerate() {
        let bad = match byte {
            b'\t' | b'\n' | b'\r' | 0x20..=0x7E => false,
            0..0x20 | 0x7F => true,
            0xC2 => at(valid, i + 1) < 0xA0 && at(valid, i + 1) != 0x85,
            0xEF => at(valid, i + 1) == 0xBF && matches!(at(valid, i + 2), 0xBE | 0xBF),
            _ => false,
        };
        if bad {
            return Some((i, CONTROL));
        }
    }
    if utf8_end == bytes.len() {
        return None;
    }
    let first = at(bytes, utf8_end);
    let problem = if matches!(first, 0x80..0xC0 | 0xF8..=0xFF) {
        "invalid leading UTF-8 octet"
    } else if bytes.len() - utf8_end < width(first) {
        "incomplete UTF-8 octet sequence"
    } else if (utf8_end + 1..utf8_end + width(first)).any(|i| at(bytes, i) & 0xC0 != 0x80) {
        "invalid trailing UTF-8 octet"
    } else if first == 0xED || first >= 0xF0 {
        "invalid Unicode character"
    } else {
        "invalid length of a UTF-8 sequence"
    };
    Some((utf8_end, problem))
}
