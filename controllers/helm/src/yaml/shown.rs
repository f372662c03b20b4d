//! Shows what a node holds as Go's `%#v`, for complaints about keys.
use super::compose::{Document, Node, NodeId};
use super::resolve::{Scalar, resolve};
use crate::gofloat;
use crate::value::Value;

/// Longer texts help nobody; the bound also ends nodes that contain themselves.
const MAX_LENGTH: usize = 1000;

pub(super) fn node(document: &Document, id: NodeId) -> String {
    let mut out = String::new();
    write(document, id, &mut out);
    out
}

fn write(document: &Document, id: NodeId, out: &mut String) {
    if out.len() > MAX_LENGTH {
        out.push_str("...");
        return;
    }
    match document.nodes.get(id) {
        None => {}
        Some(Node::Alias { target, .. }) => write(document, *target, out),
        Some(Node::Scalar { value, tag, implicit }) => out.push_str(&scalar(value, tag, *implicit)),
        Some(Node::Sequence(items)) => {
            out.push_str("[]interface {}{");
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                write(document, *item, out);
            }
            out.push('}');
        }
        Some(Node::Mapping(entries)) => {
            out.push_str("map[interface {}]interface {}{");
            let mut entries = entries.clone();
            entries.sort_by_cached_key(|(key, _)| node(document, *key));
            for (i, (key, value)) in entries.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                write(document, *key, out);
                out.push(':');
                write(document, *value, out);
            }
            out.push('}');
        }
    }
}

fn scalar(value: &[u8], tag: &[u8], implicit: bool) -> String {
    let resolved = if tag.is_empty() && !implicit { Ok(Scalar::Text) } else { resolve(tag, value) };
    match resolved {
        Ok(Scalar::Null) => "interface {}(nil)".to_owned(),
        Ok(Scalar::Bool(value)) => value.to_string(),
        Ok(Scalar::Int(value)) => value.to_string(),
        Ok(Scalar::Uint(value)) => format!("{value:#x}"),
        Ok(Scalar::Float(value)) => gofloat::shortest_g(value),
        Ok(Scalar::Timestamp | Scalar::Text) | Err(_) => {
            let text = Value::text(String::from_utf8_lossy(value).as_ref());
            let quoted = crate::gofmt::sprintf(b"%#v", &[text]);
            String::from_utf8_lossy(&quoted).into_owned()
        }
    }
}
