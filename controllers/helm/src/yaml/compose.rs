//! Composes tokens into the tree of a document: scalars, sequences, mappings and aliases in an arena.
mod flow;

use std::collections::BTreeMap;

use super::YamlError;
use super::scanner::Scanner;
use super::token::{Mark, Token, TokenKind};
use crate::limits::{Held, NODE_BYTES, has_passed};

/// A node's place in its document.
pub(super) type NodeId = usize;

#[derive(Debug)]
pub(super) enum Node {
    Scalar {
        value: Vec<u8>,
        /// The full tag, empty when the text has none.
        tag: Vec<u8>,
        /// Whether the value's type is read off its text.
        implicit: bool,
    },
    Sequence(Vec<NodeId>),
    Mapping(Vec<(NodeId, NodeId)>),
    Alias {
        name: Vec<u8>,
        target: NodeId,
    },
}

/// One document.
#[derive(Debug)]
pub(super) struct Document {
    pub nodes: Vec<Node>,
    pub root: NodeId,
    /// The bytes that the nodes take.
    _held: Held,
}

#[derive(Debug)]
pub(super) struct Composer<'a> {
    scanner: Scanner<'a>,
    nodes: Vec<Node>,
    held: Held,
    anchors: BTreeMap<Vec<u8>, NodeId>,
    tag_prefixes: Vec<(Vec<u8>, Vec<u8>)>,
    first: bool,
    depth: usize,
    depth_limit: usize,
}

/// Values of one document, which take some hundred bytes each while it is read. No object that a cluster stores has a tenth.
const MAX_NODES: usize = 500_000;

/// The tag and anchor in front of a node.
#[derive(Default)]
struct Properties {
    anchor: Option<Vec<u8>>,
    tag: Option<(Vec<u8>, Vec<u8>, Mark)>,
}

/// What is to be read inside a node that was begun.
enum Inside {
    Nothing,
    BlockSequence,
    IndentlessSequence,
    BlockMapping,
    FlowSequence,
    FlowMapping,
}

impl<'a> Composer<'a> {
    pub fn new(input: &'a [u8], depth_limit: usize) -> Result<Self, YamlError> {
        Ok(Self {
            scanner: Scanner::new(input, depth_limit)?,
            nodes: Vec::new(),
            held: Held::default(),
            anchors: BTreeMap::new(),
            tag_prefixes: Vec::new(),
            first: true,
            depth: 0,
            depth_limit,
        })
    }

    /// The next document of the stream, `None` at its end.
    pub fn document(&mut self) -> Result<Option<Document>, YamlError> {
        let implicit = std::mem::replace(&mut self.first, false);
        if !implicit {
            while self.scanner.peek()?.kind == TokenKind::DocumentEnd {
                self.skip()?;
            }
        }
        let root = match self.scanner.peek()?.kind {
            TokenKind::StreamEnd => return Ok(None),
            TokenKind::VersionDirective(..) | TokenKind::TagDirective { .. } | TokenKind::DocumentStart => {
                self.explicit_document()?
            }
            _ if implicit => {
                self.default_tag_prefixes();
                self.node(true, false)?
            }
            _ => self.explicit_document()?,
        };
        if self.scanner.peek()?.kind == TokenKind::DocumentEnd {
            self.skip()?;
        }
        self.tag_prefixes.clear();
        self.anchors.clear();
        let (nodes, held) = (std::mem::take(&mut self.nodes), std::mem::take(&mut self.held));
        Ok(Some(Document { nodes, root, _held: held }))
    }

    fn explicit_document(&mut self) -> Result<NodeId, YamlError> {
        self.directives()?;
        let start = self.scanner.peek()?;
        if start.kind != TokenKind::DocumentStart {
            return Err(at_mark(start.mark, None, "did not find expected <document start>"));
        }
        self.skip()?;
        match self.scanner.peek()?.kind {
            TokenKind::VersionDirective(..)
            | TokenKind::TagDirective { .. }
            | TokenKind::DocumentStart
            | TokenKind::DocumentEnd
            | TokenKind::StreamEnd => Ok(self.empty()),
            _ => self.node(true, false),
        }
    }

    fn directives(&mut self) -> Result<(), YamlError> {
        let mut version = false;
        loop {
            let token = self.scanner.peek()?;
            let mark = token.mark;
            match &token.kind {
                TokenKind::VersionDirective(..) if version => {
                    return Err(at_mark(mark, None, "found duplicate %YAML directive"));
                }
                TokenKind::VersionDirective(1, 1) => version = true,
                TokenKind::VersionDirective(..) => {
                    return Err(at_mark(mark, None, "found incompatible YAML document"));
                }
                TokenKind::TagDirective { handle, prefix } => {
                    if self.tag_prefixes.iter().any(|(known, _)| known == handle) {
                        return Err(at_mark(mark, None, "found duplicate %TAG directive"));
                    }
                    self.tag_prefixes.push((handle.clone(), prefix.clone()));
                }
                _ => break,
            }
            self.skip()?;
        }
        self.default_tag_prefixes();
        Ok(())
    }

    fn default_tag_prefixes(&mut self) {
        for (handle, prefix) in [(&b"!"[..], &b"!"[..]), (b"!!", super::resolve::TAG_PREFIX)] {
            if !self.tag_prefixes.iter().any(|(known, _)| known == handle) {
                self.tag_prefixes.push((handle.to_vec(), prefix.to_vec()));
            }
        }
    }

    /// A node and all below it. `indentless` allows a sequence whose dashes are in its key's column.
    fn node(&mut self, block: bool, indentless: bool) -> Result<NodeId, YamlError> {
        self.depth += 1;
        if self.depth > self.depth_limit {
            return Err(YamlError::plain(format!("exceeded max depth of {}", self.depth_limit)));
        }
        let id = self.node_at_depth(block, indentless)?;
        self.depth -= 1;
        Ok(id)
    }

    fn node_at_depth(&mut self, block: bool, indentless: bool) -> Result<NodeId, YamlError> {
        match self.begin(block, indentless)? {
            (id, Inside::Nothing) => Ok(id),
            (id, Inside::IndentlessSequence) => self.indentless_sequence(id),
            (id, Inside::FlowSequence) => self.flow_sequence(id),
            (id, Inside::FlowMapping) => self.flow_mapping(id),
            (id, Inside::BlockSequence) => self.block_sequence(id),
            (id, Inside::BlockMapping) => self.block_mapping(id),
        }
    }

    /// A node, and what is to be read inside it. (For itself, since what is at hand here would fill the stack of those below.)
    fn begin(&mut self, block: bool, indentless: bool) -> Result<(NodeId, Inside), YamlError> {
        let start = self.scanner.peek()?.mark;
        if let TokenKind::Alias(_) = self.scanner.peek()?.kind {
            return Ok((self.alias()?, Inside::Nothing));
        }
        let properties = self.properties()?;
        let tag = self.resolve_tag(&properties, start)?;
        let token = self.scanner.peek()?;
        let here = token.mark;
        let anchor = properties.anchor;
        let (inside, node) = match &token.kind {
            TokenKind::BlockEntry if indentless => (Inside::IndentlessSequence, Node::Sequence(Vec::new())),
            TokenKind::Scalar { .. } => {
                let Token { kind: TokenKind::Scalar { value, plain }, .. } = self.scanner.next()? else {
                    return Ok((self.empty(), Inside::Nothing));
                };
                let implicit = (tag.is_empty() && plain) || tag == b"!";
                (Inside::Nothing, Node::Scalar { value, tag, implicit })
            }
            TokenKind::FlowSequenceStart => (Inside::FlowSequence, Node::Sequence(Vec::new())),
            TokenKind::FlowMappingStart => (Inside::FlowMapping, Node::Mapping(Vec::new())),
            TokenKind::BlockSequenceStart if block => (Inside::BlockSequence, Node::Sequence(Vec::new())),
            TokenKind::BlockMappingStart if block => (Inside::BlockMapping, Node::Mapping(Vec::new())),
            _ if anchor.is_some() || !tag.is_empty() => {
                let implicit = tag.is_empty();
                (Inside::Nothing, Node::Scalar { value: Vec::new(), tag, implicit })
            }
            _ => return Err(at_mark(here, Some(start), "did not find expected node content")),
        };
        Ok((self.open(anchor, node), inside))
    }

    /// Passes over a token; answers where it stood. (Tokens are large, and collections stand on the stack in each other.)
    fn skip(&mut self) -> Result<Mark, YamlError> {
        if self.nodes.len() >= MAX_NODES {
            return Err(YamlError::plain(format!("a document has more than {MAX_NODES} values")));
        }
        if has_passed() {
            return Err(YamlError::plain("the document has too many values"));
        }
        Ok(self.scanner.next()?.mark)
    }

    fn alias(&mut self) -> Result<NodeId, YamlError> {
        let Token { kind: TokenKind::Alias(name), .. } = self.scanner.next()? else {
            return Ok(self.empty());
        };
        match self.anchors.get(&name) {
            Some(&target) => Ok(self.push(Node::Alias { name, target })),
            None => Err(YamlError::plain(format!(
                "unknown anchor '{}' referenced",
                String::from_utf8_lossy(&name)
            ))),
        }
    }

    /// An anchor and a tag, in either order.
    fn properties(&mut self) -> Result<Properties, YamlError> {
        let mut found = Properties::default();
        for _ in 0..2 {
            match &self.scanner.peek()?.kind {
                TokenKind::Anchor(_) if found.anchor.is_none() => {
                    if let TokenKind::Anchor(name) = self.scanner.next()?.kind {
                        found.anchor = Some(name);
                    }
                }
                TokenKind::Tag { .. } if found.tag.is_none() => {
                    if let Token { kind: TokenKind::Tag { handle, suffix }, mark } = self.scanner.next()? {
                        found.tag = Some((handle, suffix, mark));
                    }
                }
                _ => break,
            }
        }
        Ok(found)
    }

    fn resolve_tag(&self, properties: &Properties, start: Mark) -> Result<Vec<u8>, YamlError> {
        let Some((handle, suffix, mark)) = &properties.tag else { return Ok(Vec::new()) };
        if handle.is_empty() {
            return Ok(suffix.clone());
        }
        match self.tag_prefixes.iter().find(|(known, _)| known == handle) {
            Some((_, prefix)) if !prefix.is_empty() || !suffix.is_empty() => {
                Ok([prefix.as_slice(), suffix.as_slice()].concat())
            }
            _ => Err(at_mark(*mark, Some(start), "found undefined tag handle")),
        }
    }

    /// Adds a node, which counts even where no text stands for it. What has no room ends at the next token.
    fn push(&mut self, node: Node) -> NodeId {
        self.held.add(NODE_BYTES);
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// Adds a node and makes its anchor known, also to the nodes inside it.
    fn open(&mut self, anchor: Option<Vec<u8>>, node: Node) -> NodeId {
        let id = self.push(node);
        if let Some(anchor) = anchor {
            self.anchors.insert(anchor, id);
        }
        id
    }

    fn empty(&mut self) -> NodeId {
        self.push(Node::Scalar { value: Vec::new(), tag: Vec::new(), implicit: true })
    }

    fn add_item(&mut self, sequence: NodeId, item: NodeId) {
        if let Some(Node::Sequence(items)) = self.nodes.get_mut(sequence) {
            items.push(item);
        }
    }

    fn add_entry(&mut self, mapping: NodeId, key: NodeId, value: NodeId) {
        if let Some(Node::Mapping(entries)) = self.nodes.get_mut(mapping) {
            entries.push((key, value));
        }
    }

    fn block_sequence(&mut self, id: NodeId) -> Result<NodeId, YamlError> {
        let start = self.skip()?;
        loop {
            let token = self.scanner.peek()?;
            match token.kind {
                TokenKind::BlockEntry => {
                    self.skip()?;
                    let item = match self.scanner.peek()?.kind {
                        TokenKind::BlockEntry | TokenKind::BlockEnd => self.empty(),
                        _ => self.node(true, false)?,
                    };
                    self.add_item(id, item);
                }
                TokenKind::BlockEnd => {
                    self.skip()?;
                    return Ok(id);
                }
                _ => return Err(at_mark(token.mark, Some(start), "did not find expected '-' indicator")),
            }
        }
    }

    fn indentless_sequence(&mut self, id: NodeId) -> Result<NodeId, YamlError> {
        while self.scanner.peek()?.kind == TokenKind::BlockEntry {
            self.skip()?;
            let item = match self.scanner.peek()?.kind {
                TokenKind::BlockEntry | TokenKind::Key | TokenKind::Value | TokenKind::BlockEnd => {
                    self.empty()
                }
                _ => self.node(true, false)?,
            };
            self.add_item(id, item);
        }
        Ok(id)
    }

    fn block_mapping(&mut self, id: NodeId) -> Result<NodeId, YamlError> {
        let start = self.skip()?;
        loop {
            let token = self.scanner.peek()?;
            match token.kind {
                TokenKind::Key => {
                    self.skip()?;
                    let key = self.block_key_or_value()?;
                    let value = if self.scanner.peek()?.kind == TokenKind::Value {
                        self.skip()?;
                        self.block_key_or_value()?
                    } else {
                        self.empty()
                    };
                    self.add_entry(id, key, value);
                }
                TokenKind::BlockEnd => {
                    self.skip()?;
                    return Ok(id);
                }
                _ => return Err(at_mark(token.mark, Some(start), "did not find expected key")),
            }
        }
    }

    fn block_key_or_value(&mut self) -> Result<NodeId, YamlError> {
        match self.scanner.peek()?.kind {
            TokenKind::Key | TokenKind::Value | TokenKind::BlockEnd => Ok(self.empty()),
            _ => self.node(true, true),
        }
    }
}

/// A complaint about a token. Lines are reported the way libyaml's users know them.
fn at_mark(problem: Mark, context: Option<Mark>, text: &str) -> YamlError {
    let line = [Some(problem), context].into_iter().flatten().map(|mark| mark.line).find(|line| *line != 0);
    YamlError::at(line, text)
}
