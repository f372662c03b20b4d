//! Slash-separated paths, shortened by their text alone.
use super::args::{bytes, def, text};
use super::{FuncDef, Param};

use Param::String as Str;

pub(super) const FUNCS: &[FuncDef] = &[
    def("base", &[Str], |_, a| text(base(bytes(a, 0)))),
    def("osBase", &[Str], |_, a| text(base(bytes(a, 0)))),
    def("dir", &[Str], |_, a| text(dir(bytes(a, 0)))),
    def("osDir", &[Str], |_, a| text(dir(bytes(a, 0)))),
    def("clean", &[Str], |_, a| text(clean(bytes(a, 0)))),
    def("osClean", &[Str], |_, a| text(clean(bytes(a, 0)))),
    def("ext", &[Str], |_, a| text(ext(bytes(a, 0)))),
    def("osExt", &[Str], |_, a| text(ext(bytes(a, 0)))),
    def("isAbs", &[Str], |_, a| Ok(bytes(a, 0).starts_with(b"/").into())),
    def("osIsAbs", &[Str], |_, a| Ok(bytes(a, 0).starts_with(b"/").into())),
];

fn base(path: &[u8]) -> Vec<u8> {
    if path.is_empty() {
        return b".".to_vec();
    }
    let end = path.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
    let trimmed = path.get(..end).unwrap_or_default();
    let name = trimmed.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    if name.is_empty() { b"/".to_vec() } else { name.to_vec() }
}

fn dir(path: &[u8]) -> Vec<u8> {
    let end = path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    clean(path.get(..end).unwrap_or_default())
}

fn ext(path: &[u8]) -> Vec<u8> {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let dot = name.iter().rposition(|byte| *byte == b'.');
    dot.and_then(|dot| name.get(dot..)).unwrap_or_default().to_vec()
}

/// The shortest path with the same meaning: no `.`, no doubled slashes, no inner `..`.
fn clean(path: &[u8]) -> Vec<u8> {
    let rooted = path.starts_with(b"/");
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => match parts.last() {
                Some(last) if *last != b".." => {
                    parts.pop();
                }
                _ if rooted => {}
                _ => parts.push(part),
            },
            _ => parts.push(part),
        }
    }
    let mut out = if rooted { b"/".to_vec() } else { Vec::new() };
    out.extend_from_slice(&parts.join(&b'/'));
    if out.is_empty() { b".".to_vec() } else { out }
}
