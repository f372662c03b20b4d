//! Reads and writes JSON as Go does.
mod decode;

use std::io::Write as _;

pub(crate) use decode::{decode, decode_prefix};

use crate::gofloat;
use crate::gotext::runes;
use crate::value::{List, ListType, Value};

/// How deep values may nest; it also ends maps that contain themselves.
const MAX_DEPTH: usize = 512;

/// Text of a value, or the complaint of Go's encoder. `html` escapes `<`, `>` and `&`.
pub(crate) fn encode(value: &Value, html: bool) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    write(value, html, 0, &mut out)?;
    Ok(out)
}

fn write(value: &Value, html: bool, depth: usize, out: &mut Vec<u8>) -> Result<(), String> {
    // Maps that share maps can be exponentially long.
    if !crate::limits::fits(out.len()) {
        return Err("json: the text is too long".to_owned());
    }
    if depth > MAX_DEPTH {
        return Err(format!("json: the value nests deeper than {MAX_DEPTH} or contains itself"));
    }
    match value {
        Value::Nil => out.extend_from_slice(b"null"),
        Value::Bool(value) => out.extend_from_slice(value.to_string().as_bytes()),
        Value::Int(int) => out.extend_from_slice(int.to_string().as_bytes()),
        Value::Float(float) if float.is_finite() => out.extend_from_slice(gofloat::json(*float).as_bytes()),
        Value::Float(float) => {
            return Err(format!("json: unsupported value: {}", gofloat::shortest_g(*float)));
        }
        Value::Complex(..) => return Err("json: unsupported type: complex128".to_owned()),
        Value::Text(text) => quote(text.as_bytes(), html, out),
        Value::List(list) if list.is_nil() => out.extend_from_slice(b"null"),
        Value::List(list) if list.list_type() == ListType::Bytes => {
            let _ = write!(out, "\"{}\"", base64(list));
        }
        Value::List(list) => {
            out.push(b'[');
            for (i, item) in list.items().iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write(item, html, depth + 1, out)?;
            }
            out.push(b']');
        }
        Value::Map(map) => match map.borrow() {
            None => out.extend_from_slice(b"null"),
            Some(entries) => {
                out.push(b'{');
                for (i, (key, value)) in entries.iter().enumerate() {
                    if i > 0 {
                        out.push(b',');
                    }
                    quote(key.as_bytes(), html, out);
                    out.push(b':');
                    write(value, html, depth + 1, out)?;
                }
                out.push(b'}');
            }
        },
        Value::Object(object) => match object.json_fields() {
            None => write(&object.plain(), html, depth + 1, out)?,
            Some(fields) => {
                out.push(b'{');
                for (i, (name, value)) in fields.iter().enumerate() {
                    if i > 0 {
                        out.push(b',');
                    }
                    quote(name.as_bytes(), html, out);
                    out.push(b':');
                    write(value, html, depth + 1, out)?;
                }
                out.push(b'}');
            }
        },
    }
    Ok(())
}

/// A byte slice in base64, as JSON shows it.
pub(crate) fn base64(list: &List) -> String {
    use ::base64::Engine as _;
    let byte = |item: &Value| if let Value::Int(int) = item { int.wrapping_u64() } else { 0 };
    #[allow(clippy::cast_possible_truncation)] // The items are `uint8`.
    let bytes: Vec<u8> = list.items().iter().map(|item| byte(item) as u8).collect();
    ::base64::engine::general_purpose::STANDARD.encode(bytes)
}

fn quote(text: &[u8], html: bool, out: &mut Vec<u8>) {
    out.push(b'"');
    for (at, c) in runes(text) {
        match c {
            '"' | '\\' => out.extend_from_slice(&[b'\\', c as u8]),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            '\x08' => out.extend_from_slice(b"\\b"),
            '\x0C' => out.extend_from_slice(b"\\f"),
            '<' | '>' | '&' if html => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            '\0'..' ' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            // An invalid byte; a real U+FFFD is copied.
            '\u{FFFD}' if text.get(at..at + 3) != Some("\u{FFFD}".as_bytes()) => {
                out.extend_from_slice(b"\\ufffd");
            }
            c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out.push(b'"');
}

/// The characters a string takes in JSON text, with its quotes.
pub(crate) fn quoted_length(text: &str) -> usize {
    let mut out = Vec::new();
    quote(text.as_bytes(), true, &mut out);
    String::from_utf8_lossy(&out).chars().count()
}

/// JSON text spread over lines, as `json.MarshalIndent` with two spaces does.
pub(crate) fn indent(compact: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut depth = 0_usize;
    let (mut quoted, mut escaped) = (false, false);
    let mut bytes = compact.iter().copied().peekable();
    let newline = |out: &mut Vec<u8>, depth: usize| {
        out.push(b'\n');
        out.extend(std::iter::repeat_n(b' ', depth * 2));
    };
    while let Some(byte) = bytes.next() {
        // A line may begin with a thousand blanks.
        if !crate::limits::fits(out.len()) {
            break;
        }
        if quoted {
            out.push(byte);
            if escaped {
                escaped = false;
            } else if byte == b'\\' {
                escaped = true;
            } else if byte == b'"' {
                quoted = false;
            }
            continue;
        }
        match byte {
            b'{' | b'[' => {
                out.push(byte);
                if let Some(close) = bytes.next_if(|next| matches!(next, b'}' | b']')) {
                    out.push(close);
                } else {
                    depth += 1;
                    newline(&mut out, depth);
                }
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                newline(&mut out, depth);
                out.push(byte);
            }
            b',' => {
                out.push(byte);
                newline(&mut out, depth);
            }
            b':' => out.extend_from_slice(b": "),
            b'"' => {
                quoted = true;
                out.push(byte);
            }
            _ => out.push(byte),
        }
    }
    out
}
