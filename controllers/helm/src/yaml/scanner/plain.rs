//! Scans unquoted scalars, and folds their lines.
use super::Scanner;
use super::flow::join_lines;
use crate::yaml::YamlError;
use crate::yaml::chars::{is_blank, is_blankz, is_break};

impl Scanner<'_> {
    pub(super) fn scan_plain(&mut self) -> Result<Vec<u8>, YamlError> {
        let (mut value, mut leading, mut trailing, mut blanks) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut folding = false;
        let indent = usize::try_from(self.indent + 1).unwrap_or(0);
        loop {
            if self.at_document_indicator() || self.byte(0) == b'#' {
                break;
            }
            while !is_blankz(&self.src, self.pos) && !self.at_plain_end() {
                if folding {
                    join_lines(&mut value, &mut leading, &mut trailing);
                    folding = false;
                } else {
                    value.append(&mut blanks);
                }
                self.read(&mut value);
            }
            if !is_blank(&self.src, self.pos) && !is_break(&self.src, self.pos) {
                break;
            }
            while is_blank(&self.src, self.pos) || is_break(&self.src, self.pos) {
                if is_blank(&self.src, self.pos) {
                    if folding && self.mark.column < indent && self.byte(0) == b'\t' {
                        return Err(self.error("found a tab character that violates indentation"));
                    }
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
            if self.flow_level == 0 && self.mark.column < indent {
                break;
            }
        }
        if folding {
            self.simple_key_allowed = true;
        }
        Ok(value)
    }

    /// A `: ` ends a plain scalar, and in flow collections an indicator does.
    fn at_plain_end(&self) -> bool {
        match self.byte(0) {
            b':' => is_blankz(&self.src, self.pos + 1),
            b',' | b'?' | b'[' | b']' | b'{' | b'}' => self.flow_level > 0,
            _ => false,
        }
    }
}
