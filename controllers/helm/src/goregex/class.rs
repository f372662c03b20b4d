//! Translates character classes (`[…]`) of RE2 into those of the regex crate.
use super::translate::{Pattern, character, literal};

/// A bracketed class.
pub(super) fn class(pattern: &mut Pattern<'_>, out: &mut String) -> Result<(), String> {
    let whole = pattern.rest();
    pattern.next();
    out.push('[');
    if pattern.eat("^") {
        out.push('^');
    }
    let mut first = true;
    loop {
        let missing = || format!("missing closing ]: `{whole}`");
        match pattern.peek().ok_or_else(missing)? {
            ']' if !first => {
                pattern.next();
                out.push(']');
                return Ok(());
            }
            '[' if pattern.rest().starts_with("[:") => {
                let rest = pattern.rest();
                match rest.get(2..).and_then(|rest| rest.split_once(":]")) {
                    Some((name, _)) => {
                        if !is_posix(name.trim_start_matches('^')) {
                            return Err(format!("invalid character class range: `[:{name}:]`"));
                        }
                        out.push_str(&format!("[:{name}:]"));
                        pattern.skip(name.len() + 4);
                    }
                    None => range(pattern, out)?,
                }
            }
            '\\' if pattern.rest().get(1..2).is_some_and(|next| "dDsSwWpP".contains(next)) => {
                escape_class(pattern, out)?;
            }
            _ => range(pattern, out)?,
        }
        first = false;
    }
}

fn is_posix(name: &str) -> bool {
    matches!(
        name,
        "alnum"
            | "alpha"
            | "ascii"
            | "blank"
            | "cntrl"
            | "digit"
            | "graph"
            | "lower"
            | "print"
            | "punct"
            | "space"
            | "upper"
            | "word"
            | "xdigit"
    )
}

/// One character or a range of them.
fn range(pattern: &mut Pattern<'_>, out: &mut String) -> Result<(), String> {
    let whole = pattern.rest();
    let low = class_character(pattern)?;
    let rest = pattern.rest();
    if !(rest.starts_with('-') && rest.len() > 1 && !rest.starts_with("-]")) {
        literal(low, out);
        return Ok(());
    }
    pattern.next();
    let high = class_character(pattern)?;
    if high < low {
        let length = whole.len() - pattern.rest().len();
        return Err(format!("invalid character class range: `{}`", whole.get(..length).unwrap_or(whole)));
    }
    literal(low, out);
    out.push('-');
    literal(high, out);
    Ok(())
}

fn class_character(pattern: &mut Pattern<'_>) -> Result<char, String> {
    if pattern.peek() == Some('\\') {
        return character(pattern);
    }
    pattern.next().ok_or_else(|| "missing closing ]".to_owned())
}

/// `\d`, `\pL` and their like, as items of a class. Go's are of ASCII alone.
pub(super) fn escape_class(pattern: &mut Pattern<'_>, out: &mut String) -> Result<(), String> {
    let before = pattern.rest();
    pattern.next();
    match pattern.next() {
        Some('d') => out.push_str("0-9"),
        Some('D') => out.push_str("[^0-9]"),
        Some('s') => out.push_str("\\t\\n\\x0C\\r\\x20"),
        Some('S') => out.push_str("[^\\t\\n\\x0C\\r\\x20]"),
        Some('w') => out.push_str("0-9A-Za-z_"),
        Some('W') => out.push_str("[^0-9A-Za-z_]"),
        Some(sign) => {
            let bad = || format!("invalid character class range: `{}`", before.get(..3).unwrap_or(before));
            let name = if pattern.eat("{") {
                let (name, _) = pattern.rest().split_once('}').ok_or_else(bad)?;
                pattern.skip(name.len() + 1);
                name.to_owned()
            } else {
                pattern.next().ok_or_else(bad)?.to_string()
            };
            let (negative, name) = match name.strip_prefix('^') {
                Some(name) => (true, name),
                None => (false, name.as_str()),
            };
            if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                return Err(bad());
            }
            let letter = if (sign == 'P') == negative { 'p' } else { 'P' };
            out.push_str(&format!("\\{letter}{{{name}}}"));
        }
        None => return Err("trailing backslash at end of expression: ``".to_owned()),
    }
    Ok(())
}
