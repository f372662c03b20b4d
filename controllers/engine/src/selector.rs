//! Builds field and label selectors: fixed text is written, names of others are escaped or refused.

/// Longest label value, in bytes; also of the name in a label key.
const LONGEST_LABEL: usize = 63;
/// Why a label selector cannot be requested.
const NO_LABEL: &str = "it is neither a label key nor a label value";

/// A field selector. Text that is not part of this program gets into it as a value, escaped, so that no name can end its
/// requirement or begin another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldSelector(String);

impl FieldSelector {
    /// `field=value`.
    pub fn new(field: &'static str, value: &str) -> Self {
        Self(format!("{field}={}", escaped(value)))
    }

    /// The objects of a name.
    pub fn name(name: &str) -> Self {
        Self::new("metadata.name", name)
    }

    /// The selector, as a query writes it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Escapes as `fields.EscapeValue` of Kubernetes does.
fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for c in value.chars() {
        if matches!(c, '\\' | ',' | '=') {
            text.push('\\');
        }
        text.push(c);
    }
    text
}

/// A label selector. Nothing in one can be escaped, so what no label has is remembered: the request is refused before it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelSelector {
    text: String,
    fault: Option<&'static str>,
}

impl LabelSelector {
    fn of(text: String, fits: bool) -> Self {
        // What is refused is not kept: it may be as large as a chart can make it.
        Self { text: if fits { text } else { String::new() }, fault: (!fits).then_some(NO_LABEL) }
    }

    /// A whole selector that is only known at run time. Whoever wrote it chose what it selects: this is for tests and tools, not
    /// for texts of others.
    pub fn whole(text: &str) -> Self {
        Self { text: text.to_owned(), fault: None }
    }

    /// Objects that have a label, whatever its value.
    pub fn has(key: &str) -> Self {
        Self::of(key.to_owned(), is_label_key(key))
    }

    /// Objects that do not have a label.
    pub fn lacks(key: &str) -> Self {
        Self::of(format!("!{key}"), is_label_key(key))
    }

    /// Objects whose label has this value.
    pub fn is(key: &str, value: &str) -> Self {
        Self::of(format!("{key}={value}"), is_label_key(key) && is_label_value(value))
    }

    /// Objects whose label has one of these values.
    pub fn among<'a>(key: &str, values: impl IntoIterator<Item = &'a str>) -> Self {
        Self::set(key, "in", values)
    }

    /// Objects whose label has none of these values.
    pub fn not_among<'a>(key: &str, values: impl IntoIterator<Item = &'a str>) -> Self {
        Self::set(key, "notin", values)
    }

    fn set<'a>(key: &str, operator: &'static str, values: impl IntoIterator<Item = &'a str>) -> Self {
        let values: Vec<&str> = values.into_iter().collect();
        let fits = is_label_key(key) && values.iter().all(|value| is_label_value(value));
        Self::of(format!("{key} {operator} ({})", values.join(",")), fits)
    }

    /// Objects that both select.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.fault = self.fault.or(other.fault);
        if self.fault.is_none() {
            self.text.push(',');
            self.text.push_str(&other.text);
        }
        self
    }

    /// The selector, as a query writes it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Why it cannot be requested.
    pub const fn fault(&self) -> Option<&'static str> {
        self.fault
    }
}

fn is_label_key(key: &str) -> bool {
    let (prefix, name) = key.rsplit_once('/').unwrap_or(("", key));
    (prefix.is_empty() && !key.starts_with('/') || crate::path::is_dns_subdomain(prefix))
        && !name.is_empty()
        && is_label_value(name)
}

/// Whether a text can be the value of a label.
fn is_label_value(value: &str) -> bool {
    let ends = |byte: Option<u8>| byte.is_none_or(|b| b.is_ascii_alphanumeric());
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    value.len() <= LONGEST_LABEL
        && value.bytes().all(plain)
        && ends(value.bytes().next())
        && ends(value.bytes().last())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_end_its_field_requirement() {
        for (name, text) in [
            ("web", "metadata.name=web"),
            ("system:a.b", "metadata.name=system:a.b"),
            ("a,b", r"metadata.name=a\,b"),
            ("x,metadata.name!=x", r"metadata.name=x\,metadata.name!\=x"),
            (r"a\", r"metadata.name=a\\"),
        ] {
            assert_eq!(FieldSelector::name(name).as_str(), text);
        }
    }

    #[test]
    fn label_selectors_are_written_as_kubernetes_reads_them() {
        let all = LabelSelector::has("emco.io/owner")
            .and(&LabelSelector::is("app", "web"))
            .and(&LabelSelector::is("empty", ""))
            .and(&LabelSelector::among("tier", ["a", "b"]))
            .and(&LabelSelector::not_among("zone", ["c"]))
            .and(&LabelSelector::lacks("old"));
        assert_eq!(all.as_str(), "emco.io/owner,app=web,empty=,tier in (a,b),zone notin (c),!old");
        assert_eq!(all.fault(), None);
    }

    #[test]
    fn what_no_label_has_is_refused_in_a_label_selector() {
        for value in ["a,b", "a=b", "a b", "!a", "a)", "-a", "a.", &"x".repeat(64)] {
            let selector = LabelSelector::has("ours").and(&LabelSelector::is("app", value));
            assert!(selector.fault().is_some(), "{value}");
            assert_eq!(selector.as_str(), "ours", "{value}");
            assert!(LabelSelector::among("app", ["a", value]).fault().is_some(), "{value}");
        }
        for key in ["", "/a", "a/", "A b/c", "a,b", "a/b/c"] {
            assert!(LabelSelector::has(key).fault().is_some(), "{key}");
        }
    }
}
