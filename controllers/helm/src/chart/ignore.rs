//! Applies the rules of `.helmignore` to paths.
use regex::Regex;

/// The rules of one chart.
#[derive(Debug)]
pub struct Rules(Vec<Rule>);

#[derive(Debug)]
struct Rule {
    pattern: Regex,
    /// The pattern is about the last part of a path alone.
    base_only: bool,
    negate: bool,
    must_be_dir: bool,
}

impl Rules {
    /// Reads the rules, one a line, and adds Helm's own for hidden files among templates.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut rules = Vec::new();
        let lines = text.strip_prefix('\u{feff}').unwrap_or(text).lines();
        for line in lines.chain(["templates/.?*"]) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if line.contains("**") {
                return Err(".helmignore: double-star (**) syntax is not supported".to_owned());
            }
            rules.push(
                Rule::parse(line).ok_or_else(|| format!(".helmignore: syntax error in pattern {line:?}"))?,
            );
        }
        Ok(Self(rules))
    }

    /// Whether a path relative to the chart is left out. Negated rules leave out what they do not match.
    pub fn ignores(&self, path: &str, is_dir: bool) -> bool {
        if matches!(path, "" | "." | "./") {
            return false;
        }
        self.0.iter().any(|rule| {
            if rule.negate {
                (rule.must_be_dir && !is_dir) || !rule.matches(path)
            } else {
                (!rule.must_be_dir || is_dir) && rule.matches(path)
            }
        })
    }
}

impl Rule {
    fn parse(line: &str) -> Option<Self> {
        let negate = line.starts_with('!');
        let rule = line.strip_prefix('!').unwrap_or(line);
        let must_be_dir = rule.ends_with('/');
        let rule = rule.strip_suffix('/').unwrap_or(rule);
        let base_only = !rule.contains('/');
        let pattern = shell_pattern(rule.strip_prefix('/').unwrap_or(rule))?;
        Some(Self { pattern, base_only, negate, must_be_dir })
    }

    fn matches(&self, path: &str) -> bool {
        let path = if self.base_only { path.rsplit('/').next().unwrap_or(path) } else { path };
        self.pattern.is_match(path)
    }
}

/// A shell pattern by the rules of Go's `filepath.Match`; `None` when it is malformed.
pub fn shell_pattern(pattern: &str) -> Option<Regex> {
    let mut source = String::from(r"(?s)\A");
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '*' => source.push_str("[^/]*"),
            '?' => source.push_str("[^/]"),
            '\\' => source.push_str(&regex::escape(&chars.next()?.to_string())),
            '[' => {
                source.push('[');
                if chars.next_if_eq(&'^').is_some() {
                    source.push('^');
                }
                let mut empty = true;
                loop {
                    match chars.next()? {
                        ']' if !empty => break,
                        '-' if !empty && chars.peek() != Some(&']') => source.push('-'),
                        '\\' => source.push_str(&regex::escape(&chars.next()?.to_string())),
                        ']' | '-' => return None,
                        c => source.push_str(&regex::escape(&c.to_string())),
                    }
                    empty = false;
                }
                source.push(']');
            }
            c => source.push_str(&regex::escape(&c.to_string())),
        }
    }
    source.push_str(r"\z");
    Regex::new(&source).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_match_base_names_or_whole_paths() {
        let rules = Rules::parse("# a comment\n*.md\n/top.txt\ndocs/*.txt\nout/\n").unwrap();
        assert!(rules.ignores("a/b/README.md", false));
        assert!(rules.ignores("top.txt", false));
        assert!(!rules.ignores("a/top.txt", false));
        assert!(rules.ignores("docs/a.txt", false));
        assert!(!rules.ignores("docs/b/a.txt", false));
        assert!(rules.ignores("out", true));
        assert!(!rules.ignores("out", false));
        assert!(rules.ignores("templates/.hidden", false));
        assert!(!rules.ignores("templates/a.yaml", false));
    }

    #[test]
    fn a_negated_rule_leaves_out_everything_else() {
        let rules = Rules::parse("!*.yaml").unwrap();
        assert!(rules.ignores("a.txt", false));
        assert!(!rules.ignores("a.yaml", false));
    }

    #[test]
    fn malformed_rules_are_refused() {
        assert!(Rules::parse("a/**").is_err());
        assert!(Rules::parse("[a").is_err());
    }
}
