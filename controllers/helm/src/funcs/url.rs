//! Parses and prints URLs as Go does.
mod resolve;

use super::args::{Out, bytes, def, fail, map, text};
use super::{Ctx, FuncDef, FuncError, Param};
use crate::value::{Text, Value};

use Param::{Map, String as Str};

pub(super) const FUNCS: &[FuncDef] = &[def("urlParse", &[Str], parse), def("urlJoin", &[Map], join)];

/// What a part of a URL leaves unescaped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Path,
    User,
    Host,
    Zone,
    Query,
    Fragment,
}

/// A URL in its parts.
#[derive(Debug, Default)]
pub(crate) struct Url {
    scheme: Vec<u8>,
    opaque: Vec<u8>,
    /// User name and password, unescaped.
    user: Option<(Vec<u8>, Option<Vec<u8>>)>,
    host: Vec<u8>,
    path: Vec<u8>,
    raw_path: Vec<u8>,
    force_query: bool,
    query: Vec<u8>,
    fragment: Vec<u8>,
    raw_fragment: Vec<u8>,
}

fn escapes(byte: u8, part: Part) -> bool {
    if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
        return false;
    }
    if matches!(part, Part::Host | Part::Zone) && b"!$&'()*+,;=:[]<>\"".contains(&byte) {
        return false;
    }
    match byte {
        b'$' | b'&' | b'+' | b',' | b'/' | b':' | b';' | b'=' | b'?' | b'@' => match part {
            Part::Path => byte == b'?',
            Part::User => matches!(byte, b'@' | b'/' | b'?' | b':'),
            Part::Fragment => false,
            Part::Query | Part::Host | Part::Zone => true,
        },
        b'!' | b'(' | b')' | b'*' => part != Part::Fragment,
        _ => true,
    }
}

fn escape(value: &[u8], part: Part) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len());
    for byte in value {
        if *byte == b' ' && part == Part::Query {
            out.push(b'+');
        } else if escapes(*byte, part) {
            out.extend_from_slice(format!("%{byte:02X}").as_bytes());
        } else {
            out.push(*byte);
        }
    }
    out
}

/// Text for a place in a query.
pub(super) fn query_escape(value: &[u8]) -> Vec<u8> {
    escape(value, Part::Query)
}

fn unescape(value: &[u8], part: Part) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some((byte, tail)) = rest.split_first() {
        rest = tail;
        if *byte == b'%' {
            let digit = |i: usize| tail.get(i).and_then(|byte| char::from(*byte).to_digit(16));
            let (Some(high), Some(low)) = (digit(0), digit(1)) else {
                let shown = value.get(value.len() - tail.len() - 1..).unwrap_or_default();
                let shown = String::from_utf8_lossy(shown.get(..3).unwrap_or(shown)).into_owned();
                return Err(format!(
                    "invalid URL escape {}",
                    crate::template::quoting::quote(shown.as_bytes())
                ));
            };
            let decoded = u8::try_from(high * 16 + low).unwrap_or(0);
            // A host may hold only escaped bytes beyond ASCII; a zone a little more.
            if part == Part::Host && high < 8 && (high, low) != (2, 5) {
                return Err(format!("invalid URL escape \"%{high:X}{low:X}\""));
            }
            if part == Part::Zone && decoded != b'%' && decoded != b' ' && escapes(decoded, Part::Host) {
                return Err(format!("invalid URL escape \"%{high:X}{low:X}\""));
            }
            out.push(decoded);
            rest = tail.get(2..).unwrap_or_default();
        } else {
            if matches!(part, Part::Host | Part::Zone) && *byte < 0x80 && escapes(*byte, part) {
                return Err(format!("invalid character {:?} in host name", char::from(*byte).to_string()));
            }
            out.push(if *byte == b'+' && part == Part::Query { b' ' } else { *byte });
        }
    }
    Ok(out)
}

fn cut(value: &[u8], at: u8) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(at, value) {
        Some(place) => (value.get(..place).unwrap_or_default(), value.get(place + 1..)),
        None => (value, None),
    }
}

/// The scheme and what follows it.
fn scheme(value: &[u8]) -> Result<(&[u8], &[u8]), String> {
    for (i, byte) in value.iter().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if i > 0 => {}
            b':' if i == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => {
                return Ok((value.get(..i).unwrap_or_default(), value.get(i + 1..).unwrap_or_default()));
            }
            _ => return Ok((b"", value)),
        }
    }
    Ok((b"", value))
}

impl Url {
    fn parse(value: &[u8]) -> Result<Self, String> {
        let (value, fragment) = cut(value, b'#');
        let mut url = Self::parse_without_fragment(value)?;
        if let Some(fragment) = fragment {
            url.fragment = unescape(fragment, Part::Fragment)?;
            url.raw_fragment = fragment.to_vec();
        }
        Ok(url)
    }

    fn parse_without_fragment(value: &[u8]) -> Result<Self, String> {
        if value.iter().any(|byte| *byte < b' ' || *byte == 0x7F) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        let mut url = Self::default();
        if value == b"*" {
            url.path = b"*".to_vec();
            return Ok(url);
        }
        let (scheme, mut rest) = scheme(value)?;
        url.scheme = scheme.to_ascii_lowercase();
        if rest.ends_with(b"?") && memchr::memchr_iter(b'?', rest).count() == 1 {
            url.force_query = true;
            rest = rest.get(..rest.len() - 1).unwrap_or_default();
        } else {
            let (path, query) = cut(rest, b'?');
            rest = path;
            url.query = query.unwrap_or_default().to_vec();
        }
        if !rest.starts_with(b"/") {
            if !url.scheme.is_empty() {
                url.opaque = rest.to_vec();
                return Ok(url);
            }
            let (segment, _) = cut(rest, b'/');
            if segment.contains(&b':') {
                return Err("first path segment in URL cannot contain colon".to_owned());
            }
        }
        if (!url.scheme.is_empty() || !rest.starts_with(b"///")) && rest.starts_with(b"//") {
            let authority = rest.get(2..).unwrap_or_default();
            let end = memchr::memchr(b'/', authority).unwrap_or(authority.len());
            rest = authority.get(end..).unwrap_or_default();
            url.authority(authority.get(..end).unwrap_or_default())?;
        }
        url.set_path(rest)?;
        Ok(url)
    }

    fn authority(&mut self, authority: &[u8]) -> Result<(), String> {
        let at = memchr::memrchr(b'@', authority);
        let host = at.map_or(authority, |at| authority.get(at + 1..).unwrap_or_default());
        self.host = parse_host(host)?;
        let Some(user) = at.and_then(|at| authority.get(..at)) else { return Ok(()) };
        let valid = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(byte);
        if !user.iter().all(valid) {
            return Err("net/url: invalid userinfo".to_owned());
        }
        let (name, password) = cut(user, b':');
        let password = password.map(|password| unescape(password, Part::User)).transpose()?;
        self.user = Some((unescape(name, Part::User)?, password));
        Ok(())
    }

    fn set_path(&mut self, path: &[u8]) -> Result<(), String> {
        self.path = unescape(path, Part::Path)?;
        if escape(&self.path, Part::Path) != path {
            self.raw_path = path.to_vec();
        }
        Ok(())
    }

    /// The path as it is printed: as it was given where that is valid.
    fn escaped_path(&self) -> Vec<u8> {
        let valid = |byte: &u8| b"!$&'()*+,;=:@[]%".contains(byte) || !escapes(*byte, Part::Path);
        if !self.raw_path.is_empty()
            && self.raw_path.iter().all(valid)
            && unescape(&self.raw_path, Part::Path).as_deref() == Ok(&self.path)
        {
            return self.raw_path.clone();
        }
        if self.path == b"*" { b"*".to_vec() } else { escape(&self.path, Part::Path) }
    }

    fn userinfo(&self) -> Vec<u8> {
        let Some((name, password)) = &self.user else { return Vec::new() };
        let mut out = escape(name, Part::User);
        if let Some(password) = password {
            out.push(b':');
            out.extend_from_slice(&escape(password, Part::User));
        }
        out
    }

    fn hostname(&self) -> &[u8] {
        let host = match memchr::memrchr(b':', &self.host) {
            Some(colon) if is_port(self.host.get(colon..).unwrap_or_default()) => {
                self.host.get(..colon).unwrap_or_default()
            }
            _ => &self.host,
        };
        host.strip_prefix(b"[").and_then(|host| host.strip_suffix(b"]")).unwrap_or(host)
    }

    fn print(&self) -> Vec<u8> {
        let mut out = self.scheme.clone();
        if !out.is_empty() {
            out.push(b':');
        }
        if self.opaque.is_empty() {
            if !self.scheme.is_empty() || !self.host.is_empty() || self.user.is_some() {
                if !self.host.is_empty() || !self.path.is_empty() || self.user.is_some() {
                    out.extend_from_slice(b"//");
                }
                if self.user.is_some() {
                    out.extend_from_slice(&self.userinfo());
                    out.push(b'@');
                }
                out.extend_from_slice(&escape(&self.host, Part::Host));
            }
            let path = self.escaped_path();
            if !path.is_empty() && !path.starts_with(b"/") && !self.host.is_empty() {
                out.push(b'/');
            }
            if out.is_empty() && cut(&path, b'/').0.contains(&b':') {
                out.extend_from_slice(b"./");
            }
            out.extend_from_slice(&path);
        } else {
            out.extend_from_slice(&self.opaque);
        }
        if self.force_query || !self.query.is_empty() {
            out.push(b'?');
            out.extend_from_slice(&self.query);
        }
        if !self.fragment.is_empty() {
            out.push(b'#');
            out.extend_from_slice(&escape(&self.fragment, Part::Fragment));
        }
        out
    }
}

fn is_port(port: &[u8]) -> bool {
    port.is_empty() || port.strip_prefix(b":").is_some_and(|digits| digits.iter().all(u8::is_ascii_digit))
}

fn parse_host(host: &[u8]) -> Result<Vec<u8>, String> {
    let shown = |port: &[u8]| format!("invalid port {} after host", crate::template::quoting::quote(port));
    if host.starts_with(b"[") {
        let Some(close) = memchr::memrchr(b']', host) else { return Err("missing ']' in host".to_owned()) };
        let port = host.get(close + 1..).unwrap_or_default();
        if !is_port(port) {
            return Err(shown(port));
        }
        if let Some(zone) = memchr::memmem::find(host.get(..close).unwrap_or_default(), b"%25") {
            let part = |from: usize, to: usize| host.get(from..to).unwrap_or_default();
            let pieces = [
                unescape(part(0, zone), Part::Host)?,
                unescape(part(zone, close), Part::Zone)?,
                unescape(part(close, host.len()), Part::Host)?,
            ];
            return Ok(pieces.concat());
        }
    } else if let Some(colon) = memchr::memrchr(b':', host) {
        let port = host.get(colon..).unwrap_or_default();
        if !is_port(port) {
            return Err(shown(port));
        }
    }
    unescape(host, Part::Host)
}

fn parse(_: &mut Ctx<'_>, args: &[Value]) -> Out {
    let value = bytes(args, 0);
    let url = match Url::parse(value) {
        Ok(url) => url,
        Err(error) => {
            let shown = crate::template::quoting::quote(value);
            return fail(format!("unable to parse url: parse {shown}: {error}"));
        }
    };
    let entries: [(&str, Vec<u8>); 8] = [
        ("scheme", url.scheme.clone()),
        ("host", url.host.clone()),
        ("hostname", url.hostname().to_vec()),
        ("path", url.path.clone()),
        ("query", url.query.clone()),
        ("opaque", url.opaque.clone()),
        ("fragment", url.fragment.clone()),
        ("userinfo", url.userinfo()),
    ];
    Ok(Value::map(entries.into_iter().map(|(name, value)| (Text::from(name), Value::text(value)))))
}

fn join(ctx: &mut Ctx<'_>, args: &[Value]) -> Out {
    let parts = map(args, 0);
    let part = |name: &str| match parts.get(name) {
        None => Ok(Vec::new()),
        Some(Value::Text(text)) => Ok(text.as_bytes().to_vec()),
        Some(Value::Nil) => fail("runtime error: invalid memory address or nil pointer dereference"),
        Some(other) => fail(format!(
            "unable to parse {name} key, must be of type string, but {} found",
            other.kind().name()
        )),
    };
    let mut url = Url {
        scheme: part("scheme")?,
        host: part("host")?,
        path: part("path")?,
        query: part("query")?,
        opaque: part("opaque")?,
        fragment: part("fragment")?,
        ..Url::default()
    };
    let userinfo = part("userinfo")?;
    if !userinfo.is_empty() {
        let with_user = [b"proto://".as_slice(), &userinfo, b"@host"].concat();
        let parsed = Url::parse(&with_user)
            .map_err(|error| FuncError::new(format!("unable to parse userinfo in dict: {error}")))?;
        url.user = parsed.user;
    }
    let printed = url.print();
    ctx.charge(printed.len())?;
    text(printed)
}
