//! Go's quoted strings: source literals come in as bytes, and bytes go out as quoted text for messages.

/// The next character of a byte string and its width; a byte that is not UTF-8 gives U+FFFD and 1.
pub(super) fn decode(bytes: &[u8]) -> Option<(char, usize)> {
    let first = *bytes.first()?;
    if first < 0x80 {
        return Some((char::from(first), 1));
    }
    let longest = bytes.get(..bytes.len().min(4)).unwrap_or_default();
    let valid = match std::str::from_utf8(longest) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(longest.get(..error.valid_up_to())?).unwrap_or_default(),
    };
    Some(valid.chars().next().map_or((char::REPLACEMENT_CHARACTER, 1), |c| (c, c.len_utf8())))
}

/// Text in double quotes with Go's escapes.
#[allow(clippy::format_push_string)] // Rare characters only.
pub(crate) fn quote(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push('"');
    let mut rest = bytes;
    while let Some((c, width)) = decode(rest) {
        let raw = rest.first().copied().unwrap_or_default();
        rest = rest.get(width..).unwrap_or_default();
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x0b' => out.push_str("\\v"),
            char::REPLACEMENT_CHARACTER if width == 1 => out.push_str(&format!("\\x{raw:02x}")),
            c if is_printable(c) => out.push(c),
            c if u32::from(c) < 0x80 => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c if u32::from(c) < 0x1_0000 => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push_str(&format!("\\U{:08x}", u32::from(c))),
        }
    }
    out.push('"');
    out
}

/// Go's `unicode.IsPrint`: letters, marks, numbers, punctuation, symbols and the ASCII space.
pub(crate) fn is_printable(c: char) -> bool {
    use unicode_properties::{GeneralCategoryGroup as Group, UnicodeGeneralCategory};
    if c.is_ascii() {
        return (' '..='~').contains(&c);
    }
    !matches!(c.general_category_group(), Group::Other | Group::Separator)
}

/// Go's idea of a character names consist of: letters, decimal digits and the underscore.
pub(super) fn is_alphanumeric(c: char) -> bool {
    use unicode_properties::{GeneralCategory, GeneralCategoryGroup as Group, UnicodeGeneralCategory};
    if c.is_ascii() {
        return c == '_' || c.is_ascii_alphanumeric();
    }
    c.general_category_group() == Group::Letter || c.general_category() == GeneralCategory::DecimalNumber
}

/// The bytes of a string literal, `"..."` or `` `...` ``, delimiters included. `None` for a malformed one.
pub(super) fn unquote(literal: &[u8]) -> Option<Vec<u8>> {
    let (first, last) = (*literal.first()?, *literal.last()?);
    let inner = literal.get(1..literal.len().checked_sub(1)?)?;
    if first != last {
        return None;
    }
    match first {
        b'`' if inner.contains(&b'`') => None,
        // Go drops carriage returns from raw strings.
        b'`' => Some(inner.iter().copied().filter(|&byte| byte != b'\r').collect()),
        b'"' => {
            let mut out = Vec::with_capacity(inner.len());
            let mut rest = inner;
            while !rest.is_empty() {
                if matches!(rest.first(), Some(b'"' | b'\n')) {
                    return None;
                }
                let (unit, tail) = unquote_unit(rest, b'"')?;
                match unit {
                    Unit::Byte(byte) => out.push(byte),
                    Unit::Char(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
                }
                rest = tail;
            }
            Some(out)
        }
        _ => None,
    }
}

/// What one literal character or escape stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// `\x41`, `\101`, or a byte that is not UTF-8.
    Byte(u8),
    Char(char),
}

/// The first character or escape of a literal's inside, and what follows it.
pub(super) fn unquote_unit(text: &[u8], delimiter: u8) -> Option<(Unit, &[u8])> {
    let first = *text.first()?;
    if first == delimiter && matches!(delimiter, b'\'' | b'"') {
        return None;
    }
    if first != b'\\' {
        let (c, width) = decode(text)?;
        // A stray byte is kept in strings as the replacement character, as Go's conversion does.
        return Some((Unit::Char(c), text.get(width..)?));
    }
    let kind = *text.get(1)?;
    let rest = text.get(2..)?;
    let simple = |c: char| Some((Unit::Char(c), rest));
    match kind {
        b'a' => simple('\x07'),
        b'b' => simple('\x08'),
        b'f' => simple('\x0c'),
        b'n' => simple('\n'),
        b'r' => simple('\r'),
        b't' => simple('\t'),
        b'v' => simple('\x0b'),
        b'\\' => simple('\\'),
        b'\'' | b'"' if kind == delimiter => simple(char::from(kind)),
        b'x' => {
            digits(rest, 2, 16).and_then(|(code, tail)| Some((Unit::Byte(u8::try_from(code).ok()?), tail)))
        }
        b'u' => digits(rest, 4, 16).and_then(|(code, tail)| Some((Unit::Char(char::from_u32(code)?), tail))),
        b'U' => digits(rest, 8, 16).and_then(|(code, tail)| Some((Unit::Char(char::from_u32(code)?), tail))),
        b'0'..=b'7' => digits(text.get(1..)?, 3, 8)
            .and_then(|(code, tail)| Some((Unit::Byte(u8::try_from(code).ok()?), tail))),
        _ => None,
    }
}

fn digits(text: &[u8], count: usize, radix: u32) -> Option<(u32, &[u8])> {
    let mut code = 0u32;
    for byte in text.get(..count)? {
        code = code.checked_mul(radix)?.checked_add(char::from(*byte).to_digit(radix)?)?;
    }
    Some((code, text.get(count..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_go_strings_become_their_bytes() {
        assert_eq!(
            unquote(br#""a\n\t\x41\101\u00e9\U0001f600\"""#).unwrap(),
            "a\n\tAA\u{e9}\u{1f600}\"".as_bytes()
        );
        assert_eq!(unquote(b"\"\\xff\"").unwrap(), [0xff]);
        assert_eq!(unquote(b"`a\\n\r\nb`").unwrap(), b"a\\n\nb");
        for bad in [&b"\"a"[..], b"\"\\q\"", b"\"\\x4\"", b"\"\\'\"", b"\"\\ud800\"", b"\"\\777\"", b"\""] {
            assert_eq!(unquote(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn unprintable_text_is_escaped_in_messages() {
        assert_eq!(
            quote("a\"b\\\n\u{e9}\u{200b}\u{1f600}\x7f".as_bytes()),
            "\"a\\\"b\\\\\\n\u{e9}\\u200b\u{1f600}\\x7f\""
        );
        assert_eq!(quote(&[b'a', 0xff]), "\"a\\xff\"");
    }
}
