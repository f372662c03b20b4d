//! Reads JSON into template values: every number is a `float64`, bad text inside strings is repaired.
use std::collections::BTreeMap;

use crate::gotext::rune;
use crate::limits::{Held, NODE_BYTES, has_passed};
use crate::value::{Map, MapType, Text, Value};

/// How deep documents may nest. Go allows more; no chart needs it and the stack is safe.
const MAX_DEPTH: usize = 512;

/// The render may not make as many values; it fails, whatever becomes of this text.
const TOO_MANY: &str = "the text has too many values";

/// The value of a whole text.
pub(crate) fn decode(text: &[u8]) -> Result<Value, String> {
    let (value, end) = decode_prefix(text)?;
    let mut reader = Reader { text, at: end, held: Held::default() };
    reader.blanks();
    match reader.peek() {
        None => Ok(value),
        Some(byte) => Err(format!("invalid character {:?} after top-level value", char::from(byte))),
    }
}

/// The first value of a text, and where it ends.
pub(crate) fn decode_prefix(text: &[u8]) -> Result<(Value, usize), String> {
    let mut reader = Reader { text, at: 0, held: Held::default() };
    let value = reader.value(0)?;
    Ok((value, reader.at))
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    /// Values that are read and in no list or map yet.
    held: Held,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn unexpected(&self, place: &str) -> String {
        match self.peek() {
            None => "unexpected end of JSON input".to_owned(),
            Some(byte) => format!("invalid character {:?} {place}", char::from(byte)),
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        if depth > MAX_DEPTH {
            return Err(format!("exceeded max depth of {MAX_DEPTH}"));
        }
        if !self.held.add(NODE_BYTES) || has_passed() {
            return Err(TOO_MANY.to_owned());
        }
        self.blanks();
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => Ok(Value::Text(self.string()?)),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Nil),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.unexpected("looking for beginning of value")),
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, String> {
        for expected in word.bytes() {
            if self.peek() != Some(expected) {
                let expecting = char::from(expected);
                return Err(self.unexpected(&format!("in literal {word} (expecting '{expecting}')")));
            }
            self.at += 1;
        }
        Ok(value)
    }

    fn digits(&mut self) -> Result<(), String> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { Err(self.unexpected("in numeric literal")) } else { Ok(()) }
    }

    fn number(&mut self) -> Result<Value, String> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        let text = self.text.get(start..self.at).unwrap_or_default();
        let text = std::str::from_utf8(text).unwrap_or_default();
        match text.parse::<f64>() {
            Ok(float) if float.is_finite() => Ok(Value::Float(float)),
            _ => Err(format!("json: cannot unmarshal number {text} into Go value of type float64")),
        }
    }

    fn hex(&mut self) -> Result<u32, String> {
        let mut code = 0;
        for _ in 0..4 {
            let Some(digit) = self.peek().and_then(|byte| char::from(byte).to_digit(16)) else {
                return Err(self.unexpected("in \\u hexadecimal character escape"));
            };
            code = code * 16 + digit;
            self.at += 1;
        }
        Ok(code)
    }

    /// The code after `\u`, joined with a following low surrogate; lone surrogates become U+FFFD.
    fn unicode(&mut self) -> Result<char, String> {
        let high = self.hex()?;
        if let Some(c) = char::from_u32(high) {
            return Ok(c);
        }
        let rest = self.at;
        if high < 0xDC00 && self.text.get(rest..rest + 2) == Some(b"\\u") {
            self.at += 2;
            let low = self.hex()?;
            if (0xDC00..0xE000).contains(&low) {
                let joined = 0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00);
                return Ok(char::from_u32(joined).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.at = rest;
        }
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn string(&mut self) -> Result<Text, String> {
        self.at += 1;
        let mut out = String::new();
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(Text::from(out));
                }
                Some(b'\\') => {
                    self.at += 1;
                    let byte = self.peek();
                    self.at += 1;
                    out.push(match byte {
                        Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
                        Some(b'b') => '\x08',
                        Some(b'f') => '\x0C',
                        Some(b'n') => '\n',
                        Some(b'r') => '\r',
                        Some(b't') => '\t',
                        Some(b'u') => self.unicode()?,
                        _ => {
                            self.at -= 1;
                            return Err(self.unexpected("in string escape code"));
                        }
                    });
                }
                None | Some(0..0x20) => return Err(self.unexpected("in string literal")),
                Some(_) => {
                    let rest = self.text.get(self.at..).unwrap_or_default();
                    let (c, length) = rune(rest).unwrap_or((char::REPLACEMENT_CHARACTER, 1));
                    out.push(c);
                    self.at += length;
                }
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, String> {
        self.at += 1;
        let mut items = Vec::new();
        self.blanks();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Value::list(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.blanks();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Value::list(items));
                }
                _ => return Err(self.unexpected("after array element")),
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, String> {
        self.at += 1;
        let mut entries = BTreeMap::new();
        self.blanks();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Map(Map::new(MapType::Any)));
        }
        loop {
            self.blanks();
            if self.peek() != Some(b'"') {
                return Err(self.unexpected("looking for beginning of object key string"));
            }
            let key = self.string()?;
            self.blanks();
            if self.peek() != Some(b':') {
                return Err(self.unexpected("after object key"));
            }
            self.at += 1;
            let value = self.value(depth + 1)?;
            entries.insert(key, value);
            self.blanks();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Value::Map(Map::from_entries(MapType::Any, entries)));
                }
                _ => return Err(self.unexpected("after object key:value pair")),
            }
        }
    }
}
