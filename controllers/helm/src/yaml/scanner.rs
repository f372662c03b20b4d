//! Scans YAML text into tokens, by the rules of YAML 1.1 as libyaml applies them.
//!
//! Block structure is found from columns, and a `:` turns an earlier token into a mapping key: a "simple key", which
//! must lie on one line and within 1024 characters. That bound also keeps the queue of waiting tokens short.
mod block;
mod directive;
mod fetch;
mod flow;
mod plain;
mod tag;

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use super::YamlError;
use super::chars::{at, first_bad, is_break, is_breakz, width};
use super::token::{Mark, Token, TokenKind};

/// A simple key reaches at most this many characters.
const SIMPLE_KEY_REACH: usize = 1024;

/// A token that becomes a key if a `:` follows.
#[derive(Clone, Copy, Debug, Default)]
struct SimpleKey {
    possible: bool,
    /// Block structure leaves no other choice than a key here.
    required: bool,
    token_number: usize,
    mark: Mark,
}

#[derive(Debug)]
pub(super) struct Scanner<'a> {
    src: Cow<'a, [u8]>,
    /// Why the text ends where `src` ends, when the input goes on with bytes that are not YAML.
    bad: Option<&'static str>,
    pos: usize,
    mark: Mark,
    flow_level: usize,
    /// The column of the current block, -1 outside of any.
    indent: isize,
    indents: Vec<isize>,
    simple_keys: Vec<SimpleKey>,
    keys_by_token: BTreeMap<usize, usize>,
    simple_key_allowed: bool,
    tokens: VecDeque<Token>,
    tokens_parsed: usize,
    token_available: bool,
    ended: bool,
    depth_limit: usize,
}

impl<'a> Scanner<'a> {
    pub fn new(input: &'a [u8], depth_limit: usize) -> Result<Self, YamlError> {
        let mut src = decode(input)?;
        let bad = first_bad(&src);
        if let Some((end, _)) = bad {
            match &mut src {
                Cow::Borrowed(bytes) => *bytes = bytes.get(..end).unwrap_or_default(),
                Cow::Owned(bytes) => bytes.truncate(end),
            }
        }
        Ok(Self {
            src,
            bad: bad.map(|(_, problem)| problem),
            pos: 0,
            mark: Mark::default(),
            flow_level: 0,
            indent: -1,
            indents: Vec::new(),
            simple_keys: vec![SimpleKey::default()],
            keys_by_token: BTreeMap::new(),
            simple_key_allowed: true,
            tokens: VecDeque::new(),
            tokens_parsed: 0,
            token_available: false,
            ended: false,
            depth_limit,
        })
    }

    /// The next token, left in place.
    pub fn peek(&mut self) -> Result<&Token, YamlError> {
        if !self.token_available {
            self.fetch_more()?;
            self.token_available = true;
        }
        // After the end of the stream the last token stays.
        self.tokens.front().ok_or_else(|| YamlError::plain("unknown problem parsing YAML content"))
    }

    /// Takes the token that `peek` showed.
    pub fn next(&mut self) -> Result<Token, YamlError> {
        let token = self.peek()?.clone_if_end();
        if let Some(end) = token {
            return Ok(end);
        }
        self.token_available = false;
        self.tokens_parsed += 1;
        self.tokens.pop_front().ok_or_else(|| YamlError::plain("unknown problem parsing YAML content"))
    }

    /// Scans until the first waiting token can no longer become a key.
    fn fetch_more(&mut self) -> Result<(), YamlError> {
        loop {
            if !self.tokens.is_empty() {
                let Some(&key) = self.keys_by_token.get(&self.tokens_parsed) else { return Ok(()) };
                if !self.key_is_valid(key)? {
                    return Ok(());
                }
            }
            if self.ended {
                return Ok(());
            }
            self.fetch_next()?;
        }
    }

    /// Whether a simple key may still become one; a required one that may not is an error.
    fn key_is_valid(&mut self, key: usize) -> Result<bool, YamlError> {
        let Some(&simple) = self.simple_keys.get(key) else { return Ok(false) };
        if !simple.possible {
            return Ok(false);
        }
        if simple.mark.line < self.mark.line || simple.mark.index + SIMPLE_KEY_REACH < self.mark.index {
            if simple.required {
                return Err(self.error("could not find expected ':'"));
            }
            if let Some(entry) = self.simple_keys.get_mut(key) {
                entry.possible = false;
            }
            return Ok(false);
        }
        Ok(true)
    }

    /// Notes that the next token may become a key.
    fn save_simple_key(&mut self) -> Result<(), YamlError> {
        if !self.simple_key_allowed {
            return Ok(());
        }
        let required = self.flow_level == 0 && usize::try_from(self.indent) == Ok(self.mark.column);
        let token_number = self.tokens_parsed + self.tokens.len();
        self.remove_simple_key()?;
        let level = self.simple_keys.len().saturating_sub(1);
        if let Some(last) = self.simple_keys.last_mut() {
            *last = SimpleKey { possible: true, required, token_number, mark: self.mark };
            self.keys_by_token.insert(token_number, level);
        }
        Ok(())
    }

    /// Gives up on the possible key of this flow level.
    fn remove_simple_key(&mut self) -> Result<(), YamlError> {
        let Some(last) = self.simple_keys.last_mut() else { return Ok(()) };
        if !last.possible {
            return Ok(());
        }
        if last.required {
            return Err(self.error("could not find expected ':'"));
        }
        last.possible = false;
        let number = last.token_number;
        self.keys_by_token.remove(&number);
        Ok(())
    }

    fn push(&mut self, kind: TokenKind, mark: Mark) {
        self.tokens.push_back(Token { kind, mark });
    }

    /// Opens a block at a column, before the token of a number or at the end.
    fn roll_indent(
        &mut self,
        column: usize,
        number: Option<usize>,
        kind: TokenKind,
        mark: Mark,
    ) -> Result<(), YamlError> {
        let column = isize::try_from(column).unwrap_or(isize::MAX);
        if self.flow_level > 0 || self.indent >= column {
            return Ok(());
        }
        self.indents.push(self.indent);
        self.indent = column;
        if self.indents.len() > self.depth_limit {
            return Err(self.error(format!("exceeded max depth of {}", self.depth_limit)));
        }
        let token = Token { kind, mark };
        match number.and_then(|number| number.checked_sub(self.tokens_parsed)) {
            Some(place) if place <= self.tokens.len() => self.tokens.insert(place, token),
            _ => self.tokens.push_back(token),
        }
        Ok(())
    }

    /// Closes the blocks that are deeper than a column.
    fn unroll_indent(&mut self, column: isize) {
        if self.flow_level > 0 {
            return;
        }
        while self.indent > column {
            self.push(TokenKind::BlockEnd, self.mark);
            self.indent = self.indents.pop().unwrap_or(-1);
        }
    }

    /// Skips blanks, comments and line breaks.
    fn skip_to_next_token(&mut self) {
        loop {
            if self.mark.column == 0 && self.rest().starts_with(&[0xEF, 0xBB, 0xBF]) {
                self.skip();
            }
            while self.byte(0) == b' '
                || (self.byte(0) == b'\t' && (self.flow_level > 0 || !self.simple_key_allowed))
            {
                self.skip();
            }
            self.skip_comment();
            if !is_break(&self.src, self.pos) {
                return;
            }
            self.skip_line();
            if self.flow_level == 0 {
                self.simple_key_allowed = true;
            }
        }
    }

    fn skip_comment(&mut self) {
        if self.byte(0) == b'#' {
            while !is_breakz(&self.src, self.pos) {
                self.skip();
            }
        }
    }

    fn byte(&self, ahead: usize) -> u8 {
        at(&self.src, self.pos + ahead)
    }

    fn rest(&self) -> &[u8] {
        self.src.get(self.pos..).unwrap_or_default()
    }

    fn at_end(&self) -> bool {
        self.pos >= self.src.len()
    }

    /// Steps over one character that is no line break.
    fn skip(&mut self) {
        self.pos += width(self.byte(0));
        self.mark.index += 1;
        self.mark.column += 1;
    }

    /// Steps over a line break.
    fn skip_line(&mut self) {
        if self.byte(0) == b'\r' && self.byte(1) == b'\n' {
            self.pos += 2;
            self.mark.index += 2;
        } else if is_break(&self.src, self.pos) {
            self.pos += width(self.byte(0));
            self.mark.index += 1;
        } else {
            return;
        }
        self.mark.column = 0;
        self.mark.line += 1;
    }

    /// Copies one character that is no line break.
    fn read(&mut self, into: &mut Vec<u8>) {
        let end = (self.pos + width(self.byte(0))).min(self.src.len());
        into.extend_from_slice(self.src.get(self.pos..end).unwrap_or_default());
        self.skip();
    }

    /// Copies a line break: CR, CRLF and NEL become LF.
    fn read_line(&mut self, into: &mut Vec<u8>) {
        if !is_break(&self.src, self.pos) {
            return;
        }
        if self.byte(0) == 0xE2 {
            into.extend_from_slice(self.src.get(self.pos..self.pos + 3).unwrap_or_default());
        } else {
            into.push(b'\n');
        }
        self.skip_line();
    }

    /// Whether a line `---` or `...` begins here.
    fn at_document_indicator(&self) -> bool {
        self.mark.column == 0
            && (self.rest().starts_with(b"---") || self.rest().starts_with(b"..."))
            && super::chars::is_blankz(&self.src, self.pos + 3)
    }

    /// A complaint about the text at the current position.
    fn error(&self, problem: impl Into<String>) -> YamlError {
        if let Some(bad) = self.bad
            && self.pos + 4 > self.src.len()
        {
            return YamlError::plain(bad);
        }
        let line = if self.mark.line == 0 { None } else { Some(self.mark.line + 1) };
        YamlError::at(line, problem)
    }
}

impl Token {
    /// The end of the stream can be taken again and again.
    fn clone_if_end(&self) -> Option<Self> {
        (self.kind == TokenKind::StreamEnd).then(|| self.clone())
    }
}

/// The text as UTF-8 without byte order mark.
fn decode(input: &[u8]) -> Result<Cow<'_, [u8]>, YamlError> {
    let units = |tail: &[u8], join: fn([u8; 2]) -> u16| {
        let words = tail.chunks_exact(2).map(|pair| match pair {
            [a, b] => join([*a, *b]),
            _ => 0,
        });
        if tail.len() % 2 == 1 {
            return Err(YamlError::plain("incomplete UTF-16 character"));
        }
        char::decode_utf16(words)
            .collect::<Result<String, _>>()
            .map(|text| Cow::Owned(text.into_bytes()))
            .map_err(|_| YamlError::plain("unexpected low surrogate area"))
    };
    match input {
        [0xEF, 0xBB, 0xBF, rest @ ..] => Ok(Cow::Borrowed(rest)),
        [0xFF, 0xFE, rest @ ..] => units(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => units(rest, u16::from_be_bytes),
        _ => Ok(Cow::Borrowed(input)),
    }
}
