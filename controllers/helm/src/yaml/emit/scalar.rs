//! Writes a string plain, quoted or as a block, whichever the rules choose.
use super::{Emitter, Flavor, Place};
use crate::yaml::chars::{at, is_blank, is_blankz, is_break, is_printable, width};
use crate::yaml::resolve::{Scalar, guess};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

/// What a string's characters rule out.
#[derive(Default)]
#[allow(clippy::struct_excessive_bools)] // Each stands for itself.
struct Allowed {
    multiline: bool,
    plain: bool,
    single: bool,
    block: bool,
}

pub(super) fn has_break(text: &[u8]) -> bool {
    (0..text.len()).any(|i| is_break(text, i))
}

/// Numbers in base 60 (`1:20`), which other readers of YAML 1.1 would take for numbers.
fn is_base60(text: &[u8]) -> bool {
    let body = match text {
        [b'-' | b'+', rest @ ..] => rest,
        all => all,
    };
    let (main, fraction) = match body.iter().position(|byte| *byte == b'.') {
        Some(dot) => body.split_at(dot),
        None => (body, &[][..]),
    };
    let mut groups = main.split(|byte| *byte == b':');
    let first = groups.next().unwrap_or_default();
    let digit_or_line = |byte: &u8| byte.is_ascii_digit() || *byte == b'_';
    let mut rest = groups.peekable();
    first.first().is_some_and(u8::is_ascii_digit)
        && first.iter().all(digit_or_line)
        && rest.peek().is_some()
        && rest.all(|group| match group {
            [a] => a.is_ascii_digit(),
            [a, b] => (b'0'..=b'5').contains(a) && b.is_ascii_digit(),
            _ => false,
        })
        && fraction.iter().skip(1).all(digit_or_line)
}

impl Emitter {
    /// Writes a string.
    pub(super) fn scalar(&mut self, text: &[u8], place: Place) {
        if std::str::from_utf8(text).is_err() {
            self.binary(text, place);
            return;
        }
        let wanted = if text.contains(&b'\n') {
            Style::Literal
        } else if guess(text, true) == Scalar::Text && !is_base60(text) && !(self.safe && text == b"<<") {
            Style::Plain
        } else {
            Style::Double
        };
        self.styled(text, wanted, place);
    }

    /// Bytes that are no text, as base64.
    fn binary(&mut self, bytes: &[u8], place: Place) {
        use base64::Engine as _;
        let packed = base64::engine::general_purpose::STANDARD.encode(bytes);
        self.indicator(b"!!binary", true, false, false);
        if packed.len() < 70 {
            self.styled(packed.as_bytes(), Style::Plain, place);
        } else {
            let mut lines = Vec::new();
            for line in packed.as_bytes().chunks(70) {
                lines.extend_from_slice(line);
                lines.push(b'\n');
            }
            self.styled(&lines, Style::Literal, place);
        }
    }

    fn styled(&mut self, text: &[u8], wanted: Style, place: Place) {
        let allowed = self.analyze(text);
        let simple_key = place == Place::SimpleKey;
        let mut style = wanted;
        if simple_key && allowed.multiline {
            style = Style::Double;
        }
        if style == Style::Plain && (!allowed.plain || (text.is_empty() && simple_key)) {
            style = Style::Single;
        }
        if style == Style::Single && !allowed.single {
            style = Style::Double;
        }
        if style == Style::Literal && (!allowed.block || simple_key) {
            style = Style::Double;
        }
        let outer = self.increase_indent(true, false);
        match style {
            Style::Plain => self.write_plain(text, !simple_key),
            Style::Single => self.write_single(text, !simple_key),
            Style::Double => self.write_double(text, !simple_key),
            Style::Literal => self.write_literal(text),
        }
        self.indent = outer;
    }

    fn analyze(&self, text: &[u8]) -> Allowed {
        if text.is_empty() {
            return Allowed { plain: true, single: true, ..Allowed::default() };
        }
        let mut indicators = text.starts_with(b"---") || text.starts_with(b"...");
        let (mut breaks, mut special, mut tabs) = (false, false, false);
        let (mut leading, mut trailing_space, mut trailing_break) = (false, false, false);
        let (mut break_space, mut space_break) = (false, false);
        let (mut after_space, mut after_break, mut after_white) = (false, false, true);
        let mut i = 0;
        while i < text.len() {
            let byte = at(text, i);
            let next = i + width(byte);
            let before_white = next >= text.len() || is_blank(text, next);
            indicators |= match byte {
                b'#' => after_white,
                b',' | b'[' | b']' | b'{' | b'}' | b'&' | b'*' | b'!' | b'|' | b'>' | b'\'' | b'"' | b'%'
                | b'@' | b'`' => i == 0,
                b'-' | b'?' => i == 0 && before_white,
                b':' => before_white,
                _ => false,
            };
            if byte == b'\t' && self.flavor == Flavor::Pretty {
                tabs = true;
            } else if !is_printable(text, i) {
                special = true;
            }
            if byte == b' ' {
                leading |= i == 0;
                trailing_space |= next == text.len();
                break_space |= after_break;
                (after_space, after_break) = (true, false);
            } else if is_break(text, i) {
                breaks = true;
                leading |= i == 0;
                trailing_break |= next == text.len();
                space_break |= after_space;
                (after_space, after_break) = (false, true);
            } else {
                (after_space, after_break) = (false, false);
            }
            after_white = is_blankz(text, i);
            i = next;
        }
        let odd = space_break || special;
        Allowed {
            multiline: breaks,
            plain: !(leading
                || trailing_space
                || trailing_break
                || break_space
                || odd
                || tabs
                || breaks
                || indicators),
            single: !(break_space || odd || tabs),
            block: !(trailing_space || odd),
        }
    }

    fn write_plain(&mut self, text: &[u8], may_break: bool) {
        if !self.whitespace && !text.is_empty() {
            self.put(b' ');
        }
        self.write_folded(text, may_break, false);
        self.whitespace = false;
        self.indention = false;
    }

    fn write_single(&mut self, text: &[u8], may_break: bool) {
        self.indicator(b"'", true, false, false);
        self.write_folded(text, may_break, true);
        self.indicator(b"'", false, false, false);
        self.whitespace = false;
        self.indention = false;
    }

    /// Text with folded lines, its single quotes doubled if it stands in such.
    fn write_folded(&mut self, text: &[u8], may_break: bool, quoted: bool) {
        let (mut spaces, mut breaks) = (false, false);
        let mut i = 0;
        while i < text.len() {
            if at(text, i) == b' ' {
                let inside = !quoted || (i > 0 && i + 1 < text.len());
                if may_break && !spaces && self.too_wide() && inside && at(text, i + 1) != b' ' {
                    self.write_indent();
                    i += 1;
                } else {
                    i = self.write(text, i);
                }
                spaces = true;
            } else if is_break(text, i) {
                if !breaks && at(text, i) == b'\n' {
                    self.put_break();
                }
                i = self.write_break(text, i);
                self.indention = true;
                breaks = true;
            } else {
                if breaks {
                    self.write_indent();
                }
                if quoted && at(text, i) == b'\'' {
                    self.put(b'\'');
                }
                i = self.write(text, i);
                self.indention = false;
                (spaces, breaks) = (false, false);
            }
        }
    }

    fn write_double(&mut self, text: &[u8], may_break: bool) {
        self.indicator(b"\"", true, false, false);
        // Behind a byte order mark everything is escaped, which the library does by mistake.
        let all = text.starts_with("\u{FEFF}".as_bytes());
        let mut spaces = false;
        let mut i = 0;
        while i < text.len() {
            let byte = at(text, i);
            if byte == b' ' && !all {
                if may_break && !spaces && self.too_wide() && i > 0 && i + 1 < text.len() {
                    self.write_indent();
                    if at(text, i + 1) == b' ' {
                        self.put(b'\\');
                    }
                    i += 1;
                } else {
                    i = self.write(text, i);
                }
                spaces = true;
                continue;
            }
            spaces = false;
            if !all && is_printable(text, i) && !is_break(text, i) && byte != b'"' && byte != b'\\' {
                i = self.write(text, i);
            } else {
                i = self.write_escape(text, i);
            }
        }
        self.indicator(b"\"", false, false, false);
        self.whitespace = false;
        self.indention = false;
    }

    fn write_escape(&mut self, text: &[u8], i: usize) -> usize {
        let end = (i + width(at(text, i))).min(text.len());
        let bytes = text.get(i..end).unwrap_or_default();
        let c = std::str::from_utf8(bytes).ok().and_then(|text| text.chars().next()).unwrap_or('\u{FFFD}');
        let escape = match c {
            '\0' => "0".to_owned(),
            '\x07' => "a".to_owned(),
            '\x08' => "b".to_owned(),
            '\t' => "t".to_owned(),
            '\n' => "n".to_owned(),
            '\x0B' => "v".to_owned(),
            '\x0C' => "f".to_owned(),
            '\r' => "r".to_owned(),
            '\x1B' => "e".to_owned(),
            '"' | '\\' => c.to_string(),
            '\u{85}' => "N".to_owned(),
            '\u{A0}' => "_".to_owned(),
            '\u{2028}' => "L".to_owned(),
            '\u{2029}' => "P".to_owned(),
            c => match u32::from(c) {
                code @ 0..=0xFF => format!("x{code:02X}"),
                code @ 0x100..=0xFFFF => format!("u{code:04X}"),
                code => format!("U{code:08X}"),
            },
        };
        self.put(b'\\');
        self.out.extend_from_slice(escape.as_bytes());
        self.column += escape.len();
        end
    }

    fn write_literal(&mut self, text: &[u8]) {
        self.indicator(b"|", true, false, false);
        if at(text, 0) == b' ' || is_break(text, 0) {
            self.indicator(b"2", false, false, false);
        }
        if let Some(hint) = chomping(text) {
            self.indicator(hint, false, false, false);
        }
        self.put_break();
        self.indention = true;
        self.whitespace = true;
        let mut breaks = true;
        let mut i = 0;
        while i < text.len() {
            if is_break(text, i) {
                i = self.write_break(text, i);
                self.indention = true;
                breaks = true;
            } else {
                if breaks {
                    self.write_indent();
                }
                i = self.write(text, i);
                self.indention = false;
                breaks = false;
            }
        }
    }
}

/// How a block's final line breaks are to be read: none is `-`, more than one is `+`.
fn chomping(text: &[u8]) -> Option<&'static [u8]> {
    let last = |end: usize| {
        let start = (0..end).rev().find(|i| at(text, *i) & 0xC0 != 0x80)?;
        Some((start, is_break(text, start)))
    };
    match last(text.len()) {
        None | Some((_, false)) => Some(b"-"),
        Some((0, true)) => Some(b"+"),
        Some((start, true)) => match last(start) {
            Some((_, true)) => Some(b"+"),
            _ => None,
        },
    }
}
