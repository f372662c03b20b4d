//! Decodes a document's tree into plain data: aliases expanded, merge keys merged, keys made strings.
use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;

use super::compose::{Document, Node, NodeId};
use super::resolve::{Scalar, TAG_PREFIX, resolve};
use super::{BAD_KEY, YamlError, shown};
use crate::limits::{Held, MAP_BYTES, NODE_BYTES, has_passed};

/// How many bytes of text aliases may repeat, so that a small file does not become gigabytes.
const MAX_ALIASED_BYTES: usize = 8 << 20;

/// What a document is decoded into.
pub(super) trait Build {
    /// Maps count themselves for the render.
    const COUNTS: bool = false;

    fn null() -> Self;
    fn bool(value: bool) -> Self;
    fn int(value: i64) -> Self;
    fn uint(value: u64) -> Self;
    fn float(value: f64) -> Self;
    fn text(value: Vec<u8>) -> Self;
    fn list(items: Vec<Self>) -> Self
    where
        Self: Sized;
    fn map(entries: BTreeMap<Vec<u8>, Self>) -> Self
    where
        Self: Sized;
}

pub(super) struct Decoder<'a> {
    document: &'a Document,
    /// Aliases being expanded.
    open: BTreeSet<NodeId>,
    decoded: u64,
    aliased: u64,
    aliased_bytes: usize,
    depth: usize,
    depth_limit: usize,
    /// The bytes that are made, as long as it is read.
    held: Held,
}

impl<'a> Decoder<'a> {
    pub fn new(document: &'a Document, depth_limit: usize) -> Self {
        Self {
            document,
            open: BTreeSet::new(),
            decoded: 0,
            aliased: 0,
            aliased_bytes: 0,
            held: Held::default(),
            depth: 0,
            depth_limit,
        }
    }

    pub fn value<T: Build>(&mut self, id: NodeId) -> Result<T, YamlError> {
        self.count()?;
        let Some(node) = self.document.nodes.get(id) else { return Ok(T::null()) };
        self.depth += 1;
        if self.depth > self.depth_limit {
            return Err(YamlError::plain(format!("exceeded max depth of {}", self.depth_limit)));
        }
        let value = match node {
            Node::Scalar { value, tag, implicit } => self.scalar(value, tag, *implicit)?,
            Node::Sequence(items) => {
                // Not an iterator, which would take more of the stack.
                let mut list = Vec::with_capacity(items.len());
                for item in items {
                    list.push(self.value(*item)?);
                }
                T::list(list)
            }
            Node::Mapping(entries) => {
                let has_room = if T::COUNTS { !has_passed() } else { self.held.add(MAP_BYTES) };
                if !has_room {
                    return Err(YamlError::plain("the document has too many values"));
                }
                let mut map = BTreeMap::new();
                self.mapping(entries, &mut map)?;
                T::map(map)
            }
            Node::Alias { name, target } => {
                self.enter(id, name)?;
                let value = self.value(*target)?;
                self.open.remove(&id);
                value
            }
        };
        self.depth -= 1;
        Ok(value)
    }

    /// Bounds the share of work that aliases cause, by the rule of the Go library.
    fn count(&mut self) -> Result<(), YamlError> {
        self.decoded += 1;
        if !self.open.is_empty() {
            self.aliased += 1;
            if !self.held.add(NODE_BYTES) {
                return Err(excessive());
            }
        }
        if self.aliased <= 100 || self.decoded <= 1000 {
            return Ok(());
        }
        #[allow(clippy::cast_precision_loss)]
        let (aliased, decoded) = (self.aliased as f64, self.decoded as f64);
        let allowed = (0.99 - 0.89 * ((decoded - 400_000.0) / 3_600_000.0)).clamp(0.10, 0.99);
        if aliased / decoded > allowed { Err(excessive()) } else { Ok(()) }
    }

    fn enter(&mut self, alias: NodeId, name: &[u8]) -> Result<(), YamlError> {
        if self.open.insert(alias) {
            return Ok(());
        }
        Err(YamlError::plain(format!("anchor '{}' value contains itself", String::from_utf8_lossy(name))))
    }

    fn text_of(&mut self, value: &[u8]) -> Result<Vec<u8>, YamlError> {
        if !self.open.is_empty() {
            self.aliased_bytes += value.len();
            if self.aliased_bytes > MAX_ALIASED_BYTES {
                return Err(excessive());
            }
        }
        if !self.held.add(value.len()) {
            return Err(YamlError::plain("the document has too long texts"));
        }
        Ok(value.to_vec())
    }

    fn scalar<T: Build>(&mut self, value: &[u8], tag: &[u8], implicit: bool) -> Result<T, YamlError> {
        if tag.is_empty() && !implicit {
            return Ok(T::text(self.text_of(value)?));
        }
        if tag.strip_prefix(TAG_PREFIX) == Some(b"binary") {
            return Ok(T::text(self.text_of(&binary(value)?)?));
        }
        Ok(match resolve(tag, value)? {
            Scalar::Null => T::null(),
            Scalar::Bool(value) => T::bool(value),
            Scalar::Int(value) => T::int(value),
            Scalar::Uint(value) => T::uint(value),
            Scalar::Float(value) if value.is_nan() => return Err(unsupported("NaN")),
            Scalar::Float(f64::INFINITY) => return Err(unsupported("+Inf")),
            Scalar::Float(f64::NEG_INFINITY) => return Err(unsupported("-Inf")),
            Scalar::Float(value) => T::float(value),
            Scalar::Timestamp | Scalar::Text => T::text(self.text_of(value)?),
        })
    }

    /// Entries in the order of the text: the last one of a key wins, be it merged or not.
    fn mapping<T: Build>(
        &mut self,
        entries: &[(NodeId, NodeId)],
        map: &mut BTreeMap<Vec<u8>, T>,
    ) -> Result<(), YamlError> {
        for (key, value) in entries {
            if self.is_merge(*key) {
                self.merge(*value, map)?;
                continue;
            }
            let key = self.key(*key).map_err(|error| error.about(|| shown::node(self.document, *value)))?;
            let value = self.value(*value)?;
            map.insert(key, value);
        }
        Ok(())
    }

    fn is_merge(&self, key: NodeId) -> bool {
        matches!(self.document.nodes.get(key), Some(Node::Scalar { value, tag, implicit })
            if value == b"<<" && (*implicit || tag.strip_prefix(TAG_PREFIX) == Some(b"merge")))
    }

    fn merge<T: Build>(&mut self, id: NodeId, map: &mut BTreeMap<Vec<u8>, T>) -> Result<(), YamlError> {
        match self.document.nodes.get(id) {
            // Earlier ones take precedence.
            Some(Node::Sequence(items)) => {
                for item in items.iter().rev() {
                    self.merge_mapping(*item, map)?;
                }
                Ok(())
            }
            _ => self.merge_mapping(id, map),
        }
    }

    fn merge_mapping<T: Build>(
        &mut self,
        id: NodeId,
        map: &mut BTreeMap<Vec<u8>, T>,
    ) -> Result<(), YamlError> {
        self.depth += 1;
        if self.depth > self.depth_limit {
            return Err(YamlError::plain(format!("exceeded max depth of {}", self.depth_limit)));
        }
        self.count()?;
        match self.document.nodes.get(id) {
            Some(Node::Mapping(entries)) => self.mapping(entries, map)?,
            Some(Node::Alias { name, target }) => {
                let Some(Node::Mapping(entries)) = self.document.nodes.get(*target) else {
                    return Err(want_map());
                };
                self.enter(id, name)?;
                self.count()?;
                self.mapping(entries, map)?;
                self.open.remove(&id);
            }
            _ => return Err(want_map()),
        }
        self.depth -= 1;
        Ok(())
    }

    /// A key as a string: numbers and booleans are printed, everything else is refused.
    fn key(&mut self, id: NodeId) -> Result<Vec<u8>, YamlError> {
        self.count()?;
        match self.document.nodes.get(id) {
            Some(Node::Scalar { value, tag, implicit }) => {
                if tag.is_empty() && !implicit {
                    return self.text_of(value);
                }
                if tag.strip_prefix(TAG_PREFIX) == Some(b"binary") {
                    return binary(value);
                }
                match resolve(tag, value)? {
                    Scalar::Bool(value) => Ok(value.to_string().into_bytes()),
                    Scalar::Int(value) => Ok(value.to_string().into_bytes()),
                    Scalar::Float(value) => Ok(float_key(value)),
                    Scalar::Timestamp | Scalar::Text => self.text_of(value),
                    Scalar::Null => Err(bad_key("%!s(<nil>)", "<nil>")),
                    Scalar::Uint(value) => Err(bad_key("uint64", &value.to_string())),
                }
            }
            Some(Node::Alias { name, target }) => {
                self.enter(id, name)?;
                let key = self.key(*target)?;
                self.open.remove(&id);
                Ok(key)
            }
            _ => {
                let shown = shown::node(self.document, id);
                Err(YamlError::plain(format!("invalid map key: {shown}")))
            }
        }
    }
}

fn excessive() -> YamlError {
    YamlError::plain("document contains excessive aliasing")
}

fn want_map() -> YamlError {
    YamlError::plain("map merge requires map or sequence of maps as the value")
}

fn unsupported(value: &str) -> YamlError {
    YamlError::json(format!("json: unsupported value: {value}"))
}

fn bad_key(kind: &str, key: &str) -> YamlError {
    YamlError::json(format!("{BAD_KEY} of type: {kind}, key: {key}"))
}

fn binary(value: &[u8]) -> Result<Vec<u8>, YamlError> {
    let packed: Vec<u8> = value.iter().copied().filter(|byte| !matches!(byte, b'\n' | b'\r')).collect();
    base64::engine::general_purpose::STANDARD
        .decode(packed)
        .map_err(|_| YamlError::plain("!!binary value contains invalid base64 data"))
}

/// A float key is printed as a 32-bit number.
fn float_key(value: f64) -> Vec<u8> {
    #[allow(clippy::cast_possible_truncation)]
    let narrow = value as f32;
    if narrow.is_nan() {
        b".nan".to_vec()
    } else if narrow.is_infinite() {
        if narrow > 0.0 { b".inf".to_vec() } else { b"-.inf".to_vec() }
    } else {
        crate::gofloat::shortest_g_32(narrow).into_bytes()
    }
}
