//! Scans block scalars: the text after `|` or `>`.
use super::Scanner;
use crate::yaml::YamlError;
use crate::yaml::chars::{is_blank, is_break, is_breakz};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Chomping {
    Strip,
    Clip,
    Keep,
}

impl Scanner<'_> {
    pub(super) fn scan_block_scalar(&mut self, literal: bool) -> Result<Vec<u8>, YamlError> {
        self.skip();
        let (chomping, increment) = self.scan_block_header()?;
        let mut indent = match increment {
            0 => 0,
            increment => usize::try_from(self.indent).unwrap_or(0) + increment,
        };
        let (mut value, mut leading_break, mut trailing) = (Vec::new(), Vec::new(), Vec::new());
        self.scan_block_breaks(&mut indent, &mut trailing)?;
        let mut after_blank = false;
        while self.mark.column == indent && !self.at_end() {
            let blank = is_blank(&self.src, self.pos);
            if !literal && !after_blank && !blank && leading_break.first() == Some(&b'\n') {
                // Folding: one break is a space, more breaks lose the first.
                if trailing.is_empty() {
                    value.push(b' ');
                }
            } else {
                value.append(&mut leading_break);
            }
            leading_break.clear();
            value.append(&mut trailing);
            after_blank = blank;
            let start = self.pos;
            while !is_breakz(&self.src, self.pos) {
                self.skip();
            }
            value.extend_from_slice(self.src.get(start..self.pos).unwrap_or_default());
            self.read_line(&mut leading_break);
            self.scan_block_breaks(&mut indent, &mut trailing)?;
        }
        if chomping != Chomping::Strip {
            value.append(&mut leading_break);
        }
        if chomping == Chomping::Keep {
            value.append(&mut trailing);
        }
        Ok(value)
    }

    /// Chomping and indentation indicators in either order, then the rest of the line.
    fn scan_block_header(&mut self) -> Result<(Chomping, usize), YamlError> {
        let mut chomping = self.scan_chomping();
        let mut increment = 0;
        if self.byte(0).is_ascii_digit() {
            if self.byte(0) == b'0' {
                return Err(self.error("found an indentation indicator equal to 0"));
            }
            increment = usize::from(self.byte(0) - b'0');
            self.skip();
            if chomping.is_none() {
                chomping = self.scan_chomping();
            }
        }
        while is_blank(&self.src, self.pos) {
            self.skip();
        }
        self.skip_comment();
        if !is_breakz(&self.src, self.pos) {
            return Err(self.error("did not find expected comment or line break"));
        }
        if is_break(&self.src, self.pos) {
            self.skip_line();
        }
        Ok((chomping.unwrap_or(Chomping::Clip), increment))
    }

    fn scan_chomping(&mut self) -> Option<Chomping> {
        let chomping = match self.byte(0) {
            b'+' => Chomping::Keep,
            b'-' => Chomping::Strip,
            _ => return None,
        };
        self.skip();
        Some(chomping)
    }

    /// Skips indentation and collects empty lines; the first call finds the indentation.
    fn scan_block_breaks(&mut self, indent: &mut usize, breaks: &mut Vec<u8>) -> Result<(), YamlError> {
        let mut deepest = 0;
        loop {
            while (*indent == 0 || self.mark.column < *indent) && self.byte(0) == b' ' {
                self.skip();
            }
            deepest = deepest.max(self.mark.column);
            if (*indent == 0 || self.mark.column < *indent) && self.byte(0) == b'\t' {
                return Err(self.error("found a tab character where an indentation space is expected"));
            }
            if !is_break(&self.src, self.pos) {
                break;
            }
            self.read_line(breaks);
        }
        if *indent == 0 {
            *indent = deepest.max(usize::try_from(self.indent + 1).unwrap_or(0)).max(1);
        }
        Ok(())
    }
}
