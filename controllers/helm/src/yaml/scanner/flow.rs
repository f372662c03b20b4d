//! Scans scalars in single or double quotes.
use super::Scanner;
use crate::yaml::YamlError;
use crate::yaml::chars::{at, is_blank, is_blankz, is_break};

impl Scanner<'_> {
    pub(super) fn scan_flow_scalar(&mut self, single: bool) -> Result<Vec<u8>, YamlError> {
        self.skip();
        let quote = if single { b'\'' } else { b'"' };
        let (mut value, mut leading, mut trailing, mut blanks) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        loop {
            if self.at_document_indicator() {
                return Err(self.error("found unexpected document indicator"));
            }
            if self.at_end() {
                return Err(self.error("found unexpected end of stream"));
            }
            let mut folding = self.scan_quoted_run(single, quote, &mut value)?;
            if self.byte(0) == quote {
                break;
            }
            while is_blank(&self.src, self.pos) || is_break(&self.src, self.pos) {
                if is_blank(&self.src, self.pos) {
                    if folding {
                        self.skip();
                    } else {
                        self.read(&mut blanks);
                    }
                } else if folding {
                    self.read_line(&mut trailing);
                } else {
                    blanks.clear();
                    self.read_line(&mut leading);
                    folding = true;
                }
            }
            if folding {
                join_lines(&mut value, &mut leading, &mut trailing);
            } else {
                value.append(&mut blanks);
            }
        }
        self.skip();
        Ok(value)
    }

    /// Copies up to a blank, a break or the closing quote. True when an escaped line break ended the run.
    fn scan_quoted_run(&mut self, single: bool, quote: u8, value: &mut Vec<u8>) -> Result<bool, YamlError> {
        while !is_blankz(&self.src, self.pos) {
            let byte = self.byte(0);
            if single && byte == quote && self.byte(1) == quote {
                value.push(quote);
                self.skip();
                self.skip();
            } else if byte == quote {
                break;
            } else if !single && byte == b'\\' {
                if is_break(&self.src, self.pos + 1) {
                    self.skip();
                    self.skip_line();
                    return Ok(true);
                }
                self.scan_escape(value)?;
            } else {
                self.read(value);
            }
        }
        Ok(false)
    }

    fn scan_escape(&mut self, value: &mut Vec<u8>) -> Result<(), YamlError> {
        let plain: &[u8] = match self.byte(1) {
            b'0' => b"\0",
            b'a' => b"\x07",
            b'b' => b"\x08",
            b't' | b'\t' => b"\t",
            b'n' => b"\n",
            b'v' => b"\x0B",
            b'f' => b"\x0C",
            b'r' => b"\r",
            b'e' => b"\x1B",
            b' ' => b" ",
            b'"' => b"\"",
            b'\'' => b"'",
            b'\\' => b"\\",
            b'N' => "\u{85}".as_bytes(),
            b'_' => "\u{A0}".as_bytes(),
            b'L' => "\u{2028}".as_bytes(),
            b'P' => "\u{2029}".as_bytes(),
            b'x' => return self.scan_hex_escape(2, value),
            b'u' => return self.scan_hex_escape(4, value),
            b'U' => return self.scan_hex_escape(8, value),
            _ => return Err(self.error("found unknown escape character")),
        };
        self.skip();
        self.skip();
        value.extend_from_slice(plain);
        Ok(())
    }

    fn scan_hex_escape(&mut self, digits: usize, value: &mut Vec<u8>) -> Result<(), YamlError> {
        self.skip();
        self.skip();
        let mut code: u32 = 0;
        for k in 0..digits {
            let Some(digit) = char::from(at(&self.src, self.pos + k)).to_digit(16) else {
                return Err(self.error("did not find expected hexdecimal number"));
            };
            code = (code << 4) | digit;
        }
        let Some(char) = char::from_u32(code) else {
            return Err(self.error("found invalid Unicode character escape code"));
        };
        value.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
        for _ in 0..digits {
            self.skip();
        }
        Ok(())
    }
}

/// Folds the line breaks between two lines of a scalar: one becomes a space, more lose the first.
pub(super) fn join_lines(value: &mut Vec<u8>, leading: &mut Vec<u8>, trailing: &mut Vec<u8>) {
    if leading.first() == Some(&b'\n') {
        if trailing.is_empty() {
            value.push(b' ');
        }
        leading.clear();
    } else {
        value.append(leading);
    }
    value.append(trailing);
}
