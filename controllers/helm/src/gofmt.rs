//! Formats values as Go's `fmt`, with Go's words for what does not fit.
mod format;
mod number;
mod value;

use crate::value::Value;

pub(crate) use format::sprintf;

/// The flags of one verb.
#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::struct_excessive_bools)] // Go has these flags.
struct Flags {
    width: Option<usize>,
    precision: Option<usize>,
    plus: bool,
    minus: bool,
    sharp: bool,
    space: bool,
    zero: bool,
    /// `%+v`
    plus_v: bool,
    /// `%#v`
    sharp_v: bool,
}

/// Text being written.
#[derive(Debug, Default)]
struct Printer {
    out: Vec<u8>,
    flags: Flags,
    /// Inside a complaint, where values print without their methods.
    erroring: bool,
}

/// How deep values are printed; it ends maps that contain themselves.
const MAX_DEPTH: usize = 512;

/// The text `print` gives a value.
pub(crate) fn display(value: &Value) -> Vec<u8> {
    let mut printer = Printer::default();
    printer.argument(value, 'v');
    printer.out
}

/// `print`: a space between two values of which neither is a string.
pub(crate) fn sprint(values: &[Value]) -> Vec<u8> {
    let mut printer = Printer::default();
    let mut after_string = false;
    for (i, value) in values.iter().enumerate() {
        let string = matches!(value, Value::Text(_));
        if i > 0 && !string && !after_string {
            printer.out.push(b' ');
        }
        printer.argument(value, 'v');
        after_string = string;
    }
    printer.out
}

/// `println`: spaces between all values and a line break at the end.
pub(crate) fn sprintln(values: &[Value]) -> Vec<u8> {
    let mut printer = Printer::default();
    for (i, value) in values.iter().enumerate() {
        if i > 0 {
            printer.out.push(b' ');
        }
        printer.argument(value, 'v');
    }
    printer.out.push(b'\n');
    printer.out
}

impl Printer {
    /// Writes text filled up to the width.
    fn pad(&mut self, text: &[u8]) {
        let width = self.flags.width.unwrap_or(0);
        let fill = width.saturating_sub(crate::gotext::runes(text).count());
        if self.flags.minus {
            self.out.extend_from_slice(text);
            self.padding(fill);
        } else {
            self.padding(fill);
            self.out.extend_from_slice(text);
        }
    }

    fn padding(&mut self, count: usize) {
        let byte = if self.flags.zero && !self.flags.minus { b'0' } else { b' ' };
        self.out.extend(std::iter::repeat_n(byte, count));
    }

    /// As `pad`, but never with zeros.
    fn pad_blank(&mut self, text: &[u8]) {
        let zero = std::mem::replace(&mut self.flags.zero, false);
        self.pad(text);
        self.flags.zero = zero;
    }
}
