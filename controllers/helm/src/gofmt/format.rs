//! Formats arguments as `printf`.
use super::{Flags, Printer};
use crate::gotext::rune;
use crate::value::Value;

/// Larger widths and precisions are refused, as in Go.
const TOO_LARGE: usize = 1_000_000;

struct Format<'a> {
    text: &'a [u8],
    at: usize,
    args: &'a [Value],
    next: usize,
    /// Explicit indexes were used, so that unused arguments are no complaint.
    reordered: bool,
    good_index: bool,
    after_index: bool,
}

/// The text of a format. It is cut off where it is longer than the render may make: maps that share maps can be exponentially
/// long, and one verb can print a million bytes.
pub(crate) fn sprintf(text: &[u8], args: &[Value]) -> Vec<u8> {
    let mut printer = Printer::default();
    let mut format =
        Format { text, at: 0, args, next: 0, reordered: false, good_index: true, after_index: false };
    while format.at < text.len() && crate::limits::fits(printer.out.len()) {
        let rest = text.get(format.at..).unwrap_or_default();
        let plain = memchr::memchr(b'%', rest).unwrap_or(rest.len());
        printer.out.extend_from_slice(rest.get(..plain).unwrap_or_default());
        format.at += plain;
        if format.at < text.len() {
            format.at += 1;
            format.directive(&mut printer);
        }
    }
    format.extra(&mut printer);
    printer.out
}

impl Format<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn directive(&mut self, printer: &mut Printer) {
        self.good_index = true;
        self.after_index = false;
        let mut flags = Flags::default();
        while let Some(byte) = self.peek() {
            match byte {
                b'#' => flags.sharp = true,
                b'0' => flags.zero = true,
                b'+' => flags.plus = true,
                b'-' => flags.minus = true,
                b' ' => flags.space = true,
                _ => break,
            }
            self.at += 1;
        }
        printer.flags = flags;
        self.index();
        self.width(printer);
        self.precision(printer);
        if !self.after_index {
            self.index();
        }
        let rest = self.text.get(self.at..).unwrap_or_default();
        let Some((verb, length)) = rune(rest) else {
            printer.out.extend_from_slice(b"%!(NOVERB)");
            return;
        };
        self.at += length;
        if verb == '%' {
            printer.out.push(b'%');
        } else if !self.good_index {
            printer.out.extend_from_slice(format!("%!{verb}(BADINDEX)").as_bytes());
        } else if let Some(arg) = self.args.get(self.next) {
            if matches!(verb, 'v' | 'w') {
                printer.flags.sharp_v = std::mem::replace(&mut printer.flags.sharp, false);
                printer.flags.plus_v = std::mem::replace(&mut printer.flags.plus, false);
            }
            printer.argument(arg, verb);
            self.next += 1;
        } else {
            printer.out.extend_from_slice(format!("%!{verb}(MISSING)").as_bytes());
        }
    }

    fn width(&mut self, printer: &mut Printer) {
        if self.peek() == Some(b'*') {
            self.at += 1;
            match self.int_argument() {
                None => printer.out.extend_from_slice(b"%!(BADWIDTH)"),
                Some(width) => {
                    if width < 0 {
                        printer.flags.minus = true;
                        printer.flags.zero = false;
                    }
                    printer.flags.width = usize::try_from(width.unsigned_abs()).ok();
                }
            }
            self.after_index = false;
        } else {
            printer.flags.width = self.number();
            if self.after_index && printer.flags.width.is_some() {
                self.good_index = false;
            }
        }
    }

    fn precision(&mut self, printer: &mut Printer) {
        // A point at the very end is no precision but a bad verb.
        if self.peek() != Some(b'.') || self.at + 1 >= self.text.len() {
            return;
        }
        self.at += 1;
        if self.after_index {
            self.good_index = false;
        }
        self.index();
        if self.peek() == Some(b'*') {
            self.at += 1;
            match self.int_argument() {
                Some(precision) if precision >= 0 => {
                    printer.flags.precision = usize::try_from(precision).ok();
                }
                _ => printer.out.extend_from_slice(b"%!(BADPREC)"),
            }
            self.after_index = false;
        } else {
            printer.flags.precision = Some(self.number().unwrap_or(0));
        }
    }

    fn number(&mut self) -> Option<usize> {
        let start = self.at;
        let mut value = 0_usize;
        while let Some(digit) = self.peek().filter(u8::is_ascii_digit) {
            if value > TOO_LARGE {
                return None;
            }
            value = value * 10 + usize::from(digit - b'0');
            self.at += 1;
        }
        (self.at > start).then_some(value)
    }

    fn int_argument(&mut self) -> Option<i64> {
        let arg = self.args.get(self.next)?;
        self.next += 1;
        let Value::Int(int) = arg else { return None };
        let value = i64::try_from(int.as_i128()).ok()?;
        let limit = i64::try_from(TOO_LARGE).unwrap_or(i64::MAX);
        (-limit..=limit).contains(&value).then_some(value)
    }

    /// `[n]`: the next argument is the n-th.
    fn index(&mut self) {
        if self.peek() != Some(b'[') {
            self.after_index = false;
            return;
        }
        self.reordered = true;
        let rest = self.text.get(self.at..).unwrap_or_default();
        let close = if rest.len() < 3 { None } else { rest.iter().position(|byte| *byte == b']') };
        let Some(close) = close else {
            self.good_index = false;
            self.after_index = false;
            self.at += 1;
            return;
        };
        let digits = rest.get(1..close).and_then(|digits| std::str::from_utf8(digits).ok());
        let number = digits
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()))
            .and_then(|digits| digits.parse::<usize>().ok());
        self.at += close + 1;
        self.after_index = number.is_some();
        match number.and_then(|number| number.checked_sub(1)) {
            Some(index) if index < self.args.len() => self.next = index,
            _ => self.good_index = false,
        }
    }

    /// Go's complaint about arguments no verb took.
    fn extra(&mut self, printer: &mut Printer) {
        let Some(extra) = self.args.get(self.next..).filter(|extra| !self.reordered && !extra.is_empty())
        else {
            return;
        };
        printer.flags = Flags::default();
        printer.out.extend_from_slice(b"%!(EXTRA ");
        for (i, arg) in extra.iter().enumerate() {
            if i > 0 {
                printer.out.extend_from_slice(b", ");
            }
            if let Value::Nil = arg {
                printer.out.extend_from_slice(b"<nil>");
            } else {
                printer.out.extend_from_slice(arg.type_name().as_bytes());
                printer.out.push(b'=');
                printer.argument(arg, 'v');
            }
        }
        printer.out.push(b')');
    }
}
