//! Compiles a pattern's tree into a matcher.
//!
//! Parts are joined, and alternatives share what they have in common, in the very steps in which the library does it:
//! which matcher comes out decides about names where its matchers are not exact.
use super::matcher::{Matcher, Tree};
use super::parse::Node;

pub(super) fn compile(node: &Node) -> Matcher {
    let matcher = match node {
        Node::AnyOf(alternatives) => {
            return match factor(alternatives) {
                Some(factored) => compile(&factored),
                None => Matcher::AnyOf(alternatives.iter().map(|part| simplify(compile(part))).collect()),
            };
        }
        Node::Pattern(parts) if parts.is_empty() => return Matcher::Nothing,
        Node::Pattern(parts) => join(glue_some(parts.iter().map(|part| simplify(compile(part))).collect()))
            .unwrap_or(Matcher::Nothing),
        Node::Nothing => Matcher::Nothing,
        Node::Text(text) => Matcher::Text(text.clone()),
        Node::Any => Matcher::Any,
        Node::Super => Matcher::Super,
        Node::Single => Matcher::Single,
        Node::List { chars, not } => Matcher::List { chars: chars.clone(), not: *not },
        Node::Range { low, high, not } => Matcher::Range { low: *low, high: *high, not: *not },
    };
    simplify(matcher)
}

/// A matcher for the same names that needs less work.
fn simplify(matcher: Matcher) -> Matcher {
    match matcher {
        Matcher::AnyOf(mut parts) if parts.len() == 1 => parts.pop().unwrap_or(Matcher::Nothing),
        Matcher::List { chars, not: false } if chars.len() == 1 => Matcher::Text(chars.into_iter().collect()),
        Matcher::Tree(tree) => simplify_tree(*tree),
        other => other,
    }
}

fn simplify_tree(tree: Tree) -> Matcher {
    let Tree { value, left, right } = tree;
    let (left, right) = (left.map(simplify), right.map(simplify));
    let Matcher::Text(text) = value else { return Matcher::Tree(Box::new(Tree { value, left, right })) };
    match (left, right) {
        (None, None) => Matcher::Text(text),
        (Some(Matcher::Super), Some(Matcher::Super)) => Matcher::Contains { needle: text, not: false },
        (Some(Matcher::Super), None) => Matcher::Suffix(text),
        (None, Some(Matcher::Super)) => Matcher::Prefix(text),
        (None, Some(Matcher::Suffix(suffix))) => Matcher::PrefixSuffix(text, suffix),
        (Some(Matcher::Prefix(prefix)), None) => Matcher::PrefixSuffix(prefix, text),
        (Some(Matcher::Any), None) => Matcher::SuffixAny(text),
        (None, Some(Matcher::Any)) => Matcher::PrefixAny(text),
        (left, right) => Matcher::Tree(Box::new(Tree { value: Matcher::Text(text), left, right })),
    }
}

/// One matcher for several in a row: around the longest of known length, the last of those.
fn join(mut parts: Vec<Matcher>) -> Option<Matcher> {
    if parts.len() <= 1 {
        return parts.pop();
    }
    if let Some(glued) = glue(&parts) {
        return Some(glued);
    }
    let longest = parts.iter().enumerate().filter_map(|(i, part)| Some((part.length()?, i))).max();
    let tree = if let Some((_, middle)) = longest {
        let right = parts.split_off(middle + 1);
        let value = parts.pop()?;
        Tree { value, left: join(parts), right: join(right) }
    } else {
        let rest = parts.split_off(1);
        Tree { value: parts.pop()?, left: None, right: join(rest) }
    };
    Some(Matcher::Tree(Box::new(tree)))
}

/// Glues neighbours together until nothing is left to glue, the longest stretch first.
fn glue_some(mut parts: Vec<Matcher>) -> Vec<Matcher> {
    loop {
        let mut best: Option<(Matcher, std::ops::Range<usize>)> = None;
        for start in 0..parts.len() {
            for end in (start + 1..=parts.len()).rev() {
                let Some(glued) = parts.get(start..end).and_then(glue) else { continue };
                let better = best.as_ref().is_none_or(|(known, range)| {
                    range.len() < end - start
                        || matches!((known.length(), glued.length()), (Some(known), Some(new)) if new > known)
                });
                if better {
                    best = Some((glued, start..end));
                }
            }
        }
        let Some((glued, range)) = best else { return parts };
        parts.splice(range, [glued]);
    }
}

/// One matcher for several, if they can be one.
fn glue(parts: &[Matcher]) -> Option<Matcher> {
    if parts.len() <= 1 {
        return None;
    }
    if let Some(glued) = glue_wildcards(parts) {
        return Some(glued);
    }
    let length = parts.iter().map(Matcher::length).sum::<Option<usize>>()?;
    Some(Matcher::Row { length, parts: parts.to_vec() })
}

/// Wildcards that stop at the same characters are one wildcard with a least length.
fn glue_wildcards(parts: &[Matcher]) -> Option<Matcher> {
    let (mut any, mut all, mut least) = (false, false, 0);
    let mut stops: Option<Vec<char>> = None;
    for part in parts {
        let stop = match part {
            Matcher::Super => {
                all = true;
                Vec::new()
            }
            Matcher::Any => {
                any = true;
                vec!['/']
            }
            Matcher::Single => {
                least += 1;
                vec!['/']
            }
            Matcher::List { chars, not: true } => {
                least += 1;
                chars.clone()
            }
            _ => return None,
        };
        if *stops.get_or_insert_with(|| stop.clone()) != stop {
            return None;
        }
    }
    let stops: String = stops.unwrap_or_default().into_iter().collect();
    if least == 0 {
        return Some(if all { Matcher::Super } else { Matcher::Any });
    }
    let mut every = vec![Matcher::Min(least)];
    if !any && !all {
        every.push(Matcher::Max(least));
    }
    if !stops.is_empty() {
        every.push(Matcher::Contains { needle: stops, not: true });
    }
    Some(Matcher::EveryOf(every))
}

/// Alternatives that begin or end with the same parts, with those parts before and behind them.
fn factor(alternatives: &[Node]) -> Option<Node> {
    let lists: Vec<&[Node]> = alternatives
        .iter()
        .map(|node| match node {
            Node::Pattern(parts) => Some(parts.as_slice()),
            _ => None,
        })
        .collect::<Option<_>>()?;
    let (left, right) = common(&lists);
    if left == 0 && right == 0 {
        return None;
    }
    let mut rests: Vec<Node> = Vec::new();
    for list in &lists {
        let rest = list.get(left..list.len() - right).unwrap_or_default();
        let node = if rest.is_empty() { Node::Nothing } else { Node::Pattern(rest.to_vec()) };
        if !rests.contains(&node) {
            rests.push(node);
        }
    }
    let first = *lists.first()?;
    let mut parts = Vec::new();
    if left > 0 {
        parts.push(Node::Pattern(first.get(..left)?.to_vec()));
    }
    match rests.as_slice() {
        [Node::Nothing] => {}
        [_] => parts.append(&mut rests),
        _ => parts.push(Node::AnyOf(rests)),
    }
    if right > 0 {
        parts.push(Node::Pattern(first.get(first.len() - right..)?.to_vec()));
    }
    Some(Node::Pattern(parts))
}

/// How many parts all lists have in common at their beginnings and at their ends.
fn common(lists: &[&[Node]]) -> (usize, usize) {
    let Some((shortest, tree)) = lists.iter().enumerate().min_by_key(|(_, list)| list.len()) else {
        return (0, 0);
    };
    let others = || lists.iter().enumerate().filter(|(i, _)| *i != shortest).map(|(_, list)| list);
    if lists.len() <= 1 {
        return (0, 0);
    }
    let (mut left, mut right) = (0, 0);
    let (mut left_ends, mut right_ends) = (false, false);
    for step in 0..tree.len() {
        if left + right >= tree.len() {
            break;
        }
        for other in others() {
            if left_ends && right_ends {
                break;
            }
            left_ends |= tree.get(step) != other.get(step);
            // Parts that beginnings have in common already are not counted again.
            right_ends |= !left_ends && tree.len() - 1 - step <= step;
            right_ends |= tree.iter().nth_back(step) != other.iter().nth_back(step);
        }
        left += usize::from(!left_ends);
        right += usize::from(!right_ends);
    }
    (left, right)
}
