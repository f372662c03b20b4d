//! Numbers, strings and booleans by one verb.
use super::Printer;
use crate::gofloat;
use crate::gotext::runes;
use crate::template::quoting::{is_printable, quote};
use crate::value::{Int, Value};

impl Printer {
    pub(super) fn boolean(&mut self, value: bool, verb: char) {
        match verb {
            't' | 'v' => self.pad(if value { b"true" } else { b"false" }),
            _ => self.bad_verb(&Value::Bool(value), verb),
        }
    }

    pub(super) fn integer(&mut self, int: Int, verb: char) {
        let (value, signed) = (int.as_i128(), int.kind().is_signed());
        match verb {
            'v' if self.flags.sharp_v && !signed => {
                let sharp = std::mem::replace(&mut self.flags.sharp, true);
                self.digits(value, 16, 'v');
                self.flags.sharp = sharp;
            }
            'v' | 'd' => self.digits(value, 10, verb),
            'b' => self.digits(value, 2, verb),
            'o' | 'O' => self.digits(value, 8, verb),
            'x' | 'X' => self.digits(value, 16, verb),
            'c' => self.pad(rune(int).encode_utf8(&mut [0; 4]).as_bytes()),
            'q' => {
                let c = rune(int);
                let quoted = self.quoted_rune(c);
                self.pad(quoted.as_bytes());
            }
            'U' => self.unicode(int),
            _ => self.bad_verb(&Value::Int(int), verb),
        }
    }

    fn digits(&mut self, value: i128, base: u32, verb: char) {
        let flags = self.flags;
        let magnitude = value.unsigned_abs();
        if flags.precision == Some(0) && magnitude == 0 {
            let zero = std::mem::replace(&mut self.flags.zero, false);
            self.padding(flags.width.unwrap_or(0));
            self.flags.zero = zero;
            return;
        }
        let mut digits = match base {
            2 => format!("{magnitude:b}"),
            8 => format!("{magnitude:o}"),
            16 if verb == 'X' => format!("{magnitude:X}"),
            16 => format!("{magnitude:x}"),
            _ => magnitude.to_string(),
        };
        let wanted = match (flags.precision, flags.width) {
            (Some(precision), _) => precision,
            // Zeros to the left of the number, after its sign.
            (None, Some(width)) if flags.zero && !flags.minus => {
                width.saturating_sub(usize::from(value < 0 || flags.plus || flags.space))
            }
            _ => 0,
        };
        if wanted > digits.len() {
            digits.insert_str(0, &"0".repeat(wanted - digits.len()));
        }
        let prefix = match base {
            2 if flags.sharp => "0b",
            8 if flags.sharp && !digits.starts_with('0') => "0",
            16 if flags.sharp => {
                if verb == 'X' {
                    "0X"
                } else {
                    "0x"
                }
            }
            _ => "",
        };
        let octal = if verb == 'O' { "0o" } else { "" };
        let sign = if value < 0 {
            "-"
        } else if flags.plus {
            "+"
        } else if flags.space {
            " "
        } else {
            ""
        };
        self.pad_blank(format!("{sign}{octal}{prefix}{digits}").as_bytes());
    }

    fn quoted_rune(&self, c: char) -> String {
        if c == '\'' {
            return "'\\''".to_owned();
        }
        if c == '"' {
            return "'\"'".to_owned();
        }
        let text = c.to_string();
        let quoted = if self.flags.plus { quote_ascii(text.as_bytes()) } else { quote(text.as_bytes()) };
        format!("'{}'", quoted.trim_matches('"'))
    }

    fn unicode(&mut self, int: Int) {
        let code = int.wrapping_u64();
        let precision = self.flags.precision.unwrap_or(4).max(4);
        let mut text = format!("U+{code:0precision$X}");
        let c = u32::try_from(code).ok().and_then(char::from_u32);
        if let Some(c) = c.filter(|c| self.flags.sharp && is_printable(*c)) {
            text.push_str(&format!(" '{c}'"));
        }
        self.pad_blank(text.as_bytes());
    }

    pub(super) fn float(&mut self, value: f64, verb: char) {
        match verb {
            'v' => self.float_digits(value, 'g', None),
            'b' | 'g' | 'G' | 'x' | 'X' => self.float_digits(value, verb, None),
            'f' | 'e' | 'E' => self.float_digits(value, verb, Some(6)),
            'F' => self.float_digits(value, 'f', Some(6)),
            _ => self.bad_verb(&Value::Float(value), verb),
        }
    }

    fn float_digits(&mut self, value: f64, verb: char, precision: Option<usize>) {
        let flags = self.flags;
        let precision = flags.precision.or(precision);
        let text = gofloat::format(value, verb, precision);
        let (mut sign, mut body) = match text.strip_prefix(['+', '-']) {
            Some(body) => (text.get(..1).unwrap_or("+"), body.to_owned()),
            None => ("+", text.clone()),
        };
        if flags.space && sign == "+" && !flags.plus {
            sign = " ";
        }
        let shown = |sign: &str, body: &str| {
            if flags.plus || sign != "+" { format!("{sign}{body}") } else { body.to_owned() }
        };
        if !value.is_finite() {
            // Infinities always have their sign.
            let text =
                if value.is_nan() && !flags.space && !flags.plus { body } else { format!("{sign}{body}") };
            self.pad_blank(text.as_bytes());
            return;
        }
        if flags.sharp && verb != 'b' {
            body = with_point(&body, verb, precision);
        }
        let text = shown(sign, &body);
        if text.len() > body.len() && flags.zero && !flags.minus {
            self.out.extend_from_slice(sign.as_bytes());
            self.padding(flags.width.unwrap_or(0).saturating_sub(text.len()));
            self.out.extend_from_slice(body.as_bytes());
        } else {
            self.pad(text.as_bytes());
        }
    }

    pub(super) fn complex(&mut self, re: f64, im: f64, verb: char) {
        if !matches!(verb, 'v' | 'b' | 'g' | 'G' | 'x' | 'X' | 'f' | 'F' | 'e' | 'E') {
            self.bad_verb(&Value::Complex(re, im), verb);
            return;
        }
        let plus = self.flags.plus;
        self.out.push(b'(');
        self.float(re, verb);
        self.flags.plus = true;
        self.float(im, verb);
        self.out.extend_from_slice(b"i)");
        self.flags.plus = plus;
    }

    /// A string by a verb. `value` is what a complaint shows.
    pub(super) fn string(&mut self, text: &[u8], verb: char, value: &Value) {
        match verb {
            'v' if self.flags.sharp_v => self.quoted(text),
            'v' | 's' => {
                let text = self.truncated(text);
                self.pad(text);
            }
            'q' => self.quoted(text),
            'x' | 'X' => self.hex(text, verb == 'X'),
            _ => self.bad_verb(value, verb),
        }
    }

    /// The first runes, as many as the precision says.
    fn truncated<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        let Some(precision) = self.flags.precision else { return text };
        match runes(text).nth(precision) {
            Some((end, _)) => text.get(..end).unwrap_or(text),
            None => text,
        }
    }

    fn quoted(&mut self, text: &[u8]) {
        let text = self.truncated(text);
        let quoted = if self.flags.sharp && can_backquote(text) {
            format!("`{}`", String::from_utf8_lossy(text))
        } else if self.flags.plus {
            quote_ascii(text)
        } else {
            quote(text)
        };
        self.pad(quoted.as_bytes());
    }

    fn hex(&mut self, text: &[u8], upper: bool) {
        let flags = self.flags;
        let length = flags.precision.map_or(text.len(), |precision| precision.min(text.len()));
        let mut out = String::new();
        for (i, byte) in text.iter().take(length).enumerate() {
            if flags.space && i > 0 {
                out.push(' ');
            }
            if flags.sharp && (i == 0 || flags.space) {
                out.push_str(if upper { "0X" } else { "0x" });
            }
            out.push_str(&if upper { format!("{byte:02X}") } else { format!("{byte:02x}") });
        }
        self.pad(out.as_bytes());
    }
}

fn rune(int: Int) -> char {
    u32::try_from(int.wrapping_u64()).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn quote_ascii(text: &[u8]) -> String {
    let mut out = String::new();
    for c in quote(text).chars() {
        match u32::from(c) {
            0..0x80 => out.push(c),
            code @ 0x80..0x1_0000 => out.push_str(&format!("\\u{code:04x}")),
            code => out.push_str(&format!("\\U{code:08x}")),
        }
    }
    out
}

/// Whether text can stand between backquotes unchanged on one line.
fn can_backquote(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| {
        !text.chars().any(|c| c == '\u{FEFF}' || (c < ' ' && c != '\t') || c == '`' || c == '\x7F')
    })
}

/// What `#` adds: a decimal point, and for `%#g` the trailing zeros.
fn with_point(body: &str, verb: char, precision: Option<usize>) -> String {
    let split = match verb {
        'x' | 'X' => body.find(['p', 'P']),
        _ => body.find(['e', 'E', 'p', 'P']),
    };
    let (main, tail) = body.split_at(split.unwrap_or(body.len()));
    let mut wanted = match verb {
        'v' | 'g' | 'G' | 'x' => precision.unwrap_or(6),
        _ => 0,
    };
    let significant = main.chars().filter(|c| *c != '.').skip_while(|c| *c == '0').count();
    wanted = wanted.saturating_sub(significant);
    let mut out = main.to_owned();
    if !main.contains('.') {
        if main == "0" {
            wanted = wanted.saturating_sub(1);
        }
        out.push('.');
    }
    out.extend(std::iter::repeat_n('0', wanted.min(1_000_000)));
    out + tail
}
