//! Reads the characters of a number in an action as one token. Its value is the parser's business.
use super::super::quoting::{is_alphanumeric, quote};
use super::super::token::{Kind, Token};
use super::Lexer;

impl Lexer<'_> {
    pub(super) fn number(&mut self) -> Token {
        let mut kind = Kind::Number;
        let mut good = self.scan_number();
        if good && matches!(self.peek(), Some('+' | '-')) {
            good = self.scan_number() && self.pending().ends_with(b"i");
            kind = Kind::Complex;
        }
        if good {
            self.emit(kind)
        } else {
            self.error(format!("bad number syntax: {}", quote(self.pending())))
        }
    }

    fn scan_number(&mut self) -> bool {
        self.accept(b"+-");
        let mut digits: &[u8] = b"0123456789_";
        if self.accept(b"0") {
            if self.accept(b"xX") {
                digits = b"0123456789abcdefABCDEF_";
            } else if self.accept(b"oO") {
                digits = b"01234567_";
            } else if self.accept(b"bB") {
                digits = b"01_";
            }
        }
        self.accept_run(digits);
        if self.accept(b".") {
            self.accept_run(digits);
        }
        let exponent: &[u8] = match digits.len() {
            11 => b"eE",
            23 => b"pP",
            _ => b"",
        };
        if self.accept(exponent) {
            self.accept(b"+-");
            self.accept_run(b"0123456789_");
        }
        self.accept(b"i");
        if self.peek().is_some_and(is_alphanumeric) {
            self.next();
            return false;
        }
        true
    }
}
