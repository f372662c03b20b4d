//! Composes flow collections, from `[` or `{` on.
use super::{Composer, Node, NodeId, at_mark};
use crate::yaml::YamlError;
use crate::yaml::token::TokenKind;

impl Composer<'_> {
    pub(super) fn flow_sequence(&mut self, id: NodeId) -> Result<NodeId, YamlError> {
        let start = self.skip()?;
        let mut first = true;
        loop {
            let token = self.scanner.peek()?;
            if token.kind != TokenKind::FlowSequenceEnd && !std::mem::replace(&mut first, false) {
                if token.kind != TokenKind::FlowEntry {
                    return Err(at_mark(token.mark, Some(start), "did not find expected ',' or ']'"));
                }
                self.skip()?;
            }
            match self.scanner.peek()?.kind {
                TokenKind::FlowSequenceEnd => {
                    self.skip()?;
                    return Ok(id);
                }
                TokenKind::Key => {
                    let pair = self.single_pair()?;
                    self.add_item(id, pair);
                }
                _ => {
                    let item = self.node(false, false)?;
                    self.add_item(id, item);
                }
            }
        }
    }

    /// A `key: value` directly inside a sequence is a mapping of one entry.
    fn single_pair(&mut self) -> Result<NodeId, YamlError> {
        self.skip()?;
        let id = self.push(Node::Mapping(Vec::new()));
        let key = match self.scanner.peek()?.kind {
            TokenKind::Value => self.empty(),
            TokenKind::FlowEntry | TokenKind::FlowSequenceEnd => {
                // libyaml takes this token too.
                self.skip()?;
                self.empty()
            }
            _ => self.node(false, false)?,
        };
        let value = self.flow_value(&TokenKind::FlowSequenceEnd)?;
        self.add_entry(id, key, value);
        Ok(id)
    }

    pub(super) fn flow_mapping(&mut self, id: NodeId) -> Result<NodeId, YamlError> {
        let start = self.skip()?;
        let mut first = true;
        loop {
            let token = self.scanner.peek()?;
            if token.kind != TokenKind::FlowMappingEnd && !std::mem::replace(&mut first, false) {
                if token.kind != TokenKind::FlowEntry {
                    return Err(at_mark(token.mark, Some(start), "did not find expected ',' or '}'"));
                }
                self.skip()?;
            }
            match self.scanner.peek()?.kind {
                TokenKind::FlowMappingEnd => {
                    self.skip()?;
                    return Ok(id);
                }
                TokenKind::Key => {
                    self.skip()?;
                    let key = match self.scanner.peek()?.kind {
                        TokenKind::Value | TokenKind::FlowEntry | TokenKind::FlowMappingEnd => self.empty(),
                        _ => self.node(false, false)?,
                    };
                    let value = self.flow_value(&TokenKind::FlowMappingEnd)?;
                    self.add_entry(id, key, value);
                }
                _ => {
                    let key = self.node(false, false)?;
                    let value = self.empty();
                    self.add_entry(id, key, value);
                }
            }
        }
    }

    /// What follows a key: the value after `:`, or nothing.
    fn flow_value(&mut self, end: &TokenKind) -> Result<NodeId, YamlError> {
        if self.scanner.peek()?.kind != TokenKind::Value {
            return Ok(self.empty());
        }
        self.skip()?;
        let kind = &self.scanner.peek()?.kind;
        if *kind == TokenKind::FlowEntry || kind == end {
            return Ok(self.empty());
        }
        self.node(false, false)
    }
}
