//! Parses a pattern into its tree.
use std::iter::Peekable;
use std::str::Chars;

/// A part of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    /// Parts one after the other.
    Pattern(Vec<Self>),
    /// Alternatives; patterns, or `Nothing`.
    AnyOf(Vec<Self>),
    Nothing,
    Text(String),
    /// `*`
    Any,
    /// `**`
    Super,
    /// `?`
    Single,
    /// `[abc]`
    List {
        chars: Vec<char>,
        not: bool,
    },
    /// `[a-z]`
    Range {
        low: char,
        high: char,
        not: bool,
    },
}

/// How deep braces may nest.
const MAX_DEPTH: usize = 100;

/// The tree of a pattern, `None` when it is malformed. Braces that stay open end with the pattern.
pub(super) fn parse(pattern: &str) -> Option<Node> {
    let mut chars = pattern.chars().peekable();
    // The alternatives so far of every open brace, and the parts of the one being read.
    let mut open: Vec<(Vec<Node>, Vec<Node>)> = Vec::new();
    let mut parts = Vec::new();
    while let Some(&c) = chars.peek() {
        let part = match c {
            '{' => {
                chars.next();
                if open.len() >= MAX_DEPTH {
                    return None;
                }
                open.push((Vec::new(), std::mem::take(&mut parts)));
                continue;
            }
            ',' | '}' if !open.is_empty() => {
                chars.next();
                if let Some((alternatives, _)) = open.last_mut() {
                    alternatives.push(Node::Pattern(std::mem::take(&mut parts)));
                }
                if c == '}' {
                    close(&mut open, &mut parts);
                }
                continue;
            }
            '[' => {
                chars.next();
                class(&mut chars)?
            }
            '?' => {
                chars.next();
                Node::Single
            }
            '*' => {
                chars.next();
                if chars.next_if_eq(&'*').is_some() { Node::Super } else { Node::Any }
            }
            _ => {
                let in_braces = !open.is_empty();
                let text = text(&mut chars, |c| {
                    matches!(c, '?' | '*' | '[' | '{') || (in_braces && matches!(c, '}' | ','))
                });
                if text.is_empty() {
                    continue;
                }
                Node::Text(text)
            }
        };
        parts.push(part);
    }
    while let Some((alternatives, _)) = open.last_mut() {
        alternatives.push(Node::Pattern(std::mem::take(&mut parts)));
        close(&mut open, &mut parts);
    }
    Some(Node::Pattern(parts))
}

fn close(open: &mut Vec<(Vec<Node>, Vec<Node>)>, parts: &mut Vec<Node>) {
    if let Some((alternatives, before)) = open.pop() {
        *parts = before;
        parts.push(Node::AnyOf(alternatives));
    }
}

/// Text up to a character that ends it; a backslash takes the next character as it is.
fn text(chars: &mut Peekable<Chars<'_>>, ends: impl Fn(char) -> bool) -> String {
    let mut text = String::new();
    while let Some(c) = chars.next_if(|&c| !ends(c)) {
        text.extend(if c == '\\' { chars.next() } else { Some(c) });
    }
    text
}

/// After `[`: one range, or a list of characters. Both at once, as in `[a-z0-9]`, is not a pattern.
fn class(chars: &mut Peekable<Chars<'_>>) -> Option<Node> {
    let not = chars.next_if_eq(&'!').is_some();
    let mut ahead = chars.clone();
    let low = ahead.next()?;
    if ahead.next() == Some('-') {
        let high = ahead.next()?;
        *chars = ahead;
        let closed = chars.next() == Some(']');
        return (closed && low <= high).then_some(Node::Range { low, high, not });
    }
    let list = text(chars, |c| c == ']');
    let closed = chars.next() == Some(']');
    (closed && !list.is_empty()).then(|| Node::List { chars: list.chars().collect(), not })
}
