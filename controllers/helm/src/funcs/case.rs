//! Letters and words: upper and lower case, `snake_case`, abbreviation and wrapping.
use unicode_properties::{GeneralCategory, GeneralCategoryGroup as Group, UnicodeGeneralCategory as _};

use super::args::{Out, bytes, def, int, text};
use super::text::is_space;
use super::{Ctx, FuncDef, Param};
use crate::gotext::runes;
use crate::value::Value;

use Param::{Int, String as Str};

pub(super) const FUNCS: &[FuncDef] = &[
    def("upper", &[Str], |_, a| text(map_runes(bytes(a, 0), to_upper))),
    def("lower", &[Str], |_, a| text(map_runes(bytes(a, 0), to_lower))),
    def("title", &[Str], |_, a| text(title(bytes(a, 0)))),
    def("untitle", &[Str], |_, a| text(untitle(bytes(a, 0)))),
    def("nospace", &[Str], |_, a| text(no_space(bytes(a, 0)))),
    def("initials", &[Str], |_, a| text(initials(bytes(a, 0)))),
    def("swapcase", &[Str], |_, a| text(swap_case(bytes(a, 0)))),
    def("snakecase", &[Str], |_, a| text(super::words::join_words(bytes(a, 0), '_'))),
    def("kebabcase", &[Str], |_, a| text(super::words::join_words(bytes(a, 0), '-'))),
    def("camelcase", &[Str], |_, a| text(super::words::pascal_case(bytes(a, 0)))),
    def("abbrev", &[Int, Str], |_, a| text(abbreviate(bytes(a, 1), 0, int(a, 0)))),
    def("abbrevboth", &[Int, Int, Str], |_, a| {
        let (left, right) = (int(a, 0), int(a, 1));
        if right < 4 || (left > 0 && right < 7) {
            return text(bytes(a, 2));
        }
        text(abbreviate(bytes(a, 2), left, right))
    }),
    def("wrap", &[Int, Str], |c, a| wrap(c, bytes(a, 1), int(a, 0), b"", false)),
    def("wrapWith", &[Int, Str, Str], |c, a| wrap(c, bytes(a, 2), int(a, 0), bytes(a, 1), true)),
];

/// Text without white space. The library looks at bytes: once there is any, bytes beyond ASCII become runes.
fn no_space(value: &[u8]) -> Vec<u8> {
    let kept: Vec<char> = value.iter().map(|byte| char::from(*byte)).filter(|c| !is_space(*c)).collect();
    if kept.len() == value.len() { value.to_vec() } else { kept.into_iter().collect::<String>().into_bytes() }
}

/// The single rune Go maps to; letters whose upper case is more than one rune stay.
pub(super) fn to_upper(c: char) -> char {
    let mut upper = c.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(one), None) => one,
        _ => c,
    }
}

pub(super) fn to_lower(c: char) -> char {
    // Go lowers the dotted capital I to a plain i.
    if c == '\u{130}' { 'i' } else { c.to_lowercase().next().unwrap_or(c) }
}

fn to_title(c: char) -> char {
    match c {
        '\u{1C4}'..='\u{1C6}' => '\u{1C5}',
        '\u{1C7}'..='\u{1C9}' => '\u{1C8}',
        '\u{1CA}'..='\u{1CC}' => '\u{1CB}',
        '\u{1F1}'..='\u{1F3}' => '\u{1F2}',
        '\u{10D0}'..='\u{10FA}' | '\u{10FD}'..='\u{10FF}' => c,
        _ => to_upper(c),
    }
}

pub(super) fn is_letter(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_alphabetic() } else { c.general_category_group() == Group::Letter }
}

pub(super) fn is_digit(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_digit() } else { c.general_category() == GeneralCategory::DecimalNumber }
}

pub(super) fn is_upper(c: char) -> bool {
    c.general_category() == GeneralCategory::UppercaseLetter
}

pub(super) fn is_lower(c: char) -> bool {
    c.general_category() == GeneralCategory::LowercaseLetter
}

/// Every rune mapped; bytes that are no text become U+FFFD.
fn map_runes(value: &[u8], map: impl Fn(char) -> char) -> Vec<u8> {
    if value.is_ascii() {
        return value.iter().map(|byte| map(char::from(*byte)) as u8).collect();
    }
    runes(value).map(|(_, c)| map(c)).collect::<String>().into_bytes()
}

/// What separates words for `title`: neither letters, digits nor underscores.
fn is_separator(c: char) -> bool {
    if c.is_ascii() {
        return !(c.is_ascii_alphanumeric() || c == '_');
    }
    !is_letter(c) && !is_digit(c) && is_space(c)
}

fn title(value: &[u8]) -> String {
    let mut previous = ' ';
    runes(value)
        .map(|(_, c)| {
            let mapped = if is_separator(previous) { to_title(c) } else { c };
            previous = c;
            mapped
        })
        .collect()
}

fn untitle(value: &[u8]) -> String {
    let mut next = true;
    runes(value)
        .map(|(_, c)| {
            if is_space(c) {
                next = true;
                c
            } else if std::mem::replace(&mut next, false) {
                to_lower(c)
            } else {
                c
            }
        })
        .collect()
}

/// The first byte of each word, each read as a character of its own.
fn initials(value: &[u8]) -> String {
    let mut gap = true;
    value
        .iter()
        .map(|byte| char::from(*byte))
        .filter(|c| {
            let space = is_space(*c);
            !space & std::mem::replace(&mut gap, space)
        })
        .collect()
}

fn swap_case(value: &[u8]) -> String {
    let mut word_start = true;
    runes(value)
        .map(|(_, c)| {
            if is_upper(c) || c.general_category() == GeneralCategory::TitlecaseLetter {
                word_start = false;
                to_lower(c)
            } else if is_lower(c) {
                if std::mem::replace(&mut word_start, false) { to_title(c) } else { to_upper(c) }
            } else {
                word_start = is_space(c);
                c
            }
        })
        .collect()
}

/// Text cut to a width in bytes with `...`, beginning near an offset.
fn abbreviate(value: &[u8], offset: i64, width: i64) -> Vec<u8> {
    let size = i64::try_from(value.len()).unwrap_or(i64::MAX);
    let cut = |from: i64, to: i64| {
        let place = |at: i64| usize::try_from(at).unwrap_or(0);
        value.get(place(from)..place(to)).unwrap_or_default()
    };
    if width < 4 {
        // `abbrev` itself leaves the text; the library behind it gives nothing.
        return if offset == 0 { value.to_vec() } else { Vec::new() };
    }
    if size <= width {
        return value.to_vec();
    }
    let mut offset = offset.min(size);
    if size - offset < width - 3 {
        offset = size - (width - 3);
    }
    let mut out = Vec::new();
    if offset <= 4 {
        out.extend_from_slice(cut(0, width - 3));
        out.extend_from_slice(b"...");
        return out;
    }
    if width < 7 {
        return out;
    }
    out.extend_from_slice(b"...");
    if offset + width - 3 < size {
        out.extend_from_slice(&abbreviate(cut(offset, size), 0, width - 3));
    } else {
        out.extend_from_slice(cut(size - (width - 3), size));
    }
    out
}

fn wrap(ctx: &mut Ctx<'_>, value: &[u8], width: i64, line: &[u8], long_words: bool) -> Out {
    let line = if line.is_empty() { b"\n" } else { line };
    let width = usize::try_from(width.max(1)).unwrap_or(usize::MAX);
    ctx.charge(value.len().saturating_mul(line.len().saturating_add(1)))?;
    let get = |from: usize, to: usize| value.get(from..to).unwrap_or_default();
    let mut out = Vec::new();
    let mut at = 0;
    while value.len() - at > width {
        if value.get(at) == Some(&b' ') {
            at += 1;
            continue;
        }
        let end = at + width;
        if let Some(space) = get(at, end + 1).iter().rposition(|byte| *byte == b' ') {
            out.extend_from_slice(get(at, at + space));
            out.extend_from_slice(line);
            at += space + 1;
        } else if long_words {
            out.extend_from_slice(get(at, end));
            out.extend_from_slice(line);
            at = end;
        } else if let Some(space) = get(end, value.len()).iter().position(|byte| *byte == b' ') {
            out.extend_from_slice(get(at, end + space));
            out.extend_from_slice(line);
            at = end + space + 1;
        } else {
            out.extend_from_slice(get(at, value.len()));
            at = value.len();
        }
    }
    out.extend_from_slice(get(at, value.len()));
    Ok(Value::text(out))
}
