//! Tokens of template text: what the lexer yields and the parser reads.
use std::ops::Range;

use super::quoting::quote;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Error,
    Bool,
    /// Any other printable ASCII character, such as a comma.
    Char,
    CharConstant,
    Complex,
    Assign,
    Declare,
    Eof,
    /// A name that starts with a dot.
    Field,
    Identifier,
    LeftDelim,
    LeftParen,
    Number,
    Pipe,
    RawString,
    RightDelim,
    RightParen,
    Space,
    String,
    Text,
    Variable,
    /// The dot alone.
    Dot,
    Block,
    Break,
    Continue,
    Define,
    Else,
    End,
    If,
    Nil,
    Range,
    Template,
    With,
}

impl Kind {
    /// The keyword a word is, if it is one.
    pub fn keyword(word: &[u8]) -> Option<Self> {
        Some(match word {
            b"block" => Self::Block,
            b"break" => Self::Break,
            b"continue" => Self::Continue,
            b"define" => Self::Define,
            b"else" => Self::Else,
            b"end" => Self::End,
            b"if" => Self::If,
            b"nil" => Self::Nil,
            b"range" => Self::Range,
            b"template" => Self::Template,
            b"with" => Self::With,
            _ => return None,
        })
    }

    fn is_keyword(self) -> bool {
        matches!(
            self,
            Self::Dot
                | Self::Block
                | Self::Break
                | Self::Continue
                | Self::Define
                | Self::Else
                | Self::End
                | Self::If
                | Self::Nil
                | Self::Range
                | Self::Template
                | Self::With
        )
    }
}

/// One token: its bytes in the source and the line it starts on.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub kind: Kind,
    pub span: Range<usize>,
    pub line: usize,
    /// The complaint, for `Kind::Error`.
    pub error: Option<Box<str>>,
}

impl Token {
    /// The token as error messages show it.
    pub fn show(&self, source: &[u8]) -> String {
        let text = source.get(self.span.clone()).unwrap_or_default();
        match self.kind {
            Kind::Eof => "EOF".to_owned(),
            Kind::Error => self.error.as_deref().unwrap_or_default().to_owned(),
            kind if kind.is_keyword() => format!("<{}>", String::from_utf8_lossy(text)),
            _ if text.len() > 10 => format!("{}...", quote(&first_runes(text, 10))),
            _ => quote(text),
        }
    }
}

/// The first `count` characters, where a byte that is not UTF-8 counts as one.
fn first_runes(text: &[u8], count: usize) -> Vec<u8> {
    String::from_utf8_lossy(text).chars().take(count).collect::<String>().into_bytes()
}
