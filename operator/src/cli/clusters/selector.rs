//! Reads a label selector as kubectl does, for labels that the hub does not select by.

use std::collections::BTreeSet;

use anyhow::{anyhow, bail};
use kube::core::{Expression, Selector};

/// `tier=edge,region in (eu, us),!old`; no text selects everything.
pub fn parse(text: &str) -> anyhow::Result<Selector> {
    let requirements = split(text)?;
    let all: anyhow::Result<Vec<Expression>> = requirements.into_iter().map(requirement).collect();
    all.map(|all| all.into_iter().collect())
        .map_err(|why| anyhow!("--selector {text:?}: {why}; write it as tier=edge,region in (eu, us)"))
}

/// At commas that are in no parentheses.
fn split(text: &str) -> anyhow::Result<Vec<&str>> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let (mut parts, mut from, mut inside) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        match c {
            '(' if !inside => inside = true,
            ')' if inside => inside = false,
            '(' | ')' => bail!("--selector {text:?}: parentheses do not match"),
            ',' if !inside => {
                parts.extend(text.get(from..at));
                from = at + 1;
            }
            _ => {}
        }
    }
    if inside {
        bail!("--selector {text:?}: parentheses do not match");
    }
    parts.extend(text.get(from..));
    Ok(parts)
}

fn requirement(text: &str) -> anyhow::Result<Expression> {
    let text = text.trim();
    if let Some((left, values)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) {
        let values: BTreeSet<String> = values.split(',').map(value).collect::<anyhow::Result<_>>()?;
        let mut words = left.split_whitespace();
        return match (words.next(), words.next(), words.next()) {
            (Some(name), Some("in"), None) => Ok(Expression::In(key(name)?, values)),
            (Some(name), Some("notin"), None) => Ok(Expression::NotIn(key(name)?, values)),
            _ => Err(anyhow!("{text:?} is no requirement")),
        };
    }
    if let Some((name, wanted)) = text.split_once("!=") {
        return Ok(Expression::NotEqual(key(name)?, value(wanted)?));
    }
    if let Some((name, wanted)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return Ok(Expression::Equal(key(name)?, value(wanted)?));
    }
    match text.strip_prefix('!') {
        Some(name) => Ok(Expression::DoesNotExist(key(name)?)),
        None => Ok(Expression::Exists(key(text)?)),
    }
}

fn key(text: &str) -> anyhow::Result<String> {
    let text = text.trim();
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    if text.is_empty() || !text.chars().all(fits) {
        bail!("{text:?} is no label");
    }
    Ok(text.to_owned())
}

fn value(text: &str) -> anyhow::Result<String> {
    let text = text.trim();
    if !text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')) {
        bail!("{text:?} is no value of a label");
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kube::core::SelectorExt as _;

    use super::*;

    #[test]
    fn selectors_of_kubectl_select_what_they_say() {
        let labels: BTreeMap<String, String> = [("tier", "edge"), ("region", "eu"), ("a.b/c", "")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into();
        for (text, wanted) in [
            ("", true),
            ("tier=edge", true),
            ("tier==edge, region in (eu,us)", true),
            ("tier = core", false),
            ("tier!=core,region notin (us)", true),
            ("region notin (eu, us)", false),
            ("tier", true),
            ("!tier", false),
            ("!other,a.b/c=", true),
            ("other!=x", true),
        ] {
            assert_eq!(parse(text).unwrap().matches(&labels), wanted, "{text}");
        }
    }

    #[test]
    fn what_is_no_selector_is_refused_with_its_words() {
        for text in ["a,,b", "region in (eu", "region of (eu)", "=x", "a=b=c", "a in (b))", "a b"] {
            let said = parse(text).unwrap_err().to_string();
            assert!(said.contains(&format!("{text:?}")), "{said}");
        }
    }
}
