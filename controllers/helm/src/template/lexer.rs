//! Splits template text into tokens, with Go's positions and trimming.
mod number;

use super::quoting::{decode, is_alphanumeric, is_printable};
use super::token::{Kind, Token};

const LEFT: &[u8] = b"{{";
const RIGHT: &[u8] = b"}}";
/// A trim marker is a minus and one space.
const TRIM_MARKER: usize = 2;

pub(super) struct Lexer<'s> {
    source: &'s [u8],
    pos: usize,
    /// Where the token being read starts.
    start: usize,
    line: usize,
    start_line: usize,
    at_eof: bool,
    parens: usize,
    inside_action: bool,
    failed: bool,
}

/// What a scanning step leads to: a token, or another step.
enum Step {
    Token(Token),
    Text,
    LeftDelim,
}

impl<'s> Lexer<'s> {
    pub fn new(source: &'s [u8]) -> Self {
        Self {
            source,
            pos: 0,
            start: 0,
            line: 1,
            start_line: 1,
            at_eof: false,
            parens: 0,
            inside_action: false,
            failed: false,
        }
    }

    pub fn next_token(&mut self) -> Token {
        if self.failed {
            return self.bare(Kind::Eof);
        }
        if self.inside_action {
            return self.inside();
        }
        let mut step = Step::Text;
        loop {
            step = match step {
                Step::Token(token) => return token,
                Step::Text => self.text(),
                Step::LeftDelim => self.left_delim(),
            };
        }
    }

    fn rest(&self) -> &'s [u8] {
        self.source.get(self.pos..).unwrap_or_default()
    }

    fn next(&mut self) -> Option<char> {
        let Some((c, width)) = decode(self.rest()) else {
            self.at_eof = true;
            return None;
        };
        self.pos += width;
        if c == '\n' {
            self.line += 1;
        }
        Some(c)
    }

    fn peek(&self) -> Option<char> {
        decode(self.rest()).map(|(c, _)| c)
    }

    fn bare(&self, kind: Kind) -> Token {
        Token { kind, span: self.pos..self.pos, line: self.start_line, error: None }
    }

    fn emit(&mut self, kind: Kind) -> Token {
        let token = Token { kind, span: self.start..self.pos, line: self.start_line, error: None };
        self.start = self.pos;
        self.start_line = self.line;
        token
    }

    /// Skips what was passed over without `next`.
    fn ignore(&mut self) {
        self.line += newlines(self.pending());
        self.start = self.pos;
        self.start_line = self.line;
    }

    fn pending(&self) -> &'s [u8] {
        self.source.get(self.start..self.pos).unwrap_or_default()
    }

    fn error(&mut self, message: impl Into<Box<str>>) -> Token {
        self.failed = true;
        Token {
            kind: Kind::Error,
            span: self.start..self.start,
            line: self.start_line,
            error: Some(message.into()),
        }
    }

    fn accept(&mut self, set: &[u8]) -> bool {
        let found = self.rest().first().is_some_and(|byte| set.contains(byte));
        if found {
            self.pos += 1;
        }
        found
    }

    fn accept_run(&mut self, set: &[u8]) {
        while self.accept(set) {}
    }

    fn text(&mut self) -> Step {
        let Some(found) = find(self.rest(), LEFT) else {
            self.pos = self.source.len();
            if self.pos > self.start {
                self.line += newlines(self.pending());
                return Step::Token(self.emit(Kind::Text));
            }
            return Step::Token(self.emit(Kind::Eof));
        };
        if found > 0 {
            self.pos += found;
            let after = self.source.get(self.pos + LEFT.len()..).unwrap_or_default();
            let trim = if has_left_trim(after) {
                self.pending().iter().rev().take_while(|byte| is_space_byte(**byte)).count()
            } else {
                0
            };
            self.pos -= trim;
            self.line += newlines(self.pending());
            let token = self.emit(Kind::Text);
            self.pos += trim;
            self.ignore();
            if !token.span.is_empty() {
                return Step::Token(token);
            }
        }
        Step::LeftDelim
    }

    fn left_delim(&mut self) -> Step {
        self.pos += LEFT.len();
        let marker = if has_left_trim(self.rest()) { TRIM_MARKER } else { 0 };
        if self.rest().get(marker..).is_some_and(|rest| rest.starts_with(b"/*")) {
            self.pos += marker;
            self.ignore();
            return self.comment();
        }
        let token = self.emit(Kind::LeftDelim);
        self.inside_action = true;
        self.pos += marker;
        self.ignore();
        self.parens = 0;
        Step::Token(token)
    }

    fn comment(&mut self) -> Step {
        self.pos += 2;
        let Some(end) = find(self.rest(), b"*/") else {
            return Step::Token(self.error("unclosed comment"));
        };
        self.pos += end + 2;
        let Some(trim) = self.at_right_delim() else {
            return Step::Token(self.error("comment ends before closing delimiter"));
        };
        if trim {
            self.pos += TRIM_MARKER;
        }
        self.pos += RIGHT.len();
        if trim {
            self.pos += leading_space(self.rest());
        }
        self.ignore();
        Step::Text
    }

    /// Whether a right delimiter comes next, and if so, whether it trims.
    fn at_right_delim(&self) -> Option<bool> {
        let rest = self.rest();
        if has_right_trim(rest) && rest.get(TRIM_MARKER..).is_some_and(|rest| rest.starts_with(RIGHT)) {
            return Some(true);
        }
        rest.starts_with(RIGHT).then_some(false)
    }

    fn right_delim(&mut self) -> Token {
        let trim = self.at_right_delim() == Some(true);
        if trim {
            self.pos += TRIM_MARKER;
            self.ignore();
        }
        self.pos += RIGHT.len();
        let token = self.emit(Kind::RightDelim);
        if trim {
            self.pos += leading_space(self.rest());
            self.ignore();
        }
        self.inside_action = false;
        token
    }

    fn inside(&mut self) -> Token {
        if self.at_right_delim().is_some() {
            return if self.parens == 0 { self.right_delim() } else { self.error("unclosed left paren") };
        }
        let before = (self.pos, self.line);
        let Some(c) = self.next() else { return self.error("unclosed action") };
        match c {
            ' ' | '\t' | '\r' | '\n' => {
                (self.pos, self.line) = before;
                self.space()
            }
            '=' => self.emit(Kind::Assign),
            ':' if self.next() == Some('=') => self.emit(Kind::Declare),
            ':' => self.error("expected :="),
            '|' => self.emit(Kind::Pipe),
            '"' => self.quoted('"', Kind::String, "unterminated quoted string"),
            '`' => self.raw_string(),
            '$' if self.at_terminator() => self.emit(Kind::Variable),
            '$' => self.name(Kind::Variable),
            '\'' => self.quoted('\'', Kind::CharConstant, "unterminated character constant"),
            '.' if !self.rest().is_empty() && !self.rest().first().is_some_and(u8::is_ascii_digit) => {
                if self.at_terminator() { self.emit(Kind::Dot) } else { self.name(Kind::Field) }
            }
            '.' | '+' | '-' | '0'..='9' => {
                (self.pos, self.line) = before;
                self.number()
            }
            c if is_alphanumeric(c) => {
                (self.pos, self.line) = before;
                self.identifier()
            }
            '(' => {
                self.parens += 1;
                self.emit(Kind::LeftParen)
            }
            ')' if self.parens == 0 => self.error("unexpected right paren"),
            ')' => {
                self.parens -= 1;
                self.emit(Kind::RightParen)
            }
            c if c.is_ascii() && is_printable(c) => self.emit(Kind::Char),
            c => self.error(format!("unrecognized character in action: {}", code_point(c))),
        }
    }

    fn space(&mut self) -> Token {
        let run = leading_space(self.rest());
        let text = self.rest();
        self.pos += run;
        // The last space may belong to a trimming right delimiter.
        let last = text.get(run - 1..).unwrap_or_default();
        if has_right_trim(last) && last.get(TRIM_MARKER..).is_some_and(|rest| rest.starts_with(RIGHT)) {
            self.pos -= 1;
            if run == 1 {
                return self.right_delim();
            }
        }
        self.line += newlines(self.pending());
        self.emit(Kind::Space)
    }

    fn identifier(&mut self) -> Token {
        self.name_run();
        if !self.at_terminator() {
            return self.bad_character();
        }
        match self.pending() {
            b"true" | b"false" => self.emit(Kind::Bool),
            word => self.emit(Kind::keyword(word).unwrap_or(Kind::Identifier)),
        }
    }

    /// The rest of a field or variable.
    fn name(&mut self, kind: Kind) -> Token {
        self.name_run();
        if self.at_terminator() { self.emit(kind) } else { self.bad_character() }
    }

    fn name_run(&mut self) {
        while self.peek().is_some_and(is_alphanumeric) {
            self.next();
        }
    }

    fn bad_character(&mut self) -> Token {
        let shown = self.peek().map_or_else(|| "U+FFFFFFFFFFFFFFFF".to_owned(), code_point);
        self.error(format!("bad character {shown}"))
    }

    /// Whether a name may end here.
    fn at_terminator(&self) -> bool {
        match self.peek() {
            None | Some(' ' | '\t' | '\r' | '\n' | '.' | ',' | '|' | ':' | ')' | '(') => true,
            Some(_) => self.rest().starts_with(RIGHT),
        }
    }

    fn quoted(&mut self, end: char, kind: Kind, unterminated: &str) -> Token {
        loop {
            match self.next() {
                Some('\\') if !matches!(self.next(), None | Some('\n')) => {}
                Some('\\' | '\n') | None => return self.error(unterminated),
                Some(c) if c == end => return self.emit(kind),
                Some(_) => {}
            }
        }
    }

    fn raw_string(&mut self) -> Token {
        let Some(end) = self.rest().iter().position(|byte| *byte == b'`') else {
            return self.error("unterminated raw quoted string");
        };
        self.pos += end + 1;
        self.line += newlines(self.pending());
        self.emit(Kind::RawString)
    }
}

/// `U+0021 '!'`, as Go shows a character.
fn code_point(c: char) -> String {
    let code = format!("U+{:04X}", u32::from(c));
    if is_printable(c) { format!("{code} '{c}'") } else { code }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    memchr::memmem::find(haystack, needle)
}

fn newlines(text: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', text).count()
}

fn is_space_byte(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn leading_space(text: &[u8]) -> usize {
    text.iter().take_while(|byte| is_space_byte(**byte)).count()
}

fn has_left_trim(text: &[u8]) -> bool {
    matches!(text, [b'-', space, ..] if is_space_byte(*space))
}

fn has_right_trim(text: &[u8]) -> bool {
    matches!(text, [space, b'-', ..] if is_space_byte(*space))
}
