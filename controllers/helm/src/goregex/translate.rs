//! Translates RE2's syntax into that of the regex crate, and refuses what RE2 refuses.
use super::class;

/// Repetition counts above this are refused.
const MAX_REPEAT: u32 = 1000;

/// The characters of a pattern, taken one by one.
pub(super) struct Pattern<'a> {
    rest: &'a str,
}

impl<'a> Pattern<'a> {
    pub fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    pub fn rest(&self) -> &'a str {
        self.rest
    }

    pub fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    pub fn eat(&mut self, prefix: &str) -> bool {
        match self.rest.strip_prefix(prefix) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }
}

impl Iterator for Pattern<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.skip(c.len_utf8());
        Some(c)
    }
}

/// A literal character, escaped where it needs be.
pub(super) fn literal(c: char, out: &mut String) {
    if c.is_ascii() && !c.is_ascii_alphanumeric() {
        out.push_str(&format!("\\x{:02X}", u32::from(c)));
    } else {
        out.push(c);
    }
}

/// The translated pattern and the names of its groups.
pub(super) fn translate(text: &str) -> Result<(String, Vec<Option<String>>), String> {
    let mut names = Vec::new();
    let mut pattern = Pattern { rest: text };
    let mut out = String::with_capacity(text.len() + 8);
    // What stands before a repetition: nothing, something, or another repetition.
    let (mut repeatable, mut repeated) = (false, false);
    while let Some(c) = pattern.peek() {
        let before = pattern.rest();
        match c {
            '*' | '+' | '?' | '{' => {
                let Some(operator) = repetition(&mut pattern)? else {
                    pattern.next();
                    literal(c, &mut out);
                    (repeatable, repeated) = (true, false);
                    continue;
                };
                if repeated {
                    return Err(format!("invalid nested repetition operator: `{}`", head(before)));
                }
                if !repeatable {
                    return Err(format!("missing argument to repetition operator: `{operator}`"));
                }
                out.push_str(&operator);
                if pattern.eat("?") {
                    out.push('?');
                }
                (repeatable, repeated) = (true, true);
                continue;
            }
            '(' => {
                group(&mut pattern, &mut out, &mut names)?;
                (repeatable, repeated) = (false, false);
                continue;
            }
            '|' => {
                pattern.next();
                out.push('|');
                (repeatable, repeated) = (false, false);
                continue;
            }
            '[' => class::class(&mut pattern, &mut out)?,
            '\\' => escape(&mut pattern, &mut out)?,
            ')' | '.' | '^' | '$' => {
                pattern.next();
                out.push(c);
            }
            c => {
                pattern.next();
                literal(c, &mut out);
            }
        }
        (repeatable, repeated) = (true, false);
    }
    Ok((out, names))
}

fn head(text: &str) -> &str {
    text.get(..2).unwrap_or(text)
}

/// A repetition operator in the target's syntax; `None` for a brace that is a literal.
fn repetition(pattern: &mut Pattern<'_>) -> Result<Option<String>, String> {
    let rest = pattern.rest();
    if !rest.starts_with('{') {
        return Ok(pattern.next().map(String::from));
    }
    let Some((body, _)) = rest.get(1..).and_then(|rest| rest.split_once('}')) else { return Ok(None) };
    let number = |text: &str| {
        let plain = !text.is_empty()
            && text.bytes().all(|byte| byte.is_ascii_digit())
            && (text.len() == 1 || !text.starts_with('0'));
        plain.then(|| text.parse::<u32>().unwrap_or(u32::MAX))
    };
    let (low, high) = match body.split_once(',') {
        None => (number(body), number(body)),
        Some((low, "")) => (number(low), Some(0)),
        Some((low, high)) => (number(low), number(high)),
    };
    let (Some(low), Some(high)) = (low, high) else { return Ok(None) };
    let open = body.ends_with(',');
    if low > MAX_REPEAT || high > MAX_REPEAT || (!open && low > high) {
        return Err(format!("invalid repeat count: `{{{body}}}`"));
    }
    pattern.skip(body.len() + 2);
    Ok(Some(format!("{{{body}}}")))
}

/// The opening of a group, with its flags. Names are kept apart, since several groups may have one.
fn group(pattern: &mut Pattern<'_>, out: &mut String, names: &mut Vec<Option<String>>) -> Result<(), String> {
    let before = pattern.rest();
    pattern.next();
    let start = out.len();
    out.push('(');
    if !pattern.eat("?") {
        names.push(None);
        return Ok(());
    }
    if pattern.eat("P<") || pattern.eat("<") {
        let Some((name, _)) = pattern.rest().split_once('>') else {
            return Err(format!("invalid named capture: `{before}`"));
        };
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(word) {
            return Err(format!("invalid named capture: `{}`", head(before)));
        }
        names.push(Some(name.to_owned()));
        pattern.skip(name.len() + 1);
        return Ok(());
    }
    out.push('?');
    let mut flags = 0;
    let mut seen = Vec::new();
    let mut negative = false;
    loop {
        match pattern.next() {
            Some(c @ ('i' | 'm' | 's' | 'U')) => {
                // A flag may be given twice in Go only.
                if !seen.contains(&(negative, c)) {
                    out.push(c);
                    seen.push((negative, c));
                }
                flags += 1;
            }
            Some('-') if !negative => {
                out.push('-');
                negative = true;
                flags = 0;
            }
            Some(c @ (':' | ')')) if !(negative && flags == 0) => {
                if c == ')' && flags == 0 {
                    // `(?)` says nothing, which the target does not allow.
                    out.truncate(start);
                    return Ok(());
                }
                out.push(c);
                return Ok(());
            }
            _ => return Err(format!("invalid or unsupported Perl syntax: `{}`", head(before))),
        }
    }
}

/// An escape outside of classes.
fn escape(pattern: &mut Pattern<'_>, out: &mut String) -> Result<(), String> {
    let rest = pattern.rest();
    let mut ahead = rest.chars().skip(1);
    match ahead.next() {
        Some('A') => out.push_str("\\A"),
        Some('z') => out.push_str("\\z"),
        Some('b') => out.push_str("(?-u:\\b)"),
        Some('B') => out.push_str("(?-u:\\B)"),
        Some('Q') => {
            let body = rest.get(2..).unwrap_or_default();
            let (quoted, length) = match body.find("\\E") {
                Some(end) => (body.get(..end).unwrap_or_default(), end + 2),
                None => (body, body.len()),
            };
            quoted.chars().for_each(|c| literal(c, out));
            pattern.skip(2 + length);
            return Ok(());
        }
        Some('d' | 'D' | 's' | 'S' | 'w' | 'W' | 'p' | 'P') => {
            let mut items = String::new();
            class::escape_class(pattern, &mut items)?;
            out.push('[');
            out.push_str(&items);
            out.push(']');
            return Ok(());
        }
        _ => {
            let c = character(pattern)?;
            literal(c, out);
            return Ok(());
        }
    }
    pattern.skip(2);
    Ok(())
}

/// An escape that stands for one character.
pub(super) fn character(pattern: &mut Pattern<'_>) -> Result<char, String> {
    let before = pattern.rest();
    pattern.next();
    let bad = || format!("invalid escape sequence: `{}`", head(before));
    let Some(c) = pattern.next() else {
        return Err("trailing backslash at end of expression: ``".to_owned());
    };
    let octal = |c: char| c.to_digit(8);
    match c {
        '1'..='7' if pattern.peek().and_then(octal).is_none() => Err(bad()),
        '0'..='7' => {
            let mut code = octal(c).unwrap_or(0);
            for _ in 0..2 {
                let Some(digit) = pattern.peek().and_then(octal) else { break };
                code = code * 8 + digit;
                pattern.next();
            }
            char::from_u32(code).ok_or_else(bad)
        }
        'x' => {
            let digits = if pattern.eat("{") {
                let (digits, _) = pattern.rest().split_once('}').ok_or_else(bad)?;
                pattern.skip(digits.len() + 1);
                digits
            } else {
                let digits = pattern.rest().get(..2).ok_or_else(bad)?;
                pattern.skip(2);
                digits
            };
            let plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            let code = if plain { u32::from_str_radix(digits, 16).ok() } else { None };
            code.and_then(char::from_u32).ok_or_else(bad)
        }
        'a' => Ok('\x07'),
        'f' => Ok('\x0C'),
        'n' => Ok('\n'),
        'r' => Ok('\r'),
        't' => Ok('\t'),
        'v' => Ok('\x0B'),
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => Ok(c),
        _ => Err(bad()),
    }
}
