//! Recognises mail addresses as Go's `mail.ParseAddress`: alone, or behind a name and in angle brackets.

pub(super) fn is_address(text: &str) -> bool {
    // No comment stands before the first word.
    let alone = text.trim_start_matches([' ', '\t']);
    let mut reader = Reader { rest: alone };
    if reader.address() && reader.blanks() && reader.rest.is_empty() {
        return true;
    }
    reader.rest = alone;
    // A name in front of the brackets is words, which may be quoted or have dots.
    while !reader.rest.starts_with('<') {
        if !(reader.quoted() || reader.atoms(true)) || !reader.blanks() {
            return false;
        }
    }
    reader.takes('<')
        && reader.blanks()
        && reader.address()
        && reader.blanks()
        && reader.takes('>')
        && reader.blanks()
        && reader.rest.is_empty()
}

struct Reader<'t> {
    rest: &'t str,
}

impl Reader<'_> {
    fn takes(&mut self, wanted: char) -> bool {
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Spaces and comments in parentheses; false when a comment does not end.
    fn blanks(&mut self) -> bool {
        let mut open = 0_usize;
        loop {
            let mut chars = self.rest.chars();
            match chars.next() {
                Some(' ' | '\t') => {}
                Some('(') => open += 1,
                Some(')') if open > 0 => open -= 1,
                Some('\\') if open > 0 => drop(chars.next()),
                Some(_) if open > 0 => {}
                _ => return open == 0,
            }
            self.rest = chars.as_str();
        }
    }

    fn address(&mut self) -> bool {
        (self.quoted() || self.atoms(false))
            && self.blanks()
            && self.takes('@')
            && self.blanks()
            && self.domain()
    }

    fn domain(&mut self) -> bool {
        if !self.rest.starts_with('[') {
            return self.atoms(false);
        }
        let Some((within, rest)) = self.rest.get(1..).and_then(|rest| rest.split_once(']')) else {
            return false;
        };
        self.rest = rest;
        within.parse::<std::net::IpAddr>().is_ok()
    }

    /// Words joined by dots; where `loose`, dots stand anywhere.
    fn atoms(&mut self, loose: bool) -> bool {
        let is_atom = |c: char| {
            c.is_ascii_alphanumeric()
                || "!#$%&'*+-/=?^_`{|}~.".contains(c)
                || (!c.is_ascii() && c != '\u{FFFD}')
        };
        let end = self.rest.find(|c| !is_atom(c)).unwrap_or(self.rest.len());
        let (atoms, rest) = self.rest.split_at(end);
        let bad_dots = atoms.starts_with('.') || atoms.ends_with('.') || atoms.contains("..");
        if atoms.is_empty() || (bad_dots && !loose) {
            return false;
        }
        self.rest = rest;
        true
    }

    fn quoted(&mut self) -> bool {
        let Some(text) = self.rest.strip_prefix('"') else { return false };
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            match c {
                '"' => {
                    let empty = chars.as_str().len() + 1 == text.len();
                    self.rest = chars.as_str();
                    return !empty;
                }
                '\\' if chars.next().is_none() => return false,
                c if c.is_ascii_control() && c != '\t' => return false,
                _ => {}
            }
        }
        false
    }
}
