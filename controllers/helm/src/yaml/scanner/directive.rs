//! Scans directives: lines that begin with `%`.
use super::Scanner;
use crate::yaml::YamlError;
use crate::yaml::chars::{is_alpha, is_blank, is_blankz, is_break, is_breakz};
use crate::yaml::token::TokenKind;

impl Scanner<'_> {
    pub(super) fn scan_directive(&mut self) -> Result<TokenKind, YamlError> {
        self.skip();
        let mut name = Vec::new();
        while is_alpha(self.byte(0)) {
            self.read(&mut name);
        }
        if name.is_empty() {
            return Err(self.error("could not find expected directive name"));
        }
        if !is_blankz(&self.src, self.pos) {
            return Err(self.error("found unexpected non-alphabetical character"));
        }
        let kind = match name.as_slice() {
            b"YAML" => self.scan_version()?,
            b"TAG" => self.scan_tag_directive()?,
            _ => return Err(self.error("found unknown directive name")),
        };
        self.skip_blanks();
        self.skip_comment();
        if !is_breakz(&self.src, self.pos) {
            return Err(self.error("did not find expected comment or line break"));
        }
        if is_break(&self.src, self.pos) {
            self.skip_line();
        }
        Ok(kind)
    }

    fn skip_blanks(&mut self) {
        while is_blank(&self.src, self.pos) {
            self.skip();
        }
    }

    fn scan_version(&mut self) -> Result<TokenKind, YamlError> {
        self.skip_blanks();
        let major = self.scan_version_number()?;
        if self.byte(0) != b'.' {
            return Err(self.error("did not find expected digit or '.' character"));
        }
        self.skip();
        Ok(TokenKind::VersionDirective(major, self.scan_version_number()?))
    }

    fn scan_version_number(&mut self) -> Result<u32, YamlError> {
        let (mut value, mut length) = (0, 0);
        while self.byte(0).is_ascii_digit() {
            length += 1;
            if length > 2 {
                return Err(self.error("found extremely long version number"));
            }
            value = value * 10 + u32::from(self.byte(0) - b'0');
            self.skip();
        }
        if length == 0 {
            return Err(self.error("did not find expected version number"));
        }
        Ok(value)
    }

    fn scan_tag_directive(&mut self) -> Result<TokenKind, YamlError> {
        self.skip_blanks();
        let handle = self.scan_tag_handle(true)?;
        if !is_blank(&self.src, self.pos) {
            return Err(self.error("did not find expected whitespace"));
        }
        self.skip_blanks();
        let prefix = self.scan_tag_uri(&[])?;
        if !is_blankz(&self.src, self.pos) {
            return Err(self.error("did not find expected whitespace or line break"));
        }
        Ok(TokenKind::TagDirective { handle, prefix })
    }
}
