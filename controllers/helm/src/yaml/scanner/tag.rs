//! Scans tags, anchors and aliases: `!…`, `&…` and `*…`.
use super::Scanner;
use crate::yaml::YamlError;
use crate::yaml::chars::{at, is_alpha, is_blankz, width};
use crate::yaml::token::TokenKind;

impl Scanner<'_> {
    pub(super) fn scan_anchor(&mut self, alias: bool) -> Result<TokenKind, YamlError> {
        self.skip();
        let mut name = Vec::new();
        while is_alpha(self.byte(0)) {
            self.read(&mut name);
        }
        let ends = is_blankz(&self.src, self.pos)
            || matches!(self.byte(0), b'?' | b':' | b',' | b']' | b'}' | b'%' | b'@' | b'`');
        if name.is_empty() || !ends {
            return Err(self.error("did not find expected alphabetic or numeric character"));
        }
        Ok(if alias { TokenKind::Alias(name) } else { TokenKind::Anchor(name) })
    }

    pub(super) fn scan_tag(&mut self) -> Result<TokenKind, YamlError> {
        let (handle, suffix);
        if self.byte(1) == b'<' {
            self.skip();
            self.skip();
            handle = Vec::new();
            suffix = self.scan_tag_uri(&[])?;
            if self.byte(0) != b'>' {
                return Err(self.error("did not find the expected '>'"));
            }
            self.skip();
        } else {
            let head = self.scan_tag_handle(false)?;
            if head.len() > 1 && head.ends_with(b"!") {
                suffix = self.scan_tag_uri(&[])?;
                handle = head;
            } else {
                let uri = self.scan_tag_uri(&head)?;
                // A lone `!` has no handle and is itself the tag.
                (handle, suffix) = if uri.is_empty() { (uri, b"!".to_vec()) } else { (b"!".to_vec(), uri) };
            }
        }
        if !is_blankz(&self.src, self.pos) {
            return Err(self.error("did not find expected whitespace or line break"));
        }
        Ok(TokenKind::Tag { handle, suffix })
    }

    pub(super) fn scan_tag_handle(&mut self, directive: bool) -> Result<Vec<u8>, YamlError> {
        if self.byte(0) != b'!' {
            return Err(self.error("did not find expected '!'"));
        }
        let mut handle = Vec::new();
        self.read(&mut handle);
        while is_alpha(self.byte(0)) {
            self.read(&mut handle);
        }
        if self.byte(0) == b'!' {
            self.read(&mut handle);
        } else if directive && handle != b"!" {
            return Err(self.error("did not find expected '!'"));
        }
        Ok(handle)
    }

    /// A tag's URI. `head` is what a handle scan has already taken of it, with its leading `!`.
    pub(super) fn scan_tag_uri(&mut self, head: &[u8]) -> Result<Vec<u8>, YamlError> {
        let mut uri = head.get(1..).unwrap_or_default().to_vec();
        let mut found = !head.is_empty();
        while is_alpha(self.byte(0)) || (self.byte(0) != 0 && b";/?:@&=+$,.!~*'()[]%".contains(&self.byte(0)))
        {
            if self.byte(0) == b'%' {
                self.scan_uri_escape(&mut uri)?;
            } else {
                self.read(&mut uri);
            }
            found = true;
        }
        if !found {
            return Err(self.error("did not find expected tag URI"));
        }
        Ok(uri)
    }

    /// One character written as `%xx` octets.
    fn scan_uri_escape(&mut self, uri: &mut Vec<u8>) -> Result<(), YamlError> {
        let mut left = None;
        while left != Some(0) {
            let digit = |ahead: usize| char::from(at(&self.src, self.pos + ahead)).to_digit(16);
            let (b'%', Some(high), Some(low)) = (self.byte(0), digit(1), digit(2)) else {
                return Err(self.error("did not find URI escaped octet"));
            };
            let octet = u8::try_from(high * 16 + low).unwrap_or(0);
            left = Some(match left {
                None if matches!(octet, 0x80..0xC0 | 0xF8..=0xFF) => {
                    return Err(self.error("found an incorrect leading UTF-8 octet"));
                }
                None => width(octet) - 1,
                Some(_) if octet & 0xC0 != 0x80 => {
                    return Err(self.error("found an incorrect trailing UTF-8 octet"));
                }
                Some(left) => left - 1,
            });
            uri.push(octet);
            for _ in 0..3 {
                self.skip();
            }
        }
        Ok(())
    }
}
