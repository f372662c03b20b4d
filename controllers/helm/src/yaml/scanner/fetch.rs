//! The character at hand decides which token comes next.
use super::{Scanner, SimpleKey};
use crate::yaml::YamlError;
use crate::yaml::chars::is_blankz;
use crate::yaml::token::TokenKind;

impl Scanner<'_> {
    /// Scans one token; it may put further ones (block starts and ends, keys) beside it.
    pub(super) fn fetch_next(&mut self) -> Result<(), YamlError> {
        self.skip_to_next_token();
        self.unroll_indent(isize::try_from(self.mark.column).unwrap_or(isize::MAX));
        if self.at_end() {
            return self.fetch_stream_end();
        }
        let byte = self.byte(0);
        let blank_next = is_blankz(&self.src, self.pos + 1);
        if self.mark.column == 0 && byte == b'%' {
            return self.fetch_directive();
        }
        if self.at_document_indicator() {
            return self.fetch_document_indicator(byte == b'-');
        }
        let in_flow = self.flow_level > 0;
        match byte {
            b'[' => self.fetch_flow_start(TokenKind::FlowSequenceStart),
            b'{' => self.fetch_flow_start(TokenKind::FlowMappingStart),
            b']' => self.fetch_flow_end(TokenKind::FlowSequenceEnd),
            b'}' => self.fetch_flow_end(TokenKind::FlowMappingEnd),
            b',' => self.fetch_flow_entry(),
            b'-' if blank_next => self.fetch_block_entry(),
            b'?' if in_flow || blank_next => self.fetch_key(),
            b':' if in_flow || blank_next => self.fetch_value(),
            b'*' | b'&' => self.fetch_anchor(byte == b'*'),
            b'!' => self.fetch_tag(),
            b'|' | b'>' if !in_flow => self.fetch_block_scalar(byte == b'|'),
            b'\'' | b'"' => self.fetch_flow_scalar(byte == b'\''),
            b'-' if !matches!(self.byte(1), b' ' | b'\t') => self.fetch_plain(),
            b'?' | b':' if !in_flow && !blank_next => self.fetch_plain(),
            b'-' | b'?' | b':' | b'#' | b'|' | b'>' | b'%' | b'@' | b'`' | b'\t' => {
                Err(self.error("found character that cannot start any token"))
            }
            _ => self.fetch_plain(),
        }
    }

    fn fetch_stream_end(&mut self) -> Result<(), YamlError> {
        if let Some(bad) = self.bad {
            return Err(YamlError::plain(bad));
        }
        if self.mark.column != 0 {
            self.mark.column = 0;
            self.mark.line += 1;
        }
        self.unroll_indent(-1);
        self.remove_simple_key()?;
        self.simple_key_allowed = false;
        self.push(TokenKind::StreamEnd, self.mark);
        self.ended = true;
        Ok(())
    }

    fn fetch_directive(&mut self) -> Result<(), YamlError> {
        self.unroll_indent(-1);
        self.remove_simple_key()?;
        self.simple_key_allowed = false;
        let mark = self.mark;
        let kind = self.scan_directive()?;
        self.push(kind, mark);
        Ok(())
    }

    fn fetch_document_indicator(&mut self, start: bool) -> Result<(), YamlError> {
        self.unroll_indent(-1);
        self.remove_simple_key()?;
        self.simple_key_allowed = false;
        let mark = self.mark;
        for _ in 0..3 {
            self.skip();
        }
        self.push(if start { TokenKind::DocumentStart } else { TokenKind::DocumentEnd }, mark);
        Ok(())
    }

    /// Takes a one-character indicator.
    fn take(&mut self, kind: TokenKind) {
        let mark = self.mark;
        self.skip();
        self.push(kind, mark);
    }

    fn fetch_flow_start(&mut self, kind: TokenKind) -> Result<(), YamlError> {
        self.save_simple_key()?;
        let token_number = self.tokens_parsed + self.tokens.len();
        self.simple_keys.push(SimpleKey { possible: false, required: false, token_number, mark: self.mark });
        self.flow_level += 1;
        if self.flow_level > self.depth_limit {
            return Err(self.error(format!("exceeded max depth of {}", self.depth_limit)));
        }
        self.simple_key_allowed = true;
        self.take(kind);
        Ok(())
    }

    fn fetch_flow_end(&mut self, kind: TokenKind) -> Result<(), YamlError> {
        self.remove_simple_key()?;
        if self.flow_level > 0 {
            self.flow_level -= 1;
            if let Some(key) = self.simple_keys.pop() {
                self.keys_by_token.remove(&key.token_number);
            }
        }
        self.simple_key_allowed = false;
        self.take(kind);
        Ok(())
    }

    fn fetch_flow_entry(&mut self) -> Result<(), YamlError> {
        self.remove_simple_key()?;
        self.simple_key_allowed = true;
        self.take(TokenKind::FlowEntry);
        Ok(())
    }

    fn fetch_block_entry(&mut self) -> Result<(), YamlError> {
        if self.flow_level == 0 {
            if !self.simple_key_allowed {
                return Err(self.error("block sequence entries are not allowed in this context"));
            }
            self.roll_indent(self.mark.column, None, TokenKind::BlockSequenceStart, self.mark)?;
        }
        self.remove_simple_key()?;
        self.simple_key_allowed = true;
        self.take(TokenKind::BlockEntry);
        Ok(())
    }

    fn fetch_key(&mut self) -> Result<(), YamlError> {
        if self.flow_level == 0 {
            if !self.simple_key_allowed {
                return Err(self.error("mapping keys are not allowed in this context"));
            }
            self.roll_indent(self.mark.column, None, TokenKind::BlockMappingStart, self.mark)?;
        }
        self.remove_simple_key()?;
        self.simple_key_allowed = self.flow_level == 0;
        self.take(TokenKind::Key);
        Ok(())
    }

    /// A `:` makes a key of the token before it, if that is still possible.
    fn fetch_value(&mut self) -> Result<(), YamlError> {
        let level = self.simple_keys.len().saturating_sub(1);
        if self.key_is_valid(level)? {
            let Some(key) = self.simple_keys.get_mut(level) else { return Ok(()) };
            key.possible = false;
            let key = *key;
            let place = key.token_number.saturating_sub(self.tokens_parsed).min(self.tokens.len());
            self.tokens.insert(place, crate::yaml::token::Token { kind: TokenKind::Key, mark: key.mark });
            self.roll_indent(
                key.mark.column,
                Some(key.token_number),
                TokenKind::BlockMappingStart,
                key.mark,
            )?;
            self.keys_by_token.remove(&key.token_number);
            self.simple_key_allowed = false;
        } else {
            if self.flow_level == 0 {
                if !self.simple_key_allowed {
                    return Err(self.error("mapping values are not allowed in this context"));
                }
                self.roll_indent(self.mark.column, None, TokenKind::BlockMappingStart, self.mark)?;
            }
            self.simple_key_allowed = self.flow_level == 0;
        }
        self.take(TokenKind::Value);
        Ok(())
    }

    fn fetch_anchor(&mut self, alias: bool) -> Result<(), YamlError> {
        self.save_simple_key()?;
        self.simple_key_allowed = false;
        let mark = self.mark;
        let kind = self.scan_anchor(alias)?;
        self.push(kind, mark);
        Ok(())
    }

    fn fetch_tag(&mut self) -> Result<(), YamlError> {
        self.save_simple_key()?;
        self.simple_key_allowed = false;
        let mark = self.mark;
        let kind = self.scan_tag()?;
        self.push(kind, mark);
        Ok(())
    }

    fn fetch_block_scalar(&mut self, literal: bool) -> Result<(), YamlError> {
        self.remove_simple_key()?;
        self.simple_key_allowed = true;
        let mark = self.mark;
        let value = self.scan_block_scalar(literal)?;
        self.push(TokenKind::Scalar { value, plain: false }, mark);
        Ok(())
    }

    fn fetch_flow_scalar(&mut self, single: bool) -> Result<(), YamlError> {
        self.save_simple_key()?;
        self.simple_key_allowed = false;
        let mark = self.mark;
        let value = self.scan_flow_scalar(single)?;
        self.push(TokenKind::Scalar { value, plain: false }, mark);
        Ok(())
    }

    fn fetch_plain(&mut self) -> Result<(), YamlError> {
        self.save_simple_key()?;
        self.simple_key_allowed = false;
        let mark = self.mark;
        let value = self.scan_plain()?;
        self.push(TokenKind::Scalar { value, plain: true }, mark);
        Ok(())
    }
}
