//! Encodings and checksums: base64, base32, JSON, YAML, TOML, hashes.
use std::fmt::Write as _;

use sha1::{Digest as _, Sha1};
use sha2::{Sha256, Sha512};

use super::args::{Out, any, bytes, def, fail, text};
use super::{Ctx, FuncDef, FuncError, Param};
use crate::limits::MAP_BYTES;
use crate::value::{List, ListType, Map, MapType, Text, Value};
use crate::{gojson, gotoml, yaml};

use Param::{Any, String as Str};

pub(super) const FUNCS: &[FuncDef] = &[
    def("b64enc", &[Str], |c, a| {
        use base64::Engine as _;
        c.charge(bytes(a, 0).len().saturating_mul(2))?;
        text(base64::engine::general_purpose::STANDARD.encode(bytes(a, 0)))
    }),
    def("b64dec", &[Str], |c, a| {
        c.charge(bytes(a, 0).len())?;
        text(super::base::decode64(bytes(a, 0)).unwrap_or_else(String::into_bytes))
    }),
    def("b32enc", &[Str], |c, a| {
        c.charge(bytes(a, 0).len().saturating_mul(2))?;
        text(super::base::encode32(bytes(a, 0)))
    }),
    def("b32dec", &[Str], |c, a| {
        c.charge(bytes(a, 0).len())?;
        text(super::base::decode32(bytes(a, 0)).unwrap_or_else(String::into_bytes))
    }),
    def("sha1sum", &[Str], |_, a| text(hex(&Sha1::digest(bytes(a, 0))))),
    def("sha256sum", &[Str], |_, a| text(hex(&Sha256::digest(bytes(a, 0))))),
    def("sha512sum", &[Str], |_, a| text(hex(&Sha512::digest(bytes(a, 0))))),
    def("adler32sum", &[Str], |_, a| text(adler32(bytes(a, 0)).to_string())),
    def("toJson", &[Any], |c, a| or_nothing(json(c, any(a, 0), true))),
    def("mustToJson", &[Any], |c, a| json(c, any(a, 0), true)),
    def("toRawJson", &[Any], |c, a| json(c, any(a, 0), false)),
    def("mustToRawJson", &[Any], |c, a| json(c, any(a, 0), false)),
    def("toPrettyJson", &[Any], |c, a| or_nothing(pretty(c, any(a, 0)))),
    def("mustToPrettyJson", &[Any], |c, a| pretty(c, any(a, 0))),
    def("fromJson", &[Str], |c, a| {
        c.shared.meter.check_time()?;
        Ok(match gojson::decode(bytes(a, 0)) {
            Ok(Value::Nil) => Value::Map(Map::nil(MapType::Any)),
            Ok(map @ Value::Map(_)) => map,
            Ok(other) => with_error(&wrong_json(&other, "map[string]interface {}")),
            Err(error) => with_error(&error),
        })
    }),
    def("mustFromJson", &[Str], |c, a| {
        c.shared.meter.check_time()?;
        gojson::decode(bytes(a, 0)).or_else(fail)
    }),
    def("fromJsonArray", &[Str], |c, a| {
        c.shared.meter.check_time()?;
        Ok(match gojson::decode(bytes(a, 0)) {
            Ok(Value::Nil) => Value::List(List::nil(ListType::Any)),
            Ok(list @ Value::List(_)) => list,
            Ok(other) => Value::list(vec![Value::from(wrong_json(&other, "[]interface {}"))]),
            Err(error) => Value::list(vec![Value::from(error)]),
        })
    }),
    def("toYaml", &[Any], |c, a| yaml_text(c, yaml::from_value(any(a, 0)))),
    def("toYamlPretty", &[Any], |c, a| yaml_text(c, yaml::from_value_pretty(any(a, 0)))),
    def("fromYaml", &[Str], |c, a| {
        c.shared.meter.check_time()?;
        Ok(match yaml::to_value(bytes(a, 0)) {
            Ok(map @ Value::Map(_)) => map,
            Ok(Value::Nil) => Value::Map(Map::new(MapType::Any)),
            Ok(other) => with_error(&format!(
                "error unmarshaling JSON: while decoding JSON: {}",
                wrong_json(&other, "map[string]interface {}")
            )),
            Err(error) => with_error(&format!("error converting YAML to JSON: {error}")),
        })
    }),
    def("fromYamlArray", &[Str], |c, a| {
        c.shared.meter.check_time()?;
        Ok(match yaml::to_value(bytes(a, 0)) {
            Ok(list @ Value::List(_)) => list,
            Ok(Value::Nil) => Value::list(Vec::new()),
            Ok(other) => Value::list(vec![Value::from(format!(
                "error unmarshaling JSON: while decoding JSON: {}",
                wrong_json(&other, "[]interface {}")
            ))]),
            Err(error) => Value::list(vec![Value::from(format!("error converting YAML to JSON: {error}"))]),
        })
    }),
    def("toToml", &[Any], |c, a| {
        let written = match gotoml::encode(any(a, 0)) {
            Ok(written) => written,
            Err(gotoml::Unwritten::Complaint(text)) => text.into_bytes(),
            Err(gotoml::Unwritten::Crash(text)) => return fail(text),
        };
        c.charge(written.len())?;
        text(written)
    }),
    def("fromToml", &[Str], |c, a| {
        // The shortest entry takes four bytes, and as its document keeps blanks and comments, a hundred times that.
        let entries = memchr::memchr3_iter(b'=', b',', b'\n', bytes(a, 0)).count();
        c.charge(bytes(a, 0).len().saturating_mul(4).saturating_add(entries.saturating_mul(MAP_BYTES)))?;
        Ok(gotoml::decode(bytes(a, 0)).unwrap_or_else(|error| with_error(&error)))
    }),
];

fn with_error(error: &str) -> Value {
    Value::map([(Text::from("Error"), Value::from(error))])
}

fn wrong_json(value: &Value, wanted: &str) -> String {
    let kind = match value {
        Value::Bool(_) => "bool",
        Value::Text(_) => "string",
        Value::List(_) => "array",
        Value::Map(_) => "object",
        _ => "number",
    };
    format!("json: cannot unmarshal {kind} into Go value of type {wanted}")
}

fn json(ctx: &mut Ctx<'_>, value: &Value, html: bool) -> Out {
    match gojson::encode(value, html) {
        Ok(written) => {
            ctx.charge(written.len())?;
            text(written)
        }
        Err(error) => {
            ctx.shared.meter.check_memory()?;
            fail(error)
        }
    }
}

/// No text where a value cannot be written; a limit stays one.
fn or_nothing(written: Out) -> Out {
    match written {
        Err(FuncError::Failed(_)) => text(""),
        other => other,
    }
}

fn pretty(ctx: &mut Ctx<'_>, value: &Value) -> Out {
    match gojson::encode(value, true) {
        Ok(written) => {
            let written = gojson::indent(&written);
            ctx.charge(written.len())?;
            text(written)
        }
        Err(error) => {
            ctx.shared.meter.check_memory()?;
            fail(error)
        }
    }
}

/// Text without its last line break; what cannot be written is empty.
fn yaml_text(ctx: &mut Ctx<'_>, written: Result<Vec<u8>, yaml::YamlError>) -> Out {
    ctx.shared.meter.check_memory()?;
    let mut written = written.unwrap_or_default();
    if written.last() == Some(&b'\n') {
        written.pop();
    }
    ctx.charge(written.len())?;
    text(written)
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

fn adler32(bytes: &[u8]) -> u32 {
    let (mut a, mut b) = (1_u32, 0_u32);
    for byte in bytes {
        a = (a + u32::from(*byte)) % 65_521;
        b = (b + a) % 65_521;
    }
    (b << 16) | a
}
