//! Splits identifiers into words: `HTTPServer2xx` becomes `http_server_2xx` or `HttpServer2xx`.
use unicode_properties::{GeneralCategoryGroup as Group, UnicodeGeneralCategory as _};

use super::case::{is_letter, is_upper, to_lower, to_upper};
use super::text::is_space;
use crate::gotext::runes;

fn is_connector(c: char) -> bool {
    c == '-' || c == '_' || is_space(c)
}

/// A letter of a script with letter case or at least with words of letters: no ideograph.
fn is_alphabet(c: char) -> bool {
    is_letter(c)
        && !matches!(c, '\u{4E00}'..='\u{9FCC}' | '\u{3400}'..='\u{4D85}' | '\u{20000}'..='\u{2B81D}')
}

/// What a run of characters is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    None,
    Number,
    Upper,
    Alphabet,
    Connector,
    Punctuation,
    Other,
}

fn kind(c: char) -> Kind {
    if is_connector(c) {
        Kind::Connector
    } else if c.general_category_group() == Group::Punctuation {
        Kind::Punctuation
    } else if is_upper(c) {
        Kind::Upper
    } else if is_alphabet(c) {
        Kind::Alphabet
    } else if c.general_category_group() == Group::Number {
        Kind::Number
    } else {
        Kind::Other
    }
}

/// The runs of a text, taken one by one.
struct Words<'a> {
    rest: &'a [Unit<'a>],
}

impl<'a> Words<'a> {
    fn next(&mut self) -> (Kind, &'a [Unit<'a>]) {
        let Some(&first) = self.rest.first() else { return (Kind::None, &[]) };
        let kind = kind(first.c);
        let run =
            |accept: fn(char) -> bool| 1 + self.rest.iter().skip(1).take_while(|unit| accept(unit.c)).count();
        let length = match kind {
            Kind::None => 1,
            Kind::Connector => run(is_connector),
            Kind::Punctuation => run(|c| self::kind(c) == Kind::Punctuation && !is_connector(c)),
            Kind::Alphabet => run(|c| is_alphabet(c) && !is_upper(c)),
            Kind::Number => run(|c| c.general_category_group() == Group::Number),
            Kind::Other => run(|c| self::kind(c) == Kind::Other || (is_upper(c) && !is_alphabet(c))),
            Kind::Upper => self.upper_length(),
        };
        let (word, rest) = self.rest.split_at(length.min(self.rest.len()));
        self.rest = rest;
        (kind, word)
    }

    /// `HTTPStatus` is the words `HTTP` and `Status`.
    fn upper_length(&self) -> usize {
        let upper = self.rest.iter().take_while(|unit| is_upper(unit.c)).count();
        let next = self.rest.get(upper).map(|unit| unit.c);
        let alphabet = next.is_some_and(is_alphabet);
        if upper > 1 {
            return if alphabet { upper - 1 } else { upper };
        }
        1 + self.rest.iter().skip(1).take_while(|unit| is_alphabet(unit.c) && !is_upper(unit.c)).count()
    }

    fn is_done(&self) -> bool {
        self.rest.is_empty()
    }
}

fn put(out: &mut Vec<u8>, c: char) {
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

fn write(out: &mut Vec<u8>, kind: Kind, word: &[Unit<'_>], connector: char) {
    for unit in word {
        if !matches!(kind, Kind::Upper | Kind::Connector) {
            out.extend_from_slice(unit.bytes);
            continue;
        }
        for (_, c) in runes(unit.bytes) {
            put(
                out,
                if is_connector(c) {
                    connector
                } else if is_upper(c) {
                    to_lower(c)
                } else {
                    c
                },
            );
        }
    }
}

/// A character with the invalid bytes before it, which count as part of it.
#[derive(Clone, Copy)]
struct Unit<'a> {
    c: char,
    bytes: &'a [u8],
}

fn units(text: &[u8]) -> Vec<Unit<'_>> {
    let mut units: Vec<Unit<'_>> = Vec::new();
    let mut start = 0;
    for (at, c) in runes(text) {
        if c != char::REPLACEMENT_CHARACTER {
            let end = at + c.len_utf8();
            units.push(Unit { c, bytes: text.get(start..end).unwrap_or_default() });
            start = end;
        }
    }
    // Invalid bytes at the end belong to the last character.
    let tail = text.len() - start;
    if let Some(last) = units.last_mut()
        && tail > 0
    {
        let from = start - last.bytes.len();
        last.bytes = text.get(from..).unwrap_or_default();
    }
    units
}

/// Words in lower case with a connector between them. Numbers stay with the word before them, unless letters follow.
pub(super) fn join_words(text: &[u8], connector: char) -> Vec<u8> {
    let units = units(text);
    let mut words = Words { rest: &units };
    let mut out = Vec::new();
    if units.is_empty() {
        return text.to_vec();
    }
    let glued = |kind: Kind| matches!(kind, Kind::Connector | Kind::Punctuation);
    let (mut kind, mut word) = words.next();
    while !words.is_done() {
        if kind != Kind::Connector {
            write(&mut out, kind, word, connector);
        }
        let (previous, last) = (kind, word);
        (kind, word) = words.next();
        match previous {
            Kind::Number => {
                while matches!(kind, Kind::Alphabet | Kind::Number) {
                    write(&mut out, kind, word, connector);
                    (kind, word) = words.next();
                }
                if kind != Kind::None && !glued(kind) {
                    put(&mut out, connector);
                }
            }
            Kind::Connector => write(&mut out, previous, last, connector),
            Kind::Punctuation => {}
            _ if kind != Kind::Number => {
                if !glued(kind) {
                    put(&mut out, connector);
                }
            }
            _ if words.is_done() => {}
            _ => {
                let number = word;
                (kind, word) = words.next();
                if kind == Kind::Alphabet {
                    put(&mut out, connector);
                    write(&mut out, Kind::Number, number, connector);
                    while matches!(kind, Kind::Alphabet | Kind::Number) {
                        write(&mut out, kind, word, connector);
                        (kind, word) = words.next();
                    }
                    if kind != Kind::None && !glued(kind) {
                        put(&mut out, connector);
                    }
                } else {
                    write(&mut out, Kind::Number, number, connector);
                    if !glued(kind) {
                        put(&mut out, connector);
                    }
                }
            }
        }
    }
    write(&mut out, kind, word, connector);
    out
}

/// Each word with a capital first letter, connectors between them dropped.
pub(super) fn pascal_case(text: &[u8]) -> String {
    let chars: Vec<char> = runes(text).map(|(_, c)| c).collect();
    let mut out = String::new();
    let Some(start) = chars.iter().position(|c| !is_connector(*c)) else {
        // Nothing but connectors; the library prints the last one twice.
        out.extend(&chars);
        out.extend(chars.last());
        return out;
    };
    let (lead, rest) = chars.split_at(start);
    out.extend(lead);
    let Some((first, rest)) = rest.split_first() else { return out };
    let mut first_upper = is_upper(*first);
    let mut current = to_upper(*first);
    for next in rest {
        let previous = std::mem::replace(&mut current, *next);
        if is_connector(current) && is_connector(previous) {
            out.push(previous);
            continue;
        }
        if is_connector(previous) {
            first_upper = is_upper(current);
            current = to_upper(current);
            continue;
        }
        if first_upper {
            if is_upper(current) {
                current = to_lower(current);
            } else {
                first_upper = false;
            }
        }
        out.push(previous);
    }
    out.push(current);
    out
}
